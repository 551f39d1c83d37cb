/* Matrix products by oneDNN: bf16 where the processor multiplies bf16, and sgemm.
 *
 * bf16 operands go in as they are; fp32 operands that count as rounded are cast into the workspace first.
 * Sums and fp32 results are fp32. Primitives are made per call: oneDNN keeps compiled ones in a cache of its
 * own, so a repeated shape costs microseconds. On a processor without bf16 the library emulates it; that is
 * how the tests run this file.
 *
 * oneDNN may choose another order of sums for another number of rows. Rows are therefore handed over in
 * blocks of BLOCK_ROWS, the last one filled up in the workspace, so that every row goes through the same
 * primitive whoever else is in the batch. (Products without batch rows in m, as weight gradients, are one
 * block.)
 *
 * A library call that fails leaves NaN in the result, which the run reports by name: kernels have no other
 * voice.
 */
#include "cpu/cpu_internal.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <math.h>
#include <string.h>

void fr_onednn_one_thread(void)
{
    /* Debian's oneDNN uses OpenMP, whose thread count is a property of the calling thread. We neither link it
     * nor know that it is there. */
    void (*set)(int);
    void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    memcpy(&set, &symbol, sizeof set);
    if (set)
        set(1);
}

void fr_onednn_sgemm(const fr_gemm_call *call)
{
    fr_onednn_one_thread();
    dnnl_sgemm(call->a.transpose ? 'T' : 'N', call->b.transpose ? 'T' : 'N', call->m, call->n, call->k,
               call->alpha, call->a.data, call->a.ld, call->b.data, call->b.ld, call->beta, call->c,
               call->ldc);
}

/* ---- bf16 ---------------------------------------------------------------------------------------------- */

enum { BLOCK_ROWS = 64 };

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Room to cast both operands whole, and to fill up a last block of rows of A and C. */
static size_t onednn_workspace(int64_t m, int64_t n, int64_t k, fr_dtype c_dtype)
{
    size_t a = aligned(sizeof(uint16_t) * (size_t)(m * k)), b = aligned(sizeof(uint16_t) * (size_t)(n * k));
    return a + b + aligned(sizeof(uint16_t) * (size_t)(BLOCK_ROWS * k)) +
           aligned(fr_dtype_bytes(c_dtype) * (size_t)(BLOCK_ROWS * n));
}

static void cast_rows(const fr_operand *x, int64_t rows, int64_t columns, uint16_t *out)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            out[i * columns + j] = fr_f32_to_bf16(((const float *)x->data)[i * x->ld + j]);
}

/* The operand as bf16; rows and columns are those of op(). An fp32 operand is cast into *memory, which moves
 * on. */
static fr_operand in_bf16(const fr_operand *x, int64_t rows, int64_t columns, char **memory)
{
    fr_operand cast = *x;
    int64_t stored_rows = x->transpose ? columns : rows, stored_columns = x->transpose ? rows : columns;
    if (x->dtype == FR_BF16)
        return cast;
    cast_rows(x, stored_rows, stored_columns, (uint16_t *)*memory);
    cast = (fr_operand){.data = *memory, .ld = stored_columns, .dtype = FR_BF16, .transpose = x->transpose};
    *memory += aligned(sizeof(uint16_t) * (size_t)(rows * columns));
    return cast;
}

/* One product as oneDNN sees it; every handle is NULL until made. */
typedef struct onednn_product {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t post;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t shapes[3]; /* A, B, C */
    dnnl_memory_t memories[3];
} onednn_product;

static dnnl_status_t describe(dnnl_memory_desc_t *shape, int64_t rows, int64_t columns, const fr_operand *x)
{
    dnnl_dims_t dims = {rows, columns}, strides = {x->transpose ? 1 : x->ld, x->transpose ? x->ld : 1};
    return dnnl_memory_desc_init_by_strides(shape, 2, dims, x->dtype == FR_BF16 ? dnnl_bf16 : dnnl_f32,
                                            strides);
}

static bool make_attributes(onednn_product *p, float alpha, float beta)
{
    return dnnl_primitive_attr_create(&p->attr) == dnnl_success &&
           dnnl_post_ops_create(&p->post) == dnnl_success &&
           (alpha == 1 || dnnl_primitive_attr_set_output_scales(p->attr, 1, 0, &alpha) == dnnl_success) &&
           (beta == 0 || dnnl_post_ops_append_sum(p->post, beta) == dnnl_success) &&
           dnnl_primitive_attr_set_post_ops(p->attr, p->post) == dnnl_success;
}

static bool make_product(onednn_product *p, const fr_gemm_call *call)
{
    dnnl_matmul_desc_t operation;
    fr_operand c = {.data = call->c, .ld = call->ldc, .dtype = call->c_dtype};
    return dnnl_engine_create(&p->engine, dnnl_cpu, 0) == dnnl_success &&
           dnnl_stream_create(&p->stream, p->engine, 0) == dnnl_success &&
           describe(&p->shapes[0], call->m, call->k, &call->a) == dnnl_success &&
           describe(&p->shapes[1], call->k, call->n, &call->b) == dnnl_success &&
           describe(&p->shapes[2], call->m, call->n, &c) == dnnl_success &&
           make_attributes(p, call->alpha, call->beta) &&
           dnnl_matmul_desc_init(&operation, &p->shapes[0], &p->shapes[1], NULL, &p->shapes[2]) ==
               dnnl_success &&
           dnnl_primitive_desc_create(&p->description, &operation, p->attr, p->engine, NULL) ==
               dnnl_success &&
           dnnl_primitive_create(&p->primitive, p->description) == dnnl_success;
}

