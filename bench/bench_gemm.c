/* bench_gemm: matrix products of a depth-10 step, as shares of one thread's peak.
 *
 *     bench_gemm [ROUNDS]
 *
 * Everything in one run, taken in turns, best of ROUNDS (default 15), in processor time of this thread: the
 * register loop, oneDNN's sgemm, our product, and ours with prepared weights. The clock covers packing of
 * operands except where they are prepared; it does not cover making a primitive or allocating a workspace.
 */
#include "cpu/cpu_internal.h"

#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)

typedef struct product_shape {
    const char *name;
    int64_t m, n, k;
    bool ta, tb;
} product_shape;

static const product_shape shapes[] = {{"forward 640 -> 640", 1024, 640, 640, false, true},
                                       {"forward 640 -> 2560", 1024, 2560, 640, false, true},
                                       {"forward 2560 -> 640", 1024, 640, 2560, false, true},
                                       {"head forward", 512, 8192, 640, false, true},
                                       {"d x, 640", 1024, 640, 640, false, false},
                                       {"d x, 2560 -> 640", 1024, 640, 2560, false, false},
                                       {"d x, 640 -> 2560", 1024, 2560, 640, false, false},
                                       {"head d x", 512, 640, 8192, false, false},
                                       {"d W, 640 x 640", 640, 640, 1024, true, false},
                                       {"d W, 2560 x 640", 2560, 640, 1024, true, false},
                                       {"d W, 640 x 2560", 640, 2560, 1024, true, false},
                                       {"head d W", 8192, 640, 512, true, false},
                                       {"one row", 1, 2560, 640, false, true}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void keep(double *best, double flops, double seconds)
{
    *best = flops / seconds > *best ? flops / seconds : *best;
}

typedef struct rates {
    double loop, library, own, prepared;
} rates;

static float *matrix(int64_t rows, int64_t columns, uint64_t stream)
{
    float *x = fr_allocate(sizeof(float) * (size_t)(rows * columns));
    for (int64_t i = 0; x && i < rows * columns; i++)
        x[i] = (float)(fr_rng_at(1, stream, (uint64_t)i) % 1000) * 1e-3f - 0.5f;
    return x;
}

static rates measure(const product_shape *s, const fr_gemm_path *path, int rounds)
{
    rates best = {0};
    double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    fr_gemm_call call = {
        .m = s->m, .n = s->n, .k = s->k, .alpha = 1, .beta = s->ta, .c_dtype = FR_F32, .ldc = s->n};
    float *a = matrix(s->m, s->k, 1), *b = matrix(s->k, s->n, 2), *c = matrix(s->m, s->n, 3);
    size_t bytes = path->workspace(s->m, s->n, s->k, FR_F32);
    void *workspace = fr_allocate(bytes), *packed = fr_allocate(path->pack_bytes(s->n, s->k));
    call.a = (fr_operand){.data = a, .ld = s->ta ? s->m : s->k, .dtype = FR_F32, .transpose = s->ta};
    call.b = (fr_operand){.data = b, .ld = s->tb ? s->k : s->n, .dtype = FR_F32, .transpose = s->tb};
    call.c = c;
    if (s->tb && packed)
        path->pack(b, s->n, s->k, false, packed);
    for (int r = 0; r < rounds && a && b && c && workspace && packed; r++) {
        double start = now(), work = fr_peak_loop_avx512(100000);
        keep(&best.loop, work, now() - start);
        start = now();
        fr_onednn_sgemm(&call);
        keep(&best.library, flops, now() - start);
        fr_gemm_call own = call;
        start = now();
        path->run(&own, workspace, bytes);
        keep(&best.own, flops, now() - start);
        own.packed_b = packed;
        own.packed_n = s->n;
        start = now();
        if (s->tb)
            path->run(&own, workspace, bytes);
        keep(&best.prepared, s->tb ? flops : 0, now() - start);
    }
    fr_deallocate(a);
    fr_deallocate(b);
    fr_deallocate(c);
    fr_deallocate(workspace);
    fr_deallocate(packed);
    return best;
}

int main(int argc, char **argv)
{
    fr_cpu_features f;
    int64_t rounds = 15;
    fr_cpu_detect(&f);
    if (!f.avx512 || (argc > 1 && fr_parse_int(argv[1], 1, 10000, &rounds, "ROUNDS", NULL) != FR_OK)) {
        fputs("bench_gemm [ROUNDS], on a processor with AVX-512\n", stderr);
        return 2;
    }
    printf("GFLOP/s of one thread, best of %d in processor time (share of the register loop)\n", (int)rounds);
    for (int i = 0; i < SHAPES; i++) {
        rates r = measure(&shapes[i], &fr_gemm_path_avx512, (int)rounds);
        printf("%-22s loop %6.1f  sgemm %6.1f (%.2f)  own %6.1f (%.2f)", shapes[i].name, 1e-9 * r.loop,
               1e-9 * r.library, r.library / r.loop, 1e-9 * r.own, r.own / r.loop);
        if (shapes[i].tb)
            printf("  prepared %6.1f (%.2f)", 1e-9 * r.prepared, r.prepared / r.loop);
        putchar('\n');
    }
    return 0;
}

#else
int main(void)
{
    fputs("bench_gemm compares AVX-512 products; this processor has none\n", stderr);
    return 4;
}
#endif
