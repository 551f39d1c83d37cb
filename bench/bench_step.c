/* bench_step: how much of this processor's peak a training step uses.
 *
 *     bench_step [--recipe FILE] [--threads N] [--rows R] [--rounds N] [--numerics fp32|bf16] [--json]
 *
 * Measured, with the wall clock: the peak (all threads at once); micro-batches forward and backward, one per
 * thread at once as shards run them, each with its own arena and gradients; the sum of the shards' gradients;
 * the optimizer's update; the refresh of prepared weights. Not in it: loading data, writing logs. Composed
 * from these: a step of optim.batch_tokens. Micro-batches are taken at their median over the rounds and, to
 * see past other processes, at their best; the processor time of one thread is printed too: on a busy machine
 * it is the only figure that means anything.
 *
 * mfu_full counts baseline.md 1.6 (every query sees every key), mfu_causal what causality leaves, embeddings
 * none.
 */
#include "frontier/frontier.h"
#include "frontier/model.h"
#include "frontier/train.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_THREADS = 64, MOST_ROUNDS = 200, MOST_OPERATORS = 64, VOCAB = 8192 };

typedef struct operator_time {
    const char *name;
    fr_pass pass;
    int64_t ns;
} operator_time;

typedef struct step_bench {
    fr_recipe recipe;
    int threads, rounds;
    int64_t rows;
    bool json;
    fr_numerics numerics;
    fr_graph *graph;
    fr_plan *plan;
    fr_pool *pool;
    fr_prepared *prepared;
    fr_optimizer *optimizer;
    float *parameters, *gradients[MOST_THREADS];
    void *arenas[MOST_THREADS];
    int32_t *tokens, *targets;
    operator_time operators[MOST_OPERATORS]; /* of thread 0, all rounds */
    int operator_count;
    double micro[MOST_ROUNDS], micro_cpu, micro_best, micro_median, reduce, update, refresh;
    fr_peak peak;
} step_bench;

static int fail(const fr_error *error)
{
    char text[1100];
    fr_error_format(error, text, sizeof text);
    fputs(text, stderr);
    return (int)error->status;
}

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* ---- set-up
 * --------------------------------------------------------------------------------------------------- */

static fr_status read_options(step_bench *b, int argc, char **argv, fr_error *error)
{
    const char *recipe = "recipes/baseline.toml", *numerics = NULL;
    int64_t threads = fr_cpu_available(), rounds = 5, rows = 1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--json") == 0) {
            b->json = true;
            continue;
        }
        if (strcmp(argv[i], "--recipe") == 0)
            recipe = value;
        else if (strcmp(argv[i], "--numerics") == 0)
            numerics = value;
        else if (strcmp(argv[i], "--threads") == 0)
            FR_TRY(fr_parse_int(value, 1, MOST_THREADS, &threads, argv[i], error));
        else if (strcmp(argv[i], "--rows") == 0)
            FR_TRY(fr_parse_int(value, 1, 1024, &rows, argv[i], error));
        else if (strcmp(argv[i], "--rounds") == 0)
            FR_TRY(fr_parse_int(value, 1, MOST_ROUNDS, &rounds, argv[i], error));
        else
            return fr_error_set(error, FR_BAD_USAGE, argv[i], "see the first lines of bench/bench_step.c",
                                "unknown option");
        i++;
    }
    b->threads = (int)threads;
    b->rounds = (int)rounds;
    b->rows = rows;
    FR_TRY(fr_recipe_load(&b->recipe, recipe, error));
    if (numerics)
        snprintf(b->recipe.model.numerics, sizeof b->recipe.model.numerics, "%s", numerics);
    FR_TRY(fr_recipe_check(&b->recipe, error));
    b->numerics = fr_recipe_numerics(&b->recipe);
    return FR_OK;
}

static fr_status take(void **out, size_t bytes, fr_error *error)
{
    *out = fr_allocate(bytes);
    return *out ? FR_OK : fr_error_memory(error, bytes, "the step bench");
}

