/* Random numbers of Vector and GpSimd: they follow the seed, differ by lane, are spread as asked, and the recurrence is
 * XORWOW as published. */
#include "neuron_tiles.h"

static fr_neuron_call one_tile(const char *name, const char *parameter, const tile *t)
{
    fr_neuron_call call = fr_neuron_call_of(name);
    set_tile(&call, parameter, t);
    return call;
}

TEST(random_bits_follow_the_seed)
{
    DESK(d, 3);
    const uint32_t seven = 7;
    enum { LANES = 64, COUNT = 256 };
    static uint32_t first[LANES * COUNT], again[LANES * COUNT];
    tile seed = tile_of(&d, FR_NEURON_UINT32, 1, 1, &seven);
    tile a = tile_new(&d, FR_NEURON_UINT32, FR_NEURON_SBUF, LANES, COUNT, CONTIGUOUS);
    fr_neuron_call set = one_tile("set_rng_seed", "src_seeds", &seed), rng = one_tile("rng", "dst", &a);
    EXPECT_OK(&d, &set);
    EXPECT_OK(&d, &rng);
    CHECK_NEAR(last_cycles(&d), COUNT, 0, 0);
    tile_raw(&d, &a, first);
    EXPECT_OK(&d, &rng);
    tile_raw(&d, &a, again);
    CHECK(memcmp(first, again, sizeof first) != 0);
    EXPECT_OK(&d, &set);
    EXPECT_OK(&d, &rng);
    tile_raw(&d, &a, again);
    CHECK(memcmp(first, again, sizeof first) == 0);
    int64_t ones = 0, same = 0;
    for (int i = 0; i < LANES * COUNT; i++)
        ones += __builtin_popcount(first[i]);
    for (int i = 0; i < COUNT; i++)
        same += first[i] == first[COUNT + i];
    CHECK_NEAR((double)ones / (32 * LANES * COUNT), 0.5, 0.005, 0);
    CHECK_INT(same, 0); /* lanes differ */
    tile f = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 4, 8, CONTIGUOUS);
    rng = one_tile("rng", "dst", &f);
    EXPECT_REFUSED(&d, &rng, "dtype");
    set = one_tile("set_rng_seed", "src_seeds", &a);
    EXPECT_REFUSED(&d, &set, "size_limit");
    rng = one_tile("rng", "dst", &a);
    set_number(&rng, "engine", FR_NEURON_GPSIMD);
    EXPECT_OK(&d, &rng);
    CHECK_NEAR(last_cycles(&d), COUNT + 150, 0, 0);
    desk_close(&d);
    DESK(old, 2);
    tile x = tile_new(&old, FR_NEURON_UINT32, FR_NEURON_SBUF, 4, 8, CONTIGUOUS);
    rng = one_tile("rng", "dst", &x);
    EXPECT_OK(&old, &rng);
    set_number(&rng, "engine", FR_NEURON_GPSIMD);
    EXPECT_REFUSED(&old, &rng, "generation");
    desk_close(&old);
}

/* Marsaglia's recurrence, written out. */
TEST(states_are_xorwow)
{
    DESK(d, 3);
    uint32_t state[6] = {123456789, 362436069, 521288629, 88675123, 5783321, 6615241}, out[5];
    tile words = tile_of(&d, FR_NEURON_UINT32, 1, 6, state),
         a = tile_new(&d, FR_NEURON_UINT32, FR_NEURON_SBUF, 1, 5, CONTIGUOUS);
    fr_neuron_call set = one_tile("rand_set_state", "src_seeds", &words), rng = one_tile("rng", "dst", &a);
    set_number(&rng, "engine", FR_NEURON_GPSIMD);
    EXPECT_OK(&d, &set);
    CHECK_NEAR(last_cycles(&d), 156, 0, 0);
    EXPECT_OK(&d, &rng);
    tile_raw(&d, &a, out);
    for (int i = 0; i < 5; i++) {
        uint32_t t = state[0] ^ (state[0] >> 2);
        memmove(state, state + 1, 4 * sizeof *state);
        state[4] = (state[4] ^ (state[4] << 4)) ^ (t ^ (t << 1));
        state[5] += 362437;
        CHECK_INT(out[i], state[4] + state[5]);
    }
    fr_neuron_call get = one_tile("rand_get_state", "dst", &words);
    uint32_t stored[6];
    EXPECT_OK(&d, &get);
    tile_raw(&d, &words, stored);
    CHECK_INT(stored[5], state[5]);
    set_number(&get, "engine", FR_NEURON_VECTOR);
    EXPECT_REFUSED(&d, &get, "generation");
    set = one_tile("rand_set_state", "src_seeds", &a);
    EXPECT_REFUSED(&d, &set, "size_limit");
    tile psum = tile_random(&d, FR_NEURON_UINT32, FR_NEURON_PSUM, 1, 6, CONTIGUOUS, 1, 2);
    set = one_tile("rand_set_state", "src_seeds", &psum);
    EXPECT_REFUSED(&d, &set, "engine_memory");
    tile f = tile_random(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 1, 6, CONTIGUOUS, 1, 2);
    set = one_tile("rand_set_state", "src_seeds", &f);
    EXPECT_REFUSED(&d, &set, "dtype");
    desk_close(&d);
}

