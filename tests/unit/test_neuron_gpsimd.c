/* Instructions of the GpSimd engine, and the partition shuffle of Vector: each against a plain loop, each limit refused by
 * its rule, each cost at two points. */
#include "neuron_tiles.h"

enum { N = 24 };

static double guess(const desk *d)
{
    return (last_record(d)->flags & FR_NEURON_GUESS) != 0;
}

/* ---- iota, affine_select -------------------------------------------------------------------------------------- */

TEST(iota_counts_in_every_dtype)
{
    DESK(d, 3);
    static const fr_neuron_dtype dtypes[] = {FR_NEURON_INT32, FR_NEURON_FLOAT32, FR_NEURON_BFLOAT16,
                                             FR_NEURON_INT16, FR_NEURON_UINT8,   FR_NEURON_UINT32};
    static const double pattern[] = {100, 2, -3, 3, 1, 4};
    for (int i = 0; i < 6; i++) {
        tile c = tile_new(&d, dtypes[i], FR_NEURON_SBUF, 3, N, (layout_kind)(i % 3));
        fr_neuron_call call = fr_neuron_call_of("iota");
        set_tile(&call, "dst", &c);
        set_list(&call, "pattern", pattern, 6);
        set_number(&call, "offset", 7);
        set_number(&call, "channel_multiplier", 1000);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), 150 + N, 0, 0);
        float want[3 * N];
        for (int p = 0; p < 3; p++)
            for (int w = 0; w < 2; w++)
                for (int y = 0; y < 3; y++)
                    for (int x = 0; x < 4; x++)
                        want[p * N + w * 12 + y * 4 + x] =
                            rounded((float)(7 + p * 1000 + w * 100 - y * 3 + x), dtypes[i]);
        tile_read(&d, &c);
        if (dtypes[i] == FR_NEURON_UINT32) /* the integer's bits, not a saturated float */
            for (int j = 0; j < 3 * N; j++)
                want[j] = (float)(uint32_t)(int32_t)want[j];
        check_values(&c, want, 0, 0, "iota");
        tile_free(&d, &c);
    }
    desk_close(&d);
}

TEST(iota_is_exact_and_wraps)
{
    DESK(d, 3);
    static const double pattern[] = {1, 4};
    tile c = tile_new(&d, FR_NEURON_INT32, FR_NEURON_SBUF, 1, 4, CONTIGUOUS);
    fr_neuron_call call = fr_neuron_call_of("iota");
    set_tile(&call, "dst", &c);
    set_list(&call, "pattern", pattern, 2);
    set_number(&call, "offset", 2147483645);
    EXPECT_OK(&d, &call);
    int32_t out[4];
    tile_raw(&d, &c, out);
    CHECK(out[0] == 2147483645 && out[2] == INT32_MAX && out[3] == INT32_MIN);
    static const double wrong[][4] = {{1, 5}, {1, 0}, {1, 2, 1, 3}};
    for (int i = 0; i < 3; i++) {
        set_list(&call, "pattern", wrong[i], i == 2 ? 4 : 2);
        EXPECT_REFUSED(&d, &call, "pattern");
    }
    static const double half[] = {0.5, 4};
    set_list(&call, "pattern", half, 2);
    CHECK_INT(fr_neuron_issue(d.core, &call, &d.error), FR_BAD_USAGE);
    set_list(&call, "pattern", pattern, 1);
    EXPECT_REFUSED(&d, &call, "pattern");
    set_list(&call, "pattern", pattern, 2);
    set_number(&call, "offset", 0.5);
    CHECK_INT(fr_neuron_issue(d.core, &call, &d.error), FR_BAD_USAGE);
    set_number(&call, "offset", 0);
    tile p = tile_new(&d, FR_NEURON_INT32, FR_NEURON_PSUM, 1, 4, CONTIGUOUS);
    set_tile(&call, "dst", &p);
    EXPECT_REFUSED(&d, &call, "engine_memory");
    desk_close(&d);
}

