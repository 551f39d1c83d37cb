/* import_prepare.c: the part of an import that uses all processors.
 *
 * Reading is sequential; everything per document (JSON, checks, folding, encoding) depends on that document
 * alone. So a batch is one parallel loop over its records, and the results are used in order: the outcome
 * cannot depend on threads. A document has at most one id per byte, so record i's ids have their place in
 * one array at the record's own offset.
 */
#include "text/import_prepare.h"

#include "text/import_json.h"
#include "text/import_text.h"

#include <string.h>

typedef struct prepare_job {
    import_documents *documents;
    const import_batch *batch;
    const import_files *files;
    const char *text_field;
    const fr_tokenizer *tokenizer;
    const uint8_t *keep;
} prepare_job;

static void decode_json(char *line, size_t bytes, const char *key, import_document *document)
{
    import_json json;
    import_json_line(line, bytes, key, &json);
    document->problem = json.problem;
    document->text = json.text;
    document->bytes = json.bytes;
    document->duplicate_key = json.duplicate_key;
    document->invalid_utf8 = json.lone_surrogate;
}

static void inspect(import_document *document)
{
    size_t folded;
    document->hash = import_fold_hash(document->text, document->bytes, &folded);
    document->nul = memchr(document->text, 0, document->bytes) != NULL;
    document->crlf = import_has_crlf(document->text, document->bytes);
    document->invalid_utf8 |= !import_is_utf8(document->text, document->bytes);
    if (folded == 0) {
        document->problem = FR_IMPORT_EMPTY;
        document->hash = 0;
    }
}

static void prepare_one(void *context, int64_t index, int thread)
{
    (void)thread;
    const prepare_job *job = context;
    const import_record *record = &job->batch->records[index];
    import_document *document = &job->documents->list[index];
    char *raw = job->batch->text + record->offset;
    *document = (import_document){.problem = FR_IMPORT_KINDS, .text = raw, .bytes = record->bytes};
    if (job->files->list[record->file].format == IMPORT_JSONL)
        decode_json(raw, record->bytes, job->text_field, document);
    if (document->problem == FR_IMPORT_KINDS)
        inspect(document);
    if (!job->keep || job->keep[index] != 0 || document->problem != FR_IMPORT_KINDS)
        return;
    document->ids = job->documents->ids + record->offset + (size_t)index; /* one id more than bytes, at most */
    document->count = fr_tokenizer_encode(job->tokenizer, document->text, document->bytes, document->ids, (int64_t)record->bytes + 1);
}

static fr_status reserve(import_documents *documents, const import_batch *batch, bool encode, fr_error *error)
{
    if (batch->count > documents->capacity) {
        size_t size = (size_t)batch->count * 2 * sizeof *documents->list;
        import_document *list = fr_reallocate(documents->list, size);
        if (!list)
            return fr_error_memory(error, size, "a batch of documents");
        documents->list = list;
        documents->capacity = batch->count * 2;
    }
    size_t most_ids = batch->bytes + (size_t)batch->count;
    if (encode && most_ids > documents->ids_capacity) {
        size_t size = (most_ids + most_ids / 4) * sizeof *documents->ids;
        fr_deallocate(documents->ids);
        documents->ids_capacity = 0;
        documents->ids = fr_allocate(size);
        if (!documents->ids)
            return fr_error_memory(error, size, "a batch of ids");
        documents->ids_capacity = size / sizeof *documents->ids;
    }
    return FR_OK;
}

fr_status import_prepare(import_documents *documents, const import_batch *batch, const import_files *files, const char *text_field,
                         const fr_tokenizer *tokenizer, const uint8_t *keep, fr_pool *pool, fr_error *error)
{
    FR_TRY(reserve(documents, batch, keep != NULL, error));
    prepare_job job = {documents, batch, files, text_field, tokenizer, keep};
    fr_pool_for(pool, batch->count, prepare_one, &job);
    for (int64_t i = 0; i < batch->count; i++)
        if (documents->list[i].count < 0)
            return fr_tokenizer_encode_error(tokenizer, documents->list[i].bytes, "a document", error);
    return FR_OK;
}

void import_documents_release(import_documents *documents)
{
    fr_deallocate(documents->list);
    fr_deallocate(documents->ids);
    memset(documents, 0, sizeof *documents);
}
