/* Reading the tokenizer file of llama2.c: SentencePiece's tokens with their scores.
 *
 *     int32 longest token; then per token: float32 score, int32 length, bytes       all little-endian
 *
 * Token 0 is <unk>, 1 BOS, 2 EOS, 3 to 258 the bytes, spelled <0x00> to <0xFF>. The program that reads it merges,
 * again and again, the two neighbours whose joined bytes are the token of the highest score, the leftmost among
 * equals. So a token's rank is the place of its score from above, equal scores share it, and every cut of the
 * token into two others is a merge of that rank. What this could not express, a merge that leads to one of
 * the first 259, is refused.
 */
#include "text/tokenizer.h"
#include "text/tokenizer_pieces.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONTROLS = 3, FIRST_TEXT = CONTROLS + 256, TOKEN_LIMIT = 4096 };
static const float no_merge = -1e10f; /* a score at or below it is never merged */

typedef struct scored {
    int32_t id;
    float score;
} scored;

typedef struct token_file {
    const uint8_t *data;
    size_t count, at;
    const char *origin;
    fr_tokenizer *made;
    scored *tokens; /* by id; later by score */
    int32_t longest;
    fr_error *error;
} token_file;

static fr_status bad(const token_file *f, const char *what, int32_t id)
{
    return fr_error_set(f->error, FR_BAD_DATA, f->origin, "expected the tokenizer file of a llama2.c model",
                        "token %d: %s", id, what);
}

static bool take(token_file *f, void *to, size_t bytes)
{
    if (f->count - f->at < bytes)
        return false;
    memcpy(to, f->data + f->at, bytes);
    f->at += bytes;
    return true;
}

/* The first 259 are what the format says; the others are text. */
static fr_status add_token(const token_file *f, int32_t id, const uint8_t *text, size_t length)
{
    int byte = fr_pieces_byte((const char *)text, length);
    uint32_t flags = FR_TOKEN_MODEL;
    fr_buffer spelled;
    fr_buffer_init(&spelled, 0);
    bool clean = fr_pieces_write(&spelled, text, length) && !spelled.failed;
    fr_buffer_release(&spelled);
    if (!clean)
        return bad(f, "it contains U+2581, which stands for a space elsewhere", id);
    if (id < CONTROLS)
        flags |= FR_TOKEN_ADDED | FR_TOKEN_SPECIAL;
    bool in_bytes = id >= CONTROLS && id < FIRST_TEXT, looks_it = length >= 3 && memcmp(text, "<0x", 3) == 0;
    if (in_bytes != looks_it || (in_bytes && byte != id - CONTROLS))
        return bad(f, "ids 3 to 258, and no others, are the bytes <0x00> to <0xFF>", id);
    if (in_bytes)
        return fr_tokenizer_set_token(f->made, id, &(uint8_t){(uint8_t)byte}, 1, flags | FR_TOKEN_BYTE, f->error);
    return fr_tokenizer_set_token(f->made, id, text, length, flags, f->error);
}

static fr_status read_token(token_file *f, int32_t id)
{
    float score;
    int32_t length;
    if (!take(f, &score, sizeof score) || !take(f, &length, sizeof length))
        return bad(f, "the file ends before it", id);
    if (!isfinite(score))
        return bad(f, "its score is not finite", id);
    if (length < 1 || length > f->longest)
        return bad(f, "its length is zero, negative or above the file's longest", id);
    if (f->count - f->at < (size_t)length)
        return bad(f, "the file ends inside it", id);
    const uint8_t *text = f->data + f->at;
    f->at += (size_t)length;
    f->tokens[id] = (scored){id, score};
    if (memchr(text, 0, (size_t)length))
        return bad(f, "it contains a NUL byte", id);
    return add_token(f, id, text, (size_t)length);
}

