/* loader_rows.c: from packed rows to delivered ids.
 *
 * The shuffle pool holds `pool_rows` plans; delivering row n takes the one that a counter-based draw for n
 * points at and the packer's next row fills the gap. The draw depends on (seed, n) alone, so the pool needs no
 * generator state. Plans are small, so a pool of thousands of rows costs little and saves as JSON.
 */
#include "text/loader_rows.h"

#include "text/corpus.h"

#include <string.h>

enum { POOL_STREAM = 0x706f6f6c }; /* the generator's stream: nobody else draws from it */

static bool shuffles(const row_source *source)
{
    return source->packing.options.pool_rows > 1;
}

static fr_status allocate_pool(row_source *source, fr_error *error)
{
    if (!shuffles(source))
        return FR_OK;
    size_t size = (size_t)source->packing.options.pool_rows * sizeof *source->pool;
    source->pool = fr_allocate(size);
    return source->pool ? FR_OK : fr_error_memory(error, size, "the row pool");
}

fr_status row_source_init(row_source *source, const fr_corpus *corpus, const fr_loader_options *options, fr_error *error)
{
    memset(source, 0, sizeof *source);
    fr_status status = packer_init(&source->packing, corpus, options, error);
    if (status == FR_OK)
        status = allocate_pool(source, error);
    if (status != FR_OK)
        row_source_release(source);
    return status;
}

static fr_status copy_into(row_source *to, const row_source *from, fr_error *error)
{
    FR_TRY(packer_copy(&to->packing, &from->packing, error));
    FR_TRY(allocate_pool(to, error));
    to->row = from->row;
    to->consumed = from->consumed;
    to->pool_count = from->pool_count;
    for (int64_t i = 0; i < from->pool_count; i++)
        FR_TRY(packed_row_copy(&to->pool[i], &from->pool[i], error));
    return FR_OK;
}

fr_status row_source_copy(row_source *to, const row_source *from, fr_error *error)
{
    memset(to, 0, sizeof *to);
    fr_status status = copy_into(to, from, error);
    if (status != FR_OK)
        row_source_release(to);
    return status;
}

void row_source_release(row_source *source)
{
    /* Slots beyond pool_count may still own memory: they are reused. */
    for (int64_t i = 0; source->pool && i < source->packing.options.pool_rows; i++)
        packed_row_release(&source->pool[i]);
    fr_deallocate(source->pool);
    packer_release(&source->packing);
    memset(source, 0, sizeof *source);
}

static void swap(packed_row *a, packed_row *b)
{
    packed_row kept = *a;
    *a = *b;
    *b = kept;
}

static fr_status draw(row_source *source, packed_row *row, fr_error *error)
{
    while (source->pool_count < source->packing.options.pool_rows) {
        FR_TRY(packer_next(&source->packing, &source->pool[source->pool_count], error));
        if (source->pool[source->pool_count].count == 0)
            break;
        source->pool_count++;
    }
    row->count = 0;
    if (source->pool_count == 0)
        return FR_OK;
    uint64_t number = fr_rng_at(source->packing.options.seed, POOL_STREAM, (uint64_t)source->row);
    int64_t chosen = (int64_t)(number % (uint64_t)source->pool_count);
    swap(row, &source->pool[chosen]);
    source->pool_count--;
    swap(&source->pool[chosen], &source->pool[source->pool_count]);
    return FR_OK;
}

fr_status row_source_next(row_source *source, packed_row *row, fr_error *error)
{
    FR_TRY(shuffles(source) ? draw(source, row, error) : packer_next(&source->packing, row, error));
    if (row->count > 0) {
        source->row++;
        source->consumed += row->consumed;
    }
    return FR_OK;
}

/* ---- ids ---- */

void row_fill_padding(const packer *packing, int32_t *inputs, int32_t *targets, int32_t *documents)
{
    int32_t bos = fr_tokenizer_bos(fr_corpus_tokenizer(packing->corpus));
    for (int64_t i = 0; i < packing->options.context; i++) {
        inputs[i] = bos;
        targets[i] = -1;
        if (documents)
            documents[i] = -1;
    }
}

/* Copies every piece's ids to ids[0..], and beside each id its document. */
static fr_status gather(const packer *packing, const packed_row *row, int32_t *ids, int32_t *owners, int64_t *count, fr_error *error)
{
    int64_t used = 0;
    for (int64_t p = 0; p < row->count; p++) {
        const packed_piece *piece = &row->pieces[p];
        int64_t document = piece->sequence % packing->documents;
        FR_TRY(corpus_copy(packing->corpus, packing->options.split, document, piece->start, piece->count, ids + used, error));
        for (int64_t i = 0; i < piece->count; i++)
            owners[used + i] = (int32_t)document;
        used += piece->count;
    }
    *count = used;
    return FR_OK;
}

fr_status row_fill(const packer *packing, const packed_row *row, int32_t *scratch, int32_t *inputs, int32_t *targets,
                   int32_t *documents, fr_error *error)
{
    int64_t context = packing->options.context, count = 0;
    int32_t *owners = scratch + context + 1;
    FR_TRY(gather(packing, row, scratch, owners, &count, error));
    row_fill_padding(packing, inputs, targets, documents);
    int32_t masked = packing->options.mask_bos_target ? fr_tokenizer_bos(fr_corpus_tokenizer(packing->corpus)) : -1;
    for (int64_t i = 0; i < context && i < count; i++)
        inputs[i] = scratch[i];
    for (int64_t i = 0; i + 1 < count; i++) {
        targets[i] = scratch[i + 1] == masked ? -1 : scratch[i + 1];
        if (documents)
            documents[i] = targets[i] < 0 ? -1 : owners[i + 1];
    }
    return FR_OK;
}
