/* two_tap: a causal convolution of two taps along the tokens, each channel on its own.
 *
 *     out_t = taps[0] x_t + taps[1] x_{t-1} ;  x_{-1} = 0          taps 2 x columns, t: position in the row
 *     d x_t = taps[0] d out_t + taps[1] d out_{t+1}
 *     d taps[0] = sum_t d out_t x_t ;  d taps[1] = sum_t d out_t x_{t-1}
 *
 * Unlike smear it has no gate: the taps are the same for every token. Own models use it; the reference
 * kernel, one pass over an activation, is also what real runs use.
 */
#include "graph/ops/ops.h"

enum { X, TAPS };

static fr_status two_tap_infer(fr_node *node, fr_error *error)
{
    int64_t columns = node->in[X]->columns;
    FR_TRY(fr_node_expect(node, X, FR_TOKENS, columns, error));
    FR_TRY(fr_node_expect(node, TAPS, 2, columns, error));
    fr_node_output(node, 0, FR_KIND_STREAM, FR_TOKENS, columns);
    return FR_OK;
}

static size_t two_tap_scratch(const fr_call *call)
{
    return 7 * (size_t)call->node->in[X]->columns * sizeof(double);
}

/* A sequence keeps its last x. */
static size_t two_tap_sequence_bytes(const fr_call *call)
{
    return (size_t)call->node->in[X]->columns * fr_dtype_bytes(call->in_dtype[X]);
}

static double two_tap_flops(const fr_node *node, fr_extent extent, fr_pass pass)
{
    double elements = (double)(extent.rows * extent.T) * (double)node->in[X]->columns;
    return (pass == FR_FORWARD ? 3 : 7) * elements;
}

static void two_tap_forward(const fr_call *call)
{
    int64_t columns = call->node->in[X]->columns;
    double *x = call->scratch, *before = x + columns, *now = before + columns, *then = now + columns;
    fr_load_input(call, TAPS, 0, now);
    fr_load_input(call, TAPS, 1, then);
    for (int64_t t = 0; t < call->tokens; t++) {
        const void *row = fr_smear_before(call, t);
        fr_load_input(call, X, t, x);
        fr_zero(before, columns);
        if (row)
            fr_load_doubles(row, call->in_dtype[X], 0, columns, before);
        for (int64_t c = 0; c < columns; c++)
            x[c] = now[c] * x[c] + then[c] * before[c];
        fr_store_output(call, 0, t, x);
    }
    fr_smear_remember(call);
}

/* sum += a * b, element by element */
static void add_products(double *sum, const double *a, const double *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += a[i] * b[i];
}

static void two_tap_backward(const fr_call *call)
{
    int64_t columns = call->node->in[X]->columns;
    double *x = call->scratch, *dy = x + columns, *dx = dy + columns, *now = dx + columns;
    double *then = now + columns, *dnow = then + columns, *dthen = dnow + columns;
    fr_load_input(call, TAPS, 0, now);
    fr_load_input(call, TAPS, 1, then);
    fr_zero(dnow, 2 * columns);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, X, t, x);
        fr_load_grad(call, 0, t, dy);
        fr_zero(dx, columns);
        add_products(dx, now, dy, columns);
        add_products(dnow, dy, x, columns);
        if ((t + 1) % call->extent.T) {
            fr_load_grad(call, 0, t + 1, dy);
            add_products(dx, then, dy, columns);
            add_products(dthen, dy, x, columns);
        }
        fr_store_grad(call, X, t, dx);
    }
    fr_store_grad(call, TAPS, 0, dnow);
    fr_store_grad(call, TAPS, 1, dthen);
}

const fr_op fr_op_two_tap = {
    .name = "two_tap",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = two_tap_infer,
    .continues = true,
    .sequence_bytes = two_tap_sequence_bytes,
    .keeps_inputs = 3,
    .reference_suffices = true,
    .flops = two_tap_flops,
    .reference = {{"two_tap", FR_FORWARD, "two_tap_forward_reference", two_tap_forward, two_tap_scratch,
                   NULL},
                  {"two_tap", FR_BACKWARD, "two_tap_backward_reference", two_tap_backward, two_tap_scratch,
                   NULL}},
};

fr_tensor *fr_two_tap(fr_graph *g, fr_tensor *x, fr_tensor *taps)
{
    return fr_apply(g, &fr_op_two_tap, (fr_tensor *[]){x, taps}, 2, NULL, 0);
}
