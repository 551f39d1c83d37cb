/* Reading and writing what views mean, a partition at a time.
 *
 * A pattern is a view in bytes with its dimensions merged: most become one contiguous run, and everything
 * below has a path for that. The rest is walked (walk.c). */
#include "neuron/core.h"
#include "neuron/walk.h"

#include <string.h>

/* ---- patterns ------------------------------------------------------------------------------------ */

/* Drops sizes of one and merges a dimension with the next inner one where it continues it. */
void fr_neuron_merge(fr_neuron_pattern *pattern, const int64_t *stride, const int64_t *size, int dims)
{
    int n = 0;
    pattern->elements = 1;
    for (int i = 0; i < dims; i++) {
        pattern->elements *= size[i];
        if (size[i] == 1)
            continue;
        int64_t bytes = stride[i];
        if (n > 0 && pattern->stride[n - 1] == bytes * size[i]) {
            pattern->size[n - 1] *= size[i];
            pattern->stride[n - 1] = bytes;
            continue;
        }
        pattern->size[n] = size[i];
        pattern->stride[n++] = bytes;
    }
    if (n == 0) {
        pattern->size[0] = 1;
        pattern->stride[0] = pattern->width;
        n = 1;
    }
    pattern->dims = n;
    pattern->contiguous = n == 1 && pattern->stride[0] == pattern->width;
}

fr_neuron_lanes fr_neuron_lanes_of(const fr_neuron *core, const fr_neuron_view *view)
{
    (void)core;
    fr_neuron_view moved;
    if (view->index && !view->whole_rows) {
        moved = fr_neuron_resolved(view);
        view = &moved;
    }
    const fr_neuron_tensor *tensor = view->tensor;
    fr_neuron_lanes lanes = {.pitch = tensor->pitch, .partitions = view->partitions ? view->partitions : 1};
    lanes.dtype = view->dtype;
    lanes.row.width = fr_neuron_dtype_bytes(view->dtype);
    lanes.row.base = tensor->data + view->partition * tensor->pitch + view->offset * lanes.row.width;
    int64_t stride[FR_NEURON_WALK_DIMS];
    for (int i = 0; i < view->dims; i++)
        stride[i] = view->stride[i] * lanes.row.width;
    fr_neuron_merge(&lanes.row, stride, view->size, view->dims);
    return lanes;
}

void fr_neuron_gather(const fr_neuron_pattern *pattern, void *out)
{
    fr_neuron_walk walk;
    fr_neuron_walk_start(&walk, pattern);
    fr_neuron_walk_load(&walk, out, pattern->elements);
}

void fr_neuron_scatter(const fr_neuron_pattern *pattern, const void *in)
{
    fr_neuron_walk walk;
    fr_neuron_walk_start(&walk, pattern);
    fr_neuron_walk_store(&walk, in, pattern->elements);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

const float *fr_neuron_row(const fr_neuron_lanes *lanes, int p, float *scratch)
{
    const fr_neuron_pattern *row = &lanes->row;
    uint8_t *base = row->base + p * lanes->pitch;
    if (row->contiguous) {
        if (lanes->dtype == FR_NEURON_FLOAT32)
            return (const float *)(const void *)base;
        fr_neuron_to_float(scratch, base, lanes->dtype, row->elements);
        return scratch;
    }
    fr_neuron_walk walk;
    fr_neuron_walk_start(&walk, row);
    walk.at = base;
    fr_neuron_walk_read(&walk, lanes->dtype, scratch, row->elements);
    return scratch;
}

void fr_neuron_put_row(const fr_neuron_lanes *lanes, int p, const float *in)
{
    const fr_neuron_pattern *row = &lanes->row;
    uint8_t *base = row->base + p * lanes->pitch;
    if (row->contiguous) {
        if ((const void *)base != (const void *)in)
            fr_neuron_from_float(base, in, lanes->dtype, row->elements);
        return;
    }
    fr_neuron_walk walk;
    fr_neuron_walk_start(&walk, row);
    walk.at = base;
    fr_neuron_walk_write(&walk, lanes->dtype, in, row->elements);
}

const void *fr_neuron_raw(const fr_neuron_lanes *lanes, int p, void *scratch)
{
    fr_neuron_pattern row = lanes->row;
    row.base += p * lanes->pitch;
    if (row.contiguous)
        return row.base;
    fr_neuron_gather(&row, scratch);
    return scratch;
}

void fr_neuron_put_raw(const fr_neuron_lanes *lanes, int p, const void *in)
{
    fr_neuron_pattern row = lanes->row;
    row.base += p * lanes->pitch;
    if (row.contiguous)
        memmove(row.base, in, (size_t)(row.elements * row.width));
    else
        fr_neuron_scatter(&row, in);
}

static bool apart(const fr_neuron_lanes *a, const fr_neuron_lanes *b)
{
    const uint8_t *low[2], *high[2];
    const fr_neuron_lanes *both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        const fr_neuron_pattern *row = &both[i]->row;
        low[i] = high[i] = row->base;
        for (int d = 0; d < row->dims; d++) {
            int64_t span = row->stride[d] * (row->size[d] - 1);
            *(span < 0 ? &low[i] : &high[i]) += span;
        }
        high[i] += (both[i]->partitions - 1) * both[i]->pitch + row->width;
    }
    return high[0] <= low[1] || high[1] <= low[0];
}

