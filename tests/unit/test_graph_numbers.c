/* Number formats, exhaustively where that is possible, and initial values of parameters. */
#include "frontier/graph.h"
#include "test.h"

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TEST(dtypes_have_names_and_sizes)
{
    CHECK_STR(fr_dtype_name(FR_BF16), "bf16");
    CHECK_STR(fr_dtype_name(FR_I32), "i32");
    CHECK_INT(fr_dtype_bytes(FR_F32), 4);
    CHECK_INT(fr_dtype_bytes(FR_BF16), 2);
    CHECK_INT(fr_dtype_bytes(FR_F64), 8);
}

TEST(every_bf16_survives_a_round_trip)
{
    int wrong = 0;
    for (uint32_t b = 0; b < 65536; b++) {
        float wide = fr_bf16_to_f32((uint16_t)b);
        uint16_t back = fr_f32_to_bf16(wide);
        bool nan = (b & 0x7f80u) == 0x7f80u && (b & 0x7fu);
        wrong += float_bits(wide) != b << 16;
        wrong += nan ? !isnan(fr_bf16_to_f32(back)) : back != b;
    }
    CHECK_INT(wrong, 0);
}

/* Between a bf16 and the next: below the middle rounds down, above rounds up, the middle goes to even. */
TEST(narrowing_rounds_to_nearest_even)
{
    int wrong = 0;
    for (uint32_t b = 0; b < 65536; b++) {
        if ((b & 0x7f80u) == 0x7f80u)
            continue;
        uint32_t base = b << 16;
        wrong += fr_f32_to_bf16(bits_float(base | 0x7fffu)) != b;
        wrong += fr_f32_to_bf16(bits_float(base | 0x8001u)) != b + 1;
        wrong += fr_f32_to_bf16(bits_float(base | 0x8000u)) != b + (b & 1u);
        wrong += fr_f32_to_bf16(bits_float(base | 1u)) != b;
    }
    CHECK_INT(wrong, 0);
}

TEST(special_values_narrow_to_themselves)
{
    CHECK(isinf(fr_bf16_to_f32(fr_f32_to_bf16(INFINITY))));
    CHECK(isinf(fr_bf16_to_f32(fr_f32_to_bf16(bits_float(0x7f7fffffu))))); /* the largest fp32 rounds up */
    CHECK_INT(fr_f32_to_bf16(-0.0f), 0x8000);
    for (uint32_t payload = 1; payload < 0x800000u; payload = payload * 3 + 1) {
        CHECK(isnan(fr_bf16_to_f32(fr_f32_to_bf16(bits_float(0x7f800000u | payload)))));
        CHECK(isnan(fr_bf16_to_f32(fr_f32_to_bf16(bits_float(0xff800000u | payload)))));
    }
}

TEST(rows_load_and_store)
{
    double in[5] = {1, -2.5, 0, 1e-3, 300}, out[5];
    static const fr_dtype dtypes[] = {FR_F32, FR_BF16, FR_F64};
    for (int d = 0; d < 3; d++) {
        double memory[16] = {0};
        double tolerance = dtypes[d] == FR_BF16 ? 1.0 / 256 : 1e-7;
        fr_store_doubles(memory, dtypes[d], 3, 5, in, false);
        fr_store_doubles(memory, dtypes[d], 3, 5, in, true);
        fr_load_doubles(memory, dtypes[d], 3, 5, out);
        for (int i = 0; i < 5; i++)
            CHECK_NEAR(out[i], 2 * in[i], 0, tolerance);
        fr_load_doubles(memory, dtypes[d], 0, 3, out);
        CHECK(out[0] == 0 && out[1] == 0 && out[2] == 0);
    }
}

/* ---- initial values ---- */

static fr_graph *some_parameters(const char *extra)
{
    fr_graph *g = fr_graph_create(NULL);
    if (extra)
        fr_parameter(g, extra, 5, 5, fr_init_constant(1), "m");
    fr_parameter(g, "normal", 100, 1001, fr_init_normal(0.5), "m");
    fr_parameter(g, "uniform", 333, 100, fr_init_uniform(-2, 4), "m");
    fr_parameter(g, "constant", 1, 3, fr_init_constant(7), "m");
    return g;
}

