/* Causal attention, written once over the vector type and compiled per instruction set.
 *
 * How it thinks. Queries lie in the lanes: a block of QUERIES consecutive queries of one head against a
 * tile of at most TILE keys gives the transposed scores S^T (keys x queries). So maximum, sum and
 * exponential over the keys are plain vector operations, and S^T already is the right operand of the next
 * product, out^T += V^T P^T: nothing is repacked. All products are small register tiles of FR_TILE_ROWS x
 * QUERIES.
 *
 * Tiles begin at absolute positions (multiples of TILE from the start of the row) and blocks of queries at
 * multiples of QUERIES. What a query sees is therefore summed in an order that depends on its position
 * alone: not on the number of rows, the length of the row beyond it, or threads. Tiles outside the window
 * or above the diagonal are never touched; inside a tile the rest is masked to probability exactly 0.
 * So a block may as well begin elsewhere, as it does where rows share a beginning (fr_segments): the shared keys
 * are loaded once for all that go on from them.
 *
 * Rows that continue a sequence take keys and values from its ring, by the same tiles at the same
 * positions: a long row through the same code, a single query with keys in the lanes instead, every sum in
 * the same order. So a token has the same bits whether its row was run whole, in pieces, or it came alone.
 *
 * The backward pass takes p again from the saved log-sum-exp. Tiles of keys are the outer loop, so that d
 * k and d v of a tile stay in the second-level cache; d q of all queries is summed tile after tile.
 */
#include "cpu/kernels/shared/vector_math.h"
#include "cpu/kernels/kernels.h"
#include "cpu/split.h"
#include <math.h>
#include <string.h>

enum { QUERIES = FR_TILE_VECTORS * FR_LANES, TILE = 128, STEP = FR_TILE_ROWS, PAD = 32 };

static const float FAR_BELOW =
    -1e30f; /* a maximum before any score: finite, so that differences stay numbers */

typedef struct attention {
    const fr_call *call;
    const fr_attention_options *options;
    int64_t T, width, padded; /* padded: width rounded up to PAD */
    int64_t rows;             /* of keys and values in memory; T rounded up to a whole block of queries */
    int64_t start, end;       /* positions of the row's queries: [start, end) */
    int64_t base;             /* position of the first key in memory */
    int64_t token;            /* token of position `start`; with `order`, its number there */
    const int32_t *order;     /* see fr_segments; NULL: in order */
    float scale;
} attention;

static attention attention_of(const fr_call *call)
{
    const fr_attention_options *options = call->node->attributes;
    attention a = {.call = call, .options = options, .T = call->extent.T, .scale = (float)options->scale};
    a.width = call->node->in[0]->columns / options->heads;
    a.padded = (a.width + PAD - 1) / PAD * PAD;
    a.rows = (call->first + a.T + QUERIES - 1) / QUERIES * QUERIES;
    a.end = a.T;
    if (call->continuing.chunk > 0)
        a.rows = fr_attention_capacity(call) + TILE + QUERIES;
    return a;
}

/* ---- the register tile ------------------------------------------------------------------------------- */

/* One k: every element of the tile's first `vectors` gets one multiply-add. */
FR_INLINE void tile_step(int vectors, vf sum[STEP][FR_TILE_VECTORS], const float *a, int64_t row_stride,
                         const float *b)
{
    vf right[FR_TILE_VECTORS];
    for (int v = 0; v < vectors; v++)
        right[v] = v_load(b + v * FR_LANES);
#pragma GCC unroll 8
    for (int i = 0; i < STEP; i++) {
        vf left = v_set(a[i * row_stride]);
        for (int v = 0; v < vectors; v++)
            sum[i][v] = v_fma(left, right[v], sum[i][v]);
    }
}

/* c (STEP x `vectors` of QUERIES) = [c +] a b. a is reached by row and k strides, b is depth x QUERIES with row
 * length b_ld. */
FR_INLINE void tile_product(int vectors, const float *a, int64_t row_stride, int64_t k_stride, const float *b,
                            int64_t b_ld, int64_t depth, float *c, int64_t c_ld, bool add)
{
    vf sum[STEP][FR_TILE_VECTORS];
    for (int i = 0; i < STEP; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = add ? v_load(c + i * c_ld + v * FR_LANES) : v_set(0);
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4, b += 4 * b_ld) {
#pragma GCC unroll 4
        for (int step = 0; step < 4; step++)
            tile_step(vectors, sum, a + (k + step) * k_stride, row_stride, b + step * b_ld);
    }
    for (; k < depth; k++, b += b_ld)
        tile_step(vectors, sum, a + k * k_stride, row_stride, b);
    for (int i = 0; i < STEP; i++)
        for (int v = 0; v < vectors; v++)
            v_store(c + i * c_ld + v * FR_LANES, sum[i][v]);
}

