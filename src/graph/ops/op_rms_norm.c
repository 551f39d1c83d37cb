/* rms_norm: every row divided by its root mean square.
 *
 *     r = 1 / sqrt(mean(x^2) + eps) ;  y = r x ;  out = gain * y        gain optional, 1 x columns
 *     d y = gain * d out ;  d x = r (d y - y mean(d y * y)) ;  d gain = sum over rows of d out * y
 *
 * The backward pass computes r again from x: that costs one pass over a row that is read anyway.
 */
#include "graph/ops/ops.h"

#include <math.h>

static fr_status rms_norm_infer(fr_node *node, fr_error *error)
{
    const fr_norm_options *options = node->attributes;
    int64_t columns = node->in[0]->columns;
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, columns, error));
    if (node->in[1])
        FR_TRY(fr_node_expect(node, 1, 1, columns, error));
    if (options->bias)
        return fr_error_set(error, FR_BAD_USAGE, node->in[0]->name, "use fr_layer_norm",
                            "rms_norm has no bias");
    if (!(options->eps > 0))
        return fr_error_set(error, FR_BAD_USAGE, node->in[0]->name, NULL, "eps must be positive");
    fr_node_output(node, 0, options->stream ? FR_KIND_STREAM : FR_KIND_ACTIVATION, FR_TOKENS, columns);
    return FR_OK;
}

static size_t rms_norm_scratch(const fr_call *call)
{
    return 5 * (size_t)call->node->in[0]->columns * sizeof(double);
}

static void load_gain(const fr_call *call, double *gain)
{
    for (int64_t c = 0; c < call->node->in[0]->columns; c++)
        gain[c] = 1;
    if (call->node->in[1])
        fr_load_input(call, 1, 0, gain);
}

static double inverse_rms(const double *x, int64_t columns, double eps)
{
    return 1 / sqrt(fr_dot(x, x, columns) / (double)columns + eps);
}

static void rms_norm_forward(const fr_call *call)
{
    const fr_norm_options *options = call->node->attributes;
    int64_t columns = call->node->in[0]->columns;
    double *x = call->scratch, *gain = x + columns;
    load_gain(call, gain);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        double r = inverse_rms(x, columns, options->eps);
        for (int64_t c = 0; c < columns; c++)
            x[c] *= r * gain[c];
        fr_store_output(call, 0, t, x);
    }
}

static void rms_norm_backward(const fr_call *call)
{
    const fr_norm_options *options = call->node->attributes;
    int64_t columns = call->node->in[0]->columns;
    double *y = call->scratch, *gain = y + columns, *dy = gain + columns, *dgain = dy + columns;
    load_gain(call, gain);
    fr_zero(dgain, columns);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, y);
        fr_load_grad(call, 0, t, dy);
        double r = inverse_rms(y, columns, options->eps);
        for (int64_t c = 0; c < columns; c++) {
            y[c] *= r;
            dgain[c] += dy[c] * y[c];
            dy[c] *= gain[c];
        }
        double mean = fr_dot(dy, y, columns) / (double)columns;
        for (int64_t c = 0; c < columns; c++)
            dy[c] = r * (dy[c] - y[c] * mean);
        fr_store_grad(call, 0, t, dy);
    }
    if (call->node->in[1])
        fr_store_grad(call, 1, 0, dgain);
}

const fr_op fr_op_rms_norm = {
    .name = "rms_norm",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .infer = rms_norm_infer,
    .continues = true,
    .keeps_inputs = 3,
    .reference = {{"rms_norm", FR_FORWARD, "rms_norm_forward_reference", rms_norm_forward, rms_norm_scratch,
                   NULL},
                  {"rms_norm", FR_BACKWARD, "rms_norm_backward_reference", rms_norm_backward,
                   rms_norm_scratch, NULL}},
};

fr_tensor *fr_rms_norm(fr_graph *g, fr_tensor *x, fr_norm_options options)
{
    options.eps = options.eps == 0 ? FR_DEFAULT_EPS : options.eps;
    return fr_apply(g, &fr_op_rms_norm, (fr_tensor *[]){x, options.gain}, options.gain ? 2 : 1, &options,
                    sizeof options);
}
