/* bench/step.c: the pieces of a training step, each callable by itself.
 *
 * Every thread runs a whole micro-batch in an arena and a gradient vector of its own, as training does; the update and the
 * sums are split over all threads. Besides wall time the processor time of one thread is kept: on a machine that does
 * other work it is the only figure that means anything. Tokens are random: no kernel's time depends on them.
 */
#include "step.h"

#include <string.h>
#include <time.h>

static double processor_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- set-up ------------------------------------------------------------------------------------ */

static fr_status load_recipe(step_bench *b, cli_run *run, fr_error *error)
{
    const char **sets;
    FR_TRY(cli_text(run, "recipe") ? fr_recipe_load(&b->recipe, cli_text(run, "recipe"), error)
                                   : fr_recipe_defaults(&b->recipe, error));
    int count = cli_texts(run, "set", &sets);
    for (int i = 0; i < count; i++)
        FR_TRY(fr_recipe_set(&b->recipe, sets[i], error));
    return fr_recipe_check(&b->recipe, error);
}

static fr_status allocate(step_bench *b, int64_t tokens, fr_error *error)
{
    size_t flat = (size_t)fr_graph_flat_elements(b->graph) * sizeof(float), threads = (size_t)b->threads;
    b->parameters = fr_allocate(flat);
    b->inputs = fr_allocate((size_t)tokens * sizeof(int32_t));
    b->targets = fr_allocate((size_t)tokens * sizeof(int32_t));
    b->arenas = fr_allocate(threads * sizeof *b->arenas);
    b->gradients = fr_allocate(threads * sizeof *b->gradients);
    bool whole = b->parameters && b->inputs && b->targets && b->arenas && b->gradients;
    for (size_t i = 0; whole && i < threads; i++) {
        b->arenas[i] = fr_allocate(fr_plan_arena_bytes(b->plan));
        b->gradients[i] = fr_allocate(flat);
        whole = b->arenas[i] && b->gradients[i];
    }
    return whole ? FR_OK : fr_error_memory(error, flat * (threads + 1), "the measured step");
}

static void fill(step_bench *b, int64_t tokens, int64_t vocab)
{
    fr_graph_initialize(b->graph, 42, b->pool, b->parameters);
    fr_prepared_refresh(b->prepared, b->parameters, b->pool);
    for (int64_t i = 0; i < tokens; i++) {
        b->inputs[i] = (int32_t)(fr_rng_at(1, 2, (uint64_t)i) % (uint64_t)vocab);
        b->targets[i] = (int32_t)(fr_rng_at(1, 3, (uint64_t)i) % (uint64_t)vocab);
    }
    b->loss_scale = 1.0f / (float)b->recipe.optim.batch_tokens;
    fr_step_scalars_at(&b->recipe, 0.3, 100, &b->scalars);
}

fr_status step_bench_init(step_bench *b, cli_run *run, fr_error *error)
{
    const fr_kernel_table *kernels;
    int64_t rows = cli_int(run, "rows", 1), vocab = cli_int(run, "vocab", 8192);
    FR_TRY(load_recipe(b, run, error));
    int64_t T = b->recipe.model.context;
    if (rows < 1 || rows > 4096 || vocab < 2)
        return fr_error_set(error, FR_BAD_USAGE, NULL, NULL, "rows must be 1 to 4096 and vocab at least 2");
    FR_TRY(fr_pool_create(&b->pool, (int)cli_int(run, "threads", 0), error));
    b->threads = fr_pool_threads(b->pool);
    b->graph = fr_graph_create(error);
    if (!b->graph)
        return error->status;
    FR_TRY(fr_model_build(b->graph, &b->recipe, vocab, error));
    FR_TRY(fr_cpu_kernels(&kernels, error));
    fr_plan_options options = {.extent = {rows, T},
                               .numerics = fr_recipe_numerics(&b->recipe),
                               .residual_bf16 = fr_recipe_residual_bf16(&b->recipe),
                               .train = true,
                               .outputs = (const char *const[]){"loss"},
                               .output_count = 1,
                               .kernels = kernels};
    FR_TRY(fr_plan_create(&b->plan, b->graph, &options, error));
    FR_TRY(fr_prepared_create(&b->prepared, b->graph, options.numerics, kernels, error));
    FR_TRY(fr_optimizer_create(&b->optimizer, b->graph, &b->recipe, b->pool, error));
    FR_TRY(allocate(b, rows * T, error));
    fill(b, rows * T, vocab);
    return FR_OK;
}

