/* What the graph tests share: leaves with gradients, a scalar loss of anything, and the numeric gradient
 * check.
 *
 * A leaf is a tokens x columns tensor that is trained: a table with a row for every token, looked up in
 * order. The probe is an operator of the tests' own that turns any tensor into a loss, a weighted sum with
 * weights that depend on the place only; with it every operator can be checked alone. The check compares
 * the gradients of a double-precision run with central differences.
 */
#ifndef FRONTIER_GRAPH_FIXTURE_H
#define FRONTIER_GRAPH_FIXTURE_H
#include "frontier/graph.h"
#include "test.h"

/* ---- the probe ---- */

static inline double probe_weight(int64_t i)
{
    return fr_rng_uniform_at(99, 7, (uint64_t)i) - 0.5;
}

static inline fr_status probe_infer(fr_node *node, fr_error *error)
{
    (void)error;
    fr_node_output(node, 0, FR_KIND_STATISTIC, 1, 1);
    return FR_OK;
}

static inline int64_t probe_elements(const fr_call *call)
{
    const fr_tensor *x = call->node->in[0];
    return (x->rows == FR_TOKENS ? call->tokens : x->rows) * x->columns;
}

static inline void probe_forward(const fr_call *call)
{
    double sum = 0, x;
    for (int64_t i = 0; i < probe_elements(call); i++) {
        fr_load_doubles(call->in[0], call->in_dtype[0], i, 1, &x);
        sum += probe_weight(i) * x;
    }
    fr_store_doubles(call->out[0], call->out_dtype[0], 0, 1, &sum, false);
}

static inline void probe_backward(const fr_call *call)
{
    double seed;
    fr_load_doubles(call->grad_out[0], call->out_dtype[0], 0, 1, &seed);
    for (int64_t i = 0; i < probe_elements(call); i++) {
        double share = seed * probe_weight(i);
        fr_store_doubles(call->grad_in[0], call->in_dtype[0], i, 1, &share, call->accumulate[0]);
    }
}

static const fr_op probe_op = {
    .name = "probe",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .infer = probe_infer,
    .reference_suffices = true,
    .reference = {{"probe", FR_FORWARD, "probe_forward", probe_forward, NULL, NULL},
                  {"probe", FR_BACKWARD, "probe_backward", probe_backward, NULL, NULL}},
};

static inline void probe(fr_graph *g, fr_tensor *x)
{
    fr_name(g, fr_apply(g, &probe_op, &x, 1, NULL, 0), "loss");
}

/* A tensor of `tokens` rows with a gradient. Bind "places" to 0, 1, 2, ... */
static inline fr_tensor *leaf(fr_graph *g, const char *name, int64_t tokens, int64_t columns)
{
    return fr_embed(g, fr_parameter(g, name, tokens, columns, fr_init_normal(1), "leaf"),
                    fr_input_ids(g, "places"));
}

/* ---- running ---- */

/* A plan with everything it needs to run. `parameters` and `gradients` are double in F64, else float. */
typedef struct bench {
    fr_plan *plan;
    fr_numerics numerics;
    int64_t elements;
    size_t item, arena_bytes;
    void *parameters, *gradients;
    double scale_f64;
    float scale_f32;
    int32_t *places, *tokens, *targets;
    void *arena;
    fr_binding inputs[4];
    fr_run_args args;
} bench;

static inline void bench_free(bench *b)
{
    fr_plan_free(b->plan);
    fr_deallocate(b->parameters);
    fr_deallocate(b->gradients);
    fr_deallocate(b->places);
    fr_deallocate(b->tokens);
    fr_deallocate(b->targets);
    fr_deallocate(b->arena);
}

static inline void bench_fill_parameters(bench *b, const fr_graph *g)
{
    float *flat = fr_allocate((size_t)b->elements * sizeof *flat + 1);
    fr_graph_initialize(g, 1234, NULL, flat);
    for (int64_t i = 0; i < b->elements; i++) {
        if (b->numerics == FR_NUMERICS_F64)
            ((double *)b->parameters)[i] = (double)flat[i];
        else
            ((float *)b->parameters)[i] = flat[i];
    }
    fr_deallocate(flat);
}

static inline void bench_bind(bench *b)
{
    bool wide = b->numerics == FR_NUMERICS_F64;
    b->inputs[0] = (fr_binding){"places", b->places};
    b->inputs[1] = (fr_binding){"tokens", b->tokens};
    b->inputs[2] = (fr_binding){"targets", b->targets};
    b->inputs[3] = (fr_binding){"loss_scale", wide ? (const void *)&b->scale_f64 : &b->scale_f32};
    b->args.arena = b->arena;
    b->args.parameters = b->parameters;
    b->args.gradients = b->gradients;
    b->args.inputs = b->inputs;
    b->args.input_count = 4;
}

