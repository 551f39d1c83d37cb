/* shards.h: gradient buffers of the shards of a step and the fixed tree that adds them up; see shards.c. */
#ifndef FRONTIER_TRAIN_SHARDS_H
#define FRONTIER_TRAIN_SHARDS_H
#include "frontier/base.h"

#include <pthread.h>

typedef struct fr_shards {
    int64_t shards, elements;
    int buffers;       /* workers + ceil(log2 shards), at most shards */
    float **memory;    /* of each buffer */
    int *spare;        /* stack of free buffers */
    int spares;
    int *waiting;      /* per tree node: the buffer that waits for its sibling, or -1 */
    int64_t *first;    /* per level: where its nodes begin in `waiting` */
    int levels;        /* of the tree, leaves included */
    int64_t next;      /* shard to hand out */
    int root;          /* buffer with the whole sum, or -1 */
    bool abandoned;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} fr_shards;

int fr_shards_buffers(int64_t shards, int workers);
fr_status fr_shards_init(fr_shards *shards, int64_t count, int64_t elements, int workers, fr_error *error);
void fr_shards_release(fr_shards *shards);
/* A new step: every buffer is free again. No thread may be at work. */
void fr_shards_begin(fr_shards *shards);
/* The next shard and a buffer for its gradient; false when none is left or the step was abandoned. */
bool fr_shards_take(fr_shards *shards, int64_t *shard, int *buffer);
/* The shard's sum is complete: adds up as far as the tree allows. */
void fr_shards_give(fr_shards *shards, int64_t shard, int buffer);
/* The step will not be finished; wakes whoever waits. */
void fr_shards_abandon(fr_shards *shards);
/* The sum of all shards after the last was given; NULL before. Stays until the next step begins. */
float *fr_shards_sum(const fr_shards *shards);

#endif
