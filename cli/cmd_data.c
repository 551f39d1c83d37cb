/* cli/cmd_data.c: `frontier data import, info, text, world`: text in, and out again.
 *
 * Import tells what it kept, what it dropped and where, because a corpus nobody looked at is the commonest reason for
 * a number nobody believes.
 */
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "frontier/text.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* ---- import ---------------------------------------------------------------------------------------- */

static const cli_option import_options[] = {
    {"out", CLI_PATH, "FOLDER", NULL, "the data folder to make", false, true},
    {"vocab", CLI_COUNT, "N", NULL, "tokenizer entries, specials included (default 8192)", false, false},
    {"tokenizer", CLI_PATH, "FILE", NULL, "use this tokenizer.json instead of training one", false, false},
    {"valid-fraction", CLI_REAL, "F", NULL,
     "share of documents for validation (default 0.05, at most 10 MB of text)", false, false},
    {"valid", CLI_PATH, "PATH", NULL, "validation text; its copies leave the training text", true, false},
    {"split", CLI_CHOICE, "auto|file|blank-lines|lines|bytes", "auto", "what a document of a .txt file is",
     false, false},
    {"split-bytes", CLI_SIZE, "SIZE", NULL,
     "piece size for bytes (default 16KiB); least block size for blank-lines (default 0)", false, false},
    {"text-field", CLI_TEXT, "KEY", "text", "the .jsonl key that holds the text", false, false},
    {"column", CLI_TEXT, "NAME", NULL, "the .parquet column (default text, else the only column of strings)",
     false, false},
    {"duckdb", CLI_PATH, "FILE", NULL,
     "DuckDB's C library, for .parquet (default FRONTIER_DUCKDB, else the loader's path)", false, false},
    {"licence", CLI_TEXT, "TEXT", NULL, "recorded in corpus.json", false, false},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
    {"force", CLI_FLAG, NULL, NULL, "replace an existing data folder", false, false},
};

static fr_split_kind split_kind(const char *text)
{
    static const char *const names[] = {"auto", "file", "blank-lines", "lines", "bytes"};
    static const fr_split_kind kinds[] = {FR_SPLIT_AUTO, FR_SPLIT_FILE, FR_SPLIT_BLANK_LINES, FR_SPLIT_LINES,
                                          FR_SPLIT_BYTES};
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(text, names[i]) == 0)
            return kinds[i];
    return FR_SPLIT_AUTO;
}

static void print_notes(const cli_run *run, const fr_import_summary *summary)
{
    for (int kind = 0; kind < FR_IMPORT_KINDS; kind++) {
        if (!summary->counts[kind])
            continue;
        cli_print(run, "  %s: %lld\n", fr_import_kind_text(kind), (long long)summary->counts[kind]);
        int shown = 0;
        for (int i = 0; i < summary->note_count && shown < 3; i++)
            if (summary->notes[i].kind == (fr_import_kind)kind) {
                cli_print(run, "      %s\n", summary->notes[i].where);
                shown++;
            }
        if (summary->counts[kind] > shown)
            cli_print(run, "      and %lld more; --json lists 20\n",
                      (long long)summary->counts[kind] - shown);
    }
}

static void put_import(cli_run *run, const fr_import_summary *summary)
{
    json_t *counts = json_object(), *notes = json_array();
    for (int kind = 0; kind < FR_IMPORT_KINDS; kind++)
        json_object_set_new(counts, fr_import_kind_name(kind), json_integer(summary->counts[kind]));
    for (int i = 0; i < summary->note_count; i++) {
        json_t *note = json_object();
        fr_json_set_string(note, "kind", fr_import_kind_name(summary->notes[i].kind));
        fr_json_set_string(note, "where", summary->notes[i].where);
        json_array_append_new(notes, note);
    }
    cli_put(run, "documents", json_integer(summary->documents));
    cli_put(run, "bytes", json_integer(summary->bytes));
    cli_put(run, "tokens", json_integer(summary->tokens));
    cli_put(run, "dropped", json_integer(summary->dropped));
    cli_put(run, "vocab", json_integer(summary->vocab));
    cli_put(run, "train",
            json_pack("{s:I,s:I,s:I}", "documents", (json_int_t)summary->train_documents, "bytes",
                      (json_int_t)summary->train_bytes, "tokens", (json_int_t)summary->train_tokens));
    cli_put(run, "valid",
            json_pack("{s:I,s:I,s:I}", "documents", (json_int_t)summary->valid_documents, "bytes",
                      (json_int_t)summary->valid_bytes, "tokens", (json_int_t)summary->valid_tokens));
    cli_put(run, "counts", counts);
    cli_put(run, "notes", notes);
    cli_put(run, "seconds", json_real(summary->seconds));
}

