/* What the writer and the reader of tensor files share.
 *
 * A file is: 8 bytes little-endian header length; a JSON header, padded with spaces to a multiple of 8; the
 * data of all tensors, end to end, in header order. "__metadata__" holds strings. Ours also hold
 *     format_version   "1"; a reader refuses what it does not know
 *     checksum         16 hex digits over every other metadata string and every tensor's name, type, shape
 * and data Files without format_version come from others; they are read, but nothing vouches for their
 * content.
 */
#ifndef FRONTIER_MODEL_SAFETENSORS_H
#define FRONTIER_MODEL_SAFETENSORS_H
#include "frontier/model.h"

#define FR_TENSOR_FORMAT "1"

/* The name of a dtype in the header, and back; NULL and false for one the format or we do not have. */
const char *fr_tensor_dtype_word(fr_dtype dtype);
bool fr_tensor_dtype_parse(const char *word, fr_dtype *dtype);

/* Elements of a shape times the size of an element; false when a dimension is negative or the product
 * overflows. */
bool fr_tensor_bytes(const fr_tensor_entry *entry, size_t *bytes);

/* The checksum is a chain: each part is hashed with the hash so far as its seed. */
uint64_t fr_tensor_checksum_text(uint64_t sum, const char *text);
uint64_t fr_tensor_checksum_entry(uint64_t sum, const fr_tensor_entry *entry, size_t bytes);
void fr_tensor_checksum_format(uint64_t sum, char hex[17]);

#endif