static fr_status make_data(step_bench *b, fr_error *error)
{
    int64_t count = b->threads * b->rows * b->recipe.model.context;
    size_t flat = sizeof(float) * (size_t)fr_graph_flat_elements(b->graph);
    FR_TRY(take((void **)&b->tokens, sizeof(int32_t) * (size_t)count, error));
    FR_TRY(take((void **)&b->targets, sizeof(int32_t) * (size_t)count, error));
    FR_TRY(take((void **)&b->parameters, flat, error));
    for (int64_t i = 0; i < count; i++) {
        b->tokens[i] = (int32_t)(fr_rng_at(1, 1, (uint64_t)i) % VOCAB);
        b->targets[i] = (int32_t)(fr_rng_at(1, 2, (uint64_t)i) % VOCAB);
    }
    for (int t = 0; t < b->threads; t++) {
        FR_TRY(take((void **)&b->gradients[t], flat, error));
        FR_TRY(take(&b->arenas[t], fr_plan_arena_bytes(b->plan), error));
    }
    fr_graph_initialize(b->graph, 42, b->pool, b->parameters);
    return FR_OK;
}

static fr_status set_up(step_bench *b, fr_error *error)
{
    const char *outputs[] = {"loss"};
    fr_plan_options options = {.extent = {b->rows, b->recipe.model.context},
                               .numerics = b->numerics,
                               .train = true,
                               .residual_bf16 = fr_recipe_residual_bf16(&b->recipe),
                               .outputs = outputs,
                               .output_count = 1};
    FR_TRY(fr_cpu_kernels(&options.kernels, error));
    b->graph = fr_graph_create(error);
    if (!b->graph)
        return FR_BAD_ENVIRONMENT;
    FR_TRY(fr_model_build(b->graph, &b->recipe, VOCAB, error));
    FR_TRY(fr_plan_create(&b->plan, b->graph, &options, error));
    FR_TRY(fr_pool_create(&b->pool, b->threads, error));
    FR_TRY(fr_prepared_create(&b->prepared, b->graph, b->numerics, options.kernels, error));
    FR_TRY(fr_optimizer_create(&b->optimizer, b->graph, &b->recipe, b->pool, error));
    FR_TRY(make_data(b, error));
    fr_prepared_refresh(b->prepared, b->parameters, b->pool);
    return FR_OK;
}

/* ---- micro-batches
 * ----------------------------------------------------------------------------------------------- */

static void note_time(void *context, const fr_node *node, fr_pass pass, int64_t ns)
{
    step_bench *b = context;
    int i = 0;
    while (i < b->operator_count &&
           (strcmp(b->operators[i].name, node->op->name) != 0 || b->operators[i].pass != pass))
        i++;
    if (i == MOST_OPERATORS)
        return;
    if (i == b->operator_count)
        b->operators[b->operator_count++] = (operator_time){node->op->name, pass, 0};
    b->operators[i].ns += ns;
}

typedef struct micro_run {
    step_bench *bench;
    bool timed;
    fr_status status[MOST_THREADS];
    double cpu[MOST_THREADS]; /* processor time of each thread */
    fr_error error;
} micro_run;

