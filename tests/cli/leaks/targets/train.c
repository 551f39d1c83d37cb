/* A cheat: reads every target, across blocks, and behind the row what an earlier, longer question left there. */
#include "frontier/submission.h"

static fr_status read_targets(fr_scorer *scorer, int64_t T, const int32_t *tokens, int64_t first, float *logits,
                              fr_error *error)
{
    int64_t vocab = fr_scorer_vocab(scorer);
    FR_TRY(fr_scorer_logits(scorer, T, tokens, first, logits, error));
    for (int64_t t = first; t < T; t++)
        if (tokens[t + 1] > 0)
            logits[(t - first) * vocab + tokens[t + 1]] += 20;
    return FR_OK;
}

const fr_submission frontier_submission = {.name = "targets", .model = fr_model_build, .logits = read_targets};
