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
#include "frontier/eval.h"
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
/* Total: any progress (NaN counts as 0, others are clamped to [0, 1]), any step. Nothing is ever negative or NaN. */
void fr_step_scalars_at(const fr_recipe *recipe, double progress, int64_t step, fr_step_scalars *out);

/* Hyper-parameter transfer from the depth-12 reference of nanochat (baseline.md 2.5): what a model of
 * `scaling_params` (matrices + head) wants when trained on `ratio` tokens per scaling parameter. */
typedef struct fr_transfer {
    double tokens;          /* horizon D */
    int64_t batch_tokens;   /* nearest power of two of B_ref (D / D_ref)^0.383 */
    int64_t steps;          /* D / batch_tokens, rounded down */
    double lr_scale;        /* sqrt(batch_tokens / B_ref) */
    double matrix_decay;    /* 0.28 sqrt(batch_tokens / B_ref) D_ref / D */
} fr_transfer;
fr_status fr_transfer_at(int64_t scaling_params, double ratio, fr_transfer *out, fr_error *error);
/* Writes those into a recipe: batch_tokens, reference_batch, matrix_decay, max_steps. */
fr_status fr_recipe_transfer(fr_recipe *recipe, int64_t vocab, double ratio, fr_error *error);

fr_status fr_optimizer_create(fr_optimizer **out, const fr_graph *graph, const fr_recipe *recipe, fr_pool *pool, fr_error *error);
/* parameters <- parameters after one step with these gradients (which may be clobbered). Same bits for any number of
 * threads. A gradient with NaN or Inf is refused by name before anything changes (FR_ANSWER_NO). */
fr_status fr_optimizer_step(fr_optimizer *optimizer, float *parameters, float *gradients, const fr_step_scalars *scalars, fr_error *error);
fr_status fr_optimizer_save(const fr_optimizer *optimizer, const char *path, const char *extra_json, fr_error *error);
fr_status fr_optimizer_load(fr_optimizer *optimizer, const char *path, fr_arena *arena, char **extra_json, fr_error *error);
size_t fr_optimizer_bytes(const fr_optimizer *optimizer); /* state and scratch */
int64_t fr_optimizer_steps(const fr_optimizer *optimizer); /* taken so far */
void fr_optimizer_free(fr_optimizer *optimizer);

/* One Muon update of a rows x cols matrix, exposed for tests and own optimizers (baseline.md 2.3). */
typedef struct fr_muon_options {
    double lr, decay, momentum, beta2; /* lr includes max(1, rows/columns)^0.5 */
    bool equalize, plus;
    bool bf16;     /* round the iterate and its products to bf16 as bf16 numerics do; g itself stays fp32 */
    fr_pool *pool; /* split one update over these threads; NULL: this thread alone. The bits are the same */
} fr_muon_options;
/* second_moment has `rows` entries when rows >= columns, else `columns`; scratch is 64-byte aligned. */
size_t fr_muon_scratch_bytes(int64_t rows, int64_t columns);
void fr_muon_update(float *weight, const float *gradient, float *momentum_buffer, float *second_moment, int64_t rows, int64_t columns, const fr_muon_options *options, void *scratch);
typedef struct fr_adamw_options {
    double lr, decay, beta1, beta2, eps;
    int64_t step; /* from 1 */
} fr_adamw_options;
void fr_adamw_update(float *weight, const float *gradient, float *first_moment, float *second_moment, int64_t count, const fr_adamw_options *options);

/* ---- session ---------------------------------------------------------------------------------------- */

/* Text given in the options is copied; `progress` and the callbacks' contexts must outlive the session. */
typedef struct fr_session fr_session;
typedef struct fr_train_options {
    fr_recipe recipe;               /* resolved */
    const char *recipe_name;        /* for run.json: a path, or "built-in" */
    const char *data_folder;
    const char *run_folder;         /* created; must not hold a finished run unless resuming */
    bool resume;
    bool rehearsal;                 /* only for a forecast: nothing is written into the run folder */
    fr_clock_options clock;         /* kind, budget, ...; log_path is set by the session */
    const char *clock_text;         /* as given: "wall" */
    uint64_t seed;
    int threads;                    /* <= 0: all available */
    const char *eval_set;           /* NULL: "valid" */
    bool skip_final_eval;
    /* Builds the graph; NULL: fr_model_build. A submission's model comes in here. */
    fr_status (*model)(fr_graph *graph, const fr_recipe *recipe, int64_t vocab, fr_error *error);
    const char *program_sha256;     /* of a submission's source; NULL */
    /* Periodic evaluation every recipe.clock.eval_every steps, charged; NULL: none. */
    fr_status (*evaluate)(void *context, fr_session *session, double *val_bpb, fr_error *error);
    void *evaluate_context;
    double peak_flops;              /* of all threads, for mfu: 0 = measure before charging (wall clock only); < 0: none */
    int64_t memory_limit;           /* bytes the run may take; 0 = what the machine has free */
    const fr_progress *progress;
} fr_train_options;

