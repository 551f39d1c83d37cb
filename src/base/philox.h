/* philox.h: the raw block function behind fr_rng, for tests against published vectors and for bulk fills. */
#ifndef FRONTIER_BASE_PHILOX_H
#define FRONTIER_BASE_PHILOX_H
#include <stdint.h>

/* Philox4x32 with 10 rounds: out[4] from a 128-bit counter and a 64-bit key, words in the paper's order. */
void fr_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Elementary functions made of IEEE additions, multiplications and divisions only: the same bits everywhere.
 */
double fr_exact_log(double x);           /* natural logarithm of a positive, normal x */
double fr_exact_cos_turns(double turns); /* cos(2 pi turns), turns in [0, 1] */

#endif
