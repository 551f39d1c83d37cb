/* leaky_relu_squared: out = max(x, slope x)^2, 0 <= slope < 1 ;  d x = 2 max(x, slope^2 x) d out.
 *
 * The square of a leaky ReLU: negative inputs come out positive, small, and keep a gradient. Own models
 * use it; the reference kernel, one pass over an activation, is also what real runs use.
 */
#include "graph/ops/ops.h"

static fr_status leaky_infer(fr_node *node, fr_error *error)
{
    const fr_leaky_options *options = node->attributes;
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, node->in[0]->columns, error));
    if (!(options->slope >= 0 && options->slope < 1))
        return fr_error_set(error, FR_BAD_USAGE, node->in[0]->name, "the usual slope is 0.5",
                            "a slope of %g is not from 0 to below 1", options->slope);
    fr_node_output(node, 0, FR_KIND_ACTIVATION, FR_TOKENS, node->in[0]->columns);
    return FR_OK;
}

static size_t leaky_scratch(const fr_call *call)
{
    return 2 * (size_t)call->node->in[0]->columns * sizeof(double);
}

static void leaky_forward(const fr_call *call)
{
    const fr_leaky_options *options = call->node->attributes;
    int64_t columns = call->node->in[0]->columns;
    double *x = call->scratch;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        for (int64_t c = 0; c < columns; c++) {
            double y = x[c] < 0 ? options->slope * x[c] : x[c];
            x[c] = y * y;
        }
        fr_store_output(call, 0, t, x);
    }
}

static void leaky_backward(const fr_call *call)
{
    const fr_leaky_options *options = call->node->attributes;
    int64_t columns = call->node->in[0]->columns;
    double *x = call->scratch, *dy = x + columns, steep = options->slope * options->slope;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        fr_load_grad(call, 0, t, dy);
        for (int64_t c = 0; c < columns; c++)
            dy[c] *= 2 * (x[c] < 0 ? steep * x[c] : x[c]);
        fr_store_grad(call, 0, t, dy);
    }
}

const fr_op fr_op_leaky_relu_squared = {
    .name = "leaky_relu_squared",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .infer = leaky_infer,
    .continues = true,
    .keeps_inputs = 1,
    .reference_suffices = true,
    .reference = {{"leaky_relu_squared", FR_FORWARD, "leaky_relu_squared_forward_reference", leaky_forward,
                   leaky_scratch, NULL},
                  {"leaky_relu_squared", FR_BACKWARD, "leaky_relu_squared_backward_reference", leaky_backward,
                   leaky_scratch, NULL}},
};

fr_tensor *fr_leaky_relu_squared(fr_graph *g, fr_tensor *x, double slope)
{
    fr_leaky_options options = {.slope = slope};
    return fr_apply(g, &fr_op_leaky_relu_squared, (fr_tensor *[]){x}, 1, &options, sizeof options);
}
