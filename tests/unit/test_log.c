/* The append-only log: a tail torn at every byte, damage at every byte, a disk that fills up, a second
 * writer. */
#include "frontier/base.h"
#include "scratch.h"
#include "test.h"

static fr_error error;

typedef struct contents {
    int count;
    char text[64][64];
    size_t bytes[64];
} contents;

static fr_status collect(void *context, const void *bytes, size_t count, fr_error *failure)
{
    contents *c = context;
    (void)failure;
    c->bytes[c->count] = count;
    memcpy(c->text[c->count], bytes, count < 63 ? count : 63);
    c->text[c->count++][count < 63 ? count : 63] = '\0';
    return FR_OK;
}

static const char *const RECORDS[] = {"first", "", "the third, longer record", "4"};

static void write_records(const char *path, int count)
{
    fr_log *log = NULL;
    unlink(path);
    CHECK_OK(fr_log_open(&log, path, NULL, &error));
    for (int i = 0; i < count; i++)
        CHECK_OK(fr_log_append(log, RECORDS[i], strlen(RECORDS[i]), &error));
    CHECK_OK(fr_log_sync(log, &error));
    fr_log_close(log);
}

static size_t load(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "rb");
    size_t bytes = file ? fread(out, 1, size, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static void save(const char *path, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    fwrite(bytes, 1, count, file);
    fclose(file);
}

TEST(round_trip_and_append_after_reopen)
{
    char path[600];
    contents c = {0};
    snprintf(path, sizeof path, "%s", scratch("a.log"));
    write_records(path, 2);
    fr_log *log;
    int64_t dropped = 99;
    CHECK_OK(fr_log_open(&log, path, &dropped, &error));
    CHECK_INT(dropped, 0);
    CHECK_OK(fr_log_append(log, "x\0y", 3, &error));
    fr_log_close(log);
    fr_log_close(NULL);
    CHECK_OK(fr_log_read(path, collect, &c, &error));
    CHECK_INT(c.count, 3);
    CHECK_STR(c.text[0], "first");
    CHECK_INT(c.bytes[1], 0);
    CHECK(c.bytes[2] == 3 && memcmp(c.text[2], "x\0y", 3) == 0);
}

/* Cut the file at every length: all whole records stay, the rest is dropped, and appending works again. */
TEST(torn_at_every_byte)
{
    char path[600], bytes[1024];
    snprintf(path, sizeof path, "%s", scratch("torn.log"));
    write_records(path, 4);
    size_t size = load(path, bytes, sizeof bytes), ends[5] = {8};
    for (int i = 0; i < 4; i++)
        ends[i + 1] = ends[i] + 16 + strlen(RECORDS[i]);
    CHECK_INT(ends[4], size);
    for (size_t cut = 0; cut <= size; cut++) {
        int whole = 0;
        while (whole < 4 && ends[whole + 1] <= cut)
            whole++;
        contents before = {0}, after = {0};
        fr_log *log;
        int64_t dropped;
        save(path, bytes, cut);
        CHECK_OK(fr_log_read(path, collect, &before, &error));
        CHECK_INT(before.count, whole);
        CHECK_OK(fr_log_open(&log, path, &dropped, &error));
        CHECK_INT(dropped, cut < 8 ? cut : cut - ends[whole]);
        CHECK_OK(fr_log_append(log, "new", 3, &error));
        fr_log_close(log);
        CHECK_OK(fr_log_read(path, collect, &after, &error));
        CHECK_INT(after.count, whole + 1);
        CHECK_STR(after.text[whole], "new");
    }
}

TEST(a_tail_of_zeros_is_torn)
{
    char path[600], bytes[8192] = "";
    snprintf(path, sizeof path, "%s", scratch("zeros.log"));
    write_records(path, 2);
    size_t size = load(path, bytes, sizeof bytes);
    save(path, bytes, size + 4096);
    fr_log *log;
    int64_t dropped;
    CHECK_OK(fr_log_open(&log, path, &dropped, &error));
    CHECK_INT(dropped, 4096);
    fr_log_close(log);
}

/* Flip every bit: either the record is found damaged (and later ones refuse to be dropped), or the last one
 * is gone. */
TEST(damage_at_every_bit_never_passes)
{
    char path[600], bytes[1024];
    snprintf(path, sizeof path, "%s", scratch("damage.log"));
    write_records(path, 4);
    size_t size = load(path, bytes, sizeof bytes), last = size - 16 - strlen(RECORDS[3]);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        contents c = {0};
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        save(path, bytes, size);
        fr_status status = fr_log_read(path, collect, &c, &error);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        if (bit / 8 >= last)
            CHECK(status == FR_OK && c.count == 3);
        else
            CHECK(status == FR_BAD_DATA && c.count < 4);
    }
}