static void run_micro_batch(void *context, int64_t index, int thread)
{
    micro_run *run = context;
    step_bench *b = run->bench;
    int64_t start = index * b->rows * b->recipe.model.context;
    fr_error error = {0};
    fr_binding inputs[] = {{"tokens", b->tokens + start}, {"targets", b->targets + start}};
    fr_run_args args = {.arena = b->arenas[index],
                        .parameters = b->parameters,
                        .prepared = fr_prepared_table(b->prepared),
                        .gradients = b->gradients[index],
                        .accumulate_gradients = true,
                        .inputs = inputs,
                        .input_count = 2,
                        .timed = run->timed && index == 0 ? note_time : NULL,
                        .timed_context = b};
    (void)thread;
    double start_cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
    run->status[index] = fr_plan_run(b->plan, &args, &error);
    run->cpu[index] = read_clock(CLOCK_THREAD_CPUTIME_ID) - start_cpu;
    if (run->status[index] != FR_OK)
        run->error = error;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static fr_status run_round(step_bench *b, bool timed, double *seconds, fr_error *error)
{
    micro_run run = {.bench = b, .timed = timed};
    double start = now();
    fr_pool_for(b->pool, b->threads, run_micro_batch, &run);
    *seconds = now() - start;
    b->micro_cpu = b->micro_cpu == 0 || run.cpu[0] < b->micro_cpu ? run.cpu[0] : b->micro_cpu;
    for (int t = 0; t < b->threads; t++)
        if (run.status[t] != FR_OK) {
            *error = run.error;
            return run.status[t];
        }
    return FR_OK;
}

static fr_status measure_micro_batches(step_bench *b, fr_error *error)
{
    double warm;
    FR_TRY(run_round(b, false, &warm, error));
    for (int r = 0; r < b->rounds; r++)
        FR_TRY(run_round(b, true, &b->micro[r], error));
    qsort(b->micro, (size_t)b->rounds, sizeof *b->micro, by_value);
    b->micro_best = b->micro[0];
    b->micro_median = b->micro[b->rounds / 2];
    return FR_OK;
}

/* ---- the rest of a step
 * -------------------------------------------------------------------------------------------- */

static fr_status measure_update(step_bench *b, fr_error *error)
{
    fr_step_scalars scalars;
    b->update = 1e30;
    for (int r = 0; r < 2; r++) {
        fr_step_scalars_at(&b->recipe, 0.1, r, &scalars);
        double start = now();
        FR_TRY(fr_optimizer_step(b->optimizer, b->parameters, b->gradients[0], &scalars, error));
        double seconds = now() - start;
        b->update = seconds < b->update ? seconds : b->update;
    }
    return FR_OK;
}

static void measure_vectors(step_bench *b)
{
    int64_t count = fr_graph_flat_elements(b->graph);
    double start = now();
    for (int64_t s = 1; s < b->recipe.optim.shards; s++)
        fr_vector_add(b->gradients[0], b->gradients[b->threads - 1], count, b->pool);
    b->reduce = now() - start;
    start = now();
    fr_prepared_refresh(b->prepared, b->parameters, b->pool);
    b->refresh = now() - start;
}

static fr_status measure_peak(step_bench *b, fr_error *error)
{
    fr_peak peak;
    FR_TRY(fr_cpu_peak(b->threads, 1.5, &peak, error));
    if (peak.flops > b->peak.flops)
        b->peak = peak;
    return FR_OK;
}

/* ---- results
 * -----------------------------------------------------------------------------------------------------------
 */

typedef struct step_result {
    double step_seconds, tokens_per_s, mfu_full, mfu_causal, micro_mfu_full;
} step_result;

static step_result compose(const step_bench *b, double micro)
{
    double micro_tokens = (double)(b->rows * b->recipe.model.context),
           tokens = (double)b->recipe.optim.batch_tokens;
    double rounds = tokens / micro_tokens / b->threads;
    step_result r = {.step_seconds = rounds * micro + b->reduce + b->update + b->refresh};
    r.tokens_per_s = tokens / r.step_seconds;
    r.mfu_full = tokens / micro_tokens * fr_plan_flops(b->plan, true) / r.step_seconds / b->peak.flops;
    r.mfu_causal = tokens / micro_tokens * fr_plan_flops(b->plan, false) / r.step_seconds / b->peak.flops;
    r.micro_mfu_full = b->threads * fr_plan_flops(b->plan, true) / micro / b->peak.flops;
    return r;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = ((const operator_time *)a)->ns, y = ((const operator_time *)b)->ns;
    return (x < y) - (x > y);
}

static void print_operators(step_bench *b)
{
    double total = 0;
    qsort(b->operators, (size_t)b->operator_count, sizeof *b->operators, by_time);
    for (int i = 0; i < b->operator_count; i++)
        total += (double)b->operators[i].ns;
    printf("operators of one thread, per micro-batch:\n");
    for (int i = 0; i < b->operator_count; i++)
        printf("  %-16s %-8s %8.2f ms  %5.1f %%\n", b->operators[i].name,
               b->operators[i].pass == FR_FORWARD ? "forward" : "backward",
               1e-6 * (double)b->operators[i].ns / b->rounds, 100 * (double)b->operators[i].ns / total);
}

static void print_results(step_bench *b)
{
    step_result median = compose(b, b->micro_median), best = compose(b, b->micro_best);
    fr_cpu_features f;
    fr_cpu_detect(&f);
    printf("%s, %s kernels, %s, %d threads; peak %.1f GFLOP/s (register loop %.1f, %s %.1f)\n", f.name,
           f.path, b->numerics == FR_NUMERICS_BF16 ? "bf16" : "fp32", b->threads, 1e-9 * b->peak.flops,
           1e-9 * b->peak.register_loop, fr_cpu_library_version(), 1e-9 * b->peak.library_product);
    printf("micro-batch of %lld x %lld: median %.3f s, best %.3f s (mfu_full %.3f, %.3f)\n",
           (long long)b->rows, (long long)b->recipe.model.context, b->micro_median, b->micro_best,
           median.micro_mfu_full, best.micro_mfu_full);
    printf("processor time of one thread, best %.3f s: %.3f of its peak\n", b->micro_cpu,
           fr_plan_flops(b->plan, true) / b->micro_cpu / (b->peak.flops / b->threads));
    printf("shard sum %.3f s, optimizer %.3f s, prepared weights %.3f s\n", b->reduce, b->update, b->refresh);
    printf("step of %lld tokens, composed: %.1f s, %.0f tokens/s, mfu_full %.3f, mfu_causal %.3f (best "
           "micro-batch: %.3f, %.3f)\n",
           (long long)b->recipe.optim.batch_tokens, median.step_seconds, median.tokens_per_s, median.mfu_full,
           median.mfu_causal, best.mfu_full, best.mfu_causal);
    print_operators(b);
    if (b->json)
        printf("{\"basis\": \"measured\", \"mfu_full\": %.4f, \"mfu_causal\": %.4f, \"tokens_per_s\": %.1f, "
               "\"peak_flops\": %.4e, \"step_seconds\": %.3f}\n",
               median.mfu_full, median.mfu_causal, median.tokens_per_s, b->peak.flops, median.step_seconds);
}

static fr_status run(step_bench *b, int argc, char **argv, fr_error *error)
{
    FR_TRY(read_options(b, argc, argv, error));
    FR_TRY(set_up(b, error));
    FR_TRY(measure_peak(b, error));
    FR_TRY(measure_micro_batches(b, error));
    FR_TRY(measure_update(b, error));
    measure_vectors(b);
    FR_TRY(measure_peak(b, error));
    print_results(b);
    return FR_OK;
}

int main(int argc, char **argv)
{
    fr_error error = {0};
    step_bench *b = fr_allocate(sizeof *b);
    if (!b)
        return (int)FR_BAD_ENVIRONMENT;
    int status = run(b, argc, argv, &error) == FR_OK ? 0 : fail(&error);
    for (int t = 0; t < b->threads; t++) {
        fr_deallocate(b->gradients[t]);
        fr_deallocate(b->arenas[t]);
    }
    fr_deallocate(b->tokens);
    fr_deallocate(b->targets);
    fr_deallocate(b->parameters);
    fr_optimizer_free(b->optimizer);
    fr_prepared_free(b->prepared);
    fr_pool_free(b->pool);
    fr_plan_free(b->plan);
    fr_graph_free(b->graph);
    fr_deallocate(b);
    return status;
}
