/* tests/fuzz/replay.c: runs a fuzz target without a fuzzer.
 *
 *     fuzz_X [--seconds S] [--seed N] FILE...
 *
 * Every file is fed as it stands; then, for S seconds, random files are mutated (bytes changed, cut out, doubled,
 * numbers replaced by hostile ones, two files spliced) and fed. The sequence depends on the seed alone. Coverage does not
 * guide it as libFuzzer's does (`make fuzz`), but it needs nothing but a C compiler and finds shallow bugs in seconds. On
 * a crash the input lies in ./crash-<target>: it is written before every call while S > 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frontier/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REPLAY_MOST_FILES = 64, REPLAY_MOST_BYTES = 1 << 20 };

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static input files[REPLAY_MOST_FILES];
static int file_count;

static void load(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in || file_count == REPLAY_MOST_FILES) {
        fprintf(stderr, "cannot take %s\n", path);
        exit(2);
    }
    input *f = &files[file_count++];
    f->data = malloc(REPLAY_MOST_BYTES);
    f->size = f->data ? fread(f->data, 1, REPLAY_MOST_BYTES, in) : 0;
    fclose(in);
}

static void change_bytes(uint8_t *data, size_t size, fr_rng *rng)
{
    static const uint64_t hostile[] = {
        0, 1, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, UINT64_MAX};
    size_t at = fr_rng_below(rng, size);
    uint64_t value = fr_rng_below(rng, 2) ? hostile[fr_rng_below(rng, 10)] : fr_rng_next(rng);
    size_t width = (size_t)1 << fr_rng_below(rng, 4);
    for (size_t i = 0; i < width && at + i < size; i++)
        data[at + i] = (uint8_t)(value >> (8 * i));
}

/* Removes or doubles a piece; returns the new size. */
static size_t move_piece(uint8_t *data, size_t size, fr_rng *rng)
{
    size_t from = fr_rng_below(rng, size), length = 1 + fr_rng_below(rng, size - from);
    length = length > 4096 ? 1 + length % 4096 : length;
    if (fr_rng_below(rng, 2) && size + length <= REPLAY_MOST_BYTES) {
        memmove(data + from + length, data + from, size - from);
        return size + length;
    }
    memmove(data + from, data + from + length, size - from - length);
    return size - length;
}

static size_t splice(uint8_t *data, size_t size, fr_rng *rng)
{
    const input *other = &files[fr_rng_below(rng, (uint64_t)file_count)];
    size_t cut = fr_rng_below(rng, size + 1), from = other->size ? fr_rng_below(rng, other->size) : 0;
    size_t take = other->size - from;
    take = cut + take > REPLAY_MOST_BYTES ? REPLAY_MOST_BYTES - cut : take;
    memcpy(data + cut, other->data + from, take);
    return cut + take;
}

static size_t mutate(uint8_t *data, fr_rng *rng)
{
    const input *f = &files[fr_rng_below(rng, (uint64_t)file_count)];
    size_t size = f->size;
    memcpy(data, f->data, size);
    for (uint64_t n = 1 + fr_rng_below(rng, 6); n > 0 && size > 0; n--) {
        uint64_t kind = fr_rng_below(rng, 8);
        if (kind < 5)
            change_bytes(data, size, rng);
        else
            size = kind < 7 ? move_piece(data, size, rng) : splice(data, size, rng);
    }
    return size;
}

static void keep(const char *path, const uint8_t *data, size_t size)
{
    FILE *out = fopen(path, "wb");
    if (!out)
        return;
    fwrite(data, 1, size, out);
    fclose(out);
}

int main(int argc, char **argv)
{
    double seconds = 0;
    fr_rng rng = {.seed = 1};
    char crash[300];
    const char *name = strrchr(argv[0], '/');
    snprintf(crash, sizeof crash, "crash-%.200s", name ? name + 1 : argv[0]);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            rng.seed = strtoull(argv[++i], NULL, 10);
        else
            load(argv[i]);
    }
    uint8_t *data = malloc(REPLAY_MOST_BYTES);
    if (!data || file_count == 0) {
        fprintf(stderr, "usage: %s [--seconds S] [--seed N] FILE...\n", argv[0]);
        return 2;
    }
    long long runs = 0;
    for (int i = 0; i < file_count; i++, runs++)
        LLVMFuzzerTestOneInput(files[i].data, files[i].size);
    for (time_t until = time(NULL) + (time_t)seconds; seconds > 0 && time(NULL) < until; runs++) {
        size_t size = mutate(data, &rng);
        keep(crash, data, size);
        LLVMFuzzerTestOneInput(data, size);
    }
    remove(crash);
    printf("%s: %lld inputs\n", crash + 6, runs);
    free(data);
    for (int i = 0; i < file_count; i++)
        free(files[i].data);
    return 0;
}
