/* session_forecast.c: what the budget will buy, told before it is spent.
 *
 * One micro-batch is timed on every thread at once (real weights, made-up ids, gradients into buffers that
 * the first step will overwrite), the optimizer on scratch of its own: neither weights nor state nor loader
 * move. A step is then composed: rounds of shards, the sums between them, the update and the fresh copies
 * for the kernels. When fewer than 50 steps fit, schedules are too coarse to learn from, and the advice
 * names a batch or a depth that fits.
 */
#include "train/session.h"

#include "train/optimizer.h"
#include "train/timing.h"

#include <math.h>
#include <string.h>

enum { FEW_STEPS = 50 };

typedef struct trial {
    fr_session *session;
    fr_error failure;
    _Atomic bool failed;
} trial;

/* Any ids will do: no operator's time depends on them. */
static void stage_made_up_rows(const fr_session *session, int worker)
{
    int64_t count = session->shape.micro_rows * session->shape.T;
    uint64_t vocab = (uint64_t)fr_tokenizer_vocab(fr_corpus_tokenizer(session->corpus));
    fr_rng rng = {.seed = 1, .stream = (uint64_t)worker};
    for (int64_t i = 0; i < 2 * count; i++)
        session->staging[worker][i] = (int32_t)fr_rng_below(&rng, vocab);
}

static void run_trial(void *context, int64_t index, int thread)
{
    (void)thread;
    trial *t = context;
    fr_micro_run run;
    fr_error failure = {0};
    stage_made_up_rows(t->session, (int)index);
    fr_session_micro_run(t->session, (int)index, t->session->shards.memory[index], false, &run);
    if (fr_plan_run(t->session->plan, &run.args, &failure) != FR_OK && !atomic_exchange(&t->failed, true))
        t->failure = failure;
}

static fr_status run_all(trial *t, fr_error *error)
{
    fr_session *session = t->session;
    if (session->operators)
        run_trial(t, 0, 0);
    else
        fr_pool_for(session->pool, session->workers, run_trial, t);
    if (!atomic_load(&t->failed))
        return FR_OK;
    if (error)
        *error = t->failure;
    return t->failure.status;
}

/* The first run touches fresh pages and makes the library plan; it counts only when it is too slow to repeat. */
static fr_status time_micro_batch(fr_session *session, double *seconds, fr_error *error)
{
    trial t = {.session = session};
    for (int round = 0; round < 2; round++) {
        int64_t start = fr_monotonic_ns();
        FR_TRY(run_all(&t, error));
        *seconds = (double)(fr_monotonic_ns() - start) * 1e-9;
        if (*seconds > 5)
            break;
    }
    return FR_OK;
}

static double time_copies(fr_session *session)
{
    int64_t start = fr_monotonic_ns();
    fr_prepared_refresh(session->prepared, session->parameters, session->pool);
    return (double)(fr_monotonic_ns() - start) * 1e-9;
}

/* Seconds of one sum of two gradient vectors. Both hold nothing that is needed. */
static double time_sum(fr_session *session)
{
    if (session->shards.buffers < 2)
        return 0;
    int64_t start = fr_monotonic_ns();
    fr_vector_add(session->shards.memory[0], session->shards.memory[1], session->shards.elements, NULL);
    return (double)(fr_monotonic_ns() - start) * 1e-9;
}

static double step_seconds(const fr_session *session, const fr_forecast *f, double sum, double copies)
{
    int64_t shards = session->shape.shards, workers = session->workers;
    int64_t micro = fr_batch_micro_batches(&session->shape, session->options.recipe.optim.batch_tokens);
    int64_t rounds = (shards + workers - 1) / workers;
    double sums = sum * (double)(shards - 1) / (double)workers;
    return (double)(rounds * micro) * f->micro_batch_seconds + sums + f->optimizer_seconds + copies;
}

/* Steps that `budget` seconds buy when a step takes `seconds`, or the step limit. */
static double steps_within(const fr_session *session, double seconds)
{
    double budget = fr_clock_budget(session->clock);
    int64_t most = session->options.recipe.clock.max_steps;
    double steps = budget > 0 ? floor((budget - session->options.clock.reserve) / seconds) : (double)most;
    if (most > 0 && steps > (double)most)
        steps = (double)most;
    return steps > 0 ? steps : 0;
}

static double seconds_of_a_step(const fr_session *session, const fr_forecast *f)
{
    /* Under an invented clock the budget is spent in its seconds; real ones only say how long one waits. */
    if (session->options.clock.kind == FR_CLOCK_VIRTUAL)
        return session->options.clock.seconds_per_step;
    return f->seconds_per_step;
}

/* ---- advice ---- */

