/* tests/unit/text_fixture.h: scratch folders, input files and small corpora for the tests of text. */
#ifndef TEST_TEXT_FIXTURE_H
#define TEST_TEXT_FIXTURE_H
#include "frontier/text.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* A fresh folder per program under TMPDIR, removed at exit. */
static char fixture_root[512];

static void fixture_remove(void)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", fixture_root);
    if (fixture_root[0] && system(command) != 0)
        printf("# could not remove %s\n", fixture_root);
}

/* Path of a name; the same name gives the same string for the whole program. */
static inline const char *fixture_path(const char *name)
{
    static char *paths[256];
    static int count;
    char path[700];
    if (!fixture_root[0]) {
        snprintf(fixture_root, sizeof fixture_root, "%s/frontier-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        if (!mkdtemp(fixture_root))
            abort();
        atexit(fixture_remove);
    }
    snprintf(path, sizeof path, "%s/%s", fixture_root, name);
    for (int i = 0; i < count; i++)
        if (strcmp(paths[i], path) == 0)
            return paths[i];
    if (count == 256)
        abort();
    return paths[count++] = strdup(path);
}

static inline const char *fixture_write(const char *name, const void *bytes, size_t count)
{
    const char *path = fixture_path(name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
        abort();
    return path;
}

static inline const char *fixture_text(const char *name, const char *text)
{
    return fixture_write(name, text, strlen(text));
}

static inline const char *fixture_folder(const char *name)
{
    const char *path = fixture_path(name);
    mkdir(path, 0777);
    return path;
}

/* A gzip member of the text, appended at out; returns its size. */
static inline size_t fixture_gzip(const void *text, size_t count, unsigned char *out, size_t capacity)
{
    z_stream stream = {0};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = (unsigned char *)(size_t)text;
    stream.avail_in = (unsigned)count;
    stream.next_out = out;
    stream.avail_out = (unsigned)capacity;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    deflateEnd(&stream);
    return stream.total_out;
}

static inline size_t fixture_zstd(const void *text, size_t count, void *out, size_t capacity)
{
    size_t size = ZSTD_compress(out, capacity, text, count, 3);
    if (ZSTD_isError(size))
        abort();
    return size;
}

/* A tokenizer with the smallest vocabulary a trainer accepts plus `merges`. */
static inline fr_tokenizer *fixture_tokenizer(int merges)
{
    static const char text[] = "the cat and the hat and the bat sat on the mat with the rat";
    fr_tokenizer_trainer *trainer = NULL;
    fr_tokenizer *tokenizer = NULL;
    fr_tokenizer_options options = {.vocab = 256 + 9 + merges};
    fr_error error = {0};
    if (fr_tokenizer_trainer_create(&trainer, &options, &error) != FR_OK ||
        fr_tokenizer_trainer_feed(trainer, text, strlen(text), &error) != FR_OK ||
        fr_tokenizer_trainer_finish(trainer, &tokenizer, &error) != FR_OK) {
        printf("# tokenizer: %s\n", error.what);
        abort();
    }
    fr_tokenizer_trainer_free(trainer);
    return tokenizer;
}

static inline bool fixture_exists(const char *folder, const char *name)
{
    char path[1300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

#endif
