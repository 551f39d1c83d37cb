/* Instructions of the Vector engine: each against a plain loop over random tiles in every layout and dtype, each limit
 * refused by its rule, each cost at two points. */
#include "neuron_tiles.h"

#include <float.h>

static const fr_neuron_dtype numbers[] = {FR_NEURON_FLOAT32,     FR_NEURON_BFLOAT16,    FR_NEURON_FLOAT16,
                                          FR_NEURON_FLOAT8_E4M3, FR_NEURON_FLOAT8_E5M2, FR_NEURON_TFLOAT32,
                                          FR_NEURON_INT32,       FR_NEURON_INT16,       FR_NEURON_UINT8};
enum { NUMBERS = sizeof numbers / sizeof numbers[0], ROWS = 5, N = 24 };

static float fp32(fr_neuron_operator op, float a, float b)
{
    switch (op) {
    case FR_NEURON_ADD: return a + b;
    case FR_NEURON_SUBTRACT: return a - b;
    case FR_NEURON_MULTIPLY: return a * b;
    case FR_NEURON_MAXIMUM: return a > b ? a : b;
    case FR_NEURON_MINIMUM: return a < b ? a : b;
    case FR_NEURON_GREATER: return a > b;
    case FR_NEURON_LESS_EQUAL: return a <= b;
    case FR_NEURON_LOGICAL_AND: return a != 0 && b != 0;
    case FR_NEURON_ABS: return fabsf(a);
    case FR_NEURON_POWER: return powf(a, b);
    case FR_NEURON_RSQRT: return 1 / sqrtf(a);
    default: return NAN;
    }
}

/* ---- tensor_tensor -------------------------------------------------------------------------------------------- */

static fr_neuron_call tensor_tensor(const tile *dst, const tile *a, const tile *b, fr_neuron_operator op)
{
    fr_neuron_call call = fr_neuron_call_of("tensor_tensor");
    set_tile(&call, "dst", dst);
    set_tile(&call, "data1", a);
    set_tile(&call, "data2", b);
    set_number(&call, "op", op);
    return call;
}

TEST(tensor_tensor_all_layouts_and_dtypes)
{
    DESK(d, 3);
    static const fr_neuron_operator ops[] = {FR_NEURON_ADD,     FR_NEURON_SUBTRACT, FR_NEURON_MULTIPLY,
                                             FR_NEURON_MAXIMUM, FR_NEURON_GREATER,  FR_NEURON_LOGICAL_AND};
    for (int i = 0; i < 3 * NUMBERS * LAYOUT_KINDS; i++) {
        fr_neuron_dtype da = numbers[i % NUMBERS], db = numbers[(i / 3) % NUMBERS],
                        dd = numbers[(i / 7) % NUMBERS];
        fr_neuron_memory ma = i % 5 == 0 ? FR_NEURON_PSUM : FR_NEURON_SBUF;
        tile a = tile_random(&d, da, ma, ROWS, N, (layout_kind)(i % LAYOUT_KINDS), -9, 9);
        tile b = tile_random(&d, db, FR_NEURON_SBUF, ROWS, N, (layout_kind)(i / 4 % LAYOUT_KINDS), -9, 9);
        tile c = tile_new(&d, dd, i % 7 == 0 ? FR_NEURON_PSUM : FR_NEURON_SBUF, ROWS, N,
                          (layout_kind)(i / 16 % 3));
        fr_neuron_operator op = ops[i % 6];
        fr_neuron_call call = tensor_tensor(&c, &a, &b, op);
        set_number(&call, "engine", FR_NEURON_VECTOR);
        EXPECT_OK(&d, &call);
        float want[ROWS * N];
        for (int j = 0; j < ROWS * N; j++)
            want[j] = rounded(fp32(op, a.values[j], b.values[j]), dd);
        tile_read(&d, &c);
        check_values(&c, want, 0, 0, "tensor_tensor");
        tile_free(&d, &a), tile_free(&d, &b), tile_free(&d, &c);
    }
    desk_close(&d);
}

TEST(tensor_tensor_in_place_and_shifted)
{
    DESK(d, 3);
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 4, 32, CONTIGUOUS, -1, 1);
    float want[4 * 16];
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 16; i++)
            want[r * 16 + i] = a.values[r * 32 + i] + a.values[r * 32 + i];
    tile left = a, right = a;
    left.n = right.n = 16;
    left.view.size[0] = right.view.size[0] = 16;
    right.view.offset = 8; /* the result lands half over its own input */
    fr_neuron_call call = tensor_tensor(&right, &left, &left, FR_NEURON_ADD);
    EXPECT_OK(&d, &call);
    float got[4 * 16];
    right.values = got;
    tile_read(&d, &right);
    check_values(&right, want, 0, 0, "shifted");
    desk_close(&d);
}

TEST(tensor_tensor_integers)
{
    DESK(d, 3);
    const int32_t x[4] = {16777217, -3, INT32_MAX, 100}, y[4] = {2, 5, 1, 7};
    tile a = tile_of(&d, FR_NEURON_INT32, 1, 4, x), b = tile_of(&d, FR_NEURON_INT32, 1, 4, y);
    tile c = tile_new(&d, FR_NEURON_INT32, FR_NEURON_SBUF, 1, 4, CONTIGUOUS);
    fr_neuron_call call = tensor_tensor(&c, &a, &b, FR_NEURON_ADD);
    int32_t out[4];
    EXPECT_OK(&d, &call); /* GpSimd: exact */
    CHECK_INT(last_record(&d)->engine, FR_NEURON_GPSIMD);
    tile_raw(&d, &c, out);
    CHECK(out[0] == 16777219 && out[1] == 2 && out[2] == INT32_MIN && out[3] == 107);
    set_number(&call, "engine", FR_NEURON_VECTOR); /* through fp32 */
    EXPECT_OK(&d, &call);
    tile_raw(&d, &c, out);
    CHECK(out[0] == 16777218 && out[2] == INT32_MAX && out[3] == 107);
    tile psum = tile_random(&d, FR_NEURON_INT32, FR_NEURON_PSUM, 1, 4, CONTIGUOUS, 0, 9);
    call = tensor_tensor(&c, &a, &psum, FR_NEURON_ADD);
    EXPECT_OK(&d, &call);
    CHECK_INT(last_record(&d)->engine, FR_NEURON_VECTOR);
    call = tensor_tensor(&c, &a, &b, FR_NEURON_BITWISE_XOR);
    EXPECT_OK(&d, &call);
    tile_raw(&d, &c, out);
    CHECK(out[0] == (16777217 ^ 2) && out[1] == (-3 ^ 5));
    const uint8_t small[4] = {0x81, 0xff, 1, 0}, shift[4] = {1, 4, 7, 3};
    tile s = tile_of(&d, FR_NEURON_UINT8, 1, 4, small), t = tile_of(&d, FR_NEURON_UINT8, 1, 4, shift);
    tile e = tile_new(&d, FR_NEURON_UINT8, FR_NEURON_SBUF, 1, 4, CONTIGUOUS);
    uint8_t bytes[4];
    call = tensor_tensor(&e, &s, &t, FR_NEURON_LEFT_SHIFT);
    EXPECT_OK(&d, &call);
    tile_raw(&d, &e, bytes);
    CHECK(bytes[0] == 2 && bytes[1] == 0xf0 && bytes[2] == 0x80 && bytes[3] == 0);
    desk_close(&d);
}

