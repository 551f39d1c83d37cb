/* A few words in which a validation kernel is written: tiles, loads, products. A kernel is a C function that issues
 * instructions of the simulated core with computing switched off: only rules, cost and time. After the first failure
 * everything else does nothing; lab.error says what it was. */
#ifndef NEURON_VALIDATION_LAB_H
#define NEURON_VALIDATION_LAB_H
#include "frontier/neuron.h"

#include <string.h>

typedef struct lab {
    fr_neuron *core;
    fr_status status;
    fr_error error;
} lab;
typedef fr_neuron_tensor *tile;

static tile new_tensor(lab *l, fr_neuron_memory memory, fr_neuron_dtype dtype, int64_t rows, int64_t columns)
{
    tile t = NULL;
    fr_neuron_layout layout = {.memory = memory, .dtype = dtype, .dims = 2, .shape = {rows, columns}};
    if (l->status == FR_OK)
        l->status = fr_neuron_tensor_create(&t, l->core, layout, &l->error);
    return t;
}

static tile sbuf(lab *l, fr_neuron_dtype dtype, int64_t partitions, int64_t columns)
{
    return new_tensor(l, FR_NEURON_SBUF, dtype, partitions, columns);
}

static tile psum(lab *l, int64_t partitions, int64_t columns)
{
    return new_tensor(l, FR_NEURON_PSUM, FR_NEURON_FLOAT32, partitions, columns);
}

static tile hbm(lab *l, fr_neuron_dtype dtype, int64_t rows, int64_t columns)
{
    return new_tensor(l, FR_NEURON_HBM, dtype, rows, columns);
}

static void drop(lab *l, tile t)
{
    if (t)
        fr_neuron_tensor_release(l->core, t);
}

/* All of a tensor; columns [column, column + columns) of it; a rectangle of it. */
static fr_neuron_view all(tile t)
{
    return t ? fr_neuron_view_of(t) : (fr_neuron_view){0};
}

static fr_neuron_view cut(tile t, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    fr_neuron_view v = all(t);
    if (!t)
        return v;
    int64_t width = fr_neuron_tensor_layout(t)->shape[1];
    if (v.partitions) {
        v.partition = (int16_t)row;
        v.partitions = (int16_t)rows;
        v.dims = 1;
        v.offset = column;
        v.size[0] = columns;
        v.stride[0] = 1;
    } else {
        v.dims = 2;
        v.offset = row * width + column;
        v.size[0] = rows;
        v.stride[0] = width;
        v.size[1] = columns;
        v.stride[1] = 1;
    }
    return v;
}

static fr_neuron_view columns_of(tile t, int64_t column, int64_t columns)
{
    return cut(t, 0, t ? fr_neuron_tensor_layout(t)->shape[0] : 0, column, columns);
}

/* ---- instructions ------------------------------------------------------------------------------------ */

static fr_neuron_call call_of(lab *l, const char *name)
{
    fr_neuron_call call = {0};
    if (l->status == FR_OK)
        call = fr_neuron_call_of(name);
    if (l->status == FR_OK && !call.instruction)
        l->status = fr_error_set(&l->error, FR_BUG, name, NULL, "no such instruction");
    return call;
}

static void give(lab *l, fr_neuron_call *call, const char *name, fr_neuron_view view)
{
    if (l->status == FR_OK && !fr_neuron_call_view(call, name, view))
        l->status = fr_error_set(&l->error, FR_BUG, name, NULL, "no such operand");
}

static void set(lab *l, fr_neuron_call *call, const char *name, double number)
{
    if (l->status == FR_OK && !fr_neuron_call_number(call, name, number))
        l->status = fr_error_set(&l->error, FR_BUG, name, NULL, "no such argument");
}

static void issue(lab *l, const fr_neuron_call *call)
{
    if (l->status == FR_OK)
        l->status = fr_neuron_issue(l->core, call, &l->error);
}

static void copy(lab *l, fr_neuron_view dst, fr_neuron_view src)
{
    fr_neuron_call c = call_of(l, "dma_copy");
    give(l, &c, "dst", dst);
    give(l, &c, "src", src);
    issue(l, &c);
}

static void move(lab *l, fr_neuron_view dst, fr_neuron_view src)
{
    fr_neuron_call c = call_of(l, "tensor_copy");
    give(l, &c, "dst", dst);
    give(l, &c, "src", src);
    issue(l, &c);
}

