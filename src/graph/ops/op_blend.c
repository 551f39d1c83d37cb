/* blend: out = a x + b y with scalars a and b, usually trained: how every block mixes the stream with the
 * embedding.
 *
 *     d x = a d out ;  d y = b d out ;  d a = sum of d out * x ;  d b = sum of d out * y
 */
#include "graph/ops/ops.h"

enum { A, X, B, Y };

static fr_status blend_infer(fr_node *node, fr_error *error)
{
    int64_t columns = node->in[X]->columns;
    FR_TRY(fr_node_expect(node, A, 1, 1, error));
    FR_TRY(fr_node_expect(node, B, 1, 1, error));
    FR_TRY(fr_node_expect(node, X, FR_TOKENS, columns, error));
    FR_TRY(fr_node_expect(node, Y, FR_TOKENS, columns, error));
    fr_node_output(node, 0, FR_KIND_STREAM, FR_TOKENS, columns);
    return FR_OK;
}

static size_t blend_scratch(const fr_call *call)
{
    return 3 * (size_t)call->node->out[0]->columns * sizeof(double);
}

static void blend_forward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double a = fr_scalar_input(call, A), b = fr_scalar_input(call, B);
    double *x = call->scratch, *y = x + columns;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, X, t, x);
        fr_load_input(call, Y, t, y);
        for (int64_t c = 0; c < columns; c++)
            x[c] = a * x[c] + b * y[c];
        fr_store_output(call, 0, t, x);
    }
}

/* Adds <d out, input> of one row to *sum and writes factor * d out as the input's gradient. */
static void blend_backward_row(const fr_call *call, int input, int64_t t, double factor, const double *dout,
                               double *row, double *sum)
{
    int64_t columns = call->node->out[0]->columns;
    fr_load_input(call, input, t, row);
    *sum += fr_dot(dout, row, columns);
    for (int64_t c = 0; c < columns; c++)
        row[c] = factor * dout[c];
    fr_store_grad(call, input, t, row);
}

static void blend_backward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double a = fr_scalar_input(call, A), b = fr_scalar_input(call, B), da = 0, db = 0;
    double *dout = call->scratch, *row = dout + columns;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_grad(call, 0, t, dout);
        blend_backward_row(call, X, t, a, dout, row, &da);
        blend_backward_row(call, Y, t, b, dout, row, &db);
    }
    fr_store_grad(call, A, 0, &da);
    fr_store_grad(call, B, 0, &db);
}

const fr_op fr_op_blend = {
    .name = "blend",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 1,
    .infer = blend_infer,
    .continues = true,
    .keeps_inputs = 15,
    .reference = {{"blend", FR_FORWARD, "blend_forward_reference", blend_forward, blend_scratch, NULL},
                  {"blend", FR_BACKWARD, "blend_backward_reference", blend_backward, blend_scratch, NULL}},
};

fr_tensor *fr_blend(fr_graph *g, fr_tensor *a, fr_tensor *x, fr_tensor *b, fr_tensor *y)
{
    return fr_apply(g, &fr_op_blend, (fr_tensor *[]){a, x, b, y}, 4, NULL, 0);
}