TEST(tensor_tensor_limits)
{
    DESK(d, 3);
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 8, 16, CONTIGUOUS, 0, 1);
    tile p = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_PSUM, 8, 16, CONTIGUOUS, 0, 1);
    tile shorter = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 8, 15, CONTIGUOUS, 0, 1);
    tile fewer = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 7, 16, CONTIGUOUS, 0, 1);
    tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 8, 16, CONTIGUOUS);
    fr_neuron_call call = tensor_tensor(&c, &p, &p, FR_NEURON_ADD);
    EXPECT_REFUSED(&d, &call, "both_inputs_psum");
    call = tensor_tensor(&c, &a, &shorter, FR_NEURON_ADD);
    EXPECT_REFUSED(&d, &call, "elements_match");
    call = tensor_tensor(&c, &a, &fewer, FR_NEURON_ADD);
    EXPECT_REFUSED(&d, &call, "partitions_match");
    call = tensor_tensor(&c, &a, &a, FR_NEURON_DIVIDE);
    EXPECT_REFUSED(&d, &call, "operator");
    call = tensor_tensor(&c, &a, &a, FR_NEURON_ABS);
    EXPECT_REFUSED(&d, &call, "operator");
    call = tensor_tensor(&c, &a, &a, FR_NEURON_BITWISE_AND);
    EXPECT_REFUSED(&d, &call, "operator_kind");
    call = tensor_tensor(&c, &a, &a, FR_NEURON_ABS_MAX);
    EXPECT_REFUSED(&d, &call, "generation");
    call = tensor_tensor(&c, &a, &a, FR_NEURON_POWER);
    EXPECT_OK(&d, &call);
    set_number(&call, "engine", FR_NEURON_VECTOR);
    EXPECT_REFUSED(&d, &call, "operator_engine");
    set_number(&call, "engine", FR_NEURON_SCALAR);
    EXPECT_REFUSED(&d, &call, "engine");
    call = tensor_tensor(&c, &a, &p, FR_NEURON_POWER);
    EXPECT_REFUSED(&d, &call, "engine_memory");
    tile packed = tile_new(&d, FR_NEURON_FLOAT8_E4M3FN_X4, FR_NEURON_SBUF, 8, 16, CONTIGUOUS);
    call = tensor_tensor(&packed, &a, &a, FR_NEURON_ADD);
    EXPECT_REFUSED(&d, &call, "dtype");
    desk_close(&d);
}

/* Cycles of one shape in each mode. */
static double tensor_tensor_cycles(int generation, fr_neuron_dtype dtype, int64_t n, bool psum,
                                   fr_neuron_operator op)
{
    DESK(d, generation);
    tile a = tile_random(&d, dtype, psum ? FR_NEURON_PSUM : FR_NEURON_SBUF, 2, n, CONTIGUOUS, 0, 1);
    tile b = tile_random(&d, dtype, FR_NEURON_SBUF, 2, n, CONTIGUOUS, 0, 1);
    tile c = tile_new(&d, dtype, FR_NEURON_SBUF, 2, n, CONTIGUOUS);
    fr_neuron_call call = tensor_tensor(&c, &a, &b, op);
    EXPECT_OK(&d, &call);
    double cycles = last_cycles(&d);
    desk_close(&d);
    return cycles;
}

TEST(tensor_tensor_cost)
{
    const fr_neuron_dtype f = FR_NEURON_FLOAT32, h = FR_NEURON_BFLOAT16;
    CHECK_NEAR(tensor_tensor_cycles(2, f, 512, false, FR_NEURON_ADD), 1024, 0, 0);
    CHECK_NEAR(tensor_tensor_cycles(2, f, 20, false, FR_NEURON_ADD), 64, 0, 0);
    CHECK_NEAR(tensor_tensor_cycles(2, f, 512, true, FR_NEURON_ADD), 512, 0, 0);
    CHECK_NEAR(tensor_tensor_cycles(2, h, 512, false, FR_NEURON_ADD), 512, 0, 0);
    CHECK_NEAR(tensor_tensor_cycles(2, h, 512, false, FR_NEURON_MAXIMUM), 1024, 0, 0);
    CHECK_NEAR(tensor_tensor_cycles(3, h, 512, false, FR_NEURON_ADD), 256, 0, 0);
    CHECK_NEAR(tensor_tensor_cycles(3, h, 512, false, FR_NEURON_MAXIMUM), 512, 0, 0);
    CHECK_NEAR(tensor_tensor_cycles(3, f, 512, false, FR_NEURON_ADD), 1024, 0, 0);
    CHECK_NEAR(tensor_tensor_cycles(3, FR_NEURON_INT32, 100, false, FR_NEURON_ADD), 350, 0, 0);
}

/* ---- tensor_scalar -------------------------------------------------------------------------------------------- */

static fr_neuron_call tensor_scalar(const tile *dst, const tile *data, fr_neuron_operator op0,
                                    double operand0)
{
    fr_neuron_call call = fr_neuron_call_of("tensor_scalar");
    set_tile(&call, "dst", dst);
    set_tile(&call, "data", data);
    set_number(&call, "op0", op0);
    if (!isnan(operand0))
        set_number(&call, "operand0", operand0);
    return call;
}