/* Parameters as the graph initialises them; tokens and targets below `vocab`, every fifth target -1. The
 * bench must not move afterwards. */
static inline bool bench_open(bench *b, const fr_graph *g, const fr_plan_options *options, int64_t vocab)
{
    fr_error error = {0};
    int64_t N = options->extent.rows * options->extent.T;
    *b = (bench){.elements = fr_graph_flat_elements(g),
                 .numerics = options->numerics,
                 .scale_f64 = 0.37,
                 .scale_f32 = 0.37f};
    CHECK_OK(fr_plan_create(&b->plan, g, options, &error));
    if (!b->plan)
        return false;
    b->item = b->numerics == FR_NUMERICS_F64 ? sizeof(double) : sizeof(float);
    b->arena_bytes = fr_plan_arena_bytes(b->plan);
    b->parameters = fr_allocate((size_t)b->elements * b->item + 1);
    b->gradients = fr_allocate((size_t)b->elements * b->item + 1);
    b->places = fr_allocate((size_t)N * sizeof *b->places);
    b->tokens = fr_allocate((size_t)N * sizeof *b->tokens);
    b->targets = fr_allocate((size_t)N * sizeof *b->targets);
    b->arena = fr_allocate(b->arena_bytes);
    bench_fill_parameters(b, g);
    for (int64_t i = 0; i < N; i++) {
        b->places[i] = (int32_t)i;
        b->tokens[i] = (int32_t)(fr_rng_at(5, 1, (uint64_t)i) % (uint64_t)vocab);
        b->targets[i] = i % 5 == 3 ? -1 : (int32_t)(fr_rng_at(5, 2, (uint64_t)i) % (uint64_t)vocab);
    }
    bench_bind(b);
    return true;
}

/* The usual: training in double, with all the losses there are as outputs. */
static inline bool bench_create(bench *b, const fr_graph *g, fr_extent extent, int64_t vocab)
{
    static const char *const losses[] = {"loss", "loss:2"};
    fr_plan_options options = {.extent = extent,
                               .numerics = FR_NUMERICS_F64,
                               .train = true,
                               .outputs = losses};
    options.output_count = fr_graph_find(g, "loss:2") ? 2 : 1;
    return bench_open(b, g, &options, vocab);
}

static inline double bench_output(const bench *b, const char *name, int64_t element)
{
    fr_dtype dtype = FR_F32;
    double value = 0;
    const void *data = fr_plan_output(b->plan, b->arena, name, &dtype);
    if (data)
        fr_load_doubles(data, dtype, element, 1, &value);
    return value;
}

/* Returns the sum of the losses that are outputs. */
static inline double bench_run(bench *b)
{
    fr_error error = {0};
    CHECK_OK(fr_plan_run(b->plan, &b->args, &error));
    return bench_output(b, "loss", 0) + bench_output(b, "loss:2", 0);
}

/* ---- the check ---- */

/* Central differences of up to `samples` elements of every parameter. Returns the largest error,
 * relative to 1 + |gradient|. */
static inline double gradient_error(const fr_graph *g, bench *b, int64_t samples)
{
    const double step = 1e-5;
    double worst = 0;
    double *exact = fr_allocate((size_t)b->elements * sizeof *exact + 1);
    bench_run(b);
    memcpy(exact, b->gradients, (size_t)b->elements * sizeof *exact);
    for (int p = 0; p < fr_graph_parameters(g); p++) {
        const fr_parameter_info *info = fr_graph_parameter(g, p);
        int64_t elements = info->rows * info->columns, count = elements < samples ? elements : samples;
        for (int64_t s = 0; s < count; s++) {
            double *x =
                &((double *)
                      b->parameters)[info->offset + (count == elements
                                                         ? s
                                                         : (int64_t)(fr_rng_at(3, (uint64_t)p, (uint64_t)s) %
                                                                     (uint64_t)elements))];
            double saved = *x;
            *x = saved + step;
            double above = bench_run(b);
            *x = saved - step;
            double below = bench_run(b);
            *x = saved;
            double got = exact[x - (double *)b->parameters], want = (above - below) / (2 * step);
            double wrong = fabs(got - want) / (1 + fabs(want));
            if (!(wrong < 1e-6))
                printf("# %s[%lld]: gradient %.10g, differences %.10g\n", info->name,
                       (long long)(x - (double *)b->parameters - info->offset), got, want);
            worst = wrong > worst || isnan(wrong) ? wrong : worst;
        }
    }
    fr_deallocate(exact);
    return worst;
}

#endif
