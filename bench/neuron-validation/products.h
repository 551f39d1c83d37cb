/* Validation kernels around the product: the ladder of the fp32 tutorial, 2048 cubed, and matrix kernels in the shapes
 * of NKIBench. Written for this purpose in the same tiling as the published kernels; none of their code. */
#ifndef NEURON_VALIDATION_PRODUCTS_H
#define NEURON_VALIDATION_PRODUCTS_H
#include "lab.h"

enum { P = 128, N = 512, MOST = 128 };
static const fr_neuron_dtype FP32 = FR_NEURON_FLOAT32, BF16 = FR_NEURON_BFLOAT16;

static void finish_tile(lab *l, tile result, tile from, int64_t row, int64_t column)
{
    tile out = sbuf(l, FP32, P, N);
    move(l, all(out), all(from));
    copy(l, cut(result, row, P, column, N), all(out));
    drop(l, out);
}

/* Every product loads its own two tiles. */
static void ladder_tiled(lab *l, const int *d)
{
    int m = d[0], k = d[1], n = d[2];
    tile a = hbm(l, FP32, k, m), b = hbm(l, FP32, k, n), c = hbm(l, FP32, m, n);
    for (int i = 0; i < m; i += P)
        for (int j = 0; j < n; j += N) {
            tile sum = psum(l, P, N);
            for (int r = 0; r < k; r += P) {
                tile left = sbuf(l, FP32, P, P), right = sbuf(l, FP32, P, N);
                copy(l, all(left), cut(a, r, P, i, P));
                copy(l, all(right), cut(b, r, P, j, N));
                product(l, all(sum), all(left), all(right), r > 0);
                drop(l, left);
                drop(l, right);
            }
            finish_tile(l, c, sum, i, j);
            drop(l, sum);
        }
}

static void load_column(lab *l, tile *into, tile from, int k, int column, int width)
{
    for (int r = 0; r < k / P; r++) {
        into[r] = sbuf(l, FP32, P, width);
        copy(l, all(into[r]), cut(from, (int64_t)r * P, P, column, width));
    }
}

static void drop_all(lab *l, tile *tiles, int count)
{
    for (int i = 0; i < count; i++)
        drop(l, tiles[i]);
}

/* Columns of the left are loaded once a row of results, of the right once a result; blocks of `block` by `block`. */
static void ladder_blocked(lab *l, const int *d, int block)
{
    int m = d[0], k = d[1], n = d[2], deep = k / P;
    tile a = hbm(l, FP32, k, m), b = hbm(l, FP32, k, n), c = hbm(l, FP32, m, n), left[2][MOST], right[2][MOST];
    for (int i = 0; i < m; i += P * block) {
        for (int x = 0; x < block; x++)
            load_column(l, left[x], a, k, i + x * P, P);
        for (int j = 0; j < n; j += N * block) {
            for (int y = 0; y < block; y++)
                load_column(l, right[y], b, k, j + y * N, N);
            for (int x = 0; x < block; x++)
                for (int y = 0; y < block; y++) {
                    tile sum = psum(l, P, N);
                    for (int r = 0; r < deep; r++)
                        product(l, all(sum), all(left[x][r]), all(right[y][r]), r > 0);
                    finish_tile(l, c, sum, i + x * P, j + y * N);
                    drop(l, sum);
                }
            for (int y = 0; y < block; y++)
                drop_all(l, right[y], deep);
        }
        for (int x = 0; x < block; x++)
            drop_all(l, left[x], deep);
    }
}

static void ladder_hoisted(lab *l, const int *d)
{
    ladder_blocked(l, d, 1);
}

static void ladder_free(lab *l, const int *d)
{
    ladder_blocked(l, d, 2);
}

enum { FULL_M = 16, FULL_N = 2, FULL_K = 8 };

static void full_block(lab *l, tile (*results)[FULL_N], tile *left, tile *right)
{
    for (int y = 0; y < FULL_N; y++)
        for (int x = 0; x < FULL_M; x++) {
            tile sum = psum(l, P, N);
            for (int r = 0; r < FULL_K; r++)
                product(l, all(sum), columns_of(left[r], x * P, P), columns_of(right[r], y * N, N), r > 0);
            both(l, all(results[x][y]), all(results[x][y]), all(sum), FR_NEURON_ADD);
            drop(l, sum);
        }
}

