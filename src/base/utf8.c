/* utf8.c: is there a well-formed UTF-8 character here, and how long is it?
 *
 * Strict by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. Configuration refuses
 * anything else; JSON output replaces it.
 */
#include "base/utf8.h"

#include <stdint.h>

int fr_utf8_character(const unsigned char *text, size_t left)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (left == 0)
        return 0;
    unsigned char lead = text[0];
    int length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (length < 2 || (size_t)length > left)
        return length < 2 ? length : 0;
    uint32_t code = lead & (0x7Fu >> length);
    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3Fu);
    }
    int surrogate = code >= 0xD800 && code < 0xE000;
    return code < least[length] || code > 0x10FFFF || surrogate ? 0 : length;
}
