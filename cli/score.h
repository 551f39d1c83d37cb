/* cli/score.h: scoring a run folder, whoever trained it. */
#ifndef FRONTIER_CLI_SCORE_H
#define FRONTIER_CLI_SCORE_H
#include "cli.h"
#include "frontier/eval.h"
#include "frontier/submission.h"

/* A run opened for questions: the library's scorer, or the program a submission was trained by. */
typedef struct cli_scored {
    fr_scorer *scorer;   /* NULL when a program answers */
    fr_program *program; /* NULL when the library does */
    fr_recipe recipe;
    fr_tokenizer *tokenizer;
    bool foreign; /* a Hugging Face folder, scored as it is */
    char folder[1024];
    int threads;
    const char *numerics; /* NULL: the recipe's */
} cli_scored;
fr_status cli_scored_open(cli_scored *scored, const char *run_folder, int threads, const char *numerics,
                          fr_error *error);
/* The same for commands that take RUN, or --hf FOLDER in its place; with --threads and --numerics. */
fr_status cli_scored_open_asked(cli_scored *scored, const cli_run *run, fr_error *error);
#define CLI_OPTION_HF                                                                                     \
    {                                                                                                     \
        "hf", CLI_PATH, "FOLDER", NULL, "score a Hugging Face folder in place of a run", false, false     \
    }
void cli_scored_release(cli_scored *scored);
/* The same run opened anew: nothing that was asked before is remembered. */
fr_status cli_scored_restart(cli_scored *scored, fr_error *error);
const fr_tokenizer *cli_scored_tokenizer(const cli_scored *scored);
/* Names what answers: weights, recipe, program if there is one, and numerics. */
fr_status cli_scored_hash(const cli_scored *scored, char hex[65], fr_error *error);
fr_status cli_scored_logits(void *scored, int64_t T, const int32_t *tokens, int64_t first, float *logits,
                            fr_error *error);
fr_status cli_scored_nats(void *scored, int64_t rows, int64_t T, const int32_t *inputs, const int32_t *targets,
                          float *nats, fr_error *error);

fr_status cli_scored_bpb(cli_scored *scored, const fr_corpus *corpus, const fr_bpb_options *options,
                         fr_bpb_result *result, fr_error *error);
/* Refuses a data folder that was tokenized differently. */
fr_status cli_scored_fits(const cli_scored *scored, const fr_corpus *corpus, fr_error *error);
fr_status cli_scored_sample(cli_scored *scored, const char *prompt, const fr_sample_options *options,
                            fr_text_sink emit, void *context, fr_finish *finish, fr_error *error);

#endif
