/* text/tokenizer_alphabet.h: the 256 printable characters that stand for bytes in vocabulary files.
 *
 * GPT-2's convention, kept by tokenizer.json: a byte that is a visible Latin-1 character stands for
 * itself, the other 68 (controls, space, 0x7F..0xA0, 0xAD) are U+0100, U+0101, ... in order. So any token
 * is a readable string.
 */
#ifndef FRONTIER_TEXT_TOKENIZER_ALPHABET_H
#define FRONTIER_TEXT_TOKENIZER_ALPHABET_H
#include "frontier/base.h"

/* Appends the characters of `bytes`. */
void fr_alphabet_write(fr_buffer *out, const uint8_t *bytes, size_t count);
/* Appends the bytes of `text`; false (and nothing appended) if it has a character outside the alphabet. */
bool fr_alphabet_read(fr_buffer *out, const char *text, size_t length);

#endif
