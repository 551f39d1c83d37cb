/* Instructions of the Scalar engine: the activation family against libm, its accumulators, ranges, and limits. */
#include "neuron_tiles.h"

#include "neuron/functions.h"

enum { ROWS = 5, N = 24, IDLE = 0, RESET, REDUCE, RESET_REDUCE, LOAD_REDUCE };

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double silu(double x)
{
    return x * sigmoid(x);
}
static double square(double x)
{
    return x * x;
}
static double relu(double x)
{
    return x > 0 ? x : 0;
}
static double gelu(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2.0));
}

static const struct {
    fr_neuron_function function;
    double (*truth)(double);
} functions[] = {{FR_NEURON_EXP, exp},   {FR_NEURON_TANH, tanh},       {FR_NEURON_SIGMOID, sigmoid},
                 {FR_NEURON_SILU, silu}, {FR_NEURON_F_SQUARE, square}, {FR_NEURON_F_RELU, relu},
                 {FR_NEURON_GELU, gelu}};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static fr_neuron_call activation(const tile *dst, const tile *data, fr_neuron_function op)
{
    fr_neuron_call call = fr_neuron_call_of("activation");
    set_tile(&call, "dst", dst), set_tile(&call, "data", data), set_number(&call, "op", op);
    return call;
}

TEST(activation_scales_shifts_and_rounds)
{
    DESK(d, 3);
    static const fr_neuron_dtype dtypes[] = {FR_NEURON_FLOAT32, FR_NEURON_BFLOAT16, FR_NEURON_FLOAT16,
                                             FR_NEURON_INT16};
    for (int i = 0; i < 4 * FUNCTIONS; i++) {
        tile a = tile_random(&d, dtypes[i % 4], i % 3 ? FR_NEURON_SBUF : FR_NEURON_PSUM, ROWS, N,
                             (layout_kind)(i / 2 % 4), -3, 3);
        tile c = tile_new(&d, FR_NEURON_FLOAT32, i % 5 ? FR_NEURON_SBUF : FR_NEURON_PSUM, ROWS, N,
                          (layout_kind)(i % 3));
        tile scale = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS, -1, 1);
        tile bias = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS, -1, 1);
        fr_neuron_call call = activation(&c, &a, functions[i % FUNCTIONS].function);
        if (i % 2)
            set_tile(&call, "scale", &scale);
        else if (i % 3 == 0)
            set_number(&call, "scale", 0.5);
        if (i % 4 == 1)
            set_number(&call, "bias", 0.25);
        else if (i % 4 == 2)
            set_tile(&call, "bias", &bias);
        EXPECT_OK(&d, &call);
        float want[ROWS * N];
        for (int j = 0; j < ROWS * N; j++) {
            float s = i % 2 ? scale.values[j / N] : i % 3 == 0 ? 0.5f : 1;
            float b = i % 4 == 1 ? 0.25f : i % 4 == 2 ? bias.values[j / N] : 0;
            want[j] = (float)functions[i % FUNCTIONS].truth((double)(a.values[j] * s + b));
        }
        tile_read(&d, &c);
        check_values(&c, want, 1e-6, 1e-9, fr_neuron_function_name(functions[i % FUNCTIONS].function));
        CHECK_INT(last_record(&d)->table,
                  fr_neuron_function_facts_of(functions[i % FUNCTIONS].function)->table);
        tile_free(&d, &a), tile_free(&d, &c), tile_free(&d, &scale), tile_free(&d, &bias);
    }
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 8, CONTIGUOUS, -3, 3);
    tile c = tile_new(&d, FR_NEURON_FLOAT8_E4M3, FR_NEURON_SBUF, 2, 8, CONTIGUOUS);
    fr_neuron_call call = activation(&c, &a, FR_NEURON_COPY);
    EXPECT_OK(&d, &call);
    tile_read(&d, &c);
    for (int j = 0; j < 16; j++)
        CHECK(c.values[j] == rounded(a.values[j], FR_NEURON_FLOAT8_E4M3));
    desk_close(&d);
}

