/* How fast is the tokenizer on a text file?
 *
 *     build/bench/bench_tokenizer FILE [VOCAB [THREADS]]
 *
 * Trains on the whole file, cut at newlines into documents of about 8 kB, then encodes it on one thread in
 * the same pieces, and prints one line of JSON: seconds of training, MB/s of splitting and encoding, bytes
 * per token.
 */
#include "frontier/text.h"
#include "text/pretokenizer.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* End of the document that starts at `at`: the first newline after 8 kB. */
static size_t document_end(const char *text, size_t bytes, size_t at)
{
    const size_t wanted = 8000;
    const char *newline = bytes - at > wanted ? memchr(text + at + wanted, '\n', bytes - at - wanted) : NULL;
    return newline ? (size_t)(newline - text) + 1 : bytes;
}

static fr_status train(const char *text, size_t bytes, int32_t vocab, fr_pool *pool, fr_tokenizer **out,
                       fr_error *error)
{
    fr_tokenizer_options options = {.vocab = vocab, .pool = pool};
    fr_tokenizer_trainer *trainer = NULL;
    FR_TRY(fr_tokenizer_trainer_create(&trainer, &options, error));
    fr_status status = FR_OK;
    for (size_t at = 0, end; at < bytes && status == FR_OK; at = end) {
        end = document_end(text, bytes, at);
        status = fr_tokenizer_trainer_feed(trainer, text + at, end - at, error);
    }
    if (status == FR_OK)
        status = fr_tokenizer_trainer_finish(trainer, out, error);
    fr_tokenizer_trainer_free(trainer);
    return status;
}

static double split_seconds(const char *text, size_t bytes)
{
    double from = seconds_now();
    size_t chunks = 0;
    for (size_t at = 0; at < bytes; chunks++)
        at = fr_scan_chunk((const uint8_t *)text, bytes, at);
    return chunks ? seconds_now() - from : 0;
}

static double encode_seconds(const fr_tokenizer *tokenizer, const char *text, size_t bytes, int64_t *tokens)
{
    static int32_t ids[1 << 16];
    double from = seconds_now();
    *tokens = 0;
    for (size_t at = 0, end; at < bytes; at = end) {
        end = document_end(text, bytes, at);
        *tokens += fr_tokenizer_encode(tokenizer, text + at, end - at, ids, sizeof ids / sizeof ids[0]);
    }
    return seconds_now() - from;
}

static fr_status run(const char *path, int32_t vocab, fr_pool *pool, fr_error *error)
{
    fr_mapping file;
    fr_tokenizer *tokenizer = NULL;
    FR_TRY(fr_mapping_init(&file, path, error));
    const char *text = (const char *)file.data;
    double from = seconds_now();
    fr_status status = train(text, file.bytes, vocab, pool, &tokenizer, error);
    if (status == FR_OK) {
        double trained = seconds_now() - from, megabytes = (double)file.bytes / 1e6;
        int64_t tokens;
        double split = split_seconds(text, file.bytes),
               encode = encode_seconds(tokenizer, text, file.bytes, &tokens);
        printf("{\"bytes\": %zu, \"vocab\": %" PRId32
               ", \"threads\": %d, \"train_s\": %.3f, \"split_mb_s\": %.1f, "
               "\"encode_mb_s\": %.1f, \"bytes_per_token\": %.4f, \"basis\": \"measured\"}\n",
               file.bytes, fr_tokenizer_vocab(tokenizer), fr_pool_threads(pool), trained, megabytes / split,
               megabytes / encode, (double)file.bytes / (double)tokens);
    }
    fr_tokenizer_free(tokenizer);
    fr_mapping_release(&file);
    return status;
}

int main(int argc, char **argv)
{
    fr_error error = {0};
    fr_pool *pool = NULL;
    char message[1200];
    if (argc < 2) {
        fprintf(stderr, "usage: bench_tokenizer FILE [VOCAB [THREADS]]\n");
        return FR_BAD_USAGE;
    }
    fr_status status = fr_pool_create(&pool, argc > 3 ? atoi(argv[3]) : 0, &error);
    if (status == FR_OK)
        status = run(argv[1], argc > 2 ? (int32_t)atoi(argv[2]) : 8192, pool, &error);
    fr_pool_free(pool);
    if (status != FR_OK) {
        fr_error_format(&error, message, sizeof message);
        fputs(message, stderr);
    }
    return (int)status;
}
