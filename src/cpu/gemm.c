/* fr_gemm_f32, the matrix product for everybody else (the optimizer above all).
 *
 * Our own tiles where the processor has them, oneDNN's sgemm elsewhere. The packing buffers lie on the stack,
 * so a call neither allocates nor fails; smaller buffers only mean that the right operand is packed more
 * often.
 */
#include "cpu/cpu_internal.h"

enum { STACK_BYTES = 1 << 20 };

static __attribute__((noinline)) void run_on_stack(const fr_gemm_path *path, const fr_gemm_call *call)
{
    _Alignas(64) char workspace[STACK_BYTES];
    path->run(call, workspace, sizeof workspace);
}

void fr_gemm_f32(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                 const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    fr_gemm_call call = {
        .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .c = c, .c_dtype = FR_F32, .ldc = ldc};
    call.a = (fr_operand){.data = a, .ld = lda, .dtype = FR_F32, .transpose = transpose_a};
    call.b = (fr_operand){.data = b, .ld = ldb, .dtype = FR_F32, .transpose = transpose_b};
    const fr_gemm_path *path = fr_cpu_gemm_path();
    if (path)
        run_on_stack(path, &call);
    else
        fr_onednn_sgemm(&call);
}