TEST(rand2_is_uniform)
{
    DESK(d, 4);
    tile a = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 32, 512, CONTIGUOUS);
    fr_neuron_call call = one_tile("rand2", "dst", &a);
    set_number(&call, "min", -2), set_number(&call, "max", 6);
    EXPECT_OK(&d, &call);
    CHECK_NEAR(last_cycles(&d), 128, 0, 0);
    tile_read(&d, &a);
    double sum = 0, square = 0;
    for (int i = 0; i < 32 * 512; i++) {
        double x = (double)a.values[i];
        CHECK(x >= -2 && x < 6);
        sum += x, square += x * x;
    }
    double mean = sum / (32 * 512), variance = square / (32 * 512) - mean * mean;
    CHECK_NEAR(mean, 2, 0.08, 0);
    CHECK_NEAR(variance, 64.0 / 12, 0.15, 0);
    set_number(&call, "min", 6);
    EXPECT_REFUSED(&d, &call, "value");
    tile state = tile_new(&d, FR_NEURON_UINT32, FR_NEURON_SBUF, 4, 24, CONTIGUOUS);
    fr_neuron_call get = one_tile("rand_get_state", "dst", &state);
    set_number(&get, "engine", FR_NEURON_VECTOR);
    EXPECT_OK(&d, &get);
    desk_close(&d);
    DESK(old, 3);
    tile x = tile_new(&old, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 4, 8, CONTIGUOUS);
    set_tile(&call, "dst", &x);
    EXPECT_REFUSED(&old, &call, "generation");
    desk_close(&old);
}

TEST(dropout_drops_that_share)
{
    DESK(d, 3);
    tile a = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 64, 256, CONTIGUOUS, 1, 2);
    tile c = tile_new(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 64, 256, CONTIGUOUS);
    fr_neuron_call call = fr_neuron_call_of("dropout");
    set_tile(&call, "dst", &c), set_tile(&call, "data", &a);
    static const double probabilities[] = {0, 0.25, 1};
    for (int i = 0; i < 3; i++) {
        set_number(&call, "prob", probabilities[i]);
        EXPECT_OK(&d, &call);
        CHECK_NEAR(last_cycles(&d), 256, 0, 0);
        tile_read(&d, &c);
        int zeros = 0;
        for (int j = 0; j < 64 * 256; j++) {
            zeros += c.values[j] == 0;
            CHECK(c.values[j] == 0 || c.values[j] == a.values[j]);
        }
        CHECK_NEAR((double)zeros / (64 * 256), probabilities[i], i == 1 ? 0.015 : 0, 0);
    }
    tile f = tile_new(&d, FR_NEURON_FLOAT32, FR_NEURON_SBUF, 64, 256, CONTIGUOUS);
    set_tile(&call, "dst", &f);
    EXPECT_REFUSED(&d, &call, "dtype_match");
    tile whole = tile_random(&d, FR_NEURON_INT16, FR_NEURON_SBUF, 4, 16, CONTIGUOUS, 1, 9);
    tile half = tile_random(&d, FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 4, 1, CONTIGUOUS, 0, 1);
    set_tile(&call, "dst", &whole), set_tile(&call, "data", &whole), set_tile(&call, "prob", &half);
    EXPECT_REFUSED(&d, &call, "dtype");
    desk_close(&d);
}

TEST_MAIN(neuron_random)
