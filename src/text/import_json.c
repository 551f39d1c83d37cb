/* import_json.c: a strict reader for one JSON line that keeps every byte of its text.
 *
 * Why not the JSON library: it refuses invalid UTF-8 and NUL escapes, which real corpora contain and we keep,
 * and it builds a tree of values of which we need one string. This reader checks the whole line against
 * the grammar (a line that is not JSON is dropped, not half-read), remembers where the wanted string is, and
 * decodes it in place: every escape is longer than what it stands for. Nesting is limited, so a line of a
 * million brackets is an error and not a stack overflow.
 */
#include "text/import_json.h"

#include <string.h>

enum { MOST_DEPTH = 256 };

typedef struct scanner {
    char *at, *end;
    const char *key;
    size_t key_bytes;
    char *text, *text_end; /* raw span of the wanted string; NULL: none yet */
    bool null_text;
    int matches;
} scanner;

static bool scan_value(scanner *scan, int depth);

static void skip_space(scanner *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\r' || *scan->at == '\n'))
        scan->at++;
}

static bool take(scanner *scan, char c)
{
    if (scan->at == scan->end || *scan->at != c)
        return false;
    scan->at++;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hex digits at s, or -1. */
static int32_t hex4(const char *s)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(s[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static bool scan_escape(scanner *scan)
{
    if (scan->at == scan->end)
        return false;
    char c = *scan->at++;
    if (c != 'u')
        return c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
    if (scan->end - scan->at < 4 || hex4(scan->at) < 0)
        return false;
    scan->at += 4;
    return true;
}

/* After the opening quote; the raw content is [*start, *stop). */
static bool scan_string(scanner *scan, char **start, char **stop)
{
    *start = scan->at;
    while (scan->at < scan->end) {
        uint8_t c = (uint8_t)*scan->at++;
        if (c == '"') {
            *stop = scan->at - 1;
            return true;
        }
        if (c < 0x20 || (c == '\\' && !scan_escape(scan)))
            return false;
    }
    return false;
}

static bool scan_digits(scanner *scan)
{
    char *start = scan->at;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return scan->at > start;
}

static bool scan_number(scanner *scan)
{
    take(scan, '-');
    if (!take(scan, '0') && !scan_digits(scan))
        return false;
    if (take(scan, '.') && !scan_digits(scan))
        return false;
    if (take(scan, 'e') || take(scan, 'E')) {
        if (!take(scan, '+'))
            take(scan, '-');
        return scan_digits(scan);
    }
    return true;
}

static bool scan_word(scanner *scan, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xC0 | c >> 6);
        *out++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *out++ = (char)(0xE0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    } else {
        *out++ = (char)(0xF0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 63));
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    }
    return out;
}

/* The code point of "uXXXX" at *in (after the backslash), with its pair if it is one. */
static uint32_t take_unicode(const char **in, const char *end, bool *lone)
{
    uint32_t c = (uint32_t)hex4(*in + 1);
    *in += 5;
    if (c < 0xD800 || c > 0xDFFF)
        return c;
    if (c < 0xDC00 && end - *in >= 6 && (*in)[0] == '\\' && (*in)[1] == 'u') {
        uint32_t low = (uint32_t)hex4(*in + 2);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *in += 6;
            return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    *lone = true;
    return 0xFFFD;
}

static char plain_escape(char c)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *found = strchr(from, c);
    return found ? to[found - from] : c;
}

/* Decodes a checked raw string in place; returns its length. */
static size_t decode(char *start, const char *stop, bool *lone)
{
    const char *in = start;
    char *out = start;
    while (in < stop) {
        const char *escape = memchr(in, '\\', (size_t)(stop - in));
        size_t plain = (size_t)((escape ? escape : stop) - in);
        memmove(out, in, plain);
        out += plain;
        in += plain;
        if (!escape)
            break;
        in++;
        if (*in == 'u')
            out = put_utf8(out, take_unicode(&in, stop, lone));
        else
            *out++ = plain_escape(*in++);
    }
    return (size_t)(out - start);
}

static bool is_key(const scanner *scan, char *start, char *stop)
{
    bool lone = false;
    size_t bytes = decode(start, stop, &lone);
    return bytes == scan->key_bytes && memcmp(start, scan->key, bytes) == 0;
}

/* The value of the wanted key: the last one counts, whatever came before. */
static bool scan_wanted(scanner *scan)
{
    scan->matches++;
    scan->text = NULL;
    scan->null_text = scan->at < scan->end && *scan->at == 'n';
    if (scan->at < scan->end && *scan->at == '"') {
        scan->at++;
        return scan_string(scan, &scan->text, &scan->text_end);
    }
    return scan_value(scan, 1);
}

static bool scan_member(scanner *scan, int depth)
{
    char *start, *stop;
    skip_space(scan);
    if (!take(scan, '"') || !scan_string(scan, &start, &stop))
        return false;
    bool wanted = depth == 0 && is_key(scan, start, stop);
    skip_space(scan);
    if (!take(scan, ':'))
        return false;
    skip_space(scan);
    return wanted ? scan_wanted(scan) : scan_value(scan, depth + 1);
}

static bool scan_object(scanner *scan, int depth)
{
    skip_space(scan);
    if (take(scan, '}'))
        return true;
    do {
        if (!scan_member(scan, depth))
            return false;
        skip_space(scan);
    } while (take(scan, ','));
    return take(scan, '}');
}

static bool scan_array(scanner *scan, int depth)
{
    skip_space(scan);
    if (take(scan, ']'))
        return true;
    do {
        skip_space(scan);
        if (!scan_value(scan, depth + 1))
            return false;
        skip_space(scan);
    } while (take(scan, ','));
    return take(scan, ']');
}

static bool scan_value(scanner *scan, int depth)
{
    char *start, *stop;
    if (depth > MOST_DEPTH || scan->at == scan->end)
        return false;
    switch (*scan->at) {
    case '{': scan->at++; return scan_object(scan, depth);
    case '[': scan->at++; return scan_array(scan, depth);
    case '"': scan->at++; return scan_string(scan, &start, &stop);
    case 't': return scan_word(scan, "true");
    case 'f': return scan_word(scan, "false");
    case 'n': return scan_word(scan, "null");
    default: return scan_number(scan);
    }
}

void import_json_line(char *line, size_t bytes, const char *key, import_json *out)
{
    scanner scan = {line, line + bytes, key, strlen(key), NULL, NULL, false, 0};
    memset(out, 0, sizeof *out);
    skip_space(&scan);
    bool object = scan.at < scan.end && *scan.at == '{'; /* only an object's own keys count */
    bool good = object ? (scan.at++, scan_object(&scan, 0)) : scan_value(&scan, 1);
    skip_space(&scan);
    out->duplicate_key = scan.matches > 1;
    out->problem = !good || scan.at < scan.end ? FR_IMPORT_BAD_JSON
                   : scan.text                 ? FR_IMPORT_KINDS
                   : scan.null_text            ? FR_IMPORT_NULL_TEXT
                                               : FR_IMPORT_NO_TEXT;
    if (out->problem != FR_IMPORT_KINDS)
        return;
    out->text = scan.text;
    out->bytes = decode(scan.text, scan.text_end, &out->lone_surrogate);
}
