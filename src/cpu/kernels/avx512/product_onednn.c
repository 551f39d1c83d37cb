/* linear and the heads where the processor multiplies bf16: products by oneDNN, the rest AVX-512.
 * See shared/product_kernels.h and gemm_onednn.c. */
#include "cpu/kernels/avx512/vector.h"
#include "cpu/kernels/kernels.h"

#define FR_PRODUCT_PATH  fr_gemm_path_onednn
#define FR_PRODUCT(name) name##_onednn
#define FR_PRODUCT_TEXT  "onednn_bf16"
#include "cpu/kernels/shared/product_kernels.h"