TEST(affine_select_masks)
{
    DESK(d, 3);
    static const fr_neuron_operator ops[] = {FR_NEURON_EQUAL,   FR_NEURON_NOT_EQUAL,  FR_NEURON_GREATER_EQUAL,
                                             FR_NEURON_GREATER, FR_NEURON_LESS_EQUAL, FR_NEURON_LESS};
    static const fr_neuron_dtype dtypes[] = {FR_NEURON_FLOAT32, FR_NEURON_BFLOAT16, FR_NEURON_FLOAT8_E5M2};
    static const double pattern[] = {-1, N};
    for (int i = 0; i < 24; i++) {
        tile a = tile_random(&d, dtypes[i % 3], FR_NEURON_SBUF, 16, N, (layout_kind)(i % 4), -2, 2);
        tile c = tile_new(&d, dtypes[i / 2 % 3], FR_NEURON_SBUF, 16, N, (layout_kind)(i / 4 % 3));
        fr_neuron_call call = fr_neuron_call_of("affine_select");
        set_tile(&call, "dst", &c);
        set_list(&call, "pattern", pattern, 2);
        set_number(&call, "channel_multiplier", 1);
        set_tile(&call, "on_true_tile", &a);
        set_number(&call, "on_false_value", -1e9);
        set_number(&call, "cmp_op", ops[i % 6]);
        set_number(&call, "offset", 3);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), 150 + N, 0, 0);
        float want[16 * N];
        for (int p = 0; p < 16; p++)
            for (int j = 0; j < N; j++) {
                int v = 3 + p - j;
                bool keep = i % 6 == 0   ? v == 0
                            : i % 6 == 1 ? v != 0
                            : i % 6 == 2 ? v >= 0
                            : i % 6 == 3 ? v > 0
                            : i % 6 == 4 ? v <= 0
                                         : v < 0;
                want[p * N + j] = rounded(keep ? a.values[p * N + j] : -1e9f, c.view.dtype);
            }
        tile_read(&d, &c);
        check_values(&c, want, 0, 0, "affine_select");
        tile_free(&d, &a), tile_free(&d, &c);
    }
    const int32_t big[4] = {16777217, 1, 2, 3};
    static const double four[] = {1, 4};
    tile w = tile_of(&d, FR_NEURON_INT32, 1, 4, big),
         c = tile_new(&d, FR_NEURON_INT32, FR_NEURON_SBUF, 1, 4, CONTIGUOUS);
    fr_neuron_call call = fr_neuron_call_of("affine_select");
    set_tile(&call, "dst", &c), set_tile(&call, "on_true_tile", &w);
    set_list(&call, "pattern", four, 2);
    set_number(&call, "channel_multiplier", 0), set_number(&call, "on_false_value", -5);
    EXPECT_OK(&d, &call);
    int32_t out[4];
    tile_raw(&d, &c, out);
    CHECK(out[0] == 16777217 && out[1] == -5); /* equal dtypes keep all bits */
    set_number(&call, "cmp_op", FR_NEURON_ADD);
    EXPECT_REFUSED(&d, &call, "operator");
    set_number(&call, "cmp_op", FR_NEURON_LESS);
    set_list(&call, "pattern", pattern, 2);
    EXPECT_REFUSED(&d, &call, "pattern");
    desk_close(&d);
}

/* ---- tensor_partition_reduce ---------------------------------------------------------------------------------- */

