/* bench/repeat.c: repetition and order statistics for the bench commands.
 *
 * Machines are shared: a single time says little. The best of several is what the code can do, the median what it
 * did here; both are printed. The first call warms caches and is thrown away.
 */
#include "repeat.h"

#include <stdlib.h>
#include <time.h>

enum { BENCH_MOST = 512 };

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bench_times bench_repeat(double seconds, void (*work)(void *context), void *context)
{
    double times[BENCH_MOST], until;
    int count = 0;
    work(context);
    until = bench_now() + seconds;
    while (count < BENCH_MOST && (count < 3 || bench_now() < until)) {
        double start = bench_now();
        work(context);
        times[count++] = bench_now() - start;
    }
    qsort(times, (size_t)count, sizeof *times, by_value);
    return (bench_times){times[0], times[count / 2], times[count - 1], count};
}

void bench_put(cli_run *run, const char *key, bench_times t)
{
    cli_put(run, key,
            json_pack("{s:f,s:f,s:f,s:i}", "best_s", t.best, "median_s", t.median, "worst_s", t.worst,
                      "count", t.count));
}
