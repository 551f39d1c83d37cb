/* import.c: from files to a data folder, in three passes over the text.
 *
 *   1. survey    every document's folded hash: drops copies, measures the text, fixes the validation share
 *   2. tokenizer the kept training documents train it (skipped when one is given)
 *   3. encode    kept documents become shards
 *
 * Reading three times instead of keeping text means that memory holds one batch, one shard per split and a
 * few bytes per document, whatever the corpus. Validation is chosen by the folded hash of a document, so the
 * choice depends on the document alone: adding files later moves nothing between the splits (as long as
 * the share stays), and a copy can never be on the other side. With validation files given, those are
 * read first, and training copies of them are dropped.
 *
 * All passes walk one list of files, validation files first. What pass 1 decides about record n is a byte
 * in `fates`; later passes look it up by the same number, and a running signature makes sure that the files
 * have not changed in between. The folder gets its corpus.json last: an import that fails leaves none.
 */
#include "text/corpus_writer.h"
#include "text/import_details.h"
#include "text/import_prepare.h"
#include "text/import_report.h"
#include "text/import_set.h"
#include "text/import_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum fate { FATE_KEPT, FATE_DUPLICATE, FATE_IN_BOTH, FATE_DROPPED } fate;

enum { DEFAULT_VOCAB = 8192, VALID_MOST_BYTES = 10000000 };
static const double DEFAULT_FRACTION = 0.05;

typedef struct import_run {
    const fr_import_options *options;
    fr_import_summary *summary;
    fr_arena arena;
    import_files files;      /* validation files, then training files */
    duckdb_library duckdb;   /* when one of them is a .parquet */
    int64_t valid_files;
    import_set seen;
    uint8_t *fates;          /* a fate per record */
    int64_t records, fates_capacity;
    uint64_t signature;      /* of all records' hashes in order, from pass 1 */
    uint64_t least, most;    /* split keys of kept documents */
    int64_t kept, kept_bytes;
    uint64_t threshold;      /* split keys up to here are validation */
    double fraction;
    fr_tokenizer *tokenizer;
    fr_tokenizer_trainer *trainer;
    fr_corpus_writer *writer;
} import_run;

/* Where one pass over the records is. */
typedef struct import_pass {
    import_run *run;
    const char *name;
    import_reader reader;
    import_batch batch;
    import_documents documents;
    int64_t records;
    uint64_t signature;
} import_pass;

/* What a pass does with one record. */
typedef fr_status (*import_visit)(import_run *run, int64_t record, const import_record *where, const import_document *document,
                                  fr_error *error);

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- a pass ---- */

static void pass_release(import_pass *pass)
{
    import_reader_release(&pass->reader);
    import_batch_release(&pass->batch);
    import_documents_release(&pass->documents);
}

static fr_status changed(const import_run *run, fr_error *error)
{
    return fr_error_set(error, FR_BAD_DATA, run->files.list[0].name, "run the import again when nothing writes to the files",
                        "the files changed while they were being imported");
}

static fr_status visit_batch(import_pass *pass, import_visit visit, fr_error *error)
{
    for (int64_t i = 0; i < pass->batch.count; i++) {
        const import_document *document = &pass->documents.list[i];
        pass->signature = fr_hash64(&document->hash, sizeof document->hash, pass->signature);
        FR_TRY(visit(pass->run, pass->records, &pass->batch.records[i], document, error));
        pass->records++;
    }
    return FR_OK;
}

static fr_status run_batches(import_pass *pass, import_visit visit, bool encode, fr_error *error)
{
    import_run *run = pass->run;
    const char *field = run->options->text_field ? run->options->text_field : "text";
    for (;;) {
        FR_TRY(import_reader_next(&pass->reader, &pass->batch, error));
        if (pass->batch.count == 0 && pass->reader.file == run->files.count)
            return FR_OK;
        if (run->signature != 0 && pass->records + pass->batch.count > run->records)
            return changed(run, error);
        FR_TRY(import_prepare(&pass->documents, &pass->batch, &run->files, field, run->tokenizer,
                              encode ? run->fates + pass->records : NULL, run->options->pool, error));
        FR_TRY(visit_batch(pass, visit, error));
        fr_progress_update(run->options->progress, pass->name, (double)import_reader_done(&pass->reader),
                           (double)run->files.bytes, NULL);
        if (fr_progress_stop(run->options->progress))
            return fr_error_set(error, FR_STOPPED, run->options->out_folder, "run the import again", "the import was stopped");
    }
}

