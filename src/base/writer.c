/* writer.c: files that are either the old content or the new one, never something between.
 *
 * The recipe is the usual one and every part of it is needed: write a temporary file in the same folder,
 * flush it to the disk, rename it over the target, flush the folder. A crash at any point leaves the
 * old file whole and at most a stray ".tmp-" file beside it. A failed append is remembered and
 * reported by commit, so producers need no check per line.
 */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Mutable global for fault injection only; negative = off. */
static _Atomic int64_t bytes_left = -1;

void fr_file_fail_after(int64_t n)
{
    atomic_store(&bytes_left, n);
}

size_t fr_file_allowance(size_t count)
{
    int64_t left = atomic_load(&bytes_left);
    for (;;) {
        if (left < 0)
            return count;
        size_t granted = (uint64_t)left < count ? (size_t)left : count;
        if (atomic_compare_exchange_weak(&bytes_left, &left, left - (int64_t)granted))
            return granted;
    }
}

fr_status fr_file_sync_folder(const char *path, fr_error *error)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof folder)
        return fr_file_error(error, path, "sync", ENAMETOOLONG);
    memcpy(folder, path, length);
    folder[length] = '\0';
    int descriptor = open(slash == path ? "/" : length ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return fr_file_error(error, path, "sync the folder", errno);
    int code = fsync(descriptor) == 0 ? 0 : errno;
    close(descriptor);
    /* Some network file systems cannot sync a folder and say so; there is nothing more one could do. */
    return code == 0 || code == EINVAL || code == ENOTSUP
               ? FR_OK
               : fr_file_error(error, path, "sync the folder", code);
}

/* Opens a temporary file nobody else has; a stray one of a process that died is left alone. */
static int open_temporary(fr_file_writer *writer)
{
    for (int attempt = 0; attempt < 1000; attempt++) {
        snprintf(writer->temporary, sizeof writer->temporary, "%s.tmp-%ld-%d", writer->path, (long)getpid(),
                 attempt);
        int descriptor = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST)
            return descriptor;
    }
    return -1;
}

/* Is it NAME.tmp-PROCESS-ATTEMPT? */
static bool is_stray(const char *name)
{
    const char *mark = strstr(name, ".tmp-");
    if (!mark || mark == name)
        return false;
    size_t process = strspn(mark + 5, "0123456789");
    const char *dash = mark + 5 + process;
    return process > 0 && *dash == '-' && dash[1] && dash[1 + strspn(dash + 1, "0123456789")] == '\0';
}

fr_status fr_file_remove_strays(const char *folder, fr_error *error)
{
    fr_arena arena;
    char **names, path[4096];
    size_t count;
    fr_arena_init(&arena, 1 << 14);
    fr_status status = fr_folder_list(&arena, folder, &names, &count, error);
    for (size_t i = 0; status == FR_OK && i < count; i++)
        if (is_stray(names[i]) && unlink(fr_path_join(path, sizeof path, folder, names[i])) != 0)
            status = fr_file_error(error, path, "remove", errno);
    fr_arena_release(&arena);
    return status;
}

fr_status fr_file_writer_begin(fr_file_writer *writer, const char *path, fr_error *error)
{
    memset(writer, 0, sizeof *writer);
    if (strlen(path) >= sizeof writer->path)
        return fr_file_error(error, path, "write", ENAMETOOLONG);
    if (fr_path_is_folder(path))
        return fr_file_error(error, path, "write", EISDIR);
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) /* the rename would replace a device or pipe */
        return fr_error_set(error, FR_BAD_DATA, path, "name a file", "cannot write: not a regular file");
    memcpy(writer->path, path, strlen(path) + 1);
    int descriptor = open_temporary(writer);
    if (descriptor < 0)
        return fr_file_error(error, path, "create", errno);
    writer->stream = fdopen(descriptor, "wb");
    if (!writer->stream) {
        int code = errno;
        close(descriptor);
        unlink(writer->temporary);
        return fr_file_error(error, path, "create", code);
    }
    return FR_OK;
}

void fr_file_writer_append(fr_file_writer *writer, const void *bytes, size_t count)
{
    if (writer->failed || !writer->stream || count == 0)
        return;
    size_t granted = fr_file_allowance(count);
    if (fwrite(bytes, 1, granted, writer->stream) != granted || granted < count) {
        writer->code = granted < count ? ENOSPC : errno;
        writer->failed = true;
    }
}

static fr_status flush_to_disk(fr_file_writer *writer, fr_error *error)
{
    if (writer->failed)
        return fr_file_error(error, writer->path, "write", writer->code ? writer->code : EIO);
    if (fflush(writer->stream) != 0 || fsync(fileno(writer->stream)) != 0)
        return fr_file_error(error, writer->path, "write", errno);
    return FR_OK;
}

fr_status fr_file_writer_commit(fr_file_writer *writer, fr_error *error)
{
    if (!writer->stream)
        return fr_error_set(error, FR_BUG, writer->path, NULL, "commit of a file that was not begun");
    fr_status status = flush_to_disk(writer, error);
    if (status != FR_OK) {
        fr_file_writer_abort(writer);
        return status;
    }
    int closed = fclose(writer->stream);
    writer->stream = NULL;
    if (closed != 0 || rename(writer->temporary, writer->path) != 0) {
        int code = errno;
        unlink(writer->temporary);
        return fr_file_error(error, writer->path, "write", code);
    }
    return fr_file_sync_folder(writer->path, error);
}

void fr_file_writer_abort(fr_file_writer *writer)
{
    if (!writer->stream)
        return;
    fclose(writer->stream);
    writer->stream = NULL;
    unlink(writer->temporary);
}

fr_status fr_file_write(const char *path, const void *bytes, size_t count, fr_error *error)
{
    fr_file_writer writer;
    FR_TRY(fr_file_writer_begin(&writer, path, error));
    fr_file_writer_append(&writer, bytes, count);
    return fr_file_writer_commit(&writer, error);
}
