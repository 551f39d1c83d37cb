/* Validation kernels that stream: vector addition, one transfer, element-wise kernels of NKIBench, the selective scan.
 * Written for this purpose in the same tiling as the published kernels; none of their code. */
#ifndef NEURON_VALIDATION_STREAMS_H
#define NEURON_VALIDATION_STREAMS_H
#include "products.h"

/* d: rows of a tile, columns of a tile, tiles. */
static void vector_add(lab *l, const int *d)
{
    int rows = d[0], columns = d[1];
    int64_t tiles = d[2];
    tile a = hbm(l, FP32, rows * tiles, columns), b = hbm(l, FP32, rows * tiles, columns),
         c = hbm(l, FP32, rows * tiles, columns);
    for (int64_t i = 0; i < tiles; i++) {
        tile x = sbuf(l, FP32, rows, columns), y = sbuf(l, FP32, rows, columns), z = sbuf(l, FP32, rows, columns);
        copy(l, all(x), cut(a, i * rows, rows, 0, columns));
        copy(l, all(y), cut(b, i * rows, rows, 0, columns));
        both(l, all(z), all(x), all(y), FR_NEURON_ADD);
        copy(l, cut(c, i * rows, rows, 0, columns), all(z));
        drop(l, x);
        drop(l, y);
        drop(l, z);
    }
}

/* d: rows, columns of bf16: loaded, through one activation, stored. */
static void load_activate_store(lab *l, const int *d)
{
    tile a = hbm(l, BF16, d[0], d[1]), b = hbm(l, BF16, d[0], d[1]), x = sbuf(l, BF16, d[0], d[1]),
         y = sbuf(l, BF16, d[0], d[1]);
    copy(l, all(x), all(a));
    function(l, all(y), all(x), FR_NEURON_EXP, NULL);
    copy(l, all(b), all(y));
}

static void bench_silu(lab *l, const int *d)
{
    int m = d[0], n = d[1];
    tile a = hbm(l, FP32, m, n), b = hbm(l, FP32, m, n);
    for (int i = 0; i < m; i += P)
        for (int j = 0; j < n; j += WIDE) {
            tile in = sbuf(l, FP32, P, WIDE), out = sbuf(l, FP32, P, WIDE);
            copy(l, all(in), cut(a, i, P, j, WIDE));
            for (int h = 0; h < WIDE; h += N) {
                tile e = sbuf(l, FP32, P, N), one = sbuf(l, FP32, P, N), r = sbuf(l, FP32, P, N);
                function(l, all(e), columns_of(in, h, N), FR_NEURON_EXP, NULL);
                number(l, all(one), all(e), FR_NEURON_ADD);
                inverse(l, all(r), all(one));
                both(l, columns_of(out, h, N), columns_of(in, h, N), all(r), FR_NEURON_MULTIPLY);
                drop(l, e);
                drop(l, one);
                drop(l, r);
            }
            copy(l, cut(b, i, P, j, WIDE), all(out));
            drop(l, in);
            drop(l, out);
        }
}

/* One half bank's width of AdamW: t theta, g gradient, m and v moments, into out. */
static void adamw_part(lab *l, tile *in, tile out, int rows, int h)
{
    enum { DECAYED = 0, TEMPORARIES = 14 };
    tile x[TEMPORARIES];
    fr_neuron_view t = cut(in[0], 0, rows, h, N), m = cut(in[1], 0, rows, h, N), v = cut(in[2], 0, rows, h, N),
                   g = cut(in[3], 0, rows, h, N);
    for (int i = 0; i < TEMPORARIES; i++)
        x[i] = sbuf(l, FP32, rows, N);
    number(l, all(x[0]), t, FR_NEURON_MULTIPLY);
    both(l, all(x[1]), t, all(x[0]), FR_NEURON_SUBTRACT);
    number(l, all(x[2]), m, FR_NEURON_MULTIPLY);
    number(l, all(x[3]), g, FR_NEURON_MULTIPLY);
    both(l, all(x[4]), all(x[2]), all(x[3]), FR_NEURON_ADD);
    number(l, all(x[5]), all(x[4]), FR_NEURON_MULTIPLY);
    number(l, all(x[6]), v, FR_NEURON_MULTIPLY);
    number(l, all(x[7]), g, FR_NEURON_MULTIPLY);
    both(l, all(x[8]), all(x[7]), g, FR_NEURON_MULTIPLY);
    both(l, all(x[9]), all(x[6]), all(x[8]), FR_NEURON_ADD);
    function(l, all(x[10]), all(x[9]), FR_NEURON_SQRT, NULL);
    number(l, all(x[11]), all(x[10]), FR_NEURON_ADD);
    inverse(l, all(x[12]), all(x[11]));
    both(l, all(x[13]), all(x[5]), all(x[12]), FR_NEURON_MULTIPLY);
    both(l, cut(out, 0, rows, h, N), all(x[1]), all(x[13]), FR_NEURON_SUBTRACT);
    drop_all(l, x, TEMPORARIES);
}

