/* What is known of each ALU operator: its kind, whether a reduction may use it, which engines have it.
 *
 * Two kinds never mix in one instruction. Arithmetic operators see every element as fp32 whatever its dtype; bitvec
 * operators see raw bits and want integer dtypes. Source: "Supported math operators" of the NKI ISA common fields
 * (0.6 for the list and the reductions, SDK 2.26 for the engines of each).
 */
#ifndef NEURON_OPERATORS_H
#define NEURON_OPERATORS_H
#include "frontier/neuron.h"

typedef struct fr_neuron_operator_facts {
    bool bits;            /* bitvec */
    bool unary;           /* the second operand is not used */
    bool reduces;         /* legal as the operator of a reduction */
    bool compares;        /* gives 1.0 or 0.0 */
    int least_generation; /* 0: no chip has it */
    uint32_t engines;     /* bit 1 << fr_neuron_engine */
} fr_neuron_operator_facts;
const fr_neuron_operator_facts *fr_neuron_operator_facts_of(fr_neuron_operator op);

/* The value a reduction starts from: 0 for sums, 1 for products, the infinities for extremes. */
float fr_neuron_operator_identity(fr_neuron_operator op);
/* One application, the way the rows do it; what sequential instructions (scans) use for rare operators. */
float fr_neuron_operator_apply(fr_neuron_operator op, float a, float b);

#endif
