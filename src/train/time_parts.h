/* time_parts.h: where a run's time went.
 *
 * One thread's time, the first worker's, by operator (forward and backward together) and by what lies between them:
 * taking rows, the update, saving and evaluating. What is left of the charged time is summing shards and waiting for
 * other threads. Names are static text. The counts decide nothing; they only end up in run.json for people.
 */
#ifndef FRONTIER_TRAIN_TIME_PARTS_H
#define FRONTIER_TRAIN_TIME_PARTS_H
#include "frontier/graph.h"
#include "train/timing.h"

enum { FR_MOST_TIME_PARTS = 48 };

typedef struct fr_time_parts {
    struct {
        const char *name;
        int64_t ns;
    } parts[FR_MOST_TIME_PARTS];
    int count;
} fr_time_parts;

/* Adds to the part of that name; past the last place everything goes to the last part. */
void fr_time_parts_add(fr_time_parts *parts, const char *name, int64_t ns);
/* Adds the time since *mark and moves the mark to now. */
void fr_time_parts_lap(fr_time_parts *parts, const char *name, int64_t *mark);
/* For fr_run_args.timed; context is an fr_time_parts. */
void fr_time_parts_node(void *context, const fr_node *node, fr_pass pass, int64_t ns);

#endif
