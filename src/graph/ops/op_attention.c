/* attention: causal softmax attention within each row, several query heads per key-value head, sliding
 * window.
 *
 *     s_ij = scale <q_i, k_j>  for 0 <= i - j (<= window) ;  p_i = softmax(s_i) ;  out_i = sum_j p_ij v_j
 *     output 1:  l_i = log sum_j exp(s_ij)        a number per token and head, for the backward pass
 *
 *     p_ij = exp(s_ij - l_i) ;  d v_j += p_ij d out_i ;  delta_i = <d out_i, out_i>
 *     d s_ij = p_ij (<d out_i, v_j> - delta_i) ;  d q_i += scale d s_ij k_j ;  d k_j += scale d s_ij q_i
 *
 * Nothing of size T x T is ever stored: the forward pass holds the scores of one query, the backward pass
 * computes them again from l.
 *
 * A sequence that continues keeps its keys and values in a ring: as many positions as the window and one
 * chunk of new tokens need, and no more. A run writes the new ones first, then every query looks back.
 */
#include "graph/ops/ops.h"

#include <math.h>
#include <string.h>

static fr_status attention_infer(fr_node *node, fr_error *error)
{
    const fr_attention_options *options = node->attributes;
    const fr_tensor *q = node->in[0];
    if (options->heads < 1 || options->kv_heads < 1 || options->heads % options->kv_heads ||
        q->columns % options->heads)
        return fr_error_set(error, FR_BAD_USAGE, q->name,
                            "heads must divide the columns, kv_heads must divide heads",
                            "cannot split %lld columns into %d heads for %d key-value heads",
                            (long long)q->columns, options->heads, options->kv_heads);
    if (!isfinite(options->scale))
        return fr_error_set(error, FR_BAD_USAGE, q->name, NULL, "the scale of attention is not finite");
    int64_t width = q->columns / options->heads;
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, q->columns, error));
    FR_TRY(fr_node_expect(node, 1, FR_TOKENS, width * options->kv_heads, error));
    FR_TRY(fr_node_expect(node, 2, FR_TOKENS, width * options->kv_heads, error));
    fr_node_output(node, 0, FR_KIND_ACTIVATION, FR_TOKENS, q->columns);
    fr_node_output(node, 1, FR_KIND_STATISTIC, FR_TOKENS, options->heads);
    return FR_OK;
}

/* Two products forward, four backward: 4 and 8 operations per query, key and channel. */
static double attention_cost(const fr_node *node, fr_extent extent, fr_pass pass, double keys)
{
    return (pass == FR_FORWARD ? 4.0 : 8.0) * (double)extent.rows * (double)node->in[0]->columns * keys;
}

/* Query i sees min(i, w) + 1 keys. */
static double attention_flops(const fr_node *node, fr_extent extent, fr_pass pass)
{
    const fr_attention_options *options = node->attributes;
    double T = (double)extent.T,
           w = options->window > 0 && options->window < extent.T ? (double)options->window : T - 1;
    return attention_cost(node, extent, pass, w * (w + 1) / 2 + (T - w) * (w + 1));
}

static double attention_flops_full(const fr_node *node, fr_extent extent, fr_pass pass)
{
    const fr_attention_options *options = node->attributes;
    double T = (double)extent.T,
           w = options->window > 0 && options->window < extent.T ? (double)options->window : T;
    return attention_cost(node, extent, pass, T * w);
}

/* Keys and values of the window. */
static int64_t attention_looks_back(const fr_node *node, int input)
{
    const fr_attention_options *options = node->attributes;
    return input == 0 ? 0 : options->window > 0 ? options->window : INT64_MAX;
}

/* ---- what a sequence keeps ---- */

enum { RING_STEP = 128 };

int64_t fr_attention_capacity(const fr_call *call)
{
    const fr_attention_options *options = call->node->attributes;
    int64_t most = call->continuing.positions, seen = options->window > 0 ? options->window : most;
    if (most && seen > most)
        seen = most;
    return seen ? (seen + call->continuing.chunk + RING_STEP - 1) / RING_STEP * RING_STEP : 0;
}

