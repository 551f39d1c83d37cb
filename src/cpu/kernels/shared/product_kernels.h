/* linear and the two heads: operators that are matrix products and little else.
 *
 * Written over a fr_gemm_path (FR_PRODUCT_PATH), so that the same text serves our own products and those of a
 * library: the including file defines FR_PRODUCT_PATH, FR_PRODUCT(name) and FR_PRODUCT_TEXT.
 *
 * Weights are fp32 masters. In bf16 numerics they count as rounded to bf16, either in the prepared copy or
 * while they are packed. Weight gradients are summed in fp32, straight into the caller's vector.
 *
 * The head works in chunks of tokens small enough that a chunk of logits is at most CHUNK_BYTES: product,
 * soft cap, loss and gradient in place, then both gradient products. The loss is summed in order of the
 * tokens, in double.
 */
#include "cpu/kernels/shared/vector_math.h"
#include "cpu/split.h"
#include <math.h>
#include <string.h>

enum { CHUNK_BYTES = 16 << 20 };

/* ---- linear ------------------------------------------------------------------------------------------- */

static fr_operand input_operand(const fr_call *call, int input, bool transpose)
{
    return (fr_operand){.data = call->in[input],
                        .ld = call->node->in[input]->columns,
                        .dtype = call->in_dtype[input],
                        .transpose = transpose};
}

static fr_operand weight_operand(const fr_call *call, bool transpose)
{
    fr_operand weight = input_operand(call, 1, transpose);
    weight.round = call->in_dtype[0] == FR_BF16;
    if (FR_PRODUCT_PATH.packs_rows && call->prepared[1]) {
        weight.data = call->prepared[1];
        weight.dtype = FR_BF16;
    }
    return weight;
}

