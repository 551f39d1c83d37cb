/* Encoding: text -> chunks -> ids.
 *
 * Most chunks of ordinary text are tokens themselves; whether merging would really end at that token is
 * decided once per token when the tokenizer is made (FR_TOKEN_DIRECT), so one look-up answers. The rest is
 * merged: always the pair of the lowest rank, leftmost among equals. A short chunk keeps the ranks of its
 * pairs in an array and scans it. A long one (a million equal letters is legal) keeps them in a heap over
 * a linked list, so it takes n log n. Both orders are the same order, and the tests hold them against each
 * other.
 */
#include "text/bpe_hash.h"
#include "text/tokenizer.h"
#include <string.h>

static const int32_t no_rank = INT32_MAX;

/* Rank and result of merging two neighbours; no_rank if they do not merge. */
static inline int32_t merge_rank(const fr_tokenizer *t, int32_t left, int32_t right, int32_t *result)
{
    uint64_t key = fr_bpe_pair_key(left, right);
    size_t mask = t->merge_slots - 1;
    for (size_t i = fr_bpe_mix(key) & mask;; i = (i + 1) & mask) {
        const fr_merge_slot *slot = &t->merge_table[i];
        if (slot->key == key) {
            *result = slot->result;
            return slot->rank;
        }
        if (slot->key == UINT64_MAX)
            return no_rank;
    }
}

/* ---- what merging starts from ---------------------------------------------------------------------- */

/* A byte and the continuation bytes behind it, at most four in all: characters, and for text that is no UTF-8
 * what llama2.c takes for one. */
static size_t character_length(const uint8_t *text, size_t count)
{
    size_t length = 1;
    while (length < count && length < 4 && (text[length] & 0xC0) == 0x80)
        length++;
    return length;
}

/* SentencePiece: a space, then a symbol per character that is a token, else a symbol per byte. */
static size_t character_symbols(const fr_tokenizer *t, const uint8_t *text, size_t count, int32_t *symbols)
{
    size_t n = 0;
    if (count)
        symbols[n++] = fr_tokenizer_find(t, (const uint8_t *)" ", 1);
    for (size_t at = 0, length; at < count; at += length) {
        length = character_length(text + at, count - at);
        int32_t whole = fr_tokenizer_find(t, text + at, length);
        if (whole >= 0)
            symbols[n++] = whole;
        for (size_t i = 0; whole < 0 && i < length; i++)
            symbols[n++] = t->byte_ids[text[at + i]];
    }
    return n;
}

static size_t first_symbols(const fr_tokenizer *t, const uint8_t *bytes, size_t count, int32_t *symbols)
{
    if (t->sentencepiece)
        return character_symbols(t, bytes, count, symbols);
    for (size_t i = 0; i < count; i++)
        symbols[i] = t->byte_ids[bytes[i]];
    return count;
}

/* ---- short chunks ----------------------------------------------------------------------------------- */

static int64_t merge_short(const fr_tokenizer *t, int32_t *symbols, size_t count)
{
    int32_t ranks[FR_BPE_SHORT], results[FR_BPE_SHORT] = {0}; /* of the pair (i, i+1) */
    for (size_t i = 0; i + 1 < count; i++)
        ranks[i] = merge_rank(t, symbols[i], symbols[i + 1], &results[i]);
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (ranks[best] == no_rank)
            break;
        symbols[best] = results[best];
        count--;
        memmove(symbols + best + 1, symbols + best + 2, (count - best - 1) * sizeof *symbols);
        memmove(ranks + best, ranks + best + 1, (count - best - 1) * sizeof *ranks);
        memmove(results + best, results + best + 1, (count - best - 1) * sizeof *results);
        if (best + 1 < count)
            ranks[best] = merge_rank(t, symbols[best], symbols[best + 1], &results[best]);
        if (best > 0)
            ranks[best - 1] = merge_rank(t, symbols[best - 1], symbols[best], &results[best - 1]);
    }
    return (int64_t)count;
}

/* ---- long chunks ----------------------------------------------------------------------------------- */

