/* config.c: recipes and contests as a strict subset of TOML.
 *
 * A mistyped key that is silently ignored costs a run, so nothing unknown is accepted: a key must be in the
 * schema, a section must be known, a value must have the declared type and range, and a key may be set once.
 * Every complaint names path:line and what was probably meant.
 *
 * The subset: [section] headers; bare and dotted keys; "basic" and 'literal' strings on one line; decimal
 * integers with _ between digits; floats; true and false; arrays of numbers, over several lines if liked;
 * comments. The schema is a table that also says where in the caller's struct each value goes, which makes
 * the same table serve defaults, files, --set, and the resolved file that a run keeps.
 *
 * Parsing writes to a copy of the target and copies it back at the end: a failed parse changes nothing.
 */
#include "base/numbers.h"
#include "base/utf8.h"
#include "frontier/base.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { STRING_SIZE = 64, NAME_SIZE = 128, NUMBER_SIZE = 64, MOST_KEYS = 512 };

/* One pass over one text. */
typedef struct reader {
    const fr_config_key *keys;
    size_t count;
    char *target;
    const char *at;
    const char *origin; /* file name, or the whole assignment when `line` is 0 */
    int line;
    fr_status status; /* the kind of this reader's complaints */
    fr_error *error;
} reader;

/* A value as written; checked against its key afterwards. */
typedef struct value {
    fr_config_type type;
    int64_t integer;
    double real;
    bool truth;
    char string[STRING_SIZE];
    fr_config_reals reals;
} value;

