/* head_loss: logits, soft cap, cross-entropy and, when training, both gradients, in one forward pass.
 *
 *     l = x W[0 .. vocab)^T ;  z = c tanh(l / c)
 *     nats_t = log sum_v exp(z_v) - z_target, 0 where the target is -1
 *     loss = s * sum_t nats_t                        s = weight * loss_scale
 *     d l_v = s (softmax(z)_v - [v = target]) (1 - (z_v / c)^2) ;  d x = d l W ;  d W = d l^T x
 *
 * Logits are the largest thing in a model: a vocabulary of numbers for every token. Since the gradient of
 * the loss itself is known in advance (it is s), the gradients are made while a chunk of logits is at
 * hand, and no logit outlives its chunk. Gradients of padding rows of W are zero.
 */
#include "graph/ops/ops.h"

#include <math.h>

enum { X, HEAD, TARGETS, SCALE };
enum { CHUNK = 16 }; /* tokens whose logits exist at once */

static fr_status head_loss_infer(fr_node *node, fr_error *error)
{
    FR_TRY(fr_head_expect(node, error));
    const fr_tensor *targets = node->in[TARGETS];
    if (targets->kind != FR_KIND_IDS)
        return fr_error_set(error, FR_BAD_USAGE, targets->name, "declare them with fr_input_ids",
                            "the targets of head_loss must be token ids");
    FR_TRY(fr_node_expect(node, SCALE, 1, 1, error));
    fr_node_output(node, 0, FR_KIND_STATISTIC, FR_TOKENS, 1);
    fr_node_output(node, 1, FR_KIND_STATISTIC, 1, 1);
    return FR_OK;
}

static void head_loss_ids_range(const fr_node *node, int input, int64_t *least, int64_t *most)
{
    const fr_head_options *options = node->attributes;
    (void)input;
    *least = -1;
    *most = options->vocab - 1;
}

/* ---- one chunk ---- */

typedef struct chunk {
    const fr_call *call;
    const fr_head_options *options;
    int64_t first, count, columns; /* tokens first .. first + count - 1 */
    double scale;
    double *x, *dx, *logits; /* CHUNK rows each; logits become d l */
    double *w, *dw;          /* one row of the head and of its gradient */
} chunk;

static size_t head_loss_scratch(const fr_call *call)
{
    const fr_head_options *options = call->node->attributes;
    int64_t columns = call->node->in[HEAD]->columns;
    return (size_t)(CHUNK * (2 * columns + options->vocab) + 2 * columns) * sizeof(double);
}

static chunk lay_out_scratch(const fr_call *call)
{
    const fr_head_options *options = call->node->attributes;
    chunk part = {.call = call,
                  .options = options,
                  .columns = call->node->in[HEAD]->columns,
                  .x = call->scratch};
    part.scale = options->weight * fr_scalar_input(call, SCALE);
    part.dx = part.x + CHUNK * part.columns;
    part.w = part.dx + CHUNK * part.columns;
    part.dw = part.w + part.columns;
    part.logits = part.dw + part.columns;
    return part;
}

static void chunk_logits(const chunk *part)
{
    int64_t vocab = part->options->vocab, columns = part->columns;
    for (int64_t i = 0; i < part->count; i++)
        fr_load_input(part->call, X, part->first + i, part->x + i * columns);
    for (int64_t v = 0; v < vocab; v++) {
        fr_load_input(part->call, HEAD, v, part->w);
        for (int64_t i = 0; i < part->count; i++) {
            double logit = fr_dot(part->x + i * columns, part->w, columns);
            part->logits[i * vocab + v] = fr_softcap(logit, part->options->softcap);
        }
    }
}

static double log_sum_exp(const double *z, int64_t count)
{
    double largest = z[0], sum = 0;
    for (int64_t v = 1; v < count; v++)
        largest = z[v] > largest ? z[v] : largest;
    for (int64_t v = 0; v < count; v++)
        sum += exp(z[v] - largest);
    return largest + log(sum);
}

double fr_softcap(double logit, double softcap)
{
    return softcap > 0 ? softcap * tanh(logit / softcap) : logit;
}