TEST(partition_reduce)
{
    DESK(d, 3);
    static const fr_neuron_operator ops[] = {FR_NEURON_ADD, FR_NEURON_AVERAGE, FR_NEURON_MAXIMUM};
    for (int i = 0; i < 9; i++) {
        tile a = tile_random(&d, i % 2 ? FR_NEURON_BFLOAT16 : FR_NEURON_FLOAT32, FR_NEURON_SBUF, 40, N,
                             (layout_kind)(i % 4), -1, 1);
        tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, N, CONTIGUOUS);
        fr_neuron_call call = fr_neuron_call_of("tensor_partition_reduce");
        set_tile(&call, "dst", &c), set_tile(&call, "data", &a), set_number(&call, "op", ops[i % 3]);
        EXPECT_OK(&d, &call);
        float want[N];
        for (int j = 0; j < N; j++) {
            double total = (double)a.values[j];
            for (int p = 1; p < 40; p++) {
                double x = (double)a.values[p * N + j];
                total = i % 3 == 2 ? (x > total ? x : total) : total + x;
            }
            want[j] = (float)(i % 3 == 1 ? total / 40 : total);
        }
        tile_read(&d, &c);
        check_values(&c, want, 1e-5, 1e-5, "tensor_partition_reduce");
        CHECK_NEAR(last_cycles(&d), 150 + 8 * N, 0, 0);
        CHECK(guess(&d));
        tile_free(&d, &a), tile_free(&d, &c);
    }
    const uint16_t bits[6] = {0xff0f, 1, 0xf0ff, 2, 0xffff, 4};
    uint16_t out[2];
    tile b = tile_of(&d, FR_NEURON_UINT16, 3, 2, bits),
         c = tile_new(&d, FR_NEURON_UINT16, FR_NEURON_SBUF, 1, 2, CONTIGUOUS);
    fr_neuron_call call = fr_neuron_call_of("tensor_partition_reduce");
    set_tile(&call, "dst", &c), set_tile(&call, "data", &b), set_number(&call, "op", FR_NEURON_BITWISE_AND);
    EXPECT_OK(&d, &call);
    tile_raw(&d, &c, out);
    CHECK(out[0] == 0xf00f && out[1] == 0);
    set_number(&call, "op", FR_NEURON_MINIMUM);
    EXPECT_REFUSED(&d, &call, "operator");
    set_number(&call, "op", FR_NEURON_ADD);
    set_tile(&call, "dst", &b);
    EXPECT_REFUSED(&d, &call, "partitions_match");
    tile longer = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 3, CONTIGUOUS);
    set_tile(&call, "dst", &longer);
    EXPECT_REFUSED(&d, &call, "elements_match");
    tile f = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 3, 3, CONTIGUOUS, 0, 1);
    set_tile(&call, "data", &f), set_number(&call, "op", FR_NEURON_BITWISE_OR);
    EXPECT_REFUSED(&d, &call, "operator_kind");
    desk_close(&d);
}

/* ---- nc_stream_shuffle ---------------------------------------------------------------------------------------- */

static fr_neuron_call shuffle(const tile *dst, const tile *src, const double *mask)
{
    fr_neuron_call call = fr_neuron_call_of("nc_stream_shuffle");
    set_tile(&call, "dst", dst), set_tile(&call, "src", src);
    set_list(&call, "shuffle_mask", mask, 32);
    return call;
}

TEST(shuffle_inside_quadrants)
{
    DESK(d, 3);
    double mask[32], all_zero[32] = {0};
    for (int i = 0; i < 32; i++)
        mask[i] = (i * 5 + 3) % 32;
    mask[7] = 255;
    tile a = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 128, N, CONTIGUOUS, -1, 1);
    tile c = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_PSUM, 128, N, CONTIGUOUS, 5, 6);
    fr_neuron_call call = shuffle(&c, &a, mask);
    float *before = malloc(128 * N * sizeof *before), *want = malloc(128 * N * sizeof *want);
    memcpy(before, c.values, 128 * N * sizeof *before);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 64, 0, 0);
    for (int p = 0; p < 128; p++)
        for (int j = 0; j < N; j++)
            want[p * N + j] =
                p % 32 == 7 ? before[p * N + j] : a.values[(p / 32 * 32 + (int)mask[p % 32]) * N + j];
    tile_read(&d, &c);
    check_values(&c, want, 0, 0, "shuffle");
    call = shuffle(&a, &a, mask); /* in place */
    for (int p = 0; p < 128; p++)
        if (p % 32 == 7)
            memcpy(want + p * N, a.values + p * N, N * sizeof *want);
    EXPECT_OK(&d, &call);
    tile_read(&d, &a);
    check_values(&a, want, 0, 0, "in place");
    /* one partition to a whole quadrant: the destination was never written before */
    tile one = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, N, CONTIGUOUS, -1, 1);
    tile wide = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 32, N, CONTIGUOUS);
    call = shuffle(&wide, &one, all_zero);
    EXPECT_OK(&d, &call);
    tile_read(&d, &wide);
    for (int p = 0; p < 32; p++)
        CHECK(memcmp(wide.values + p * N, one.values, N * sizeof *want) == 0);
    fr_neuron_call read = fr_neuron_call_of("tensor_copy"); /* and counts as written now */
    set_tile(&read, "dst", &wide), set_tile(&read, "src", &wide);
    EXPECT_OK(&d, &read);
    free(before), free(want);
    desk_close(&d);
}

