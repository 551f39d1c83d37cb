/* Operators that touch every element once: embeddings, sums and activations.
 *
 * They are bound by memory, so the only art is to read and write each element once, in whatever dtype it has.
 * An element's value depends on its own inputs alone, so rows may be split freely. Sums over all tokens
 * (gradients of scalars) are one number per token first, then added in order of the tokens in double.
 */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/shared/vector_math.h"
#include "cpu/split.h"
#include <string.h>

static void by_rows(const fr_call *call, fr_range_body body)
{
    fr_split_range(call->pool, call->tokens, body, (void *)(uintptr_t)call);
}

/* ---- embed --------------------------------------------------------------------------------------------- */

static void embed_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    int64_t columns = call->node->out[0]->columns;
    const int32_t *ids = call->in[1];
    for (int64_t t = first; t < end; t++)
        for (int64_t c = 0; c < columns; c += FR_LANES) {
            int64_t lanes = lanes_left(columns, c);
            v_put(call->out[0], call->out_dtype[0], t * columns + c, lanes,
                  v_get(call->in[0], FR_F32, ids[t] * columns + c, lanes));
        }
}

static void FR_ISA(embed_forward)(const fr_call *call)
{
    by_rows(call, embed_rows);
}

/* Tokens in order, one thread: two tokens may share a row of the table. */
static void FR_ISA(embed_backward)(const fr_call *call)
{
    const fr_tensor *table = call->node->in[0];
    int64_t columns = table->columns;
    const int32_t *ids = call->in[1];
    if (!call->grad_in[0])
        return;
    if (!call->accumulate[0])
        memset(call->grad_in[0], 0, sizeof(float) * (size_t)(table->rows * columns));
    for (int64_t t = 0; t < call->tokens; t++)
        for (int64_t c = 0; c < columns; c += FR_LANES) {
            int64_t lanes = lanes_left(columns, c);
            vf dy = v_get(call->grad_out[0], call->out_dtype[0], t * columns + c, lanes);
            v_put_gradient(call->grad_in[0], FR_F32, ids[t] * columns + c, lanes, dy, true);
        }
}

static void embed_positions_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    int64_t columns = call->node->out[0]->columns, last = call->node->in[1]->rows - 1;
    for (int64_t t = first; t < end; t++) {
        int64_t p = fr_call_position(call, t), row = p < last ? p : last; /* padding may stand beyond it */
        for (int64_t c = 0; c < columns; c += FR_LANES) {
            int64_t lanes = lanes_left(columns, c), at = t * columns + c;
            vf position = v_get(call->in[1], FR_F32, row * columns + c, lanes);
            v_put(call->out[0], call->out_dtype[0], at, lanes,
                  v_add(v_get(call->in[0], call->in_dtype[0], at, lanes), position));
        }
    }
}

static void FR_ISA(embed_positions_forward)(const fr_call *call)
{
    by_rows(call, embed_positions_rows);
}

/* Input `input` gets factor * d out in rows first .. end-1. */
static void pass_gradient(const fr_call *call, int input, float factor, int64_t first, int64_t end)
{
    int64_t columns = call->node->out[0]->columns;
    if (!call->grad_in[input])
        return;
    for (int64_t i = first * columns; i < end * columns; i += FR_LANES) {
        int64_t lanes = lanes_left(end * columns, i);
        vf dy = v_get(call->grad_out[0], call->out_dtype[0], i, lanes);
        v_put_gradient(call->grad_in[input], call->in_dtype[input], i, lanes, v_mul(v_set(factor), dy),
                       call->accumulate[input]);
    }
}

/* d table[p]: the rows of the batch at position p, in order. */
static void position_gradient(const fr_call *call, int64_t p)
{
    int64_t columns = call->node->out[0]->columns, T = call->extent.T;
    for (int64_t c = 0; c < columns; c += FR_LANES) {
        int64_t lanes = lanes_left(columns, c);
        vf sum = v_set(0);
        for (int64_t t = p; p < T && t < call->tokens; t += T)
            sum = v_add(sum, v_get(call->grad_out[0], call->out_dtype[0], t * columns + c, lanes));
        v_put_gradient(call->grad_in[1], FR_F32, p * columns + c, lanes, sum, call->accumulate[1]);
    }
}

