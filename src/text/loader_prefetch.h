/* text/loader_prefetch.h: a thread that fills rows ahead of the consumer. */
#ifndef TEXT_LOADER_PREFETCH_H
#define TEXT_LOADER_PREFETCH_H
#include "text/loader_rows.h"

typedef struct prefetcher prefetcher;
/* Starts at the state of `source`, of which it takes a copy. */
fr_status prefetcher_create(prefetcher **out, const row_source *source, fr_error *error);
/* Copies out the next row, waiting for it if need be; *got is false at the end. */
fr_status prefetcher_next(prefetcher *ahead, int32_t *inputs, int32_t *targets, int32_t *documents, bool *got, fr_error *error);
void prefetcher_free(prefetcher *ahead); /* stops the thread */

#endif
