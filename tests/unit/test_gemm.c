/* Matrix products: right against double, and the promise behind bit-identical scores: a row of the result
 * depends on its own row, on the right operand and on nothing else. Every path is tested that this processor
 * can run, oneDNN's bf16 in emulation.
 */
#include "cpu/cpu_internal.h"
#include "cpu/split.h"
#include "test.h"

typedef struct shape {
    int64_t m, n, k;
    bool ta, tb;
} shape;

static float value_at(uint64_t stream, int64_t i)
{
    return (float)fr_rng_normal_at(3, stream, (uint64_t)i);
}

/* rows x columns of op(), stored with 3 spare elements per row, in either dtype. */
static fr_operand make_operand(int64_t rows, int64_t columns, bool transpose, fr_dtype dtype, uint64_t stream)
{
    int64_t stored = transpose ? columns : rows, ld = (transpose ? rows : columns) + 3;
    void *data = fr_allocate((size_t)(stored * ld + 64) * 4);
    for (int64_t i = 0; i < stored * ld; i++) {
        double value = (double)value_at(stream, i);
        fr_store_doubles(data, dtype, i, 1, &value, false);
    }
    return (fr_operand){.data = data, .ld = ld, .dtype = dtype, .transpose = transpose};
}

static double element(const fr_operand *x, int64_t row, int64_t column)
{
    double value;
    fr_load_doubles(x->data, x->dtype, x->transpose ? column * x->ld + row : row * x->ld + column, 1, &value);
    return x->round ? (double)fr_bf16_to_f32(fr_f32_to_bf16((float)value)) : value;
}

static void fill_result(fr_gemm_call *call)
{
    for (int64_t i = 0; i < call->m * call->ldc; i++) {
        double value = (double)value_at(5, i);
        fr_store_doubles(call->c, call->c_dtype, i, 1, &value, false);
    }
}

static fr_gemm_call make_call(const shape *s, fr_dtype a, fr_dtype b, fr_dtype c, float alpha, float beta)
{
    fr_gemm_call call = {
        .m = s->m, .n = s->n, .k = s->k, .alpha = alpha, .beta = beta, .c_dtype = c, .ldc = s->n + 5};
    call.a = make_operand(s->m, s->k, s->ta, a, 1);
    call.b = make_operand(s->k, s->n, s->tb, b, 2);
    call.c = fr_allocate((size_t)(s->m * call.ldc + 64) * 4);
    fill_result(&call);
    return call;
}

static void release_call(fr_gemm_call *call)
{
    fr_deallocate((void *)(uintptr_t)call->a.data);
    fr_deallocate((void *)(uintptr_t)call->b.data);
    fr_deallocate(call->c);
}

static void run_with(const fr_gemm_path *path, const fr_gemm_call *call, size_t bytes)
{
    char *workspace = fr_allocate(bytes + 64);
    memset(workspace, 0xff, bytes);
    path->run(call, workspace, bytes);
    for (int i = 0; i < 64; i++)
        CHECK(workspace[bytes + (size_t)i] == 0);
    fr_deallocate(workspace);
}

static size_t full(const fr_gemm_path *path, const fr_gemm_call *call)
{
    return path->workspace(call->m, call->n, call->k, call->c_dtype);
}

/* Largest error against double sums, relative to what k terms of unit size may cost. */
static double error_of(const fr_gemm_call *call, const double *before)
{
    double worst = 0;
    for (int64_t i = 0; i < call->m; i++)
        for (int64_t j = 0; j < call->ldc; j++) {
            double got, want = before[i * call->ldc + j];
            fr_load_doubles(call->c, call->c_dtype, i * call->ldc + j, 1, &got);
            if (j < call->n) {
                double sum = 0;
                for (int64_t k = 0; k < call->k; k++)
                    sum += element(&call->a, i, k) * element(&call->b, k, j);
                want = (double)call->alpha * sum + (double)call->beta * want;
            }
            double error = fabs(got - want) / sqrt((double)call->k + 1);
            worst = error > worst || isnan(error) ? error : worst;
        }
    return worst;
}

static double *result_before(const fr_gemm_call *call)
{
    double *before = fr_allocate((size_t)(call->m * call->ldc) * sizeof *before);
    fr_load_doubles(call->c, call->c_dtype, 0, call->m * call->ldc, before);
    return before;
}

