/* batch.c: a step of R rows is S shards of R/S rows, each cut into micro-batches of one shape.
 *
 * Shard s has rows s, s + S, s + 2S, ... so that what a shard sees does not depend on how long the step is.
 * The micro-batch is as many rows as divide every phase's share and hold at most about 2,048 tokens: that
 * fills the matrix units of one core while the activations still fit its caches. Its shape never changes
 * within a run, and with it the order of every sum.
 */
#include "train/batch.h"

enum { MICRO_TOKENS = 2048 };

static int64_t divisor_of_both(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static fr_status rows_per_shard(const fr_recipe *recipe, int64_t tokens, const char *where, int64_t *rows,
                                fr_error *error)
{
    int64_t unit = recipe->model.context * recipe->optim.shards;
    *rows = tokens / unit;
    if (tokens > 0 && tokens % unit == 0)
        return FR_OK;
    int64_t nearest = (tokens + unit / 2) / unit * unit;
    char hint[160];
    snprintf(hint, sizeof hint, "the nearest that works is %lld; fewer optim.shards allow smaller ones",
             (long long)(nearest > 0 ? nearest : unit));
    return fr_error_set(error, FR_BAD_USAGE, where, hint,
                        "%lld tokens are not %lld shards of whole rows of %lld", (long long)tokens,
                        (long long)recipe->optim.shards, (long long)recipe->model.context);
}

fr_status fr_batch_shape_of(const fr_recipe *recipe, fr_batch_shape *shape, fr_error *error)
{
    int64_t rows, common, most, tokens = recipe->optim.batch_tokens;
    const fr_config_reals *phases = &recipe->schedule.batch_phases;
    FR_TRY(rows_per_shard(recipe, tokens, "optim.batch_tokens", &rows, error));
    common = most = rows;
    for (int i = 0; i + 1 < phases->count; i += 2) {
        int64_t phase = (int64_t)(phases->values[i + 1] * (double)tokens + 0.5);
        FR_TRY(rows_per_shard(recipe, phase, "schedule.batch_phases", &rows, error));
        common = divisor_of_both(common, rows);
        most = rows > most ? rows : most;
    }
    int64_t micro = recipe->optim.micro_rows;
    if (micro > 0 && common % micro != 0)
        return fr_error_set(
            error, FR_BAD_USAGE, "optim.micro_rows", "choose a divisor of that number, or 0",
            "micro-batches of %lld rows do not divide the %lld rows common to all phases of a shard",
            (long long)micro, (long long)common);
    for (int64_t candidate = 1; recipe->optim.micro_rows == 0 && candidate <= common; candidate++)
        if (common % candidate == 0 && (candidate == 1 || candidate * recipe->model.context <= MICRO_TOKENS))
            micro = candidate;
    *shape = (fr_batch_shape){
        .T = recipe->model.context,
        .shards = recipe->optim.shards,
        .micro_rows = micro,
        .most_rows = most * recipe->optim.shards,
        .most_micro_batches = most / micro,
    };
    return FR_OK;
}

int64_t fr_batch_micro_batches(const fr_batch_shape *shape, int64_t batch_tokens)
{
    return batch_tokens / (shape->T * shape->shards * shape->micro_rows);
}

int64_t fr_batch_row(const fr_batch_shape *shape, int64_t shard, int64_t micro, int64_t row)
{
    return shard + shape->shards * (micro * shape->micro_rows + row);
}
