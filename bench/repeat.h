/* bench/repeat.h: measuring the honest way: several repetitions, the best and the median of them, in one run. */
#ifndef FRONTIER_BENCH_REPEAT_H
#define FRONTIER_BENCH_REPEAT_H
#include "cli.h"

typedef struct bench_times {
    double best, median, worst; /* seconds */
    int count;
} bench_times;
double bench_now(void); /* seconds, monotonic */
/* Calls work until `seconds` have passed and at least three times; the first call is not counted. */
bench_times bench_repeat(double seconds, void (*work)(void *context), void *context);
void bench_put(cli_run *run, const char *key, bench_times times);

#endif
