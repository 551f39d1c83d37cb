/* error.c: the one error type of the library.
 *
 * An error is a value the caller owns: three short texts (what went wrong, where, what to do next) and a kind
 * that is also the exit code of the command. Texts are cut to fit rather than allocated, because an error
 * must be reportable when there is no memory left. A cut always falls between UTF-8 characters, so that a
 * long path never turns into broken text in JSON output.
 */
#include "frontier/base.h"

#include <string.h>

/* Shortens `text`, which was cut at `size`, so that it does not end inside a UTF-8 character. */
static void trim_partial_character(char *text, size_t size)
{
    size_t length = strlen(text);
    if (length + 1 < size)
        return; /* it was not cut */
    size_t start = length;
    while (start > 0 && length - start < 4 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (wanted > length - start + 1)
        text[start - 1] = '\0';
}

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
    trim_partial_character(out, size);
}

fr_status fr_error_set(fr_error *error, fr_status status, const char *where, const char *hint,
                       const char *format, ...)
{
    if (!error)
        return status;
    fr_error made = {.status = status}; /* the arguments may point into *error */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(made.what, sizeof made.what, format, arguments);
    va_end(arguments);
    trim_partial_character(made.what, sizeof made.what);
    copy_text(made.where, sizeof made.where, where);
    copy_text(made.hint, sizeof made.hint, hint);
    *error = made;
    return status;
}

fr_status fr_error_within(fr_error *error, fr_status status, const char *outer)
{
    if (!error || status == FR_OK || !outer || !outer[0])
        return status;
    char joined[sizeof error->where];
    int length = snprintf(joined, sizeof joined, "%s%s%s", outer, error->where[0] ? ": " : "", error->where);
    if (length >= (int)sizeof joined)
        trim_partial_character(joined, sizeof joined);
    memcpy(error->where, joined, sizeof joined);
    return status;
}

/* Names of files are hostile too: a terminal obeys control characters, U+0080 to U+009F among them. */
static void print_harmless(char *out, size_t size, const char *text, bool lines)
{
    snprintf(out, size, "%s", text);
    for (unsigned char *c = (unsigned char *)out; *c; c++) {
        bool second = c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0;
        if ((*c < 0x20 && !(lines && (*c == '\n' || *c == '\t'))) || *c == 0x7F)
            *c = '?';
        if (second)
            c[0] = c[1] = '?';
    }
}

void fr_error_format(const fr_error *error, char *out, size_t size)
{
    char where[sizeof error->where], what[sizeof error->what], hint[sizeof error->hint];
    print_harmless(where, sizeof where, error->where, false);
    print_harmless(what, sizeof what, error->what, true); /* a compiler's message has lines */
    print_harmless(hint, sizeof hint, error->hint, true);
    snprintf(out, size, "frontier: error: %s%s%s\n%s%s%s", where, where[0] ? ": " : "", what,
             hint[0] ? "  hint: " : "", hint, hint[0] ? "\n" : "");
}

fr_status fr_error_memory(fr_error *error, size_t bytes, const char *purpose)
{
    char amount[32];
    return fr_error_set(error, FR_BAD_ENVIRONMENT, purpose,
                        "use a smaller model, batch or file, or free some memory", "not enough memory for %s",
                        fr_format_bytes(amount, sizeof amount, (double)bytes));
}
