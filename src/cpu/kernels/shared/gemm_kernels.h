/* The matrix product of this module, written once over the vector type and compiled per instruction set.
 *
 * How it thinks. A tile of FR_GEMM_ROWS x (FR_GEMM_VECTORS * 16) of C stays in registers while k runs. For
 * that A is packed in panels [k][rows] and B in panels [k][columns], converting bf16 to fp32 on the way, so
 * mixed storage costs nothing extra. k is cut into equal blocks of at most DEPTH; the cut depends on k alone.
 * A block of A lives in the second-level cache; panels of B, packed whole or prepared long before, stream
 * past it.
 *
 * Every element of C is one chain of fused multiply-adds in order of k, block sums added in order of the
 * blocks: its bits depend on its row of A, its column of B and on k, not on m, n, position in the tile or the
 * workspace size. Edges run through the same tile with zeros for the missing rows and columns.
 */
#include "cpu/gemm.h"
#include <string.h>

enum {
    ROWS = FR_GEMM_ROWS,
    COLUMNS = FR_GEMM_VECTORS * FR_LANES,
    AHEAD = 2,   /* rows of a panel of B fetched before use: the hardware alone streams too late (124 against
                    157 GFLOP/s) */
    DEPTH = 640, /* most k in one block */
    BLOCK_ROWS = 112 / ROWS * ROWS, /* rows of A packed at a time: a quarter of the second-level cache */
    BLOCK_COLUMNS = 4096,           /* most columns of B packed at a time */
    FEW_COLUMNS = 256               /* what a small workspace should still hold before rows are given up */
};