double fr_cross_entropy_row(double *z, int64_t count, int32_t target, double softcap, double scale)
{
    if (target < 0) {
        fr_zero(z, count);
        return 0;
    }
    double total = log_sum_exp(z, count), nats = total - z[target];
    for (int64_t v = 0; v < count; v++) {
        double slope = softcap > 0 ? 1 - (z[v] / softcap) * (z[v] / softcap) : 1;
        z[v] = scale * (exp(z[v] - total) - (v == target ? 1 : 0)) * slope;
    }
    return nats;
}

/* Nats of one token; its logits z become d l. */
static double token_loss(const chunk *part, int32_t target, double *z)
{
    return fr_cross_entropy_row(z, part->options->vocab, target, part->options->softcap, part->scale);
}

/* d x of the chunk's tokens and the chunk's share of d W. */
static void chunk_gradients(const chunk *part)
{
    const fr_call *call = part->call;
    int64_t vocab = part->options->vocab, columns = part->columns;
    bool add = call->accumulate[HEAD] || part->first > 0;
    fr_zero(part->dx, CHUNK * columns);
    for (int64_t v = 0; v < vocab; v++) {
        fr_load_input(call, HEAD, v, part->w);
        fr_zero(part->dw, columns);
        for (int64_t i = 0; i < part->count; i++) {
            fr_axpy(part->dx + i * columns, part->logits[i * vocab + v], part->w, columns);
            fr_axpy(part->dw, part->logits[i * vocab + v], part->x + i * columns, columns);
        }
        if (call->grad_in[HEAD])
            fr_store_doubles(call->grad_in[HEAD], call->in_dtype[HEAD], v * columns, columns, part->dw, add);
    }
    for (int64_t i = 0; i < part->count; i++)
        fr_store_grad(call, X, part->first + i, part->dx + i * columns);
}

static void clear_padding(const chunk *part)
{
    const fr_call *call = part->call;
    fr_zero(part->dw, part->columns);
    for (int64_t v = part->options->vocab; v < call->node->in[HEAD]->rows && !call->accumulate[HEAD]; v++)
        fr_store_grad(call, HEAD, v, part->dw);
}

static void head_loss_forward(const fr_call *call)
{
    const int32_t *targets = call->in[TARGETS];
    bool train = call->grad_in[X] || call->grad_in[HEAD];
    chunk part = lay_out_scratch(call);
    double sum = 0;
    for (; part.first < call->tokens; part.first += CHUNK) {
        part.count = call->tokens - part.first < CHUNK ? call->tokens - part.first : CHUNK;
        chunk_logits(&part);
        for (int64_t i = 0; i < part.count; i++) {
            double nats = token_loss(&part, targets[part.first + i], part.logits + i * part.options->vocab);
            fr_store_output(call, 0, part.first + i, &nats);
            sum += nats;
        }
        if (train)
            chunk_gradients(&part);
    }
    sum *= part.scale;
    fr_store_output(call, 1, 0, &sum);
    clear_padding(&part);
}

const fr_op fr_op_head_loss = {
    .name = "head_loss",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 2,
    .infer = head_loss_infer,
    .continues = true,
    .no_gradient = 1u << TARGETS | 1u << SCALE,
    .detached_outputs = 3,
    .backward_in_forward = true,
    .ids_range = head_loss_ids_range,
    .flops = fr_head_flops,
    .flops_full = fr_head_flops_full,
    .reference = {{"head_loss", FR_FORWARD, "head_loss_reference", head_loss_forward, head_loss_scratch,
                   NULL}},
};

fr_tensor *fr_head_loss(fr_graph *g, fr_tensor *x, fr_tensor *head, fr_tensor *targets,
                        fr_head_options options)
{
    fr_tensor *scale = fr_input_scalar(g, "loss_scale");
    options.weight = options.weight == 0 ? 1 : options.weight;
    fr_tensor *nats =
        fr_apply(g, &fr_op_head_loss, (fr_tensor *[]){x, head, targets, scale}, 4, &options, sizeof options);
    fr_head_name(g, nats->producer->out[0], "nats");
    fr_head_name(g, nats->producer->out[1], "loss");
    return nats;
}