TEST(accumulators_last_from_call_to_call)
{
    DESK(d, 3);
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS, -1, 1);
    tile c = tile_new(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS);
    tile sum = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS);
    float want[ROWS] = {0}, twice[ROWS], zero[ROWS] = {0};
    for (int j = 0; j < ROWS * N; j++)
        want[j / N] += a.values[j] * a.values[j];
    for (int r = 0; r < ROWS; r++)
        twice[r] = 2 * want[r];
    fr_neuron_call call = activation(&c, &a, FR_NEURON_F_SQUARE);
    set_tile(&call, "reduce_res", &sum);
    EXPECT_REFUSED(&d, &call, "accumulator"); /* idle keeps what is there, and nothing is */
    set_number(&call, "reduce_cmd", RESET_REDUCE);
    EXPECT_REFUSED(&d, &call, "operator"); /* reduce_op must say add */
    set_number(&call, "reduce_op", FR_NEURON_MAXIMUM);
    EXPECT_REFUSED(&d, &call, "operator");
    set_number(&call, "reduce_op", FR_NEURON_ADD);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 128, 0, 0);
    tile_read(&d, &sum);
    check_values(&sum, want, 1e-5, 0, "sum");
    call.argument[6].given = false; /* no result: the sum stays inside */
    set_number(&call, "reduce_cmd", REDUCE);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 64, 0, 0);
    fr_neuron_call copy = activation(&c, &a, FR_NEURON_COPY); /* idle on Scalar changes nothing */
    set_tile(&copy, "reduce_res", &sum);
    EXPECT_OK(&d, &copy);
    tile_read(&d, &sum);
    check_values(&sum, twice, 1e-5, 0, "twice");
    set_number(&copy, "reduce_cmd", RESET);
    EXPECT_OK(&d, &copy);
    tile_read(&d, &sum);
    check_values(&sum, zero, 0, 0, "reset");
    set_number(&copy, "reduce_cmd", LOAD_REDUCE);
    EXPECT_REFUSED(&d, &copy, "accumulator");
    fr_neuron_call both = fr_neuron_call_of("activation_reduce");
    set_tile(&both, "dst", &c), set_tile(&both, "data", &a), set_number(&both, "op", FR_NEURON_F_SQUARE);
    set_number(&both, "reduce_op", FR_NEURON_ADD), set_tile(&both, "reduce_res", &sum);
    EXPECT_OK(&d, &both);
    CHECK_NEAR(last_cycles(&d), 128, 0, 0);
    tile_read(&d, &sum);
    check_values(&sum, want, 1e-5, 0, "activation_reduce");
    set_number(&both, "reduce_op", FR_NEURON_MINIMUM);
    EXPECT_REFUSED(&d, &both, "operator");
    desk_close(&d);
}

TEST(vector_and_scalar_accumulators_are_apart)
{
    DESK(d, 3);
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS, 1, 2);
    tile sum = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS);
    fr_neuron_call call = activation(&a, &a, FR_NEURON_COPY);
    set_number(&call, "reduce_cmd", RESET_REDUCE), set_number(&call, "reduce_op", FR_NEURON_ADD);
    EXPECT_OK(&d, &call);
    fr_neuron_call vector = fr_neuron_call_of("tensor_scalar_reduce");
    set_tile(&vector, "dst", &a), set_tile(&vector, "data", &a), set_tile(&vector, "reduce_res", &sum);
    set_number(&vector, "op0", FR_NEURON_ADD), set_number(&vector, "operand0", 0),
        set_number(&vector, "reduce_op", FR_NEURON_ADD);
    set_number(&vector, "reduce_cmd", REDUCE);
    EXPECT_REFUSED(&d, &vector, "accumulator");
    desk_close(&d);
}

