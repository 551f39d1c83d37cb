/* Scans along rows: see scan.h. */
#include "neuron/rows/scan.h"
#include "neuron/operators.h"
#include "neuron/rows/vector_math.h"

enum { TOGETHER = 8 };
typedef struct scan_rows {
    fr_neuron_block block;
    float *out;
    const float *x, *y;
    int64_t out_stride, x_stride, y_stride;
    float *carry;
} scan_rows;

#define SCAN(NAME, EXPRESSION)                                                                               \
    static void NAME##_some(const scan_rows *s, int64_t first, int rows)                                     \
    {                                                                                                        \
        float state[TOGETHER];                                                                               \
        for (int j = 0; j < rows; j++)                                                                       \
            state[j] = s->carry[first + j];                                                                  \
        for (int64_t i = 0; i < s->block.count; i++)                                                         \
            for (int j = 0; j < rows; j++) {                                                                 \
                float x = s->x[(first + j) * s->x_stride + i], r = state[j];                                 \
                float y = s->y[(first + j) * s->y_stride + i];                                               \
                (void)y;                                                                                     \
                state[j] = EXPRESSION;                                                                       \
                s->out[(first + j) * s->out_stride + i] = state[j];                                          \
            }                                                                                                \
        for (int j = 0; j < rows; j++)                                                                       \
            s->carry[first + j] = state[j];                                                                  \
    }                                                                                                        \
    static void NAME(const scan_rows *s)                                                                     \
    {                                                                                                        \
        int64_t r = 0;                                                                                       \
        for (; r + TOGETHER <= s->block.rows; r += TOGETHER)                                                 \
            NAME##_some(s, r, TOGETHER);                                                                     \
        if (r < s->block.rows)                                                                               \
            NAME##_some(s, r, (int)(s->block.rows - r));                                                     \
    }
SCAN(multiply_add, x *r + y)
SCAN(multiply_subtract, x *r - y)
SCAN(add_up, x + r)
SCAN(multiply_up, x *r)
SCAN(maximum, m_maximum(x, r))
SCAN(minimum, m_minimum(x, r))

static const struct {
    fr_neuron_operator op0, op1;
    void (*run)(const scan_rows *s);
} common[] = {
    {FR_NEURON_MULTIPLY, FR_NEURON_ADD, multiply_add},
    {FR_NEURON_MULTIPLY, FR_NEURON_SUBTRACT, multiply_subtract},
    {FR_NEURON_ADD, FR_NEURON_BYPASS, add_up},
    {FR_NEURON_MULTIPLY, FR_NEURON_BYPASS, multiply_up},
    {FR_NEURON_MAXIMUM, FR_NEURON_BYPASS, maximum},
    {FR_NEURON_MINIMUM, FR_NEURON_BYPASS, minimum},
};

static void any_operators(const fr_neuron_scan *scan, const scan_rows *s)
{
    for (int64_t row = 0; row < s->block.rows; row++) {
        float state = s->carry[row];
        for (int64_t i = 0; i < s->block.count; i++) {
            float x = s->x[row * s->x_stride + i], y = s->y[row * s->y_stride + i];
            float t =
                fr_neuron_operator_apply(scan->op0, scan->reverse0 ? state : x, scan->reverse0 ? x : state);
            state = fr_neuron_operator_apply(scan->op1, scan->reverse1 ? y : t, scan->reverse1 ? t : y);
            s->out[row * s->out_stride + i] = state;
        }
        s->carry[row] = state;
    }
}

void fr_neuron_scan_rows(const fr_neuron_scan *scan, fr_neuron_block block, float *out, int64_t out_stride,
                         const float *x, int64_t x_stride, const float *y, int64_t y_stride, float *carry)
{
    scan_rows s = {block, out, x, y ? y : x, out_stride, x_stride, y ? y_stride : x_stride, carry};
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        if (!scan->reverse0 && !scan->reverse1 && common[i].op0 == scan->op0 && common[i].op1 == scan->op1) {
            common[i].run(&s);
            return;
        }
    any_operators(scan, &s);
}
