/* cli/cmd_bench_step.c: `frontier bench step`: how near a training step is to the limit of this machine.
 *
 * One step is many equal micro-batches and one optimizer update, so both are measured and the whole step is composed:
 * at depth 10 and 65,536 tokens it would take over a minute on two cores. The clock covers forward and backward of every
 * thread's micro-batch at once, each in its own arena, as training runs them; and the update split over all threads.
 * The peak is measured in the same run: the better of a register loop and the library's best product. Utilisation is given
 * twice: `full` counts attention over all T keys as published figures do, `causal` only the work that is needed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "commands.h"
#include "frontier/train.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"recipe", CLI_PATH, "FILE", NULL, "recipe to measure (default: the built-in defaults, the kit baseline)",
     false, false},
    {"set", CLI_TEXT, "KEY=VALUE", NULL, "override a recipe key", true, false},
    {"vocab", CLI_INT, "N", "8192", "tokenizer entries", false, false},
    {"rows", CLI_INT, "N", "1", "rows per micro-batch and thread", false, false},
    {"threads", CLI_INT, "N", "0", "threads; 0 = all available", false, false},
    {"seconds", CLI_DURATION, "TIME", "10s", "how long to repeat the micro-batch", false, false},
};

enum { MOST_OPERATORS = 64 };

typedef struct bench_step {
    fr_recipe recipe;
    fr_graph *graph;
    fr_plan *plan;
    fr_prepared *prepared;
    fr_pool *pool;
    fr_optimizer *optimizer;
    int threads;
    void **arenas;
    float *parameters, **gradients;
    int32_t *inputs, *targets;
    float loss_scale;
    fr_step_scalars scalars;
    fr_error error;
    fr_status status;
    struct {
        const char *name;
        double seconds[2];
    } operators[MOST_OPERATORS]; /* of one thread, one micro-batch */
    int operator_count;
} bench_step;

static void add_time(void *context, const fr_node *node, fr_pass pass, int64_t ns)
{
    bench_step *b = context;
    int i = 0;
    while (i < b->operator_count && strcmp(b->operators[i].name, node->op->name) != 0)
        i++;
    if (i == MOST_OPERATORS)
        return;
    if (i == b->operator_count) {
        b->operators[i].name = node->op->name;
        b->operator_count++;
    }
    b->operators[i].seconds[pass] += 1e-9 * (double)ns;
}

static fr_status run_plan(bench_step *b, int thread, bool timed)
{
    fr_binding bindings[] = {{"tokens", b->inputs}, {"targets", b->targets}, {"loss_scale", &b->loss_scale}};
    fr_run_args args = {.arena = b->arenas[thread],
                        .parameters = b->parameters,
                        .prepared = fr_prepared_table(b->prepared),
                        .gradients = b->gradients[thread],
                        .accumulate_gradients = true,
                        .inputs = bindings,
                        .input_count = 3};
    if (timed) {
        args.timed = add_time;
        args.timed_context = b;
    }
    return fr_plan_run(b->plan, &args, thread == 0 ? &b->error : NULL);
}

static void micro_batch_job(void *context, int64_t index, int thread)
{
    bench_step *b = context;
    (void)thread;
    if (run_plan(b, (int)index, false) != FR_OK && index == 0)
        b->status = b->error.status;
}

static void micro_batches(void *context)
{
    bench_step *b = context;
    fr_pool_for(b->pool, b->threads, micro_batch_job, b);
}

static void update(void *context)
{
    bench_step *b = context;
    fr_status status =
        fr_optimizer_step(b->optimizer, b->parameters, b->gradients[0], &b->scalars, &b->error);
    fr_prepared_refresh(b->prepared, b->parameters, b->pool);
    if (status != FR_OK)
        b->status = status;
}

