/* embed_positions: adds a trained vector for the position of every token, as GPT-2 does.
 *
 *     out[t] = x[t] + table[position(t)]          position = index within the row
 *     d x = d out ;  d table[p] = sum of d out over the rows, in order; zero for positions beyond T
 */
#include "graph/ops/ops.h"

static fr_status embed_positions_infer(fr_node *node, fr_error *error)
{
    const fr_tensor *x = node->in[0], *table = node->in[1];
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, x->columns, error));
    if (table->rows == FR_TOKENS)
        return fr_error_set(error, FR_BAD_USAGE, table->name, NULL,
                            "the table of embed_positions must have a fixed number of rows");
    FR_TRY(fr_node_expect(node, 1, table->rows, x->columns, error));
    fr_node_output(node, 0, FR_KIND_STREAM, FR_TOKENS, x->columns);
    return FR_OK;
}

static fr_status embed_positions_check_extent(const fr_node *node, fr_extent extent, fr_error *error)
{
    const fr_tensor *table = node->in[1];
    if (extent.T <= table->rows)
        return FR_OK;
    return fr_error_set(error, FR_BAD_USAGE, table->name, "use shorter rows",
                        "rows of %lld tokens, but the table has %lld positions", (long long)extent.T,
                        (long long)table->rows);
}

/* Padding behind a sequence may stand beyond the table. */
static int64_t known_position(const fr_call *call, int64_t t)
{
    int64_t position = fr_call_position(call, t), last = call->node->in[1]->rows - 1;
    return position < last ? position : last;
}

static size_t embed_positions_scratch(const fr_call *call)
{
    return 2 * (size_t)call->node->out[0]->columns * sizeof(double);
}

static void embed_positions_forward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns;
    double *x = call->scratch, *position = x + columns;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        fr_load_input(call, 1, known_position(call, t), position);
        fr_axpy(x, 1, position, columns);
        fr_store_output(call, 0, t, x);
    }
}

static void embed_positions_backward(const fr_call *call)
{
    int64_t columns = call->node->out[0]->columns, T = call->extent.T;
    double *sum = call->scratch, *dy = sum + columns;
    for (int64_t t = 0; t < call->tokens && call->grad_in[0]; t++) {
        fr_load_grad(call, 0, t, dy);
        fr_store_grad(call, 0, t, dy);
    }
    for (int64_t p = 0; p < call->node->in[1]->rows && call->grad_in[1]; p++) {
        fr_zero(sum, columns);
        for (int64_t t = p; p < T && t < call->tokens; t += T) {
            fr_load_grad(call, 0, t, dy);
            fr_axpy(sum, 1, dy, columns);
        }
        fr_store_grad(call, 1, p, sum);
    }
}

const fr_op fr_op_embed_positions = {
    .name = "embed_positions",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = embed_positions_infer,
    .continues = true,
    .check_extent = embed_positions_check_extent,
    .reference = {{"embed_positions", FR_FORWARD, "embed_positions_forward_reference",
                   embed_positions_forward, embed_positions_scratch, NULL},
                  {"embed_positions", FR_BACKWARD, "embed_positions_backward_reference",
                   embed_positions_backward, embed_positions_scratch, NULL}},
};

fr_tensor *fr_embed_positions(fr_graph *g, fr_tensor *x, fr_tensor *table)
{
    return fr_apply(g, &fr_op_embed_positions, (fr_tensor *[]){x, table}, 2, NULL, 0);
}
