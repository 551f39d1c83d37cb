/* Micro-scaled numbers: quantize_mx against the definition (scale from the largest of each 8 x 4 group), round trips within
 * half a step of the format, and nc_matmul_mx against a product in double of the dequantised numbers. */
#include "neuron_tiles.h"

enum { P = 64, COLUMNS = 6 };

/* An e8m0 code as a number. */
static double scale_of(uint8_t code)
{
    return ldexp(1, code - 127);
}

/* float8 and float4 by the bits: an independent decoder. */
static double number_of(uint8_t code, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, exponent = code >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = code & ((1 << fraction_bits) - 1);
    double sign = code >> (exponent_bits + fraction_bits) & 1 ? -1 : 1;
    double one = exponent ? 1 : 0;
    return sign * ldexp(one + ldexp(fraction, -fraction_bits), (exponent ? exponent : 1) - bias);
}

static fr_neuron_call quantize(const tile *dst, const tile *src, const tile *scale)
{
    fr_neuron_call call = fr_neuron_call_of("quantize_mx");
    set_tile(&call, "dst", dst), set_tile(&call, "src", src), set_tile(&call, "dst_scale", scale);
    return call;
}

TEST(quantize_by_the_definition)
{
    DESK(d, 4);
    for (int e5 = 0; e5 < 2; e5++) {
        int most = e5 ? 15 : 8;
        tile src = tile_random(&d, e5 ? FR_NEURON_FLOAT16 : FR_NEURON_BFLOAT16, FR_NEURON_SBUF, P,
                               4 * COLUMNS, CONTIGUOUS, -30, 30);
        tile q = tile_new(&d, e5 ? FR_NEURON_FLOAT8_E5M2_X4 : FR_NEURON_FLOAT8_E4M3FN_X4, FR_NEURON_SBUF, P,
                          COLUMNS, CONTIGUOUS);
        tile s = tile_random(&d, FR_NEURON_UINT8, FR_NEURON_SBUF, P, COLUMNS, CONTIGUOUS, 77, 77.1);
        fr_neuron_call call = quantize(&q, &src, &s);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), 64, 0, 0);
        uint8_t codes[P * COLUMNS * 4], scales[P * COLUMNS];
        tile_raw(&d, &q, codes), tile_raw(&d, &s, scales);
        for (int g = 0; g < P / 8; g++)
            for (int c = 0; c < COLUMNS; c++) {
                double largest = 0;
                for (int r = 0; r < 8; r++)
                    for (int j = 0; j < 4; j++)
                        largest =
                            fmax(largest, fabs((double)src.values[(g * 8 + r) * 4 * COLUMNS + c * 4 + j]));
                int row = g / 4 * 32 + g % 4;
                CHECK_INT(scales[row * COLUMNS + c], (int)floor(log2(largest)) - (most - 1) + 127);
                for (int r = 0; r < 8; r++)
                    for (int j = 0; j < 4; j++) {
                        double x = (double)src.values[(g * 8 + r) * 4 * COLUMNS + c * 4 + j];
                        double got =
                            number_of(codes[((g * 8 + r) * COLUMNS + c) * 4 + j], e5 ? 5 : 4, e5 ? 2 : 3) *
                            scale_of(scales[row * COLUMNS + c]);
                        double step =
                            ldexp(1, (x != 0 ? ilogb(x) : -20) - (e5 ? 2 : 3)); /* of the format, at x */
                        CHECK_NEAR(got, x, step / 2 + largest * ldexp(1, -most - 8), 0);
                    }
            }
        for (int row = 0; row < P; row++)
            if (row % 32 >= 4)
                CHECK_INT(scales[row * COLUMNS], 77); /* other rows of the scales are left alone */
        tile_free(&d, &src), tile_free(&d, &q), tile_free(&d, &s);
    }
    desk_close(&d);
}

TEST(zeros_and_infinities)
{
    DESK(d, 4);
    static uint16_t raw[32 * 8];
    raw[4] = 0x7f80; /* infinity of bfloat16, in the second group */
    tile src = tile_of(&d, FR_NEURON_BFLOAT16, 32, 8, raw);
    tile q = tile_new(&d, FR_NEURON_FLOAT8_E4M3FN_X4, FR_NEURON_SBUF, 32, 2, CONTIGUOUS);
    tile s = tile_new(&d, FR_NEURON_FLOAT8_E8M0FNU, FR_NEURON_SBUF, 4, 2, CONTIGUOUS);
    fr_neuron_call call = quantize(&q, &src, &s);
    EXPECT_OK(&d, &call);
    uint8_t scales[8], codes[32 * 2 * 4];
    tile_raw(&d, &s, scales), tile_raw(&d, &q, codes);
    CHECK(scales[0] == 0 && scales[1] == 255 && scales[2] == 0);
    CHECK(codes[0] == 0 && codes[4] == 0x7f);
    desk_close(&d);
}

