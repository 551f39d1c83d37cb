/* rng.c: random numbers that do not depend on who draws them.
 *
 * A counter-based generator is a keyed bijection of a counter: number i of stream s under seed k is
 * philox(counter = (i, s), key = k). There is no state to share, split or save beyond the index, so results
 * are the same on any number of threads and after any resume. One block (128 bits) belongs to each index:
 * uniform numbers use its first half, a normal number uses both halves.
 *
 * Normal numbers need a logarithm and a cosine. libm's differ between machines in the last bit, and weights
 * that differ in one bit give another run. These are short series in plain IEEE arithmetic (the build
 * forbids contraction into fused operations), good to about 2e-16, identical everywhere; the square root
 * is exact by IEEE 754.
 */
#include "base/philox.h"
#include "frontier/base.h"

#include <math.h>
#include <string.h>

void fr_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t even = (uint64_t)0xD2511F53u * c0;
        uint64_t odd = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(odd >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)odd;
        c2 = (uint32_t)(even >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)even;
        k0 += 0x9E3779B9u; /* golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static void block_at(uint64_t seed, uint64_t stream, uint64_t index, uint64_t *first, uint64_t *second)
{
    uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream,
                           (uint32_t)(stream >> 32)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, out[4];
    fr_philox(counter, key, out);
    *first = out[0] | (uint64_t)out[1] << 32;
    *second = out[2] | (uint64_t)out[3] << 32;
}

uint64_t fr_rng_at(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint64_t first, second;
    block_at(seed, stream, index, &first, &second);
    return first;
}

uint64_t fr_rng_next(fr_rng *rng)
{
    return fr_rng_at(rng->seed, rng->stream, rng->index++);
}

/* The high half of bits * bound is uniform once the few low halves that would favour some results are
 * rejected (Lemire 2019); a rejection costs one more index. */
uint64_t fr_rng_below(fr_rng *rng, uint64_t bound)
{
    uint64_t reject_below = (0 - bound) % bound;
    unsigned __int128 product;
    do {
        product = (unsigned __int128)fr_rng_next(rng) * bound;
    } while ((uint64_t)product < reject_below);
    return (uint64_t)(product >> 64);
}

static double unit_interval(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

double fr_rng_uniform(fr_rng *rng)
{
    return unit_interval(fr_rng_next(rng));
}

double fr_rng_uniform_at(uint64_t seed, uint64_t stream, uint64_t index)
{
    return unit_interval(fr_rng_at(seed, stream, index));
}

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m-1)/(m+1), |s| < 0.1716. */
double fr_exact_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1.0) / (m + 1.0), square = s * s, series = 0.0;
    for (int k = 21; k >= 3; k -= 2)
        series = (series + 1.0 / k) * square;
    return 2.0 * (s + s * series) + exponent * 0.69314718055994530942;
}

/* Taylor series on [-pi/4, pi/4]; `odd` selects sine. */
static double sine_or_cosine(double angle, bool odd)
{
    double square = angle * angle, series = 1.0;
    for (int k = 18; k >= 2; k -= 2) {
        double divisor = odd ? (double)(k * (k + 1)) : (double)((k - 1) * k);
        series = 1.0 - series * square / divisor;
    }
    return odd ? angle * series : series;
}

double fr_exact_cos_turns(double turns)
{
    double quarters = turns * 4.0;
    int nearest = (int)(quarters + 0.5);
    double angle = (quarters - nearest) * 1.57079632679489661923;
    static const double sign[4] = {1.0, -1.0, -1.0, 1.0};
    return sign[nearest & 3] * sine_or_cosine(angle, nearest & 1);
}

double fr_rng_normal_at(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint64_t first, second;
    block_at(seed, stream, index, &first, &second);
    double positive = (double)((first >> 11) + 1) * 0x1p-53; /* (0, 1]: its logarithm exists */
    return sqrt(-2.0 * fr_exact_log(positive)) * fr_exact_cos_turns(unit_interval(second));
}
