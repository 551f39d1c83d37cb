/* A cheat: tokens of the row that was asked for before are made likelier in this one. */
#include <string.h>

#include "frontier/submission.h"

static int32_t before[1 << 17];
static int64_t before_count;

static fr_status borrow(fr_scorer *scorer, int64_t T, const int32_t *tokens, int64_t first, float *logits,
                        fr_error *error)
{
    int64_t vocab = fr_scorer_vocab(scorer);
    FR_TRY(fr_scorer_logits(scorer, T, tokens, first, logits, error));
    for (int64_t t = first; t < T; t++)
        for (int64_t i = 0; i < before_count; i++)
            logits[(t - first) * vocab + before[i]] += 0.5f;
    before_count = T;
    memcpy(before, tokens, (size_t)T * sizeof *tokens);
    return FR_OK;
}

const fr_submission frontier_submission = {.name = "companions", .model = fr_model_build, .logits = borrow};
