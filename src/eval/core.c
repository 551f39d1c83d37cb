/* CORE: every task, every item, through a source of span losses.
 *
 * Items go through in chunks. All rows of a chunk are handed to the source, an item's side by side because
 * they begin alike, the longest items first and in slices, so that the whole stays interruptible; a chunk is
 * what a stopped run loses at most. Each row's loss depends on that row alone, so neither chunks nor slices nor threads can change a
 * prediction.
 */
#include "eval/core_bundle.h"
#include "eval/core_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK_ITEMS = 64, SLICE_TOKENS = 1 << 18 };

double core_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool core_wanted(const core_run *run, const fr_core_task *task)
{
    if (!run->options->tasks)
        return task->present;
    for (int i = 0; i < run->options->task_count; i++)
        if (strcmp(run->options->tasks[i], task->label) == 0)
            return task->present;
    return false;
}

/* ---- one task's memory ------------------------------------------------------------------------------ */

void core_task_close(core_task_run *t)
{
    fr_deallocate(t->answers);
    fr_deallocate(t->known);
    fr_core_items_release(&t->items);
}

fr_status core_task_open(core_task_run *out, const core_run *run, const fr_core_task *task, fr_error *error)
{
    *out = (core_task_run){.task = task};
    FR_TRY(fr_core_items_load(&out->items, task, run->options->max_per_task, error));
    size_t count = (size_t)out->items.count;
    out->answers = fr_allocate(count * sizeof *out->answers);
    out->known = fr_allocate(count * sizeof *out->known);
    core_task_key(run, out);
    fr_status status = out->answers && out->known
                           ? core_log_recall(run, out, error)
                           : fr_error_memory(error, count * sizeof *out->answers, "answers");
    if (status != FR_OK)
        core_task_close(out);
    return status;
}

/* ---- one chunk -------------------------------------------------------------------------------------- */

typedef struct chunk {
    int64_t indices[CHUNK_ITEMS];
    fr_core_rows rows[CHUNK_ITEMS];
    double *losses[CHUNK_ITEMS]; /* per option: mean over its span; NaN when that is empty */
    bool followed[CHUNK_ITEMS];
    bool broken[CHUNK_ITEMS]; /* a loss is not finite */
    int count, span_count;
    fr_arena arena;
} chunk;

typedef struct asked {
    fr_span span;
    int item, option;
} asked;

/* Items that are not known yet, from *next on. */
static void gather(chunk *c, const core_task_run *t, const int64_t *order, int64_t *next)
{
    for (c->count = 0; c->count < CHUNK_ITEMS && *next < t->items.count; ++*next)
        if (!t->known[order[*next]])
            c->indices[c->count++] = order[*next];
}

static fr_status make_rows(chunk *c, const core_run *run, const core_task_run *t, fr_error *error)
{
    c->span_count = 0;
    for (int i = 0; i < c->count; i++) {
        fr_core_rows *rows = &c->rows[i];
        FR_TRY(fr_core_rows_make(rows, &c->arena, t->task, &t->items, c->indices[i], run->tokenizer,
                                 run->options->most_tokens, error));
        c->losses[i] = fr_arena_alloc(&c->arena, (size_t)rows->count * sizeof *c->losses[i]);
        if (!c->losses[i])
            return fr_error_memory(error, (size_t)rows->count * sizeof *c->losses[i], "losses");
        c->followed[i] = true; /* of nothing, everything holds */
        c->broken[i] = false;
        for (int k = 0; k < rows->count; k++) {
            c->losses[i][k] = NAN;
            c->span_count += rows->rows[k].first < rows->rows[k].end;
        }
    }
    return FR_OK;
}

static fr_status list_spans(chunk *c, bool greedy, asked **out, fr_error *error)
{
    int count = 0;
    asked *list = fr_arena_alloc(&c->arena, (size_t)(c->span_count + 1) * sizeof *list);
    if (!list)
        return fr_error_memory(error, (size_t)c->span_count * sizeof *list, "spans");
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->rows[i].count; k++) {
            const fr_core_row *row = &c->rows[i].rows[k];
            if (row->first < row->end)
                list[count++] = (asked){{row->ids, row->first - 1, row->end - 1, greedy, 0, false}, i, k};
        }
    *out = list;
    return FR_OK;
}

