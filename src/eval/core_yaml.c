/* core.yaml, in the part of YAML that evaluation bundles use.
 *
 *     icl_tasks:
 *     -
 *       label: arc_easy                  or "- label: arc_easy" on one line
 *       num_fewshot: [10]
 *       continuation_delimiter: "\nAnswer: "
 *
 * One list of flat maps; plain, "double" and 'single' quoted scalars; a list of whole numbers in brackets;
 * comments. Anything else is an error with its line, never a guess: a delimiter read wrongly would change
 * every score of a task and look like a worse model.
 */
#include "eval/core_bundle.h"

#include <string.h>

typedef enum task_key {
    KEY_LABEL,
    KEY_FILE,
    KEY_SHOTS,
    KEY_KIND,
    KEY_DELIMITER,
    KEY_CATEGORIES,
    KEYS
} task_key;
static const char *const key_names[KEYS] = {
    "label", "dataset_uri", "num_fewshot", "icl_task_type", "continuation_delimiter", "has_categories"};
static const bool key_required[KEYS] = {true, true, true, true, false, false};
static const char *const kind_names[] = {"multiple_choice", "schema", "language_modeling"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

const char *fr_core_kind_name(fr_core_kind kind)
{
    return kind_names[kind];
}

typedef struct reader {
    fr_core_bundle *bundle;
    const char *origin;
    int64_t line, task_line;
    int indent;         /* of the keys of this task; -1: not seen yet */
    int list_indent;    /* of the dashes; -1: not seen yet */
    bool in_list;       /* "icl_tasks:" was seen */
    unsigned seen;      /* keys of this task, as bits */
    fr_core_task *task; /* NULL before the first */
} reader;

__attribute__((format(printf, 3, 4))) static fr_status refuse(const reader *r, fr_error *error,
                                                              const char *format, ...)
{
    char what[300], where[280];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(where, sizeof where, "%.250s:%lld", r->origin, (long long)r->line);
    return fr_error_set(error, FR_BAD_DATA, where, "compare with the core.yaml of the published bundle", "%s",
                        what);
}

/* ---- values ----------------------------------------------------------------------------------------- */

/* Only spaces and a comment may follow a value. */
static bool ends_here(const char *text)
{
    const char *rest = text + strspn(text, " \t");
    return *rest == 0 || (*rest == '#' && rest > text);
}

static int escaped(char c)
{
    static const char names[] = "ntr\"\\/", values[] = "\n\t\r\"\\/";
    const char *at = c ? strchr(names, c) : NULL;
    return at ? values[at - names] : -1;
}

/* After the opening quote. The text shrinks in place. */
static fr_status read_quoted(const reader *r, char *text, char quote, fr_error *error)
{
    char *out = text, *in = text;
    for (; *in && !(*in == quote && !(quote == '\'' && in[1] == '\'')); in++) {
        char c = *in;
        if (quote == '"' && c == '\\') {
            int value = escaped(*++in);
            if (value < 0)
                return refuse(r, error, "the escape \\%c is not supported", *in ? *in : ' ');
            c = (char)value;
        } else if (quote == '\'' && c == '\'') {
            in++;
        }
        *out++ = c;
    }
    if (!*in)
        return refuse(r, error, "the quote does not end");
    if (!ends_here(in + 1))
        return refuse(r, error, "text follows the quote");
    *out = 0;
    return FR_OK;
}

/* A scalar in place: *value points to its text. */
static fr_status read_scalar(const reader *r, char **value, fr_error *error)
{
    char *text = *value;
    if (*text == '"' || *text == '\'') {
        *value = text + 1;
        return read_quoted(r, text + 1, *text, error);
    }
    if (*text == 0 || *text == '#' || strchr("[]{}&*!|>%@`", *text))
        return refuse(r, error, "a value is missing or of a kind that is not supported: '%.60s'", text);
    char *comment = strstr(text, " #");
    if (comment)
        *comment = 0;
    for (size_t n = strlen(text); n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'); n--)
        text[n - 1] = 0;
    return strstr(text, ": ") ? refuse(r, error, "a value may not hold ': ' without quotes") : FR_OK;
}

static fr_status read_shots(const reader *r, char *text, fr_error *error)
{
    char *end = strchr(text, ']'), *number = text + (*text == '[');
    if (*text == '[' && (!end || !ends_here(end + 1)))
        return refuse(r, error, "the list does not end with ]");
    if (*text == '[' && end)
        *end = 0;
    else
        FR_TRY(read_scalar(r, &number, error));
    number += strspn(number, " ");
    number[strcspn(number, " ")] = 0;
    if (fr_parse_int(number, 0, 1000, &r->task->shots, "num_fewshot", NULL) != FR_OK)
        return refuse(r, error, "num_fewshot must be one whole number up to 1000, as in [10]");
    return FR_OK;
}

static fr_status read_kind(const reader *r, const char *text, fr_error *error)
{
    for (int k = 0; k < KINDS; k++)
        if (strcmp(text, kind_names[k]) == 0) {
            r->task->kind = (fr_core_kind)k;
            return FR_OK;
        }
    return refuse(r, error, "icl_task_type '%.60s' is not one of multiple_choice, schema, language_modeling",
                  text);
}

/* The file is opened below eval_data/, and only there. */
static fr_status check_file(const reader *r, const char *text, fr_error *error)
{
    bool outside = text[0] == '/' || text[0] == 0 || strcmp(text, "..") == 0 ||
                   strncmp(text, "../", 3) == 0 || strstr(text, "/../");
    return outside ? refuse(r, error, "dataset_uri must be a path below eval_data/") : FR_OK;
}

static fr_status keep(const reader *r, const char **out, const char *text, fr_error *error)
{
    *out = fr_arena_strdup(&r->bundle->arena, text);
    return *out ? FR_OK : fr_error_memory(error, strlen(text), r->origin);
}

static fr_status set_key(reader *r, task_key key, char *value, fr_error *error)
{
    if (r->seen >> key & 1)
        return refuse(r, error, "'%s' is given twice", key_names[key]);
    r->seen |= 1u << key;
    if (key == KEY_SHOTS)
        return read_shots(r, value, error);
    FR_TRY(read_scalar(r, &value, error));
    switch (key) {
    case KEY_LABEL: return keep(r, &r->task->label, value, error);
    case KEY_FILE: FR_TRY(check_file(r, value, error)); return keep(r, &r->task->file, value, error);
    case KEY_KIND: return read_kind(r, value, error);
    case KEY_DELIMITER: return keep(r, &r->task->delimiter, value, error);
    default: return FR_OK; /* has_categories changes nothing here */
    }
}

/* ---- lines ------------------------------------------------------------------------------------------ */

static fr_status read_pair(reader *r, char *text, fr_error *error)
{
    char *colon = strchr(text, ':');
    if (!colon || (colon[1] != ' ' && colon[1] != 0))
        return refuse(r, error, "expected 'key: value', found '%.60s'", text);
    *colon = 0;
    char *value = colon + 1 + strspn(colon + 1, " \t");
    for (int k = 0; k < KEYS; k++)
        if (strcmp(text, key_names[k]) == 0)
            return set_key(r, (task_key)k, value, error);
    const char *near = fr_nearest(text, key_names, KEYS);
    return refuse(r, error, "unknown key '%.60s'%s%s%s", text, near ? ", did you mean '" : "",
                  near ? near : "", near ? "'?" : "");
}

static fr_status end_task(reader *r, fr_error *error)
{
    if (!r->task)
        return FR_OK;
    int64_t line = r->line;
    r->line = r->task_line;
    for (int k = 0; k < KEYS; k++)
        if (key_required[k] && !(r->seen >> k & 1))
            return refuse(r, error, "the task has no '%s'", key_names[k]);
    for (const fr_core_task *t = r->bundle->tasks; t < r->task; t++)
        if (strcmp(t->label, r->task->label) == 0)
            return refuse(r, error, "the label '%.80s' is used twice", t->label);
    r->line = line;
    return FR_OK;
}

static fr_status begin_task(reader *r, int indent, fr_error *error)
{
    FR_TRY(end_task(r, error));
    if (!r->in_list)
        return refuse(r, error, "the list must be under 'icl_tasks:'");
    if (r->list_indent >= 0 && indent != r->list_indent)
        return refuse(r, error, "the dash is not in the column of the others");
    if (r->bundle->count == CORE_MAX_TASKS)
        return refuse(r, error, "more than %d tasks", CORE_MAX_TASKS);
    r->task = &r->bundle->tasks[r->bundle->count++];
    *r->task = (fr_core_task){.delimiter = " "};
    r->list_indent = indent;
    r->indent = -1;
    r->seen = 0;
    r->task_line = r->line;
    return FR_OK;
}

static fr_status read_top(reader *r, const char *text, fr_error *error)
{
    if (strcmp(text, "---") == 0 && !r->in_list)
        return FR_OK;
    size_t key = strlen("icl_tasks:");
    if (strncmp(text, "icl_tasks:", key) != 0 || !ends_here(text + key) || r->in_list)
        return refuse(r, error, "expected 'icl_tasks:' once, at the top; found '%.60s'", text);
    r->in_list = true;
    return FR_OK;
}

static fr_status read_line(reader *r, char *text, fr_error *error)
{
    int indent = (int)strspn(text, " ");
    char *body = text + indent;
    if (*body == '\t')
        return refuse(r, error, "tabs cannot indent");
    if (*body == 0 || *body == '#')
        return FR_OK;
    if (*body == '-' && (body[1] == ' ' || body[1] == 0)) {
        FR_TRY(begin_task(r, indent, error));
        int inner = 1 + (int)strspn(body + 1, " ");
        body += inner;
        indent += inner;
        if (*body == 0 || *body == '#')
            return FR_OK;
    }
    if (!r->task)
        return read_top(r, body, error);
    if (r->indent < 0 && indent > r->list_indent)
        r->indent = indent;
    if (indent != r->indent)
        return refuse(r, error, "the key is not in the column of the others");
    return read_pair(r, body, error);
}

fr_status core_yaml_parse(fr_core_bundle *bundle, const char *text, size_t bytes, const char *origin,
                          fr_error *error)
{
    reader r = {.bundle = bundle, .origin = origin, .indent = -1, .list_indent = -1};
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - text) - at : bytes - at;
        char line[2000];
        r.line++;
        if (length >= sizeof line || memchr(text + at, 0, length))
            return refuse(&r, error, "the line is too long or holds a NUL");
        memcpy(line, text + at, length);
        line[length - (length > 0 && line[length - 1] == '\r')] = 0;
        FR_TRY(read_line(&r, line, error));
        at += length + 1;
    }
    FR_TRY(end_task(&r, error));
    return bundle->count ? FR_OK : refuse(&r, error, "there are no tasks");
}
