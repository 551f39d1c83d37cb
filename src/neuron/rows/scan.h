/* Scans: every element depends on the one before it, r[i] = op1(op0(x[i], r[i - 1]), y[i]), so a row cannot be computed
 * in parallel; eight rows at a time hide the latency of the chain. The common pairs of operators have loops of their own,
 * the rest goes through one that looks the operators up.
 */
#ifndef NEURON_SCAN_H
#define NEURON_SCAN_H
#include "neuron/rows/rows.h"

typedef struct fr_neuron_scan {
    fr_neuron_operator op0, op1; /* op1 FR_NEURON_BYPASS: y is not used and may be NULL */
    bool reverse0, reverse1;
} fr_neuron_scan;

/* `carry` holds one state a row, before and after. */
void fr_neuron_scan_rows(const fr_neuron_scan *scan, fr_neuron_block block, float *out, int64_t out_stride,
                         const float *x, int64_t x_stride, const float *y, int64_t y_stride, float *carry);

#endif
