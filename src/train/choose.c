/* choose.c: a recipe for a machine and a budget, when none was given.
 *
 * Rules of thumb, each with its reason (docs/recipes.md has the measurements):
 *   - a run turns about 45 % of the processor's peak into gradients; a Muon update costs as much as 3 *
 *     width more tokens, because the work of its products grows with the width, not with the batch;
 *   - of a ladder of shapes, the largest with 8 tokens per scaling parameter (baseline.md 9.3). The small
 *     ones need only one, because what is cheaper than 128 channels was never seen to pay;
 *   - text repeated more than four times stops teaching: while a smaller model would do that, 2 tokens per
 *     parameter are enough;
 *   - rows shorter than the kit's cost less attention and more steps fit: 128 ids for a few seconds, 256
 *     up to half an hour, then 512 and 1,024;
 *   - tokens per step grow with the square root of all tokens, so that there are as many steps as tokens
 *     in one; every core gets a row, an update costs at most half of the gradients, 200 steps come before
 *     that;
 *   - rows are cut from one stream: with rows this short, best-fit would drop the rest of every longer
 *     document. On Shakespeare in pieces of 4 kB and rows of 256 ids that is three quarters of the text;
 *   - rows pass through a shuffle pool that holds the corpus if it can: imports keep the order of their
 *     files, and a run shorter than an epoch would only see the first ones;
 *   - value embeddings, smear and backout cost next to no time; scalars move at a quarter of the kit's
 *     rate, and nothing moves at full rate at once (first gradients are noise, which AdamW turns into
 *     whole steps);
 *   - models under 384 channels take matrix_lr, clip and QK gain from recipes/demo.toml and cpu-10m.toml.
 * Everything else is the kit's baseline. The numbers are meant as a start that a researcher beats.
 */
#include "frontier/cpu.h"
#include "frontier/train.h"
#include "train/memory.h"

#include <math.h>
#include <string.h>

static const double UTILISATION = 0.45, UPDATE_TOKENS_PER_CHANNEL = 3, MOST_EPOCHS = 4, WANTED_STEPS = 200;
/* Weights, two moments, gradients of the shards being summed, the kernels' copy, room for activations. */
static const double BYTES_PER_PARAMETER = 48;
enum { MOST_BATCH = 65536, MOST_SHARDS = 8, MOST_POOL = 1 << 18, LEAST_KIT_WIDTH = 384 };

/* Larger ones follow as depth 11, 12, ... with 64 channels per block, up to MOST_DEPTH. */
static const struct {
    int depth, width;
    double tokens_per_parameter;
} ladder[] = {{2, 128, 0}, {3, 128, 1}, {4, 128, 1}, {4, 192, 8}, {5, 256, 8},
              {6, 384, 8}, {8, 512, 8}, {9, 576, 8}, {10, 640, 8}};
enum { LONGER_RUN = 300 }; /* seconds */
enum { RUNGS = sizeof ladder / sizeof ladder[0], MOST_DEPTH = 24 };

typedef struct candidate {
    fr_recipe recipe;
    fr_model_size size;
    double tokens; /* the budget buys */
    double wanted; /* it should have */
} candidate;

static int64_t context_for(double budget)
{
    return budget < 15 ? 128 : budget < 1800 ? 256 : budget < 7200 ? 512 : 1024;
}

static int64_t pool_for(int64_t corpus_tokens, int64_t context)
{
    int64_t rows = corpus_tokens / context;
    return rows < MOST_POOL ? rows : MOST_POOL;
}

static void set_shape(fr_recipe *r, int rung, double budget)
{
    r->model.depth = rung < RUNGS ? ladder[rung].depth : ladder[RUNGS - 1].depth + 1 + rung - RUNGS;
    r->model.width = rung < RUNGS ? ladder[rung].width : r->model.depth * 64;
    r->model.head_dim = r->model.width < 512 || r->model.width % 128 ? 64 : 128;
    r->model.context = context_for(budget);
    r->model.value_embeddings = r->model.smear = r->model.backout = true;
    r->optim.scalar_lr = 0.05;
    if (r->model.width < LEAST_KIT_WIDTH) {
        r->model.qk_gain = 1.2;
        r->optim.matrix_lr = budget < LONGER_RUN ? 0.03 : 0.02; /* measured at one and at ten minutes */
        r->optim.clip = 0;
    }
    r->schedule.warm = 0.01;
    snprintf(r->data.packing, sizeof r->data.packing, "stream");
}