/* out (count x QUERIES) = rows (count x depth) * b; of out and b the first `vectors` */
static void rows_times(int vectors, const float *rows, int64_t ld, int64_t count, const float *b,
                       int64_t depth, float *out)
{
    for (int64_t i = 0; i < count && vectors < FR_TILE_VECTORS; i += STEP)
        tile_product(1, rows + i * ld, ld, 1, b, QUERIES, depth, out + i * QUERIES, QUERIES, false);
    for (int64_t i = 0; i < count && vectors == FR_TILE_VECTORS; i += STEP)
        tile_product(FR_TILE_VECTORS, rows + i * ld, ld, 1, b, QUERIES, depth, out + i * QUERIES, QUERIES, false);
}

/* out (width x QUERIES) += rows^T (width x count) * b (count x QUERIES), likewise */
static void turned_rows_times(int vectors, const float *rows, int64_t ld, int64_t count, int64_t width,
                              const float *b, float *out)
{
    for (int64_t i = 0; i < width && vectors < FR_TILE_VECTORS; i += STEP)
        tile_product(1, rows + i, 1, ld, b, QUERIES, count, out + i * QUERIES, QUERIES, true);
    for (int64_t i = 0; i < width && vectors == FR_TILE_VECTORS; i += STEP)
        tile_product(FR_TILE_VECTORS, rows + i, 1, ld, b, QUERIES, count, out + i * QUERIES, QUERIES, true);
}

/* out (count x width) += weights (count x QUERIES) * rows (QUERIES x width) */
static void weights_times(const float *weights, int64_t count, const float *rows, int64_t ld, int64_t width,
                          float *out)
{
    for (int64_t c = 0; c < width; c += QUERIES)
        for (int64_t i = 0; i < count; i += STEP)
            tile_product(FR_TILE_VECTORS, weights + i * QUERIES, QUERIES, 1, rows + c, ld, QUERIES, out + i * ld + c, ld,
                         true);
}

/* ---- moving heads in and out --------------------------------------------------------------------------- */

/* The row of the call's matrices that token number `token` lies in. */
FR_INLINE int64_t row_of(const attention *a, int64_t token)
{
    return a->order ? a->order[token] - a->call->first : token - a->call->first;
}

/* Head `head` of `count` tokens as fp32 times `factor`, padded with zeros to a.padded columns and `room` rows. */
static void load_rows(const attention *a, const void *data, fr_dtype dtype, int heads, int head,
                      int64_t token, int64_t count, int64_t room, float factor, float *out)
{
    for (int64_t i = 0; i < room; i++, out += a->padded) {
        int64_t start = i < count ? (row_of(a, token + i) * heads + head) * a->width : 0;
        for (int64_t c = 0; c < a->padded; c += FR_LANES) {
            int64_t left = i < count ? a->width - c : 0;
            vf value = left > 0 ? v_get(data, dtype, start + c, left < FR_LANES ? left : FR_LANES) : v_set(0);
            v_store(out + c, v_mul(v_set(factor), value));
        }
    }
}

/* A block of QUERIES rows turned into columns: out is a.padded x QUERIES. */
static void turn_block(const attention *a, const float *rows, float *out)
{
    for (int64_t c = 0; c < a->padded; c += FR_LANES)
        for (int v = 0; v < FR_TILE_VECTORS; v++) {
            vf part[FR_LANES];
            for (int i = 0; i < FR_LANES; i++)
                part[i] = v_load(rows + (v * FR_LANES + i) * a->padded + c);
            v_transpose(part);
            for (int i = 0; i < FR_LANES; i++)
                v_store(out + (c + i) * QUERIES + v * FR_LANES, part[i]);
        }
}