static fr_status allocate(bench_step *b, int64_t tokens, fr_error *error)
{
    size_t flat = (size_t)fr_graph_flat_elements(b->graph) * sizeof(float);
    bool whole = (b->parameters = fr_allocate(flat)) && (b->inputs = fr_allocate((size_t)tokens * 4)) &&
                 (b->targets = fr_allocate((size_t)tokens * 4)) &&
                 (b->arenas = fr_allocate((size_t)b->threads * sizeof *b->arenas)) &&
                 (b->gradients = fr_allocate((size_t)b->threads * sizeof *b->gradients));
    for (int i = 0; whole && i < b->threads; i++)
        whole = (b->arenas[i] = fr_allocate(fr_plan_arena_bytes(b->plan))) &&
                (b->gradients[i] = fr_allocate(flat));
    return whole ? FR_OK : fr_error_memory(error, flat * (size_t)(b->threads + 1), "the measured step");
}

static fr_status prepare(bench_step *b, cli_run *run, fr_error *error)
{
    const fr_kernel_table *kernels;
    int64_t rows = cli_int(run, "rows", 1), vocab = cli_int(run, "vocab", 8192), T = b->recipe.model.context;
    if (rows < 1 || vocab < 2)
        return fr_error_set(error, FR_BAD_USAGE, NULL, NULL, "rows must be at least 1 and vocab at least 2");
    FR_TRY(fr_pool_create(&b->pool, (int)cli_int(run, "threads", 0), error));
    b->threads = fr_pool_threads(b->pool);
    if (!(b->graph = fr_graph_create(error)))
        return error->status;
    FR_TRY(fr_model_build(b->graph, &b->recipe, vocab, error));
    FR_TRY(fr_cpu_kernels(&kernels, error));
    fr_numerics numerics = fr_recipe_numerics(&b->recipe);
    fr_plan_options plan = {.extent = {rows, T},
                            .numerics = numerics,
                            .residual_bf16 = strcmp(b->recipe.model.residual, "bf16") == 0,
                            .train = true,
                            .outputs = (const char *const[]){"nats"},
                            .output_count = 1,
                            .kernels = kernels};
    FR_TRY(fr_plan_create(&b->plan, b->graph, &plan, error));
    FR_TRY(fr_prepared_create(&b->prepared, b->graph, numerics, kernels, error));
    FR_TRY(fr_optimizer_create(&b->optimizer, b->graph, &b->recipe, b->pool, error));
    FR_TRY(allocate(b, rows * T, error));
    fr_graph_initialize(b->graph, 42, b->pool, b->parameters);
    fr_prepared_refresh(b->prepared, b->parameters, b->pool);
    for (int64_t i = 0; i < rows * T; i++) {
        b->inputs[i] = (int32_t)(fr_rng_at(1, 2, (uint64_t)i) % (uint64_t)vocab);
        b->targets[i] = (int32_t)(fr_rng_at(1, 3, (uint64_t)i) % (uint64_t)vocab);
    }
    b->loss_scale = 1.0f / (float)b->recipe.optim.batch_tokens;
    fr_step_scalars_at(&b->recipe, 0.3, 100, &b->scalars);
    return FR_OK;
}

static void release(bench_step *b)
{
    for (int i = 0; i < b->threads; i++) {
        fr_deallocate(b->arenas ? b->arenas[i] : NULL);
        fr_deallocate(b->gradients ? b->gradients[i] : NULL);
    }
    fr_deallocate(b->arenas);
    fr_deallocate(b->gradients);
    fr_deallocate(b->parameters);
    fr_deallocate(b->inputs);
    fr_deallocate(b->targets);
    fr_optimizer_free(b->optimizer);
    fr_prepared_free(b->prepared);
    fr_plan_free(b->plan);
    fr_graph_free(b->graph);
    fr_pool_free(b->pool);
}

static void report_operators(cli_run *run, bench_step *b)
{
    json_t *list = json_array();
    double total = 0;
    run_plan(b, 0, true);
    for (int i = 0; i < b->operator_count; i++)
        total += b->operators[i].seconds[0] + b->operators[i].seconds[1];
    cli_print(run, "  %-14s %11s %11s %7s   (one micro-batch alone)\n", "operator", "forward ms",
              "backward ms", "share");
    for (int i = 0; i < b->operator_count; i++) {
        double forward = b->operators[i].seconds[0], backward = b->operators[i].seconds[1];
        cli_print(run, "  %-14s %11.2f %11.2f %6.1f%%\n", b->operators[i].name, 1e3 * forward, 1e3 * backward,
                  100 * (forward + backward) / total);
        json_array_append_new(list, json_pack("{s:s,s:f,s:f}", "operator", b->operators[i].name, "forward_s",
                                              forward, "backward_s", backward));
    }
    cli_put(run, "operators", list);
}

