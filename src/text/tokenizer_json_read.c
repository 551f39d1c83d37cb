/* Reading tokenizer.json files as Hugging Face's `tokenizers` writes them: byte-level BPE, and SentencePiece's BPE
 * with byte fallback.
 *
 * A file says much that changes ids: a normalizer, a prefix space, a dropout. What we do not do is refused
 * by name; nothing that matters is skipped over. Ignored are run-time settings that never touch the ids of
 * plain text: truncation, padding, the post-processor (which adds special tokens; our loader places BOS
 * itself) and the decoder. The file is hostile until proven otherwise: ids are bounded, every string is
 * measured, merges must name tokens of the vocabulary and join to another one.
 */
#include "text/pretokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_alphabet.h"
#include "text/tokenizer_pieces.h"
#include <jansson.h>
#include <string.h>

typedef struct reader {
    const char *origin;
    fr_error *error;
    fr_tokenizer *made;
    fr_buffer text; /* scratch: one token's bytes, or a merge's two tokens end to end */
    fr_merge *merges;
    bool sentencepiece;
    int32_t sized; /* ids the tokenizer is to have; 0: as many as it names */
} reader;

static fr_status refuse(const reader *r, const char *hint, const char *what)
{
    return fr_error_set(r->error, FR_BAD_DATA, r->origin, hint, "%s", what);
}

static bool is_absent(const json_t *value)
{
    return !value || json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0);
}

static bool is_type(const json_t *object, const char *type)
{
    const char *name = json_string_value(json_object_get(object, "type"));
    return name && strcmp(name, type) == 0;
}

/* ---- pre-tokenizer and model settings ------------------------------------------------------------ */

static fr_status check_model(const reader *r, const json_t *root, const json_t *model)
{
    const json_t *normalizer = json_object_get(root, "normalizer"),
                 *dropout = json_object_get(model, "dropout");
    if (!json_is_object(model) || (json_object_get(model, "type") && !is_type(model, "BPE")))
        return refuse(r, "only byte-level BPE tokenizers are supported", "no model of type BPE");
    if (!is_absent(normalizer) && !r->sentencepiece)
        return refuse(r, "it would change the text before encoding", "a normalizer is not supported");
    if (!is_absent(dropout) && json_number_value(dropout) != 0)
        return refuse(r, "encoding would be random", "model.dropout is not supported");
    if (!is_absent(json_object_get(model, "continuing_subword_prefix")) ||
        !is_absent(json_object_get(model, "end_of_word_suffix")))
        return refuse(r, "only byte-level BPE tokenizers are supported",
                      "subword prefixes and word suffixes are not supported");
    if (json_is_true(json_object_get(model, "byte_fallback")) != r->sentencepiece)
        return refuse(r, "byte fallback goes with the normalizer that puts U+2581 in front, and only with it",
                      "model.byte_fallback does not fit the normalizer");
    if (r->sentencepiece && (!is_absent(json_object_get(root, "pre_tokenizer")) ||
                             json_is_true(json_object_get(model, "ignore_merges"))))
        return refuse(r, "SentencePiece's BPE is read without them",
                      "a pre_tokenizer or ignore_merges beside byte fallback is not supported");
    return FR_OK;
}

static fr_status check_byte_level(const reader *r, const json_t *step, bool *splits)
{
    const json_t *use_regex = json_object_get(step, "use_regex");
    if (!is_type(step, "ByteLevel"))
        return refuse(r, "expected ByteLevel, alone or after one Split", "unsupported pre_tokenizer");
    if (!json_is_false(json_object_get(step, "add_prefix_space")))
        return refuse(r, "it would add a space that is not in the text",
                      "pre_tokenizer.add_prefix_space is not supported");
    *splits = !use_regex || json_is_true(use_regex);
    return FR_OK;
}

/* A Split keeps every byte if it isolates its matches, or removes what is between (nothing, for a total
 * pattern). */