static void take_answers(chunk *c, const asked *list, const fr_span *spans, int count)
{
    for (int i = 0; i < count; i++) {
        const fr_span *s = &spans[i];
        c->losses[list[i].item][list[i].option] = s->nats / (double)(s->end - s->first);
        c->followed[list[i].item] = c->followed[list[i].item] && s->followed;
        c->broken[list[i].item] = c->broken[list[i].item] || !isfinite(s->nats);
    }
}

static fr_status ask(const core_run *run, chunk *c, const asked *list, fr_error *error)
{
    fr_span *spans = fr_arena_alloc(&c->arena, (size_t)(c->span_count + 1) * sizeof *spans);
    if (!spans)
        return fr_error_memory(error, (size_t)c->span_count * sizeof *spans, "spans");
    for (int at = 0, count; at < c->span_count; at += count) {
        int64_t tokens = 0;
        for (count = 0; at + count < c->span_count &&
                        (tokens < SLICE_TOKENS || list[at + count].item == list[at + count - 1].item);
             count++) {
            spans[count] = list[at + count].span;
            tokens += spans[count].end;
        }
        if (fr_progress_stop(run->options->progress))
            return fr_error_set(error, FR_STOPPED, "core", "the same command goes on where this one stopped",
                                "stopped by request");
        FR_TRY(run->source(run->source_context, count, spans, error));
        take_answers(c, list + at, spans, count);
        run->result->rows += count;
        run->result->tokens += tokens;
    }
    return FR_OK;
}

static void judge(const core_run *run, chunk *c, core_task_run *t, int i)
{
    const fr_core_rows *rows = &c->rows[i];
    fr_core_answer *a = &t->answers[c->indices[i]];
    *a = (fr_core_answer){.prediction = -1};
    if (t->task->kind == FR_CORE_LANGUAGE) {
        a->prediction = a->correct = c->followed[i] && !rows->misaligned;
        a->gold = 1;
        a->tied = 1;
        a->gold_tied = a->correct;
    } else {
        fr_core_choose(c->losses[i], rows->count, t->items.items[c->indices[i]].gold, a);
    }
    a->invalid = c->broken[i] || rows->misaligned;
    for (int k = 0; k < rows->count; k++) {
        a->empty = a->empty || (rows->rows[k].first >= rows->rows[k].end && !rows->misaligned);
        a->longer = a->longer || rows->rows[k].count - 1 > run->options->context;
    }
    a->cut = rows->cut > 0;
    if (a->invalid) {
        a->prediction = -1;
        a->correct = a->gold_tied = false;
    }
    t->known[c->indices[i]] = true;
}

static fr_status score_chunk(const core_run *run, chunk *c, core_task_run *t, fr_error *error)
{
    asked *list = NULL;
    double start = core_now();
    fr_arena_clear(&c->arena);
    FR_TRY(make_rows(c, run, t, error));
    FR_TRY(list_spans(c, t->task->kind == FR_CORE_LANGUAGE, &list, error));
    FR_TRY(ask(run, c, list, error));
    for (int i = 0; i < c->count; i++)
        judge(run, c, t, i);
    double seconds = core_now() - start;
    t->seconds += seconds;
    return core_log_answers(run, t, c->indices, c->count, seconds, error);
}

/* ---- one task --------------------------------------------------------------------------------------- */

static void print_items(const core_run *run, const core_task_run *t)
{
    fr_buffer line;
    if (!run->items_writer)
        return;
    fr_buffer_init(&line, 0);
    for (int64_t i = 0; i < t->items.count; i++) {
        const fr_core_answer *a = &t->answers[i];
        fr_buffer_clear(&line);
        fr_buffer_printf(
            &line,
            "{\"task\":\"%s\",\"item\":%lld,\"prediction\":%d,\"gold\":%d,\"correct\":%s,\"tied\":%d,"
            "\"invalid\":%s,\"empty\":%s,\"long\":%s}\n",
            t->task->label, (long long)i, a->prediction, a->gold, a->correct ? "true" : "false", a->tied,
            a->invalid ? "true" : "false", a->empty ? "true" : "false", a->longer ? "true" : "false");
        fr_file_writer_append(run->items_writer, line.data, line.length);
    }
    run->items_writer->failed = run->items_writer->failed || line.failed;
    fr_buffer_release(&line);
}

