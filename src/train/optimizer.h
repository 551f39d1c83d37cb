/* optimizer.h: the parts of an optimizer that its step and its file share; see optimizer.c. */
#ifndef FRONTIER_TRAIN_OPTIMIZER_H
#define FRONTIER_TRAIN_OPTIMIZER_H
#include "train/groups.h"

typedef struct fr_parameter_state {
    const fr_parameter_info *info;
    fr_group_rule rule;
    float *first, *second;       /* momentum and second moment */
    int64_t elements, seconds;   /* lengths of the two */
} fr_parameter_state;

struct fr_optimizer {
    const fr_graph *graph;
    fr_pool *pool;
    bool bf16, equalize, plus;
    int count;
    fr_parameter_state *states; /* in the graph's order */
    int *muon;                  /* indices of Muon's matrices, most work first */
    int muon_count;
    float *memory;              /* of all states */
    char *scratch;              /* a piece per thread */
    size_t memory_bytes, scratch_bytes, scratch_each;
    int64_t steps;
};

/* Seconds one step would take, measured on scratch memory: each distinct shape once, on all threads at a
 * time. Touches neither state nor parameters. */
fr_status fr_optimizer_time(const fr_optimizer *optimizer, double *seconds, fr_error *error);
/* Does a step split matrices inside instead of handing out whole ones? */
bool fr_optimizer_splits_inside(const fr_optimizer *optimizer);
/* Bytes fr_optimizer_create would take for its state and scratch. */
fr_status fr_optimizer_estimate(const fr_graph *graph, const fr_recipe *recipe, int threads, int64_t *bytes, fr_error *error);
/* Name of the first parameter whose gradient has NaN or Inf, or NULL. */
const char *fr_nonfinite_parameter(const fr_graph *graph, const float *flat, fr_pool *pool);

#endif
