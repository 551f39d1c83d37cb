/* allocate.c: every heap call of the library, in one place.
 *
 * Two reasons to own this. Tests can make the N-th allocation fail, so each failure path is really walked.
 * And all memory is zeroed and 64-byte aligned, a cache line and a vector register, so that kernels and
 * structs need no second thought. A header in front of the block remembers where the heap block
 * began and how long the caller's part is; that length makes resizing possible without
 * asking the caller.
 *
 * Large blocks come from calloc: the system hands out zero pages lazily, and touching a
 * gigabyte to zero it again would cost start-up time. Small ones are placed so that their end is the
 * end of the heap block, which lets the address sanitizer see an overrun by one byte.
 */
#include "frontier/base.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, LAZY_BYTES = 128 * 1024 };

typedef struct block_header {
    void *start;  /* what the heap gave */
    size_t bytes; /* the caller's part */
} block_header;

/* The one mutable global besides the writer's: fault injection has to reach every call. Negative = off. */
static _Atomic int64_t allocations_left = -1;

void fr_allocate_fail_after(int64_t n)
{
    atomic_store(&allocations_left, n);
}

static bool injected_failure(void)
{
    int64_t left = atomic_load(&allocations_left);
    while (left > 0)
        if (atomic_compare_exchange_weak(&allocations_left, &left, left - 1))
            return false;
    return left == 0;
}

static block_header *header_of(void *memory)
{
    return (block_header *)memory - 1;
}

void *fr_allocate(size_t bytes)
{
    if (injected_failure() || bytes > PTRDIFF_MAX - 2 * ALIGNMENT)
        return NULL;
    void *start = NULL;
    if (bytes >= LAZY_BYTES) {
        start = calloc(1, bytes + 2 * ALIGNMENT);
    } else if (posix_memalign(&start, ALIGNMENT, bytes + ALIGNMENT) == 0) {
        memset(start, 0, bytes + ALIGNMENT);
    } else {
        start = NULL;
    }
    if (!start)
        return NULL;
    uintptr_t address = ((uintptr_t)start + ALIGNMENT) & ~(uintptr_t)(ALIGNMENT - 1);
    if (address - (uintptr_t)start < sizeof(block_header))
        address += ALIGNMENT;
    void *memory = (char *)start + (address - (uintptr_t)start);
    *header_of(memory) = (block_header){start, bytes};
    return memory;
}

void *fr_reallocate(void *memory, size_t bytes)
{
    void *grown = fr_allocate(bytes);
    if (!grown || !memory)
        return grown;
    size_t kept = header_of(memory)->bytes < bytes ? header_of(memory)->bytes : bytes;
    memcpy(grown, memory, kept);
    fr_deallocate(memory);
    return grown;
}

void fr_deallocate(void *memory)
{
    if (memory)
        free(header_of(memory)->start);
}
