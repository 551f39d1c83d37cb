/* The product of Tensor, for the instructions that use it. */
#ifndef NEURON_MATMUL_H
#define NEURON_MATMUL_H
#include "neuron/core.h"

/* dst (+)= stationary^T moving in fp32; with `pairs`, the first free dimension of 2 of both operands
 * belongs to the contraction. */
fr_status fr_neuron_multiply(fr_neuron *core, const fr_neuron_view *dst, const fr_neuron_view *stationary,
                             const fr_neuron_view *moving, bool pairs, bool add, fr_error *error);
/* Bits of one operand moved to where the other has its ones; false when neither operand is a selection. */
bool fr_neuron_select_bits(fr_neuron *core, const fr_neuron_view *dst, const fr_neuron_view *stationary,
                           const fr_neuron_view *moving);

/* `sum` and `accumulate_at` are positions of arguments. Refuses to add to what no matmul began. */
fr_status fr_neuron_sum_check(const fr_neuron *core, const fr_neuron_call *call, int sum, int accumulate_at,
                              fr_error *error);
/* The call adds; *clear: what was not begun must become zero first. */
bool fr_neuron_sum_adds(const fr_neuron *core, const fr_neuron_call *call, int sum, int accumulate_at,
                        bool *clear);

#endif
