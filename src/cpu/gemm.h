/* Matrix products inside src/cpu: one call structure, several ways to run it.
 *
 * Why it exists: oneDNN's sgemm chooses its blocking from all three sizes, so a row of the result can change
 * in its last bits with the number of rows in the batch. A score must not depend on who else is in the batch.
 * A fr_gemm_call promises more: element (i, j) depends on row i of A, column j of B, k and nothing else, so
 * rows and columns may be split over threads at will. See docs/performance.md for what was measured.
 *
 * C (m x n) = alpha op(A) op(B) + beta C. op(A) is m x k, stored k x m when `transpose`. Operands may be
 * fp32, bf16, or fp32 rounded to bf16 while being read (`round`). Sums are fp32, in order of k.
 */
#ifndef FRONTIER_CPU_GEMM_H
#define FRONTIER_CPU_GEMM_H
#include "frontier/graph.h"

typedef struct fr_operand {
    const void *data;
    int64_t ld;     /* elements between rows as stored */
    fr_dtype dtype; /* FR_F32 or FR_BF16 */
    bool transpose;
    bool round; /* fp32 values count as their bf16 rounding */
} fr_operand;

typedef struct fr_gemm_call {
    int64_t m, n, k;
    fr_operand a, b;
    const void *packed_b; /* what the path's `pack` made of all of b, or NULL */
    int64_t packed_n;     /* columns of the packed matrix; this call takes n from `packed_start` on */
    int64_t packed_start; /* a multiple of the path's `column_step` */
    float alpha, beta;
    void *c;
    fr_dtype c_dtype;
    int64_t ldc;
} fr_gemm_call;

typedef struct fr_gemm_path {
    const char *name;
    int64_t row_step, column_step; /* pieces for threads should be multiples of these */
    size_t (*workspace)(int64_t m, int64_t n, int64_t k, fr_dtype c_dtype);
    size_t (*least)(int64_t m, int64_t n, int64_t k, fr_dtype c_dtype);
    /* `workspace` may have any size from `least` on; up to what `workspace` says more is faster. */
    void (*run)(const fr_gemm_call *call, void *workspace, size_t bytes);
    /* A weight in the form `run` likes best: op(B) is k x n, taken from the fp32 rows (n x k) of a parameter.
     */
    size_t (*pack_bytes)(int64_t n, int64_t k);
    void (*pack)(const float *rows, int64_t n, int64_t k, bool round, void *out);
    bool packs_rows; /* `pack` makes bf16 rows, which may be given as an ordinary operand; else panels for
                        packed_b */
} fr_gemm_path;

extern const fr_gemm_path fr_gemm_path_avx512, fr_gemm_path_avx2, fr_gemm_path_onednn;
#endif
