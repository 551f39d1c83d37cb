/* schedule.c: how rates change over a run, as total functions.
 *
 * A schedule is asked for a multiplier before each step. It sees progress, which may be anything when a clock
 * or a caller misbehaves, and answers with a finite number that is not negative, whatever it was given: a run
 * must not die of its schedule at the last step. Progress is clamped to [0,1] and NaN counts as 0. The cosine
 * is ours, not libm's, so a replayed run gets the same bits on another machine.
 */
#include "base/philox.h"
#include "frontier/base.h"

#include <math.h>

/* Into [0, 1]; NaN becomes 0. */
static double clamp_unit(double x)
{
    return x > 0.0 ? x < 1.0 ? x : 1.0 : 0.0;
}

/* Finite and not negative; NaN becomes 0. */
static double clamp_value(double x)
{
    const double most = 1e300;
    return x > 0.0 ? x < most ? x : most : 0.0;
}

/* Rises over the first `warm` of progress, falls to `floor` over the last `cool`. When the two overlap, the
 * lower one counts, so the curve stays continuous. */
double fr_schedule_warm_cool(double p, double warm, double cool, double floor)
{
    p = clamp_unit(p);
    warm = clamp_unit(warm);
    cool = clamp_unit(cool);
    floor = clamp_unit(floor);
    double rise = p < warm ? p / warm : 1.0;
    double fall = p > 1.0 - cool ? floor + (1.0 - floor) * clamp_unit((1.0 - p) / cool) : 1.0;
    return rise < fall ? rise : fall;
}

double fr_schedule_ramp(int64_t step, double from, double to, int64_t steps)
{
    from = clamp_value(from);
    to = clamp_value(to);
    if (steps <= 0 || step >= steps)
        return to;
    double fraction = step > 0 ? (double)step / (double)steps : 0.0;
    return (1.0 - fraction) * from + fraction * to;
}

double fr_schedule_linear_to_zero(double p)
{
    return 1.0 - clamp_unit(p);
}

double fr_schedule_cosine_to_zero(double p)
{
    return clamp_value(0.5 * (1.0 + fr_exact_cos_turns(0.5 * clamp_unit(p))));
}
