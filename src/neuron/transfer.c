/* Transfers: two views walked in step. Both sides count the same elements but in shapes of their own, so
 * each has an odometer, and what is contiguous on both moves in one piece (walk.c). Lists of rows
 * (indirect transfers) become one small view a row. */
#include "neuron/transfer.h"

int fr_neuron_shape(const fr_neuron_view *view, int64_t size[FR_NEURON_WALK_DIMS])
{
    int n = 0;
    if (view->partitions)
        size[n++] = view->partitions;
    for (int i = 0; i < view->dims; i++)
        size[n++] = view->size[i];
    return n;
}

fr_neuron_pattern fr_neuron_all(const fr_neuron_view *given, const int *axes, int skip)
{
    fr_neuron_view view = fr_neuron_resolved(given);
    int width = fr_neuron_dtype_bytes(view.dtype);
    int64_t size[FR_NEURON_WALK_DIMS], stride[FR_NEURON_WALK_DIMS];
    int dims = fr_neuron_shape(&view, size), shift = view.partitions ? 1 : 0, n = 0;
    if (shift)
        stride[0] = view.tensor->pitch;
    for (int i = 0; i < view.dims; i++)
        stride[i + shift] = view.stride[i] * width;
    fr_neuron_pattern out = {.width = width};
    out.base = view.tensor->data + view.partition * view.tensor->pitch + view.offset * width;
    int64_t chosen_size[FR_NEURON_WALK_DIMS], chosen_stride[FR_NEURON_WALK_DIMS];
    for (int i = skip; i < dims; i++) {
        chosen_size[n] = size[axes ? axes[i] : i];
        chosen_stride[n++] = stride[axes ? axes[i] : i];
    }
    fr_neuron_merge(&out, chosen_stride, chosen_size, n);
    return out;
}

/* ---- lists of rows ------------------------------------------------------------------------------- */

bool fr_neuron_listed_row(const fr_neuron_view *view, int64_t which, fr_neuron_view *row)
{
    int64_t value = fr_neuron_index_value(view, which), limit = (int64_t)1 << 36;
    int64_t elements = view->tensor->row_bytes / fr_neuron_dtype_bytes(view->dtype);
    *row = *view;
    row->index = NULL;
    row->whole_rows = false;
    row->size[0] = 1;
    if (value < 0 || (view->index_limit > 0 && value >= view->index_limit) ||
        (view->index_stride > 0 && value > limit / view->index_stride))
        return false;
    row->offset += value * view->index_stride;
    int64_t first = row->offset, last = row->offset;
    for (int i = 1; i < row->dims; i++) {
        int64_t span = row->stride[i] * (row->size[i] - 1);
        *(span < 0 ? &first : &last) += span;
    }
    return first >= 0 && last < elements;
}

fr_status fr_neuron_check_rows(const fr_neuron *core, const fr_neuron_call *call, const fr_neuron_view *view,
                               const char *name, bool skip, bool read, fr_error *error)
{
    if (!view->whole_rows || !core->compute)
        return FR_OK;
    bool whole = view->tensor->written->fill == FR_NEURON_FULL;
    for (int64_t i = 0; i < view->size[0]; i++) {
        fr_neuron_view row;
        if (!fr_neuron_listed_row(view, i, &row)) {
            if (skip)
                continue;
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_index_bounds, error,
                                    "%s: index %lld is row %lld, 0 to %lld are inside", name, (long long)i,
                                    (long long)fr_neuron_index_value(view, i),
                                    (long long)view->index_limit - 1);
        }
        if (read && !whole && !fr_neuron_written(core, &row))
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_uninitialised_read, error,
                                    "%s reads row %lld before it was written", name,
                                    (long long)fr_neuron_index_value(view, i));
    }
    return FR_OK;
}

/* ---- descriptor modes ---------------------------------------------------------------------------- */

fr_status fr_neuron_check_priority(const fr_neuron *core, const fr_neuron_call *call,
                                   const fr_neuron_argument *priority, fr_error *error)
{
    if (!priority->given)
        return FR_OK;
    FR_TRY(fr_neuron_generation_at_least(core, call, 4, "the priority of a transfer", error));
    if (priority->number >= 0 && priority->number <= 3)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_value, error, "priority is %g, 0 to 3 exist",
                            priority->number);
}

fr_status fr_neuron_check_descriptors(const fr_neuron *core, const fr_neuron_call *call,
                                      fr_neuron_descriptors mode, bool cast, bool dynamic, bool rows,
                                      fr_error *error)
{
    const char *trouble = NULL;
    if (mode == FR_NEURON_DESCRIPTORS_HARDWARE) {
        FR_TRY(fr_neuron_generation_at_least(core, call, 3, "dge_mode.hwdge", error));
        trouble = cast ? "hwdge cannot cast" : rows ? "hwdge takes no list of rows" : NULL;
    }
    if (mode == FR_NEURON_DESCRIPTORS_STATIC)
        trouble = rows      ? "static descriptors take no list of rows"
                  : dynamic ? "static descriptors have no dynamic offset"
                            : NULL;
    return trouble ? fr_neuron_refuse(core, call, FR_NEURON_RULE_descriptor_mode, error, "%s", trouble)
                   : FR_OK;
}

/* Left to the compiler, a transfer uses hardware descriptors where the chip has them and nothing forbids
 * them. */
void fr_neuron_price_descriptors(const fr_neuron *core, fr_neuron_descriptors mode, fr_neuron_engine engine,
                                 bool cast, bool rows, fr_neuron_cost *cost)
{
    bool software = rows || mode == FR_NEURON_DESCRIPTORS_SOFTWARE;
    bool hardware = mode == FR_NEURON_DESCRIPTORS_HARDWARE ||
                    (mode == FR_NEURON_DESCRIPTORS_ANY && !cast && core->machine->has_hardware_descriptors);
    cost->trigger = software ? FR_NEURON_GPSIMD : engine != FR_NEURON_ANY ? engine : FR_NEURON_SYNC;
    cost->dynamic = cost->dynamic || software || hardware;
}
