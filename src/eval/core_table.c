/* eval_meta_data.csv: what chance scores at each task, and its category.
 *
 * A CSV file as RFC 4180 has it: fields in quotes may hold commas, line ends and doubled quotes. Columns
 * are found by their names in the first row. Chance is given in percent. A task of the bundle without a row
 * is an error: without its baseline it has no centred accuracy.
 */
#include "eval/core_bundle.h"

#include <string.h>

enum { MAX_FIELDS = 32 };
typedef enum column { LABEL, CATEGORY, CHANCE, COLUMNS } column;
static const char *const column_names[COLUMNS] = {"Eval Task", "Task Category", "Random baseline"};

typedef struct table {
    char *text; /* a copy; fields are cut out of it in place */
    size_t at, bytes;
    const char *origin;
    int64_t line, row_line;
    char *fields[MAX_FIELDS];
    int count;
} table;

static fr_status refuse(const table *t, fr_error *error, const char *what, const char *detail)
{
    char where[280];
    snprintf(where, sizeof where, "%.250s:%lld", t->origin, (long long)t->row_line);
    return fr_error_set(error, FR_BAD_DATA, where,
                        "compare with the eval_meta_data.csv of the published bundle", "%s%s%.80s%s", what,
                        *detail ? " '" : "", detail, *detail ? "'" : "");
}

/* Cuts one field; *last becomes true at the end of its row. */
static fr_status next_field(table *t, bool *last, fr_error *error)
{
    bool quoted = t->at < t->bytes && t->text[t->at] == '"';
    char *out = t->text + t->at, *start = out;
    t->at += quoted;
    for (; t->at < t->bytes; t->at++) {
        char c = t->text[t->at];
        if (quoted && c == '"' && t->at + 1 < t->bytes && t->text[t->at + 1] == '"')
            t->at++;
        else if (quoted ? c == '"' : c == ',' || c == '\n')
            break;
        t->line += c == '\n';
        *out++ = c;
    }
    if (quoted && t->at >= t->bytes)
        return refuse(t, error, "a quote does not end", "");
    t->at += quoted;
    if (t->at < t->bytes && t->text[t->at] == '\r')
        t->at++;
    char stop = t->at < t->bytes ? t->text[t->at] : '\n';
    if (stop != ',' && stop != '\n')
        return refuse(t, error, "text follows a quote", "");
    t->at++;
    t->line += stop == '\n';
    *last = stop == '\n';
    if (!quoted && out > start && out[-1] == '\r')
        out--;
    *out = 0; /* at most where the field's end was, which has been read */
    t->fields[t->count++] = start;
    return FR_OK;
}

static fr_status next_row(table *t, fr_error *error)
{
    t->count = 0;
    t->row_line = t->line;
    for (bool last = false; !last;) {
        if (t->count == MAX_FIELDS)
            return refuse(t, error, "the row has too many fields", "");
        FR_TRY(next_field(t, &last, error));
    }
    return FR_OK;
}

static fr_status find_columns(table *t, int *columns, fr_error *error)
{
    FR_TRY(next_row(t, error));
    for (int c = 0; c < COLUMNS; c++) {
        columns[c] = -1;
        for (int f = 0; f < t->count; f++)
            if (strcmp(t->fields[f], column_names[c]) == 0)
                columns[c] = f;
        if (columns[c] < 0)
            return refuse(t, error, "there is no column", column_names[c]);
    }
    return FR_OK;
}

static fr_core_task *task_named(fr_core_bundle *bundle, const char *label)
{
    for (int i = 0; i < bundle->count; i++)
        if (strcmp(bundle->tasks[i].label, label) == 0)
            return &bundle->tasks[i];
    return NULL;
}

static fr_status use_row(fr_core_bundle *bundle, const table *t, const int *columns, fr_error *error)
{
    double percent;
    for (int c = 0; c < COLUMNS; c++)
        if (columns[c] >= t->count)
            return refuse(t, error, "the row has no field for", column_names[c]);
    fr_core_task *task = task_named(bundle, t->fields[columns[LABEL]]);
    if (!task) /* a row about a task that this bundle does not list */
        return FR_OK;
    if (task->category)
        return refuse(t, error, "a second row for", task->label);
    if (fr_parse_real(t->fields[columns[CHANCE]], 0, 99.999, &percent, "Random baseline", NULL) != FR_OK)
        return refuse(t, error, "the random baseline must be a percentage below 100, not",
                      t->fields[columns[CHANCE]]);
    task->chance = percent / 100;
    task->category = fr_arena_strdup(&bundle->arena, t->fields[columns[CATEGORY]]);
    return task->category ? FR_OK : fr_error_memory(error, 100, t->origin);
}

fr_status core_table_parse(fr_core_bundle *bundle, const char *text, size_t bytes, const char *origin,
                           fr_error *error)
{
    table t = {.bytes = bytes, .origin = origin, .line = 1, .row_line = 1};
    int columns[COLUMNS];
    t.text = fr_arena_alloc(&bundle->arena, bytes + 2);
    if (!t.text)
        return fr_error_memory(error, bytes, origin);
    memcpy(t.text, text, bytes);
    FR_TRY(find_columns(&t, columns, error));
    while (t.at < t.bytes) {
        FR_TRY(next_row(&t, error));
        if (t.count > 1 || t.fields[0][0])
            FR_TRY(use_row(bundle, &t, columns, error));
    }
    for (int i = 0; i < bundle->count; i++)
        if (!bundle->tasks[i].category)
            return refuse(&t, error, "there is no row for the task", bundle->tasks[i].label);
    return FR_OK;
}
