/* layer_norm: every row shifted to mean 0 and scaled to variance 1, then gain and bias.
 *
 *     r = 1 / sqrt(mean((x - mean x)^2) + eps) ;  y = r (x - mean x) ;  out = gain * y + bias
 *     d y = gain * d out ;  d x = r (d y - mean d y - y mean(d y * y))
 *     d gain = sum over rows of d out * y ;  d bias = sum over rows of d out
 *
 * Gain and bias are optional, 1 x columns each. Inputs: x, gain or NULL, bias or NULL.
 */
#include "graph/ops/ops.h"

#include <math.h>

enum { X, GAIN, BIAS };

static fr_status layer_norm_infer(fr_node *node, fr_error *error)
{
    const fr_norm_options *options = node->attributes;
    int64_t columns = node->in[X]->columns;
    FR_TRY(fr_node_expect(node, X, FR_TOKENS, columns, error));
    if (node->in[GAIN])
        FR_TRY(fr_node_expect(node, GAIN, 1, columns, error));
    if (node->in[BIAS])
        FR_TRY(fr_node_expect(node, BIAS, 1, columns, error));
    if (!(options->eps > 0))
        return fr_error_set(error, FR_BAD_USAGE, node->in[X]->name, NULL, "eps must be positive");
    fr_node_output(node, 0, options->stream ? FR_KIND_STREAM : FR_KIND_ACTIVATION, FR_TOKENS, columns);
    return FR_OK;
}

static size_t layer_norm_scratch(const fr_call *call)
{
    return 5 * (size_t)call->node->in[X]->columns * sizeof(double);
}

/* A 1 x columns input, or `fallback` everywhere if the node has none. */
static void load_optional(const fr_call *call, int input, double fallback, double *to)
{
    for (int64_t c = 0; c < call->node->in[X]->columns; c++)
        to[c] = fallback;
    if (call->node->in[input])
        fr_load_input(call, input, 0, to);
}

/* x becomes y; returns r. */
static double normalize(double *x, int64_t columns, double eps)
{
    double mean = 0;
    for (int64_t c = 0; c < columns; c++)
        mean += x[c] / (double)columns;
    for (int64_t c = 0; c < columns; c++)
        x[c] -= mean;
    double r = 1 / sqrt(fr_dot(x, x, columns) / (double)columns + eps);
    for (int64_t c = 0; c < columns; c++)
        x[c] *= r;
    return r;
}

static void layer_norm_forward(const fr_call *call)
{
    const fr_norm_options *options = call->node->attributes;
    int64_t columns = call->node->in[X]->columns;
    double *x = call->scratch, *gain = x + columns, *bias = gain + columns;
    load_optional(call, GAIN, 1, gain);
    load_optional(call, BIAS, 0, bias);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, X, t, x);
        normalize(x, columns, options->eps);
        for (int64_t c = 0; c < columns; c++)
            x[c] = gain[c] * x[c] + bias[c];
        fr_store_output(call, 0, t, x);
    }
}

/* dy, the gradient of gain * y + bias, becomes d x. */
static void row_gradient(const double *y, const double *gain, double r, double *dy, int64_t columns)
{
    double mean = 0, mean_y = 0;
    for (int64_t c = 0; c < columns; c++) {
        dy[c] *= gain[c];
        mean += dy[c] / (double)columns;
        mean_y += dy[c] * y[c] / (double)columns;
    }
    for (int64_t c = 0; c < columns; c++)
        dy[c] = r * (dy[c] - mean - y[c] * mean_y);
}

static void layer_norm_backward(const fr_call *call)
{
    const fr_norm_options *options = call->node->attributes;
    int64_t columns = call->node->in[X]->columns;
    double *y = call->scratch, *gain = y + columns, *dy = gain + columns, *dgain = dy + columns;
    double *dbias = dgain + columns;
    load_optional(call, GAIN, 1, gain);
    fr_zero(dgain, columns);
    fr_zero(dbias, columns);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, X, t, y);
        fr_load_grad(call, 0, t, dy);
        double r = normalize(y, columns, options->eps);
        for (int64_t c = 0; c < columns; c++)
            dgain[c] += dy[c] * y[c];
        fr_axpy(dbias, 1, dy, columns);
        row_gradient(y, gain, r, dy, columns);
        fr_store_grad(call, X, t, dy);
    }
    if (call->node->in[GAIN])
        fr_store_grad(call, GAIN, 0, dgain);
    if (call->node->in[BIAS])
        fr_store_grad(call, BIAS, 0, dbias);
}

const fr_op fr_op_layer_norm = {
    .name = "layer_norm",
    .min_inputs = 1,
    .max_inputs = 3,
    .outputs = 1,
    .infer = layer_norm_infer,
    .continues = true,
    .keeps_inputs = 1u << X | 1u << GAIN,
    .reference = {{"layer_norm", FR_FORWARD, "layer_norm_forward_reference", layer_norm_forward,
                   layer_norm_scratch, NULL},
                  {"layer_norm", FR_BACKWARD, "layer_norm_backward_reference", layer_norm_backward,
                   layer_norm_scratch, NULL}},
};

fr_tensor *fr_layer_norm(fr_graph *g, fr_tensor *x, fr_norm_options options)
{
    options.eps = options.eps == 0 ? FR_DEFAULT_EPS : options.eps;
    fr_tensor *inputs[] = {x, options.gain, options.bias};
    return fr_apply(g, &fr_op_layer_norm, inputs, 3, &options, sizeof options);
}
