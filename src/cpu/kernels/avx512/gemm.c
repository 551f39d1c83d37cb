/* Matrix products for AVX-512: the shared text compiled for 512-bit registers. See shared/gemm_kernels.h. */
#include "cpu/kernels/avx512/vector.h"
#include "cpu/kernels/shared/gemm_kernels.h"