/* Step time with a batch of `tokens`: what is not micro-batches stays. */
static double scaled_by_batch(const fr_session *session, const fr_forecast *f, int64_t tokens, double fixed)
{
    double share = (double)tokens / (double)session->options.recipe.optim.batch_tokens;
    return fixed + (f->seconds_per_step - fixed) * share;
}

static int64_t batch_that_fits(const fr_session *session, const fr_forecast *f, double fixed)
{
    int64_t unit = session->shape.T * session->shape.shards;
    for (int64_t tokens = session->options.recipe.optim.batch_tokens / 2 / unit * unit; tokens >= unit;
         tokens = tokens / 2 / unit * unit)
        if (steps_within(session, scaled_by_batch(session, f, tokens, fixed)) >= FEW_STEPS)
            return tokens;
    return 0;
}

static int64_t depth_that_fits(const fr_session *session, const fr_forecast *f)
{
    int64_t vocab = fr_tokenizer_vocab(fr_corpus_tokenizer(session->corpus));
    fr_recipe recipe = session->options.recipe;
    fr_model_size full, small;
    if (session->options.model || fr_model_measure(&recipe, vocab, &full, NULL) != FR_OK)
        return 0;
    for (recipe.model.depth--; recipe.model.depth > 0; recipe.model.depth--) {
        if (fr_recipe_check(&recipe, NULL) != FR_OK ||
            fr_model_measure(&recipe, vocab, &small, NULL) != FR_OK)
            continue;
        if (steps_within(session, f->seconds_per_step * small.flops_per_token / full.flops_per_token) >=
            FEW_STEPS)
            return recipe.model.depth;
    }
    return 0;
}

/* A smaller step buys more steps only where time is measured. */
static bool time_is_measured(const fr_session *session)
{
    return session->options.clock.kind == FR_CLOCK_WALL;
}

static void advise(const fr_session *session, fr_forecast *f, double fixed)
{
    f->few_steps =
        session->options.clock.kind != FR_CLOCK_REPLAY && fr_clock_budget(session->clock) > 0 &&
        f->steps < FEW_STEPS &&
        !(session->options.recipe.clock.max_steps > 0 && session->options.recipe.clock.max_steps < FEW_STEPS);
    if (!f->few_steps)
        return;
    int64_t tokens = time_is_measured(session) ? batch_that_fits(session, f, fixed) : 0;
    int64_t depth = time_is_measured(session) ? depth_that_fits(session, f) : 0;
    const char *otherwise =
        time_is_measured(session) ? "raise the budget or choose a much smaller model" : "raise the budget";
    char batch[100] = "", smaller[100] = "";
    if (tokens > 0)
        snprintf(batch, sizeof batch, "optim.batch_tokens=%lld gives %.0f", (long long)tokens,
                 steps_within(session, scaled_by_batch(session, f, tokens, fixed)));
    if (depth > 0)
        snprintf(smaller, sizeof smaller, "%smodel.depth=%lld fits", tokens > 0 ? ", " : "",
                 (long long)depth);
    snprintf(f->advice, sizeof f->advice, "only %.0f steps fit into the budget, too few to learn from: %s%s",
             f->steps, tokens > 0 || depth > 0 ? batch : otherwise, smaller);
}

fr_status fr_session_forecast(fr_session *session, fr_forecast *f, fr_error *error)
{
    if (session->state != FR_SESSION_READY)
        return fr_error_set(error, FR_BAD_USAGE, "fr_session_forecast", NULL,
                            "a forecast is made between steps");
    *f = (fr_forecast){
        .params = fr_graph_parameter_elements(session->graph),
        .arena_bytes = (int64_t)fr_plan_arena_bytes(session->plan) * session->workers,
        .memory_bytes = session->memory_bytes,
        .memory_available = (double)session->memory_available,
        .batch_tokens = session->options.recipe.optim.batch_tokens,
        .micro_rows = session->shape.micro_rows,
        .shards = session->shape.shards,
    };
    FR_TRY(time_micro_batch(session, &f->micro_batch_seconds, error));
    FR_TRY(fr_optimizer_time(session->optimizer, &f->optimizer_seconds, error));
    double copies = time_copies(session);
    f->seconds_per_step = step_seconds(session, f, time_sum(session), copies);
    session->micro_seconds = f->micro_batch_seconds;
    session->update_seconds = f->optimizer_seconds + copies;
    f->steps = steps_within(session, seconds_of_a_step(session, f));
    f->tokens = f->steps * (double)f->batch_tokens;
    int64_t epoch = fr_loader_epoch_tokens(session->loader);
    f->epochs = epoch > 0 ? f->tokens / (double)epoch : NAN;
    advise(session, f, f->optimizer_seconds + copies);
    return FR_OK;
}
