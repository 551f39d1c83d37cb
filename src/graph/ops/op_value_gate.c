/* value_gate: adds a token's value embedding to its attention values, gated per key-value head.
 *
 *     G = range * sigmoid(<gate[head], h[0 .. channels)>) ;  out[head] = v[head] + G e[head]
 *     d v = d out ;  d e = G d out ;  d G = <d out[head], e[head]> ;  d logit = d G * G (1 - G / range)
 *     d gate[head] += d logit * h[0 .. channels) ;  d h[0 .. channels) += d logit * gate[head], rest zero
 */
#include "graph/ops/ops.h"

enum { V, E, H, GATE };

static fr_status value_gate_infer(fr_node *node, fr_error *error)
{
    const fr_value_gate_options *options = node->attributes;
    const fr_tensor *v = node->in[V], *h = node->in[H], *gate = node->in[GATE];
    FR_TRY(fr_node_expect(node, V, FR_TOKENS, v->columns, error));
    FR_TRY(fr_node_expect(node, E, FR_TOKENS, v->columns, error));
    FR_TRY(fr_node_expect(node, H, FR_TOKENS, h->columns, error));
    if (gate->rows < 1 || v->columns % gate->rows || gate->columns > h->columns)
        return fr_error_set(error, FR_BAD_USAGE, gate->name, NULL,
                            "a gate of %lld heads x %lld channels for %lld values and %lld channels",
                            (long long)gate->rows, (long long)gate->columns, (long long)v->columns,
                            (long long)h->columns);
    if (!(options->range > 0))
        return fr_error_set(error, FR_BAD_USAGE, gate->name, NULL, "the range of a gate must be positive");
    fr_node_output(node, 0, FR_KIND_ACTIVATION, FR_TOKENS, v->columns);
    return FR_OK;
}

static double value_gate_flops(const fr_node *node, fr_extent extent, fr_pass pass)
{
    double weights = (double)node->in[GATE]->rows * (double)node->in[GATE]->columns;
    double product = 2.0 * (double)(extent.rows * extent.T) * weights;
    return pass == FR_FORWARD ? product : 2 * product;
}

static size_t value_gate_scratch(const fr_call *call)
{
    const fr_tensor *gate = call->node->in[GATE];
    return (size_t)(2 * call->node->in[V]->columns + 2 * call->node->in[H]->columns +
                    2 * gate->rows * gate->columns) *
           sizeof(double);
}

static void load_gates(const fr_call *call, double *gates)
{
    const fr_tensor *gate = call->node->in[GATE];
    fr_load_doubles(call->in[GATE], call->in_dtype[GATE], 0, gate->rows * gate->columns, gates);
}

static void value_gate_forward(const fr_call *call)
{
    const fr_value_gate_options *options = call->node->attributes;
    int64_t columns = call->node->in[V]->columns, heads = call->node->in[GATE]->rows;
    int64_t width = columns / heads, channels = call->node->in[GATE]->columns;
    double *v = call->scratch, *e = v + columns, *h = e + columns, *gates = h + call->node->in[H]->columns;
    load_gates(call, gates);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, V, t, v);
        fr_load_input(call, E, t, e);
        fr_load_input(call, H, t, h);
        for (int64_t k = 0; k < heads; k++) {
            double G = options->range * fr_sigmoid(fr_dot(gates + k * channels, h, channels));
            fr_axpy(v + k * width, G, e + k * width, width);
        }
        fr_store_output(call, 0, t, v);
    }
}

static void value_gate_backward(const fr_call *call)
{
    const fr_value_gate_options *options = call->node->attributes;
    int64_t columns = call->node->in[V]->columns, heads = call->node->in[GATE]->rows;
    int64_t width = columns / heads, channels = call->node->in[GATE]->columns;
    double *dy = call->scratch, *e = dy + columns, *h = e + columns, *dh = h + call->node->in[H]->columns;
    double *gates = dh + call->node->in[H]->columns, *dgates = gates + heads * channels;
    load_gates(call, gates);
    fr_zero(dgates, heads * channels);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_grad(call, 0, t, dy);
        fr_load_input(call, E, t, e);
        fr_load_input(call, H, t, h);
        fr_zero(dh, call->node->in[H]->columns);
        for (int64_t k = 0; k < heads; k++) {
            double G = options->range * fr_sigmoid(fr_dot(gates + k * channels, h, channels));
            double dlogit = fr_dot(dy + k * width, e + k * width, width) * G * (1 - G / options->range);
            fr_axpy(dgates + k * channels, dlogit, h, channels);
            fr_axpy(dh, dlogit, gates + k * channels, channels);
            for (int64_t c = 0; c < width; c++)
                e[k * width + c] = G * dy[k * width + c];
        }
        fr_store_grad(call, V, t, dy);
        fr_store_grad(call, E, t, e);
        fr_store_grad(call, H, t, dh);
    }
    if (call->grad_in[GATE])
        fr_store_doubles(call->grad_in[GATE], call->in_dtype[GATE], 0, heads * channels, dgates,
                         call->accumulate[GATE]);
}

const fr_op fr_op_value_gate = {
    .name = "value_gate",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 1,
    .infer = value_gate_infer,
    .continues = true,
    .keeps_inputs = 1u << E | 1u << H | 1u << GATE,
    .flops = value_gate_flops,
    .reference = {{"value_gate", FR_FORWARD, "value_gate_forward_reference", value_gate_forward,
                   value_gate_scratch, NULL},
                  {"value_gate", FR_BACKWARD, "value_gate_backward_reference", value_gate_backward,
                   value_gate_scratch, NULL}},
};

fr_tensor *fr_value_gate(fr_graph *g, fr_tensor *v, fr_tensor *e, fr_tensor *h, fr_tensor *gate, double range)
{
    fr_value_gate_options options = {.range = range};
    return fr_apply(g, &fr_op_value_gate, (fr_tensor *[]){v, e, h, gate}, 4, &options, sizeof options);
}