static int from_above(const void *left, const void *right)
{
    const scored *a = left, *b = right;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Would ordinary tokens merge to the spelling of a byte? */
static bool spelling_is_reached(const fr_tokenizer *t, const fr_token *byte)
{
    char text[8];
    int length = snprintf(text, sizeof text, "<0x%02X>", byte->bytes[0]);
    const uint8_t *spelling = (const uint8_t *)text;
    for (int cut = 1; cut < length; cut++)
        if (fr_tokenizer_find(t, spelling, (size_t)cut) >= 0 &&
            fr_tokenizer_find(t, spelling + cut, (size_t)(length - cut)) >= 0)
            return true;
    return false;
}

/* Every rank is the number of merges before it, as frontier_merge_ranks of tokenizer.json has them. */
static fr_status add_merges(const token_file *f, fr_buffer *merges)
{
    int32_t rank = 0;
    qsort(f->tokens, (size_t)f->made->vocab, sizeof *f->tokens, from_above);
    for (int32_t i = 0; i < f->made->vocab && f->tokens[i].score > no_merge; i++) {
        int32_t id = f->tokens[i].id;
        const fr_token *token = &f->made->tokens[id];
        size_t before = merges->length;
        bool is_byte = token->flags & FR_TOKEN_BYTE;
        if (i == 0 || f->tokens[i].score != f->tokens[i - 1].score)
            rank = (int32_t)(before / sizeof(fr_merge));
        if (!is_byte && !fr_tokenizer_add_cuts(f->made, id, rank, merges))
            return fr_error_memory(f->error, merges->length, "a tokenizer's merges");
        if (is_byte ? spelling_is_reached(f->made, token) : id < CONTROLS && merges->length > before)
            return bad(f, "ordinary tokens would merge to this control token", id);
    }
    return fr_tokenizer_finish(f->made, (const fr_merge *)(const void *)merges->data,
                               (int64_t)(merges->length / sizeof(fr_merge)), f->error);
}

static fr_status read_all(token_file *f, int32_t vocab)
{
    if (!take(f, &f->longest, sizeof f->longest) || f->longest < 1 || f->longest > TOKEN_LIMIT)
        return fr_error_set(f->error, FR_BAD_DATA, f->origin, "expected the tokenizer file of a llama2.c model",
                            "the longest token's length is not 1 to %d", TOKEN_LIMIT);
    for (int32_t id = 0; id < vocab; id++)
        FR_TRY(read_token(f, id));
    if (f->at != f->count)
        return fr_error_set(f->error, FR_BAD_DATA, f->origin, "the tokenizer belongs to another model",
                            "%zu bytes are left behind the model's %d tokens", f->count - f->at, vocab);
    FR_TRY(fr_tokenizer_index_pieces(f->made, f->error));
    fr_buffer merges;
    fr_buffer_init(&merges, 0);
    fr_status status = add_merges(f, &merges);
    fr_buffer_release(&merges);
    return status;
}

fr_status fr_tokenizer_parse_llama2c(fr_tokenizer **out, const void *bytes, size_t count, int32_t vocab,
                                     const char *origin, fr_error *error)
{
    fr_error local = {0};
    token_file f = {.data = bytes, .count = count, .origin = origin, .error = error ? error : &local};
    *f.error = (fr_error){0};
    if (vocab < FIRST_TEXT)
        return fr_error_set(error, FR_BAD_DATA, origin, "a llama2.c vocabulary has 259 fixed tokens and more",
                            "the model has %d tokens", vocab);
    FR_TRY(fr_tokenizer_begin(&f.made, vocab, NULL, f.error));
    f.made->sentencepiece = true;
    f.tokens = fr_allocate((size_t)vocab * sizeof *f.tokens);
    fr_status status =
        f.tokens ? read_all(&f, vocab) : fr_error_memory(f.error, (size_t)vocab * sizeof *f.tokens, "a tokenizer");
    fr_deallocate(f.tokens);
    if (status == FR_OK) {
        *out = f.made;
        return FR_OK;
    }
    fr_tokenizer_free(f.made);
    return strcmp(f.error->where, origin) == 0 ? status : fr_error_within(f.error, status, origin);
}

fr_status fr_tokenizer_load_llama2c(fr_tokenizer **out, const char *path, int32_t vocab, fr_error *error)
{
    fr_mapping mapping;
    FR_TRY(fr_mapping_init(&mapping, path, error));
    fr_status status = fr_tokenizer_parse_llama2c(out, mapping.data, mapping.bytes, vocab, path, error);
    fr_mapping_release(&mapping);
    return status;
}
