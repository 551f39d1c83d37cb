/* import_text.c: looking at a document without changing it.
 *
 * Two documents count as the same when they agree after folding: ASCII letters to lower case, every run of
 * ASCII white space to one space, none at the ends. That catches re-wrapped, re-indented and CRLF copies,
 * which are most near-copies in practice, and needs no Unicode tables that could change between versions.
 * Folded bytes are hashed in fixed blocks, so memory does not grow with the document.
 */
#include "text/import_text.h"

#include <string.h>

enum { BLOCK = 4096 };

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void fill_table(uint8_t table[256])
{
    for (int c = 0; c < 256; c++)
        table[c] = is_space((uint8_t)c) ? ' ' : c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : (uint8_t)c;
}

uint64_t import_fold_hash(const char *text, size_t bytes, size_t *folded)
{
    uint8_t table[256], block[BLOCK];
    fill_table(table);
    size_t used = 0, total = 0;
    uint8_t last = ' '; /* drops leading space */
    uint64_t hash = 0;
    for (size_t i = 0; i < bytes; i++) {
        uint8_t c = table[(uint8_t)text[i]];
        block[used] = c;
        used += c != ' ' || last != ' ';
        last = c;
        if (used == BLOCK) { /* the last byte waits: it may be a space at the very end */
            hash = fr_hash64(block, BLOCK - 1, hash);
            total += BLOCK - 1;
            block[0] = block[BLOCK - 1];
            used = 1;
        }
    }
    used -= used > 0 && block[used - 1] == ' ';
    *folded = total + used;
    return fr_hash64(block, used, hash);
}

/* Bytes of the well-formed sequence at `s` (Unicode table 3-7: no surrogates, no overlong forms), or 0. */
static size_t sequence_length(const uint8_t *s, size_t left)
{
    uint8_t lead = s[0];
    size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (length <= 1 || length > left)
        return length > left ? 0 : length;
    uint8_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    uint8_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (s[1] < least || s[1] > most)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

bool import_is_utf8(const char *text, size_t bytes)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t i = 0;
    while (i < bytes) {
        uint64_t word;
        if (bytes - i >= sizeof word) { /* eight ASCII bytes at a time */
            memcpy(&word, s + i, sizeof word);
            if (!(word & UINT64_C(0x8080808080808080))) {
                i += sizeof word;
                continue;
            }
        }
        size_t length = sequence_length(s + i, bytes - i);
        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

bool import_has_crlf(const char *text, size_t bytes)
{
    return memmem(text, bytes, "\r\n", 2) != NULL;
}
