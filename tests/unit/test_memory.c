/* Memory: alignment, zeroing, arenas against a simple model, buffers with limits, each allocation failing in
 * turn. */
#include "frontier/base.h"
#include "test.h"

static bool all_zero(const char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i])
            return false;
    return true;
}

TEST(allocate_is_zeroed_and_aligned)
{
    for (size_t bytes = 0; bytes < 400000; bytes = bytes * 3 / 2 + 1) {
        char *memory = fr_allocate(bytes);
        CHECK(memory && (uintptr_t)memory % 64 == 0);
        CHECK(all_zero(memory, bytes));
        memset(memory, 1, bytes);
        fr_deallocate(memory);
    }
    fr_deallocate(NULL);
}

TEST(absurd_sizes_are_refused)
{
    CHECK(!fr_allocate(SIZE_MAX));
    CHECK(!fr_allocate((size_t)PTRDIFF_MAX));
    fr_arena arena;
    fr_arena_init(&arena, 100);
    CHECK(!fr_arena_alloc(&arena, SIZE_MAX));
    CHECK(!fr_arena_alloc(&arena, SIZE_MAX - 63));
    CHECK(fr_arena_alloc(&arena, 10));
    fr_arena_release(&arena);
}

TEST(reallocate_keeps_and_zeroes)
{
    char *memory = NULL;
    size_t sizes[] = {10, 100, 50, 200000, 300000, 20};
    size_t before = 0;
    for (int i = 0; i < 6; i++) {
        memory = fr_reallocate(memory, sizes[i]);
        CHECK(memory && (uintptr_t)memory % 64 == 0);
        for (size_t j = 0; j < sizes[i]; j++) {
            if (memory[j] != (j < before ? 7 : 0)) {
                CHECK(!"kept part or zeroed part differs");
                break;
            }
        }
        memset(memory, 7, sizes[i]);
        before = sizes[i];
    }
    fr_deallocate(memory);
}

TEST(failed_reallocate_keeps_the_old_block)
{
    char *memory = fr_allocate(8);
    memcpy(memory, "abcdefg", 8);
    fr_allocate_fail_after(0);
    CHECK(!fr_reallocate(memory, 1000));
    fr_allocate_fail_after(-1);
    CHECK_STR(memory, "abcdefg");
    fr_deallocate(memory);
}

TEST(fail_after_counts)
{
    fr_allocate_fail_after(2);
    void *a = fr_allocate(1), *b = fr_allocate(1), *c = fr_allocate(1), *d = fr_allocate(1);
    fr_allocate_fail_after(-1);
    CHECK(a && b && !c && !d);
    fr_deallocate(a);
    fr_deallocate(b);
}

/* Random allocations, saves, rewinds and clears; every live block must keep its own bytes. */
TEST(arena_against_a_model)
{
    enum { MOST = 256 };
    struct {
        char *at;
        size_t bytes;
        char fill;
    } live[MOST];
    fr_arena_mark marks[8];
    int counts[8], depth = 0, count = 0;
    fr_rng rng = {7, 0, 0};
    fr_arena arena;
    fr_arena_init(&arena, 1000);
    for (int round = 0; round < 20000; round++) {
        uint64_t choice = fr_rng_below(&rng, 100);
        if (choice < 70 && count < MOST) {
            size_t bytes = fr_rng_below(&rng, choice < 5 ? 5000 : 200);
            char *at = fr_arena_alloc(&arena, bytes);
            CHECK(at && (uintptr_t)at % (bytes >= 64 ? 64 : 16) == 0);
            CHECK(all_zero(at, bytes));
            memset(at, (char)(round | 1), bytes);
            live[count].at = at;
            live[count].bytes = bytes;
            live[count++].fill = (char)(round | 1);
        } else if (choice < 85 && depth < 8) {
            marks[depth] = fr_arena_save(&arena);
            counts[depth++] = count;
        } else if (choice < 98 && depth > 0) {
            depth--;
            fr_arena_rewind(&arena, marks[depth]);
            count = counts[depth];
        } else if (choice >= 98) {
            fr_arena_clear(&arena);
            count = depth = 0;
        }
        for (int i = 0; i < count; i++)
            for (size_t j = 0; j < live[i].bytes; j += 37)
                if (live[i].at[j] != live[i].fill) {
                    CHECK(!"a block was overwritten");
                    round = 20000;
                    break;
                }
    }
    fr_arena_release(&arena);
    CHECK_INT(arena.total, 0);
    CHECK(!arena.block);
}

