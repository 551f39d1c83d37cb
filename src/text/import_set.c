/* import_set.c: an open-addressing set of document hashes.
 *
 * The only thing in an import that grows with the number of documents, so it stores the hash itself and no
 * more: 63 bits and one mark (validation or training). At a hundred million documents the chance that even
 * one is taken for a copy of another is below one in a thousand, and the harm is one document.
 */
#include "text/import_set.h"

#include <string.h>

static size_t place(const import_set *set, uint64_t hash)
{
    size_t mask = set->capacity - 1, at = (size_t)(hash >> 1) & mask;
    while (set->slots[at] != 0 && (set->slots[at] | 1) != (hash | 1))
        at = (at + 1) & mask;
    return at;
}

static fr_status grow(import_set *set, fr_error *error)
{
    import_set larger = {NULL, set->capacity ? set->capacity * 2 : 4096, set->count};
    larger.slots = fr_allocate(larger.capacity * sizeof *larger.slots);
    if (!larger.slots)
        return fr_error_memory(error, larger.capacity * sizeof *larger.slots, "the set of documents seen");
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slots[i] != 0)
            larger.slots[place(&larger, set->slots[i])] = set->slots[i];
    fr_deallocate(set->slots);
    *set = larger;
    return FR_OK;
}

fr_status import_set_add(import_set *set, uint64_t hash, bool *mark, bool *seen, fr_error *error)
{
    if (set->count * 3 >= set->capacity * 2)
        FR_TRY(grow(set, error));
    hash = (hash & ~UINT64_C(1)) ? hash : 2;
    size_t at = place(set, hash);
    *seen = set->slots[at] != 0;
    if (*seen) {
        *mark = set->slots[at] & 1;
        return FR_OK;
    }
    set->slots[at] = (hash & ~UINT64_C(1)) | (uint64_t)*mark;
    set->count++;
    return FR_OK;
}

void import_set_release(import_set *set)
{
    fr_deallocate(set->slots);
    memset(set, 0, sizeof *set);
}