static void bench_adamw(lab *l, const int *d)
{
    int m = d[0], n = d[1];
    tile from[4], b = hbm(l, FP32, m, n);
    for (int i = 0; i < 4; i++)
        from[i] = hbm(l, FP32, m, n);
    for (int i = 0; i < m; i += P)
        for (int j = 0; j < n; j += WIDE) {
            int rows = m - i < P ? m - i : P;
            tile in[4], out = sbuf(l, FP32, rows, WIDE);
            for (int x = 0; x < 4; x++)
                copy(l, all(in[x] = sbuf(l, FP32, rows, WIDE)), cut(from[x], i, rows, j, WIDE));
            for (int h = 0; h < WIDE; h += N)
                adamw_part(l, in, out, rows, h);
            copy(l, cut(b, i, rows, j, WIDE), all(out));
            drop(l, out);
            drop_all(l, in, 4);
        }
}

/* d: head dimension, length. The halves of a head are partitions. */
static void bench_rope(lab *l, const int *d)
{
    int head = d[0], half = d[0] / 2, length = d[1];
    tile x = hbm(l, FP32, head, length), c = hbm(l, FP32, half, length), s = hbm(l, FP32, half, length),
         y = hbm(l, FP32, head, length);
    for (int i = 0; i < length; i += N) {
        tile in = sbuf(l, FP32, head, N), cosine = sbuf(l, FP32, half, N), sine = sbuf(l, FP32, half, N),
             odd = sbuf(l, FP32, half, N), out = sbuf(l, FP32, head, N), part[4];
        copy(l, all(in), cut(x, 0, head, i, N));
        copy(l, all(cosine), cut(c, 0, half, i, N));
        copy(l, all(sine), cut(s, 0, half, i, N));
        move(l, all(odd), cut(in, half, half, 0, N));
        for (int p = 0; p < 4; p++)
            both(l, all(part[p] = sbuf(l, FP32, half, N)), p & 1 ? all(odd) : cut(in, 0, half, 0, N),
                 p & 2 ? all(sine) : all(cosine), FR_NEURON_MULTIPLY);
        both(l, cut(out, 0, half, 0, N), all(part[0]), all(part[3]), FR_NEURON_SUBTRACT);
        both(l, cut(out, half, half, 0, N), all(part[1]), all(part[2]), FR_NEURON_ADD);
        copy(l, cut(y, 0, head, i, N), all(out));
        drop_all(l, part, 4);
        drop(l, in);
        drop(l, cosine);
        drop(l, sine);
        drop(l, odd);
        drop(l, out);
    }
}

/* ---- selective scan ------------------------------------------------------------------------------------------ */

/* A row on every partition, as nl.broadcast_to does it: a column of ones times the row, into PSUM. */
static tile row_on_all(lab *l, tile row, tile ones, int at, int width)
{
    tile spread = psum(l, P, width);
    product(l, all(spread), all(ones), columns_of(row, at, width), false);
    return spread;
}

typedef struct scan_shape {
    int channels, length, state;
    tile delta, u, a, b, c, out, ones;
} scan_shape;

/* x *= a row that all partitions share, a PSUM bank at a time. */
static void times_row(lab *l, tile x, tile row, tile ones, int width)
{
    for (int h = 0; h < width; h += N) {
        tile spread = row_on_all(l, row, ones, h, N);
        both(l, columns_of(x, h, N), columns_of(x, h, N), all(spread), FR_NEURON_MULTIPLY);
        drop(l, spread);
    }
}

