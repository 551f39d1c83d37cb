/* A tokenizer from its parts: tokens, pieces, merges, and what is derived from them.
 *
 * A tokenizer never changes after fr_tokenizer_finish. Everything it owns lies in one arena except the
 * compiled pattern. The piece table finds a token by its bytes; the merge table finds what two neighbours
 * become. Tables are open-addressing, at most half full, and are only searched: no result depends on their
 * order.
 */
#include "text/bpe_hash.h"
#include "text/pretokenizer_utf8.h"
#include "text/tokenizer.h"
#include <stdlib.h>
#include <string.h>

const char *const fr_chat_specials[FR_CHAT_SPECIALS] = {
    "<|bos|>",          "<|user_start|>", "<|user_end|>",     "<|assistant_start|>", "<|assistant_end|>",
    "<|python_start|>", "<|python_end|>", "<|output_start|>", "<|output_end|>",
};

fr_status fr_tokenizer_begin(fr_tokenizer **out, int32_t vocab, const char *pattern, fr_error *error)
{
    if (vocab < 256 || vocab > FR_TOKENIZER_VOCAB_LIMIT)
        return fr_error_set(error, FR_BAD_DATA, NULL, "a byte-level vocabulary has 256 to 1048576 ids",
                            "%d token ids", vocab);
    fr_tokenizer *t = fr_allocate(sizeof *t);
    if (!t)
        return fr_error_memory(error, sizeof *t, "a tokenizer");
    fr_arena_init(&t->arena, 1 << 18);
    t->vocab = vocab;
    t->bos = -1;
    t->tokens = fr_arena_alloc(&t->arena, (size_t)vocab * sizeof *t->tokens);
    fr_status status =
        t->tokens ? FR_OK : fr_error_memory(error, (size_t)vocab * sizeof *t->tokens, "a tokenizer");
    if (status == FR_OK)
        status = fr_split_pattern_create(&t->pattern, pattern, error);
    if (status == FR_OK)
        *out = t;
    else
        fr_tokenizer_free(t);
    return status;
}

void fr_tokenizer_free(fr_tokenizer *t)
{
    if (!t)
        return;
    fr_split_pattern_free(t->pattern);
    fr_arena_release(&t->arena);
    fr_deallocate(t);
}

fr_status fr_tokenizer_set_token(fr_tokenizer *t, int32_t id, const void *bytes, size_t length,
                                 uint32_t flags, fr_error *error)
{
    if (id < 0 || id >= t->vocab)
        return fr_error_set(error, FR_BAD_DATA, NULL, NULL, "token id %d is outside 0..%d", id, t->vocab - 1);
    if (t->tokens[id].bytes)
        return fr_error_set(error, FR_BAD_DATA, NULL, NULL, "token id %d is used twice", id);
    if (length == 0 || length > INT32_MAX)
        return fr_error_set(error, FR_BAD_DATA, NULL, NULL, "token %d is empty or too long", id);
    uint8_t *copy = fr_arena_alloc(&t->arena, length);
    if (!copy)
        return fr_error_memory(error, length, "a token");
    memcpy(copy, bytes, length);
    t->tokens[id] = (fr_token){.bytes = copy, .length = (uint32_t)length, .flags = flags};
    return FR_OK;
}

/* ---- pieces ---------------------------------------------------------------------------------------- */

/* The slot of these bytes, or the empty one where they belong. */
static inline fr_piece_slot *piece_slot(const fr_tokenizer *t, const uint8_t *bytes, size_t length)
{
    uint64_t hash = fr_bpe_hash(bytes, length);
    size_t mask = t->piece_slots - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        fr_piece_slot *slot = &t->pieces[i];
        if (slot->id < 0)
            return slot;
        const fr_token *token = &t->tokens[slot->id];
        if (slot->hash == (uint32_t)(hash >> 32) && token->length == length &&
            memcmp(token->bytes, bytes, length) == 0)
            return slot;
    }
}

int32_t fr_tokenizer_find(const fr_tokenizer *t, const uint8_t *bytes, size_t length)
{
    return piece_slot(t, bytes, length)->id;
}

