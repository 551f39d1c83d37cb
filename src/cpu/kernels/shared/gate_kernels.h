/* smear and value_gate: a logistic gate on a few channels decides how much of another row to add.
 *
 * The gate is one short product per token (and head); the sums are whole rows. Gradients of gates and of
 * lambda are sums over tokens of what the row pass left in scratch, taken in order by one thread.
 */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/shared/vector_math.h"
#include "cpu/split.h"

/* sigmoid(<gate, x[0 .. channels)>) */
FR_INLINE float gate_of(const float *gate, const void *x, fr_dtype dtype, int64_t start, int64_t channels)
{
    vf sum = v_set(0);
    for (int64_t c = 0; c < channels; c += FR_LANES) {
        int64_t lanes = lanes_left(channels, c);
        sum = v_fma(v_load_part(gate + c, lanes), v_get(x, dtype, start + c, lanes), sum);
    }
    return v_lane0(v_sigmoid(v_set(v_total(sum))));
}

/* target[0 .. channels) += factor * x[start ..) in fp32 */
FR_INLINE void add_channels(float *target, float factor, const void *x, fr_dtype dtype, int64_t start,
                            int64_t channels)
{
    for (int64_t c = 0; c < channels; c += FR_LANES) {
        int64_t lanes = lanes_left(channels, c);
        v_store_part(target + c,
                     v_fma(v_set(factor), v_get(x, dtype, start + c, lanes), v_load_part(target + c, lanes)),
                     lanes);
    }
}

static void by_rows(const fr_call *call, fr_range_body body)
{
    fr_split_range(call->pool, call->tokens, body, (void *)(uintptr_t)call);
}

/* ---- smear --------------------------------------------------------------------------------------------- */

FR_INLINE float open_gate(const fr_call *call, int64_t t)
{
    return gate_of(call->in[1], call->in[0], call->in_dtype[0], t * call->node->in[0]->columns,
                   call->node->in[1]->columns);
}

FR_INLINE float smear_gate(const fr_call *call, int64_t t)
{
    return t % call->extent.T ? open_gate(call, t) : 0;
}

static void smear_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    int64_t columns = call->node->in[0]->columns;
    for (int64_t t = first; t < end; t++) {
        const void *before = fr_smear_before(call, t);
        vf g = v_set(before ? read_scalar(call, 2) * open_gate(call, t) : 0);
        for (int64_t c = 0; c < columns; c += FR_LANES) {
            int64_t lanes = lanes_left(columns, c), at = t * columns + c;
            vf x = v_get(call->in[0], call->in_dtype[0], at, lanes);
            if (before)
                x = v_fma(g, v_get(before, call->in_dtype[0], c, lanes), x);
            v_put(call->out[0], call->out_dtype[0], at, lanes, x);
        }
    }
}

static void FR_ISA(smear_forward)(const fr_call *call)
{
    by_rows(call, smear_rows);
    fr_smear_remember(call);
}

static size_t smear_backward_scratch(const fr_call *call)
{
    return 2 * sizeof(float) * (size_t)call->tokens;
}

/* e_t = <d out_t, x_{t-1}> */
FR_INLINE float smear_dot(const fr_call *call, int64_t t)
{
    int64_t columns = call->node->in[0]->columns;
    vf sum = v_set(0);
    for (int64_t c = 0; c < columns; c += FR_LANES) {
        int64_t lanes = lanes_left(columns, c), at = t * columns + c;
        sum = v_fma(v_get(call->grad_out[0], call->out_dtype[0], at, lanes),
                    v_get(call->in[0], call->in_dtype[0], at - columns, lanes), sum);
    }
    return v_total(sum);
}