static fr_status read_split(const reader *r, const json_t *step, const char **pattern)
{
    const char *behavior = json_string_value(json_object_get(step, "behavior"));
    bool invert = json_is_true(json_object_get(step, "invert"));
    *pattern = json_string_value(json_object_get(json_object_get(step, "pattern"), "Regex"));
    bool keeps = behavior && strcmp(behavior, invert ? "Removed" : "Isolated") == 0;
    if (!is_type(step, "Split") || !*pattern || !keeps)
        return refuse(r, "expected a Split by Regex with behavior Isolated", "unsupported pre_tokenizer");
    return FR_OK;
}

static fr_status read_pattern(const reader *r, const json_t *pre_tokenizer, const char **pattern)
{
    bool splits = false;
    const json_t *steps = json_object_get(pre_tokenizer, "pretokenizers");
    if (is_type(pre_tokenizer, "Sequence") && json_array_size(steps) == 2) {
        FR_TRY(read_split(r, json_array_get(steps, 0), pattern));
        FR_TRY(check_byte_level(r, json_array_get(steps, 1), &splits));
        if (splits)
            return refuse(r, NULL, "a Split followed by ByteLevel with use_regex is not supported");
        return FR_OK;
    }
    FR_TRY(check_byte_level(r, pre_tokenizer, &splits));
    if (!splits)
        return refuse(r, NULL, "ByteLevel without a split pattern is not supported");
    *pattern = fr_pattern_gpt2;
    return FR_OK;
}

/* ---- tokens -------------------------------------------------------------------------------------- */

static fr_status read_id(const reader *r, const json_t *value, int32_t *id)
{
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || number >= FR_TOKENIZER_VOCAB_LIMIT)
        return refuse(r, "ids are numbers from 0 to 1048575", "a token id is out of range");
    *id = (int32_t)number;
    return FR_OK;
}

/* One more than the highest id of the vocabulary and the added tokens. */
static fr_status count_ids(const reader *r, json_t *vocab, const json_t *added, int32_t *count)
{
    const char *key;
    json_t *value;
    size_t i;
    int32_t id = 0;
    *count = 0;
    json_object_foreach(vocab, key, value)
    {
        FR_TRY(read_id(r, value, &id));
        *count = id >= *count ? id + 1 : *count;
    }
    json_array_foreach(added, i, value)
    {
        FR_TRY(read_id(r, json_object_get(value, "id"), &id));
        *count = id >= *count ? id + 1 : *count;
    }
    return FR_OK;
}

/* Appends the bytes that a spelling stands for. False: it is not in the byte alphabet. */
static bool read_spelling(reader *r, const char *text, size_t length)
{
    if (!r->sentencepiece)
        return fr_alphabet_read(&r->text, text, length);
    fr_pieces_read(&r->text, text, length);
    return true;
}

/* One entry of the vocabulary as bytes in r->text; returns its flags. */
static uint32_t read_entry(reader *r, const char *text, size_t length)
{
    int byte = r->sentencepiece ? fr_pieces_byte(text, length) : -1;
    fr_buffer_clear(&r->text);
    if (byte >= 0) {
        fr_buffer_append(&r->text, &(uint8_t){(uint8_t)byte}, 1);
        return FR_TOKEN_MODEL | FR_TOKEN_BYTE;
    }
    if (read_spelling(r, text, length))
        return FR_TOKEN_MODEL;
    fr_buffer_append(&r->text, text, length);
    return FR_TOKEN_MODEL | FR_TOKEN_RAW;
}

static fr_status read_vocab(reader *r, json_t *vocab)
{
    const char *key;
    json_t *value;
    json_object_foreach(vocab, key, value)
    {
        size_t length = strlen(key);
        uint32_t flags = read_entry(r, key, length);
        if (r->text.failed)
            return fr_error_memory(r->error, length, "a token");
        FR_TRY(fr_tokenizer_set_token(r->made, (int32_t)json_integer_value(value), r->text.data,
                                      r->text.length, flags, r->error));
    }
    return FR_OK;
}