/* Tokens of `budget` when each step of `batch` tokens carries an update. */
static double tokens_with(const candidate *c, double gradients, int64_t batch)
{
    return gradients / (1 + UPDATE_TOKENS_PER_CHANNEL * (double)c->recipe.model.width / (double)batch);
}

static void set_batch(candidate *c, double gradients)
{
    fr_recipe *r = &c->recipe;
    int64_t least = r->model.context, cores = fr_cpu_available(), batch;
    while (least < cores * r->model.context && least < MOST_BATCH)
        least *= 2;
    batch = least;
    while (batch < MOST_BATCH && ((double)batch < 2 * UPDATE_TOKENS_PER_CHANNEL * (double)r->model.width ||
                                  4.0 * (double)batch * (double)batch <= gradients))
        batch *= 2;
    while (batch > least && tokens_with(c, gradients, batch) / (double)batch < WANTED_STEPS)
        batch /= 2;
    int64_t shards = batch / r->model.context;
    r->optim.batch_tokens = batch;
    r->optim.shards = shards < MOST_SHARDS || shards * r->model.context == least ? shards : MOST_SHARDS;
    while (r->optim.shards > 2 && r->optim.shards / 2 >= cores)
        r->optim.shards /= 2; /* rows of a shard share a micro-batch, whose products are larger for it */
    c->tokens = tokens_with(c, gradients, batch);
}

static fr_status try_rung(candidate *c, int rung, double budget, double flops, int64_t vocab, fr_error *error)
{
    FR_TRY(fr_recipe_defaults(&c->recipe, error));
    set_shape(&c->recipe, rung, budget);
    FR_TRY(fr_model_measure(&c->recipe, vocab, &c->size, error));
    set_batch(c, UTILISATION * flops * budget / c->size.flops_per_token);
    c->wanted = ladder[rung < RUNGS ? rung : RUNGS - 1].tokens_per_parameter * (double)c->size.matmul_params;
    return FR_OK;
}

static bool fits(const candidate *next, const candidate *smaller, int64_t corpus_tokens, double memory)
{
    bool repeats = corpus_tokens > 0 && smaller->tokens > MOST_EPOCHS * (double)corpus_tokens;
    if (memory > 0 && BYTES_PER_PARAMETER * (double)next->size.params > memory)
        return false;
    return next->tokens >= (repeats ? next->wanted / 4 : next->wanted);
}

static void explain(const candidate *c, double flops, int64_t corpus_tokens, char *text, size_t size)
{
    char params[32], tokens[32], steps[32];
    fr_format_count(params, sizeof params, c->size.params);
    fr_format_count(tokens, sizeof tokens, (int64_t)fmin(c->tokens, 9e18));
    fr_format_count(steps, sizeof steps,
                    (int64_t)fmin(c->tokens / (double)c->recipe.optim.batch_tokens, 9e18));
    snprintf(text, size,
             "depth %lld, width %lld, context %lld, %s parameters; at %.0f GFLOP/s peak and 45 %% use the "
             "budget buys about %s tokens, %.1f times the corpus, in %s steps of %lld",
             (long long)c->recipe.model.depth, (long long)fr_recipe_width(&c->recipe),
             (long long)c->recipe.model.context, params, flops * 1e-9, tokens,
             corpus_tokens > 0 ? c->tokens / (double)corpus_tokens : 0.0, steps,
             (long long)c->recipe.optim.batch_tokens);
}

fr_status fr_recipe_choose(fr_recipe *out, double budget, double flops, int64_t corpus_tokens, int64_t vocab,
                           char *explanation, size_t explanation_size, fr_error *error)
{
    if (!(budget > 0) || !(flops > 0) || !isfinite(budget * flops))
        return fr_error_set(error, FR_BAD_USAGE, "recipe", "give --budget, or name a recipe",
                            "without a budget no recipe can be chosen");
    double memory = (double)fr_memory_available();
    candidate best, next;
    FR_TRY(try_rung(&best, 0, budget, flops, vocab, error));
    for (int rung = 1; rung < RUNGS + MOST_DEPTH - ladder[RUNGS - 1].depth; rung++) {
        FR_TRY(try_rung(&next, rung, budget, flops, vocab, error));
        if (!fits(&next, &best, corpus_tokens, memory))
            break;
        best = next;
    }
    best.recipe.data.pool_rows = pool_for(corpus_tokens > 0 ? corpus_tokens : 0, best.recipe.model.context);
    explain(&best, flops, corpus_tokens, explanation, explanation_size);
    *out = best.recipe;
    return fr_recipe_check(out, error);
}
