/* polar.c: drives the singular values of a matrix towards 1 without computing them.
 *
 * One step is X <- a X + (b A + c A^2) X with A = X X^T (or the mirror image from the right when X is
 * tall), an odd polynomial of the singular values. Five steps with coefficients that differ by step (Polar
 * Express, Amsel et al. 2025; the numbers are for a safety factor of 0.02 and a cushion of 2) bring
 * everything in (0.01, 1] near 1.
 *
 * A and its polynomial are symmetric, so only blocks on and above the diagonal are computed and mirrored;
 * that saves a sixth of the work (narrower blocks would save more and run slower) and makes the symmetry
 * exact. The blocks depend on the shape alone, never on the number of threads, and no block splits a
 * reduction: one thread or many, the bits are the same.
 *
 * In bf16 mode every product is rounded where a bf16 tensor would be stored: A, A^2, B = bA + cA^2, BX and
 * X. Sums between them are fp32, as a fused elementwise kernel computes them.
 */
#include "train/polar.h"

#include "frontier/cpu.h"

#include <string.h>

enum { BLOCK_TARGET = 320, ALIGNMENT = 16, ELEMENTS_PER_JOB = 1 << 16 };

static const struct {
    double a, b, c;
} polar_steps[5] = {
    {8.156554524902461, -22.48329292557795, 15.878769915207462},
    {4.042929935166739, -2.808917465908714, 0.5000178451051316},
    {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
    {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
    {2.3465413258596377, -1.7097828382687081, 0.42323551169305323},
};

void fr_round_to_bf16(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        if ((bits & 0x7fffffff) > 0x7f800000)
            continue; /* NaN */
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

typedef struct tiling {
    int64_t edge, count;
} tiling;

static tiling tile(int64_t size)
{
    int64_t blocks = (size + BLOCK_TARGET - 1) / BLOCK_TARGET;
    int64_t edge = (size + blocks - 1) / blocks;
    edge = (edge + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return (tiling){edge, (size + edge - 1) / edge};
}

static int64_t tile_length(tiling t, int64_t index, int64_t size)
{
    int64_t rest = size - index * t.edge;
    return rest < t.edge ? rest : t.edge;
}

/* Rectangles of a product that a job computes. */
typedef struct product {
    const fr_polar *polar;
    float alpha, beta;
    bool square; /* of gram; else gram itself */
} product;

/* Block (i, j), i <= j, of a symmetric matrix from the running number of the pair. */
static void pair_at(int64_t index, int64_t blocks, int64_t *i, int64_t *j)
{
    int64_t row = 0;
    while (index >= blocks - row)
        index -= blocks - row++;
    *i = row;
    *j = row + index;
}

static void mirror(float *matrix, int64_t size, int64_t row, int64_t column, int64_t rows, int64_t columns)
{
    for (int64_t i = row; i < row + rows; i++)
        for (int64_t j = i > column ? i : column; j < column + columns; j++)
            matrix[j * size + i] = matrix[i * size + j];
}

static void symmetric_block(void *context, int64_t index, int thread)
{
    (void)thread;
    const product *job = context;
    const fr_polar *p = job->polar;
    int64_t i, j, size = p->small;
    tiling t = tile(size);
    pair_at(index, t.count, &i, &j);
    int64_t row = i * t.edge, column = j * t.edge;
    int64_t rows = tile_length(t, i, size), columns = tile_length(t, j, size);
    float *out = job->square ? p->polynomial : p->gram;
    if (job->square)
        fr_gemm_f32(false, true, rows, columns, size, job->alpha, p->gram + row * size, size,
                    p->gram + column * size, size, job->beta, out + row * size + column, size);
    else if (p->rows > p->columns)
        fr_gemm_f32(true, false, rows, columns, p->rows, 1, p->x + row, p->columns, p->x + column, p->columns,
                    0, out + row * size + column, size);
    else
        fr_gemm_f32(false, true, rows, columns, p->columns, 1, p->x + row * p->columns, p->columns,
                    p->x + column * p->columns, p->columns, 0, out + row * size + column, size);
    mirror(out, size, row, column, rows, columns);
}

/* Rows of next = alpha * B X + beta * next (or X B). */
static void apply_block(void *context, int64_t index, int thread)
{
    (void)thread;
    const product *job = context;
    const fr_polar *p = job->polar;
    tiling t = tile(p->rows);
    int64_t row = index * t.edge, rows = tile_length(t, index, p->rows);
    float *out = p->next + row * p->columns;
    if (p->rows > p->columns)
        fr_gemm_f32(false, false, rows, p->columns, p->columns, job->alpha, p->x + row * p->columns,
                    p->columns, p->polynomial, p->columns, job->beta, out, p->columns);
    else
        fr_gemm_f32(false, false, rows, p->columns, p->rows, job->alpha, p->polynomial + row * p->rows,
                    p->rows, p->x, p->columns, job->beta, out, p->columns);
}

/* out = scale * in + keep * out; then rounded if asked. Work that goes by element. */
typedef struct combine {
    float *out;
    const float *in;
    float scale, keep;
    int64_t count;
    bool round;
} combine;

static void combine_slice(void *context, int64_t index, int thread)
{
    (void)thread;
    const combine *job = context;
    int64_t first = index * ELEMENTS_PER_JOB, last = first + ELEMENTS_PER_JOB;
    if (last > job->count)
        last = job->count;
    if (job->in)
        for (int64_t i = first; i < last; i++)
            job->out[i] = job->scale * job->in[i] + job->keep * job->out[i];
    if (job->round)
        fr_round_to_bf16(job->out + first, last - first);
}

static void combine_all(const fr_polar *p, float *out, const float *in, double scale, double keep,
                        int64_t count, bool round)
{
    combine job = {out, in, (float)scale, (float)keep, count, round};
    fr_pool_for(p->pool, (count + ELEMENTS_PER_JOB - 1) / ELEMENTS_PER_JOB, combine_slice, &job);
}

static void gram_of_x(fr_polar *p)
{
    product job = {.polar = p};
    int64_t blocks = tile(p->small).count;
    fr_pool_for(p->pool, blocks * (blocks + 1) / 2, symmetric_block, &job);
    if (p->bf16)
        combine_all(p, p->gram, NULL, 0, 1, p->small * p->small, true);
}

/* polynomial = b gram + c gram^2 */
static void polynomial_of_gram(fr_polar *p, double b, double c)
{
    int64_t blocks = tile(p->small).count, elements = p->small * p->small;
    product job = {
        .polar = p, .square = true, .alpha = p->bf16 ? 1 : (float)c, .beta = p->bf16 ? 0 : (float)b};
    if (!p->bf16)
        memcpy(p->polynomial, p->gram, (size_t)elements * sizeof(float));
    fr_pool_for(p->pool, blocks * (blocks + 1) / 2, symmetric_block, &job);
    if (p->bf16) {
        combine_all(p, p->polynomial, NULL, 0, 1, elements, true);
        combine_all(p, p->polynomial, p->gram, b, c, elements, true);
    }
}

/* x <- a x + polynomial x (or x polynomial) */
static void next_x(fr_polar *p, double a)
{
    int64_t elements = p->rows * p->columns;
    product job = {.polar = p, .alpha = 1, .beta = p->bf16 ? 0 : (float)a};
    if (!p->bf16)
        memcpy(p->next, p->x, (size_t)elements * sizeof(float));
    fr_pool_for(p->pool, tile(p->rows).count, apply_block, &job);
    if (p->bf16) {
        combine_all(p, p->next, NULL, 0, 1, elements, true);
        combine_all(p, p->next, p->x, a, 1, elements, true);
    }
    float *old = p->x;
    p->x = p->next;
    p->next = old;
}

void fr_polar_express(fr_polar *polar)
{
    for (size_t i = 0; i < sizeof polar_steps / sizeof polar_steps[0]; i++) {
        gram_of_x(polar);
        polynomial_of_gram(polar, polar_steps[i].b, polar_steps[i].c);
        next_x(polar, polar_steps[i].a);
    }
}