static fr_status measure(cli_run *run, bench_step *b, fr_error *error)
{
    fr_peak peak;
    FR_TRY(fr_cpu_peak(b->threads, 1, &peak, error));
    bench_times micro = bench_repeat(cli_seconds(run, "seconds", 10), micro_batches, b);
    bench_times optimizer = bench_repeat(1, update, b);
    if (b->status != FR_OK) {
        *error = b->error;
        return b->status;
    }
    fr_peak again;
    FR_TRY(fr_cpu_peak(b->threads, 1, &again, error));
    if (again.flops > peak.flops)
        peak = again;
    fr_extent extent = fr_plan_extent(b->plan);
    double tokens = (double)(extent.rows * extent.T) * b->threads,
           batch = (double)b->recipe.optim.batch_tokens;
    double step = batch / tokens * micro.median + optimizer.median;
    double full = fr_plan_flops(b->plan, true) * b->threads / tokens * batch,
           causal = fr_plan_flops(b->plan, false) * b->threads / tokens * batch;
    cli_print(run, "peak %.1f GFLOP/s on %d threads (register loop %.1f, library product %.1f)\n",
              peak.flops / 1e9, b->threads, peak.register_loop / 1e9, peak.library_product / 1e9);
    cli_print(run,
              "micro-batch of %lld tokens per thread: median %.1f ms, best %.1f ms of %d; update %.1f ms\n",
              (long long)(extent.rows * extent.T), 1e3 * micro.median, 1e3 * micro.best, micro.count,
              1e3 * optimizer.median);
    cli_print(run,
              "step of %.0f tokens, composed: %.2f s, %.0f tokens/s, mfu_full %.1f %%, mfu_causal %.1f %%\n",
              batch, step, batch / step, 100 * full / step / peak.flops, 100 * causal / step / peak.flops);
    report_operators(run, b);
    bench_put(run, "micro_batch", micro);
    bench_put(run, "optimizer", optimizer);
    cli_put(run, "step_s", json_real(step));
    cli_put(run, "tokens_per_s", json_real(batch / step));
    cli_put(run, "mfu_full", json_real(full / step / peak.flops));
    cli_put(run, "mfu_causal", json_real(causal / step / peak.flops));
    cli_put(run, "peak_flops", json_real(peak.flops));
    cli_put(run, "peak_register_loop", json_real(peak.register_loop));
    cli_put(run, "peak_library_product", json_real(peak.library_product));
    cli_put(run, "threads", json_integer(b->threads));
    cli_put(run, "basis", json_string("measured"));
    return FR_OK;
}

static fr_status run_bench_step(cli_run *run, fr_error *error)
{
    const char **sets;
    bench_step *b = fr_arena_alloc(&run->arena, sizeof *b);
    if (!b)
        return fr_error_memory(error, sizeof *b, "the benchmark");
    FR_TRY(cli_text(run, "recipe") ? fr_recipe_load(&b->recipe, cli_text(run, "recipe"), error)
                                   : fr_recipe_defaults(&b->recipe, error));
    int count = cli_texts(run, "set", &sets);
    for (int i = 0; i < count; i++)
        FR_TRY(fr_recipe_set(&b->recipe, sets[i], error));
    fr_status status = prepare(b, run, error);
    if (status == FR_OK)
        status = measure(run, b, error);
    release(b);
    return status;
}

const cli_command cmd_bench_step = {
    .name = "bench step",
    .least = 0,
    .most = 0,
    .summary = "a training step against this machine's peak, operator by operator",
    .options = options,
    .option_count = COUNT(options),
    .details =
        "The micro-batch and the update are measured, the whole step is composed from them. mfu_full counts "
        "attention\n"
        "over all T keys, as published figures do; mfu_causal counts only the work a causal model needs.",
    .examples = "  frontier bench step --recipe recipes/baseline.toml\n  frontier bench step --set "
                "model.depth=4 --json",
    .run = run_bench_step,
    .schema = "bench-step",
};