/* One state of one tile of channels, columns [at, at + width): adds to `sum`. */
static void scan_state(lab *l, const scan_shape *s, fr_neuron_view delta, fr_neuron_view u, fr_neuron_view sum,
                       int channel, int state, int at, int width)
{
    tile a = sbuf(l, FP32, P, 1), b = sbuf(l, FP32, 1, width), c = sbuf(l, FP32, 1, width),
         x = sbuf(l, FP32, P, width), y = sbuf(l, FP32, P, width), z = sbuf(l, FP32, P, width);
    fr_neuron_view scale = all(a);
    copy(l, all(a), cut(s->a, channel, P, state, 1));
    copy(l, all(b), cut(s->b, state, 1, at, width));
    copy(l, all(c), cut(s->c, state, 1, at, width));
    function(l, all(x), delta, FR_NEURON_EXP, &scale);
    both(l, all(y), delta, u, FR_NEURON_MULTIPLY);
    times_row(l, y, b, s->ones, width);
    scan(l, all(z), all(x), all(y));
    times_row(l, z, c, s->ones, width);
    both(l, sum, sum, all(z), FR_NEURON_ADD);
    drop(l, a);
    drop(l, b);
    drop(l, c);
    drop(l, x);
    drop(l, y);
    drop(l, z);
}

static scan_shape open_scan(lab *l, const int *d)
{
    scan_shape s = {.channels = d[0], .length = d[1], .state = d[2]};
    s.delta = hbm(l, FP32, s.channels, s.length);
    s.u = hbm(l, FP32, s.channels, s.length);
    s.a = hbm(l, FP32, s.channels, s.state);
    s.b = hbm(l, FP32, s.state, s.length);
    s.c = hbm(l, FP32, s.state, s.length);
    s.out = hbm(l, FP32, s.channels, s.length);
    s.ones = sbuf(l, FP32, 1, P);
    fill(l, all(s.ones));
    return s;
}

/* States outside, channels inside: delta and u are loaded again for every state. */
static void mamba_states_outside(lab *l, const int *d)
{
    scan_shape s = open_scan(l, d);
    tile sum[MOST];
    int tiles = s.channels / P;
    for (int t = 0; t < tiles; t++)
        fill(l, all(sum[t] = sbuf(l, FP32, P, s.length)));
    for (int state = 0; state < s.state; state++)
        for (int t = 0; t < tiles; t++) {
            tile delta = sbuf(l, FP32, P, s.length), u = sbuf(l, FP32, P, s.length);
            copy(l, all(delta), cut(s.delta, (int64_t)t * P, P, 0, s.length));
            copy(l, all(u), cut(s.u, (int64_t)t * P, P, 0, s.length));
            scan_state(l, &s, all(delta), all(u), all(sum[t]), t * P, state, 0, s.length);
            drop(l, delta);
            drop(l, u);
        }
    for (int t = 0; t < tiles; t++)
        copy(l, cut(s.out, (int64_t)t * P, P, 0, s.length), all(sum[t]));
    drop_all(l, sum, tiles);
}

/* Channels outside: delta and u are loaded once. d[3]: the length is cut into pieces of so many columns. */
static void mamba_channels_outside(lab *l, const int *d)
{
    scan_shape s = open_scan(l, d);
    int piece = d[3] ? d[3] : s.length;
    for (int t = 0; t < s.channels; t += P) {
        tile sum = sbuf(l, FP32, P, s.length), delta = sbuf(l, FP32, P, s.length), u = sbuf(l, FP32, P, s.length);
        fill(l, all(sum));
        copy(l, all(delta), cut(s.delta, t, P, 0, s.length));
        copy(l, all(u), cut(s.u, t, P, 0, s.length));
        for (int state = 0; state < s.state; state++)
            for (int at = 0; at < s.length; at += piece)
                scan_state(l, &s, columns_of(delta, at, piece), columns_of(u, at, piece), columns_of(sum, at, piece),
                           t, state, at, piece);
        copy(l, cut(s.out, t, P, 0, s.length), all(sum));
        drop(l, sum);
        drop(l, delta);
        drop(l, u);
    }
}
#endif
