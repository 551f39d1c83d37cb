/* Walks: moving through the elements of a pattern in its order, with whatever is contiguous moved in one
 * piece. Both rows (data.c) and transfers (transfer.c) stand on these few loops. */
#include "neuron/walk.h"

#include <string.h>

void fr_neuron_walk_start(fr_neuron_walk *walk, const fr_neuron_pattern *pattern)
{
    walk->pattern = *pattern;
    walk->at = pattern->base;
    memset(walk->done, 0, sizeof walk->done);
}

static int64_t inner_stride(const fr_neuron_walk *walk)
{
    return walk->pattern.stride[walk->pattern.dims - 1];
}

int64_t fr_neuron_walk_run(const fr_neuron_walk *walk)
{
    int inner = walk->pattern.dims - 1;
    return walk->pattern.size[inner] - walk->done[inner];
}

void fr_neuron_walk_step(fr_neuron_walk *walk, int64_t count)
{
    const fr_neuron_pattern *p = &walk->pattern;
    int d = p->dims - 1;
    walk->done[d] += count;
    walk->at += count * p->stride[d];
    while (d > 0 && walk->done[d] == p->size[d]) {
        walk->at += p->stride[d - 1] - p->size[d] * p->stride[d];
        walk->done[d--] = 0;
        walk->done[d]++;
    }
}

static void copy_run(uint8_t *out, int64_t out_stride, const uint8_t *in, int64_t in_stride, int64_t count,
                     int width)
{
    if (out_stride == width && in_stride == width) {
        memmove(out, in, (size_t)(count * width));
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

void fr_neuron_walk_load(fr_neuron_walk *walk, void *out, int64_t count)
{
    uint8_t *bytes = out;
    int width = walk->pattern.width;
    while (count > 0) {
        int64_t run = fr_neuron_walk_run(walk) < count ? fr_neuron_walk_run(walk) : count;
        copy_run(bytes, width, walk->at, inner_stride(walk), run, width);
        fr_neuron_walk_step(walk, run);
        bytes += run * width;
        count -= run;
    }
}

void fr_neuron_walk_store(fr_neuron_walk *walk, const void *in, int64_t count)
{
    const uint8_t *bytes = in;
    int width = walk->pattern.width;
    while (count > 0) {
        int64_t run = fr_neuron_walk_run(walk) < count ? fr_neuron_walk_run(walk) : count;
        copy_run(walk->at, inner_stride(walk), bytes, width, run, width);
        fr_neuron_walk_step(walk, run);
        bytes += run * width;
        count -= run;
    }
}

void fr_neuron_walk_bits(fr_neuron_walk *dst, fr_neuron_walk *src, int64_t count)
{
    while (count > 0) {
        int64_t run = fr_neuron_walk_run(dst), other = fr_neuron_walk_run(src);
        run = run < other ? run : other;
        run = run < count ? run : count;
        copy_run(dst->at, inner_stride(dst), src->at, inner_stride(src), run, dst->pattern.width);
        fr_neuron_walk_step(dst, run);
        fr_neuron_walk_step(src, run);
        count -= run;
    }
}

enum { PIECE = 1024 };

void fr_neuron_walk_read(fr_neuron_walk *walk, fr_neuron_dtype dtype, float *out, int64_t count)
{
    uint32_t bytes[PIECE];
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t piece = count - done < PIECE ? count - done : PIECE;
        fr_neuron_walk_load(walk, bytes, piece);
        fr_neuron_to_float(out + done, bytes, dtype, piece);
    }
}

void fr_neuron_walk_write(fr_neuron_walk *walk, fr_neuron_dtype dtype, const float *in, int64_t count)
{
    uint32_t bytes[PIECE];
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t piece = count - done < PIECE ? count - done : PIECE;
        fr_neuron_from_float(bytes, in + done, dtype, piece);
        fr_neuron_walk_store(walk, bytes, piece);
    }
}

void fr_neuron_walk_copy(fr_neuron_walk *dst, fr_neuron_dtype dst_dtype, fr_neuron_walk *src,
                         fr_neuron_dtype src_dtype, int64_t count)
{
    if (dst_dtype == src_dtype) {
        fr_neuron_walk_bits(dst, src, count);
        return;
    }
    float numbers[PIECE];
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t piece = count - done < PIECE ? count - done : PIECE;
        fr_neuron_walk_read(src, src_dtype, numbers, piece);
        fr_neuron_walk_write(dst, dst_dtype, numbers, piece);
    }
}