static void FR_ISA(embed_positions_backward)(const fr_call *call)
{
    pass_gradient(call, 0, 1, 0, call->tokens);
    for (int64_t p = 0; p < call->node->in[1]->rows && call->grad_in[1]; p++)
        position_gradient(call, p);
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* out = a x + b y with inputs number x and y */
static void weighted_sum(const fr_call *call, int x, vf a, int y, vf b, int64_t first, int64_t end)
{
    int64_t columns = call->node->out[0]->columns;
    for (int64_t i = first * columns; i < end * columns; i += FR_LANES) {
        int64_t lanes = lanes_left(end * columns, i);
        vf left = v_mul(a, v_get(call->in[x], call->in_dtype[x], i, lanes));
        v_put(call->out[0], call->out_dtype[0], i, lanes,
              v_fma(b, v_get(call->in[y], call->in_dtype[y], i, lanes), left));
    }
}

static void add_rows(void *context, int64_t first, int64_t end)
{
    weighted_sum(context, 0, v_set(1), 1, v_set(1), first, end);
}

static void FR_ISA(add_forward)(const fr_call *call)
{
    by_rows(call, add_rows);
}

static void add_backward_rows(void *context, int64_t first, int64_t end)
{
    pass_gradient(context, 0, 1, first, end);
    pass_gradient(context, 1, 1, first, end);
}

static void FR_ISA(add_backward)(const fr_call *call)
{
    by_rows(call, add_backward_rows);
}

static void blend_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    weighted_sum(call, 1, v_set(read_scalar(call, 0)), 3, v_set(read_scalar(call, 2)), first, end);
}

static void FR_ISA(blend_forward)(const fr_call *call)
{
    by_rows(call, blend_rows);
}

/* <d out, input> of every token into sums[t]. */
static void token_dots(const fr_call *call, int input, float *sums, int64_t first, int64_t end)
{
    int64_t columns = call->node->out[0]->columns;
    for (int64_t t = first; t < end; t++) {
        vf sum = v_set(0);
        for (int64_t c = 0; c < columns; c += FR_LANES) {
            int64_t lanes = lanes_left(columns, c), at = t * columns + c;
            sum = v_fma(v_get(call->grad_out[0], call->out_dtype[0], at, lanes),
                        v_get(call->in[input], call->in_dtype[input], at, lanes), sum);
        }
        sums[t] = v_total(sum);
    }
}

/* The gradient of a scalar input: factor * sum over the tokens, in order. */
static void scalar_gradient(const fr_call *call, int input, const float *sums, double factor)
{
    double sum = 0;
    for (int64_t t = 0; t < call->tokens; t++)
        sum += (double)sums[t];
    float *gradient = call->grad_in[input];
    if (gradient)
        *gradient = (float)(factor * sum) + (call->accumulate[input] ? *gradient : 0);
}

static size_t two_per_token(const fr_call *call)
{
    return 2 * sizeof(float) * (size_t)call->tokens;
}

static void blend_backward_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    float *sums = call->scratch;
    if (call->grad_in[0])
        token_dots(call, 1, sums, first, end);
    if (call->grad_in[2])
        token_dots(call, 3, sums + call->tokens, first, end);
    pass_gradient(call, 1, read_scalar(call, 0), first, end);
    pass_gradient(call, 3, read_scalar(call, 2), first, end);
}

static void FR_ISA(blend_backward)(const fr_call *call)
{
    float *sums = call->scratch;
    by_rows(call, blend_backward_rows);
    if (call->grad_in[0])
        scalar_gradient(call, 0, sums, 1);
    if (call->grad_in[2])
        scalar_gradient(call, 2, sums + call->tokens, 1);
}

static double sign_of(const fr_call *call)
{
    return ((const fr_add_scaled_options *)call->node->attributes)->sign;
}

static float signed_scale(const fr_call *call)
{
    return (float)(sign_of(call) * (double)read_scalar(call, 1));
}

static void add_scaled_rows(void *context, int64_t first, int64_t end)
{
    weighted_sum(context, 0, v_set(1), 2, v_set(signed_scale(context)), first, end);
}

static void FR_ISA(add_scaled_forward)(const fr_call *call)
{
    by_rows(call, add_scaled_rows);
}

static void add_scaled_backward_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    if (call->grad_in[1])
        token_dots(call, 2, call->scratch, first, end);
    pass_gradient(call, 0, 1, first, end);
    pass_gradient(call, 2, signed_scale(call), first, end);
}

static void FR_ISA(add_scaled_backward)(const fr_call *call)
{
    by_rows(call, add_scaled_backward_rows);
    if (call->grad_in[1])
        scalar_gradient(call, 1, call->scratch, sign_of(call));
}

static void add_bias_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    int64_t columns = call->node->out[0]->columns;
    for (int64_t t = first; t < end; t++)
        for (int64_t c = 0; c < columns; c += FR_LANES) {
            int64_t lanes = lanes_left(columns, c), at = t * columns + c;
            v_put(call->out[0], call->out_dtype[0], at, lanes,
                  v_add(v_get(call->in[0], call->in_dtype[0], at, lanes),
                        v_get(call->in[1], FR_F32, c, lanes)));
        }
}