static bool execute(onednn_product *p, const void *a, const void *b, void *c)
{
    void *data[3] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b, c};
    for (int i = 0; i < 3; i++)
        if (dnnl_memory_create(&p->memories[i], &p->shapes[i], p->engine, data[i]) != dnnl_success)
            return false;
    dnnl_exec_arg_t args[3] = {
        {DNNL_ARG_SRC, p->memories[0]}, {DNNL_ARG_WEIGHTS, p->memories[1]}, {DNNL_ARG_DST, p->memories[2]}};
    return dnnl_primitive_execute(p->primitive, p->stream, 3, args) == dnnl_success &&
           dnnl_stream_wait(p->stream) == dnnl_success;
}

static void release_product(onednn_product *p)
{
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(p->memories[i]);
    dnnl_primitive_destroy(p->primitive);
    dnnl_primitive_desc_destroy(p->description);
    dnnl_post_ops_destroy(p->post);
    dnnl_primitive_attr_destroy(p->attr);
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
}

static void fill_with_nan(const fr_gemm_call *call)
{
    for (int64_t i = 0; i < call->m; i++)
        for (int64_t j = 0; j < call->n; j++)
            if (call->c_dtype == FR_F32)
                ((float *)call->c)[i * call->ldc + j] = NAN;
            else
                ((uint16_t *)call->c)[i * call->ldc + j] = 0x7fc0;
}

static void run_product(const fr_gemm_call *call)
{
    onednn_product p = {0};
    fr_onednn_one_thread();
    if (!make_product(&p, call) || !execute(&p, call->a.data, call->b.data, call->c))
        fill_with_nan(call);
    release_product(&p);
}

/* Fewer rows than a block: through a full one in the workspace. */
static void run_last_rows(const fr_gemm_call *call, char *memory)
{
    size_t item = fr_dtype_bytes(call->c_dtype), row = item * (size_t)call->n;
    uint16_t *a = (uint16_t *)memory;
    char *c = memory + aligned(sizeof(uint16_t) * (size_t)(BLOCK_ROWS * call->k));
    fr_gemm_call full = *call;
    memset(a, 0, sizeof(uint16_t) * (size_t)(BLOCK_ROWS * call->k));
    memset(c, 0, row * BLOCK_ROWS);
    for (int64_t i = 0; i < call->m; i++) {
        memcpy(a + i * call->k, (const uint16_t *)call->a.data + i * call->a.ld,
               sizeof(uint16_t) * (size_t)call->k);
        memcpy(c + (size_t)i * row, (const char *)call->c + item * (size_t)(i * call->ldc), row);
    }
    full.m = BLOCK_ROWS;
    full.a = (fr_operand){.data = a, .ld = call->k, .dtype = FR_BF16};
    full.c = c;
    full.ldc = call->n;
    run_product(&full);
    for (int64_t i = 0; i < call->m; i++)
        memcpy((char *)call->c + item * (size_t)(i * call->ldc), c + (size_t)i * row, row);
}

static void onednn_run(const fr_gemm_call *call, void *workspace, size_t bytes)
{
    char *memory = workspace;
    fr_gemm_call whole = *call;
    (void)bytes;
    whole.a = in_bf16(&call->a, call->m, call->k, &memory);
    whole.b = in_bf16(&call->b, call->k, call->n, &memory);
    if (whole.a.transpose) {
        run_product(&whole);
        return;
    }
    for (int64_t row = 0; row < call->m; row += BLOCK_ROWS) {
        fr_gemm_call block = whole;
        block.m = call->m - row < BLOCK_ROWS ? call->m - row : BLOCK_ROWS;
        block.a.data = (const uint16_t *)whole.a.data + row * whole.a.ld;
        block.c = (char *)call->c + fr_dtype_bytes(call->c_dtype) * (size_t)(row * call->ldc);
        if (block.m == BLOCK_ROWS)
            run_product(&block);
        else
            run_last_rows(&block, memory);
    }
}

static size_t onednn_pack_bytes(int64_t n, int64_t k)
{
    return sizeof(uint16_t) * (size_t)(n * k);
}

static void onednn_pack(const float *rows, int64_t n, int64_t k, bool round, void *out)
{
    fr_operand weight = {.data = rows, .ld = k, .dtype = FR_F32, .round = round};
    cast_rows(&weight, n, k, out);
}

/* Row blocks begin at multiples of BLOCK_ROWS also when threads share the rows. */
const fr_gemm_path fr_gemm_path_onednn = {.name = "gemm_onednn_bf16",
                                          .row_step = BLOCK_ROWS,
                                          .column_step = INT32_MAX,
                                          .workspace = onednn_workspace,
                                          .least = onednn_workspace,
                                          .run = onednn_run,
                                          .pack_bytes = onednn_pack_bytes,
                                          .pack = onednn_pack,
                                          .packs_rows = true};
