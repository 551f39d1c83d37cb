/* The loops behind rows.h. Included by rows_base.c, rows_avx2.c and rows_avx512.c, each compiled with its own flags and
 * with FR_ROWS naming its table; the compiler vectorises every loop here.
 *
 * An operator is one line of a list below: its expression in a and b. From it come three loops (row with row, row with
 * a number, number with row); a line of the reductions gives a fold. FR_LOOP tells the compiler that an iteration
 * never reads what another wrote, which is true because `out` overlaps an input exactly or not at all.
 */
#include "neuron/rows/rows.h"
#include "neuron/rows/vector_math.h"

#if defined(__clang__)
#define FR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* below -O2 it vectorises nothing, and says so for every loop */
#else
#define FR_LOOP _Pragma("GCC ivdep")
#endif

#define FLAG(condition) ((condition) ? 1.0f : 0.0f)
#define FLOAT_OPERATORS(OP)                                                                                  \
    OP(ADD, a + b)                                                                                           \
    OP(SUBTRACT, a - b)                                                                                      \
    OP(MULTIPLY, a *b)                                                                                       \
    OP(DIVIDE, a / b)                                                                                        \
    OP(MAXIMUM, m_maximum(a, b))                                                                             \
    OP(MINIMUM, m_minimum(a, b))                                                                             \
    OP(EQUAL, FLAG(a == b))                                                                                  \
    OP(NOT_EQUAL, FLAG(a != b))                                                                              \
    OP(GREATER_EQUAL, FLAG(a >= b))                                                                          \
    OP(GREATER, FLAG(a > b))                                                                                 \
    OP(LESS_EQUAL, FLAG(a <= b))                                                                             \
    OP(LESS, FLAG(a < b))                                                                                    \
    OP(LOGICAL_AND, FLAG((a != 0.0f) & (b != 0.0f)))                                                         \
    OP(LOGICAL_OR, FLAG((a != 0.0f) | (b != 0.0f)))                                                          \
    OP(LOGICAL_XOR, FLAG((a != 0.0f) != (b != 0.0f)))                                                        \
    OP(POWER, powf(a, b))                                                                                    \
    OP(ABS_MAX, m_abs(a) > m_abs(b) ? a : b)                                                                 \
    OP(ABS_MIN, m_abs(a) < m_abs(b) ? a : b)                                                                 \
    OP(BYPASS, a)                                                                                            \
    OP(ABS, m_abs(a))                                                                                        \
    OP(SQUARE, a *a)                                                                                         \
    OP(RELU, m_maximum(a, 0.0f))                                                                             \
    OP(RSQRT, 1.0f / sqrtf(a))                                                                               \
    OP(INVERSE, 1.0f / a)

#define PAIR(NAME, EXPRESSION)                                                                               \
    static void pair_##NAME(fr_neuron_block block, float *out, int64_t out_stride, const float *x,           \
                            int64_t x_stride, const float *y, int64_t y_stride)                              \
    {                                                                                                        \
        for (int64_t r = 0; r < block.rows; r++, out += out_stride, x += x_stride, y += y_stride) {          \
            FR_LOOP                                                                                          \
            for (int64_t i = 0; i < block.count; i++) {                                                      \
                float a = x[i], b = y[i];                                                                    \
                (void)a, (void)b;                                                                            \
                out[i] = EXPRESSION;                                                                         \
            }                                                                                                \
        }                                                                                                    \
    }
#define WITH_SCALAR(FORM, NAME, EXPRESSION, A, B)                                                            \
    static void FORM##_##NAME(fr_neuron_block block, float *out, int64_t out_stride, const float *x,         \
                              int64_t x_stride, const float *scalar, int64_t step)                           \
    {                                                                                                        \
        for (int64_t r = 0; r < block.rows; r++, out += out_stride, x += x_stride) {                         \
            const float s = scalar[r * step];                                                                \
            FR_LOOP                                                                                          \
            for (int64_t i = 0; i < block.count; i++) {                                                      \
                float a = A, b = B;                                                                          \
                (void)a, (void)b;                                                                            \
                out[i] = EXPRESSION;                                                                         \
            }                                                                                                \
        }                                                                                                    \
    }
#define SCALAR(NAME, EXPRESSION) WITH_SCALAR(scalar, NAME, EXPRESSION, x[i], s)
#define REVERSED(NAME, EXPRESSION) WITH_SCALAR(reversed, NAME, EXPRESSION, s, x[i])
FLOAT_OPERATORS(PAIR)
FLOAT_OPERATORS(SCALAR)
FLOAT_OPERATORS(REVERSED)

