/* shards.c: the sum of a step's shards, in an order nobody's speed can change.
 *
 * Shards are the leaves of a binary tree that is fixed by their number: node i of a level is the sum of
 * nodes 2i and 2i + 1 of the level below, left plus right; a node without a right neighbour passes through.
 * Whichever thread completes the second child adds the two, so sums happen early and few buffers are alive.
 *
 * Shards are handed out in order to whoever is free. The finished ones then are a prefix plus what lies among
 * those at work, and workers + ceil(log2 shards) buffers suffice to always make progress: when all buffers
 * are taken and nobody is at work, the finished shards are a prefix, which the tree holds in at most log2
 * buffers. A thread that finds no free buffer waits for a sum to be made.
 */
#include "train/shards.h"

#include "frontier/cpu.h"

#include <string.h>

static int levels_of(int64_t shards)
{
    int levels = 1;
    while (INT64_C(1) << (levels - 1) < shards)
        levels++;
    return levels;
}

int fr_shards_buffers(int64_t shards, int workers)
{
    int64_t buffers = workers + levels_of(shards) - 1;
    return (int)(buffers < shards ? buffers : shards);
}

static int64_t nodes_at(int64_t shards, int level)
{
    return (shards + (INT64_C(1) << level) - 1) >> level;
}

static fr_status take_memory(fr_shards *s, fr_error *error)
{
    int64_t nodes = 0;
    for (int level = 0; level < s->levels; level++)
        nodes += nodes_at(s->shards, level);
    size_t each = (size_t)s->elements * sizeof(float);
    s->memory = fr_allocate((size_t)s->buffers * sizeof *s->memory);
    s->spare = fr_allocate((size_t)s->buffers * sizeof *s->spare);
    s->waiting = fr_allocate((size_t)nodes * sizeof *s->waiting);
    s->first = fr_allocate((size_t)s->levels * sizeof *s->first);
    if (!s->memory || !s->spare || !s->waiting || !s->first)
        return fr_error_memory(error, (size_t)nodes * sizeof(int), "the shards of a step");
    for (int level = 1; level < s->levels; level++)
        s->first[level] = s->first[level - 1] + nodes_at(s->shards, level - 1);
    for (int i = 0; i < s->buffers; i++) {
        s->memory[i] = fr_allocate(each ? each : 64);
        if (!s->memory[i])
            return fr_error_memory(error, each * (size_t)s->buffers, "gradients");
    }
    return FR_OK;
}

fr_status fr_shards_init(fr_shards *s, int64_t count, int64_t elements, int workers, fr_error *error)
{
    *s = (fr_shards){.shards = count,
                     .elements = elements,
                     .buffers = fr_shards_buffers(count, workers),
                     .levels = levels_of(count)};
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
    fr_status status = take_memory(s, error);
    if (status == FR_OK)
        fr_shards_begin(s);
    else
        fr_shards_release(s);
    return status;
}

void fr_shards_release(fr_shards *s)
{
    if (s->shards == 0)
        return;
    for (int i = 0; s->memory && i < s->buffers; i++)
        fr_deallocate(s->memory[i]);
    fr_deallocate(s->memory);
    fr_deallocate(s->spare);
    fr_deallocate(s->waiting);
    fr_deallocate(s->first);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->changed);
    *s = (fr_shards){0};
}

void fr_shards_begin(fr_shards *s)
{
    s->next = 0;
    s->root = -1;
    s->abandoned = false;
    s->spares = s->buffers;
    for (int i = 0; i < s->buffers; i++)
        s->spare[i] = s->buffers - 1 - i;
    int64_t nodes = s->first[s->levels - 1] + 1;
    for (int64_t i = 0; i < nodes; i++)
        s->waiting[i] = -1;
}

bool fr_shards_take(fr_shards *s, int64_t *shard, int *buffer)
{
    pthread_mutex_lock(&s->mutex);
    while (!s->abandoned && s->next < s->shards && s->spares == 0)
        pthread_cond_wait(&s->changed, &s->mutex);
    bool more = !s->abandoned && s->next < s->shards;
    if (more) {
        *shard = s->next++;
        *buffer = s->spare[--s->spares];
    }
    pthread_mutex_unlock(&s->mutex);
    return more;
}

/* Leaves `buffer` at the node for its sibling, or takes the sibling that waits (-1: there is none to come). */
static bool meet_sibling(fr_shards *s, int level, int64_t index, int buffer, int *sibling)
{
    *sibling = -1;
    if ((index ^ 1) >= nodes_at(s->shards, level))
        return true;
    int *other = &s->waiting[s->first[level] + (index ^ 1)];
    if (*other < 0) {
        s->waiting[s->first[level] + index] = buffer;
        return false;
    }
    *sibling = *other;
    *other = -1;
    return true;
}

void fr_shards_give(fr_shards *s, int64_t shard, int buffer)
{
    int64_t index = shard;
    pthread_mutex_lock(&s->mutex);
    for (int level = 0; level < s->levels - 1; level++, index >>= 1) {
        int sibling;
        if (!meet_sibling(s, level, index, buffer, &sibling)) {
            pthread_mutex_unlock(&s->mutex);
            return;
        }
        if (sibling < 0)
            continue;
        int left = index & 1 ? sibling : buffer, right = index & 1 ? buffer : sibling;
        pthread_mutex_unlock(&s->mutex);
        fr_vector_add(s->memory[left], s->memory[right], s->elements, NULL);
        pthread_mutex_lock(&s->mutex);
        s->spare[s->spares++] = right;
        pthread_cond_broadcast(&s->changed);
        buffer = left;
    }
    s->root = buffer;
    pthread_mutex_unlock(&s->mutex);
}

void fr_shards_abandon(fr_shards *s)
{
    pthread_mutex_lock(&s->mutex);
    s->abandoned = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

float *fr_shards_sum(const fr_shards *s)
{
    return s->root < 0 ? NULL : s->memory[s->root];
}