static size_t attention_sequence_bytes(const fr_call *call)
{
    const fr_tensor *k = call->node->in[1];
    size_t bytes = (size_t)fr_attention_capacity(call) * (size_t)k->columns;
    return bytes * (fr_dtype_bytes(call->in_dtype[1]) + fr_dtype_bytes(call->in_dtype[2]));
}

fr_attention_ring fr_attention_ring_of(const fr_call *call, int64_t row, int kv_head)
{
    const fr_attention_options *options = call->node->attributes;
    int64_t capacity = fr_attention_capacity(call), width = call->node->in[1]->columns / options->kv_heads;
    size_t k_head = (size_t)(capacity * width) * fr_dtype_bytes(call->in_dtype[1]);
    size_t v_head = (size_t)(capacity * width) * fr_dtype_bytes(call->in_dtype[2]);
    char *memory = (char *)call->sequences[row].memory + call->sequence_offset;
    return (fr_attention_ring){.capacity = capacity,
                               .k = memory + (size_t)kv_head * k_head,
                               .v = memory + (size_t)options->kv_heads * k_head + (size_t)kv_head * v_head};
}

static void remember(const fr_call *call, int input, int64_t row, int kv_head, void *ring, int64_t capacity)
{
    const fr_attention_options *options = call->node->attributes;
    const fr_sequence *s = &call->sequences[row];
    int64_t columns = call->node->in[input]->columns, width = columns / options->kv_heads;
    size_t item = fr_dtype_bytes(call->in_dtype[input]);
    for (int64_t t = 0; t < s->count; t++)
        memcpy((char *)ring + item * (size_t)((s->start + t) % capacity * width),
               (const char *)call->in[input] +
                   item * (size_t)((row * call->extent.T + t) * columns + kv_head * width),
               item * (size_t)width);
}

void fr_attention_remember(const fr_call *call, int64_t row, int kv_head)
{
    fr_attention_ring ring = fr_attention_ring_of(call, row, kv_head);
    remember(call, 1, row, kv_head, ring.k, ring.capacity);
    remember(call, 2, row, kv_head, ring.v, ring.capacity);
}

/* ---- the kernels ---- */

/* What one key-value head of one row needs, as doubles in scratch. */
typedef struct head_rows {
    const fr_call *call;
    const fr_attention_options *options;
    int64_t T, width;                /* keys; queries are those from position `shared` on */
    int64_t keys;                    /* rows of k and v there is room for: T, or a ring's */
    int64_t first;                   /* token the row starts at, or would if it were in one piece */
    int64_t before, shared;          /* keys 0 .. shared-1 lie at tokens before, before + 1, ... */
    double *k, *v, *dk, *dv;         /* keys x width each; the gradients in the backward pass only */
    double *q, *out, *dout, *dq, *p; /* one query: width each, p has `keys` */
} head_rows;

static int64_t keys_kept(const fr_call *call)
{
    return call->continuing.chunk > 0 ? fr_attention_capacity(call) : call->first + call->extent.T;
}

static size_t attention_scratch(const fr_call *call)
{
    const fr_attention_options *options = call->node->attributes;
    int64_t width = call->node->in[0]->columns / options->heads;
    return (size_t)(4 * keys_kept(call) * width + 4 * width + keys_kept(call)) * sizeof(double);
}

static head_rows lay_out_scratch(const fr_call *call)
{
    const fr_attention_options *options = call->node->attributes;
    int64_t keys = keys_kept(call), width = call->node->in[0]->columns / options->heads;
    head_rows rows = {.call = call, .options = options, .T = call->extent.T, .width = width, .keys = keys};
    rows.k = call->scratch;
    rows.v = rows.k + keys * width;
    rows.dk = rows.v + keys * width;
    rows.dv = rows.dk + keys * width;
    rows.q = rows.dv + keys * width;
    rows.out = rows.q + width;
    rows.dout = rows.out + width;
    rows.dq = rows.dout + width;
    rows.p = rows.dq + width;
    return rows;
}

/* Where token t of the row lies. */
static int64_t place_of(const head_rows *rows, int64_t t)
{
    const fr_segments *segments = rows->call->segments;
    int64_t at = rows->first + t;
    return (segments && segments->order ? segments->order[at] : at) - rows->call->first;
}

/* Head `head` of token t in a tokens x (heads * width) matrix. */
static void load_head(const head_rows *rows, const void *data, fr_dtype dtype, int heads, int64_t t, int head,
                      double *to)
{
    fr_load_doubles(data, dtype, (place_of(rows, t) * heads + head) * rows->width, rows->width, to);
}

