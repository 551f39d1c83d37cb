/* add_scaled: out = x + sign * scale * y with a scalar scale, usually trained. nanochat's backout is sign
 * -1.
 *
 *     d x = d out ;  d y = sign * scale * d out ;  d scale = sign * sum of d out * y
 */
#include "graph/ops/ops.h"

#include <math.h>

enum { X, SCALE, Y };

static fr_status add_scaled_infer(fr_node *node, fr_error *error)
{
    const fr_add_scaled_options *options = node->attributes;
    int64_t columns = node->in[X]->columns;
    FR_TRY(fr_node_expect(node, X, FR_TOKENS, columns, error));
    FR_TRY(fr_node_expect(node, SCALE, 1, 1, error));
    FR_TRY(fr_node_expect(node, Y, FR_TOKENS, columns, error));
    if (!isfinite(options->sign))
        return fr_error_set(error, FR_BAD_USAGE, node->in[X]->name, NULL,
                            "the sign of add_scaled is not finite");
    fr_node_output(node, 0, FR_KIND_STREAM, FR_TOKENS, columns);
    return FR_OK;
}

static size_t add_scaled_scratch(const fr_call *call)
{
    return 2 * (size_t)call->node->out[0]->columns * sizeof(double);
}

static double factor(const fr_call *call)
{
    const fr_add_scaled_options *options = call->node->attributes;
    return options->sign * fr_scalar_input(call, SCALE);
}

static void add_scaled_forward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *x = call->scratch, *y = x + columns, scale = factor(call);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, X, t, x);
        fr_load_input(call, Y, t, y);
        fr_axpy(x, scale, y, columns);
        fr_store_output(call, 0, t, x);
    }
}

static void add_scaled_backward(const fr_call *call)
{
    const fr_add_scaled_options *options = call->node->attributes;
    int64_t columns = call->node->out[0]->columns;
    double *dy = call->scratch, *y = dy + columns, scale = factor(call), dscale = 0;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_grad(call, 0, t, dy);
        fr_load_input(call, Y, t, y);
        dscale += options->sign * fr_dot(dy, y, columns);
        fr_store_grad(call, X, t, dy);
        for (int64_t c = 0; c < columns; c++)
            dy[c] *= scale;
        fr_store_grad(call, Y, t, dy);
    }
    fr_store_grad(call, SCALE, 0, &dscale);
}

const fr_op fr_op_add_scaled = {
    .name = "add_scaled",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .infer = add_scaled_infer,
    .continues = true,
    .keeps_inputs = 1u << SCALE | 1u << Y,
    .reference = {{"add_scaled", FR_FORWARD, "add_scaled_forward_reference", add_scaled_forward,
                   add_scaled_scratch, NULL},
                  {"add_scaled", FR_BACKWARD, "add_scaled_backward_reference", add_scaled_backward,
                   add_scaled_scratch, NULL}},
};

fr_tensor *fr_add_scaled(fr_graph *g, fr_tensor *x, double sign, fr_tensor *scale, fr_tensor *y)
{
    fr_add_scaled_options options = {.sign = sign};
    return fr_apply(g, &fr_op_add_scaled, (fr_tensor *[]){x, scale, y}, 3, &options, sizeof options);
}
