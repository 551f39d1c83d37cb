/* Scoring rows of tokens with given weights, bit for bit the same however they are batched.
 *
 * A row is always run alone, in a plan of one row, so its result cannot depend on its neighbours. Many rows
 * go to the threads whole, each thread with an arena of its own; a few rows are run one after the other, with
 * every operator split over the threads, which by the executor's rule changes no bit either. Row lengths are
 * rounded up to powers of two (at most the context): causality makes the padding behind a row invisible, and
 * a handful of plans serves every length. Plans are kept, the least recently used makes room.
 */
#include "model/scorer.h"

#include <string.h>

/* ---- plans ------------------------------------------------------------------------------------------ */

static int64_t padded_length(const fr_scorer *scorer, int64_t T)
{
    int64_t context = scorer->recipe.model.context, length = 64;
    if (T >= context)
        return T;
    while (length < T)
        length *= 2;
    return length < context ? length : context;
}

static fr_status make_plan(const fr_scorer *scorer, int64_t T, const char *given, const char *output,
                           fr_plan **plan, fr_error *error)
{
    const char *outputs[] = {output}, *givens[] = {given};
    fr_plan_options options = {.extent = {.rows = 1, .T = T},
                               .numerics = scorer->numerics,
                               .outputs = outputs,
                               .output_count = 1,
                               .given = givens,
                               .given_count = given != NULL,
                               .residual_bf16 = fr_recipe_residual_bf16(&scorer->recipe),
                               .kernels = scorer->kernels};
    return fr_plan_create(plan, scorer->graph, &options, error);
}

/* Every thread's arena serves every plan: grown to the largest. */
static fr_status grow_arenas(fr_scorer *scorer, size_t bytes, fr_error *error)
{
    if (bytes <= scorer->arena_bytes)
        return FR_OK;
    scorer->arena_bytes = 0;
    for (int i = 0; i < scorer->threads; i++) {
        fr_deallocate(scorer->arenas[i]);
        scorer->arenas[i] = fr_allocate(bytes);
        if (!scorer->arenas[i])
            return fr_error_memory(error, bytes, "scoring");
    }
    scorer->arena_bytes = bytes;
    return FR_OK;
}

/* Padded ids of one row per thread: inputs, then targets. */
static fr_status grow_ids(fr_scorer *scorer, int64_t T, fr_error *error)
{
    if (T <= scorer->ids_length)
        return FR_OK;
    size_t bytes = (size_t)scorer->threads * 2 * (size_t)T * sizeof(int32_t);
    int32_t *ids = fr_allocate(bytes);
    if (!ids)
        return fr_error_memory(error, bytes, "scoring");
    fr_deallocate(scorer->ids);
    scorer->ids = ids;
    scorer->ids_length = T;
    return FR_OK;
}

static bool is_plan(const scorer_plan *p, int64_t T, const char *given, const char *output)
{
    return p->plan && p->T == T && !p->given == !given && strcmp(p->output, output) == 0;
}

static scorer_plan *find_plan(fr_scorer *scorer, int64_t T, const char *given, const char *output)
{
    scorer_plan *oldest = &scorer->plans[0];
    for (int i = 0; i < SCORER_PLANS; i++) {
        scorer_plan *p = &scorer->plans[i];
        if (is_plan(p, T, given, output))
            return p;
        if (p->used < oldest->used)
            oldest = p;
    }
    return oldest;
}

fr_status fr_scorer_plan(fr_scorer *scorer, int64_t length, const char *given, const char *output,
                         fr_plan **out, fr_error *error)
{
    scorer_plan *p = find_plan(scorer, length, given, output);
    if (!is_plan(p, length, given, output)) {
        fr_plan_free(p->plan);
        *p = (scorer_plan){0};
        FR_TRY(make_plan(scorer, length, given, output, &p->plan, error));
        p->T = length;
        p->given = given;
        p->output = output;
    }
    p->used = ++scorer->clock;
    FR_TRY(grow_arenas(scorer, fr_plan_arena_bytes(p->plan), error));
    FR_TRY(grow_ids(scorer, length, error));
    *out = p->plan;
    return FR_OK;
}

static fr_status plan_for(fr_scorer *scorer, int64_t T, const char *output, fr_plan **out, fr_error *error)
{
    return fr_scorer_plan(scorer, padded_length(scorer, T), NULL, output, out, error);
}

