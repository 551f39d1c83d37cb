/* threads.c: one pool of threads that starts a parallel loop in a microsecond or so.
 *
 * A training step runs thousands of short loops, so handing one out must be cheap. Workers that finish a loop
 * keep looking for the next one for about 20 microseconds and only then sleep; on a pool with more
 * threads than processors they sleep at once, since a spinning thread would hold up a working one.
 *
 * One 64-bit word, `ticket`, is the whole protocol: the loop's number in the high half, the next index in the
 * low half. Taking an index is one compare-and-swap on it. To publish a loop the caller first closes the
 * ticket (new number, index CLOSED), then writes the job, then opens it at index 0. A worker that wakes late
 * either sees a closed or used-up ticket and does nothing, or read parts of two loops and then fails its
 * swap, because the number moved on. So the caller waits for the work and never for a thread that is late to
 * find none. (A worker would have to sleep between two instructions for exactly 2^32 loops to be fooled.)
 *
 * `finished` counts completed indices; whoever completes the last one wakes the caller.
 */
#include "frontier/base.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define CLOSED UINT32_MAX

enum { SPIN_NS = 20000, SPINS_PER_LOOK = 64 };

typedef struct worker {
    fr_pool *pool;
    pthread_t thread;
    int number;
} worker;

struct fr_pool {
    int threads, started;
    int64_t spin_ns;
    worker *workers;
    _Alignas(64) _Atomic uint64_t ticket;
    _Atomic(fr_pool_job) job;
    _Atomic(void *) context;
    _Atomic int64_t base; /* index of the slice's first job */
    _Atomic uint32_t count;
    _Alignas(64) _Atomic uint32_t finished;
    _Alignas(64) _Atomic int sleepers;
    _Atomic bool caller_sleeps, quit;
    pthread_mutex_t mutex;
    pthread_cond_t work_ready, work_done;
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool ticket_has_work(fr_pool *pool, uint64_t ticket)
{
    return (uint32_t)ticket < atomic_load(&pool->count) && (uint32_t)ticket != CLOSED;
}

/* Takes indices until none is left; adds what it ran to `finished`. */
static void run_jobs(fr_pool *pool, int thread)
{
    uint32_t ran = 0;
    uint64_t ticket = atomic_load(&pool->ticket);
    while (ticket_has_work(pool, ticket)) {
        fr_pool_job job = atomic_load(&pool->job);
        void *context = atomic_load(&pool->context);
        int64_t base = atomic_load(&pool->base);
        if (!atomic_compare_exchange_weak(&pool->ticket, &ticket, ticket + 1))
            continue;
        job(context, base + (uint32_t)ticket, thread);
        ran++;
        ticket = atomic_load(&pool->ticket);
    }
    if (ran == 0)
        return;
    uint32_t total = atomic_fetch_add(&pool->finished, ran) + ran;
    if (total == atomic_load(&pool->count) && atomic_load(&pool->caller_sleeps)) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_signal(&pool->work_done);
        pthread_mutex_unlock(&pool->mutex);
    }
}

static bool worker_has_reason(fr_pool *pool)
{
    return atomic_load(&pool->quit) || ticket_has_work(pool, atomic_load(&pool->ticket));
}

static bool all_finished(fr_pool *pool)
{
    return atomic_load(&pool->finished) == atomic_load(&pool->count);
}

/* Looks for `ready` for a short while without sleeping. */
static bool spin_until(fr_pool *pool, bool (*ready)(fr_pool *))
{
    if (ready(pool))
        return true;
    if (pool->spin_ns == 0)
        return false;
    int64_t until = monotonic_ns() + pool->spin_ns;
    do {
        for (int i = 0; i < SPINS_PER_LOOK; i++) {
            relax();
            if (ready(pool))
                return true;
        }
    } while (monotonic_ns() < until);
    return false;
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    fr_pool *pool = self->pool;
    for (;;) {
        if (!spin_until(pool, worker_has_reason)) {
            pthread_mutex_lock(&pool->mutex);
            atomic_fetch_add(&pool->sleepers, 1);
            while (!worker_has_reason(pool))
                pthread_cond_wait(&pool->work_ready, &pool->mutex);
            atomic_fetch_sub(&pool->sleepers, 1);
            pthread_mutex_unlock(&pool->mutex);
        }
        if (atomic_load(&pool->quit))
            return NULL;
        run_jobs(pool, self->number);
    }
}