static bool is_piece(const fr_token *token)
{
    return token->bytes && (token->flags & (FR_TOKEN_MODEL | FR_TOKEN_RAW | FR_TOKEN_BYTE)) == FR_TOKEN_MODEL;
}

/* The byte tokens of SentencePiece's kind, and the space that encode puts in front. */
static fr_status list_byte_tokens(fr_tokenizer *t, fr_error *error)
{
    for (int value = 0; value < 256; value++)
        t->byte_ids[value] = -1;
    for (int32_t id = 0; id < t->vocab; id++)
        if (t->tokens[id].flags & FR_TOKEN_BYTE)
            t->byte_ids[t->tokens[id].bytes[0]] = id;
    for (int value = 0; value < 256; value++)
        if (t->byte_ids[value] < 0)
            return fr_error_set(error, FR_BAD_DATA, NULL, "byte fallback needs a token for every byte",
                                "no token <0x%02X>", value);
    if (fr_tokenizer_find(t, (const uint8_t *)" ", 1) < 0)
        return fr_error_set(error, FR_BAD_DATA, NULL, "the text gets a space in front", "no token is a space");
    return FR_OK;
}

static fr_status find_byte_ids(fr_tokenizer *t, fr_error *error)
{
    if (t->sentencepiece)
        return list_byte_tokens(t, error);
    for (int value = 0; value < 256; value++) {
        uint8_t byte = (uint8_t)value;
        t->byte_ids[value] = fr_tokenizer_find(t, &byte, 1);
        if (t->byte_ids[value] < 0)
            return fr_error_set(error, FR_BAD_DATA, NULL, "a byte-level tokenizer has a token for every byte",
                                "no token for byte 0x%02X", value);
    }
    return FR_OK;
}

fr_status fr_tokenizer_index_pieces(fr_tokenizer *t, fr_error *error)
{
    t->piece_slots = fr_bpe_slots((size_t)t->vocab);
    t->pieces = fr_arena_alloc(&t->arena, t->piece_slots * sizeof *t->pieces);
    if (!t->pieces)
        return fr_error_memory(error, t->piece_slots * sizeof *t->pieces, "a tokenizer");
    memset(t->pieces, 0xFF, t->piece_slots * sizeof *t->pieces);
    for (int32_t id = 0; id < t->vocab; id++) {
        const fr_token *token = &t->tokens[id];
        if (!is_piece(token) || (t->sentencepiece && token->flags & FR_TOKEN_SPECIAL))
            continue; /* SentencePiece's text never becomes a control token */
        fr_piece_slot *slot = piece_slot(t, token->bytes, token->length);
        if (slot->id >= 0)
            return fr_error_set(error, FR_BAD_DATA, NULL, NULL, "tokens %d and %d have the same bytes",
                                slot->id, id);
        *slot = (fr_piece_slot){.hash = (uint32_t)(fr_bpe_hash(token->bytes, token->length) >> 32), .id = id};
        if (token->length > t->longest_piece)
            t->longest_piece = token->length;
    }
    return find_byte_ids(t, error);
}

/* ---- merges and what follows from them --------------------------------------------------------------- */