static fr_status complain(const reader *r, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static fr_status complain(const reader *r, const char *hint, const char *format, ...)
{
    char text[400], where[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (r->line > 0)
        snprintf(where, sizeof where, "%.280s:%d", r->origin, r->line);
    else
        snprintf(where, sizeof where, "%.290s", r->origin);
    return fr_error_set(r->error, r->status, where, hint, "%s", text);
}

/* ---- characters -------------------------------------------------------------------------------- */

static void skip_blanks(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

static bool at_line_end(const reader *r)
{
    return *r->at == '\0' || *r->at == '\n' || (r->at[0] == '\r' && r->at[1] == '\n');
}

static void skip_comment(reader *r)
{
    skip_blanks(r);
    if (*r->at == '#')
        while (!at_line_end(r))
            r->at++;
}

static void next_line(reader *r)
{
    if (*r->at == '\r')
        r->at++;
    if (*r->at == '\n') {
        r->at++;
        r->line++;
    }
}

static fr_status expect_line_end(reader *r, const char *after)
{
    skip_comment(r);
    if (!at_line_end(r))
        return complain(r, "one entry per line; comments start with #", "unexpected '%.20s' after %s", r->at,
                        after);
    next_line(r);
    return FR_OK;
}

static bool is_name_character(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Reads a bare or dotted name behind what `out` already holds. */
static fr_status read_name(reader *r, char *out, size_t size, const char *purpose)
{
    size_t length = strlen(out), start = length;
    while (is_name_character(*r->at) || *r->at == '.') {
        if (length + 1 >= size)
            return complain(r, NULL, "%s is too long", purpose);
        out[length++] = *r->at++;
        out[length] = '\0';
    }
    if (length == start)
        return complain(r, "write key = value or [section]", "expected %s, found '%.20s'", purpose, r->at);
    return FR_OK;
}

/* ---- values ------------------------------------------------------------------------------------ */

static int utf8_length(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    out[0] = (char)(0xE0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3F));
    out[2] = (char)(0x80 | (code & 0x3F));
    return 3;
}

/* The character an escape stands for, as UTF-8; 0 for an escape that does not exist. */
static int read_escape(reader *r, char out[4])
{
    static const char from[] = "\"\\ntrbf", to[] = "\"\\\n\t\r\b\f";
    char c = *r->at;
    const char *found = c ? strchr(from, c) : NULL;
    if (found) {
        r->at++;
        out[0] = to[found - from];
        return 1;
    }
    if (c != 'u')
        return 0;
    uint32_t code = 0;
    for (int i = 1; i <= 4; i++) {
        if (!isxdigit((unsigned char)r->at[i]))
            return 0;
        char digit = (char)tolower((unsigned char)r->at[i]);
        code = code * 16 + (uint32_t)(isdigit((unsigned char)digit) ? digit - '0' : digit - 'a' + 10);
    }
    if (code == 0 || (code >= 0xD800 && code < 0xE000))
        return 0;
    r->at += 5;
    return utf8_length(code, out);
}

/* One character of a string body into `out`; its length, or 0 after a complaint in *status. */
static int read_character(reader *r, char quote, char out[4], fr_status *status)
{
    unsigned char c = (unsigned char)*r->at;
    if (at_line_end(r)) {
        *status = complain(r, NULL, "the string is not closed on its line");
        return 0;
    }
    if (c == '\\' && quote == '"') {
        r->at++;
        int length = read_escape(r, out);
        if (!length)
            *status = complain(r, "known escapes: \\\" \\\\ \\n \\t \\r \\b \\f \\uXXXX",
                               "unknown escape '\\%.1s'", r->at);
        return length;
    }
    int length = (c < 0x20 && c != '\t') || c == 0x7F
                     ? 0
                     : fr_utf8_character((const unsigned char *)r->at, strnlen(r->at, 4));
    if (!length)
        *status = complain(r, "save the file as UTF-8", "byte 0x%02X does not belong in a string", c);
    memcpy(out, r->at, (size_t)length);
    r->at += length;
    return length;
}

static fr_status read_string(reader *r, value *v)
{
    char quote = *r->at++, character[4];
    size_t length = 0;
    fr_status status = FR_OK;
    v->type = FR_CONFIG_STRING;
    while (*r->at != quote) {
        int n = read_character(r, quote, character, &status);
        if (n == 0)
            return status;
        if (length + (size_t)n >= sizeof v->string)
            return complain(r, NULL, "the string is longer than %d bytes", STRING_SIZE - 1);
        memcpy(v->string + length, character, (size_t)n);
        length += (size_t)n;
    }
    r->at++;
    v->string[length] = '\0';
    return FR_OK;
}

/* Copies a number without its underscores; false when one is not between digits or the number is too long. */
static bool copy_number(reader *r, char *out, bool *is_real)
{
    size_t length = 0;
    *is_real = false;
    for (;; r->at++) {
        char c = *r->at;
        if (c == '_') {
            if (length == 0 || !isdigit((unsigned char)r->at[-1]) || !isdigit((unsigned char)r->at[1]))
                return false;
            continue;
        }
        bool exponent = c == 'e' || c == 'E';
        if (!isdigit((unsigned char)c) && c != '+' && c != '-' && c != '.' && !exponent)
            break;
        *is_real = *is_real || c == '.' || exponent;
        if (length + 1 >= NUMBER_SIZE)
            return false;
        out[length++] = c;
    }
    out[length] = '\0';
    return length > 0;
}

/* TOML wants digits on both sides of a point. */
static bool well_formed_real(const char *text)
{
    const char *point = strchr(text, '.');
    return !point || (point > text && isdigit((unsigned char)point[-1]) && isdigit((unsigned char)point[1]));
}

static fr_status read_number(reader *r, value *v)
{
    char text[NUMBER_SIZE];
    const char *start = r->at;
    bool is_real;
    bool copied = copy_number(r, text, &is_real);
    bool read = false;
    if (copied && is_real) {
        v->type = FR_CONFIG_REAL;
        read = well_formed_real(text) && fr_parse_real(text, -1e308, 1e308, &v->real, "", NULL) == FR_OK;
    } else if (copied) {
        v->type = FR_CONFIG_INT;
        read = fr_parse_int(text, INT64_MIN, INT64_MAX, &v->integer, "", NULL) == FR_OK;
        v->real = (double)v->integer;
    }
    if (read && !is_name_character(*r->at))
        return FR_OK;
    int length = (int)strcspn(start, " \t\r\n#,]");
    return complain(r, "strings need quotes; numbers look like 6, 65_536, 0.02 or 1e-8",
                    "'%.*s' is not a value", length > 60 ? 60 : length, start);
}

static void skip_blank_lines(reader *r)
{
    for (skip_comment(r); *r->at == '\n' || *r->at == '\r'; skip_comment(r)) {
        if (!at_line_end(r))
            return;
        next_line(r);
    }
}

static fr_status read_array(reader *r, value *v)
{
    v->type = FR_CONFIG_REALS;
    v->reals = (fr_config_reals){0};
    r->at++;
    for (skip_blank_lines(r); *r->at != ']'; skip_blank_lines(r)) {
        value element;
        if (!*r->at)
            return complain(r, "separate values with commas and close with ]", "the array is not closed");
        FR_TRY(read_number(r, &element));
        if (v->reals.count == (int)(sizeof v->reals.values / sizeof *v->reals.values))
            return complain(r, NULL, "the array has more than %d values", v->reals.count);
        v->reals.values[v->reals.count++] = element.real;
        skip_blank_lines(r);
        if (*r->at == ',')
            r->at++;
        else if (*r->at != ']')
            return complain(r, "separate values with commas and close with ]", "the array is not closed");
    }
    r->at++;
    return FR_OK;
}

static bool read_word(reader *r, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(r->at, word, length) != 0 || is_name_character(r->at[length]))
        return false;
    r->at += length;
    return true;
}

static fr_status read_value(reader *r, value *v)
{
    memset(v, 0, sizeof *v);
    if (*r->at == '"' || *r->at == '\'')
        return read_string(r, v);
    if (*r->at == '[')
        return read_array(r, v);
    v->type = FR_CONFIG_BOOL;
    v->truth = read_word(r, "true");
    if (v->truth || read_word(r, "false"))
        return FR_OK;
    if (at_line_end(r))
        return complain(r, "write key = value", "the value is missing");
    return read_number(r, v);
}

/* ---- values into the target -------------------------------------------------------------------- */

static const char *const TYPE_NAMES[] = {"a whole number", "a number", "true or false", "a string in quotes",
                                         "an array of numbers"};

static fr_status check_range(const reader *r, const fr_config_key *key, double number)
{
    bool bounded = key->least != 0 || key->most != 0;
    if (bounded && !(number >= key->least && number <= key->most))
        return complain(r, NULL, "%s = %.12g is out of range: %.12g to %.12g", key->name, number, key->least,
                        key->most);
    return FR_OK;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);
    for (const char *at = choices;; at++) {
        size_t n = strcspn(at, "|");
        if (n == length && strncmp(at, text, n) == 0)
            return true;
        at += n;
        if (!*at)
            return false;
    }
}

static fr_status check_choice(const reader *r, const fr_config_key *key, const char *text)
{
    if (!key->choices || is_choice(key->choices, text))
        return FR_OK;
    char hint[300] = "one of ";
    size_t length = strlen(hint);
    for (const char *at = key->choices; *at && length + 3 < sizeof hint; at++) {
        length += (size_t)snprintf(hint + length, sizeof hint - length, *at == '|' ? ", " : "%c", *at);
    }
    return complain(r, hint, "%s cannot be '%s'", key->name, text);
}

static fr_status store_reals(const reader *r, const fr_config_key *key, const value *v)
{
    for (int i = 0; i < v->reals.count; i++)
        FR_TRY(check_range(r, key, v->reals.values[i]));
    memcpy(r->target + key->offset, &v->reals, sizeof v->reals);
    return FR_OK;
}

static fr_status store(const reader *r, const fr_config_key *key, const value *v)
{
    bool fits = v->type == key->type || (key->type == FR_CONFIG_REAL && v->type == FR_CONFIG_INT);
    if (!fits)
        return complain(r, key->help, "%s needs %s, not %s", key->name, TYPE_NAMES[key->type],
                        TYPE_NAMES[v->type]);
    char *field = r->target + key->offset;
    switch (key->type) {
    case FR_CONFIG_INT:
        FR_TRY(check_range(r, key, v->real));
        memcpy(field, &v->integer, sizeof v->integer);
        return FR_OK;
    case FR_CONFIG_REAL:
        FR_TRY(check_range(r, key, v->real));
        memcpy(field, &v->real, sizeof v->real);
        return FR_OK;
    case FR_CONFIG_BOOL:
        memcpy(field, &v->truth, sizeof v->truth);
        return FR_OK;
    case FR_CONFIG_STRING:
        FR_TRY(check_choice(r, key, v->string));
        memcpy(field, v->string, sizeof v->string);
        return FR_OK;
    case FR_CONFIG_REALS:
        return store_reals(r, key, v);
    }
    return fr_error_set(r->error, FR_BUG, key->name, NULL, "schema type %d does not exist", (int)key->type);
}

/* ---- names ------------------------------------------------------------------------------------- */

static size_t section_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (size_t)(dot - name) : 0;
}

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static const fr_config_key *find_key(const reader *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->keys[i].name, name) == 0)
            return &r->keys[i];
    return NULL;
}

