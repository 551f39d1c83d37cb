/* loader_pack.c: best-fit packing and stream rows, as plans.
 *
 * Best fit (baseline.md 4.3): before every placement the buffer is refilled in batches of 128 documents until it
 * holds at least `buffer`; the longest document that fits the rest of the row is placed whole; when none
 * fits, the shortest one is cropped to fill the row and its rest is thrown away. Ties go to the document that
 * came first. The buffer is kept sorted by (length, arrival): the longest that fits is found by bisection,
 * the first of its length by a second one, and the shortest is entry 0. Moving at most a few thousand 16-byte
 * entries per placement is cheaper than any cleverer structure.
 *
 * Arrival is a document's number in the endless stream of epochs, so a row is a handful of (number, start,
 * count) and the whole state is a handful of numbers: exact resume needs no text.
 */
#include "text/loader_pack.h"

#include "text/corpus.h"

#include <string.h>

enum { REFILL_BATCH = 128 };

/* ---- rows ---- */

void packed_row_release(packed_row *row)
{
    fr_deallocate(row->pieces);
    memset(row, 0, sizeof *row);
}

static fr_status reserve(packed_row *row, int64_t count, fr_error *error)
{
    if (count <= row->capacity)
        return FR_OK;
    int64_t capacity = count < 8 ? 8 : count * 2;
    size_t size = (size_t)capacity * sizeof *row->pieces;
    packed_piece *pieces = fr_reallocate(row->pieces, size);
    if (!pieces)
        return fr_error_memory(error, size, "a packed row");
    row->pieces = pieces;
    row->capacity = capacity;
    return FR_OK;
}

fr_status packed_row_copy(packed_row *to, const packed_row *from, fr_error *error)
{
    FR_TRY(reserve(to, from->count, error));
    if (from->count > 0)
        memcpy(to->pieces, from->pieces, (size_t)from->count * sizeof *from->pieces);
    to->count = from->count;
    to->consumed = from->consumed;
    return FR_OK;
}

fr_status packed_row_add(packed_row *row, packed_piece piece, fr_error *error)
{
    FR_TRY(reserve(row, row->count + 1, error));
    row->pieces[row->count++] = piece;
    return FR_OK;
}

/* ---- life ---- */

static fr_status allocate_entries(packer *state, fr_error *error)
{
    if (state->options.packing != FR_PACK_BEST_FIT)
        return FR_OK;
    state->capacity = state->options.buffer + REFILL_BATCH;
    size_t size = (size_t)state->capacity * sizeof *state->entries;
    state->entries = fr_allocate(size);
    return state->entries ? FR_OK : fr_error_memory(error, size, "the packing buffer");
}

fr_status packer_init(packer *state, const fr_corpus *corpus, const fr_loader_options *options, fr_error *error)
{
    memset(state, 0, sizeof *state);
    state->corpus = corpus;
    state->options = *options;
    state->documents = options->documents;
    state->tokens = corpus_token_start(corpus, options->split, options->documents);
    return allocate_entries(state, error);
}

fr_status packer_copy(packer *to, const packer *from, fr_error *error)
{
    *to = *from;
    to->entries = NULL;
    FR_TRY(allocate_entries(to, error));
    if (from->count > 0)
        memcpy(to->entries, from->entries, (size_t)from->count * sizeof *from->entries);
    return FR_OK;
}

void packer_release(packer *state)
{
    fr_deallocate(state->entries);
    memset(state, 0, sizeof *state);
}

/* ---- best fit ---- */

/* Number of entries before (length, sequence). */
static int64_t rank_of(const packer *state, int64_t length, int64_t sequence)
{
    int64_t low = 0, high = state->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const pack_entry *entry = &state->entries[middle];
        if (entry->length < length || (entry->length == length && entry->sequence < sequence))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool packer_insert(packer *state, int64_t sequence)
{
    int64_t length = fr_corpus_document_tokens(state->corpus, state->options.split, sequence % state->documents);
    int64_t at = rank_of(state, length, sequence);
    bool present = at < state->count && state->entries[at].sequence == sequence;
    if (present || state->count == state->capacity)
        return false;
    memmove(&state->entries[at + 1], &state->entries[at], (size_t)(state->count - at) * sizeof *state->entries);
    state->entries[at] = (pack_entry){sequence, length};
    state->count++;
    return true;
}

static void refill(packer *state)
{
    while (state->count < state->options.buffer) {
        for (int i = 0; i < REFILL_BATCH; i++) {
            if (state->options.once && state->next_sequence == state->documents)
                return;
            packer_insert(state, state->next_sequence++);
        }
    }
}

static pack_entry take(packer *state, int64_t at)
{
    pack_entry entry = state->entries[at];
    state->count--;
    memmove(&state->entries[at], &state->entries[at + 1], (size_t)(state->count - at) * sizeof *state->entries);
    return entry;
}

static fr_status best_fit_row(packer *state, packed_row *row, fr_error *error)
{
    int64_t room = state->options.context + 1;
    while (room > 0) {
        refill(state);
        if (state->count == 0)
            break; /* `once`: the last row stays short */
        int64_t fitting = rank_of(state, room + 1, 0);
        int64_t at = fitting == 0 ? 0 : rank_of(state, state->entries[fitting - 1].length, 0);
        pack_entry entry = take(state, at);
        int64_t count = entry.length < room ? entry.length : room;
        FR_TRY(packed_row_add(row, (packed_piece){entry.sequence, 0, count}, error));
        row->consumed += entry.length;
        room -= count;
    }
    return FR_OK;
}

/* ---- stream ---- */

/* Row r holds ids rT .. rT + T of the documents joined; the last id of a row is the first of the next. */
static fr_status stream_row(packer *state, packed_row *row, fr_error *error)
{
    int64_t context = state->options.context, position = state->next_row * context, room = context + 1;
    int64_t limit = state->options.once ? state->tokens : INT64_MAX;
    if (state->options.once && position >= state->tokens - 1)
        return FR_OK; /* the last id is only ever a target, and it has been one */
    while (room > 0 && position < limit) {
        int64_t epoch = position / state->tokens, local = position % state->tokens;
        int64_t document = corpus_document_at(state->corpus, state->options.split, local);
        int64_t start = local - corpus_token_start(state->corpus, state->options.split, document);
        int64_t rest = fr_corpus_document_tokens(state->corpus, state->options.split, document) - start;
        int64_t count = rest < room ? rest : room;
        FR_TRY(packed_row_add(row, (packed_piece){epoch * state->documents + document, start, count}, error));
        position += count;
        room -= count;
    }
    row->consumed = position == limit ? limit - state->next_row * context : context;
    state->next_row++;
    return FR_OK;
}

fr_status packer_next(packer *state, packed_row *row, fr_error *error)
{
    row->count = 0;
    row->consumed = 0;
    return state->options.packing == FR_PACK_BEST_FIT ? best_fit_row(state, row, error) : stream_row(state, row, error);
}
