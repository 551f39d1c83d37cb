/* swiglu: the gated activation of Llama.
 *
 *     s = sigmoid(gate) ;  out = gate s up
 *     d gate = d out * up * s (1 + gate (1 - s)) ;  d up = d out * gate s
 */
#include "graph/ops/ops.h"

enum { GATE, UP };

static fr_status swiglu_infer(fr_node *node, fr_error *error)
{
    int64_t columns = node->in[GATE]->columns;
    FR_TRY(fr_node_expect(node, GATE, FR_TOKENS, columns, error));
    FR_TRY(fr_node_expect(node, UP, FR_TOKENS, columns, error));
    fr_node_output(node, 0, FR_KIND_ACTIVATION, FR_TOKENS, columns);
    return FR_OK;
}

static size_t swiglu_scratch(const fr_call *call)
{
    return 3 * (size_t)call->node->out[0]->columns * sizeof(double);
}

static void swiglu_forward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *gate = call->scratch, *up = gate + columns;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, GATE, t, gate);
        fr_load_input(call, UP, t, up);
        for (int64_t c = 0; c < columns; c++)
            gate[c] *= fr_sigmoid(gate[c]) * up[c];
        fr_store_output(call, 0, t, gate);
    }
}

static void swiglu_backward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *gate = call->scratch, *up = gate + columns, *dy = up + columns;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, GATE, t, gate);
        fr_load_input(call, UP, t, up);
        fr_load_grad(call, 0, t, dy);
        for (int64_t c = 0; c < columns; c++) {
            double s = fr_sigmoid(gate[c]), silu = gate[c] * s;
            gate[c] = dy[c] * up[c] * s * (1 + gate[c] * (1 - s));
            up[c] = dy[c] * silu;
        }
        fr_store_grad(call, GATE, t, gate);
        fr_store_grad(call, UP, t, up);
    }
}

const fr_op fr_op_swiglu = {
    .name = "swiglu",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = swiglu_infer,
    .continues = true,
    .keeps_inputs = 3,
    .reference = {{"swiglu", FR_FORWARD, "swiglu_forward_reference", swiglu_forward, swiglu_scratch, NULL},
                  {"swiglu", FR_BACKWARD, "swiglu_backward_reference", swiglu_backward, swiglu_scratch,
                   NULL}},
};

fr_tensor *fr_swiglu(fr_graph *g, fr_tensor *gate, fr_tensor *up)
{
    return fr_apply(g, &fr_op_swiglu, (fr_tensor *[]){gate, up}, 2, NULL, 0);
}
