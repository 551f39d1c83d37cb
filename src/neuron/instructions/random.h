/* Random numbers of the lanes. XORWOW (Marsaglia 2003) is what generation 4 and GpSimd document; earlier Vector engines
 * have a shift register whose taps nobody published, so all generations use XORWOW here: same distribution, not the
 * same bits as the chip. A state is six words: five of shift register, one counter.
 */
#ifndef NEURON_RANDOM_H
#define NEURON_RANDOM_H
#include <stdint.h>

enum { FR_NEURON_XORWOW = 6, FR_NEURON_XORWOW_VECTOR = 24 /* four states a lane, used in turn */ };

static inline uint32_t fr_neuron_xorwow(uint32_t state[FR_NEURON_XORWOW])
{
    uint32_t t = state[0] ^ state[0] >> 2, last = state[4];
    state[0] = state[1];
    state[1] = state[2];
    state[2] = state[3];
    state[3] = last;
    state[4] = last ^ last << 4 ^ t ^ t << 1;
    state[5] += 362437;
    return state[4] + state[5];
}

#endif