TEST(tensor_scalar_all_layouts_and_dtypes)
{
    DESK(d, 3);
    static const fr_neuron_operator ops[] = {FR_NEURON_ADD, FR_NEURON_SUBTRACT, FR_NEURON_MULTIPLY,
                                             FR_NEURON_MAXIMUM, FR_NEURON_LESS_EQUAL};
    for (int i = 0; i < 4 * NUMBERS; i++) {
        fr_neuron_dtype da = numbers[i % NUMBERS], dd = numbers[(i / 5) % NUMBERS];
        tile a = tile_random(&d, da, i % 3 ? FR_NEURON_SBUF : FR_NEURON_PSUM, ROWS, N, (layout_kind)(i % 4),
                             -5, 5);
        tile column = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS, -2, 2);
        tile c = tile_new(&d, dd, FR_NEURON_SBUF, ROWS, N, (layout_kind)(i / 4 % 3));
        fr_neuron_operator op0 = ops[i % 5], op1 = ops[i / 5 % 5];
        bool two = i % 2, reverse0 = i % 3 == 1, reverse1 = i % 4 == 3;
        fr_neuron_call call = tensor_scalar(&c, &a, op0, 1.5);
        set_number(&call, "reverse0", reverse0);
        if (two) {
            set_number(&call, "op1", op1);
            set_tile(&call, "operand1", &column);
            set_number(&call, "reverse1", reverse1);
        }
        EXPECT_OK(&d, &call);
        float want[ROWS * N];
        for (int j = 0; j < ROWS * N; j++) {
            float x = reverse0 ? fp32(op0, 1.5f, a.values[j]) : fp32(op0, a.values[j], 1.5f);
            float s = column.values[j / N];
            if (two)
                x = reverse1 ? fp32(op1, s, x) : fp32(op1, x, s);
            want[j] = rounded(x, dd);
        }
        tile_read(&d, &c);
        check_values(&c, want, 0, 0, "tensor_scalar");
        tile_free(&d, &a), tile_free(&d, &column), tile_free(&d, &c);
    }
    desk_close(&d);
}

TEST(tensor_scalar_bits_and_engines)
{
    DESK(d, 3);
    const uint32_t x[4] = {0xff00ff00u, 1, 0x80000000u, 7};
    uint32_t out[4];
    tile a = tile_of(&d, FR_NEURON_UINT32, 1, 4, x);
    tile c = tile_new(&d, FR_NEURON_UINT32, FR_NEURON_SBUF, 1, 4, CONTIGUOUS);
    fr_neuron_call call = tensor_scalar(&c, &a, FR_NEURON_RIGHT_SHIFT, 8);
    set_number(&call, "op1", FR_NEURON_BITWISE_AND);
    set_number(&call, "operand1", 0xffff);
    EXPECT_OK(&d, &call);
    tile_raw(&d, &c, out);
    CHECK(out[0] == 0x00ff && out[1] == 0 && out[2] == 0 && out[3] == 0);
    call = tensor_scalar(&c, &a, FR_NEURON_INVERT, NAN);
    EXPECT_OK(&d, &call);
    tile_raw(&d, &c, out);
    CHECK(out[0] == 0x00ff00ffu && out[1] == 0xfffffffeu);
    set_number(&call, "op1", FR_NEURON_ADD);
    set_number(&call, "operand1", 1);
    EXPECT_REFUSED(&d, &call, "operator_kind");
    set_number(&call, "engine", FR_NEURON_GPSIMD);
    EXPECT_REFUSED(&d, &call, "operator_engine");

    tile f = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 4, 8, CONTIGUOUS, 1, 2);
    tile g = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 4, 8, CONTIGUOUS);
    call = tensor_scalar(&g, &f, FR_NEURON_RSQRT, NAN);
    EXPECT_OK(&d, &call);
    CHECK_INT(last_record(&d)->engine, FR_NEURON_GPSIMD);
    CHECK_NEAR(last_cycles(&d), 150 + 4 * 8, 0, 0);
    tile_read(&d, &g);
    CHECK_NEAR(g.values[3], 1 / sqrt((double)f.values[3]), 0, 1e-6);
    set_number(&call, "operand0", 2);
    EXPECT_REFUSED(&d, &call, "value");
    call = tensor_scalar(&g, &f, FR_NEURON_MAXIMUM, 0);
    set_number(&call, "engine", FR_NEURON_SCALAR);
    EXPECT_REFUSED(&d, &call, "operator_engine");
    set_number(&call, "engine", FR_NEURON_GPSIMD);
    EXPECT_REFUSED(&d, &call, "operator_engine");
    call = tensor_scalar(&g, &f, FR_NEURON_MULTIPLY, 2);
    set_number(&call, "op1", FR_NEURON_ADD);
    set_number(&call, "operand1", 1);
    set_number(&call, "engine", FR_NEURON_SCALAR);
    EXPECT_OK(&d, &call);
    tile_read(&d, &g);
    CHECK_NEAR(g.values[5], f.values[5] * 2 + 1, 0, 0);
    desk_close(&d);
}

TEST(tensor_scalar_limits)
{
    DESK(d, 2);
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 8, 16, CONTIGUOUS, 0, 1);
    tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 8, 16, CONTIGUOUS);
    tile column = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 8, 1, CONTIGUOUS, 0, 1);
    tile few = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 4, 1, CONTIGUOUS, 0, 1);
    fr_neuron_call call = tensor_scalar(&c, &a, FR_NEURON_MULTIPLY, 2);
    set_number(&call, "engine", FR_NEURON_SCALAR);
    EXPECT_REFUSED(&d, &call, "generation");
    call = tensor_scalar(&c, &a, FR_NEURON_ADD, NAN);
    set_tile(&call, "operand0", &column);
    EXPECT_REFUSED(&d, &call, "dtype");
    set_tile(&call, "operand0", &few);
    EXPECT_REFUSED(&d, &call, "per_partition_vector");
    set_tile(&call, "operand0", &a);
    EXPECT_REFUSED(&d, &call, "per_partition_vector");
    call = tensor_scalar(&c, &a, FR_NEURON_ADD, 1);
    set_number(&call, "operand1", 3);
    EXPECT_REFUSED(&d, &call, "value");
    call = tensor_scalar(&c, &a, FR_NEURON_LEFT_SHIFT, 1);
    EXPECT_REFUSED(&d, &call, "operator_kind");
    call = tensor_scalar(&c, &a, FR_NEURON_DIVIDE, 1);
    EXPECT_REFUSED(&d, &call, "operator");
    desk_close(&d);
}

