/* Parquet: what comes out is what other formats of the same text give; columns, nulls, encodings, cut and damaged files, and a
 * reader that can open nothing but its file. Files come from ../shared and from the library itself. */
#include "test.h"
#include "parquet_fixture.h"
#include "text/import_parquet.h"

#include <sys/resource.h>
#include <sys/wait.h>

static fr_import_summary summary;
static fr_error error;
static duckdb_library library;

#define NEED_LIBRARY                                                                                   \
    if (!fixture_duckdb(&library))                                                                     \
    SKIP("parquet needs DuckDB's C library: FRONTIER_DUCKDB or the loader's path")

static fr_status import(const char *name, fr_import_options options, const char *const *paths, int count)
{
    memset(&error, 0, sizeof error);
    options.out_folder = fixture_path(name);
    options.paths = paths;
    options.path_count = count;
    options.vocab = options.vocab ? options.vocab : 300;
    options.overwrite = true;
    return fr_import(&options, &summary, &error);
}

static fr_status import_one(const char *path, const char *column)
{
    return import("out", (fr_import_options){.column = column}, &path, 1);
}

static const char *shared(const char *name)
{
    static char path[600];
    const char *folder = getenv("FRONTIER_SHARED");
    snprintf(path, sizeof path, "%s/data/parquet/%s", folder && *folder ? folder : "../shared", name);
    return access(path, R_OK) == 0 ? path : NULL;
}

static bool noted(fr_import_kind kind, const char *where)
{
    for (int i = 0; i < summary.note_count; i++)
        if (summary.notes[i].kind == kind && strstr(summary.notes[i].where, where))
            return true;
    return false;
}

static fr_status read_through(const char *path)
{
    import_parquet file;
    bool found = true;
    const char *text;
    size_t bytes;
    memset(&error, 0, sizeof error);
    fr_status status = import_parquet_open(&file, &library, path, NULL, &error);
    while (status == FR_OK && found)
        status = import_parquet_next(&file, &found, &text, &bytes, &error);
    import_parquet_close(&file);
    return status;
}

/* ---- what comes out ---- */

TEST(every_layout_gives_what_the_json_gives)
{
    static const char *const layouts[] = {"gzip-rg32", "snappy-dict-stats-rg64", "uncompressed-rg10", "zstd-rg16", "zstd-v2pages-rg32"};
    NEED_LIBRARY;
    if (!shared("small/expected.jsonl"))
        SKIP("small parquet files need ../shared");
    char want[65], got[65];
    CHECK_OK(import_one(shared("small/expected.jsonl"), NULL));
    CHECK_INT(summary.documents, 62);
    CHECK_OK(fr_sha256_file(fixture_path("out/train-00000.tok"), want, &error));
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char name[100];
        snprintf(name, sizeof name, "small/%s.parquet", layouts[i]);
        CHECK_OK(import_one(shared(name), NULL));
        CHECK_OK(fr_sha256_file(fixture_path("out/train-00000.tok"), got, &error));
        CHECK_STR(got, want);
        CHECK(noted(FR_IMPORT_EMPTY, ".parquet:1") && noted(FR_IMPORT_CRLF, ".parquet:7"));
    }
}

TEST(shards_of_the_real_layout_with_the_last_as_validation)
{
    NEED_LIBRARY;
    if (!shared("climbmix-like/shard_00000.parquet"))
        SKIP("climbmix-like shards need ../shared");
    char paths[3][600];
    for (int i = 0; i < 3; i++) {
        char name[100];
        snprintf(name, sizeof name, "climbmix-like/shard_%05d.parquet", i);
        snprintf(paths[i], sizeof paths[i], "%s", shared(name));
    }
    const char *train[2] = {paths[0], paths[1]}, *valid = paths[2];
    CHECK_OK(import("climbmix", (fr_import_options){.valid_paths = &valid, .valid_path_count = 1}, train, 2));
    CHECK_INT(summary.train_documents, 4600);
    CHECK_INT(summary.valid_documents, 1100);
    CHECK_INT(summary.dropped, 0);
}