static bool same_place(const fr_neuron_lanes *a, const fr_neuron_lanes *b)
{
    return a->row.base == b->row.base && a->pitch == b->pitch && a->row.contiguous && b->row.contiguous &&
           a->row.width == b->row.width && a->row.elements == b->row.elements;
}

bool fr_neuron_direct(const fr_neuron_lanes *out, const fr_neuron_lanes *const *inputs, int count)
{
    if (!out->row.contiguous || out->dtype != FR_NEURON_FLOAT32)
        return false;
    for (int i = 0; i < count; i++)
        if (!same_place(out, inputs[i]) && !apart(out, inputs[i]))
            return false;
    return true;
}

float *fr_neuron_row_out(const fr_neuron_lanes *out, int p, bool direct, float *scratch)
{
    return direct ? (float *)(void *)fr_neuron_lane_base(out, p) : scratch;
}

/* ---- scalars and scratch ------------------------------------------------------------------------- */

fr_neuron_scalars fr_neuron_scalars_of(const fr_neuron *core, const fr_neuron_argument *argument)
{
    fr_neuron_scalars scalars = {.constant = (float)argument->number};
    if (!argument->given || !argument->is_view)
        return scalars;
    if (argument->view.tensor->layout.memory == FR_NEURON_REGISTER) {
        scalars.constant = (float)*fr_neuron_register(argument->view.tensor);
        return scalars;
    }
    scalars.varies = true;
    scalars.lanes = fr_neuron_lanes_of(core, &argument->view);
    return scalars;
}

float fr_neuron_scalar(const fr_neuron_scalars *scalars, int p)
{
    if (!scalars->varies)
        return scalars->constant;
    float value;
    int row = scalars->lanes.partitions == 1 ? 0 : p;
    fr_neuron_to_float(&value, fr_neuron_lane_base(&scalars->lanes, row), scalars->lanes.dtype, 1);
    return value;
}

enum { SCRATCH_BLOCK = 1 << 20 };

void fr_neuron_scratch_reset(fr_neuron *core)
{
    core->scratch_used = 0;
    fr_arena_release(&core->scratch);
}

void *fr_neuron_scratch(fr_neuron *core, int64_t bytes)
{
    if (!core->scratch_block && !(core->scratch_block = fr_allocate(SCRATCH_BLOCK)))
        return NULL;
    int64_t rounded = (bytes + 63) / 64 * 64;
    if (rounded > SCRATCH_BLOCK - core->scratch_used)
        return fr_arena_alloc(&core->scratch, (size_t)rounded);
    void *memory = core->scratch_block + core->scratch_used;
    core->scratch_used += rounded;
    return memory;
}

float *fr_neuron_scratch_row(fr_neuron *core, const fr_neuron_lanes *lanes)
{
    return fr_neuron_scratch(core, lanes->row.elements * (int64_t)sizeof(float));
}