static const void *weight_panels(const fr_call *call)
{
    return FR_PRODUCT_PATH.packs_rows ? NULL : call->prepared[1];
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t FR_PRODUCT(linear_forward_scratch)(const fr_call *call)
{
    const fr_tensor *w = call->node->in[1];
    return FR_PRODUCT_PATH.workspace(call->tokens, w->rows, w->columns, call->out_dtype[0]);
}

static void FR_PRODUCT(linear_forward)(const fr_call *call)
{
    const fr_tensor *w = call->node->in[1];
    fr_gemm_call product = {.m = call->tokens,
                            .n = w->rows,
                            .k = w->columns,
                            .a = input_operand(call, 0, false),
                            .b = weight_operand(call, true),
                            .packed_b = weight_panels(call),
                            .packed_n = w->rows,
                            .alpha = 1,
                            .c = call->out[0],
                            .c_dtype = call->out_dtype[0],
                            .ldc = w->rows};
    fr_split_gemm(&FR_PRODUCT_PATH, &product, call->pool, call->scratch,
                  FR_PRODUCT(linear_forward_scratch)(call));
}

static size_t FR_PRODUCT(linear_backward_scratch)(const fr_call *call)
{
    const fr_tensor *w = call->node->in[1];
    return larger(FR_PRODUCT_PATH.workspace(call->tokens, w->columns, w->rows, call->in_dtype[0]),
                  FR_PRODUCT_PATH.workspace(w->rows, w->columns, call->tokens, FR_F32));
}

static void FR_PRODUCT(linear_backward)(const fr_call *call)
{
    const fr_tensor *w = call->node->in[1];
    size_t bytes = FR_PRODUCT(linear_backward_scratch)(call);
    fr_operand dy = {.data = call->grad_out[0], .ld = w->rows, .dtype = call->out_dtype[0]};
    fr_gemm_call dx = {.m = call->tokens,
                       .n = w->columns,
                       .k = w->rows,
                       .a = dy,
                       .b = weight_operand(call, false),
                       .alpha = 1,
                       .beta = call->accumulate[0],
                       .c = call->grad_in[0],
                       .c_dtype = call->in_dtype[0],
                       .ldc = w->columns};
    if (call->grad_in[0])
        fr_split_gemm(&FR_PRODUCT_PATH, &dx, call->pool, call->scratch, bytes);
    dy.transpose = true;
    fr_gemm_call dw = {.m = w->rows,
                       .n = w->columns,
                       .k = call->tokens,
                       .a = dy,
                       .b = input_operand(call, 0, false),
                       .alpha = 1,
                       .beta = call->accumulate[1],
                       .c = call->grad_in[1],
                       .c_dtype = FR_F32,
                       .ldc = w->columns};
    if (call->grad_in[1])
        fr_split_gemm(&FR_PRODUCT_PATH, &dw, call->pool, call->scratch, bytes);
}

/* ---- what the heads share --------------------------------------------------------------------------------
 */

/* A chunk of tokens of a head and its logits (fp32, vocab wide). */
typedef struct head_chunk {
    const fr_call *call;
    const fr_head_options *options;
    int64_t first, count;
    float *logits;
    float scale; /* head loss: weight * loss_scale */
} head_chunk;

static int64_t chunk_tokens(const fr_call *call)
{
    const fr_head_options *options = call->node->attributes;
    int64_t most = CHUNK_BYTES / (int64_t)sizeof(float) / options->vocab;
    most = most < 16 ? 16 : most;
    int64_t chunks = (call->tokens + most - 1) / most;
    return chunks ? (call->tokens + chunks - 1) / chunks : 1;
}

static size_t logits_bytes(const fr_call *call)
{
    const fr_head_options *options = call->node->attributes;
    return (sizeof(float) * (size_t)(chunk_tokens(call) * options->vocab) + 63) / 64 * 64;
}

static size_t head_workspace(const fr_call *call)
{
    const fr_head_options *options = call->node->attributes;
    int64_t columns = call->node->in[1]->columns, count = chunk_tokens(call);
    size_t forward = FR_PRODUCT_PATH.workspace(count, options->vocab, columns, FR_F32);
    size_t dx = FR_PRODUCT_PATH.workspace(count, columns, options->vocab, call->in_dtype[0]);
    return larger(forward, larger(dx, FR_PRODUCT_PATH.workspace(options->vocab, columns, count, FR_F32)));
}

static size_t FR_PRODUCT(head_scratch)(const fr_call *call)
{
    return logits_bytes(call) + head_workspace(call);
}

static fr_operand chunk_input(const head_chunk *chunk)
{
    fr_operand x = input_operand(chunk->call, 0, false);
    x.data = (const char *)x.data + fr_dtype_bytes(x.dtype) * (size_t)(chunk->first * x.ld);
    return x;
}

static void head_product(const fr_gemm_call *product, const fr_call *call)
{
    fr_split_gemm(&FR_PRODUCT_PATH, product, call->pool, (char *)call->scratch + logits_bytes(call),
                  head_workspace(call));
}

static void make_logits(const head_chunk *chunk)
{
    const fr_call *call = chunk->call;
    const fr_tensor *w = call->node->in[1];
    int64_t vocab = chunk->options->vocab;
    fr_gemm_call product = {.m = chunk->count,
                            .n = vocab,
                            .k = w->columns,
                            .a = chunk_input(chunk),
                            .b = weight_operand(call, true),
                            .packed_b = weight_panels(call),
                            .packed_n = w->rows,
                            .alpha = 1,
                            .c = chunk->logits,
                            .c_dtype = FR_F32,
                            .ldc = vocab};
    head_product(&product, call);
}

/* From d logits (in chunk->logits): d x of the chunk's tokens, and the chunk's share of d W. */
static void make_gradients(const head_chunk *chunk)
{
    const fr_call *call = chunk->call;
    int64_t vocab = chunk->options->vocab, columns = call->node->in[1]->columns;
    fr_operand dl = {
        .data = chunk->logits, .ld = vocab, .dtype = FR_F32, .round = call->in_dtype[0] == FR_BF16};
    fr_gemm_call dx = {.m = chunk->count,
                       .n = columns,
                       .k = vocab,
                       .a = dl,
                       .b = weight_operand(call, false),
                       .alpha = 1,
                       .beta = call->accumulate[0],
                       .c_dtype = call->in_dtype[0],
                       .ldc = columns};
    if (call->grad_in[0]) {
        dx.c = (char *)call->grad_in[0] + fr_dtype_bytes(dx.c_dtype) * (size_t)(chunk->first * columns);
        head_product(&dx, call);
    }
    dl.transpose = true;
    fr_gemm_call dw = {.m = vocab,
                       .n = columns,
                       .k = chunk->count,
                       .a = dl,
                       .b = chunk_input(chunk),
                       .alpha = 1,
                       .beta = call->accumulate[1] || chunk->first > 0,
                       .c = call->grad_in[1],
                       .c_dtype = FR_F32,
                       .ldc = columns};
    if (call->grad_in[1])
        head_product(&dw, call);
}

static void clear_padding_rows(const fr_call *call)
{
    const fr_head_options *options = call->node->attributes;
    const fr_tensor *w = call->node->in[1];
    if (call->grad_in[1] && !call->accumulate[1])
        memset((float *)call->grad_in[1] + options->vocab * w->columns, 0,
               sizeof(float) * (size_t)((w->rows - options->vocab) * w->columns));
}

/* Soft cap of one row in place. Returns its largest element's lanes. */
static vf cap_row(float *z, int64_t vocab, float cap)
{
    vf largest = v_set(-INFINITY), scale = v_set(cap), inverse = v_set(1 / cap);
    for (int64_t v = 0; v < vocab; v += FR_LANES) {
        int64_t lanes = lanes_left(vocab, v);
        vf x = v_load_part(z + v, lanes);
        if (cap > 0) {
            x = v_mul(scale, v_tanh(v_mul(x, inverse)));
            v_store_part(z + v, x, lanes);
        }
        largest = lanes == FR_LANES ? v_max(largest, x) : v_max_part(largest, x, lanes);
    }
    return largest;
}

/* ---- head_loss ----------------------------------------------------------------------------------------- */

/* log sum exp(z), from the largest element on. */
static float log_sum_exp(const float *z, int64_t vocab, vf largest_lanes)
{
    float largest = v_largest(largest_lanes);
    vf shift = v_set(largest), sum = v_set(0);
    for (int64_t v = 0; v < vocab; v += FR_LANES) {
        int64_t lanes = lanes_left(vocab, v);
        sum = v_add(sum, v_keep(v_exp(v_sub(v_load_part(z + v, lanes), shift)), lanes));
    }
    return largest + logf(v_total(sum));
}

static void logit_gradient(float *z, int64_t vocab, float cap, float total, float scale, int32_t target)
{
    vf shift = v_set(total), factor = v_set(scale), inverse = v_set(cap > 0 ? 1 / cap : 0);
    float slope = cap > 0 ? 1 - z[target] / cap * (z[target] / cap) : 1;
    for (int64_t v = 0; v < vocab; v += FR_LANES) {
        int64_t lanes = lanes_left(vocab, v);
        vf x = v_load_part(z + v, lanes), y = v_mul(x, inverse);
        vf p = v_mul(factor, v_exp(v_sub(x, shift)));
        v_store_part(z + v, v_mul(p, v_fnma(y, y, v_set(1))), lanes);
    }
    z[target] -= scale * slope;
}

static void loss_rows(void *context, int64_t first, int64_t end)
{
    const head_chunk *chunk = context;
    const fr_call *call = chunk->call;
    bool train = call->grad_in[0] || call->grad_in[1];
    int64_t vocab = chunk->options->vocab;
    float cap = (float)chunk->options->softcap, *nats = (float *)call->out[0] + chunk->first;
    for (int64_t i = first; i < end; i++) {
        int32_t target = ((const int32_t *)call->in[2])[chunk->first + i];
        float *z = chunk->logits + i * vocab;
        nats[i] = 0;
        if (target < 0) {
            memset(z, 0, sizeof(float) * (size_t)vocab);
            continue;
        }
        float total = log_sum_exp(z, vocab, cap_row(z, vocab, cap));
        nats[i] = total - z[target];
        if (train)
            logit_gradient(z, vocab, cap, total, chunk->scale, target);
    }
}

static void FR_PRODUCT(head_loss)(const fr_call *call)
{
    head_chunk chunk = {.call = call, .options = call->node->attributes, .logits = call->scratch};
    chunk.scale = (float)(chunk.options->weight * (double)read_scalar(call, 3));
    double sum = 0;
    for (int64_t step = chunk_tokens(call); chunk.first < call->tokens; chunk.first += step) {
        chunk.count = call->tokens - chunk.first < step ? call->tokens - chunk.first : step;
        make_logits(&chunk);
        fr_split_range(call->pool, chunk.count, loss_rows, &chunk);
        make_gradients(&chunk);
    }
    for (int64_t t = 0; t < call->tokens; t++)
        sum += (double)((const float *)call->out[0])[t];
    *(float *)call->out[1] = (float)(sum * (double)chunk.scale);
    clear_padding_rows(call);
}

/* ---- head_logits --------------------------------------------------------------------------------------- */

static void cap_rows(void *context, int64_t first, int64_t end)
{
    const head_chunk *chunk = context;
    for (int64_t i = first; i < end; i++)
        cap_row(chunk->logits + i * chunk->options->vocab, chunk->options->vocab,
                (float)chunk->options->softcap);
}

static void FR_PRODUCT(head_logits_forward)(const fr_call *call)
{
    head_chunk chunk = {.call = call, .options = call->node->attributes};
    for (int64_t step = chunk_tokens(call); chunk.first < call->tokens; chunk.first += step) {
        chunk.count = call->tokens - chunk.first < step ? call->tokens - chunk.first : step;
        chunk.logits = (float *)call->out[0] + chunk.first * chunk.options->vocab;
        make_logits(&chunk);
        fr_split_range(call->pool, chunk.count, cap_rows, &chunk);
    }
}

/* d logits before the cap, from d out and the capped logits. */
static void uncap_rows(void *context, int64_t first, int64_t end)
{
    const head_chunk *chunk = context;
    int64_t vocab = chunk->options->vocab;
    float cap = (float)chunk->options->softcap;
    vf inverse = v_set(cap > 0 ? 1 / cap : 0);
    for (int64_t i = first; i < end; i++) {
        const float *dout = (const float *)chunk->call->grad_out[0] + (chunk->first + i) * vocab;
        const float *out = (const float *)chunk->call->out[0] + (chunk->first + i) * vocab;
        for (int64_t v = 0; v < vocab; v += FR_LANES) {
            int64_t lanes = lanes_left(vocab, v);
            vf y = v_mul(v_load_part(out + v, lanes), inverse);
            v_store_part(chunk->logits + i * vocab + v,
                         v_mul(v_load_part(dout + v, lanes), v_fnma(y, y, v_set(1))), lanes);
        }
    }
}

static void FR_PRODUCT(head_logits_backward)(const fr_call *call)
{
    head_chunk chunk = {.call = call, .options = call->node->attributes, .logits = call->scratch};
    for (int64_t step = chunk_tokens(call); chunk.first < call->tokens; chunk.first += step) {
        chunk.count = call->tokens - chunk.first < step ? call->tokens - chunk.first : step;
        fr_split_range(call->pool, chunk.count, uncap_rows, &chunk);
        make_gradients(&chunk);
    }
    clear_padding_rows(call);
}

const fr_kernel FR_PRODUCT(fr_kernels_product)[5] = {
    {"linear", FR_FORWARD, "linear_forward_" FR_PRODUCT_TEXT, FR_PRODUCT(linear_forward),
     FR_PRODUCT(linear_forward_scratch), floats_only},
    {"linear", FR_BACKWARD, "linear_backward_" FR_PRODUCT_TEXT, FR_PRODUCT(linear_backward),
     FR_PRODUCT(linear_backward_scratch), floats_only},
    {"head_loss", FR_FORWARD, "head_loss_" FR_PRODUCT_TEXT, FR_PRODUCT(head_loss), FR_PRODUCT(head_scratch),
     floats_only},
    {"head_logits", FR_FORWARD, "head_logits_forward_" FR_PRODUCT_TEXT, FR_PRODUCT(head_logits_forward),
     FR_PRODUCT(head_scratch), floats_only},
    {"head_logits", FR_BACKWARD, "head_logits_backward_" FR_PRODUCT_TEXT, FR_PRODUCT(head_logits_backward),
     FR_PRODUCT(head_scratch), floats_only}};