/* Lengths around what a DuckDB string keeps inside itself, chunks of 2,048 rows, row groups of other sizes, each codec. */
TEST(files_of_the_library_itself_come_back_row_by_row)
{
    static const char *const options[] = {NULL, "COMPRESSION uncompressed, ROW_GROUP_SIZE 2048", "COMPRESSION zstd",
                                          "COMPRESSION gzip, PARQUET_VERSION v2", "COMPRESSION lz4_raw, ROW_GROUP_SIZE 3000", "COMPRESSION brotli",
                                          "COMPRESSION snappy, PARQUET_VERSION v2"};
    NEED_LIBRARY;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *path = fixture_parquet(&library, "rows.parquet",
                                           "SELECT repeat('a', (r % 14)::INT) || r::VARCHAR AS text FROM range(7000) t(r)", options[i]);
        import_parquet file;
        int64_t row = 0;
        bool found = true;
        CHECK_OK(import_parquet_open(&file, &library, path, NULL, &error));
        CHECK_INT(file.rows, 7000);
        while (found) {
            const char *text;
            size_t bytes;
            char want[64];
            CHECK_OK(import_parquet_next(&file, &found, &text, &bytes, &error));
            if (!found)
                break;
            int length = snprintf(want, sizeof want, "%.*s%lld", (int)(row % 14), "aaaaaaaaaaaaaaaa", (long long)row);
            CHECK(bytes == (size_t)length && memcmp(text, want, bytes) == 0);
            row++;
        }
        CHECK_INT(row, 7000);
        import_parquet_close(&file);
    }
}

TEST(nulls_empty_rows_and_copies_are_counted_and_named)
{
    NEED_LIBRARY;
    const char *path = fixture_parquet(&library, "odd.parquet",
                                       "SELECT * FROM (VALUES (NULL), ('one text'), (''), ('two text'), (' \n '), ('ONE  text'), "
                                       "('nul ' || chr(0)), (E'a\\r\\nb')) t(text)", NULL);
    CHECK_OK(import_one(path, NULL));
    CHECK_INT(summary.counts[FR_IMPORT_NULL_TEXT], 1);
    CHECK(noted(FR_IMPORT_NULL_TEXT, "odd.parquet:1"));
    CHECK_INT(summary.counts[FR_IMPORT_EMPTY], 2);
    CHECK(noted(FR_IMPORT_EMPTY, "odd.parquet:3") && noted(FR_IMPORT_EMPTY, "odd.parquet:5"));
    CHECK_INT(summary.counts[FR_IMPORT_DUPLICATE_TRAIN] + summary.counts[FR_IMPORT_DUPLICATE_VALID], 1);
    CHECK(noted(FR_IMPORT_CRLF, "odd.parquet:8"));
    CHECK_INT(summary.documents, 4);
    CHECK_INT(summary.dropped, 4);
}

TEST(rows_of_nothing_are_reported_and_no_rows_too)
{
    NEED_LIBRARY;
    const char *paths[3] = {fixture_parquet(&library, "none.parquet", "SELECT 'x' AS text WHERE false", NULL),
                            fixture_parquet(&library, "nulls.parquet", "SELECT NULL::VARCHAR AS text FROM range(5000)", NULL),
                            fixture_text("some.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n")};
    CHECK_OK(import("nothing", (fr_import_options){0}, paths, 3));
    CHECK(noted(FR_IMPORT_EMPTY, "none.parquet:1"));
    CHECK_INT(summary.counts[FR_IMPORT_EMPTY], 1);
    CHECK_INT(summary.counts[FR_IMPORT_NULL_TEXT], 5000);
    CHECK_INT(summary.documents, 2);
}

TEST(a_folder_may_mix_all_kinds)
{
    NEED_LIBRARY;
    const char *folder = fixture_folder("mixed");
    fixture_text("mixed/a.txt", "text one\n\ntext two\n");
    fixture_text("mixed/b.jsonl", "{\"text\":\"json one\"}\n");
    fixture_parquet(&library, "mixed/c.parquet", "SELECT 'row ' || r::VARCHAR AS text FROM range(10) t(r)", NULL);
    fixture_text("mixed/d.parquet.gz", "not a known kind");
    CHECK_OK(import("mixed-out", (fr_import_options){.split = FR_SPLIT_BLANK_LINES}, &folder, 1));
    CHECK_INT(summary.documents, 13);
    CHECK(noted(FR_IMPORT_UNKNOWN_FILE, "d.parquet.gz"));
}

/* Rows do not care how .txt files are split. */
TEST(split_is_for_text_files_only)
{
    NEED_LIBRARY;
    const char *path = fixture_parquet(&library, "split.parquet", "SELECT E'one\n\ntwo ' || r::VARCHAR AS text FROM range(4) t(r)", NULL);
    CHECK_OK(import("split-out", (fr_import_options){.split = FR_SPLIT_LINES}, &path, 1));
    CHECK_INT(summary.documents, 4);
}

