/* strings.c: numbers from text, and text from numbers.
 *
 * Users type numbers with units, and a run must not start on a misread one. So every parser takes the whole
 * string or refuses it and says what it wanted: no leading space, no trailing junk, no silent overflow, no
 * NaN. The locale never matters: strtod is used under the C locale, which a library that calls no setlocale
 * keeps.
 */
#include "base/numbers.h"
#include "frontier/base.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

fr_status fr_parse_int(const char *text, int64_t least, int64_t most, int64_t *out, const char *where,
                       fr_error *error)
{
    char *end = NULL;
    errno = 0;
    bool starts = isdigit((unsigned char)text[0]) ||
                  ((text[0] == '-' || text[0] == '+') && isdigit((unsigned char)text[1]));
    long long value = starts ? strtoll(text, &end, 10) : 0;
    if (!starts || *end)
        return fr_error_set(error, FR_BAD_USAGE, where, NULL, "'%.100s' is not a whole number", text);
    if (errno == ERANGE || value < least || value > most) {
        if (least == INT64_MIN)
            return fr_error_set(error, FR_BAD_USAGE, where, NULL, "%.100s does not fit 64 bits", text);
        if (most == INT64_MAX && text[0] == '-')
            return fr_error_set(error, FR_BAD_USAGE, where, NULL, "%.100s is too small: %lld is the least",
                                text, (long long)least);
        return fr_error_set(error, FR_BAD_USAGE, where, NULL, "%.100s is out of range: %lld to %lld", text,
                            (long long)least, (long long)most);
    }
    *out = value;
    return FR_OK;
}

/* Decimal numbers only: strtod also takes "inf", "nan" and hexadecimal, which are misspellings here. */
static bool scan_real(const char *text, const char **end, double *out)
{
    const char *at = text + (text[0] == '-' || text[0] == '+');
    if (!isdigit((unsigned char)at[0]) && !(at[0] == '.' && isdigit((unsigned char)at[1])))
        return false;
    if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
        return false;
    char *stop;
    double value = strtod(text, &stop);
    if (!isfinite(value))
        return false;
    *end = stop;
    *out = value;
    return true;
}

fr_status fr_parse_real(const char *text, double least, double most, double *out, const char *where,
                        fr_error *error)
{
    const char *end;
    double value;
    if (!scan_real(text, &end, &value) || *end)
        return fr_error_set(error, FR_BAD_USAGE, where, NULL, "'%.100s' is not a number", text);
    if (value < least || value > most)
        return fr_error_set(error, FR_BAD_USAGE, where, NULL, "%.100s is out of range: %g to %g", text, least,
                            most);
    *out = value;
    return FR_OK;
}

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit DURATION_UNITS[] = {{"ms", 1e-3},  {"s", 1.0},    {"m", 60.0},
                                      {"min", 60.0}, {"h", 3600.0}, {"d", 86400.0}};
