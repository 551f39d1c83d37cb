/* What is already known: answers in an append-only log, found again by everything they depend on.
 *
 * A record is one JSON object: the key of a task, seconds spent, and answers as arrays of numbers. The key
 * is a hash over the weights and numerics, the tokenizer, the task's file and how it is asked; a different
 * model, bundle or --max-per-task has different keys, so a log never lends an answer to a question that was
 * not asked. How ties are counted is not in the key: both ways can be told from an answer.
 */
#include "base/json.h"
#include "eval/core_run.h"

#include <string.h>

enum { FIELDS = 7 }; /* index, prediction, tied, gold tied, correct, flags, gold */
enum { INVALID = 1, EMPTY = 2, LONGER = 4, CUT = 8 };

void core_task_key(const core_run *run, core_task_run *t)
{
    char tokenizer[65], text[1200];
    fr_tokenizer_hash(run->tokenizer, tokenizer);
    int length = snprintf(text, sizeof text, "core 1|%.200s|%s|%s|%s|%lld|%.200s|%.100s|%lld|%lld|%lld",
                          run->options->model_hash ? run->options->model_hash : "", tokenizer,
                          t->items.sha256, fr_core_kind_name(t->task->kind), (long long)t->task->shots,
                          t->task->delimiter, t->task->label, (long long)t->items.count,
                          (long long)run->options->context, (long long)run->options->most_tokens);
    fr_sha256(text, (size_t)length, t->key);
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static bool read_answer(core_task_run *t, const json_t *list)
{
    int64_t v[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value))
            return false;
        v[i] = json_integer_value(value);
    }
    if (v[0] < 0 || v[0] >= t->items.count)
        return false;
    t->answers[v[0]] = (fr_core_answer){.prediction = (int32_t)v[1],
                                        .tied = (int32_t)v[2],
                                        .gold_tied = v[3] != 0,
                                        .correct = v[4] != 0,
                                        .invalid = v[5] & INVALID,
                                        .empty = v[5] & EMPTY,
                                        .longer = v[5] & LONGER,
                                        .cut = v[5] & CUT,
                                        .gold = (int32_t)v[6]};
    t->resumed += !t->known[v[0]];
    t->known[v[0]] = true;
    return true;
}

static fr_status read_record(core_task_run *t, const json_t *record, fr_error *error)
{
    const char *key = json_string_value(json_object_get(record, "key"));
    const json_t *items = json_object_get(record, "items");
    if (!key || strcmp(key, t->key) != 0)
        return FR_OK;
    for (size_t i = 0; i < json_array_size(items); i++)
        if (!read_answer(t, json_array_get(items, i)))
            return fr_error_set(error, FR_BAD_DATA, NULL, "remove the log to score everything again",
                                "an answer in the log makes no sense");
    t->seconds += json_number_value(json_object_get(record, "seconds"));
    return FR_OK;
}

static fr_status visit(void *context, const void *bytes, size_t count, fr_error *error)
{
    json_t *record;
    FR_TRY(fr_json_parse(&record, bytes, count, "record", error));
    fr_status status = read_record(context, record, error);
    json_decref(record);
    return status;
}

fr_status core_log_recall(const core_run *run, core_task_run *t, fr_error *error)
{
    if (!run->log)
        return FR_OK;
    fr_status status = fr_log_read(run->options->log_path, visit, t, error);
    return status == FR_OK ? FR_OK : fr_error_within(error, status, run->options->log_path);
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static void print_answer(fr_buffer *out, int64_t index, const fr_core_answer *a)
{
    int flags =
        (a->invalid ? INVALID : 0) | (a->empty ? EMPTY : 0) | (a->longer ? LONGER : 0) | (a->cut ? CUT : 0);
    fr_buffer_printf(out, "[%lld,%d,%d,%d,%d,%d,%d]", (long long)index, a->prediction, a->tied, a->gold_tied,
                     a->correct, flags, a->gold);
}

fr_status core_log_answers(const core_run *run, const core_task_run *t, const int64_t *indices, int count,
                           double seconds, fr_error *error)
{
    fr_buffer text;
    if (!run->log)
        return FR_OK;
    fr_buffer_init(&text, 0);
    fr_buffer_printf(&text, "{\"key\":\"%s\",\"seconds\":%.3f,\"items\":[", t->key, seconds);
    for (int i = 0; i < count; i++) {
        fr_buffer_printf(&text, "%s", i ? "," : "");
        print_answer(&text, indices[i], &t->answers[indices[i]]);
    }
    fr_buffer_printf(&text, "]}");
    fr_status status = text.failed ? fr_error_memory(error, text.length, "the log")
                                   : fr_log_append(run->log, text.data, text.length, error);
    fr_buffer_release(&text);
    return status;
}