/* The way back: columns (a.padded x QUERIES) to the first `count` rows. */
static void turn_back(const attention *a, const float *columns, float *rows)
{
    for (int64_t c = 0; c < a->padded; c += FR_LANES)
        for (int v = 0; v < FR_TILE_VECTORS; v++) {
            vf part[FR_LANES];
            for (int i = 0; i < FR_LANES; i++)
                part[i] = v_load(columns + (c + i) * QUERIES + v * FR_LANES);
            v_transpose(part);
            for (int i = 0; i < FR_LANES; i++)
                v_store(rows + (v * FR_LANES + i) * a->padded + c, part[i]);
        }
}

static void store_rows(const attention *a, void *data, fr_dtype dtype, int heads, int head, int64_t token,
                       int64_t count, float factor, bool accumulate, const float *rows)
{
    for (int64_t i = 0; i < count; i++, rows += a->padded) {
        int64_t start = (row_of(a, token + i) * heads + head) * a->width;
        for (int64_t c = 0; c < a->width; c += FR_LANES)
            v_put_gradient(data, dtype, start + c, lanes_left(a->width, c),
                           v_mul(v_set(factor), v_load(rows + c)), accumulate);
    }
}

/* ---- which keys ---------------------------------------------------------------------------------------- */

/* Keys that some query of the block at `q` sees within the tile at `tile`: [from, to), whole register tiles.
 */
typedef struct key_range {
    int64_t from, to;
} key_range;

static key_range keys_of(const attention *a, int64_t q, int64_t tile)
{
    int64_t window = a->options->window, last = q + QUERIES < a->end ? q + QUERIES : a->end;
    int64_t first = window > 0 && q > window ? (q - window) / STEP * STEP : 0;
    first = first > a->base ? first : a->base;
    int64_t end = (last + STEP - 1) / STEP * STEP;
    return (key_range){first > tile ? first : tile, end < tile + TILE ? end : tile + TILE};
}

/* Replaces the scores of keys a query must not see; whole vectors that are visible are left alone. */
static void mask_scores(const attention *a, int64_t q, key_range keys, float *scores, float masked)
{
    int64_t window = a->options->window > 0 ? a->options->window : INT64_MAX;
    for (int64_t j = keys.from; j < keys.to; j++) {
        float *row = scores + (j - keys.from) * QUERIES;
        if (j <= q && q + QUERIES - 1 - j <= window)
            continue;
        for (int64_t i = 0; i < QUERIES; i++)
            if (j > q + i || q + i - j > window)
                row[i] = masked;
    }
}

/* ---- forward ------------------------------------------------------------------------------------------- */

typedef struct forward_memory {
    float *k, *v;                       /* rows + QUERIES x padded */
    float *q, *q_turned, *out, *scores; /* one block of queries; scores TILE x QUERIES */
} forward_memory;

static size_t forward_floats(const attention *a)
{
    return (size_t)(2 * (a->rows + QUERIES) * a->padded + 3 * QUERIES * a->padded + TILE * QUERIES);
}

static forward_memory forward_lay_out(const attention *a, float *memory)
{
    int64_t rows = a->rows + QUERIES; /* a segment may begin and end within a block */
    forward_memory m = {.k = memory};
    m.v = m.k + rows * a->padded;
    m.q = m.v + rows * a->padded;
    m.q_turned = m.q + QUERIES * a->padded;
    m.out = m.q_turned + QUERIES * a->padded;
    m.scores = m.out + QUERIES * a->padded;
    return m;
}

/* The largest of `count` scores, a multiple of STEP, and `before`; four chains, or the latency of one is waited for. */
static vf largest_score(const float *scores, int64_t count, vf before)
{
    vf now[4] = {before, before, before, before};
    for (int64_t j = 0; j < count; j += 4)
        for (int i = 0; i < 4; i++)
            now[i] = v_max(now[i], v_load(scores + (j + i) * QUERIES));
    return v_max(v_max(now[0], now[1]), v_max(now[2], now[3]));
}

/* Scores become probabilities relative to the new maximum; sums and out are brought to it. */
static void online_softmax(const attention *a, int vectors, float *scores, int64_t count, float *out,
                           float *largest, float *sums)
{
    for (int v = 0; v < vectors * FR_LANES; v += FR_LANES) {
        vf before = v_load(largest + v), now = largest_score(scores + v, count, before), sum = v_set(0);
        for (int64_t j = 0; j < count; j++) {
            vf p = v_exp(v_sub(v_load(scores + j * QUERIES + v), now));
            v_store(scores + j * QUERIES + v, p);
            sum = v_add(sum, p);
        }
        vf shrink = v_exp(v_sub(before, now));
        v_store(largest + v, now);
        v_store(sums + v, v_fma(v_load(sums + v), shrink, sum));
        for (int64_t c = 0; c < a->padded; c++)
            v_store(out + c * QUERIES + v, v_mul(v_load(out + c * QUERIES + v), shrink));
    }
}

