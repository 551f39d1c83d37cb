/* Views: which bytes an operand means. Everything here is arithmetic on strides: whether a view stays
 * inside its tensor, the box of bytes it touches (what dependences between instructions are made of), and
 * the form in which data is walked, with dimensions merged where one continues the other. */
#include "neuron/core.h"

#include <string.h>

fr_neuron_view fr_neuron_view_of(fr_neuron_tensor *tensor)
{
    const fr_neuron_layout *layout = &tensor->layout;
    bool chip = layout->memory == FR_NEURON_SBUF || layout->memory == FR_NEURON_PSUM;
    int first = chip ? 1 : 0;
    fr_neuron_view view = {.tensor = tensor, .dtype = layout->dtype, .dims = (int16_t)(layout->dims - first)};
    view.partitions = (int16_t)(chip ? layout->shape[0] : 0);
    int64_t stride = 1;
    for (int i = view.dims - 1; i >= 0; i--) {
        view.size[i] = layout->shape[i + first];
        view.stride[i] = stride;
        stride *= view.size[i];
    }
    if (view.dims == 0) {
        view.dims = 1;
        view.size[0] = view.stride[0] = 1;
    }
    return view;
}

/* A view may be hostile before its shape was checked: too many elements are as many as can be said. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t fr_neuron_view_free(const fr_neuron_view *view)
{
    int64_t count = 1;
    for (int i = 0; i < view->dims && i <= FR_NEURON_RANK; i++)
        count = times(count, view->size[i]);
    return count;
}

int64_t fr_neuron_view_elements(const fr_neuron_view *view)
{
    return times(fr_neuron_view_free(view), view->partitions ? view->partitions : 1);
}

/* First and last element touched, relative to the row; the leading dimension is left out of a list of
 * rows. */
static void reach(const fr_neuron_view *view, int from, int64_t *first, int64_t *last)
{
    *first = *last = view->offset;
    for (int i = from; i < view->dims; i++) {
        int64_t span = view->stride[i] * (view->size[i] - 1);
        *(span < 0 ? first : last) += span;
    }
}

int32_t *fr_neuron_register(const fr_neuron_tensor *tensor)
{
    return (int32_t *)(void *)tensor->data;
}

/* Indices are integers of any width; fp32 tiles hold whole numbers that were computed. */
int64_t fr_neuron_index_value(const fr_neuron_view *view, int64_t which)
{
    const fr_neuron_tensor *index = view->index;
    if (index->layout.memory == FR_NEURON_REGISTER)
        return *fr_neuron_register(index);
    int64_t rows = view->index_partitions > 0 ? view->index_partitions : 1;
    const uint8_t *at = index->data + (view->index_partition + which % rows) * index->pitch +
                        (view->index_offset + which / rows) * fr_neuron_dtype_bytes(index->layout.dtype);
    int32_t value = 0;
    if (index->layout.dtype == FR_NEURON_INT32 || index->layout.dtype == FR_NEURON_UINT32) {
        memcpy(&value, at, sizeof value);
        return index->layout.dtype == FR_NEURON_UINT32 ? (int64_t)(uint32_t)value : value;
    }
    float number;
    fr_neuron_to_float(&number, at, index->layout.dtype, 1);
    return number > -1e15f && number < 1e15f ? (int64_t)number : -1;
}

fr_neuron_view fr_neuron_resolved(const fr_neuron_view *view)
{
    fr_neuron_view out = *view;
    if (!view->index || view->whole_rows)
        return out;
    int64_t moved = fr_neuron_index_value(view, 0) * view->index_stride;
    out.index = NULL;
    if (view->partitions == 0) {
        out.offset += moved;
        return out;
    }
    int64_t row = view->tensor->row_bytes / fr_neuron_dtype_bytes(view->dtype);
    int64_t partitions = moved / row;
    if (view->index_stride % row == 0) {
        out.partition = (int16_t)(out.partition + partitions);
        return out;
    }
    out.offset += moved;
    return out;
}

/* ---- limits -------------------------------------------------------------------------------------- */

/* No tensor has more bytes than this; larger numbers in a view are refused before they are multiplied. */
static const int64_t MOST = INT64_C(1) << 36;
/* Elements of a partition: SBUF has a quarter of a million bytes in each. */
static const int64_t MOST_FREE = INT64_C(1) << 18;

