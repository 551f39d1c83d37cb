/* How long it will take, before it is done; and every task's file checked before hours go into the first.
 *
 * A few items of each task, evenly spread, are turned into rows: that gives how many rows of which length
 * there will be. Then rows of some of those lengths are timed through the source itself, and the others are
 * scaled from them.
 */
#include "eval/core_run.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLED_ITEMS = 24, MAX_LENGTHS = 512, TIMED_ROWS = 4 };

typedef struct length_class {
    int64_t padded;
    bool greedy;
    double rows, seconds; /* expected number; measured seconds per row */
} length_class;

typedef struct forecast {
    length_class classes[MAX_LENGTHS];
    int count;
    double text_seconds, rows, tokens; /* tokens: padded */
    int tasks;
} forecast;

static void add_rows(forecast *f, int64_t padded, bool greedy, double rows)
{
    int i = 0;
    while (i < f->count && (f->classes[i].padded != padded || f->classes[i].greedy != greedy))
        i++;
    if (i == MAX_LENGTHS)
        return; /* lengths come in eight per octave: not reached by anything that fits in memory */
    if (i == f->count)
        f->classes[f->count++] = (length_class){.padded = padded, .greedy = greedy};
    f->classes[i].rows += rows;
    f->rows += rows;
    f->tokens += rows * (double)padded;
}

static fr_status sample_item(const core_run *run, const core_task_run *t, int64_t index, double weight,
                             forecast *f, fr_error *error)
{
    fr_arena arena;
    fr_core_rows rows;
    fr_arena_init(&arena, 1 << 18);
    fr_status status = fr_core_rows_make(&rows, &arena, t->task, &t->items, index, run->tokenizer,
                                         run->options->most_tokens, error);
    for (int i = 0; status == FR_OK && i < rows.count; i++)
        if (rows.rows[i].first < rows.rows[i].end)
            add_rows(f, fr_span_padded(rows.rows[i].end - 1), t->task->kind == FR_CORE_LANGUAGE, weight);
    fr_arena_release(&arena);
    return status;
}

static fr_status sample_task(const core_run *run, const core_task_run *t, forecast *f, fr_error *error)
{
    int64_t left = t->items.count - t->resumed, count = left < SAMPLED_ITEMS ? left : SAMPLED_ITEMS;
    double start = core_now();
    f->tasks += left > 0;
    for (int64_t i = 0; i < count; i++)
        FR_TRY(sample_item(run, t, i * t->items.count / count, (double)left / (double)count, f, error));
    if (count)
        f->text_seconds += (core_now() - start) * (double)left / (double)count;
    return FR_OK;
}

static int by_tokens(const void *left, const void *right)
{
    const length_class *a = left, *b = right;
    double x = a->rows * (double)a->padded, y = b->rows * (double)b->padded;
    return x > y ? -1 : x < y;
}

/* Rows of BOS or id 0: what they say does not change what they cost. */
static fr_status time_class(const core_run *run, length_class *c, fr_error *error)
{
    size_t bytes = (size_t)(c->padded + 1) * sizeof(int32_t);
    int32_t *ids = fr_allocate(bytes);
    fr_span spans[TIMED_ROWS];
    if (!ids)
        return fr_error_memory(error, bytes, "a forecast");
    for (int i = 0; i < TIMED_ROWS; i++)
        spans[i] = (fr_span){.ids = ids, .first = c->padded - 1, .end = c->padded, .greedy = c->greedy};
    fr_status status = run->source(run->source_context, 1, spans, error); /* plans and pages */
    double start = core_now();
    if (status == FR_OK)
        status = run->source(run->source_context, TIMED_ROWS, spans, error);
    c->seconds = (core_now() - start) / TIMED_ROWS;
    fr_deallocate(ids);
    return status;
}

static int octave(const length_class *c)
{
    int n = 0;
    while (c->padded >> n > 1)
        n++;
    return 2 * n + c->greedy;
}

/* Of each octave the length that holds most tokens is timed; its neighbours cost the same per token. */
static fr_status time_classes(core_run *run, forecast *f, fr_error *error)
{
    const length_class *timed[2 * 64] = {0};
    qsort(f->classes, (size_t)f->count, sizeof *f->classes, by_tokens);
    run->result->forecast_s = f->text_seconds;
    for (int i = 0; i < f->count; i++) {
        length_class *c = &f->classes[i];
        int n = octave(c);
        fr_progress_update(run->options->progress, "forecast", i, f->count, NULL);
        if (fr_progress_stop(run->options->progress))
            return fr_error_set(error, FR_STOPPED, "core", NULL, "stopped by request");
        if (!timed[n]) {
            FR_TRY(time_class(run, c, error));
            timed[n] = c;
        }
        run->result->forecast_s += c->rows * timed[n]->seconds * (double)c->padded / (double)timed[n]->padded;
    }
    return FR_OK;
}

static fr_status announce(core_run *run, forecast *f, fr_error *error)
{
    char time[40], rows[40], tokens[40];
    if (!run->options->forecast)
        return FR_OK;
    FR_TRY(time_classes(run, f, error));
    fr_progress_message(run->options->progress, "forecast: %s for %d tasks, %s rows of together %s tokens",
                        fr_format_duration(time, sizeof time, run->result->forecast_s), f->tasks,
                        fr_format_count(rows, sizeof rows, llround(f->rows)),
                        fr_format_count(tokens, sizeof tokens, llround(f->tokens)));
    return FR_OK;
}

fr_status core_forecast(core_run *run, fr_error *error)
{
    forecast *f = fr_allocate(sizeof *f);
    fr_status status = f ? FR_OK : fr_error_memory(error, sizeof *f, "a forecast");
    for (int i = 0; status == FR_OK && i < run->result->task_count; i++) {
        const fr_core_task *task = run->result->tasks[i].task;
        core_task_run t;
        if (!core_wanted(run, task))
            continue;
        status = core_task_open(&t, run, task, error);
        if (status != FR_OK)
            continue;
        if (run->options->forecast)
            status = sample_task(run, &t, f, error);
        core_task_close(&t);
    }
    if (status == FR_OK)
        status = announce(run, f, error);
    fr_deallocate(f);
    return status;
}