static void finish_block(const attention *a, const forward_memory *m, int head, int64_t token, int64_t count,
                         const float *largest, const float *sums)
{
    const fr_call *call = a->call;
    int heads = a->options->heads;
    for (int v = 0; v < count; v += FR_LANES) {
        vf factor = v_div(v_set(1), v_load(sums + v));
        for (int64_t c = 0; c < a->padded; c++)
            v_store(m->out + c * QUERIES + v, v_mul(v_load(m->out + c * QUERIES + v), factor));
    }
    turn_back(a, m->out, m->q);
    store_rows(a, call->out[0], call->out_dtype[0], heads, head, token, count, 1, false, m->q);
    for (int64_t i = 0; i < count; i++)
        v_put(call->out[1], call->out_dtype[1], row_of(a, token + i) * heads + head, 1,
              v_set(largest[i] + logf(sums[i])));
}

/* The queries from position q on: a block of them, or the half that there are. */
static void attend_block(const attention *a, const forward_memory *m, int head, int64_t q)
{
    float largest[QUERIES], sums[QUERIES];
    int64_t token = a->token + q - a->start, count = a->end - q < QUERIES ? a->end - q : QUERIES;
    int64_t window = a->options->window, first = window > 0 && q > window ? q - window : 0;
    int vectors = count > FR_LANES ? FR_TILE_VECTORS : 1;
    load_rows(a, a->call->in[0], a->call->in_dtype[0], a->options->heads, head, token, count, QUERIES,
              a->scale, m->q);
    turn_block(a, m->q, m->q_turned);
    memset(m->out, 0, sizeof(float) * (size_t)(QUERIES * a->padded));
    for (int i = 0; i < QUERIES; i++) {
        largest[i] = FAR_BELOW;
        sums[i] = 0;
    }
    for (int64_t tile = first / TILE * TILE; tile < q + count; tile += TILE) {
        key_range keys = keys_of(a, q, tile);
        rows_times(vectors, m->k + (keys.from - a->base) * a->padded, a->padded, keys.to - keys.from, m->q_turned,
                   a->padded, m->scores);
        mask_scores(a, q, keys, m->scores, -INFINITY);
        online_softmax(a, vectors, m->scores, keys.to - keys.from, m->out, largest, sums);
        turned_rows_times(vectors, m->v + (keys.from - a->base) * a->padded, a->padded, keys.to - keys.from, a->padded,
                          m->scores, m->out);
    }
    finish_block(a, m, head, token, count, largest, sums);
}

/* ---- rows that continue a sequence --------------------------------------------------------------------- */

/* Keys or values of positions [a->base, a->end) out of a ring, and zeros up to a whole block of queries. */
static void load_ring(const attention *a, const void *ring, int64_t capacity, fr_dtype dtype, float *out)
{
    int64_t room = (a->end - a->base + QUERIES - 1) / QUERIES * QUERIES;
    for (int64_t i = 0; i < room; i++, out += a->padded) {
        int64_t start = (a->base + i) % capacity * a->width;
        for (int64_t c = 0; c < a->padded; c += FR_LANES) {
            int64_t left = a->base + i < a->end ? a->width - c : 0;
            v_store(out + c,
                    left > 0 ? v_get(ring, dtype, start + c, left < FR_LANES ? left : FR_LANES) : v_set(0));
        }
    }
}

/* Scores of sixteen keys of a ring, beginning at row `place`, against one query. */
FR_INLINE vf score_keys(const attention *a, const void *ring, fr_dtype dtype, int64_t place, const float *q)
{
    vf sum = v_set(0);
    for (int64_t c = 0; c < a->width; c += FR_LANES) {
        vf rows[FR_LANES];
        int64_t lanes = lanes_left(a->width, c);
        for (int i = 0; i < FR_LANES; i++)
            rows[i] = v_get(ring, dtype, (place + i) * a->width + c, lanes);
        v_transpose(rows);
#pragma GCC unroll 16
        for (int i = 0; i < FR_LANES; i++)
            sum = v_fma(rows[i], v_set(q[c + i]), sum);
    }
    return sum;
}