/* The peak of a process that reads so many rows of 2 kB, made by another process: memory of ours would count as its own.
 * Slower but whole imports: tests/slow/test_parquet_slow.c. */
static long peak_kb(int64_t rows)
{
    char select[200];
    struct rusage usage = {0};
    const char *path = fixture_path("peak.parquet");
    snprintf(select, sizeof select, "SELECT repeat(md5(r::VARCHAR), 64) AS text FROM range(%lld) t(r)", (long long)rows);
    for (int turn = 0; turn < 2; turn++) {
        pid_t child = fork();
        if (child == 0 && turn == 0)
            fixture_parquet(&library, "peak.parquet", select, "COMPRESSION zstd, ROW_GROUP_SIZE 2048");
        if (child == 0)
            _exit(turn == 0 || read_through(path) == FR_OK ? 0 : 1);
        int status;
        wait4(child, &status, 0, &usage);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return usage.ru_maxrss;
}

TEST(memory_follows_the_chunk_and_not_the_file)
{
    NEED_LIBRARY;
    long little = peak_kb(3000), much = peak_kb(30000); /* 6 and 60 MB */
    printf("# peak %ld kB for 6 MB of text, %ld kB for 60 MB\n", little, much);
    if (much > little + 20000)
        test_fail_format(__FILE__, __LINE__, "%ld kB for 6 MB, %ld kB for 60 MB", little, much);
}

/* ---- columns ---- */

TEST(the_column_is_text_or_the_only_one_or_the_one_named)
{
    NEED_LIBRARY;
    const char *rows = "FROM range(6) t(r)";
    char select[400];
    snprintf(select, sizeof select, "SELECT r AS id, 'body ' || r::VARCHAR AS body %s", rows);
    CHECK_OK(import_one(fixture_parquet(&library, "only.parquet", select, NULL), NULL));
    CHECK_INT(summary.documents, 6);
    snprintf(select, sizeof select, "SELECT 'same' AS url, 'text ' || r::VARCHAR AS text, [1, 2] AS list, {'a': 'b'} AS nested %s", rows);
    CHECK_OK(import_one(fixture_parquet(&library, "text.parquet", select, NULL), NULL));
    CHECK_INT(summary.documents, 6);
    CHECK_INT(import_one(fixture_path("text.parquet"), "url"), FR_BAD_DATA); /* one document after copies */
    CHECK_INT(import_one(fixture_path("text.parquet"), "list"), FR_BAD_DATA);
    CHECK_STR(error.what, "column 'list' is not text");
    CHECK_STR(error.hint, "columns: url VARCHAR, text VARCHAR, list INTEGER[], nested STRUCT(a VARCHAR)");
    CHECK_INT(import_one(fixture_path("text.parquet"), "txt"), FR_BAD_DATA);
    CHECK_STR(error.what, "no column 'txt'");
    snprintf(select, sizeof select, "SELECT 'a' AS a, 'b' AS b %s", rows);
    CHECK_INT(import_one(fixture_parquet(&library, "two.parquet", select, NULL), NULL), FR_BAD_DATA);
    CHECK_STR(error.what, "no column 'text', and 2 others hold text: choose one with --column");
    snprintf(select, sizeof select, "SELECT r AS text, 'a' AS other %s", rows);
    CHECK_INT(import_one(fixture_parquet(&library, "number.parquet", select, NULL), NULL), FR_BAD_DATA);
    CHECK_STR(error.what, "column 'text' is not text");
    snprintf(select, sizeof select, "SELECT 'row ' || r::VARCHAR AS \"a\"\"b'; --\xC3\xA9\", 'x' AS text %s", rows);
    CHECK_OK(import_one(fixture_parquet(&library, "quoted.parquet", select, NULL), "a\"b'; --\xC3\xA9"));
    CHECK_INT(summary.documents, 6);
    CHECK_INT(import_one(fixture_path("quoted.parquet"), ""), FR_BAD_USAGE);
}

/* Each file of the Apache test collection: how many rows, or which words say why not. */
TEST(the_collection_of_other_writers)
{
    static const struct {
        const char *file, *column;
        int64_t rows;
        const char *what;
    } cases[] = {
        {"alltypes_dictionary", NULL, 0, "no column of text"},
        {"alltypes_plain", "string_col", 0, "column 'string_col' is not text"},
        {"alltypes_plain.snappy", "id", 0, "column 'id' is not text"},
        {"binary", NULL, 0, "no column of text"},
        {"byte_stream_split.zstd", NULL, 0, "no column of text"},
        {"concatenated_gzip_members", NULL, 0, "no column of text"},
        {"datapage_v1-corrupt-checksum", NULL, 0, "no column of text"},
        {"datapage_v1-snappy-compressed-checksum", NULL, 0, "no column of text"},
        {"datapage_v2.snappy", "a", 5, NULL},
        {"datapage_v2_empty_datapage.snappy", NULL, 0, "no column of text"},
        {"delta_binary_packed", NULL, 0, "no column of text"},
        {"delta_byte_array", "c_email_address", 1000, NULL},
        {"delta_encoding_optional_column", "c_last_name", 100, NULL},
        {"delta_encoding_required_column", "c_last_name:", 100, NULL}, /* the colon is in the file */
        {"delta_length_byte_array", NULL, 1000, NULL},
        {"large_string_map.brotli", NULL, 0, "no column of text"},
        {"list_columns", "utf8_list", 0, "column 'utf8_list' is not text"},
        {"lz4_raw_compressed", "c1", 0, "column 'c1' is not text"},
        {"nested_lists.snappy", NULL, 0, "no column of text"},
        {"nonnullable.impala", NULL, 0, "no column of text"},
        {"nullable.impala", NULL, 0, "no column of text"},
        {"nulls.snappy", NULL, 0, "no column of text"},
        {"page_v2_empty_compressed", NULL, 0, "no column of text"},
        {"plain-dict-uncompressed-checksum", NULL, 0, "no column of text"},
        {"rle-dict-snappy-checksum", NULL, 0, "no column of text"},
        {"rle_boolean_encoding", NULL, 0, "no column of text"},
        {"single_nan", NULL, 0, "no column of text"},
    };
    NEED_LIBRARY;
    if (!shared("parquet-testing/binary.parquet"))
        SKIP("the collection of parquet files needs ../shared");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[100];
        import_parquet file;
        snprintf(name, sizeof name, "parquet-testing/%s.parquet", cases[i].file);
        memset(&error, 0, sizeof error);
        fr_status status = import_parquet_open(&file, &library, shared(name), cases[i].column, &error);
        CHECK_INT(status, cases[i].what ? FR_BAD_DATA : FR_OK);
        if (cases[i].what) {
            CHECK_STR(error.what, cases[i].what);
            CHECK(strstr(error.hint, "columns: ") != NULL);
            continue;
        }
        bool found = status == FR_OK;
        const char *text;
        size_t bytes;
        while (found && import_parquet_next(&file, &found, &text, &bytes, &error) == FR_OK)
            continue;
        CHECK(!found);
        CHECK_INT(file.row, cases[i].rows);
        import_parquet_close(&file);
    }
}

