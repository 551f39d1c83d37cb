/* Building and reading a graph.
 *
 * Building is a conversation that must not be interrupted: model code calls one operator after the other
 * and never looks at a status. So the first mistake (a wrong shape, a name used twice, memory gone) is
 * written into the graph, and from there on every call returns the same dead tensor and changes nothing.
 * Asking fr_graph_check once at the end gives the first mistake, which is the one that matters.
 *
 * Building order is topological order, because an operator can only be applied to tensors that exist. All
 * readers (plans, cost models, exporters) rely on this.
 */
#include "graph/graph_internal.h"

#include <string.h>

fr_graph *fr_graph_create(fr_error *error)
{
    fr_graph *graph = fr_allocate(sizeof *graph);
    if (!graph) {
        fr_error_memory(error, sizeof *graph, "a graph");
        return NULL;
    }
    fr_arena_init(&graph->arena, 64 << 10);
    graph->dead = (fr_tensor){
        .name = "(dead)", .id = -1, .rows = 1, .columns = 1, .parameter = -1, .producer = &graph->dead_node};
    graph->dead_node.index = -1;
    for (int i = 0; i < FR_MAX_OUTPUTS; i++)
        graph->dead_node.out[i] = &graph->dead;
    return graph;
}

void fr_graph_free(fr_graph *graph)
{
    if (!graph)
        return;
    fr_arena_release(&graph->arena);
    fr_deallocate(graph);
}

fr_status fr_graph_check(const fr_graph *graph, fr_error *error)
{
    if (error && graph->mistake.status != FR_OK)
        *error = graph->mistake;
    return graph->mistake.status;
}

fr_arena *fr_graph_arena(fr_graph *graph)
{
    return &graph->arena;
}

bool fr_graph_is_dead(const fr_graph *graph)
{
    return graph->mistake.status != FR_OK;
}

void *fr_graph_grow(fr_graph *graph, void *array, int *capacity, int count, size_t item_bytes)
{
    if (count < *capacity)
        return array;
    int wanted = *capacity ? *capacity * 2 : 64;
    void *bigger = fr_arena_alloc(&graph->arena, (size_t)wanted * item_bytes);
    if (!bigger) {
        fr_error_memory(&graph->mistake, (size_t)wanted * item_bytes, "a graph");
        return NULL;
    }
    if (count)
        memcpy(bigger, array, (size_t)count * item_bytes);
    *capacity = wanted;
    return bigger;
}

/* ---- tensors and names ---- */

fr_tensor *fr_graph_find(const fr_graph *graph, const char *name)
{
    for (int i = 0; i < graph->tensor_count; i++)
        if (strcmp(graph->tensors[i]->name, name) == 0)
            return graph->tensors[i];
    return NULL;
}

/* A copy of a new name, or NULL after recording why it cannot be one. */
static const char *claim_name(fr_graph *graph, const char *name)
{
    if (!name || !*name) {
        fr_error_set(&graph->mistake, FR_BAD_USAGE, "graph", NULL, "a tensor needs a name that is not empty");
        return NULL;
    }
    if (fr_graph_find(graph, name)) {
        fr_error_set(&graph->mistake, FR_BAD_USAGE, name, "give each tensor its own name",
                     "two tensors have this name");
        return NULL;
    }
    const char *copy = fr_arena_strdup(&graph->arena, name);
    if (!copy)
        fr_error_memory(&graph->mistake, strlen(name) + 1, "a tensor's name");
    return copy;
}

fr_tensor *fr_graph_tensor(fr_graph *graph, const char *name, fr_kind kind, int64_t rows, int64_t columns)
{
    const char *copy = claim_name(graph, name);
    fr_tensor **tensors = copy ? fr_graph_grow(graph, graph->tensors, &graph->tensor_capacity,
                                               graph->tensor_count, sizeof *tensors)
                               : NULL;
    if (!tensors)
        return NULL;
    graph->tensors = tensors;
    fr_tensor *tensor = fr_arena_alloc(&graph->arena, sizeof *tensor);
    if (!tensor) {
        fr_error_memory(&graph->mistake, sizeof *tensor, "a tensor");
        return NULL;
    }
    *tensor = (fr_tensor){.name = copy,
                          .id = graph->tensor_count,
                          .kind = kind,
                          .rows = rows,
                          .columns = columns,
                          .parameter = -1};
    graph->tensors[graph->tensor_count++] = tensor;
    return tensor;
}

fr_tensor *fr_name(fr_graph *graph, fr_tensor *tensor, const char *name)
{
    if (fr_graph_is_dead(graph) || !tensor)
        return &graph->dead;
    if (!tensor->producer) {
        fr_error_set(&graph->mistake, FR_BAD_USAGE, tensor->name, NULL,
                     "inputs and parameters keep the name they were declared with");
        return &graph->dead;
    }
    const char *copy = claim_name(graph, name);
    if (!copy)
        return &graph->dead;
    tensor->name = copy;
    return tensor;
}

/* Declaring an input again gives the same tensor: operators that need "loss_scale" need not agree who
 * declares it. */
static fr_tensor *declare_input(fr_graph *graph, const char *name, fr_kind kind, int64_t rows)
{
    if (fr_graph_is_dead(graph))
        return &graph->dead;
    fr_tensor *known = name ? fr_graph_find(graph, name) : NULL;
    if (known && !known->producer && known->kind == kind && known->rows == rows)
        return known;
    fr_tensor *tensor = fr_graph_tensor(graph, name, kind, rows, 1);
    return tensor ? tensor : &graph->dead;
}

fr_tensor *fr_input_ids(fr_graph *graph, const char *name)
{
    return declare_input(graph, name, FR_KIND_IDS, FR_TOKENS);
}

