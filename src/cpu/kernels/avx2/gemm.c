/* The gemm kernels for AVX2: the shared text compiled for pairs of 256-bit registers. See
 * shared/gemm_kernels.h. */
#include "cpu/kernels/avx2/vector.h"
#include "cpu/kernels/shared/gemm_kernels.h"