static int64_t round_up(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

static int64_t block_depth(int64_t k)
{
    int64_t blocks = (k + DEPTH - 1) / DEPTH;
    return blocks ? (k + blocks - 1) / blocks : 1;
}

/* ---- packing --------------------------------------------------------------------------------------- */

/* How elements are read. Packing is specialised for it and for the panel width: it must cost far less than
 * the width / 32 cycles an element is worth in the product. */
typedef enum element_kind { PLAIN, ROUNDED, HALF } element_kind;
enum {
    STRAIGHT_ROWS = 16
}; /* rows read together: few enough streams for the prefetcher, pieces long enough to write */

FR_INLINE vf load_part(const fr_operand *x, element_kind kind, int64_t offset, int64_t lanes)
{
    if (kind == HALF)
        return lanes >= FR_LANES ? v_load_bf16((const uint16_t *)x->data + offset)
                                 : v_load_bf16_part((const uint16_t *)x->data + offset, lanes);
    vf value = lanes >= FR_LANES ? v_load((const float *)x->data + offset)
                                 : v_load_part((const float *)x->data + offset, lanes);
    return kind == ROUNDED ? v_through_bf16(value) : value;
}

FR_INLINE int64_t between(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value < most ? value : most;
}

/* Rows [from, from + count) of a panel whose operand already runs along k. Whole vectors are stored even
 * where the panel is narrower: the next row overwrites what is too much, so only the last ones must be exact.
 */
FR_INLINE void pack_straight(const fr_operand *x, element_kind kind, int width, int64_t from, int64_t start,
                             int64_t valid, int64_t count, float *out)
{
    for (int64_t k = 0; k < count; k++)
        for (int lane = 0; lane < width; lane += FR_LANES) {
            int64_t room = width - lane < FR_LANES ? width - lane : FR_LANES;
            vf value = load_part(x, kind, (from + k) * x->ld + start + lane, between(valid - lane, room));
            if (k * width + lane + FR_LANES <= count * width)
                v_store(out + k * width + lane, value);
            else
                v_store_part(out + k * width + lane, value, room);
        }
}

/* The same result when k runs along the rows of the operand: 16 x 16 transposes. What the last row stores too
 * much, the next panel or the spare end of the buffer takes. */
FR_INLINE void pack_turned(const fr_operand *x, element_kind kind, int width, int64_t k0, int64_t depth,
                           int64_t start, int64_t valid, float *out)
{
    for (int64_t k = 0; k < depth; k += FR_LANES) {
        int64_t lanes = depth - k < FR_LANES ? depth - k : FR_LANES;
        for (int lane = 0; lane < width; lane += FR_LANES) {
            int rows_here = width - lane < FR_LANES ? width - lane : FR_LANES;
            vf rows[FR_LANES];
            if (lanes == FR_LANES && lane + rows_here <= valid)
                for (int i = 0; i < FR_LANES; i++)
                    rows[i] = i < rows_here
                                  ? load_part(x, kind, (start + lane + i) * x->ld + k0 + k, FR_LANES)
                                  : v_set(0);
            else
                for (int i = 0; i < FR_LANES; i++)
                    rows[i] = lane + i < valid && i < rows_here
                                  ? load_part(x, kind, (start + lane + i) * x->ld + k0 + k, lanes)
                                  : v_set(0);
            v_transpose(rows);
            for (int i = 0; i < FR_LANES; i++)
                if (i < lanes)
                    v_store(out + (k + i) * width + lane, rows[i]);
        }
    }
}

/* Two narrow panels by one transpose, which costs as much as its sixteen rows, in whole vectors along k. Eight lanes
 * are stored for a row of the panel; what is too much the next row overwrites, except behind the first panel. */
FR_INLINE void pack_pair(const fr_operand *x, element_kind kind, int width, int64_t k0, int64_t depth,
                         int64_t start, float *out)
{
    float *second = out + depth * width;
    for (int64_t k = 0; k < depth; k += FR_LANES) {
        vf rows[FR_LANES];
        for (int i = 0; i < FR_LANES; i++) {
            int64_t row = i < width ? i : i - 8 + width;
            rows[i] = i % 8 < width ? load_part(x, kind, (start + row) * x->ld + k0 + k, FR_LANES) : v_set(0);
        }
        v_transpose(rows);
        for (int i = 0; i < FR_LANES; i++) {
            if (k + i + 1 < depth)
                v_store_low(out + (k + i) * width, rows[i]);
            else
                v_store_part(out + (k + i) * width, rows[i], width);
            v_store_high(second + (k + i) * width, rows[i]);
        }
    }
}

FR_INLINE void pack_kind(const fr_operand *x, element_kind kind, int width, bool along, int64_t k0,
                         int64_t depth, int64_t start, int64_t count, float *out)
{
    if (!along) {
        int64_t i = 0;
        if (width <= 8 && depth % FR_LANES == 0)
            for (; i + 2 * width <= count; i += 2 * width, out += 2 * depth * width)
                pack_pair(x, kind, width, k0, depth, start + i, out);
        for (; i < count; i += width, out += depth * width)
            pack_turned(x, kind, width, k0, depth, start + i, count - i, out);
        return;
    }
    for (int64_t k = 0; k < depth; k += STRAIGHT_ROWS) {
        int64_t rows = depth - k < STRAIGHT_ROWS ? depth - k : STRAIGHT_ROWS;
        float *at = out + k * width;
        for (int64_t i = 0; i < count; i += width, at += depth * width)
            pack_straight(x, kind, width, k0 + k, start + i, count - i, rows, at);
    }
}

FR_INLINE void pack_width(const fr_operand *x, int width, bool along, int64_t k0, int64_t depth,
                          int64_t start, int64_t count, float *out)
{
    if (x->dtype == FR_BF16)
        pack_kind(x, HALF, width, along, k0, depth, start, count, out);
    else if (x->round)
        pack_kind(x, ROUNDED, width, along, k0, depth, start, count, out);
    else
        pack_kind(x, PLAIN, width, along, k0, depth, start, count, out);
}

/* Panels of the k-block [k0, k0 + depth) of `count` rows of A or columns of B. `along`: k is the row index as
 * stored. */
static void pack_rows(const fr_operand *x, bool along, int64_t k0, int64_t depth, int64_t start,
                      int64_t count, float *out)
{
    pack_width(x, ROWS, along, k0, depth, start, count, out);
}

static void pack_columns(const fr_operand *x, bool along, int64_t k0, int64_t depth, int64_t start,
                         int64_t count, float *out)
{
    pack_width(x, COLUMNS, along, k0, depth, start, count, out);
}

/* ---- the tile --------------------------------------------------------------------------------------- */

/* What to do with a finished tile. */
typedef struct tile_target {
    const float *from; /* fp32 to add `beta` times, NULL: nothing */
    float *to;         /* fp32 result; NULL when bf16 */
    const uint16_t *from_bf16;
    uint16_t *to_bf16;
    int64_t from_ld, to_ld;
    float alpha, beta;
} tile_target;

FR_INLINE void finish_vector(const tile_target *t, int64_t row, int64_t column, int64_t lanes, vf sum)
{
    vf value = v_mul(v_set(t->alpha), sum);
    if (t->from)
        value = v_fma(v_set(t->beta), v_load_part(t->from + row * t->from_ld + column, lanes), value);
    if (t->from_bf16)
        value =
            v_fma(v_set(t->beta), v_load_bf16_part(t->from_bf16 + row * t->from_ld + column, lanes), value);
    if (t->to)
        v_store_part(t->to + row * t->to_ld + column, value, lanes);
    else
        v_store_bf16_part(t->to_bf16 + row * t->to_ld + column, value, lanes);
}

/* C is cold; asking for it now hides the fetch behind the sums. */
FR_INLINE void prefetch_result(const tile_target *t, int64_t row, int64_t rows, int64_t column)
{
    for (int i = 0; i < ROWS && i < rows; i++) {
        if (t->to)
            for (int v = 0; v < FR_GEMM_VECTORS; v++)
                v_prefetch(t->to + (row + i) * t->to_ld + column + v * FR_LANES);
        else
            v_prefetch(t->to_bf16 + (row + i) * t->to_ld + column);
    }
}

/* One k: every element of the tile's first `used` rows gets one multiply-add. */
FR_INLINE void tile_step(int used, vf sum[ROWS][FR_GEMM_VECTORS], const float *a, const float *b)
{
    vf right[FR_GEMM_VECTORS];
    v_prefetch(a + 16 * ROWS);
    for (int v = 0; v < FR_GEMM_VECTORS; v++) {
        v_prefetch(b + AHEAD * COLUMNS + v * FR_LANES);
        right[v] = v_load(b + v * FR_LANES);
    }
#pragma GCC unroll 14
    for (int i = 0; i < used; i++) {
        vf left = v_set(a[i]);
        for (int v = 0; v < FR_GEMM_VECTORS; v++)
            sum[i][v] = v_fma(left, right[v], sum[i][v]);
    }
}

/* `later`: where the next panel of B lies; a part of it is brought to the second-level cache. Four steps of k
 * at a time: the counting of a loop competes with the multiply-adds for the same ports, and costs a tenth
 * when done at every step. */
FR_INLINE void tile_of(int used, const float *a, const float *b, int64_t depth, const float *later,
                       const tile_target *target, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    vf sum[ROWS][FR_GEMM_VECTORS];
    for (int i = 0; i < used; i++)
        for (int v = 0; v < FR_GEMM_VECTORS; v++)
            sum[i][v] = v_set(0);
    prefetch_result(target, row, rows, column);
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4, a += 4 * ROWS, b += 4 * COLUMNS, later += FR_LANES) {
        v_prefetch_far(later);
#pragma GCC unroll 4
        for (int step = 0; step < 4; step++)
            tile_step(used, sum, a + step * ROWS, b + step * COLUMNS);
    }
    for (; k < depth; k++, a += ROWS, b += COLUMNS)
        tile_step(used, sum, a, b);
#pragma GCC unroll 14
    for (int i = 0; i < used; i++)
        if (i < rows)
            for (int v = 0; v < FR_GEMM_VECTORS; v++)
                if (v * FR_LANES < columns)
                    finish_vector(target, row + i, column + v * FR_LANES, columns - v * FR_LANES, sum[i][v]);
}

