/* Files: what is read back, what goes wrong and how it is said, and that a failed write leaves the old file
 * whole. */
#include "base/files.h"
#include "frontier/base.h"
#include "scratch.h"
#include "test.h"

#include <fcntl.h>

static fr_error error;

static bool holds(const char *path, const char *want, size_t want_bytes)
{
    fr_arena arena;
    char *text;
    size_t bytes;
    fr_arena_init(&arena, 0);
    bool same = fr_file_read(&arena, path, &text, &bytes, &error) == FR_OK && bytes == want_bytes &&
                memcmp(text, want, bytes) == 0 && text[bytes] == '\0';
    fr_arena_release(&arena);
    return same;
}

TEST(write_then_read)
{
    const char *path = scratch("a.bin");
    CHECK_OK(fr_file_write(path, "a\0b\n", 4, &error));
    CHECK(holds(path, "a\0b\n", 4));
    CHECK_OK(fr_file_write(path, "", 0, &error));
    CHECK(holds(path, "", 0));
    size_t bytes = 3000000;
    char *large = calloc(1, bytes);
    for (size_t i = 0; i < bytes; i++)
        large[i] = (char)(i * 31 >> 3);
    CHECK_OK(fr_file_write(path, large, bytes, &error));
    CHECK(holds(path, large, bytes));
    free(large);
}

TEST(missing_files_and_folders_are_named)
{
    fr_arena arena;
    char *text;
    size_t bytes;
    fr_mapping mapping;
    fr_arena_init(&arena, 0);
    CHECK_INT(fr_file_read(&arena, scratch("none"), &text, &bytes, &error), FR_BAD_DATA);
    CHECK(strstr(error.where, "/none") && strstr(error.what, "no such file"));
    CHECK_OK(fr_folder_make(scratch("folder"), &error));
    CHECK_INT(fr_file_read(&arena, scratch("folder"), &text, &bytes, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "is a folder"));
    CHECK_INT(fr_mapping_init(&mapping, scratch("folder"), &error), FR_BAD_DATA);
    CHECK_INT(fr_mapping_init(&mapping, scratch("none"), &error), FR_BAD_DATA);
    fr_mapping_release(&mapping);
    CHECK_INT(fr_file_write(scratch("folder"), "x", 1, &error), FR_BAD_DATA);
    CHECK_INT(fr_file_write(scratch("none/deep"), "x", 1, &error), FR_BAD_ENVIRONMENT);
    char hex[65];
    CHECK_INT(fr_sha256_file(scratch("none"), hex, &error), FR_BAD_DATA);
    fr_arena_release(&arena);
}

TEST(system_files_without_size_are_read)
{
    fr_arena arena;
    char *text = NULL;
    size_t bytes = 0;
    fr_arena_init(&arena, 0);
    CHECK_OK(fr_file_read(&arena, "/proc/self/status", &text, &bytes, &error));
    CHECK(bytes > 100 && text && strstr(text, "VmRSS"));
    fr_arena_release(&arena);
}

TEST(mapping)
{
    fr_mapping mapping;
    CHECK_OK(fr_file_write(scratch("m"), "mapped", 6, &error));
    CHECK_OK(fr_mapping_init(&mapping, scratch("m"), &error));
    CHECK(mapping.bytes == 6 && memcmp(mapping.data, "mapped", 6) == 0);
    fr_mapping_release(&mapping);
    CHECK_OK(fr_file_write(scratch("m"), "", 0, &error));
    CHECK_OK(fr_mapping_init(&mapping, scratch("m"), &error));
    CHECK(mapping.bytes == 0 && mapping.data);
    fr_mapping_release(&mapping);
}

/* The disk fills up after n bytes, for every n: the target keeps its old content and no temporary file stays.
 */
