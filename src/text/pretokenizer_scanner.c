/* The built-in split pattern, by hand.
 *
 *     '(?i:[sdmt]|ll|ve|re) | [^\r\n\p{L}\p{N}]?+\p{L}+ | \p{N}{1,2} | [ ]?[^\s\p{L}\p{N}]++[\r\n]*
 *     | \s*[\r\n] | \s+(?!\S) | \s+                                  (laid out with spaces)
 *
 * Each alternative is a question about the classes of the characters in front: letter, number, space,
 * newline (a space too) or other. They are asked in the pattern's order and the first that fits wins, so
 * the code below reads like the pattern. Every character fits some alternative; a chunk is never empty.
 * Bytes that are not UTF-8 are `other`, one character each.
 *
 * ASCII is classified by table; the rest by binary search in the ranges of pretokenizer_classes.h.
 */
#include "text/pretokenizer.h"
#include "text/pretokenizer_classes.h"
#include "text/pretokenizer_utf8.h"

#define O FR_CLASS_OTHER
#define L FR_CLASS_LETTER
#define N FR_CLASS_NUMBER
#define S FR_CLASS_SPACE
#define R FR_CLASS_NEWLINE
static const uint8_t ascii_class[128] = {
    O, O, O, O, O, O, O, O, O, S, R, S, S, R, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, /* 0x00 */
    S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, N, N, N, N, N, N, N, N, N, N, O, O, O, O, O, O, /* 0x20 */
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O, /* 0x40 */
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O, /* 0x60 */
};
#undef O
#undef L
#undef N
#undef S
#undef R

static fr_character_class class_above_ascii(uint32_t code)
{
    size_t low = 0, high = sizeof fr_class_ranges / sizeof fr_class_ranges[0];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code > fr_class_ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    bool inside =
        low < sizeof fr_class_ranges / sizeof fr_class_ranges[0] && code >= fr_class_ranges[low].first;
    return inside ? (fr_character_class)fr_class_ranges[low].kind : FR_CLASS_OTHER;
}

/* Class of the character at `at` < bytes, and its length. */
static inline fr_character_class class_at(const uint8_t *text, size_t bytes, size_t at, size_t *length)
{
    *length = 1;
    if (text[at] < 0x80)
        return (fr_character_class)ascii_class[text[at]];
    bool valid;
    size_t step = fr_utf8_step(text + at, bytes - at, &valid);
    if (!valid)
        return FR_CLASS_OTHER;
    *length = step;
    return class_above_ascii(fr_utf8_code_point(text + at, step));
}

/* End of the run of characters of one class that starts at `at` (may be empty). */
static inline size_t skip(const uint8_t *text, size_t bytes, size_t at, fr_character_class wanted)
{
    size_t length;
    while (at < bytes && class_at(text, bytes, at, &length) == wanted)
        at += length;
    return at;
}

/* '(?i:[sdmt]|ll|ve|re) : length of the match at the apostrophe text[at], 0 if none. Under Unicode case
 * folding U+017F, the long s, is an s too. */
static size_t contraction(const uint8_t *text, size_t bytes, size_t at)
{
    if (bytes - at < 2)
        return 0;
    uint8_t first = text[at + 1] | 0x20;
    if (first == 's' || first == 'd' || first == 'm' || first == 't')
        return 2;
    if (bytes - at < 3)
        return 0;
    uint8_t second = text[at + 2] | 0x20;
    if ((first == 'l' && second == 'l') || ((first == 'v' || first == 'r') && second == 'e'))
        return 3;
    return text[at + 1] == 0xC5 && text[at + 2] == 0xBF ? 3 : 0;
}

/* \s*[\r\n] | \s+(?!\S) | \s+ : the chunk of a run of white space that starts at `at`. */
static size_t space_end(const uint8_t *text, size_t bytes, size_t at)
{
    size_t end = at, last = at, newline = 0, length;
    while (end < bytes) {
        fr_character_class kind = class_at(text, bytes, end, &length);
        if (kind < FR_CLASS_SPACE)
            break;
        last = end; /* start of the run's last character */
        end += length;
        if (kind == FR_CLASS_NEWLINE)
            newline = end;
    }
    if (newline)
        return newline;
    return end == bytes || last == at ? end : last;
}

/* ` ?[^\s\p{L}\p{N}]++[\r\n]*` from the first character after the space. */
static size_t other_end(const uint8_t *text, size_t bytes, size_t at)
{
    at = skip(text, bytes, at, FR_CLASS_OTHER);
    while (at < bytes && (text[at] == '\r' || text[at] == '\n'))
        at++;
    return at;
}

size_t fr_scan_chunk(const uint8_t *text, size_t bytes, size_t at)
{
    size_t length, following = 0;
    if (text[at] == '\'' && (length = contraction(text, bytes, at)) > 0)
        return at + length;
    fr_character_class kind = class_at(text, bytes, at, &length);
    if (kind == FR_CLASS_LETTER)
        return skip(text, bytes, at + length, FR_CLASS_LETTER);
    if (kind == FR_CLASS_NUMBER) {
        size_t end = at + length;
        if (end < bytes && class_at(text, bytes, end, &following) == FR_CLASS_NUMBER)
            end += following;
        return end;
    }
    if (kind == FR_CLASS_NEWLINE)
        return space_end(text, bytes, at);
    fr_character_class next =
        at + length < bytes ? class_at(text, bytes, at + length, &following) : FR_CLASS_NEWLINE;
    if (next == FR_CLASS_LETTER)
        return skip(text, bytes, at + length, FR_CLASS_LETTER);
    if (kind == FR_CLASS_OTHER || (text[at] == ' ' && next == FR_CLASS_OTHER))
        return other_end(text, bytes, at + length);
    return space_end(text, bytes, at);
}
