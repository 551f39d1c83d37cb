/* How fast is an import, and how much memory does it take?
 *
 *     build/bench/bench_import OUT_FOLDER [--tokenizer FILE] PATH...
 *
 * Imports with all processors and prints one line of JSON: MB of text per second over everything (three passes,
 * tokenizer training unless one is given, writing), and the process's peak memory.
 */
#include "frontier/text.h"

#include <string.h>
#include <sys/resource.h>

static int import(fr_import_options *options)
{
    static fr_import_summary summary;
    fr_error error = {0};
    struct rusage usage;
    char text[1200];
    if (fr_pool_create(&options->pool, 0, &error) != FR_OK || fr_import(options, &summary, &error) != FR_OK) {
        fr_error_format(&error, text, sizeof text);
        fputs(text, stderr);
        return 1;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"documents\": %lld, \"bytes\": %lld, \"tokens\": %lld, \"dropped\": %lld, \"threads\": %d, \"seconds\": %.2f, "
           "\"mb_per_s\": %.1f, \"peak_rss_mb\": %ld}\n",
           (long long)summary.documents, (long long)summary.bytes, (long long)summary.tokens, (long long)summary.dropped,
           fr_pool_threads(options->pool), summary.seconds, (double)summary.bytes / 1e6 / summary.seconds, usage.ru_maxrss / 1024);
    fr_pool_free(options->pool);
    return 0;
}

int main(int argc, char **argv)
{
    fr_import_options options = {.split = FR_SPLIT_AUTO, .overwrite = true};
    int first = 2;
    if (argc > 4 && strcmp(argv[2], "--tokenizer") == 0) {
        options.tokenizer_path = argv[3];
        first = 4;
    }
    if (argc <= first) {
        fputs("usage: bench_import OUT_FOLDER [--tokenizer FILE] PATH...\n", stderr);
        return 2;
    }
    options.out_folder = argv[1];
    options.paths = (const char *const *)&argv[first];
    options.path_count = argc - first;
    return import(&options);
}
