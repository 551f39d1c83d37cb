/* polar.h: the orthogonal factor of a matrix by five Polar Express steps; see polar.c. */
#ifndef FRONTIER_TRAIN_POLAR_H
#define FRONTIER_TRAIN_POLAR_H
#include "frontier/base.h"

/* Where one iteration works. `x` and `next` are rows x columns, `gram` and `polynomial` are small x small
 * with small = min(rows, columns). */
typedef struct fr_polar {
    int64_t rows, columns, small;
    float *x, *next, *gram, *polynomial;
    bool bf16;
    fr_pool *pool;
} fr_polar;

/* x <- five steps of it; `next` is clobbered and the two pointers may be exchanged. */
void fr_polar_express(fr_polar *polar);
/* Rounds to the nearest bf16 value, kept as fp32. */
void fr_round_to_bf16(float *values, int64_t count);

#endif
