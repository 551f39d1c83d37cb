/* bench/cmd_bench_engine.c: `frontier bench decode` and `bench prefill`: the engine beside what no engine can beat.
 *
 * A decoding pass must read every weight and the keys and values its queries look at, so its bound is the time this
 * machine takes to merely read as many bytes: measured in the same run, with the same threads, over a buffer of that
 * very size, since a model that fits into a cache is not bound by memory. A prompt is bound by arithmetic: its
 * operations against the peak, measured before and after. Weights are initial ones; time does not depend on them.
 */
#include <string.h>

#include "commands.h"
#include "frontier/model.h"
#include "repeat.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

enum { MOST_BATCH = 8, MOST_CALLS = 520 };

static const cli_option options[] = {
    {"recipe", CLI_PATH, "FILE", NULL, "recipe to measure (default: the kit baseline)", false, false},
    {"set", CLI_TEXT, "KEY=VALUE", NULL, "override a recipe key", true, false},
    {"vocab", CLI_COUNT, "N", "8192", "tokenizer entries", false, false},
    {"length", CLI_COUNT, "N", "0", "tokens of a prompt; 0 = half the context", false, false},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
    {"seconds", CLI_DURATION, "TIME", "3s", "how long to repeat each measurement", false, false},
};

typedef struct engine_bench {
    fr_recipe recipe;
    fr_graph *graph;
    float *weights, *logits;
    fr_pool *pool;
    fr_scorer *scorer;
    fr_engine *engine;
    int64_t length, vocab;
    int32_t *prompt;
    double seconds;
    int64_t batch, sequences[MOST_BATCH]; /* of the measurement under way */
    fr_status status;
    fr_error error;
} engine_bench;

/* ---- making one ----------------------------------------------------------------------------------------- */

static fr_status read_options(engine_bench *b, cli_run *run, fr_error *error)
{
    const char *recipe = cli_text(run, "recipe"), **sets;
    FR_TRY(recipe ? fr_recipe_load(&b->recipe, recipe, error) : fr_recipe_defaults(&b->recipe, error));
    int count = cli_texts(run, "set", &sets);
    for (int i = 0; i < count; i++)
        FR_TRY(fr_recipe_set(&b->recipe, sets[i], error));
    FR_TRY(fr_recipe_check(&b->recipe, error));
    b->vocab = cli_int(run, "vocab", 8192);
    b->seconds = cli_seconds(run, "seconds", 3);
    b->length = cli_int(run, "length", 0);
    if (b->length == 0)
        b->length = b->recipe.model.context / 2;
    return FR_OK;
}

static fr_status make_engine(engine_bench *b, int threads, fr_error *error)
{
    b->graph = fr_graph_create(error);
    if (!b->graph)
        return FR_BAD_ENVIRONMENT;
    FR_TRY(fr_model_build(b->graph, &b->recipe, b->vocab, error));
    FR_TRY(fr_pool_create(&b->pool, threads, error));
    size_t bytes = (size_t)fr_graph_flat_elements(b->graph) * sizeof(float);
    b->weights = fr_allocate(bytes);
    b->logits = fr_allocate((size_t)(MOST_BATCH * b->vocab) * sizeof(float));
    b->prompt = fr_allocate((size_t)b->length * sizeof *b->prompt);
    if (!b->weights || !b->logits || !b->prompt)
        return fr_error_memory(error, bytes, "the benchmark");
    fr_graph_initialize(b->graph, 1, b->pool, b->weights);
    for (int64_t i = 0; i < b->length; i++)
        b->prompt[i] = (int32_t)(fr_rng_at(1, 2, (uint64_t)i) % (uint64_t)b->vocab);
    FR_TRY(fr_scorer_create(&b->scorer, b->graph, &b->recipe, b->weights, b->pool, error));
    FR_TRY(fr_engine_create(&b->engine, b->scorer, MOST_BATCH, error));
    if (b->length > fr_engine_positions(b->engine) - MOST_CALLS)
        return fr_error_set(error, FR_BAD_USAGE, "--length", "a shorter one, or rotary positions",
                            "%lld tokens and %d more do not fit the learned positions", (long long)b->length,
                            MOST_CALLS);
    return FR_OK;
}

static void release(engine_bench *b)
{
    fr_engine_free(b->engine);
    fr_scorer_free(b->scorer);
    fr_graph_free(b->graph);
    fr_pool_free(b->pool);
    fr_deallocate(b->weights);
    fr_deallocate(b->logits);
    fr_deallocate(b->prompt);
}

