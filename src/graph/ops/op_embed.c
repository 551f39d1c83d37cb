/* embed: row ids[t] of a table for every token.
 *
 *     out[t] = table[ids[t]]                 table rows x C, ids tokens x 1
 *     d table[ids[t]] += d out[t]            summed in token order, so the result never depends on threads
 */
#include "graph/ops/ops.h"

static fr_status embed_infer(fr_node *node, fr_error *error)
{
    const fr_tensor *table = node->in[0], *ids = node->in[1];
    if (ids->kind != FR_KIND_IDS)
        return fr_error_set(error, FR_BAD_USAGE, ids->name, "declare it with fr_input_ids",
                            "input 1 of embed must be token ids");
    if (table->rows == FR_TOKENS)
        return fr_error_set(error, FR_BAD_USAGE, table->name, NULL,
                            "the table of embed must have a fixed number of rows");
    fr_node_output(node, 0, FR_KIND_STREAM, FR_TOKENS, table->columns);
    return FR_OK;
}

static void embed_ids_range(const fr_node *node, int input, int64_t *least, int64_t *most)
{
    (void)input;
    *least = 0;
    *most = node->in[0]->rows - 1;
}

static size_t embed_scratch(const fr_call *call)
{
    return (size_t)call->node->out[0]->columns * sizeof(double);
}

static void embed_forward(const fr_call *call)
{
    const int32_t *ids = call->in[1];
    double *row = call->scratch;
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, ids[t], row);
        fr_store_output(call, 0, t, row);
    }
}

static void embed_backward(const fr_call *call)
{
    const fr_tensor *table = call->node->in[0];
    const int32_t *ids = call->in[1];
    double *row = call->scratch;
    fr_zero(row, table->columns);
    for (int64_t i = 0; i < table->rows && !call->accumulate[0]; i++)
        fr_store_grad(call, 0, i, row);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_grad(call, 0, t, row);
        fr_store_doubles(call->grad_in[0], call->in_dtype[0], ids[t] * table->columns, table->columns, row,
                         true);
    }
}

const fr_op fr_op_embed = {
    .name = "embed",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = embed_infer,
    .continues = true,
    .no_gradient = 1u << 1,
    .ids_range = embed_ids_range,
    .reference = {{"embed", FR_FORWARD, "embed_forward_reference", embed_forward, embed_scratch, NULL},
                  {"embed", FR_BACKWARD, "embed_backward_reference", embed_backward, embed_scratch, NULL}},
};

fr_tensor *fr_embed(fr_graph *g, fr_tensor *table, fr_tensor *ids)
{
    return fr_apply(g, &fr_op_embed, (fr_tensor *[]){table, ids}, 2, NULL, 0);
}