static double tensor_scalar_cycles(int generation, fr_neuron_dtype dtype, int64_t n, bool psum,
                                   layout_kind kind, fr_neuron_engine engine)
{
    DESK(d, generation);
    tile a = tile_random(&d, dtype, psum ? FR_NEURON_PSUM : FR_NEURON_SBUF, 2, n, kind, 0, 1);
    tile c = tile_new(&d, dtype, FR_NEURON_SBUF, 2, n, CONTIGUOUS);
    fr_neuron_call call = tensor_scalar(&c, &a, FR_NEURON_MULTIPLY, 2);
    set_number(&call, "engine", engine);
    EXPECT_OK(&d, &call);
    double cycles = last_cycles(&d);
    desk_close(&d);
    return cycles;
}

TEST(tensor_scalar_cost)
{
    const fr_neuron_dtype f = FR_NEURON_FLOAT32, h = FR_NEURON_BFLOAT16;
    const fr_neuron_engine v = FR_NEURON_VECTOR, s = FR_NEURON_SCALAR;
    CHECK_NEAR(tensor_scalar_cycles(3, f, 512, false, CONTIGUOUS, v), 512, 0, 0);
    CHECK_NEAR(tensor_scalar_cycles(3, f, 9, false, CONTIGUOUS, v), 64, 0, 0);
    CHECK_NEAR(tensor_scalar_cycles(2, h, 512, false, CONTIGUOUS, v), 512, 0, 0);
    CHECK_NEAR(tensor_scalar_cycles(3, h, 512, false, CONTIGUOUS, v), 128, 0, 0);
    CHECK_NEAR(tensor_scalar_cycles(3, h, 512, false, STRIDED, v), 256, 0, 0);
    CHECK_NEAR(tensor_scalar_cycles(3, h, 512, true, CONTIGUOUS, v), 256, 0, 0);
    CHECK_NEAR(tensor_scalar_cycles(3, h, 512, true, STRIDED, v), 512, 0, 0);
    CHECK_NEAR(tensor_scalar_cycles(3, h, 512, false, CONTIGUOUS, s), 512, 0, 0);
    CHECK_NEAR(tensor_scalar_cycles(4, h, 512, false, CONTIGUOUS, s), 256, 0, 0);
}

/* ---- scalar_tensor_tensor, tensor_scalar_reduce, tensor_scalar_cumulative, tensor_tensor_scan ------------------- */

TEST(scalar_tensor_tensor_is_two_in_one)
{
    DESK(d, 3);
    for (int i = 0; i < 24; i++) {
        fr_neuron_dtype da = numbers[i % NUMBERS], dd = numbers[i / 3 % NUMBERS];
        tile a = tile_random(&d, da, i % 3 ? FR_NEURON_SBUF : FR_NEURON_PSUM, ROWS, N, (layout_kind)(i % 4),
                             -5, 5);
        tile b =
            tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, ROWS, N, (layout_kind)(i / 4 % 4), -5, 5);
        tile column = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_PSUM, ROWS, 1, CONTIGUOUS, -2, 2);
        tile c = tile_new(&d, dd, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS);
        fr_neuron_call call = fr_neuron_call_of("scalar_tensor_tensor");
        set_tile(&call, "dst", &c);
        set_tile(&call, "data", &a);
        set_number(&call, "op0", FR_NEURON_SUBTRACT);
        set_tile(&call, "operand0", &column);
        set_number(&call, "op1", i % 2 ? FR_NEURON_MULTIPLY : FR_NEURON_SUBTRACT);
        set_tile(&call, "operand1", &b);
        set_number(&call, "reverse0", i % 3 == 0);
        set_number(&call, "reverse1", i % 5 == 0);
        EXPECT_OK(&d, &call);
        float want[ROWS * N];
        for (int j = 0; j < ROWS * N; j++) {
            float s = column.values[j / N], x = i % 3 == 0 ? s - a.values[j] : a.values[j] - s,
                  y = b.values[j];
            want[j] = rounded(i % 2 ? x * y : i % 5 == 0 ? y - x : x - y, dd);
        }
        tile_read(&d, &c);
        check_values(&c, want, 0, 0, "scalar_tensor_tensor");
        CHECK_NEAR(last_cycles(&d), 64, 0, 0); /* N = 24 is below the floor either way */
        if (i == 0) {
            tile p = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_PSUM, ROWS, N, CONTIGUOUS, 0, 1);
            set_tile(&call, "data", &p);
            set_tile(&call, "operand1", &p);
            EXPECT_REFUSED(&d, &call, "both_inputs_psum");
            set_number(&call, "op1", FR_NEURON_BITWISE_OR);
            EXPECT_REFUSED(&d, &call, "operator_kind");
        }
        tile_free(&d, &a), tile_free(&d, &b), tile_free(&d, &c), tile_free(&d, &column);
    }
    desk_close(&d);
}

TEST(scalar_tensor_tensor_cost)
{
    DESK(d, 3);
    for (int i = 0; i < 4; i++) {
        int64_t n = i == 3 ? 201 : 200; /* odd is slow */
        fr_neuron_dtype dtype = i == 0 ? FR_NEURON_FLOAT32 : FR_NEURON_BFLOAT16;
        tile a = tile_random(&d, dtype, FR_NEURON_SBUF, 2, n, CONTIGUOUS, 0, 1);
        tile c = tile_new(&d, dtype, FR_NEURON_SBUF, 2, n, CONTIGUOUS);
        fr_neuron_call call = fr_neuron_call_of("scalar_tensor_tensor");
        set_tile(&call, "dst", &c);
        set_tile(&call, "data", &a);
        set_number(&call, "op0", FR_NEURON_MULTIPLY);
        set_number(&call, "operand0", 2);
        set_number(&call, "op1", i == 2 ? FR_NEURON_MAXIMUM : FR_NEURON_ADD);
        set_tile(&call, "operand1", &a);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), i == 1 ? 200 : i == 3 ? 402 : 400, 0, 0);
    }
    desk_close(&d);
}

