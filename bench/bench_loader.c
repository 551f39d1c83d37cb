/* How fast is the loader, and what does packing cost?
 *
 *     build/bench/bench_loader DATA_FOLDER [T]
 *
 * Prints a line of JSON per packing, without and with prefetch: million ids per second delivered in batches of 32 rows,
 * and the share of consumed ids that cropping throws away.
 */
#include "frontier/text.h"

#include <stdlib.h>
#include <time.h>

enum { BATCH = 32 };

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static fr_status measure(const fr_corpus *corpus, const fr_loader_options *options, int32_t *inputs, int32_t *targets, fr_error *error)
{
    fr_loader *loader = NULL;
    int64_t got = 0;
    FR_TRY(fr_loader_create(&loader, corpus, options, error));
    fr_status status = FR_OK;
    double start = seconds_now(), seconds = 0;
    while (status == FR_OK && seconds < 2) {
        status = fr_loader_next(loader, BATCH, inputs, targets, &got, error);
        seconds = seconds_now() - start;
    }
    double ids = (double)fr_loader_row(loader) * (double)options->context;
    double consumed = fr_loader_epochs(loader) * (double)fr_corpus_tokens(corpus, options->split);
    printf("{\"packing\": \"%s\", \"context\": %lld, \"prefetch\": %s, \"mids_per_s\": %.1f, \"cropped\": %.4f}\n",
           options->packing == FR_PACK_BEST_FIT ? "best-fit" : "stream", (long long)options->context,
           options->prefetch ? "true" : "false", ids / 1e6 / seconds, 1 - ids / consumed);
    fr_loader_free(loader);
    return status;
}

static fr_status measure_all(const char *folder, int64_t context, fr_error *error)
{
    fr_corpus *corpus = NULL;
    FR_TRY(fr_corpus_open(&corpus, folder, false, error));
    int32_t *inputs = malloc((size_t)(BATCH * context) * sizeof *inputs), *targets = malloc((size_t)(BATCH * context) * sizeof *targets);
    fr_status status = inputs && targets ? FR_OK : fr_error_memory(error, 0, "a batch");
    for (int i = 0; status == FR_OK && i < 4; i++) {
        fr_loader_options options = {.split = FR_TRAIN, .packing = i / 2 ? FR_PACK_STREAM : FR_PACK_BEST_FIT, .context = context, .prefetch = i % 2};
        status = measure(corpus, &options, inputs, targets, error);
    }
    free(inputs);
    free(targets);
    fr_corpus_free(corpus);
    return status;
}

int main(int argc, char **argv)
{
    fr_error error = {0};
    char text[1200];
    int64_t context = 1024;
    if (argc < 2) {
        fputs("usage: bench_loader DATA_FOLDER [T]\n", stderr);
        return 2;
    }
    fr_status status = argc > 2 ? fr_parse_int(argv[2], 1, 1 << 20, &context, "T", &error) : FR_OK;
    if (status == FR_OK)
        status = measure_all(argv[1], context, &error);
    if (status != FR_OK) {
        fr_error_format(&error, text, sizeof text);
        fputs(text, stderr);
    }
    return status;
}