TEST(full_disk_leaves_the_old_file)
{
    CHECK_OK(fr_folder_make(scratch("full"), &error));
    char path[600];
    snprintf(path, sizeof path, "%s", scratch("full/target"));
    CHECK_OK(fr_file_write(path, "old", 3, &error));
    for (int n = 0; n < 20; n++) {
        fr_file_writer writer;
        CHECK_OK(fr_file_writer_begin(&writer, path, &error));
        fr_file_fail_after(n);
        for (int i = 0; i < 5; i++)
            fr_file_writer_append(&writer, "1234", 4);
        fr_file_fail_after(-1);
        CHECK_INT(fr_file_writer_commit(&writer, &error), FR_BAD_ENVIRONMENT);
        CHECK(strstr(error.what, "disk is full") && strstr(error.where, "target"));
        fr_file_writer_abort(&writer);
        CHECK(holds(path, "old", 3));
        CHECK_INT(scratch_count(scratch("full")), 1);
    }
    fr_file_fail_after(20);
    CHECK_OK(fr_file_write(path, "12345678901234567890", 20, &error));
    fr_file_fail_after(-1);
    CHECK(holds(path, "12345678901234567890", 20));
}

TEST(abort_leaves_nothing)
{
    fr_file_writer writer;
    CHECK_OK(fr_folder_make(scratch("abort"), &error));
    CHECK_OK(fr_file_writer_begin(&writer, scratch("abort/x"), &error));
    fr_file_writer_append(&writer, "1234", 4);
    CHECK(!fr_path_exists(scratch("abort/x")));
    fr_file_writer_abort(&writer);
    fr_file_writer_abort(&writer);
    CHECK_INT(scratch_count(scratch("abort")), 0);
    CHECK_INT(fr_file_writer_commit(&writer, &error), FR_BUG);
}

TEST(stray_temporary_files_are_no_obstacle)
{
    char stray[600];
    CHECK_OK(fr_folder_make(scratch("stray"), &error));
    snprintf(stray, sizeof stray, "%s.tmp-%ld-0", scratch("stray/x"), (long)getpid());
    CHECK_OK(fr_file_write(stray, "stray", 5, &error));
    CHECK_OK(fr_file_write(scratch("stray/x"), "new", 3, &error));
    CHECK(holds(scratch("stray/x"), "new", 3));
    CHECK(holds(stray, "stray", 5));
}

TEST(strays_of_killed_writers_are_removed_and_nothing_else)
{
    static const char *const names[] = {"a.tmp-12-0", "b.next.tmp-9-123", "c", "c.tmp", "d.tmp-x-0", "e.tmp-1-", ".tmp-1-2"};
    fr_arena arena;
    char path[1024], **left;
    size_t count;
    fr_arena_init(&arena, 1024);
    const char *folder = scratch("strays");
    CHECK_OK(fr_folder_make(folder, &error));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_OK(fr_file_write(fr_path_join(path, sizeof path, folder, names[i]), "x", 1, &error));
    CHECK_OK(fr_file_remove_strays(folder, &error));
    CHECK_OK(fr_folder_list(&arena, folder, &left, &count, &error));
    CHECK_INT(count, 5);
    CHECK_STR(left[0], ".tmp-1-2");
    CHECK_STR(left[4], "e.tmp-1-");
    fr_arena_release(&arena);
}

TEST(a_pipe_or_device_is_never_replaced)
{
    struct stat info;
    CHECK(mkfifo(scratch("device"), 0600) == 0);
    CHECK_INT(fr_file_write(scratch("device"), "x", 1, &error), FR_BAD_DATA);
    CHECK(stat(scratch("device"), &info) == 0 && S_ISFIFO(info.st_mode));
}

TEST(reading_a_pipe_or_device_does_not_wait)
{
    char *text;
    size_t bytes;
    fr_arena arena;
    fr_arena_init(&arena, 0);
    CHECK(mkfifo(scratch("pipe to read"), 0600) == 0);
    CHECK_INT(fr_file_read(&arena, scratch("pipe to read"), &text, &bytes, &error), FR_BAD_DATA);
    CHECK_INT(fr_file_read(&arena, "/dev/zero", &text, &bytes, &error), FR_BAD_DATA);
    fr_arena_release(&arena);
}

TEST(mapping_a_pipe_does_not_wait)
{
    fr_mapping map;
    CHECK(mkfifo(scratch("pipe"), 0600) == 0);
    CHECK_INT(fr_mapping_init(&map, scratch("pipe"), &error), FR_BAD_DATA);
}

