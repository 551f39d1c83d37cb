/* Copies of weights in the form the products like best.
 *
 * Our own tiles want panels: the copy is the packing of the right operand, done once per change of the
 * weights instead of once per product. oneDNN's bf16 wants bf16 rows. Which weights: those that linear and
 * the heads multiply with. A weight that some consumer multiplies with a tensor that is not bf16 in a bf16
 * plan gets no copy: its products would need another form.
 */
#include "cpu/cpu_internal.h"

#include <string.h>

typedef struct prepared_weight {
    int64_t offset, rows, columns; /* in the flat vector */
    void *copy;
} prepared_weight;

struct fr_prepared {
    const fr_gemm_path *path;
    bool round;
    int parameters, weights;
    const void **table; /* per parameter */
    prepared_weight *weight;
    size_t bytes;
    const float *source; /* during a refresh */
};

static bool multiplies(const fr_node *node)
{
    return strcmp(node->op->name, "linear") == 0 || strcmp(node->op->name, "head_loss") == 0 ||
           strcmp(node->op->name, "head_logits") == 0;
}

/* Is it the weight of products, all of them with activations when those are bf16? */
static bool wanted(const fr_graph *graph, const fr_tensor *parameter, fr_numerics numerics)
{
    bool used = false;
    for (int n = 0; n < fr_graph_nodes(graph); n++) {
        const fr_node *node = fr_graph_node(graph, n);
        if (!multiplies(node) || node->in[1] != parameter)
            continue;
        if (numerics == FR_NUMERICS_BF16 && node->in[0]->kind != FR_KIND_ACTIVATION)
            return false;
        used = true;
    }
    return used;
}

static fr_status add_weight(fr_prepared *prepared, int index, const fr_parameter_info *info, fr_error *error)
{
    prepared_weight *weight = &prepared->weight[prepared->weights];
    size_t bytes = prepared->path->pack_bytes(info->rows, info->columns);
    weight->copy = fr_allocate(bytes);
    if (!weight->copy)
        return fr_error_memory(error, bytes, "prepared weights");
    weight->offset = info->offset;
    weight->rows = info->rows;
    weight->columns = info->columns;
    prepared->table[index] = weight->copy;
    prepared->bytes += bytes;
    prepared->weights++;
    return FR_OK;
}

static fr_status add_weights(fr_prepared *prepared, const fr_graph *graph, fr_numerics numerics,
                             fr_error *error)
{
    int count = prepared->parameters;
    prepared->table = fr_allocate((size_t)count * sizeof *prepared->table + 1);
    prepared->weight = fr_allocate((size_t)count * sizeof *prepared->weight + 1);
    if (!prepared->table || !prepared->weight)
        return fr_error_memory(error, (size_t)count * sizeof *prepared->weight, "prepared weights");
    for (int p = 0; p < count && prepared->path; p++) {
        const fr_parameter_info *info = fr_graph_parameter(graph, p);
        if (wanted(graph, info->tensor, numerics))
            FR_TRY(add_weight(prepared, p, info, error));
    }
    return FR_OK;
}

fr_status fr_prepared_create(fr_prepared **out, const fr_graph *graph, fr_numerics numerics,
                             const fr_kernel_table *kernels, fr_error *error)
{
    fr_prepared *prepared = fr_allocate(sizeof *prepared);
    if (!prepared)
        return fr_error_memory(error, sizeof *prepared, "prepared weights");
    prepared->path = fr_cpu_product_path(kernels, numerics);
    prepared->round = numerics == FR_NUMERICS_BF16;
    prepared->parameters = fr_graph_parameters(graph);
    fr_status status = add_weights(prepared, graph, numerics, error);
    if (status != FR_OK) {
        fr_prepared_free(prepared);
        return status;
    }
    *out = prepared;
    return FR_OK;
}

static void refresh_weight(void *context, int64_t index, int thread)
{
    const fr_prepared *prepared = context;
    const prepared_weight *weight = &prepared->weight[index];
    (void)thread;
    prepared->path->pack(prepared->source + weight->offset, weight->rows, weight->columns, prepared->round,
                         weight->copy);
}

void fr_prepared_refresh(fr_prepared *prepared, const float *parameters, fr_pool *pool)
{
    prepared->source = parameters;
    fr_pool_for(pool, prepared->weights, refresh_weight, prepared);
}

const void *const *fr_prepared_table(const fr_prepared *prepared)
{
    return prepared && prepared->weights ? prepared->table : NULL;
}

size_t fr_prepared_bytes(const fr_prepared *prepared)
{
    return prepared ? prepared->bytes : 0;
}

void fr_prepared_free(fr_prepared *prepared)
{
    if (!prepared)
        return;
    for (int i = 0; i < prepared->weights; i++)
        fr_deallocate(prepared->weight[i].copy);
    fr_deallocate(prepared->weight);
    fr_deallocate(prepared->table);
    fr_deallocate(prepared);
}
