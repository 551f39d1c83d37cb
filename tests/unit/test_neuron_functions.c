/* Activation functions against libm in double, over all exponents: what the simulator computes must be
 * closer to the mathematical function than any bfloat16 or the hardware's own table is, in the far tails
 * too. Ranges: inside is let through, one float outside is found. */
#include "frontier/base.h"
#include "neuron/functions.h"
#include "neuron/rows/rows.h"
#include "test.h"

static double normal_share(double x)
{
    return 0.5 * erfc(-x / sqrt(2.0));
}
static double normal_density(double x)
{
    return exp(-x * x / 2) / sqrt(2 * M_PI);
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double gelu(double x)
{
    return x * normal_share(x);
}
static double gelu_dx(double x)
{
    return normal_share(x) + x * normal_density(x);
}
static double gelu_tanh(double x)
{
    return x * sigmoid(2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}
static double gelu_sigmoid(double x)
{
    return x * sigmoid(1.702 * x);
}
static double gelu_sigmoid_dx(double x)
{
    double z = 1.702 * x;
    return sigmoid(z) + z * sigmoid(z) * sigmoid(-z);
}
static double silu(double x)
{
    return x * sigmoid(x);
}
static double silu_dx(double x)
{
    return sigmoid(x) + x * sigmoid(x) * sigmoid(-x);
}
static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double mish(double x)
{
    return x * tanh(softplus(x));
}
static double erf_dx(double x)
{
    return 2 / sqrt(M_PI) * exp(-x * x);
}
static double rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double inverse(double x)
{
    return 1 / x;
}
static double copy(double x)
{
    return x;
}
static double square(double x)
{
    return x * x;
}
static double relu(double x)
{
    return x > 0 ? x : 0;
}
static double prelu(double x)
{
    return x > 0 ? x : 0.25 * x;
}
static double sign(double x)
{
    return (x > 0) - (x < 0);
}

typedef struct claim {
    fr_neuron_function function;
    double (*truth)(double);
    double least, most; /* arguments tried */
    double absolute;    /* beside 1e-6 relative; only where the function has a root or a cancellation */
} claim;

static const claim claims[] = {
    {FR_NEURON_COPY, copy, -1e30, 1e30, 0},
    {FR_NEURON_F_SQUARE, square, -1e15, 1e15, 1e-42},
    {FR_NEURON_SIGMOID, sigmoid, -86, 100, 0},
    {FR_NEURON_F_RELU, relu, -1e30, 1e30, 0},
    {FR_NEURON_PRELU, prelu, -1e30, 1e30, 0},
    {FR_NEURON_GELU, gelu, -12.5, 1e6, 0},
    {FR_NEURON_GELU_DX, gelu_dx, -30, 30, 2e-7},
    {FR_NEURON_GELU_TANH, gelu_tanh, -5, 1e6, 1e-10},
    {FR_NEURON_GELU_SIGMOID, gelu_sigmoid, -10, 1e6, 1e-12},
    {FR_NEURON_GELU_SIGMOID_DX, gelu_sigmoid_dx, -40, 1e6, 2e-7},
    {FR_NEURON_SILU, silu, -60, 1e6, 0},
    {FR_NEURON_SILU_DX, silu_dx, -60, 1e6, 2e-7},
    {FR_NEURON_TANH, tanh, -100, 100, 0},
    {FR_NEURON_SOFTPLUS, softplus, -86, 1e6, 0},
    {FR_NEURON_MISH, mish, -80, 1e6, 0},
    {FR_NEURON_ERF, erf, -100, 100, 0},
    {FR_NEURON_ERF_DX, erf_dx, -9, 9, 0},
    {FR_NEURON_EXP, exp, -87, 88.7, 0},
    {FR_NEURON_LOG, log, 0x1p-64, 0x1p64, 1e-9},
    {FR_NEURON_SIN, sin, -3.14159274, 3.14159274, 0},
    {FR_NEURON_ARCTAN, atan, -1e10, 1e10, 0},
    {FR_NEURON_SQRT, sqrt, 0x1p-116, 0x1p118, 0},
    {FR_NEURON_F_RSQRT, rsqrt, 0x1p-87, 0x1p97, 0},
    {FR_NEURON_RECIPROCAL, inverse, -0x1p42, 0x1p42, 0},
    {FR_NEURON_SIGN, sign, -10, 10, 0},
    {FR_NEURON_F_ABS, fabs, -1e30, 1e30, 0},
};
enum { CLAIMS = sizeof claims / sizeof claims[0], SAMPLES = 20000 };

/* Half of the samples are uniform in the range, half spread over the exponents of both signs. */
static float sample(const claim *c, uint64_t i)
{
    double share = fr_rng_uniform_at(7, (uint64_t)c->function, i);
    if (i % 2)
        return (float)(c->least + (c->most - c->least) * share);
    double low = c->least > 0 ? c->least : 1e-20;
    double size = exp(log(low) + (log(c->most) - log(low)) * share);
    return (float)(c->least < 0 && i % 4 == 0 ? (size > -c->least ? c->least : -size) : size);
}

TEST(every_function_is_within_a_millionth_of_libm)
{
    const fr_neuron_rows *rows = fr_neuron_rows_best();
    static float in[SAMPLES], out[SAMPLES];
    CHECK_INT(CLAIMS, FR_NEURON_FUNCTIONS - 1);
    for (int c = 0; c < CLAIMS; c++) {
        double worst = 0, where = 0;
        for (int i = 0; i < SAMPLES; i++)
            in[i] = sample(&claims[c], (uint64_t)i);
        rows->map[claims[c].function](out, in, SAMPLES, 0.25f);
        for (int i = 0; i < SAMPLES; i++) {
            double truth = claims[c].truth((double)in[i]);
            double off = fabs((double)out[i] - truth) - claims[c].absolute;
            if (!(off <= worst * fabs(truth))) {
                worst = truth != 0 ? off / fabs(truth) : off;
                where = (double)in[i];
            }
        }
        if (!(worst <= 1e-6))
            test_fail_format(__FILE__, __LINE__, "function %d (%.9g) is off by %.2e", (int)claims[c].function,
                             where, worst);
    }
}

TEST(infinities_and_nan)
{
    const fr_neuron_rows *rows = fr_neuron_rows_best();
    const float in[4] = {INFINITY, -INFINITY, NAN, 0};
    static const struct {
        fr_neuron_function function;
        float plus, minus, zero;
    } ends[] = {
        {FR_NEURON_EXP, INFINITY, 0, 1},
        {FR_NEURON_SIGMOID, 1, 0, 0.5f},
        {FR_NEURON_TANH, 1, -1, 0},
        {FR_NEURON_SILU, INFINITY, 0, 0},
        {FR_NEURON_GELU, INFINITY, 0, 0},
        {FR_NEURON_ERF, 1, -1, 0},
        {FR_NEURON_GELU_DX, 1, 0, 0.5f},
        {FR_NEURON_SILU_DX, 1, 0, 0.5f},
        {FR_NEURON_MISH, INFINITY, 0, 0},
        {FR_NEURON_SOFTPLUS, INFINITY, 0, 0.693147182f},
        {FR_NEURON_GELU_TANH, INFINITY, 0, 0},
        {FR_NEURON_GELU_SIGMOID, INFINITY, 0, 0},
        {FR_NEURON_ERF_DX, 0, 0, 1.12837917f},
        {FR_NEURON_ARCTAN, 1.57079633f, -1.57079633f, 0},
        {FR_NEURON_LOG, INFINITY, NAN, -INFINITY},
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        float out[4];
        rows->map[ends[i].function](out, in, 4, 0);
        bool same = out[0] == ends[i].plus &&
                    (fabsf(out[1] - ends[i].minus) < 1e-30f || isnan(ends[i].minus)) &&
                    fabsf(out[3] - ends[i].zero) < 1e-7f;
        if (!(same || isinf(ends[i].zero)) || !isnan(out[2]))
            test_fail_format(__FILE__, __LINE__, "function %d: %g %g %g %g", (int)ends[i].function,
                             (double)out[0], (double)out[1], (double)out[2], (double)out[3]);
    }
}

/* The figure AWS documents: sin(9.0) is about 27.65 on the Scalar engine. */
TEST(sin_continues_as_a_cubic)
{
    const float in[4] = {9.0f, -9.0f, 3.15f, 4.0f};
    float out[4];
    fr_neuron_rows_best()->map[FR_NEURON_SIN](out, in, 4, 0);
    CHECK_NEAR(out[0], 27.65, 0.01, 0);
    CHECK_NEAR(out[1], -27.65, 0.01, 0);
    CHECK_NEAR(out[2], sin(3.15), 1e-7, 0);
    CHECK_NEAR(out[3], -0.858407346 + 0.858407346 * 0.858407346 * 0.858407346 / 6, 1e-6, 0);
}

TEST(ranges_are_closed_and_end_there)
{
    static const fr_neuron_function limited[] = {FR_NEURON_LOG, FR_NEURON_ARCTAN, FR_NEURON_SQRT,
                                                 FR_NEURON_F_RSQRT, FR_NEURON_RECIPROCAL};
    for (size_t i = 0; i < sizeof limited / sizeof limited[0]; i++) {
        const fr_neuron_function_facts *f = fr_neuron_function_facts_of(limited[i]);
        float least = (float)f->least, most = (float)f->most;
        float inside[4] = {least, most, NAN, f->by_size ? -most : most};
        float outside[3] = {nextafterf(least, -INFINITY), nextafterf(most, INFINITY),
                            f->by_size ? 0 : -INFINITY};
        CHECK_INT(fr_neuron_function_outside(limited[i], inside, 4), -1);
        for (int j = 0; j < 3; j++)
            CHECK_INT(fr_neuron_function_outside(limited[i], &outside[j], 1), 0);
        inside[3] = outside[0];
        CHECK_INT(fr_neuron_function_outside(limited[i], inside, 4), 3);
    }
    const float any[2] = {-INFINITY, 9};
    CHECK_INT(fr_neuron_function_outside(FR_NEURON_EXP, any, 2), -1);
    CHECK_INT(fr_neuron_function_outside(FR_NEURON_SIN, any, 2), -1);
}

TEST(every_width_of_registers_gives_the_same_bits)
{
    static const char *const names[] = {"avx2", "avx512"};
    static float in[999], base[999], wide[999];
    for (int v = 0; v < 2; v++) {
        const fr_neuron_rows *rows = fr_neuron_rows_named(names[v]);
        for (int f = 1; rows && f < FR_NEURON_FUNCTIONS; f++) {
            for (int i = 0; i < 999; i++)
                in[i] = (float)(20 * fr_rng_uniform_at(3, (uint64_t)f, (uint64_t)i) - 10);
            fr_neuron_rows_base.map[f](base, in, 999, 0.25f);
            rows->map[f](wide, in, 999, 0.25f);
            for (int i = 0; i < 999; i++)
                if (memcmp(&base[i], &wide[i], 4) != 0 && !(isnan(base[i]) && isnan(wide[i]))) {
                    test_fail_format(__FILE__, __LINE__, "%s function %d (%g)", names[v],
                                     (int)(fr_neuron_function)f, (double)in[i]);
                    break;
                }
        }
    }
}

TEST_MAIN(neuron_functions)
