/* cli/cmd_tokenizer.c: `frontier tokenizer train, encode, decode, info`. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "frontier/text.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static fr_status open_tokenizer(const char *path, fr_tokenizer **tokenizer, fr_error *error)
{
    char inside[1100];
    if (fr_path_is_folder(path))
        path = fr_path_join(inside, sizeof inside, path, "tokenizer.json");
    size_t length = strlen(path);
    if (length > 9 && strcmp(path + length - 9, ".tiktoken") == 0)
        return fr_tokenizer_load_tiktoken(tokenizer, path, NULL, NULL, 0, error);
    return fr_tokenizer_load(tokenizer, path, error);
}

/* An argument that names a file is read; "-" is standard input; anything else is text itself. */
static fr_status read_stream(cli_run *run, FILE *in, char **text, size_t *bytes, fr_error *error)
{
    fr_buffer buffer;
    char piece[65536];
    size_t got;
    fr_buffer_init(&buffer, (size_t)4 << 30);
    while ((got = fread(piece, 1, sizeof piece, in)) > 0)
        fr_buffer_append(&buffer, piece, got);
    *bytes = buffer.length;
    *text = buffer.failed ? NULL : fr_arena_alloc(&run->arena, buffer.length + 1);
    if (*text && buffer.length)
        memcpy(*text, buffer.data, buffer.length);
    fr_buffer_release(&buffer);
    return *text ? FR_OK : fr_error_memory(error, *bytes, "standard input");
}

static fr_status read_argument(cli_run *run, int index, char **text, size_t *bytes, fr_error *error)
{
    if (index >= run->argument_count || strcmp(run->arguments[index], "-") == 0)
        return read_stream(run, stdin, text, bytes, error);
    if (fr_path_exists(run->arguments[index]))
        return fr_file_read(&run->arena, run->arguments[index], text, bytes, error);
    *text = fr_arena_strdup(&run->arena, run->arguments[index]);
    *bytes = strlen(run->arguments[index]);
    return *text ? FR_OK : fr_error_memory(error, *bytes, "the text");
}

/* ---- train ------------------------------------------------------------------------------------------ */

static const cli_option train_options[] = {
    {"out", CLI_PATH, "FILE", NULL, "the tokenizer.json to write", false, true},
    {"vocab", CLI_COUNT, "N", "8192", "entries, specials included", false, false},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
};

/* A tokenizer of compressed bytes would look like one and be useless. */
static fr_status check_plain(const fr_mapping *mapping, const char *path, fr_error *error)
{
    static const struct {
        const char *magic, *what;
    } packed[] = {{"PAR1", "parquet"}, {"\x1F\x8B", "gzip"}, {"\x28\xB5\x2F\xFD", "zstd"}};
    for (int i = 0; i < COUNT(packed); i++)
        if (mapping->bytes >= strlen(packed[i].magic) && memcmp(mapping->data, packed[i].magic, strlen(packed[i].magic)) == 0)
            return fr_error_set(error, FR_BAD_DATA, path, "frontier data import reads it, and trains a tokenizer on its text",
                                "%s data, not text", packed[i].what);
    return FR_OK;
}

static fr_status feed_files(cli_run *run, fr_tokenizer_trainer *trainer, fr_error *error)
{
    for (int i = 0; i < run->argument_count; i++) {
        fr_mapping mapping;
        FR_TRY(fr_mapping_init(&mapping, run->arguments[i], error));
        fr_status status = check_plain(&mapping, run->arguments[i], error);
        const char *text = (const char *)mapping.data;
        for (size_t at = 0;
             status == FR_OK &&
             at < mapping.bytes;) { /* paragraphs: documents are cropped to 10,000 characters */
            const char *end = memmem(text + at, mapping.bytes - at, "\n\n", 2);
            size_t size = end ? (size_t)(end - text) + 2 - at : mapping.bytes - at;
            status = fr_tokenizer_trainer_feed(trainer, text + at, size, error);
            at += size;
        }
        fr_mapping_release(&mapping);
        FR_TRY(status);
    }
    return FR_OK;
}

static fr_status run_train(cli_run *run, fr_error *error)
{
    fr_pool *pool;
    fr_tokenizer_trainer *trainer = NULL;
    fr_tokenizer *tokenizer = NULL;
    FR_TRY(fr_pool_create(&pool, (int)cli_int(run, "threads", 0), error));
    fr_tokenizer_options options = {
        .vocab = (int32_t)cli_int(run, "vocab", 8192), .pool = pool, .progress = &run->progress};
    fr_status status = fr_tokenizer_trainer_create(&trainer, &options, error);
    if (status == FR_OK)
        status = feed_files(run, trainer, error);
    if (status == FR_OK)
        status = fr_tokenizer_trainer_finish(trainer, &tokenizer, error);
    if (status == FR_OK)
        status = fr_tokenizer_save(tokenizer, cli_text(run, "out"), error);
    if (status == FR_OK) {
        cli_print(run, "%s: %d entries\n", cli_text(run, "out"), fr_tokenizer_vocab(tokenizer));
        cli_put(run, "vocab", json_integer(fr_tokenizer_vocab(tokenizer)));
        char hex[65];
        fr_tokenizer_hash(tokenizer, hex);
        cli_put(run, "hash", json_string(hex));
    }
    fr_tokenizer_free(tokenizer);
    fr_tokenizer_trainer_free(trainer);
    fr_pool_free(pool);
    return status;
}