static void wait_for_workers(fr_pool *pool)
{
    if (spin_until(pool, all_finished))
        return;
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->caller_sleeps, true);
    while (!all_finished(pool))
        pthread_cond_wait(&pool->work_done, &pool->mutex);
    atomic_store(&pool->caller_sleeps, false);
    pthread_mutex_unlock(&pool->mutex);
}

static void run_slice(fr_pool *pool, int64_t base, uint32_t count, fr_pool_job job, void *context)
{
    uint64_t number = (atomic_load(&pool->ticket) >> 32) + 1;
    atomic_store(&pool->ticket, number << 32 | CLOSED);
    atomic_store(&pool->job, job);
    atomic_store(&pool->context, context);
    atomic_store(&pool->base, base);
    atomic_store(&pool->finished, 0);
    atomic_store(&pool->count, count);
    atomic_store(&pool->ticket, number << 32);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->work_ready);
        pthread_mutex_unlock(&pool->mutex);
    }
    run_jobs(pool, 0);
    wait_for_workers(pool);
}

void fr_pool_for(fr_pool *pool, int64_t count, fr_pool_job job, void *context)
{
    if (!pool || pool->threads == 1 || count <= 1) {
        for (int64_t i = 0; i < count; i++)
            job(context, i, 0);
        return;
    }
    const int64_t slice = INT64_C(1) << 31;
    for (int64_t base = 0; base < count; base += slice)
        run_slice(pool, base, (uint32_t)(count - base < slice ? count - base : slice), job, context);
}

/* Workers leave signals to the thread that asked for them, so that a handler never runs inside a kernel. */
static int start_worker(fr_pool *pool, int number)
{
    sigset_t all, before;
    sigfillset(&all);
    worker *self = &pool->workers[number];
    *self = (worker){.pool = pool, .number = number};
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&self->thread, NULL, worker_main, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

fr_status fr_pool_create(fr_pool **out, int threads, fr_error *error)
{
    int available = fr_cpu_available();
    if (threads <= 0)
        threads = available;
    if (threads > 4096)
        return fr_error_set(error, FR_BAD_USAGE, "threads", "4096 is the most", "%d threads are too many",
                            threads);
    fr_pool *pool = fr_allocate(sizeof *pool);
    worker *workers = fr_allocate((size_t)threads * sizeof *workers);
    if (!pool || !workers) {
        fr_deallocate(pool);
        fr_deallocate(workers);
        return fr_error_memory(error, sizeof *pool + (size_t)threads * sizeof *workers, "a thread pool");
    }
    pool->threads = threads;
    pool->workers = workers;
    pool->spin_ns = threads <= available ? SPIN_NS : 0;
    atomic_init(&pool->ticket, CLOSED);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work_ready, NULL);
    pthread_cond_init(&pool->work_done, NULL);
    for (pool->started = 1; pool->started < threads; pool->started++) {
        int code = start_worker(pool, pool->started);
        if (code == 0)
            continue;
        int reached = pool->started;
        fr_pool_free(pool);
        return fr_error_set(error, FR_BAD_ENVIRONMENT, "threads", "use fewer threads",
                            "cannot start thread %d of %d: %s", reached + 1, threads, strerror(code));
    }
    *out = pool;
    return FR_OK;
}

int fr_pool_threads(const fr_pool *pool)
{
    return pool ? pool->threads : 1;
}

void fr_pool_free(fr_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->quit, true);
    pthread_cond_broadcast(&pool->work_ready);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 1; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->work_done);
    pthread_cond_destroy(&pool->work_ready);
    pthread_mutex_destroy(&pool->mutex);
    fr_deallocate(pool->workers);
    fr_deallocate(pool);
}
