/* text/bpe_hash.h: the in-memory hash of short byte strings and of pairs of ids.
 *
 * Chunks are a handful of bytes and are hashed millions of times, so this reads them in whole words and mixes
 * twice. The values never leave the process and no result depends on a table's order.
 */
#ifndef FRONTIER_TEXT_BPE_HASH_H
#define FRONTIER_TEXT_BPE_HASH_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t fr_bpe_mix(uint64_t x)
{
    x *= 0x9E3779B97F4A7C15ull;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ x >> 32;
}

static inline uint64_t fr_bpe_hash(const uint8_t *bytes, size_t count)
{
    uint64_t hash = (uint64_t)count << 56, word = 0;
    for (; count > 8; bytes += 8, count -= 8) {
        memcpy(&word, bytes, 8);
        hash = fr_bpe_mix(hash ^ word);
    }
    if (count >= 4) {
        uint32_t low, high;
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + count - 4, 4);
        word = (uint64_t)high << 32 | low;
    } else if (count > 0) {
        word = (uint64_t)bytes[count - 1] << 16 | (uint64_t)bytes[count / 2] << 8 | bytes[0];
    }
    return fr_bpe_mix(hash ^ word);
}

static inline uint64_t fr_bpe_pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* The smallest power of two that is at least twice `count`: slots of an open-addressing table. */
static inline size_t fr_bpe_slots(size_t count)
{
    size_t slots = 16;
    while (slots < 2 * count)
        slots *= 2;
    return slots;
}

#endif
