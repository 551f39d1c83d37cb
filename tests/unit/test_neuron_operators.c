/* ALU operators: each against a plain expression written here, in all three forms (two rows, row and
 * number, number and row), for all versions of the loops, with NaN and infinities among the elements;
 * reductions against a sum in double; 32-bit whole numbers and bit patterns exactly. */
#include "frontier/base.h"
#include "neuron/operators.h"
#include "neuron/rows/rows.h"
#include "test.h"

enum { ROWS = 3, COUNT = 37, STRIDE = 40 };

static float plain(fr_neuron_operator op, float a, float b)
{
    bool nan = isnan(a) || isnan(b);
    switch (op) {
    case FR_NEURON_ADD: return a + b;
    case FR_NEURON_SUBTRACT: return a - b;
    case FR_NEURON_MULTIPLY: return a * b;
    case FR_NEURON_DIVIDE: return a / b;
    case FR_NEURON_MAXIMUM: return nan ? NAN : fmaxf(a, b);
    case FR_NEURON_MINIMUM: return nan ? NAN : fminf(a, b);
    case FR_NEURON_EQUAL: return a == b;
    case FR_NEURON_NOT_EQUAL: return a != b;
    case FR_NEURON_GREATER_EQUAL: return a >= b;
    case FR_NEURON_GREATER: return a > b;
    case FR_NEURON_LESS_EQUAL: return a <= b;
    case FR_NEURON_LESS: return a < b;
    case FR_NEURON_LOGICAL_AND: return a != 0 && b != 0;
    case FR_NEURON_LOGICAL_OR: return a != 0 || b != 0;
    case FR_NEURON_LOGICAL_XOR: return (a != 0) ^ (b != 0);
    case FR_NEURON_POWER: return powf(a, b);
    case FR_NEURON_ABS_MAX: return fabsf(a) > fabsf(b) ? a : b;
    case FR_NEURON_ABS_MIN: return fabsf(a) < fabsf(b) ? a : b;
    case FR_NEURON_ABS: return fabsf(a);
    case FR_NEURON_SQUARE: return a * a;
    case FR_NEURON_RELU: return isnan(a) ? NAN : a > 0 ? a : 0;
    case FR_NEURON_RSQRT: return 1 / sqrtf(a);
    case FR_NEURON_INVERSE: return 1 / a;
    default: return a;
    }
}

static float element(uint64_t stream, int i)
{
    static const float special[8] = {0, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 2.5f};
    uint64_t r = fr_rng_at(5, stream, (uint64_t)i);
    return r % 4 == 0 ? special[r / 4 % 8] : (float)(int64_t)(r >> 40) / 1000.0f - 8000.0f;
}

