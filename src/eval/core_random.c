/* Python's random numbers, to the bit: which items and examples a task uses is part of the metric.
 *
 * The generator is MT19937 (Matsumoto and Nishimura, 1998). CPython seeds it with the array form, the
 * seed's 32-bit words as the key; draws a number below n by taking bit_length(n) high bits until they are
 * below n; shuffles from the end; and samples either from a shrinking pool or, when that would be wasteful,
 * by rejecting repeats. tests/vectors/python_random.json holds what CPython itself answers.
 */
#include "frontier/core.h"

enum { WORDS = 624, MIDDLE = 397 };

/* ---- the generator ---------------------------------------------------------------------------------- */

static void seed_word(fr_python_random *rng, uint32_t seed)
{
    rng->state[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++)
        rng->state[i] = 1812433253u * (rng->state[i - 1] ^ rng->state[i - 1] >> 30) + i;
    rng->at = WORDS;
}

static int advance(fr_python_random *rng, int i)
{
    if (++i < WORDS)
        return i;
    rng->state[0] = rng->state[WORDS - 1];
    return 1;
}

static uint32_t mixed(const fr_python_random *rng, int i)
{
    return rng->state[i - 1] ^ rng->state[i - 1] >> 30;
}

void fr_python_seed(fr_python_random *rng, uint64_t seed)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t length = key[1] ? 2 : 1;
    int i = 1;
    seed_word(rng, 19650218u);
    for (uint32_t k = 0, j = 0; k < WORDS; k++, j = (j + 1) % length) {
        rng->state[i] = (rng->state[i] ^ mixed(rng, i) * 1664525u) + key[j] + j;
        i = advance(rng, i);
    }
    for (int k = 0; k < WORDS - 1; k++) {
        rng->state[i] = (rng->state[i] ^ mixed(rng, i) * 1566083941u) - (uint32_t)i;
        i = advance(rng, i);
    }
    rng->state[0] = 0x80000000u;
}

static void refill(fr_python_random *rng)
{
    for (int i = 0; i < WORDS; i++) {
        uint32_t y = (rng->state[i] & 0x80000000u) | (rng->state[(i + 1) % WORDS] & 0x7fffffffu);
        rng->state[i] = rng->state[(i + MIDDLE) % WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    rng->at = 0;
}

uint32_t fr_python_u32(fr_python_random *rng)
{
    if (rng->at >= WORDS)
        refill(rng);
    uint32_t y = rng->state[rng->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* ---- what CPython does with it ------------------------------------------------------------------------ */

uint32_t fr_python_below(fr_python_random *rng, uint32_t bound)
{
    int bits = 0;
    while (bits < 32 && bound >> bits)
        bits++;
    uint32_t value;
    do
        value = fr_python_u32(rng) >> (32 - bits);
    while (value >= bound);
    return value;
}

void fr_python_shuffle(fr_python_random *rng, int64_t *values, int64_t count)
{
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = fr_python_below(rng, (uint32_t)(i + 1)), held = values[i];
        values[i] = values[j];
        values[j] = held;
    }
}

/* The size up to which a pool of all n is cheaper than remembering what was taken. */
static int64_t pool_limit(int64_t k)
{
    int64_t power = 1;
    if (k <= 5)
        return 21;
    while (power < 3 * k)
        power *= 4;
    return 21 + power;
}

/* Without an array of n: the pool as it stands is n numbers in order, with few exceptions, and those are
 * found by going back over the draws so far. */
static void sample_pool(fr_python_random *rng, int64_t n, int64_t k, int64_t *out)
{
    for (int64_t i = 0; i < k; i++) {
        int64_t j = fr_python_below(rng, (uint32_t)(n - i));
        out[i] = j; /* a place; becomes a value below */
    }
    for (int64_t i = k - 1; i >= 0; i--) {
        int64_t place = out[i];
        for (int64_t earlier = i - 1; earlier >= 0; earlier--)
            if (out[earlier] == place)
                place = n - earlier - 1; /* what was moved there then */
        out[i] = place;
    }
}

static bool taken(const int64_t *out, int64_t count, int64_t value)
{
    for (int64_t i = 0; i < count; i++)
        if (out[i] == value)
            return true;
    return false;
}

void fr_python_sample(fr_python_random *rng, int64_t n, int64_t k, int64_t *out)
{
    if (n <= pool_limit(k)) {
        sample_pool(rng, n, k, out);
        return;
    }
    for (int64_t i = 0; i < k; i++)
        do
            out[i] = fr_python_below(rng, (uint32_t)n);
        while (taken(out, i, out[i]));
}

void fr_core_examples(int64_t index, int64_t count, int64_t shots, int64_t *out)
{
    fr_python_random rng;
    fr_python_seed(&rng, 1234 + (uint64_t)index);
    fr_python_sample(&rng, count - 1, shots, out);
    for (int64_t i = 0; i < shots; i++)
        out[i] += out[i] >= index; /* the item itself is not among them */
}
