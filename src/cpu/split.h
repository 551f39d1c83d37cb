/* Splitting one operator over a pool without changing a bit.
 *
 * Why it exists: a plan is made before anyone knows how many threads will run it, yet every thread needs
 * memory of its own. So a kernel asks for the scratch of a few workers, and when it runs uses as many as
 * there are threads, jobs and memory. A job writes its own part of the result and nothing else, so who runs
 * it does not matter.
 */
#ifndef FRONTIER_CPU_SPLIT_H
#define FRONTIER_CPU_SPLIT_H
#include "cpu/gemm.h"

enum { FR_MOST_WORKERS = 8 };

/* Bytes of scratch for `jobs` jobs that need `bytes` each while they run. */
size_t fr_split_scratch(int64_t jobs, size_t bytes);
/* Runs job(call, 0 .. jobs-1, memory) over call->pool, memory being 64-byte aligned parts of call->scratch.
 */
void fr_split_jobs(const fr_call *call, int64_t jobs, size_t bytes,
                   void (*job)(const fr_call *call, int64_t index, void *memory));
/* Runs body(context, first, end) over ranges that cover 0 .. count-1; needs no memory. */
typedef void (*fr_range_body)(void *context, int64_t first, int64_t end);
void fr_split_range(fr_pool *pool, int64_t count, fr_range_body body, void *context);
/* One product, its rows or columns split over the pool; `workspace` is shared out among the threads. */
void fr_split_gemm(const fr_gemm_path *path, const fr_gemm_call *product, fr_pool *pool, void *workspace,
                   size_t bytes);

#endif