static fr_neuron_call scalar_reduce(const tile *dst, const tile *data, const tile *result,
                                    fr_neuron_operator reduce, int command)
{
    fr_neuron_call call = fr_neuron_call_of("tensor_scalar_reduce");
    set_tile(&call, "dst", dst);
    set_tile(&call, "data", data);
    set_number(&call, "op0", FR_NEURON_MULTIPLY);
    set_number(&call, "operand0", 2);
    set_number(&call, "reduce_op", reduce);
    if (result)
        set_tile(&call, "reduce_res", result);
    set_number(&call, "reduce_cmd", command);
    return call;
}
enum { IDLE, RESET, REDUCE, RESET_REDUCE, LOAD_REDUCE };

TEST(tensor_scalar_reduce_and_its_accumulator)
{
    DESK(d, 3);
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, N, STRIDED, -1, 1);
    tile c = tile_new(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS);
    tile sum = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS);
    float want[ROWS] = {0}, most[ROWS], dst[ROWS * N];
    for (int j = 0; j < ROWS * N; j++) {
        dst[j] = rounded(a.values[j] * 2, FR_NEURON_BFLOAT16);
        want[j / N] += a.values[j] * 2;
        most[j / N] = j % N == 0 || a.values[j] * 2 > most[j / N] ? a.values[j] * 2 : most[j / N];
    }
    fr_neuron_call call = scalar_reduce(&c, &a, &sum, FR_NEURON_ADD, REDUCE);
    EXPECT_REFUSED(&d, &call, "accumulator"); /* nothing began it */
    call = scalar_reduce(&c, &a, &sum, FR_NEURON_ADD, RESET_REDUCE);
    EXPECT_OK(&d, &call);
    tile_read(&d, &c), tile_read(&d, &sum);
    check_values(&c, dst, 0, 0, "dst");
    check_values(&sum, want, 1e-5, 1e-6, "sum of the fp32 values, not of the rounded ones");
    call = scalar_reduce(&c, &a, NULL, FR_NEURON_ADD, REDUCE); /* goes on, result stays inside */
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 64, 0, 0);
    call = scalar_reduce(&c, &a, &sum, FR_NEURON_ADD, REDUCE);
    set_number(&call, "reduce_res_negate", 1);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 128, 0, 0);
    tile_read(&d, &sum);
    for (int r = 0; r < ROWS; r++)
        CHECK_NEAR(sum.values[r], -3 * want[r], 1e-5, 1e-5);
    call = scalar_reduce(&c, &a, &sum, FR_NEURON_MAXIMUM, RESET_REDUCE);
    EXPECT_OK(&d, &call);
    tile_read(&d, &sum);
    check_values(&sum, most, 0, 0, "maximum");
    call = scalar_reduce(&c, &a, &sum, FR_NEURON_ADD, LOAD_REDUCE);
    EXPECT_REFUSED(&d, &call, "accumulator"); /* without a start */
    set_number(&call, "reduce_init", 10);
    EXPECT_OK(&d, &call);
    tile_read(&d, &sum);
    for (int r = 0; r < ROWS; r++)
        CHECK_NEAR(sum.values[r], 10 + want[r], 1e-5, 1e-5);
    set_number(&call, "reduce_cmd", RESET_REDUCE);
    EXPECT_REFUSED(&d, &call, "accumulator"); /* a start without load_reduce */
    call = scalar_reduce(&c, &a, &sum, FR_NEURON_ADD, IDLE);
    EXPECT_REFUSED(&d, &call, "accumulator");
    call = scalar_reduce(&c, &a, &sum, FR_NEURON_SUBTRACT, RESET_REDUCE);
    EXPECT_REFUSED(&d, &call, "operator");
    call = scalar_reduce(&c, &a, &sum, FR_NEURON_ADD, RESET_REDUCE);
    set_number(&call, "reverse0", 1);
    EXPECT_REFUSED(&d, &call, "value");
    call = scalar_reduce(&c, &a, &c, FR_NEURON_ADD, RESET_REDUCE);
    EXPECT_REFUSED(&d, &call, "per_partition_vector");
    tile wide = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 300, CONTIGUOUS, 0, 1);
    call = scalar_reduce(&wide, &wide, &sum, FR_NEURON_ADD, RESET_REDUCE);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 364, 0, 0);
    desk_close(&d);
}

TEST(tensor_scalar_cumulative_runs_along_rows)
{
    DESK(d, 3);
    static const fr_neuron_operator ops[] = {FR_NEURON_ADD, FR_NEURON_SUBTRACT, FR_NEURON_MULTIPLY,
                                             FR_NEURON_MAXIMUM, FR_NEURON_MINIMUM};
    for (int i = 0; i < 10; i++) {
        tile a = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, ROWS, N, (layout_kind)(i % 4), 0.5, 1.5);
        tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS);
        fr_neuron_operator op = ops[i % 5];
        fr_neuron_call call = fr_neuron_call_of("tensor_scalar_cumulative");
        set_tile(&call, "dst", &c);
        set_tile(&call, "src", &a);
        set_number(&call, "op0", FR_NEURON_ADD);
        set_number(&call, "imm0", 0.25);
        set_number(&call, "op1", op);
        float start = op == FR_NEURON_MULTIPLY  ? 1
                      : op == FR_NEURON_MAXIMUM ? -INFINITY
                      : op == FR_NEURON_MINIMUM ? INFINITY
                                                : 0;
        if (i >= 5) {
            set_number(&call, "reduce_cmd", LOAD_REDUCE);
            set_number(&call, "imm1", start = 1.25f);
        }
        EXPECT_OK(&d, &call);
        float want[ROWS * N], state[ROWS];
        for (int pass = 0; pass < 2; pass++) {
            for (int r = 0; r < ROWS; r++) {
                float reg = pass ? state[r] : start;
                for (int j = 0; j < N; j++)
                    want[r * N + j] = reg = fp32(op, a.values[r * N + j] + 0.25f, reg);
                state[r] = reg;
            }
            tile_read(&d, &c);
            check_values(&c, want, 0, 0, "cumulative");
            if (pass == 0) { /* goes on where it stopped */
                fr_neuron_call more = call;
                set_number(&more, "reduce_cmd", REDUCE);
                more.argument[5].given = false;
                EXPECT_OK(&d, &more);
            }
        }
        CHECK(last_record(&d)->flags & FR_NEURON_GUESS);
        tile_free(&d, &a), tile_free(&d, &c);
    }
    tile whole = tile_random(&d, FR_NEURON_INT32, FR_NEURON_SBUF, 2, 8, CONTIGUOUS, 0, 9);
    fr_neuron_call call = fr_neuron_call_of("tensor_scalar_cumulative");
    set_tile(&call, "dst", &whole);
    set_tile(&call, "src", &whole);
    set_number(&call, "op0", FR_NEURON_ADD);
    set_number(&call, "imm0", 0);
    set_number(&call, "op1", FR_NEURON_ADD);
    EXPECT_REFUSED(&d, &call, "dtype");
    tile f = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 100, CONTIGUOUS, 0, 9);
    set_tile(&call, "dst", &f);
    set_tile(&call, "src", &f);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 200, 0, 0);
    set_number(&call, "op1", FR_NEURON_LOGICAL_OR);
    EXPECT_REFUSED(&d, &call, "operator");
    desk_close(&d);
}