TEST(too_long_paths_are_refused)
{
    char longest[5000];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    fr_file_writer writer;
    CHECK_INT(fr_file_writer_begin(&writer, longest, &error), FR_BAD_DATA);
    CHECK_INT(fr_folder_make(longest, &error), FR_BAD_ENVIRONMENT);
    CHECK_INT(fr_folder_make("", &error), FR_BAD_ENVIRONMENT);
}

TEST(every_allocation_may_fail)
{
    CHECK_OK(fr_file_write(scratch("f"), "data", 4, &error));
    for (int n = 0; n < 8; n++) {
        fr_arena arena;
        char *text, **names;
        size_t bytes, count;
        fr_arena_init(&arena, 64);
        fr_allocate_fail_after(n);
        fr_status read = fr_file_read(&arena, scratch("f"), &text, &bytes, &error);
        fr_status unsized = fr_file_read(&arena, "/proc/self/status", &text, &bytes, &error);
        fr_status list = fr_folder_list(&arena, scratch(""), &names, &count, &error);
        fr_allocate_fail_after(-1);
        CHECK(read == FR_OK || read == FR_BAD_ENVIRONMENT);
        CHECK(n > 0 ||
              (read == FR_BAD_ENVIRONMENT && unsized == FR_BAD_ENVIRONMENT && list == FR_BAD_ENVIRONMENT));
        fr_arena_release(&arena);
    }
}

TEST(folders)
{
    fr_arena arena;
    char **names;
    size_t count;
    fr_arena_init(&arena, 0);
    CHECK_OK(fr_folder_make(scratch("a/b/c/"), &error));
    CHECK_OK(fr_folder_make(scratch("a/b/c"), &error));
    CHECK(fr_path_is_folder(scratch("a/b/c")) && fr_path_exists(scratch("a")));
    CHECK_OK(fr_file_write(scratch("a/b/z"), "", 0, &error));
    CHECK(!fr_path_is_folder(scratch("a/b/z")));
    CHECK_INT(fr_folder_make(scratch("a/b/z/y"), &error), FR_BAD_ENVIRONMENT);
    CHECK_INT(fr_folder_make(scratch("a/b/z"), &error), FR_BAD_ENVIRONMENT);
    CHECK_OK(fr_file_write(scratch("a/b/B"), "", 0, &error));
    CHECK_OK(fr_folder_list(&arena, scratch("a/b"), &names, &count, &error));
    CHECK_INT(count, 3);
    CHECK(!names[3] && strcmp(names[0], "B") == 0 && strcmp(names[1], "c") == 0 &&
          strcmp(names[2], "z") == 0);
    CHECK_OK(fr_folder_list(&arena, scratch("a/b/c"), &names, &count, &error));
    CHECK(count == 0 && !names[0]);
    CHECK_INT(fr_folder_list(&arena, scratch("nowhere"), &names, &count, &error), FR_BAD_DATA);
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "a/b/c/%d", i);
        CHECK_OK(fr_file_write(scratch(name), "", 0, &error));
    }
    CHECK_OK(fr_folder_list(&arena, scratch("a/b/c"), &names, &count, &error));
    CHECK_INT(count, 200);
    for (size_t i = 1; i < count; i++)
        CHECK(strcmp(names[i - 1], names[i]) < 0);
    fr_arena_release(&arena);
}

TEST(join)
{
    char out[64];
    CHECK_STR(fr_path_join(out, sizeof out, "a", "b"), "a/b");
    CHECK_STR(fr_path_join(out, sizeof out, "a/", "b"), "a/b");
    CHECK_STR(fr_path_join(out, sizeof out, "", "b"), "b");
}

TEST(sha256_of_a_file)
{
    char hex[65], whole[65];
    size_t bytes = 200001;
    char *text = malloc(bytes);
    memset(text, 'x', bytes);
    CHECK_OK(fr_file_write(scratch("h"), text, bytes, &error));
    CHECK_OK(fr_sha256_file(scratch("h"), hex, &error));
    fr_sha256(text, bytes, whole);
    CHECK_STR(hex, whole);
    free(text);
}

TEST_MAIN(files)
