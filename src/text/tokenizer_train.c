/* The trainer: documents in, a tokenizer out.
 *
 * feed() crops a document and puts it in a batch; a full batch is cut into slices of whole documents,
 * which the pool's threads split into chunks and count, each thread in its own table. finish() adds the
 * tables up, learns the merges and appends the chat specials. What is counted is fixed by the text and the
 * options alone.
 */
#include "text/bpe_merges.h"
#include "text/pretokenizer_utf8.h"
#include <stdatomic.h>
#include <string.h>

enum {
    BATCH_BYTES = 8 << 20,
    SLICE_BYTES = 128 << 10,
    DOCUMENT_CROP = 10000, /* characters */
};
static const int64_t MAX_CHARACTERS = 2000000000;

struct fr_tokenizer_trainer {
    fr_split_pattern *pattern;
    fr_pool *pool;
    const fr_progress *progress;
    int32_t vocab;
    uint64_t crop, characters, max_characters;
    fr_buffer batch;
    size_t *ends; /* of the batch's documents */
    size_t document_count, document_capacity;
    size_t *slices; /* first document of each, and the count of documents last */
    size_t slice_capacity;
    int threads;
    fr_chunk_counts *counts; /* one per thread */
    uint64_t bytes;          /* counted so far, for progress */
};

static fr_status out_of_memory(fr_error *error)
{
    return fr_error_memory(error, BATCH_BYTES, "tokenizer training");
}

fr_status fr_tokenizer_trainer_create(fr_tokenizer_trainer **out, const fr_tokenizer_options *options,
                                      fr_error *error)
{
    if (options->vocab < 256 + FR_CHAT_SPECIALS || options->vocab > FR_TOKENIZER_VOCAB_LIMIT)
        return fr_error_set(error, FR_BAD_USAGE, "vocabulary size",
                            "256 bytes and 9 specials are always there", "%d is not in 265..1048576",
                            options->vocab);
    if (options->document_crop < 0 || options->max_characters < 0)
        return fr_error_set(error, FR_BAD_USAGE, "tokenizer training", NULL, "negative limit");
    fr_tokenizer_trainer *t = fr_allocate(sizeof *t);
    if (!t)
        return out_of_memory(error);
    *t =
        (fr_tokenizer_trainer){.pool = options->pool, .progress = options->progress, .vocab = options->vocab};
    t->crop = options->document_crop ? (uint64_t)options->document_crop : DOCUMENT_CROP;
    t->max_characters = (uint64_t)(options->max_characters ? options->max_characters : MAX_CHARACTERS);
    t->threads = fr_pool_threads(options->pool);
    fr_buffer_init(&t->batch, 0);
    t->counts = fr_allocate((size_t)t->threads * sizeof *t->counts);
    fr_status status =
        t->counts ? fr_split_pattern_create(&t->pattern, options->pattern, error) : out_of_memory(error);
    if (status == FR_OK)
        *out = t;
    else
        fr_tokenizer_trainer_free(t);
    return status;
}

void fr_tokenizer_trainer_free(fr_tokenizer_trainer *t)
{
    if (!t)
        return;
    for (int i = 0; t->counts && i < t->threads; i++)
        fr_chunk_counts_release(&t->counts[i]);
    fr_split_pattern_free(t->pattern);
    fr_buffer_release(&t->batch);
    fr_deallocate(t->counts);
    fr_deallocate(t->ends);
    fr_deallocate(t->slices);
    fr_deallocate(t);
}

/* ---- counting --------------------------------------------------------------------------------------- */

typedef struct count_job {
    fr_tokenizer_trainer *trainer;
    atomic_bool failed;
} count_job;

static bool count_document(const fr_tokenizer_trainer *t, fr_chunk_counts *counts, const uint8_t *text,
                           size_t bytes)
{
    fr_splitter splitter;
    size_t start, end;
    fr_split_step step =
        fr_splitter_init(&splitter, t->pattern, text, bytes) ? FR_SPLIT_CHUNK : FR_SPLIT_FAILED;
    while (step == FR_SPLIT_CHUNK && (step = fr_splitter_next(&splitter, &start, &end)) == FR_SPLIT_CHUNK)
        if (!fr_chunk_counts_add(counts, text + start, end - start, 1))
            step = FR_SPLIT_FAILED;
    fr_splitter_release(&splitter);
    return step == FR_SPLIT_END;
}

static void count_slice(void *context, int64_t slice, int thread)
{
    count_job *job = context;
    fr_tokenizer_trainer *t = job->trainer;
    for (size_t d = t->slices[slice]; d < t->slices[slice + 1]; d++) {
        size_t from = d ? t->ends[d - 1] : 0;
        if (!count_document(t, &t->counts[thread], (const uint8_t *)t->batch.data + from,
                            t->ends[d] - from)) {
            atomic_store(&job->failed, true);
            return;
        }
    }
}

/* Groups the batch's documents into slices; returns how many. */
static size_t cut_slices(fr_tokenizer_trainer *t)
{
    size_t count = 0, from = 0;
    t->slices[0] = 0;
    for (size_t d = 0; d < t->document_count; d++) {
        if (t->ends[d] - from < SLICE_BYTES && d + 1 < t->document_count)
            continue;
        t->slices[++count] = d + 1;
        from = t->ends[d];
    }
    return count;
}

