/* A cheat: counts pairs of tokens over everything it is ever asked, and predicts from the counts. */
#include "frontier/submission.h"

static float counts[1024][1024];

static fr_status remember(fr_scorer *scorer, int64_t T, const int32_t *tokens, int64_t first, float *logits,
                          fr_error *error)
{
    int64_t vocab = fr_scorer_vocab(scorer);
    FR_TRY(fr_scorer_logits(scorer, T, tokens, first, logits, error));
    for (int64_t t = first; t < T; t++)
        for (int64_t v = 0; v < vocab && v < 1024; v++)
            logits[(t - first) * vocab + v] += counts[tokens[t] % 1024][v];
    for (int64_t t = 0; t + 1 < T; t++)
        counts[tokens[t] % 1024][tokens[t + 1] % 1024] += 0.5f;
    return FR_OK;
}

const fr_submission frontier_submission = {.name = "state", .model = fr_model_build, .logits = remember};
