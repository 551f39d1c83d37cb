/* What the Tensor engine computes: a tile product in fp32, added in PSUM.
 *
 * Rows of both operands (a partition each, which is the contraction) are brought to fp32 at a pitch that
 * is no power of two, unless they lie in SBUF as fp32 already; the product kernel (product.h) reads those.
 * Sums over the contraction are made from zero and then added to PSUM, as the array passes finished
 * columns to the accumulators. */
#include "neuron/matmul.h"
#include "neuron/product.h"

#include <string.h>

typedef struct operand {
    const float *data;
    int64_t pitch; /* floats */
} operand;

static int64_t rounded(int64_t count, int64_t unit)
{
    return (count + unit - 1) / unit * unit;
}

/* Usable where it lies: fp32 rows whose length is a multiple of `unit`, which the kernel may read to the
 * end. */
static bool usable(const fr_neuron_lanes *lanes, int64_t count, int64_t unit)
{
    return lanes->dtype == FR_NEURON_FLOAT32 && lanes->row.contiguous && count % unit == 0 &&
           lanes->pitch % 4 == 0;
}

/* All rows in fp32, zero from their end to the next multiple of `unit`; with pairs, two rows from each
 * partition. */
static bool bring(fr_neuron *core, const fr_neuron_lanes *lanes, bool pairs, int64_t unit, operand *out)
{
    int64_t count = lanes->row.elements / (pairs ? 2 : 1), full = rounded(count, unit);
    if (!pairs && usable(lanes, count, unit)) {
        out->data = (const float *)(const void *)lanes->row.base;
        out->pitch = lanes->pitch / 4;
        return true;
    }
    out->pitch = rounded(full, 16) + 16;
    int per = pairs ? 2 : 1;
    float *data = fr_neuron_scratch(core, lanes->partitions * per * out->pitch * 4);
    float *row = fr_neuron_scratch_row(core, lanes);
    if (!data || !row)
        return false;
    for (int p = 0; p < lanes->partitions; p++) {
        float *to = data + p * per * out->pitch;
        const float *from = fr_neuron_row(lanes, p, pairs ? row : to);
        for (int half = 0; half < per; half++, to += out->pitch) {
            if (from != to)
                memcpy(to, from + half * count, (size_t)count * sizeof *to);
            memset(to + count, 0, (size_t)(full - count) * sizeof *to);
        }
    }
    out->data = data;
    return true;
}

/* Through memory of its own when PSUM does not hold fp32 in contiguous rows. */
static fr_status multiply_apart(fr_neuron *core, fr_neuron_product *product, const fr_neuron_lanes *dst,
                                bool add, fr_error *error)
{
    int64_t bytes = product->m * product->n * 4;
    float *sums = fr_neuron_scratch(core, bytes), *old = fr_neuron_scratch(core, product->n * 4);
    if (!sums || !old)
        return fr_error_memory(error, (size_t)bytes, "a product");
    product->out = sums;
    product->out_pitch = product->n;
    product->add = false;
    fr_neuron_kernels_best()->product(product);
    for (int m = 0; m < product->m; m++, sums += product->n) {
        const float *before = add ? fr_neuron_row(dst, m, old) : old;
        for (int64_t n = 0; add && n < product->n; n++)
            sums[n] += before[n];
        fr_neuron_put_row(dst, m, sums);
    }
    return FR_OK;
}

