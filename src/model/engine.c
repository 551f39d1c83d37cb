/* The inference engine: texts continued token by token, many at once.
 *
 * Three kinds of plans over the scorer's graph do it, all of which continue sequences. A prompt goes
 * through in long rows of one sequence, without logits: only what attention keeps of it matters. Its
 * positions' logits are computed only for who asks. From then on a pass adds one token to each of several
 * sequences; passes come for 1, 2, 4 ... sequences, the rows beyond those that take part being empty.
 * Reading the weights is what a pass costs, so eight sequences take little longer than one.
 *
 * Everything is made when the engine is: plans, one arena, and the memory of every sequence. Which plan a
 * token goes through changes no bit of its logits, since every kernel works row by row in an order of its
 * own.
 */
#include "model/engine.h"

#include <limits.h>
#include <string.h>

/* Rows of a prompt: the largest while they fill up, then the smallest that holds the rest. */
static const int64_t row_lengths[ENGINE_ROWS] = {16, 64, 256};
enum { CHUNK = 256, LOGIT_ROWS = 2 }; /* logits of whole rows: at most 64 at a time, they are large */

/* ---- making one ------------------------------------------------------------------------------------- */

static fr_status make_plan(fr_engine *engine, fr_extent extent, const char *output, fr_plan **out,
                           fr_error *error)
{
    const fr_scorer *s = engine->scorer;
    fr_plan_options options = {.extent = extent,
                               .numerics = s->numerics,
                               .residual_bf16 = fr_recipe_residual_bf16(&s->recipe),
                               .continuing = {.chunk = CHUNK},
                               .outputs = &output,
                               .output_count = 1,
                               .kernels = s->kernels};
    FR_TRY(fr_plan_create(out, s->graph, &options, error));
    size_t bytes = fr_plan_arena_bytes(*out);
    engine->arena_bytes = bytes > engine->arena_bytes ? bytes : engine->arena_bytes;
    return FR_OK;
}

static fr_status make_plans(fr_engine *engine, fr_error *error)
{
    const fr_tensor *logits = fr_graph_find(engine->scorer->graph, "logits");
    const char *hidden =
        logits->producer->in[0]->name; /* what the head reads: the last thing before logits */
    for (int i = 0; i < ENGINE_ROWS; i++)
        FR_TRY(make_plan(engine, (fr_extent){1, row_lengths[i]}, hidden, &engine->rows[i], error));
    for (int i = 0; i < LOGIT_ROWS; i++)
        FR_TRY(make_plan(engine, (fr_extent){1, row_lengths[i]}, "logits", &engine->logit_rows[i], error));
    for (int i = 0; i == 0 || (int64_t)1 << (i - 1) < engine->count; i++)
        FR_TRY(make_plan(engine, (fr_extent){(int64_t)1 << i, 1}, "logits", &engine->steps[i], error));
    return FR_OK;
}

static fr_status make_memory(fr_engine *engine, fr_error *error)
{
    size_t each = fr_plan_sequence_bytes(engine->steps[0]), widest = (size_t)1 << ENGINE_STEPS;
    engine->arena = fr_allocate(engine->arena_bytes);
    engine->sequences = fr_allocate((size_t)engine->count * sizeof *engine->sequences);
    engine->batch = fr_allocate(widest * sizeof *engine->batch);
    engine->ids = fr_allocate((widest > CHUNK ? widest : CHUNK) * sizeof *engine->ids);
    if (!engine->arena || !engine->sequences || !engine->batch || !engine->ids)
        return fr_error_memory(error, engine->arena_bytes, "an inference engine");
    for (int64_t i = 0; i < engine->count && each; i++) {
        engine->sequences[i].memory = fr_allocate(each);
        if (!engine->sequences[i].memory)
            return fr_error_memory(error, each, "the keys and values of a sequence");
    }
    return FR_OK;
}

/* Learned positions end with their table; nothing else ends. */
static int64_t count_positions(const fr_graph *graph)
{
    int64_t most = INT64_MAX;
    for (int n = 0; n < fr_graph_nodes(graph); n++) {
        const fr_node *node = fr_graph_node(graph, n);
        if (strcmp(node->op->name, "embed_positions") == 0 && node->in[1]->rows < most)
            most = node->in[1]->rows;
    }
    return most;
}

