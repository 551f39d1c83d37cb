/* tests/fuzz/replay.c: runs a fuzz target without a fuzzer.
 *
 *     fuzz_X [--seconds S] [--seed N] FILE...
 *     fuzz_X --crash crash-fuzz_X
 *
 * Every file is fed as it stands; then, for S seconds, random files are mutated (bytes changed, cut out, doubled,
 * numbers replaced by hostile ones, two files spliced) and fed. The sequence depends on the seed alone. Coverage does not
 * guide it as libFuzzer's does (`make fuzz`), but it needs nothing but a C compiler and finds shallow bugs in seconds. On
 * a crash the input lies in ./crash-<target>, eight bytes of its size first: inputs are made in a mapping of that file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

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

static size_t splice_with_another(uint8_t *data, size_t size, fr_rng *rng)
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
            size = kind < 7 ? move_piece(data, size, rng) : splice_with_another(data, size, rng);
    }
    return size;
}

/* A file whose mapping holds the current input: size, then bytes. It outlives a crash. */
static uint64_t *map_crash_file(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT, 0644);
    size_t bytes = REPLAY_MOST_BYTES + sizeof(uint64_t);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        return NULL;
    uint64_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static int replay_crash(const char *path)
{
    uint64_t *memory = map_crash_file(path);
    if (!memory || *memory > REPLAY_MOST_BYTES)
        return 2;
    input f = {malloc(*memory ? *memory : 1),
               *memory}; /* a tight copy, so that reading past the end is seen */
    if (!f.data)
        return 2;
    memcpy(f.data, memory + 1, f.size);
    LLVMFuzzerTestOneInput(f.data, f.size);
    free(f.data);
    return 0;
}

static long long mutate_for(double seconds, fr_rng *rng, const char *crash)
{
    long long runs = 0;
    uint64_t *memory = map_crash_file(crash);
    if (!memory) {
        fprintf(stderr, "cannot write %s\n", crash);
        exit(2);
    }
    for (time_t until = time(NULL) + (time_t)seconds; time(NULL) < until; runs++) {
        size_t size = mutate((uint8_t *)(memory + 1), rng);
        *memory = size;
        uint8_t *tight = malloc(size ? size : 1); /* so that the address sanitizer sees a read past the end */
        if (!tight)
            exit(2);
        memcpy(tight, memory + 1, size);
        LLVMFuzzerTestOneInput(tight, size);
        free(tight);
    }
    remove(crash);
    return runs;
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
        else if (strcmp(argv[i], "--crash") == 0 && i + 1 < argc)
            return replay_crash(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            rng.seed = strtoull(argv[++i], NULL, 10);
        else
            load(argv[i]);
    }
    if (file_count == 0) {
        fprintf(stderr, "usage: %s [--seconds S] [--seed N] FILE...\n", argv[0]);
        return 2;
    }
    long long runs = 0;
    for (int i = 0; i < file_count; i++, runs++)
        LLVMFuzzerTestOneInput(files[i].data, files[i].size);
    if (seconds > 0)
        runs += mutate_for(seconds, &rng, crash);
    printf("%s: %lld inputs\n", crash + 6, runs);
    for (int i = 0; i < file_count; i++)
        free(files[i].data);
    return 0;
}