/* Scores of the keys [from, to) of a tile; those around them in whole vectors are masked. Returns the
 * largest. */
static float score_tile(const attention *a, const fr_attention_ring *ring, int64_t tile, int64_t from,
                        int64_t to, const float *q, float *scores)
{
    vf largest = v_set(FAR_BELOW);
    for (int64_t j = from / FR_LANES * FR_LANES; j < to; j += FR_LANES) {
        vf s = score_keys(a, ring->k, a->call->in_dtype[1], j % ring->capacity, q);
        v_store(scores + j - tile, s);
        for (int64_t i = j; i < from; i++)
            scores[i - tile] = -INFINITY;
        for (int64_t i = to > j ? to : j; i < j + FR_LANES; i++)
            scores[i - tile] = -INFINITY;
        largest = v_max(largest, v_load(scores + j - tile));
    }
    return v_largest(largest);
}

/* Values of keys [from, to) weighted by p, added to `out`. */
static void add_values(const attention *a, const fr_attention_ring *ring, int64_t tile, int64_t from,
                       int64_t to, const float *p, vf shrink, float *out)
{
    int64_t place = from % ring->capacity * a->width;
    for (int64_t c = 0; c < a->width; c += FR_LANES) {
        int64_t lanes = lanes_left(a->width, c);
        vf sum = v_mul(v_load(out + c), shrink);
        for (int64_t j = from; j < to; j++)
            sum = v_fma(v_get(ring->v, a->call->in_dtype[2], place + (j - from) * a->width + c, lanes),
                        v_set(p[j - tile]), sum);
        v_store(out + c, sum);
    }
}

/* The softmax of one tile joins what the tiles before it gave: as online_softmax, for one query. */
static void attend_tile(const attention *a, const fr_attention_ring *ring, int64_t tile, int64_t from,
                        int64_t to, const forward_memory *m, float *largest, float *sums)
{
    float now = score_tile(a, ring, tile, from, to, m->q, m->scores), sum = 0;
    now = *largest > now ? *largest : now;
    for (int64_t j = from / FR_LANES * FR_LANES; j < to; j += FR_LANES)
        v_store(m->scores + j - tile, v_exp(v_sub(v_load(m->scores + j - tile), v_set(now))));
    for (int64_t j = from; j < to; j++)
        sum += m->scores[j - tile];
    vf shrink = v_exp(v_sub(v_set(*largest), v_set(now)));
    *largest = now;
    *sums = v_lane0(v_fma(v_set(*sums), shrink, v_set(sum)));
    add_values(a, ring, tile, from, to, m->scores, shrink, m->out);
}

/* The query at position a->start, alone. */
static void attend_one(const attention *a, const forward_memory *m, const fr_attention_ring *ring,
                       int64_t row, int head)
{
    const fr_call *call = a->call;
    int64_t window = a->options->window, token = row * a->T, at = token * a->options->heads + head;
    int64_t first = window > 0 && a->start > window ? a->start - window : 0;
    float largest = FAR_BELOW, sums = 0;
    load_rows(a, call->in[0], call->in_dtype[0], a->options->heads, head, token, 1, 1, a->scale, m->q);
    memset(m->out, 0, sizeof(float) * (size_t)a->padded);
    for (int64_t tile = first / TILE * TILE; tile < a->end; tile += TILE)
        attend_tile(a, ring, tile, first > tile ? first : tile, a->end < tile + TILE ? a->end : tile + TILE,
                    m, &largest, &sums);
    vf factor = v_div(v_set(1), v_set(sums));
    for (int64_t c = 0; c < a->width; c += FR_LANES)
        v_put(call->out[0], call->out_dtype[0], at * a->width + c, lanes_left(a->width, c),
              v_mul(v_load(m->out + c), factor));
    v_put(call->out[1], call->out_dtype[1], at, 1, v_set(largest + logf(sums)));
}

