/* Reading and writing what views mean, a partition at a time.
 *
 * A pattern is a view in bytes with its dimensions merged: most become one contiguous run, and everything below has a
 * path for that. The rest is walked by an odometer over the outer dimensions with a tight loop for the innermost, by
 * element width. Rows become fp32 in pieces of a small buffer on the stack, so a strided bf16 column needs no memory of
 * its own. */
#include "neuron/core.h"

#include <string.h>

/* ---- patterns ------------------------------------------------------------------------------------------------- */

/* Drops sizes of one and merges a dimension with the next inner one where it continues it. */
static void merge(fr_neuron_pattern *pattern, const int64_t *stride, const int64_t *size, int dims)
{
    int n = 0;
    pattern->elements = 1;
    for (int i = 0; i < dims; i++) {
        pattern->elements *= size[i];
        if (size[i] == 1)
            continue;
        int64_t bytes = stride[i] * pattern->width;
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
    merge(&lanes.row, view->stride, view->size, view->dims);
    return lanes;
}

static void copy_run(uint8_t *out, int64_t out_stride, const uint8_t *in, int64_t in_stride, int64_t count, int width)
{
    if (out_stride == width && in_stride == width) {
        memcpy(out, in, (size_t)(count * width));
        return;
    }
    switch (width) {
    case 4:
        for (int64_t i = 0; i < count; i++, out += out_stride, in += in_stride)
            memcpy(out, in, 4);
        return;
    case 2:
        for (int64_t i = 0; i < count; i++, out += out_stride, in += in_stride)
            memcpy(out, in, 2);
        return;
    default:
        for (int64_t i = 0; i < count; i++, out += out_stride, in += in_stride)
            *out = *in;
    }
}

typedef struct walk {
    const fr_neuron_pattern *pattern;
    uint8_t *at;                         /* next element */
    int64_t done[FR_NEURON_WALK_DIMS];   /* per dimension */
} walk;

/* Moves the walk by `count` elements of the innermost dimension, carrying outwards at its end. */
static void step(walk *w, int64_t count)
{
    const fr_neuron_pattern *p = w->pattern;
    int d = p->dims - 1;
    w->done[d] += count;
    w->at += count * p->stride[d];
    while (d > 0 && w->done[d] == p->size[d]) {
        w->at += p->stride[d - 1] - p->size[d] * p->stride[d];
        w->done[d--] = 0;
        w->done[d]++;
    }
}

/* The next `count` elements between the walk and contiguous bytes. */
static void transfer(walk *w, uint8_t *bytes, int64_t count, bool write)
{
    const fr_neuron_pattern *p = w->pattern;
    int inner = p->dims - 1;
    while (count > 0) {
        int64_t run = p->size[inner] - w->done[inner];
        run = run < count ? run : count;
        if (write)
            copy_run(w->at, p->stride[inner], bytes, p->width, run, p->width);
        else
            copy_run(bytes, p->width, w->at, p->stride[inner], run, p->width);
        step(w, run);
        bytes += run * p->width;
        count -= run;
    }
}

void fr_neuron_gather(const fr_neuron_pattern *pattern, void *out)
{
    walk w = {.pattern = pattern, .at = pattern->base};
    transfer(&w, out, pattern->elements, false);
}

void fr_neuron_scatter(const fr_neuron_pattern *pattern, const void *in)
{
    walk w = {.pattern = pattern, .at = pattern->base};
    transfer(&w, (uint8_t *)(uintptr_t)in, pattern->elements, true);
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

enum { PIECE = 256 };

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
    uint32_t piece[PIECE];
    walk w = {.pattern = row, .at = base};
    for (int64_t done = 0; done < row->elements; done += PIECE) {
        int64_t count = row->elements - done < PIECE ? row->elements - done : PIECE;
        transfer(&w, (uint8_t *)piece, count, false);
        fr_neuron_to_float(scratch + done, piece, lanes->dtype, count);
    }
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
    uint32_t piece[PIECE];
    walk w = {.pattern = row, .at = base};
    for (int64_t done = 0; done < row->elements; done += PIECE) {
        int64_t count = row->elements - done < PIECE ? row->elements - done : PIECE;
        fr_neuron_from_float(piece, in + done, lanes->dtype, count);
        transfer(&w, (uint8_t *)piece, count, true);
    }
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

/* ---- scalars and scratch ---------------------------------------------------------------------------------------- */

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

/* ---- what holds data -------------------------------------------------------------------------------------------- */

/* Calls on the runs of bytes of one row of a view, by shadow coordinates; stops when `visit` says false. */
typedef bool run_visit(fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes);

static bool set_run(fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes)
{
    fr_neuron_shadow_set(shadow, row, first, bytes);
    return true;
}

static bool has_run(fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes)
{
    return fr_neuron_shadow_has(shadow, row, first, bytes);
}

/* Elements skip .. skip + count - 1 of each row of `lanes`. */
static bool each_run(const fr_neuron_lanes *lanes, const fr_neuron_tensor *tensor, fr_neuron_shadow *shadow,
                     int64_t shadow_row, int64_t shadow_byte, run_visit *visit)
{
    const fr_neuron_pattern *row = &lanes->row;
    int64_t start = row->base - tensor->data, first_row = tensor->rows > 1 ? start / tensor->pitch : 0;
    int64_t column = start - first_row * tensor->pitch;
    int inner = row->dims - 1;
    bool solid = row->stride[inner] == row->width;
    int64_t run = solid ? row->size[inner] : 1;
    for (int p = 0; p < lanes->partitions; p++) {
        walk w = {.pattern = row, .at = row->base};
        for (int64_t done = 0; done < row->elements; done += run) {
            int64_t byte = column + (w.at - row->base);
            if (!visit(shadow, shadow_row + first_row + p, shadow_byte + byte, run * row->width))
                return false;
            step(&w, run);
        }
    }
    return true;
}

static bool covers(const fr_neuron_view *view, const fr_neuron_lanes *lanes)
{
    const fr_neuron_tensor *tensor = view->tensor;
    return lanes->row.contiguous && lanes->row.base == tensor->data && lanes->partitions == tensor->rows &&
           lanes->row.elements * lanes->row.width == tensor->row_bytes;
}

bool fr_neuron_written(const fr_neuron *core, const fr_neuron_view *view)
{
    fr_neuron_tensor *tensor = view->tensor;
    fr_neuron_shadow *shadow = tensor->written;
    if (shadow->fill != FR_NEURON_PARTLY)
        return shadow->fill == FR_NEURON_FULL;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    return each_run(&lanes, tensor, shadow, tensor->shadow_row, tensor->shadow_byte, has_run);
}

/* Without memory for the map everything counts as written: a missed diagnosis, not a wrong result. */
static void mark(const fr_neuron_lanes *lanes, fr_neuron_tensor *tensor)
{
    fr_neuron_shadow *shadow = tensor->written;
    if (fr_neuron_shadow_ready(shadow, NULL) != FR_OK)
        shadow->fill = FR_NEURON_FULL;
    if (shadow->fill == FR_NEURON_PARTLY)
        each_run(lanes, tensor, shadow, tensor->shadow_row, tensor->shadow_byte, set_run);
}

void fr_neuron_wrote(fr_neuron *core, const fr_neuron_view *view)
{
    fr_neuron_tensor *tensor = view->tensor;
    if (tensor->written->fill == FR_NEURON_FULL)
        return;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    if (tensor->written == &tensor->own && covers(view, &lanes)) {
        fr_neuron_shadow_release(&tensor->own);
        tensor->own.fill = FR_NEURON_FULL;
        return;
    }
    mark(&lanes, tensor);
}

void fr_neuron_wrote_some(fr_neuron *core, const fr_neuron_view *view, int p, int64_t first, int64_t count)
{
    if (view->tensor->written->fill == FR_NEURON_FULL || count <= 0)
        return;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    fr_neuron_pattern *row = &lanes.row;
    row->base += p * lanes.pitch;
    lanes.partitions = 1;
    walk w = {.pattern = &lanes.row, .at = row->base};
    for (int64_t i = 0; i < first;) {
        int64_t run = row->size[row->dims - 1] - w.done[row->dims - 1];
        run = run < first - i ? run : first - i;
        step(&w, run);
        i += run;
    }
    for (int64_t i = 0; i < count; i++) {
        fr_neuron_lanes one = lanes;
        one.row = (fr_neuron_pattern){.base = w.at, .dims = 1, .width = row->width, .contiguous = true, .elements = 1};
        one.row.size[0] = 1;
        one.row.stride[0] = row->width;
        mark(&one, view->tensor);
        step(&w, 1);
    }
}