static bool same_section(const char *a, const char *b)
{
    size_t length = section_length(a);
    return length == section_length(b) && strncmp(a, b, length) == 0;
}

/* "did you mean": the nearest full name; the same key in another section; else the section's keys. */
static void suggest_key(const reader *r, const char *name, char hint[300])
{
    const char *names[MOST_KEYS] = {NULL};
    size_t count = r->count < MOST_KEYS ? r->count : MOST_KEYS;
    for (size_t i = 0; i < count; i++)
        names[i] = r->keys[i].name;
    const char *near = fr_nearest(name, names, count);
    for (size_t i = 0; i < count && !near; i++)
        if (strcmp(last_part(names[i]), last_part(name)) == 0)
            near = names[i];
    if (near) {
        snprintf(hint, 300, "did you mean '%s'?", near);
        return;
    }
    size_t length = 0;
    hint[0] = '\0';
    for (size_t i = 0; i < count && length < 280; i++)
        if (same_section(names[i], name))
            length += (size_t)snprintf(hint + length, 300 - length, "%s%s",
                                       length ? ", " : "known keys here: ", last_part(names[i]));
}

static fr_status unknown_key(const reader *r, const char *name)
{
    char hint[300];
    suggest_key(r, name, hint);
    return complain(r, hint, "unknown key '%s'", name);
}