const cli_command cmd_tokenizer_train = {
    .name = "tokenizer train",
    .arguments = "FILE...",
    .least = 1,
    .most = -1,
    .summary = "train a byte-level BPE tokenizer on text files",
    .options = train_options,
    .option_count = COUNT(train_options),
    .details =
        "A document is a paragraph (text up to a blank line). `data import` trains one on its own documents.",
    .examples = "  frontier tokenizer train --out tokenizer.json --vocab 8192 book.txt",
    .run = run_train,
    .schema = "tokenizer-train",
};

/* ---- encode, decode, info ----------------------------------------------------------------------------- */

static const cli_option file_options[] = {
    {"tokenizer", CLI_PATH, "FILE", NULL, "a tokenizer.json, a .tiktoken file, or a data or run folder",
     false, true},
};

static fr_status run_encode(cli_run *run, fr_error *error)
{
    fr_tokenizer *tokenizer;
    char *text;
    size_t bytes;
    FR_TRY(read_argument(run, 0, &text, &bytes, error));
    FR_TRY(open_tokenizer(cli_text(run, "tokenizer"), &tokenizer, error));
    int32_t *ids = fr_arena_alloc(&run->arena, (bytes + 1) * sizeof *ids);
    int64_t count = ids ? fr_tokenizer_encode(tokenizer, text, bytes, ids, (int64_t)bytes + 1) : -1;
    fr_status status = FR_OK;
    if (count < 0)
        status = ids ? fr_tokenizer_encode_error(tokenizer, bytes, "the text", error)
                     : fr_error_memory(error, bytes * 4, "token ids");
    fr_tokenizer_free(tokenizer);
    FR_TRY(status);
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        if (run->json)
            json_array_append_new(list, json_integer(ids[i]));
        else
            printf("%s%d", i ? " " : "", ids[i]);
    }
    if (!run->json)
        printf("\n");
    cli_put(run, "ids", list);
    cli_put(run, "bytes", json_integer((json_int_t)bytes));
    return FR_OK;
}

static fr_status parse_ids(const char *text, int32_t *ids, int64_t *count, fr_error *error)
{
    char *end;
    *count = 0;
    for (const char *at = text; *(at += strspn(at, " \t\r\n,[]"));) {
        long value = strtol(at, &end, 10);
        if (end == at || value < 0 || value > INT32_MAX)
            return fr_error_set(error, FR_BAD_USAGE, NULL, "give ids as whole numbers separated by spaces",
                                "not a token id: '%.20s'", at);
        ids[(*count)++] = (int32_t)value;
        at = end;
    }
    return FR_OK;
}

static fr_status run_decode(cli_run *run, fr_error *error)
{
    fr_tokenizer *tokenizer;
    char *text;
    size_t bytes;
    int64_t count;
    fr_buffer out;
    FR_TRY(read_argument(run, 0, &text, &bytes, error));
    int32_t *ids = fr_arena_alloc(&run->arena, (bytes + 1) * sizeof *ids);
    if (!ids)
        return fr_error_memory(error, bytes * 4, "token ids");
    FR_TRY(parse_ids(text, ids, &count, error));
    FR_TRY(open_tokenizer(cli_text(run, "tokenizer"), &tokenizer, error));
    fr_buffer_init(&out, 0);
    fr_status status = fr_tokenizer_decode(tokenizer, ids, count, true, &out, error);
    if (status == FR_OK && !run->json)
        fwrite(out.data, 1, out.length, stdout);
    if (status == FR_OK && run->json) { /* bytes that are not UTF-8 cannot stand in JSON: then text is null */
        json_t *json = json_stringn(out.data, out.length);
        cli_put(run, "text", json ? json : json_null());
        cli_put(run, "bytes", json_integer((json_int_t)out.length));
    }
    fr_buffer_release(&out);
    fr_tokenizer_free(tokenizer);
    return status;
}

static fr_status run_info(cli_run *run, fr_error *error)
{
    fr_tokenizer *tokenizer;
    char hex[65];
    FR_TRY(open_tokenizer(run->arguments[0], &tokenizer, error));
    fr_tokenizer_hash(tokenizer, hex);
    int32_t vocab = fr_tokenizer_vocab(tokenizer), bos = fr_tokenizer_bos(tokenizer);
    cli_print(run, "%s\n  entries %d\n  bos     %d\n  hash    %s\n", run->arguments[0], vocab, bos, hex);
    cli_put(run, "vocab", json_integer(vocab));
    cli_put(run, "bos", json_integer(bos));
    cli_put(run, "hash", json_string(hex));
    fr_tokenizer_free(tokenizer);
    return FR_OK;
}

const cli_command cmd_tokenizer_encode = {
    .name = "tokenizer encode",
    .arguments = "[TEXT|FILE|-]",
    .least = 0,
    .most = 1,
    .summary = "text to token ids",
    .options = file_options,
    .option_count = COUNT(file_options),
    .examples = "  frontier tokenizer encode --tokenizer data/mine 'Hello world'",
    .run = run_encode,
    .schema = "tokenizer-encode",
};
const cli_command cmd_tokenizer_decode = {
    .name = "tokenizer decode",
    .arguments = "[IDS|FILE|-]",
    .least = 0,
    .most = 1,
    .summary = "token ids to text",
    .options = file_options,
    .option_count = COUNT(file_options),
    .examples = "  frontier tokenizer decode --tokenizer data/mine '39 68 75'",
    .run = run_decode,
    .schema = "tokenizer-decode",
};
const cli_command cmd_tokenizer_info = {
    .name = "tokenizer info",
    .arguments = "FILE",
    .least = 1,
    .most = 1,
    .summary = "what a tokenizer file holds",
    .examples = "  frontier tokenizer info data/mine/tokenizer.json",
    .run = run_info,
    .schema = "tokenizer-info",
};
