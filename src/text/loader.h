/* text/loader.h: the loader's parts, shared by loader.c and loader_state.c. */
#ifndef TEXT_LOADER_H
#define TEXT_LOADER_H
#include "text/loader_prefetch.h"

struct fr_loader {
    row_source source; /* as of the rows delivered */
    packed_row plan;   /* of the row being delivered */
    int32_t *scratch;
    prefetcher *ahead; /* NULL without prefetch */
    bool failed;       /* an error left the source between two rows */
};

/* Puts a new state in place of the loader's; takes the source over when it succeeds. */
fr_status loader_replace(fr_loader *loader, row_source *source, fr_error *error);

#endif