static fr_status check_section(const reader *r, const char *section)
{
    char storage[MOST_KEYS][NAME_SIZE], hint[300] = "";
    const char *names[MOST_KEYS] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < r->count && count < MOST_KEYS; i++) {
        size_t length = section_length(r->keys[i].name);
        if (length == 0 || length >= NAME_SIZE)
            continue;
        if (strlen(section) == length && strncmp(r->keys[i].name, section, length) == 0)
            return FR_OK;
        memcpy(storage[count], r->keys[i].name, length);
        storage[count][length] = '\0';
        names[count] = storage[count];
        count++;
    }
    const char *near = fr_nearest(section, names, count);
    if (near)
        snprintf(hint, sizeof hint, "did you mean [%s]?", near);
    return complain(r, hint, "unknown section [%s]", section);
}

/* ---- whole texts ------------------------------------------------------------------------------- */

/* [section] into `section`, ready to be followed by a key: "model." */
static fr_status read_header(reader *r, char *section)
{
    r->at++;
    skip_blanks(r);
    if (*r->at == '[')
        return complain(r, "use [section]", "arrays of tables are not supported");
    section[0] = '\0';
    FR_TRY(read_name(r, section, NAME_SIZE - 2, "a section name"));
    skip_blanks(r);
    if (*r->at != ']')
        return complain(r, NULL, "the header [%s is not closed", section);
    r->at++;
    FR_TRY(check_section(r, section));
    FR_TRY(expect_line_end(r, "the section header"));
    strcat(section, ".");
    return FR_OK;
}

