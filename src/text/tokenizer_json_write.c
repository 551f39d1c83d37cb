/* Writing tokenizer.json so that Hugging Face's `tokenizers` loads the same tokenizer.
 *
 * The text is produced directly, not through a JSON library: key order, spacing and escapes are fixed
 * here, ids ascend and merges go by rank, hence the same tokenizer always gives the same bytes. Merges are
 * written as "left right", the form that every release of `tokenizers` reads; tokens in the byte alphabet
 * have no spaces.
 */
#include "text/tokenizer.h"
#include "text/tokenizer_alphabet.h"
#include "text/tokenizer_pieces.h"
#include <string.h>

static const char byte_level_decoder[] =
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true}";

static void write_escaped(fr_buffer *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            fr_buffer_printf(out, "\\%c", c);
        else if (c < 0x20)
            fr_buffer_printf(out, "\\u%04x", c);
        else
            fr_buffer_append(out, &text[i], 1);
    }
}

/* A token as its file text, escaped, without quotes. */
static void write_token(fr_buffer *out, const fr_tokenizer *t, const fr_token *token, fr_buffer *spelled)
{
    if (token->flags & FR_TOKEN_BYTE) {
        fr_buffer_printf(out, "<0x%02X>", token->bytes[0]);
        return;
    }
    if (t->sentencepiece && token->flags & FR_TOKEN_MODEL) {
        fr_buffer_clear(spelled);
        fr_pieces_write(spelled, token->bytes, token->length);
        write_escaped(out, spelled->data, spelled->length);
        out->failed |= spelled->failed;
        return;
    }
    if ((token->flags & (FR_TOKEN_MODEL | FR_TOKEN_RAW)) != FR_TOKEN_MODEL) {
        write_escaped(out, (const char *)token->bytes, token->length);
        return;
    }
    fr_buffer_clear(spelled);
    fr_alphabet_write(spelled, token->bytes, token->length);
    write_escaped(out, spelled->data, spelled->length);
    out->failed |= spelled->failed;
}

static void write_added(fr_buffer *out, const fr_tokenizer *t, fr_buffer *spelled)
{
    fr_buffer_printf(out, "  \"added_tokens\": [");
    for (int32_t i = 0; i < t->added_count; i++) {
        const fr_token *token = &t->tokens[t->added[i]];
        fr_buffer_printf(out, "%s\n    {\"id\": %d, \"content\": \"", i ? "," : "", t->added[i]);
        write_token(out, t, token, spelled);
        fr_buffer_printf(out,
                         "\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": "
                         "false, \"special\": %s}",
                         token->flags & FR_TOKEN_SPECIAL ? "true" : "false");
    }
    fr_buffer_printf(out, "%s],\n", t->added_count ? "\n  " : "");
}

static void write_pattern(fr_buffer *out, const fr_tokenizer *t)
{
    const char *pattern = fr_split_pattern_text(t->pattern);
    if (t->sentencepiece) {
        fr_buffer_printf(out, "  \"pre_tokenizer\": null,\n");
        return;
    }
    fr_buffer_printf(out, "  \"pre_tokenizer\": {\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n"
                          "      {\"type\": \"Split\", \"pattern\": {\"Regex\": \"");
    write_escaped(out, pattern, strlen(pattern));
    fr_buffer_printf(out, "\"}, \"behavior\": \"Isolated\", \"invert\": false},\n"
                          "      {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": "
                          "true, \"use_regex\": false}\n"
                          "    ]\n  },\n");
}

/* Ranks that merges share, where they do: only SentencePiece's kind has them. The key is ours; `tokenizers` skips
 * it and gives every merge a rank of its own. */
static void write_ranks(fr_buffer *out, const fr_tokenizer *t)
{
    bool shared = false;
    for (int64_t m = 0; m < t->merge_count; m++)
        shared = shared || t->merges[m].rank != m;
    if (!t->sentencepiece || !shared)
        return;
    fr_buffer_printf(out, ",\n    \"frontier_merge_ranks\": [");
    for (int64_t m = 0; m < t->merge_count; m++)
        fr_buffer_printf(out, "%s%d", m ? ", " : "", t->merges[m].rank);
    fr_buffer_printf(out, "]");
}

static void write_model(fr_buffer *out, const fr_tokenizer *t, fr_buffer *spelled)
{
    fr_buffer_printf(
        out,
        "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
        "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": "
        "false,\n"
        "    \"byte_fallback\": %s,\n    \"ignore_merges\": %s,\n    \"vocab\": {",
        t->sentencepiece ? "true" : "false", t->whole_chunks ? "true" : "false");
    const char *separator = "";
    for (int32_t id = 0; id < t->vocab; id++) {
        if (!(t->tokens[id].flags & FR_TOKEN_MODEL))
            continue;
        fr_buffer_printf(out, "%s\n      \"", separator);
        write_token(out, t, &t->tokens[id], spelled);
        fr_buffer_printf(out, "\": %d", id);
        separator = ",";
    }
    fr_buffer_printf(out, "\n    },\n    \"merges\": [");
    for (int64_t m = 0; m < t->merge_count; m++) {
        fr_buffer_printf(out, "%s\n      \"", m ? "," : "");
        write_token(out, t, &t->tokens[t->merges[m].left], spelled);
        fr_buffer_append(out, " ", 1);
        write_token(out, t, &t->tokens[t->merges[m].right], spelled);
        fr_buffer_append(out, "\"", 1);
    }
    fr_buffer_printf(out, "%s]", t->merge_count ? "\n    " : "");
    write_ranks(out, t);
    fr_buffer_printf(out, "\n  }\n}\n");
}

fr_status fr_tokenizer_write(const fr_tokenizer *t, fr_buffer *out, fr_error *error)
{
    fr_buffer spelled;
    fr_buffer_init(&spelled, 0);
    fr_buffer_printf(out, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
    write_added(out, t, &spelled);
    fr_buffer_printf(out, "  \"normalizer\": %s,\n", t->sentencepiece ? fr_pieces_normalizer_text : "null");
    write_pattern(out, t);
    fr_buffer_printf(out, "  \"post_processor\": null,\n  \"decoder\": %s,\n",
                     t->sentencepiece ? fr_pieces_decoder_text : byte_level_decoder);
    write_model(out, t, &spelled);
    fr_buffer_release(&spelled);
    return out->failed ? fr_error_memory(error, out->length, "tokenizer.json") : FR_OK;
}

fr_status fr_tokenizer_save(const fr_tokenizer *t, const char *path, fr_error *error)
{
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_status status = fr_tokenizer_write(t, &text, error);
    if (status == FR_OK)
        status = fr_file_write(path, text.data, text.length, error);
    fr_buffer_release(&text);
    return status;
}
