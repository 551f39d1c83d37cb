/* linear and the heads for AVX2 on our own fp32 products. See shared/product_kernels.h. */
#include "cpu/kernels/avx2/vector.h"
#include "cpu/kernels/kernels.h"

#define FR_PRODUCT_PATH  fr_gemm_path_avx2
#define FR_PRODUCT(name) name##_avx2
#define FR_PRODUCT_TEXT  "avx2"
#include "cpu/kernels/shared/product_kernels.h"
