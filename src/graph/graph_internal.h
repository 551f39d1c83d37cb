/* The inside of a graph, shared by the files that build it and the files that read it.
 *
 * Everything a graph owns lives in its arena. Nodes and tensors never move once made (the arrays hold
 * pointers), so plans and kernels may keep addresses for as long as the graph lives. The first mistake made
 * while building is kept; from then on operators return `dead`, whose producer has `dead` as every output,
 * so that model code may go on reading producer->out[1].
 */
#ifndef FRONTIER_GRAPH_INTERNAL_H
#define FRONTIER_GRAPH_INTERNAL_H
#include "frontier/graph.h"

struct fr_graph {
    fr_arena arena;
    fr_node **nodes;
    int node_count, node_capacity;
    fr_tensor **tensors;
    int tensor_count, tensor_capacity;
    fr_parameter_info *parameters;
    int parameter_count, parameter_capacity;
    int64_t parameter_elements, flat_elements;
    fr_error mistake; /* status FR_OK while there is none */
    fr_tensor dead;
    fr_node dead_node;
};

#define FR_MAX_ELEMENTS                                                                                      \
    ((int64_t)1 << 40)   /* of one tensor: 4 TiB of fp32, far beyond any machine this is for */
#define FR_FLAT_ALIGN 16 /* elements between parameter offsets: 64 bytes of fp32 */

/* The array with room for one more item, or NULL after a mistake. It lives in the graph's arena. */
void *fr_graph_grow(fr_graph *graph, void *array, int *capacity, int count, size_t item_bytes);
/* A registered tensor with a copy of `name`, or NULL after a mistake. */
fr_tensor *fr_graph_tensor(fr_graph *graph, const char *name, fr_kind kind, int64_t rows, int64_t columns);
bool fr_graph_is_dead(const fr_graph *graph);

#endif