static void keep(engine_bench *b, fr_status status)
{
    if (b->status == FR_OK)
        b->status = status;
}

/* ---- work ----------------------------------------------------------------------------------------------- */

static void remove_all(engine_bench *b)
{
    for (int64_t i = 0; i < b->batch; i++)
        fr_engine_remove(b->engine, b->sequences[i]);
}

/* The prompt into `batch` sequences. */
static void prefill(void *context)
{
    engine_bench *b = context;
    remove_all(b);
    for (int64_t i = 0; i < b->batch && b->status == FR_OK; i++) {
        keep(b, fr_engine_add(b->engine, &b->sequences[i], &b->error));
        if (b->status == FR_OK)
            keep(b, fr_engine_feed(b->engine, b->sequences[i], b->length, b->prompt, NULL, &b->error));
    }
}

static void decode(void *context)
{
    engine_bench *b = context;
    keep(b, fr_engine_step(b->engine, b->batch, b->sequences, b->prompt, b->logits, &b->error));
}

typedef struct reading {
    const uint64_t *words;
    int64_t count, pieces;
    _Atomic uint64_t result;
    fr_pool *pool;
} reading;

static void read_piece(void *context, int64_t index, int thread)
{
    reading *r = context;
    int64_t step = r->count / r->pieces / 8 * 8;
    const uint64_t *at = r->words + index * step, *end = at + step;
    uint64_t sum[8] = {0};
    (void)thread;
    for (; at < end; at += 8)
        for (int i = 0; i < 8; i++)
            sum[i] ^= at[i];
    for (int i = 1; i < 8; i++)
        sum[0] ^= sum[i];
    r->result ^= sum[0];
}

static void read_all(void *context)
{
    reading *r = context;
    fr_pool_for(r->pool, r->pieces, read_piece, r);
}

/* Bytes per second of reading `bytes` over and over, by all threads. */
static fr_status measure_bandwidth(const engine_bench *b, double bytes, double *bandwidth, fr_error *error)
{
    reading r = {.count = (int64_t)(bytes / 8), .pieces = fr_pool_threads(b->pool), .pool = b->pool};
    uint64_t *words = fr_allocate((size_t)r.count * sizeof *words);
    if (!words)
        return fr_error_memory(error, (size_t)r.count * sizeof *words, "measuring the bandwidth");
    memset(words, 1, (size_t)r.count * sizeof *words);
    r.words = words;
    bench_times t = bench_repeat(1, read_all, &r);
    *bandwidth = (double)r.count * 8 / t.best;
    fr_deallocate(words);
    return FR_OK;
}

/* ---- decode --------------------------------------------------------------------------------------------- */

static fr_status measure_decode(cli_run *run, engine_bench *b, int64_t batch, json_t *list, fr_error *error)
{
    double flops, bytes, bandwidth = 0;
    b->batch = batch;
    prefill(b);
    fr_engine_cost(b->engine, batch, b->length, true, &flops, &bytes);
    FR_TRY(measure_bandwidth(b, bytes, &bandwidth, error));
    bench_times t = bench_repeat(b->seconds, decode, b);
    remove_all(b);
    if (b->status != FR_OK) {
        *error = b->error;
        return b->status;
    }
    double bound = bytes / bandwidth;
    cli_print(run,
              "  batch %lld: %8.1f tokens/s (median; best %.1f), %6.2f ms a pass; reading its %.1f MB takes "
              "%.2f ms at %.1f GB/s: %.0f %% of the bound\n",
              (long long)batch, (double)batch / t.median, (double)batch / t.best, 1e3 * t.median, bytes / 1e6,
              1e3 * bound, bandwidth / 1e9, 100 * bound / t.median);
    json_array_append_new(list, json_pack("{s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "batch", (json_int_t)batch,
                                          "tokens_per_s", (double)batch / t.median, "best_tokens_per_s",
                                          (double)batch / t.best, "pass_s", t.median, "bytes", bytes,
                                          "bandwidth_bytes_per_s", bandwidth, "bound_tokens_per_s",
                                          (double)batch / bound, "of_bound", bound / t.median));
    return FR_OK;
}