static fr_status check_shape(const fr_neuron *core, const fr_neuron_call *call, const fr_neuron_view *view,
                             const char *name, fr_error *error)
{
    if (!view->tensor || !view->tensor->data)
        return fr_neuron_misuse(core, call, error, "%s is a tensor that was released", name);
    if (view->dims < 1 || view->dims > FR_NEURON_RANK + 1 || fr_neuron_dtype_bytes(view->dtype) == 0)
        return fr_neuron_misuse(core, call, error, "%s: a view of %d dimensions", name, view->dims);
    int64_t count = 1;
    for (int i = 0; i < view->dims; i++) {
        int64_t size = view->size[i], stride = view->stride[i];
        bool possible = size >= 1 && size <= MOST / count && stride <= MOST && stride >= -MOST;
        if (!possible || (stride != 0 && size > MOST / (stride < 0 ? -stride : stride) + 1))
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_access_pattern, error,
                                    "%s: dimension %d has size %lld and stride %lld", name, i,
                                    (long long)size, (long long)stride);
        count *= size;
    }
    /* A stride of 0 could name more elements than anybody has the time to walk. */
    int64_t most = view->partitions ? MOST_FREE
                                    : view->tensor->row_bytes / fr_neuron_dtype_bytes(view->dtype) +
                                          MOST_FREE * FR_NEURON_PARTITIONS;
    if (count > most)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_access_pattern, error, "%s: %lld elements", name,
                                (long long)count);
    return FR_OK;
}

static fr_status check_inside(const fr_neuron *core, const fr_neuron_call *call, const fr_neuron_view *view,
                              const char *name, fr_error *error)
{
    const fr_neuron_tensor *tensor = view->tensor;
    int width = fr_neuron_dtype_bytes(view->dtype);
    int64_t first, last, elements = tensor->row_bytes / width;
    if (view->offset < -MOST || view->offset > MOST)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_out_of_bounds, error, "%s starts at element %lld",
                                name, (long long)view->offset);
    reach(view, view->whole_rows ? 1 : 0, &first, &last);
    if (first < 0 || last >= elements)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_out_of_bounds, error,
                                "%s: elements %lld to %lld%s of %s, which has %lld", name, (long long)first,
                                (long long)last, view->partitions ? " of each partition" : "",
                                tensor->layout.name ? tensor->layout.name : "the tensor",
                                (long long)elements);
    if (view->partitions == 0 && view->partition == 0)
        return FR_OK;
    if (view->partition < 0 || view->partitions < 1 || view->partition + view->partitions > tensor->rows)
        return fr_neuron_refuse(
            core, call, FR_NEURON_RULE_out_of_bounds, error, "%s: partitions %d to %d of %s, which has %lld",
            name, view->partition, view->partition + view->partitions - 1,
            tensor->layout.name ? tensor->layout.name : "the tensor", (long long)tensor->rows);
    return FR_OK;
}

static fr_status check_index(const fr_neuron *core, const fr_neuron_call *call, const fr_neuron_view *view,
                             const char *name, fr_error *error)
{
    const fr_neuron_tensor *index = view->index;
    if (!index->data)
        return fr_neuron_misuse(core, call, error, "the index of %s was released", name);
    if (index->layout.memory == FR_NEURON_HBM || index->layout.memory == FR_NEURON_PSUM)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_indirect, error,
                                "%s: its index is in %s, a register or SBUF is needed", name,
                                index->layout.memory == FR_NEURON_HBM ? "HBM" : "PSUM");
    if (index->layout.memory == FR_NEURON_REGISTER && view->whole_rows)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_indirect, error,
                                "%s: a list of rows needs an SBUF tile, not a register", name);
    int64_t count = view->whole_rows ? view->size[0] : 1;
    int64_t rows = index->layout.memory == FR_NEURON_REGISTER ? 1 : view->index_partitions;
    int width = fr_neuron_dtype_bytes(index->layout.dtype);
    if (rows < 1 || view->index_partition < 0 || view->index_partition + rows > index->rows ||
        view->index_offset < 0 || (view->index_offset + (count + rows - 1) / rows) * width > index->row_bytes)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_indirect, error,
                                "%s: %lld indices from partition %d of a tile of %lld partitions", name,
                                (long long)count, view->index_partition, (long long)index->rows);
    if (view->whole_rows && view->partitions)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_indirect, error,
                                "%s: rows are chosen by an index in HBM only; this is on chip", name);
    for (int64_t i = 0; core->compute && i < (count < rows ? count : rows); i++)
        if (!fr_neuron_shadow_has(index->written, index->shadow_row + view->index_partition + i,
                                  index->shadow_byte + view->index_offset * width,
                                  (count + rows - 1) / rows * width))
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_uninitialised_read, error,
                                    "the index of %s: partition %lld was never written", name,
                                    (long long)(view->index_partition + i));
    return FR_OK;
}

/* A dynamic offset must keep the view inside, or is told as `outside` to one who skips such transfers. Lists
 * of rows are checked where they are used. */