static void fill(lab *l, fr_neuron_view dst)
{
    fr_neuron_call c = call_of(l, "memset");
    give(l, &c, "dst", dst);
    set(l, &c, "value", 0);
    issue(l, &c);
}

static void product(lab *l, fr_neuron_view dst, fr_neuron_view stationary, fr_neuron_view moving, bool accumulate)
{
    fr_neuron_call c = call_of(l, "nc_matmul");
    give(l, &c, "dst", dst);
    give(l, &c, "stationary", stationary);
    give(l, &c, "moving", moving);
    set(l, &c, "accumulate", accumulate);
    issue(l, &c);
}

/* A transpose by Tensor: the identity moves past the tile. */
static void turn(lab *l, fr_neuron_view dst, fr_neuron_view src, fr_neuron_view identity)
{
    fr_neuron_call c = call_of(l, "nc_matmul");
    give(l, &c, "dst", dst);
    give(l, &c, "stationary", src);
    give(l, &c, "moving", identity);
    set(l, &c, "is_moving_onezero", 1);
    set(l, &c, "is_transpose", 1);
    issue(l, &c);
}

static void both(lab *l, fr_neuron_view dst, fr_neuron_view a, fr_neuron_view b, fr_neuron_operator op)
{
    fr_neuron_call c = call_of(l, "tensor_tensor");
    give(l, &c, "dst", dst);
    give(l, &c, "data1", a);
    give(l, &c, "data2", b);
    set(l, &c, "op", op);
    issue(l, &c);
}

static void number(lab *l, fr_neuron_view dst, fr_neuron_view a, fr_neuron_operator op)
{
    fr_neuron_call c = call_of(l, "tensor_scalar");
    give(l, &c, "dst", dst);
    give(l, &c, "data", a);
    set(l, &c, "op0", op);
    set(l, &c, "operand0", 2);
    issue(l, &c);
}

static void scale_rows(lab *l, fr_neuron_view dst, fr_neuron_view a, fr_neuron_view factors)
{
    fr_neuron_call c = call_of(l, "tensor_scalar");
    give(l, &c, "dst", dst);
    give(l, &c, "data", a);
    set(l, &c, "op0", FR_NEURON_MULTIPLY);
    give(l, &c, "operand0", factors);
    issue(l, &c);
}

static void inverse(lab *l, fr_neuron_view dst, fr_neuron_view a)
{
    fr_neuron_call c = call_of(l, "reciprocal");
    give(l, &c, "dst", dst);
    give(l, &c, "data", a);
    issue(l, &c);
}

static void function(lab *l, fr_neuron_view dst, fr_neuron_view a, fr_neuron_function f, const fr_neuron_view *scale)
{
    fr_neuron_call c = call_of(l, "activation");
    give(l, &c, "dst", dst);
    give(l, &c, "data", a);
    set(l, &c, "op", f);
    if (scale)
        give(l, &c, "scale", *scale);
    issue(l, &c);
}

static void sum_rows(lab *l, fr_neuron_view dst, fr_neuron_view a, fr_neuron_operator op)
{
    static const double axis = 1;
    fr_neuron_call c = call_of(l, "tensor_reduce");
    give(l, &c, "dst", dst);
    give(l, &c, "data", a);
    set(l, &c, "op", op);
    for (int i = 0; l->status == FR_OK && i < FR_NEURON_PARAMETERS && c.instruction->parameters[i].name; i++)
        if (strcmp(c.instruction->parameters[i].name, "axis") == 0)
            c.argument[i] = (fr_neuron_argument){.given = true, .number = 1, .numbers = &axis, .count = 1};
    issue(l, &c);
}

static void scan(lab *l, fr_neuron_view dst, fr_neuron_view a, fr_neuron_view b)
{
    fr_neuron_call c = call_of(l, "tensor_tensor_scan");
    give(l, &c, "dst", dst);
    give(l, &c, "data0", a);
    give(l, &c, "data1", b);
    set(l, &c, "initial", 0);
    set(l, &c, "op0", FR_NEURON_MULTIPLY);
    set(l, &c, "op1", FR_NEURON_ADD);
    issue(l, &c);
}
#endif