typedef struct fr_forecast {
    double seconds_per_step, steps, tokens, epochs;
    int64_t params, arena_bytes, memory_bytes, batch_tokens;
    int64_t micro_rows, shards;
    double micro_batch_seconds, optimizer_seconds; /* of one thread with all busy; of one update */
    double memory_available;        /* bytes */
    bool few_steps;                 /* under 50 steps fit: see advice */
    char advice[300];
} fr_forecast;

fr_status fr_session_create(fr_session **out, const fr_train_options *options, fr_error *error);
/* Times one micro-batch and one optimizer step (before charging) and tells what the budget buys. */
fr_status fr_session_forecast(fr_session *session, fr_forecast *forecast, fr_error *error);
bool fr_session_begin_step(fr_session *session, fr_error *error);
fr_status fr_session_gradients(fr_session *session, fr_error *error); /* FR_STOPPED: the clock ran out; the step is dropped */
fr_status fr_session_update(fr_session *session, fr_error *error);
/* Instead of fr_session_update, after the caller has moved the parameters with an optimizer of its own. The state of
 * that optimizer is not part of checkpoints. */
fr_status fr_session_updated(fr_session *session, fr_error *error);
fr_status fr_session_end_step(fr_session *session, fr_error *error);
/* Final save (not charged), evaluation through frontier/eval.h is the caller's; writes run.json. FR_STOPPED after
 * a stop request (all is saved); after a failure the failure is reported again and earlier checkpoints stay. */
fr_status fr_session_finish(fr_session *session, fr_error *error);
/* The loop at the head of this file, finish included. */
fr_status fr_session_run(fr_session *session, fr_error *error);
/* Puts a final score into RUN/run.json, durably, after the session is over. floor_bpb NaN: not known. */
fr_status fr_run_record_score(const char *run_folder, const fr_bpb_result *result, double floor_bpb,
                              fr_error *error);
void fr_session_free(fr_session *session);

/* Read and write access for training code of one's own. */
const fr_recipe *fr_session_recipe(const fr_session *session);
const fr_graph *fr_session_graph(const fr_session *session);
float *fr_session_parameters(fr_session *session);
float *fr_session_gradient_vector(fr_session *session);  /* after fr_session_gradients: mean over the step's targets */
const fr_step_scalars *fr_session_scalars(const fr_session *session);
/* Value of a run-time scalar of one's own model (fr_input_scalar) from the next fr_session_gradients on. */
fr_status fr_session_set_scalar(fr_session *session, const char *name, double value, fr_error *error);
fr_pool *fr_session_pool(fr_session *session);
double fr_session_loss(const fr_session *session);       /* nats per target of the last step */
int64_t fr_session_step(const fr_session *session);      /* steps done */
const fr_corpus *fr_session_corpus(const fr_session *session);
const char *fr_session_folder(const fr_session *session);
const char *fr_session_record(const fr_session *session); /* run.json as last written; "" before that */

/* create, run, free. */
fr_status fr_train(const fr_train_options *options, fr_error *error);

/* After NaN, Inf or a loss above 100 the run folder holds failed-batch.safetensors (the micro-batch) and
 * failed-model.safetensors (the weights it met). Runs that batch again through a library model. */
typedef struct fr_replayed_batch {
    int64_t step;
    double loss;          /* nats per target of the batch, as computed again */
    char tensor[128];     /* first tensor with NaN or Inf; "" if there is none */
} fr_replayed_batch;
fr_status fr_train_replay_batch(const char *run_folder, fr_replayed_batch *out, fr_error *error);

/* A recipe for a machine and a budget when none was given; `explanation` gets a sentence or two on why.
 * flops: peak of all threads. See choose.c for the rules. */
fr_status fr_recipe_choose(fr_recipe *out, double budget, double flops, int64_t corpus_tokens, int64_t vocab,
                           char *explanation, size_t explanation_size, fr_error *error);

#endif
