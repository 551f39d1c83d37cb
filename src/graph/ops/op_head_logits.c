/* head_logits: scores of every vocabulary entry for every token, for evaluation and sampling.
 *
 *     l = x W[0 .. vocab)^T ;  out = c tanh(l / c), or l without a soft cap
 *     d l = d out (1 - (out / c)^2) ;  d x = d l W ;  d W = d l^T x, zero in the padding rows
 *
 * The table may have more rows than the vocabulary (padding for the hardware); those have no logits.
 */
#include "graph/ops/ops.h"

#include <math.h>

enum { STRIP = 16 };

fr_status fr_head_expect(const fr_node *node, fr_error *error)
{
    const fr_head_options *options = node->attributes;
    const fr_tensor *x = node->in[0], *head = node->in[1];
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, x->columns, error));
    if (head->rows == FR_TOKENS)
        return fr_error_set(error, FR_BAD_USAGE, head->name, NULL,
                            "the head must have a fixed number of rows");
    FR_TRY(fr_node_expect(node, 1, head->rows, x->columns, error));
    if (options->vocab < 1 || options->vocab > head->rows)
        return fr_error_set(error, FR_BAD_USAGE, head->name, NULL,
                            "a vocabulary of %lld for a head of %lld rows", (long long)options->vocab,
                            (long long)head->rows);
    if (!(options->softcap >= 0) || !isfinite(options->softcap) || !isfinite(options->weight))
        return fr_error_set(error, FR_BAD_USAGE, head->name, NULL,
                            "softcap must be 0 or positive, weight finite");
    return FR_OK;
}

static fr_status head_logits_infer(fr_node *node, fr_error *error)
{
    const fr_head_options *options = node->attributes;
    FR_TRY(fr_head_expect(node, error));
    fr_node_output(node, 0, FR_KIND_STATISTIC, FR_TOKENS, options->vocab);
    return FR_OK;
}

double fr_head_flops(const fr_node *node, fr_extent extent, fr_pass pass)
{
    const fr_head_options *options = node->attributes;
    double product =
        2.0 * (double)(extent.rows * extent.T) * (double)options->vocab * (double)node->in[1]->columns;
    return pass == FR_FORWARD ? product : 2 * product;
}

double fr_head_flops_full(const fr_node *node, fr_extent extent, fr_pass pass)
{
    double product =
        2.0 * (double)(extent.rows * extent.T) * (double)node->in[1]->rows * (double)node->in[1]->columns;
    return pass == FR_FORWARD ? product : 2 * product;
}

static size_t head_logits_scratch(const fr_call *call)
{
    const fr_head_options *options = call->node->attributes;
    int64_t columns = call->node->in[1]->columns;
    return (size_t)((STRIP + 2) * columns + STRIP * options->vocab) * sizeof(double);
}

static double cap_logit(double logit, double cap)
{
    return cap > 0 ? cap * tanh(logit / cap) : logit;
}

/* In strips of tokens, so that a row of the table is converted once for the whole strip. */
static void head_logits_forward(const fr_call *call)
{
    const fr_head_options *options = call->node->attributes;
    int64_t columns = call->node->in[1]->columns, vocab = options->vocab;
    double *x = call->scratch, *w = x + STRIP * columns, *logits = w + columns;
    for (int64_t t = 0; t < call->tokens; t += STRIP) {
        int64_t count = call->tokens - t < STRIP ? call->tokens - t : STRIP;
        fr_load_doubles(call->in[0], call->in_dtype[0], t * columns, count * columns, x);
        for (int64_t v = 0; v < vocab; v++) {
            fr_load_input(call, 1, v, w);
            for (int64_t i = 0; i < count; i++)
                logits[i * vocab + v] = cap_logit(fr_dot(x + i * columns, w, columns), options->softcap);
        }
        fr_store_doubles(call->out[0], call->out_dtype[0], t * vocab, count * vocab, logits, false);
    }
}

/* d l of one token into `dl`; `out` is a row of scratch. */
static void load_logit_gradient(const fr_call *call, int64_t t, double *dl, double *out)
{
    const fr_head_options *options = call->node->attributes;
    fr_load_grad(call, 0, t, dl);
    fr_load_output(call, 0, t, out);
    for (int64_t v = 0; v < options->vocab && options->softcap > 0; v++)
        dl[v] *= 1 - (out[v] / options->softcap) * (out[v] / options->softcap);
}

/* Writes the head's gradient as zero, unless it is added to. */
static void clear_head_gradient(const fr_call *call, double *row)
{
    fr_zero(row, call->node->in[1]->columns);
    for (int64_t v = 0; v < call->node->in[1]->rows && !call->accumulate[1]; v++)
        fr_store_grad(call, 1, v, row);
}

static void head_logits_backward(const fr_call *call)
{
    const fr_head_options *options = call->node->attributes;
    int64_t columns = call->node->in[1]->columns;
    double *x = call->scratch, *w = x + columns, *dx = w + columns, *dl = dx + columns,
           *out = dl + options->vocab;
    clear_head_gradient(call, w);
    for (int64_t t = 0; t < call->tokens; t++) {
        fr_load_input(call, 0, t, x);
        load_logit_gradient(call, t, dl, out);
        fr_zero(dx, columns);
        for (int64_t v = 0; v < options->vocab; v++) {
            fr_load_input(call, 1, v, w);
            fr_axpy(dx, dl[v], w, columns);
            for (int64_t c = 0; c < columns; c++)
                w[c] = dl[v] * x[c];
            if (call->grad_in[1])
                fr_store_doubles(call->grad_in[1], call->in_dtype[1], v * columns, columns, w, true);
        }
        fr_store_grad(call, 0, t, dx);
    }
}

const fr_op fr_op_head_logits = {
    .name = "head_logits",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = head_logits_infer,
    .continues = true,
    .keeps_inputs = 3,
    .keeps_outputs = 1,
    .flops = fr_head_flops,
    .flops_full = fr_head_flops_full,
    .reference = {{"head_logits", FR_FORWARD, "head_logits_forward_reference", head_logits_forward,
                   head_logits_scratch, NULL},
                  {"head_logits", FR_BACKWARD, "head_logits_backward_reference", head_logits_backward,
                   head_logits_scratch, NULL}},
};

fr_tensor *fr_head_name(fr_graph *g, fr_tensor *tensor, const char *name)
{
    char text[32];
    snprintf(text, sizeof text, "%s", name);
    for (int i = 2; fr_graph_find(g, text); i++)
        snprintf(text, sizeof text, "%s:%d", name, i);
    return fr_name(g, tensor, text);
}

fr_tensor *fr_head_logits(fr_graph *g, fr_tensor *x, fr_tensor *head, fr_head_options options)
{
    options.weight = 1;
    fr_tensor *inputs[] = {x, head};
    return fr_head_name(g, fr_apply(g, &fr_op_head_logits, inputs, 2, &options, sizeof options), "logits");
}