fr_status fr_engine_create(fr_engine **out, fr_scorer *scorer, int64_t sequences, fr_error *error)
{
    *out = NULL;
    if (sequences < 0 || sequences > (int64_t)1 << ENGINE_STEPS)
        return fr_error_set(error, FR_BAD_USAGE, "sequences", "1 to 1024",
                            "an engine of %lld sequences cannot be made", (long long)sequences);
    fr_engine *engine = fr_allocate(sizeof *engine);
    if (!engine)
        return fr_error_memory(error, sizeof *engine, "an inference engine");
    engine->scorer = scorer;
    engine->count = sequences ? sequences : 1;
    engine->positions = count_positions(scorer->graph);
    fr_status status = make_plans(engine, error);
    if (status == FR_OK)
        status = make_memory(engine, error);
    if (status == FR_OK)
        *out = engine;
    else
        fr_engine_free(engine);
    return status;
}

fr_status fr_engine_open(fr_engine **out, const char *run_folder, const fr_engine_options *options,
                         fr_error *error)
{
    static const fr_engine_options plain = {0};
    const fr_engine_options *o = options ? options : &plain;
    fr_scorer *scorer;
    *out = NULL;
    FR_TRY(fr_scorer_open(&scorer, run_folder,
                          &(fr_scorer_options){.threads = o->threads, .numerics = o->numerics}, error));
    fr_status status = fr_engine_create(out, scorer, o->sequences, error);
    if (status == FR_OK)
        (*out)->own_scorer = scorer;
    else
        fr_scorer_free(scorer);
    return status;
}

void fr_engine_free(fr_engine *engine)
{
    if (!engine)
        return;
    for (int i = 0; i < ENGINE_ROWS; i++) {
        fr_plan_free(engine->rows[i]);
        fr_plan_free(engine->logit_rows[i]);
    }
    for (int i = 0; i <= ENGINE_STEPS; i++)
        fr_plan_free(engine->steps[i]);
    for (int64_t i = 0; engine->sequences && i < engine->count; i++)
        fr_deallocate(engine->sequences[i].memory);
    fr_deallocate(engine->sequences);
    fr_deallocate(engine->batch);
    fr_deallocate(engine->ids);
    fr_deallocate(engine->arena);
    fr_scorer_free(engine->own_scorer);
    fr_deallocate(engine);
}

/* ---- sequences -------------------------------------------------------------------------------------- */

fr_status fr_engine_add(fr_engine *engine, int64_t *sequence, fr_error *error)
{
    for (int64_t i = 0; i < engine->count; i++) {
        engine_sequence *s = &engine->sequences[i];
        if (s->used)
            continue;
        s->used = true;
        s->length = 0;
        *sequence = i;
        return FR_OK;
    }
    return fr_error_set(error, FR_ANSWER_NO, "engine", "remove one, or make the engine for more",
                        "all %lld sequences are in use", (long long)engine->count);
}

void fr_engine_remove(fr_engine *engine, int64_t sequence)
{
    if (sequence >= 0 && sequence < engine->count)
        engine->sequences[sequence].used = false;
}

static fr_status check_sequence(const fr_engine *engine, int64_t sequence, int64_t more, fr_error *error)
{
    if (sequence < 0 || sequence >= engine->count || !engine->sequences[sequence].used)
        return fr_error_set(error, FR_BAD_USAGE, "engine", "add it first", "there is no sequence %lld",
                            (long long)sequence);
    if (engine->sequences[sequence].length > engine->positions - more)
        return fr_error_set(
            error, FR_BAD_USAGE, "engine", "end the text there, or train with a longer context",
            "the model learned %lld positions and the text has more tokens", (long long)engine->positions);
    return FR_OK;
}

int64_t fr_engine_length(const fr_engine *engine, int64_t sequence)
{
    return sequence >= 0 && sequence < engine->count ? engine->sequences[sequence].length : 0;
}

/* ---- passes ----------------------------------------------------------------------------------------- */

/* Runs engine->ids through engine->batch. */
static fr_status run(fr_engine *engine, const fr_plan *plan, fr_error *error)
{
    const fr_scorer *s = engine->scorer;
    fr_binding bindings[] = {{"tokens", engine->ids}};
    fr_run_args args = {.arena = engine->arena,
                        .parameters = s->parameters,
                        .prepared = fr_prepared_table(s->prepared),
                        .inputs = bindings,
                        .input_count = 1,
                        .sequences = engine->batch,
                        .pool = s->pool};
    return fr_plan_run(plan, &args, error);
}

/* The plan for the next row of `left` tokens. */
static const fr_plan *plan_of_row(fr_plan *const *plans, int count, int64_t left)
{
    int i = 0;
    while (i + 1 < count && row_lengths[i] < left)
        i++;
    return plans[i];
}

