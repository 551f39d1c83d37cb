/* kernel_case.h: one operator on random data, run by any kernel, for the kernel tests.
 *
 * A kernel_case makes a node by hand (no graph): its tensors, attributes, data and gradients. case_run runs
 * one pass of one kernel on it; case_difference compares two runs. The inputs of a case are the same for
 * every kernel; every output and gradient starts from the same filling, so accumulation and untouched bytes
 * are compared too.
 */
#ifndef KERNEL_CASE_H
#define KERNEL_CASE_H
#include "frontier/cpu.h"
#include "test.h"

typedef struct kernel_case {
    const char *op;
    int64_t rows, T; /* extent */
    int inputs;
    struct {
        int64_t rows, columns; /* rows FR_TOKENS or a number; columns 0: no such input */
        fr_kind kind;
        int64_t ids; /* kind IDS: ids below this, -1 among them when negative_ids */
    } in[FR_MAX_INPUTS];
    bool negative_ids;
    const void *attributes;
    double spread; /* standard deviation of the data; 0 = 1 */
} kernel_case;

typedef struct case_data {
    const kernel_case *what;
    bool bf16, accumulate;
    const fr_op *op;
    fr_node node;
    fr_tensor in[FR_MAX_INPUTS], out[FR_MAX_OUTPUTS];
    fr_call call;
    void *out_data[FR_MAX_OUTPUTS], *grad_in[FR_MAX_INPUTS];
    void *constants, *scratch;
    bool stream_bf16;
} case_data;

static inline const fr_op *case_op(const char *name)
{
    int count;
    const fr_op *const *ops = fr_ops(&count);
    for (int i = 0; i < count; i++)
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    return NULL;
}

static inline fr_dtype case_dtype(const case_data *d, fr_kind kind)
{
    if (kind == FR_KIND_IDS)
        return FR_I32;
    return d->bf16 && (kind == FR_KIND_ACTIVATION || (kind == FR_KIND_STREAM && d->stream_bf16)) ? FR_BF16
                                                                                                 : FR_F32;
}

static inline int64_t case_elements(const case_data *d, const fr_tensor *t)
{
    return (t->rows == FR_TOKENS ? d->call.tokens : t->rows) * t->columns;
}

/* Normal numbers of the given deviation, depending on salt and place alone. */
static inline void *case_fill(const case_data *d, const fr_tensor *t, fr_dtype dtype, uint64_t salt,
                              double deviation)
{
    int64_t count = case_elements(d, t);
    void *data = fr_allocate((size_t)(count + 64) * 8);
    for (int64_t i = 0; i < count; i++) {
        double value = deviation * fr_rng_normal_at(7, salt, (uint64_t)i);
        fr_store_doubles(data, dtype, i, 1, &value, false);
    }
    return data;
}

static inline void *case_ids(const case_data *d, int64_t ids)
{
    int32_t *data = fr_allocate((size_t)(d->call.tokens + 16) * sizeof *data);
    for (int64_t i = 0; i < d->call.tokens; i++)
        data[i] = d->what->negative_ids && i % 5 == 0
                      ? -1
                      : (int32_t)(fr_rng_at(9, 1, (uint64_t)i) % (uint64_t)ids);
    return data;
}

/* How wide the numbers are: fp32 everywhere, bf16 activations, or bf16 stream too. */
typedef enum case_width { CASE_F32, CASE_BF16, CASE_BF16_STREAM } case_width;

static inline void case_init(case_data *d, const kernel_case *what, case_width width, bool accumulate)
{
    *d = (case_data){
        .what = what, .bf16 = width != CASE_F32, .accumulate = accumulate, .op = case_op(what->op)};
    d->stream_bf16 = width == CASE_BF16_STREAM;
    d->call.extent = (fr_extent){what->rows, what->T};
    d->call.tokens = what->rows * what->T;
    d->node = (fr_node){
        .op = d->op, .inputs = what->inputs, .outputs = d->op->outputs, .attributes = what->attributes};
    double spread = what->spread == 0 ? 1 : what->spread;
    for (int i = 0; i < what->inputs; i++) {
        d->in[i] = (fr_tensor){.name = "in",
                               .kind = what->in[i].kind,
                               .rows = what->in[i].rows,
                               .columns = what->in[i].columns,
                               .parameter = -1};
        if (!what->in[i].columns)
            continue;
        d->node.in[i] = &d->in[i];
        d->call.in_dtype[i] = case_dtype(d, d->in[i].kind);
        d->call.in[i] = d->call.in_dtype[i] == FR_I32
                            ? case_ids(d, what->in[i].ids)
                            : case_fill(d, &d->in[i], d->call.in_dtype[i], (uint64_t)i, spread);
    }
    for (int o = 0; o < d->op->outputs; o++) {
        d->out[o] = (fr_tensor){.name = "out", .parameter = -1};
        d->node.out[o] = &d->out[o];
    }
    fr_error error = {0};
    CHECK_OK(d->op->infer(&d->node, &error));
    for (int o = 0; o < d->op->outputs; o++)
        d->call.out_dtype[o] = case_dtype(d, d->out[o].kind);
    d->call.node = &d->node;
    if (d->op->constants) {
        fr_constants want = {0};
        d->op->constants(&d->node, d->call.extent, &want);
        d->constants = fr_allocate(want.bytes + 1);
        d->op->fill_constants(&want, d->constants);
        d->call.constants = d->constants;
    }
}

