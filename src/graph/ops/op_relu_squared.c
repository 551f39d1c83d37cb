/* relu_squared: out = max(x, 0)^2 ;  d x = 2 max(x, 0) d out. The activation of nanochat's MLP. */
#include "graph/ops/ops.h"

static fr_status relu_squared_infer(fr_node *node, fr_error *error)
{
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, node->in[0]->columns, error));
    fr_node_output(node, 0, FR_KIND_ACTIVATION, FR_TOKENS, node->in[0]->columns);
    return FR_OK;
}

static size_t relu_squared_scratch(const fr_call *call)
{
    return 2 * (size_t)call->node->in[0]->columns * sizeof(double);
}

static void relu_squared_forward(const fr_call *call)
{
    int64_t columns = call->node->in[0]->columns;
    double *x = call->scratch;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        for (int64_t c = 0; c < columns; c++)
            x[c] = x[c] <= 0 ? 0 : x[c] * x[c]; /* written so that NaN stays NaN */
        fr_store_output(call, 0, t, x);
    }
}

static void relu_squared_backward(const fr_call *call)
{
    int64_t columns = call->node->in[0]->columns;
    double *x = call->scratch, *dy = x + columns;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        fr_load_grad(call, 0, t, dy);
        for (int64_t c = 0; c < columns; c++)
            dy[c] *= x[c] <= 0 ? 0 : 2 * x[c];
        fr_store_grad(call, 0, t, dy);
    }
}

const fr_op fr_op_relu_squared = {
    .name = "relu_squared",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .infer = relu_squared_infer,
    .continues = true,
    .keeps_inputs = 1,
    .reference = {{"relu_squared", FR_FORWARD, "relu_squared_forward_reference", relu_squared_forward,
                   relu_squared_scratch, NULL},
                  {"relu_squared", FR_BACKWARD, "relu_squared_backward_reference", relu_squared_backward,
                   relu_squared_scratch, NULL}},
};

fr_tensor *fr_relu_squared(fr_graph *g, fr_tensor *x)
{
    return fr_apply(g, &fr_op_relu_squared, (fr_tensor *[]){x}, 1, NULL, 0);
}