static void smear_backward_row(const fr_call *call, int64_t t, float next, float slope)
{
    int64_t columns = call->node->in[0]->columns, channels = call->node->in[1]->columns;
    for (int64_t c = 0; c < columns; c += FR_LANES) {
        int64_t lanes = lanes_left(columns, c), at = t * columns + c;
        vf dx = v_get(call->grad_out[0], call->out_dtype[0], at, lanes);
        if (c < channels)
            dx =
                v_fma(v_set(slope), v_load_part((const float *)call->in[1] + c, lanes_left(channels, c)), dx);
        if ((t + 1) % call->extent.T)
            dx = v_fma(v_set(next), v_get(call->grad_out[0], call->out_dtype[0], at + columns, lanes), dx);
        v_put_gradient(call->grad_in[0], call->in_dtype[0], at, lanes, dx, call->accumulate[0]);
    }
}

/* Leaves per token: the gradient of the gate's logit, and that of lambda. */
static void smear_backward_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    float *slopes = call->scratch, *dlambda = slopes + call->tokens, lambda = read_scalar(call, 2);
    for (int64_t t = first; t < end; t++) {
        float s = smear_gate(call, t), e = t % call->extent.T ? smear_dot(call, t) : 0;
        slopes[t] = e * lambda * s * (1 - s);
        dlambda[t] = e * s;
        if (call->grad_in[0])
            smear_backward_row(call, t, (t + 1) % call->extent.T ? lambda * smear_gate(call, t + 1) : 0,
                               slopes[t]);
    }
}

static void FR_ISA(smear_backward)(const fr_call *call)
{
    const float *slopes = call->scratch, *dlambda = slopes + call->tokens;
    float *gate = call->grad_in[1], *lambda = call->grad_in[2];
    int64_t columns = call->node->in[0]->columns, channels = call->node->in[1]->columns;
    double sum = 0;
    by_rows(call, smear_backward_rows);
    for (int64_t c = 0; c < channels && gate && !call->accumulate[1]; c++)
        gate[c] = 0;
    for (int64_t t = 0; t < call->tokens; t++) {
        sum += (double)dlambda[t];
        if (gate && t % call->extent.T)
            add_channels(gate, slopes[t], call->in[0], call->in_dtype[0], t * columns, channels);
    }
    if (lambda)
        *lambda = (float)sum + (call->accumulate[2] ? *lambda : 0);
}

/* ---- value_gate ---------------------------------------------------------------------------------------- */

enum { V, E, H, GATE };

/* One head of one token. */
typedef struct gated_head {
    const fr_call *call;
    float range;
    int64_t heads, width, channels, h_columns;
} gated_head;

static gated_head gated_head_of(const fr_call *call)
{
    const fr_tensor *gate = call->node->in[GATE];
    return (gated_head){.call = call,
                        .range = (float)((const fr_value_gate_options *)call->node->attributes)->range,
                        .heads = gate->rows,
                        .width = call->node->out[0]->columns / gate->rows,
                        .channels = gate->columns,
                        .h_columns = call->node->in[H]->columns};
}

FR_INLINE float value_gate_at(const gated_head *g, int64_t t, int64_t head)
{
    const fr_call *call = g->call;
    return g->range * gate_of((const float *)call->in[GATE] + head * g->channels, call->in[H],
                              call->in_dtype[H], t * g->h_columns, g->channels);
}

static void value_gate_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    gated_head g = gated_head_of(call);
    for (int64_t i = first * g.heads; i < end * g.heads; i++) {
        vf G = v_set(value_gate_at(&g, i / g.heads, i % g.heads));
        for (int64_t c = 0; c < g.width; c += FR_LANES) {
            int64_t lanes = lanes_left(g.width, c), at = i * g.width + c;
            vf v = v_get(call->in[V], call->in_dtype[V], at, lanes);
            v_put(call->out[0], call->out_dtype[0], at, lanes,
                  v_fma(G, v_get(call->in[E], call->in_dtype[E], at, lanes), v));
        }
    }
}

static void FR_ISA(value_gate_forward)(const fr_call *call)
{
    by_rows(call, value_gate_rows);
}

