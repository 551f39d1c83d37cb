/* Losses over a span of each row: what multiple choice and cloze questions are scored by.
 *
 * Rows come in all lengths. Each is padded to one of eight lengths per octave, chosen by its own length
 * alone, so its plan, and with it every bit of its result, does not depend on which rows it is asked with.
 * Rows of one padded length and one kind form a group and go to the threads whole; a group smaller than the
 * threads runs row by row with its operators split. Whether a target is the first choice needs logits; nats
 * do not, and their plan never holds a whole row of logits.
 *
 * That is the way for models that must have whole rows; others take the faster one of scorer_shared.c.
 */
#include "model/scorer.h"

#include <math.h>
#include <stdlib.h>

typedef struct placed {
    int64_t length; /* padded */
    fr_span *span;
} placed;

typedef struct group {
    fr_scorer *scorer;
    const fr_plan *plan;
    const placed *rows;
    int32_t **targets; /* per thread: length of them */
} group;

int64_t fr_span_padded(int64_t T)
{
    int64_t octave = 256;
    while (octave < T && octave < (int64_t)1 << 40)
        octave *= 2;
    int64_t step = octave / 16;
    return (T + step - 1) / step * step;
}

/* Positions that are learned end with the context, and so must the padding. */
static int64_t row_length(const fr_scorer *scorer, int64_t T)
{
    int64_t context = scorer->recipe.model.context, length = fr_span_padded(T);
    return T <= context && length > context ? context : length;
}

static int by_plan(const void *left, const void *right)
{
    const placed *a = left, *b = right;
    if (a->span->greedy != b->span->greedy)
        return a->span->greedy ? 1 : -1;
    if (a->length != b->length)
        return a->length > b->length ? -1 : 1; /* the longest first: arenas grow once */
    return a->span < b->span ? -1 : a->span > b->span;
}

/* ---- one row ---------------------------------------------------------------------------------------- */

void fr_span_sum(fr_span *span, const float *nats)
{
    span->nats = 0;
    for (int64_t i = 0; i < span->end - span->first; i++)
        span->nats += (double)nats[i];
    if (!isfinite(span->nats))
        span->nats = NAN;
}

/* The lowest id of the largest logit; -1 when one is not finite. */
static int32_t first_choice(const float *logits, int64_t vocab)
{
    int64_t best = 0;
    for (int64_t v = 0; v < vocab; v++) {
        if (!isfinite(logits[v]))
            return -1;
        if (logits[v] > logits[best])
            best = v;
    }
    return (int32_t)best;
}

void fr_span_choose(fr_span *span, int64_t position, const float *logits, int64_t vocab)
{
    int32_t choice = first_choice(logits, vocab);
    if (choice < 0)
        span->nats = NAN;
    span->followed = span->followed && choice == span->ids[position + 1];
}

static void read_choices(fr_span *span, const float *logits, int64_t vocab)
{
    span->nats = 0;
    span->followed = true;
    for (int64_t p = span->first; p < span->end; p++)
        fr_span_choose(span, p, logits + p * vocab, vocab);
}

static fr_status run_span(const group *g, int64_t row, int thread, fr_pool *pool, fr_error *error)
{
    fr_span *span = g->rows[row].span;
    int32_t *targets = span->greedy ? NULL : g->targets[thread];
    for (int64_t p = 0; targets && p < span->end; p++)
        targets[p] = p < span->first ? -1 : span->ids[p + 1];
    FR_TRY(fr_scorer_run_row(g->scorer, g->plan, thread, pool, span->end, span->ids, targets, error));
    const float *out =
        fr_plan_output(g->plan, g->scorer->arenas[thread], span->greedy ? "logits" : "nats", NULL);
    if (span->greedy)
        read_choices(span, out, g->scorer->vocab);
    else
        fr_span_sum(span, out + span->first);
    return FR_OK;
}

static void run_job(void *context, int64_t row, int thread)
{
    const group *g = context;
    fr_error error = {0};
    scorer_failure *failed = &g->scorer->failures[thread];
    if (failed->row < 0 && run_span(g, row, thread, NULL, &error) != FR_OK)
        *failed = (scorer_failure){row, error};
}