TEST(quantize_limits)
{
    DESK(d, 4);
    tile src = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, P, 400, CONTIGUOUS, -1, 1);
    tile q = tile_new(&d, FR_NEURON_FLOAT8_E4M3FN_X4, FR_NEURON_SBUF, P, 100, CONTIGUOUS);
    tile s = tile_new(&d, FR_NEURON_UINT8, FR_NEURON_SBUF, 128, 100, CONTIGUOUS);
    fr_neuron_call call = quantize(&q, &src, &s);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 100, 0, 0);
    tile part = s; /* packed with others: rows 4 to 7 of each quadrant */
    part.view.partition = 4, part.view.partitions = 124;
    call = quantize(&q, &src, &part);
    EXPECT_OK(&d, &call);
    part.view.partition = 2;
    call = quantize(&q, &src, &part);
    EXPECT_REFUSED(&d, &call, "mx_layout");
    part.view.partition = 16, part.view.partitions = 112;
    call = quantize(&q, &src, &part);
    EXPECT_REFUSED(&d, &call, "mx_layout");
    part.view.partition = 0, part.view.partitions = 8; /* two quadrants need 36 */
    call = quantize(&q, &src, &part);
    EXPECT_REFUSED(&d, &call, "mx_layout");
    tile odd = src;
    odd.view.partitions = 40;
    tile odd_q = q;
    odd_q.view.partitions = 40;
    call = quantize(&odd_q, &odd, &s);
    EXPECT_REFUSED(&d, &call, "mx_layout");
    tile f = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, P, 400, CONTIGUOUS, -1, 1);
    call = quantize(&q, &f, &s);
    EXPECT_REFUSED(&d, &call, "dtype");
    tile four = tile_new(&d, FR_NEURON_FLOAT4_E2M1FN_X4, FR_NEURON_SBUF, P, 100, CONTIGUOUS);
    call = quantize(&four, &src, &s);
    EXPECT_REFUSED(&d, &call, "dtype");
    src.view.size[0] = 396;
    call = quantize(&q, &src, &s);
    EXPECT_REFUSED(&d, &call, "size_limit");
    src.view.size[0] = 398;
    call = quantize(&q, &src, &s);
    EXPECT_REFUSED(&d, &call, "mx_layout");
    desk_close(&d);
    DESK(old, 3);
    tile x = tile_random(&old, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 32, 4, CONTIGUOUS, 0, 1);
    call = quantize(&x, &x, &x);
    EXPECT_REFUSED(&old, &call, "generation");
    desk_close(&old);
}

/* Random codes and scales of an operand; `values`: dequantised, [4 P][n]. */
typedef struct packed {
    tile data, scale;
    double *values;
} packed;

static packed packed_random(desk *d, fr_neuron_dtype dtype, int64_t n)
{
    packed p = {.values = calloc((size_t)(4 * P * n), sizeof(double))};
    bool four = dtype == FR_NEURON_FLOAT4_E2M1FN_X4;
    int exponent = four ? 2 : dtype == FR_NEURON_FLOAT8_E5M2_X4 ? 5 : 4, fraction = four ? 1 : 7 - exponent;
    uint8_t *codes = calloc((size_t)(P * n), 4), *scales = calloc((size_t)(P * n), 1);
    for (int64_t i = 0; i < P * n; i++)
        scales[i] = (uint8_t)desk_random(d, 122, 130);
    for (int64_t i = 0; i < P * n * 4; i++) {
        uint8_t code = (uint8_t)desk_random(d, 0, four ? 16 : 256);
        if (!four && (code >> fraction & ((1 << exponent) - 1)) >= (1 << exponent) - 2)
            code = 0x11; /* keep away from NaN and huge numbers */
        int64_t row = i / (4 * n), c = i / 4 % n;
        codes[four ? i / 2 : i] |= (uint8_t)(four && i % 2 ? code << 4 : code);
        int64_t scale_row = row / 32 * 32 + row % 32 / 8;
        p.values[(row * 4 + i % 4) * n + c] =
            number_of(code, exponent, fraction) * scale_of(scales[scale_row * n + c]);
    }
    p.data = tile_new(d, dtype, FR_NEURON_SBUF, P, n, CONTIGUOUS);
    CHECK(fr_neuron_tensor_write(p.data.tensor, codes, (size_t)(P * n * (four ? 2 : 4)), &d->error) == FR_OK);
    p.scale = tile_of(d, FR_NEURON_UINT8, P, n, scales);
    free(codes), free(scales);
    return p;
}

static fr_neuron_call matmul(const tile *dst, const packed *a, const packed *b)
{
    fr_neuron_call call = fr_neuron_call_of("nc_matmul_mx");
    set_tile(&call, "dst", dst), set_tile(&call, "stationary", &a->data), set_tile(&call, "moving", &b->data);
    set_tile(&call, "stationary_scale", &a->scale), set_tile(&call, "moving_scale", &b->scale);
    return call;
}

