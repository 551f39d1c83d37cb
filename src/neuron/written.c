/* Which elements hold data, asked and told through views: runs of bytes of each partition, in the shadow
 * of a tensor (shadow.c). PSUM has a second shadow, of what a matmul began: only there may a matmul add. */
#include "neuron/core.h"
#include "neuron/walk.h"

#include <string.h>

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
        fr_neuron_walk w;
        fr_neuron_walk_start(&w, row);
        for (int64_t done = 0; done < row->elements; done += run) {
            int64_t byte = column + (w.at - row->base);
            if (!visit(shadow, shadow_row + first_row + p, shadow_byte + byte, run * row->width))
                return false;
            fr_neuron_walk_step(&w, run);
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

bool fr_neuron_covers(const fr_neuron *core, const fr_neuron_view *view)
{
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    return view->tensor->written == &view->tensor->own && !view->whole_rows && covers(view, &lanes);
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

fr_status fr_neuron_prepare(fr_neuron *core, const fr_neuron_view *view, fr_error *error)
{
    fr_neuron_shadow *shadow = view->tensor->written;
    (void)core;
    return shadow->fill == FR_NEURON_EMPTY ? fr_neuron_shadow_ready(shadow, error) : FR_OK;
}

void fr_neuron_wrote(fr_neuron *core, const fr_neuron_view *view)
{
    fr_neuron_tensor *tensor = view->tensor;
    if (tensor->written->fill == FR_NEURON_FULL)
        return;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    if (tensor->written == &tensor->own && covers(view, &lanes))
        fr_neuron_shadow_become(&tensor->own, FR_NEURON_FULL);
    else
        each_run(&lanes, tensor, tensor->written, tensor->shadow_row, tensor->shadow_byte, set_run);
}

void fr_neuron_wrote_some(fr_neuron *core, const fr_neuron_view *view, int p, int64_t first, int64_t count)
{
    fr_neuron_tensor *tensor = view->tensor;
    if (tensor->written->fill == FR_NEURON_FULL || count <= 0)
        return;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    fr_neuron_pattern *row = &lanes.row;
    row->base += p * lanes.pitch;
    lanes.partitions = 1;
    fr_neuron_walk w;
    fr_neuron_walk_start(&w, row);
    for (int64_t i = 0; i < first;) {
        int64_t run = fr_neuron_walk_run(&w);
        run = run < first - i ? run : first - i;
        fr_neuron_walk_step(&w, run);
        i += run;
    }
    bool solid = row->stride[row->dims - 1] == row->width;
    for (int64_t i = 0; i < count;) {
        int64_t run = solid ? fr_neuron_walk_run(&w) : 1;
        run = run < count - i ? run : count - i;
        fr_neuron_lanes part = lanes;
        part.row.base = w.at;
        part.row.dims = 1;
        part.row.elements = part.row.size[0] = run;
        part.row.stride[0] = row->width;
        each_run(&part, tensor, tensor->written, tensor->shadow_row, tensor->shadow_byte, set_run);
        fr_neuron_walk_step(&w, run);
        i += run;
    }
}

/* ---- what a matmul began ------------------------------------------------------------------------- */

static bool has_none(fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes)
{
    for (int64_t i = first; i < first + bytes; i++)
        if (fr_neuron_shadow_has(shadow, row, i, 1))
            return false;
    return true;
}

static bool drop_run(fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes)
{
    fr_neuron_shadow_drop(shadow, row, first, bytes);
    return true;
}

fr_neuron_begun fr_neuron_begun_of(const fr_neuron *core, const fr_neuron_view *view)
{
    fr_neuron_tensor *tensor = view->tensor;
    if (tensor->begun.fill != FR_NEURON_PARTLY)
        return tensor->begun.fill == FR_NEURON_FULL ? FR_NEURON_BEGUN : FR_NEURON_NOT_BEGUN;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    if (each_run(&lanes, tensor, &tensor->begun, 0, 0, has_run))
        return FR_NEURON_BEGUN;
    return each_run(&lanes, tensor, &tensor->begun, 0, 0, has_none) ? FR_NEURON_NOT_BEGUN
                                                                    : FR_NEURON_PARTLY_BEGUN;
}

fr_status fr_neuron_prepare_begin(fr_neuron *core, const fr_neuron_view *view, fr_error *error)
{
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    fr_neuron_tensor *tensor = view->tensor;
    if (tensor->begun.fill == FR_NEURON_EMPTY && !covers(view, &lanes))
        FR_TRY(fr_neuron_shadow_ready(&tensor->begun, error));
    return tensor->written == &tensor->own && covers(view, &lanes) ? FR_OK
                                                                   : fr_neuron_prepare(core, view, error);
}

void fr_neuron_begin(fr_neuron *core, const fr_neuron_view *view)
{
    fr_neuron_tensor *tensor = view->tensor;
    if (tensor->begun.fill == FR_NEURON_FULL)
        return;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    if (covers(view, &lanes))
        fr_neuron_shadow_become(&tensor->begun, FR_NEURON_FULL);
    else
        each_run(&lanes, tensor, &tensor->begun, 0, 0, set_run);
}

void fr_neuron_unbegin(fr_neuron *core, const fr_neuron_view *view)
{
    fr_neuron_tensor *tensor = view->tensor;
    tensor->filled = true;
    if (tensor->begun.fill == FR_NEURON_EMPTY)
        return;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    if (covers(view, &lanes))
        fr_neuron_shadow_become(&tensor->begun, FR_NEURON_EMPTY);
    else
        each_run(&lanes, tensor, &tensor->begun, 0, 0, drop_run);
}

void fr_neuron_zero_unbegun(fr_neuron *core, const fr_neuron_view *view)
{
    fr_neuron_tensor *tensor = view->tensor;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    const fr_neuron_pattern *row = &lanes.row;
    for (int p = 0; p < lanes.partitions; p++) {
        fr_neuron_walk w;
        fr_neuron_walk_start(&w, row);
        for (int64_t e = 0; e < row->elements; e++) {
            int64_t column = (w.at - tensor->data) % tensor->pitch,
                    first = (w.at - tensor->data) / tensor->pitch;
            if (!fr_neuron_shadow_has(&tensor->begun, first + p, column, row->width))
                memset(w.at + p * lanes.pitch, 0, (size_t)row->width);
            fr_neuron_walk_step(&w, 1);
        }
    }
}
