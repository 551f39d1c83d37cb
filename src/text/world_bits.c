/* world_bits.c: probabilities and information in integers.
 *
 * A probability is weight / total with 32-bit integers, so that every machine draws the same entry for the
 * same ticket. Information is a fixed-point number with 32 fractional bits: log2 by repeated squaring, no
 * libm. Sums of such numbers do not depend on order, which makes the floor of a corpus exactly
 * reproducible.
 */
#include "text/world.h"
#include <string.h>

int64_t world_log2(uint64_t x)
{
    int whole = 63 - __builtin_clzll(x);
    uint64_t mantissa = x << (63 - whole); /* [1, 2) with 63 fractional bits */
    int64_t result = (int64_t)whole << 32;
    for (int bit = 31; bit >= 0; bit--) {
        unsigned __int128 square = (unsigned __int128)mantissa * mantissa; /* 126 fractional bits */
        bool two = (square >> 127) != 0;
        mantissa = (uint64_t)(square >> (two ? 64 : 63));
        if (two)
            result |= (int64_t)1 << bit;
    }
    return result;
}

fr_status world_weigh(fr_arena *arena, world_choice *choice, const char *name, const uint32_t *weights,
                      int count, fr_error *error)
{
    size_t bytes = (size_t)(count + 1) * sizeof(uint32_t);
    choice->name = name;
    choice->count = count;
    choice->cumulative = fr_arena_alloc(arena, bytes);
    choice->cost = fr_arena_alloc(arena, (size_t)count * sizeof(int64_t));
    if (!choice->cumulative || !choice->cost)
        return fr_error_memory(error, bytes, "weights of the world");
    for (int i = 0; i < count; i++)
        choice->cumulative[i + 1] = choice->cumulative[i] + weights[i];
    for (int i = 0; i < count; i++)
        choice->cost[i] = world_log2(choice->cumulative[count]) - world_log2(weights[i]);
    return FR_OK;
}

int world_draw(const world_choice *choice, uint32_t ticket)
{
    int low = 0, high = choice->count - 1; /* the last i with cumulative[i] <= ticket */
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (choice->cumulative[middle] <= ticket)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}