/* Reductions: start value of a lane and the step. Subtracting is adding up and taking away once. */
#define REDUCTIONS(OP)                                                                                       \
    OP(ADD, 0.0f, a + b)                                                                                     \
    OP(MULTIPLY, 1.0f, a *b)                                                                                 \
    OP(MAXIMUM, -INFINITY, m_maximum(a, b))                                                                  \
    OP(MINIMUM, INFINITY, m_minimum(a, b))                                                                   \
    OP(LOGICAL_AND, 1.0f, FLAG((a != 0.0f) & (b != 0.0f)))                                                   \
    OP(LOGICAL_OR, 0.0f, FLAG((a != 0.0f) | (b != 0.0f)))                                                    \
    OP(LOGICAL_XOR, 0.0f, FLAG((a != 0.0f) != (b != 0.0f)))                                                  \
    OP(ABS_MAX, 0.0f, m_abs(a) > m_abs(b) ? a : b)                                                           \
    OP(ABS_MIN, INFINITY, m_abs(a) < m_abs(b) ? a : b)

enum { LANES = 16 };
#define FOLD(NAME, START, EXPRESSION)                                                                        \
    FR_INLINE float step_##NAME(float a, float b)                                                            \
    {                                                                                                        \
        return EXPRESSION;                                                                                   \
    }                                                                                                        \
    static float fold_row_##NAME(const float *x, int64_t count)                                              \
    {                                                                                                        \
        float lane[LANES];                                                                                   \
        int64_t i = 0;                                                                                       \
        for (int j = 0; j < LANES; j++)                                                                      \
            lane[j] = START;                                                                                 \
        for (; i + LANES <= count; i += LANES)                                                               \
            for (int j = 0; j < LANES; j++)                                                                  \
                lane[j] = step_##NAME(lane[j], x[i + j]);                                                    \
        for (int j = 0; i < count; i++, j++)                                                                 \
            lane[j] = step_##NAME(lane[j], x[i]);                                                            \
        for (int width = LANES / 2; width; width /= 2)                                                       \
            for (int j = 0; j < width; j++)                                                                  \
                lane[j] = step_##NAME(lane[j], lane[j + width]);                                             \
        return lane[0];                                                                                      \
    }                                                                                                        \
    static void fold_##NAME(fr_neuron_block block, float *total, const float *x, int64_t x_stride)           \
    {                                                                                                        \
        for (int64_t r = 0; r < block.rows; r++)                                                             \
            total[r] = step_##NAME(total[r], fold_row_##NAME(x + r * x_stride, block.count));                \
    }
REDUCTIONS(FOLD)

static void fold_SUBTRACT(fr_neuron_block block, float *total, const float *x, int64_t x_stride)
{
    for (int64_t r = 0; r < block.rows; r++)
        total[r] -= fold_row_ADD(x + r * x_stride, block.count);
}

#define FUNCTIONS(F)                                                                                         \
    F(COPY, x)                                                                                               \
    F(F_SQUARE, x *x)                                                                                        \
    F(SIGMOID, m_sigmoid(x))                                                                                 \
    F(F_RELU, m_maximum(x, 0.0f))                                                                            \
    F(PRELU, x > 0.0f ? x : parameter * x)                                                                   \
    F(GELU, m_gelu(x))                                                                                       \
    F(GELU_DX, m_gelu_dx(x))                                                                                 \
    F(GELU_TANH, m_gelu_tanh(x))                                                                             \
    F(GELU_SIGMOID, m_gelu_sigmoid(x))                                                                       \
    F(GELU_SIGMOID_DX, m_silu_dx(x, 1.702f))                                                                 \
    F(SILU, m_silu(x))                                                                                       \
    F(SILU_DX, m_silu_dx(x, 1.0f))                                                                           \
    F(TANH, m_tanh(x))                                                                                       \
    F(SOFTPLUS, m_softplus(x))                                                                               \
    F(MISH, m_mish(x))                                                                                       \
    F(ERF, m_erf(x))                                                                                         \
    F(ERF_DX, m_erf_dx(x))                                                                                   \
    F(EXP, m_exp(x))                                                                                         \
    F(LOG, m_log(x))                                                                                         \
    F(SIN, m_sin(x))                                                                                         \
    F(ARCTAN, m_arctan(x))                                                                                   \
    F(SQRT, sqrtf(x))                                                                                        \
    F(F_RSQRT, 1.0f / sqrtf(x))                                                                              \
    F(RECIPROCAL, 1.0f / x)                                                                                  \
    F(SIGN, m_sign(x))                                                                                       \
    F(F_ABS, m_abs(x))

#define MAP(NAME, EXPRESSION)                                                                                \
    static void map_##NAME(float *out, const float *in, int64_t count, float parameter)                      \
    {                                                                                                        \
        (void)parameter;                                                                                     \
        FR_LOOP                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                                \
            float x = in[i];                                                                                 \
            out[i] = EXPRESSION;                                                                             \
        }                                                                                                    \
    }