/* Runs a pass. `saved`: a finished forward run whose outputs the backward pass may read. */
static inline void case_run(case_data *d, const fr_kernel *kernel, const case_data *saved, fr_pool *pool)
{
    bool gradients = kernel->pass == FR_BACKWARD || d->op->backward_in_forward;
    for (int o = 0; o < d->op->outputs; o++) {
        d->out_data[o] = case_fill(d, &d->out[o], d->call.out_dtype[o], 20 + (uint64_t)o, 1);
        d->call.out[o] = saved ? saved->out_data[o] : d->out_data[o];
        d->call.grad_out[o] = kernel->pass == FR_BACKWARD && !(d->op->detached_outputs >> o & 1)
                                  ? case_fill(d, &d->out[o], d->call.out_dtype[o], 30 + (uint64_t)o, 1)
                                  : NULL;
    }
    for (int i = 0; i < d->node.inputs && gradients; i++) {
        if (!d->node.in[i] || d->op->no_gradient >> i & 1)
            continue;
        d->grad_in[i] = case_fill(d, &d->in[i], d->call.in_dtype[i], 40 + (uint64_t)i, 1);
        d->call.grad_in[i] = d->grad_in[i];
        d->call.accumulate[i] = d->accumulate;
    }
    size_t bytes = kernel->scratch ? kernel->scratch(&d->call) : 0;
    d->scratch = fr_allocate(bytes + 64);
    memset(d->scratch, 0xff, bytes); /* scratch is not promised to be zero: NaN everywhere */
    d->call.scratch = d->scratch;
    d->call.pool = pool;
    kernel->run(&d->call);
    for (size_t i = 0; i < 64; i++) /* nor may a kernel write behind it */
        if (((unsigned char *)d->scratch)[bytes + i])
            test_fail(__FILE__, __LINE__, "a kernel wrote behind its scratch");
}

static inline void case_release(case_data *d)
{
    for (int i = 0; i < FR_MAX_INPUTS; i++) {
        fr_deallocate((void *)(uintptr_t)d->call.in[i]);
        fr_deallocate(d->grad_in[i]);
    }
    for (int o = 0; o < FR_MAX_OUTPUTS; o++) {
        fr_deallocate(d->out_data[o]);
        fr_deallocate((void *)(uintptr_t)d->call.grad_out[o]);
    }
    fr_deallocate(d->constants);
    fr_deallocate(d->scratch);
}

/* Largest difference in units of the root mean square of `want` (at least 1e-3); NaN on one side only is
 * infinite. */
static inline double data_difference(const void *got, const void *want, fr_dtype dtype, int64_t count)
{
    double squares = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        double a, b;
        fr_load_doubles(got, dtype, i, 1, &a);
        fr_load_doubles(want, dtype, i, 1, &b);
        if (isnan(a) != isnan(b))
            return INFINITY;
        if (isnan(a))
            continue;
        squares += b * b;
        largest = fabs(a - b) > largest ? fabs(a - b) : largest;
    }
    double scale = sqrt(squares / (double)(count ? count : 1));
    return largest / (scale > 1e-3 ? scale : 1e-3);
}

/* The largest over everything a pass writes. */
static inline double case_difference(const case_data *got, const case_data *want, fr_pass pass,
                                     const char **where)
{
    double largest = 0;
    const char *const grads[] = {"grad 0", "grad 1", "grad 2", "grad 3",
                                 "grad 4", "grad 5", "grad 6", "grad 7"};
    *where = "";
    for (int o = 0; o < got->op->outputs && pass == FR_FORWARD; o++) {
        double x = data_difference(got->out_data[o], want->out_data[o], got->call.out_dtype[o],
                                   case_elements(got, &got->out[o]));
        if (x > largest) {
            largest = x;
            *where = o ? "out 1" : "out 0";
        }
    }
    for (int i = 0; i < got->node.inputs; i++) {
        if (!got->grad_in[i])
            continue;
        double x = data_difference(got->grad_in[i], want->grad_in[i], got->call.in_dtype[i],
                                   case_elements(got, &got->in[i]));
        if (x > largest) {
            largest = x;
            *where = grads[i];
        }
    }
    return largest;
}

static inline bool same_bytes(const void *a, const void *b, fr_dtype dtype, int64_t count)
{
    return (!a && !b) || memcmp(a, b, fr_dtype_bytes(dtype) * (size_t)count) == 0;
}

static inline bool case_same_bits(const case_data *a, const case_data *b, fr_pass pass)
{
    bool same = true;
    for (int o = 0; o < a->op->outputs && pass == FR_FORWARD; o++)
        same = same &&
               same_bytes(a->out_data[o], b->out_data[o], a->call.out_dtype[o], case_elements(a, &a->out[o]));
    for (int i = 0; i < a->node.inputs; i++)
        same = same &&
               same_bytes(a->grad_in[i], b->grad_in[i], a->call.in_dtype[i], case_elements(a, &a->in[i]));
    return same;
}

static inline const fr_kernel *case_find(const fr_kernel_table *table, const char *op, fr_pass pass,
                                         const fr_call *call)
{
    for (int i = table->count - 1; i >= 0; i--)
        if (strcmp(table->kernels[i]->op, op) == 0 && table->kernels[i]->pass == pass &&
            (!table->kernels[i]->accepts || table->kernels[i]->accepts(call)))
            return table->kernels[i];
    return NULL;
}
#endif