static void continue_row(attention *a, const forward_memory *m, int64_t row, int kv_head)
{
    const fr_call *call = a->call;
    const fr_sequence *s = &call->sequences[row];
    fr_attention_ring ring = fr_attention_ring_of(call, row, kv_head);
    int group = a->options->heads / a->options->kv_heads;
    int64_t window = a->options->window;
    a->start = s->start;
    a->end = s->start + s->count;
    a->token = row * a->T;
    a->base = (window > 0 && a->start > window ? a->start - window : 0) / TILE * TILE;
    fr_attention_remember(call, row, kv_head);
    if (s->count > 1) {
        load_ring(a, ring.k, ring.capacity, call->in_dtype[1], m->k);
        load_ring(a, ring.v, ring.capacity, call->in_dtype[2], m->v);
    }
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++) {
        for (int64_t q = a->start; s->count > 1 && q < a->end; q += QUERIES)
            attend_block(a, m, head, q);
        if (s->count == 1)
            attend_one(a, m, &ring, row, head);
    }
}

static int64_t attention_jobs(const fr_call *call)
{
    const fr_attention_options *options = call->node->attributes;
    return call->extent.rows * options->kv_heads;
}

/* Keys and values of positions [from, to), tokens from number `token` on, and zeros up to position `room`. */
static void load_keys(const attention *a, const forward_memory *m, int kv_head, int64_t token, int64_t from,
                      int64_t to, int64_t room)
{
    const fr_call *call = a->call;
    int heads = a->options->kv_heads;
    int64_t at = (from - a->base) * a->padded;
    load_rows(a, call->in[1], call->in_dtype[1], heads, kv_head, token, to - from, room - from, 1, m->k + at);
    load_rows(a, call->in[2], call->in_dtype[2], heads, kv_head, token, to - from, room - from, 1, m->v + at);
}

static void attend_queries(const attention *a, const forward_memory *m, int kv_head)
{
    int group = a->options->heads / a->options->kv_heads;
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
        for (int64_t q = a->start; q < a->end; q += QUERIES)
            attend_block(a, m, head, q);
}

/* What the memory of keys begins with: positions from `from` on of the row that begins with `count` tokens from
 * number `token` on. */
typedef struct loaded_keys {
    int64_t token, count, from;
} loaded_keys;

/* Makes the memory begin at position `seen`; whole register tiles are read from it. */
static void begin_keys(attention *a, const forward_memory *m, int64_t seen)
{
    a->base = seen / STEP * STEP;
    size_t bytes = sizeof(float) * (size_t)((seen - a->base) * a->padded);
    memset(m->k, 0, bytes);
    memset(m->v, 0, bytes);
}

/* The keys that queries [a->start, a->end) of a segment see. What the memory begins with is not loaded again. */
static void load_segment(attention *a, const forward_memory *m, int kv_head, const fr_segment *s,
                         loaded_keys *have)
{
    int64_t window = a->options->window, row = s->left_out, own = row + s->before_count;
    int64_t seen = window > 0 && a->start - window > row ? a->start - window : row;
    bool before = seen < own;
    if (before && have->token == s->before && have->count >= s->before_count && have->from <= seen) {
        a->base = have->from / STEP * STEP;
    } else {
        begin_keys(a, m, seen);
        have->from = seen;
        if (before)
            load_keys(a, m, kv_head, s->before + seen - row, seen, own, own);
    }
    have->token = before ? s->before : s->first;
    have->count = before ? s->before_count : s->before_count ? 0 : s->count;
    if (before && s->first == s->before + s->before_count) /* its own keys go on where those end */
        have->count += s->count;
    int64_t from = before ? own : seen;
    load_keys(a, m, kv_head, s->first + from - own, from, a->end, (a->end + STEP - 1) / STEP * STEP);
}

/* One key-value head of all segments: the queries of this level, which are the last of each segment. */
static void forward_segments(attention a, const forward_memory *m, int kv_head)
{
    const fr_segments *segments = a.call->segments;
    loaded_keys have = {-1, 0, 0};
    a.order = segments->order;
    for (int64_t i = 0; i < segments->count; i++) {
        const fr_segment *s = &segments->list[i];
        int64_t skipped = 0;
        while (skipped < s->count && row_of(&a, s->first + skipped) < 0)
            skipped++;
        if (skipped == s->count)
            continue;
        a.token = s->first + skipped;
        a.start = s->left_out + s->before_count + skipped;
        a.end = s->left_out + s->before_count + s->count;
        load_segment(&a, m, kv_head, s, &have);
        attend_queries(&a, m, kv_head);
    }
}