static void store_head(const head_rows *rows, int input, int heads, int64_t t, int head, const double *values)
{
    const fr_call *call = rows->call;
    if (call->grad_in[input])
        fr_store_doubles(call->grad_in[input], call->in_dtype[input],
                         ((rows->first + t) * heads + head) * rows->width, rows->width, values,
                         call->accumulate[input]);
}

static void load_keys_and_values(head_rows *rows, int64_t first, int kv_head)
{
    const fr_call *call = rows->call;
    for (int64_t t = 0; t < rows->T; t++) {
        rows->first = t < rows->shared ? rows->before : first;
        load_head(rows, call->in[1], call->in_dtype[1], rows->options->kv_heads, t, kv_head,
                  rows->k + t * rows->width);
        load_head(rows, call->in[2], call->in_dtype[2], rows->options->kv_heads, t, kv_head,
                  rows->v + t * rows->width);
    }
    rows->first = first;
}

static int64_t first_key(const head_rows *rows, int64_t i)
{
    return rows->options->window > 0 && i > rows->options->window ? i - rows->options->window : 0;
}

/* One query of one head, token i of the row: out_i and l_i. Its key and value are number `at`, and those
 * it sees lie before it, in order. */
static void attend(const head_rows *rows, int head, int64_t i, int64_t at)
{
    const fr_call *call = rows->call;
    int heads = rows->options->heads;
    int64_t width = rows->width, from = first_key(rows, at);
    double largest = -INFINITY, sum = 0;
    load_head(rows, call->in[0], call->in_dtype[0], heads, i, head, rows->q);
    for (int64_t j = from; j <= at; j++) {
        rows->p[j] = rows->options->scale * fr_dot(rows->q, rows->k + j * width, width);
        largest = rows->p[j] > largest ? rows->p[j] : largest;
    }
    fr_zero(rows->out, width);
    for (int64_t j = from; j <= at; j++) {
        double weight = exp(rows->p[j] - largest);
        sum += weight;
        fr_axpy(rows->out, weight, rows->v + j * width, width);
    }
    for (int64_t c = 0; c < width; c++)
        rows->out[c] /= sum;
    double log_sum = largest + log(sum);
    int64_t place = place_of(rows, i) * heads + head;
    fr_store_doubles(call->out[0], call->out_dtype[0], place * width, width, rows->out, false);
    fr_store_doubles(call->out[1], call->out_dtype[1], place, 1, &log_sum, false);
}

/* Keys and values out of a sequence's ring, oldest first. Returns the number of the row's first token among
 * them. */
static int64_t load_ring(head_rows *rows, int64_t row, int kv_head)
{
    const fr_call *call = rows->call;
    const fr_sequence *s = &call->sequences[row];
    fr_attention_ring ring = fr_attention_ring_of(call, row, kv_head);
    int64_t end = s->start + s->count, first = end > ring.capacity ? end - ring.capacity : 0;
    for (int64_t p = first; p < end; p++) {
        int64_t place = p % ring.capacity * rows->width;
        fr_load_doubles(ring.k, call->in_dtype[1], place, rows->width, rows->k + (p - first) * rows->width);
        fr_load_doubles(ring.v, call->in_dtype[2], place, rows->width, rows->v + (p - first) * rows->width);
    }
    return s->start - first;
}

static void attention_continue(head_rows *rows)
{
    const fr_call *call = rows->call;
    int group = rows->options->heads / rows->options->kv_heads;
    for (int64_t row = 0; row < call->extent.rows; row++)
        for (int kv_head = 0; kv_head < rows->options->kv_heads; kv_head++) {
            fr_attention_remember(call, row, kv_head);
            rows->first = row * rows->T;
            int64_t at = load_ring(rows, row, kv_head);
            for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
                for (int64_t i = 0; i < call->sequences[row].count; i++)
                    attend(rows, head, i, at + i);
        }
}

static void attend_row(head_rows *rows, int64_t first)
{
    int group = rows->options->heads / rows->options->kv_heads;
    for (int kv_head = 0; kv_head < rows->options->kv_heads; kv_head++) {
        load_keys_and_values(rows, first, kv_head);
        for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
            for (int64_t i = rows->shared; i < rows->T; i++)
                if (place_of(rows, i) >= 0) /* else nobody asks for this query */
                    attend(rows, head, i, i);
    }
}