TEST(tensor_tensor_scan_is_the_recurrence)
{
    DESK(d, 3);
    for (int i = 0; i < 16; i++) {
        int rows = i == 0 ? 19 : ROWS; /* more than the eight that run together */
        tile a = tile_random(&d, numbers[i % 6], i % 4 == 1 ? FR_NEURON_PSUM : FR_NEURON_SBUF, rows, N,
                             (layout_kind)(i % 4), -1, 1);
        tile b = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, rows, N, CONTIGUOUS, -1, 1);
        tile start = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, rows, 1, CONTIGUOUS, -1, 1);
        tile c = tile_new(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, rows, N, CONTIGUOUS);
        fr_neuron_operator op0 = i % 3 == 2 ? FR_NEURON_SUBTRACT : FR_NEURON_MULTIPLY;
        fr_neuron_operator op1 = i % 5 == 4   ? FR_NEURON_MAXIMUM
                                 : i % 5 == 3 ? FR_NEURON_SUBTRACT
                                              : FR_NEURON_ADD;
        bool reverse0 = i % 4 == 3, reverse1 = i % 8 == 5;
        fr_neuron_call call = fr_neuron_call_of("tensor_tensor_scan");
        set_tile(&call, "dst", &c);
        set_tile(&call, "data0", &a);
        set_tile(&call, "data1", &b);
        set_tile(&call, "initial", &start);
        set_number(&call, "op0", op0);
        set_number(&call, "op1", op1);
        set_number(&call, "reverse0", reverse0);
        set_number(&call, "reverse1", reverse1);
        EXPECT_OK(&d, &call);
        float *want = calloc((size_t)(rows * N), sizeof *want);
        for (int r = 0; r < rows; r++) {
            float state = start.values[r];
            for (int j = 0; j < N; j++) {
                float x = a.values[r * N + j], y = b.values[r * N + j];
                float t = reverse0 ? fp32(op0, state, x) : fp32(op0, x, state);
                state = reverse1 ? fp32(op1, y, t) : fp32(op1, t, y);
                want[r * N + j] = rounded(state, FR_NEURON_BFLOAT16); /* the state itself is not rounded */
            }
        }
        tile_read(&d, &c);
        check_values(&c, want, 0, 0, "scan");
        free(want);
        tile_free(&d, &a), tile_free(&d, &b), tile_free(&d, &c), tile_free(&d, &start);
    }
    tile p = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_PSUM, 4, 100, CONTIGUOUS, 0, 1);
    tile s = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 4, 100, CONTIGUOUS, 0, 1);
    fr_neuron_call call = fr_neuron_call_of("tensor_tensor_scan");
    set_tile(&call, "dst", &s);
    set_tile(&call, "data0", &p);
    set_tile(&call, "data1", &p);
    set_number(&call, "initial", 0);
    set_number(&call, "op0", FR_NEURON_MULTIPLY);
    set_number(&call, "op1", FR_NEURON_ADD);
    EXPECT_REFUSED(&d, &call, "both_inputs_psum");
    set_tile(&call, "data1", &s);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 200, 0, 0);
    set_number(&call, "op1", FR_NEURON_RELU);
    EXPECT_REFUSED(&d, &call, "operator");
    desk_close(&d);
}

/* ---- tensor_reduce -------------------------------------------------------------------------------------------- */

static fr_neuron_call tensor_reduce(const tile *dst, const tile *data, fr_neuron_operator op,
                                    const double *axes, int count)
{
    fr_neuron_call call = fr_neuron_call_of("tensor_reduce");
    set_tile(&call, "dst", dst);
    set_tile(&call, "data", data);
    set_number(&call, "op", op);
    set_list(&call, "axis", axes, count);
    return call;
}

