/* scale: y = s x with a trained s, for models that keep the residual factor and drop the embedding's share.
 *
 * It is the kit's blend with one term, rare enough that the reference kernel (a pass over the stream,
 * negligible beside a block's matrix products) is also what real runs use. The gradient of s is summed in
 * double, row by row in order, so it has the same bits on any number of threads.
 */
#include "model/model_internal.h"

static fr_status infer(fr_node *node, fr_error *error)
{
    FR_TRY(fr_node_expect(node, 1, 1, 1, error));
    fr_node_output(node, 0, FR_KIND_STREAM, node->in[0]->rows, node->in[0]->columns);
    return FR_OK;
}

static double flops(const fr_node *node, fr_extent extent, fr_pass pass)
{
    double elements = (double)extent.rows * (double)extent.T * (double)node->out[0]->columns;
    return pass == FR_FORWARD ? elements : 3 * elements;
}

/* The convention of published FLOP counts leaves element-wise work out. */
static double flops_full(const fr_node *node, fr_extent extent, fr_pass pass)
{
    (void)node, (void)extent, (void)pass;
    return 0;
}

/* Two rows of doubles: x (or the result) and the gradient. */
static size_t scratch(const fr_call *call)
{
    return 2 * (size_t)call->node->out[0]->columns * sizeof(double);
}

static double scale_of(const fr_call *call)
{
    double s;
    fr_load_doubles(call->in[1], call->in_dtype[1], 0, 1, &s);
    return s;
}

static void forward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *x = call->scratch, s = scale_of(call);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_doubles(call->in[0], call->in_dtype[0], t * columns, columns, x);
        for (int64_t c = 0; c < columns; c++)
            x[c] *= s;
        fr_store_doubles(call->out[0], call->out_dtype[0], t * columns, columns, x, false);
    }
}

static void backward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *x = call->scratch, *dy = x + columns, s = scale_of(call), ds = 0;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_doubles(call->in[0], call->in_dtype[0], t * columns, columns, x);
        fr_load_doubles(call->grad_out[0], call->out_dtype[0], t * columns, columns, dy);
        for (int64_t c = 0; c < columns; c++) {
            ds += x[c] * dy[c];
            dy[c] *= s;
        }
        if (call->grad_in[0])
            fr_store_doubles(call->grad_in[0], call->in_dtype[0], t * columns, columns, dy,
                             call->accumulate[0]);
    }
    if (call->grad_in[1])
        fr_store_doubles(call->grad_in[1], call->in_dtype[1], 0, 1, &ds, call->accumulate[1]);
}

const fr_op fr_op_scale = {
    .name = "scale",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = infer,
    .continues = true,
    .keeps_inputs = 3,
    .reference_suffices = true,
    .flops = flops,
    .flops_full = flops_full,
    .reference =
        {{.op = "scale", .pass = FR_FORWARD, .name = "scale_forward", .run = forward, .scratch = scratch},
         {.op = "scale", .pass = FR_BACKWARD, .name = "scale_backward", .run = backward, .scratch = scratch}},
};

fr_tensor *fr_scale(fr_graph *g, fr_tensor *x, fr_tensor *scale)
{
    fr_tensor *inputs[] = {x, scale};
    return fr_apply(g, &fr_op_scale, inputs, 2, NULL, 0);
}
