/* What the files of src/cpu share beside products and splitting: which path is in use, and oneDNN's threads.
 */
#ifndef FRONTIER_CPU_INTERNAL_H
#define FRONTIER_CPU_INTERNAL_H
#include "cpu/gemm.h"
#include "frontier/cpu.h"

void fr_cpu_ask(fr_cpu_features *features);                  /* fr_cpu_detect without `path` */
const char *fr_cpu_table_name(const fr_kernel_table *table); /* "avx512", "avx2", "ref" */

/* The path that linear and the heads of this table use for plans of these numerics; NULL: the reference. */
const fr_gemm_path *fr_cpu_product_path(const fr_kernel_table *table, fr_numerics numerics);
/* Our own fp32 products on this processor; NULL where we have none. */
const fr_gemm_path *fr_cpu_gemm_path(void);

/* Makes oneDNN use one thread when called from this thread. Cheap; called before every use. */
void fr_onednn_one_thread(void);
/* oneDNN's sgemm, row-major, as a yardstick and for processors we have no kernels for. */
void fr_onednn_sgemm(const fr_gemm_call *call);

/* Register-resident multiply-adds; returns floating-point operations done. */
double fr_peak_loop_avx512(int64_t rounds);
double fr_peak_loop_avx2(int64_t rounds);
double fr_peak_loop_plain(int64_t rounds);

#endif
