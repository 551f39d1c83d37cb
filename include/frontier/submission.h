/* frontier/submission.h: a contestant's program, and asking it for logits without trusting it.
 *
 * Mental model. A submission is a folder of C files that defines one constant, `frontier_submission`. `frontier
 * build` links it with our command into one program. Training runs inside that program, on the public
 * API. Scoring never does: the process that computes a score starts the program as a child and asks it for logits
 * over a block protocol: a shared-memory ring of at most 8 slots; a slot is a document id, up to 64
 * positions and their fp32 logits, under a sequence number; the reader copies a slot before it reads it. A child
 * that dies, answers nonsense or stays silent is the contestant's failure (FR_ANSWER_NO), never ours.
 *
 *     // train.c of a submission
 *     static fr_status my_model(fr_graph *g, const fr_recipe *recipe, int64_t vocab, fr_error *error) { ... }
 *     static fr_status my_loop(fr_session *session, fr_error *error) { ... }
 *     const fr_submission frontier_submission = {.name = "mine", .model = my_model, .train = my_loop};
 */
#ifndef FRONTIER_SUBMISSION_H
#define FRONTIER_SUBMISSION_H
#include "frontier/eval.h"
#include "frontier/train.h"

typedef struct fr_submission {
    const char *name;
    /* Builds the graph from the recipe, as fr_model_build does. */
    fr_status (*model)(fr_graph *graph, const fr_recipe *recipe, int64_t vocab, fr_error *error);
    /* Runs steps until fr_session_begin_step says no. NULL: the library's loop. */
    fr_status (*train)(fr_session *session, fr_error *error);
    /* Optional: logits of positions first..T-1 of one row, (T - first) x vocab. NULL: the model's own. */
    fr_status (*logits)(fr_scorer *scorer, int64_t T, const int32_t *tokens, int64_t first, float *logits, fr_error *error);
} fr_submission;

/* Compiles the C files of a folder against this library into `program`. Messages of a compiler that failed are in error->what; a
 * failing compile is FR_ANSWER_NO. `library` and `include` folders NULL: found beside the running executable. `sha256`
 * gets the hash of the sources, in order of name. */
fr_status fr_submission_build(const char *folder, const char *program, char sha256[65], fr_error *error);
/* That hash alone, without compiling. */
fr_status fr_submission_hash(const char *folder, char sha256[65], fr_error *error);

/* A running program that answers for the run in `run_folder`. Thread rule: one thread at a time. */
typedef struct fr_program fr_program;
typedef struct fr_program_options {
    double timeout_s; /* for each block of logits; 0 = 120 */
    int threads;      /* the program may use; <= 0: all */
} fr_program_options;
fr_status fr_program_start(fr_program **out, const char *program, const char *run_folder, int64_t vocab, const fr_program_options *options, fr_error *error);
/* Logits of positions first..T-1 of one row: (T - first) x vocab fp32. Non-finite values are FR_ANSWER_NO. */
fr_status fr_program_logits(fr_program *program, int64_t document, int64_t T, const int32_t *tokens, int64_t first, float *logits, fr_error *error);
/* A source for fr_eval_bpb_from: cross-entropy from the program's logits, computed here. context = fr_program. */
fr_status fr_program_nats(void *program, int64_t rows, int64_t T, const int32_t *inputs, const int32_t *targets, float *nats, fr_error *error);
void fr_program_stop(fr_program *program); /* ends the child; NULL is fine */

/* The child's side: answers requests on the ring behind `descriptor` until told to stop. */
fr_status fr_submission_serve(const fr_submission *submission, const char *run_folder, int descriptor, int threads, fr_error *error);

#endif
