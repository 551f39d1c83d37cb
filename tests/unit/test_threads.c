/* The pool: every index once, in order of hand-out, from any thread count; loops of any size; quotas read
 * right. */
#include "base/processors.h"
#include "frontier/base.h"
#include "scratch.h"
#include "test.h"

#include <stdatomic.h>
#include <time.h>

static fr_error error;

typedef struct tally {
    _Atomic int runs[5000];
    _Atomic int64_t last; /* the index handed out last */
    _Atomic int bad_thread, out_of_order;
    int threads;
} tally;

static void count_one(void *context, int64_t index, int thread)
{
    tally *t = context;
    atomic_fetch_add(&t->runs[index], 1);
    if (thread < 0 || thread >= t->threads)
        atomic_fetch_add(&t->bad_thread, 1);
}

TEST(every_index_runs_once)
{
    for (int threads = 1; threads <= 9; threads += 2) {
        fr_pool *pool;
        CHECK_OK(fr_pool_create(&pool, threads, &error));
        CHECK_INT(fr_pool_threads(pool), threads);
        static const int64_t counts[] = {0, 1, 2, 3, 17, 1000, 5000};
        for (int c = 0; c < 7; c++) {
            tally *t = calloc(1, sizeof *t);
            t->threads = threads;
            fr_pool_for(pool, counts[c], count_one, t);
            for (int i = 0; i < 5000; i++)
                CHECK(t->runs[i] == (i < counts[c]));
            CHECK_INT(t->bad_thread, 0);
            free(t);
        }
        fr_pool_free(pool);
    }
}

/* A thread that gets index i knows that all smaller ones were handed out, so its own indices only grow. */
typedef struct order {
    int64_t last[16];
    _Atomic int wrong;
} order;

static void check_order(void *context, int64_t index, int thread)
{
    order *o = context;
    if (index <= o->last[thread])
        atomic_fetch_add(&o->wrong, 1);
    o->last[thread] = index;
}

TEST(indices_are_handed_out_in_order)
{
    fr_pool *pool;
    CHECK_OK(fr_pool_create(&pool, 4, &error));
    for (int round = 0; round < 200; round++) {
        order o;
        atomic_init(&o.wrong, 0);
        for (int i = 0; i < 16; i++)
            o.last[i] = -1;
        fr_pool_for(pool, 300, check_order, &o);
        CHECK_INT(o.wrong, 0);
    }
    fr_pool_free(pool);
}

static void add_plain(void *context, int64_t index, int thread)
{
    int64_t *sums = context;
    (void)thread;
    sums[index] += index; /* plain memory: the pool itself must order loops, or the sanitizer complains */
}

TEST(loops_are_ordered_memory)
{
    /* 2: awake workers looking for work while the next, longer loop is published; 3: sleepers as well */
    for (int threads = 2; threads <= 3; threads++) {
        enum { ROUNDS = 40000 };
        fr_pool *pool;
        CHECK_OK(fr_pool_create(&pool, threads, &error));
        int64_t sums[8] = {0};
        for (int round = 0; round < ROUNDS; round++)
            fr_pool_for(pool, 1 + round % 8, add_plain, sums);
        for (int i = 0; i < 8; i++)
            CHECK_INT(sums[i], i * (ROUNDS / 8) * (8 - i));
        fr_pool_free(pool);
    }
}

static void sleep_some(void *context, int64_t index, int thread)
{
    (void)thread;
    struct timespec wait = {0, (long)(index % 3) * 100000};
    nanosleep(&wait, NULL);
    atomic_fetch_add((_Atomic int64_t *)context, index);
}

/* Uneven jobs and pauses between loops: workers fall asleep and wake up in every combination. */
TEST(sleeping_and_waking)
{
    fr_pool *pool;
    CHECK_OK(fr_pool_create(&pool, 4, &error));
    for (int round = 0; round < 100; round++) {
        _Atomic int64_t sum = 0;
        fr_pool_for(pool, 5 + round % 7, sleep_some, &sum);
        int64_t n = 5 + round % 7;
        CHECK_INT(sum, n * (n - 1) / 2);
        struct timespec pause = {0, (long)(round % 4) * 20000};
        nanosleep(&pause, NULL);
    }
    fr_pool_free(pool);
}

TEST(null_pool_runs_inline)
{
    tally *t = calloc(1, sizeof *t);
    t->threads = 1;
    fr_pool_for(NULL, 10, count_one, t);
    CHECK_INT(t->runs[9], 1);
    CHECK_INT(t->bad_thread, 0);
    CHECK_INT(fr_pool_threads(NULL), 1);
    fr_pool_free(NULL);
    free(t);
}