static fr_status run_pass(import_run *run, const char *name, import_visit visit, bool encode, fr_import_summary *report, fr_error *error)
{
    import_pass pass = {.run = run, .name = name, .signature = 1};
    import_reader_init(&pass.reader, &run->files, run->options, &run->duckdb, report);
    fr_status status = run_batches(&pass, visit, encode, error);
    if (status == FR_OK && run->signature == 0) {
        run->signature = pass.signature;
        run->records = pass.records;
    } else if (status == FR_OK && (run->signature != pass.signature || run->records != pass.records)) {
        status = changed(run, error);
    }
    pass_release(&pass);
    return status;
}

static bool from_valid_file(const import_run *run, const import_record *where)
{
    return where->file < run->valid_files;
}

/* A second mixing, so that the choice of split shares no bits with the set's slots. */
static uint64_t split_key(uint64_t hash)
{
    return fr_hash64(&hash, sizeof hash, 0x73706c6974);
}

static fr_corpus_split split_of(const import_run *run, const import_record *where, const import_document *document)
{
    if (run->valid_files > 0)
        return from_valid_file(run, where) ? FR_VALID : FR_TRAIN;
    return split_key(document->hash) <= run->threshold ? FR_VALID : FR_TRAIN;
}

static void report_at(const import_run *run, fr_import_kind kind, const import_record *where)
{
    import_report(run->summary, kind, run->files.list[where->file].path, where->line);
}

/* ---- pass 1: survey ---- */

static fr_status remember(import_run *run, int64_t record, fate decided, fr_error *error)
{
    if (record == run->fates_capacity) {
        int64_t capacity = run->fates_capacity * 2 + 4096;
        uint8_t *fates = fr_reallocate(run->fates, (size_t)capacity);
        if (!fates)
            return fr_error_memory(error, (size_t)capacity, "a byte per document");
        run->fates = fates;
        run->fates_capacity = capacity;
    }
    run->fates[record] = (uint8_t)decided;
    return FR_OK;
}

static void note_properties(const import_run *run, const import_record *where, const import_document *document)
{
    const struct {
        bool present;
        fr_import_kind kind;
    } properties[] = {{document->duplicate_key, FR_IMPORT_DUPLICATE_KEY},
                      {document->invalid_utf8, FR_IMPORT_INVALID_UTF8},
                      {document->nul, FR_IMPORT_NUL},
                      {document->crlf, FR_IMPORT_CRLF}};
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (properties[i].present)
            report_at(run, properties[i].kind, where);
}

static void count_kept(import_run *run, const import_record *where, const import_document *document)
{
    uint64_t key = split_key(document->hash);
    run->least = run->kept == 0 || key < run->least ? key : run->least;
    run->most = run->kept == 0 || key > run->most ? key : run->most;
    run->kept++;
    run->kept_bytes += (int64_t)document->bytes;
    note_properties(run, where, document);
}

static fr_status survey(import_run *run, int64_t record, const import_record *where, const import_document *document, fr_error *error)
{
    if (document->problem != FR_IMPORT_KINDS) {
        report_at(run, document->problem, where);
        return remember(run, record, FATE_DROPPED, error);
    }
    bool valid = from_valid_file(run, where), mark = valid, seen;
    FR_TRY(import_set_add(&run->seen, document->hash, &mark, &seen, error));
    if (!seen)
        count_kept(run, where, document);
    return remember(run, record, !seen ? FATE_KEPT : mark && !valid ? FATE_IN_BOTH : FATE_DUPLICATE, error);
}

/* The share that is wanted, moved as little as needed so that neither split is empty. */
static fr_status choose_threshold(import_run *run, fr_error *error)
{
    if (run->kept == 0)
        return fr_error_set(error, FR_BAD_DATA, run->files.list[0].path, "name files with text; the counts say what was dropped",
                            "no text in %lld files", (long long)run->files.count);
    if (run->valid_files > 0)
        return FR_OK;
    if (run->least == run->most)
        return fr_error_set(error, FR_BAD_DATA, run->files.list[0].path,
                            "--split makes several documents of a text file; --valid names validation files",
                            "only one document: nothing can be held out for validation");
    double fraction = run->options->valid_fraction;
    if (fraction == 0)
        fraction = fmin(DEFAULT_FRACTION, (double)VALID_MOST_BYTES / (double)run->kept_bytes);
    run->fraction = fraction;
    uint64_t threshold = (uint64_t)(fraction * 0x1p64);
    run->threshold = threshold < run->least ? run->least : threshold >= run->most ? run->most - 1 : threshold;
    return FR_OK;
}

/* ---- pass 2: tokenizer ---- */