fr_status fr_scorer_prepare(fr_scorer *scorer, int64_t T, fr_error *error)
{
    fr_plan *plan;
    if (fr_scorer_packs_rows(scorer, T))
        return fr_scorer_prepare_short(scorer, &plan, error);
    return plan_for(scorer, T, "nats", &plan, error);
}

/* ---- running ---------------------------------------------------------------------------------------- */

typedef struct job {
    fr_scorer *scorer;
    const fr_plan *plan;
    int64_t T;
    const int32_t *inputs, *targets;
    float *nats;
} job;

/* Copies a row and pads it; the padding is id 0 with ignored targets, behind everything that counts. */
static void stage(const fr_scorer *scorer, int thread, int64_t T, int64_t length, const int32_t *inputs,
                  const int32_t *targets, int32_t **row)
{
    int32_t *ids = scorer->ids + (int64_t)thread * 2 * scorer->ids_length;
    for (int64_t t = 0; t < length; t++) {
        ids[t] = t < T ? inputs[t] : 0;
        ids[length + t] = targets && t < T ? targets[t] : -1;
    }
    *row = ids;
}

fr_status fr_scorer_run_row(const fr_scorer *scorer, const fr_plan *plan, int thread, fr_pool *pool,
                            int64_t T, const int32_t *inputs, const int32_t *targets, fr_error *error)
{
    int64_t length = fr_plan_extent(plan).T;
    int32_t *row;
    stage(scorer, thread, T, length, inputs, targets, &row);
    fr_binding bindings[] = {{"tokens", row}, {"targets", row + length}};
    fr_run_args args = {.arena = scorer->arenas[thread],
                        .parameters = scorer->parameters,
                        .prepared = fr_prepared_table(scorer->prepared),
                        .inputs = bindings,
                        .input_count = targets ? 2 : 1,
                        .pool = pool};
    return fr_plan_run(plan, &args, error);
}

static fr_status score_row(job *work, int64_t row, int thread, fr_pool *pool, fr_error *error)
{
    int64_t at = row * work->T;
    FR_TRY(fr_scorer_run_row(work->scorer, work->plan, thread, pool, work->T, work->inputs + at,
                             work->targets + at, error));
    const float *nats = fr_plan_output(work->plan, work->scorer->arenas[thread], "nats", NULL);
    memcpy(work->nats + at, nats, (size_t)work->T * sizeof *nats);
    return FR_OK;
}

static void score_job(void *context, int64_t row, int thread)
{
    job *work = context;
    fr_error error = {0};
    scorer_failure *failed = &work->scorer->failures[thread];
    if (failed->row < 0 && score_row(work, row, thread, NULL, &error) != FR_OK)
        *failed = (scorer_failure){row, error};
}

fr_status fr_scorer_failure(const fr_scorer *scorer, fr_error *error)
{
    const scorer_failure *first = NULL;
    for (int i = 0; i < scorer->threads; i++) {
        const scorer_failure *f = &scorer->failures[i];
        if (f->row >= 0 && (!first || f->row < first->row))
            first = f;
    }
    if (!first)
        return FR_OK;
    if (error)
        *error = first->error;
    return first->error.status;
}

fr_status fr_scorer_nats(fr_scorer *scorer, int64_t rows, int64_t T, const int32_t *inputs,
                         const int32_t *targets, float *nats, fr_error *error)
{
    if (rows < 0 || T < 1 || T > INT32_MAX)
        return fr_error_set(error, FR_BAD_USAGE, "scoring", NULL, "%lld rows of %lld tokens", (long long)rows,
                            (long long)T);
    if (fr_scorer_packs_rows(scorer, T))
        return fr_scorer_short_nats(scorer, rows, T, inputs, targets, nats, error);
    job work = {.scorer = scorer, .T = T, .inputs = inputs, .targets = targets, .nats = nats};
    fr_plan *plan;
    FR_TRY(plan_for(scorer, T, "nats", &plan, error));
    work.plan = plan;
    if (rows < scorer->threads) {
        for (int64_t row = 0; row < rows; row++)
            FR_TRY(score_row(&work, row, 0, scorer->pool, error));
        return FR_OK;
    }
    for (int i = 0; i < scorer->threads; i++)
        scorer->failures[i].row = -1;
    fr_pool_for(scorer->pool, rows, score_job, &work);
    return fr_scorer_failure(scorer, error);
}

