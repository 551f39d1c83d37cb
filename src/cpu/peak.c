/* The peak that utilisation is measured against: the better of two things this processor demonstrably does.
 *
 * A loop of multiply-adds on registers is what the arithmetic units can do; the best large product of oneDNN
 * is what a good library makes of them. Threads run at once, held together by a barrier, since clocks and
 * shared units depend on how many cores work. A thread takes its best short round: a round that another
 * process disturbed says nothing about the processor, and too high a peak only makes utilisation look lower.
 */
#include "cpu/cpu_internal.h"

#include <pthread.h>
#include <time.h>

enum { MOST_THREADS = 1024, ROUNDS = 100000 };

/* m = n = k */
static const int64_t product_sizes[] = {640, 1024, 2048};
enum { PRODUCT_SIZES = 3, LARGEST = 2048 };

typedef struct peak_run {
    pthread_barrier_t barrier;
    double seconds;
    double (*loop)(int64_t rounds);
    double best_loop[MOST_THREADS], best_product[MOST_THREADS];
    float *memory; /* three matrices per thread */
} peak_run;

double fr_peak_loop_plain(int64_t rounds)
{
    float x[64];
    for (int i = 0; i < 64; i++)
        x[i] = (float)i;
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < 64; i++)
            x[i] = x[i] * 0.999f + 1e-3f;
    volatile float keep = x[0] + x[63];
    (void)keep;
    return 2.0 * 64 * (double)rounds;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void keep_best(double *best, double flops, double seconds)
{
    if (seconds > 0 && flops / seconds > *best)
        *best = flops / seconds;
}

static void measure_loop(peak_run *run, int64_t index)
{
    for (double start = now(), t = start, end; t - start < run->seconds / 2; t = end) {
        double flops = run->loop(ROUNDS);
        end = now();
        keep_best(&run->best_loop[index], flops, end - t);
    }
}

static void measure_products(peak_run *run, int64_t index)
{
    float *a = run->memory + index * 3 * LARGEST * LARGEST;
    int which = 0;
    for (double start = now(), t = start, end; t - start < run->seconds / 2 || which < PRODUCT_SIZES;
         t = end) {
        int64_t n = product_sizes[which++ % PRODUCT_SIZES];
        fr_gemm_call call = {.m = n,
                             .n = n,
                             .k = n,
                             .a = {a, n, FR_F32, false, false},
                             .b = {a + LARGEST * LARGEST, n, FR_F32, false, false},
                             .alpha = 1,
                             .c = a + 2 * LARGEST * LARGEST,
                             .c_dtype = FR_F32,
                             .ldc = n};
        fr_onednn_sgemm(&call);
        end = now();
        keep_best(&run->best_product[index], 2.0 * (double)n * (double)n * (double)n, end - t);
    }
}

static void measure(void *context, int64_t index, int thread)
{
    peak_run *run = context;
    (void)thread;
    pthread_barrier_wait(&run->barrier);
    measure_loop(run, index);
    pthread_barrier_wait(&run->barrier);
    measure_products(run, index);
}

static double (*best_loop(void))(int64_t)
{
#if defined(__x86_64__)
    fr_cpu_features f;
    fr_cpu_ask(&f);
    if (f.avx512)
        return fr_peak_loop_avx512;
    if (f.avx2)
        return fr_peak_loop_avx2;
#endif
    return fr_peak_loop_plain;
}

static fr_status run_threads(peak_run *run, int threads, fr_peak *peak, fr_error *error)
{
    fr_pool *pool;
    FR_TRY(fr_pool_create(&pool, threads, error));
    pthread_barrier_init(&run->barrier, NULL, (unsigned)threads);
    fr_pool_for(pool, threads, measure, run);
    pthread_barrier_destroy(&run->barrier);
    fr_pool_free(pool);
    *peak = (fr_peak){0};
    for (int i = 0; i < threads; i++) {
        peak->register_loop += run->best_loop[i];
        peak->library_product += run->best_product[i];
    }
    peak->flops = peak->register_loop > peak->library_product ? peak->register_loop : peak->library_product;
    return FR_OK;
}

fr_status fr_cpu_peak(int threads, double seconds, fr_peak *peak, fr_error *error)
{
    if (threads < 1 || threads > MOST_THREADS)
        return fr_error_set(error, FR_BAD_USAGE, "threads", NULL, "cannot measure the peak of %d threads",
                            threads);
    size_t bytes = sizeof(float) * 3 * LARGEST * LARGEST * (size_t)threads;
    peak_run *run = fr_allocate(sizeof *run);
    float *memory = fr_allocate(bytes);
    fr_status status = run && memory ? FR_OK : fr_error_memory(error, bytes, "measuring the peak");
    if (status == FR_OK) {
        run->seconds = seconds;
        run->loop = best_loop();
        run->memory = memory;
        status = run_threads(run, threads, peak, error);
    }
    fr_deallocate(memory);
    fr_deallocate(run);
    return status;
}