static fr_status feed(import_run *run, int64_t record, const import_record *where, const import_document *document, fr_error *error)
{
    if (run->fates[record] != FATE_KEPT || document->problem != FR_IMPORT_KINDS || split_of(run, where, document) != FR_TRAIN)
        return FR_OK;
    return fr_tokenizer_trainer_feed(run->trainer, document->text, document->bytes, error);
}

static fr_status train_tokenizer(import_run *run, fr_error *error)
{
    fr_tokenizer_options options = {.vocab = run->options->vocab ? run->options->vocab : DEFAULT_VOCAB,
                                    .pool = run->options->pool,
                                    .progress = run->options->progress};
    FR_TRY(fr_tokenizer_trainer_create(&run->trainer, &options, error));
    FR_TRY(run_pass(run, "reading for the tokenizer", feed, false, NULL, error));
    FR_TRY(fr_tokenizer_trainer_finish(run->trainer, &run->tokenizer, error));
    run->summary->vocab_asked = options.vocab;
    run->summary->vocab = fr_tokenizer_vocab(run->tokenizer);
    return FR_OK;
}

static fr_status get_tokenizer(import_run *run, fr_error *error)
{
    const fr_import_options *options = run->options;
    if (!options->tokenizer_path)
        return train_tokenizer(run, error);
    FR_TRY(fr_tokenizer_load(&run->tokenizer, options->tokenizer_path, error));
    int32_t vocab = fr_tokenizer_vocab(run->tokenizer);
    if (options->vocab != 0 && options->vocab != vocab)
        return fr_error_set(error, FR_BAD_USAGE, options->tokenizer_path, "leave the vocabulary out",
                            "this tokenizer has %d entries, %d were asked for", vocab, options->vocab);
    run->summary->vocab_asked = run->summary->vocab = vocab;
    return FR_OK;
}

/* ---- pass 3: encode ---- */

static void count_tokens(fr_import_summary *summary, fr_corpus_split split, const import_document *document)
{
    int64_t bytes = (int64_t)document->bytes, tokens = document->count + 1; /* with BOS */
    summary->documents++;
    summary->bytes += bytes;
    summary->tokens += tokens;
    *(split == FR_TRAIN ? &summary->train_documents : &summary->valid_documents) += 1;
    *(split == FR_TRAIN ? &summary->train_bytes : &summary->valid_bytes) += bytes;
    *(split == FR_TRAIN ? &summary->train_tokens : &summary->valid_tokens) += tokens;
}

static fr_status encode(import_run *run, int64_t record, const import_record *where, const import_document *document, fr_error *error)
{
    fate decided = (fate)run->fates[record];
    if (decided == FATE_DROPPED || document->problem != FR_IMPORT_KINDS)
        return FR_OK;
    fr_corpus_split split = split_of(run, where, document);
    if (decided != FATE_KEPT) {
        report_at(run, decided == FATE_IN_BOTH ? FR_IMPORT_IN_BOTH : split == FR_TRAIN ? FR_IMPORT_DUPLICATE_TRAIN : FR_IMPORT_DUPLICATE_VALID, where);
        return FR_OK;
    }
    count_tokens(run->summary, split, document);
    return corpus_writer_append(run->writer, split, document->text, document->bytes, document->ids, document->count, error);
}

static fr_status finish(import_run *run, fr_error *error)
{
    import_files valid = run->files, train = run->files;
    valid.count = run->valid_files;
    train.list += run->valid_files;
    train.count -= run->valid_files;
    import_reader reader;
    import_reader_init(&reader, &run->files, run->options, &run->duckdb, NULL);
    import_details details = {run->options, run->summary, &train, &valid, reader.split, (int64_t)reader.split_bytes, run->fraction};
    import_reader_release(&reader);
    char *json;
    FR_TRY(import_details_format(&details, &json, error));
    fr_status status = fr_corpus_writer_finish(run->writer, json, error);
    free(json);
    return status;
}

/* ---- the whole ---- */

static fr_status refuse(const char *where, const char *hint, const char *what, fr_error *error)
{
    return fr_error_set(error, FR_BAD_USAGE, where, hint, "%s", what);
}