TEST(shuffle_limits)
{
    DESK(d, 3);
    double identity[32], bad[32];
    for (int i = 0; i < 32; i++)
        identity[i] = bad[i] = i;
    bad[4] = 32;
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 128, 100, CONTIGUOUS, 0, 1);
    tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 128, 100, CONTIGUOUS);
    tile h = tile_new(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 128, 100, CONTIGUOUS);
    tile s = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 128, 99, CONTIGUOUS);
    fr_neuron_call call = shuffle(&c, &a, bad);
    EXPECT_REFUSED(&d, &call, "shuffle_mask");
    set_list(&call, "shuffle_mask", identity, 31);
    EXPECT_REFUSED(&d, &call, "shuffle_mask");
    call = shuffle(&h, &a, identity);
    EXPECT_REFUSED(&d, &call, "dtype_match");
    call = shuffle(&s, &a, identity);
    EXPECT_REFUSED(&d, &call, "elements_match");
    call = shuffle(&c, &a, identity);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 100, 0, 0);
    tile few = a;
    few.view.partitions = 20;
    call = shuffle(&c, &few, identity);
    EXPECT_REFUSED(&d, &call, "shuffle_mask"); /* partition 20 is not there */
    few.view.partition = 32;
    few.view.partitions = 32;
    tile half = c;
    half.view.partitions = 64;
    double zero[32] = {0};
    call = shuffle(&half, &few, zero);
    EXPECT_REFUSED(&d, &call, "partition_start"); /* 64 active partitions cannot start at 32 */
    desk_close(&d);
}

/* ---- gathers -------------------------------------------------------------------------------------------------- */

TEST(nc_n_gather_by_partition)
{
    DESK(d, 3);
    static const fr_neuron_dtype dtypes[] = {FR_NEURON_FLOAT32, FR_NEURON_BFLOAT16, FR_NEURON_UINT8};
    for (int i = 0; i < 6; i++) {
        tile a = tile_random(&d, dtypes[i % 3], FR_NEURON_SBUF, 5, N, (layout_kind)(i % 4), 0, 200);
        tile index = tile_random(&d, FR_NEURON_UINT32, FR_NEURON_SBUF, 5, 32, (layout_kind)(i % 3), 0, N - 1);
        tile c = tile_new(&d, dtypes[i % 3], FR_NEURON_SBUF, 5, 32, CONTIGUOUS);
        fr_neuron_call call = fr_neuron_call_of("nc_n_gather");
        set_tile(&call, "dst", &c), set_tile(&call, "data", &a), set_tile(&call, "indices", &index);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), 150 + 64, 0, 0);
        float want[5 * 32];
        for (int j = 0; j < 5 * 32; j++)
            want[j] = a.values[j / 32 * N + (int)index.values[j]];
        tile_read(&d, &c);
        check_values(&c, want, 0, 0, "nc_n_gather");
        tile_free(&d, &a), tile_free(&d, &index), tile_free(&d, &c);
    }
    const uint32_t beyond[2] = {0, 4};
    tile a = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 4, CONTIGUOUS, 0, 1);
    tile index = tile_of(&d, FR_NEURON_UINT32, 1, 2, beyond),
         c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 2, CONTIGUOUS);
    tile h = tile_new(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 1, 2, CONTIGUOUS);
    fr_neuron_call call = fr_neuron_call_of("nc_n_gather");
    set_tile(&call, "dst", &c), set_tile(&call, "data", &a), set_tile(&call, "indices", &index);
    EXPECT_REFUSED(&d, &call, "index_bounds");
    set_tile(&call, "dst", &h);
    EXPECT_REFUSED(&d, &call, "dtype_match");
    set_tile(&call, "dst", &c), set_tile(&call, "indices", &a);
    EXPECT_REFUSED(&d, &call, "dtype");
    tile wide = tile_random(&d, FR_NEURON_UINT32, FR_NEURON_SBUF, 1, 513, CONTIGUOUS, 0, 3);
    tile out = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 513, CONTIGUOUS);
    set_tile(&call, "indices", &wide), set_tile(&call, "dst", &out);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 300 + 2 * 513, 0, 0);
    CHECK(guess(&d));
    desk_close(&d);
}

