/* src/submission/ring.c: shared memory and futexes under the block protocol.
 *
 * The memory is a sealed-size memfd handed to the child by descriptor, so no name in the file system can be
 * guessed or left behind. Futexes are the shared (not private) kind because two processes wait on one page.
 */
#include "submission/ring.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static size_t slot_bytes_for(int64_t vocab)
{
    size_t bytes = sizeof(ring_slot) + (size_t)RING_POSITIONS * (size_t)vocab * sizeof(float);
    return (bytes + 4095) & ~(size_t)4095;
}

static size_t header_bytes(void)
{
    return (sizeof(ring_header) + 4095) & ~(size_t)4095;
}

static fr_status map_ring(ring *r, int descriptor, size_t bytes, fr_error *error)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
        return fr_error_memory(error, bytes, "the block ring");
    r->header = memory;
    r->bytes = bytes;
    return FR_OK;
}

fr_status ring_create(ring *r, int *descriptor, int64_t vocab, int threads, fr_error *error)
{
    if (vocab < 1 || vocab > (1 << 24))
        return fr_error_set(error, FR_BAD_DATA, NULL, NULL, "a vocabulary of %lld entries", (long long)vocab);
    size_t slot = slot_bytes_for(vocab), bytes = header_bytes() + RING_SLOTS * slot;
    *descriptor = memfd_create("frontier-blocks", MFD_ALLOW_SEALING);
    if (*descriptor < 0 || ftruncate(*descriptor, (off_t)bytes) != 0)
        return fr_error_memory(error, bytes, "the block ring");
    if (fcntl(*descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
        0) /* else a child could pull it away */
        return fr_error_set(error, FR_BAD_ENVIRONMENT, NULL, "frontier needs Linux 3.17 or later",
                            "shared memory cannot be sealed");
    FR_TRY(map_ring(r, *descriptor, bytes, error));
    r->slot_bytes = slot;
    r->header->magic = RING_MAGIC;
    r->header->version = RING_VERSION;
    r->header->threads = (uint32_t)(threads > 0 ? threads : 0);
    r->header->vocab = vocab;
    return FR_OK;
}

fr_status ring_attach(ring *r, int descriptor, fr_error *error)
{
    struct stat s;
    if (fstat(descriptor, &s) != 0 || (size_t)s.st_size < header_bytes())
        return fr_error_set(error, FR_BAD_USAGE, NULL, "this command is started by frontier itself",
                            "no block ring behind descriptor %d", descriptor);
    FR_TRY(map_ring(r, descriptor, (size_t)s.st_size, error));
    r->slot_bytes = slot_bytes_for(r->header->vocab);
    if (r->header->magic != RING_MAGIC || r->header->version != RING_VERSION ||
        header_bytes() + RING_SLOTS * r->slot_bytes != r->bytes) {
        ring_release(r);
        return fr_error_set(error, FR_BAD_DATA, NULL, "build the submission again with this frontier",
                            "the block ring has another version");
    }
    return FR_OK;
}

void ring_release(ring *r)
{
    if (r->header)
        munmap(r->header, r->bytes);
    *r = (ring){0};
}

ring_slot *ring_slot_at(const ring *r, uint32_t block)
{
    return (ring_slot *)((char *)r->header + header_bytes() + (block % RING_SLOTS) * r->slot_bytes);
}

float *ring_logits(ring_slot *slot)
{
    return (float *)(slot + 1);
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void ring_raise(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
    futex(word, FUTEX_WAKE, INT32_MAX, NULL);
}

bool ring_wait(_Atomic uint32_t *word, uint32_t seen, double seconds)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (atomic_load_explicit(word, memory_order_acquire) == seen) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        double left =
            seconds - ((double)(now.tv_sec - start.tv_sec) + 1e-9 * (double)(now.tv_nsec - start.tv_nsec));
        if (left <= 0)
            return false;
        double slice = left < 0.2 ? left : 0.2;
        struct timespec wait = {(time_t)slice, (long)((slice - (double)(time_t)slice) * 1e9)};
        futex(word, FUTEX_WAIT, seen, &wait);
    }
    return true;
}
