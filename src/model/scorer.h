/* The inside of a scorer, shared by the file that runs it and the file that opens it from a run folder.
 *
 * What a scorer works with may be borrowed (the trainer's graph, weights and pool) or its own (read from a
 * run folder); the own_ fields say which and are what fr_scorer_free gives back.
 */
#ifndef FRONTIER_MODEL_SCORER_H
#define FRONTIER_MODEL_SCORER_H
#include "frontier/model.h"

enum { SCORER_PLANS = 40 };

/* The first row of a thread that failed, while many rows are scored. */
typedef struct scorer_failure {
    int64_t row; /* -1: none */
    fr_error error;
} scorer_failure;

typedef struct scorer_plan {
    fr_plan *plan; /* NULL: free */
    int64_t T;
    const char *given;  /* tensor the plan begins with; NULL: tokens */
    const char *output; /* "nats", "logits", or the tensor both are made of */
    int64_t used;       /* when, on the scorer's clock of calls */
} scorer_plan;

typedef struct scorer_rows scorer_rows;

struct fr_scorer {
    const fr_graph *graph;
    const float *parameters;
    fr_pool *pool;
    fr_recipe recipe;
    fr_numerics numerics;
    int64_t vocab;
    int threads;
    const fr_kernel_table *kernels;
    fr_prepared *prepared;
    const fr_tensor *hidden; /* see fr_scorer_hidden */
    scorer_rows *short_rows;
    scorer_plan plans[SCORER_PLANS];
    int64_t clock;
    scorer_failure *failures; /* one per thread */
    void **arenas;            /* one per thread, arena_bytes each */
    size_t arena_bytes;
    int32_t *ids; /* per thread: 2 * ids_length */
    int64_t ids_length;

    fr_graph *own_graph;
    float *own_parameters;
    fr_pool *own_pool;
    fr_tokenizer *tokenizer;
    char run[1024];
};

/* An error if a submission's own program made the run. */
fr_status fr_scorer_refuse_programs(const char *run_folder, fr_error *error);
/* Sets the numerics from the scorer's recipe, or as wanted: "fp32", "bf16". */
fr_status fr_scorer_choose_numerics(fr_scorer *scorer, const char *wanted, fr_error *error);
/* Takes a scorer whose graph, recipe, numerics, parameters and pool are set, and makes it ready; frees it on
 * failure. */
fr_status fr_scorer_begin(fr_scorer **out, fr_scorer *scorer, fr_error *error);

/* A plan of one row of exactly `length` tokens that computes `output` from tokens, or from the tensor `given`;
 * made or found. */
fr_status fr_scorer_plan(fr_scorer *scorer, int64_t length, const char *given, const char *output,
                         fr_plan **out, fr_error *error);
/* Runs T tokens in a plan of at least that length; the result is in the thread's arena. targets may be NULL.
 * pool splits operators; NULL inside a job of the pool. */
fr_status fr_scorer_run_row(const fr_scorer *scorer, const fr_plan *plan, int thread, fr_pool *pool,
                            int64_t T, const int32_t *inputs, const int32_t *targets, fr_error *error);
/* What nats and logits are made of, when the model can be run in segments (fr_segments) up to there and every
 * number is the same as in whole rows; else NULL. */
const fr_tensor *fr_scorer_hidden(const fr_scorer *scorer);
fr_status fr_scorer_find_hidden(fr_scorer *scorer, fr_error *error); /* once, when the scorer is made */
/* Spans on a scorer with such a tensor: beginnings that neighbours share are computed once, many rows go into
 * one run, and the head sees only the positions asked for. Spans have been checked. */
fr_status fr_scorer_shared_spans(fr_scorer *scorer, int64_t count, fr_span *spans, fr_arena *arena,
                                 fr_error *error);
/* Adds the operations that takes. */
fr_status fr_scorer_shared_work(fr_scorer *scorer, int64_t count, fr_span *spans, fr_arena *arena, double *work,
                                fr_error *error);
/* Many rows of few tokens in one run each. */
bool fr_scorer_packs_rows(const fr_scorer *scorer, int64_t T);
fr_status fr_scorer_prepare_short(fr_scorer *scorer, fr_plan **plan, fr_error *error);
fr_status fr_scorer_short_nats(fr_scorer *scorer, int64_t rows, int64_t T, const int32_t *inputs,
                               const int32_t *targets, float *nats, fr_error *error);
/* Nats of a span from those of its positions; its answer from the logits of one position. */
void fr_span_sum(fr_span *span, const float *nats);
void fr_span_choose(fr_span *span, int64_t position, const float *logits, int64_t vocab);
/* The failure of the lowest row among the threads', or FR_OK. */
fr_status fr_scorer_failure(const fr_scorer *scorer, fr_error *error);

#endif
