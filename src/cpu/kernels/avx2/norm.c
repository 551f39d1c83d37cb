/* The norm kernels for AVX2: the shared text compiled for pairs of 256-bit registers. See
 * shared/norm_kernels.h. */
#include "cpu/kernels/avx2/vector.h"
#include "cpu/kernels/shared/norm_kernels.h"