static fr_status measure_decodes(cli_run *run, engine_bench *b, json_t *list, fr_error *error)
{
    cli_print(run, "decoding behind %lld tokens, %d threads\n", (long long)b->length,
              fr_pool_threads(b->pool));
    FR_TRY(measure_decode(run, b, 1, list, error));
    return measure_decode(run, b, MOST_BATCH, list, error);
}

/* ---- prefill -------------------------------------------------------------------------------------------- */

static fr_status measure_prefill(cli_run *run, engine_bench *b, int64_t batch, double peak, json_t *list,
                                 fr_error *error)
{
    double flops, bytes;
    b->batch = batch;
    fr_engine_cost(b->engine, b->length, 0, false, &flops, &bytes);
    bench_times t = bench_repeat(b->seconds, prefill, b);
    remove_all(b);
    if (b->status != FR_OK) {
        *error = b->error;
        return b->status;
    }
    double tokens = (double)(batch * b->length), rate = flops * (double)batch / t.median;
    cli_print(run, "  batch %lld: %8.1f tokens/s (median; best %.1f), %.1f GFLOP/s: %.0f %% of peak\n",
              (long long)batch, tokens / t.median, tokens / t.best, rate / 1e9, 100 * rate / peak);
    json_array_append_new(list, json_pack("{s:I,s:f,s:f,s:f,s:f}", "batch", (json_int_t)batch, "tokens_per_s",
                                          tokens / t.median, "best_tokens_per_s", tokens / t.best, "flops",
                                          rate, "of_peak", rate / peak));
    return FR_OK;
}

static fr_status measure_prefills(cli_run *run, engine_bench *b, json_t *list, fr_error *error)
{
    fr_peak peak;
    FR_TRY(fr_cpu_peak(fr_pool_threads(b->pool), 1.5, &peak, error));
    cli_print(run, "prompts of %lld tokens, %d threads, peak %.1f GFLOP/s\n", (long long)b->length,
              fr_pool_threads(b->pool), peak.flops / 1e9);
    FR_TRY(measure_prefill(run, b, 1, peak.flops, list, error));
    FR_TRY(measure_prefill(run, b, MOST_BATCH, peak.flops, list, error));
    cli_put(run, "peak_flops", json_real(peak.flops));
    return FR_OK;
}

/* ---- the commands --------------------------------------------------------------------------------------- */

static fr_status with_engine(cli_run *run,
                             fr_status (*measure)(cli_run *, engine_bench *, json_t *, fr_error *),
                             fr_error *error)
{
    engine_bench b = {0};
    json_t *list = json_array();
    cli_put(run, "batches", list);
    fr_status status = read_options(&b, run, error);
    if (status == FR_OK)
        status = make_engine(&b, (int)cli_int(run, "threads", 0), error);
    if (status == FR_OK)
        status = measure(run, &b, list, error);
    if (status == FR_OK) {
        cli_put(run, "length", json_integer(b.length));
        cli_put(run, "threads", json_integer(fr_pool_threads(b.pool)));
        cli_put(run, "sequence_bytes", json_integer((json_int_t)fr_engine_sequence_bytes(b.engine)));
        cli_put(run, "basis", json_string("measured"));
    }
    release(&b);
    return status;
}

static fr_status run_decode(cli_run *run, fr_error *error)
{
    return with_engine(run, measure_decodes, error);
}

static fr_status run_prefill(cli_run *run, fr_error *error)
{
    return with_engine(run, measure_prefills, error);
}

const cli_command cmd_bench_decode = {
    .name = "bench decode",
    .least = 0,
    .most = 0,
    .summary = "decoded tokens per second against the time to read the model",
    .options = options,
    .option_count = COUNT(options),
    .details = "One and eight sequences. The bound is the time of reading as many bytes as a pass must read "
               "(weights, keys,\nvalues), measured in the same run.",
    .examples = "  frontier bench decode --recipe recipes/baseline.toml\n  frontier bench decode --set "
                "model.depth=4 --json",
    .run = run_decode,
    .schema = "bench-decode",
};

const cli_command cmd_bench_prefill = {
    .name = "bench prefill",
    .least = 0,
    .most = 0,
    .summary = "prompt tokens per second against this machine's peak",
    .options = options,
    .option_count = COUNT(options),
    .details =
        "One and eight prompts. Operations are those needed: attention counts the keys each query sees.",
    .examples = "  frontier bench prefill --recipe recipes/baseline.toml\n  frontier bench prefill --length "
                "1000 --json",
    .run = run_prefill,
    .schema = "bench-prefill",
};
