/* How operators are split over a pool; see split.h for why. */
#include "cpu/split.h"

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t workers_for(int64_t jobs)
{
    int64_t most = fr_cpu_available() < FR_MOST_WORKERS ? fr_cpu_available() : FR_MOST_WORKERS;
    return jobs < most ? jobs : most;
}

size_t fr_split_scratch(int64_t jobs, size_t bytes)
{
    return (size_t)workers_for(jobs) * aligned(bytes);
}

/* ---- jobs with memory ------------------------------------------------------------------------------------
 */

typedef struct job_run {
    const fr_call *call;
    int64_t jobs, workers;
    size_t bytes;
    void (*job)(const fr_call *call, int64_t index, void *memory);
} job_run;

/* Worker w takes jobs w, w + workers, ... with the w-th part of the scratch. */
static void run_worker(void *context, int64_t worker, int thread)
{
    const job_run *run = context;
    (void)thread;
    for (int64_t i = worker; i < run->jobs; i += run->workers)
        run->job(run->call, i, (char *)run->call->scratch + (size_t)worker * run->bytes);
}

void fr_split_jobs(const fr_call *call, int64_t jobs, size_t bytes,
                   void (*job)(const fr_call *call, int64_t index, void *memory))
{
    int64_t workers = workers_for(jobs), threads = fr_pool_threads(call->pool);
    job_run run = {call, jobs, workers < threads ? workers : threads, aligned(bytes), job};
    fr_pool_for(call->pool, run.workers, run_worker, &run);
}

/* ---- ranges -------------------------------------------------------------------------------------------- */

typedef struct range_run {
    int64_t count, step;
    fr_range_body body;
    void *context;
} range_run;

static void run_range(void *context, int64_t index, int thread)
{
    const range_run *run = context;
    int64_t first = index * run->step, end = first + run->step;
    (void)thread;
    run->body(run->context, first, end < run->count ? end : run->count);
}

void fr_split_range(fr_pool *pool, int64_t count, fr_range_body body, void *context)
{
    int64_t pieces = 4 * fr_pool_threads(pool);
    if (!pool || count < pieces) {
        body(context, 0, count);
        return;
    }
    range_run run = {count, (count + pieces - 1) / pieces, body, context};
    fr_pool_for(pool, (count + run.step - 1) / run.step, run_range, &run);
}

/* ---- products ------------------------------------------------------------------------------------------ */

typedef struct gemm_split {
    const fr_gemm_path *path;
    const fr_gemm_call *product;
    bool by_rows;
    int64_t workers, step;
    char *workspace;
    size_t bytes;
} gemm_split;

static const void *skip(const fr_operand *x, bool rows_of_op, int64_t count)
{
    size_t item = fr_dtype_bytes(x->dtype);
    return (const char *)x->data + item * (size_t)(count * (rows_of_op != x->transpose ? x->ld : 1));
}

static fr_gemm_call part_of(const gemm_split *split, int64_t first, int64_t end)
{
    fr_gemm_call part = *split->product;
    size_t item = fr_dtype_bytes(part.c_dtype);
    if (split->by_rows) {
        part.m = end - first;
        part.a.data = skip(&part.a, true, first);
        part.c = (char *)part.c + item * (size_t)(first * part.ldc);
    } else {
        part.n = end - first;
        part.b.data = skip(&part.b, false, first);
        part.packed_start += first;
        part.c = (char *)part.c + item * (size_t)first;
    }
    return part;
}

static void run_gemm_part(void *context, int64_t worker, int thread)
{
    const gemm_split *split = context;
    int64_t count = split->by_rows ? split->product->m : split->product->n;
    int64_t first = worker * split->step, end = first + split->step < count ? first + split->step : count;
    (void)thread;
    if (first >= end)
        return;
    fr_gemm_call part = part_of(split, first, end);
    split->path->run(&part, split->workspace + (size_t)worker * split->bytes, split->bytes);
}

/* Shares the work out among `workers`; false if the workspace is too small for so many. */
static bool share_out(gemm_split *split, int64_t workers, size_t bytes)
{
    const fr_gemm_call *product = split->product;
    int64_t step = split->by_rows ? split->path->row_step : split->path->column_step;
    int64_t steps = ((split->by_rows ? product->m : product->n) + step - 1) / step;
    split->step = (steps + workers - 1) / workers * step;
    split->workers = workers;
    split->bytes = bytes / (size_t)workers / 64 * 64;
    int64_t m = split->by_rows ? split->step : product->m, n = split->by_rows ? product->n : split->step;
    return split->bytes >= split->path->least(m, n, product->k, product->c_dtype);
}

void fr_split_gemm(const fr_gemm_path *path, const fr_gemm_call *product, fr_pool *pool, void *workspace,
                   size_t bytes)
{
    gemm_split split = {.path = path, .product = product, .workspace = workspace};
    int64_t row_steps = (product->m + path->row_step - 1) / path->row_step;
    int64_t column_steps = (product->n + path->column_step - 1) / path->column_step;
    split.by_rows = row_steps >= column_steps;
    int64_t steps = split.by_rows ? row_steps : column_steps, threads = fr_pool_threads(pool);
    int64_t workers = threads < steps ? threads : steps;
    while (workers > 1 && !share_out(&split, workers, bytes))
        workers--;
    if (workers <= 1)
        path->run(product, workspace, bytes);
    else
        fr_pool_for(pool, workers, run_gemm_part, &split);
}
