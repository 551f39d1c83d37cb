/* text/bpe_count.h: how often each distinct chunk occurs.
 *
 * Training needs nothing of a text but this. Threads count into tables of their own, which are added up at
 * the end; sums do not care who counted what, so the number of threads cannot show in a tokenizer.
 */
#ifndef FRONTIER_TEXT_BPE_COUNT_H
#define FRONTIER_TEXT_BPE_COUNT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fr_chunk_count {
    uint64_t offset; /* of its bytes in the table's store */
    int64_t count;
    uint32_t hash, length; /* length 0: an empty slot */
} fr_chunk_count;

typedef struct fr_chunk_counts {
    fr_chunk_count *slots;
    size_t slot_count, used;
    uint8_t *bytes; /* of all chunks, end to end */
    size_t bytes_used, bytes_capacity;
} fr_chunk_counts;

/* Zero-initialise; all return false when memory runs out. */
bool fr_chunk_counts_add(fr_chunk_counts *counts, const uint8_t *bytes, size_t length, int64_t count);
bool fr_chunk_counts_merge(fr_chunk_counts *into, const fr_chunk_counts *from);
void fr_chunk_counts_release(fr_chunk_counts *counts);

#endif
