/* scalars.c: what changes from step to step, as a function of recipe, progress and step.
 *
 * Progress is the share of the budget charged before the step (or of max_steps), so a run stretches its
 * schedules over whatever time it gets. The momentum ramp counts steps, since it waits for the buffers to
 * fill and not for the end of the run; while it runs it wins over the final cool-down of momentum.
 *
 * The functions are total: a NaN progress counts as 0, negative steps as 0, and nothing they return is
 * negative or NaN, because a learning rate that goes wrong for one step at an edge ruins a run silently.
 */
#include "frontier/train.h"

#include <math.h>
#include <string.h>

static double clamp01(double value)
{
    if (!(value > 0))
        return 0;
    return value < 1 ? value : 1;
}

static double not_negative(double value)
{
    return value > 0 ? value : 0;
}

static double momentum_at(const fr_recipe *recipe, double progress, int64_t step)
{
    double ramped = fr_schedule_ramp(step, recipe->optim.momentum_start, recipe->optim.momentum,
                                     recipe->optim.momentum_steps);
    double start = 1 - recipe->schedule.cool;
    if (step < recipe->optim.momentum_steps || recipe->optim.momentum_end <= 0 || progress <= start ||
        recipe->schedule.cool <= 0)
        return ramped;
    double share = clamp01((progress - start) / recipe->schedule.cool);
    return ramped + share * (recipe->optim.momentum_end - ramped);
}

static double decay_factor(const char *kind, double progress)
{
    if (strcmp(kind, "linear") == 0)
        return fr_schedule_linear_to_zero(progress);
    if (strcmp(kind, "cosine") == 0)
        return fr_schedule_cosine_to_zero(progress);
    return 1;
}

/* The phase in force is the last one that has begun; before the first the whole batch is used. */
static int64_t batch_at(const fr_recipe *recipe, double progress)
{
    const fr_config_reals *phases = &recipe->schedule.batch_phases;
    double fraction = 1;
    for (int i = 0; i + 1 < phases->count; i += 2)
        if (progress >= phases->values[i])
            fraction = phases->values[i + 1];
    int64_t tokens = llround(clamp01(fraction) * (double)recipe->optim.batch_tokens);
    return tokens > 0 ? tokens : recipe->optim.batch_tokens;
}

void fr_step_scalars_at(const fr_recipe *recipe, double progress, int64_t step, fr_step_scalars *out)
{
    if (step < 0)
        step = 0;
    if (recipe->schedule.by_step && recipe->clock.max_steps > 0)
        progress = (double)step / (double)recipe->clock.max_steps;
    progress = clamp01(progress);
    *out = (fr_step_scalars){.progress = progress, .step = step};
    out->lr_multiplier = not_negative(fr_schedule_warm_cool(progress, recipe->schedule.warm,
                                                            recipe->schedule.cool, recipe->schedule.floor));
    out->momentum = not_negative(momentum_at(recipe, progress, step));
    out->matrix_decay =
        not_negative(recipe->optim.matrix_decay * decay_factor(recipe->schedule.decay, progress));
    out->batch_tokens = batch_at(recipe, progress);
}
