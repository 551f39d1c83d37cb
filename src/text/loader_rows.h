/* text/loader_rows.h: numbered rows in delivery order: a packer, a shuffle pool behind it, and their ids. */
#ifndef TEXT_LOADER_ROWS_H
#define TEXT_LOADER_ROWS_H
#include "text/loader_pack.h"

/* The complete state of delivery: copying it copies the future. */
typedef struct row_source {
    packer packing;
    packed_row *pool; /* pool_rows rows when shuffling */
    int64_t pool_count;
    int64_t row;      /* number of the next row */
    int64_t consumed; /* ids consumed by rows delivered */
} row_source;
fr_status row_source_init(row_source *source, const fr_corpus *corpus, const fr_loader_options *options, fr_error *error);
fr_status row_source_copy(row_source *to, const row_source *from, fr_error *error);
void row_source_release(row_source *source);
/* The next row's plan; row->count is 0 at the end. */
fr_status row_source_next(row_source *source, packed_row *row, fr_error *error);

/* Turns a plan into ids. `scratch` has room for 2 (T + 1); `documents` may be NULL. */
fr_status row_fill(const packer *packing, const packed_row *row, int32_t *scratch, int32_t *inputs, int32_t *targets,
                   int32_t *documents, fr_error *error);
/* A row of padding. */
void row_fill_padding(const packer *packing, int32_t *inputs, int32_t *targets, int32_t *documents);

#endif