static void print_split(const cli_run *run, const char *name, int64_t documents, int64_t bytes,
                        int64_t tokens)
{
    char a[32], b[32], c[32];
    cli_print(run, "  %-11s %12s documents %10s %14s tokens\n", name, fr_format_count(a, sizeof a, documents),
              fr_format_bytes(b, sizeof b, (double)bytes), fr_format_count(c, sizeof c, tokens));
}

static fr_status run_import(cli_run *run, fr_error *error)
{
    fr_import_summary *summary = fr_arena_alloc(&run->arena, sizeof *summary);
    fr_pool *pool = NULL;
    const char **valid;
    if (!summary)
        return fr_error_memory(error, sizeof *summary, "the import summary");
    fr_import_options options = {
        .out_folder = cli_text(run, "out"),
        .paths = run->arguments,
        .path_count = run->argument_count,
        .vocab = (int32_t)cli_int(run, "vocab", 0),
        .tokenizer_path = cli_text(run, "tokenizer"),
        .valid_fraction = cli_real(run, "valid-fraction", 0),
        .split = split_kind(cli_text(run, "split")),
        .split_bytes =
            cli_bytes(run, "split-bytes", strcmp(cli_text(run, "split"), "bytes") == 0 ? 16384 : 0),
        .text_field = cli_text(run, "text-field"),
        .column = cli_text(run, "column"),
        .duckdb_path = cli_text(run, "duckdb"),
        .licence = cli_text(run, "licence"),
        .overwrite = cli_flag(run, "force"),
        .progress = &run->progress,
    };
    options.valid_path_count = cli_texts(run, "valid", &valid);
    options.valid_paths = valid;
    if (cli_text(run, "valid-fraction") && !(options.valid_fraction > 0 && options.valid_fraction < 1))
        return fr_error_set(error, FR_BAD_USAGE, "--valid-fraction", "0.05 is a good choice",
                            "not between 0 and 1");
    if (cli_text(run, "vocab") && options.vocab == 0)
        return fr_error_set(error, FR_BAD_USAGE, "--vocab", "256 bytes and 9 specials are always there",
                            "0 is not in 265..1048576");
    FR_TRY(fr_pool_create(&pool, (int)cli_int(run, "threads", 0), error));
    options.pool = pool;
    fr_status status = fr_import(&options, summary, error);
    fr_pool_free(pool);
    if (status != FR_OK)
        print_notes(run, summary); /* what was dropped often is the reason */
    FR_TRY(status);
    char seconds[40];
    cli_print(run, "%s: imported in %s\n", options.out_folder,
              fr_format_duration(seconds, sizeof seconds, summary->seconds));
    print_split(run, "training", summary->train_documents, summary->train_bytes, summary->train_tokens);
    print_split(run, "validation", summary->valid_documents, summary->valid_bytes, summary->valid_tokens);
    if (summary->vocab < summary->vocab_asked)
        cli_print(run, "  tokenizer   %d entries, not %d: the text has no more pairs to merge\n",
                  summary->vocab, summary->vocab_asked);
    print_notes(run, summary);
    cli_print(run, "next: frontier train --data %s --budget 10m --out run\n",
              cli_quoted(run, options.out_folder));
    put_import(run, summary);
    return FR_OK;
}

const cli_command cmd_data_import = {
    .name = "data import",
    .arguments = "PATH...",
    .least = 1,
    .most = -1,
    .summary = "turn text files into a data folder: tokenizer and token shards",
    .options = import_options,
    .option_count = COUNT(import_options),
    .details =
        "Takes .txt and .jsonl files, either compressed with gzip or zstd, .parquet files, and folders of them. "
        "Documents equal\n"
        "after case and space folding are dropped within and across the split; whatever was not taken as it\n"
        "stood is counted and named. Text is kept byte for byte, invalid UTF-8 too; only a byte-order mark "
        "is removed.\n"
        "--split auto: 20 or more .txt files are a document each; fewer are cut at blank lines into blocks "
        "of 4 kB.\n"
        "A .parquet file needs DuckDB's C library (libduckdb.so, 1.2 to 2.x): 'frontier data fetch duckdb' gets it.",
    .examples = "  frontier data import --out data/mine notes.txt\n"
                "  frontier data import --out data/web --vocab 8192 crawl/ --valid held-out.jsonl.zst",
    .run = run_import,
    .schema = "data-import",
};

/* ---- info ------------------------------------------------------------------------------------------ */

static const cli_option info_options[] = {
    {"verify", CLI_FLAG, NULL, NULL, "also verify the content of every shard", false, false},
};