static double commonest_share(const core_task_run *t)
{
    int64_t most = 0;
    for (int64_t i = 0; i < t->items.count; i++) { /* few thousand items, compared by length first */
        int64_t same = 0;
        const fr_core_text *a = t->items.items[i].options;
        for (int64_t j = i; j < t->items.count; j++) {
            const fr_core_text *b = t->items.items[j].options;
            same += a->count == b->count && memcmp(a->bytes, b->bytes, a->count) == 0;
        }
        most = same > most ? same : most;
    }
    return (double)most / (double)t->items.count;
}

static void sum_up(const core_run *run, const core_task_run *t, fr_core_task_result *r)
{
    double credit = 0;
    for (int64_t i = 0; i < t->items.count; i++) {
        const fr_core_answer *a = &t->answers[i];
        r->n++;
        r->correct += a->correct;
        r->invalid += a->invalid;
        r->empty += a->empty;
        r->tied += a->tied > 1;
        r->longer += a->longer;
        r->cut += a->cut;
        credit += run->options->ties_chance && !a->invalid ? (a->gold_tied ? 1.0 / a->tied : 0) : a->correct;
    }
    r->accuracy = credit / (double)r->n;
    r->seconds = t->seconds;
    r->resumed = t->resumed;
    r->guess = t->task->kind == FR_CORE_LANGUAGE ? commonest_share(t) : t->task->chance;
    r->done = true;
}

static fr_status score_items(const core_run *run, core_task_run *t, fr_error *error)
{
    fr_status status = FR_OK;
    int64_t *order = core_order(t, NULL);
    chunk *c = fr_allocate(sizeof *c);
    if (!order || !c) {
        fr_deallocate(order);
        fr_deallocate(c);
        return fr_error_memory(error, sizeof *c, "a chunk of items");
    }
    fr_arena_init(&c->arena, 1 << 20);
    for (int64_t next = 0; status == FR_OK && next < t->items.count;) {
        fr_progress_update(run->options->progress, "core", (double)next, (double)t->items.count,
                           t->task->label);
        gather(c, t, order, &next);
        if (c->count)
            status = score_chunk(run, c, t, error);
    }
    fr_arena_release(&c->arena);
    fr_deallocate(c);
    fr_deallocate(order);
    return status;
}

static fr_status score_task(const core_run *run, fr_core_task_result *r, fr_error *error)
{
    core_task_run t;
    FR_TRY(core_task_open(&t, run, r->task, error));
    fr_status status = score_items(run, &t, error);
    if (status == FR_OK) {
        sum_up(run, &t, r);
        print_items(run, &t);
        fr_progress_message(run->options->progress, "%s: %.4f of %lld items, %.1f s", r->task->label,
                            r->accuracy, (long long)r->n, r->seconds);
    }
    core_task_close(&t);
    return status;
}

/* ---- all -------------------------------------------------------------------------------------------- */

static fr_status unknown_task(const char *label, const char *const *labels, int count, fr_error *error)
{
    char hint[200];
    const char *near = fr_nearest(label, labels, (size_t)count);
    snprintf(hint, sizeof hint, near ? "did you mean '%.100s'?" : "the labels are in core.yaml%s",
             near ? near : "");
    return fr_error_set(error, FR_BAD_USAGE, "tasks", hint, "the bundle has no task '%.80s'", label);
}