FUNCTIONS(MAP)

static void affine(float *out, const float *in, int64_t count, float scale, float bias)
{
    FR_LOOP
    for (int64_t i = 0; i < count; i++)
        out[i] = in[i] * scale + bias;
}

/* Wrapping sums go through unsigned, where wrapping is defined. */
#define WHOLE_OPERATORS(OP)                                                                                  \
    OP(ADD, (uint32_t)a + (uint32_t)b)                                                                       \
    OP(SUBTRACT, (uint32_t)a - (uint32_t)b)                                                                  \
    OP(MULTIPLY, (uint32_t)a *(uint32_t)b)                                                                   \
    OP(MAXIMUM, a > b ? a : b)                                                                               \
    OP(MINIMUM, a < b ? a : b)                                                                               \
    OP(EQUAL, a == b)                                                                                        \
    OP(NOT_EQUAL, a != b)                                                                                    \
    OP(GREATER_EQUAL, a >= b)                                                                                \
    OP(GREATER, a > b)                                                                                       \
    OP(LESS_EQUAL, a <= b)                                                                                   \
    OP(LESS, a < b)                                                                                          \
    OP(LOGICAL_AND, (a != 0) & (b != 0))                                                                     \
    OP(LOGICAL_OR, (a != 0) | (b != 0))                                                                      \
    OP(LOGICAL_XOR, (a != 0) != (b != 0))                                                                    \
    OP(BYPASS, a)

#define WORD_LOOP(EXPRESSION)                                                                                \
    FR_LOOP                                                                                                  \
    for (int64_t i = 0; i < count; i++) {                                                                    \
        word a = x[i], b = y[i];                                                                             \
        (void)b;                                                                                             \
        out[i] = (word)(EXPRESSION);                                                                         \
    }
#define WORD_CASE(NAME, EXPRESSION)                                                                          \
    case FR_NEURON_##NAME: WORD_LOOP(EXPRESSION) return true;

static bool pair_signed(fr_neuron_operator op, int32_t *out, const int32_t *x, const int32_t *y,
                        int64_t count)
{
    typedef int32_t word;
    switch (op) {
        WHOLE_OPERATORS(WORD_CASE)
    default: return false;
    }
}

static bool pair_unsigned(fr_neuron_operator op, uint32_t *out, const uint32_t *x, const uint32_t *y,
                          int64_t count)
{
    typedef uint32_t word;
    switch (op) {
        WHOLE_OPERATORS(WORD_CASE)
    default: return false;
    }
}

#define BIT_OPERATORS(OP)                                                                                    \
    OP(INVERT, ~a &mask)                                                                                     \
    OP(BITWISE_AND, a &b)                                                                                    \
    OP(BITWISE_OR, a | b)                                                                                    \
    OP(BITWISE_XOR, a ^ b)                                                                                   \
    OP(LEFT_SHIFT, b < width ? a << (b & 31) & mask : 0)                                                     \
    OP(RIGHT_SHIFT, b < width ? a >> (b & 31) : 0)                                                           \
    OP(BYPASS, a)

static bool pair_bits(fr_neuron_operator op, uint32_t *out, const uint32_t *x, const uint32_t *y,
                      int64_t count, int bits)
{
    typedef uint32_t word;
    const uint32_t width = (uint32_t)bits, mask = bits < 32 ? (1u << bits) - 1 : ~0u;
    (void)width;
    switch (op) {
        BIT_OPERATORS(WORD_CASE)
    default: return false;
    }
}

#define PAIR_ENTRY(NAME, EXPRESSION) [FR_NEURON_##NAME] = pair_##NAME,
#define SCALAR_ENTRY(NAME, EXPRESSION) [FR_NEURON_##NAME] = scalar_##NAME,
#define REVERSED_ENTRY(NAME, EXPRESSION) [FR_NEURON_##NAME] = reversed_##NAME,
#define FOLD_ENTRY(NAME, START, STEP) [FR_NEURON_##NAME] = fold_##NAME,
#define MAP_ENTRY(NAME, EXPRESSION) [FR_NEURON_##NAME] = map_##NAME,
const fr_neuron_rows FR_ROWS = {
    .name = FR_ROWS_NAME,
    .pair = {FLOAT_OPERATORS(PAIR_ENTRY)},
    .scalar = {FLOAT_OPERATORS(SCALAR_ENTRY)},
    .reversed = {FLOAT_OPERATORS(REVERSED_ENTRY)},
    .fold = {[FR_NEURON_SUBTRACT] = fold_SUBTRACT, REDUCTIONS(FOLD_ENTRY)},
    .map = {FUNCTIONS(MAP_ENTRY)},
    .affine = affine,
    .pair_signed = pair_signed,
    .pair_unsigned = pair_unsigned,
    .pair_bits = pair_bits,
};