static fr_status feed_row(fr_engine *engine, const fr_plan *plan, engine_sequence *s, int64_t count,
                          const int32_t *tokens, float *logits, fr_error *error)
{
    int64_t T = fr_plan_extent(plan).T, vocab = engine->scorer->vocab;
    for (int64_t t = 0; t < T; t++)
        engine->ids[t] = t < count ? tokens[t] : 0;
    engine->batch[0] = (fr_sequence){s->memory, s->length, count};
    FR_TRY(run(engine, plan, error));
    if (logits)
        memcpy(logits, fr_plan_output(plan, engine->arena, "logits", NULL),
               (size_t)(count * vocab) * sizeof *logits);
    s->length += count;
    return FR_OK;
}

/* The whole prompt is checked before any of it goes in: a call that fails changes nothing. */
static fr_status check_ids(const fr_engine *engine, int64_t count, const int32_t *tokens, fr_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= engine->scorer->vocab)
            return fr_error_set(error, FR_BAD_DATA, "engine", "do tokenizer and model belong together?",
                                "token id %d is outside the vocabulary of %lld", tokens[i],
                                (long long)engine->scorer->vocab);
    return FR_OK;
}

fr_status fr_engine_feed(fr_engine *engine, int64_t sequence, int64_t count, const int32_t *tokens,
                         float *logits, fr_error *error)
{
    FR_TRY(check_sequence(engine, sequence, count > 0 ? count : 0, error));
    FR_TRY(check_ids(engine, count, tokens, error));
    for (int64_t at = 0; at < count;) {
        const fr_plan *plan = logits ? plan_of_row(engine->logit_rows, LOGIT_ROWS, count - at)
                                     : plan_of_row(engine->rows, ENGINE_ROWS, count - at);
        int64_t T = fr_plan_extent(plan).T, now = count - at < T ? count - at : T;
        FR_TRY(feed_row(engine, plan, &engine->sequences[sequence], now, tokens + at,
                        logits ? logits + at * engine->scorer->vocab : NULL, error));
        at += now;
    }
    return FR_OK;
}

static fr_status check_step(const fr_engine *engine, int64_t count, const int64_t *sequences,
                            const int32_t *tokens, fr_error *error)
{
    if (count < 1 || count > engine->count)
        return fr_error_set(error, FR_BAD_USAGE, "engine", NULL, "a step of %lld of %lld sequences",
                            (long long)count, (long long)engine->count);
    for (int64_t i = 0; i < count; i++) {
        FR_TRY(check_sequence(engine, sequences[i], 1, error));
        for (int64_t j = 0; j < i; j++)
            if (sequences[i] == sequences[j])
                return fr_error_set(error, FR_BAD_USAGE, "engine", NULL, "sequence %lld twice in one step",
                                    (long long)sequences[i]);
    }
    return check_ids(engine, count, tokens, error);
}

fr_status fr_engine_step(fr_engine *engine, int64_t count, const int64_t *sequences, const int32_t *tokens,
                         float *logits, fr_error *error)
{
    FR_TRY(check_step(engine, count, sequences, tokens, error));
    int which = 0;
    while ((int64_t)1 << which < count)
        which++;
    for (int64_t i = 0; i < (int64_t)1 << which; i++) {
        engine->ids[i] = i < count ? tokens[i] : 0;
        engine_sequence *s = &engine->sequences[sequences[i < count ? i : 0]];
        engine->batch[i] = (fr_sequence){s->memory, i < count ? s->length : 0, i < count ? 1 : 0};
    }
    FR_TRY(run(engine, engine->steps[which], error));
    memcpy(logits, fr_plan_output(engine->steps[which], engine->arena, "logits", NULL),
           (size_t)(count * engine->scorer->vocab) * sizeof *logits);
    for (int64_t i = 0; i < count; i++)
        engine->sequences[sequences[i]].length++;
    return FR_OK;
}

/* ---- asking ----------------------------------------------------------------------------------------- */

fr_scorer *fr_engine_scorer(const fr_engine *engine)
{
    return engine->scorer;
}

int64_t fr_engine_sequences(const fr_engine *engine)
{
    return engine->count;
}

size_t fr_engine_sequence_bytes(const fr_engine *engine)
{
    return fr_plan_sequence_bytes(engine->steps[0]);
}

int64_t fr_engine_positions(const fr_engine *engine)
{
    return engine->positions;
}