static fr_status read_entry(reader *r, const char *section, int *lines)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%s", section);
    FR_TRY(read_name(r, name, sizeof name, "a key"));
    skip_blanks(r);
    if (*r->at != '=')
        return complain(r, "write key = value", "expected '=' after '%s'", name);
    r->at++;
    skip_blanks(r);
    const fr_config_key *key = find_key(r, name);
    if (!key)
        return unknown_key(r, name);
    int *line = &lines[key - r->keys];
    if (*line)
        return complain(r, "keep one of them", "'%s' is already set on line %d", name, *line);
    *line = r->line;
    value v;
    FR_TRY(read_value(r, &v));
    FR_TRY(store(r, key, &v));
    return expect_line_end(r, "the value");
}

static fr_status read_all(reader *r, int *lines)
{
    char section[NAME_SIZE] = "";
    if (strncmp(r->at, "\xEF\xBB\xBF", 3) == 0)
        r->at += 3;
    for (skip_blank_lines(r); *r->at; skip_blank_lines(r))
        FR_TRY(*r->at == '[' ? read_header(r, section) : read_entry(r, section, lines));
    r->line = 0;
    for (size_t i = 0; i < r->count; i++)
        if (!r->keys[i].fallback && !lines[i])
            return complain(r, r->keys[i].help, "the required key '%s' is missing", r->keys[i].name);
    return FR_OK;
}

static size_t field_size(fr_config_type type)
{
    static const size_t sizes[] = {sizeof(int64_t), sizeof(double), sizeof(bool), STRING_SIZE,
                                   sizeof(fr_config_reals)};
    return sizes[type];
}

static size_t target_extent(const fr_config_key *keys, size_t count)
{
    size_t extent = 0;
    for (size_t i = 0; i < count; i++)
        if (keys[i].offset + field_size(keys[i].type) > extent)
            extent = keys[i].offset + field_size(keys[i].type);
    return extent;
}

fr_status fr_config_parse(const fr_config_key *keys, size_t count, void *target, const char *text,
                          const char *origin, fr_error *error)
{
    size_t extent = target_extent(keys, count), line_bytes = (count + 1) * sizeof(int);
    int *lines = fr_allocate(line_bytes + extent);
    if (!lines)
        return fr_error_memory(error, line_bytes + extent, origin);
    char *copy = (char *)lines + line_bytes;
    memcpy(copy, target, extent);
    reader r = {keys, count, copy, text, origin, 1, FR_BAD_DATA, error};
    fr_status status = read_all(&r, lines);
    if (status == FR_OK)
        memcpy(target, copy, extent);
    fr_deallocate(lines);
    return status;
}

fr_status fr_config_defaults(const fr_config_key *keys, size_t count, void *target, fr_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!keys[i].fallback)
            continue;
        reader r = {keys, count, target, keys[i].fallback, keys[i].name, 0, FR_BUG, error};
        value v;
        FR_TRY(read_value(&r, &v));
        FR_TRY(store(&r, &keys[i], &v));
        if (*r.at)
            return complain(&r, NULL, "the default has trailing characters");
    }
    return FR_OK;
}

/* On a command line the shell has eaten the quotes: a bare word is a string where a string is wanted. */
static fr_status read_argument(reader *r, const fr_config_key *key, value *v)
{
    if (key->type != FR_CONFIG_STRING || *r->at == '"' || *r->at == '\'') {
        FR_TRY(read_value(r, v));
        skip_blanks(r);
        return *r->at ? complain(r, NULL, "unexpected '%.20s' after the value", r->at) : FR_OK;
    }
    memset(v, 0, sizeof *v);
    v->type = FR_CONFIG_STRING;
    fr_status status = FR_OK;
    char character[4];
    size_t length = 0;
    while (*r->at) {
        int n = read_character(r, '\'', character, &status);
        if (n == 0)
            return status;
        if (length + (size_t)n >= sizeof v->string)
            return complain(r, NULL, "the string is longer than %d bytes", STRING_SIZE - 1);
        memcpy(v->string + length, character, (size_t)n);
        length += (size_t)n;
    }
    return FR_OK;
}