/* An added token is either new, or names an id the vocabulary already gave to the same text. */
static fr_status read_added(reader *r, json_t *vocab, const json_t *added)
{
    size_t i;
    json_t *item;
    json_array_foreach(added, i, item)
    {
        const json_t *content = json_object_get(item, "content");
        const char *text = json_string_value(content);
        int32_t id = (int32_t)json_integer_value(json_object_get(item, "id"));
        uint32_t flags =
            FR_TOKEN_ADDED | (json_is_true(json_object_get(item, "special")) ? FR_TOKEN_SPECIAL : 0);
        if (!text)
            return refuse(r, NULL, "an added token has no content");
        fr_token *known = &r->made->tokens[id];
        if (!(known->flags & FR_TOKEN_MODEL)) {
            FR_TRY(fr_tokenizer_set_token(r->made, id, text, json_string_length(content), flags, r->error));
            continue;
        }
        const json_t *listed = json_object_get(vocab, text);
        if (!listed || json_integer_value(listed) != id)
            return refuse(r, NULL, "an added token takes the id of another token");
        known->flags |= flags;
    }
    return FR_OK;
}

/* ---- merges -------------------------------------------------------------------------------------- */

/* The two texts of one merge: "left right" or ["left", "right"]. */
static bool merge_texts(const json_t *item, const char *texts[2], size_t lengths[2])
{
    if (json_is_array(item)) {
        for (size_t side = 0; side < 2; side++) {
            const json_t *value = json_array_get(item, side);
            texts[side] = json_string_value(value);
            lengths[side] = json_string_length(value);
        }
        return json_array_size(item) == 2 && texts[0] && texts[1];
    }
    const char *text = json_string_value(item), *space = text ? strchr(text, ' ') : NULL;
    if (!space || strchr(space + 1, ' '))
        return false;
    texts[0] = text;
    texts[1] = space + 1;
    lengths[0] = (size_t)(space - text);
    lengths[1] = strlen(space + 1);
    return true;
}

static fr_status read_merge(reader *r, const json_t *item, int32_t rank)
{
    const char *texts[2] = {NULL, NULL};
    size_t lengths[2] = {0, 0};
    fr_buffer_clear(&r->text);
    bool fine = merge_texts(item, texts, lengths) && read_spelling(r, texts[0], lengths[0]);
    size_t cut = r->text.length;
    fine = fine && read_spelling(r, texts[1], lengths[1]) && !r->text.failed && cut > 0 &&
           cut < r->text.length;
    const uint8_t *bytes = (const uint8_t *)r->text.data;
    fr_merge merge = {.rank = rank, .left = -1};
    if (fine) {
        merge.left = fr_tokenizer_find(r->made, bytes, cut);
        merge.right = fr_tokenizer_find(r->made, bytes + cut, r->text.length - cut);
        merge.result = fr_tokenizer_find(r->made, bytes, r->text.length);
    }
    if (merge.left < 0 || merge.right < 0 || merge.result < 0)
        return fr_error_set(r->error, FR_BAD_DATA, r->origin, "a merge names two tokens that join to a third",
                            "model.merges[%d] does not fit the vocabulary", rank);
    r->merges[rank] = merge;
    return FR_OK;
}

/* Merges of one rank are one choice, made at the leftmost place; a file of ours says where ranks are shared. */
static fr_status read_ranks(reader *r, const json_t *ranks, size_t count)
{
    if (is_absent(ranks))
        return FR_OK;
    if (!json_is_array(ranks) || json_array_size(ranks) != count)
        return refuse(r, NULL, "model.frontier_merge_ranks is not a rank for every merge");
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(ranks, i);
        json_int_t rank = json_integer_value(value);
        if (!json_is_integer(value) || rank < (i ? r->merges[i - 1].rank : 0) || rank > (json_int_t)i)
            return refuse(r, NULL, "model.frontier_merge_ranks do not rise");
        r->merges[i].rank = (int32_t)rank;
    }
    return FR_OK;
}

static fr_status read_merges(reader *r, const json_t *merges, const json_t *ranks)
{
    size_t count = json_array_size(merges), i;
    json_t *item;
    if (!json_is_array(merges) || count >= INT32_MAX)
        return refuse(r, NULL, "model.merges is not an array");
    r->merges = fr_allocate(count * sizeof *r->merges + 1);
    if (!r->merges)
        return fr_error_memory(r->error, count * sizeof *r->merges, "a tokenizer's merges");
    json_array_foreach(merges, i, item) FR_TRY(read_merge(r, item, (int32_t)i));
    FR_TRY(read_ranks(r, ranks, count));
    return fr_tokenizer_finish(r->made, r->merges, (int64_t)count, r->error);
}