static void attention_forward(const fr_call *call)
{
    head_rows rows = lay_out_scratch(call);
    if (call->continuing.chunk > 0) {
        attention_continue(&rows);
        return;
    }
    for (int64_t row = 0; row < call->extent.rows && !call->segments; row++)
        attend_row(&rows, row * rows.T);
    for (int64_t i = 0; call->segments && i < call->segments->count; i++) {
        const fr_segment *segment = &call->segments->list[i];
        rows.before = segment->before;
        rows.shared = segment->before_count;
        rows.T = rows.shared + segment->count; /* what is left out lies before every window */
        attend_row(&rows, segment->first - rows.shared);
    }
}

/* One query of one head: its d q, and its share of d k and d v. */
static void attend_backward(const head_rows *rows, int head, int64_t i)
{
    const fr_call *call = rows->call;
    int heads = rows->options->heads;
    int64_t width = rows->width;
    double log_sum, scale = rows->options->scale;
    load_head(rows, call->in[0], call->in_dtype[0], heads, i, head, rows->q);
    load_head(rows, call->out[0], call->out_dtype[0], heads, i, head, rows->out);
    load_head(rows, call->grad_out[0], call->out_dtype[0], heads, i, head, rows->dout);
    fr_load_doubles(call->out[1], call->out_dtype[1], (rows->first + i) * heads + head, 1, &log_sum);
    double delta = fr_dot(rows->dout, rows->out, width);
    fr_zero(rows->dq, width);
    for (int64_t j = first_key(rows, i); j <= i; j++) {
        double *k = rows->k + j * width, *v = rows->v + j * width;
        double p = exp(scale * fr_dot(rows->q, k, width) - log_sum);
        double ds = scale * p * (fr_dot(rows->dout, v, width) - delta);
        fr_axpy(rows->dv + j * width, p, rows->dout, width);
        fr_axpy(rows->dq, ds, k, width);
        fr_axpy(rows->dk + j * width, ds, rows->q, width);
    }
    store_head(rows, 0, heads, i, head, rows->dq);
}

static void attention_backward(const fr_call *call)
{
    head_rows rows = lay_out_scratch(call);
    int kv_heads = rows.options->kv_heads, group = rows.options->heads / kv_heads;
    for (int64_t row = 0; row < call->extent.rows; row++)
        for (int kv_head = 0; kv_head < kv_heads; kv_head++) {
            load_keys_and_values(&rows, row * rows.T, kv_head);
            fr_zero(rows.dk, 2 * rows.T * rows.width); /* d k and d v lie side by side */
            for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
                for (int64_t i = 0; i < rows.T; i++)
                    attend_backward(&rows, head, i);
            for (int64_t j = 0; j < rows.T; j++) {
                store_head(&rows, 1, kv_heads, j, kv_head, rows.dk + j * rows.width);
                store_head(&rows, 2, kv_heads, j, kv_head, rows.dv + j * rows.width);
            }
        }
}

const fr_op fr_op_attention = {
    .name = "attention",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 2,
    .infer = attention_infer,
    .continues = true,
    .looks_back = attention_looks_back,
    .sequence_bytes = attention_sequence_bytes,
    .keeps_inputs = 7,
    .keeps_outputs = 3,
    .detached_outputs = 1u << 1,
    .flops = attention_flops,
    .flops_full = attention_flops_full,
    .reference = {{"attention", FR_FORWARD, "attention_forward_reference", attention_forward,
                   attention_scratch, NULL},
                  {"attention", FR_BACKWARD, "attention_backward_reference", attention_backward,
                   attention_scratch, NULL}},
};

fr_tensor *fr_attention(fr_graph *g, fr_tensor *q, fr_tensor *k, fr_tensor *v, fr_attention_options options)
{
    if (options.scale == 0 && options.heads > 0 && q && q->columns >= options.heads)
        options.scale = 1 / sqrt((double)(q->columns / options.heads));
    return fr_apply(g, &fr_op_attention, (fr_tensor *[]){q, k, v}, 3, &options, sizeof options);
}
