/* The table of distinct chunks: open addressing, at most half full, bytes of the keys end to end in one
 * store. */
#include "text/bpe_count.h"
#include "frontier/base.h"
#include "text/bpe_hash.h"
#include <string.h>

enum { FIRST_SLOTS = 1 << 12, FIRST_BYTES = 1 << 16 };

static fr_chunk_count *slot_of(const fr_chunk_counts *counts, const uint8_t *bytes, size_t length,
                               uint32_t hash)
{
    size_t mask = counts->slot_count - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        fr_chunk_count *slot = &counts->slots[i];
        if (slot->length == 0)
            return slot;
        if (slot->hash == hash && slot->length == length &&
            memcmp(counts->bytes + slot->offset, bytes, length) == 0)
            return slot;
    }
}

static bool grow_slots(fr_chunk_counts *counts)
{
    size_t wanted = counts->slot_count ? counts->slot_count * 2 : FIRST_SLOTS;
    fr_chunk_count *slots = fr_allocate(wanted * sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < counts->slot_count; i++) {
        if (counts->slots[i].length == 0)
            continue;
        size_t at = counts->slots[i].hash & (wanted - 1);
        while (slots[at].length)
            at = (at + 1) & (wanted - 1);
        slots[at] = counts->slots[i];
    }
    fr_deallocate(counts->slots);
    counts->slots = slots;
    counts->slot_count = wanted;
    return true;
}

static bool store_bytes(fr_chunk_counts *counts, const uint8_t *bytes, size_t length)
{
    if (counts->bytes_capacity - counts->bytes_used < length) {
        size_t capacity = counts->bytes_capacity ? counts->bytes_capacity : FIRST_BYTES;
        while (capacity - counts->bytes_used < length)
            capacity *= 2;
        uint8_t *grown = fr_reallocate(counts->bytes, capacity);
        if (!grown)
            return false;
        counts->bytes = grown;
        counts->bytes_capacity = capacity;
    }
    memcpy(counts->bytes + counts->bytes_used, bytes, length);
    counts->bytes_used += length;
    return true;
}

bool fr_chunk_counts_add(fr_chunk_counts *counts, const uint8_t *bytes, size_t length, int64_t count)
{
    if (length == 0 || length > UINT32_MAX)
        return length == 0;
    if (counts->used * 2 >= counts->slot_count && !grow_slots(counts))
        return false;
    uint32_t hash = (uint32_t)fr_bpe_hash(bytes, length);
    fr_chunk_count *slot = slot_of(counts, bytes, length, hash);
    if (slot->length == 0) {
        uint64_t offset = counts->bytes_used;
        if (!store_bytes(counts, bytes, length))
            return false;
        *slot = (fr_chunk_count){.offset = offset, .hash = hash, .length = (uint32_t)length};
        counts->used++;
    }
    slot->count += count;
    return true;
}

bool fr_chunk_counts_merge(fr_chunk_counts *into, const fr_chunk_counts *from)
{
    for (size_t i = 0; i < from->slot_count; i++) {
        const fr_chunk_count *slot = &from->slots[i];
        if (slot->length && !fr_chunk_counts_add(into, from->bytes + slot->offset, slot->length, slot->count))
            return false;
    }
    return true;
}

void fr_chunk_counts_release(fr_chunk_counts *counts)
{
    fr_deallocate(counts->slots);
    fr_deallocate(counts->bytes);
    *counts = (fr_chunk_counts){.slots = NULL};
}