/* All three dimensions blocked, partial results kept in SBUF. */
static void ladder_full(lab *l, const int *d)
{
    int m = d[0], k = d[1], n = d[2], blocks = m / (P * FULL_M);
    tile a = hbm(l, FP32, k, m), b = hbm(l, FP32, k, n), c = hbm(l, FP32, m, n);
    tile results[2 * FULL_M][FULL_N], left[FULL_K], right[FULL_K];
    for (int j = 0; j < n; j += N * FULL_N) {
        for (int x = 0; x < blocks * FULL_M; x++)
            for (int y = 0; y < FULL_N; y++)
                fill(l, all(results[x][y] = sbuf(l, FP32, P, N)));
        for (int r = 0; r < k; r += P * FULL_K) {
            for (int s = 0; s < FULL_K; s++)
                copy(l, all(right[s] = sbuf(l, FP32, P, N * FULL_N)), cut(b, r + s * P, P, j, N * FULL_N));
            for (int i = 0; i < blocks; i++) {
                for (int s = 0; s < FULL_K; s++)
                    copy(l, all(left[s] = sbuf(l, FP32, P, P * FULL_M)),
                         cut(a, r + s * P, P, (int64_t)i * P * FULL_M, P * FULL_M));
                full_block(l, &results[i * FULL_M], left, right);
                drop_all(l, left, FULL_K);
            }
            drop_all(l, right, FULL_K);
        }
        for (int x = 0; x < blocks * FULL_M; x++) {
            tile packed = sbuf(l, FP32, P, N * FULL_N);
            for (int y = 0; y < FULL_N; y++) {
                move(l, columns_of(packed, y * N, N), all(results[x][y]));
                drop(l, results[x][y]);
            }
            copy(l, cut(c, (int64_t)x * P, P, j, N * FULL_N), all(packed));
            drop(l, packed);
        }
    }
}

/* ---- bf16, one operand resident --------------------------------------------------------------------------- */

static void store_narrow(lab *l, tile c, tile sum, int row, int column)
{
    tile out = sbuf(l, BF16, P, N);
    move(l, all(out), all(sum));
    copy(l, cut(c, row, P, column, N), all(out));
    drop(l, out);
}

/* d[3]: the left operand comes row by row and is turned on Tensor. */
static void narrow_product(lab *l, const int *d)
{
    int m = d[0], k = d[1], n = d[2], deep = k / P;
    tile a = d[3] ? hbm(l, BF16, m, k) : hbm(l, BF16, k, m), b = hbm(l, BF16, k, n), c = hbm(l, BF16, m, n);
    tile right[MOST], left[MOST], ones = sbuf(l, BF16, P, P);
    fill(l, all(ones));
    for (int r = 0; r < deep; r++) {
        copy(l, all(right[r] = sbuf(l, BF16, P, n)), cut(b, (int64_t)r * P, P, 0, n));
        if (!d[3])
            copy(l, all(left[r] = sbuf(l, BF16, P, m)), cut(a, (int64_t)r * P, P, 0, m));
    }
    for (int i = 0; i < m; i += P) {
        tile rows = d[3] ? sbuf(l, BF16, P, k) : NULL;
        if (rows)
            copy(l, all(rows), cut(a, i, P, 0, k));
        for (int r = 0; rows && r < deep; r++) {
            tile turned = new_tensor(l, FR_NEURON_PSUM, BF16, P, P);
            turn(l, all(turned), columns_of(rows, r * P, P), all(ones));
            move(l, all(left[r] = sbuf(l, BF16, P, P)), all(turned));
            drop(l, turned);
        }
        for (int j = 0; j < n; j += N) {
            tile sum = psum(l, P, N);
            for (int r = 0; r < deep; r++)
                product(l, all(sum), columns_of(left[r], d[3] ? 0 : i, P), columns_of(right[r], j, N), r > 0);
            store_narrow(l, c, sum, i, j);
            drop(l, sum);
        }
        if (rows) {
            drop(l, rows);
            drop_all(l, left, deep);
        }
    }
}

/* ---- NKIBench: blocks of 1,024 ----------------------------------------------------------------------------- */

