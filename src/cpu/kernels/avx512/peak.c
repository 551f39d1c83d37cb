/* The register loop for AVX-512. See shared/peak_kernels.h. */
#include "cpu/kernels/avx512/vector.h"
#include "cpu/kernels/shared/peak_kernels.h"
