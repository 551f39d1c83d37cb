/* Exact greedy byte-pair training in time proportional to the merges applied.
 *
 * All distinct chunks lie end to end in one array of symbols. A symbol is named by its first byte's
 * position and knows its neighbours within the chunk. Each adjacent pair of symbols is an occurrence,
 * named by the position of its left symbol; the occurrences of one pair form a doubly linked list threaded
 * through the positions, and the pair keeps the sum of its chunks' counts. Merging a pair walks its list:
 * each step takes the occurrences left and right of it off their lists and puts the new ones on theirs.
 * Nothing else is touched, so a chunk of a million letters costs no more than a million short ones.
 *
 * Order within a list. Occurrences are appended in ascending position: at the start, and later because a
 * new pair contains the newest symbol, hence all its occurrences appear during one walk, which itself
 * ascends. So in a run such as "aaaa" the merges are made from the left without overlap, as the definition
 * wants.
 *
 * Which pair is next: a heap ordered by (largest count, smallest left, smallest right). Counts of existing
 * pairs only fall, and pairs that appear hold the newest symbol and enter the heap once their step is
 * over. An entry whose count has fallen meanwhile goes back in with the true one when it comes up: lazy,
 * and exact.
 */
#include "text/bpe_merges.h"
#include "text/bpe_hash.h"
#include <string.h>

typedef struct symbol {
    int32_t id;
    int32_t next, previous; /* neighbours in the chunk, -1: none */
    int32_t pair;           /* of this symbol and the next, -1: none */
    int32_t later, earlier; /* occurrences of that pair, -1: none */
    uint32_t chunk;
} symbol;

typedef struct pair {
    int64_t count;
    int32_t left, right;
    int32_t first, last; /* occurrences */
} pair;

typedef struct candidate {
    int64_t count; /* when it entered */
    int32_t pair;
} candidate;

typedef struct learner {
    symbol *symbols;
    int64_t *weights; /* by chunk */
    pair *pairs;
    int32_t *table; /* open addressing: pair + 1, 0 empty */
    candidate *heap;
    size_t symbol_count, pair_count, pair_capacity, table_slots, heap_count, heap_capacity;
} learner;

/* ---- pairs ------------------------------------------------------------------------------------------ */

static bool grow_table(learner *l)
{
    size_t slots = l->table_slots ? l->table_slots * 2 : 1 << 14;
    int32_t *table = fr_allocate(slots * sizeof *table);
    if (!table)
        return false;
    for (size_t p = 0; p < l->pair_count; p++) {
        size_t at = fr_bpe_mix(fr_bpe_pair_key(l->pairs[p].left, l->pairs[p].right)) & (slots - 1);
        while (table[at])
            at = (at + 1) & (slots - 1);
        table[at] = (int32_t)p + 1;
    }
    fr_deallocate(l->table);
    l->table = table;
    l->table_slots = slots;
    return true;
}

/* Appends the pair to the array; -1 when memory runs out. */
static int32_t new_pair(learner *l, int32_t left, int32_t right)
{
    if (l->pair_count == l->pair_capacity) {
        size_t capacity = l->pair_capacity ? l->pair_capacity * 2 : 1 << 13;
        pair *grown = capacity <= INT32_MAX ? fr_reallocate(l->pairs, capacity * sizeof *grown) : NULL;
        if (!grown)
            return -1;
        l->pairs = grown;
        l->pair_capacity = capacity;
    }
    l->pairs[l->pair_count] = (pair){.left = left, .right = right, .first = -1, .last = -1};
    return (int32_t)l->pair_count++;
}

/* Index of the pair, made if it is new; -1 when memory runs out. */
static int32_t pair_of(learner *l, int32_t left, int32_t right)
{
    if (l->pair_count * 2 >= l->table_slots && !grow_table(l))
        return -1;
    size_t mask = l->table_slots - 1;
    size_t at = fr_bpe_mix(fr_bpe_pair_key(left, right)) & mask;
    for (; l->table[at]; at = (at + 1) & mask) {
        const pair *known = &l->pairs[l->table[at] - 1];
        if (known->left == left && known->right == right)
            return l->table[at] - 1;
    }
    int32_t made = new_pair(l, left, right);
    if (made >= 0)
        l->table[at] = made + 1;
    return made;
}