/* One key-value head of one row. */
static void forward_job(const fr_call *call, int64_t job, void *memory)
{
    attention a = attention_of(call);
    forward_memory m = forward_lay_out(&a, memory);
    int kv_head = (int)(job % a.options->kv_heads);
    if (call->continuing.chunk > 0) {
        continue_row(&a, &m, job / a.options->kv_heads, kv_head);
        return;
    }
    if (call->segments) {
        forward_segments(a, &m, kv_head);
        return;
    }
    a.token = job / a.options->kv_heads * a.T;
    load_keys(&a, &m, kv_head, a.token, 0, a.T, a.rows);
    attend_queries(&a, &m, kv_head);
}

static size_t forward_bytes(const fr_call *call)
{
    attention a = attention_of(call);
    return sizeof(float) * forward_floats(&a);
}

static size_t FR_ISA(attention_forward_scratch)(const fr_call *call)
{
    return fr_split_scratch(attention_jobs(call), forward_bytes(call));
}

static void FR_ISA(attention_forward)(const fr_call *call)
{
    fr_split_jobs(call, attention_jobs(call), forward_bytes(call), forward_job);
}

/* ---- backward ------------------------------------------------------------------------------------------ */

typedef struct backward_memory {
    float *k, *v, *dk, *dv;                    /* rows x padded, of one key-value head */
    float *q, *dout;                           /* rows x padded, of one query head; q times scale */
    float *q_turned, *dout_turned, *dq_turned; /* per block padded x QUERIES */
    float *log_sums, *delta;                   /* rows */
    float *p, *ds;                             /* TILE x QUERIES */
} backward_memory;

static size_t backward_floats(const attention *a)
{
    return (size_t)(9 * a->rows * a->padded + 2 * a->rows + 2 * TILE * QUERIES);
}

static backward_memory backward_lay_out(const attention *a, float *memory)
{
    int64_t matrix = a->rows * a->padded;
    backward_memory m = {.k = memory};
    m.v = m.k + matrix;
    m.dk = m.v + matrix;
    m.dv = m.dk + matrix;
    m.q = m.dv + matrix;
    m.dout = m.q + matrix;
    m.q_turned = m.dout + matrix;
    m.dout_turned = m.q_turned + matrix;
    m.dq_turned = m.dout_turned + matrix;
    m.log_sums = m.dq_turned + matrix;
    m.delta = m.log_sums + a->rows;
    m.p = m.delta + a->rows;
    m.ds = m.p + TILE * QUERIES;
    return m;
}

/* delta_i = <d out_i, out_i>; the saved log-sum-exp. Rows that do not exist get probability 0. */
static void load_statistics(const attention *a, const backward_memory *m, int head, int64_t token)
{
    const fr_call *call = a->call;
    int heads = a->options->heads;
    for (int64_t i = 0; i < a->rows; i++) {
        vf sum = v_set(0), log_sum = v_set(-FAR_BELOW);
        if (i < a->T)
            log_sum = v_get(call->out[1], call->out_dtype[1], (token + i) * heads + head, 1);
        for (int64_t c = 0; c < a->width && i < a->T; c += FR_LANES)
            sum = v_fma(v_load(m->dout + i * a->padded + c),
                        v_get(call->out[0], call->out_dtype[0], ((token + i) * heads + head) * a->width + c,
                              lanes_left(a->width, c)),
                        sum);
        m->delta[i] = v_total(sum);
        v_store_part(m->log_sums + i, log_sum, 1);
    }
}

static void load_head(const attention *a, const backward_memory *m, int head, int64_t token)
{
    const fr_call *call = a->call;
    int heads = a->options->heads;
    load_rows(a, call->in[0], call->in_dtype[0], heads, head, token, a->T, a->rows, a->scale, m->q);
    load_rows(a, call->grad_out[0], call->out_dtype[0], heads, head, token, a->T, a->rows, 1, m->dout);
    for (int64_t q = 0; q < a->rows; q += QUERIES) {
        turn_block(a, m->q + q * a->padded, m->q_turned + q * a->padded);
        turn_block(a, m->dout + q * a->padded, m->dout_turned + q * a->padded);
    }
    memset(m->dq_turned, 0, sizeof(float) * (size_t)(a->rows * a->padded));
    load_statistics(a, m, head, token);
}

