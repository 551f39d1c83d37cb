/* json.c: reading JSON with care and writing it the same way every time.
 *
 * jansson parses; this file adds what a trusted document needs around it: errors that name path:line, no
 * duplicate keys, getters that check type and range, and one deterministic printer. The printer is ours
 * because receipts are hashed and replayed: keys must come in byte order and a real must be the shortest text
 * that reads back to the same bits, neither of which jansson promises.
 */
#include "base/json.h"
#include "base/numbers.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------------------- */

static fr_status parse_at(json_t **out, const char *text, size_t bytes, const char *origin,
                          int64_t first_line, fr_error *error)
{
    json_error_t problem;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
    if (root) {
        *out = root;
        return FR_OK;
    }
    char where[300];
    long long line = first_line + (problem.line > 0 ? problem.line - 1 : 0);
    snprintf(where, sizeof where, "%.270s:%lld", origin, line);
    if (json_error_code(&problem) == json_error_out_of_memory)
        return fr_error_memory(error, bytes, origin);
    return fr_error_set(error, FR_BAD_DATA, where, "the file is damaged or not JSON", "invalid JSON: %s",
                        problem.text);
}

fr_status fr_json_parse(json_t **out, const char *text, size_t bytes, const char *origin, fr_error *error)
{
    return parse_at(out, text, bytes, origin, 1, error);
}

fr_status fr_json_read(json_t **out, const char *path, fr_error *error)
{
    fr_mapping mapping;
    FR_TRY(fr_mapping_init(&mapping, path, error));
    fr_status status = parse_at(out, (const char *)mapping.data, mapping.bytes, path, 1, error);
    fr_mapping_release(&mapping);
    return status;
}

static bool is_blank(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!strchr(" \t\r", text[i]) || text[i] == '\0')
            return false;
    return true;
}

fr_status fr_json_lines(const char *text, size_t bytes, const char *origin,
                        fr_status (*visit)(void *context, const json_t *value, int64_t line, fr_error *error),
                        void *context, bool *torn, fr_error *error)
{
    int64_t line = 0;
    if (torn)
        *torn = false;
    for (size_t at = 0; at < bytes;) {
        const char *newline = memchr(text + at, '\n', bytes - at);
        size_t length = newline ? (size_t)(newline - text) - at : bytes - at;
        line++;
        if (!is_blank(text + at, length)) {
            json_t *value;
            fr_status status = parse_at(&value, text + at, length, origin, line, error);
            if (status == FR_BAD_DATA && !newline) {
                if (torn)
                    *torn = true;
                if (error)
                    *error = (fr_error){0};
                return FR_OK;
            }
            FR_TRY(status);
            status = visit(context, value, line, error);
            json_decref(value);
            FR_TRY(status);
        }
        at += length + 1;
    }
    return FR_OK;
}

/* ---- getters ----------------------------------------------------------------------------------- */

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {"an object", "an array", "a string", "a whole number",
                                        "a number",  "true",     "false",    "null"};
    return names[json_typeof(value)];
}

static fr_status mistyped(const json_t *value, const char *key, const char *wanted, const char *where,
                          fr_error *error)
{
    if (!value)
        return fr_error_set(error, FR_BAD_DATA, where, NULL, "the key '%s' is missing", key);
    return fr_error_set(error, FR_BAD_DATA, where, NULL, "'%s' must be %s, not %s", key, wanted,
                        type_name(value));
}

bool fr_json_has(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value);
}

fr_status fr_json_get_int(const json_t *object, const char *key, int64_t least, int64_t most, int64_t *out,
                          const char *where, fr_error *error)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        return mistyped(value, key, "a whole number", where, error);
    int64_t number = json_integer_value(value);
    if (number < least || number > most)
        return fr_error_set(error, FR_BAD_DATA, where, NULL, "'%s' is %lld, out of range %lld to %lld", key,
                            (long long)number, (long long)least, (long long)most);
    *out = number;
    return FR_OK;
}

fr_status fr_json_get_real(const json_t *object, const char *key, double *out, const char *where,
                           fr_error *error)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        return mistyped(value, key, "a number", where, error);
    *out = json_number_value(value);
    return FR_OK;
}

fr_status fr_json_get_bool(const json_t *object, const char *key, bool *out, const char *where,
                           fr_error *error)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value))
        return mistyped(value, key, "true or false", where, error);
    *out = json_is_true(value);
    return FR_OK;
}

fr_status fr_json_get_string(const json_t *object, const char *key, const char **out, const char *where,
                             fr_error *error)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return mistyped(value, key, "a string", where, error);
    *out = json_string_value(value);
    return FR_OK;
}

fr_status fr_json_get_object(const json_t *object, const char *key, json_t **out, const char *where,
                             fr_error *error)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_object(value))
        return mistyped(value, key, "an object", where, error);
    *out = value;
    return FR_OK;
}

fr_status fr_json_get_array(const json_t *object, const char *key, json_t **out, const char *where,
                            fr_error *error)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_array(value))
        return mistyped(value, key, "an array", where, error);
    *out = value;
    return FR_OK;
}

/* ---- setters ----------------------------------------------------------------------------------- */

bool fr_json_set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

