/* text/import_prepare.h: a batch of raw records made into documents, in parallel. See import_prepare.c. */
#ifndef TEXT_IMPORT_PREPARE_H
#define TEXT_IMPORT_PREPARE_H
#include "text/import_reader.h"

typedef struct import_document {
    fr_import_kind problem; /* FR_IMPORT_KINDS: none, it is a document */
    const char *text;       /* in the batch */
    size_t bytes;
    uint64_t hash;          /* of the folded text; 0 with a problem */
    bool duplicate_key, invalid_utf8, nul, crlf;
    int32_t *ids;           /* when encoded */
    int64_t count;          /* -1: memory ran out */
} import_document;

typedef struct import_documents {
    import_document *list;
    int64_t capacity;
    int32_t *ids; /* room for one id per byte of the batch */
    size_t ids_capacity;
} import_documents;

/* `keep` (may be NULL) says which records to encode with `tokenizer`: those whose entry is 0. */
fr_status import_prepare(import_documents *documents, const import_batch *batch, const import_files *files, const char *text_field,
                         const fr_tokenizer *tokenizer, const uint8_t *keep, fr_pool *pool, fr_error *error);
void import_documents_release(import_documents *documents);

#endif