/* Scores (in p) and d p (in ds) become p and d s. */
static void probabilities(const attention *a, int64_t q, key_range keys, const backward_memory *m)
{
    mask_scores(a, q, keys, m->p, -INFINITY);
    for (int v = 0; v < QUERIES; v += FR_LANES) {
        vf log_sum = v_load(m->log_sums + q + v), delta = v_load(m->delta + q + v);
        for (int64_t j = 0; j < keys.to - keys.from; j++) {
            vf p = v_exp(v_sub(v_load(m->p + j * QUERIES + v), log_sum));
            v_store(m->p + j * QUERIES + v, p);
            v_store(m->ds + j * QUERIES + v, v_mul(p, v_sub(v_load(m->ds + j * QUERIES + v), delta)));
        }
    }
}

static void backward_block(const attention *a, const backward_memory *m, int64_t q, int64_t tile)
{
    key_range keys = keys_of(a, q, tile);
    int64_t count = keys.to - keys.from, at = keys.from * a->padded, block = q * a->padded;
    if (count <= 0)
        return;
    rows_times(FR_TILE_VECTORS, m->k + at, a->padded, count, m->q_turned + block, a->padded, m->p);
    rows_times(FR_TILE_VECTORS, m->v + at, a->padded, count, m->dout_turned + block, a->padded, m->ds);
    probabilities(a, q, keys, m);
    weights_times(m->p, count, m->dout + block, a->padded, a->padded, m->dv + at);
    weights_times(m->ds, count, m->q + block, a->padded, a->padded, m->dk + at);
    turned_rows_times(FR_TILE_VECTORS, m->k + at, a->padded, count, a->padded, m->ds, m->dq_turned + block);
}

static void backward_head(const attention *a, const backward_memory *m, int head, int64_t token)
{
    const fr_call *call = a->call;
    load_head(a, m, head, token);
    for (int64_t tile = 0; tile < a->T; tile += TILE)
        for (int64_t q = tile / QUERIES * QUERIES; q < a->T; q += QUERIES)
            backward_block(a, m, q, tile);
    for (int64_t q = 0; q < a->rows; q += QUERIES)
        turn_back(a, m->dq_turned + q * a->padded, m->q + q * a->padded);
    if (call->grad_in[0])
        store_rows(a, call->grad_in[0], call->in_dtype[0], a->options->heads, head, token, a->T, a->scale,
                   call->accumulate[0], m->q);
}

static void backward_job(const fr_call *call, int64_t job, void *memory)
{
    attention a = attention_of(call);
    backward_memory m = backward_lay_out(&a, memory);
    int kv_heads = a.options->kv_heads, group = a.options->heads / kv_heads, kv_head = (int)(job % kv_heads);
    int64_t token = job / kv_heads * a.T;
    load_rows(&a, call->in[1], call->in_dtype[1], kv_heads, kv_head, token, a.T, a.rows, 1, m.k);
    load_rows(&a, call->in[2], call->in_dtype[2], kv_heads, kv_head, token, a.T, a.rows, 1, m.v);
    memset(m.dk, 0, 2 * sizeof(float) * (size_t)(a.rows * a.padded)); /* d v lies behind d k */
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
        backward_head(&a, &m, head, token);
    if (call->grad_in[1])
        store_rows(&a, call->grad_in[1], call->in_dtype[1], kv_heads, kv_head, token, a.T, 1,
                   call->accumulate[1], m.dk);
    if (call->grad_in[2])
        store_rows(&a, call->grad_in[2], call->in_dtype[2], kv_heads, kv_head, token, a.T, 1,
                   call->accumulate[2], m.dv);
}

static size_t backward_bytes(const fr_call *call)
{
    attention a = attention_of(call);
    return sizeof(float) * backward_floats(&a);
}

static size_t FR_ISA(attention_backward_scratch)(const fr_call *call)
{
    return fr_split_scratch(attention_jobs(call), backward_bytes(call));
}

static void FR_ISA(attention_backward)(const fr_call *call)
{
    fr_split_jobs(call, attention_jobs(call), backward_bytes(call), backward_job);
}

const fr_kernel FR_ISA(fr_kernels_attention)[2] = {
    {"attention", FR_FORWARD, "attention_forward_" FR_ISA_TEXT, FR_ISA(attention_forward),
     FR_ISA(attention_forward_scratch), floats_only},
    {"attention", FR_BACKWARD, "attention_backward_" FR_ISA_TEXT, FR_ISA(attention_backward),
     FR_ISA(attention_backward_scratch), floats_only}};