static bool equal(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void check_forms(const fr_neuron_rows *rows, fr_neuron_operator op)
{
    static float a[ROWS * STRIDE], b[ROWS * STRIDE], out[3][ROWS * STRIDE], scalar[ROWS];
    fr_neuron_block block = {ROWS, COUNT};
    for (int i = 0; i < ROWS * STRIDE; i++)
        a[i] = element(1, i), b[i] = element(2, i);
    for (int r = 0; r < ROWS; r++)
        scalar[r] = element(3, r);
    rows->pair[op](block, out[0], STRIDE, a, STRIDE, b, STRIDE);
    rows->scalar[op](block, out[1], STRIDE, a, STRIDE, scalar, 1);
    rows->reversed[op](block, out[2], STRIDE, a, STRIDE, scalar, 1);
    for (int r = 0; r < ROWS; r++)
        for (int i = r * STRIDE; i < r * STRIDE + COUNT; i++) {
            bool same = equal(out[0][i], plain(op, a[i], b[i])) &&
                        equal(out[1][i], plain(op, a[i], scalar[r])) &&
                        equal(out[2][i], plain(op, scalar[r], a[i]));
            if (!same)
                test_fail_format(__FILE__, __LINE__, "%s %d(%g, %g or %g)", rows->name, (int)op, (double)a[i],
                                 (double)b[i], (double)scalar[r]);
            CHECK(out[0][r * STRIDE + COUNT] == 0.0f); /* nothing past the end of a row */
        }
    rows->pair[op](block, a, STRIDE, a, STRIDE, b, STRIDE); /* in place */
    for (int r = 0; r < ROWS; r++)
        CHECK(memcmp(a + r * STRIDE, out[0] + r * STRIDE, COUNT * sizeof *a) == 0);
}

static const fr_neuron_rows *version(int i)
{
    static const char *const names[] = {"base", "avx2", "avx512"};
    return fr_neuron_rows_named(names[i]);
}

TEST(every_operator_in_every_form)
{
    for (int v = 0; v < 3; v++)
        for (int op = 1; version(v) && op < FR_NEURON_OPERATORS; op++)
            if (version(v)->pair[op])
                check_forms(version(v), (fr_neuron_operator)op);
    CHECK(version(0)->pair[FR_NEURON_BITWISE_AND] == NULL);
}

TEST(reductions_start_from_the_total)
{
    static const fr_neuron_operator ops[] = {
        FR_NEURON_ADD,      FR_NEURON_MULTIPLY,    FR_NEURON_MAXIMUM,    FR_NEURON_MINIMUM,
        FR_NEURON_SUBTRACT, FR_NEURON_LOGICAL_AND, FR_NEURON_LOGICAL_OR, FR_NEURON_LOGICAL_XOR,
        FR_NEURON_ABS_MAX,  FR_NEURON_ABS_MIN};
    static float a[ROWS * STRIDE];
    for (int v = 0; v < 3; v++)
        for (size_t k = 0; version(v) && k < sizeof ops / sizeof ops[0]; k++) {
            float total[ROWS] = {1.5f, -2, 3};
            for (int i = 0; i < ROWS * STRIDE; i++)
                a[i] = (float)(fr_rng_uniform_at(9, k, (uint64_t)i) * 4 - 2);
            version(v)->fold[ops[k]]((fr_neuron_block){ROWS, COUNT}, total, a, STRIDE);
            for (int r = 0; r < ROWS; r++) {
                double want = r == 0 ? 1.5 : r == 1 ? -2 : 3;
                for (int i = 0; i < COUNT; i++) {
                    double x = (double)a[r * STRIDE + i];
                    want = ops[k] == FR_NEURON_ADD        ? want + x
                           : ops[k] == FR_NEURON_SUBTRACT ? want - x
                           : ops[k] == FR_NEURON_MULTIPLY ? want * x
                                                          : (double)plain(ops[k], (float)want, (float)x);
                }
                CHECK_NEAR(total[r], want, 1e-5, 1e-5);
            }
        }
    CHECK(version(0)->fold[FR_NEURON_POWER] == NULL && version(0)->fold[FR_NEURON_EQUAL] == NULL);
}

TEST(identities_change_nothing)
{
    for (int op = 1; op < FR_NEURON_OPERATORS; op++)
        if (version(0)->fold[op] && op != FR_NEURON_SUBTRACT && !fr_neuron_operator_facts_of(op)->bits) {
            float total = fr_neuron_operator_identity((fr_neuron_operator)op), x = 1;
            version(0)->fold[op]((fr_neuron_block){1, 1}, &total, &x, 1);
            CHECK_NEAR(total, 1, 0, 0);
        }
}

TEST(sums_are_the_same_bits_at_every_width)
{
    static float a[1000];
    float sums[3];
    for (int i = 0; i < 1000; i++)
        a[i] = (float)fr_rng_normal_at(1, 2, (uint64_t)i);
    for (int v = 0; v < 3; v++) {
        sums[v] = 0.25f;
        (version(v) ? version(v) : version(0))
            ->fold[FR_NEURON_ADD]((fr_neuron_block){1, 1000}, &sums[v], a, 0);
    }
    CHECK(sums[0] == sums[1] && sums[0] == sums[2]);
}

TEST(whole_numbers_are_exact)
{
    const int32_t a[4] = {INT32_MAX, -7, 16777217, INT32_MIN}, b[4] = {1, 3, 3, -1};
    int32_t out[4];
    const fr_neuron_rows *rows = fr_neuron_rows_best();
    CHECK(rows->pair_signed(FR_NEURON_ADD, out, a, b, 4));
    CHECK_INT(out[0], INT32_MIN);
    CHECK_INT(out[2], 16777220); /* fp32 would round */
    CHECK(rows->pair_signed(FR_NEURON_MULTIPLY, out, a, b, 4));
    CHECK_INT(out[1], -21);
    CHECK_INT(out[2], 50331651);
    CHECK_INT(out[3], INT32_MIN);
    CHECK(rows->pair_signed(FR_NEURON_MAXIMUM, out, a, b, 4));
    CHECK_INT(out[3], -1);
    CHECK(rows->pair_signed(FR_NEURON_LESS, out, a, b, 4));
    CHECK_INT(out[1], 1);
    uint32_t u[2] = {0xffffffffu, 5}, w[2] = {2, 7}, result[2];
    CHECK(rows->pair_unsigned(FR_NEURON_MAXIMUM, result, u, w, 2));
    CHECK_INT(result[0], 0xffffffffu);
    CHECK(rows->pair_unsigned(FR_NEURON_SUBTRACT, result, u, w, 2));
    CHECK_INT(result[1], 0xfffffffeu);
    CHECK(!rows->pair_signed(FR_NEURON_BITWISE_AND, out, a, b, 4));
}

TEST(bit_patterns)
{
    const uint32_t a[4] = {0x80000001u, 0xff, 0xf0f0, 1}, b[4] = {31, 4, 32, 0};
    uint32_t out[4];
    const fr_neuron_rows *rows = fr_neuron_rows_best();
    CHECK(rows->pair_bits(FR_NEURON_LEFT_SHIFT, out, a, b, 4, 32));
    CHECK(out[0] == 0x80000000u && out[1] == 0xff0 && out[2] == 0 && out[3] == 1);
    CHECK(rows->pair_bits(FR_NEURON_RIGHT_SHIFT, out, a, b, 4, 32));
    CHECK(out[0] == 1 && out[1] == 0xf && out[2] == 0); /* logical: zeros come in */
    CHECK(rows->pair_bits(FR_NEURON_LEFT_SHIFT, out, a, b, 4, 8));
    CHECK(out[1] == 0xf0);
    CHECK(rows->pair_bits(FR_NEURON_INVERT, out, a, b, 4, 16));
    CHECK(out[2] == 0x0f0f);
    CHECK(rows->pair_bits(FR_NEURON_BITWISE_XOR, out, a, b, 4, 32));
    CHECK(out[1] == 0xfb);
    CHECK(!rows->pair_bits(FR_NEURON_ADD, out, a, b, 4, 32));
}

TEST(facts)
{
    for (int op = 1; op < FR_NEURON_OPERATORS; op++) {
        const fr_neuron_operator_facts *facts = fr_neuron_operator_facts_of((fr_neuron_operator)op);
        CHECK(!facts->reduces || facts->bits || version(0)->fold[op]);
        CHECK(facts->bits == !version(0)->pair[op] || op == FR_NEURON_AVERAGE);
    }
    CHECK_NEAR(fr_neuron_operator_apply(FR_NEURON_SUBTRACT, 5, 3), 2, 0, 0);
    CHECK_INT(fr_neuron_operator_facts_of(FR_NEURON_DIVIDE)->least_generation, 0);
}

TEST_MAIN(neuron_operators)