TEST(ranges_are_refused_and_change_nothing)
{
    DESK(d, 3);
    const float x[4] = {1, 4, 0, 9};
    tile a = tile_of(&d, FR_NEURON_FLOAT32, 1, 4, x),
         c = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 4, CONTIGUOUS, 5, 6);
    float before[4];
    memcpy(before, c.values, sizeof before);
    static const fr_neuron_function limited[] = {FR_NEURON_SQRT, FR_NEURON_F_RSQRT, FR_NEURON_LOG,
                                                 FR_NEURON_RECIPROCAL};
    for (int i = 0; i < 4; i++) {
        fr_neuron_call call = activation(&c, &a, limited[i]);
        EXPECT_REFUSED(&d, &call, "activation_range");
        CHECK(strstr(d.error.what, "element 2") != NULL);
        tile_read(&d, &c);
        CHECK(memcmp(c.values, before, sizeof before) == 0);
        set_number(&call, "bias", 1); /* the range is that of data * scale + bias */
        EXPECT_OK(&d, &call);
        memcpy(before, (tile_read(&d, &c), c.values), sizeof before);
    }
    fr_neuron_call call = activation(&c, &a, FR_NEURON_ARCTAN);
    EXPECT_REFUSED(&d, &call, "activation_range");
    call = activation(&c, &a, FR_NEURON_SIN); /* documented to continue */
    EXPECT_OK(&d, &call);
    tile_read(&d, &c);
    CHECK_NEAR(c.values[3], 27.65, 0.01, 0);
    fr_neuron_compute(d.core, false); /* without data there is nothing to refuse */
    call = activation(&c, &a, FR_NEURON_SQRT);
    EXPECT_OK(&d, &call);
    desk_close(&d);
}

TEST(activation_limits)
{
    DESK(d, 2);
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS, 1, 2);
    tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS);
    tile half = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS, 1, 2);
    tile tf = tile_random(&d, FR_NEURON_TFLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS, 1, 2);
    fr_neuron_call call = activation(&c, &a, FR_NEURON_EXP);
    EXPECT_OK(&d, &call);
    set_number(&call, "bias", 1);
    EXPECT_REFUSED(&d, &call, "generation");
    set_tile(&call, "bias", &half);
    EXPECT_OK(&d, &call);
    set_tile(&call, "bias", &tf);
    EXPECT_REFUSED(&d, &call, "dtype");
    set_tile(&call, "bias", &half), set_number(&call, "op", FR_NEURON_RECIPROCAL);
    EXPECT_REFUSED(&d, &call, "generation");
    call = activation(&c, &a, FR_NEURON_EXP);
    set_tile(&call, "scale", &half);
    EXPECT_REFUSED(&d, &call, "dtype");
    set_tile(&call, "scale", &a);
    EXPECT_REFUSED(&d, &call, "per_partition_vector");
    call = activation(&c, &a, FR_NEURON_PRELU);
    EXPECT_REFUSED(&d, &call, "operator");
    tile fewer = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, N - 1, CONTIGUOUS);
    call = activation(&fewer, &a, FR_NEURON_EXP);
    EXPECT_REFUSED(&d, &call, "elements_match");
    tile wide = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 700, CONTIGUOUS, 1, 2);
    call = activation(&wide, &wide, FR_NEURON_EXP);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 700, 0, 0);
    fr_neuron_call later = fr_neuron_call_of("activate2");
    set_tile(&later, "dst", &c), set_tile(&later, "data", &a), set_number(&later, "op", FR_NEURON_EXP);
    set_number(&later, "imm0", 1), set_number(&later, "imm1", 0);
    set_number(&later, "op0", FR_NEURON_MULTIPLY), set_number(&later, "op1", FR_NEURON_ADD);
    EXPECT_REFUSED(&d, &later, "generation");
    desk_close(&d);
}

static float apply(fr_neuron_operator op, float a, float b)
{
    return op == FR_NEURON_MULTIPLY   ? a * b
           : op == FR_NEURON_ADD      ? a + b
           : op == FR_NEURON_SUBTRACT ? a - b
                                      : a;
}

