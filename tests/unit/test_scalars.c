/* Schedules by step: values at known points, and never negative or NaN anywhere. */
#include "frontier/train.h"
#include "test.h"

#include <float.h>

static fr_recipe defaults(void)
{
    fr_recipe recipe;
    fr_error error = {0};
    CHECK_OK(fr_recipe_defaults(&recipe, &error));
    return recipe;
}

TEST(the_kit_schedule)
{
    fr_recipe recipe = defaults();
    fr_step_scalars s;
    fr_step_scalars_at(&recipe, 0, 0, &s);
    CHECK_NEAR(s.lr_multiplier, 1, 1e-12, 0);
    CHECK_NEAR(s.momentum, 0.85, 1e-12, 0);
    CHECK_NEAR(s.matrix_decay, 0.2, 1e-12, 0);
    CHECK_INT(s.batch_tokens, 65536);
    fr_step_scalars_at(&recipe, 0.625, 150, &s);
    CHECK_NEAR(s.lr_multiplier, 0.525, 1e-9, 0); /* half way from 1 to 0.05 */
    CHECK_NEAR(s.momentum, 0.90, 1e-12, 0);
    CHECK_NEAR(s.matrix_decay, 0.075, 1e-12, 0);
    fr_step_scalars_at(&recipe, 1, 1000, &s);
    CHECK_NEAR(s.lr_multiplier, 0.05, 1e-9, 0);
    CHECK_NEAR(s.momentum, 0.95, 1e-12, 0);
    CHECK_NEAR(s.matrix_decay, 0, 1e-12, 0);
}

TEST(momentum_cools_down_after_its_ramp)
{
    fr_recipe recipe = defaults();
    fr_error error = {0};
    CHECK_OK(fr_recipe_set(&recipe, "optim.momentum_end=0.85", &error));
    CHECK_OK(fr_recipe_set(&recipe, "schedule.cool=0.5", &error));
    fr_step_scalars s;
    fr_step_scalars_at(&recipe, 0.75, 1000, &s);
    CHECK_NEAR(s.momentum, 0.90, 1e-9, 0);
    fr_step_scalars_at(&recipe, 1, 1000, &s);
    CHECK_NEAR(s.momentum, 0.85, 1e-9, 0);
    fr_step_scalars_at(&recipe, 0.75, 150, &s); /* a short run is still in the ramp */
    CHECK_NEAR(s.momentum, 0.90, 1e-9, 0);
    fr_step_scalars_at(&recipe, 0.5, 1000, &s);
    CHECK_NEAR(s.momentum, 0.95, 1e-9, 0);
}

TEST(by_step_counts_steps_under_a_budget)
{
    fr_recipe recipe = defaults();
    fr_error error = {0};
    CHECK_OK(fr_recipe_set(&recipe, "schedule.by_step=true", &error));
    CHECK_OK(fr_recipe_set(&recipe, "clock.max_steps=100", &error));
    fr_step_scalars s;
    fr_step_scalars_at(&recipe, 0.9, 25, &s);
    CHECK_NEAR(s.progress, 0.25, 1e-12, 0);
    CHECK_NEAR(s.lr_multiplier, 1, 1e-9, 0);
    fr_step_scalars_at(&recipe, 0.1, 1000, &s);
    CHECK_NEAR(s.progress, 1, 1e-12, 0);
}

TEST(batch_phases)
{
    fr_recipe recipe = defaults();
    fr_error error = {0};
    CHECK_OK(fr_recipe_set(&recipe, "schedule.batch_phases=[0.1, 0.25, 0.5, 1.0]", &error));
    const double at[] = {0, 0.0999, 0.1, 0.3, 0.5, 1};
    const int64_t want[] = {65536, 65536, 16384, 16384, 65536, 65536};
    for (int i = 0; i < 6; i++) {
        fr_step_scalars s;
        fr_step_scalars_at(&recipe, at[i], 0, &s);
        CHECK_INT(s.batch_tokens, want[i]);
    }
}