fr_tensor *fr_input_scalar(fr_graph *graph, const char *name)
{
    return declare_input(graph, name, FR_KIND_STATISTIC, 1);
}

/* ---- applying operators ---- */

static fr_status check_inputs(const fr_graph *graph, const fr_op *op, fr_tensor *const *inputs, int count,
                              fr_error *error)
{
    if (count < op->min_inputs || count > op->max_inputs || count > FR_MAX_INPUTS)
        return fr_error_set(error, FR_BAD_USAGE, op->name, NULL, "takes %d to %d inputs, got %d",
                            op->min_inputs, op->max_inputs, count);
    for (int i = 0; i < count; i++) {
        const fr_tensor *tensor = inputs[i];
        if (!tensor && i >= op->min_inputs)
            continue;
        if (!tensor || tensor->id < 0 || tensor->id >= graph->tensor_count ||
            graph->tensors[tensor->id] != tensor)
            return fr_error_set(error, FR_BAD_USAGE, op->name, NULL, "input %d is not a tensor of this graph",
                                i);
        if (tensor->kind == FR_KIND_IDS && !(op->no_gradient >> i & 1))
            return fr_error_set(error, FR_BAD_USAGE, op->name, NULL, "input %d cannot be the ids '%s'", i,
                                tensor->name);
    }
    return FR_OK;
}

static fr_node *new_node(fr_graph *graph, const fr_op *op, fr_tensor *const *inputs, int count,
                         const void *attributes, size_t bytes)
{
    fr_node *node = fr_arena_alloc(&graph->arena, sizeof *node);
    void *copy = bytes ? fr_arena_alloc(&graph->arena, bytes) : NULL;
    if (!node || (bytes && !copy)) {
        fr_error_memory(&graph->mistake, sizeof *node + bytes, "a graph node");
        return NULL;
    }
    if (bytes)
        memcpy(copy, attributes, bytes);
    *node = (fr_node){
        .op = op, .index = graph->node_count, .inputs = count, .outputs = op->outputs, .attributes = copy};
    for (int i = 0; i < count; i++)
        node->in[i] = inputs[i];
    return node;
}

/* Output 0 is "op:index", the others "op:index.1", "op:index.2". */
static bool new_outputs(fr_graph *graph, fr_node *node)
{
    for (int i = 0; i < node->outputs; i++) {
        char name[96], suffix[16] = "";
        if (i)
            snprintf(suffix, sizeof suffix, ".%d", i);
        snprintf(name, sizeof name, "%.60s:%d%s", node->op->name, node->index, suffix);
        node->out[i] = fr_graph_tensor(graph, name, FR_KIND_ACTIVATION, 0, 0);
        if (!node->out[i])
            return false;
        node->out[i]->producer = node;
        node->out[i]->output_index = i;
    }
    return true;
}

static fr_status check_outputs(const fr_node *node, fr_error *error)
{
    for (int i = 0; i < node->outputs; i++) {
        const fr_tensor *out = node->out[i];
        if ((out->rows != FR_TOKENS && out->rows < 1) || out->columns < 1 ||
            out->columns > FR_MAX_ELEMENTS / (out->rows < 1 ? 1 : out->rows))
            return fr_error_set(error, FR_BAD_USAGE, out->name, NULL,
                                "the operator inferred the shape %lld x %lld", (long long)out->rows,
                                (long long)out->columns);
    }
    return FR_OK;
}

fr_tensor *fr_apply(fr_graph *graph, const fr_op *op, fr_tensor *const *inputs, int count,
                    const void *attributes, size_t attribute_bytes)
{
    if (fr_graph_is_dead(graph) || check_inputs(graph, op, inputs, count, &graph->mistake) != FR_OK)
        return &graph->dead;
    fr_node *node = new_node(graph, op, inputs, count, attributes, attribute_bytes);
    if (!node || !new_outputs(graph, node))
        return &graph->dead;
    fr_status status = op->infer(node, &graph->mistake);
    if (status == FR_OK)
        status = check_outputs(node, &graph->mistake);
    if (status != FR_OK) {
        graph->mistake.status = fr_error_within(&graph->mistake, status, node->out[0]->name);
        return &graph->dead;
    }
    fr_node **nodes =
        fr_graph_grow(graph, graph->nodes, &graph->node_capacity, graph->node_count, sizeof *nodes);
    if (!nodes)
        return &graph->dead;
    graph->nodes = nodes;
    graph->nodes[graph->node_count++] = node;
    return node->out[0];
}

/* ---- help for `infer` ---- */

static const char *rows_text(int64_t rows, char *out, size_t size)
{
    if (rows == FR_TOKENS)
        snprintf(out, size, "tokens");
    else
        snprintf(out, size, "%lld", (long long)rows);
    return out;
}

fr_status fr_node_expect(const fr_node *node, int input, int64_t rows, int64_t columns, fr_error *error)
{
    const fr_tensor *tensor = node->in[input];
    if (tensor->rows == rows && tensor->columns == columns)
        return FR_OK;
    char got[24], want[24];
    return fr_error_set(error, FR_BAD_USAGE, tensor->name, NULL,
                        "input %d of %s is %s x %lld, it must be %s x %lld", input, node->op->name,
                        rows_text(tensor->rows, got, sizeof got), (long long)tensor->columns,
                        rows_text(rows, want, sizeof want), (long long)columns);
}

void fr_node_output(fr_node *node, int output, fr_kind kind, int64_t rows, int64_t columns)
{
    node->out[output]->kind = kind;
    node->out[output]->rows = rows;
    node->out[output]->columns = columns;
}

/* ---- reading ---- */

int fr_graph_nodes(const fr_graph *graph)
{
    return graph->node_count;
}

const fr_node *fr_graph_node(const fr_graph *graph, int index)
{
    return graph->nodes[index];
}