TEST(tensor_reduce_trailing_axes)
{
    DESK(d, 3);
    static const double last[] = {2}, both[] = {1, 2}, minus[] = {-1}, first[] = {1}, zero[] = {0},
                        twice[] = {2, 2};
    static const fr_neuron_operator ops[] = {FR_NEURON_ADD, FR_NEURON_MAXIMUM, FR_NEURON_MINIMUM,
                                             FR_NEURON_MULTIPLY, FR_NEURON_SUBTRACT};
    for (int i = 0; i < 20; i++) {
        tile a = tile_random(&d, numbers[i % 5], i % 3 ? FR_NEURON_SBUF : FR_NEURON_PSUM, ROWS, N, TWO_DIMS,
                             0.5, 1.5);
        bool whole = i % 2;
        int64_t left = whole ? 1 : N / 4, each = N / left;
        tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, left, CONTIGUOUS);
        fr_neuron_operator op = ops[i % 5];
        fr_neuron_call call =
            whole ? tensor_reduce(&c, &a, op, both, 2) : tensor_reduce(&c, &a, op, i % 4 ? last : minus, 1);
        set_number(&call, "negate", i % 3 == 1);
        EXPECT_OK(&d, &call);
        float want[ROWS * N];
        for (int64_t r = 0; r < ROWS * left; r++) {
            float total = a.values[r * each];
            for (int64_t j = 1; j < each; j++)
                total = fp32(op, total, a.values[r * each + j]);
            want[r] = i % 3 == 1 ? -total : total;
        }
        tile_read(&d, &c);
        check_values(&c, want, 1e-5, 1e-6, "tensor_reduce");
        if (i == 0) {
            call = tensor_reduce(&c, &a, op, first, 1);
            EXPECT_REFUSED(&d, &call, "reduce_axis");
            call = tensor_reduce(&c, &a, op, zero, 1);
            EXPECT_REFUSED(&d, &call, "reduce_axis");
            call = tensor_reduce(&c, &a, op, twice, 2);
            EXPECT_REFUSED(&d, &call, "reduce_axis");
            call = tensor_reduce(&c, &a, op, both, 2);
            EXPECT_REFUSED(&d, &call, "elements_match");
            call = tensor_reduce(&c, &a, FR_NEURON_POWER, last, 1);
            EXPECT_REFUSED(&d, &call, "operator");
            call = tensor_reduce(&c, &a, FR_NEURON_BITWISE_AND, last, 1);
            EXPECT_REFUSED(&d, &call, "operator_kind");
        }
        tile_free(&d, &a), tile_free(&d, &c);
    }
    const uint16_t words[6] = {0xff00, 0x0f0f, 0x1234, 1, 2, 4};
    uint16_t out[2];
    tile bits = tile_of(&d, FR_NEURON_UINT16, 2, 3, words),
         c = tile_new(&d, FR_NEURON_UINT16, FR_NEURON_SBUF, 2, 1, CONTIGUOUS);
    fr_neuron_call call = tensor_reduce(&c, &bits, FR_NEURON_BITWISE_OR, first, 1);
    EXPECT_OK(&d, &call);
    tile_raw(&d, &c, out);
    CHECK(out[0] == (0xff00 | 0x0f0f | 0x1234) && out[1] == 7);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        fr_neuron_dtype dtype = bf16 ? FR_NEURON_BFLOAT16 : FR_NEURON_FLOAT32;
        tile a = tile_random(&d, dtype, FR_NEURON_SBUF, 2, 600, CONTIGUOUS, 0, 1);
        tile s = tile_new(&d, dtype, FR_NEURON_SBUF, 2, 1, CONTIGUOUS);
        call = tensor_reduce(&s, &a, FR_NEURON_ADD, first, 1);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), bf16 ? 300 : 600, 0, 0);
        call = tensor_reduce(&s, &a, FR_NEURON_MINIMUM, first, 1);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), 600, 0, 0);
    }
    desk_close(&d);
}

/* ---- select_reduce, range_select, exponential, reciprocal ------------------------------------------------------- */

TEST(select_reduce_chooses)
{
    DESK(d, 3);
    for (int i = 0; i < 12; i++) {
        tile a = tile_random(&d, numbers[i % 5], FR_NEURON_SBUF, ROWS, N, (layout_kind)(i % 4), -3, 3);
        tile mask =
            tile_random(&d, i % 2 ? FR_NEURON_UINT8 : FR_NEURON_INT16,
                        i % 3 ? FR_NEURON_SBUF : FR_NEURON_PSUM, ROWS, N, (layout_kind)(i / 3 % 4), 0, 1.9);
        tile other = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS, -9, -5);
        tile c = tile_new(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS);
        tile most = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS);
        fr_neuron_call call = fr_neuron_call_of("select_reduce");
        set_tile(&call, "dst", &c);
        set_tile(&call, "predicate", &mask);
        set_tile(&call, "on_true", &a);
        set_tile(&call, "on_false", &other);
        set_tile(&call, "reduce_res", &most);
        set_number(&call, "reduce_cmd", RESET_REDUCE);
        set_number(&call, "reverse_pred", i % 4 == 2);
        EXPECT_OK(&d, &call);
        float want[ROWS * N], top[ROWS];
        for (int j = 0; j < ROWS * N; j++) {
            bool yes = (mask.values[j] != 0) != (i % 4 == 2);
            float x = yes ? a.values[j] : other.values[j / N];
            top[j / N] = j % N == 0 || x > top[j / N] ? x : top[j / N];
            want[j] = rounded(x, FR_NEURON_BFLOAT16);
        }
        tile_read(&d, &c), tile_read(&d, &most);
        check_values(&c, want, 0, 0, "select_reduce");
        check_values(&most, top, 0, 0, "maximum");
        if (i == 0) {
            set_number(&call, "reduce_cmd", IDLE);
            EXPECT_REFUSED(&d, &call, "accumulator"); /* idle leaves nothing to read */
            call.argument[4].given = false;
            EXPECT_OK(&d, &call);
            set_number(&call, "reduce_cmd", REDUCE);
            EXPECT_REFUSED(&d, &call, "accumulator"); /* and it forgot what was there */
            set_number(&call, "reduce_cmd", LOAD_REDUCE);
            EXPECT_REFUSED(&d, &call, "accumulator");
        }
        tile_free(&d, &a), tile_free(&d, &mask), tile_free(&d, &other), tile_free(&d, &c),
            tile_free(&d, &most);
    }
    tile whole = tile_random(&d, FR_NEURON_INT32, FR_NEURON_SBUF, 2, 200, CONTIGUOUS, 0, 5);
    tile f = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 200, CONTIGUOUS, 0, 5);
    tile m = tile_random(&d, FR_NEURON_UINT8, FR_NEURON_SBUF, 2, 200, CONTIGUOUS, 0, 1.9);
    fr_neuron_call call = fr_neuron_call_of("select_reduce");
    set_tile(&call, "dst", &f);
    set_tile(&call, "predicate", &m);
    set_tile(&call, "on_true", &whole);
    set_number(&call, "on_false", 0);
    EXPECT_REFUSED(&d, &call, "dtype");
    set_tile(&call, "on_true", &f);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 400, 0, 0);
    set_tile(&call, "predicate", &whole);
    EXPECT_REFUSED(&d, &call, "dtype");
    set_tile(&call, "predicate", &m);
    set_number(&call, "reduce_op", FR_NEURON_ADD);
    EXPECT_REFUSED(&d, &call, "operator");
    desk_close(&d);
}

