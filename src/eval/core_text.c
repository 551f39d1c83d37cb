/* What Python's str.strip() takes away: the characters str.isspace() accepts, beyond ASCII too.
 *
 * The published harness trims contexts with it, and a no-break space at the end of a passage would
 * otherwise move the boundary between prompt and answer.
 */
#include "eval/core_text.h"

#include <string.h>

/* UTF-8 of every white-space character longer than a byte. */
static const char *const wide_spaces[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80",
                                          "\xe2\x80\x81", "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84",
                                          "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
                                          "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9",
                                          "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
enum { WIDE_SPACES = sizeof wide_spaces / sizeof *wide_spaces };

static bool narrow_space(char c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
}

/* Bytes of the white-space character at the front (or end) of `text`; 0 if there is none. */
static size_t space_at(fr_core_text text, bool end)
{
    if (text.count > 0 && narrow_space(text.bytes[end ? text.count - 1 : 0]))
        return 1;
    for (int i = 0; i < WIDE_SPACES; i++) {
        size_t bytes = strlen(wide_spaces[i]);
        if (text.count >= bytes &&
            memcmp(text.bytes + (end ? text.count - bytes : 0), wide_spaces[i], bytes) == 0)
            return bytes;
    }
    return 0;
}

fr_core_text core_strip(fr_core_text text)
{
    for (size_t bytes; (bytes = space_at(text, false)) > 0;) {
        text.bytes += bytes;
        text.count -= bytes;
    }
    for (size_t bytes; (bytes = space_at(text, true)) > 0;)
        text.count -= bytes;
    return text;
}
