/* What the files of the NeuronCore share, and all that the file of an instruction may use.
 *
 * An instruction file has a static check, execute and price, and one fr_neuron_instruction that joins them
 * with the words of its documentation; instructions/tensor_copy.c is the model to follow. By the time
 * `check` is called, fr_neuron_issue has made sure of what holds for every instruction (issue.c): required
 * arguments are there, views lie inside their tensors, start partitions are legal, no operand is in a
 * memory its engine cannot reach, operands that are only read hold data. `check` adds what this
 * instruction asks for, refusing with fr_neuron_refuse; `execute` computes and must not fail for reasons
 * that `check` could have seen: a refused call changes nothing. Afterwards every FR_NEURON_WRITE operand
 * counts as written; an instruction that writes a part of an operand (kind UPDATE) says which with
 * fr_neuron_wrote.
 *
 * Data is read and written a partition at a time through lanes: rows of fp32 (fr_neuron_row,
 * fr_neuron_put_row) or raw bytes (fr_neuron_raw, fr_neuron_put_raw), whatever the strides and dtype of
 * the view. */
#ifndef NEURON_INTERNAL_H
#define NEURON_INTERNAL_H
#include "frontier/neuron.h"
#include "neuron/rules.h"

/* ---- instruction files: documentation and arguments ---------------------------------------------- */

#define FR_NEURON_ON(engine) (1u << (engine))
#define FR_NEURON_IN(memory) (1u << (memory))
#define FR_NEURON_OF(dtype) (1u << (dtype))
enum {
    FR_NEURON_ON_CHIP = FR_NEURON_IN(FR_NEURON_SBUF) | FR_NEURON_IN(FR_NEURON_PSUM),
    FR_NEURON_INTEGERS = FR_NEURON_OF(FR_NEURON_INT8) | FR_NEURON_OF(FR_NEURON_INT16) |
                         FR_NEURON_OF(FR_NEURON_INT32) | FR_NEURON_OF(FR_NEURON_UINT8) |
                         FR_NEURON_OF(FR_NEURON_UINT16) | FR_NEURON_OF(FR_NEURON_UINT32) |
                         FR_NEURON_OF(FR_NEURON_BOOL),
    FR_NEURON_PACKED = FR_NEURON_OF(FR_NEURON_FLOAT8_E4M3FN_X4) | FR_NEURON_OF(FR_NEURON_FLOAT8_E5M2_X4) |
                       FR_NEURON_OF(FR_NEURON_FLOAT4_E2M1FN_X4)
};

/* The engine an instruction always runs on. */
fr_neuron_engine fr_neuron_on_tensor(const fr_neuron *core, const fr_neuron_call *call);
fr_neuron_engine fr_neuron_on_vector(const fr_neuron *core, const fr_neuron_call *call);
fr_neuron_engine fr_neuron_on_scalar(const fr_neuron *core, const fr_neuron_call *call);
fr_neuron_engine fr_neuron_on_gpsimd(const fr_neuron *core, const fr_neuron_call *call);
fr_neuron_engine fr_neuron_on_sync(const fr_neuron *core, const fr_neuron_call *call);
fr_neuron_engine fr_neuron_on_dma(const fr_neuron *core, const fr_neuron_call *call);

/* The view of argument `which`, or NULL when it is absent or a number. */
static inline const fr_neuron_view *fr_neuron_operand(const fr_neuron_call *call, int which)
{
    const fr_neuron_argument *argument = &call->argument[which];
    return argument->given && argument->is_view ? &argument->view : NULL;
}
static inline fr_neuron_memory fr_neuron_memory_of(const fr_neuron_call *call, int which)
{
    return fr_neuron_tensor_layout(call->argument[which].view.tensor)->memory;
}
static inline bool fr_neuron_in_psum(const fr_neuron_call *call, int which)
{
    return fr_neuron_operand(call, which) && fr_neuron_memory_of(call, which) == FR_NEURON_PSUM;
}

/* ---- refusing ------------------------------------------------------------------------------------ */

