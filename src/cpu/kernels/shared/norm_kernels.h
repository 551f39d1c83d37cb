/* rms_norm, layer_norm and rotary (with its norm): a row or a head is read twice, once for its statistics.
 *
 * Statistics are fp32 sums over the lanes in order of the columns, then over the lanes in a fixed order; they
 * depend on the row alone. Gradients of gains and biases are sums over tokens: blocks of tokens in order, one
 * thread.
 *
 * A rotation keeps lengths. So rotary takes the root mean square from its input, and its backward pass first
 * turns d out back, w, after which the norm's gradient is that of an unrotated head: d x = gain r (w - r^2 x
 * <x, w> / width).
 */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/shared/vector_math.h"
#include "cpu/split.h"
#include <math.h>
#include <string.h>

enum {
    GAIN_BLOCK = 32
}; /* tokens summed in fp32 before they join the total: keeps the error of long sums small */

/* ---- norms --------------------------------------------------------------------------------------------- */

/* What a norm does to one row: y = r (x - mean). */
typedef struct row_statistics {
    float mean, r;
} row_statistics;

FR_INLINE vf norm_input(const fr_call *call, int64_t t, int64_t c, int64_t lanes)
{
    return v_get(call->in[0], call->in_dtype[0], t * call->node->in[0]->columns + c, lanes);
}

static float row_mean(const fr_call *call, int64_t t)
{
    int64_t columns = call->node->in[0]->columns;
    vf sum = v_set(0);
    for (int64_t c = 0; c < columns; c += FR_LANES)
        sum = v_add(sum, norm_input(call, t, c, lanes_left(columns, c)));
    return v_total(sum) / (float)columns;
}

static row_statistics statistics_of(const fr_call *call, int64_t t, bool centred)
{
    const fr_norm_options *options = call->node->attributes;
    int64_t columns = call->node->in[0]->columns;
    row_statistics s = {.mean = centred ? row_mean(call, t) : 0};
    vf sum = v_set(0), mean = v_set(s.mean);
    for (int64_t c = 0; c < columns; c += FR_LANES) {
        int64_t lanes = lanes_left(columns, c);
        vf x = v_keep(v_sub(norm_input(call, t, c, lanes), mean), lanes);
        sum = v_fma(x, x, sum);
    }
    s.r = 1 / sqrtf(v_total(sum) / (float)columns + (float)options->eps);
    return s;
}

static bool has_input(const fr_call *call, int input)
{
    return input < call->node->inputs && call->node->in[input];
}

static vf gain_at(const fr_call *call, int64_t c, int64_t lanes)
{
    return has_input(call, 1) ? v_get(call->in[1], FR_F32, c, lanes) : v_set(1);
}

static void norm_forward_rows(const fr_call *call, bool centred, int64_t first, int64_t end)
{
    int64_t columns = call->node->in[0]->columns;
    for (int64_t t = first; t < end; t++) {
        row_statistics s = statistics_of(call, t, centred);
        for (int64_t c = 0; c < columns; c += FR_LANES) {
            int64_t lanes = lanes_left(columns, c);
            vf y = v_mul(v_set(s.r), v_sub(norm_input(call, t, c, lanes), v_set(s.mean)));
            y = v_mul(gain_at(call, c, lanes), y);
            if (has_input(call, 2))
                y = v_add(y, v_get(call->in[2], FR_F32, c, lanes));
            v_put(call->out[0], call->out_dtype[0], t * columns + c, lanes, y);
        }
    }
}

FR_INLINE vf norm_dy(const fr_call *call, int64_t t, int64_t c, int64_t lanes)
{
    return v_get(call->grad_out[0], call->out_dtype[0], t * call->node->in[0]->columns + c, lanes);
}

