/* The list of built-in operators: what tests, fuzzers and exporters walk so that none is forgotten. */
#include "graph/ops/ops.h"

/* clang-format off */
static const fr_op *const built_in[] = {
    &fr_op_embed, &fr_op_embed_positions,
    &fr_op_rms_norm, &fr_op_layer_norm,
    &fr_op_linear, &fr_op_add_bias, &fr_op_rotary, &fr_op_attention,
    &fr_op_relu_squared, &fr_op_leaky_relu_squared, &fr_op_gelu, &fr_op_swiglu,
    &fr_op_add, &fr_op_blend, &fr_op_add_scaled,
    &fr_op_smear, &fr_op_two_tap, &fr_op_value_gate,
    &fr_op_head_logits, &fr_op_head_loss,
};
/* clang-format on */

const fr_op *const *fr_ops(int *count)
{
    *count = (int)(sizeof built_in / sizeof *built_in);
    return built_in;
}
