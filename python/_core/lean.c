/* python/_core/lean.c: what the extension does without, so that the C library is all it needs.
 *
 * The trainer's operators ask for three things that a wheel should not bring along or demand: oneDNN (behind
 * fr_gemm_f32), threads (behind fr_pool_for; their calls are symbols of glibc 2.34) and newer versions of exp,
 * log and pow (glibc 2.29, which differ from the older ones in errno alone). They are defined here, inside this
 * library only, and the linker then leaves those of libfrontier out. Products are summed in double in order,
 * work that would be split over threads runs in order; an operator's result is the same to rounding, and the
 * same bits on every machine.
 */
#include "frontier/cpu.h"

/* ---- products ---- */

static double product(const float *a, int64_t step_a, const float *b, int64_t step_b, int64_t count)
{
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int lane = 0; lane < 4; lane++)
            sum[lane] += (double)a[(i + lane) * step_a] * (double)b[(i + lane) * step_b];
    for (; i < count; i++)
        sum[0] += (double)a[i * step_a] * (double)b[i * step_b];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void fr_gemm_f32(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                 const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++) {
        const float *row = transpose_a ? a + i : a + i * lda;
        for (int64_t j = 0; j < n; j++) {
            const float *column = transpose_b ? b + j * ldb : b + j;
            double sum = product(row, transpose_a ? lda : 1, column, transpose_b ? 1 : ldb, k);
            double old = beta == 0 ? 0 : (double)beta * (double)c[i * ldc + j];
            c[i * ldc + j] = (float)((double)alpha * sum + old);
        }
    }
}

/* ---- threads ---- */

void fr_pool_for(fr_pool *pool, int64_t count, fr_pool_job job, void *context)
{
    (void)pool;
    for (int64_t i = 0; i < count; i++)
        job(context, i, 0);
}

/* ---- functions ---- */

#if defined(__linux__) && defined(__x86_64__)
#define OLD(name) __asm__(".symver old_" #name ", " #name "@GLIBC_2.2.5")
double old_exp(double x);
double old_log(double x);
double old_pow(double x, double y);
double exp(double x);
double log(double x);
double pow(double x, double y);
OLD(exp);
OLD(log);
OLD(pow);

__attribute__((visibility("hidden"))) double exp(double x)
{
    return old_exp(x);
}

__attribute__((visibility("hidden"))) double log(double x)
{
    return old_log(x);
}

__attribute__((visibility("hidden"))) double pow(double x, double y)
{
    return old_pow(x, y);
}
#endif