static size_t value_gate_backward_scratch(const fr_call *call)
{
    return sizeof(float) * (size_t)(call->tokens * call->node->in[GATE]->rows);
}

/* d v and d e of one head; returns <d out, e>. */
static float gated_head_gradient(const gated_head *g, int64_t i, float G)
{
    const fr_call *call = g->call;
    vf sum = v_set(0);
    for (int64_t c = 0; c < g->width; c += FR_LANES) {
        int64_t lanes = lanes_left(g->width, c), at = i * g->width + c;
        vf dy = v_get(call->grad_out[0], call->out_dtype[0], at, lanes);
        sum = v_fma(dy, v_get(call->in[E], call->in_dtype[E], at, lanes), sum);
        if (call->grad_in[V])
            v_put_gradient(call->grad_in[V], call->in_dtype[V], at, lanes, dy, call->accumulate[V]);
        if (call->grad_in[E])
            v_put_gradient(call->grad_in[E], call->in_dtype[E], at, lanes, v_mul(v_set(G), dy),
                           call->accumulate[E]);
    }
    return v_total(sum);
}

/* d h of one token from the gradients of its logits; channels no gate reads get zero. */
static void gate_input_gradient(const gated_head *g, int64_t t, const float *dlogits)
{
    const fr_call *call = g->call;
    int64_t most = call->accumulate[H] ? g->channels : g->h_columns;
    for (int64_t c = 0; c < most; c += FR_LANES) {
        vf sum = v_set(0);
        for (int64_t head = 0; head < g->heads && c < g->channels; head++) {
            const float *gate = (const float *)call->in[GATE] + head * g->channels + c;
            sum = v_fma(v_set(dlogits[head]), v_load_part(gate, lanes_left(g->channels, c)), sum);
        }
        v_put_gradient(call->grad_in[H], call->in_dtype[H], t * g->h_columns + c, lanes_left(most, c), sum,
                       call->accumulate[H]);
    }
}

static void value_gate_backward_rows(void *context, int64_t first, int64_t end)
{
    const fr_call *call = context;
    gated_head g = gated_head_of(call);
    float *dlogits = call->scratch;
    for (int64_t t = first; t < end; t++) {
        for (int64_t head = 0; head < g.heads; head++) {
            float G = value_gate_at(&g, t, head);
            dlogits[t * g.heads + head] =
                gated_head_gradient(&g, t * g.heads + head, G) * G * (1 - G / g.range);
        }
        if (call->grad_in[H])
            gate_input_gradient(&g, t, dlogits + t * g.heads);
    }
}

static void FR_ISA(value_gate_backward)(const fr_call *call)
{
    gated_head g = gated_head_of(call);
    const float *dlogits = call->scratch;
    float *gate = call->grad_in[GATE];
    by_rows(call, value_gate_backward_rows);
    for (int64_t i = 0; i < g.heads * g.channels && gate && !call->accumulate[GATE]; i++)
        gate[i] = 0;
    for (int64_t i = 0; i < call->tokens * g.heads && gate; i++)
        add_channels(gate + i % g.heads * g.channels, dlogits[i], call->in[H], call->in_dtype[H],
                     i / g.heads * g.h_columns, g.channels);
}

const fr_kernel FR_ISA(fr_kernels_gate)[4] = {
    {"smear", FR_FORWARD, "smear_forward_" FR_ISA_TEXT, FR_ISA(smear_forward), NULL, floats_only},
    {"smear", FR_BACKWARD, "smear_backward_" FR_ISA_TEXT, FR_ISA(smear_backward), smear_backward_scratch,
     floats_only},
    {"value_gate", FR_FORWARD, "value_gate_forward_" FR_ISA_TEXT, FR_ISA(value_gate_forward), NULL,
     floats_only},
    {"value_gate", FR_BACKWARD, "value_gate_backward_" FR_ISA_TEXT, FR_ISA(value_gate_backward),
     value_gate_backward_scratch, floats_only}};
