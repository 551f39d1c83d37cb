/* The elementwise kernels for AVX-512: the shared text compiled for 512-bit registers. See
 * shared/elementwise_kernels.h. */
#include "cpu/kernels/avx512/vector.h"
#include "cpu/kernels/shared/elementwise_kernels.h"
