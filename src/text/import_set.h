/* text/import_set.h: which documents were seen, 8 bytes each. See import_set.c. */
#ifndef TEXT_IMPORT_SET_H
#define TEXT_IMPORT_SET_H
#include "frontier/text.h"

typedef struct import_set {
    uint64_t *slots; /* 0: free; else the hash with the mark in bit 0 */
    size_t capacity, count;
} import_set;

/* Adds a hash with a mark. *seen: it was there already, then *mark gets the mark it was added with. */
fr_status import_set_add(import_set *set, uint64_t hash, bool *mark, bool *seen, fr_error *error);
void import_set_release(import_set *set);

#endif
