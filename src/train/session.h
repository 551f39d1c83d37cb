/* session.h: what the files of a session share. session.c makes and frees it, session_step.c trains,
 * session_save.c writes and resumes, session_forecast.c predicts, run_record.c keeps the receipt, failure.c
 * explains bad numbers.
 */
#ifndef FRONTIER_TRAIN_SESSION_H
#define FRONTIER_TRAIN_SESSION_H
#include "frontier/train.h"
#include "train/batch.h"
#include "train/shards.h"
#include "train/step_log.h"
#include "train/time_parts.h"

#include <stdatomic.h>

enum { FR_MOST_RUN_SCALARS = 8 };

/* Where a session stands; the public calls are legal in one order only. */
typedef enum fr_session_state {
    FR_SESSION_READY,     /* between steps */
    FR_SESSION_BEGUN,     /* rows are there */
    FR_SESSION_GRADIENTS, /* their gradient is there */
    FR_SESSION_UPDATED,   /* the parameters moved */
    FR_SESSION_OVER,      /* the clock or the step limit ended the run */
    FR_SESSION_STOPPED,   /* somebody asked to stop */
    FR_SESSION_FAILED     /* an error; see `failure` */
} fr_session_state;

typedef struct fr_run_scalar {
    char name[64];
    float value;
} fr_run_scalar;

/* What the run has added up; part of a checkpoint. */
typedef struct fr_run_totals {
    int64_t step, tokens;      /* steps done; tokens fed in them */
    double charged, startup;
    double loss_first, loss_last;
    double best_seconds_per_token; /* wall seconds, for the estimate of the next step; 0 = unknown */
} fr_run_totals;

struct fr_session {
    fr_train_options options; /* text is in `arena` */
    fr_arena arena;
    fr_corpus *corpus;
    fr_loader *loader;
    fr_graph *graph;
    fr_pool *pool;
    fr_clock *clock;
    fr_optimizer *optimizer;
    const fr_kernel_table *kernels;
    fr_plan *plan;
    fr_prepared *prepared;
    fr_numerics numerics;
    fr_batch_shape shape;
    int workers;         /* threads that run shards; 1 when operators are split over the pool instead */
    fr_pool *operators;  /* that pool, or NULL */
    int64_t memory_bytes, memory_available;

    float *parameters;
    fr_shards shards;
    void **arenas;       /* per worker */
    int32_t **staging;   /* per worker: tokens, then targets, of one micro-batch */
    int32_t *inputs, *targets; /* of the step */
    double *micro_losses;      /* shard * most_micro_batches + micro */
    fr_run_scalar run_scalars[FR_MOST_RUN_SCALARS];
    int run_scalar_count;

    fr_session_state state;
    fr_step_scalars scalars;
    fr_run_totals totals;
    int64_t micro_batches;  /* of each shard in this step */
    float loss_scale;
    double loss, gradient_norm;
    int64_t step_start_ns;
    double micro_seconds;   /* wall time of the slowest micro-batch of the last step, or as forecast; 0 = unknown */
    double update_seconds;  /* of the slowest update so far, or as forecast */
    double save_seconds;    /* of the slowest save so far */
    int64_t loader_row;     /* before this step's rows were taken; -1: none were */
    bool data_repeats;      /* said so already */
    int64_t saved_step;     /* of the newest checkpoint; -1: none */
    int64_t failed_saves;
    fr_time_parts time;     /* of this process; a resumed run counts from its resume */
    double peak_flops;      /* 0: not measured */
    double last_val_bpb;    /* of the periodic evaluation; NaN: none */
    fr_error failure;
    fr_step_log log;
    char recipe_sha256[65], recipe_file_sha256[65], tokenizer_sha256[65], binary_sha256[65];
    char *record;           /* run.json as last written */
    const char *final_status; /* after finish: "finished", "stopped", "failed" */
};

/* Marks the session as failed and returns the status, so that every later call repeats the reason. */
fr_status fr_session_fail(fr_session *session, fr_status status, const fr_error *error);
/* A path inside the run folder. */
char *fr_session_path(const fr_session *session, const char *name, char out[1024]);

/* ---- session_step.c ---- */
/* Arguments of one run of the plan by worker `worker` on what its staging holds. */
typedef struct fr_micro_run {
    fr_run_args args;
    fr_binding inputs[3 + FR_MOST_RUN_SCALARS];
} fr_micro_run;
void fr_session_micro_run(const fr_session *session, int worker, float *gradients, bool accumulate, fr_micro_run *run);
/* Copies the rows of a micro-batch into the worker's staging. */
void fr_session_stage(const fr_session *session, int worker, int64_t shard, int64_t micro);

/* ---- session_save.c ---- */
fr_status fr_session_save(fr_session *session, fr_error *error);
/* Loads the newest checkpoint of the run folder; *found false: there is none. */
fr_status fr_session_restore(fr_session *session, bool *found, fr_error *error);
int64_t fr_session_checkpoint_bytes(const fr_graph *graph, int64_t optimizer_bytes);

/* ---- session_memory.c ---- */
fr_status fr_session_check_memory(fr_session *session, fr_error *error);

/* ---- failure.c ---- */
/* The loss or gradient of this step is bad: finds out where, writes the batch, fails the session. */
fr_status fr_session_diagnose(fr_session *session, fr_error *error);

/* ---- run_record.c ---- */
fr_status fr_run_record_identify(fr_session *session, fr_error *error); /* hashes of recipe, tokenizer, binary */
fr_status fr_run_record_write(fr_session *session, const char *status, fr_error *error);

#endif
