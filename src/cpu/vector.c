/* Flat vectors of the training loop: gradients are added and measured.
 *
 * The vector is cut into PIECES of equal length, whatever the number of threads, and the piece sums are added
 * as a binary tree: the result has the same bits on one thread and on sixty-four.
 */
#include "frontier/cpu.h"

enum { PIECES = 256, LANES = 8 };

typedef struct vector_job {
    float *target;
    const float *source;
    int64_t count, step;
    double sums[PIECES];
} vector_job;

static int64_t piece_length(int64_t count)
{
    int64_t step = (count + PIECES - 1) / PIECES;
    return (step + LANES - 1) / LANES * LANES;
}

static void piece_bounds(const vector_job *job, int64_t index, int64_t *first, int64_t *end)
{
    *first = index * job->step < job->count ? index * job->step : job->count;
    *end = *first + job->step < job->count ? *first + job->step : job->count;
}

static void add_piece(void *context, int64_t index, int thread)
{
    vector_job *job = context;
    int64_t first, end;
    (void)thread;
    piece_bounds(job, index, &first, &end);
    float *restrict target = job->target;
    const float *restrict source = job->source;
    for (int64_t i = first; i < end; i++)
        target[i] += source[i];
}

void fr_vector_add(float *target, const float *source, int64_t count, fr_pool *pool)
{
    vector_job job = {.target = target, .source = source, .count = count, .step = piece_length(count)};
    fr_pool_for(pool, PIECES, add_piece, &job);
}

static void square_piece(void *context, int64_t index, int thread)
{
    vector_job *job = context;
    double lanes[LANES] = {0};
    int64_t first, end;
    (void)thread;
    piece_bounds(job, index, &first, &end);
    for (int64_t i = first; i < end; i += LANES)
        for (int64_t j = 0; j < LANES && i + j < end; j++)
            lanes[j] += (double)job->source[i + j] * (double)job->source[i + j];
    for (int width = LANES / 2; width; width /= 2)
        for (int j = 0; j < width; j++)
            lanes[j] += lanes[j + width];
    job->sums[index] = lanes[0];
}

double fr_vector_sum_squares(const float *values, int64_t count, fr_pool *pool)
{
    vector_job job = {.source = values, .count = count, .step = piece_length(count)};
    fr_pool_for(pool, PIECES, square_piece, &job);
    for (int width = PIECES / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            job.sums[i] += job.sums[i + width];
    return job.sums[0];
}
