/* Names of the rules. Messages quote them, `nki rules` lists them, kernels' authors search for them: a
 * name stays. One line a rule, in the order of rules.c, which has each rule's text, usual fix, and an
 * example that breaks it. */
#ifndef NEURON_RULES_H
#define NEURON_RULES_H

#define FR_NEURON_RULES(RULE)                                                                                \
    RULE(access_pattern)                                                                                     \
    RULE(accumulate_start)                                                                                   \
    RULE(accumulator)                                                                                        \
    RULE(activation_range)                                                                                   \
    RULE(both_inputs_psum)                                                                                   \
    RULE(capacity)                                                                                           \
    RULE(descriptor_mode)                                                                                    \
    RULE(dma_compute_sources)                                                                                \
    RULE(dma_transpose_shape)                                                                                \
    RULE(dtype)                                                                                              \
    RULE(dtype_match)                                                                                        \
    RULE(elements_match)                                                                                     \
    RULE(engine)                                                                                             \
    RULE(engine_memory)                                                                                      \
    RULE(gather)                                                                                             \
    RULE(exchange)                                                                                           \
    RULE(generation)                                                                                         \
    RULE(index_bounds)                                                                                       \
    RULE(indirect)                                                                                           \
    RULE(matmul_dtypes)                                                                                      \
    RULE(matmul_shape)                                                                                       \
    RULE(matmul_tile)                                                                                        \
    RULE(mx_layout)                                                                                          \
    RULE(operand_memory)                                                                                     \
    RULE(operator)                                                                                           \
    RULE(operator_engine)                                                                                    \
    RULE(operator_kind)                                                                                      \
    RULE(other_core)                                                                                         \
    RULE(out_of_bounds)                                                                                      \
    RULE(partition_start)                                                                                    \
    RULE(partitions_match)                                                                                   \
    RULE(pattern)                                                                                            \
    RULE(per_partition_vector)                                                                               \
    RULE(psum_bank)                                                                                          \
    RULE(reduce_axis)                                                                                        \
    RULE(register)                                                                                           \
    RULE(shuffle_mask)                                                                                       \
    RULE(size_limit)                                                                                         \
    RULE(transpose_shape)                                                                                    \
    RULE(transpose_slots)                                                                                    \
    RULE(uninitialised_read)                                                                                 \
    RULE(value)

#define FR_NEURON_RULE_ID(name) FR_NEURON_RULE_##name,
typedef enum fr_neuron_rule_id { FR_NEURON_RULES(FR_NEURON_RULE_ID) FR_NEURON_RULE_COUNT } fr_neuron_rule_id;
#undef FR_NEURON_RULE_ID

#endif
