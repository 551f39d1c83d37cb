/* arena.c: many allocations, one release.
 *
 * An arena is a chain of blocks, newest first; an allocation bumps the newest block's `used`. A mark is a
 * position in that chain, and rewinding frees the blocks made since and lowers `used`.
 *
 *     arena.block -> [ used......|free ] -> [ used.........|lost ] -> NULL
 *
 * Memory is zeroed. Fresh blocks already are, so only the part that was handed out before a rewind or clear
 * (below `dirty`) is zeroed again; a large fresh allocation costs no page touches until it is used.
 * `arena.total` counts the bytes taken from the heap.
 */
#include "frontier/base.h"

#include <string.h>

typedef struct fr_arena_block {
    struct fr_arena_block *older;
    size_t size, used, dirty;
    char padding[32]; /* the data behind this struct starts at a multiple of 64 */
} fr_arena_block;

_Static_assert(sizeof(fr_arena_block) % 64 == 0, "arena data must start 64-byte aligned");

enum { DEFAULT_BLOCK_BYTES = 64 * 1024 };

static char *block_data(fr_arena_block *block)
{
    return (char *)(block + 1);
}

void fr_arena_init(fr_arena *arena, size_t block_bytes)
{
    *arena = (fr_arena){.block_bytes = block_bytes ? block_bytes : DEFAULT_BLOCK_BYTES};
}

static size_t aligned_start(size_t used, size_t bytes)
{
    size_t alignment = bytes >= 64 ? 64 : 16;
    return (used + alignment - 1) & ~(alignment - 1);
}

static bool block_fits(const fr_arena_block *block, size_t bytes)
{
    if (!block)
        return false;
    size_t start = aligned_start(block->used, bytes);
    return start <= block->size && bytes <= block->size - start;
}

static fr_arena_block *add_block(fr_arena *arena, size_t bytes)
{
    size_t size = bytes > arena->block_bytes ? bytes : arena->block_bytes;
    if (size > SIZE_MAX / 2)
        return NULL;
    fr_arena_block *block = fr_allocate(sizeof *block + size);
    if (!block)
        return NULL;
    block->size = size;
    block->older = arena->block;
    arena->block = block;
    arena->total += size;
    return block;
}

static void drop_newest(fr_arena *arena)
{
    fr_arena_block *block = arena->block;
    arena->block = block->older;
    arena->total -= block->size;
    fr_deallocate(block);
}

void *fr_arena_alloc(fr_arena *arena, size_t bytes)
{
    fr_arena_block *block = arena->block;
    if (!block_fits(block, bytes) && !(block = add_block(arena, bytes)))
        return NULL;
    size_t start = aligned_start(block->used, bytes), end = start + bytes;
    char *memory = block_data(block) + start;
    if (start < block->dirty)
        memset(memory, 0, (end < block->dirty ? end : block->dirty) - start);
    block->used = end;
    if (block->dirty < end)
        block->dirty = end;
    return memory;
}

char *fr_arena_strdup(fr_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = fr_arena_alloc(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

char *fr_arena_printf(fr_arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : fr_arena_alloc(arena, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}

fr_arena_mark fr_arena_save(fr_arena *arena)
{
    return (fr_arena_mark){arena->block, arena->block ? arena->block->used : 0};
}

void fr_arena_rewind(fr_arena *arena, fr_arena_mark mark)
{
    while (arena->block && arena->block != mark.block)
        drop_newest(arena);
    if (arena->block)
        arena->block->used = mark.used;
}

/* Keeps the largest block, so that a loop of fill and clear settles on one block that fits everything. */
void fr_arena_clear(fr_arena *arena)
{
    fr_arena_block *largest = arena->block;
    for (fr_arena_block *b = arena->block; b; b = b->older)
        if (b->size > largest->size)
            largest = b;
    fr_arena_block *block = arena->block;
    while (block) {
        fr_arena_block *older = block->older;
        if (block != largest)
            fr_deallocate(block);
        block = older;
    }
    arena->block = largest;
    arena->total = largest ? largest->size : 0;
    if (largest) {
        largest->older = NULL;
        largest->used = 0;
    }
}

void fr_arena_release(fr_arena *arena)
{
    while (arena->block)
        drop_newest(arena);
}
