/* What the price of an instruction is made of: elements per partition, which operands qualify for the fast
 * modes, and the descriptors of a transfer; and the engine choosers of instructions that have no choice. */
#include "neuron/core.h"

double fr_neuron_extent(const fr_neuron_call *call, int which)
{
    const fr_neuron_view *view = fr_neuron_operand(call, which);
    return view ? (double)fr_neuron_view_free(view) : 0;
}

bool fr_neuron_all_sbuf(const fr_neuron_call *call, const int *which, int count)
{
    for (int i = 0; i < count; i++)
        if (fr_neuron_in_psum(call, which[i]))
            return false;
    return true;
}

bool fr_neuron_narrow(const fr_neuron_call *call, int which, int bytes)
{
    const fr_neuron_view *view = fr_neuron_operand(call, which);
    return view && fr_neuron_dtype_bytes(view->dtype) == bytes;
}

bool fr_neuron_packed_rows(const fr_neuron_call *call, int which)
{
    const fr_neuron_view *view = fr_neuron_operand(call, which);
    int64_t expected = 1;
    for (int i = view ? view->dims - 1 : -1; i >= 0; i--) {
        if (view->size[i] != 1 && view->stride[i] != expected)
            return false;
        expected *= view->size[i];
    }
    return view != NULL;
}

/* Bytes of the contiguous runs of a view, and how many there are. */
static int64_t run_bytes(const fr_neuron_view *view)
{
    int64_t run = 1;
    int last = view->whole_rows ? 1 : 0;
    for (int i = view->dims - 1; i >= last; i--) {
        if (view->size[i] == 1)
            continue;
        if (view->stride[i] != run)
            break;
        run *= view->size[i];
    }
    return run * fr_neuron_dtype_bytes(view->dtype);
}

/* A descriptor moves one run of bytes that is contiguous on both sides, at most 64 KiB. */
void fr_neuron_price_transfer(const fr_neuron *core, const fr_neuron_view *dst, const fr_neuron_view *src,
                              fr_neuron_cost *cost)
{
    (void)core;
    double elements = (double)fr_neuron_view_elements(dst);
    int dst_width = fr_neuron_dtype_bytes(dst->dtype), src_width = fr_neuron_dtype_bytes(src->dtype);
    double in_elements = (double)run_bytes(src) / src_width,
           out_elements = (double)run_bytes(dst) / dst_width;
    double run = in_elements < out_elements ? in_elements : out_elements;
    int width = dst_width > src_width ? dst_width : src_width;
    double pieces = run * width > 65536 ? run * width / 65536 : 1;
    double whole = pieces > (double)(int64_t)pieces ? (double)(int64_t)pieces + 1 : pieces;
    cost->bytes += elements * width;
    cost->descriptors += elements / run * whole;
    cost->dynamic = cost->dynamic || dst->index || src->index;
}

fr_neuron_engine fr_neuron_on_tensor(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core, (void)call;
    return FR_NEURON_TENSOR;
}

fr_neuron_engine fr_neuron_on_vector(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core, (void)call;
    return FR_NEURON_VECTOR;
}

fr_neuron_engine fr_neuron_on_scalar(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core, (void)call;
    return FR_NEURON_SCALAR;
}

fr_neuron_engine fr_neuron_on_gpsimd(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core, (void)call;
    return FR_NEURON_GPSIMD;
}

fr_neuron_engine fr_neuron_on_sync(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core, (void)call;
    return FR_NEURON_SYNC;
}

fr_neuron_engine fr_neuron_on_dma(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core, (void)call;
    return FR_NEURON_DMA;
}
