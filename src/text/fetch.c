/* fetch.c: getting the corpus that others train on, and the library that reads it.
 *
 * ClimbMix as nanochat uses it: 6,543 parquet files of about 90 MB, of which the last is validation by convention, so that
 * everybody holds out the same text. They land as train/shard_NNNNN.parquet and valid/shard_06542.parquet: two folders
 * that `data import` takes as they are. DuckDB's library comes as a zip archive of its release; only the library stays.
 *
 * What is fetched is said in fetch.json beside it (fetch_receipt.c), with the licence that its publisher states: the
 * texts are not ours and neither is their licence. A file that the receipt lists with its present size is not fetched again.
 */
#include "text/fetch_receipt.h"

#include "base/download.h"
#include "text/duckdb.h"
#include "text/unzip.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLIMBMIX_SHARDS = 6543, SHARD_GUESS = 93000000, MOST_SHARD = 1 << 30, MOST_ARCHIVE = 256 << 20, MOST_LIBRARY = 512 << 20 };
enum { DEFAULT_CONNECTIONS = 3, DEFAULT_RETRIES = 6, DEFAULT_STALL = 30 };
static const char climbmix_url[] = "https://huggingface.co/datasets/karpathy/climbmix-400b-shuffle/resolve/main/shard_{index}.parquet";

static const fr_fetch_origin origins[] = {
    [FR_FETCH_CLIMBMIX] = {"climbmix", "https://huggingface.co/datasets/karpathy/climbmix-400b-shuffle",
                           "https://huggingface.co/datasets/nvidia/Nemotron-ClimbMix",
                           "CC BY-NC 4.0 (NVIDIA ClimbMix: for research and development, not for commercial use)"},
    [FR_FETCH_DUCKDB] = {"duckdb", "https://github.com/duckdb/duckdb", NULL, "MIT"},
};

/* The newest release whose hashes we know: one archive for each kind of machine. */
#define RELEASE "https://github.com/duckdb/duckdb/releases/download/v1.5.6/"
#if defined __APPLE__
static const char release_url[] = RELEASE "libduckdb-osx-universal.zip", release_member[] = "libduckdb.dylib";
static const char release_sha256[] = "e0bc007d9b0094c0970ac1847a8601d10aad07cbd2910ce586ec810f77b638d6";
#elif defined __aarch64__
static const char release_url[] = RELEASE "libduckdb-linux-arm64.zip", release_member[] = "libduckdb.so";
static const char release_sha256[] = "b72ed9f05003f5e9d2015f7ceada6416b377d9dd33169cdde3c9e33897856eee";
#else
static const char release_url[] = RELEASE "libduckdb-linux-amd64.zip", release_member[] = "libduckdb.so";
static const char release_sha256[] = "b845005f5132a7d8180057c35e14a7626632258782f871a90861b19c1c03841b";
#endif

typedef struct fetch_run {
    const fr_fetch_options *options;
    fr_fetch_summary *summary;
    fr_arena arena;
    fetch_receipt receipt;
    download_file *files;
    const char **names; /* of the files, in the folder */
    int count;
} fetch_run;

const fr_fetch_origin *fr_fetch_origin_of(fr_fetch_kind kind)
{
    return &origins[kind];
}

int fr_fetch_most_shards(void)
{
    return CLIMBMIX_SHARDS - 1;
}

/* ---- common ---- */

/* An archive has no name: it goes again, and what is in it is listed instead. */
static fr_status note_finished(void *context, const download_file *file, fr_error *error)
{
    fetch_run *run = context;
    const char *name = run->names[file - run->files];
    run->summary->fetched++;
    run->summary->bytes += file->bytes;
    return name ? fetch_receipt_add(&run->receipt, name, file->url, file->bytes, file->got_sha256, error) : FR_OK;
}

static fr_status fetch_files(fetch_run *run, int64_t guess, fr_error *error)
{
    const fr_fetch_options *options = run->options;
    download_options how = {
        .connections = options->connections ? options->connections : DEFAULT_CONNECTIONS,
        .retries = options->retries >= 0 ? options->retries : DEFAULT_RETRIES,
        .stall = options->stall > 0 ? options->stall : DEFAULT_STALL,
        .backoff = options->backoff > 0 ? options->backoff : 1,
        .phase = "downloading",
        .guess = guess,
        .progress = options->progress,
        .finished = note_finished,
        .context = run,
    };
    return fr_download(run->files, run->count, &how, error);
}

static fr_status make_list(fetch_run *run, int most, fr_error *error)
{
    run->files = fr_arena_alloc(&run->arena, (size_t)most * sizeof *run->files);
    run->names = fr_arena_alloc(&run->arena, (size_t)most * sizeof *run->names);
    return run->files && run->names ? FR_OK : fr_error_memory(error, (size_t)most * sizeof *run->files, "the list of files");
}

static fr_status make_folder(fetch_run *run, const char *name, fr_error *error)
{
    char path[1200];
    return fr_folder_make(fr_path_join(path, sizeof path, run->options->out_folder, name), error);
}

/* ---- climbmix ---- */

/* The template with {index} replaced; exactly one is there. */
static char *shard_url(fr_arena *arena, const char *template, int index)
{
    const char *mark = strstr(template, "{index}");
    return fr_arena_printf(arena, "%.*s%05d%s", (int)(mark - template), template, index, mark + strlen("{index}"));
}

static fr_status check_template(const char *template, fr_error *error)
{
    const char *mark = strstr(template, "{index}");
    if (strlen(template) > 900 || !mark || strstr(mark + 1, "{index}"))
        return fr_error_set(error, FR_BAD_USAGE, "url", "as in https://host/path/shard_{index}.parquet",
                            "must have {index} once, where the shard's number goes, and at most 900 bytes");
    return FR_OK;
}

