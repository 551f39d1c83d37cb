/* numerics.h: what "auto" means on this machine. */
#ifndef FRONTIER_TRAIN_NUMERICS_H
#define FRONTIER_TRAIN_NUMERICS_H
#include "frontier/model.h"

#include <string.h>

static inline fr_numerics fr_train_numerics(const fr_recipe *recipe)
{
    fr_cpu_features features;
    if (strcmp(recipe->model.numerics, "fp32") == 0)
        return FR_NUMERICS_F32;
    if (strcmp(recipe->model.numerics, "bf16") == 0)
        return FR_NUMERICS_BF16;
    fr_cpu_detect(&features);
    return features.best_numerics;
}

#endif