TEST(parameters_lie_end_to_end)
{
    fr_graph *g = some_parameters(NULL);
    int64_t end = 0, elements = 0;
    for (int p = 0; p < fr_graph_parameters(g); p++) {
        const fr_parameter_info *info = fr_graph_parameter(g, p);
        CHECK_INT(info->offset % 16, 0);
        CHECK(info->offset >= end && info->offset < end + 16);
        CHECK_INT(info->tensor->parameter, p);
        end = info->offset + info->rows * info->columns;
        elements += info->rows * info->columns;
    }
    CHECK_INT(fr_graph_parameter_elements(g), elements);
    CHECK(fr_graph_flat_elements(g) >= end && fr_graph_flat_elements(g) % 16 == 0);
    fr_graph_free(g);
}

TEST(initial_values_have_their_distribution)
{
    fr_graph *g = some_parameters(NULL);
    float *flat = fr_allocate((size_t)fr_graph_flat_elements(g) * sizeof *flat);
    memset(flat, 0xff, (size_t)fr_graph_flat_elements(g) * sizeof *flat); /* gaps must become zero */
    fr_graph_initialize(g, 42, NULL, flat);
    const fr_parameter_info *normal = fr_graph_parameter(g, 0), *uniform = fr_graph_parameter(g, 1);
    double sum = 0, squares = 0, low = 9, high = -9, middle = 0;
    for (int64_t i = 0; i < 100100; i++) {
        sum += (double)flat[normal->offset + i];
        squares += (double)flat[normal->offset + i] * (double)flat[normal->offset + i];
    }
    for (int64_t i = 0; i < 33300; i++) {
        double x = (double)flat[uniform->offset + i];
        low = x < low ? x : low;
        high = x > high ? x : high;
        middle += x / 33300;
    }
    CHECK_NEAR(sum / 100100, 0, 0.01, 0);
    CHECK_NEAR(sqrt(squares / 100100), 0.5, 0, 0.01);
    CHECK(low >= -2 && low < -1.99 && high <= 4 && high > 3.99);
    CHECK_NEAR(middle, 1, 0.05, 0);
    const fr_parameter_info *constant = fr_graph_parameter(g, 2);
    for (int i = 0; i < 16; i++)
        CHECK(flat[constant->offset + i] == (i < 3 ? 7.0f : 0.0f));
    for (int64_t i = 100100; i < uniform->offset; i++)
        CHECK(flat[i] == 0);
    fr_deallocate(flat);
    fr_graph_free(g);
}

/* The same values for any number of threads, and whatever other parameters there are. */
TEST(initial_values_depend_on_seed_and_name_only)
{
    fr_error error = {0};
    fr_graph *g = some_parameters(NULL), *h = some_parameters("extra");
    size_t bytes = (size_t)fr_graph_flat_elements(h) * sizeof(float);
    float *a = fr_allocate(bytes), *b = fr_allocate(bytes), *c = fr_allocate(bytes);
    fr_pool *pool = NULL;
    CHECK_OK(fr_pool_create(&pool, 3, &error));
    fr_graph_initialize(g, 42, NULL, a);
    fr_graph_initialize(g, 42, pool, b);
    CHECK(memcmp(a, b, (size_t)fr_graph_flat_elements(g) * sizeof(float)) == 0);
    fr_graph_initialize(h, 42, pool, b);
    fr_graph_initialize(g, 43, pool, c);
    CHECK(memcmp(a, b + fr_graph_parameter(h, 1)->offset, 100100 * sizeof(float)) == 0);
    CHECK(memcmp(a, c, 100100 * sizeof(float)) != 0);
    fr_pool_free(pool);
    fr_deallocate(a);
    fr_deallocate(b);
    fr_deallocate(c);
    fr_graph_free(g);
    fr_graph_free(h);
}

TEST_MAIN(graph_numbers)
