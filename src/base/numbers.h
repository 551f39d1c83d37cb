/* numbers.h: writing reals so that reading them back gives the same bits. */
#ifndef FRONTIER_BASE_NUMBERS_H
#define FRONTIER_BASE_NUMBERS_H
#include <stddef.h>

/* The shortest of %.15g, %.16g, %.17g that reads back equal, always with a point or an exponent ("1.0",
 * "1e-05"). For finite values; needs 32 bytes. Returns out. */
char *fr_format_real(char *out, size_t size, double value);

#endif