/* A list of symbols in arrays: entry i starts at byte i, next and previous name its neighbours (-1: none).
 * A heap entry is rank << 32 | i; it is stale when rank is no longer that of the pair starting at i. */
typedef struct long_chunk {
    uint64_t *heap;
    int32_t *symbols, *next, *previous, *ranks, *results;
    size_t heap_count;
} long_chunk;

static bool long_chunk_reserve(fr_bpe_scratch *scratch, size_t count, long_chunk *chunk)
{
    size_t each = 2 * sizeof(uint64_t) + 5 * sizeof(int32_t);
    if (count > INT32_MAX)
        return false;
    if (scratch->capacity < count) {
        fr_deallocate(scratch->memory);
        scratch->capacity = 0;
        scratch->memory = fr_allocate(count * each);
        if (!scratch->memory)
            return false;
        scratch->capacity = count;
    }
    chunk->heap = scratch->memory; /* one entry per pair, plus two for each one taken out: below 2 count */
    chunk->symbols = (int32_t *)(chunk->heap + 2 * scratch->capacity);
    chunk->next = chunk->symbols + scratch->capacity;
    chunk->previous = chunk->next + scratch->capacity;
    chunk->ranks = chunk->previous + scratch->capacity;
    chunk->results = chunk->ranks + scratch->capacity;
    chunk->heap_count = 0;
    return true;
}

static void sift_down(uint64_t *heap, size_t count, size_t at)
{
    uint64_t moving = heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= moving)
            break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

static void push(long_chunk *chunk, uint64_t entry)
{
    size_t at = chunk->heap_count++;
    for (size_t parent; at > 0 && chunk->heap[parent = (at - 1) / 2] > entry; at = parent)
        chunk->heap[at] = chunk->heap[parent];
    chunk->heap[at] = entry;
}

static uint64_t pop(long_chunk *chunk)
{
    uint64_t top = chunk->heap[0];
    chunk->heap[0] = chunk->heap[--chunk->heap_count];
    if (chunk->heap_count)
        sift_down(chunk->heap, chunk->heap_count, 0);
    return top;
}

static inline uint64_t entry_of(const long_chunk *chunk, int32_t at)
{
    return (uint64_t)(uint32_t)chunk->ranks[at] << 32 | (uint32_t)at;
}

/* Recomputes the rank of the pair that starts at `at`. */
static void rank_pair(const fr_tokenizer *t, long_chunk *chunk, int32_t at)
{
    int32_t next = chunk->next[at];
    chunk->ranks[at] = no_rank;
    if (next >= 0)
        chunk->ranks[at] = merge_rank(t, chunk->symbols[at], chunk->symbols[next], &chunk->results[at]);
}

static void long_chunk_start(const fr_tokenizer *t, long_chunk *chunk, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        chunk->next[i] = i + 1 < count ? i + 1 : -1;
        chunk->previous[i] = i - 1;
    }
    for (int32_t i = 0; i < count; i++) {
        rank_pair(t, chunk, i);
        if (chunk->ranks[i] != no_rank)
            chunk->heap[chunk->heap_count++] = entry_of(chunk, i);
    }
    for (size_t i = chunk->heap_count / 2; i-- > 0;)
        sift_down(chunk->heap, chunk->heap_count, i);
}

static void long_chunk_merge(const fr_tokenizer *t, long_chunk *chunk, int32_t at)
{
    int32_t gone = chunk->next[at], after = chunk->next[gone], before = chunk->previous[at];
    chunk->symbols[at] = chunk->results[at];
    chunk->next[at] = after;
    chunk->ranks[gone] = no_rank;
    if (after >= 0)
        chunk->previous[after] = at;
    rank_pair(t, chunk, at);
    if (chunk->ranks[at] != no_rank)
        push(chunk, entry_of(chunk, at));
    if (before < 0)
        return;
    rank_pair(t, chunk, before);
    if (chunk->ranks[before] != no_rank)
        push(chunk, entry_of(chunk, before));
}

