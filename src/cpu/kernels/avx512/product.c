/* linear and the heads for AVX-512 on our own fp32 products. See shared/product_kernels.h. */
#include "cpu/kernels/avx512/vector.h"
#include "cpu/kernels/kernels.h"

#define FR_PRODUCT_PATH  fr_gemm_path_avx512
#define FR_PRODUCT(name) name##_avx512
#define FR_PRODUCT_TEXT  "avx512"
#include "cpu/kernels/shared/product_kernels.h"
