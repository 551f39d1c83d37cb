/* The byte alphabet, both ways. The order of the displaced bytes defines the code points, so it is
 * computed here rather than listed: 0x00..0x20 are U+0100.., 0x7F..0xA0 follow, 0xAD is last.
 */
#include "text/tokenizer_alphabet.h"
#include "text/pretokenizer_utf8.h"

enum { CONTROLS = 0x21, DELETE_TO_NBSP = 0xA1 - 0x7F, DISPLACED = 0x100 };

static uint32_t code_of_byte(uint8_t byte)
{
    if (byte < CONTROLS)
        return DISPLACED + byte;
    if (byte >= 0x7F && byte <= 0xA0)
        return DISPLACED + CONTROLS + (byte - 0x7Fu);
    return byte == 0xAD ? DISPLACED + CONTROLS + DELETE_TO_NBSP : byte;
}

/* -1 for a character that is not in the alphabet. */
static int byte_of_code(uint32_t code)
{
    if (code >= DISPLACED + CONTROLS + DELETE_TO_NBSP)
        return code == DISPLACED + CONTROLS + DELETE_TO_NBSP ? 0xAD : -1;
    if (code >= DISPLACED + CONTROLS)
        return (int)(code - DISPLACED - CONTROLS + 0x7F);
    if (code >= DISPLACED)
        return (int)(code - DISPLACED);
    return code_of_byte((uint8_t)code) == code ? (int)code : -1;
}

void fr_alphabet_write(fr_buffer *out, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t character[4];
        fr_buffer_append(out, character, fr_utf8_write(code_of_byte(bytes[i]), character));
    }
}

bool fr_alphabet_read(fr_buffer *out, const char *text, size_t length)
{
    const uint8_t *at = (const uint8_t *)text;
    size_t before = out->length;
    for (size_t i = 0, step; i < length; i += step) {
        bool valid;
        step = fr_utf8_step(at + i, length - i, &valid);
        int value = valid ? byte_of_code(fr_utf8_code_point(at + i, step)) : -1;
        if (value < 0) {
            out->length = before;
            return false;
        }
        uint8_t byte = (uint8_t)value;
        fr_buffer_append(out, &byte, 1);
    }
    return true;
}