TEST(matmul_of_every_pair_of_formats)
{
    DESK(d, 4);
    static const fr_neuron_dtype formats[] = {FR_NEURON_FLOAT8_E4M3FN_X4, FR_NEURON_FLOAT8_E5M2_X4,
                                              FR_NEURON_FLOAT4_E2M1FN_X4};
    enum { M = 18, N = 70 };
    for (int i = 0; i < 9; i++) {
        packed a = packed_random(&d, formats[i % 3], M), b = packed_random(&d, formats[i / 3], N);
        bool half = i % 2;
        tile c =
            tile_new(&d, half ? FR_NEURON_BFLOAT16 : FR_NEURON_FLOAT32, FR_NEURON_PSUM, M, N, CONTIGUOUS);
        fr_neuron_call call = matmul(&c, &a, &b);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), N, 0, 0);
        float want[M * N], twice[M * N];
        double size = 0;
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                double sum = 0;
                for (int k = 0; k < 4 * P; k++) {
                    sum += a.values[k * M + m] * b.values[k * N + n];
                    size = fmax(size, fabs(a.values[k * M + m] * b.values[k * N + n]));
                }
                want[m * N + n] = (float)sum;
                twice[m * N + n] = (float)(2 * sum);
            }
        tile_read(&d, &c);
        check_values(&c, want, half ? 0.004 : 1e-5, size * 1e-5, "matmul_mx");
        EXPECT_OK(&d, &call); /* absent accumulate: adds to what it began */
        tile_read(&d, &c);
        check_values(&c, twice, half ? 0.01 : 1e-5, size * 1e-5, "added");
        set_number(&call, "accumulate", 0);
        EXPECT_OK(&d, &call);
        tile_read(&d, &c);
        check_values(&c, want, half ? 0.004 : 1e-5, size * 1e-5, "overwritten");
        tile_free(&d, &a.data), tile_free(&d, &a.scale), tile_free(&d, &b.data), tile_free(&d, &b.scale),
            tile_free(&d, &c);
        free(a.values), free(b.values);
    }
    desk_close(&d);
}

TEST(matmul_limits)
{
    DESK(d, 4);
    packed a = packed_random(&d, FR_NEURON_FLOAT8_E4M3FN_X4, 16),
           b = packed_random(&d, FR_NEURON_FLOAT8_E5M2_X4, 40);
    packed odd = packed_random(&d, FR_NEURON_FLOAT8_E5M2_X4, 15);
    tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_PSUM, 16, 40, CONTIGUOUS);
    tile sbuf = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 16, 40, CONTIGUOUS);
    tile odd_c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_PSUM, 15, 40, CONTIGUOUS);
    fr_neuron_call call = matmul(&sbuf, &a, &b);
    EXPECT_REFUSED(&d, &call, "operand_memory");
    call = matmul(&odd_c, &odd, &b);
    EXPECT_REFUSED(&d, &call, "matmul_shape");
    call = matmul(&c, &b, &a);
    EXPECT_REFUSED(&d, &call, "matmul_shape");
    call = matmul(&c, &a, &b);
    set_number(&call, "accumulate", 1);
    EXPECT_REFUSED(&d, &call, "accumulate_start");
    call = matmul(&c, &a, &b);
    static const double position[] = {0, 0}, off[] = {32, 0}, size[] = {64, 128}, narrow[] = {64, 64};
    set_list(&call, "tile_position", position, 2);
    EXPECT_REFUSED(&d, &call, "matmul_tile"); /* the two come together */
    set_list(&call, "tile_size", size, 2);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 64, 0, 0);
    set_list(&call, "tile_position", off, 2);
    EXPECT_REFUSED(&d, &call, "matmul_tile");
    set_list(&call, "tile_position", position, 2), set_list(&call, "tile_size", narrow, 2);
    EXPECT_REFUSED(&d, &call, "matmul_tile");
    packed unscaled = a;
    unscaled.scale = tile_new(&d, FR_NEURON_UINT8, FR_NEURON_SBUF, P, 16, CONTIGUOUS);
    call = matmul(&c, &unscaled, &b);
    EXPECT_REFUSED(&d, &call, "uninitialised_read");
    /* quantize_mx writes four rows a quadrant, and that is enough */
    tile src = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, P, 64, CONTIGUOUS, -1, 1);
    fr_neuron_call fill = quantize(&a.data, &src, &unscaled.scale);
    EXPECT_OK(&d, &fill);
    EXPECT_OK(&d, &call);
    tile plain = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, P, 16, CONTIGUOUS, -1, 1);
    packed wrong = a;
    wrong.data = plain;
    call = matmul(&c, &wrong, &b);
    EXPECT_REFUSED(&d, &call, "dtype");
    free(a.values), free(b.values), free(odd.values);
    desk_close(&d);
}

TEST_MAIN(neuron_mx)