static void norm_row_gradient(const fr_call *call, bool centred, int64_t t, row_statistics s)
{
    int64_t columns = call->node->in[0]->columns;
    vf sum = v_set(0), sum_y = v_set(0), r = v_set(s.r), mean = v_set(s.mean);
    for (int64_t c = 0; c < columns; c += FR_LANES) {
        int64_t lanes = lanes_left(columns, c);
        vf dy = v_mul(gain_at(call, c, lanes), norm_dy(call, t, c, lanes));
        sum = v_add(sum, dy);
        sum_y = v_fma(dy, v_mul(r, v_keep(v_sub(norm_input(call, t, c, lanes), mean), lanes)), sum_y);
    }
    vf mean_dy = v_set(centred ? v_total(sum) / (float)columns : 0),
       mean_y = v_set(v_total(sum_y) / (float)columns);
    for (int64_t c = 0; c < columns; c += FR_LANES) {
        int64_t lanes = lanes_left(columns, c);
        vf dy = v_mul(gain_at(call, c, lanes), norm_dy(call, t, c, lanes));
        vf y = v_mul(r, v_sub(norm_input(call, t, c, lanes), mean));
        vf dx = v_mul(r, v_fnma(y, mean_y, v_sub(dy, mean_dy)));
        v_put_gradient(call->grad_in[0], call->in_dtype[0], t * columns + c, lanes, dx, call->accumulate[0]);
    }
}

static void norm_backward_rows(const fr_call *call, bool centred, int64_t first, int64_t end)
{
    for (int64_t t = first; t < end && call->grad_in[0]; t++)
        norm_row_gradient(call, centred, t, statistics_of(call, t, centred));
}

static size_t norm_backward_scratch(const fr_call *call)
{
    return sizeof(float) * (size_t)(2 * call->tokens);
}

/* d gain (weighted by y) or d bias of 16 columns. */
static void column_gradient(const fr_call *call, int input, const row_statistics *rows, int64_t c)
{
    int64_t lanes = lanes_left(call->node->in[0]->columns, c);
    vf total = v_set(0);
    for (int64_t first = 0; first < call->tokens; first += GAIN_BLOCK) {
        vf sum = v_set(0);
        for (int64_t t = first; t < call->tokens && t < first + GAIN_BLOCK; t++) {
            vf y = v_mul(v_set(rows[t].r), v_sub(norm_input(call, t, c, lanes), v_set(rows[t].mean)));
            sum = v_fma(norm_dy(call, t, c, lanes), input == 1 ? y : v_set(1), sum);
        }
        total = v_add(total, sum);
    }
    v_put_gradient(call->grad_in[input], FR_F32, c, lanes, total, call->accumulate[input]);
}

static void norm_column_gradients(const fr_call *call, bool centred)
{
    row_statistics *rows = call->scratch;
    bool gain = has_input(call, 1) && call->grad_in[1], bias = has_input(call, 2) && call->grad_in[2];
    if (!gain && !bias)
        return;
    for (int64_t t = 0; t < call->tokens; t++)
        rows[t] = statistics_of(call, t, centred);
    for (int64_t c = 0; c < call->node->in[0]->columns; c += FR_LANES) {
        if (gain)
            column_gradient(call, 1, rows, c);
        if (bias)
            column_gradient(call, 2, rows, c);
    }
}

static void rms_norm_rows(void *context, int64_t first, int64_t end)
{
    norm_forward_rows(context, false, first, end);
}

static void rms_norm_backward_rows(void *context, int64_t first, int64_t end)
{
    norm_backward_rows(context, false, first, end);
}

static void layer_norm_rows(void *context, int64_t first, int64_t end)
{
    norm_forward_rows(context, true, first, end);
}

static void layer_norm_backward_rows(void *context, int64_t first, int64_t end)
{
    norm_backward_rows(context, true, first, end);
}

static void by_rows(const fr_call *call, fr_range_body body)
{
    fr_split_range(call->pool, call->tokens, body, (void *)(uintptr_t)call);
}

static void FR_ISA(rms_norm_forward)(const fr_call *call)
{
    by_rows(call, rms_norm_rows);
}

static void FR_ISA(rms_norm_backward)(const fr_call *call)
{
    by_rows(call, rms_norm_backward_rows);
    norm_column_gradients(call, false);
}

