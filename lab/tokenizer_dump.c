/* Lets lab/tokenizer_reference.py use the library's tokenizer from outside.
 *
 *     tokenizer_dump train VOCAB TEXT OUT.json        trains on a text file, one document
 *     tokenizer_dump convert json IN.json OUT.json    reads and writes again
 *     tokenizer_dump convert PATTERN IN.tiktoken OUT.json
 *     tokenizer_dump encode json TOKENIZER TEXT       ids of a text file, one per line
 *     tokenizer_dump encode PATTERN RANKS TEXT        the same with a tiktoken rank file
 *
 * PATTERN is builtin, gpt2 or cl100k.
 */
#include "frontier/text.h"
#include <string.h>

static fr_status open_tokenizer(const char *kind, const char *path, fr_tokenizer **out, fr_error *error)
{
    if (strcmp(kind, "json") == 0)
        return fr_tokenizer_load(out, path, error);
    const char *pattern = strcmp(kind, "gpt2") == 0     ? fr_pattern_gpt2
                          : strcmp(kind, "cl100k") == 0 ? fr_pattern_cl100k
                                                        : NULL;
    return fr_tokenizer_load_tiktoken(out, path, pattern, NULL, 0, error);
}

static fr_status train(int32_t vocab, const char *text, size_t bytes, const char *out, fr_error *error)
{
    fr_tokenizer_options options = {.vocab = vocab, .document_crop = (int64_t)bytes + 1};
    fr_tokenizer_trainer *trainer = NULL;
    fr_tokenizer *made = NULL;
    FR_TRY(fr_tokenizer_trainer_create(&trainer, &options, error));
    FR_TRY(fr_tokenizer_trainer_feed(trainer, text, bytes, error));
    FR_TRY(fr_tokenizer_trainer_finish(trainer, &made, error));
    fr_tokenizer_trainer_free(trainer);
    fr_status status = fr_tokenizer_save(made, out, error);
    fr_tokenizer_free(made);
    return status;
}

static fr_status encode(const fr_tokenizer *tokenizer, const char *text, size_t bytes, fr_error *error)
{
    int32_t *ids = fr_allocate((bytes + 1) * sizeof *ids);
    int64_t count = ids ? fr_tokenizer_encode(tokenizer, text, bytes, ids, (int64_t)bytes + 1) : -1;
    for (int64_t i = 0; i < count; i++)
        printf("%d\n", ids[i]);
    fr_deallocate(ids);
    return count < 0 ? fr_error_memory(error, bytes, "ids") : FR_OK;
}

static fr_status run(int argc, char **argv, fr_arena *arena, fr_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    fr_tokenizer *tokenizer = NULL;
    if (argc == 5 && strcmp(argv[1], "train") == 0) {
        int64_t vocab = 0;
        FR_TRY(fr_parse_int(argv[2], 0, INT32_MAX, &vocab, "VOCAB", error));
        FR_TRY(fr_file_read(arena, argv[3], &text, &bytes, error));
        return train((int32_t)vocab, text, bytes, argv[4], error);
    }
    if (argc != 5 || (strcmp(argv[1], "encode") != 0 && strcmp(argv[1], "convert") != 0))
        return fr_error_set(error, FR_BAD_USAGE, argv[0], NULL, "see the head of lab/tokenizer_dump.c");
    FR_TRY(open_tokenizer(argv[2], argv[3], &tokenizer, error));
    fr_status status = FR_OK;
    if (strcmp(argv[1], "convert") == 0)
        status = fr_tokenizer_save(tokenizer, argv[4], error);
    else if ((status = fr_file_read(arena, argv[4], &text, &bytes, error)) == FR_OK)
        status = encode(tokenizer, text, bytes, error);
    fr_tokenizer_free(tokenizer);
    return status;
}

int main(int argc, char **argv)
{
    fr_error error = {0};
    fr_arena arena;
    char message[1200];
    fr_arena_init(&arena, 1 << 20);
    fr_status status = run(argc, argv, &arena, &error);
    fr_arena_release(&arena);
    if (status != FR_OK) {
        fr_error_format(&error, message, sizeof message);
        fputs(message, stderr);
    }
    return (int)status;
}
