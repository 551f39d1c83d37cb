/* Reading tiktoken rank files: lines of "base64-of-bytes rank".
 *
 * The file lists tokens, not merges; its rule is that two neighbours merge when their joined bytes are a
 * token, at that token's rank, and that a chunk which is a token is not merged at all. Both are written
 * out here as the merges and the flag every tokenizer has: for each token, each way to cut it into two
 * tokens is a merge.
 */
#include "text/pretokenizer_utf8.h"
#include "text/tokenizer.h"
#include <sodium.h>
#include <string.h>

enum { TOKEN_LIMIT = 4096, /* bytes; every cut of a token is looked at */ LINE_LIMIT = 2 * TOKEN_LIMIT };

typedef struct rank_line {
    const uint8_t *bytes;
    size_t length;
    int32_t rank;
} rank_line;

typedef struct rank_file {
    fr_arena arena;
    const char *path;
    rank_line *lines;
    size_t count;
    int32_t highest;
} rank_file;

static fr_status bad_line(const rank_file *file, size_t line, const char *what, fr_error *error)
{
    char where[300];
    snprintf(where, sizeof where, "%.250s:%zu", file->path, line);
    return fr_error_set(error, FR_BAD_DATA, where, "a tiktoken rank file has lines of BASE64 SPACE RANK",
                        "%s", what);
}

/* One line without its end. */
static fr_status read_line(rank_file *file, const char *text, size_t length, size_t number, fr_error *error)
{
    uint8_t bytes[LINE_LIMIT];
    size_t count = 0;
    int64_t rank = 0;
    char digits[24] = "";
    const char *space = memchr(text, ' ', length);
    if (!space || length > LINE_LIMIT)
        return bad_line(file, number, space ? "token too long" : "no space", error);
    size_t digit_count = length - (size_t)(space - text) - 1;
    if (digit_count < sizeof digits)
        memcpy(digits, space + 1, digit_count);
    if (fr_parse_int(digits, 0, FR_TOKENIZER_VOCAB_LIMIT - 1, &rank, "rank", NULL) != FR_OK)
        return bad_line(file, number, "the rank is not a number from 0 to 1048575", error);
    if (sodium_base642bin(bytes, sizeof bytes, text, (size_t)(space - text), NULL, &count, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        count == 0 || count > TOKEN_LIMIT)
        return bad_line(file, number, "the token is not base64 of 1 to 4096 bytes", error);
    uint8_t *copy = fr_arena_alloc(&file->arena, count);
    if (!copy)
        return fr_error_memory(error, count, "a token");
    memcpy(copy, bytes, count);
    file->lines[file->count++] = (rank_line){.bytes = copy, .length = count, .rank = (int32_t)rank};
    if (rank > file->highest)
        file->highest = (int32_t)rank;
    return FR_OK;
}

static fr_status read_lines(rank_file *file, fr_error *error)
{
    char *text = NULL;
    size_t bytes = 0, line_count = 1, number = 0;
    FR_TRY(fr_file_read(&file->arena, file->path, &text, &bytes, error));
    for (size_t i = 0; i < bytes; i++)
        line_count += text[i] == '\n';
    file->lines = fr_arena_alloc(&file->arena, line_count * sizeof *file->lines);
    if (!file->lines)
        return fr_error_memory(error, line_count * sizeof *file->lines, "a rank file");
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - text) - at : bytes - at;
        size_t content = length > 0 && text[at + length - 1] == '\r' ? length - 1 : length;
        number++;
        if (content)
            FR_TRY(read_line(file, text + at, content, number, error));
        at += length + 1;
    }
    return FR_OK;
}

static bool is_well_formed(const char *text)
{
    bool valid = text[0] != 0;
    for (size_t at = 0, left = strlen(text); left > 0 && valid;) {
        size_t step = fr_utf8_step((const uint8_t *)text + at, left, &valid);
        at += step;
        left -= step;
    }
    return valid;
}

static fr_status add_specials(fr_tokenizer *t, int32_t first, const char *const *specials, int count,
                              fr_error *error)
{
    for (int i = 0; i < count; i++) {
        if (!specials[i])
            continue;
        if (!is_well_formed(specials[i]))
            return fr_error_set(error, FR_BAD_USAGE, "special token", NULL, "empty, or not UTF-8");
        for (int j = 0; j < i; j++)
            if (specials[j] && strcmp(specials[i], specials[j]) == 0)
                return fr_error_set(error, FR_BAD_USAGE, specials[i], NULL, "special token named twice");
        FR_TRY(fr_tokenizer_set_token(t, first + i, specials[i], strlen(specials[i]),
                                      FR_TOKEN_ADDED | FR_TOKEN_SPECIAL, error));
    }
    return FR_OK;
}

static fr_status add_merges(fr_tokenizer *t, fr_error *error)
{
    fr_buffer merges;
    fr_buffer_init(&merges, 0);
    bool fits = true;
    for (int32_t id = 0; id < t->vocab && fits; id++)
        if (t->tokens[id].flags & FR_TOKEN_MODEL)
            fits = fr_tokenizer_add_cuts(t, id, id, &merges);
    fr_status status = fits ? fr_tokenizer_finish(t, (const fr_merge *)(const void *)merges.data,
                                                  (int64_t)(merges.length / sizeof(fr_merge)), error)
                            : fr_error_memory(error, merges.length, "a tokenizer's merges");
    fr_buffer_release(&merges);
    return status;
}

static fr_status build(fr_tokenizer *t, const rank_file *file, const char *const *specials, int special_count,
                       fr_error *error)
{
    for (size_t i = 0; i < file->count; i++)
        FR_TRY(fr_tokenizer_set_token(t, file->lines[i].rank, file->lines[i].bytes, file->lines[i].length,
                                      FR_TOKEN_MODEL, error));
    FR_TRY(add_specials(t, file->highest + 1, specials, special_count, error));
    FR_TRY(fr_tokenizer_index_pieces(t, error));
    t->whole_chunks = true;
    return add_merges(t, error);
}

static fr_status load(fr_tokenizer **out, rank_file *file, const char *pattern, const char *const *specials,
                      int special_count, fr_error *error)
{
    FR_TRY(read_lines(file, error));
    fr_tokenizer *t = NULL;
    int64_t vocab = (int64_t)file->highest + 1 + special_count;
    FR_TRY(fr_tokenizer_begin(&t, vocab > INT32_MAX ? INT32_MAX : (int32_t)vocab, pattern, error));
    fr_status status = build(t, file, specials, special_count, error);
    if (status == FR_OK)
        *out = t;
    else
        fr_tokenizer_free(t);
    return status;
}

fr_status fr_tokenizer_load_tiktoken(fr_tokenizer **out, const char *path, const char *pattern,
                                     const char *const *specials, int special_count, fr_error *error)
{
    rank_file file = {.path = path, .highest = -1};
    fr_arena_init(&file.arena, 1 << 20);
    fr_status status = load(out, &file, pattern, specials, special_count, error);
    fr_arena_release(&file.arena);
    if (status == FR_BAD_DATA && !(error && error->where[0]))
        return fr_error_within(error, status, path);
    return status;
}
