/* Rows of fp32 (and of raw 32-bit words): the inner loops of Vector, Scalar and GpSimd instructions.
 *
 * A block is `rows` rows of `count` elements; row r begins `stride` elements after row r - 1. The loops are written once
 * (rows_template.h) and compiled for each instruction set this processor family has; fr_neuron_rows_best picks one.
 * All versions give the same bits: no fused multiply-add, and sums go over sixteen lanes in a fixed order whatever the
 * width of the registers. In every function `out` may be one of the inputs, exactly, but must not overlap it otherwise.
 */
#ifndef NEURON_ROWS_H
#define NEURON_ROWS_H
#include "frontier/neuron.h"

typedef struct fr_neuron_block {
    int64_t rows, count;
} fr_neuron_block;

/* out[r][i] = op(a[r][i], b[r][i]) */
typedef void fr_neuron_pair_rows(fr_neuron_block block, float *out, int64_t out_stride, const float *a,
                                 int64_t a_stride, const float *b, int64_t b_stride);
/* out[r][i] = op(a[r][i], scalar[r * step]), or op(scalar, a) of the reversed form */
typedef void fr_neuron_scalar_rows(fr_neuron_block block, float *out, int64_t out_stride, const float *a,
                                   int64_t a_stride, const float *scalar, int64_t step);
/* total[r] = op(total[r], a[r][0], ..., a[r][count - 1]) in some order; subtract takes each away from the total */
typedef void fr_neuron_fold_rows(fr_neuron_block block, float *total, const float *a, int64_t a_stride);
/* out[i] = f(in[i]); `parameter` is the slope of prelu */
typedef void fr_neuron_map_row(float *out, const float *in, int64_t count, float parameter);

typedef struct fr_neuron_rows {
    const char *name;
    fr_neuron_pair_rows *pair[FR_NEURON_OPERATORS]; /* NULL: not an operator of floats */
    fr_neuron_scalar_rows *scalar[FR_NEURON_OPERATORS], *reversed[FR_NEURON_OPERATORS];
    fr_neuron_fold_rows *fold[FR_NEURON_OPERATORS]; /* NULL: not a reduction */
    fr_neuron_map_row *map[FR_NEURON_FUNCTIONS];
    void (*affine)(float *out, const float *in, int64_t count, float scale,
                   float bias); /* in * scale + bias */
    /* Whole numbers of 32 bits: wrap, compare and choose exactly. False: not an operator of these. */
    bool (*pair_signed)(fr_neuron_operator op, int32_t *out, const int32_t *a, const int32_t *b,
                        int64_t count);
    bool (*pair_unsigned)(fr_neuron_operator op, uint32_t *out, const uint32_t *a, const uint32_t *b,
                          int64_t count);
    /* Bit patterns; the words hold `bits` bits, the rest is zero in and out. Shifts by `bits` or more give 0. */
    bool (*pair_bits)(fr_neuron_operator op, uint32_t *out, const uint32_t *a, const uint32_t *b,
                      int64_t count, int bits);
} fr_neuron_rows;

extern const fr_neuron_rows fr_neuron_rows_base, fr_neuron_rows_avx2, fr_neuron_rows_avx512;
/* The best this processor can run; names of versions: "base", "avx2", "avx512". */
const fr_neuron_rows *fr_neuron_rows_best(void);
const fr_neuron_rows *
fr_neuron_rows_named(const char *name); /* NULL when unknown or not for this processor */

#endif
