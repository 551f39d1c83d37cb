/* The product of two tiles, written once over a vector type that the including file defines:
 *     VECTOR, LANES, load, store, broadcast, multiply_add;
 *     ROWS and VECTORS, the block that fills the registers.
 *
 * A block of ROWS x (VECTORS * LANES) results stays in registers while k runs; the columns of `moving` it
 * reads (128 x 64 floats with AVX-512) stay in the first cache while the blocks of rows pass over them. The
 * stationary tile is first laid out panel by panel, ROWS columns of it side by side, so that a block reads
 * one run of memory and not a piece of every row. */
#include "neuron/product.h"

#include <string.h>

static inline void add_row(float *out, const float *sum, int64_t count, bool add)
{
    if (!add)
        memcpy(out, sum, (size_t)count * sizeof *sum);
    else
        for (int64_t i = 0; i < count; i++)
            out[i] += sum[i];
}

enum { PANEL_FLOATS = 32768 }; /* of the stationary tile at a time */

/* panels[m / ROWS][k][m % ROWS] of the columns from `first` on, zero past the last one. */
static void lay_panels(const fr_neuron_product *p, int64_t first, int64_t count, float *panels)
{
    int64_t whole = count / ROWS, rest = count % ROWS;
    for (int64_t k = 0; k < p->k; k++) {
        const float *row = p->stationary + k * p->stationary_pitch + first;
        float *to = panels + k * ROWS;
        for (int64_t panel = 0; panel < whole; panel++, to += p->k * ROWS, row += ROWS)
            memcpy(to, row, ROWS * sizeof *to);
        for (int64_t r = 0; rest && r < ROWS; r++)
            to[r] = r < rest ? row[r] : 0;
    }
}

/* `panel` has the stationary columns of results rows m .. m + ROWS - 1, columns n .. n + vectors * LANES - 1, of which those inside the tile are
 * stored. */
static inline __attribute__((always_inline)) void block(const fr_neuron_product *p, const float *panel,
                                                        int64_t m, int64_t n, const int vectors)
{
    VECTOR sum[ROWS][VECTORS];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < vectors; v++)
            sum[r][v] = broadcast(0);
    const float *a = panel, *b = p->moving + n;
    for (int64_t k = 0; k < p->k; k++, a += ROWS, b += p->moving_pitch) {
        VECTOR column[VECTORS];
        for (int v = 0; v < vectors; v++)
            column[v] = load(b + v * LANES);
        for (int r = 0; r < ROWS; r++) {
            VECTOR one = broadcast(a[r]);
            for (int v = 0; v < vectors; v++)
                sum[r][v] = multiply_add(one, column[v], sum[r][v]);
        }
    }
    int64_t rows = p->m - m < ROWS ? p->m - m : ROWS;
    int64_t columns = p->n - n < vectors * LANES ? p->n - n : vectors * LANES;
    for (int r = 0; r < ROWS; r++) {
        float row[VECTORS * LANES];
        for (int v = 0; v < vectors; v++)
            store(row + v * LANES, sum[r][v]);
        if (r < rows)
            add_row(p->out + (m + r) * p->out_pitch + n, row, columns, p->add);
    }
}

static void product(const fr_neuron_product *p)
{
    float panels[PANEL_FLOATS];
    int64_t each = p->k ? PANEL_FLOATS / (p->k * ROWS) * ROWS : p->m;
    for (int64_t first = 0; first < p->m; first += each) {
        int64_t end = first + each < p->m ? first + each : p->m, n = 0;
        lay_panels(p, first, end - first, panels);
        for (; n + VECTORS * LANES <= p->n; n += VECTORS * LANES)
            for (int64_t m = first; m < end; m += ROWS)
                block(p, panels + (m - first) * p->k, m, n, VECTORS);
        for (; n < p->n; n += LANES)
            for (int64_t m = first; m < end; m += ROWS)
                block(p, panels + (m - first) * p->k, m, n, 1);
    }
}

static void bf16_to_float(float *out, const uint16_t *in, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)in[i] << 16;
        memcpy(out + i, &bits, sizeof bits);
    }
}

/* To nearest, ties to even; a NaN stays one. */
static void bf16_from_float(uint16_t *out, const float *in, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, in + i, sizeof bits);
        uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
        out[i] = (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits >> 16 | 0x40 : rounded);
    }
}