/* FR_ANSWER_NO with where "FILE:LINE: instruction", what "rule: values", and the rule's fix as the hint. */
fr_status fr_neuron_refuse(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_rule_id rule,
                           fr_error *error, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* FR_BAD_USAGE for an argument that makes no sense at all: a word that is no choice, a list of a wrong
 * length. */
fr_status fr_neuron_misuse(const fr_neuron *core, const fr_neuron_call *call, fr_error *error,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Common limits. Each takes positions of arguments; one that is absent or a number passes. */
fr_status fr_neuron_same_elements(const fr_neuron *core, const fr_neuron_call *call, int a, int b,
                                  fr_error *error); /* equal partitions and equal elements in each */
fr_status fr_neuron_same_partitions(const fr_neuron *core, const fr_neuron_call *call, int a, int b,
                                    fr_error *error);
fr_status fr_neuron_same_dtype(const fr_neuron *core, const fr_neuron_call *call, int a, int b,
                               fr_error *error);
fr_status fr_neuron_memory_allowed(const fr_neuron *core, const fr_neuron_call *call, int which,
                                   uint32_t memories, fr_error *error); /* FR_NEURON_IN(...) | ... */
fr_status fr_neuron_dtype_allowed(const fr_neuron *core, const fr_neuron_call *call, int which,
                                  uint32_t dtypes, fr_error *error); /* FR_NEURON_OF(...) | ... */
fr_status fr_neuron_arithmetic(const fr_neuron *core, const fr_neuron_call *call, int which,
                               fr_error *error); /* any dtype but the packed ones */
fr_status fr_neuron_not_both_psum(const fr_neuron *core, const fr_neuron_call *call, int a, int b,
                                  fr_error *error);
/* A per-partition vector: [P, 1] with P the partitions of `like`, fp32 (or any arithmetic dtype when
 * !fp32). */
fr_status fr_neuron_column(const fr_neuron *core, const fr_neuron_call *call, int which, int like, bool fp32,
                           fr_error *error);
fr_status fr_neuron_elements_within(const fr_neuron *core, const fr_neuron_call *call, int which,
                                    int64_t least, int64_t most,
                                    fr_error *error); /* elements per partition */
fr_status fr_neuron_generation_at_least(const fr_neuron *core, const fr_neuron_call *call, int generation,
                                        const char *what, fr_error *error);
/* Every element of the view holds data (issue does this for READ operands; UPDATE operands ask here). */
fr_status fr_neuron_holds_data(const fr_neuron *core, const fr_neuron_call *call, int which, fr_error *error);

/* ---- data ---------------------------------------------------------------------------------------- */

enum { FR_NEURON_WALK_DIMS = FR_NEURON_RANK + 2 };

/* Some elements of storage in an order: strides in bytes, outermost first, merged where they can be. */
typedef struct fr_neuron_pattern {
    uint8_t *base;
    int dims, width; /* width: bytes of an element */
    bool contiguous;
    int64_t elements;
    int64_t stride[FR_NEURON_WALK_DIMS], size[FR_NEURON_WALK_DIMS];
} fr_neuron_pattern;
/* Fills dims, sizes, elements and contiguous of a pattern that has a width; strides in bytes. */
void fr_neuron_merge(fr_neuron_pattern *pattern, const int64_t *stride, const int64_t *size, int dims);
void fr_neuron_gather(const fr_neuron_pattern *pattern, void *out); /* all elements, contiguous */
void fr_neuron_scatter(const fr_neuron_pattern *pattern, const void *in);

/* An operand as equal rows, one per partition (HBM: one row, the whole view). A dynamic offset is
 * resolved. */
typedef struct fr_neuron_lanes {
    fr_neuron_pattern row; /* of the first partition */
    int64_t pitch;         /* bytes to the next partition */
    int partitions;
    fr_neuron_dtype dtype;
} fr_neuron_lanes;
fr_neuron_lanes fr_neuron_lanes_of(const fr_neuron *core, const fr_neuron_view *view);

/* Memory of one call, not zeroed, gone after it; NULL when the machine has no more (fr_error_memory). */
void *fr_neuron_scratch(fr_neuron *core, int64_t bytes);
float *fr_neuron_scratch_row(fr_neuron *core, const fr_neuron_lanes *lanes); /* elements of a row, fp32 */

/* Row p as fp32: the storage itself when it is contiguous fp32, else converted into `scratch`. */
const float *fr_neuron_row(const fr_neuron_lanes *lanes, int p, float *scratch);
void fr_neuron_put_row(const fr_neuron_lanes *lanes, int p, const float *row); /* rounds and casts */
/* Where to compute row p of the result: its storage when that is contiguous fp32 and no input overlaps it
 * other than exactly, else `scratch`. fr_neuron_put_row afterwards is needed in both cases and free in the
 * first. */
bool fr_neuron_direct(const fr_neuron_lanes *out, const fr_neuron_lanes *const *inputs, int count);
float *fr_neuron_row_out(const fr_neuron_lanes *out, int p, bool direct, float *scratch);
const void *fr_neuron_raw(const fr_neuron_lanes *lanes, int p, void *scratch); /* row p, bytes as stored */
void fr_neuron_put_raw(const fr_neuron_lanes *lanes, int p, const void *row);
static inline uint8_t *fr_neuron_lane_base(const fr_neuron_lanes *lanes, int p)
{
    return lanes->row.base + p * lanes->pitch;
}

/* An argument that is a constant, a register or a [P, 1] vector, as one fp32 per partition. */
typedef struct fr_neuron_scalars {
    bool varies;
    float constant;
    fr_neuron_lanes lanes;
} fr_neuron_scalars;
fr_neuron_scalars fr_neuron_scalars_of(const fr_neuron *core, const fr_neuron_argument *argument);
float fr_neuron_scalar(const fr_neuron_scalars *scalars, int p);

/* Memory for what the next two note, before anything is changed; issue does it for WRITE operands. */
fr_status fr_neuron_prepare(fr_neuron *core, const fr_neuron_view *view, fr_error *error);
/* All elements of the view now hold data. */
void fr_neuron_wrote(fr_neuron *core, const fr_neuron_view *view);
/* Elements first .. first + count - 1 of partition p of the view (count along the flattened free pattern). */
void fr_neuron_wrote_some(fr_neuron *core, const fr_neuron_view *view, int p, int64_t first, int64_t count);

/* Four numbers packed in one element (x4 dtypes) as fp32: count elements give 4 * count floats; and back. */
void fr_neuron_unpack(float *out, const void *in, fr_neuron_dtype dtype, int64_t count);
void fr_neuron_pack(void *out, const float *in, fr_neuron_dtype dtype, int64_t count);

/* Value of a register or of the index of a dynamic view. */
int64_t fr_neuron_index_value(const fr_neuron_view *view, int64_t which);
int32_t *fr_neuron_register(const fr_neuron_tensor *tensor);

/* Lane registers of the reduce commands: one fp32 per partition, a set in Scalar and a set in Vector, and
 * the state of the random generators; they belong to the selected physical core. */
typedef struct fr_neuron_lane_state {
    float scalar_sum[FR_NEURON_PARTITIONS], vector_sum[FR_NEURON_PARTITIONS];
    bool scalar_known[FR_NEURON_PARTITIONS], vector_known[FR_NEURON_PARTITIONS]; /* a command began the sum */
    uint32_t vector_random[FR_NEURON_PARTITIONS][24], gpsimd_random[FR_NEURON_PARTITIONS][6];
} fr_neuron_lane_state;
fr_neuron_lane_state *fr_neuron_lane_state_of(fr_neuron *core);

/* ---- cost ---------------------------------------------------------------------------------------- */

/* Elements per partition of the argument, the N of cost formulas. */
double fr_neuron_extent(const fr_neuron_call *call, int which);
bool fr_neuron_all_sbuf(const fr_neuron_call *call, const int *which, int count);
/* Operands whose elements have this many bytes and lie contiguously: what the fast modes of Vector ask
 * for. */
bool fr_neuron_narrow(const fr_neuron_call *call, int which, int bytes);
bool fr_neuron_packed_rows(const fr_neuron_call *call, int which);
/* Fills descriptors, bytes, trigger and `dynamic` of a transfer from src to dst: runs of bytes, 64 KiB at
 * most. */
void fr_neuron_price_transfer(const fr_neuron *core, const fr_neuron_view *dst, const fr_neuron_view *src,
                              fr_neuron_cost *cost);
/* The descriptor's position of an instruction in fr_neuron_instructions. */
int fr_neuron_instruction_index(const fr_neuron_instruction *instruction);

#endif