fr_status fr_config_set(const fr_config_key *keys, size_t count, void *target, const char *assignment,
                        fr_error *error)
{
    reader r = {keys, count, target, assignment, assignment, 0, FR_BAD_USAGE, error};
    char name[NAME_SIZE] = "";
    skip_blanks(&r);
    FR_TRY(read_name(&r, name, sizeof name, "a key"));
    skip_blanks(&r);
    if (*r.at != '=')
        return complain(&r, "write section.key=value", "expected '=' after '%s'", name);
    r.at++;
    skip_blanks(&r);
    const fr_config_key *key = find_key(&r, name);
    if (!key)
        return unknown_key(&r, name);
    value v;
    FR_TRY(read_argument(&r, key, &v));
    return store(&r, key, &v);
}

/* ---- writing ----------------------------------------------------------------------------------- */

static void write_string(const char *text, fr_buffer *out)
{
    fr_buffer_append(out, "\"", 1);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fr_buffer_printf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20 || *text == 0x7F)
            fr_buffer_printf(out, "\\u%04X", (unsigned)*text);
        else
            fr_buffer_append(out, text, 1);
    }
    fr_buffer_append(out, "\"", 1);
}

static void write_real(double real, fr_buffer *out)
{
    char text[32];
    fr_buffer_printf(out, "%s", fr_format_real(text, sizeof text, real));
}

static void write_reals(const fr_config_reals *reals, fr_buffer *out)
{
    fr_buffer_append(out, "[", 1);
    for (int i = 0; i < reals->count; i++) {
        if (i > 0)
            fr_buffer_append(out, ", ", 2);
        write_real(reals->values[i], out);
    }
    fr_buffer_append(out, "]", 1);
}

static void write_value(const fr_config_key *key, const char *field, fr_buffer *out)
{
    value v;
    switch (key->type) {
    case FR_CONFIG_INT:
        memcpy(&v.integer, field, sizeof v.integer);
        fr_buffer_printf(out, "%lld", (long long)v.integer);
        break;
    case FR_CONFIG_REAL:
        memcpy(&v.real, field, sizeof v.real);
        write_real(v.real, out);
        break;
    case FR_CONFIG_BOOL:
        memcpy(&v.truth, field, sizeof v.truth);
        fr_buffer_printf(out, "%s", v.truth ? "true" : "false");
        break;
    case FR_CONFIG_STRING:
        memcpy(v.string, field, sizeof v.string);
        v.string[STRING_SIZE - 1] = '\0';
        write_string(v.string, out);
        break;
    case FR_CONFIG_REALS:
        memcpy(&v.reals, field, sizeof v.reals);
        write_reals(&v.reals, out);
        break;
    }
}

static void write_entry(const fr_config_key *key, const char *target, fr_buffer *out)
{
    size_t start = out->length;
    fr_buffer_printf(out, "%s = ", last_part(key->name));
    write_value(key, target + key->offset, out);
    int width = (int)(out->length - start);
    if (key->help && key->help[0])
        fr_buffer_printf(out, "%*s # %s", width < 32 ? 32 - width : 0, "", key->help);
    fr_buffer_append(out, "\n", 1);
}

/* Keys without a section first, then each section once, in the order the schema first names it. */
void fr_config_write(const fr_config_key *keys, size_t count, const void *target, fr_buffer *out)
{
    for (size_t i = 0; i < count; i++)
        if (section_length(keys[i].name) == 0)
            write_entry(&keys[i], target, out);
    for (size_t i = 0; i < count; i++) {
        size_t length = section_length(keys[i].name), first = 0;
        while (!same_section(keys[first].name, keys[i].name))
            first++;
        if (length == 0 || first != i)
            continue;
        fr_buffer_printf(out, "%s[%.*s]\n", out->length ? "\n" : "", (int)length, keys[i].name);
        for (size_t j = i; j < count; j++)
            if (same_section(keys[j].name, keys[i].name))
                write_entry(&keys[j], target, out);
    }
}
