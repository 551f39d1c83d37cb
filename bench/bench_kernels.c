/* bench_kernels: every operator of a depth-10 block by itself, fast kernel against the register loop of the
 * same run.
 *
 *     bench_kernels [fp32|bf16] [ROUNDS]
 *
 * A plan of one training step of baseline.toml's model is run ROUNDS times (default 3) on this thread alone;
 * the plan's own hook gives the time of every operator, in wall time, best round. Printed: milliseconds, and
 * for operators that multiply, the share of the register loop for the work causality leaves and in the full
 * convention.
 */
#include "frontier/frontier.h"
#include "frontier/model.h"

#include <string.h>

enum { MOST = 64, VOCAB = 8192 };

typedef struct operator_total {
    const char *name, *kernel;
    fr_pass pass;
    double flops, full;
    int64_t ns, best;
} operator_total;

typedef struct kernel_bench {
    operator_total operators[MOST];
    int count;
    fr_extent extent;
} kernel_bench;

static operator_total *find(kernel_bench *b, const fr_node *node, fr_pass pass)
{
    for (int i = 0; i < b->count; i++)
        if (strcmp(b->operators[i].name, node->op->name) == 0 && b->operators[i].pass == pass)
            return &b->operators[i];
    b->operators[b->count] = (operator_total){.name = node->op->name, .pass = pass, .best = INT64_MAX};
    return b->count + 1 < MOST ? &b->operators[b->count++] : &b->operators[b->count];
}

static void add_step(void *context, const fr_node *node, fr_pass pass, const fr_kernel *kernel)
{
    kernel_bench *b = context;
    operator_total *total = find(b, node, pass);
    total->kernel = kernel->name;
    for (int p = (int)pass; p <= (node->op->backward_in_forward ? (int)FR_BACKWARD : (int)pass); p++) {
        double flops = node->op->flops ? node->op->flops(node, b->extent, (fr_pass)p) : 0;
        total->flops += flops;
        total->full += node->op->flops_full ? node->op->flops_full(node, b->extent, (fr_pass)p) : flops;
    }
}

static void add_time(void *context, const fr_node *node, fr_pass pass, int64_t ns)
{
    find(context, node, pass)->ns += ns;
}

static void print(const kernel_bench *b, double peak)
{
    for (int i = 0; i < b->count; i++) {
        const operator_total *t = &b->operators[i];
        double seconds = 1e-9 * (double)t->best;
        printf("%-34s %9.2f ms", t->kernel, 1e3 * seconds);
        if (t->flops > 0)
            printf("   %.2f of peak, %.2f counting all keys", t->flops / seconds / peak,
                   t->full / seconds / peak);
        putchar('\n');
    }
}

static fr_status run(const char *numerics, int64_t rounds, fr_error *error)
{
    static kernel_bench b;
    fr_recipe recipe;
    FR_TRY(fr_recipe_load(&recipe, "recipes/baseline.toml", error));
    snprintf(recipe.model.numerics, sizeof recipe.model.numerics, "%s", numerics);
    const fr_kernel_table *kernels;
    FR_TRY(fr_cpu_kernels(&kernels, error));
    fr_graph *graph = fr_graph_create(error);
    FR_TRY(graph ? fr_model_build(graph, &recipe, VOCAB, error) : FR_BAD_ENVIRONMENT);
    const char *outputs[] = {"loss"};
    fr_plan_options options = {.extent = {1, recipe.model.context},
                               .numerics = fr_recipe_numerics(&recipe),
                               .train = true,
                               .outputs = outputs,
                               .output_count = 1,
                               .kernels = kernels};
    fr_plan *plan;
    FR_TRY(fr_plan_create(&plan, graph, &options, error));
    b.extent = options.extent;
    fr_plan_visit(plan, add_step, &b);
    size_t flat = sizeof(float) * (size_t)fr_graph_flat_elements(graph);
    float *parameters = fr_allocate(flat), *gradients = fr_allocate(flat);
    int32_t *ids = fr_allocate(sizeof *ids * (size_t)b.extent.T);
    void *arena = fr_allocate(fr_plan_arena_bytes(plan));
    if (!parameters || !gradients || !ids || !arena)
        return fr_error_memory(error, flat, "the kernel bench");
    fr_graph_initialize(graph, 1, NULL, parameters);
    for (int64_t i = 0; i < b.extent.T; i++)
        ids[i] = (int32_t)(fr_rng_at(1, 1, (uint64_t)i) % VOCAB);
    fr_prepared *prepared;
    FR_TRY(fr_prepared_create(&prepared, graph, options.numerics, kernels, error));
    fr_prepared_refresh(prepared, parameters, NULL);
    fr_binding inputs[] = {{"tokens", ids}, {"targets", ids}};
    fr_run_args args = {.arena = arena,
                        .parameters = parameters,
                        .prepared = fr_prepared_table(prepared),
                        .gradients = gradients,
                        .inputs = inputs,
                        .input_count = 2,
                        .timed = add_time,
                        .timed_context = &b};
    fr_peak peak, again;
    FR_TRY(fr_cpu_peak(1, 0.5, &peak, error));
    for (int64_t r = 0; r <= rounds; r++) {
        for (int i = 0; i < b.count; i++)
            b.operators[i].ns = 0;
        FR_TRY(fr_plan_run(plan, &args, error));
        for (int i = 0; i < b.count && r > 0; i++)
            b.operators[i].best =
                b.operators[i].ns < b.operators[i].best ? b.operators[i].ns : b.operators[i].best;
    }
    FR_TRY(fr_cpu_peak(1, 0.5, &again, error));
    printf("peak of one thread %.1f GFLOP/s\n", 1e-9 * (peak.flops > again.flops ? peak.flops : again.flops));
    print(&b, peak.flops > again.flops ? peak.flops : again.flops);
    return FR_OK; /* the process ends here and takes its memory along */
}

int main(int argc, char **argv)
{
    fr_error error = {0};
    int64_t rounds = 3;
    char text[1100];
    fr_status status = argc > 2 ? fr_parse_int(argv[2], 1, 1000, &rounds, "ROUNDS", &error) : FR_OK;
    if (status == FR_OK)
        status = run(argc > 1 ? argv[1] : "fp32", rounds, &error);
    if (status == FR_OK)
        return 0;
    fr_error_format(&error, text, sizeof text);
    fputs(text, stderr);
    return (int)status;
}