static void check_right(const fr_gemm_path *path, const shape *s, fr_dtype a, fr_dtype b, fr_dtype c,
                        float alpha, float beta, size_t bytes)
{
    fr_gemm_call call = make_call(s, a, b, c, alpha, beta);
    double *before = result_before(&call), limit = c == FR_BF16 ? 2e-2 : 2e-6;
    call.a.round = call.b.round = path->packs_rows;
    run_with(path, &call, bytes ? bytes : full(path, &call));
    double error = error_of(&call, before);
    if (!(error <= limit)) {
        char text[200];
        snprintf(text, sizeof text, "%s %lldx%lldx%lld%s%s: error %g", path->name, (long long)s->m,
                 (long long)s->n, (long long)s->k, s->ta ? " ta" : "", s->tb ? " tb" : "", error);
        test_fail(__FILE__, __LINE__, text);
    }
    fr_deallocate(before);
    release_call(&call);
}

static const shape shapes[] = {{1, 1, 1, false, false},     {3, 5, 7, false, true},
                               {29, 33, 65, false, true},   {29, 70, 65, true, false},
                               {15, 31, 700, false, false}, {14, 32, 16, true, true},
                               {40, 300, 17, false, true},  {1, 90, 130, false, true}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static int list_paths(const fr_gemm_path *paths[3])
{
    int count = 0;
    fr_cpu_features f;
    fr_cpu_detect(&f);
#if defined(__x86_64__)
    if (f.avx512)
        paths[count++] = &fr_gemm_path_avx512;
    if (f.avx2)
        paths[count++] = &fr_gemm_path_avx2;
#endif
    paths[count++] = &fr_gemm_path_onednn;
    return count;
}

TEST(every_path_is_right)
{
    const fr_gemm_path *paths[3];
    for (int p = list_paths(paths) - 1; p >= 0; p--)
        for (int s = 0; s < SHAPES; s++) {
            check_right(paths[p], &shapes[s], FR_F32, FR_F32, FR_F32, 1, 0, 0);
            check_right(paths[p], &shapes[s], FR_BF16, FR_F32, FR_F32, 0.5f, 1, 0);
            check_right(paths[p], &shapes[s], FR_F32, FR_BF16, FR_BF16, 1, 1, 0);
            check_right(paths[p], &shapes[s], FR_BF16, FR_BF16, FR_BF16, 1, 0, 0);
        }
}

TEST(public_product_is_right)
{
    for (int s = 0; s < SHAPES; s++) {
        fr_gemm_call call = make_call(&shapes[s], FR_F32, FR_F32, FR_F32, 1.5f, -0.25f);
        double *before = result_before(&call);
        fr_gemm_f32(call.a.transpose, call.b.transpose, call.m, call.n, call.k, call.alpha, call.a.data,
                    call.a.ld, call.b.data, call.b.ld, call.beta, call.c, call.ldc);
        CHECK_NEAR(error_of(&call, before), 0, 2e-6, 0);
        fr_deallocate(before);
        release_call(&call);
    }
}

/* Runs `rows` rows from `first` on alone and compares them with the same rows of the whole. */
static void check_rows(const fr_gemm_path *path, const fr_gemm_call *whole, int64_t first, int64_t rows,
                       size_t bytes)
{
    fr_gemm_call part = *whole;
    size_t item = fr_dtype_bytes(part.c_dtype);
    part.m = rows;
    part.a.data = (const char *)part.a.data + fr_dtype_bytes(part.a.dtype) * (size_t)(first * part.a.ld);
    part.c = fr_allocate(item * (size_t)(rows * part.ldc) + 64);
    part.beta = 0;
    run_with(path, &part, bytes ? bytes : full(path, &part));
    for (int64_t i = 0; i < rows; i++)
        if (memcmp((char *)part.c + item * (size_t)(i * part.ldc),
                   (char *)whole->c + item * (size_t)((first + i) * part.ldc), item * (size_t)part.n)) {
            char text[120];
            snprintf(text, sizeof text, "%s: row %lld alone in %lld rows has other bits", path->name,
                     (long long)(first + i), (long long)rows);
            test_fail(__FILE__, __LINE__, text);
            break;
        }
    fr_deallocate(part.c);
}

TEST(a_row_does_not_know_its_batch)
{
    const fr_gemm_path *paths[3];
    const shape s = {150, 67, 1300, false, true};
    const int64_t counts[] = {1, 2, 3, 14, 31, 64, 100};
    for (int p = list_paths(paths) - 1; p >= 0; p--) {
        fr_gemm_call whole = make_call(&s, FR_BF16, FR_BF16, FR_F32, 1, 0);
        run_with(paths[p], &whole, full(paths[p], &whole));
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            check_rows(paths[p], &whole, 150 - counts[c], counts[c], 0);
        check_rows(paths[p], &whole, 0, 100, paths[p]->least(100, s.n, s.k, FR_F32));
        release_call(&whole);
    }
}

/* The library is the reason for having products of our own: this is what it does to one row. Reported, not
 * required. */
TEST(library_rows_depend_on_the_batch)
{
    const shape s = {64, 640, 640, false, true};
    fr_gemm_call call = make_call(&s, FR_F32, FR_F32, FR_F32, 1, 0), one = call;
    one.m = 1;
    one.c = fr_allocate(sizeof(float) * (size_t)call.ldc);
    fr_onednn_sgemm(&call);
    fr_onednn_sgemm(&one);
    printf("# oneDNN sgemm: row 0 alone %s row 0 of 64\n",
           memcmp(one.c, call.c, sizeof(float) * 640) ? "differs from" : "equals");
    CHECK_NEAR(((float *)one.c)[5], ((float *)call.c)[5], 1e-3, 0);
    fr_deallocate(one.c);
    release_call(&call);
}

TEST(packed_weights_change_no_bit)
{
    const fr_gemm_path *paths[3];
    const shape s = {37, 133, 1290, false, true};
    for (int p = list_paths(paths) - 1; p >= 0; p--) {
        if (paths[p]->packs_rows)
            continue;
        fr_gemm_call call = make_call(&s, FR_F32, FR_F32, FR_F32, 1, 0), again = call;
        float *dense = fr_allocate(sizeof(float) * (size_t)(s.n * s.k));
        for (int64_t i = 0; i < s.n; i++)
            memcpy(dense + i * s.k, (const float *)call.b.data + i * call.b.ld, sizeof(float) * (size_t)s.k);
        void *packed = fr_allocate(paths[p]->pack_bytes(s.n, s.k));
        paths[p]->pack(dense, s.n, s.k, false, packed);
        again.c = fr_allocate(sizeof(float) * (size_t)(s.m * call.ldc));
        again.packed_b = packed;
        again.packed_n = s.n;
        run_with(paths[p], &call, full(paths[p], &call));
        run_with(paths[p], &again, full(paths[p], &again));
        bool same = true;
        for (int64_t i = 0; i < s.m; i++)
            same = same && memcmp((float *)call.c + i * call.ldc, (float *)again.c + i * call.ldc,
                                  sizeof(float) * (size_t)s.n) == 0;
        CHECK(same);
        fr_deallocate(again.c);
        fr_deallocate(packed);
        fr_deallocate(dense);
        release_call(&call);
    }
}

TEST(splitting_changes_no_bit)
{
    const fr_gemm_path *paths[3];
    const shape tall = {150, 67, 700, false, true}, wide = {9, 400, 700, false, true};
    fr_pool *pool;
    fr_error error = {0};
    CHECK_OK(fr_pool_create(&pool, 4, &error));
    for (int p = list_paths(paths) - 1; p >= 0; p--)
        for (int w = 0; w < 2; w++) {
            fr_gemm_call one = make_call(w ? &wide : &tall, FR_BF16, FR_BF16, FR_F32, 1, 1),
                         many = make_call(w ? &wide : &tall, FR_BF16, FR_BF16, FR_F32, 1, 1);
            size_t bytes = full(paths[p], &one);
            void *workspace = fr_allocate(bytes);
            paths[p]->run(&one, workspace, bytes);
            fr_split_gemm(paths[p], &many, pool, workspace, bytes);
            CHECK(memcmp(one.c, many.c, sizeof(float) * (size_t)(one.m * one.ldc)) == 0);
            fr_deallocate(workspace);
            release_call(&one);
            release_call(&many);
        }
    fr_pool_free(pool);
}

/* Sums are in order of k within fp32 whatever the block sizes: a workspace of the least size gives the same
 * bits. */
TEST(small_workspace_changes_no_bit)
{
    const fr_gemm_path *paths[3];
    const shape s = {70, 300, 1400, true, false};
    for (int p = list_paths(paths) - 1; p >= 0; p--)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            fr_dtype c = bf16 ? FR_BF16 : FR_F32;
            fr_gemm_call large = make_call(&s, FR_BF16, FR_BF16, c, 1, 1),
                         small = make_call(&s, FR_BF16, FR_BF16, c, 1, 1);
            run_with(paths[p], &large, full(paths[p], &large));
            run_with(paths[p], &small, paths[p]->least(s.m, s.n, s.k, c));
            CHECK(memcmp(large.c, small.c, fr_dtype_bytes(c) * (size_t)(s.m * large.ldc)) == 0);
            release_call(&large);
            release_call(&small);
        }
}

TEST_MAIN(gemm)