/* ---- damage ---- */

TEST(malformed_files_of_the_collection_are_refused)
{
    static const char *const names[] = {"ARROW-GH-43605", "ARROW-GH-45185", "ARROW-GH-47662", "ARROW-RS-GH-6229-DICTHEADER",
                                        "ARROW-RS-GH-6229-LEVELS", "PARQUET-1481"};
    NEED_LIBRARY;
    if (!shared("parquet-testing-bad/PARQUET-1481.parquet"))
        SKIP("malformed parquet files need ../shared");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[100];
        snprintf(name, sizeof name, "parquet-testing-bad/%s.parquet", names[i]);
        const char *path = shared(name);
        CHECK_INT(import("refused", (fr_import_options){0}, &path, 1), FR_BAD_DATA);
        CHECK(error.what[0] && strstr(error.where, names[i]));
        CHECK(!fixture_exists(fixture_path("refused"), "corpus.json"));
    }
}

static char *read_bytes(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    fseek(file, 0, SEEK_END);
    *count = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*count);
    if (fread(bytes, 1, *count, file) != *count)
        abort();
    fclose(file);
    return bytes;
}

TEST(a_file_cut_anywhere_is_an_error)
{
    NEED_LIBRARY;
    size_t count;
    char *bytes = read_bytes(fixture_parquet(&library, "whole.parquet", "SELECT 'text ' || r::VARCHAR AS text FROM range(3000) t(r)",
                                             "ROW_GROUP_SIZE 2048"), &count);
    for (size_t i = 0; i < 24; i++) {
        CHECK_INT(read_through(fixture_write("cut.parquet", bytes, count * i / 24)), FR_BAD_DATA);
        CHECK(strncmp(error.what, "parquet: ", 9) == 0);
        CHECK(strstr(error.where, "cut.parquet") != NULL);
        CHECK(strstr(error.what, "/proc/") == NULL);
    }
    free(bytes);
}