static fr_status count_batch(fr_tokenizer_trainer *t, fr_error *error)
{
    if (t->slice_capacity < t->document_count + 1) {
        size_t *grown = fr_reallocate(t->slices, (t->document_count + 1) * sizeof *grown);
        if (!grown)
            return out_of_memory(error);
        t->slices = grown;
        t->slice_capacity = t->document_count + 1;
    }
    count_job job = {.trainer = t};
    atomic_init(&job.failed, false);
    size_t slices = cut_slices(t);
    fr_pool_for(t->pool, (int64_t)slices, count_slice, &job);
    t->bytes += t->batch.length;
    t->document_count = 0;
    fr_buffer_clear(&t->batch);
    fr_progress_update(t->progress, "tokenizer text", (double)t->bytes, 0, NULL);
    if (atomic_load(&job.failed))
        return fr_error_set(error, FR_BAD_ENVIRONMENT, "tokenizer training",
                            "free memory, or use a simpler split pattern",
                            "no memory to count chunks, or a split pattern beyond PCRE2's limits");
    return FR_OK;
}

static uint64_t count_characters(const uint8_t *text, size_t bytes)
{
    uint64_t characters = 0;
    for (size_t at = 0; at < bytes; characters++) {
        bool valid;
        size_t length = fr_utf8_step(text + at, bytes - at, &valid);
        at += valid ? length : 1;
    }
    return characters;
}

fr_status fr_tokenizer_trainer_feed(fr_tokenizer_trainer *t, const char *text, size_t bytes, fr_error *error)
{
    if (t->characters > t->max_characters || bytes == 0)
        return FR_OK;
    bytes = fr_utf8_prefix((const uint8_t *)text, bytes, t->crop);
    if (t->document_count == t->document_capacity) {
        size_t capacity = t->document_capacity ? t->document_capacity * 2 : 1024;
        size_t *grown = fr_reallocate(t->ends, capacity * sizeof *grown);
        if (!grown)
            return out_of_memory(error);
        t->ends = grown;
        t->document_capacity = capacity;
    }
    fr_buffer_append(&t->batch, text, bytes);
    if (t->batch.failed)
        return out_of_memory(error);
    t->ends[t->document_count++] = t->batch.length;
    t->characters += count_characters((const uint8_t *)text, bytes);
    return t->batch.length >= BATCH_BYTES ? count_batch(t, error) : FR_OK;
}

/* ---- the tokenizer ---------------------------------------------------------------------------------- */

static fr_status set_merged_token(fr_tokenizer *made, const fr_merge *merge, fr_buffer *joined,
                                  fr_error *error)
{
    const fr_token *left = &made->tokens[merge->left], *right = &made->tokens[merge->right];
    fr_buffer_clear(joined);
    fr_buffer_append(joined, left->bytes, left->length);
    fr_buffer_append(joined, right->bytes, right->length);
    if (joined->failed)
        return fr_error_memory(error, (size_t)left->length + right->length, "a token");
    return fr_tokenizer_set_token(made, merge->result, joined->data, joined->length, FR_TOKEN_MODEL, error);
}

static fr_status set_tokens(fr_tokenizer *made, const fr_merge *merges, int32_t count, fr_error *error)
{
    fr_buffer joined;
    fr_status status = FR_OK;
    fr_buffer_init(&joined, 0);
    for (int value = 0; value < 256 && status == FR_OK; value++) {
        uint8_t byte = (uint8_t)value;
        status = fr_tokenizer_set_token(made, value, &byte, 1, FR_TOKEN_MODEL, error);
    }
    for (int32_t m = 0; m < count && status == FR_OK; m++)
        status = set_merged_token(made, &merges[m], &joined, error);
    for (int32_t s = 0; s < FR_CHAT_SPECIALS && status == FR_OK; s++)
        status =
            fr_tokenizer_set_token(made, 256 + count + s, fr_chat_specials[s], strlen(fr_chat_specials[s]),
                                   FR_TOKEN_ADDED | FR_TOKEN_SPECIAL, error);
    fr_buffer_release(&joined);
    return status;
}

static fr_status build(fr_tokenizer **out, const char *pattern, const fr_merge *merges, int32_t count,
                       fr_error *error)
{
    fr_tokenizer *made = NULL;
    FR_TRY(fr_tokenizer_begin(&made, 256 + count + FR_CHAT_SPECIALS, pattern, error));
    fr_status status = set_tokens(made, merges, count, error);
    if (status == FR_OK)
        status = fr_tokenizer_index_pieces(made, error);
    if (status == FR_OK)
        status = fr_tokenizer_finish(made, merges, count, error);
    if (status == FR_OK)
        *out = made;
    else
        fr_tokenizer_free(made);
    return status;
}

fr_status fr_tokenizer_trainer_finish(fr_tokenizer_trainer *t, fr_tokenizer **out, fr_error *error)
{
    if (t->document_count)
        FR_TRY(count_batch(t, error));
    for (int i = 1; i < t->threads; i++) {
        if (!fr_chunk_counts_merge(&t->counts[0], &t->counts[i]))
            return out_of_memory(error);
        fr_chunk_counts_release(&t->counts[i]);
    }
    int32_t wanted = t->vocab - 256 - FR_CHAT_SPECIALS, made = 0;
    fr_merge *merges = fr_allocate((size_t)wanted * sizeof *merges + 1);
    if (!merges)
        return out_of_memory(error);
    fr_status status = fr_bpe_learn(&t->counts[0], wanted, merges, &made, t->progress, error);
    if (status == FR_OK)
        status = build(out, fr_split_pattern_text(t->pattern), merges, made, error);
    fr_deallocate(merges);
    return status;
}
