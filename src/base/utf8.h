/* utf8.h: the one question base asks of UTF-8. The text module owns the rest. */
#ifndef FRONTIER_BASE_UTF8_H
#define FRONTIER_BASE_UTF8_H
#include <stddef.h>

/* Bytes (1..4) of the well-formed character at `text`, which has `left` bytes; 0 if there is none. */
int fr_utf8_character(const unsigned char *text, size_t left);

#endif
