/* loader.c: rows for training and evaluation, the same ones whatever happens around them.
 *
 * A row's content depends on the corpus, the options and its number, never on threads, batch sizes or
 * interruptions. The layers below: loader_pack.c decides, loader_rows.c shuffles and fills, loader_prefetch.c
 * reads ahead, loader_state.c saves.
 */
#include "text/loader.h"

#include "text/corpus.h"

#include <math.h>
#include <string.h>

enum { MOST_CONTEXT = 1 << 22, MOST_BUFFER = 1 << 16, MOST_POOL = 1 << 20, SAMPLE_ROWS = 20000 };

static fr_status check_options(const fr_corpus *corpus, fr_loader_options *options, fr_error *error)
{
    int64_t available = fr_corpus_documents(corpus, options->split);
    if (options->context < 1 || options->context > MOST_CONTEXT)
        return fr_error_set(error, FR_BAD_USAGE, "context", NULL, "must be between 1 and %d", MOST_CONTEXT);
    if (options->buffer < 0 || options->buffer > MOST_BUFFER)
        return fr_error_set(error, FR_BAD_USAGE, "buffer", NULL, "must be between 0 and %d", MOST_BUFFER);
    if (options->pool_rows < 0 || options->pool_rows > MOST_POOL)
        return fr_error_set(error, FR_BAD_USAGE, "pool_rows", NULL, "must be between 0 and %d", MOST_POOL);
    if (options->documents < 0 || options->documents > available)
        return fr_error_set(error, FR_BAD_USAGE, "documents", NULL, "the split has only %lld documents", (long long)available);
    if (available == 0)
        return fr_error_set(error, FR_BAD_DATA, fr_corpus_folder(corpus), "import text for both splits",
                            "no documents in the %s split", options->split == FR_TRAIN ? "train" : "valid");
    options->documents = options->documents ? options->documents : available;
    options->buffer = options->buffer ? options->buffer : 512;
    if (options->documents > INT32_MAX)
        return fr_error_set(error, FR_BAD_USAGE, fr_corpus_folder(corpus), "split the corpus", "more than 2^31 documents");
    return FR_OK;
}

static fr_status init(fr_loader *loader, const fr_corpus *corpus, const fr_loader_options *options, fr_error *error)
{
    FR_TRY(row_source_init(&loader->source, corpus, options, error));
    size_t scratch = (size_t)(options->context + 1) * 2 * sizeof *loader->scratch;
    loader->scratch = fr_allocate(scratch);
    if (!loader->scratch)
        return fr_error_memory(error, scratch, "a row");
    return options->prefetch ? prefetcher_create(&loader->ahead, &loader->source, error) : FR_OK;
}

fr_status fr_loader_create(fr_loader **out, const fr_corpus *corpus, const fr_loader_options *options, fr_error *error)
{
    *out = NULL;
    fr_loader_options resolved = *options;
    FR_TRY(check_options(corpus, &resolved, error));
    fr_loader *loader = fr_allocate(sizeof *loader);
    if (!loader)
        return fr_error_memory(error, sizeof *loader, "the loader");
    fr_status status = init(loader, corpus, &resolved, error);
    if (status != FR_OK) {
        fr_loader_free(loader);
        return status;
    }
    *out = loader;
    return FR_OK;
}

void fr_loader_free(fr_loader *loader)
{
    if (!loader)
        return;
    prefetcher_free(loader->ahead);
    row_source_release(&loader->source);
    packed_row_release(&loader->plan);
    fr_deallocate(loader->scratch);
    fr_deallocate(loader);
}

fr_status loader_replace(fr_loader *loader, row_source *source, fr_error *error)
{
    prefetcher *ahead = NULL;
    if (loader->source.packing.options.prefetch)
        FR_TRY(prefetcher_create(&ahead, source, error));
    prefetcher_free(loader->ahead);
    row_source_release(&loader->source);
    loader->ahead = ahead;
    loader->source = *source;
    loader->failed = false;
    memset(source, 0, sizeof *source);
    return FR_OK;
}

/* ---- rows ---- */

static fr_status next_row(fr_loader *loader, int32_t *inputs, int32_t *targets, int32_t *documents, bool *got, fr_error *error)
{
    FR_TRY(row_source_next(&loader->source, &loader->plan, error));
    if (loader->ahead)
        return prefetcher_next(loader->ahead, inputs, targets, documents, got, error);
    *got = loader->plan.count > 0;
    if (!*got)
        return FR_OK;
    return row_fill(&loader->source.packing, &loader->plan, loader->scratch, inputs, targets, documents, error);
}

fr_status fr_loader_next_documents(fr_loader *loader, int64_t rows, int32_t *inputs, int32_t *targets, int32_t *documents,
                                   int64_t *got, fr_error *error)
{
    *got = 0;
    if (loader->failed)
        return fr_error_set(error, FR_BAD_USAGE, fr_corpus_folder(loader->source.packing.corpus), "restore a saved state",
                            "the loader failed before");
    int64_t context = loader->source.packing.options.context;
    bool more = true;
    for (int64_t r = 0; r < rows; r++) {
        int32_t *in = inputs + r * context, *out = targets + r * context;
        int32_t *owners = documents ? documents + r * context : NULL;
        if (more) {
            fr_status status = next_row(loader, in, out, owners, &more, error);
            if (status != FR_OK) {
                loader->failed = true;
                return status;
            }
        }
        if (more)
            *got += 1;
        else
            row_fill_padding(&loader->source.packing, in, out, owners);
    }
    return FR_OK;
}

fr_status fr_loader_next(fr_loader *loader, int64_t rows, int32_t *inputs, int32_t *targets, int64_t *got, fr_error *error)
{
    return fr_loader_next_documents(loader, rows, inputs, targets, NULL, got, error);
}

/* ---- where it is ---- */

int64_t fr_loader_once_rows(const fr_loader *loader)
{
    const packer *packing = &loader->source.packing;
    if (packing->options.packing != FR_PACK_STREAM)
        return -1;
    return (packing->tokens - 2) / packing->options.context + 1;
}

int64_t fr_loader_row(const fr_loader *loader)
{
    return loader->source.row;
}

int64_t fr_loader_epoch(const fr_loader *loader)
{
    return loader->source.consumed / loader->source.packing.tokens;
}

double fr_loader_epochs(const fr_loader *loader)
{
    return (double)loader->source.consumed / (double)loader->source.packing.tokens;
}

/* Packs from the start, at most an epoch and at most so many rows; targets given per id consumed. */
static fr_status sample_yield(packer *packing, double *yield)
{
    packed_row row = {0};
    fr_status status = FR_OK;
    int64_t consumed = 0, rows = 0;
    while (status == FR_OK && rows < SAMPLE_ROWS && consumed < packing->tokens) {
        status = packer_next(packing, &row, NULL);
        consumed += row.consumed;
        rows++;
    }
    packed_row_release(&row);
    *yield = consumed > 0 ? (double)rows * (double)packing->options.context / (double)consumed : 0;
    return status;
}

int64_t fr_loader_epoch_tokens(const fr_loader *loader)
{
    const packer *own = &loader->source.packing;
    if (own->options.packing == FR_PACK_STREAM)
        return own->tokens;
    fr_loader_options options = own->options;
    options.once = false; /* a short last row would count as a whole one */
    packer fresh;
    double yield = 0;
    if (packer_init(&fresh, own->corpus, &options, NULL) != FR_OK)
        return -1;
    fr_status status = sample_yield(&fresh, &yield);
    packer_release(&fresh);
    return status == FR_OK ? (int64_t)llround(yield * (double)own->tokens) : -1;
}