enum { WIDE = 1024 };

/* 128 rows of `from` by k columns, turned: tiles of 128 x 128 with k on the partitions. */
static void load_turned(lab *l, tile *into, tile from, int row, int k, tile ones)
{
    for (int s = 0; s < k; s += WIDE) {
        int width = k - s < WIDE ? k - s : WIDE;
        tile rows = sbuf(l, FP32, P, width);
        copy(l, all(rows), cut(from, row, P, s, width));
        for (int r = 0; r < width; r += P) {
            int tall = width - r < P ? width - r : P;
            tile turned = psum(l, tall, P);
            turn(l, all(turned), columns_of(rows, r, tall), all(ones));
            move(l, all(into[(s + r) / P] = sbuf(l, FP32, tall, P)), all(turned));
            drop(l, turned);
        }
        drop(l, rows);
    }
}

static tile identity(lab *l)
{
    tile ones = sbuf(l, FP32, P, P), constant = hbm(l, FP32, P, P);
    copy(l, all(ones), all(constant));
    return ones;
}

/* result[row, column ...] = left x right for a block of up to 1,024 columns. */
static void wide_result(lab *l, tile c, int row, int column, int width, tile *left, tile *right, int deep)
{
    tile out = sbuf(l, FP32, P, width);
    for (int y = 0; y < width; y += N) {
        int columns = width - y < N ? width - y : N;
        tile sum = psum(l, P, columns);
        for (int r = 0; r < deep; r++)
            product(l, all(sum), all(left[r]), columns_of(right[r], y, columns), r > 0);
        move(l, columns_of(out, y, columns), all(sum));
        drop(l, sum);
    }
    copy(l, cut(c, row, P, column, width), all(out));
    drop(l, out);
}

static void bench_matmul(lab *l, const int *d)
{
    int m = d[0], k = d[1], n = d[2], deep = k / P;
    tile a = hbm(l, FP32, m, k), b = hbm(l, FP32, k, n), c = hbm(l, FP32, m, n), ones = identity(l);
    tile right[MOST], left[MOST];
    for (int j = 0; j < n; j += WIDE) {
        for (int r = 0; r < deep; r++)
            copy(l, all(right[r] = sbuf(l, FP32, P, WIDE)), cut(b, (int64_t)r * P, P, j, WIDE));
        for (int i = 0; i < m; i += P) {
            load_turned(l, left, a, i, k, ones);
            wide_result(l, c, i, j, WIDE, left, right, deep);
            drop_all(l, left, deep);
        }
        drop_all(l, right, deep);
    }
}

static void bench_bmm(lab *l, const int *d)
{
    int batch = d[0], m = d[1], k = d[2], n = d[3];
    tile a = hbm(l, FP32, (int64_t)batch * m, k), b = hbm(l, FP32, (int64_t)batch * k, n),
         c = hbm(l, FP32, (int64_t)batch * m, n), ones = identity(l);
    for (int x = 0; x < batch; x++)
        for (int j = 0; j < n; j += WIDE) {
            tile right = sbuf(l, FP32, k, WIDE), left;
            copy(l, all(right), cut(b, (int64_t)x * k, k, j, WIDE));
            for (int i = 0; i < m; i += P) {
                load_turned(l, &left, a, x * m + i, k, ones);
                wide_result(l, c, x * m + i, j, WIDE, &left, &right, 1);
                drop(l, left);
            }
            drop(l, right);
        }
}

/* The left operand comes turned already; the last block of columns is narrower. */
static void bench_transpose_matmul(lab *l, const int *d)
{
    int m = d[0], k = d[1], n = d[2], deep = k / P;
    tile a = hbm(l, FP32, k, m), b = hbm(l, FP32, k, n), c = hbm(l, FP32, m, n), left[MOST], right[MOST];
    for (int i = 0; i < m; i += WIDE) {
        for (int r = 0; r < deep; r++)
            copy(l, all(left[r] = sbuf(l, FP32, P, WIDE)), cut(a, (int64_t)r * P, P, i, WIDE));
        for (int j = 0; j < n; j += WIDE) {
            int width = n - j < WIDE ? n - j : WIDE;
            for (int r = 0; r < deep; r++)
                copy(l, all(right[r] = sbuf(l, FP32, P, width)), cut(b, (int64_t)r * P, P, j, width));
            for (int x = 0; x < WIDE; x += P) {
                tile out = sbuf(l, FP32, P, width);
                for (int y = 0; y < width; y += N) {
                    int columns = width - y < N ? width - y : N;
                    tile sum = psum(l, P, columns);
                    for (int r = 0; r < deep; r++)
                        product(l, all(sum), columns_of(left[r], x, P), columns_of(right[r], y, columns), r > 0);
                    move(l, columns_of(out, y, columns), all(sum));
                    drop(l, sum);
                }
                copy(l, cut(c, i + x, P, j, width), all(out));
                drop(l, out);
            }
            drop_all(l, right, deep);
        }
        drop_all(l, left, deep);
    }
}