static void FR_ISA(layer_norm_forward)(const fr_call *call)
{
    by_rows(call, layer_norm_rows);
}

static void FR_ISA(layer_norm_backward)(const fr_call *call)
{
    by_rows(call, layer_norm_backward_rows);
    norm_column_gradients(call, true);
}

/* ---- rotary -------------------------------------------------------------------------------------------- */

/* One head of one token. */
typedef struct rotary_head {
    const fr_rotary_options *options;
    int64_t start, width;         /* in elements of the matrix */
    const float *cosines, *sines; /* width / 2 each */
} rotary_head;

/* A piece of a head: up to 16 pairs of channels when they lie half a head apart, up to 8 in one vector when
 * they are neighbours. */
FR_INLINE int64_t pairs_at(const rotary_head *h, int64_t m)
{
    int64_t most = h->options->interleaved ? FR_LANES / 2 : FR_LANES, left = h->width / 2 - m;
    return left < most ? left : most;
}

typedef struct piece {
    vf a, b; /* b is unused for neighbours */
} piece;

FR_INLINE piece load_piece(const rotary_head *h, const void *data, fr_dtype dtype, int64_t m, int64_t pairs)
{
    if (h->options->interleaved)
        return (piece){v_get(data, dtype, h->start + 2 * m, 2 * pairs), v_set(0)};
    return (piece){v_get(data, dtype, h->start + m, pairs),
                   v_get(data, dtype, h->start + h->width / 2 + m, pairs)};
}

FR_INLINE void store_piece(const rotary_head *h, void *data, fr_dtype dtype, int64_t m, int64_t pairs,
                           piece p, bool accumulate)
{
    if (h->options->interleaved) {
        v_put_gradient(data, dtype, h->start + 2 * m, 2 * pairs, p.a, accumulate);
        return;
    }
    v_put_gradient(data, dtype, h->start + m, pairs, p.a, accumulate);
    v_put_gradient(data, dtype, h->start + h->width / 2 + m, pairs, p.b, accumulate);
}

/* Turns a piece; `direction` -1 turns back. */
FR_INLINE piece turn(const rotary_head *h, int64_t m, int64_t pairs, piece p, float direction)
{
    if (h->options->interleaved) { /* (a, b) -> (a cos - b sin, b cos + a sin) */
        vf cosine = v_load_doubled(h->cosines + m, pairs),
           sine = v_mul(v_set(direction), v_load_doubled(h->sines + m, pairs));
        return (piece){v_fma(v_negate_even(sine), v_swap_neighbours(p.a), v_mul(p.a, cosine)), p.b};
    }
    vf cosine = v_load_part(h->cosines + m, pairs),
       sine = v_mul(v_set(direction), v_load_part(h->sines + m, pairs));
    return (piece){v_fma(p.b, sine, v_mul(p.a, cosine)), v_fnma(p.a, sine, v_mul(p.b, cosine))};
}

FR_INLINE piece scale_piece(piece p, vf factor)
{
    return (piece){v_mul(p.a, factor), v_mul(p.b, factor)};
}

static float head_r(const fr_call *call, const rotary_head *h)
{
    vf sum = v_set(0);
    for (int64_t m = 0, pairs; m < h->width / 2; m += pairs) {
        pairs = pairs_at(h, m);
        piece x = load_piece(h, call->in[0], call->in_dtype[0], m, pairs);
        sum = v_fma(x.b, x.b, v_fma(x.a, x.a, sum));
    }
    return 1 / sqrtf(v_total(sum) / (float)h->width + (float)h->options->eps);
}

static void rotary_head_forward(const fr_call *call, const rotary_head *h)
{
    float factor = h->options->norm ? (float)h->options->gain * head_r(call, h) : 1;
    for (int64_t m = 0, pairs; m < h->width / 2; m += pairs) {
        pairs = pairs_at(h, m);
        piece z = turn(h, m, pairs, load_piece(h, call->in[0], call->in_dtype[0], m, pairs), 1);
        store_piece(h, call->out[0], call->out_dtype[0], m, pairs, scale_piece(z, v_set(factor)), false);
    }
}

