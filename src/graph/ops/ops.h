/* The built-in operators, and the few lines their reference kernels share.
 *
 * One file per operator: its builder, its shapes, its cost, its forward and backward kernel in plain C.
 * The kernels are the definition of what an operator computes; fast kernels are compared to them. They
 * read rows into doubles, compute in double and write rows back, so they work for every float dtype, and
 * they run on one thread in one fixed order. Their rows live in call->scratch, sized by the kernel's
 * `scratch` function.
 */
#ifndef FRONTIER_GRAPH_OPS_H
#define FRONTIER_GRAPH_OPS_H
#include "frontier/graph.h"

#define FR_DEFAULT_EPS 1.1920929e-07 /* the fp32 machine epsilon */

extern const fr_op fr_op_embed, fr_op_embed_positions, fr_op_rms_norm, fr_op_layer_norm, fr_op_linear,
    fr_op_rotary, fr_op_attention, fr_op_relu_squared, fr_op_gelu, fr_op_swiglu, fr_op_add, fr_op_blend,
    fr_op_add_scaled, fr_op_add_bias, fr_op_smear, fr_op_two_tap, fr_op_leaky_relu_squared, fr_op_value_gate,
    fr_op_head_logits, fr_op_head_loss;

static inline double fr_dot(const double *a, const double *b, int64_t count)
{
    double sum[4] = {0}; /* four chains of additions keep a processor busy */
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int lane = 0; lane < 4; lane++)
            sum[lane] += a[i + lane] * b[i + lane];
    for (; i < count; i++)
        sum[0] += a[i] * b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static inline void fr_axpy(double *to, double factor, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += factor * from[i];
}

static inline void fr_zero(double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = 0;
}

static inline double fr_sigmoid(double x)
{
    return 1 / (1 + __builtin_exp(-x));
}

/* Element 0 of a 1 x 1 input. */
static inline double fr_scalar_input(const fr_call *call, int input)
{
    double value;
    fr_load_doubles(call->in[input], call->in_dtype[input], 0, 1, &value);
    return value;
}

/* Row `row` of an input, an output, or an output's gradient, as doubles. */
static inline void fr_load_input(const fr_call *call, int input, int64_t row, double *to)
{
    int64_t columns = call->node->in[input]->columns;
    fr_load_doubles(call->in[input], call->in_dtype[input], row * columns, columns, to);
}

static inline void fr_load_output(const fr_call *call, int output, int64_t row, double *to)
{
    int64_t columns = call->node->out[output]->columns;
    fr_load_doubles(call->out[output], call->out_dtype[output], row * columns, columns, to);
}

static inline void fr_load_grad(const fr_call *call, int output, int64_t row, double *to)
{
    int64_t columns = call->node->out[output]->columns;
    fr_load_doubles(call->grad_out[output], call->out_dtype[output], row * columns, columns, to);
}

static inline void fr_store_output(const fr_call *call, int output, int64_t row, const double *values)
{
    int64_t columns = call->node->out[output]->columns;
    fr_store_doubles(call->out[output], call->out_dtype[output], row * columns, columns, values, false);
}

/* Writes or adds row `row` of an input's gradient, as the call says; nothing if it is not wanted. */
static inline void fr_store_grad(const fr_call *call, int input, int64_t row, const double *values)
{
    int64_t columns = call->node->in[input]->columns;
    if (call->grad_in[input])
        fr_store_doubles(call->grad_in[input], call->in_dtype[input], row * columns, columns, values,
                         call->accumulate[input]);
}

/* What the two head operators share. */
/* Names an output "logits" the first time, "logits:2" the second, ... */
fr_tensor *fr_head_name(fr_graph *g, fr_tensor *tensor, const char *name);
fr_status fr_head_expect(const fr_node *node, fr_error *error);
double fr_head_flops(const fr_node *node, fr_extent extent, fr_pass pass);
double fr_head_flops_full(const fr_node *node, fr_extent extent, fr_pass pass);

#endif