/* A page that lost its bytes while the footer is whole: an error, never fewer rows. */
TEST(a_hole_in_a_page_is_an_error)
{
    NEED_LIBRARY;
    size_t count;
    char *bytes = read_bytes(fixture_parquet(&library, "hole.parquet", "SELECT md5(r::VARCHAR) AS text FROM range(20000) t(r)",
                                             "COMPRESSION zstd, ROW_GROUP_SIZE 2048"), &count);
    memset(bytes + count / 2, 0x5A, 4000);
    CHECK_INT(read_through(fixture_write("hole.parquet", bytes, count)), FR_BAD_DATA);
    free(bytes);
}

TEST(damaged_bytes_never_crash)
{
    NEED_LIBRARY;
    size_t count;
    fr_rng rng = {.seed = 7};
    char *bytes = read_bytes(fixture_parquet(&library, "flip.parquet", "SELECT 'text ' || (r % 300)::VARCHAR AS text FROM range(2500) t(r)",
                                             "ROW_GROUP_SIZE 2048"), &count);
    for (int i = 0; i < 60; i++) {
        size_t at[3];
        for (int k = 0; k < 3; k++) { /* two in three go into the footer */
            at[k] = k == 0 ? fr_rng_below(&rng, count) : count - 1 - fr_rng_below(&rng, count < 300 ? count : 300);
            bytes[at[k]] ^= (char)(1 + k);
        }
        fr_status status = read_through(fixture_write("flipped.parquet", bytes, count));
        CHECK(status == FR_OK || status == FR_BAD_DATA || status == FR_BAD_ENVIRONMENT);
        for (int k = 0; k < 3; k++)
            bytes[at[k]] ^= (char)(1 + k);
    }
    free(bytes);
}

/* ---- the library ---- */

TEST(an_instance_can_open_its_file_and_nothing_else)
{
    NEED_LIBRARY;
    import_parquet file;
    duckdb_result result;
    char other[900];
    const char *path = fixture_parquet(&library, "own.parquet", "SELECT 'a' AS text", NULL);
    snprintf(other, sizeof other, "SELECT * FROM read_parquet('%s')", fixture_parquet(&library, "other.parquet", "SELECT 1 AS a", NULL));
    const char *const refused[] = {other, "SELECT * FROM read_text('/etc/passwd')", "COPY (SELECT 1) TO '/tmp/frontier-never.csv'",
                                   "ATTACH '/tmp/frontier-never.db'", "INSTALL httpfs", "LOAD httpfs", "SET memory_limit='8GB'",
                                   "SET enable_external_access=true"};
    CHECK_OK(import_parquet_open(&file, &library, path, NULL, &error));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (library.query(file.connection, refused[i], &result) == 0)
            test_fail(__FILE__, __LINE__, refused[i]);
        library.destroy_result(&result);
    }
    import_parquet_close(&file);
}

/* Names that DuckDB would read as patterns, partitions or addresses are just names. */
TEST(odd_file_names_are_just_names)
{
    NEED_LIBRARY;
    fixture_folder("year=2024");
    static const char *const names[] = {"a*b?[c].parquet", "year=2024/part.parquet", "it's \"here\".parquet", "s3:x.parquet"};
    size_t count;
    char *bytes = read_bytes(fixture_parquet(&library, "plain.parquet", "SELECT 'row ' || r::VARCHAR AS text FROM range(9) t(r)", NULL), &count);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_OK(import_one(fixture_write(names[i], bytes, count), NULL));
        CHECK_INT(summary.documents, 9);
    }
    free(bytes);
}

TEST(a_missing_or_wrong_library_says_what_to_get)
{
    const char *input = fixture_text("any.parquet", "PAR1"), *pipe = fixture_path("pipe");
    CHECK(mkfifo(pipe, 0600) == 0);
    const char *const paths[] = {"/nonexistent/libduckdb.so", pipe, fixture_root, "libm.so.6"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        CHECK_INT(import("none", (fr_import_options){.duckdb_path = paths[i]}, &input, 1), FR_BAD_ENVIRONMENT);
        CHECK(strstr(error.where, "any.parquet") && strstr(error.where, paths[i]));
        CHECK(strstr(error.hint, "data fetch duckdb") && strstr(error.hint, "FRONTIER_DUCKDB"));
    }
    CHECK(strstr(error.what, "not a DuckDB library") != NULL);
}

TEST_MAIN(parquet)