TEST(creation_failures)
{
    fr_pool *pool = NULL;
    CHECK_INT(fr_pool_create(&pool, 5000, &error), FR_BAD_USAGE);
    for (int n = 0; n < 2; n++) {
        fr_allocate_fail_after(n);
        CHECK_INT(fr_pool_create(&pool, 2, &error), FR_BAD_ENVIRONMENT);
        fr_allocate_fail_after(-1);
    }
    CHECK(!pool);
    CHECK_OK(fr_pool_create(&pool, 0, &error));
    CHECK_INT(fr_pool_threads(pool), fr_cpu_available());
    fr_pool_free(pool);
}

static void nothing(void *context, int64_t index, int thread)
{
    (void)context;
    (void)index;
    (void)thread;
}

/* A rough ceiling, so that a lost spin or a sleep in the hot path shows up even on a busy machine. */
TEST(dispatch_is_cheap)
{
    fr_pool *pool;
    struct timespec before, after;
    CHECK_OK(fr_pool_create(&pool, 0, &error));
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < 20000; i++)
        fr_pool_for(pool, 2, nothing, NULL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    double us = ((double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec)) /
                20000 / 1e3;
    printf("# %.2f us per loop\n", us);
    CHECK(us < 200);
    fr_pool_free(pool);
}

static void put(const char *path, const char *text)
{
    char folder[600];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    CHECK_OK(fr_folder_make(folder, &error));
    CHECK_OK(fr_file_write(path, text, strlen(text), &error));
}

TEST(quota_version_2)
{
    put(scratch("v2/job/step/cpu.max"), "max 100000\n");
    put(scratch("v2/job/cpu.max"), "150000 100000\n");
    put(scratch("v2/wide/cpu.max"), "800000 100000\n");
    CHECK_NEAR(fr_cpu_quota("0::/job/step\n", scratch("v2")), 1.5, 1e-12, 0);
    CHECK_NEAR(fr_cpu_quota("0::/wide\n", scratch("v2")), 8, 1e-12, 0);
    CHECK(fr_cpu_quota("0::/elsewhere\n", scratch("v2")) == 0);
    put(scratch("v2/cpu.max"), "50000 100000\n"); /* a container sees its own limit at the mount point */
    CHECK_NEAR(fr_cpu_quota("0::/elsewhere\n", scratch("v2")), 0.5, 1e-12, 0);
    CHECK_NEAR(fr_cpu_quota("0::/../../outside\n", scratch("v2")), 0.5, 1e-12, 0);
}

TEST(quota_version_1)
{
    put(scratch("v1/cpu,cpuacct/a/cpu.cfs_quota_us"), "200000\n");
    put(scratch("v1/cpu,cpuacct/a/cpu.cfs_period_us"), "100000\n");
    put(scratch("v1/cpu,cpuacct/b/cpu.cfs_quota_us"), "-1\n");
    put(scratch("v1/cpu,cpuacct/b/cpu.cfs_period_us"), "100000\n");
    CHECK_NEAR(fr_cpu_quota("4:memory:/a\n3:cpu,cpuacct:/a\n2:cpuset:/a\n", scratch("v1")), 2, 1e-12, 0);
    CHECK(fr_cpu_quota("3:cpu,cpuacct:/b\n0::/\n", scratch("v1")) == 0);
    CHECK(fr_cpu_quota("2:cpuset:/a\n", scratch("v1")) == 0);
    put(scratch("v1/cpu/a/cpu.cfs_quota_us"), "50000\n");
    put(scratch("v1/cpu/a/cpu.cfs_period_us"), "100000\n");
    CHECK_NEAR(fr_cpu_quota("1:cpu:/a\n", scratch("v1")), 0.5, 1e-12, 0);
}

TEST(quota_nonsense_means_no_limit)
{
    put(scratch("odd/x/cpu.max"), "banana\n");
    put(scratch("odd/y/cpu.max"), "0 0\n");
    put(scratch("odd/z/cpu.max"), "-5 100000\n");
    CHECK(fr_cpu_quota("0::/x\n", scratch("odd")) == 0);
    CHECK(fr_cpu_quota("0::/y\n", scratch("odd")) == 0);
    CHECK(fr_cpu_quota("0::/z\n", scratch("odd")) == 0);
    CHECK(fr_cpu_quota("", scratch("odd")) == 0);
    CHECK(fr_cpu_quota("garbage\n::\n:::\n0:", scratch("odd")) == 0);
    CHECK(fr_cpu_available() >= 1);
}

TEST_MAIN(threads)
