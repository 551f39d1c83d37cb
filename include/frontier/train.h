/* frontier/train.h: optimizers and the training loop against the charged clock.
 *
 * Mental model. A session owns one run: recipe, data, graph, weights, optimizer, clock, run folder. A step is cut
 * into S gradient shards; shard s takes rows s, s+S, ... of the step, in order, in micro-batches of one shape; the
 * shards' gradients meet in a fixed binary tree. Threads own shards, so 1, 2 or 4 threads give the same bits.
 * All plans are made before charging starts; after the first step nothing is allocated.
 *
 *     fr_session *session;
 *     fr_session_create(&session, &options, &error);
 *     while (fr_session_begin_step(session, &error)) {      // false: the clock says stop, or an error
 *         fr_session_gradients(session, &error);            // forward + backward of every shard
 *         fr_session_update(session, &error);               // clip, schedules, optimizer
 *         fr_session_end_step(session, &error);             // charge, log, checkpoint, evaluate
 *     }
 *     fr_session_finish(session, &result, &error);          // final save, score, run.json
 */
#ifndef FRONTIER_TRAIN_H
#define FRONTIER_TRAIN_H
#include "frontier/model.h"

/* ---- optimizers ------------------------------------------------------------------------------------ */

/* One update rule per parameter group, over the flat vector. State is part of checkpoints, by tensor name. */
typedef struct fr_optimizer fr_optimizer;
/* What changes by step; computed from recipe, progress and step. */
typedef struct fr_step_scalars {
    double lr_multiplier, momentum, matrix_decay;
    double progress;
    int64_t step;
    int64_t batch_tokens;
} fr_step_scalars;
void fr_step_scalars_at(const fr_recipe *recipe, double progress, int64_t step, fr_step_scalars *out);

fr_status fr_optimizer_create(fr_optimizer **out, const fr_graph *graph, const fr_recipe *recipe, fr_pool *pool, fr_error *error);
/* parameters <- parameters after one step with these gradients (which are clobbered). Same bits for any number of threads. */
fr_status fr_optimizer_step(fr_optimizer *optimizer, float *parameters, float *gradients, const fr_step_scalars *scalars, fr_error *error);
fr_status fr_optimizer_save(const fr_optimizer *optimizer, const char *path, const char *extra_json, fr_error *error);
fr_status fr_optimizer_load(fr_optimizer *optimizer, const char *path, fr_arena *arena, char **extra_json, fr_error *error);
size_t fr_optimizer_bytes(const fr_optimizer *optimizer);
void fr_optimizer_free(fr_optimizer *optimizer);

/* One Muon update of a rows x cols matrix, exposed for tests and own optimizers (baseline.md 2.3). */
typedef struct fr_muon_options {
    double lr, decay, momentum, beta2;
    bool equalize, plus;
} fr_muon_options;
size_t fr_muon_scratch_bytes(int64_t rows, int64_t columns);
void fr_muon_update(float *weight, const float *gradient, float *momentum_buffer, float *second_moment, int64_t rows, int64_t columns, const fr_muon_options *options, void *scratch);
typedef struct fr_adamw_options {
    double lr, decay, beta1, beta2, eps;
    int64_t step; /* from 1 */
} fr_adamw_options;
void fr_adamw_update(float *weight, const float *gradient, float *first_moment, float *second_moment, int64_t count, const fr_adamw_options *options);

/* ---- session ---------------------------------------------------------------------------------------- */

typedef struct fr_session fr_session;
typedef struct fr_train_options {
    fr_recipe recipe;               /* resolved */
    const char *recipe_name;        /* for run.json: a path, or "built-in" */
    const char *data_folder;
    const char *run_folder;         /* created; must not hold a finished run unless resuming */
    bool resume;
    fr_clock_options clock;         /* kind, budget, ...; log_path is set by the session */
    const char *clock_text;         /* as given: "wall" */
    uint64_t seed;
    int threads;                    /* <= 0: all available */
    const char *eval_set;           /* NULL: "valid" */
    bool skip_final_eval;
    /* Builds the graph; NULL: fr_model_build. A submission's model comes in here. */
    fr_status (*model)(fr_graph *graph, const fr_recipe *recipe, int64_t vocab, fr_error *error);
    const char *program_sha256;     /* of a submission's source; NULL */
    const fr_progress *progress;
} fr_train_options;

typedef struct fr_forecast {
    double seconds_per_step, steps, tokens, epochs;
    int64_t params, arena_bytes, memory_bytes, batch_tokens;
    int64_t micro_rows, shards;
    bool few_steps;                 /* under 50 steps fit: see advice */
    char advice[300];
} fr_forecast;

fr_status fr_session_create(fr_session **out, const fr_train_options *options, fr_error *error);
/* Times one micro-batch and one optimizer step (before charging) and tells what the budget buys. */
fr_status fr_session_forecast(fr_session *session, fr_forecast *forecast, fr_error *error);
bool fr_session_begin_step(fr_session *session, fr_error *error);
fr_status fr_session_gradients(fr_session *session, fr_error *error); /* FR_STOPPED: the clock ran out; the step is dropped */
fr_status fr_session_update(fr_session *session, fr_error *error);
fr_status fr_session_end_step(fr_session *session, fr_error *error);
/* Final save (not charged), evaluation through frontier/eval.h is the caller's; writes run.json. */
fr_status fr_session_finish(fr_session *session, fr_error *error);
void fr_session_free(fr_session *session);

/* Read and write access for training code of one's own. */
const fr_recipe *fr_session_recipe(const fr_session *session);
const fr_graph *fr_session_graph(const fr_session *session);
float *fr_session_parameters(fr_session *session);
float *fr_session_gradient_vector(fr_session *session);  /* after fr_session_gradients: mean over the step's targets */
const fr_step_scalars *fr_session_scalars(const fr_session *session);
fr_pool *fr_session_pool(fr_session *session);
double fr_session_loss(const fr_session *session);       /* nats per target of the last step */
int64_t fr_session_step(const fr_session *session);

/* The whole loop above; what `frontier train` runs. */
fr_status fr_train(const fr_train_options *options, fr_error *error);

#endif