static fr_status check_moved(const fr_neuron *core, const fr_neuron_call *call, const fr_neuron_view *view,
                             const char *name, bool *outside, fr_error *error)
{
    int64_t value = fr_neuron_index_value(view, 0);
    bool beyond = view->index_limit > 0 && (value < 0 || value >= view->index_limit);
    if (outside && beyond) {
        *outside = true;
        return FR_OK;
    }
    if (beyond)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_index_bounds, error,
                                "%s: its dynamic offset is %lld, 0 to %lld are inside", name,
                                (long long)value, (long long)view->index_limit - 1);
    if (value > (int64_t)1 << 31 || value < -((int64_t)1 << 31) || view->index_stride > (int64_t)1 << 31 ||
        view->index_stride < -((int64_t)1 << 31))
        return fr_neuron_misuse(core, call, error, "%s: a dynamic offset of %lld", name, (long long)value);
    fr_neuron_view moved = fr_neuron_resolved(view);
    fr_status inside = check_inside(core, call, &moved, name, error);
    if (!outside || inside == FR_OK)
        return inside;
    *outside = true;
    return FR_OK;
}

static int64_t tensor_start(const fr_neuron_tensor *tensor)
{
    return tensor->layout.placed ? tensor->layout.byte_offset : 0;
}

fr_status fr_neuron_view_check(const fr_neuron *core, const fr_neuron_call *call, const fr_neuron_view *view,
                               const char *name, bool *outside, fr_error *error)
{
    FR_TRY(check_shape(core, call, view, name, error));
    fr_neuron_memory memory = view->tensor->layout.memory;
    bool chip = memory == FR_NEURON_SBUF || memory == FR_NEURON_PSUM;
    if (chip != (view->partitions > 0))
        return fr_neuron_misuse(core, call, error, "%s: a view of %d partitions of a tensor %s", name,
                                view->partitions, chip ? "on chip" : "that has none");
    if (tensor_start(view->tensor) % fr_neuron_dtype_bytes(view->dtype) != 0)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_access_pattern, error,
                                "%s: its tensor starts at byte %lld, its numbers have %d bytes", name,
                                (long long)tensor_start(view->tensor), fr_neuron_dtype_bytes(view->dtype));
    if (!view->index)
        return view->whole_rows ? fr_neuron_misuse(core, call, error, "%s: rows without an index", name)
                                : check_inside(core, call, view, name, error);
    FR_TRY(check_index(core, call, view, name, error));
    if (view->whole_rows)
        return check_inside(core, call, view, name, error);
    return core->compute || view->index->layout.memory == FR_NEURON_REGISTER
               ? check_moved(core, call, view, name, outside, error)
               : FR_OK;
}

/* ---- regions ------------------------------------------------------------------------------------- */

/* The columns a view of HBM touches, in 1/256 of a row. The row is the outer stride of the first strided
 * access: a tile of a matrix. */
static void columns_of(const fr_neuron_view *view, int64_t first_byte, fr_neuron_region *region)
{
    fr_neuron_tensor *tensor = view->tensor;
    int width = fr_neuron_dtype_bytes(view->dtype);
    region->partition = 0;
    region->partitions = 255;
    int64_t inner = 1;
    for (int i = view->dims - 1; i > 0 && !tensor->record_pitch; i--) {
        inner = view->stride[i] * view->size[i] > inner ? view->stride[i] * view->size[i] : inner;
        if (view->stride[i - 1] > inner && view->size[i - 1] > 1)
            tensor->record_pitch = view->stride[i - 1] * width;
    }
    int64_t pitch = tensor->record_pitch;
    if (!pitch)
        return;
    int64_t span = width;
    for (int i = 0; i < view->dims; i++) {
        int64_t stride = view->stride[i] * width;
        if (stride < 0)
            return;
        if (stride % pitch != 0)
            span += stride * (view->size[i] - 1);
    }
    int64_t column = first_byte % pitch;
    if (column + span > pitch)
        return;
    int64_t low = column * 256 / pitch, high = ((column + span) * 256 + pitch - 1) / pitch;
    region->partition = (uint8_t)low;
    region->partitions = (uint8_t)(high - low - 1);
}

fr_neuron_region fr_neuron_region_of(const fr_neuron_view *view, int write)
{
    const fr_neuron_tensor *tensor = view->tensor;
    fr_neuron_region region = {
        .tensor = tensor->id, .write = (uint8_t)write, .memory = (uint8_t)tensor->layout.memory};
    int width = fr_neuron_dtype_bytes(view->dtype);
    int64_t first, last;
    reach(view, 0, &first, &last);
    if (view->index && view->partitions == 0) { /* anywhere */
        first = 0;
        last = tensor->row_bytes / width - 1;
    }
    first *= width;
    last = (last + 1) * width;
    if (view->partitions == 0) {
        region.partitions = 255;
        if (tensor->layout.memory == FR_NEURON_HBM && !view->index)
            columns_of(view, first, &region);
        region.first = (uint32_t)(first / 16);
        region.last = (uint32_t)((last + 15) / 16);
        return region;
    }
    region.partition = (uint8_t)view->partition;
    region.partitions = (uint8_t)view->partitions;
    region.first = (uint32_t)(view->index ? 0 : first);
    region.last = (uint32_t)(view->index ? tensor->row_bytes : last);
    if (view->index) {
        region.partition = 0;
        region.partitions = (uint8_t)tensor->rows;
    }
    return region;
}