static int compare_merges(const void *a, const void *b)
{
    const fr_merge *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

static fr_status index_merges(fr_tokenizer *t, fr_error *error)
{
    t->merge_slots = fr_bpe_slots((size_t)t->merge_count);
    t->merge_table = fr_arena_alloc(&t->arena, t->merge_slots * sizeof *t->merge_table);
    if (!t->merge_table)
        return fr_error_memory(error, t->merge_slots * sizeof *t->merge_table, "a tokenizer's merges");
    memset(t->merge_table, 0xFF, t->merge_slots * sizeof *t->merge_table);
    size_t mask = t->merge_slots - 1;
    for (int64_t m = 0; m < t->merge_count; m++) {
        const fr_merge *merge = &t->merges[m];
        uint64_t key = fr_bpe_pair_key(merge->left, merge->right);
        size_t i = fr_bpe_mix(key) & mask;
        while (t->merge_table[i].key != UINT64_MAX && t->merge_table[i].key != key)
            i = (i + 1) & mask;
        if (t->merge_table[i].key == key)
            return fr_error_set(error, FR_BAD_DATA, NULL, NULL, "tokens %d and %d are merged twice",
                                merge->left, merge->right);
        t->merge_table[i] = (fr_merge_slot){.key = key, .rank = merge->rank, .result = merge->result};
    }
    return FR_OK;
}

/* Marks the tokens whose own bytes encode to them. Not all do: a token's merges may be blocked by earlier
 * ones. */
static fr_status find_direct(fr_tokenizer *t, fr_error *error)
{
    fr_bpe_scratch scratch = {.memory = NULL};
    int64_t count = 0;
    for (int32_t id = 0; id < t->vocab && count >= 0; id++) {
        fr_token *token = &t->tokens[id];
        if (!is_piece(token) || t->sentencepiece)
            continue;
        const int32_t *ids = NULL;
        count = t->whole_chunks ? 1 : fr_bpe_merge_chunk(t, &scratch, token->bytes, token->length, &ids);
        if (t->whole_chunks ? !(token->flags & FR_TOKEN_SPECIAL) : count == 1 && ids[0] == id)
            token->flags |= FR_TOKEN_DIRECT;
    }
    fr_bpe_scratch_release(&scratch);
    return count < 0 ? fr_error_memory(error, t->longest_piece, "a tokenizer's longest token") : FR_OK;
}

static fr_status list_added(fr_tokenizer *t, fr_error *error)
{
    for (int32_t id = 0; id < t->vocab; id++)
        t->added_count += (t->tokens[id].flags & FR_TOKEN_ADDED) != 0;
    t->added = fr_arena_alloc(&t->arena, (size_t)t->added_count * sizeof *t->added + 1);
    if (!t->added)
        return fr_error_memory(error, (size_t)t->added_count * sizeof *t->added, "a tokenizer's specials");
    for (int32_t id = 0, n = 0; id < t->vocab; id++)
        if (t->tokens[id].flags & FR_TOKEN_ADDED)
            t->added[n++] = id;
    return FR_OK;
}

static void choose_bos(fr_tokenizer *t)
{
    static const char *const names[] = {"<|bos|>", "<|endoftext|>", "<|begin_of_text|>", "<s>",
                                        "\n<s>\n"}; /* the last is llama2.c's */
    for (size_t i = 0; i < sizeof names / sizeof names[0] && t->bos < 0; i++)
        t->bos = fr_tokenizer_special(t, names[i]);
    for (int32_t i = 0; i < t->added_count && t->bos < 0; i++)
        if (t->tokens[t->added[i]].flags & FR_TOKEN_SPECIAL)
            t->bos = t->added[i];
}

/* Everything that decides how text becomes ids, in one unambiguous serialisation. */
static fr_status name_by_hash(fr_tokenizer *t, fr_error *error)
{
    fr_buffer all;
    fr_buffer_init(&all, 0);
    const char *pattern = fr_split_pattern_text(t->pattern);
    fr_buffer_printf(&all, "frontier byte-pair tokenizer 1\n%zu %s\n%d %d %lld\n", strlen(pattern), pattern,
                     t->vocab, t->whole_chunks + 2 * t->sentencepiece, (long long)t->merge_count);
    for (int32_t id = 0; id < t->vocab; id++) {
        const fr_token *token = &t->tokens[id];
        fr_buffer_printf(&all, "%u %u ", token->length, token->flags & ~(uint32_t)FR_TOKEN_DIRECT);
        if (token->bytes)
            fr_buffer_append(&all, token->bytes, token->length);
        fr_buffer_append(&all, "\n", 1);
    }
    for (int64_t m = 0; m < t->merge_count; m++)
        fr_buffer_printf(&all, "%d %d %d %d\n", t->merges[m].rank, t->merges[m].left, t->merges[m].right,
                         t->merges[m].result);
    bool failed = all.failed;
    if (!failed)
        fr_sha256(all.data, all.length, t->hash);
    fr_buffer_release(&all);
    return failed ? fr_error_memory(error, 0, "a tokenizer's hash") : FR_OK;
}

fr_status fr_tokenizer_finish(fr_tokenizer *t, const fr_merge *merges, int64_t count, fr_error *error)
{
    size_t bytes = (size_t)count * sizeof *merges;
    t->merges = fr_arena_alloc(&t->arena, bytes + 1);
    if (!t->merges)
        return fr_error_memory(error, bytes, "a tokenizer's merges");
    if (count)
        memcpy(t->merges, merges, bytes);
    t->merge_count = count;
    qsort(t->merges, (size_t)count, sizeof *t->merges, compare_merges);
    FR_TRY(index_merges(t, error));
    FR_TRY(find_direct(t, error));
    FR_TRY(list_added(t, error));
    choose_bos(t);
    return name_by_hash(t, error);
}

/* ---- questions ------------------------------------------------------------------------------------- */

int32_t fr_tokenizer_vocab(const fr_tokenizer *t)
{
    return t->vocab;
}

int32_t fr_tokenizer_bos(const fr_tokenizer *t)
{
    return t->bos;
}

void fr_tokenizer_hash(const fr_tokenizer *t, char hex[65])
{
    memcpy(hex, t->hash, sizeof t->hash);
}

const char *fr_tokenizer_token(const fr_tokenizer *t, int32_t id, size_t *bytes)
{
    bool known = id >= 0 && id < t->vocab && t->tokens[id].bytes;
    *bytes = known ? t->tokens[id].length : 0;
    return known ? (const char *)t->tokens[id].bytes : NULL;
}

int32_t fr_tokenizer_prefix(const fr_tokenizer *t)
{
    return t->sentencepiece ? 1 : 0;
}

const char *fr_tokenizer_token_after(const fr_tokenizer *t, int32_t previous, int32_t id, size_t *bytes)
{
    const char *text = fr_tokenizer_token(t, id, bytes);
    bool first = previous < 0 || previous == t->bos;
    if (!text || !first || !t->sentencepiece || text[0] != ' ')
        return text;
    (*bytes)--;
    return text + 1;
}

int32_t fr_tokenizer_special(const fr_tokenizer *t, const char *text)
{
    size_t length = strlen(text);
    for (int32_t i = 0; i < t->added_count; i++) {
        const fr_token *token = &t->tokens[t->added[i]];
        if (token->length == length && memcmp(token->bytes, text, length) == 0)
            return t->added[i];
    }
    return -1;
}

fr_status fr_tokenizer_decode(const fr_tokenizer *t, const int32_t *ids, int64_t count, bool specials,
                              fr_buffer *out, fr_error *error)
{
    size_t before = out->length;
    for (int64_t i = 0; i < count; i++) {
        int32_t id = ids[i];
        if (id < 0 || id >= t->vocab || !t->tokens[id].bytes) {
            out->length = before;
            if (out->capacity)
                out->data[before] = 0;
            return fr_error_set(error, FR_BAD_DATA, NULL, "were these ids made by another tokenizer?",
                                "id %d at position %lld is no token", id, (long long)i);
        }
        size_t length = 0;
        const char *text = fr_tokenizer_token_after(t, i ? ids[i - 1] : -1, id, &length);
        if (specials || !(t->tokens[id].flags & FR_TOKEN_SPECIAL))
            fr_buffer_append(out, text, length);
    }
    return out->failed ? fr_error_memory(error, out->limit, "decoded text") : FR_OK;
}

/* Bytes of a token after decoding to a string and encoding again: 3 for each U+FFFD that decoding puts in. */
static int32_t decoded_length(const fr_token *token)
{
    int32_t length = 0;
    for (size_t at = 0; at < token->length;) {
        bool valid;
        size_t step = fr_utf8_step(token->bytes + at, token->length - at, &valid);
        length += valid ? (int32_t)step : 3;
        at += step;
    }
    return length;
}

void fr_tokenizer_byte_lengths(const fr_tokenizer *t, fr_byte_lengths convention, int32_t *lengths)
{
    for (int32_t id = 0; id < t->vocab; id++) {
        const fr_token *token = &t->tokens[id];
        if (token->flags & FR_TOKEN_SPECIAL)
            lengths[id] = 0;
        else
            lengths[id] = convention == FR_LENGTHS_DECODED ? decoded_length(token) : (int32_t)token->length;
    }
}
