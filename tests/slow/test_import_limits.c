/* Sizes at the edge of what an import takes: a 100 MB line is a document, a decompression bomb an error, and memory follows
 * the longest document, not the corpus.
 */
#include "../unit/test.h"
#include "../unit/text_fixture.h"

#include <sys/resource.h>

static fr_import_summary summary;
static fr_error error;

static fr_status import(const char *name, fr_split_kind split, const char *path)
{
    fr_import_options options = {.out_folder = fixture_path(name), .paths = &path, .path_count = 1, .vocab = 300, .split = split};
    memset(&error, 0, sizeof error);
    return fr_import(&options, &summary, &error);
}

/* Many small frames of the same line: gigabytes from kilobytes. */
static const char *many_frames(const char *name, const void *piece, size_t bytes, int count)
{
    static char frame[1 << 20];
    size_t size = fixture_zstd(piece, bytes, frame, sizeof frame);
    FILE *file = fopen(fixture_path(name), "wb");
    for (int i = 0; i < count; i++)
        fwrite(frame, 1, size, file);
    fclose(file);
    return fixture_path(name);
}

static int64_t peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

/* First, while the process is small: 400 MB of text in small documents. */
TEST(memory_does_not_grow_with_the_corpus)
{
    char *lines = malloc(1 << 20);
    for (int i = 0; i < 1 << 14; i++)
        memcpy(lines + i * 64, "{\"text\":\"the same line again and again, to be dropped as a copy\"}", 64);
    for (int i = 63; i < 1 << 20; i += 64)
        lines[i] = '\n', lines[i - 1] = '}', lines[i - 2] = '"';
    memcpy(lines, "{\"text\":\"two\"}\n{\"text\":\"one\"}                                  \n", 64);
    CHECK_OK(import("many", FR_SPLIT_FILE, many_frames("many.jsonl.zst", lines, 1 << 20, 400)));
    CHECK_INT(summary.documents, 3);
    CHECK(summary.dropped > 6000000);
    CHECK(peak_mb() < 200);
    free(lines);
}

TEST(a_line_of_100_megabytes_is_a_document)
{
    enum { BYTES = 100000000 };
    char *text = malloc(BYTES + 64);
    memset(text, 'a', BYTES);
    for (int i = 0; i < BYTES; i += 7)
        text[i] = ' ';
    memcpy(text, "{\"text\":\"", 9);
    size_t end = BYTES;
    end += (size_t)sprintf(text + end, "\"}\n{\"text\":\"small\"}\n");
    CHECK_OK(import("giant", FR_SPLIT_FILE, fixture_write("giant.jsonl", text, end)));
    CHECK_INT(summary.documents, 2);
    CHECK_INT(summary.bytes, BYTES - 9 + 5);
    CHECK_INT(summary.dropped, 0);
    free(text);
}

TEST(a_bomb_is_refused)
{
    enum { PIECE = 1 << 20 };
    char *piece = malloc(PIECE);
    memset(piece, 'a', PIECE);
    CHECK_INT(import("bomb", FR_SPLIT_LINES, many_frames("bomb.txt.zst", piece, PIECE, 600)), FR_BAD_DATA);
    CHECK_STR(error.what, "line 1: a document or line of more than 256 MiB");
    CHECK(strstr(error.where, "bomb.txt.zst") != NULL);
    CHECK(!fixture_exists(fixture_path("bomb"), "corpus.json"));
    CHECK(peak_mb() < 2200);
    free(piece);
}

TEST_MAIN(import_limits)