/* Decoding multiplies one row, or a few: arithmetic for rows that are not there would cost more than reading B. */
static void tile(const float *a, const float *b, int64_t depth, const float *later, const tile_target *target,
                 int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    if (rows == 1)
        tile_of(1, a, b, depth, later, target, row, rows, column, columns);
    else if (rows == 2)
        tile_of(2, a, b, depth, later, target, row, rows, column, columns);
    else if (rows <= 4)
        tile_of(4, a, b, depth, later, target, row, rows, column, columns);
    else if (rows <= 8 && ROWS > 8)
        tile_of(8 < ROWS ? 8 : ROWS, a, b, depth, later, target, row, rows, column, columns);
    else
        tile_of(ROWS, a, b, depth, later, target, row, rows, column, columns);
}

/* ---- the driver -------------------------------------------------------------------------------------- */

typedef struct gemm_layout {
    int64_t depth;       /* k per block */
    int64_t rows;        /* of A at a time */
    int64_t columns;     /* of B at a time */
    float *a, *b, *sums; /* in the workspace; sums: fp32 C of a block of columns when the result is bf16 and k
                            has several blocks */
} gemm_layout;

static bool needs_sums(int64_t k, fr_dtype c_dtype)
{
    return c_dtype == FR_BF16 && k > DEPTH;
}

