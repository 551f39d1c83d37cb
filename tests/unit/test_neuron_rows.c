/* Vector instructions that look at whole rows: batch-norm statistics and the eights, against plain loops. */
#include "neuron_tiles.h"

enum { ROWS = 5 };

/* ---- bn_stats, bn_aggr ---------------------------------------------------------------------------------------- */

TEST(batch_norm_statistics_add_up)
{
    DESK(d, 3);
    static const int64_t sizes[] = {512, 77, 1};
    for (int i = 0; i < 3; i++) {
        tile a = tile_random(&d, i ? FR_NEURON_FLOAT32 : FR_NEURON_BFLOAT16, FR_NEURON_SBUF, ROWS, sizes[i],
                             (layout_kind)(i % 2), -2, 5);
        tile stats = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 6, CONTIGUOUS);
        tile moments = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 2, CONTIGUOUS);
        fr_neuron_call call = fr_neuron_call_of("bn_stats");
        set_tile(&call, "dst", &stats), set_tile(&call, "data", &a);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), i ? (i == 1 ? 77 : 64) : 512, 0, 0);
        call = fr_neuron_call_of("bn_aggr");
        set_tile(&call, "dst", &moments), set_tile(&call, "data", &stats);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), 64, 0, 0);
        tile_read(&d, &stats), tile_read(&d, &moments);
        for (int r = 0; r < ROWS; r++) {
            double mean = 0, square = 0, even = 0;
            for (int64_t j = 0; j < a.n; j++) {
                mean += (double)a.values[r * a.n + j] / (double)a.n;
                even += j % 2 == 0 ? (double)a.values[r * a.n + j] : 0;
            }
            for (int64_t j = 0; j < a.n; j++)
                square += pow((double)a.values[r * a.n + j] - mean, 2) / (double)a.n;
            CHECK_NEAR(stats.values[r * 6], (a.n + 1) / 2, 0, 0);
            CHECK_NEAR(stats.values[r * 6 + 1], even / (double)((a.n + 1) / 2), 1e-5, 1e-5);
            CHECK_NEAR(stats.values[r * 6 + 3], a.n / 2, 0, 0);
            CHECK_NEAR(moments.values[r * 2], mean, 1e-5, 1e-5);
            CHECK_NEAR(moments.values[r * 2 + 1], square, 1e-5, 1e-5);
        }
        tile_free(&d, &a), tile_free(&d, &stats), tile_free(&d, &moments);
    }
    tile wide = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 513, CONTIGUOUS, 0, 1);
    tile six = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 6, CONTIGUOUS, 1, 2);
    tile two = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 2, CONTIGUOUS);
    fr_neuron_call call = fr_neuron_call_of("bn_stats");
    set_tile(&call, "dst", &six), set_tile(&call, "data", &wide);
    EXPECT_REFUSED(&d, &call, "size_limit");
    set_tile(&call, "dst", &two), set_tile(&call, "data", &six);
    EXPECT_REFUSED(&d, &call, "size_limit");
    call = fr_neuron_call_of("bn_aggr");
    tile odd = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 10, CONTIGUOUS, 1, 2);
    set_tile(&call, "dst", &two), set_tile(&call, "data", &odd);
    EXPECT_REFUSED(&d, &call, "size_limit");
    tile many = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 2, 30, CONTIGUOUS, 1, 2);
    set_tile(&call, "data", &many);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 130, 0, 0);
    desk_close(&d);
}

/* ---- the eights ----------------------------------------------------------------------------------------------- */

TEST(max8_descends)
{
    DESK(d, 3);
    tile a = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, ROWS, 100, STRIDED, -5, 5);
    tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 8, CONTIGUOUS);
    fr_neuron_call call = fr_neuron_call_of("max8");
    set_tile(&call, "dst", &c), set_tile(&call, "src", &a);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 100, 0, 0);
    tile_read(&d, &c);
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < 8; k++) {
            int above = 0, equal = 0; /* rank by counting */
            for (int j = 0; j < 100; j++) {
                above += a.values[r * 100 + j] > c.values[r * 8 + k];
                equal += a.values[r * 100 + j] == c.values[r * 8 + k];
            }
            CHECK(above <= k && k < above + equal);
        }
    tile seven = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, ROWS, 7, CONTIGUOUS, 0, 1);
    set_tile(&call, "src", &seven);
    EXPECT_REFUSED(&d, &call, "size_limit");
    set_tile(&call, "src", &a), set_tile(&call, "dst", &seven);
    EXPECT_REFUSED(&d, &call, "size_limit");
    tile huge = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 1, 16385, CONTIGUOUS, 0, 1);
    tile one = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 8, CONTIGUOUS);
    set_tile(&call, "src", &huge), set_tile(&call, "dst", &one);
    EXPECT_REFUSED(&d, &call, "size_limit");
    desk_close(&d);
}

