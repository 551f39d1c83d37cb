/* loader_prefetch.c: reading ahead without changing what is read.
 *
 * The thread owns a copy of the row source and fills a ring of finished rows; the loader keeps the original
 * and advances it (plans only, which is cheap) as rows are delivered. So saving a loader never waits for the
 * thread, and its state is by construction the one without prefetch. One producer, one consumer, one lock.
 */
#include "text/loader_prefetch.h"

#include <pthread.h>
#include <string.h>

enum { RING_BYTES = 4 << 20, RING_LEAST = 4, RING_MOST = 1024 };

struct prefetcher {
    row_source source;  /* the thread's */
    packed_row plan;    /* the thread's */
    int32_t *scratch;   /* the thread's */
    int32_t *ring;      /* slots x (inputs, targets, documents) x T */
    int64_t context, slots;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    int64_t head, count; /* under lock, as are the following */
    bool stop, ended;
    fr_status status;
    fr_error error;
};

static int32_t *slot(prefetcher *ahead, int64_t index)
{
    return ahead->ring + index % ahead->slots * 3 * ahead->context;
}

/* Fills one slot outside the lock: the consumer does not touch it until it is counted. */
static fr_status produce(prefetcher *ahead, int64_t index, bool *got, fr_error *error)
{
    int32_t *at = slot(ahead, index);
    FR_TRY(row_source_next(&ahead->source, &ahead->plan, error));
    *got = ahead->plan.count > 0;
    if (!*got)
        return FR_OK;
    return row_fill(&ahead->source.packing, &ahead->plan, ahead->scratch, at, at + ahead->context,
                    at + 2 * ahead->context, error);
}

/* Waits for an empty slot; its index, or -1 when the thread should end. */
static int64_t wait_for_room(prefetcher *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->stop && ahead->count == ahead->slots)
        pthread_cond_wait(&ahead->emptied, &ahead->lock);
    int64_t index = ahead->stop ? -1 : ahead->head + ahead->count;
    pthread_mutex_unlock(&ahead->lock);
    return index;
}

static void *run(void *context)
{
    prefetcher *ahead = context;
    bool got = true;
    while (got) {
        int64_t index = wait_for_room(ahead);
        if (index < 0)
            return NULL;
        fr_error error = {0};
        fr_status status = produce(ahead, index, &got, &error);
        pthread_mutex_lock(&ahead->lock);
        got = got && status == FR_OK;
        ahead->status = status;
        ahead->error = error;
        ahead->count += got;
        ahead->ended = !got;
        pthread_cond_signal(&ahead->filled);
        pthread_mutex_unlock(&ahead->lock);
    }
    return NULL;
}

static fr_status allocate(prefetcher *ahead, const row_source *source, fr_error *error)
{
    ahead->context = source->packing.options.context;
    int64_t row_bytes = 3 * ahead->context * (int64_t)sizeof(int32_t), fit = RING_BYTES / row_bytes;
    ahead->slots = fit < RING_LEAST ? RING_LEAST : fit > RING_MOST ? RING_MOST : fit;
    size_t ring = (size_t)(ahead->slots * row_bytes), scratch = (size_t)(ahead->context + 1) * 2 * sizeof(int32_t);
    ahead->ring = fr_allocate(ring);
    ahead->scratch = fr_allocate(scratch);
    if (!ahead->ring || !ahead->scratch)
        return fr_error_memory(error, ring + scratch, "prefetched rows");
    return row_source_copy(&ahead->source, source, error);
}

static void release(prefetcher *ahead)
{
    row_source_release(&ahead->source);
    packed_row_release(&ahead->plan);
    fr_deallocate(ahead->scratch);
    fr_deallocate(ahead->ring);
    fr_deallocate(ahead);
}

fr_status prefetcher_create(prefetcher **out, const row_source *source, fr_error *error)
{
    prefetcher *ahead = fr_allocate(sizeof *ahead);
    if (!ahead)
        return fr_error_memory(error, sizeof *ahead, "the prefetch thread");
    fr_status status = allocate(ahead, source, error);
    if (status != FR_OK) {
        release(ahead);
        return status;
    }
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->filled, NULL);
    pthread_cond_init(&ahead->emptied, NULL);
    int code = pthread_create(&ahead->thread, NULL, run, ahead);
    if (code != 0) {
        release(ahead);
        return fr_error_set(error, FR_BAD_ENVIRONMENT, "prefetch", "raise the limit of processes, or switch prefetch off",
                            "cannot start a thread: %s", strerror(code));
    }
    *out = ahead;
    return FR_OK;
}

fr_status prefetcher_next(prefetcher *ahead, int32_t *inputs, int32_t *targets, int32_t *documents, bool *got, fr_error *error)
{
    pthread_mutex_lock(&ahead->lock);
    while (ahead->count == 0 && !ahead->ended)
        pthread_cond_wait(&ahead->filled, &ahead->lock);
    fr_status status = ahead->count > 0 ? FR_OK : ahead->status;
    *got = ahead->count > 0;
    if (status != FR_OK && error)
        *error = ahead->error;
    int64_t head = ahead->head;
    pthread_mutex_unlock(&ahead->lock);
    if (!*got)
        return status;
    size_t size = (size_t)ahead->context * sizeof(int32_t);
    const int32_t *at = slot(ahead, head);
    memcpy(inputs, at, size);
    memcpy(targets, at + ahead->context, size);
    if (documents)
        memcpy(documents, at + 2 * ahead->context, size);
    pthread_mutex_lock(&ahead->lock);
    ahead->head++;
    ahead->count--;
    pthread_cond_signal(&ahead->emptied);
    pthread_mutex_unlock(&ahead->lock);
    return FR_OK;
}

void prefetcher_free(prefetcher *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->stop = true;
    pthread_cond_signal(&ahead->emptied);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
    pthread_cond_destroy(&ahead->emptied);
    pthread_cond_destroy(&ahead->filled);
    pthread_mutex_destroy(&ahead->lock);
    release(ahead);
}
