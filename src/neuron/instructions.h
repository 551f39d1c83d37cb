/* Every instruction, one line each, sorted by name. The file of a family defines its descriptors under these names
 * (instructions/); instructions.c makes the table from this list. Adding an instruction: a file, a line here. */
#ifndef NEURON_INSTRUCTIONS_H
#define NEURON_INSTRUCTIONS_H
#include "frontier/neuron.h"

#define FR_NEURON_INSTRUCTIONS(ENTRY)                                                                        \
    ENTRY(activate2)                                                                                         \
    ENTRY(activation)                                                                                        \
    ENTRY(activation_reduce)                                                                                 \
    ENTRY(affine_select)                                                                                     \
    ENTRY(bn_aggr)                                                                                           \
    ENTRY(bn_stats)                                                                                          \
    ENTRY(core_barrier)                                                                                      \
    ENTRY(dma_compute)                                                                                       \
    ENTRY(dma_copy)                                                                                          \
    ENTRY(dma_transpose)                                                                                     \
    ENTRY(dropout)                                                                                           \
    ENTRY(exponential)                                                                                       \
    ENTRY(iota)                                                                                              \
    ENTRY(local_gather)                                                                                      \
    ENTRY(max8)                                                                                              \
    ENTRY(memset)                                                                                            \
    ENTRY(nc_find_index8)                                                                                    \
    ENTRY(nc_match_replace8)                                                                                 \
    ENTRY(nc_matmul)                                                                                         \
    ENTRY(nc_matmul_mx)                                                                                      \
    ENTRY(nc_n_gather)                                                                                       \
    ENTRY(nc_stream_shuffle)                                                                                 \
    ENTRY(nc_transpose)                                                                                      \
    ENTRY(nonzero_with_count)                                                                                \
    ENTRY(quantize_mx)                                                                                       \
    ENTRY(rand2)                                                                                             \
    ENTRY(rand_get_state)                                                                                    \
    ENTRY(rand_set_state)                                                                                    \
    ENTRY(range_select)                                                                                      \
    ENTRY(reciprocal)                                                                                        \
    ENTRY(register_load)                                                                                     \
    ENTRY(register_move)                                                                                     \
    ENTRY(register_store)                                                                                    \
    ENTRY(rng)                                                                                               \
    ENTRY(scalar_tensor_tensor)                                                                              \
    ENTRY(select_reduce)                                                                                     \
    ENTRY(sendrecv)                                                                                          \
    ENTRY(sequence_bounds)                                                                                   \
    ENTRY(set_rng_seed)                                                                                      \
    ENTRY(tensor_copy)                                                                                       \
    ENTRY(tensor_copy_predicated)                                                                            \
    ENTRY(tensor_partition_reduce)                                                                           \
    ENTRY(tensor_reduce)                                                                                     \
    ENTRY(tensor_scalar)                                                                                     \
    ENTRY(tensor_scalar_cumulative)                                                                          \
    ENTRY(tensor_scalar_reduce)                                                                              \
    ENTRY(tensor_tensor)                                                                                     \
    ENTRY(tensor_tensor_scan)                                                                                \
    ENTRY(topk)

#define FR_NEURON_DECLARE(name) extern const fr_neuron_instruction fr_neuron_i_##name;
FR_NEURON_INSTRUCTIONS(FR_NEURON_DECLARE)
#undef FR_NEURON_DECLARE

#endif