TEST(range_select_keeps_a_range)
{
    DESK(d, 3);
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_PSUM, ROWS, N, CONTIGUOUS, -3, 3);
    float low[ROWS] = {0, 5, 10, 120, 100}, high[ROWS] = {200, 110, 112, 130, 104};
    tile lo = tile_of(&d, FR_NEURON_FLOAT32, ROWS, 1, low),
         hi = tile_of(&d, FR_NEURON_FLOAT32, ROWS, 1, high);
    tile c = tile_new(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS);
    tile most = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS);
    fr_neuron_call call = fr_neuron_call_of("range_select");
    set_tile(&call, "dst", &c);
    set_tile(&call, "on_true_tile", &a);
    set_number(&call, "comp_op0", FR_NEURON_GREATER_EQUAL);
    set_number(&call, "comp_op1", FR_NEURON_LESS);
    set_tile(&call, "bound0", &lo);
    set_tile(&call, "bound1", &hi);
    set_number(&call, "range_start", 100);
    set_tile(&call, "reduce_res", &most);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 128, 0, 0);
    tile_read(&d, &c), tile_read(&d, &most);
    for (int r = 0; r < ROWS; r++) {
        float top = -FLT_MAX;
        for (int j = 0; j < N; j++) {
            bool keep = (float)(100 + j) >= low[r] && (float)(100 + j) < high[r];
            float x = a.values[r * N + j], got = c.values[r * N + j];
            top = keep && x > top ? x : top;
            CHECK(keep ? got == rounded(x, FR_NEURON_BFLOAT16) : isinf(got) && got < 0);
        }
        CHECK(most.values[r] == top);
    }
    set_number(&call, "on_false_value", 0);
    EXPECT_REFUSED(&d, &call, "value");
    set_number(&call, "on_false_value", (double)-FLT_MAX);
    set_number(&call, "range_start", 16777216);
    EXPECT_REFUSED(&d, &call, "value");
    set_number(&call, "range_start", 0);
    set_number(&call, "comp_op0", FR_NEURON_NOT_EQUAL);
    EXPECT_REFUSED(&d, &call, "operator");
    set_number(&call, "comp_op0", FR_NEURON_EQUAL);
    EXPECT_OK(&d, &call);
    tile whole = tile_random(&d, FR_NEURON_INT32, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS, 0, 5);
    set_tile(&call, "on_true_tile", &whole);
    EXPECT_REFUSED(&d, &call, "dtype");
    tile wide = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 500, CONTIGUOUS, 0, 5);
    set_tile(&call, "on_true_tile", &wide);
    set_tile(&call, "dst", &wide);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 564, 0, 0);
    desk_close(&d);
    DESK(old, 2);
    tile x = tile_random(&old, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 8, CONTIGUOUS, 0, 1);
    fr_neuron_call early = fr_neuron_call_of("range_select");
    set_tile(&early, "dst", &x), set_tile(&early, "on_true_tile", &x), set_tile(&early, "bound0", &x),
        set_tile(&early, "bound1", &x);
    set_number(&early, "comp_op0", FR_NEURON_LESS), set_number(&early, "comp_op1", FR_NEURON_LESS);
    EXPECT_REFUSED(&old, &early, "generation");
    desk_close(&old);
}

TEST(exponential_with_its_sum)
{
    DESK(d, 4);
    for (int i = 0; i < 8; i++) {
        tile a = tile_random(&d, numbers[i % 5], i % 2 ? FR_NEURON_SBUF : FR_NEURON_PSUM, ROWS, N,
                             (layout_kind)(i % 4), -3, 3);
        tile most = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS, 1, 3);
        tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS);
        tile sum = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS);
        fr_neuron_call call = fr_neuron_call_of("exponential");
        set_tile(&call, "dst", &c);
        set_tile(&call, "src", &a);
        set_tile(&call, "max_value", &most);
        set_tile(&call, "reduce_res", &sum);
        set_number(&call, "reduce_cmd", RESET_REDUCE);
        EXPECT_OK(&d, &call);
        float want[ROWS * N], total[ROWS] = {0};
        for (int j = 0; j < ROWS * N; j++) {
            want[j] = (float)exp((double)(a.values[j] - most.values[j / N]));
            total[j / N] += want[j];
        }
        tile_read(&d, &c), tile_read(&d, &sum);
        check_values(&c, want, 1e-6, 0, "exponential");
        check_values(&sum, total, 1e-5, 0, "sum");
        set_number(&call, "reduce_init", 2);
        EXPECT_REFUSED(&d, &call, "accumulator");
        tile_free(&d, &a), tile_free(&d, &most), tile_free(&d, &c), tile_free(&d, &sum);
    }
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 1000, CONTIGUOUS, -1, 0);
    fr_neuron_call call = fr_neuron_call_of("exponential");
    set_tile(&call, "dst", &a);
    set_tile(&call, "src", &a);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 250, 0, 0);
    tile e3 = tile_random(&d, FR_NEURON_FLOAT8_E3M4, FR_NEURON_SBUF, 2, 1000, CONTIGUOUS, -1, 0);
    set_tile(&call, "src", &e3);
    EXPECT_REFUSED(&d, &call, "dtype");
    desk_close(&d);
    DESK(old, 3);
    tile x = tile_random(&old, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 8, CONTIGUOUS, 0, 1);
    set_tile(&call, "dst", &x), set_tile(&call, "src", &x);
    EXPECT_REFUSED(&old, &call, "generation");
    desk_close(&old);
}

TEST(reciprocal_is_exact_and_slow)
{
    DESK(d, 2);
    for (int i = 0; i < NUMBERS; i++) {
        tile a = tile_random(&d, numbers[i], FR_NEURON_SBUF, ROWS, N, (layout_kind)(i % 4), 1, 9);
        tile c =
            tile_new(&d, numbers[(i + 2) % 6], i % 2 ? FR_NEURON_SBUF : FR_NEURON_PSUM, ROWS, N, CONTIGUOUS);
        fr_neuron_call call = fr_neuron_call_of("reciprocal");
        set_tile(&call, "dst", &c);
        set_tile(&call, "data", &a);
        EXPECT_OK(&d, &call);
        float want[ROWS * N];
        for (int j = 0; j < ROWS * N; j++)
            want[j] = rounded(1 / a.values[j], c.view.dtype);
        tile_read(&d, &c);
        check_values(&c, want, 0, 0, "reciprocal");
        CHECK_NEAR(last_cycles(&d), 8 * N, 0, 0);
        tile_free(&d, &a), tile_free(&d, &c);
    }
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 4, CONTIGUOUS, 1, 2);
    tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 5, CONTIGUOUS);
    fr_neuron_call call = fr_neuron_call_of("reciprocal");
    set_tile(&call, "dst", &a), set_tile(&call, "data", &a);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 64, 0, 0);
    set_tile(&call, "dst", &c);
    EXPECT_REFUSED(&d, &call, "elements_match");
    desk_close(&d);
}

TEST_MAIN(neuron_vector)