/* Appends the occurrence at `at` to its pair's list. */
static bool link_occurrence(learner *l, int32_t at)
{
    symbol *s = &l->symbols[at];
    s->pair = pair_of(l, s->id, l->symbols[s->next].id);
    if (s->pair < 0)
        return false;
    pair *p = &l->pairs[s->pair];
    s->earlier = p->last;
    s->later = -1;
    if (p->last >= 0)
        l->symbols[p->last].later = at;
    else
        p->first = at;
    p->last = at;
    p->count += l->weights[s->chunk];
    return true;
}

static void unlink_occurrence(learner *l, int32_t at)
{
    symbol *s = &l->symbols[at];
    pair *p = &l->pairs[s->pair];
    if (s->earlier >= 0)
        l->symbols[s->earlier].later = s->later;
    else
        p->first = s->later;
    if (s->later >= 0)
        l->symbols[s->later].earlier = s->earlier;
    else
        p->last = s->earlier;
    p->count -= l->weights[s->chunk];
    s->pair = -1;
}

/* ---- the heap --------------------------------------------------------------------------------------- */

static bool before(const learner *l, const candidate *a, const candidate *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    const pair *x = &l->pairs[a->pair], *y = &l->pairs[b->pair];
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static bool push(learner *l, int32_t index)
{
    if (l->pairs[index].count <= 0)
        return true;
    if (l->heap_count == l->heap_capacity) {
        size_t capacity = l->heap_capacity ? l->heap_capacity * 2 : 1 << 13;
        candidate *grown = fr_reallocate(l->heap, capacity * sizeof *grown);
        if (!grown)
            return false;
        l->heap = grown;
        l->heap_capacity = capacity;
    }
    candidate entering = {.count = l->pairs[index].count, .pair = index};
    size_t at = l->heap_count++;
    for (size_t parent; at > 0 && before(l, &entering, &l->heap[parent = (at - 1) / 2]); at = parent)
        l->heap[at] = l->heap[parent];
    l->heap[at] = entering;
    return true;
}

static void sink_top(learner *l)
{
    candidate moving = l->heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < l->heap_count; at = child) {
        if (child + 1 < l->heap_count && before(l, &l->heap[child + 1], &l->heap[child]))
            child++;
        if (!before(l, &l->heap[child], &moving))
            break;
        l->heap[at] = l->heap[child];
    }
    l->heap[at] = moving;
}

/* The pair to merge next, off the heap; -1 when none is left. */
static int32_t best_pair(learner *l)
{
    while (l->heap_count) {
        candidate *top = &l->heap[0];
        int32_t index = top->pair;
        int64_t now = l->pairs[index].count;
        bool current = top->count == now;
        if (current || now <= 0)
            *top = l->heap[--l->heap_count];
        else
            top->count = now;
        if (l->heap_count)
            sink_top(l);
        if (current && now > 0)
            return index;
    }
    return -1;
}

/* ---- learning --------------------------------------------------------------------------------------- */

static fr_status reserve(learner *l, const fr_chunk_counts *counts, fr_error *error)
{
    size_t chunks = 0;
    for (size_t i = 0; i < counts->slot_count; i++) {
        bool mergeable = counts->slots[i].length > 1;
        chunks += mergeable;
        l->symbol_count += mergeable ? counts->slots[i].length : 0;
    }
    if (l->symbol_count > INT32_MAX || chunks > UINT32_MAX)
        return fr_error_set(error, FR_BAD_USAGE, "tokenizer training",
                            "feed less text, or lower max_characters",
                            "more than 2147483647 bytes of distinct chunks");
    l->symbols = fr_allocate(l->symbol_count * sizeof *l->symbols + 1);
    l->weights = fr_allocate(chunks * sizeof *l->weights + 1);
    if (!l->symbols || !l->weights)
        return fr_error_memory(error, l->symbol_count * sizeof *l->symbols, "tokenizer training");
    return FR_OK;
}