fr_status fr_scorer_logits(fr_scorer *scorer, int64_t T, const int32_t *inputs, int64_t first, float *logits,
                           fr_error *error)
{
    if (T < 1 || T > INT32_MAX || first < 0 || first > T)
        return fr_error_set(error, FR_BAD_USAGE, "scoring", NULL, "positions %lld to %lld of a row",
                            (long long)first, (long long)T);
    fr_plan *plan;
    FR_TRY(plan_for(scorer, T, "logits", &plan, error));
    FR_TRY(fr_scorer_run_row(scorer, plan, 0, scorer->pool, T, inputs, NULL, error));
    const float *all = fr_plan_output(plan, scorer->arenas[0], "logits", NULL);
    memcpy(logits, all + first * scorer->vocab, (size_t)((T - first) * scorer->vocab) * sizeof *logits);
    return FR_OK;
}

/* ---- life ------------------------------------------------------------------------------------------- */

static fr_status begin(fr_scorer *scorer, fr_error *error)
{
    const fr_tensor *logits = fr_graph_find(scorer->graph, "logits");
    if (!logits || !fr_graph_find(scorer->graph, "nats"))
        return fr_error_set(error, FR_BAD_USAGE, "model", "end it with fr_head_logits and fr_head_loss",
                            "the graph has no output named logits or nats");
    scorer->vocab = logits->columns;
    scorer->threads = fr_pool_threads(scorer->pool);
    scorer->arenas = fr_allocate((size_t)scorer->threads * sizeof *scorer->arenas);
    scorer->failures = fr_allocate((size_t)scorer->threads * sizeof *scorer->failures);
    if (!scorer->arenas || !scorer->failures)
        return fr_error_memory(error, (size_t)scorer->threads * sizeof *scorer->failures, "scoring");
    FR_TRY(fr_cpu_kernels(&scorer->kernels, error));
    FR_TRY(fr_prepared_create(&scorer->prepared, scorer->graph, scorer->numerics, scorer->kernels, error));
    fr_scorer_refresh(scorer);
    return fr_scorer_find_hidden(scorer, error);
}

fr_status fr_scorer_begin(fr_scorer **out, fr_scorer *scorer, fr_error *error)
{
    fr_status status = begin(scorer, error);
    if (status == FR_OK)
        *out = scorer;
    else
        fr_scorer_free(scorer);
    return status;
}

fr_status fr_scorer_create(fr_scorer **out, const fr_graph *graph, const fr_recipe *recipe,
                           const float *parameters, fr_pool *pool, fr_error *error)
{
    fr_scorer *scorer = fr_allocate(sizeof *scorer);
    *out = NULL;
    if (!scorer)
        return fr_error_memory(error, sizeof *scorer, "a scorer");
    scorer->graph = graph;
    scorer->recipe = *recipe;
    scorer->numerics = fr_recipe_numerics(recipe);
    scorer->parameters = parameters;
    scorer->pool = pool;
    return fr_scorer_begin(out, scorer, error);
}

void fr_scorer_refresh(fr_scorer *scorer)
{
    fr_prepared_refresh(scorer->prepared, scorer->parameters, scorer->pool);
}

void fr_scorer_free(fr_scorer *scorer)
{
    if (!scorer)
        return;
    for (int i = 0; i < SCORER_PLANS; i++)
        fr_plan_free(scorer->plans[i].plan);
    for (int i = 0; scorer->arenas && i < scorer->threads; i++)
        fr_deallocate(scorer->arenas[i]);
    fr_deallocate(scorer->arenas);
    fr_deallocate(scorer->failures);
    fr_deallocate(scorer->short_rows);
    fr_deallocate(scorer->ids);
    fr_prepared_free(scorer->prepared);
    fr_graph_free(scorer->own_graph);
    fr_deallocate(scorer->own_parameters);
    fr_pool_free(scorer->own_pool);
    fr_tokenizer_free(scorer->tokenizer);
    fr_deallocate(scorer);
}

const fr_recipe *fr_scorer_recipe(const fr_scorer *scorer)
{
    return &scorer->recipe;
}

const fr_tokenizer *fr_scorer_tokenizer(const fr_scorer *scorer)
{
    return scorer->tokenizer;
}

const char *fr_scorer_run(const fr_scorer *scorer)
{
    return scorer->run;
}

int64_t fr_scorer_vocab(const fr_scorer *scorer)
{
    return scorer->vocab;
}
