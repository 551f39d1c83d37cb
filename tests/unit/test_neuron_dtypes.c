/* Numbers of the NeuronCore against definitions computed another way: every code of every small float
 * decoded from its sign, exponent and fraction with ldexp; every encoding compared with the nearest of all
 * codes found by search; ties, overflow and special values; the vector versions against the plain ones,
 * bit for bit. */
#include "neuron_fixture.h"

#include "neuron/neuron_internal.h"
#include "neuron/product.h"

#include <math.h>

typedef struct small_float {
    fr_neuron_dtype dtype;
    int exponent, fraction, bias, top; /* top: 0 infinities, 1 one NaN, 2 numbers only */
} small_float;

static const small_float SMALL[] = {
    {FR_NEURON_FLOAT8_E4M3, 4, 3, 7, 0}, {FR_NEURON_FLOAT8_E5M2, 5, 2, 15, 0},
    {FR_NEURON_FLOAT8_E3M4, 3, 4, 3, 0}, {FR_NEURON_FLOAT8_E4M3FN, 4, 3, 7, 1},
    {FR_NEURON_FLOAT16, 5, 10, 15, 0},   {FR_NEURON_BFLOAT16, 8, 7, 127, 0},
};

/* By definition, in double. */
static double value_of(const small_float *f, unsigned code)
{
    int ones = (1 << f->exponent) - 1, e = (int)(code >> f->fraction) & ones,
        m = (int)(code & ((1u << f->fraction) - 1));
    double sign = code >> (f->exponent + f->fraction) & 1 ? -1 : 1;
    if (e == ones && f->top == 0)
        return m ? NAN : sign * INFINITY;
    if (e == ones && f->top == 1 && m == (1 << f->fraction) - 1)
        return NAN;
    if (e == 0)
        return sign * ldexp(m, 1 - f->bias - f->fraction);
    return sign * ldexp(m + (1 << f->fraction), e - f->bias - f->fraction);
}

static unsigned codes_of(const small_float *f)
{
    return 1u << (1 + f->exponent + f->fraction);
}

static float decoded(const small_float *f, unsigned code)
{
    uint16_t two = (uint16_t)code;
    uint8_t one = (uint8_t)code;
    float out;
    fr_neuron_to_float(&out, fr_neuron_dtype_bytes(f->dtype) == 1 ? (void *)&one : (void *)&two, f->dtype, 1);
    return out;
}