bool fr_json_set_int(json_t *object, const char *key, int64_t value)
{
    return fr_json_set(object, key, json_integer(value));
}

bool fr_json_set_real(json_t *object, const char *key, double value)
{
    return fr_json_set(object, key, isfinite(value) ? json_real(value) : json_null());
}

bool fr_json_set_bool(json_t *object, const char *key, bool value)
{
    return fr_json_set(object, key, json_boolean(value));
}

bool fr_json_set_string(json_t *object, const char *key, const char *value)
{
    return fr_json_set(object, key, fr_json_text(value, strlen(value)));
}

json_t *fr_json_text(const char *bytes, size_t count)
{
    json_t *value = json_stringn(bytes, count);
    if (value)
        return value;
    fr_buffer fixed;
    fr_buffer_init(&fixed, 0);
    for (size_t i = 0; i < count;) {
        int length = fr_utf8_character((const unsigned char *)bytes + i, count - i);
        if (length)
            fr_buffer_append(&fixed, bytes + i, (size_t)length);
        else
            fr_buffer_append(&fixed, "\xEF\xBF\xBD", 3);
        i += length ? (size_t)length : 1;
    }
    value = fixed.failed ? NULL : json_stringn(fixed.data, fixed.length);
    fr_buffer_release(&fixed);
    return value;
}

/* ---- printing ---------------------------------------------------------------------------------- */

static void print_string(const char *text, size_t bytes, fr_buffer *out)
{
    size_t plain = 0; /* start of the part not yet written */
    fr_buffer_append(out, "\"", 1);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7F)
            continue;
        fr_buffer_append(out, text + plain, i - plain);
        if (c == '"' || c == '\\')
            fr_buffer_printf(out, "\\%c", c);
        else if (c == '\n')
            fr_buffer_append(out, "\\n", 2);
        else
            fr_buffer_printf(out, "\\u%04x", c);
        plain = i + 1;
    }
    fr_buffer_append(out, text + plain, bytes - plain);
    fr_buffer_append(out, "\"", 1);
}

static void print_break(int indent, int depth, fr_buffer *out)
{
    if (indent > 0)
        fr_buffer_printf(out, "\n%*s", indent * depth, "");
}

static void print_value(const json_t *value, int indent, int depth, fr_buffer *out);

static void print_array(const json_t *array, int indent, int depth, fr_buffer *out)
{
    size_t count = json_array_size(array);
    fr_buffer_append(out, "[", 1);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fr_buffer_append(out, ",", 1);
        print_break(indent, depth + 1, out);
        print_value(json_array_get(array, i), indent, depth + 1, out);
    }
    if (count > 0)
        print_break(indent, depth, out);
    fr_buffer_append(out, "]", 1);
}

static int compare_keys(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void print_object(const json_t *object, int indent, int depth, fr_buffer *out)
{
    size_t count = json_object_size(object), i = 0;
    const char **keys = fr_allocate((count + 1) * sizeof *keys);
    if (!keys) {
        out->failed = true;
        return;
    }
    json_t *walked = (json_t *)(uintptr_t)object; /* jansson's iterator takes a non-const object */
    for (void *at = json_object_iter(walked); at; at = json_object_iter_next(walked, at))
        keys[i++] = json_object_iter_key(at);
    qsort(keys, count, sizeof *keys, compare_keys);
    fr_buffer_append(out, "{", 1);
    for (i = 0; i < count; i++) {
        if (i > 0)
            fr_buffer_append(out, ",", 1);
        print_break(indent, depth + 1, out);
        print_string(keys[i], strlen(keys[i]), out);
        fr_buffer_append(out, ": ", indent > 0 ? 2 : 1);
        print_value(json_object_get(object, keys[i]), indent, depth + 1, out);
    }
    if (count > 0)
        print_break(indent, depth, out);
    fr_buffer_append(out, "}", 1);
    fr_deallocate(keys);
}

static void print_value(const json_t *value, int indent, int depth, fr_buffer *out)
{
    char number[32];
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        print_object(value, indent, depth, out);
        break;
    case JSON_ARRAY:
        print_array(value, indent, depth, out);
        break;
    case JSON_STRING:
        print_string(json_string_value(value), json_string_length(value), out);
        break;
    case JSON_INTEGER:
        fr_buffer_printf(out, "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        fr_buffer_printf(out, "%s", fr_format_real(number, sizeof number, json_real_value(value)));
        break;
    case JSON_TRUE:
        fr_buffer_append(out, "true", 4);
        break;
    case JSON_FALSE:
        fr_buffer_append(out, "false", 5);
        break;
    case JSON_NULL:
        fr_buffer_append(out, "null", 4);
        break;
    }
}

void fr_json_print(const json_t *value, int indent, fr_buffer *out)
{
    if (value)
        print_value(value, indent, 0, out);
    else
        out->failed = true;
}

fr_status fr_json_write(const json_t *value, const char *path, fr_error *error)
{
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_json_print(value, 2, &text);
    fr_buffer_append(&text, "\n", 1);
    fr_status status = text.failed ? fr_error_memory(error, text.length, path)
                                   : fr_file_write(path, text.data, text.length, error);
    fr_buffer_release(&text);
    return status;
}