static fr_status check_options(const fr_import_options *options, fr_error *error)
{
    char path[1200];
    if (!options->out_folder || strlen(options->out_folder) > 1000)
        return refuse("out", "name the data folder to make", "no folder to write to, or its name is too long", error);
    if (options->path_count < 1)
        return refuse("paths", "name files or folders", "nothing to import", error);
    if (!(options->valid_fraction >= 0 && options->valid_fraction < 1))
        return refuse("valid-fraction", NULL, "must be at least 0 (choose) and below 1", error);
    if (options->valid_fraction > 0 && options->valid_path_count > 0)
        return refuse("valid-fraction", "give one of the two", "validation files are given as well", error);
    if (options->split_bytes < 0 || options->split_bytes > 1 << 28 || (options->split == FR_SPLIT_BYTES && options->split_bytes < 1))
        return refuse("split", "name a size from 1 byte to 256 MiB", "the size of the pieces makes no sense", error);
    if ((unsigned)options->split > FR_SPLIT_AUTO)
        return refuse("split", NULL, "no such kind of split", error);
    if (options->licence && !import_is_utf8(options->licence, strlen(options->licence)))
        return refuse("licence", NULL, "not valid UTF-8", error);
    if (options->column && (!options->column[0] || strlen(options->column) > 255 || !import_is_utf8(options->column, strlen(options->column))))
        return refuse("column", NULL, "not a column's name: 1 to 255 bytes of UTF-8", error);
    if (options->text_field && !import_is_utf8(options->text_field, strlen(options->text_field)))
        return refuse("text-field", NULL, "not valid UTF-8", error);
    fr_path_join(path, sizeof path, options->out_folder, "corpus.json");
    if (!options->overwrite && fr_path_exists(path))
        return refuse(path, "choose another folder, or replace it with --force", "the folder already holds a corpus", error);
    return FR_OK;
}

static fr_status list_files(import_run *run, fr_error *error)
{
    const fr_import_options *options = run->options;
    for (int i = 0; i < options->valid_path_count; i++)
        FR_TRY(import_files_add(&run->files, &run->arena, options->valid_paths[i], run->summary, error));
    run->valid_files = run->files.count;
    if (options->valid_path_count > 0 && run->valid_files == 0)
        return fr_error_set(error, FR_BAD_DATA, options->valid_paths[0], import_files_known, "no validation files there");
    for (int i = 0; i < options->path_count; i++)
        FR_TRY(import_files_add(&run->files, &run->arena, options->paths[i], run->summary, error));
    if (run->files.count == run->valid_files)
        return fr_error_set(error, FR_BAD_DATA, options->paths[0], import_files_known, "no text files there");
    return FR_OK;
}

/* Before the first pass: nobody should read a folder of text to learn that a library is missing. */
static fr_status load_duckdb(import_run *run, fr_error *error)
{
    for (int64_t i = 0; i < run->files.count; i++)
        if (run->files.list[i].format == IMPORT_PARQUET) {
            fr_status status = duckdb_library_load(&run->duckdb, run->options->duckdb_path, error);
            return status == FR_OK ? status : fr_error_within(error, status, run->files.list[i].path);
        }
    return FR_OK;
}

static fr_status check_splits(const import_run *run, fr_error *error)
{
    const fr_import_summary *summary = run->summary;
    if (summary->train_documents > 0 && summary->valid_documents > 0)
        return FR_OK;
    return fr_error_set(error, FR_BAD_DATA, run->options->out_folder, "the counts say what was dropped and why",
                        "no documents are left for the %s split", summary->train_documents == 0 ? "train" : "valid");
}

static fr_status run_import(import_run *run, fr_error *error)
{
    FR_TRY(check_options(run->options, error));
    FR_TRY(list_files(run, error));
    FR_TRY(load_duckdb(run, error));
    FR_TRY(run_pass(run, "reading", survey, false, run->summary, error));
    import_set_release(&run->seen);
    FR_TRY(choose_threshold(run, error));
    FR_TRY(get_tokenizer(run, error));
    if (run->options->overwrite)
        FR_TRY(fr_corpus_remove(run->options->out_folder, error));
    FR_TRY(fr_corpus_writer_create(&run->writer, run->options->out_folder, run->tokenizer, error));
    FR_TRY(run_pass(run, "encoding", encode, true, NULL, error));
    FR_TRY(check_splits(run, error));
    return finish(run, error);
}

fr_status fr_import(const fr_import_options *options, fr_import_summary *summary, fr_error *error)
{
    double start = now();
    memset(summary, 0, sizeof *summary);
    import_run run = {.options = options, .summary = summary};
    fr_arena_init(&run.arena, 1 << 16);
    fr_status status = run_import(&run, error);
    fr_corpus_writer_free(run.writer);
    fr_tokenizer_trainer_free(run.trainer);
    fr_tokenizer_free(run.tokenizer);
    import_set_release(&run.seen);
    fr_deallocate(run.fates);
    fr_arena_release(&run.arena);
    summary->seconds = now() - start;
    return status;
}
