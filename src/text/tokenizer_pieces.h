/* text/tokenizer_pieces.h: how SentencePiece's tokens are spelled in tokenizer.json.
 *
 * A space is written as U+2581; a token for one byte of a character that is no token is written <0x41>. The
 * files carry the rest of the rule, a space in front of the text, as a normalizer, and we read no other.
 */
#ifndef FRONTIER_TEXT_TOKENIZER_PIECES_H
#define FRONTIER_TEXT_TOKENIZER_PIECES_H
#include <jansson.h>

#include "frontier/base.h"

/* Is this the normalizer that puts a space in front and spells spaces as U+2581? */
bool fr_pieces_normalizer(const json_t *normalizer);
/* The same as text, and the decoder that undoes it. */
extern const char fr_pieces_normalizer_text[], fr_pieces_decoder_text[];

/* Appends the spelling of a token's bytes. False: it has U+2581 of its own, which would read as a space. */
bool fr_pieces_write(fr_buffer *out, const uint8_t *bytes, size_t count);
/* Appends the bytes of a spelling. */
void fr_pieces_read(fr_buffer *out, const char *text, size_t length);
/* The byte of a spelling <0x41>; -1 for anything else. */
int fr_pieces_byte(const char *text, size_t length);

#endif