/* Somebody else may have written it: nothing in it commands the terminal. */
static void print_licence(const cli_run *run, const char *licence)
{
    char line[200];
    snprintf(line, sizeof line, "%s", licence ? licence : "");
    for (char *c = line; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    if (licence)
        cli_print(run, "  licence     %s\n", line);
}

static fr_status run_info(cli_run *run, fr_error *error)
{
    fr_corpus *corpus;
    FR_TRY(fr_corpus_open(&corpus, run->arguments[0], cli_flag(run, "verify"), error));
    cli_print(run, "%s\n", run->arguments[0]);
    print_split(run, "training", fr_corpus_documents(corpus, FR_TRAIN), fr_corpus_bytes(corpus, FR_TRAIN),
                fr_corpus_tokens(corpus, FR_TRAIN));
    print_split(run, "validation", fr_corpus_documents(corpus, FR_VALID), fr_corpus_bytes(corpus, FR_VALID),
                fr_corpus_tokens(corpus, FR_VALID));
    int32_t vocab = fr_tokenizer_vocab(fr_corpus_tokenizer(corpus));
    cli_print(run, "  tokenizer   %d entries\n  hash        %s\n", vocab, fr_corpus_hash(corpus));
    double floor = fr_corpus_floor_bpb(corpus);
    if (floor == floor)
        cli_print(run, "  floor       %.4f bits per byte (built-in world)\n", floor);
    json_t *manifest;
    fr_status status = cli_read_json(run->arguments[0], "corpus.json", &manifest, error);
    if (status == FR_OK) {
        print_licence(run, json_string_value(json_object_get(manifest, "licence")));
        cli_put(run, "corpus", manifest);
        cli_put(run, "vocab", json_integer(vocab));
        cli_put(run, "hash", json_string(fr_corpus_hash(corpus)));
    }
    fr_corpus_free(corpus);
    return status;
}

const cli_command cmd_data_info = {
    .name = "data info",
    .arguments = "FOLDER",
    .least = 1,
    .most = 1,
    .summary = "what a data folder holds",
    .options = info_options,
    .option_count = COUNT(info_options),
    .examples = "  frontier data info data/mine --verify",
    .run = run_info,
    .schema = "data-info",
};

/* ---- text ------------------------------------------------------------------------------------------ */

static const cli_option text_options[] = {
    {"split", CLI_CHOICE, "train|valid", "valid", "which side of the split", false, false},
};

static fr_status write_document(const fr_corpus *corpus, fr_corpus_split split, int64_t index, int32_t *ids,
                                fr_buffer *text, fr_error *error)
{
    int64_t count = fr_corpus_document(corpus, split, index, ids,
                                       fr_corpus_document_tokens(corpus, split, index));
    if (count < 0)
        return fr_error_set(error, FR_BAD_DATA, fr_corpus_folder(corpus), "frontier data info FOLDER --verify names the shard",
                            "document %lld cannot be read: its shard is damaged", (long long)index);
    fr_buffer_clear(text);
    FR_TRY(fr_tokenizer_decode(fr_corpus_tokenizer(corpus), ids, count, false, text, error));
    fwrite(text->data, 1, text->length, stdout);
    return FR_OK;
}

/* A failed write shows in ferror(stdout), which main reports. The longest document decides how much room the ids need, so that nothing is allocated per document. */
static fr_status write_documents(cli_run *run, const fr_corpus *corpus, fr_corpus_split split, fr_error *error)
{
    int64_t documents = fr_corpus_documents(corpus, split), longest = 1;
    for (int64_t i = 0; i < documents; i++) {
        int64_t tokens = fr_corpus_document_tokens(corpus, split, i);
        longest = tokens > longest ? tokens : longest;
    }
    int32_t *ids = fr_arena_alloc(&run->arena, sizeof *ids * (size_t)longest);
    if (!ids)
        return fr_error_memory(error, sizeof *ids * (size_t)longest, "a document");
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_status status = FR_OK;
    for (int64_t i = 0; i < documents && status == FR_OK && !ferror(stdout); i++)
        status = write_document(corpus, split, i, ids, &text, error);
    fr_buffer_release(&text);
    return status;
}

static fr_status run_text(cli_run *run, fr_error *error)
{
    fr_corpus *corpus;
    FR_TRY(fr_corpus_open(&corpus, run->arguments[0], false, error));
    bool valid = strcmp(cli_text(run, "split"), "valid") == 0;
    fr_status status = write_documents(run, corpus, valid ? FR_VALID : FR_TRAIN, error);
    fr_corpus_free(corpus);
    return status;
}

const cli_command cmd_data_text = {
    .name = "data text",
    .arguments = "FOLDER",
    .least = 1,
    .most = 1,
    .summary = "the text of a data folder, byte for byte, one document after the other",
    .options = text_options,
    .option_count = COUNT(text_options),
    .details = "Nothing stands between documents: these are exactly the bytes that bits per byte divides by, "
               "for xz and\nother models to be measured on.",
    .examples = "  frontier data text data/mine --split valid | xz -9 | wc -c",
    .run = run_text,
};

/* ---- world ----------------------------------------------------------------------------------------- */

static const cli_option world_options[] = {
    {"out", CLI_PATH, "FOLDER", NULL, "the data folder to make", false, false},
    {"seed", CLI_INT, "N", "1", "the world: its people, places and facts", false, false},
    {"docs-seed", CLI_INT, "N", "1", "the documents written about it", false, false},
    {"bytes", CLI_SIZE, "SIZE", "20MB", "training text, about", false, false},
    {"vocab", CLI_COUNT, "N", "2048", "tokenizer entries, specials included", false, false},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
    {"explain", CLI_PATH, "FILE", NULL, "recover the choices of one document of this world instead", false,
     false},
    {"force", CLI_FLAG, NULL, NULL, "replace an existing data folder", false, false},
};

static fr_status explain(cli_run *run, const char *path, fr_error *error)
{
    char *text;
    size_t bytes;
    double bits;
    fr_buffer out;
    FR_TRY(fr_file_read(&run->arena, path, &text, &bytes, error));
    fr_buffer_init(&out, 64 << 20);
    fr_status status = fr_world_explain((uint64_t)cli_int(run, "seed", 1), text, bytes, &out, &bits, error);
    if (status == FR_OK) {
        cli_print(run, "%s", out.data ? out.data : "");
        cli_print(run, "%.3f bits in %zu bytes: %.4f bits per byte\n", bits, bytes,
                  bytes ? bits / (double)bytes : 0);
        cli_put(run, "bits", json_real(bits));
        cli_put(run, "bytes", json_integer((json_int_t)bytes));
        cli_put(run, "account", json_string(out.data ? out.data : ""));
    }
    fr_buffer_release(&out);
    return status == FR_OK ? status : fr_error_within(error, status, path);
}

static fr_status run_world(cli_run *run, fr_error *error)
{
    fr_world_summary summary;
    fr_pool *pool;
    if (cli_text(run, "explain"))
        return explain(run, cli_text(run, "explain"), error);
    if (!cli_text(run, "out"))
        return fr_error_set(error, FR_BAD_USAGE, NULL, "frontier data world --out data/world",
                            "'frontier data world' needs --out FOLDER");
    FR_TRY(fr_pool_create(&pool, (int)cli_int(run, "threads", 0), error));
    fr_world_options options = {
        .out_folder = cli_text(run, "out"),
        .seed = (uint64_t)cli_int(run, "seed", 1),
        .docs_seed = (uint64_t)cli_int(run, "docs-seed", 1),
        .bytes = cli_bytes(run, "bytes", 0),
        .vocab = (int32_t)cli_int(run, "vocab", 2048),
        .overwrite = cli_flag(run, "force"),
        .pool = pool,
        .progress = &run->progress,
    };
    fr_status status = fr_world_generate(&options, &summary, error);
    fr_pool_free(pool);
    FR_TRY(status);
    char bytes[32], documents[32];
    cli_print(run, "%s: %s documents, %s, %lld word types, %lld patterns\n", options.out_folder,
              fr_format_count(documents, sizeof documents, summary.documents),
              fr_format_bytes(bytes, sizeof bytes, (double)summary.bytes), (long long)summary.word_types,
              (long long)summary.patterns);
    cli_print(run, "floor: %.4f bits per byte; no model can do better on its validation text\n",
              summary.floor_bpb);
    cli_put(run, "floor_bpb", json_real(summary.floor_bpb));
    cli_put(run, "documents", json_integer(summary.documents));
    cli_put(run, "bytes", json_integer(summary.bytes));
    cli_put(run, "tokens", json_integer(summary.tokens));
    cli_put(run, "word_types", json_integer(summary.word_types));
    cli_put(run, "patterns", json_integer(summary.patterns));
    return FR_OK;
}

const cli_command cmd_data_world = {
    .name = "data world",
    .arguments = NULL,
    .least = 0,
    .most = 0,
    .summary = "generate the built-in corpus, whose best possible score is known",
    .options = world_options,
    .option_count = COUNT(world_options),
    .details = "Short English documents about one made-up world. World seed and document seed are separate: "
               "another\n"
               "--docs-seed gives new documents about the same world. Byte-identical on every machine.",
    .examples = "  frontier data world --out data/world --bytes 20MB\n  frontier data world --explain "
                "letter.txt --seed 1",
    .run = run_world,
    .schema = "data-world",
};