/* The mean square of 128 rows, by halves of a PSUM bank's width, as one column. */
static void mean_square(lab *l, tile mean, tile in, int k)
{
    for (int h = 0; h < k; h += N) {
        tile square = sbuf(l, FP32, P, N), scaled = sbuf(l, FP32, P, N), part = sbuf(l, FP32, P, 1);
        function(l, all(square), columns_of(in, h, N), FR_NEURON_F_SQUARE, NULL);
        number(l, all(scaled), all(square), FR_NEURON_MULTIPLY);
        sum_rows(l, all(part), all(scaled), FR_NEURON_ADD);
        if (h == 0)
            move(l, all(mean), all(part));
        else
            both(l, all(mean), all(mean), all(part), FR_NEURON_ADD);
        drop(l, square);
        drop(l, scaled);
        drop(l, part);
    }
}

/* 128 rows of x (plus those of z when there is one), normalised and turned. */
static void normal_rows(lab *l, tile *into, tile x, tile z, int row, int k, tile ones)
{
    tile in = sbuf(l, FP32, P, k), mean = sbuf(l, FP32, P, 1), root = sbuf(l, FP32, P, 1);
    tile again = z ? in : sbuf(l, FP32, P, k);
    copy(l, all(in), cut(x, row, P, 0, k));
    if (z) {
        tile other = sbuf(l, FP32, P, k);
        copy(l, all(other), cut(z, row, P, 0, k));
        both(l, all(in), all(in), all(other), FR_NEURON_ADD);
        drop(l, other);
    }
    mean_square(l, mean, in, k);
    function(l, all(root), all(mean), FR_NEURON_F_RSQRT, NULL);
    if (!z) {
        copy(l, all(again), cut(x, row, P, 0, k)); /* the published kernel loads its rows a second time */
        drop(l, in);
    }
    for (int h = 0; h < k; h += P) {
        tile turned = psum(l, P, P);
        if (h % N == 0)
            scale_rows(l, columns_of(again, h, N), columns_of(again, h, N), all(root));
        turn(l, all(turned), columns_of(again, h, P), all(ones));
        move(l, all(into[h / P] = sbuf(l, FP32, P, P)), all(turned));
        drop(l, turned);
    }
    drop(l, again);
    drop(l, mean);
    drop(l, root);
}

/* d[3]: two inputs are added first. */
static void bench_rmsnorm_matmul(lab *l, const int *d)
{
    int m = d[0], n = d[1], k = d[2], deep = k / P;
    tile x = hbm(l, FP32, m, k), w = hbm(l, FP32, k, n), c = hbm(l, FP32, m, n), ones = identity(l);
    tile z = d[3] ? hbm(l, FP32, m, k) : NULL, left[WIDE / P][MOST], right[MOST];
    for (int i = 0; i < m; i += WIDE) {
        for (int r = 0; r < WIDE / P; r++)
            normal_rows(l, left[r], x, z, i + r * P, k, ones);
        for (int j = 0; j < n; j += WIDE) {
            for (int r = 0; r < deep; r++)
                copy(l, all(right[r] = sbuf(l, FP32, P, WIDE)), cut(w, (int64_t)r * P, P, j, WIDE));
            for (int r = 0; r < WIDE / P; r++)
                wide_result(l, c, i + r * P, j, WIDE, left[r], right, deep);
            drop_all(l, right, deep);
        }
        for (int r = 0; r < WIDE / P; r++)
            drop_all(l, left[r], deep);
    }
}
#endif
