/* A place in the order of a pattern, that moves on as elements are read or written. */
#ifndef NEURON_WALK_H
#define NEURON_WALK_H
#include "neuron/neuron_internal.h"

typedef struct fr_neuron_walk {
    fr_neuron_pattern pattern;
    uint8_t *at;                       /* the next element */
    int64_t done[FR_NEURON_WALK_DIMS]; /* per dimension */
} fr_neuron_walk;

void fr_neuron_walk_start(fr_neuron_walk *walk, const fr_neuron_pattern *pattern);
int64_t fr_neuron_walk_run(const fr_neuron_walk *walk);        /* elements left in the innermost dimension */
void fr_neuron_walk_step(fr_neuron_walk *walk, int64_t count); /* at most that many */
/* The next `count` elements, as stored, from or to contiguous bytes; and from one walk to another of the
 * same width. */
void fr_neuron_walk_load(fr_neuron_walk *walk, void *out, int64_t count);
void fr_neuron_walk_store(fr_neuron_walk *walk, const void *in, int64_t count);
void fr_neuron_walk_bits(fr_neuron_walk *dst, fr_neuron_walk *src, int64_t count);
/* The same as fp32, and from one dtype to another. */
void fr_neuron_walk_read(fr_neuron_walk *walk, fr_neuron_dtype dtype, float *out, int64_t count);
void fr_neuron_walk_write(fr_neuron_walk *walk, fr_neuron_dtype dtype, const float *in, int64_t count);
void fr_neuron_walk_copy(fr_neuron_walk *dst, fr_neuron_dtype dst_dtype, fr_neuron_walk *src,
                         fr_neuron_dtype src_dtype, int64_t count);

#endif
