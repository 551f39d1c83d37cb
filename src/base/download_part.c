/* download_part.c: FILE.part and FILE.part.json, from which a download goes on.
 *
 * Bytes may only be appended to bytes of the same file, so the state beside the part remembers how the server told
 * the file apart: its ETag or date, its size, its hash. Without one of the first two nothing proves that the rest belongs to
 * what we have, and the part starts over. The state is written before the first byte, so a kill at any moment leaves
 * either something to go on from or something to start over from, and never a file under its final name.
 * The part is locked while it is open: two processes appending to one file would make neither's.
 */
#include "base/download_part.h"

#include "base/files.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void forget(download_part *part)
{
    part->etag[0] = part->modified[0] = part->sha256[0] = '\0';
    part->total = -1;
}

static void copy_text(const json_t *state, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(state, key));
    if (text && strlen(text) < size && !strpbrk(text, "\r\n")) /* it becomes a header line */
        memcpy(out, text, strlen(text) + 1);
}

/* A state that cannot be read is none: the part starts over. */
static void read_state(download_part *part, const char *url)
{
    json_t *state = NULL;
    if (!fr_path_exists(part->state) || fr_json_read(&state, part->state, NULL) != FR_OK)
        return;
    const char *of = json_string_value(json_object_get(state, "url"));
    if (of && strcmp(of, url) == 0) {
        copy_text(state, "etag", part->etag, sizeof part->etag);
        copy_text(state, "modified", part->modified, sizeof part->modified);
        copy_text(state, "sha256", part->sha256, sizeof part->sha256);
        json_t *total = json_object_get(state, "bytes");
        part->total = json_is_integer(total) && json_integer_value(total) >= 0 ? (int64_t)json_integer_value(total) : -1;
    }
    json_decref(state);
}

static fr_status open_locked(download_part *part, fr_error *error)
{
    struct stat info;
    part->descriptor = open(part->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (part->descriptor < 0)
        return fr_file_error(error, part->path, "create", errno);
    if (fstat(part->descriptor, &info) != 0 || !S_ISREG(info.st_mode))
        return fr_error_set(error, FR_BAD_DATA, part->path, "remove it", "not a regular file");
    if (flock(part->descriptor, LOCK_EX | LOCK_NB) != 0)
        return fr_error_set(error, FR_BAD_ENVIRONMENT, part->path, "wait for it, or choose another folder",
                            "another process is downloading this file");
    part->bytes = (int64_t)info.st_size;
    return FR_OK;
}

fr_status download_part_open(download_part *part, const char *target, const char *url, fr_error *error)
{
    memset(part, 0, sizeof *part);
    part->descriptor = -1;
    forget(part);
    if (strlen(target) >= sizeof part->target)
        return fr_file_error(error, target, "write", ENAMETOOLONG);
    snprintf(part->target, sizeof part->target, "%s", target);
    snprintf(part->path, sizeof part->path, "%s.part", target);
    snprintf(part->state, sizeof part->state, "%s.part.json", target);
    FR_TRY(open_locked(part, error));
    read_state(part, url);
    bool whole = part->total < 0 || part->bytes <= part->total;
    return part->bytes == 0 || (download_part_resumable(part) && whole) ? FR_OK : download_part_restart(part, error);
}

bool download_part_resumable(const download_part *part)
{
    return part->bytes > 0 && (part->etag[0] || part->modified[0]);
}

fr_status download_part_restart(download_part *part, fr_error *error)
{
    forget(part);
    part->bytes = 0;
    if (ftruncate(part->descriptor, 0) != 0)
        return fr_file_error(error, part->path, "write", errno);
    return FR_OK;
}

fr_status download_part_save(const download_part *part, const char *url, fr_error *error)
{
    json_t *state = json_object();
    bool good = state && fr_json_set_string(state, "url", url) && fr_json_set_string(state, "etag", part->etag) &&
                fr_json_set_string(state, "modified", part->modified) && fr_json_set_string(state, "sha256", part->sha256) &&
                fr_json_set_int(state, "bytes", part->total);
    fr_status status = good ? fr_json_write(state, part->state, error) : fr_error_memory(error, 0, "a download's state");
    json_decref(state);
    return status;
}

fr_status download_part_append(download_part *part, const void *bytes, size_t count, fr_error *error)
{
    const char *at = bytes;
    size_t left = fr_file_allowance(count), missing = count - left;
    while (left > 0) {
        ssize_t put = pwrite(part->descriptor, at, left, (off_t)part->bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return fr_file_error(error, part->path, "write", put < 0 ? errno : EIO);
        at += put;
        left -= (size_t)put;
        part->bytes += put;
    }
    return missing == 0 ? FR_OK : fr_file_error(error, part->path, "write", ENOSPC);
}

fr_status download_part_finish(download_part *part, fr_error *error)
{
    if (fsync(part->descriptor) != 0)
        return fr_file_error(error, part->path, "write", errno);
    if (rename(part->path, part->target) != 0)
        return fr_file_error(error, part->target, "write", errno);
    unlink(part->state);
    download_part_close(part);
    return fr_file_sync_folder(part->target, error);
}

void download_part_discard(download_part *part)
{
    if (!part->path[0] || part->descriptor < 0)
        return;
    unlink(part->state);
    unlink(part->path);
    download_part_close(part);
}

void download_part_close(download_part *part)
{
    if (part->path[0] && part->descriptor >= 0) /* a zeroed one has no path */
        close(part->descriptor);
    part->descriptor = -1;
}
