/* src/submission/ring.h: the memory that a scorer and a submission's program share, and how they wait for
 * each other.
 *
 * One request at a time, up to RING_SLOTS blocks of the answer in flight. The scorer writes the request and
 * raises `asked`; the program fills slot (n mod RING_SLOTS) with block n and raises `filled`; the scorer
 * copies the slot out and raises `taken`. Each counter only grows and has one writer; waiting is a futex on
 * it. Everything the program may write is read once, into the scorer's own memory, and checked there.
 */
#ifndef FRONTIER_SUBMISSION_RING_H
#define FRONTIER_SUBMISSION_RING_H
#include <stdatomic.h>

#include "frontier/base.h"

enum { RING_SLOTS = 8, RING_POSITIONS = 64, RING_VERSION = 1, RING_MAX_TOKENS = 1 << 17 };
#define RING_MAGIC UINT64_C(0x314b4c4246524f46)

typedef struct ring_slot { /* followed by RING_POSITIONS * vocab floats */
    uint64_t sequence;     /* block number, from 1 */
    int64_t document, first, count;
    int32_t status; /* fr_status of the program for this block */
    char message[404];
} ring_slot;

typedef struct ring_header {
    uint64_t magic;
    uint32_t version, threads;
    int64_t vocab;
    _Atomic uint32_t asked, filled, taken, closed; /* futex words */
    int64_t document, T, first;                    /* the request */
    int32_t tokens[RING_MAX_TOKENS];
} ring_header;

typedef struct ring {
    ring_header *header;
    size_t bytes, slot_bytes;
} ring;

fr_status ring_create(ring *r, int *descriptor, int64_t vocab, int threads, fr_error *error);
fr_status ring_attach(ring *r, int descriptor, fr_error *error);
void ring_release(ring *r);
ring_slot *ring_slot_at(const ring *r, uint32_t block);
float *ring_logits(ring_slot *slot);
void ring_raise(_Atomic uint32_t *word, uint32_t value);
/* Waits until *word differs from `seen`; false after `seconds`. */
bool ring_wait(_Atomic uint32_t *word, uint32_t seen, double seconds);

#endif
