/* choose.c: a recipe for a machine and a budget, when none was given.
 *
 * Rules of thumb, each with its reason:
 *   - a run turns about 45 % of the processor's peak into training, so F = 0.45 * peak * budget is what there is;
 *   - a model wants 8 to 12 tokens per scaling parameter (baseline.md 9.3); larger ones use the processor better, so take
 *     the deepest whose horizon F / flops_per_token reaches 8;
 *   - text repeated more than four times stops teaching: while the smaller model would do that, go on to 2 tokens
 *     per parameter;
 *   - rows shorter than the kit's cost less attention and more steps fit: 256 ids for seconds, 512 for minutes,
 *     1,024 beyond;
 *   - about a thousand updates are worth having before bigger batches are: the batch is the power of two below a
 *     thousandth of the tokens, between 4,096 and the kit's 65,536;
 *   - heads of 64 channels below width 512, so that small models have several;
 *   - rows are cut from one stream: with rows this short, best-fit would drop the rest of every longer document. On
 *     Shakespeare in pieces of 4 kB and rows of 256 ids that is three quarters of the text.
 * Everything else is the kit's baseline. The numbers are meant as a start that a researcher beats.
 */
#include "frontier/train.h"

#include <math.h>
#include <string.h>

static const double UTILISATION = 0.45, TOKENS_PER_PARAMETER = 8, MOST_EPOCHS = 4, WANTED_STEPS = 1000;
enum { LEAST_BATCH = 4096, MOST_BATCH = 65536, MOST_DEPTH = 24 };

typedef struct candidate {
    fr_recipe recipe;
    fr_model_size size;
    double tokens; /* the budget buys */
} candidate;

static int64_t context_for(double budget)
{
    return budget < 180 ? 256 : budget < 1200 ? 512 : 1024;
}

static fr_status try_depth(candidate *c, int64_t depth, double budget, double flops, int64_t vocab,
                           fr_error *error)
{
    FR_TRY(fr_recipe_defaults(&c->recipe, error));
    c->recipe.model.depth = depth;
    c->recipe.model.context = context_for(budget);
    snprintf(c->recipe.data.packing, sizeof c->recipe.data.packing, "stream");
    if (depth * c->recipe.model.aspect < 512)
        c->recipe.model.head_dim = 64;
    FR_TRY(fr_model_measure(&c->recipe, vocab, &c->size, error));
    c->tokens = UTILISATION * flops * budget / c->size.flops_per_token;
    return FR_OK;
}

static bool fits(const candidate *next, const candidate *smaller, int64_t corpus_tokens)
{
    double wanted = TOKENS_PER_PARAMETER * (double)next->size.matmul_params,
           most = MOST_EPOCHS * (double)corpus_tokens;
    bool repeats = corpus_tokens > 0 && smaller->tokens > most;
    return next->tokens >= wanted || (repeats && next->tokens >= wanted / 4);
}

static void set_batch(candidate *c)
{
    int64_t batch = LEAST_BATCH, unit = c->recipe.model.context;
    while (batch < MOST_BATCH && (double)(batch * 2) * WANTED_STEPS <= c->tokens)
        batch *= 2;
    c->recipe.optim.batch_tokens = batch;
    while (c->recipe.optim.shards > 1 && batch % (unit * c->recipe.optim.shards))
        c->recipe.optim.shards /= 2;
}

fr_status fr_recipe_choose(fr_recipe *out, double budget, double flops, int64_t corpus_tokens, int64_t vocab,
                           char *explanation, size_t explanation_size, fr_error *error)
{
    if (!(budget > 0) || !(flops > 0) || !isfinite(budget * flops))
        return fr_error_set(error, FR_BAD_USAGE, "recipe", "give --budget, or name a recipe",
                            "without a budget no recipe can be chosen");
    candidate best, next;
    FR_TRY(try_depth(&best, 1, budget, flops, vocab, error));
    for (int64_t depth = 2; depth <= MOST_DEPTH; depth++) {
        FR_TRY(try_depth(&next, depth, budget, flops, vocab, error));
        if (!fits(&next, &best, corpus_tokens))
            break;
        best = next;
    }
    set_batch(&best);
    char params[32], tokens[32];
    fr_format_count(params, sizeof params, best.size.params);
    fr_format_count(tokens, sizeof tokens, (int64_t)fmin(best.tokens, 9e18));
    snprintf(explanation, explanation_size,
             "depth %lld, width %lld, context %lld, %s parameters; at %.0f GFLOP/s peak and 45 %% use the "
             "budget buys about %s tokens, %.1f times the corpus, in steps of %lld",
             (long long)best.recipe.model.depth, (long long)fr_recipe_width(&best.recipe),
             (long long)best.recipe.model.context, params, flops * 1e-9, tokens,
             corpus_tokens > 0 ? best.tokens / (double)corpus_tokens : 0.0,
             (long long)best.recipe.optim.batch_tokens);
    *out = best.recipe;
    return fr_recipe_check(out, error);
}