static fr_status add_shard(fetch_run *run, int index, fr_error *error)
{
    bool valid = index == CLIMBMIX_SHARDS - 1, kept;
    const char *template = run->options->url ? run->options->url : climbmix_url;
    char *name = fr_arena_printf(&run->arena, "%s/shard_%05d.parquet", valid ? "valid" : "train", index);
    char *path = name ? fr_arena_printf(&run->arena, "%s/%s", run->options->out_folder, name) : NULL;
    char *url = shard_url(&run->arena, template, index);
    if (!path || !url)
        return fr_error_memory(error, 2000, "the list of shards");
    FR_TRY(fetch_receipt_keeps(&run->receipt, name, path, run->options->verify, &kept, error));
    run->summary->kept += kept;
    if (kept)
        return FR_OK;
    run->names[run->count] = name;
    run->files[run->count++] = (download_file){.url = url, .path = path, .magic = "PAR1", .most_bytes = MOST_SHARD};
    return FR_OK;
}

/* The validation shard first: a fetch that is cut short can be used all the same. */
static fr_status fetch_climbmix(fetch_run *run, fr_error *error)
{
    int shards = run->options->shards;
    if (shards < 1 || shards >= CLIMBMIX_SHARDS)
        return fr_error_set(error, FR_BAD_USAGE, "shards", NULL, "%d is not in 1..%d", shards, CLIMBMIX_SHARDS - 1);
    if (run->options->url)
        FR_TRY(check_template(run->options->url, error));
    FR_TRY(make_list(run, shards + 1, error));
    FR_TRY(make_folder(run, "train", error));
    FR_TRY(make_folder(run, "valid", error));
    FR_TRY(add_shard(run, CLIMBMIX_SHARDS - 1, error));
    for (int i = 0; i < shards; i++)
        FR_TRY(add_shard(run, i, error));
    return fetch_files(run, SHARD_GUESS, error);
}

/* ---- duckdb ---- */

static const char *archive_url(const fr_fetch_options *options)
{
    return options->url ? options->url : release_url;
}

static fr_status name_version(fetch_run *run, fr_error *error)
{
    duckdb_library library;
    FR_TRY(duckdb_library_load(&library, run->summary->library, error));
    snprintf(run->summary->version, sizeof run->summary->version, "%s", library.library_version());
    return FR_OK;
}

/* Whatever the archive was, it goes. */
static fr_status unpack_library(fetch_run *run, const char *archive, fr_error *error)
{
    char hex[65];
    int64_t bytes;
    fr_status status = unzip_member(archive, release_member, run->summary->library, MOST_LIBRARY, error);
    unlink(archive);
    FR_TRY(status);
    FR_TRY(name_version(run, error));
    FR_TRY(fr_sha256_file(run->summary->library, hex, error));
    FR_TRY(fetch_receipt_measure(run->summary->library, &bytes, error));
    return fetch_receipt_add(&run->receipt, release_member, archive_url(run->options), bytes, hex, error);
}

static fr_status fetch_duckdb(fetch_run *run, fr_error *error)
{
    const fr_fetch_options *options = run->options;
    char archive[1200];
    bool kept;
    fr_path_join(run->summary->library, sizeof run->summary->library, options->out_folder, release_member);
    fr_path_join(archive, sizeof archive, options->out_folder, "libduckdb.zip");
    FR_TRY(fetch_receipt_keeps(&run->receipt, release_member, run->summary->library, true, &kept, error));
    run->summary->kept = kept;
    if (kept)
        return name_version(run, error);
    FR_TRY(make_list(run, 1, error));
    run->count = 1;
    run->files[0] = (download_file){.url = archive_url(options), .path = archive, .most_bytes = MOST_ARCHIVE};
    run->files[0].sha256 = options->sha256 ? options->sha256 : options->url ? NULL : release_sha256;
    FR_TRY(fetch_files(run, 0, error));
    return unpack_library(run, archive, error);
}

/* ---- the whole ---- */

fr_status fr_fetch_size(const fr_fetch_options *options, int64_t *bytes, fr_error *error)
{
    double stall = options->stall > 0 ? options->stall : DEFAULT_STALL;
    return fr_download_size(archive_url(options), stall, bytes, error);
}

const char *fr_fetch_address(const fr_fetch_options *options)
{
    if (options->kind == FR_FETCH_DUCKDB)
        return archive_url(options);
    return options->url ? options->url : climbmix_url;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

fr_status fr_fetch(const fr_fetch_options *options, fr_fetch_summary *summary, fr_error *error)
{
    double started = now();
    memset(summary, 0, sizeof *summary);
    fetch_run run = {.options = options, .summary = summary};
    if (strlen(options->out_folder) > 900)
        return fr_error_set(error, FR_BAD_USAGE, options->out_folder, "choose a shorter path", "the folder's name is too long");
    fr_arena_init(&run.arena, 1 << 16);
    fr_status status = fr_folder_make(options->out_folder, error);
    if (status == FR_OK)
        status = fetch_receipt_open(&run.receipt, options->out_folder, &origins[options->kind], error);
    if (status == FR_OK)
        status = options->kind == FR_FETCH_CLIMBMIX ? fetch_climbmix(&run, error) : fetch_duckdb(&run, error);
    fetch_receipt_close(&run.receipt);
    fr_arena_release(&run.arena);
    summary->seconds = now() - started;
    return status;
}
