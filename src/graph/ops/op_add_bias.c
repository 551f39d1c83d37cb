/* add_bias: adds one trained row to every token, as the linear projections of GPT-2 do.
 *
 *     out[t] = x[t] + bias
 *     d x = d out ;  d bias = sum of d out over the tokens, in order
 *
 * It stands behind linear instead of inside it: models of this library have no biases, so the product's
 * kernels stay free of them, and a model from elsewhere pays one pass over an activation.
 */
#include "graph/ops/ops.h"

static fr_status add_bias_infer(fr_node *node, fr_error *error)
{
    int64_t columns = node->in[0]->columns;
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, columns, error));
    FR_TRY(fr_node_expect(node, 1, 1, columns, error));
    fr_node_output(node, 0, FR_KIND_ACTIVATION, FR_TOKENS, columns);
    return FR_OK;
}

static size_t add_bias_scratch(const fr_call *call)
{
    return 2 * (size_t)call->node->out[0]->columns * sizeof(double);
}

static void add_bias_forward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *bias = call->scratch, *x = bias + columns;
    fr_load_input(call, 1, 0, bias);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        fr_axpy(x, 1, bias, columns);
        fr_store_output(call, 0, t, x);
    }
}

static void add_bias_backward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *sum = call->scratch, *dy = sum + columns;
    fr_zero(sum, columns);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_grad(call, 0, t, dy);
        fr_axpy(sum, 1, dy, columns);
        fr_store_grad(call, 0, t, dy);
    }
    fr_store_grad(call, 1, 0, sum);
}

const fr_op fr_op_add_bias = {
    .name = "add_bias",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = add_bias_infer,
    .continues = true,
    .reference = {{"add_bias", FR_FORWARD, "add_bias_forward_reference", add_bias_forward, add_bias_scratch,
                   NULL},
                  {"add_bias", FR_BACKWARD, "add_bias_backward_reference", add_bias_backward,
                   add_bias_scratch, NULL}},
};

fr_tensor *fr_add_bias(fr_graph *g, fr_tensor *x, fr_tensor *bias)
{
    return fr_apply(g, &fr_op_add_bias, (fr_tensor *[]){x, bias}, 2, NULL, 0);
}