static size_t layout_bytes(const gemm_layout *l, int64_t m, bool sums)
{
    return sizeof(float) *
           (size_t)(l->rows * l->depth + FR_LANES + l->depth * l->columns + (sums ? m * l->columns : 0));
}

static gemm_layout layout_choose(int64_t m, int64_t n, int64_t k)
{
    gemm_layout l = {.depth = block_depth(k)};
    l.rows = round_up(m < BLOCK_ROWS ? m : BLOCK_ROWS, ROWS);
    l.columns = round_up(n < BLOCK_COLUMNS ? n : BLOCK_COLUMNS, COLUMNS);
    return l;
}

static size_t FR_ISA(gemm_workspace)(int64_t m, int64_t n, int64_t k, fr_dtype c_dtype)
{
    gemm_layout l = layout_choose(m, n, k);
    return layout_bytes(&l, m, needs_sums(k, c_dtype));
}

static size_t FR_ISA(gemm_least)(int64_t m, int64_t n, int64_t k, fr_dtype c_dtype)
{
    gemm_layout l = {.depth = block_depth(k), .rows = ROWS, .columns = COLUMNS};
    (void)n;
    return layout_bytes(&l, m, needs_sums(k, c_dtype));
}

/* Fits the blocks into the memory given: fewer columns only mean that A is packed more often, fewer rows that
 * B is read more. */
static gemm_layout layout_fit(const fr_gemm_call *call, void *workspace, size_t bytes)
{
    gemm_layout l = layout_choose(call->m, call->n, call->k);
    bool sums = needs_sums(call->k, call->c_dtype);
    while (l.columns > FEW_COLUMNS && layout_bytes(&l, call->m, sums) > bytes)
        l.columns -= COLUMNS;
    while (l.rows > ROWS && layout_bytes(&l, call->m, sums) > bytes)
        l.rows -= ROWS;
    while (l.columns > COLUMNS && layout_bytes(&l, call->m, sums) > bytes)
        l.columns -= COLUMNS;
    l.b = workspace;
    l.a = l.b + l.depth * l.columns;
    l.sums = sums ? l.a + l.rows * l.depth + FR_LANES : NULL;
    return l;
}

