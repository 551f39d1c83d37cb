/* The items of a task: read, checked, shuffled as Python would, cut.
 *
 * A line that is not what its kind of task needs is an error with its number, never a skipped item: leaving
 * one out would change which examples every other item is given. The cut comes after the shuffle and before
 * few-shot examples are chosen, so a shortened task draws its examples from the shortened list, as the
 * reference does.
 */
#include "base/json.h"
#include "eval/core_bundle.h"
#include "eval/core_text.h"

#include <string.h>

enum { MAX_OPTIONS = 1000 };

typedef struct loading {
    fr_core_items *items;
    const fr_core_task *task;
    int64_t capacity;
} loading;

static fr_status refuse(const loading *l, int64_t line, fr_error *error, const char *what, const char *key)
{
    char where[280];
    snprintf(where, sizeof where, "%.250s:%lld", l->task->file, (long long)line);
    return fr_error_set(error, FR_BAD_DATA, where,
                        "the file is not as it was published; fetch the bundle again",
                        "an item of '%.60s' needs %s '%s'", l->task->label, what, key);
}

static bool keep_text(const loading *l, const json_t *value, fr_core_text *out)
{
    size_t count = json_string_length(value);
    char *copy = fr_arena_alloc(&l->items->arena, count + 1);
    if (copy)
        memcpy(copy, json_string_value(value), count);
    *out = (fr_core_text){copy, count};
    return copy != NULL;
}

static fr_status read_text(const loading *l, const json_t *object, const char *key, int64_t line,
                           fr_core_text *out, fr_error *error)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return refuse(l, line, error, "a text", key);
    return keep_text(l, value, out) ? FR_OK : fr_error_memory(error, 1 << 16, "evaluation items");
}

static fr_status read_options(const loading *l, const json_t *object, const char *key, int64_t line,
                              fr_core_item *item, fr_error *error)
{
    const json_t *list = json_object_get(object, key), *gold = json_object_get(object, "gold");
    size_t count = json_array_size(list);
    if (count < 1 || count > MAX_OPTIONS)
        return refuse(l, line, error, "a list of 1 to 1000 texts", key);
    item->options = fr_arena_alloc(&l->items->arena, count * sizeof *item->options);
    for (size_t i = 0; i < count; i++) {
        if (!json_is_string(json_array_get(list, i)))
            return refuse(l, line, error, "a list of texts", key);
        if (!item->options || !keep_text(l, json_array_get(list, i), &item->options[i]))
            return fr_error_memory(error, 1 << 16, "evaluation items");
    }
    if (!json_is_integer(gold) || json_integer_value(gold) < 0 ||
        json_integer_value(gold) >= (json_int_t)count)
        return refuse(l, line, error, "the number of one of its options as", "gold");
    item->option_count = (int)count;
    item->gold = (int)json_integer_value(gold);
    return FR_OK;
}

static fr_status read_language(const loading *l, const json_t *object, int64_t line, fr_core_item *item,
                               fr_error *error)
{
    item->options = fr_arena_alloc(&l->items->arena, sizeof *item->options);
    if (!item->options)
        return fr_error_memory(error, sizeof *item->options, "evaluation items");
    FR_TRY(read_text(l, object, "context", line, &item->text, error));
    item->text = core_strip(item->text);
    item->option_count = 1;
    return read_text(l, object, "continuation", line, &item->options[0], error);
}

static fr_status read_item(const loading *l, const json_t *object, int64_t line, fr_core_item *item,
                           fr_error *error)
{
    switch (l->task->kind) {
    case FR_CORE_CHOICE:
        FR_TRY(read_text(l, object, "query", line, &item->text, error));
        return read_options(l, object, "choices", line, item, error);
    case FR_CORE_SCHEMA:
        FR_TRY(read_text(l, object, "continuation", line, &item->text, error));
        return read_options(l, object, "context_options", line, item, error);
    default: return read_language(l, object, line, item, error);
    }
}

