/* Names of operators, activation functions and engines as kernels write them: nl.add is "add". */
#include "frontier/neuron.h"

#include <string.h>

static const char *const OPERATORS[FR_NEURON_OPERATORS] = {
    [FR_NEURON_NO_OPERATOR] = "none",
    [FR_NEURON_ADD] = "add",
    [FR_NEURON_SUBTRACT] = "subtract",
    [FR_NEURON_MULTIPLY] = "multiply",
    [FR_NEURON_MAXIMUM] = "maximum",
    [FR_NEURON_MINIMUM] = "minimum",
    [FR_NEURON_EQUAL] = "equal",
    [FR_NEURON_NOT_EQUAL] = "not_equal",
    [FR_NEURON_GREATER_EQUAL] = "greater_equal",
    [FR_NEURON_GREATER] = "greater",
    [FR_NEURON_LESS_EQUAL] = "less_equal",
    [FR_NEURON_LESS] = "less",
    [FR_NEURON_LOGICAL_AND] = "logical_and",
    [FR_NEURON_LOGICAL_OR] = "logical_or",
    [FR_NEURON_LOGICAL_XOR] = "logical_xor",
    [FR_NEURON_POWER] = "power",
    [FR_NEURON_ABS_MAX] = "abs_max",
    [FR_NEURON_ABS_MIN] = "abs_min",
    [FR_NEURON_ABS] = "abs",
    [FR_NEURON_SQUARE] = "square",
    [FR_NEURON_RELU] = "relu",
    [FR_NEURON_RSQRT] = "rsqrt",
    [FR_NEURON_INVERSE] = "reciprocal",
    [FR_NEURON_DIVIDE] = "divide",
    [FR_NEURON_BYPASS] = "bypass",
    [FR_NEURON_AVERAGE] = "average",
    [FR_NEURON_INVERT] = "invert",
    [FR_NEURON_BITWISE_AND] = "bitwise_and",
    [FR_NEURON_BITWISE_OR] = "bitwise_or",
    [FR_NEURON_BITWISE_XOR] = "bitwise_xor",
    [FR_NEURON_LEFT_SHIFT] = "left_shift",
    [FR_NEURON_RIGHT_SHIFT] = "right_shift",
};

static const char *const FUNCTIONS[FR_NEURON_FUNCTIONS] = {
    [FR_NEURON_NO_FUNCTION] = "none",
    [FR_NEURON_COPY] = "copy",
    [FR_NEURON_F_SQUARE] = "square",
    [FR_NEURON_SIGMOID] = "sigmoid",
    [FR_NEURON_F_RELU] = "relu",
    [FR_NEURON_PRELU] = "prelu",
    [FR_NEURON_GELU] = "gelu",
    [FR_NEURON_GELU_DX] = "gelu_dx",
    [FR_NEURON_GELU_TANH] = "gelu_apprx_tanh",
    [FR_NEURON_GELU_SIGMOID] = "gelu_apprx_sigmoid",
    [FR_NEURON_GELU_SIGMOID_DX] = "gelu_apprx_sigmoid_dx",
    [FR_NEURON_SILU] = "silu",
    [FR_NEURON_SILU_DX] = "silu_dx",
    [FR_NEURON_TANH] = "tanh",
    [FR_NEURON_SOFTPLUS] = "softplus",
    [FR_NEURON_MISH] = "mish",
    [FR_NEURON_ERF] = "erf",
    [FR_NEURON_ERF_DX] = "erf_dx",
    [FR_NEURON_EXP] = "exp",
    [FR_NEURON_LOG] = "log",
    [FR_NEURON_SIN] = "sin",
    [FR_NEURON_ARCTAN] = "arctan",
    [FR_NEURON_SQRT] = "sqrt",
    [FR_NEURON_F_RSQRT] = "rsqrt",
    [FR_NEURON_RECIPROCAL] = "reciprocal",
    [FR_NEURON_SIGN] = "sign",
    [FR_NEURON_F_ABS] = "abs",
};

static const char *const ENGINES[FR_NEURON_ENGINES] = {"unknown", "tensor", "vector", "scalar",
                                                       "gpsimd",  "sync",   "dma"};

static int find(const char *const *names, int count, const char *name)
{
    for (int i = 1; i < count; i++)
        if (names[i] && strcmp(names[i], name) == 0)
            return i;
    return 0;
}

const char *fr_neuron_engine_name(fr_neuron_engine engine)
{
    return ENGINES[(unsigned)engine < FR_NEURON_ENGINES ? engine : 0];
}

const char *fr_neuron_operator_name(fr_neuron_operator op)
{
    return OPERATORS[(unsigned)op < FR_NEURON_OPERATORS ? op : 0];
}

const char *fr_neuron_function_name(fr_neuron_function function)
{
    return FUNCTIONS[(unsigned)function < FR_NEURON_FUNCTIONS ? function : 0];
}

/* Older kernels and NumPy say max, min, mul; the same operators. */
fr_neuron_operator fr_neuron_operator_named(const char *name)
{
    static const struct {
        const char *name;
        fr_neuron_operator op;
    } also[] = {{"max", FR_NEURON_MAXIMUM},          {"min", FR_NEURON_MINIMUM},  {"mul", FR_NEURON_MULTIPLY},
                {"mult", FR_NEURON_MULTIPLY},        {"sub", FR_NEURON_SUBTRACT}, {"pow", FR_NEURON_POWER},
                {"amax", FR_NEURON_MAXIMUM},         {"amin", FR_NEURON_MINIMUM}, {"sum", FR_NEURON_ADD},
                {"bitwise_invert", FR_NEURON_INVERT}};
    for (size_t i = 0; i < sizeof also / sizeof *also; i++)
        if (strcmp(also[i].name, name) == 0)
            return also[i].op;
    return (fr_neuron_operator)find(OPERATORS, FR_NEURON_OPERATORS, name);
}

fr_neuron_function fr_neuron_function_named(const char *name)
{
    return (fr_neuron_function)find(FUNCTIONS, FR_NEURON_FUNCTIONS, name);
}
