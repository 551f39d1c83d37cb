/* batch.h: how a step's tokens are cut into shards and micro-batches; see batch.c. */
#ifndef FRONTIER_TRAIN_BATCH_H
#define FRONTIER_TRAIN_BATCH_H
#include "frontier/model.h"

typedef struct fr_batch_shape {
    int64_t T, shards, micro_rows;
    int64_t most_rows;          /* of the largest step */
    int64_t most_micro_batches; /* of one shard in it */
} fr_batch_shape;

/* FR_BAD_USAGE names the nearest batch that works. */
fr_status fr_batch_shape_of(const fr_recipe *recipe, fr_batch_shape *shape, fr_error *error);
/* Micro-batches of one shard in a step of `batch_tokens`. */
int64_t fr_batch_micro_batches(const fr_batch_shape *shape, int64_t batch_tokens);
/* Row of the step that is row `row` of micro-batch `micro` of a shard. */
int64_t fr_batch_row(const fr_batch_shape *shape, int64_t shard, int64_t micro, int64_t row);

#endif