static const unit SIZE_UNITS[] = {{"B", 1.0},      {"kB", 1e3},     {"KB", 1e3},    {"k", 1e3},
                                  {"K", 1e3},      {"MB", 1e6},     {"M", 1e6},     {"GB", 1e9},
                                  {"G", 1e9},      {"TB", 1e12},    {"T", 1e12},    {"KiB", 1024.0},
                                  {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};

/* The unit spelled by the letters at `at`; moves `at` behind them. NULL if there is none of that name. */
static const unit *scan_unit(const char **at, const unit *units, size_t count)
{
    size_t length = 0;
    while (isalpha((unsigned char)(*at)[length]))
        length++;
    for (size_t i = 0; i < count; i++) {
        if (strlen(units[i].name) == length && strncmp(units[i].name, *at, length) == 0) {
            *at += length;
            return &units[i];
        }
    }
    return NULL;
}

static bool scan_duration(const char *text, double *seconds)
{
    double total = 0.0, value, last_factor = INFINITY;
    const char *at = text, *end;
    if (!scan_real(text, &end, &value) || text[0] == '-' || text[0] == '+')
        return false;
    if (!*end) {
        *seconds = value;
        return true;
    }
    while (*at) {
        if (!isdigit((unsigned char)*at) && *at != '.')
            return false;
        if (!scan_real(at, &end, &value))
            return false;
        at = end;
        const unit *found = scan_unit(&at, DURATION_UNITS, sizeof DURATION_UNITS / sizeof *DURATION_UNITS);
        if (!found || found->factor >= last_factor) /* "5m1h" and "1m1m" are mistakes */
            return false;
        last_factor = found->factor;
        total += value * found->factor;
    }
    *seconds = total;
    return isfinite(total);
}

fr_status fr_parse_duration(const char *text, double *seconds, const char *where, fr_error *error)
{
    double value;
    if (!scan_duration(text, &value))
        return fr_error_set(error, FR_BAD_USAGE, where, "write 30m, 90s, 1h30m, 250ms or plain seconds",
                            "'%.100s' is not a duration", text);
    *seconds = value;
    return FR_OK;
}

fr_status fr_parse_size(const char *text, int64_t *bytes, const char *where, fr_error *error)
{
    static const unit plain = {"", 1.0};
    const char *at;
    double value;
    const unit *found = NULL;
    if (text[0] != '-' && scan_real(text, &at, &value))
        found = *at ? scan_unit(&at, SIZE_UNITS, sizeof SIZE_UNITS / sizeof *SIZE_UNITS) : &plain;
    if (!found || *at)
        return fr_error_set(error, FR_BAD_USAGE, where, "write 5MB, 64MiB, 1e6 or plain bytes",
                            "'%.100s' is not a size", text);
    if (found == &plain && strspn(text, "0123456789") == strlen(text)) /* exact beyond 2^53 */
        return fr_parse_int(text, 0, INT64_MAX, bytes, where, error);
    double total = value * found->factor;
    if (total >= 0x1p63)
        return fr_error_set(error, FR_BAD_USAGE, where, NULL, "%.100s is too large a size", text);
    if (total != floor(total) && found == &plain)
        return fr_error_set(error, FR_BAD_USAGE, where, NULL, "%.100s is not a whole number of bytes", text);
    *bytes = (int64_t)total;
    return FR_OK;
}

enum { NEAREST_LENGTH = 64 };

static size_t least_of(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Edits (insert, delete, replace, swap of neighbours) that turn a into b; case costs nothing. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][NEAREST_LENGTH + 1], length = strlen(b);
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= length; j++)
        above[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            row[j] = least_of(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y));
            bool swapped = i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                           tolower((unsigned char)a[i - 2]) == y;
            if (swapped && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[length];
}

const char *fr_nearest(const char *text, const char *const *candidates, size_t count)
{
    size_t length = strlen(text);
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    if (length > NEAREST_LENGTH)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (strlen(candidates[i]) > NEAREST_LENGTH)
            continue;
        size_t distance = edit_distance(text, candidates[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    size_t tolerated = length <= 3 ? 1 : length <= 6 ? 2 : length / 3;
    return best_distance <= tolerated ? best : NULL;
}

char *fr_format_bytes(char *out, size_t size, double bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t step = 0;
    while (step + 1 < sizeof names / sizeof *names && fabs(bytes) >= (step == 0 ? 1024.0 : 1023.95)) {
        bytes /= 1024.0;
        step++;
    }
    snprintf(out, size, step == 0 ? "%.0f %s" : "%.1f %s", bytes, names[step]);
    return out;
}

char *fr_format_duration(char *out, size_t size, double seconds)
{
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e15) {
        snprintf(out, size, "?");
    } else if (seconds < 0.9995) {
        snprintf(out, size, "%.0f ms", seconds * 1e3);
    } else if (seconds < 59.95) {
        snprintf(out, size, "%.1f s", seconds);
    } else {
        int64_t whole = (int64_t)(seconds + 0.5);
        if (whole < 3600)
            snprintf(out, size, "%d m %02d s", (int)(whole / 60), (int)(whole % 60));
        else
            snprintf(out, size, "%lld h %02d m", (long long)(whole / 3600), (int)(whole % 3600 / 60));
    }
    return out;
}

char *fr_format_count(char *out, size_t size, int64_t value)
{
    char digits[24], grouped[40];
    int length = snprintf(digits, sizeof digits, "%llu",
                          value < 0 ? 0ull - (unsigned long long)value : (unsigned long long)value);
    int to = 0;
    if (value < 0)
        grouped[to++] = '-';
    for (int i = 0; i < length; i++) {
        grouped[to++] = digits[i];
        int after = length - 1 - i;
        if (after > 0 && after % 3 == 0)
            grouped[to++] = ',';
    }
    grouped[to] = '\0';
    snprintf(out, size, "%s", grouped);
    return out;
}

char *fr_format_real(char *out, size_t size, double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    size_t length = strlen(out);
    if (strspn(out, "-0123456789") == length && length + 3 <= size)
        memcpy(out + length, ".0", 3);
    return out;
}
