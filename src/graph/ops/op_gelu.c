/* gelu: the smooth activation of GPT-2, in its tanh form.
 *
 *     out = x/2 (1 + tanh(u)) ;  u = sqrt(2/pi) (x + 0.044715 x^3)
 *     d x = d out (1/2 (1 + tanh u) + x/2 (1 - tanh^2 u) sqrt(2/pi) (1 + 3 * 0.044715 x^2))
 */
#include "graph/ops/ops.h"

#include <math.h>

#define SQRT_2_OVER_PI 0.79788456080286535588
#define CUBIC 0.044715

static fr_status gelu_infer(fr_node *node, fr_error *error)
{
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, node->in[0]->columns, error));
    fr_node_output(node, 0, FR_KIND_ACTIVATION, FR_TOKENS, node->in[0]->columns);
    return FR_OK;
}

static size_t gelu_scratch(const fr_call *call)
{
    return 2 * (size_t)call->node->in[0]->columns * sizeof(double);
}

static double inner_tanh(double x)
{
    return tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
}

static void gelu_forward(const fr_call *call)
{
    int64_t columns = call->node->in[0]->columns;
    double *x = call->scratch;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        for (int64_t c = 0; c < columns; c++)
            x[c] *= 0.5 * (1 + inner_tanh(x[c]));
        fr_store_output(call, 0, t, x);
    }
}

static double slope(double x)
{
    double h = inner_tanh(x);
    return 0.5 * (1 + h) + 0.5 * x * (1 - h * h) * SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
}

static void gelu_backward(const fr_call *call)
{
    int64_t columns = call->node->in[0]->columns;
    double *x = call->scratch, *dy = x + columns;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        fr_load_grad(call, 0, t, dy);
        for (int64_t c = 0; c < columns; c++)
            dy[c] *= slope(x[c]);
        fr_store_grad(call, 0, t, dy);
    }
}

const fr_op fr_op_gelu = {
    .name = "gelu",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .infer = gelu_infer,
    .continues = true,
    .keeps_inputs = 1,
    .reference = {{"gelu", FR_FORWARD, "gelu_forward_reference", gelu_forward, gelu_scratch, NULL},
                  {"gelu", FR_BACKWARD, "gelu_backward_reference", gelu_backward, gelu_scratch, NULL}},
};

fr_tensor *fr_gelu(fr_graph *g, fr_tensor *x)
{
    return fr_apply(g, &fr_op_gelu, (fr_tensor *[]){x}, 1, NULL, 0);
}
