/* reduce.h: sums whose order is written down.
 *
 * Everything in training must give the same bits on any number of threads, so a sum is never split where a
 * thread happens to end. A row is summed in double through eight lanes that meet in a fixed tree; longer
 * things are sums of rows in order. The lanes are there for the compiler, which may not reorder additions
 * by itself.
 */
#ifndef FRONTIER_TRAIN_REDUCE_H
#define FRONTIER_TRAIN_REDUCE_H
#include <stdint.h>

static inline double fr_lanes_sum(const double lanes[8])
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/* Sum of squares of one row. */
static inline double fr_row_sum_squares(const float *row, int64_t count)
{
    double lanes[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int lane = 0; lane < 8; lane++)
            lanes[lane] += (double)row[i + lane] * row[i + lane];
    for (int lane = 0; i < count; i++, lane++)
        lanes[lane] += (double)row[i] * row[i];
    return fr_lanes_sum(lanes);
}

static inline double fr_ordered_sum(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

#endif
