/* muon.c: one Muon update of one matrix (baseline.md 2.3).
 *
 * Momentum in Nesterov form gives a direction U; Polar Express makes it orthogonal; NorMuon evens out its
 * rows (or columns) by a running second moment and keeps its Frobenius norm; the weight moves along it and
 * decays where both point the same way (cautious decay). Everything but the iterate's bf16 rounding is
 * fp32, norms are accumulated in double.
 *
 * A zero gradient must pass through unharmed: the floors in the divisions (1e-6 and 1e-10) turn 0/0 into 0,
 * and the mask then includes equality, so the weight still decays by lr * decay. Projections that start at
 * zero have zero gradients behind them in step 0, so this is the normal first step and no curiosity.
 *
 * Work is cut into blocks of rows that depend on the shape alone, and each row is summed on its own, so a
 * pool of any size gives the same bits.
 */
#include "frontier/train.h"
#include "train/polar.h"
#include "train/reduce.h"

#include <math.h>
#include <string.h>

enum { ELEMENTS_PER_JOB = 1 << 15, COLUMNS_PER_JOB = 64 };

typedef struct muon_job {
    fr_polar polar;
    float *weight, *momentum, *second;
    const float *gradient;
    double *sums;   /* one per row or column, whichever is more */
    float *factors; /* the same */
    const fr_muon_options *options;
    double target; /* row norm of MuonEq, or a factor for every element */
    int64_t rows_per_job;
} muon_job;

static size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

size_t fr_muon_scratch_bytes(int64_t rows, int64_t columns)
{
    size_t m = (size_t)rows, n = (size_t)columns, small = m < n ? m : n, large = m < n ? n : m;
    return 2 * aligned(m * n * sizeof(float)) + 2 * aligned(small * small * sizeof(float)) +
           aligned(large * sizeof(double)) + aligned(large * sizeof(float));
}

static void *take(char **scratch, size_t bytes)
{
    void *memory = *scratch;
    *scratch += aligned(bytes);
    return memory;
}

static void lay_out(muon_job *job, int64_t rows, int64_t columns, void *scratch)
{
    char *at = scratch;
    size_t m = (size_t)rows, n = (size_t)columns, small = m < n ? m : n, large = m < n ? n : m;
    job->polar.rows = rows;
    job->polar.columns = columns;
    job->polar.small = (int64_t)small;
    job->polar.x = take(&at, m * n * sizeof(float));
    job->polar.next = take(&at, m * n * sizeof(float));
    job->polar.gram = take(&at, small * small * sizeof(float));
    job->polar.polynomial = take(&at, small * small * sizeof(float));
    job->sums = take(&at, large * sizeof(double));
    job->factors = take(&at, large * sizeof(float));
    job->rows_per_job = ELEMENTS_PER_JOB / columns > 0 ? ELEMENTS_PER_JOB / columns : 1;
}

/* ---- loops over blocks of rows ---- */

typedef void (*row_function)(muon_job *job, int64_t row);
typedef struct row_loop {
    muon_job *job;
    row_function function;
} row_loop;

static void run_rows(void *context, int64_t index, int thread)
{
    (void)thread;
    const row_loop *loop = context;
    int64_t first = index * loop->job->rows_per_job, last = first + loop->job->rows_per_job;
    if (last > loop->job->polar.rows)
        last = loop->job->polar.rows;
    for (int64_t row = first; row < last; row++)
        loop->function(loop->job, row);
}

static void for_rows(muon_job *job, row_function function)
{
    row_loop loop = {job, function};
    fr_pool_for(job->polar.pool, (job->polar.rows + job->rows_per_job - 1) / job->rows_per_job, run_rows,
                &loop);
}

static float *row_of_x(const muon_job *job, int64_t row)
{
    return job->polar.x + row * job->polar.columns;
}

/* Frobenius norm of x; leaves the row sums of squares in job->sums. */
static void sum_row(muon_job *job, int64_t row)
{
    job->sums[row] = fr_row_sum_squares(row_of_x(job, row), job->polar.columns);
}

static double frobenius(muon_job *job)
{
    for_rows(job, sum_row);
    return sqrt(fr_ordered_sum(job->sums, job->polar.rows));
}

static void scale_row(muon_job *job, int64_t row)
{
    float *x = row_of_x(job, row), factor = (float)job->target;
    for (int64_t i = 0; i < job->polar.columns; i++)
        x[i] *= factor;
}

static void divide_row(muon_job *job, int64_t row)
{
    float *x = row_of_x(job, row), divisor = (float)job->target;
    for (int64_t i = 0; i < job->polar.columns; i++)
        x[i] /= divisor;
    if (job->polar.bf16)
        fr_round_to_bf16(x, job->polar.columns);
}

/* ---- the steps of the update ---- */

static void nesterov_row(muon_job *job, int64_t row)
{
    int64_t columns = job->polar.columns, first = row * columns;
    float keep = (float)(1 - job->options->momentum), momentum = (float)job->options->momentum;
    const float *gradient = job->gradient + first;
    float *buffer = job->momentum + first, *x = row_of_x(job, row);
    for (int64_t i = 0; i < columns; i++) {
        buffer[i] += keep * (gradient[i] - buffer[i]);
        x[i] = gradient[i] + momentum * (buffer[i] - gradient[i]);
    }
    if (job->polar.bf16)
        fr_round_to_bf16(x, columns);
}