/* ---- a size from outside ---- */

static const char unused[] = "<|unused|>";

static fr_status check_size(const reader *r, int32_t *count)
{
    if (r->sized && *count > r->sized)
        return fr_error_set(r->error, FR_BAD_DATA, r->origin, "tokenizer and weights belong to different models",
                            "the tokenizer has %d ids, the model %d", *count, r->sized);
    *count = r->sized ? r->sized : *count;
    return FR_OK;
}

/* ---- the file ------------------------------------------------------------------------------------ */

static fr_status read_root(reader *r, const json_t *root)
{
    const json_t *model = json_object_get(root, "model"), *added = json_object_get(root, "added_tokens");
    json_t *vocab = json_object_get(model, "vocab");
    const char *pattern = NULL;
    int32_t count = 0;
    r->sentencepiece = fr_pieces_normalizer(json_object_get(root, "normalizer"));
    FR_TRY(check_model(r, root, model));
    if (!r->sentencepiece)
        FR_TRY(read_pattern(r, json_object_get(root, "pre_tokenizer"), &pattern));
    if (!json_is_object(vocab) || (!is_absent(added) && !json_is_array(added)))
        return refuse(r, NULL, "model.vocab is not an object, or added_tokens is not an array");
    FR_TRY(count_ids(r, vocab, added, &count));
    FR_TRY(check_size(r, &count));
    FR_TRY(fr_tokenizer_begin(&r->made, count, pattern, r->error));
    r->made->sentencepiece = r->sentencepiece;
    FR_TRY(read_vocab(r, vocab));
    FR_TRY(read_added(r, vocab, added));
    if (r->sized && !r->made->tokens[count - 1].bytes)
        FR_TRY(fr_tokenizer_set_token(r->made, count - 1, unused, sizeof unused - 1,
                                      FR_TOKEN_ADDED | FR_TOKEN_SPECIAL, r->error));
    FR_TRY(fr_tokenizer_index_pieces(r->made, r->error));
    r->made->whole_chunks = json_is_true(json_object_get(model, "ignore_merges"));
    return read_merges(r, json_object_get(model, "merges"), json_object_get(model, "frontier_merge_ranks"));
}

static fr_status parse(fr_tokenizer **out, const char *json, size_t bytes, const char *origin, int32_t sized,
                       fr_error *error)
{
    fr_error local = {0};
    reader r = {.origin = origin, .error = error ? error : &local, .sized = sized};
    json_error_t problem;
    json_t *root = json_loadb(json, bytes, 0, &problem);
    if (!root)
        return fr_error_set(error, FR_BAD_DATA, origin, "expected a Hugging Face tokenizer.json",
                            "line %d: %s", problem.line, problem.text);
    fr_buffer_init(&r.text, 0);
    r.error->where[0] = 0;
    fr_status status = read_root(&r, root);
    json_decref(root);
    fr_buffer_release(&r.text);
    fr_deallocate(r.merges);
    if (status == FR_OK) {
        *out = r.made;
        return FR_OK;
    }
    fr_tokenizer_free(r.made);
    return strcmp(r.error->where, origin) == 0 ? status : fr_error_within(r.error, status, origin);
}

fr_status fr_tokenizer_parse(fr_tokenizer **out, const char *json, size_t bytes, const char *origin,
                             fr_error *error)
{
    return parse(out, json, bytes, origin, 0, error);
}

fr_status fr_tokenizer_load(fr_tokenizer **out, const char *path, fr_error *error)
{
    return fr_tokenizer_load_sized(out, path, 0, error);
}

fr_status fr_tokenizer_load_sized(fr_tokenizer **out, const char *path, int32_t vocab, fr_error *error)
{
    fr_arena arena;
    char *text = NULL;
    size_t bytes = 0;
    fr_arena_init(&arena, 1 << 20);
    fr_status status = fr_file_read(&arena, path, &text, &bytes, error);
    if (status == FR_OK)
        status = parse(out, text, bytes, path, vocab, error);
    fr_arena_release(&arena);
    return status;
}