TEST(local_gather_by_group)
{
    DESK(d, 3);
    for (int i = 0; i < 4; i++) {
        int each = 1 << i, valid = i == 3 ? 41 : 48;
        tile a = tile_random(&d, i % 2 ? FR_NEURON_BFLOAT16 : FR_NEURON_FLOAT32, FR_NEURON_SBUF, 32, 64,
                             CONTIGUOUS, -1, 1);
        tile index = tile_random(&d, FR_NEURON_UINT16, FR_NEURON_SBUF, 32, 3, CONTIGUOUS, 0, 64 - 8);
        tile c = tile_new(&d, a.view.dtype, FR_NEURON_SBUF, 32, valid * each, CONTIGUOUS);
        fr_neuron_call call = fr_neuron_call_of("local_gather");
        set_tile(&call, "dst", &c), set_tile(&call, "src_buffer", &a), set_tile(&call, "index", &index);
        set_number(&call, "num_elem_per_idx", each);
        if (i == 3)
            set_number(&call, "num_valid_indices", valid);
        EXPECT_OK(&d, &call);
        double bytes = i % 2 ? 2 : 4, least = 4 / bytes < each ? 4 / bytes : each;
        CHECK_NEAR(last_cycles(&d), 150 + valid * each / ((28.0 + 4 * each) / (4 * each) / least), 1e-3, 0);
        float *want = malloc((size_t)(32 * valid * each) * sizeof *want);
        for (int p = 0; p < 32; p++)
            for (int k = 0; k < valid; k++)
                for (int e = 0; e < each; e++) {
                    int at = (int)index.values[(p / 16 * 16 + k % 16) * 3 + k / 16] + e;
                    want[(p * valid + k) * each + e] = a.values[p * 64 + at];
                }
        tile_read(&d, &c);
        check_values(&c, want, 0, 0, "local_gather");
        free(want);
        if (i == 0) {
            set_number(&call, "num_elem_per_idx", 3);
            EXPECT_REFUSED(&d, &call, "gather");
            set_number(&call, "num_elem_per_idx", 1);
            set_number(&call, "num_valid_indices", 49);
            EXPECT_REFUSED(&d, &call, "gather");
            set_number(&call, "num_valid_indices", 47);
            EXPECT_REFUSED(&d, &call, "elements_match");
            tile odd = a;
            odd.view.partitions = 24;
            tile dst = c;
            dst.view.partitions = 24;
            set_tile(&call, "src_buffer", &odd), set_tile(&call, "dst", &dst);
            EXPECT_REFUSED(&d, &call, "gather");
            const uint16_t far[16] = {64};
            tile past = tile_of(&d, FR_NEURON_UINT16, 16, 1, far);
            odd.view.partitions = 16, dst.view.partitions = 16, dst.view.size[0] = 16;
            set_tile(&call, "src_buffer", &odd), set_tile(&call, "dst", &dst),
                set_tile(&call, "index", &past);
            set_number(&call, "num_valid_indices", 16);
            EXPECT_REFUSED(&d, &call, "index_bounds");
            set_tile(&call, "index", &a);
            EXPECT_REFUSED(&d, &call, "dtype");
        }
        tile_free(&d, &a), tile_free(&d, &index), tile_free(&d, &c);
    }
    desk_close(&d);
}