TEST(activate2_all_pairs)
{
    DESK(d, 4);
    static const fr_neuron_operator pairs[][2] = {
        {FR_NEURON_MULTIPLY, FR_NEURON_ADD},    {FR_NEURON_MULTIPLY, FR_NEURON_SUBTRACT},
        {FR_NEURON_MULTIPLY, FR_NEURON_BYPASS}, {FR_NEURON_ADD, FR_NEURON_BYPASS},
        {FR_NEURON_SUBTRACT, FR_NEURON_BYPASS}, {FR_NEURON_BYPASS, FR_NEURON_BYPASS}};
    static const fr_neuron_operator sums[] = {FR_NEURON_ADD, FR_NEURON_MAXIMUM, FR_NEURON_MINIMUM,
                                              FR_NEURON_ABS_MAX, FR_NEURON_ABS_MIN};
    for (int i = 0; i < 30; i++) {
        tile a = tile_random(&d, i % 2 ? FR_NEURON_BFLOAT16 : FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, N,
                             (layout_kind)(i % 4), -2, 2);
        tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, N, CONTIGUOUS);
        tile column = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS, -2, 2);
        tile result = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 1, CONTIGUOUS);
        fr_neuron_operator op0 = pairs[i % 6][0], op1 = pairs[i % 6][1], sum = sums[i % 5];
        bool reverse0 = i % 3 == 1 && op0 != FR_NEURON_BYPASS,
             reverse1 = i % 4 == 1 && op1 != FR_NEURON_BYPASS;
        fr_neuron_call call = fr_neuron_call_of("activate2");
        set_tile(&call, "dst", &c), set_tile(&call, "data", &a), set_number(&call, "op", FR_NEURON_PRELU);
        set_tile(&call, "imm0", &column), set_number(&call, "imm1", 0.75),
            set_number(&call, "relu_param", 0.5);
        set_number(&call, "op0", op0), set_number(&call, "op1", op1);
        set_number(&call, "reverse0", reverse0), set_number(&call, "reverse1", reverse1);
        set_number(&call, "reduce_op", sum), set_number(&call, "reduce_cmd", RESET_REDUCE),
            set_tile(&call, "reduce_res", &result);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), 128, 0, 0);
        float want[ROWS * N], total[ROWS];
        for (int j = 0; j < ROWS * N; j++) {
            float s = column.values[j / N],
                  x = reverse0 ? apply(op0, s, a.values[j]) : apply(op0, a.values[j], s);
            x = reverse1 ? apply(op1, 0.75f, x) : apply(op1, x, 0.75f);
            want[j] = x > 0 ? x : 0.5f * x;
            float *t = &total[j / N], y = want[j];
            bool better = sum == FR_NEURON_MAXIMUM   ? y > *t
                          : sum == FR_NEURON_MINIMUM ? y < *t
                          : sum == FR_NEURON_ABS_MAX ? fabsf(y) > fabsf(*t)
                                                     : fabsf(y) < fabsf(*t);
            *t = j % N == 0 ? y : sum == FR_NEURON_ADD ? *t + y : better ? y : *t;
        }
        tile_read(&d, &c), tile_read(&d, &result);
        check_values(&c, want, 0, 0, "activate2");
        check_values(&result, total, 1e-5, 1e-6, fr_neuron_operator_name(sum));
        tile_free(&d, &a), tile_free(&d, &c), tile_free(&d, &column), tile_free(&d, &result);
    }
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 500, CONTIGUOUS, -2, 2);
    fr_neuron_call call = fr_neuron_call_of("activate2");
    set_tile(&call, "dst", &a), set_tile(&call, "data", &a), set_number(&call, "op", FR_NEURON_TANH);
    set_number(&call, "imm0", 1), set_number(&call, "imm1", 1);
    set_number(&call, "op0", FR_NEURON_ADD), set_number(&call, "op1", FR_NEURON_ADD);
    EXPECT_REFUSED(&d, &call, "operator");
    set_number(&call, "op1", FR_NEURON_BYPASS);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 500, 0, 0);
    set_number(&call, "reverse1", 1);
    EXPECT_REFUSED(&d, &call, "operator");
    set_number(&call, "reverse1", 0), set_number(&call, "reduce_cmd", RESET_REDUCE);
    EXPECT_REFUSED(&d, &call, "operator"); /* what to reduce with? */
    set_number(&call, "reduce_op", FR_NEURON_MULTIPLY);
    EXPECT_REFUSED(&d, &call, "operator");
    desk_close(&d);
}

TEST_MAIN(neuron_scalar)
