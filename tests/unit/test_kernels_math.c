/* The vector functions of the kernels against libm's double ones, over every exponent: errors in ulp, ends of
 * the range, NaN. They are reached through operators, as a program reaches them: swiglu (exp, sigmoid),
 * head_logits with a cap (tanh).
 */
#include "kernel_case.h"

enum { POINTS = 6000 };

/* An argument of either sign; magnitudes from 2^-30 to 2^7 evenly by exponent. */
static float argument(int i)
{
    double magnitude = pow(2, -30 + 37.0 * (i / 2) / (POINTS / 2));
    return (float)(i % 2 ? -magnitude : magnitude);
}

static double ulps(float got, double want)
{
    int exponent;
    frexp(want, &exponent);
    double ulp = ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
    return isnan(got) ? INFINITY : fabs((double)got - want) / ulp;
}

/* Runs a one-row-per-token operator of one column on the arguments; other inputs are 1. */
static void run_on_arguments(const kernel_case *c, float *out)
{
    const fr_kernel_table *table;
    fr_error error = {0};
    case_data d;
    CHECK_OK(fr_cpu_kernels(&table, &error));
    case_init(&d, c, CASE_F32, false);
    for (int i = 0; i < POINTS; i++)
        ((float *)(uintptr_t)d.call.in[0])[i] = argument(i);
    for (int64_t i = 0; i < case_elements(&d, &d.in[1]); i++)
        ((float *)(uintptr_t)d.call.in[1])[i] = 1;
    const fr_kernel *kernel =
        table->reference_only ? &d.op->reference[FR_FORWARD] : case_find(table, c->op, FR_FORWARD, &d.call);
    CHECK(kernel != NULL);
    case_run(&d, kernel, NULL, NULL);
    memcpy(out, d.out_data[0], sizeof(float) * POINTS);
    case_release(&d);
}

TEST(sigmoid_within_4_ulp)
{
    const kernel_case c = {"swiglu",
                           1,
                           POINTS,
                           2,
                           {{FR_TOKENS, 1, FR_KIND_ACTIVATION, 0}, {FR_TOKENS, 1, FR_KIND_ACTIVATION, 0}},
                           false,
                           NULL,
                           0};
    static float out[POINTS];
    double worst = 0;
    run_on_arguments(&c, out);
    for (int i = 0; i < POINTS; i++) {
        double x = (double)argument(i), want = x / (1 + exp(-x));
        if (fabs(want) > 1e-36)
            worst = fmax(worst, ulps(out[i], want));
        else
            CHECK_NEAR(out[i], want, 1e-36, 0);
    }
    printf("# silu: %.2f ulp\n", worst);
    CHECK(worst <= 5); /* one more for the product */
}

TEST(tanh_within_4_ulp)
{
    const fr_head_options cap = {.vocab = 1, .softcap = 1, .weight = 1};
    const kernel_case c = {
        "head_logits", 1,    POINTS, 2, {{FR_TOKENS, 1, FR_KIND_ACTIVATION, 0}, {1, 1, FR_KIND_PARAMETER, 0}},
        false,         &cap, 0};
    static float out[POINTS];
    double worst = 0;
    run_on_arguments(&c, out);
    for (int i = 0; i < POINTS; i++)
        worst = fmax(worst, ulps(out[i], tanh((double)argument(i))));
    printf("# tanh: %.2f ulp\n", worst);
    CHECK(worst <= 4);
}

TEST_MAIN(kernels_math)
