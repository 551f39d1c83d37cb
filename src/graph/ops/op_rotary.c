/* rotary: turns pairs of channels of every head by an angle that grows with the position.
 *
 *     angle(t, m) = t * base^(-2m / d)          d = head width, m = 0 .. d/2 - 1, t = position in the row
 *     halves:       channels m and m + d/2, turned by -angle
 *     interleaved:  channels 2m and 2m + 1, turned by +angle
 *     norm:         afterwards every head is scaled to y = gain * z / sqrt(mean(z^2) + eps)
 *
 * A rotation keeps lengths, so its backward is the opposite rotation, and the root mean square may be
 * taken before or after it. The cosines and sines are made once per plan, or once per run where sequences
 * continue: the angle in double, then rounded to fp32, so that positions far beyond those trained on keep
 * exact angles. Per position: d/2 cosines, d/2 sines.
 */
#include "graph/ops/ops.h"

#include <math.h>

static fr_status rotary_infer(fr_node *node, fr_error *error)
{
    const fr_rotary_options *options = node->attributes;
    const fr_tensor *x = node->in[0];
    FR_TRY(fr_node_expect(node, 0, FR_TOKENS, x->columns, error));
    if (options->heads < 1 || x->columns % options->heads || x->columns / options->heads % 2)
        return fr_error_set(error, FR_BAD_USAGE, x->name, NULL,
                            "%lld columns cannot be split into %d heads of even width", (long long)x->columns,
                            options->heads);
    if (!(options->base > 0) || !(options->eps > 0))
        return fr_error_set(error, FR_BAD_USAGE, x->name, NULL, "rotary needs a positive base and eps");
    fr_node_output(node, 0, FR_KIND_ACTIVATION, FR_TOKENS, x->columns);
    return FR_OK;
}

/* ---- the table ---- */

static void rotary_constants(const fr_node *node, fr_extent extent, fr_constants *want)
{
    const fr_rotary_options *options = node->attributes;
    int64_t width = node->in[0]->columns / options->heads;
    want->bytes = (size_t)extent.T * (size_t)width * sizeof(float);
    want->key[0] = (double)extent.T;
    want->key[1] = (double)width;
    want->key[2] = options->base;
}

static void rotary_fill_constants(const fr_constants *want, void *data)
{
    int64_t T = (int64_t)want->key[0], half = (int64_t)want->key[1] / 2;
    float *row = data;
    for (int64_t m = 0; m < half; m++) {
        double frequency = pow(want->key[2], -(double)m / (double)half);
        for (int64_t t = 0; t < T; t++) {
            double angle = (double)(want->positions ? want->positions[t] : t) * frequency;
            row[t * 2 * half + m] = (float)cos(angle);
            row[t * 2 * half + half + m] = (float)sin(angle);
        }
    }
}

/* ---- the kernels ---- */

static size_t rotary_scratch(const fr_call *call)
{
    return 2 * (size_t)call->node->in[0]->columns * sizeof(double);
}

/* Turns one head in place; `direction` -1 turns back. */
static void rotate(double *head, const float *table, int64_t half, bool interleaved, double direction)
{
    for (int64_t m = 0; m < half; m++) {
        double cosine = (double)table[m], sine = (double)table[half + m] * direction;
        double *a = head + (interleaved ? 2 * m : m), *b = interleaved ? a + 1 : a + half;
        double first = *a, second = *b;
        if (interleaved)
            sine = -sine;
        *a = first * cosine + second * sine;
        *b = second * cosine - first * sine;
    }
}

static void rotary_forward(const fr_call *call)
{
    const fr_rotary_options *options = call->node->attributes;
    int64_t columns = call->node->in[0]->columns, width = columns / options->heads;
    double *row = call->scratch;
    for (int64_t t = 0; t < call->tokens; t++) {
        const float *table = (const float *)call->constants + fr_call_constants_row(call, t) * width;
        fr_load_input(call, 0, t, row);
        for (double *head = row; head < row + columns; head += width) {
            rotate(head, table, width / 2, options->interleaved, 1);
            double scale = options->gain / sqrt(fr_dot(head, head, width) / (double)width + options->eps);
            for (int64_t c = 0; c < width && options->norm; c++)
                head[c] *= scale;
        }
        fr_store_output(call, 0, t, row);
    }
}

/* Gradient of y = gain * z / rms(z): z becomes y / gain, dy becomes d z. */
static void unnormalize(double *z, double *dy, int64_t width, const fr_rotary_options *options)
{
    double r = 1 / sqrt(fr_dot(z, z, width) / (double)width + options->eps);
    double mean = r * fr_dot(z, dy, width) / (double)width;
    for (int64_t c = 0; c < width; c++)
        dy[c] = options->gain * r * (dy[c] - r * z[c] * mean);
}

static void rotary_backward(const fr_call *call)
{
    const fr_rotary_options *options = call->node->attributes;
    int64_t columns = call->node->in[0]->columns, width = columns / options->heads;
    double *x = call->scratch, *dy = x + columns;
    for (int64_t t = 0; t < call->tokens; t++) {
        const float *table = (const float *)call->constants + t % call->extent.T * width;
        fr_load_input(call, 0, t, x);
        fr_load_grad(call, 0, t, dy);
        for (int64_t h = 0; h < columns; h += width) {
            rotate(x + h, table, width / 2, options->interleaved, 1);
            if (options->norm)
                unnormalize(x + h, dy + h, width, options);
            rotate(dy + h, table, width / 2, options->interleaved, -1);
        }
        fr_store_grad(call, 0, t, dy);
    }
}

const fr_op fr_op_rotary = {
    .name = "rotary",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .infer = rotary_infer,
    .continues = true,
    .keeps_inputs = 1,
    .constants = rotary_constants,
    .fill_constants = rotary_fill_constants,
    .reference = {{"rotary", FR_FORWARD, "rotary_forward_reference", rotary_forward, rotary_scratch, NULL},
                  {"rotary", FR_BACKWARD, "rotary_backward_reference", rotary_backward, rotary_scratch,
                   NULL}},
};

fr_tensor *fr_rotary(fr_graph *g, fr_tensor *x, fr_rotary_options options)
{
    options.eps = options.eps == 0 ? FR_DEFAULT_EPS : options.eps;
    options.gain = options.gain == 0 ? 1 : options.gain;
    return fr_apply(g, &fr_op_rotary, (fr_tensor *[]){x}, 1, &options, sizeof options);
}