TEST(damage_is_not_repaired_by_opening)
{
    char path[600], bytes[1024], again[1024];
    snprintf(path, sizeof path, "%s", scratch("keep.log"));
    write_records(path, 4);
    size_t size = load(path, bytes, sizeof bytes);
    bytes[30] ^= 1;
    save(path, bytes, size);
    fr_log *log;
    CHECK_INT(fr_log_open(&log, path, NULL, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "intact records follow"));
    CHECK_INT(load(path, again, sizeof again), size);
    CHECK(memcmp(bytes, again, size) == 0);
}

TEST(a_log_inside_a_log_is_payload)
{
    char path[600], bytes[1024];
    contents c = {0};
    snprintf(path, sizeof path, "%s", scratch("nested.log"));
    write_records(path, 4);
    size_t size = load(path, bytes, sizeof bytes);
    fr_log *log;
    unlink(path);
    CHECK_OK(fr_log_open(&log, path, NULL, &error));
    CHECK_OK(fr_log_append(log, bytes, size, &error));
    fr_log_close(log);
    size_t outer = load(path, bytes, sizeof bytes);
    save(path, bytes, outer - 1); /* torn: the records inside must not count as intact ones */
    CHECK_OK(fr_log_read(path, collect, &c, &error));
    CHECK_INT(c.count, 0);
}

TEST(other_files_are_refused)
{
    fr_log *log;
    save(scratch("other"), "hello, I am a text file", 23);
    CHECK_INT(fr_log_open(&log, scratch("other"), NULL, &error), FR_BAD_DATA);
    save(scratch("other"), "FRLOG\0\2\n", 8);
    CHECK_INT(fr_log_open(&log, scratch("other"), NULL, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "version 2"));
    CHECK_INT(fr_log_read(scratch("absent"), collect, NULL, &error), FR_BAD_DATA);
    CHECK_INT(fr_log_open(&log, scratch("no/folder"), NULL, &error), FR_BAD_DATA);
}

TEST(one_writer_at_a_time)
{
    fr_log *first, *second;
    CHECK_OK(fr_log_open(&first, scratch("lock.log"), NULL, &error));
    CHECK_INT(fr_log_open(&second, scratch("lock.log"), NULL, &error), FR_BAD_ENVIRONMENT);
    CHECK(strstr(error.what, "another process"));
    fr_log_close(first);
    CHECK_OK(fr_log_open(&second, scratch("lock.log"), NULL, &error));
    fr_log_close(second);
}

/* The disk is full after n bytes of the append: the log is as before, and the next append works. */
TEST(full_disk)
{
    char path[600];
    snprintf(path, sizeof path, "%s", scratch("full.log"));
    for (int n = 0; n < 21; n++) {
        write_records(path, 2);
        fr_log *log;
        contents c = {0};
        CHECK_OK(fr_log_open(&log, path, NULL, &error));
        fr_file_fail_after(n);
        CHECK_INT(fr_log_append(log, "third", 5, &error), FR_BAD_ENVIRONMENT);
        fr_file_fail_after(-1);
        CHECK_OK(fr_log_append(log, "again", 5, &error));
        fr_log_close(log);
        CHECK_OK(fr_log_read(path, collect, &c, &error));
        CHECK_INT(c.count, 3);
        CHECK_STR(c.text[2], "again");
    }
}

static fr_status refuse(void *context, const void *bytes, size_t count, fr_error *failure)
{
    (void)context;
    (void)bytes;
    (void)count;
    return fr_error_set(failure, FR_STOPPED, "", "", "enough");
}

TEST(visitor_and_allocation_failures_pass_through)
{
    fr_log *log = NULL;
    write_records(scratch("v.log"), 2);
    CHECK_INT(fr_log_read(scratch("v.log"), refuse, NULL, &error), FR_STOPPED);
    for (int n = 0; n < 3; n++) {
        fr_allocate_fail_after(n);
        fr_status opened = fr_log_open(&log, scratch("v.log"), NULL, &error);
        fr_status appended = opened == FR_OK ? fr_log_append(log, "x", 1, &error) : FR_BAD_ENVIRONMENT;
        fr_allocate_fail_after(-1);
        CHECK_INT(appended, FR_BAD_ENVIRONMENT);
        if (opened == FR_OK)
            fr_log_close(log);
    }
}

TEST_MAIN(log)
