/* Which bytes hold data: the memory of uninitialised reads.
 *
 * Most tensors go from "nothing" to "everything" in one write and never own a bitmap. One written in parts
 * gets a bit per byte (64 bytes to a word, so a row of 512 fp32 is 32 words) and a count of what is
 * missing, and when that reaches zero the bitmap is given up again. */
#include "neuron/core.h"

#include <string.h>

static uint64_t word_mask(int64_t first, int64_t last)
{
    uint64_t high = last >= 64 ? ~0ull : (1ull << last) - 1;
    return high & ~((1ull << first) - 1);
}

static uint64_t *row_words(const fr_neuron_shadow *shadow, int64_t row)
{
    return shadow->bits + row * shadow->row_words;
}

/* Makes the bitmap, all zeros for EMPTY and all ones for FULL, so that parts can be set and dropped. */
fr_status fr_neuron_shadow_ready(fr_neuron_shadow *shadow, fr_error *error)
{
    if (shadow->fill == FR_NEURON_PARTLY)
        return FR_OK;
    shadow->row_words = (shadow->row_bytes + 63) / 64;
    size_t bytes = (size_t)(shadow->rows * shadow->row_words) * sizeof *shadow->bits;
    shadow->bits = fr_allocate(bytes);
    if (!shadow->bits)
        return fr_error_memory(error, bytes, "the map of written bytes");
    shadow->missing = shadow->fill == FR_NEURON_FULL ? 0 : shadow->rows * shadow->row_bytes;
    if (shadow->fill == FR_NEURON_FULL)
        memset(shadow->bits, 0xFF, bytes);
    shadow->fill = FR_NEURON_PARTLY;
    return FR_OK;
}

void fr_neuron_shadow_release(fr_neuron_shadow *shadow)
{
    fr_deallocate(shadow->bits);
    shadow->bits = NULL;
}

void fr_neuron_shadow_become(fr_neuron_shadow *shadow, fr_neuron_fill fill)
{
    fr_neuron_shadow_release(shadow);
    shadow->fill = fill;
}

/* Only while PARTLY; the caller made it so. */
void fr_neuron_shadow_set(fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes)
{
    if (shadow->fill != FR_NEURON_PARTLY)
        return;
    uint64_t *words = row_words(shadow, row);
    int64_t last = first + bytes, added = 0;
    for (int64_t w = first / 64; w * 64 < last; w++) {
        uint64_t mask = word_mask(first > w * 64 ? first - w * 64 : 0, last - w * 64);
        added += __builtin_popcountll(mask & ~words[w]);
        words[w] |= mask;
    }
    shadow->missing -= added;
    if (shadow->missing == 0)
        fr_neuron_shadow_become(shadow, FR_NEURON_FULL);
}

void fr_neuron_shadow_drop(fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes)
{
    if (shadow->fill != FR_NEURON_PARTLY)
        return;
    uint64_t *words = row_words(shadow, row);
    int64_t last = first + bytes;
    for (int64_t w = first / 64; w * 64 < last; w++) {
        uint64_t mask = word_mask(first > w * 64 ? first - w * 64 : 0, last - w * 64);
        shadow->missing += __builtin_popcountll(mask & words[w]);
        words[w] &= ~mask;
    }
}

bool fr_neuron_shadow_has(const fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes)
{
    if (shadow->fill != FR_NEURON_PARTLY)
        return shadow->fill == FR_NEURON_FULL;
    const uint64_t *words = row_words(shadow, row);
    int64_t last = first + bytes;
    for (int64_t w = first / 64; w * 64 < last; w++) {
        uint64_t mask = word_mask(first > w * 64 ? first - w * 64 : 0, last - w * 64);
        if (mask & ~words[w])
            return false;
    }
    return true;
}
