/* linear: rows times a weight matrix, the product that does nearly all the work of a model.
 *
 *     out = x W^T                      x tokens x I, W O x I, out tokens x O
 *     d x = d out W ;  d W = d out^T x
 *
 * The kernels walk in strips of rows, so that a row of the other matrix is converted once for a whole
 * strip.
 */
#include "graph/ops/ops.h"

enum { STRIP = 16 };

static fr_status linear_infer(fr_node *node, fr_error *error)
{
    const fr_tensor *x = node->in[0], *weight = node->in[1];
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, x->columns, error));
    if (weight->rows == FR_TOKENS)
        return fr_error_set(error, FR_BAD_USAGE, weight->name, NULL,
                            "the weight of linear must have a fixed number of rows");
    FR_TRY(fr_node_expect(node, 1, weight->rows, x->columns, error));
    fr_node_output(node, 0, FR_KIND_ACTIVATION, FR_TOKENS, weight->rows);
    return FR_OK;
}

static double linear_flops(const fr_node *node, fr_extent extent, fr_pass pass)
{
    double product =
        2.0 * (double)(extent.rows * extent.T) * (double)node->in[1]->rows * (double)node->in[1]->columns;
    return pass == FR_FORWARD ? product : 2 * product;
}

static size_t linear_scratch(const fr_call *call)
{
    const fr_tensor *weight = call->node->in[1];
    return (size_t)((STRIP + 1) * weight->columns + STRIP) * sizeof(double);
}

static void linear_forward(const fr_call *call)
{
    int64_t in = call->node->in[1]->columns, out = call->node->in[1]->rows;
    double *strip = call->scratch, *x = strip + STRIP * in, *y = x + in;
    for (int64_t o = 0; o < out; o += STRIP) {
        int64_t count = out - o < STRIP ? out - o : STRIP;
        fr_load_doubles(call->in[1], call->in_dtype[1], o * in, count * in, strip);
        for (int64_t t = 0; t < call->tokens; t++) {
            fr_load_input(call, 0, t, x);
            for (int64_t j = 0; j < count; j++)
                y[j] = fr_dot(x, strip + j * in, in);
            fr_store_doubles(call->out[0], call->out_dtype[0], t * out + o, count, y, false);
        }
    }
}

/* d x, a strip of tokens at a time. */
static void input_gradient(const fr_call *call)
{
    int64_t in = call->node->in[1]->columns, out = call->node->in[1]->rows;
    double *strip = call->scratch, *weight = strip + STRIP * in;
    for (int64_t t = 0; t < call->tokens; t += STRIP) {
        int64_t count = call->tokens - t < STRIP ? call->tokens - t : STRIP;
        fr_zero(strip, count * in);
        for (int64_t o = 0; o < out; o++) {
            fr_load_input(call, 1, o, weight);
            for (int64_t j = 0; j < count; j++) {
                double dy;
                fr_load_doubles(call->grad_out[0], call->out_dtype[0], (t + j) * out + o, 1, &dy);
                fr_axpy(strip + j * in, dy, weight, in);
            }
        }
        fr_store_doubles(call->grad_in[0], call->in_dtype[0], t * in, count * in, strip, call->accumulate[0]);
    }
}

/* d W, a strip of its rows at a time; each element is summed over the tokens in order. */
static void weight_gradient(const fr_call *call)
{
    int64_t in = call->node->in[1]->columns, out = call->node->in[1]->rows;
    double *strip = call->scratch, *x = strip + STRIP * in, *dy = x + in;
    for (int64_t o = 0; o < out; o += STRIP) {
        int64_t count = out - o < STRIP ? out - o : STRIP;
        fr_zero(strip, count * in);
        for (int64_t t = 0; t < call->tokens; t++) {
            fr_load_input(call, 0, t, x);
            fr_load_doubles(call->grad_out[0], call->out_dtype[0], t * out + o, count, dy);
            for (int64_t j = 0; j < count; j++)
                fr_axpy(strip + j * in, dy[j], x, in);
        }
        fr_store_doubles(call->grad_in[1], call->in_dtype[1], o * in, count * in, strip, call->accumulate[1]);
    }
}

static void linear_backward(const fr_call *call)
{
    if (call->grad_in[0])
        input_gradient(call);
    if (call->grad_in[1])
        weight_gradient(call);
}

const fr_op fr_op_linear = {
    .name = "linear",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = linear_infer,
    .continues = true,
    .keeps_inputs = 3,
    .flops = linear_flops,
    .reference = {{"linear", FR_FORWARD, "linear_forward_reference", linear_forward, linear_scratch, NULL},
                  {"linear", FR_BACKWARD, "linear_backward_reference", linear_backward, linear_scratch,
                   NULL}},
};

fr_tensor *fr_linear(fr_graph *g, fr_tensor *x, fr_tensor *weight)
{
    return fr_apply(g, &fr_op_linear, (fr_tensor *[]){x, weight}, 2, NULL, 0);
}
