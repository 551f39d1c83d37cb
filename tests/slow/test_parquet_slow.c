/* Parquet of the size people have: memory follows the batch and the shard in the making, not the corpus. Files are made by the
 * library itself; each import runs in a process of its own, whose peak the system reports.
 */
#include "../unit/test.h"
#include "../unit/parquet_fixture.h"

#include <sys/resource.h>
#include <sys/wait.h>

static fr_error error;
static duckdb_library library;

typedef struct outcome {
    fr_status status;
    int64_t documents, bytes;
    double seconds;
    fr_error error;
} outcome;

/* Documents of about 2 kB of words, no two alike. */
static const char *make(const char *name, int64_t documents)
{
    char select[400];
    const char *path = fixture_path(name);
    snprintf(select, sizeof select,
             "SELECT r || ' ' || repeat('the river and the house ' || (hash(r) %% 100000)::VARCHAR || ' under ', 60) AS text FROM range(%lld) t(r)",
             (long long)documents);
    pid_t child = fork(); /* memory of ours would count as the import's own */
    if (child == 0) {
        fixture_parquet(&library, name, select, "COMPRESSION zstd, ROW_GROUP_SIZE 8192");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return path;
}

/* Imports in a child; its peak in MB. */
static double import_apart(const char *path, const char *out, outcome *result)
{
    int ends[2];
    struct rusage usage;
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        fr_import_summary summary;
        fr_import_options options = {.out_folder = out, .paths = &path, .path_count = 1, .vocab = 2048, .overwrite = true};
        outcome mine = {0};
        mine.status = fr_import(&options, &summary, &mine.error);
        mine.documents = summary.documents;
        mine.bytes = summary.bytes;
        mine.seconds = summary.seconds;
        _exit(write(ends[1], &mine, sizeof mine) == sizeof mine ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], result, sizeof *result) != sizeof *result)
        result->status = FR_BUG;
    close(ends[0]);
    wait4(child, NULL, 0, &usage);
    return (double)usage.ru_maxrss / 1024;
}

TEST(ten_times_the_parquet_takes_no_more_memory)
{
    if (!fixture_duckdb(&library))
        SKIP("parquet needs DuckDB's C library: FRONTIER_DUCKDB or the loader's path");
    outcome small, large;
    const char *first = make("small.parquet", 50000), *second = make("large.parquet", 500000);
    double little = import_apart(first, fixture_path("small"), &small), much = import_apart(second, fixture_path("large"), &large);
    printf("# %.0f MB of text: peak %.0f MB, %.1f s; %.0f MB: peak %.0f MB, %.1f s\n", (double)small.bytes / 1e6, little, small.seconds,
           (double)large.bytes / 1e6, much, large.seconds);
    error = large.error;
    CHECK_OK(small.status);
    CHECK_OK(large.status);
    CHECK_INT(large.documents, 500000);
    CHECK(large.bytes > 1000000000);
    CHECK(much < little + 80); /* up to 40 bytes a document are kept, at the moment a table doubles */
    CHECK(much < 500);
}

TEST_MAIN(parquet_slow)
