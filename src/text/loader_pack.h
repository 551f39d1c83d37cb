/* text/loader_pack.h: deciding which pieces of which documents make a row; no token is touched here. */
#ifndef TEXT_LOADER_PACK_H
#define TEXT_LOADER_PACK_H
#include "frontier/text.h"

/* Documents come in order, epoch after epoch; the n-th drawn is document n % documents of epoch n / documents. */
typedef struct packed_piece {
    int64_t sequence, start, count;
} packed_piece;

typedef struct packed_row {
    packed_piece *pieces;
    int64_t count, capacity;
    int64_t consumed; /* ids of the corpus that this row used up, cropped ones included */
} packed_row;
void packed_row_release(packed_row *row);
fr_status packed_row_copy(packed_row *to, const packed_row *from, fr_error *error);
fr_status packed_row_add(packed_row *row, packed_piece piece, fr_error *error);

typedef struct pack_entry {
    int64_t sequence, length;
} pack_entry;

typedef struct packer {
    const fr_corpus *corpus;
    fr_loader_options options; /* defaults resolved */
    int64_t documents, tokens; /* of one epoch */
    int64_t next_row;          /* stream: rows packed */
    int64_t next_sequence;     /* best fit: the next document to draw */
    pack_entry *entries;       /* best fit: the buffer, by (length, sequence) */
    int64_t count, capacity;
} packer;
fr_status packer_init(packer *state, const fr_corpus *corpus, const fr_loader_options *options, fr_error *error);
fr_status packer_copy(packer *to, const packer *from, fr_error *error);
void packer_release(packer *state);
/* Packs the next row; row->count is 0 at the end (only with `once`). */
fr_status packer_next(packer *state, packed_row *row, fr_error *error);
/* Puts a drawn document into the best-fit buffer; false when it is there already or the buffer is full. */
bool packer_insert(packer *state, int64_t sequence);

#endif
