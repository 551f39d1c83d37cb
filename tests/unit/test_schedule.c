/* Schedules: the shapes of the fact sheet, and no NaN, infinity or negative value whatever goes in. */
#include "frontier/base.h"
#include "test.h"

TEST(warm_cool_shape)
{
    CHECK_NEAR(fr_schedule_warm_cool(0, 0, 0.75, 0.05), 1, 0, 0);
    CHECK_NEAR(fr_schedule_warm_cool(0.25, 0, 0.75, 0.05), 1, 0, 0);
    CHECK_NEAR(fr_schedule_warm_cool(0.625, 0, 0.75, 0.05), 0.525, 1e-12, 0);
    CHECK_NEAR(fr_schedule_warm_cool(1, 0, 0.75, 0.05), 0.05, 1e-12, 0);
    CHECK_NEAR(fr_schedule_warm_cool(0, 0.1, 0.5, 0), 0, 0, 0);
    CHECK_NEAR(fr_schedule_warm_cool(0.05, 0.1, 0.5, 0), 0.5, 1e-12, 0);
    CHECK_NEAR(fr_schedule_warm_cool(0.3, 0.1, 0.5, 0), 1, 0, 0);
    CHECK_NEAR(fr_schedule_warm_cool(1, 0, 0, 0.3), 1, 0, 0);
    CHECK_NEAR(fr_schedule_warm_cool(1, 1, 1, 0), 0, 0, 0);
}

TEST(warm_cool_is_continuous)
{
    for (double warm = 0.1; warm <= 1; warm += 0.3)
        for (double cool = 0.1; cool <= 1; cool += 0.3)
            for (int i = 0; i < 1000; i++)
                CHECK(fabs(fr_schedule_warm_cool(i / 1000.0, warm, cool, 0.05) -
                           fr_schedule_warm_cool((i + 1) / 1000.0, warm, cool, 0.05)) < 0.0101);
}

TEST(ramp_shape)
{
    CHECK_NEAR(fr_schedule_ramp(0, 0.85, 0.95, 300), 0.85, 0, 0);
    CHECK_NEAR(fr_schedule_ramp(150, 0.85, 0.95, 300), 0.90, 1e-12, 0);
    CHECK_NEAR(fr_schedule_ramp(300, 0.85, 0.95, 300), 0.95, 0, 0);
    CHECK_NEAR(fr_schedule_ramp(INT64_MAX, 0.85, 0.95, 300), 0.95, 0, 0);
    CHECK_NEAR(fr_schedule_ramp(0, 0.85, 0.95, 0), 0.95, 0, 0);
    CHECK_NEAR(fr_schedule_ramp(-5, 0.85, 0.95, 300), 0.85, 0, 0);
}

TEST(decays)
{
    CHECK(fr_schedule_linear_to_zero(0) == 1 && fr_schedule_linear_to_zero(1) == 0 &&
          fr_schedule_linear_to_zero(0.25) == 0.75);
    CHECK(fr_schedule_cosine_to_zero(0) == 1 && fr_schedule_cosine_to_zero(1) == 0);
    for (int i = 0; i <= 1000; i++) {
        double p = i / 1000.0;
        CHECK_NEAR(fr_schedule_cosine_to_zero(p), 0.5 * (1 + cos(3.14159265358979323846 * p)), 1e-15, 0);
        CHECK(i == 0 || fr_schedule_cosine_to_zero(p) <= fr_schedule_cosine_to_zero((i - 1) / 1000.0));
    }
}

static bool fine(double x, double most)
{
    return isfinite(x) && x >= 0 && x <= most;
}

TEST(total_on_every_edge)
{
    static const double edges[] = {-INFINITY, -1e308,      -1, -0.0,        0, 4.9e-324, 1e-17,    0.05,
                                   0.5,       1 - 0x1p-53, 1,  1 + 0x1p-52, 2, 1e308,    INFINITY, NAN};
    static const int64_t steps[] = {INT64_MIN, -1, 0, 1, 300, INT64_MAX - 1, INT64_MAX};
    enum { E = sizeof edges / sizeof *edges, S = sizeof steps / sizeof *steps };
    for (int a = 0; a < E; a++) {
        CHECK(fine(fr_schedule_linear_to_zero(edges[a]), 1));
        CHECK(fine(fr_schedule_cosine_to_zero(edges[a]), 1));
        for (int b = 0; b < E; b++) {
            for (int c = 0; c < E; c++)
                for (int d = 0; d < E; d++)
                    CHECK(fine(fr_schedule_warm_cool(edges[a], edges[b], edges[c], edges[d]), 1));
            for (int s = 0; s < S; s++)
                for (int n = 0; n < S; n++)
                    CHECK(fine(fr_schedule_ramp(steps[s], edges[a], edges[b], steps[n]), 1e300));
        }
    }
}

TEST_MAIN(schedule)