/* ---- segments ------------------------------------------------------------------------------------------------- */

TEST(sequence_bounds_of_the_documentation)
{
    DESK(d, 3);
    const int32_t ids[9] = {0, 1, 1, 2, 2, 2, 0, 3, 3};
    const int32_t want[18] = {9, 1, 1, 3, 3, 3, 9, 7, 7, -1, 3, 3, 6, 6, 6, -1, 9, 9};
    int32_t out[18];
    tile s = tile_of(&d, FR_NEURON_INT32, 1, 9, ids),
         c = tile_new(&d, FR_NEURON_INT32, FR_NEURON_SBUF, 1, 18, CONTIGUOUS);
    fr_neuron_call call = fr_neuron_call_of("sequence_bounds");
    set_tile(&call, "dst", &c), set_tile(&call, "segment_ids", &s);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 150 + 36, 0, 0);
    CHECK(guess(&d));
    tile_raw(&d, &c, out);
    CHECK(memcmp(out, want, sizeof want) == 0);
    tile wrong = tile_new(&d, FR_NEURON_INT32, FR_NEURON_SBUF, 1, 17, CONTIGUOUS);
    set_tile(&call, "dst", &wrong);
    EXPECT_REFUSED(&d, &call, "size_limit");
    const float negative[2] = {1, -1};
    tile n = tile_of(&d, FR_NEURON_FLOAT32, 1, 2, negative),
         four = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 4, CONTIGUOUS);
    set_tile(&call, "segment_ids", &n), set_tile(&call, "dst", &four);
    EXPECT_REFUSED(&d, &call, "value");
    tile two = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 2, CONTIGUOUS, 0, 1);
    tile two4 = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 4, CONTIGUOUS);
    set_tile(&call, "segment_ids", &two), set_tile(&call, "dst", &two4);
    EXPECT_REFUSED(&d, &call, "partitions_match");
    desk_close(&d);
}

TEST(nonzero_only_in_first_partitions_of_groups)
{
    DESK(d, 3);
    int32_t data[48 * 8] = {0}, out[48 * 9];
    const int32_t example[8] = {0, 1, 1, 0, 0, 1, 0, 0}, want[9] = {17, 18, 21, -1, -1, -1, -1, -1, 3};
    memcpy(data + 16 * 8, example, sizeof example);
    for (int i = 0; i < 8; i++)
        data[32 * 8 + i] = i + 1;
    tile a = tile_of(&d, FR_NEURON_INT32, 48, 8, data);
    tile c = tile_random(&d, FR_NEURON_INT32, FR_NEURON_SBUF, 48, 9, CONTIGUOUS, 70, 70.2);
    fr_neuron_call call = fr_neuron_call_of("nonzero_with_count");
    set_tile(&call, "dst", &c), set_tile(&call, "src", &a), set_number(&call, "index_offset", 16);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 150 + 16, 0, 0);
    tile_raw(&d, &c, out);
    CHECK(memcmp(out + 16 * 9, want, sizeof want) == 0);
    CHECK(out[0] == -1 && out[8] == 0 && out[32 * 9 + 7] == 23 && out[32 * 9 + 8] == 8);
    CHECK(out[9] == 70 && out[15 * 9 + 8] == 70); /* other partitions are left alone */
    const float f[4] = {0.0f, -0.0f, 0x1p-149f, NAN};
    int32_t five[5];
    tile x = tile_of(&d, FR_NEURON_FLOAT32, 1, 4, f),
         y = tile_new(&d, FR_NEURON_INT32, FR_NEURON_SBUF, 1, 5, CONTIGUOUS);
    set_tile(&call, "dst", &y), set_tile(&call, "src", &x), set_number(&call, "padding_val", 99),
        set_number(&call, "index_offset", 0);
    EXPECT_OK(&d, &call);
    tile_raw(&d, &y, five);
    CHECK(five[0] == 2 && five[1] == 3 && five[2] == 99 && five[4] == 2);
    set_tile(&call, "dst", &x);
    EXPECT_REFUSED(&d, &call, "dtype");
    tile short_one = tile_new(&d, FR_NEURON_INT32, FR_NEURON_SBUF, 1, 4, CONTIGUOUS);
    set_tile(&call, "dst", &short_one);
    EXPECT_REFUSED(&d, &call, "size_limit");
    desk_close(&d);
    DESK(old, 2);
    tile o = tile_random(&old, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 4, CONTIGUOUS, 0, 1),
         p = tile_new(&old, FR_NEURON_INT32, FR_NEURON_SBUF, 1, 5, CONTIGUOUS);
    set_tile(&call, "dst", &p), set_tile(&call, "src", &o);
    EXPECT_REFUSED(&old, &call, "generation");
    desk_close(&old);
}

