/* Which numbers a recipe's model computes in on this processor.
 *
 * "auto" means bf16 where the processor multiplies bf16 and fp32 elsewhere: emulated bf16 would be slower
 * than fp32 and no closer to what the recipe's author measured. It is the one place where a recipe depends on
 * the machine, so run.json records what was chosen.
 */
#include "frontier/model.h"

#include <string.h>

fr_numerics fr_recipe_numerics(const fr_recipe *recipe)
{
    if (strcmp(recipe->model.numerics, "fp32") == 0)
        return FR_NUMERICS_F32;
    if (strcmp(recipe->model.numerics, "bf16") == 0)
        return FR_NUMERICS_BF16;
    fr_cpu_features features;
    fr_cpu_detect(&features);
    return features.best_numerics;
}

bool fr_recipe_residual_bf16(const fr_recipe *recipe)
{
    return strcmp(recipe->model.residual, "bf16") == 0;
}