TEST(arena_clear_keeps_the_largest_block)
{
    fr_arena arena;
    fr_arena_init(&arena, 64);
    for (int i = 0; i < 10; i++)
        fr_arena_alloc(&arena, 100);
    fr_arena_alloc(&arena, 5000);
    fr_arena_alloc(&arena, 100);
    fr_arena_clear(&arena);
    size_t total = arena.total;
    CHECK(total >= 5000 && total < 6000);
    CHECK(fr_arena_alloc(&arena, 5000));
    CHECK_INT(arena.total, total);
    fr_arena_release(&arena);
    fr_arena_release(&arena); /* twice is harmless */
}

TEST(arena_texts)
{
    fr_arena arena;
    fr_arena_init(&arena, 0);
    CHECK_STR(fr_arena_strdup(&arena, "hello"), "hello");
    CHECK_STR(fr_arena_printf(&arena, "%s-%d", "x", 42), "x-42");
    CHECK_STR(fr_arena_printf(&arena, "%s", ""), "");
    fr_allocate_fail_after(0);
    char *big = fr_arena_printf(&arena, "%0100000d", 1);
    fr_allocate_fail_after(-1);
    CHECK(!big);
    fr_arena_release(&arena);
}

TEST(buffer_grows_and_stays_terminated)
{
    fr_buffer buffer;
    fr_buffer_init(&buffer, 0);
    CHECK_STR(buffer.data, "");
    for (int i = 0; i < 10000; i++) {
        fr_buffer_printf(&buffer, "%d,", i % 10);
        CHECK(buffer.data[buffer.length] == '\0');
    }
    CHECK_INT(buffer.length, 20000);
    CHECK(!buffer.failed && strncmp(buffer.data, "0,1,2,3,4,5,6,7,8,9,0,", 22) == 0);
    fr_buffer_append(&buffer, "", 0);
    fr_buffer_clear(&buffer);
    CHECK_STR(buffer.data, "");
    fr_buffer_append(&buffer, "a\0b", 3);
    CHECK_INT(buffer.length, 3);
    fr_buffer_release(&buffer);
    CHECK_STR(buffer.data, "");
}

TEST(buffer_limit_and_failure_stick)
{
    fr_buffer buffer;
    fr_buffer_init(&buffer, 10);
    fr_buffer_append(&buffer, "0123456789", 10);
    CHECK(!buffer.failed);
    fr_buffer_append(&buffer, "x", 1);
    CHECK(buffer.failed);
    CHECK_STR(buffer.data, "0123456789");
    fr_buffer_clear(&buffer);
    fr_buffer_printf(&buffer, "%s", "01234567890");
    CHECK(buffer.failed);
    fr_buffer_printf(&buffer, "x");
    CHECK_INT(buffer.length, 0);
    fr_buffer_clear(&buffer);
    fr_buffer_append(&buffer, "ok", 2);
    CHECK(!buffer.failed);
    fr_buffer_release(&buffer);
    fr_buffer_append(&buffer, "0", SIZE_MAX);
    CHECK(buffer.failed);
    fr_buffer_release(&buffer);
}

TEST(buffer_failed_allocation)
{
    fr_buffer buffer;
    fr_buffer_init(&buffer, 0);
    fr_allocate_fail_after(0);
    fr_buffer_append(&buffer, "x", 1);
    fr_allocate_fail_after(-1);
    CHECK(buffer.failed);
    CHECK_STR(buffer.data, "");
    fr_buffer_release(&buffer);
}

TEST(progress_calls_and_absent_callbacks)
{
    fr_progress nothing = {0};
    fr_progress_update(NULL, "x", 1, 2, NULL);
    fr_progress_update(&nothing, "x", 1, 2, NULL);
    fr_progress_message(&nothing, "%d", 1);
    CHECK(!fr_progress_stop(NULL));
    CHECK(!fr_progress_stop(&nothing));
}

static void record_message(void *context, const char *text)
{
    snprintf(context, 64, "%s", text);
}

static bool always(void *context)
{
    (void)context;
    return true;
}

TEST(progress_passes_context)
{
    char text[64] = "";
    fr_progress progress = {.message = record_message, .stop = always, .context = text};
    fr_progress_message(&progress, "%s %d", "step", 3);
    CHECK_STR(text, "step 3");
    CHECK(fr_progress_stop(&progress));
}

TEST_MAIN(memory)
