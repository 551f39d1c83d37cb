/* How large a model is and what a token costs, in the convention published results use.
 *
 * Parameters are read from the graph, so no count is written twice. FLOPs per token, forward and backward:
 *     6 M + sum over blocks of 12 H d min(w, T)
 * where M counts every weight a matrix product reads (matrices, head, gates) and full attention charges every
 * query min(w, T) keys. The causal figure charges the pairs there are: query i of T sees min(i, w) + 1 keys.
 */
#include "model/model_internal.h"

#include <string.h>

static bool in_group(const fr_parameter_info *info, const char *group)
{
    return strcmp(info->group, group) == 0;
}

static void count_parameters(const fr_graph *graph, fr_model_size *size)
{
    for (int i = 0; i < fr_graph_parameters(graph); i++) {
        const fr_parameter_info *info = fr_graph_parameter(graph, i);
        int64_t elements = info->rows * info->columns;
        bool scalar = in_group(info, "scalar") || in_group(info, "resid") || in_group(info, "x0");
        if (in_group(info, "matrix") || in_group(info, "head") ||
            strcmp(info->name, "smear_gate.weight") == 0)
            size->matmul_params += elements;
        if (in_group(info, "value"))
            size->value_params += elements;
        if (scalar)
            size->scalars += elements;
        size->params += elements;
    }
}

/* Query-key pairs of one row of T tokens in which a query sees `window` tokens to its left and itself. */
static double causal_pairs(int64_t T, int64_t window)
{
    int64_t w = window < T ? window : T - 1;
    return (double)(w + 1) * (double)(w + 2) / 2 + (double)(T - w - 1) * (double)(w + 1);
}

static void count_flops(const fr_recipe *recipe, fr_model_size *size)
{
    int64_t T = recipe->model.context;
    double per_key =
        12 * (double)fr_recipe_width(recipe); /* 12 H d: two products, two operations, three passes */
    size->flops_per_token = size->flops_per_token_causal = 6 * (double)size->matmul_params;
    for (int64_t i = 0; i < recipe->model.depth; i++) {
        int64_t window = fr_recipe_window(recipe, i);
        size->flops_per_token += per_key * (double)(window < T ? window : T);
        size->flops_per_token_causal += per_key * causal_pairs(T, window) / (double)T;
    }
}

fr_status fr_model_measure(const fr_recipe *recipe, int64_t vocab, fr_model_size *size, fr_error *error)
{
    fr_graph *graph = fr_graph_create(error);
    if (!graph)
        return FR_BAD_ENVIRONMENT;
    memset(size, 0, sizeof *size);
    fr_status status = fr_model_build(graph, recipe, vocab, error);
    if (status == FR_OK) {
        count_parameters(graph, size);
        const fr_tensor *table = fr_graph_find(graph, "transformer.wte.weight");
        if (recipe->model.tied) /* the table is also the head */
            size->matmul_params += table->rows * table->columns;
        count_flops(recipe, size);
    }
    fr_graph_free(graph);
    return status;
}
