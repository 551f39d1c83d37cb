/* Limits that the compute instructions share: which operators an instruction takes on which engine, and the commands of
 * the accumulator registers. Each function refuses with the rule that was broken; positions are those of arguments.
 */
#ifndef NEURON_LEGALITY_H
#define NEURON_LEGALITY_H
#include "neuron/neuron_internal.h"
#include "neuron/operators.h"

typedef enum fr_neuron_takes {
    FR_NEURON_TAKES_BINARY = 1,
    FR_NEURON_TAKES_UNARY = 2,
    FR_NEURON_TAKES_BITS = 4,      /* bitvec operators as well as arithmetic ones */
    FR_NEURON_TAKES_REDUCTIONS = 8 /* only operators that are legal in a reduction */
} fr_neuron_takes;

static inline fr_neuron_operator fr_neuron_operator_of(const fr_neuron_call *call, int which)
{
    return (fr_neuron_operator)call->argument[which].number; /* FR_NEURON_NO_OPERATOR when absent */
}

/* The operator exists on this chip and engine and is of a kind in `takes`. An absent one passes. */
fr_status fr_neuron_check_operator(const fr_neuron *core, const fr_neuron_call *call, int which,
                                   fr_neuron_engine engine, uint32_t takes, fr_error *error);
/* ... is one of these. */
fr_status fr_neuron_operator_among(const fr_neuron *core, const fr_neuron_call *call, int which,
                                   const fr_neuron_operator *allowed, int count, fr_error *error);
/* What an operator asks of the tiles: integers for bitvec operators, anything but packed numbers for others. */
fr_status fr_neuron_operator_dtypes(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_operator op,
                                    const int *tiles, int count, fr_error *error);
/* The scalar beside an operator: a number or a vector; fp32, or integers for bitvec operators; none for unary ones. */
fr_status fr_neuron_operator_scalar(const fr_neuron *core, const fr_neuron_call *call, int op, int scalar,
                                    int like, fr_error *error);

/* A number argument that must be whole and within bounds (FR_ANSWER_NO, rule `value`). */
fr_status fr_neuron_whole_within(const fr_neuron *core, const fr_neuron_call *call, int which, double least,
                                 double most, fr_error *error);
bool fr_neuron_float_dtype(fr_neuron_dtype dtype);
/* All of these operands are 32-bit integers in SBUF. */
bool fr_neuron_all_words(const fr_neuron_call *call, const int *which, int count);
/* The issue floor of the engine, for formulas that add to it. */
double fr_neuron_floored(const fr_neuron *core, fr_neuron_engine engine, double cycles);
/* Vector's faster modes of one-input instructions: N / 4, N / 2 or N (tensor_copy has the table). */
double fr_neuron_stream_cycles(const fr_neuron *core, const fr_neuron_call *call, int dst, int src,
                               fr_neuron_engine engine);

/* From generation 3 on Tensor puts the float8 numbers it transposes into slots of 16 bits. */
fr_status fr_neuron_transposed_slots(const fr_neuron *core, const fr_neuron_call *call, int which,
                                     fr_error *error);

#endif