static unsigned encoded(const small_float *f, float value)
{
    uint16_t two = 0;
    uint8_t one = 0;
    bool narrow = fr_neuron_dtype_bytes(f->dtype) == 1;
    fr_neuron_from_float(narrow ? (void *)&one : (void *)&two, &value, f->dtype, 1);
    return narrow ? one : two;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

TEST(every_code_decodes_to_its_definition_and_back)
{
    for (size_t s = 0; s < sizeof SMALL / sizeof *SMALL; s++)
        for (unsigned code = 0; code < codes_of(&SMALL[s]); code++) {
            float value = decoded(&SMALL[s], code);
            CHECK(same(value, value_of(&SMALL[s], code)));
            if (!isnan(value))
                CHECK_INT(encoded(&SMALL[s], value), code);
            else
                CHECK(isnan(decoded(&SMALL[s], encoded(&SMALL[s], value))));
        }
}

/* Between each two neighbours: the middle goes to the even code, what is beside it to the nearer one. */
TEST(ties_go_to_even_and_the_rest_to_the_nearest)
{
    for (size_t s = 0; s < sizeof SMALL / sizeof *SMALL; s++) {
        const small_float *f = &SMALL[s];
        for (unsigned code = 0; code + 1 < codes_of(f) / 2; code++) {
            double low = value_of(f, code), high = value_of(f, code + 1);
            if (!isfinite(low) || !isfinite(high))
                continue;
            float middle = (float)((low + high) / 2);
            if ((double)middle != (low + high) / 2)
                continue; /* bf16 subnormals: the middle is no float */
            CHECK_INT(encoded(f, middle), code & 1 ? code + 1 : code);
            CHECK_INT(encoded(f, nextafterf(middle, INFINITY)), code + 1);
            CHECK_INT(encoded(f, nextafterf(middle, 0)), code);
            CHECK_INT(encoded(f, -middle), (code & 1 ? code + 1 : code) | codes_of(f) / 2);
        }
    }
}

TEST(overflow_becomes_infinity_or_nan)
{
    CHECK(isinf(decoded(&SMALL[0], encoded(&SMALL[0], 1e9f))));
    CHECK(decoded(&SMALL[0], encoded(&SMALL[0], 247.9f)) == 240);
    CHECK(isinf(decoded(&SMALL[0], encoded(&SMALL[0], 248))));
    CHECK(decoded(&SMALL[3], encoded(&SMALL[3], 463.9f)) == 448);
    CHECK(decoded(&SMALL[3], encoded(&SMALL[3], 464)) == 448); /* a tie with the NaN's code, which is odd */
    CHECK(isnan(decoded(&SMALL[3], encoded(&SMALL[3], 464.1f))));
    CHECK(isnan(decoded(&SMALL[3], encoded(&SMALL[3], -INFINITY))));
    CHECK(decoded(&SMALL[4], encoded(&SMALL[4], 65519.9f)) == 65504);
    CHECK(isinf(decoded(&SMALL[4], encoded(&SMALL[4], 65520))));
    CHECK(isinf(decoded(&SMALL[5], encoded(&SMALL[5], -3.4e38f))));
    for (size_t s = 0; s < sizeof SMALL / sizeof *SMALL; s++) {
        CHECK(isnan(decoded(&SMALL[s], encoded(&SMALL[s], NAN))));
        CHECK(encoded(&SMALL[s], -0.0f) == codes_of(&SMALL[s]) / 2);
        CHECK(encoded(&SMALL[s], 1e-45f) == 0);
    }
}

TEST(scales_are_powers_of_two)
{
    for (int code = 0; code < 256; code++) {
        uint8_t byte = (uint8_t)code;
        float value;
        fr_neuron_to_float(&value, &byte, FR_NEURON_FLOAT8_E8M0FNU, 1);
        CHECK(same(value, code == 255 ? NAN : ldexp(1, code - 127)));
        fr_neuron_from_float(&byte, &value, FR_NEURON_FLOAT8_E8M0FNU, 1);
        CHECK_INT(byte, code);
    }
}

TEST(tfloat32_keeps_ten_bits)
{
    static const float cases[][2] = {{1, 1},
                                     {1 + 0x1p-10f, 1 + 0x1p-10f},
                                     {1 + 0x1p-11f, 1},
                                     {1 + 0x3p-11f, 1 + 0x1p-9f},
                                     {1 + 0x1.8p-11f, 1 + 0x1p-10f},
                                     {-1 - 0x1p-11f, -1},
                                     {0x1.fffp127f, INFINITY},
                                     {INFINITY, INFINITY}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float out, back;
        fr_neuron_from_float(&out, cases[i], FR_NEURON_TFLOAT32, 1);
        fr_neuron_to_float(&back, &out, FR_NEURON_TFLOAT32, 1);
        CHECK(out == cases[i][1] && back == out);
    }
}

TEST(integers_round_to_even_and_saturate)
{
    static const float in[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 300, -300, 1e20f, -1e20f, NAN, 4294967040.0f};
    int8_t small[11];
    uint8_t bytes[11];
    int32_t whole[11];
    uint32_t counts[11];
    fr_neuron_from_float(small, in, FR_NEURON_INT8, 11);
    fr_neuron_from_float(bytes, in, FR_NEURON_UINT8, 11);
    fr_neuron_from_float(whole, in, FR_NEURON_INT32, 11);
    fr_neuron_from_float(counts, in, FR_NEURON_UINT32, 11);
    static const int64_t want[4][11] = {{0, 2, 2, 0, -2, 127, -128, 127, -128, 0, 127},
                                        {0, 2, 2, 0, 0, 255, 0, 255, 0, 0, 255},
                                        {0, 2, 2, 0, -2, 300, -300, INT32_MAX, INT32_MIN, 0, INT32_MAX},
                                        {0, 2, 2, 0, 0, 300, 0, UINT32_MAX, 0, 0, 4294967040}};
    for (int i = 0; i < 11; i++) {
        CHECK_INT(small[i], want[0][i]);
        CHECK_INT(bytes[i], want[1][i]);
        CHECK_INT(whole[i], want[2][i]);
        CHECK_INT(counts[i], want[3][i]);
    }
    static const int32_t exact[3] = {16777217, INT32_MIN, -3};
    float out[3];
    fr_neuron_to_float(out, exact, FR_NEURON_INT32, 3);
    CHECK(out[0] == 16777216 && out[1] == -2147483648.0f && out[2] == -3);
}

TEST(packed_numbers_unpack_in_order)
{
    const float in[8] = {0.5f, -6, 3, 1.5f, 100, -0.0f, 0.24f, 0.26f};
    uint16_t two[2];
    uint32_t four[2];
    float out[8];
    fr_neuron_pack(two, in, FR_NEURON_FLOAT4_E2M1FN_X4, 2);
    CHECK_INT(two[0], 0x1 | 0xF << 4 | 0x5 << 8 | 0x3 << 12);
    fr_neuron_unpack(out, two, FR_NEURON_FLOAT4_E2M1FN_X4, 2);
    CHECK(out[0] == 0.5f && out[1] == -6 && out[2] == 3 && out[3] == 1.5f && out[4] == 6 && out[6] == 0 &&
          out[7] == 0.5f);
    fr_neuron_pack(four, in, FR_NEURON_FLOAT8_E5M2_X4, 2);
    fr_neuron_unpack(out, four, FR_NEURON_FLOAT8_E5M2_X4, 2);
    CHECK(out[0] == 0.5f && out[1] == -6 && out[4] == 96 && out[7] == 0.25f);
}

static const char *const VERSIONS[] = {"plain", "avx2", "avx512"};

TEST(vector_versions_convert_to_the_same_bits)
{
    const fr_neuron_kernels *plain = fr_neuron_kernels_named("plain");
    enum { N = 65536 + 7 };
    uint16_t *codes = malloc(N * 2), *back[2] = {malloc(N * 2), malloc(N * 2)};
    float *values[2] = {malloc(N * 4), malloc(N * 4)};
    for (int i = 0; i < N; i++)
        codes[i] = (uint16_t)i;
    for (int v = 1; v < 3; v++) {
        const fr_neuron_kernels *k = fr_neuron_kernels_named(VERSIONS[v]);
        if (!k)
            continue;
        plain->half_to_float(values[0], codes, N);
        k->half_to_float(values[1], codes, N);
        CHECK(memcmp(values[0], values[1], N * 4) == 0);
        plain->bf16_to_float(values[0], codes, N);
        k->bf16_to_float(values[1], codes, N);
        CHECK(memcmp(values[0], values[1], N * 4) == 0);
        for (uint32_t high = 0; high < 65536; high += 257) { /* floats of all kinds, by their bits */
            for (uint32_t i = 0; i < N; i++) {
                uint32_t bits = (i * 65537u) ^ (high << 16);
                memcpy(&values[0][i], &bits, 4);
            }
            plain->half_from_float(back[0], values[0], N);
            k->half_from_float(back[1], values[0], N);
            CHECK(memcmp(back[0], back[1], N * 2) == 0);
            plain->bf16_from_float(back[0], values[0], N);
            k->bf16_from_float(back[1], values[0], N);
            CHECK(memcmp(back[0], back[1], N * 2) == 0);
        }
    }
    free(codes);
    for (int i = 0; i < 2; i++) {
        free(back[i]);
        free(values[i]);
    }
}

TEST(products_agree_with_the_definition_in_every_version)
{
    enum { PITCH = 528, DEPTH = 512 }; /* micro-scaled products have four numbers a partition */
    static float a[DEPTH * 144], b[DEPTH * PITCH], out[3][128 * PITCH];
    for (int i = 0; i < DEPTH * 144; i++)
        a[i] = (float)((i * 37) % 61 - 30) / 8;
    for (int i = 0; i < DEPTH * PITCH; i++)
        b[i] = (float)((i * 53) % 47 - 23) / 16;
    static const int shapes[][3] = {{128, 128, 512}, {1, 1, 1}, {17, 13, 49}, {256, 8, 100}, {3, 128, 47},
                                    {512, 128, 512}, {512, 127, 17}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int v = 0; v < 3; v++) {
            const fr_neuron_kernels *kernels = fr_neuron_kernels_named(VERSIONS[v]);
            if (!kernels)
                continue;
            for (int i = 0; i < 128 * PITCH; i++)
                out[v][i] = 1;
            fr_neuron_product p = {out[v],       a,   b, PITCH, 144, PITCH, shapes[s][0], shapes[s][1],
                                   shapes[s][2], true};
            kernels->product(&p);
            for (int m = 0; m < shapes[s][1]; m++)
                for (int n = 0; n < shapes[s][2]; n++) {
                    double sum = 0;
                    for (int k = 0; k < shapes[s][0]; k++)
                        sum += (double)a[k * 144 + m] * b[k * PITCH + n];
                    CHECK(out[v][m * PITCH + n] == (float)sum + 1); /* exact: small dyadic numbers */
                }
            CHECK(out[v][shapes[s][2]] == 1); /* nothing beyond the row */
            CHECK(memcmp(out[v], out[0], sizeof out[0]) == 0);
        }
}

TEST_MAIN(neuron_dtypes)
