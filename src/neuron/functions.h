/* The activation functions of the Scalar engine: formulas, valid ranges, and the table each needs.
 *
 * The engine evaluates piecewise polynomials held in a table; another set of functions means loading another table,
 * 1.29 us. Simple functions (copy, square, relu, prelu, sign, abs) are in every table: set 0. Which other functions
 * share a set AWS does not document, but for names of sets in a runtime guide ("natural_log_exp_and_others",
 * "gelu_and_others", "reciprocal_and_small", "reciprocal_sqrt_and_small"): exp and log share one; the rest is a guess
 * (each family its own set) and marked so.
 */
#ifndef NEURON_FUNCTIONS_H
#define NEURON_FUNCTIONS_H
#include "frontier/neuron.h"

typedef struct fr_neuron_function_facts {
    const char *formula;
    double least, most; /* of the argument; both 0: any */
    bool by_size;       /* the range is that of |x| */
    bool continues;     /* outside it the result is still defined (sin) */
    int table;          /* set of functions, 0 = in every set */
    bool table_guessed;
} fr_neuron_function_facts;
const fr_neuron_function_facts *fr_neuron_function_facts_of(fr_neuron_function function);

/* Position of the first argument for which the engine gives no valid result, or -1. NaN is let through. */
int64_t fr_neuron_function_outside(fr_neuron_function function, const float *x, int64_t count);

#endif
