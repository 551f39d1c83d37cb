/* smear: every token takes a gated share of the token before it.
 *
 *     g_t = lambda s_t ;  s_t = sigmoid(<gate, x_t[0 .. channels)>)
 *     out_t = x_t + g_t x_{t-1} ;  out_0 = x_0                     t: position in the row, x: the input
 *
 *     e_t = <d out_t, x_{t-1}>                                     the gradient of g_t
 *     d x_t = d out_t + g_{t+1} d out_{t+1} + [channels] e_t lambda s_t (1 - s_t) gate
 *     d gate = sum_t e_t lambda s_t (1 - s_t) x_t[0 .. channels) ;  d lambda = sum_t e_t s_t
 */
#include "graph/ops/ops.h"

#include <string.h>

enum { X, GATE, LAMBDA };

static fr_status smear_infer(fr_node *node, fr_error *error)
{
    const fr_tensor *x = node->in[X], *gate = node->in[GATE];
    FR_TRY(fr_node_expect(node, X, FR_TOKENS, x->columns, error));
    FR_TRY(fr_node_expect(node, GATE, 1, gate->columns, error));
    FR_TRY(fr_node_expect(node, LAMBDA, 1, 1, error));
    if (gate->columns > x->columns)
        return fr_error_set(error, FR_BAD_USAGE, gate->name, NULL, "the gate reads %lld channels of %lld",
                            (long long)gate->columns, (long long)x->columns);
    fr_node_output(node, 0, FR_KIND_STREAM, FR_TOKENS, x->columns);
    return FR_OK;
}

static double smear_flops(const fr_node *node, fr_extent extent, fr_pass pass)
{
    double product = 2.0 * (double)(extent.rows * extent.T) * (double)node->in[GATE]->columns;
    return pass == FR_FORWARD ? product : 2 * product;
}

static size_t smear_scratch(const fr_call *call)
{
    return (size_t)(4 * call->node->in[X]->columns + 2 * call->node->in[GATE]->columns) * sizeof(double);
}

static int64_t smear_looks_back(const fr_node *node, int input)
{
    (void)node;
    return input == X;
}

/* A sequence keeps its last x. */
static size_t smear_sequence_bytes(const fr_call *call)
{
    return (size_t)call->node->in[X]->columns * fr_dtype_bytes(call->in_dtype[X]);
}

const void *fr_smear_before(const fr_call *call, int64_t t)
{
    size_t bytes = smear_sequence_bytes(call);
    if (call->segments) {
        int64_t previous = call->segments->previous[call->first + t];
        return previous < 0 ? NULL : (const char *)call->in[X] + (previous - call->first) * (int64_t)bytes;
    }
    if (t % call->extent.T)
        return (const char *)call->in[X] + (size_t)(t - 1) * bytes;
    const fr_sequence *s = call->continuing.chunk > 0 ? &call->sequences[t / call->extent.T] : NULL;
    return s && s->start > 0 ? (const char *)s->memory + call->sequence_offset : NULL;
}

void fr_smear_remember(const fr_call *call)
{
    size_t bytes = smear_sequence_bytes(call);
    for (int64_t row = 0; call->continuing.chunk > 0 && row < call->extent.rows; row++) {
        const fr_sequence *s = &call->sequences[row];
        if (s->count > 0)
            memcpy((char *)s->memory + call->sequence_offset,
                   (const char *)call->in[X] + (size_t)(row * call->extent.T + s->count - 1) * bytes, bytes);
    }
}

static void smear_forward(const fr_call *call)
{
    int64_t columns = call->node->in[X]->columns, channels = call->node->in[GATE]->columns;
    double *x = call->scratch, *before = x + columns, *gate = before + columns;
    double lambda = fr_scalar_input(call, LAMBDA);
    fr_load_input(call, GATE, 0, gate);
    for (int64_t t = 0; t < call->tokens; t++) {
        const void *row = fr_smear_before(call, t);
        fr_load_input(call, X, t, x);
        if (row) {
            fr_load_doubles(row, call->in_dtype[X], 0, columns, before);
            fr_axpy(x, lambda * fr_sigmoid(fr_dot(gate, x, channels)), before, columns);
        }
        fr_store_output(call, 0, t, x);
    }
    fr_smear_remember(call);
}

/* The gate of token t, s_t; 0 for the first of a row. Leaves x_t in x. */
static double load_gate(const fr_call *call, int64_t t, const double *gate, double *x)
{
    fr_load_input(call, X, t, x);
    return t % call->extent.T ? fr_sigmoid(fr_dot(gate, x, call->node->in[GATE]->columns)) : 0;
}

static void smear_backward(const fr_call *call)
{
    int64_t columns = call->node->in[X]->columns, channels = call->node->in[GATE]->columns;
    double *x = call->scratch, *other = x + columns, *dy = other + columns, *dx = dy + columns;
    double *gate = dx + columns, *dgate = gate + channels, lambda = fr_scalar_input(call, LAMBDA),
           dlambda = 0;
    fr_load_input(call, GATE, 0, gate);
    fr_zero(dgate, channels);
    for (int64_t t = 0; t < call->tokens; t++) {
        double s = load_gate(call, t, gate, x);
        fr_load_grad(call, 0, t, dy);
        fr_zero(dx, columns);
        fr_axpy(dx, 1, dy, columns);
        if (t % call->extent.T) {
            fr_load_input(call, X, t - 1, other);
            double e = fr_dot(dy, other, columns), slope = e * lambda * s * (1 - s);
            dlambda += e * s;
            fr_axpy(dgate, slope, x, channels);
            fr_axpy(dx, slope, gate, channels);
        }
        if ((t + 1) % call->extent.T) {
            double next = load_gate(call, t + 1, gate, other);
            fr_load_grad(call, 0, t + 1, dy);
            fr_axpy(dx, lambda * next, dy, columns);
        }
        fr_store_grad(call, X, t, dx);
    }
    fr_store_grad(call, GATE, 0, dgate);
    fr_store_grad(call, LAMBDA, 0, &dlambda);
}

const fr_op fr_op_smear = {
    .name = "smear",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .infer = smear_infer,
    .continues = true,
    .looks_back = smear_looks_back,
    .sequence_bytes = smear_sequence_bytes,
    .keeps_inputs = 7,
    .flops = smear_flops,
    .reference = {{"smear", FR_FORWARD, "smear_forward_reference", smear_forward, smear_scratch, NULL},
                  {"smear", FR_BACKWARD, "smear_backward_reference", smear_backward, smear_scratch, NULL}},
};

fr_tensor *fr_smear(fr_graph *g, fr_tensor *x, fr_tensor *gate, fr_tensor *lambda)
{
    return fr_apply(g, &fr_op_smear, (fr_tensor *[]){x, gate, lambda}, 3, NULL, 0);
}
