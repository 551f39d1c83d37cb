/* text/pretokenizer_utf8.h: one step through bytes that may or may not be UTF-8.
 *
 * A corpus is bytes, so nothing here rejects anything. A step looks at the bytes in front of it and says
 * how long the next character is and whether it is well formed (RFC 3629: no surrogates, no overlong
 * forms, nothing above U+10FFFF). For a malformed one the length is that of its longest prefix that could
 * still have become a character: what decoders replace by a single U+FFFD. Splitting counts malformed
 * bytes one by one instead, see pretokenizer.h.
 */
#ifndef FRONTIER_TEXT_PRETOKENIZER_UTF8_H
#define FRONTIER_TEXT_PRETOKENIZER_UTF8_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the character at text[0], count >= 1; *valid tells whether it is one. */
static inline size_t fr_utf8_step(const uint8_t *text, size_t count, bool *valid)
{
    uint8_t lead = text[0], least = 0x80, most = 0xBF;
    size_t want = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    *valid = want == 1;
    if (want < 2)
        return 1;
    if (lead == 0xE0)
        least = 0xA0;
    else if (lead == 0xED)
        most = 0x9F;
    else if (lead == 0xF0)
        least = 0x90;
    else if (lead == 0xF4)
        most = 0x8F;
    size_t have = 1;
    while (have < want && have < count && text[have] >= least && text[have] <= most) {
        have++;
        least = 0x80;
        most = 0xBF;
    }
    *valid = have == want;
    return have;
}

/* The code point of a well-formed character of `length` bytes. */
static inline uint32_t fr_utf8_code_point(const uint8_t *text, size_t length)
{
    if (length == 1)
        return text[0];
    uint32_t code = text[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (text[i] & 0x3Fu);
    return code;
}

/* Writes a code point below 0x110000 as UTF-8 and returns its length. */
static inline size_t fr_utf8_write(uint32_t code, uint8_t out[4])
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}

/* Bytes of the first `characters` characters; a malformed byte counts as one character. */
static inline size_t fr_utf8_prefix(const uint8_t *text, size_t count, uint64_t characters)
{
    size_t at = 0;
    if (count <= characters)
        return count;
    for (; at < count && characters > 0; characters--) {
        bool valid;
        size_t length = fr_utf8_step(text + at, count - at, &valid);
        at += valid ? length : 1;
    }
    return at;
}

#endif