static void FR_ISA(add_bias_forward)(const fr_call *call)
{
    by_rows(call, add_bias_rows);
}

/* d bias of columns c .. c + 15: blocks of tokens in order, which keeps the error of long sums small. */
static void bias_gradient(const fr_call *call, int64_t c)
{
    enum { BLOCK = 32 };
    int64_t columns = call->node->out[0]->columns, lanes = lanes_left(columns, c);
    vf total = v_set(0);
    for (int64_t first = 0; first < call->tokens; first += BLOCK) {
        vf sum = v_set(0);
        for (int64_t t = first; t < call->tokens && t < first + BLOCK; t++)
            sum = v_add(sum, v_get(call->grad_out[0], call->out_dtype[0], t * columns + c, lanes));
        total = v_add(total, sum);
    }
    v_put_gradient(call->grad_in[1], FR_F32, c, lanes, total, call->accumulate[1]);
}

static void add_bias_backward_rows(void *context, int64_t first, int64_t end)
{
    pass_gradient(context, 0, 1, first, end);
}

static void FR_ISA(add_bias_backward)(const fr_call *call)
{
    by_rows(call, add_bias_backward_rows);
    for (int64_t c = 0; c < call->node->out[0]->columns && call->grad_in[1]; c += FR_LANES)
        bias_gradient(call, c);
}

/* ---- activations --------------------------------------------------------------------------------------- */

/* x <= 0 ? 0 : x, NaN staying NaN */
FR_INLINE vf positive_part(vf x)
{
    return v_max(v_set(0), x);
}

FR_INLINE vf gelu_tanh(vf x)
{
    vf cube = v_mul(v_mul(x, x), x);
    return v_tanh(v_mul(v_set(0.797884560802865f), v_fma(v_set(0.044715f), cube, x)));
}

FR_INLINE vf gelu_slope(vf x)
{
    vf h = gelu_tanh(x), half = v_set(0.5f);
    vf inner = v_mul(v_set(0.797884560802865f), v_fma(v_set(3 * 0.044715f), v_mul(x, x), v_set(1)));
    return v_fma(v_mul(v_mul(half, x), v_fnma(h, h, v_set(1))), inner, v_fma(half, h, half));
}

typedef enum activation { RELU_SQUARED, GELU } activation;

FR_INLINE void activation_rows(const fr_call *call, activation kind, int64_t first, int64_t end)
{
    int64_t columns = call->node->out[0]->columns;
    for (int64_t i = first * columns; i < end * columns; i += FR_LANES) {
        int64_t lanes = lanes_left(end * columns, i);
        vf x = v_get(call->in[0], call->in_dtype[0], i, lanes), half = v_set(0.5f), p = positive_part(x);
        vf y = kind == RELU_SQUARED ? v_mul(p, p) : v_mul(x, v_fma(half, gelu_tanh(x), half));
        v_put(call->out[0], call->out_dtype[0], i, lanes, y);
    }
}

FR_INLINE void activation_backward_rows(const fr_call *call, activation kind, int64_t first, int64_t end)
{
    int64_t columns = call->node->out[0]->columns;
    if (!call->grad_in[0])
        return;
    for (int64_t i = first * columns; i < end * columns; i += FR_LANES) {
        int64_t lanes = lanes_left(end * columns, i);
        vf x = v_get(call->in[0], call->in_dtype[0], i, lanes),
           dy = v_get(call->grad_out[0], call->out_dtype[0], i, lanes);
        vf slope = kind == RELU_SQUARED ? v_mul(v_set(2), positive_part(x)) : gelu_slope(x);
        v_put_gradient(call->grad_in[0], call->in_dtype[0], i, lanes, v_mul(dy, slope), call->accumulate[0]);
    }
}

static void relu_squared_rows(void *context, int64_t first, int64_t end)
{
    activation_rows(context, RELU_SQUARED, first, end);
}

static void relu_squared_backward_rows(void *context, int64_t first, int64_t end)
{
    activation_backward_rows(context, RELU_SQUARED, first, end);
}

static void gelu_rows(void *context, int64_t first, int64_t end)
{
    activation_rows(context, GELU, first, end);
}

static void gelu_backward_rows(void *context, int64_t first, int64_t end)
{
    activation_backward_rows(context, GELU, first, end);
}

static void FR_ISA(relu_squared_forward)(const fr_call *call)
{
    by_rows(call, relu_squared_rows);
}

static void FR_ISA(relu_squared_backward)(const fr_call *call)
{
    by_rows(call, relu_squared_backward_rows);
}

static void FR_ISA(gelu_forward)(const fr_call *call)
{
    by_rows(call, gelu_rows);
}

static void FR_ISA(gelu_backward)(const fr_call *call)
{
    by_rows(call, gelu_backward_rows);
}