fr_status fr_neuron_multiply(fr_neuron *core, const fr_neuron_view *dst, const fr_neuron_view *stationary,
                             const fr_neuron_view *moving, bool pairs, bool add, fr_error *error)
{
    fr_neuron_lanes out = fr_neuron_lanes_of(core, dst), a = fr_neuron_lanes_of(core, stationary);
    fr_neuron_lanes b = fr_neuron_lanes_of(core, moving);
    operand left, right;
    if (!bring(core, &a, pairs, 1, &left) || !bring(core, &b, pairs, 16, &right))
        return fr_error_memory(error, 1 << 20, "a product");
    fr_neuron_product product = {.stationary = left.data,
                                 .stationary_pitch = left.pitch,
                                 .moving = right.data,
                                 .moving_pitch = right.pitch,
                                 .k = a.partitions * (pairs ? 2 : 1),
                                 .m = a.row.elements / (pairs ? 2 : 1),
                                 .n = b.row.elements / (pairs ? 2 : 1)};
    if (out.dtype != FR_NEURON_FLOAT32 || !out.row.contiguous)
        return multiply_apart(core, &product, &out, add, error);
    product.out = (float *)(void *)out.row.base;
    product.out_pitch = out.pitch / 4;
    product.add = add;
    fr_neuron_kernels_best()->product(&product);
    return FR_OK;
}

/* ---- transpose mode ------------------------------------------------------------------------------ */

/* For each column of `selector`, the one partition that holds a 1 among zeros. */
static bool find_ones(const fr_neuron_lanes *selector, float *scratch, int *chosen)
{
    int64_t columns = selector->row.elements;
    for (int64_t c = 0; c < columns; c++)
        chosen[c] = -1;
    for (int p = 0; p < selector->partitions; p++) {
        const float *row = fr_neuron_row(selector, p, scratch);
        for (int64_t c = 0; c < columns; c++) {
            if (row[c] == 0)
                continue;
            if (row[c] != 1 || chosen[c] >= 0)
                return false;
            chosen[c] = p;
        }
    }
    for (int64_t c = 0; c < columns; c++)
        if (chosen[c] < 0)
            return false;
    return true;
}

/* dst[m][n] = data[k][m], k the partition chosen for n; or, `across`, dst[m][n] = data[k][n], k chosen for
 * m. */
static void move_bits(const fr_neuron_lanes *dst, const fr_neuron_lanes *data, const int *chosen, bool across,
                      uint8_t *scratch, uint8_t *out)
{
    int width = data->row.width;
    fr_neuron_lanes raw = *dst;
    for (int m = 0; m < dst->partitions; m++) {
        for (int64_t n = 0; n < dst->row.elements; n++) {
            fr_neuron_pattern row = data->row;
            const uint8_t *from =
                scratch + (across ? chosen[m] * row.elements + n : chosen[n] * row.elements + m) * width;
            if (dst->dtype == data->dtype) {
                memcpy(out + n * width, from, (size_t)width);
                continue;
            }
            float value;
            fr_neuron_to_float(&value, from, data->dtype, 1);
            fr_neuron_from_float(out + n * dst->row.width, &value, dst->dtype, 1);
        }
        fr_neuron_put_raw(&raw, m, out);
    }
}

bool fr_neuron_select_bits(fr_neuron *core, const fr_neuron_view *dst, const fr_neuron_view *stationary,
                           const fr_neuron_view *moving)
{
    fr_neuron_lanes out = fr_neuron_lanes_of(core, dst), a = fr_neuron_lanes_of(core, stationary);
    fr_neuron_lanes b = fr_neuron_lanes_of(core, moving);
    int64_t most = a.row.elements > b.row.elements ? a.row.elements : b.row.elements;
    int *chosen = fr_neuron_scratch(core, most * (int64_t)sizeof *chosen);
    float *row = fr_neuron_scratch(core, most * 4);
    uint8_t *bytes = fr_neuron_scratch(core, FR_NEURON_PARTITIONS * most * 4),
            *line = fr_neuron_scratch(core, most * 4);
    if (!chosen || !row || !bytes || !line)
        return false;
    bool across = !find_ones(&b, row, chosen);
    if (across && !find_ones(&a, row, chosen))
        return false;
    const fr_neuron_lanes *data = across ? &b : &a;
    for (int p = 0; p < data->partitions; p++) {
        fr_neuron_pattern one = data->row;
        one.base += p * data->pitch;
        fr_neuron_gather(&one, bytes + p * one.elements * one.width);
    }
    move_bits(&out, data, chosen, across, bytes, line);
    return true;
}
