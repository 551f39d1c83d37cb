/* Where blocks of known size and lifetime go in one arena.
 *
 * Finding the smallest arena is a packing problem without a fast exact answer. Placing the largest block
 * first, each into the tightest gap among the blocks that live at the same time as it, comes within a few
 * per cent of the lower bound (the most bytes alive at one step) on the graphs of language models, whose
 * large blocks have nested lifetimes: what the forward pass saves last, the backward pass needs first.
 * Ties fall to the earlier block, so the layout is the same on every machine.
 */
#include "graph/plan_internal.h"

#include <stdlib.h>

enum { ALIGN = 64 };

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Larger first; then longer-lived; then earlier. */
static bool goes_before(const fr_block *blocks, int a, int b)
{
    if (blocks[a].bytes != blocks[b].bytes)
        return blocks[a].bytes > blocks[b].bytes;
    int life_a = blocks[a].last - blocks[a].first, life_b = blocks[b].last - blocks[b].first;
    return life_a != life_b ? life_a > life_b : a < b;
}

static void sort_by_size(const fr_block *blocks, int count, int *order)
{
    for (int i = 0; i < count; i++) {
        int j = i;
        for (; j > 0 && goes_before(blocks, i, order[j - 1]); j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
}

/* The tightest gap between placed blocks alive together with `block`, or the end of the last of them.
 * `placed` is sorted by offset. */
static size_t find_gap(const fr_block *blocks, const int *placed, int count, const fr_block *block)
{
    size_t end = 0, best = 0, best_room = SIZE_MAX, bytes = round_up(block->bytes);
    for (int i = 0; i < count; i++) {
        const fr_block *other = &blocks[placed[i]];
        if (other->last < block->first || block->last < other->first)
            continue;
        if (other->offset > end && other->offset - end >= bytes && other->offset - end < best_room) {
            best_room = other->offset - end;
            best = end;
        }
        size_t other_end = other->offset + round_up(other->bytes);
        end = other_end > end ? other_end : end;
    }
    return best_room == SIZE_MAX ? end : best;
}

/* The first `count` entries of `order` have been placed and are sorted by offset; sorts in the next. */
static void insert_by_offset(const fr_block *blocks, int *order, int count)
{
    int item = order[count], j = count;
    for (; j > 0 && blocks[order[j - 1]].offset > blocks[item].offset; j--)
        order[j] = order[j - 1];
    order[j] = item;
}

size_t fr_layout(fr_block *blocks, int count, int *order)
{
    size_t total = 0;
    sort_by_size(blocks, count, order);
    for (int i = 0; i < count; i++) {
        fr_block *block = &blocks[order[i]];
        block->offset = find_gap(blocks, order, i, block);
        size_t end = block->offset + round_up(block->bytes);
        total = end > total ? end : total;
        insert_by_offset(blocks, order, i);
    }
    return total;
}
