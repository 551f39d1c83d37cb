/* add: out = x + y, the joint of a residual branch; both gradients are d out. */
#include "graph/ops/ops.h"

static fr_status add_infer(fr_node *node, fr_error *error)
{
    int64_t columns = node->in[0]->columns;
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, columns, error));
    FR_TRY(fr_node_expect(node, 1, FR_TOKENS, columns, error));
    fr_node_output(node, 0, FR_KIND_STREAM, FR_TOKENS, columns);
    return FR_OK;
}

static size_t add_scratch(const fr_call *call)
{
    return 2 * (size_t)call->node->out[0]->columns * sizeof(double);
}

static void add_forward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *x = call->scratch, *y = x + columns;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        fr_load_input(call, 1, t, y);
        fr_axpy(x, 1, y, columns);
        fr_store_output(call, 0, t, x);
    }
}

static void add_backward(const fr_call *call)
{
    double *dy = call->scratch;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_grad(call, 0, t, dy);
        fr_store_grad(call, 0, t, dy);
        fr_store_grad(call, 1, t, dy);
    }
}

const fr_op fr_op_add = {
    .name = "add",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = add_infer,
    .continues = true,
    .reference = {{"add", FR_FORWARD, "add_forward_reference", add_forward, add_scratch, NULL},
                  {"add", FR_BACKWARD, "add_backward_reference", add_backward, add_scratch, NULL}},
};

fr_tensor *fr_add(fr_graph *g, fr_tensor *x, fr_tensor *y)
{
    return fr_apply(g, &fr_op_add, (fr_tensor *[]){x, y}, 2, NULL, 0);
}
