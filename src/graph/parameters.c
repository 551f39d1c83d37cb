/* Parameters: trained matrices, laid end to end in one flat vector.
 *
 * Each starts at a multiple of 16 elements, so that rows of fp32 begin on cache lines and a kernel or an
 * optimizer can treat the whole vector, gaps included, as one long array; gaps stay zero. The initial
 * value of an element depends on the seed, the parameter's name and the element's number and on nothing
 * else: adding a parameter to a model leaves the others' values as they were, and any number of threads
 * may fill them.
 */
#include "graph/graph_internal.h"

#include <math.h>
#include <string.h>

fr_init fr_init_constant(double value)
{
    return (fr_init){.kind = FR_INIT_CONSTANT, .a = value};
}

fr_init fr_init_normal(double deviation)
{
    return (fr_init){.kind = FR_INIT_NORMAL, .a = deviation};
}

fr_init fr_init_uniform(double low, double high)
{
    return (fr_init){.kind = FR_INIT_UNIFORM, .a = low, .b = high};
}

static fr_status check_parameter(const fr_graph *graph, int64_t rows, int64_t columns, fr_init init,
                                 const char *group, fr_error *error)
{
    if (rows < 1 || columns < 1 || columns > FR_MAX_ELEMENTS / rows)
        return fr_error_set(error, FR_BAD_USAGE, NULL, NULL, "a parameter of %lld x %lld elements",
                            (long long)rows, (long long)columns);
    if (graph->flat_elements > FR_MAX_ELEMENTS)
        return fr_error_set(error, FR_BAD_USAGE, NULL, NULL, "more than %lld parameters",
                            (long long)FR_MAX_ELEMENTS);
    if (!group || !*group)
        return fr_error_set(error, FR_BAD_USAGE, NULL, NULL, "a parameter needs an optimizer group");
    if (!isfinite(init.a) || !isfinite(init.b))
        return fr_error_set(error, FR_BAD_USAGE, NULL, NULL, "an initial value that is not finite");
    return FR_OK;
}

fr_tensor *fr_parameter(fr_graph *graph, const char *name, int64_t rows, int64_t columns, fr_init init,
                        const char *group)
{
    if (fr_graph_is_dead(graph))
        return &graph->dead;
    fr_status status = check_parameter(graph, rows, columns, init, group, &graph->mistake);
    if (status != FR_OK) {
        graph->mistake.status = fr_error_within(&graph->mistake, status, name ? name : "parameter");
        return &graph->dead;
    }
    fr_tensor *tensor = fr_graph_tensor(graph, name, FR_KIND_PARAMETER, rows, columns);
    fr_parameter_info *parameters = tensor
                                        ? fr_graph_grow(graph, graph->parameters, &graph->parameter_capacity,
                                                        graph->parameter_count, sizeof *parameters)
                                        : NULL;
    if (!parameters)
        return &graph->dead;
    graph->parameters = parameters;
    char *group_copy = fr_arena_strdup(&graph->arena, group);
    if (!group_copy) {
        fr_error_memory(&graph->mistake, strlen(group) + 1, "a parameter's group");
        return &graph->dead;
    }
    tensor->parameter = graph->parameter_count;
    graph->parameters[graph->parameter_count++] = (fr_parameter_info){.name = tensor->name,
                                                                      .group = group_copy,
                                                                      .rows = rows,
                                                                      .columns = columns,
                                                                      .offset = graph->flat_elements,
                                                                      .init = init,
                                                                      .tensor = tensor};
    graph->parameter_elements += rows * columns;
    graph->flat_elements += (rows * columns + FR_FLAT_ALIGN - 1) / FR_FLAT_ALIGN * FR_FLAT_ALIGN;
    return tensor;
}

int fr_graph_parameters(const fr_graph *graph)
{
    return graph->parameter_count;
}

const fr_parameter_info *fr_graph_parameter(const fr_graph *graph, int index)
{
    return &graph->parameters[index];
}

int64_t fr_graph_parameter_elements(const fr_graph *graph)
{
    return graph->parameter_elements;
}

int64_t fr_graph_flat_elements(const fr_graph *graph)
{
    return graph->flat_elements;
}

/* ---- initial values ---- */

enum { PIECE = 1 << 14 }; /* elements one job fills */

typedef struct filling {
    const fr_graph *graph;
    uint64_t seed;
    float *flat;
} filling;

static double initial_value(const fr_init *init, uint64_t seed, uint64_t stream, uint64_t element)
{
    switch (init->kind) {
    case FR_INIT_NORMAL:
        return init->a * fr_rng_normal_at(seed, stream, element);
    case FR_INIT_UNIFORM:
        return init->a + (init->b - init->a) * fr_rng_uniform_at(seed, stream, element);
    default:
        return init->a;
    }
}

/* Fills the part of one parameter, and of the gap behind it, that lies in [from, to) of the flat vector. */
static void fill_part(const filling *job, const fr_parameter_info *info, int64_t end, int64_t from,
                      int64_t to)
{
    uint64_t stream = fr_hash64(info->name, strlen(info->name), 0);
    int64_t elements = info->rows * info->columns;
    int64_t first = from > info->offset ? from : info->offset, last = to < end ? to : end;
    for (int64_t i = first; i < last; i++) {
        int64_t element = i - info->offset;
        job->flat[i] = element < elements
                           ? (float)initial_value(&info->init, job->seed, stream, (uint64_t)element)
                           : 0.0f;
    }
}

static void fill_piece(void *context, int64_t index, int thread)
{
    (void)thread;
    const filling *job = context;
    const fr_graph *graph = job->graph;
    int64_t from = index * PIECE,
            to = from + PIECE < graph->flat_elements ? from + PIECE : graph->flat_elements;
    for (int p = 0; p < graph->parameter_count; p++) {
        const fr_parameter_info *info = &graph->parameters[p];
        int64_t end = p + 1 < graph->parameter_count ? info[1].offset : graph->flat_elements;
        if (info->offset < to && end > from)
            fill_part(job, info, end, from, to);
    }
}

void fr_graph_initialize(const fr_graph *graph, uint64_t seed, fr_pool *pool, float *flat)
{
    filling job = {graph, seed, flat};
    fr_pool_for(pool, (graph->flat_elements + PIECE - 1) / PIECE, fill_piece, &job);
}