static void place_chunk(learner *l, const uint8_t *bytes, uint32_t length, uint32_t chunk, int32_t at)
{
    for (uint32_t i = 0; i < length; i++, at++)
        l->symbols[at] = (symbol){.id = bytes[i],
                                  .chunk = chunk,
                                  .pair = -1,
                                  .next = i + 1 < length ? at + 1 : -1,
                                  .previous = i > 0 ? at - 1 : -1};
}

static fr_status start(learner *l, const fr_chunk_counts *counts, fr_error *error)
{
    FR_TRY(reserve(l, counts, error));
    uint32_t chunk = 0;
    int32_t at = 0;
    for (size_t i = 0; i < counts->slot_count; i++) {
        const fr_chunk_count *slot = &counts->slots[i];
        if (slot->length <= 1)
            continue;
        l->weights[chunk] = slot->count;
        place_chunk(l, counts->bytes + slot->offset, slot->length, chunk++, at);
        at += (int32_t)slot->length;
    }
    bool fits = true;
    for (size_t i = 0; i < l->symbol_count && fits; i++)
        if (l->symbols[i].next >= 0)
            fits = link_occurrence(l, (int32_t)i);
    for (size_t p = 0; p < l->pair_count && fits; p++)
        fits = push(l, (int32_t)p);
    return fits ? FR_OK : fr_error_memory(error, l->pair_count * sizeof *l->pairs, "tokenizer training");
}

/* Replaces the pair at `at` and its right neighbour by the new symbol there. */
static bool merge_occurrence(learner *l, int32_t at, int32_t new_id)
{
    symbol *left = &l->symbols[at], *right = &l->symbols[left->next];
    int32_t after = right->next, previous = left->previous;
    unlink_occurrence(l, at);
    if (previous >= 0)
        unlink_occurrence(l, previous);
    if (after >= 0)
        unlink_occurrence(l, left->next);
    left->id = new_id;
    left->next = after;
    if (after >= 0)
        l->symbols[after].previous = at;
    return (previous < 0 || link_occurrence(l, previous)) && (after < 0 || link_occurrence(l, at));
}

static bool merge_pair(learner *l, int32_t index, int32_t new_id)
{
    size_t known = l->pair_count;
    bool fits = true;
    while (fits && l->pairs[index].first >= 0)
        fits = merge_occurrence(l, l->pairs[index].first, new_id);
    for (size_t p = known; p < l->pair_count && fits; p++)
        fits = push(l, (int32_t)p);
    return fits;
}

static fr_status learn(learner *l, int32_t wanted, fr_merge *merges, int32_t *made,
                       const fr_progress *progress, fr_error *error)
{
    for (int32_t n = 0; n < wanted; n++) {
        int32_t best = best_pair(l);
        if (best < 0)
            break;
        merges[n] = (fr_merge){
            .rank = n, .left = l->pairs[best].left, .right = l->pairs[best].right, .result = 256 + n};
        *made = n + 1;
        if (!merge_pair(l, best, 256 + n))
            return fr_error_memory(error, l->pair_count * sizeof *l->pairs, "tokenizer training");
        if (n % 64 == 0)
            fr_progress_update(progress, "tokenizer merges", n, wanted, NULL);
        if (n % 64 == 0 && fr_progress_stop(progress))
            return fr_error_set(error, FR_STOPPED, "tokenizer training", NULL,
                                "stopped after %d of %d merges", n, wanted);
    }
    fr_progress_update(progress, "tokenizer merges", wanted, wanted, NULL);
    return FR_OK;
}

fr_status fr_bpe_learn(const fr_chunk_counts *counts, int32_t wanted, fr_merge *merges, int32_t *made,
                       const fr_progress *progress, fr_error *error)
{
    learner l = {.symbols = NULL};
    *made = 0;
    fr_status status = start(&l, counts, error);
    if (status == FR_OK)
        status = learn(&l, wanted, merges, made, progress, error);
    fr_deallocate(l.symbols);
    fr_deallocate(l.weights);
    fr_deallocate(l.pairs);
    fr_deallocate(l.table);
    fr_deallocate(l.heap);
    return status;
}