/* MuonEq: every row gets the root mean square of all row norms. */
static void equalize_row(muon_job *job, int64_t row)
{
    double norm = sqrt(job->sums[row]);
    float *x = row_of_x(job, row), factor = (float)(job->target / (norm > 1e-6 ? norm : 1e-6));
    if (job->polar.bf16)
        fr_round_to_bf16(&factor, 1);
    for (int64_t i = 0; i < job->polar.columns; i++)
        x[i] *= factor;
    if (job->polar.bf16)
        fr_round_to_bf16(x, job->polar.columns);
}

static void normalize(muon_job *job)
{
    if (job->options->equalize) {
        job->target = frobenius(job) / sqrt((double)job->polar.rows);
        for_rows(job, equalize_row);
    }
    float norm = (float)frobenius(job);
    if (job->polar.bf16)
        fr_round_to_bf16(&norm, 1);
    job->target = norm * 1.01 + 1e-6;
    for_rows(job, divide_row);
}

/* Muon+: the Frobenius norm an orthogonal matrix of this shape has. */
static void restore_norm(muon_job *job)
{
    double norm = frobenius(job);
    job->target = sqrt((double)job->polar.small) / (norm > 1e-6 ? norm : 1e-6);
    for_rows(job, scale_row);
}

/* Column sums of squares, a block of columns per job, rows in order. */
static void sum_columns(void *context, int64_t index, int thread)
{
    (void)thread;
    muon_job *job = context;
    int64_t columns = job->polar.columns, first = index * COLUMNS_PER_JOB, last = first + COLUMNS_PER_JOB;
    if (last > columns)
        last = columns;
    for (int64_t j = first; j < last; j++)
        job->sums[j] = 0;
    for (int64_t row = 0; row < job->polar.rows; row++) {
        const float *x = row_of_x(job, row);
        for (int64_t j = first; j < last; j++)
            job->sums[j] += (double)x[j] * x[j];
    }
}

static void scale_row_by_factors(muon_job *job, int64_t row)
{
    float *x = row_of_x(job, row);
    bool by_row = job->polar.rows >= job->polar.columns;
    for (int64_t i = 0; i < job->polar.columns; i++)
        x[i] *= by_row ? job->factors[row] : job->factors[i];
}

/* NorMuon: divide by the running root mean square of each row (column when wide), keep the Frobenius norm. */
static void even_out(muon_job *job)
{
    bool by_row = job->polar.rows >= job->polar.columns;
    int64_t count = by_row ? job->polar.rows : job->polar.columns;
    int64_t length = by_row ? job->polar.columns : job->polar.rows;
    if (by_row)
        for_rows(job, sum_row);
    else
        fr_pool_for(job->polar.pool, (count + COLUMNS_PER_JOB - 1) / COLUMNS_PER_JOB, sum_columns, job);
    double before = sqrt(fr_ordered_sum(job->sums, count)), after = 0;
    float keep = (float)(1 - job->options->beta2);
    for (int64_t i = 0; i < count; i++) {
        job->second[i] += keep * ((float)(job->sums[i] / (double)length) - job->second[i]);
        double inverse = 1 / sqrt(job->second[i] > 1e-10 ? job->second[i] : 1e-10);
        after += job->sums[i] * inverse * inverse;
        job->factors[i] = (float)inverse;
    }
    after = sqrt(after);
    double ratio = before / (after > 1e-10 ? after : 1e-10);
    for (int64_t i = 0; i < count; i++)
        job->factors[i] = (float)(job->factors[i] * ratio);
    for_rows(job, scale_row_by_factors);
}

static void apply_row(muon_job *job, int64_t row)
{
    const float *g = row_of_x(job, row);
    float *weight = job->weight + row * job->polar.columns;
    float lr = (float)job->options->lr, decay = (float)(job->options->lr * job->options->decay);
    for (int64_t i = 0; i < job->polar.columns; i++) {
        float both = decay * weight[i]; /* computed in any case: signs are random, a branch would be mispredicted */
        weight[i] -= lr * g[i] + (g[i] * weight[i] >= 0 ? both : 0);
    }
}

void fr_muon_update(float *weight, const float *gradient, float *momentum_buffer, float *second_moment,
                    int64_t rows, int64_t columns, const fr_muon_options *options, void *scratch)
{
    muon_job job = {.weight = weight,
                    .momentum = momentum_buffer,
                    .second = second_moment,
                    .gradient = gradient,
                    .options = options};
    job.polar.bf16 = options->bf16;
    job.polar.pool = options->pool;
    lay_out(&job, rows, columns, scratch);
    for_rows(&job, nesterov_row);
    normalize(&job);
    fr_polar_express(&job.polar);
    if (options->plus)
        restore_norm(&job);
    even_out(&job);
    for_rows(&job, apply_row);
}