/* ---- topk ----------------------------------------------------------------------------------------------------- */

TEST(topk_of_a_snake)
{
    DESK(d, 3);
    enum { COLUMNS = 5, COUNT = 77, K = 20 };
    tile a = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 32, COLUMNS, CONTIGUOUS, -9, 9);
    tile v = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 32, K, CONTIGUOUS, 99, 100);
    tile index = tile_random(&d, FR_NEURON_UINT32, FR_NEURON_SBUF, 32, K, CONTIGUOUS, 7, 8);
    fr_neuron_call call = fr_neuron_call_of("topk");
    set_tile(&call, "val_dst", &v), set_tile(&call, "idx_dst", &index), set_tile(&call, "src", &a),
        set_number(&call, "n", COUNT);
    float untouched = v.values[2];
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 4 * COUNT + K, 0, 0);
    tile_read(&d, &v), tile_read(&d, &index);
    for (int g = 0; g < 32; g += 16) {
        float last = -INFINITY;
        for (int j = 0; j < K; j++) {
            float value = v.values[(g + j % 16) * K + j / 16];
            int s = (int)index.values[(g + j % 16) * K + j / 16], above = 0;
            CHECK(value >= last && s < COUNT);
            CHECK(a.values[(g + s % 16) * COLUMNS + s / 16] == value);
            for (int t = 0; t < COUNT; t++)
                above += a.values[(g + t % 16) * COLUMNS + t / 16] > value;
            CHECK(above <= K - 1 - j);
            last = value;
        }
    }
    CHECK(v.values[2] == untouched); /* column 2 of 20: results end in column 1 */
    set_number(&call, "n", 81);
    EXPECT_REFUSED(&d, &call, "size_limit");
    set_number(&call, "n", 7);
    EXPECT_REFUSED(&d, &call, "value");
    set_number(&call, "n", 19);
    EXPECT_REFUSED(&d, &call, "size_limit"); /* K is 20 */
    set_number(&call, "n", COUNT);
    set_tile(&call, "val_dst", &index);
    EXPECT_REFUSED(&d, &call, "dtype");
    tile odd_a = a, odd_v = v, odd_i = index;
    odd_a.view.partitions = odd_v.view.partitions = odd_i.view.partitions = 17;
    set_tile(&call, "val_dst", &odd_v), set_tile(&call, "idx_dst", &odd_i), set_tile(&call, "src", &odd_a);
    EXPECT_REFUSED(&d, &call, "gather");
    desk_close(&d);
}

TEST_MAIN(neuron_gpsimd)
