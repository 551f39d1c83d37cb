/* The table of activation functions. Values come from rows/vector_math.h; ranges are those of the NKI ISA common fields
 * ("Supported activation functions"), in fp32: pi is 3.14159274. */
#include "neuron/functions.h"

#include <math.h>

enum {
    IN_EVERY_SET,
    NATURAL_LOG_EXP,
    SIGMOID,
    GELU,
    SOFTPLUS,
    MISH,
    ERF,
    TRIGONOMETRY,
    SQUARE_ROOT,
    RSQRT,
    RECIPROCAL
};
#define GUESS .table_guessed = true

static const fr_neuron_function_facts facts[FR_NEURON_FUNCTIONS] = {
    [FR_NEURON_COPY] = {.formula = "x"},
    [FR_NEURON_F_SQUARE] = {.formula = "x^2"},
    [FR_NEURON_SIGMOID] = {.formula = "1 / (1 + e^-x)", .table = SIGMOID, GUESS},
    [FR_NEURON_F_RELU] = {.formula = "max(x, 0)"},
    [FR_NEURON_PRELU] = {.formula = "x > 0 ? x : slope x"},
    [FR_NEURON_GELU] = {.formula = "x Phi(x)", .table = GELU},
    [FR_NEURON_GELU_DX] = {.formula = "Phi(x) + x phi(x)", .table = GELU, GUESS},
    [FR_NEURON_GELU_TANH] = {.formula = "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))",
                             .table = GELU,
                             GUESS},
    [FR_NEURON_GELU_SIGMOID] = {.formula = "x sigmoid(1.702 x)", .table = GELU, GUESS},
    [FR_NEURON_GELU_SIGMOID_DX] = {.formula = "derivative of x sigmoid(1.702 x)", .table = GELU, GUESS},
    [FR_NEURON_SILU] = {.formula = "x sigmoid(x)", .table = SIGMOID, GUESS},
    [FR_NEURON_SILU_DX] = {.formula = "derivative of x sigmoid(x)", .table = SIGMOID, GUESS},
    [FR_NEURON_TANH] = {.formula = "tanh x", .table = SIGMOID, GUESS},
    [FR_NEURON_SOFTPLUS] = {.formula = "ln(1 + e^x)", .table = SOFTPLUS, GUESS},
    [FR_NEURON_MISH] = {.formula = "x tanh(ln(1 + e^x))", .table = MISH, GUESS},
    [FR_NEURON_ERF] = {.formula = "erf x", .table = ERF, GUESS},
    [FR_NEURON_ERF_DX] = {.formula = "2/sqrt(pi) e^-x^2", .table = ERF, GUESS},
    [FR_NEURON_EXP] = {.formula = "e^x", .table = NATURAL_LOG_EXP},
    [FR_NEURON_LOG] = {.formula = "ln x", .least = 0x1p-64, .most = 0x1p64, .table = NATURAL_LOG_EXP},
    [FR_NEURON_SIN] = {.formula = "sin x",
                       .least = -3.1415927410125732,
                       .most = 3.1415927410125732,
                       .continues = true,
                       .table = TRIGONOMETRY,
                       GUESS},
    [FR_NEURON_ARCTAN] = {.formula = "arctan x",
                          .least = -1.5707963705062866,
                          .most = 1.5707963705062866,
                          .table = TRIGONOMETRY,
                          GUESS},
    [FR_NEURON_SQRT] = {.formula = "sqrt x", .least = 0x1p-116, .most = 0x1p118, .table = SQUARE_ROOT, GUESS},
    [FR_NEURON_F_RSQRT] = {.formula = "1 / sqrt x", .least = 0x1p-87, .most = 0x1p97, .table = RSQRT},
    [FR_NEURON_RECIPROCAL] =
        {.formula = "1 / x", .least = 0x1p-42, .most = 0x1p42, .by_size = true, .table = RECIPROCAL},
    [FR_NEURON_SIGN] = {.formula = "-1, 0 or 1"},
    [FR_NEURON_F_ABS] = {.formula = "|x|"},
};

const fr_neuron_function_facts *fr_neuron_function_facts_of(fr_neuron_function function)
{
    return (unsigned)function < FR_NEURON_FUNCTIONS ? &facts[function] : &facts[FR_NEURON_NO_FUNCTION];
}

int64_t fr_neuron_function_outside(fr_neuron_function function, const float *x, int64_t count)
{
    const fr_neuron_function_facts *f = fr_neuron_function_facts_of(function);
    const float least = (float)f->least, most = (float)f->most;
    int outside = 0;
    if (f->continues || (f->least == 0 && f->most == 0))
        return -1;
    for (int64_t i = 0; i < count; i++) {
        float value = f->by_size ? fabsf(x[i]) : x[i];
        outside |= (value < least) | (value > most);
    }
    for (int64_t i = 0; outside && i < count; i++) {
        float value = f->by_size ? fabsf(x[i]) : x[i];
        if (value < least || value > most)
            return i;
    }
    return -1;
}