/* C from (row, column) on; `columns` is the row length of the sums. */
static tile_target target_for(const fr_gemm_call *call, const gemm_layout *l, int64_t row, int64_t column,
                              bool first, bool last)
{
    tile_target t = {
        .alpha = call->alpha, .beta = first ? call->beta : 1, .to_ld = call->ldc, .from_ld = call->ldc};
    bool add = !first || call->beta != 0;
    int64_t at = row * call->ldc + column;
    if (call->c_dtype == FR_F32) {
        t.to = (float *)call->c + at;
        t.from = add ? t.to : NULL;
        return t;
    }
    uint16_t *c = (uint16_t *)call->c + at;
    float *sums = l->sums ? l->sums + row * l->columns : NULL;
    if (first && call->beta != 0)
        t.from_bf16 = c;
    if (!first) {
        t.from = sums;
        t.from_ld = l->columns;
    }
    if (last) {
        t.to_bf16 = c;
    } else {
        t.to = sums;
        t.to_ld = l->columns;
    }
    return t;
}

static const float *panels_of_b(const fr_gemm_call *call, const gemm_layout *l, int64_t k0, int64_t depth,
                                int64_t column, int64_t columns)
{
    if (call->packed_b)
        return (const float *)call->packed_b + k0 * round_up(call->packed_n, COLUMNS) +
               (call->packed_start + column) * depth;
    pack_columns(&call->b, !call->b.transpose, k0, depth, column, columns, l->b);
    return l->b;
}

/* A panel of B serves all rows of the block while it is close. */
static void block_product(const float *a, const float *b, int64_t depth, int64_t rows, int64_t columns,
                          const tile_target *target)
{
    for (int64_t j = 0; j < columns; j += COLUMNS)
        for (int64_t i = 0; i < rows; i += ROWS) {
            const float *later = b + (j + COLUMNS) * depth + i / ROWS * 4 * depth;
            tile(a + i * depth, b + j * depth, depth, later, target, i, rows - i, j, columns - j);
        }
}

static void FR_ISA(gemm_run)(const fr_gemm_call *call, void *workspace, size_t bytes)
{
    gemm_layout l = layout_fit(call, workspace, bytes);
    if (call->packed_b && !l.sums)
        l.columns = round_up(call->n, COLUMNS); /* nothing is packed: no need to stop */
    for (int64_t column = 0; column < call->n; column += l.columns) {
        int64_t columns = call->n - column < l.columns ? call->n - column : l.columns;
        for (int64_t k = 0; k < call->k || k == 0; k += l.depth) {
            int64_t depth = call->k - k < l.depth ? call->k - k : l.depth;
            const float *b = panels_of_b(call, &l, k, depth, column, columns);
            for (int64_t row = 0; row < call->m; row += l.rows) {
                int64_t rows = call->m - row < l.rows ? call->m - row : l.rows;
                tile_target target = target_for(call, &l, row, column, k == 0, k + l.depth >= call->k);
                pack_rows(&call->a, call->a.transpose, k, depth, row, rows, l.a);
                block_product(l.a, b, depth, rows, columns, &target);
            }
        }
    }
}

static size_t FR_ISA(gemm_pack_bytes)(int64_t n, int64_t k)
{
    return sizeof(float) * (size_t)(round_up(n, COLUMNS) * k);
}

static void FR_ISA(gemm_pack)(const float *rows, int64_t n, int64_t k, bool round, void *out)
{
    fr_operand weight = {.data = rows, .ld = k, .dtype = FR_F32, .transpose = true, .round = round};
    int64_t depth = block_depth(k);
    float *to = out;
    for (int64_t k0 = 0; k0 < k; k0 += depth) {
        int64_t d = k - k0 < depth ? k - k0 : depth;
        pack_columns(&weight, false, k0, d, 0, n, to);
        to += d * round_up(n, COLUMNS);
    }
}

const fr_gemm_path FR_ISA(fr_gemm_path) = {.name = "gemm_" FR_ISA_TEXT,
                                           .row_step = ROWS,
                                           .column_step = COLUMNS,
                                           .workspace = FR_ISA(gemm_workspace),
                                           .least = FR_ISA(gemm_least),
                                           .run = FR_ISA(gemm_run),
                                           .pack_bytes = FR_ISA(gemm_pack_bytes),
                                           .pack = FR_ISA(gemm_pack)};