void step_bench_release(step_bench *b)
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

/* ---- micro-batches ------------------------------------------------------------------------------- */

static fr_status run_plan(step_bench *b, int thread, void (*timed)(void *, const fr_node *, fr_pass, int64_t),
                          fr_error *error)
{
    fr_binding bindings[] = {{"tokens", b->inputs}, {"targets", b->targets}, {"loss_scale", &b->loss_scale}};
    fr_run_args args = {.arena = b->arenas[thread],
                        .parameters = b->parameters,
                        .prepared = fr_prepared_table(b->prepared),
                        .gradients = b->gradients[thread],
                        .accumulate_gradients = true,
                        .inputs = bindings,
                        .input_count = 3,
                        .timed = timed,
                        .timed_context = b};
    return fr_plan_run(b->plan, &args, error);
}

static void micro_batch(void *context, int64_t index, int thread)
{
    step_bench *b = context;
    fr_error error = {0};
    double start = processor_now();
    (void)thread;
    fr_status status = run_plan(b, (int)index, NULL, &error);
    if (index != 0) /* all threads do the same work, so thread 0 speaks for them */
        return;
    double seconds = processor_now() - start;
    if (b->processor_seconds == 0 || seconds < b->processor_seconds)
        b->processor_seconds = seconds;
    if (status != FR_OK) {
        b->status = status;
        b->error = error;
    }
}

void step_bench_micro_batches(void *context)
{
    step_bench *b = context;
    fr_pool_for(b->pool, b->threads, micro_batch, b);
}

/* ---- the rest of a step -------------------------------------------------------------------------- */

void step_bench_sum_shards(void *context)
{
    step_bench *b = context;
    int64_t count = fr_graph_flat_elements(b->graph);
    for (int64_t s = 1; s < b->recipe.optim.shards; s++)
        fr_vector_add(b->gradients[0], b->gradients[b->threads - 1], count, b->pool);
}

void step_bench_update(void *context)
{
    step_bench *b = context;
    fr_status status =
        fr_optimizer_step(b->optimizer, b->parameters, b->gradients[0], &b->scalars, &b->error);
    fr_prepared_refresh(b->prepared, b->parameters, b->pool);
    if (status != FR_OK)
        b->status = status;
}

fr_status step_bench_peak(step_bench *b, double seconds, fr_error *error)
{
    fr_peak peak;
    FR_TRY(fr_cpu_peak(b->threads, seconds, &peak, error));
    if (peak.flops > b->peak.flops)
        b->peak = peak;
    return FR_OK;
}

/* ---- operators ----------------------------------------------------------------------------------- */

static step_operator *find_operator(step_bench *b, const char *name, fr_pass pass)
{
    int i = 0;
    while (i < b->operator_count && (strcmp(b->operators[i].name, name) != 0 || b->operators[i].pass != pass))
        i++;
    if (i == STEP_MOST_OPERATORS)
        return &b->operators[i - 1];
    if (i == b->operator_count)
        b->operators[b->operator_count++] =
            (step_operator){.name = name, .kernel = "", .pass = pass, .best = 1e30};
    return &b->operators[i];
}

static void add_work(void *context, const fr_node *node, fr_pass pass, const fr_kernel *kernel)
{
    step_bench *b = context;
    step_operator *o = find_operator(b, node->op->name, pass);
    fr_pass last = node->op->backward_in_forward ? FR_BACKWARD : pass;
    fr_extent extent = fr_plan_extent(b->plan);
    o->kernel = kernel->name;
    for (int p = (int)pass; p <= (int)last; p++) {
        double flops = node->op->flops ? node->op->flops(node, extent, (fr_pass)p) : 0;
        o->flops += flops;
        o->flops_full += node->op->flops_full ? node->op->flops_full(node, extent, (fr_pass)p) : flops;
    }
}

static void add_time(void *context, const fr_node *node, fr_pass pass, int64_t ns)
{
    find_operator(context, node->op->name, pass)->seconds += 1e-9 * (double)ns;
}

fr_status step_bench_operators(step_bench *b, int rounds, fr_error *error)
{
    fr_plan_visit(b->plan, add_work, b);
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < b->operator_count; i++)
            b->operators[i].seconds = 0;
        FR_TRY(run_plan(b, 0, add_time, error));
        for (int i = 0; i < b->operator_count; i++)
            if (b->operators[i].seconds < b->operators[i].best)
                b->operators[i].best = b->operators[i].seconds;
    }
    return FR_OK;
}
