/* log.c: append-only records that survive a crash in the middle of a write.
 *
 *     file   = "FRLOG\0\1\n" record*
 *     record = u32 length, u32 check of (length, offset), u64 check of (payload, offset), payload
 *
 * All numbers little-endian. The offset is part of both checks, so a record is valid in one place only and a
 * log stored inside a log's payload cannot be mistaken for records.
 *
 * A crash can leave the last record short, or long but filled with zeros. That tail is torn and is cut off
 * when the log is opened. Damage elsewhere is not a torn tail: if any valid record follows the bad one,
 * nothing is cut and the log is refused, because silently dropping good records would falsify a ledger.
 *
 * One process writes at a time (a lock held while open); readers need no lock and see whole records only.
 */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MAGIC_BYTES = 8, HEADER_BYTES = 16 };

static const char MAGIC[MAGIC_BYTES] = {'F', 'R', 'L', 'O', 'G', 0, 1, '\n'};

struct fr_log {
    int descriptor;
    int64_t length; /* end of the last whole record */
    bool broken;    /* a failed append could not be taken back */
    char path[1024];
};

/* ---- format ------------------------------------------------------------------------------------ */

static void put_le(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_le(const uint8_t *in, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)in[i] << (8 * i);
    return value;
}

static void make_header(uint8_t header[HEADER_BYTES], const void *payload, size_t count, uint64_t offset)
{
    put_le(header, count, 4);
    put_le(header + 4, fr_hash64(header, 4, offset), 4);
    put_le(header + 8, fr_hash64(payload, count, offset), 8);
}

/* Bytes of the valid record at `offset`, header included; 0 if there is none. */
static size_t record_at(const uint8_t *data, size_t size, size_t offset)
{
    if (size - offset < HEADER_BYTES)
        return 0;
    const uint8_t *header = data + offset;
    if (get_le(header + 4, 4) != (uint32_t)fr_hash64(header, 4, offset))
        return 0;
    uint64_t count = get_le(header, 4);
    if (count > size - offset - HEADER_BYTES)
        return 0;
    bool intact = get_le(header + 8, 8) == fr_hash64(header + HEADER_BYTES, (size_t)count, offset);
    return intact ? HEADER_BYTES + (size_t)count : 0;
}

static bool any_record_after(const uint8_t *data, size_t size, size_t offset)
{
    for (size_t at = offset + 1; at + HEADER_BYTES <= size; at++)
        if (record_at(data, size, at))
            return true;
    return false;
}

/* A file too short to hold the magic, but beginning like it, is a log whose creation was torn. */
static fr_status check_magic(const uint8_t *data, size_t size, const char *path, fr_error *error)
{
    if (memcmp(data, MAGIC, size < MAGIC_BYTES ? size : MAGIC_BYTES) == 0)
        return FR_OK;
    if (size >= MAGIC_BYTES && memcmp(data, MAGIC, 6) == 0)
        return fr_error_set(error, FR_BAD_DATA, path, "use the version of frontier that wrote it",
                            "log format version %d is not supported", data[6]);
    return fr_error_set(error, FR_BAD_DATA, path, NULL, "not a frontier log");
}

typedef fr_status (*record_visitor)(void *context, const void *bytes, size_t count, fr_error *error);

/* Visits the whole records; *end is where they end, 0 when even the magic is short. */
static fr_status walk(const uint8_t *data, size_t size, const char *path, record_visitor visit, void *context,
                      size_t *end, fr_error *error)
{
    FR_TRY(check_magic(data, size, path, error));
    *end = 0;
    if (size < MAGIC_BYTES)
        return FR_OK;
    size_t offset = MAGIC_BYTES, bytes;
    for (; (bytes = record_at(data, size, offset)) > 0; offset += bytes)
        if (visit)
            FR_TRY(visit(context, data + offset + HEADER_BYTES, bytes - HEADER_BYTES, error));
    if (offset < size && any_record_after(data, size, offset))
        return fr_error_set(error, FR_BAD_DATA, path, "restore the file from a copy",
                            "the record at byte %zu is damaged and intact records follow it", offset);
    *end = offset;
    return FR_OK;
}

static fr_status walk_file(const char *path, record_visitor visit, void *context, size_t *end, size_t *size,
                           fr_error *error)
{
    fr_arena arena;
    char *data;
    fr_arena_init(&arena, 0);
    fr_status status = fr_file_read(&arena, path, &data, size, error);
    if (status == FR_OK)
        status = walk((const uint8_t *)data, *size, path, visit, context, end, error);
    fr_arena_release(&arena);
    return status;
}

/* ---- writing ----------------------------------------------------------------------------------- */