/* ---- groups ----------------------------------------------------------------------------------------- */

static fr_status run_group(group *g, int64_t count, fr_error *error)
{
    fr_scorer *scorer = g->scorer;
    fr_plan *plan;
    FR_TRY(
        fr_scorer_plan(scorer, g->rows[0].length, NULL, g->rows[0].span->greedy ? "logits" : "nats", &plan, error));
    g->plan = plan;
    if (count < scorer->threads) {
        for (int64_t row = 0; row < count; row++)
            FR_TRY(run_span(g, row, 0, scorer->pool, error));
        return FR_OK;
    }
    for (int i = 0; i < scorer->threads; i++)
        scorer->failures[i].row = -1;
    fr_pool_for(scorer->pool, count, run_job, g);
    return fr_scorer_failure(scorer, error);
}

static fr_status run_groups(group *g, const placed *rows, int64_t count, fr_error *error)
{
    for (int64_t at = 0, end; at < count; at = end) {
        for (end = at + 1; end < count && rows[end].length == rows[at].length &&
                           rows[end].span->greedy == rows[at].span->greedy;)
            end++;
        g->rows = rows + at;
        FR_TRY(run_group(g, end - at, error));
    }
    return FR_OK;
}

static fr_status check(const fr_scorer *scorer, int64_t count, const fr_span *spans, fr_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        const fr_span *s = &spans[i];
        if (s->first < 0 || s->end <= s->first || s->end >= INT32_MAX)
            return fr_error_set(error, FR_BAD_USAGE, "scoring", NULL, "a span of positions %lld to %lld",
                                (long long)s->first, (long long)s->end);
        if (s->ids[s->end] < 0 || s->ids[s->end] >= scorer->vocab)
            return fr_error_set(error, FR_BAD_DATA, "scoring", NULL, "token id %d is outside the vocabulary",
                                s->ids[s->end]);
    }
    return FR_OK;
}

static fr_status run_all(fr_scorer *scorer, int64_t count, fr_span *spans, fr_arena *arena, fr_error *error)
{
    group g = {.scorer = scorer};
    int64_t longest = 0;
    placed *rows = fr_arena_alloc(arena, (size_t)count * sizeof *rows);
    g.targets = fr_arena_alloc(arena, (size_t)scorer->threads * sizeof *g.targets);
    if (!rows || !g.targets)
        return fr_error_memory(error, (size_t)count * sizeof *rows, "scoring spans");
    for (int64_t i = 0; i < count; i++) {
        rows[i] = (placed){row_length(scorer, spans[i].end), &spans[i]};
        longest = spans[i].end > longest ? spans[i].end : longest;
    }
    qsort(rows, (size_t)count, sizeof *rows, by_plan);
    for (int i = 0; i < scorer->threads; i++) {
        g.targets[i] = fr_arena_alloc(arena, (size_t)longest * sizeof(int32_t));
        if (!g.targets[i])
            return fr_error_memory(error, (size_t)longest * sizeof(int32_t), "scoring spans");
    }
    return run_groups(&g, rows, count, error);
}

fr_status fr_scorer_spans(fr_scorer *scorer, int64_t count, fr_span *spans, fr_error *error)
{
    if (count <= 0)
        return FR_OK;
    FR_TRY(check(scorer, count, spans, error));
    fr_arena arena;
    fr_arena_init(&arena, 1 << 16);
    fr_status status = fr_scorer_hidden(scorer) ? fr_scorer_shared_spans(scorer, count, spans, &arena, error)
                                                : run_all(scorer, count, spans, &arena, error);
    fr_arena_release(&arena);
    return status;
}

/* Of whole rows: their tokens, which is as good a measure there. */
fr_status fr_scorer_spans_work(fr_scorer *scorer, int64_t count, fr_span *spans, double *work, fr_error *error)
{
    *work = 0;
    if (!fr_scorer_hidden(scorer)) {
        for (int64_t i = 0; i < count; i++)
            *work += (double)spans[i].end;
        return FR_OK;
    }
    fr_arena arena;
    fr_arena_init(&arena, 1 << 10);
    fr_status status = fr_scorer_shared_work(scorer, count, spans, &arena, work, error);
    fr_arena_release(&arena);
    return status;
}
