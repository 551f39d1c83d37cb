/* The rules of the machine, in the order of rules.h. `text` says what holds, `fix` what to do about a
 * message, `example` breaks the rule on trn2 and is run by the tests: tiles a, b, c are 128 x 64 float32
 * in SBUF and hold data; nl, nisa as in a kernel. */
#include "neuron/rules.h"
#include "frontier/neuron.h"

static const fr_neuron_rule RULES[FR_NEURON_RULE_COUNT] = {
    [FR_NEURON_RULE_accumulate_start] =
        {"accumulate_start",
         "A matmul may add only to PSUM that a matmul began: memory that was never written, or that memset "
         "or a copy "
         "filled, cannot be added to before generation 4.",
         "use accumulate=False for the first matmul of a sum, or leave accumulate out",
         "p = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)\n"
         "nisa.nc_matmul(dst=p, stationary=a, moving=b, accumulate=True)"},
    [FR_NEURON_RULE_access_pattern] =
        {"access_pattern",
         "Inside a partition an engine walks at most four dimensions, and every size is at least 1.",
         "split the instruction, or copy the tile into a simpler layout first",
         "t = nl.ndarray((128, 4, 4, 4, 4), dtype=nl.float32, buffer=nl.sbuf)\n"
         "nisa.memset(dst=t, value=0)\n"
         "nisa.tensor_copy(dst=c[:, 0:32],\n"
         "                 src=t.ap([[256, 128], [128, 2], [50, 2], [20, 2], [9, 2], [4, 2]]))"},
    [FR_NEURON_RULE_accumulator] = {"accumulator",
                                    "The accumulator registers are read or added to only after a command "
                                    "began them: reset, reset_reduce or load_reduce; idle on Vector leaves "
                                    "them unknown. reduce_init (imm1) comes with load_reduce alone.",
                                    "begin with reduce_cmd.reset_reduce",
                                    "s = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
                                    "nisa.tensor_scalar_reduce(dst=c, data=a, op0=nl.add, operand0=1.0, "
                                    "reduce_op=nl.add, reduce_res=s,\n"
                                    "                          reduce_cmd=nisa.reduce_cmd.reduce)"},
    [FR_NEURON_RULE_activation_range] =
        {"activation_range",
         "The argument of an activation function lies in the range for which the Scalar engine's table is "
         "valid; outside it the result is invalid on the chip.",
         "bound the argument first (tensor_scalar with maximum or minimum), or use Vector (reciprocal) or "
         "GpSimd (rsqrt)",
         "nisa.activation(dst=c, op=nl.sqrt, data=a, scale=0.0)"},
    [FR_NEURON_RULE_both_inputs_psum] =
        {"both_inputs_psum", "The two tile inputs of a Vector instruction cannot both be in PSUM.",
         "copy one of them to SBUF first",
         "p = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)\n"
         "nisa.tensor_copy(dst=p, src=a)\n"
         "nisa.tensor_tensor(dst=c, data1=p, data2=p, op=nl.add)"},
    [FR_NEURON_RULE_capacity] =
        {"capacity", "A tile with an address lies inside the partitions and bytes that SBUF or PSUM have.",
         "use a smaller tile or another address; free tiles that are no longer needed",
         "t = nl.ndarray((128, 70000), dtype=nl.float32, buffer=nl.sbuf)"},
    [FR_NEURON_RULE_descriptor_mode] = {"descriptor_mode",
                                        "Descriptors made by hardware (dge_mode.hwdge) exist from generation "
                                        "3 on, cannot cast and cannot take a list "
                                        "of rows; a list of rows needs swdge; static descriptors (none) "
                                        "cannot have a dynamic offset; an engine can "
                                        "be named with hwdge only, and is sync or scalar.",
                                        "leave dge_mode out, or pick the mode that allows it",
                                        "h = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.shared_hbm)\n"
                                        "nisa.dma_copy(dst=h, src=a, dge_mode=nisa.dge_mode.hwdge)"},
    [FR_NEURON_RULE_dma_compute_sources] =
        {"dma_compute_sources",
         "dma_compute adds 1 to 16 sources of dst's size with scales of 1; with a list of rows exactly two, "
         "one of "
         "them dst itself, and unique indices.",
         "add fewer sources at a time; scale with tensor_scalar before",
         "h = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)\n"
         "nisa.dma_compute(dst=h, srcs=[a, b], reduce_op=nl.add, scales=[2.0, 1.0])"},
    [FR_NEURON_RULE_dma_transpose_shape] =
        {"dma_transpose_shape",
         "A transposing transfer reverses 2 or 3 axes, or swaps the outer two of 4: (1, 0), (2, 1, 0), (3, "
         "1, 2, 0). By "
         "hardware descriptors it takes 16 rows (or 1, 2, 4, 8, 16 with rows times columns a multiple of "
         "16), at most 128 "
         "columns, 2-byte numbers; by a list of rows a multiple of 16 rows, 16 to 128 uint32 indices per "
         "column.",
         "leave dge_mode out, or transpose in pieces of that shape",
         "t = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)\n"
         "nisa.dma_transpose(dst=t, src=a, axes=(1, 0), dge_mode=nisa.dge_mode.hwdge)"},
    [FR_NEURON_RULE_dtype] = {"dtype", "An operand has one of the dtypes its instruction takes.",
                              "cast with tensor_copy first",
                              "m = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
                              "nisa.memset(dst=m, value=1)\n"
                              "nisa.tensor_copy_predicated(dst=c, src=a, predicate=m)"},
    [FR_NEURON_RULE_dtype_match] = {"dtype_match", "Operands that move bits have the same dtype.",
                                    "give both the same dtype, or cast with tensor_copy",
                                    "t = nl.ndarray((64, 128), dtype=nl.bfloat16, buffer=nl.psum)\n"
                                    "nisa.nc_transpose(dst=t, data=a)"},
    [FR_NEURON_RULE_elements_match] =
        {"elements_match",
         "Operands have the same number of elements, in each partition or, in a transfer, in all.",
         "slice the larger one", "nisa.tensor_copy(dst=c[:, 0:32], src=a)"},
    [FR_NEURON_RULE_engine] = {"engine", "An instruction runs on the engines its documentation lists.",
                               "leave engine out, or name one that runs it",
                               "nisa.memset(dst=c, value=0, engine=nisa.engine.tensor)"},
    [FR_NEURON_RULE_engine_memory] =
        {"engine_memory",
         "Compute engines reach SBUF and PSUM, GpSimd only SBUF, transfers only HBM and SBUF.",
         "move the operand with dma_copy (HBM) or tensor_copy on Vector or Scalar (PSUM) first",
         "h = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)\n"
         "nisa.tensor_copy(dst=h, src=a)"},
    [FR_NEURON_RULE_gather] =
        {"gather",
         "local_gather works in groups of 16 partitions: src_buffer and index have the same partitions, a "
         "multiple of 16; it takes 1, 2, 4, 8, 16 or 32 elements per index and at most 4096 indices a group.",
         "pad the tile to whole groups; split the indices",
         "i = nl.ndarray((128, 4), dtype=nl.uint16, buffer=nl.sbuf)\n"
         "nisa.memset(dst=i, value=0)\n"
         "nisa.local_gather(dst=c, src_buffer=a, index=i, num_elem_per_idx=3)"},
    [FR_NEURON_RULE_exchange] =
        {"exchange",
         "sendrecv and core_barrier are for launches of two cores: both issue their half, with one pipe_id, "
         "dtype and shape.",
         "launch kernel[2], and let both programs reach the same calls in the same order",
         "nisa.sendrecv(src=a, dst=c, send_to_rank=1, recv_from_rank=1, pipe_id=0)"},
    [FR_NEURON_RULE_generation] =
        {"generation", "An instruction or option exists from a generation on: 2 is trn1, 3 trn2, 4 trn3.",
         "choose a machine that has it, or another instruction", "nisa.dma_copy(dst=c, src=a, priority=1)"},
    [FR_NEURON_RULE_index_bounds] =
        {"index_bounds", "A dynamic offset or row number lies inside the tensor it indexes.",
         "clamp the index, or use oob_mode.skip in a transfer",
         "h = nl.ndarray((16, 64), dtype=nl.float32, buffer=nl.shared_hbm)\n"
         "i = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)\n"
         "nisa.memset(dst=i, value=99)\n"
         "nisa.dma_copy(dst=h.ap([[64, 128], [1, 64]], vector_offset=i, indirect_dim=0), src=a)"},
    [FR_NEURON_RULE_indirect] =
        {"indirect", "A list of rows selects rows of a tensor in HBM, in transfers; its indices are in SBUF.",
         "move the tensor to HBM, or gather on chip with nc_n_gather or local_gather",
         "h = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)\n"
         "i = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.shared_hbm)\n"
         "nisa.dma_copy(dst=h.ap([[64, 128], [1, 64]], vector_offset=i, indirect_dim=0), src=a)"},
    [FR_NEURON_RULE_matmul_dtypes] =
        {"matmul_dtypes",
         "Matmul takes float8_e4m3, float8_e5m2, bfloat16, float16, tfloat32 and float32 (float8_e4m3fn from "
         "generation 4 "
         "on). float32 and tfloat32 go only with each other, float8_e4m3 not with float8_e4m3fn; double rows "
         "are float8. "
         "The sum is float32 (bfloat16 too from generation 4 on; the input's dtype when transposing).",
         "cast one operand so that both have the same dtype; give dst float32",
         "h = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
         "nisa.tensor_copy(dst=h, src=b)\n"
         "p = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)\n"
         "nisa.nc_matmul(dst=p, stationary=a, moving=h)"},
    [FR_NEURON_RULE_matmul_shape] =
        {"matmul_shape",
         "dst[M, N] = stationary[K, M] transposed times moving[K, N], with K and M at most 128 and N at most "
         "512 (4096, or "
         "8192 for bfloat16 sums, from generation 4 on). Double rows: K is split as [K/2, 2].",
         "tile the product; put the contraction on the partitions of both operands",
         "p = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)\n"
         "nisa.nc_matmul(dst=p, stationary=a, moving=b)"},
    [FR_NEURON_RULE_matmul_tile] = {"matmul_tile",
                                    "tile_position and tile_size come together. A tile has 64 or 128 rows "
                                    "and columns (32 too from generation 3 "
                                    "on), starts at a multiple of its size, and holds the stationary "
                                    "operand; double rows take no column tiles.",
                                    "give both, with positions that are multiples of the tile's size",
                                    "p = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)\n"
                                    "nisa.nc_matmul(dst=p, stationary=a[0:32, :], moving=b[0:32, :], "
                                    "tile_position=(16, 0), tile_size=(32, 64))"},
    [FR_NEURON_RULE_mx_layout] =
        {"mx_layout",
         "Micro-scaled tiles hold groups of 8 partitions by 4 elements: partitions a multiple of 32, four "
         "numbers packed in an element, and in each quadrant of 32 partitions one row of scales per group, "
         "in 4 partitions that start at 0, 4, 8 or 12.",
         "lay the contraction out over partitions first, then four by four", NULL},
    [FR_NEURON_RULE_operand_memory] = {"operand_memory",
                                       "An operand is in the memory that its instruction asks for.",
                                       "move it there first",
                                       "nisa.nc_matmul(dst=c[0:64, :], stationary=a, moving=b)"},
    [FR_NEURON_RULE_operator] =
        {"operator",
         "An instruction takes the operators that its documentation lists. divide, mod and fmod are on no "
         "NeuronCore.",
         "see `frontier nki isa` for what it takes; divide by multiplying with a reciprocal",
         "nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.divide)"},
    [FR_NEURON_RULE_operator_engine] =
        {"operator_engine",
         "An operator runs on the engines that have it: all on Vector, but power and rsqrt on GpSimd; on "
         "Scalar just multiply and add.",
         "leave engine out",
         "nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.power, engine=nisa.engine.vector)"},
    [FR_NEURON_RULE_operator_kind] = {"operator_kind",
                                      "The operators of an instruction are all bitvec or all arithmetic; "
                                      "bitvec operators take tiles of integers and run on Vector.",
                                      "split the instruction; give the tiles an integer dtype",
                                      "nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.bitwise_and)"},
    [FR_NEURON_RULE_other_core] =
        {"other_core", "A core reaches its own SBUF and PSUM; the other core's only through sendrecv.",
         "exchange tiles with sendrecv, or through shared HBM", NULL},
    [FR_NEURON_RULE_out_of_bounds] = {"out_of_bounds", "A view touches only elements that its tensor has.",
                                      "check slice, offset, strides and sizes",
                                      "nisa.tensor_copy(dst=c, src=a.ap([[64, 128], [1, 64]], offset=8))"},
    [FR_NEURON_RULE_partition_start] = {"partition_start",
                                        "An engine's access to more than 64 partitions starts at 0, to 33 to "
                                        "64 at 0 or 64, to 32 or fewer at 0, 32, 64 "
                                        "or 96.",
                                        "slice at a legal start, or move the rows with a transfer first",
                                        "nisa.tensor_copy(dst=c[0:32, :], src=a[16:48, :])"},
    [FR_NEURON_RULE_partitions_match] =
        {"partitions_match", "Operands of one instruction have the same number of partitions.",
         "slice the larger one; broadcast over partitions with a matmul against ones or nc_stream_shuffle",
         "nisa.tensor_copy(dst=c, src=a[0:64, :])"},
    [FR_NEURON_RULE_pattern] = {"pattern",
                                "An affine pattern is one to four pairs [step, count] whose counts multiply "
                                "to the elements per partition of the tile.",
                                "match the counts to the tile's free size",
                                "nisa.iota(dst=c, pattern=[[1, 32]])"},
    [FR_NEURON_RULE_per_partition_vector] =
        {"per_partition_vector",
         "A scalar that varies by partition is a [P, 1] tile with P the data's partitions.",
         "slice one column: t[:, 0:1]", "nisa.tensor_scalar(dst=c, data=a, op0=nl.add, operand0=b)"},
    [FR_NEURON_RULE_psum_bank] =
        {"psum_bank",
         "A matmul writes inside one bank of PSUM, 2 KiB of each partition, before generation 4.",
         "start the tile at a multiple of 2048 bytes, or split it at the bank's end",
         "p = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum, address=(0, 1920))\n"
         "nisa.nc_matmul(dst=p, stationary=a, moving=b)"},
    [FR_NEURON_RULE_reduce_axis] = {"reduce_axis",
                                    "tensor_reduce reduces the last free axes, without a gap; axis 0, the "
                                    "partitions, cannot be reduced on Vector.",
                                    "transpose first, or reduce over partitions with a matmul against ones",
                                    "s = nl.ndarray((1, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
                                    "nisa.tensor_reduce(dst=s, op=nl.add, data=a[0:1, :], axis=0)"},
    [FR_NEURON_RULE_register] =
        {"register", "A register holds one 32-bit integer, and moves to and from tensors of one element.",
         "use a tensor of shape (1, 1) with a dtype of at most 32 bits",
         "r = nisa.register_alloc(0)\n"
         "nisa.register_load(r, a)"},
    [FR_NEURON_RULE_shuffle_mask] =
        {"shuffle_mask",
         "A shuffle mask has 32 entries: the partition of the source quadrant that each partition takes, 0 "
         "to 31, or 255 to leave it; the source has those partitions.",
         "give 32 entries; 255 leaves a partition alone",
         "nisa.nc_stream_shuffle(dst=c, src=a, shuffle_mask=[40] * 32)"},
    [FR_NEURON_RULE_size_limit] = {"size_limit",
                                   "Elements per partition are within what the instruction takes.",
                                   "split the tile",
                                   "t = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
                                   "nisa.max8(dst=t, src=a[:, 0:4])"},
    [FR_NEURON_RULE_transpose_shape] =
        {"transpose_shape",
         "nc_transpose turns [P, F] into [F, P]: both at most 128 on Tensor (SBUF to PSUM), 32 on Vector.",
         "transpose in blocks, or with dma_transpose",
         "t = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)\n"
         "nisa.nc_transpose(dst=t, data=a, engine=nisa.engine.vector)"},
    [FR_NEURON_RULE_transpose_slots] =
        {"transpose_slots",
         "From generation 3 on Tensor transposes float8 into slots of 16 bits: the numbers of dst lie 2 apart.",
         "make the tile twice as wide, [F, P, 2], and pass [:, :, 0]; or transpose the bytes as bfloat16",
         "t = nl.ndarray((128, 64), dtype=nl.float8_e4m3, buffer=nl.sbuf)\n"
         "p = nl.ndarray((64, 128), dtype=nl.float8_e4m3, buffer=nl.psum)\n"
         "nisa.tensor_copy(dst=t, src=a)\n"
         "nisa.nc_transpose(dst=p, data=t, engine=nisa.engine.tensor)"},
    [FR_NEURON_RULE_uninitialised_read] =
        {"uninitialised_read", "Memory is read only after it was written.",
         "write the whole tile first (memset, dma_copy), or read the part that was written",
         "t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
         "nisa.tensor_copy(dst=c, src=t)"},
    [FR_NEURON_RULE_value] = {"value", "A constant is one that the instruction takes.",
                              "see `frontier nki isa` for what it takes",
                              "t = nl.ndarray((128, 64), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)\n"
                              "nisa.memset(dst=t, value=1)"},
};

const fr_neuron_rule *fr_neuron_rules(int *count)
{
    if (count)
        *count = FR_NEURON_RULE_COUNT;
    return RULES;
}
