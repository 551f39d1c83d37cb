/* bench/step.h: one training step, taken apart for measuring: micro-batches, shard sum, update, operators. */
#ifndef FRONTIER_BENCH_STEP_H
#define FRONTIER_BENCH_STEP_H
#include "frontier/train.h"
#include "repeat.h"

enum { STEP_MOST_OPERATORS = 96 };

typedef struct step_operator { /* of one thread in one micro-batch, forward and backward apart */
    const char *name, *kernel;
    fr_pass pass;
    double flops, flops_full;
    double seconds, best;
} step_operator;

typedef struct step_bench {
    fr_recipe recipe;
    fr_graph *graph;
    fr_plan *plan;
    fr_prepared *prepared;
    fr_pool *pool;
    fr_optimizer *optimizer;
    int threads;
    void **arenas;
    float *parameters, **gradients;
    int32_t *inputs, *targets;
    float loss_scale;
    fr_step_scalars scalars;
    double processor_seconds; /* of thread 0 for its micro-batch, the least of all repetitions */
    fr_peak peak;             /* of all threads; the better of a reading before and one after */
    step_operator operators[STEP_MOST_OPERATORS];
    int operator_count;
    fr_status status; /* of whatever was measured, with its error */
    fr_error error;
} step_bench;

/* Reads --recipe, --set, --vocab, --rows, --threads; makes everything a step needs. Release also after a failure. */
fr_status step_bench_init(step_bench *bench, cli_run *run, fr_error *error);
void step_bench_release(step_bench *bench);
void step_bench_micro_batches(void *bench); /* one on every thread at once */
void step_bench_sum_shards(void *bench);    /* as many sums as the recipe's shards need */
void step_bench_update(void *bench);        /* optimizer and fresh copies for the kernels */
fr_status step_bench_operators(step_bench *bench, int rounds, fr_error *error); /* thread 0 alone */
fr_status step_bench_peak(step_bench *bench, double seconds, fr_error *error);

#endif