static fr_status write_at(fr_log *log, const uint8_t *bytes, size_t count, int64_t offset, fr_error *error)
{
    size_t granted = fr_file_allowance(count), done = 0;
    while (done < granted) {
        ssize_t wrote = pwrite(log->descriptor, bytes + done, granted - done, offset + (int64_t)done);
        if (wrote < 0 && errno != EINTR)
            return fr_file_error(error, log->path, "append", errno);
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return granted < count ? fr_file_error(error, log->path, "append", ENOSPC) : FR_OK;
}

/* Brings the open file to whole records only; writes the magic of a new one. */
static fr_status recover(fr_log *log, int64_t *dropped, fr_error *error)
{
    size_t end = 0, size = 0;
    FR_TRY(walk_file(log->path, NULL, NULL, &end, &size, error));
    *dropped = (int64_t)(size - end);
    if (size > end && ftruncate(log->descriptor, (off_t)end) != 0)
        return fr_file_error(error, log->path, "cut the torn end of", errno);
    log->length = (int64_t)end;
    if (end > 0)
        return FR_OK;
    FR_TRY(write_at(log, (const uint8_t *)MAGIC, MAGIC_BYTES, 0, error));
    log->length = MAGIC_BYTES;
    FR_TRY(fr_log_sync(log, error));
    return fr_file_sync_folder(log->path, error);
}

static fr_status open_locked(fr_log *log, fr_error *error)
{
    log->descriptor = open(log->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (log->descriptor < 0)
        return fr_file_error(error, log->path, "open", errno);
    if (flock(log->descriptor, LOCK_EX | LOCK_NB) == 0)
        return FR_OK;
    if (errno == EWOULDBLOCK)
        return fr_error_set(error, FR_BAD_ENVIRONMENT, log->path, "wait for it or stop it",
                            "another process is writing this log");
    return fr_file_error(error, log->path, "lock", errno);
}

fr_status fr_log_open(fr_log **out, const char *path, int64_t *dropped_bytes, fr_error *error)
{
    if (strlen(path) >= sizeof((fr_log *)NULL)->path)
        return fr_file_error(error, path, "open", ENAMETOOLONG);
    fr_log *log = fr_allocate(sizeof *log);
    if (!log)
        return fr_error_memory(error, sizeof *log, path);
    log->descriptor = -1;
    memcpy(log->path, path, strlen(path) + 1);
    int64_t dropped = 0;
    fr_status status = open_locked(log, error);
    if (status == FR_OK)
        status = recover(log, &dropped, error);
    if (status != FR_OK) {
        fr_log_close(log);
        return status;
    }
    if (dropped_bytes)
        *dropped_bytes = dropped;
    *out = log;
    return FR_OK;
}

static fr_status append_record(fr_log *log, const uint8_t *record, size_t size, fr_error *error)
{
    fr_status status = write_at(log, record, size, log->length, error);
    if (status == FR_OK)
        log->length += (int64_t)size;
    else if (ftruncate(log->descriptor, log->length) != 0)
        log->broken = true; /* appending behind the fragment would turn a torn tail into damage */
    return status;
}

fr_status fr_log_append(fr_log *log, const void *bytes, size_t count, fr_error *error)
{
    if (log->broken)
        return fr_error_set(error, FR_BAD_ENVIRONMENT, log->path, "open the log again",
                            "an earlier append failed half-way");
    if (count > UINT32_MAX)
        return fr_error_set(error, FR_BAD_USAGE, log->path, NULL, "a record of %zu bytes is too large",
                            count);
    uint8_t *record = fr_allocate(HEADER_BYTES + count);
    if (!record)
        return fr_error_memory(error, HEADER_BYTES + count, log->path);
    if (count > 0)
        memcpy(record + HEADER_BYTES, bytes, count);
    make_header(record, record + HEADER_BYTES, count, (uint64_t)log->length);
    fr_status status = append_record(log, record, HEADER_BYTES + count, error);
    fr_deallocate(record);
    return status;
}

fr_status fr_log_sync(fr_log *log, fr_error *error)
{
    return fdatasync(log->descriptor) == 0 ? FR_OK : fr_file_error(error, log->path, "sync", errno);
}

void fr_log_close(fr_log *log)
{
    if (!log)
        return;
    if (log->descriptor >= 0)
        close(log->descriptor);
    fr_deallocate(log);
}

fr_status fr_log_read(const char *path,
                      fr_status (*visit)(void *context, const void *bytes, size_t count, fr_error *error),
                      void *context, fr_error *error)
{
    size_t end, size;
    return walk_file(path, visit, context, &end, &size, error);
}
