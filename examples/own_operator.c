/* An operator of one's own, and the test that its gradient is right.
 *
 * "leaky relu squared": y = f(x)^2 with f(x) = x for x > 0 and 0.35 x below. An operator is one table: its
 * shapes, its two kernels, and what the backward kernel still needs. Kernels written with fr_load_doubles
 * work for fp32, bf16 and double alike; a fast one can be added to the kernel table later, this one stays as
 * its reference. In double, the gradient must equal central differences to many digits: a wrong sign or
 * factor cannot hide.
 */
#include "frontier/frontier.h"

#include <math.h>

#define SLOPE 0.35

/* The output has the input's shape and is what a matrix product reads. */
static fr_status infer(fr_node *node, fr_error *error)
{
    (void)error;
    fr_node_output(node, 0, FR_KIND_ACTIVATION, node->in[0]->rows, node->in[0]->columns);
    return FR_OK;
}

static size_t scratch(const fr_call *call) /* a row of x and a row of gradient, as doubles */
{
    return 2 * (size_t)call->node->out[0]->columns * sizeof(double);
}

static void forward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *x = call->scratch;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_doubles(call->in[0], call->in_dtype[0], t * columns, columns, x);
        for (int64_t c = 0; c < columns; c++)
            x[c] = x[c] > 0 ? x[c] * x[c] : SLOPE * SLOPE * x[c] * x[c];
        fr_store_doubles(call->out[0], call->out_dtype[0], t * columns, columns, x, false);
    }
}

/* dx = 2 f(x) f'(x) dy */
static void backward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *x = call->scratch, *dy = x + columns;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_doubles(call->in[0], call->in_dtype[0], t * columns, columns, x);
        fr_load_doubles(call->grad_out[0], call->out_dtype[0], t * columns, columns, dy);
        for (int64_t c = 0; c < columns; c++)
            dy[c] *= 2 * (x[c] > 0 ? x[c] : SLOPE * SLOPE * x[c]);
        fr_store_doubles(call->grad_in[0], call->in_dtype[0], t * columns, columns, dy, call->accumulate[0]);
    }
}

static const fr_op leaky_squared = {
    .name = "leaky_squared",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .infer = infer,
    .continues = true,  /* row by row: may decode token by token */
    .keeps_inputs = 1, /* bit 0: the backward kernel reads input 0 */
    .reference_suffices = true,
    .reference = {{.op = "leaky_squared",
                   .pass = FR_FORWARD,
                   .name = "leaky_squared_forward",
                   .run = forward,
                   .scratch = scratch},
                  {.op = "leaky_squared",
                   .pass = FR_BACKWARD,
                   .name = "leaky_squared_backward",
                   .run = backward,
                   .scratch = scratch}},
};

/* ---- the test -------------------------------------------------------------------------------------- */

enum { VOCAB = 12, WIDTH = 6, T = 8 };

/* embed -> linear -> leaky_squared -> loss */
static fr_graph *build(fr_error *error)
{
    fr_graph *g = fr_graph_create(error);
    if (!g)
        return NULL;
    fr_tensor *table = fr_parameter(g, "table", VOCAB, WIDTH, fr_init_normal(1), "embedding");
    fr_tensor *weight = fr_parameter(g, "weight", WIDTH, WIDTH, fr_init_normal(0.7), "matrix");
    fr_tensor *head = fr_parameter(g, "head", VOCAB, WIDTH, fr_init_normal(0.5), "head");
    fr_tensor *u = fr_linear(g, fr_embed(g, table, fr_input_ids(g, "tokens")), weight);
    fr_tensor *y = fr_apply(g, &leaky_squared, &u, 1, NULL, 0);
    fr_head_loss(g, y, head, fr_input_ids(g, "targets"), (fr_head_options){.vocab = VOCAB});
    return g;
}

/* The loss; with a training plan the gradients too. */
static fr_status loss(const fr_plan *plan, void *arena, const double *weights, double *gradients,
                      double *value, fr_error *error)
{
    static const int32_t tokens[T] = {0, 5, 2, 7, 11, 3, 3, 9}, targets[T] = {5, 2, 7, 11, 3, 3, 9, 1};
    fr_binding inputs[] = {{"tokens", tokens}, {"targets", targets}};
    fr_run_args args = {
        .arena = arena, .parameters = weights, .gradients = gradients, .inputs = inputs, .input_count = 2};
    FR_TRY(fr_plan_run(plan, &args, error));
    *value = *(const double *)fr_plan_output(plan, arena, "loss", NULL);
    return FR_OK;
}

/* The largest distance between the gradient and central differences, relative to the gradient's size. */
static fr_status check(const fr_graph *g, const fr_plan *plan, void *arena, double *weights,
                       double *gradients, double *worst, fr_error *error)
{
    double value, up, down, h = 1e-5;
    int64_t count = fr_graph_flat_elements(g);
    double *unused = gradients + count;
    FR_TRY(loss(plan, arena, weights, gradients, &value, error));
    *worst = 0;
    for (int64_t i = 0; i < count; i++) {
        double kept = weights[i];
        weights[i] = kept + h;
        FR_TRY(loss(plan, arena, weights, unused, &up, error));
        weights[i] = kept - h;
        FR_TRY(loss(plan, arena, weights, unused, &down, error));
        weights[i] = kept;
        double distance = fabs((up - down) / (2 * h) - gradients[i]) / (1 + fabs(gradients[i]));
        if (!(distance <= *worst))
            *worst = distance;
    }
    return FR_OK;
}

static fr_status run(const fr_graph *g, double *worst, fr_error *error)
{
    const char *outputs[] = {"loss"};
    fr_plan_options options = {.extent = {.rows = 1, .T = T},
                               .numerics = FR_NUMERICS_F64,
                               .train = true,
                               .outputs = outputs,
                               .output_count = 1};
    fr_plan *plan;
    FR_TRY(fr_graph_check(g, error));
    FR_TRY(fr_plan_create(&plan, g, &options, error));
    size_t count = (size_t)fr_graph_flat_elements(g);
    float *initial = fr_allocate(count * sizeof(float));
    double *weights = fr_allocate(count * sizeof(double)),
           *gradients = fr_allocate(2 * count * sizeof(double));
    void *arena = fr_allocate(fr_plan_arena_bytes(plan));
    fr_status status =
        initial && weights && gradients && arena ? FR_OK : fr_error_memory(error, count, "the example");
    if (status == FR_OK) {
        fr_graph_initialize(g, 7, NULL, initial);
        for (size_t i = 0; i < count; i++)
            weights[i] = initial[i];
        status = check(g, plan, arena, weights, gradients, worst, error);
    }
    fr_deallocate(initial);
    fr_deallocate(weights);
    fr_deallocate(gradients);
    fr_deallocate(arena);
    fr_plan_free(plan);
    return status;
}

int main(void)
{
    fr_error error = {0};
    double worst = NAN;
    fr_graph *g = build(&error);
    fr_status status = g ? run(g, &worst, &error) : FR_BAD_ENVIRONMENT;
    fr_graph_free(g);
    if (status != FR_OK) {
        fprintf(stderr, "%s: %s\n", error.where, error.what);
        return status;
    }
    printf("largest relative distance from central differences: %.1e\n", worst);
    return worst < 1e-7 ? FR_OK : FR_ANSWER_NO;
}