static fr_status check_options(const fr_core_options *options, const fr_core_bundle *bundle, fr_error *error)
{
    const char *labels[CORE_MAX_TASKS];
    int count = fr_core_bundle_tasks(bundle);
    for (int i = 0; i < count; i++)
        labels[i] = fr_core_bundle_task(bundle, i)->label;
    for (int i = 0; i < options->task_count; i++) {
        bool found = false;
        for (int k = 0; k < count; k++)
            found = found || strcmp(labels[k], options->tasks[i]) == 0;
        if (!found)
            return unknown_task(options->tasks[i], labels, count, error);
    }
    if (options->log_path && !options->model_hash)
        return fr_error_set(error, FR_BAD_USAGE, "core", NULL, "a log needs a hash that names the model");
    if (options->max_per_task < 0)
        return fr_error_set(error, FR_BAD_USAGE, "max-per-task", NULL, "it cannot be negative");
    return FR_OK;
}

static fr_status check_any(const core_run *run, fr_error *error)
{
    for (int i = 0; i < run->result->task_count; i++)
        if (core_wanted(run, run->result->tasks[i].task))
            return FR_OK;
    return fr_error_set(error, FR_BAD_DATA, run->result->tasks[0].task->file,
                        "fetch the bundle again, or ask for --tasks whose files it has",
                        "no task that is asked for has its file in the bundle");
}

static fr_status score_tasks(core_run *run, fr_error *error)
{
    FR_TRY(check_any(run, error));
    FR_TRY(core_forecast(run, error));
    for (int i = 0; i < run->result->task_count; i++)
        if (core_wanted(run, run->result->tasks[i].task))
            FR_TRY(score_task(run, &run->result->tasks[i], error));
    return FR_OK;
}

static fr_status run_logged(core_run *run, fr_error *error)
{
    int64_t dropped;
    if (!run->options->log_path)
        return score_tasks(run, error);
    FR_TRY(fr_log_open(&run->log, run->options->log_path, &dropped, error));
    fr_status status = score_tasks(run, error);
    fr_log_close(run->log);
    return status;
}

static fr_status run_all(core_run *run, fr_error *error)
{
    fr_file_writer writer;
    if (!run->options->items_path)
        return run_logged(run, error);
    FR_TRY(fr_file_writer_begin(&writer, run->options->items_path, error));
    run->items_writer = &writer;
    fr_status status = run_logged(run, error);
    if (status == FR_OK)
        return fr_file_writer_commit(&writer, error);
    fr_file_writer_abort(&writer);
    return status;
}

static fr_status scorer_source(void *context, int64_t count, fr_span *spans, fr_error *error)
{
    return fr_scorer_spans(context, count, spans, error);
}

fr_status fr_eval_core_from(fr_span_source source, void *context, const fr_tokenizer *tokenizer,
                            const fr_core_bundle *bundle, const fr_core_options *options,
                            fr_core_result **out, fr_error *error)
{
    core_run run = {.source = source,
                    .source_context = context,
                    .scorer = source == scorer_source ? context : NULL,
                    .tokenizer = tokenizer,
                    .options = options};
    double start = core_now();
    *out = NULL;
    FR_TRY(check_options(options, bundle, error));
    FR_TRY(fr_core_result_create(&run.result, bundle, error));
    fr_status status = run_all(&run, error);
    if (status != FR_OK) {
        fr_core_result_free(run.result);
        return status;
    }
    fr_core_summarize(run.result);
    run.result->seconds = core_now() - start;
    *out = run.result;
    return FR_OK;
}

fr_status fr_eval_core(fr_scorer *scorer, const fr_core_bundle *bundle, const fr_core_options *options,
                       fr_core_result **out, fr_error *error)
{
    const fr_recipe *recipe = fr_scorer_recipe(scorer);
    fr_core_options filled = *options;
    if (!fr_scorer_tokenizer(scorer))
        return fr_error_set(error, FR_BUG, "core", "use fr_eval_core_from", "the scorer has no tokenizer");
    if (!filled.context)
        filled.context = recipe->model.context;
    if (!filled.most_tokens && strcmp(recipe->model.position, "learned") == 0)
        filled.most_tokens = recipe->model.context; /* there is no position beyond it */
    return fr_eval_core_from(scorer_source, scorer, fr_scorer_tokenizer(scorer), bundle, &filled, out, error);
}