/* <x, w>, where w is d out turned back. */
static float head_dot(const fr_call *call, const rotary_head *h)
{
    vf sum = v_set(0);
    for (int64_t m = 0, pairs; m < h->width / 2; m += pairs) {
        pairs = pairs_at(h, m);
        piece x = load_piece(h, call->in[0], call->in_dtype[0], m, pairs);
        piece w = turn(h, m, pairs, load_piece(h, call->grad_out[0], call->out_dtype[0], m, pairs), -1);
        sum = v_fma(x.b, w.b, v_fma(x.a, w.a, sum));
    }
    return v_total(sum);
}

static void rotary_head_backward(const fr_call *call, const rotary_head *h)
{
    bool norm = h->options->norm;
    float r = norm ? head_r(call, h) : 1, factor = norm ? (float)h->options->gain * r : 1;
    float pull = norm ? r * r * head_dot(call, h) / (float)h->width : 0;
    for (int64_t m = 0, pairs; m < h->width / 2; m += pairs) {
        pairs = pairs_at(h, m);
        piece w = turn(h, m, pairs, load_piece(h, call->grad_out[0], call->out_dtype[0], m, pairs), -1);
        if (norm) {
            piece x = load_piece(h, call->in[0], call->in_dtype[0], m, pairs);
            w = (piece){v_fnma(v_set(pull), x.a, w.a), v_fnma(v_set(pull), x.b, w.b)};
        }
        store_piece(h, call->grad_in[0], call->in_dtype[0], m, pairs, scale_piece(w, v_set(factor)),
                    call->accumulate[0]);
    }
}

FR_INLINE void rotary_range(const fr_call *call, int64_t first, int64_t end,
                            void (*head)(const fr_call *call, const rotary_head *h))
{
    const fr_rotary_options *options = call->node->attributes;
    int64_t columns = call->node->in[0]->columns;
    rotary_head h = {.options = options, .width = columns / options->heads};
    for (int64_t t = first; t < end; t++) {
        h.cosines = (const float *)call->constants + fr_call_constants_row(call, t) * h.width;
        h.sines = h.cosines + h.width / 2;
        for (int i = 0; i < options->heads; i++) {
            h.start = t * columns + i * h.width;
            head(call, &h);
        }
    }
}

static void rotary_rows(void *context, int64_t first, int64_t end)
{
    rotary_range(context, first, end, rotary_head_forward);
}

static void rotary_backward_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    if (call->grad_in[0])
        rotary_range(call, first, end, rotary_head_backward);
}

static void FR_ISA(rotary_forward)(const fr_call *call)
{
    by_rows(call, rotary_rows);
}

static void FR_ISA(rotary_backward)(const fr_call *call)
{
    by_rows(call, rotary_backward_rows);
}

const fr_kernel FR_ISA(fr_kernels_norm)[6] = {
    {"rms_norm", FR_FORWARD, "rms_norm_forward_" FR_ISA_TEXT, FR_ISA(rms_norm_forward), NULL, floats_only},
    {"rms_norm", FR_BACKWARD, "rms_norm_backward_" FR_ISA_TEXT, FR_ISA(rms_norm_backward),
     norm_backward_scratch, floats_only},
    {"layer_norm", FR_FORWARD, "layer_norm_forward_" FR_ISA_TEXT, FR_ISA(layer_norm_forward), NULL,
     floats_only},
    {"layer_norm", FR_BACKWARD, "layer_norm_backward_" FR_ISA_TEXT, FR_ISA(layer_norm_backward),
     norm_backward_scratch, floats_only},
    {"rotary", FR_FORWARD, "rotary_forward_" FR_ISA_TEXT, FR_ISA(rotary_forward), NULL, floats_only},
    {"rotary", FR_BACKWARD, "rotary_backward_" FR_ISA_TEXT, FR_ISA(rotary_backward), NULL, floats_only}};