/* Any recipe the table allows, any progress, any step. */
TEST(never_negative_or_nan)
{
    static const double edges[] = {0,     1,   0.5,      -1,        2,           1e-300,         -1e300,
                                   1e300, NAN, INFINITY, -INFINITY, DBL_EPSILON, 1 - DBL_EPSILON};
    static const int64_t steps[] = {0, 1, 39, 40, 300, 1000000, INT64_MAX, -5, INT64_MIN};
    static const char *const decays[] = {"linear", "cosine", "constant"};
    fr_rng rng = {.seed = 11};
    for (int trial = 0; trial < 3000; trial++) {
        fr_recipe recipe = defaults();
        double warm = trial % 5 ? fr_rng_uniform(&rng) : trial % 2;
        recipe.schedule.warm = warm;
        recipe.schedule.cool = trial % 3 ? (1 - warm) * fr_rng_uniform(&rng) : 1 - warm;
        recipe.schedule.floor = trial % 4 ? fr_rng_uniform(&rng) : 0;
        snprintf(recipe.schedule.decay, sizeof recipe.schedule.decay, "%s", decays[trial % 3]);
        recipe.optim.momentum_end = trial % 2 ? fr_rng_uniform(&rng) : 0;
        recipe.optim.momentum_steps = (int64_t)fr_rng_below(&rng, 500);
        recipe.schedule.by_step = trial % 7 == 0;
        recipe.clock.max_steps = (int64_t)fr_rng_below(&rng, 3);
        double progress =
            trial % 2 ? edges[fr_rng_below(&rng, sizeof edges / sizeof edges[0])] : fr_rng_uniform(&rng);
        fr_step_scalars s;
        fr_step_scalars_at(&recipe, progress, steps[fr_rng_below(&rng, 9)], &s);
        CHECK(s.lr_multiplier >= 0 && s.lr_multiplier <= 1);
        CHECK(s.momentum >= 0 && s.momentum < 1);
        CHECK(s.matrix_decay >= 0 && s.matrix_decay <= recipe.optim.matrix_decay);
        CHECK(s.progress >= 0 && s.progress <= 1);
        CHECK(s.batch_tokens > 0 && s.step >= 0);
    }
}

/* The table of baseline.md 2.5: depth -> N, and what follows at 12 tokens per parameter. */
TEST(transfer_reproduces_the_table)
{
    static const struct {
        double millions;
        int log2_batch;
        int64_t steps;
        double lr_scale, decay;
    } rows[] = {{41.943040, 18, 1920, 0.707, 0.520},   {70.123520, 19, 1605, 1, 0.440},
                {110.100480, 19, 2520, 1, 0.280},      {234.881024, 19, 5376, 1, 0.131},
                {435.159040, 20, 4980, 1.414, 0.100},  {729.808896, 20, 8352, 1.414, 0.0597},
                {918.421504, 20, 10510, 1.414, 0.0475}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fr_transfer t;
        fr_error error = {0};
        CHECK_OK(fr_transfer_at((int64_t)llround(rows[i].millions * 1e6), 12, &t, &error));
        CHECK_INT(t.batch_tokens, INT64_C(1) << rows[i].log2_batch);
        CHECK_NEAR((double)t.steps, (double)rows[i].steps, 2, 0);
        CHECK_NEAR(t.lr_scale, rows[i].lr_scale, 1e-3, 0);
        CHECK_NEAR(t.matrix_decay, rows[i].decay, 1e-3, 0.01);
    }
    fr_error error = {0};
    fr_transfer t;
    CHECK_INT(fr_transfer_at(0, 12, &t, &error), FR_BAD_USAGE);
    CHECK_INT(fr_transfer_at(1000, NAN, &t, &error), FR_BAD_USAGE);
}

TEST(transfer_writes_a_recipe)
{
    fr_recipe recipe = defaults();
    fr_error error = {0};
    CHECK_OK(fr_recipe_set(&recipe, "model.depth=12", &error));
    CHECK_OK(fr_recipe_transfer(&recipe, 32768, 12, &error));
    CHECK_INT(recipe.optim.batch_tokens, 524288);
    CHECK_INT(recipe.optim.reference_batch, 524288);
    CHECK_NEAR(recipe.optim.matrix_decay, 0.28, 1e-3, 0);
    CHECK_NEAR((double)recipe.clock.max_steps, 2520, 2, 0);
}

TEST_MAIN(scalars)
