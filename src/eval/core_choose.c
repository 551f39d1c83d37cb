/* From losses to a prediction.
 *
 * The reference takes the first index of the least mean loss. An option whose span is empty (all its tokens
 * begin another option) has the mean of nothing, NaN. Python's min() keeps its first value unless a later
 * one is less, and nothing is less than NaN: an empty first option therefore wins, an empty later one never
 * does. That is what published scores contain, so it is what is done here, and counted. With ties by chance
 * only options that have a loss take part.
 */
#include "frontier/core.h"

#include <math.h>

void fr_core_choose(const double *losses, int count, int gold, fr_core_answer *answer)
{
    double least = INFINITY;
    int best = 0;
    for (int i = 1; i < count; i++)
        if (losses[i] < losses[best])
            best = i;
    for (int i = 0; i < count; i++)
        if (losses[i] < least)
            least = losses[i];
    answer->gold = gold;
    answer->prediction = best;
    answer->correct = best == gold;
    answer->tied = 0;
    for (int i = 0; i < count; i++)
        answer->tied += losses[i] == least;
    answer->gold_tied = losses[gold] == least;
}
