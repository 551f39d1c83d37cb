/* The kernels there are, one array per file and instruction set; table.c picks from them. */
#ifndef FRONTIER_CPU_KERNELS_H
#define FRONTIER_CPU_KERNELS_H
#include "frontier/graph.h"

extern const fr_kernel fr_kernels_attention_avx512[2], fr_kernels_attention_avx2[2];
extern const fr_kernel fr_kernels_product_avx512[5], fr_kernels_product_avx2[5];
extern const fr_kernel fr_kernels_elementwise_avx512[18], fr_kernels_elementwise_avx2[18];
extern const fr_kernel fr_kernels_norm_avx512[6], fr_kernels_norm_avx2[6];
extern const fr_kernel fr_kernels_gate_avx512[4], fr_kernels_gate_avx2[4];
extern const fr_kernel fr_kernels_product_onednn[5]; /* bf16 products by oneDNN, the rest AVX-512 */

#endif
