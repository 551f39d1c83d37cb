/* How long it will take, before it is done; and every task's file checked before hours go into the first.
 *
 * A few items of each task, evenly spread, are turned into rows: that gives the work there will be, in operations
 * where the source is a scorer, which knows what it leaves out, else in tokens. Then some of these items, more of
 * the tasks that have more work, are scored through the source itself, in one call as the evaluation makes them,
 * and the time of that is scaled to the whole. Real items have the lengths, the common beginnings and the judged
 * positions that decide what things cost.
 */
#include "eval/core_run.h"

#include <math.h>

enum { SAMPLED_ITEMS = 32, TIMED_ITEMS = 64 };

typedef struct task_sample {
    fr_core_rows rows[SAMPLED_ITEMS];
    double works[SAMPLED_ITEMS]; /* what each takes */
    bool greedy;
    int count;
    double left, work; /* items not known yet, and what they take */
} task_sample;

typedef struct forecast {
    fr_arena arena;
    task_sample *tasks;
    int count;
    double text_seconds, rows, tokens, work;
} forecast;

/* ---- how much ----------------------------------------------------------------------------------------- */

/* Tokens an item takes: what all its rows begin with counts once where the source computes it once. */
static double tokens_of(const core_run *run, const fr_core_rows *rows)
{
    const fr_core_row *first = &rows->rows[0];
    int64_t shared = 0, sum = 0;
    for (bool same = run->scorer && rows->count > 1; same; shared += same)
        for (int i = 0; same && i < rows->count; i++)
            same = shared < rows->rows[i].count - 1 && rows->rows[i].ids[shared] == first->ids[shared];
    for (int i = 0; i < rows->count; i++)
        sum += rows->rows[i].count - 1 - shared;
    return (double)(sum + shared);
}

static int add_spans(const task_sample *s, int item, fr_span *spans)
{
    int count = 0;
    for (int k = 0; k < s->rows[item].count; k++) {
        const fr_core_row *row = &s->rows[item].rows[k];
        if (row->first < row->end)
            spans[count++] = (fr_span){
                .ids = row->ids, .first = row->first - 1, .end = row->end - 1, .greedy = s->greedy};
    }
    return count;
}

static fr_status work_of(const core_run *run, forecast *f, const task_sample *s, int item, double *work,
                         fr_error *error)
{
    *work = tokens_of(run, &s->rows[item]);
    if (!run->scorer)
        return FR_OK;
    size_t bytes = (size_t)s->rows[item].count * sizeof(fr_span);
    fr_span *spans = fr_arena_alloc(&f->arena, bytes);
    if (!spans)
        return fr_error_memory(error, bytes, "a forecast");
    return fr_scorer_spans_work(run->scorer, add_spans(s, item, spans), spans, work, error);
}

/* What is left of a task's work when a first example that several items show is computed once. */
static fr_status repeats_of(const core_run *run, const core_task_run *t, double *left, fr_error *error)
{
    double repeated = 0;
    *left = 1;
    if (!run->scorer)
        return FR_OK;
    int64_t *order = core_order(t, &repeated);
    if (!order)
        return fr_error_memory(error, (size_t)t->items.count * sizeof *order, "a forecast");
    fr_deallocate(order);
    *left = 1 - repeated / (double)(t->task->shots + 1); /* examples and the item are about as long */
    return FR_OK;
}

static fr_status sample_task(const core_run *run, const core_task_run *t, forecast *f, fr_error *error)
{
    task_sample *s = &f->tasks[f->count++];
    int64_t left = t->items.count - t->resumed;
    double start = core_now(), kept;
    FR_TRY(repeats_of(run, t, &kept, error));
    s->left = (double)left;
    s->greedy = t->task->kind == FR_CORE_LANGUAGE;
    s->count = (int)(left < SAMPLED_ITEMS ? left : SAMPLED_ITEMS);
    for (int i = 0; i < s->count; i++) {
        FR_TRY(fr_core_rows_make(&s->rows[i], &f->arena, t->task, &t->items, i * t->items.count / s->count,
                                 run->tokenizer, run->options->most_tokens, error));
        FR_TRY(work_of(run, f, s, i, &s->works[i], error));
        s->work += kept * s->works[i] * s->left / s->count;
        f->tokens += kept * tokens_of(run, &s->rows[i]) * s->left / s->count;
        f->rows += s->rows[i].count * s->left / s->count;
    }
    if (s->count)
        f->text_seconds += (core_now() - start) * s->left / s->count;
    f->work += s->work;
    return FR_OK;
}

