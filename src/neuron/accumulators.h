/* The accumulator registers: one fp32 a lane, a set in Scalar and a set in Vector, each shared by several instructions.
 *
 * A reduce command says what happens before and during an instruction: reset them, add to them, both, load them first,
 * or nothing. Vector's `idle` leaves them in an unknown state (its documentation says so), which a later `reduce` or
 * read-out must not see: refused. A lane is an absolute partition of the instruction's input.
 */
#ifndef NEURON_ACCUMULATORS_H
#define NEURON_ACCUMULATORS_H
#include "neuron/legality.h"
#include "neuron/streams.h"

typedef enum fr_neuron_reduce {
    FR_NEURON_REDUCE_IDLE,
    FR_NEURON_REDUCE_RESET,
    FR_NEURON_REDUCE_ADD, /* "reduce" */
    FR_NEURON_REDUCE_RESET_ADD,
    FR_NEURON_REDUCE_LOAD_ADD,
    FR_NEURON_REDUCE_COMMANDS
} fr_neuron_reduce;

/* Positions of the arguments; -1 for those an instruction lacks. */
typedef struct fr_neuron_accumulation {
    int command, result, start, input;
    fr_neuron_operator op;
    uint32_t allowed; /* bit 1 << command */
} fr_neuron_accumulation;

static inline fr_neuron_reduce fr_neuron_reduce_of(const fr_neuron_call *call,
                                                   const fr_neuron_accumulation *a)
{
    return a->command < 0 ? FR_NEURON_REDUCE_RESET_ADD : (fr_neuron_reduce)call->argument[a->command].number;
}
static inline bool fr_neuron_accumulates(const fr_neuron_call *call, const fr_neuron_accumulation *a)
{
    return fr_neuron_reduce_of(call, a) >= FR_NEURON_REDUCE_ADD;
}

/* The command is one of the allowed ones; result and start are vectors; start comes exactly with load_reduce. */
fr_status fr_neuron_accumulate_check(const fr_neuron *core, const fr_neuron_call *call,
                                     const fr_neuron_accumulation *a, fr_error *error);
/* Carries out what comes before the instruction's data; *lane is the register of the input's first partition. */
fr_status fr_neuron_accumulate_begin(fr_neuron *core, const fr_neuron_call *call,
                                     const fr_neuron_accumulation *a, fr_neuron_engine engine, float **lane,
                                     fr_error *error);
/* Reads the registers out into the result, negated when asked. */
void fr_neuron_accumulate_end(fr_neuron *core, const fr_neuron_call *call, const fr_neuron_accumulation *a,
                              const float *lane, bool negate);

#endif
