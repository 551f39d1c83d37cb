/* adamw.c: one AdamW update of a stretch of numbers (baseline.md 2.2).
 *
 * Decay is decoupled and comes first, moments are fp32 and bias-corrected. Every element is on its own, so
 * a parameter may be cut anywhere without changing a bit. The powers of beta are multiplied out instead of
 * calling pow, whose last bit differs between C libraries.
 */
#include "frontier/train.h"

#include <math.h>

static double power(double base, int64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

void fr_adamw_update(float *weight, const float *gradient, float *first_moment, float *second_moment,
                     int64_t count, const fr_adamw_options *options)
{
    float keep1 = (float)(1 - options->beta1), keep2 = (float)(1 - options->beta2);
    float shrink = (float)(1 - options->lr * options->decay), eps = (float)options->eps;
    float rate = (float)(options->lr / (1 - power(options->beta1, options->step)));
    float correction = (float)(1 - power(options->beta2, options->step));
    for (int64_t i = 0; i < count; i++) {
        float g = gradient[i];
        first_moment[i] += keep1 * (g - first_moment[i]);
        second_moment[i] += keep2 * (g * g - second_moment[i]);
        float spread = sqrtf(second_moment[i] / correction) + eps;
        weight[i] = weight[i] * shrink - rate * (first_moment[i] / spread);
    }
}