static fr_status add_item(void *context, const json_t *object, int64_t line, fr_error *error)
{
    loading *l = context;
    fr_core_items *items = l->items;
    if (items->count == l->capacity) {
        int64_t capacity = l->capacity ? 2 * l->capacity : 256;
        fr_core_item *grown = fr_reallocate(items->items, (size_t)capacity * sizeof *grown);
        if (!grown)
            return fr_error_memory(error, (size_t)capacity * sizeof *grown, "evaluation items");
        items->items = grown;
        l->capacity = capacity;
    }
    fr_core_item item = {.line = line};
    FR_TRY(read_item(l, object, line, &item, error));
    items->items[items->count++] = item;
    return FR_OK;
}

static fr_status shuffle(fr_core_items *items, fr_error *error)
{
    size_t count = (size_t)items->count;
    int64_t *order = fr_allocate(count * sizeof *order);
    fr_core_item *shuffled = fr_allocate(count * sizeof *shuffled);
    fr_status status =
        order && shuffled ? FR_OK : fr_error_memory(error, count * sizeof *shuffled, "evaluation items");
    if (status == FR_OK) {
        fr_python_random rng;
        for (int64_t i = 0; i < items->count; i++)
            order[i] = i;
        fr_python_seed(&rng, 1337);
        fr_python_shuffle(&rng, order, items->count);
        for (int64_t i = 0; i < items->count; i++)
            shuffled[i] = items->items[order[i]];
        fr_core_item *held = items->items;
        items->items = shuffled;
        shuffled = held;
    }
    fr_deallocate(order);
    fr_deallocate(shuffled);
    return status;
}

static fr_status check_count(const fr_core_items *items, const fr_core_task *task, int64_t max_per_task,
                             fr_error *error)
{
    if (items->count == 0)
        return fr_error_set(error, FR_BAD_DATA, task->file, "fetch the bundle again, or leave the task out",
                            "the task '%.60s' has no items", task->label);
    if (items->count > task->shots)
        return FR_OK;
    return fr_error_set(error, max_per_task ? FR_BAD_USAGE : FR_BAD_DATA,
                        max_per_task ? "max-per-task" : task->file,
                        max_per_task ? "examples come from the shortened list: ask for more items" : NULL,
                        "the task '%.60s' shows %lld examples of others and there are only %lld items",
                        task->label, (long long)task->shots, (long long)items->count);
}

static fr_status load(loading *l, int64_t max_per_task, fr_error *error)
{
    fr_core_items *items = l->items;
    char *text;
    size_t bytes;
    FR_TRY(fr_file_read(&items->arena, l->task->file, &text, &bytes, error));
    fr_sha256(text, bytes, items->sha256);
    text[bytes] = '\n'; /* in place of the NUL: a last line that is cut is an error here, not a torn write */
    memset(text, ' ', core_mark_bytes(text, bytes));
    FR_TRY(fr_json_lines(text, bytes + 1, l->task->file, add_item, l, NULL, error));
    if (items->count >= INT32_MAX)
        return fr_error_set(error, FR_BAD_DATA, l->task->file, NULL, "too many items");
    if (items->count > 0)
        FR_TRY(shuffle(items, error));
    if (max_per_task > 0 && items->count > max_per_task)
        items->count = max_per_task;
    else
        max_per_task = 0;
    return check_count(items, l->task, max_per_task, error);
}

fr_status fr_core_items_load(fr_core_items *out, const fr_core_task *task, int64_t max_per_task,
                             fr_error *error)
{
    *out = (fr_core_items){0};
    loading l = {.items = out, .task = task};
    fr_arena_init(&out->arena, 1 << 20);
    fr_status status = load(&l, max_per_task, error);
    if (status != FR_OK)
        fr_core_items_release(out);
    return status;
}

void fr_core_items_release(fr_core_items *items)
{
    fr_deallocate(items->items);
    fr_arena_release(&items->arena);
    *items = (fr_core_items){0};
}