static void swiglu_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    int64_t columns = call->node->out[0]->columns;
    for (int64_t i = first * columns; i < end * columns; i += FR_LANES) {
        int64_t lanes = lanes_left(end * columns, i);
        vf gate = v_get(call->in[0], call->in_dtype[0], i, lanes),
           up = v_get(call->in[1], call->in_dtype[1], i, lanes);
        v_put(call->out[0], call->out_dtype[0], i, lanes, v_mul(v_mul(gate, v_sigmoid(gate)), up));
    }
}

static void swiglu_backward_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    int64_t columns = call->node->out[0]->columns;
    for (int64_t i = first * columns; i < end * columns; i += FR_LANES) {
        int64_t lanes = lanes_left(end * columns, i);
        vf gate = v_get(call->in[0], call->in_dtype[0], i, lanes),
           up = v_get(call->in[1], call->in_dtype[1], i, lanes);
        vf dy = v_get(call->grad_out[0], call->out_dtype[0], i, lanes), s = v_sigmoid(gate);
        vf slope = v_mul(s, v_fma(gate, v_sub(v_set(1), s), v_set(1)));
        if (call->grad_in[0])
            v_put_gradient(call->grad_in[0], call->in_dtype[0], i, lanes, v_mul(v_mul(dy, up), slope),
                           call->accumulate[0]);
        if (call->grad_in[1])
            v_put_gradient(call->grad_in[1], call->in_dtype[1], i, lanes, v_mul(dy, v_mul(gate, s)),
                           call->accumulate[1]);
    }
}

static void FR_ISA(swiglu_forward)(const fr_call *call)
{
    by_rows(call, swiglu_rows);
}

static void FR_ISA(swiglu_backward)(const fr_call *call)
{
    by_rows(call, swiglu_backward_rows);
}

const fr_kernel FR_ISA(fr_kernels_elementwise)[18] = {
    {"embed", FR_FORWARD, "embed_forward_" FR_ISA_TEXT, FR_ISA(embed_forward), NULL, floats_only},
    {"embed", FR_BACKWARD, "embed_backward_" FR_ISA_TEXT, FR_ISA(embed_backward), NULL, floats_only},
    {"embed_positions", FR_FORWARD, "embed_positions_forward_" FR_ISA_TEXT, FR_ISA(embed_positions_forward),
     NULL, floats_only},
    {"embed_positions", FR_BACKWARD, "embed_positions_backward_" FR_ISA_TEXT,
     FR_ISA(embed_positions_backward), NULL, floats_only},
    {"add", FR_FORWARD, "add_forward_" FR_ISA_TEXT, FR_ISA(add_forward), NULL, floats_only},
    {"add", FR_BACKWARD, "add_backward_" FR_ISA_TEXT, FR_ISA(add_backward), NULL, floats_only},
    {"blend", FR_FORWARD, "blend_forward_" FR_ISA_TEXT, FR_ISA(blend_forward), NULL, floats_only},
    {"blend", FR_BACKWARD, "blend_backward_" FR_ISA_TEXT, FR_ISA(blend_backward), two_per_token, floats_only},
    {"add_scaled", FR_FORWARD, "add_scaled_forward_" FR_ISA_TEXT, FR_ISA(add_scaled_forward), NULL,
     floats_only},
    {"add_scaled", FR_BACKWARD, "add_scaled_backward_" FR_ISA_TEXT, FR_ISA(add_scaled_backward),
     two_per_token, floats_only},
    {"relu_squared", FR_FORWARD, "relu_squared_forward_" FR_ISA_TEXT, FR_ISA(relu_squared_forward), NULL,
     floats_only},
    {"relu_squared", FR_BACKWARD, "relu_squared_backward_" FR_ISA_TEXT, FR_ISA(relu_squared_backward), NULL,
     floats_only},
    {"gelu", FR_FORWARD, "gelu_forward_" FR_ISA_TEXT, FR_ISA(gelu_forward), NULL, floats_only},
    {"gelu", FR_BACKWARD, "gelu_backward_" FR_ISA_TEXT, FR_ISA(gelu_backward), NULL, floats_only},
    {"swiglu", FR_FORWARD, "swiglu_forward_" FR_ISA_TEXT, FR_ISA(swiglu_forward), NULL, floats_only},
    {"swiglu", FR_BACKWARD, "swiglu_backward_" FR_ISA_TEXT, FR_ISA(swiglu_backward), NULL, floats_only},
    {"add_bias", FR_FORWARD, "add_bias_forward_" FR_ISA_TEXT, FR_ISA(add_bias_forward), NULL, floats_only},
    {"add_bias", FR_BACKWARD, "add_bias_backward_" FR_ISA_TEXT, FR_ISA(add_bias_backward), NULL,
     floats_only}};
