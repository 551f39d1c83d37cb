/* Affine patterns of GpSimd: offset + p * channel_multiplier + the sum of step_k * i_k over up to four indices, in 32-bit
 * integers. iota writes the value, affine_select compares it with zero. */
#ifndef NEURON_AFFINE_H
#define NEURON_AFFINE_H
#include "neuron/neuron_internal.h"

enum { FR_NEURON_PATTERN_DIMS = 4 };

/* Up to four [step, count] pairs whose counts give the elements per partition of `tile`; whole numbers throughout. */
fr_status fr_neuron_affine_check(const fr_neuron *core, const fr_neuron_call *call, int pattern, int tile,
                                 int offset, int multiplier, fr_error *error);
/* The values of partition p; they wrap at 32 bits. */
void fr_neuron_affine_row(const fr_neuron_call *call, int pattern, int offset, int multiplier, int p,
                          int32_t *out);

#endif