/* ---- how fast ----------------------------------------------------------------------------------------- */

/* The items of a task to time: its share of the work, and never more than were sampled. */
static int timed_items(const forecast *f, const task_sample *s)
{
    double wanted = f->work > 0 ? TIMED_ITEMS * s->work / f->work : 0;
    return wanted < 1 ? s->count > 0 : wanted < s->count ? (int)wanted : s->count;
}

static fr_status time_items(core_run *run, const forecast *f, bool one_each, double *work, double *seconds,
                            fr_error *error)
{
    int64_t rows = 1;
    int count = 0;
    for (int i = 0; i < f->count; i++)
        for (int k = 0; k < f->tasks[i].count; k++)
            rows += f->tasks[i].rows[k].count;
    fr_span *spans = fr_allocate((size_t)rows * sizeof *spans);
    if (!spans)
        return fr_error_memory(error, (size_t)rows * sizeof *spans, "a forecast");
    *work = 0;
    for (int i = 0; i < f->count; i++) {
        const task_sample *s = &f->tasks[i];
        int items = one_each ? s->count > 0 : timed_items(f, s);
        for (int k = 0; k < items; k++) {
            int item = (int)((int64_t)k * s->count / items);
            count += add_spans(s, item, spans + count);
            *work += s->works[item];
        }
    }
    double start = core_now();
    fr_status status = count ? run->source(run->source_context, count, spans, error) : FR_OK;
    *seconds = core_now() - start;
    fr_deallocate(spans);
    return status;
}

/* Once for plans and pages, with an item of each task; then for the clock. */
static fr_status announce(core_run *run, const forecast *f, fr_error *error)
{
    char time[40], rows[40], tokens[40];
    double work, seconds;
    fr_progress_update(run->options->progress, "forecast", 0, 1, NULL);
    FR_TRY(time_items(run, f, true, &work, &seconds, error));
    FR_TRY(time_items(run, f, false, &work, &seconds, error));
    run->result->forecast_s = f->text_seconds + (work > 0 ? seconds * f->work / work : 0);
    fr_progress_message(run->options->progress, "forecast: %s for %d tasks, %s rows, %s tokens to compute",
                        fr_format_duration(time, sizeof time, run->result->forecast_s), f->count,
                        fr_format_count(rows, sizeof rows, llround(f->rows)),
                        fr_format_count(tokens, sizeof tokens, llround(f->tokens)));
    return FR_OK;
}

static fr_status survey(core_run *run, forecast *f, fr_error *error)
{
    size_t bytes = (size_t)run->result->task_count * sizeof *f->tasks;
    f->tasks = fr_arena_alloc(&f->arena, bytes);
    if (!f->tasks)
        return fr_error_memory(error, bytes, "a forecast");
    for (int i = 0; i < run->result->task_count; i++) {
        const fr_core_task *task = run->result->tasks[i].task;
        core_task_run t;
        if (!core_wanted(run, task))
            continue;
        if (fr_progress_stop(run->options->progress))
            return fr_error_set(error, FR_STOPPED, "core", NULL, "stopped by request");
        FR_TRY(core_task_open(&t, run, task, error));
        fr_status status = run->options->forecast ? sample_task(run, &t, f, error) : FR_OK;
        core_task_close(&t);
        FR_TRY(status);
    }
    return FR_OK;
}

fr_status core_forecast(core_run *run, fr_error *error)
{
    forecast f = {0};
    fr_arena_init(&f.arena, 1 << 20);
    fr_status status = survey(run, &f, error);
    if (status == FR_OK && run->options->forecast)
        status = announce(run, &f, error);
    fr_arena_release(&f.arena);
    return status;
}