TEST(find_and_replace_pair_duplicates_in_opposite_order)
{
    DESK(d, 3);
    /* the example of the documentation */
    const float data[11] = {1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8}, vals[8] = {3, 8, 8, 8, 8, 8, 8, 8};
    uint32_t index[8];
    tile a = tile_of(&d, FR_NEURON_FLOAT32, 1, 11, data), v = tile_of(&d, FR_NEURON_FLOAT32, 1, 8, vals);
    tile i32 = tile_new(&d, FR_NEURON_UINT32, FR_NEURON_SBUF, 1, 8, CONTIGUOUS);
    tile c = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 11, CONTIGUOUS);
    fr_neuron_call replace = fr_neuron_call_of("nc_match_replace8");
    set_tile(&replace, "dst", &c), set_tile(&replace, "data", &a), set_tile(&replace, "vals", &v);
    set_tile(&replace, "dst_idx", &i32), set_number(&replace, "imm", -1);
    EXPECT_OK(&d, &replace);
    CHECK_NEAR(last_cycles(&d), 64, 0, 0);
    tile_raw(&d, &i32, index);
    static const uint32_t want[8] = {2, 10, 9, 8, 7, 6, 5, 4};
    CHECK(memcmp(index, want, sizeof want) == 0);
    tile_read(&d, &c);
    const float replaced[11] = {1, 2, -1, 4, -1, -1, -1, -1, -1, -1, -1};
    check_values(&c, replaced, 0, 0, "replaced");
    fr_neuron_call find = fr_neuron_call_of("nc_find_index8");
    set_tile(&find, "dst", &i32), set_tile(&find, "data", &a), set_tile(&find, "vals", &v);
    EXPECT_OK(&d, &find);
    tile_raw(&d, &i32, index);
    static const uint32_t ascending[8] = {2, 4, 5, 6, 7, 8, 9, 10};
    CHECK(memcmp(index, ascending, sizeof ascending) == 0);
    const float absent[8] = {1, 1, 99, 2, 3, 4, 8, -1};
    uint16_t small[8];
    tile w = tile_of(&d, FR_NEURON_FLOAT32, 1, 8, absent),
         i16 = tile_new(&d, FR_NEURON_UINT16, FR_NEURON_SBUF, 1, 8, CONTIGUOUS);
    set_tile(&find, "vals", &w), set_tile(&find, "dst", &i16);
    EXPECT_OK(&d, &find);
    tile_raw(&d, &i16, small);
    CHECK(small[0] == 0 && small[1] == 0xffff && small[2] == 0xffff && small[6] == 4 && small[7] == 0xffff);
    set_tile(&find, "dst", &v);
    EXPECT_REFUSED(&d, &find, "dtype");
    set_tile(&replace, "dst_idx", &v);
    EXPECT_REFUSED(&d, &replace, "dtype");
    replace.argument[4].given = false;
    set_tile(&replace, "vals", &a);
    EXPECT_REFUSED(&d, &replace, "size_limit");
    tile wide = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 300, CONTIGUOUS, 0, 1);
    set_tile(&find, "dst", &i32), set_tile(&find, "data", &wide);
    EXPECT_OK(&d, &find);
    CHECK_NEAR(last_cycles(&d), 300, 0, 0);
    set_tile(&replace, "vals", &v), set_tile(&replace, "data", &wide), set_tile(&replace, "dst", &wide);
    EXPECT_OK(&d, &replace);
    CHECK_NEAR(last_cycles(&d), 300, 0, 0);
    desk_close(&d);
}

TEST_MAIN(neuron_rows)
