/* The matrix product of this module, written once over the vector type and compiled per instruction set.
 *
 * How it thinks. A tile of FR_GEMM_ROWS x (FR_GEMM_VECTORS * 16) of C stays in registers while k runs. For that A is packed in
 * panels [k][rows] and B in panels [k][columns], converting bf16 to fp32 on the way, so mixed storage
 * costs nothing extra. k is cut into equal blocks of at most DEPTH; the cut depends on k alone. A panel of A (36 KB) lives in
 * the first-level cache, a block of B in the second.
 *
 * Every element of C is one chain of fused multiply-adds in order of k, block sums added in order of the blocks: its bits
 * depend on its row of A, its column of B and on k, not on m, n, position in the tile or the workspace size. Edges run
 * through the same tile with zeros for the missing rows and columns.
 */
#include "cpu/gemm.h"
#include <string.h>

enum {
    ROWS = FR_GEMM_ROWS,
    COLUMNS = FR_GEMM_VECTORS * FR_LANES,
    AHEAD = 8,          /* rows of a panel of B fetched before use: the hardware alone streams too late (124 against 157 GFLOP/s) */
    DEPTH = 640,        /* most k in one block */
    BLOCK_COLUMNS = 256, /* columns of B packed at a time */
    MOST_ROWS = 1036 / ROWS * ROWS /* rows of A packed at a time: 1024 and a little */
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

FR_INLINE vf load_lanes(const fr_operand *x, int64_t offset, int64_t lanes)
{
    if (x->dtype == FR_BF16)
        return v_load_bf16_part((const uint16_t *)x->data + offset, lanes);
    vf value = v_load_part((const float *)x->data + offset, lanes);
    return x->round ? v_through_bf16(value) : value;
}

/* 16 lanes of `width` contiguous elements per k: the operand already runs along k. */
static void pack_straight(const fr_operand *x, int64_t k0, int64_t depth, int64_t start, int64_t valid, int width, float *out)
{
    for (int64_t k = 0; k < depth; k++)
        for (int lane = 0; lane < width; lane += FR_LANES) {
            int64_t left = valid - lane, room = width - lane;
            int64_t lanes = left < 0 ? 0 : left < FR_LANES ? left : FR_LANES;
            vf value = load_lanes(x, (k0 + k) * x->ld + start + lane, lanes < room ? lanes : room);
            v_store_part(out + k * width + lane, value, room);
        }
}

/* The same result when k runs along the rows of the operand: 16 x 16 transposes. */
static void pack_turned(const fr_operand *x, int64_t k0, int64_t depth, int64_t start, int64_t valid, int width, float *out)
{
    for (int64_t k = 0; k < depth; k += FR_LANES) {
        int64_t lanes = depth - k < FR_LANES ? depth - k : FR_LANES;
        for (int lane = 0; lane < width; lane += FR_LANES) {
            vf rows[FR_LANES];
            for (int i = 0; i < FR_LANES; i++)
                rows[i] = lane + i < valid && lane + i < width ? load_lanes(x, (start + lane + i) * x->ld + k0 + k, lanes) : v_set(0);
            v_transpose(rows);
            for (int i = 0; i < lanes; i++)
                v_store_part(out + (k + i) * width + lane, rows[i], width - lane);
        }
    }
}

/* Panels of `width` rows (A) or columns (B) of the k-block [k0, k0 + depth). `along` says that k is the row index as stored. */
static void pack_panels(const fr_operand *x, bool along, int64_t k0, int64_t depth, int64_t start, int64_t count, int width, float *out)
{
    for (int64_t i = 0; i < count; i += width, out += depth * width) {
        int64_t valid = count - i < width ? count - i : width;
        if (along)
            pack_straight(x, k0, depth, start + i, valid, width, out);
        else
            pack_turned(x, k0, depth, start + i, valid, width, out);
    }
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
        value = v_fma(v_set(t->beta), v_load_bf16_part(t->from_bf16 + row * t->from_ld + column, lanes), value);
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

static void tile(const float *a, const float *b, int64_t depth, const tile_target *target, int64_t row, int64_t rows,
                 int64_t column, int64_t columns)
{
    vf sum[ROWS][FR_GEMM_VECTORS];
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < FR_GEMM_VECTORS; v++)
            sum[i][v] = v_set(0);
    prefetch_result(target, row, rows, column);
    for (int64_t k = 0; k < depth; k++, a += ROWS, b += COLUMNS) {
        vf right[FR_GEMM_VECTORS];
        v_prefetch(a + 16 * ROWS);
        for (int v = 0; v < FR_GEMM_VECTORS; v++)
            v_prefetch(b + AHEAD * COLUMNS + v * FR_LANES);
        for (int v = 0; v < FR_GEMM_VECTORS; v++)
            right[v] = v_load(b + v * FR_LANES);
#pragma GCC unroll 14
        for (int i = 0; i < ROWS; i++) {
            vf left = v_set(a[i]);
            for (int v = 0; v < FR_GEMM_VECTORS; v++)
                sum[i][v] = v_fma(left, right[v], sum[i][v]);
        }
    }
#pragma GCC unroll 14
    for (int i = 0; i < ROWS; i++)
        if (i < rows)
            for (int v = 0; v < FR_GEMM_VECTORS; v++)
                if (v * FR_LANES < columns)
                    finish_vector(target, row + i, column + v * FR_LANES, columns - v * FR_LANES, sum[i][v]);
}

/* ---- the driver -------------------------------------------------------------------------------------- */

typedef struct gemm_layout {
    int64_t depth;        /* k per block */
    int64_t rows;         /* of A at a time */
    int64_t columns;      /* of B at a time */
    float *a, *b, *sums;  /* in the workspace; sums: fp32 C of a row block when the result is bf16 and k has several blocks */
} gemm_layout;

static bool needs_sums(int64_t k, fr_dtype c_dtype)
{
    return c_dtype == FR_BF16 && k > DEPTH;
}

static size_t layout_floats(const gemm_layout *l, int64_t n, bool sums)
{
    return (size_t)(l->rows * l->depth + 16 + l->depth * l->columns + (sums ? l->rows * n : 0));
}

static gemm_layout layout_choose(int64_t m, int64_t n, int64_t k)
{
    gemm_layout l = {.depth = block_depth(k)};
    int64_t blocks = (m + MOST_ROWS - 1) / MOST_ROWS;
    l.rows = round_up((m + blocks - 1) / (blocks ? blocks : 1), ROWS);
    l.columns = round_up(n < BLOCK_COLUMNS ? n : BLOCK_COLUMNS, COLUMNS);
    return l;
}

static size_t FR_ISA(gemm_workspace)(int64_t m, int64_t n, int64_t k, fr_dtype c_dtype)
{
    gemm_layout l = layout_choose(m, n, k);
    return sizeof(float) * layout_floats(&l, n, needs_sums(k, c_dtype)) + 64;
}

static size_t FR_ISA(gemm_least)(int64_t m, int64_t n, int64_t k, fr_dtype c_dtype)
{
    gemm_layout l = {.depth = block_depth(k), .rows = ROWS, .columns = COLUMNS};
    (void)m;
    return sizeof(float) * layout_floats(&l, n, needs_sums(k, c_dtype)) + 64;
}

/* Fits the blocks into the memory given: fewer rows first, they only cost repacking of B. */
static gemm_layout layout_fit(const fr_gemm_call *call, void *workspace, size_t bytes)
{
    gemm_layout l = layout_choose(call->m, call->n, call->k);
    bool sums = needs_sums(call->k, call->c_dtype);
    while (l.rows > ROWS && sizeof(float) * layout_floats(&l, call->n, sums) > bytes)
        l.rows -= ROWS;
    while (l.columns > COLUMNS && sizeof(float) * layout_floats(&l, call->n, sums) > bytes)
        l.columns -= COLUMNS;
    l.b = workspace;
    l.a = l.b + l.depth * l.columns;
    l.sums = sums ? l.a + l.rows * l.depth + 16 : NULL;
    return l;
}

static tile_target target_for(const fr_gemm_call *call, const gemm_layout *l, int64_t row0, bool first, bool last)
{
    tile_target t = {.alpha = call->alpha, .beta = first ? call->beta : 1, .to_ld = call->ldc, .from_ld = call->ldc};
    bool add = !first || call->beta != 0;
    if (call->c_dtype == FR_F32) {
        t.to = (float *)call->c + row0 * call->ldc;
        t.from = add ? t.to : NULL;
        return t;
    }
    uint16_t *c = (uint16_t *)call->c + row0 * call->ldc;
    if (first && call->beta != 0)
        t.from_bf16 = c;
    if (!first) {
        t.from = l->sums;
        t.from_ld = call->n;
    }
    if (last) {
        t.to_bf16 = c;
    } else {
        t.to = l->sums;
        t.to_ld = call->n;
    }
    return t;
}

static const float *panels_of_b(const fr_gemm_call *call, const gemm_layout *l, int64_t k0, int64_t depth, int64_t column, int64_t columns)
{
    if (call->packed_b)
        return (const float *)call->packed_b + k0 * round_up(call->packed_n, COLUMNS) + (call->packed_start + column) * depth;
    pack_panels(&call->b, !call->b.transpose, k0, depth, column, columns, COLUMNS, l->b);
    return l->b;
}

static void block_product(const float *a, const float *b, int64_t depth, int64_t rows, int64_t column, int64_t columns,
                          const tile_target *target)
{
    for (int64_t i = 0; i < rows; i += ROWS)
        for (int64_t j = 0; j < columns; j += COLUMNS)
            tile(a + i * depth, b + j * depth, depth, target, i, rows - i, column + j, columns - j);
}

static void FR_ISA(gemm_run)(const fr_gemm_call *call, void *workspace, size_t bytes)
{
    gemm_layout l = layout_fit(call, workspace, bytes);
    for (int64_t row = 0; row < call->m; row += l.rows) {
        int64_t rows = call->m - row < l.rows ? call->m - row : l.rows;
        for (int64_t k = 0; k < call->k || k == 0; k += l.depth) {
            int64_t depth = call->k - k < l.depth ? call->k - k : l.depth;
            tile_target target = target_for(call, &l, row, k == 0, k + l.depth >= call->k);
            pack_panels(&call->a, call->a.transpose, k, depth, row, rows, ROWS, l.a);
            for (int64_t column = 0; column < call->n; column += l.columns) {
                int64_t columns = call->n - column < l.columns ? call->n - column : l.columns;
                const float *b = panels_of_b(call, &l, k, depth, column, columns);
                block_product(l.a, b, depth, rows, column, columns, &target);
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
        pack_panels(&weight, false, k0, d, 0, n, COLUMNS, to);
        to += d * round_up(n, COLUMNS);
    }
}

const fr_gemm_path FR_ISA(fr_gemm_path) = {
    .name = "gemm_" FR_ISA_TEXT, .row_step = ROWS, .column_step = COLUMNS, .workspace = FR_ISA(gemm_workspace), .least = FR_ISA(gemm_least),
    .run = FR_ISA(gemm_run), .pack_bytes = FR_ISA(gemm_pack_bytes), .pack = FR_ISA(gemm_pack)};
