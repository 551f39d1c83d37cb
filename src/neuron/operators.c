/* The table of ALU operators. One line an operator; readers are the legality checks, the Python package and `nki isa`. */
#include "neuron/operators.h"

#include "neuron/rows/rows.h"

#include <math.h>

#define ON(engine) (1u << FR_NEURON_##engine)
enum {
    ALL = ON(VECTOR) | ON(GPSIMD) | ON(SCALAR),
    VEC = ON(VECTOR),
    GPS = ON(GPSIMD),
    /* tensor_scalar(rsqrt) runs on GpSimd; Vector has it neither there nor elsewhere. */
    ARITHMETIC = ON(VECTOR) | ON(GPSIMD)
};

static const fr_neuron_operator_facts facts[FR_NEURON_OPERATORS] = {
    [FR_NEURON_ADD] = {.reduces = true, .least_generation = 2, .engines = ALL},
    [FR_NEURON_SUBTRACT] = {.reduces = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_MULTIPLY] = {.reduces = true, .least_generation = 2, .engines = ALL},
    [FR_NEURON_MAXIMUM] = {.reduces = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_MINIMUM] = {.reduces = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_EQUAL] = {.compares = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_NOT_EQUAL] = {.compares = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_GREATER_EQUAL] = {.compares = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_GREATER] = {.compares = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_LESS_EQUAL] = {.compares = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_LESS] = {.compares = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_LOGICAL_AND] = {.reduces = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_LOGICAL_OR] = {.reduces = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_LOGICAL_XOR] = {.reduces = true, .least_generation = 2, .engines = ARITHMETIC},
    [FR_NEURON_POWER] = {.least_generation = 2, .engines = GPS},
    [FR_NEURON_ABS_MAX] = {.least_generation = 4, .engines = VEC},
    [FR_NEURON_ABS_MIN] = {.least_generation = 4, .engines = VEC},
    [FR_NEURON_ABS] = {.unary = true, .least_generation = 2, .engines = VEC},
    [FR_NEURON_SQUARE] = {.unary = true, .least_generation = 2, .engines = VEC},
    [FR_NEURON_RELU] = {.unary = true, .least_generation = 2, .engines = VEC},
    [FR_NEURON_RSQRT] = {.unary = true, .least_generation = 2, .engines = GPS},
    [FR_NEURON_INVERSE] = {.unary = true, .least_generation = 2, .engines = VEC},
    [FR_NEURON_DIVIDE] = {.least_generation = 0, .engines = 0},
    [FR_NEURON_BYPASS] = {.unary = true, .least_generation = 2, .engines = ALL},
    [FR_NEURON_AVERAGE] = {.least_generation = 2, .engines = GPS},
    [FR_NEURON_INVERT] = {.bits = true, .unary = true, .least_generation = 2, .engines = VEC},
    [FR_NEURON_BITWISE_AND] = {.bits = true, .reduces = true, .least_generation = 2, .engines = VEC},
    [FR_NEURON_BITWISE_OR] = {.bits = true, .reduces = true, .least_generation = 2, .engines = VEC},
    [FR_NEURON_BITWISE_XOR] = {.bits = true, .reduces = true, .least_generation = 2, .engines = VEC},
    [FR_NEURON_LEFT_SHIFT] = {.bits = true, .least_generation = 2, .engines = VEC},
    [FR_NEURON_RIGHT_SHIFT] = {.bits = true, .least_generation = 2, .engines = VEC},
};

const fr_neuron_operator_facts *fr_neuron_operator_facts_of(fr_neuron_operator op)
{
    return (unsigned)op < FR_NEURON_OPERATORS ? &facts[op] : &facts[FR_NEURON_NO_OPERATOR];
}

float fr_neuron_operator_identity(fr_neuron_operator op)
{
    switch (op) {
    case FR_NEURON_MULTIPLY:
    case FR_NEURON_LOGICAL_AND: return 1.0f;
    case FR_NEURON_MAXIMUM: return -INFINITY;
    case FR_NEURON_MINIMUM:
    case FR_NEURON_ABS_MIN: return INFINITY;
    default: return 0.0f;
    }
}

float fr_neuron_operator_apply(fr_neuron_operator op, float a, float b)
{
    float result = a;
    if (fr_neuron_rows_base.pair[op])
        fr_neuron_rows_base.pair[op]((fr_neuron_block){1, 1}, &result, 1, &a, 1, &b, 1);
    return result;
}
