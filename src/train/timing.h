/* timing.h: the clock of measurements. It decides nothing in a run; the charged clock does. */
#ifndef FRONTIER_TRAIN_TIMING_H
#define FRONTIER_TRAIN_TIMING_H
#include <stdint.h>
#include <time.h>

static inline int64_t fr_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