static int64_t merge_long(const fr_tokenizer *t, long_chunk *chunk, size_t count)
{
    long_chunk_start(t, chunk, (int32_t)count);
    while (chunk->heap_count) {
        uint64_t top = pop(chunk);
        int32_t at = (int32_t)(uint32_t)top;
        if (top == entry_of(chunk, at))
            long_chunk_merge(t, chunk, at);
    }
    int64_t ids = 0;
    for (int32_t at = 0; at >= 0;) {
        int32_t next = chunk->next[at];
        chunk->symbols[ids++] = chunk->symbols[at]; /* never ahead of `at` */
        at = next;
    }
    return ids;
}

int64_t fr_bpe_merge_chunk(const fr_tokenizer *t, fr_bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                           const int32_t **ids)
{
    long_chunk chunk;
    size_t most = count + (size_t)fr_tokenizer_prefix(t);
    int32_t *symbols = scratch->small;
    if (most > FR_BPE_SHORT) {
        if (!long_chunk_reserve(scratch, most, &chunk))
            return -1;
        symbols = chunk.symbols;
    }
    *ids = symbols;
    size_t start = first_symbols(t, bytes, count, symbols);
    return most > FR_BPE_SHORT ? merge_long(t, &chunk, start) : merge_short(t, symbols, start);
}

void fr_bpe_scratch_release(fr_bpe_scratch *scratch)
{
    fr_deallocate(scratch->memory);
    scratch->memory = NULL;
    scratch->capacity = 0;
}

/* ---- text ------------------------------------------------------------------------------------------ */

/* Ids of one chunk, by look-up if the chunk is a token, else by merging. */
static int64_t encode_chunk(const fr_tokenizer *t, fr_bpe_scratch *scratch, const uint8_t *bytes,
                            size_t count, const int32_t **ids)
{
    if (count <= t->longest_piece && !t->sentencepiece) {
        int32_t id = fr_tokenizer_find(t, bytes, count);
        if (id >= 0 && t->tokens[id].flags & FR_TOKEN_DIRECT) {
            scratch->small[0] = id;
            *ids = scratch->small;
            return 1;
        }
    }
    return fr_bpe_merge_chunk(t, scratch, bytes, count, ids);
}

/* The next chunk that starts at or behind *end. */
static fr_split_step next_chunk(const fr_tokenizer *t, fr_splitter *splitter, size_t *start, size_t *end)
{
    if (!t->sentencepiece)
        return fr_splitter_next(splitter, start, end);
    *start = *end;
    *end = splitter->bytes;
    return *start < *end ? FR_SPLIT_CHUNK : FR_SPLIT_END;
}

int64_t fr_tokenizer_encode(const fr_tokenizer *t, const char *text, size_t bytes, int32_t *ids,
                            int64_t capacity)
{
    fr_splitter splitter;
    fr_bpe_scratch scratch = {.memory = NULL};
    size_t start = 0, end = 0;
    int64_t total = 0, count = 0;
    fr_split_step step =
        fr_splitter_init(&splitter, t->pattern, text, bytes) ? FR_SPLIT_CHUNK : FR_SPLIT_FAILED;
    while (step == FR_SPLIT_CHUNK && (step = next_chunk(t, &splitter, &start, &end)) == FR_SPLIT_CHUNK) {
        const int32_t *chunk = NULL;
        count = encode_chunk(t, &scratch, (const uint8_t *)text + start, end - start, &chunk);
        if (count < 0)
            step = FR_SPLIT_FAILED;
        for (int64_t i = 0; i < count; i++, total++)
            if (total < capacity)
                ids[total] = chunk[i];
    }
    fr_splitter_release(&splitter);
    fr_bpe_scratch_release(&scratch);
    return step == FR_SPLIT_END ? total : -1;
}

fr_status fr_tokenizer_encode_error(const fr_tokenizer *t, size_t bytes, const char *what, fr_error *error)
{
    if (!fr_split_pattern_outside(t->pattern))
        return fr_error_memory(error, bytes, what);
    return fr_error_set(error, FR_BAD_DATA, what,
                        "patterns that repeat repetitions, as (a+)+, need endless work for some texts",
                        "the tokenizer's split pattern needs more work or memory than PCRE2 allows");
}
