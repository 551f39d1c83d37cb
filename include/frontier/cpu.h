/* frontier/cpu.h: running plans on this processor, fast.
 *
 * Mental model. The graph knows what to compute, a kernel table knows how. fr_cpu_kernels() is the table of the best
 * kernels this processor has: our own AVX-512 or AVX2 code, matrix products included, whose rows have the same
 * bits in any batch (docs/performance.md tells why not a library's); bf16 products through oneDNN where the
 * processor multiplies bf16; the plain C reference behind it all. The choice is by CPU features and may be
 * overridden by FRONTIER_KERNELS=ref|avx2|avx512|avx512_bf16. Our pool is the only thing that splits work.
 *
 * Training runs one plan per shard and thread: a thread executes whole operators alone, so nothing is
 * synchronised inside a step. Only evaluation or decoding of few rows splits operators over a pool.
 *
 *     const fr_kernel_table *kernels;
 *     fr_cpu_kernels(&kernels, &error);
 *     options.kernels = kernels;
 *     fr_plan_create(&plan, graph, &options, &error);
 */
#ifndef FRONTIER_CPU_H
#define FRONTIER_CPU_H
#include "frontier/graph.h"

typedef struct fr_cpu_features {
    bool avx2, avx512, avx512_bf16, amx_bf16;
    char name[64];            /* model name */
    const char *path;         /* "avx512_bf16", "avx512", "avx2", "ref": kernels in use */
    fr_numerics best_numerics; /* BF16 where the CPU multiplies bf16, else F32 */
} fr_cpu_features;
void fr_cpu_detect(fr_cpu_features *features);
/* The table for this processor; honours FRONTIER_KERNELS; an impossible request is FR_BAD_ENVIRONMENT. */
fr_status fr_cpu_kernels(const fr_kernel_table **table, fr_error *error);
const char *fr_cpu_library_version(void); /* "oneDNN 2.6.3" */

/* Copies of matrix parameters in the form the kernels like best (bf16 cast, packed for oneDNN). Created for the
 * plans that will run; refresh after every change of the parameters, split over the pool. */
typedef struct fr_prepared fr_prepared;
fr_status fr_prepared_create(fr_prepared **out, const fr_graph *graph, fr_numerics numerics, const fr_kernel_table *kernels, fr_error *error);
void fr_prepared_refresh(fr_prepared *prepared, const float *parameters, fr_pool *pool);
const void *const *fr_prepared_table(const fr_prepared *prepared); /* for fr_run_args.prepared; may be NULL */
size_t fr_prepared_bytes(const fr_prepared *prepared);
void fr_prepared_free(fr_prepared *prepared);

/* C = alpha op(A) op(B) + beta C, row-major fp32, this thread alone; op is transpose when told.
 * A: m x k (or k x m when transposed), lda etc. in elements. Same bits every call. */
void fr_gemm_f32(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                 const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* Flat vector helpers of the training loop; split over the pool, same bits for any number of threads. */
void fr_vector_add(float *target, const float *source, int64_t count, fr_pool *pool); /* target += source */
double fr_vector_sum_squares(const float *values, int64_t count, fr_pool *pool);      /* fixed blocks, fixed tree */

/* Peak of one thread, measured: the better of a register-resident FMA loop and the best large matrix product,
 * in FLOP/s; each is also returned. `threads` run at once; the figure is their sum. */
typedef struct fr_peak {
    double flops, register_loop, library_product;
} fr_peak;
fr_status fr_cpu_peak(int threads, double seconds, fr_peak *peak, fr_error *error);

#endif
