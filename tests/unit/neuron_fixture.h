/* A core for tests: a machine of a name, tiles with contents, calls in a few words. */
#ifndef NEURON_FIXTURE_H
#define NEURON_FIXTURE_H
#include "frontier/neuron.h"
#include "test.h"

typedef struct neuron_fixture {
    fr_neuron_machine machine;
    fr_neuron *core;
    fr_error error;
} neuron_fixture;

static inline void neuron_begin(neuron_fixture *f, const char *machine)
{
    char path[64];
    memset(f, 0, sizeof *f);
    snprintf(path, sizeof path, "machines/%s.toml", machine);
    if (fr_neuron_machine_load(&f->machine, path, &f->error) != FR_OK ||
        fr_neuron_create(&f->core, &f->machine, 2, &f->error) != FR_OK) {
        test_fail_format(__FILE__, __LINE__, "%s: %s", f->error.where, f->error.what);
        exit(1);
    }
    fr_neuron_at(f->core, "kernel.py", 7);
}

static inline void neuron_end(neuron_fixture *f)
{
    fr_neuron_free(f->core);
}

static inline fr_neuron_tensor *neuron_tensor(neuron_fixture *f, fr_neuron_memory memory,
                                              fr_neuron_dtype dtype, int dims, const int64_t *shape)
{
    fr_neuron_layout layout = {.memory = memory, .dtype = dtype, .dims = dims, .name = "t"};
    memcpy(layout.shape, shape, (size_t)dims * sizeof *shape);
    fr_neuron_tensor *tensor = NULL;
    if (fr_neuron_tensor_create(&tensor, f->core, layout, &f->error) != FR_OK)
        test_fail_format(__FILE__, __LINE__, "%s: %s", f->error.where, f->error.what);
    return tensor;
}

/* A matrix [rows, columns]. */
static inline fr_neuron_tensor *neuron_tile(neuron_fixture *f, fr_neuron_memory memory, fr_neuron_dtype dtype,
                                            int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    return neuron_tensor(f, memory, dtype, 2, shape);
}

static inline int64_t neuron_count(const fr_neuron_tensor *tensor)
{
    const fr_neuron_layout *layout = fr_neuron_tensor_layout(tensor);
    int64_t count = 1;
    for (int i = 0; i < layout->dims; i++)
        count *= layout->shape[i];
    return count;
}

static inline void neuron_put(neuron_fixture *f, fr_neuron_tensor *tensor, const float *values)
{
    fr_neuron_dtype dtype = fr_neuron_tensor_layout(tensor)->dtype;
    size_t bytes = (size_t)(neuron_count(tensor) * fr_neuron_dtype_bytes(dtype));
    void *data = malloc(bytes);
    fr_neuron_from_float(data, values, dtype, neuron_count(tensor));
    CHECK_INT(fr_neuron_tensor_write(tensor, data, bytes, &f->error), FR_OK);
    free(data);
}

/* Values from a formula that repeats nowhere near. */
static inline void neuron_fill(neuron_fixture *f, fr_neuron_tensor *tensor, float scale)
{
    int64_t count = neuron_count(tensor);
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = scale * (float)((i * 7919 + 13) % 251 - 125);
    neuron_put(f, tensor, values);
    free(values);
}

/* Contents as fp32; the caller frees. */
static inline float *neuron_get(const fr_neuron_tensor *tensor)
{
    fr_neuron_dtype dtype = fr_neuron_tensor_layout(tensor)->dtype;
    int64_t count = neuron_count(tensor);
    size_t bytes = (size_t)(count * fr_neuron_dtype_bytes(dtype));
    void *data = malloc(bytes);
    float *values = malloc((size_t)count * sizeof *values);
    fr_error error = {0};
    CHECK_INT(fr_neuron_tensor_read(tensor, data, bytes, &error), FR_OK);
    fr_neuron_to_float(values, data, dtype, count);
    free(data);
    return values;
}

/* Rows [first, first + rows) and columns [column, column + columns) of a matrix. */
static inline fr_neuron_view neuron_slice(fr_neuron_tensor *tensor, int64_t first, int64_t rows,
                                          int64_t column, int64_t columns)
{
    fr_neuron_view view = fr_neuron_view_of(tensor);
    int last = view.dims - 1;
    view.size[last] = columns;
    if (view.partitions) {
        view.partition = (int16_t)first;
        view.partitions = (int16_t)rows;
        view.offset = column;
    } else {
        view.size[0] = rows;
        view.offset = first * view.stride[0] + column;
    }
    return view;
}

/* A call whose first arguments are views, in the order of the parameters. */
static inline fr_neuron_call neuron_call(const char *name, int count, const fr_neuron_view *views)
{
    fr_neuron_call call = fr_neuron_call_of(name);
    for (int i = 0; i < count; i++) {
        call.argument[i].given = call.argument[i].is_view = true;
        call.argument[i].view = views[i];
    }
    return call;
}

static inline fr_status neuron_issue(neuron_fixture *f, const fr_neuron_call *call)
{
    f->error = (fr_error){0};
    return fr_neuron_issue(f->core, call, &f->error);
}

static inline fr_status neuron_two(neuron_fixture *f, const char *name, fr_neuron_view dst,
                                   fr_neuron_view src)
{
    const fr_neuron_view views[2] = {dst, src};
    fr_neuron_call call = neuron_call(name, 2, views);
    return neuron_issue(f, &call);
}

#define CHECK_DONE(EXPRESSION)                                                                               \
    do {                                                                                                     \
        fr_status done_ = (EXPRESSION);                                                                      \
        if (done_ != FR_OK)                                                                                  \
            test_fail_format(__FILE__, __LINE__, "%s: %s: %s", #EXPRESSION, f.error.where, f.error.what);    \
    } while (0)
/* Refused by this rule, with place and hint. */
#define CHECK_RULE(EXPRESSION, RULE)                                                                         \
    do {                                                                                                     \
        fr_status refused_ = (EXPRESSION);                                                                   \
        if (refused_ != FR_ANSWER_NO || strncmp(f.error.what, RULE ":", strlen(RULE) + 1) != 0 ||            \
            !f.error.hint[0])                                                                                \
            test_fail_format(__FILE__, __LINE__, "%s: want %s, got %d, '%s'", #EXPRESSION, RULE, refused_,   \
                             f.error.what);                                                                  \
    } while (0)

#endif
