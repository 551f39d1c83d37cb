/* file.c: reading files and folders.
 *
 * Files are hostile: a path may be missing, a folder, a pipe without a size, or shrink while it is read. Each
 * case ends in a sentence that names the path. Sizes reported by the system are used as a hint and
 * never believed.
 */
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

fr_status fr_file_error(fr_error *error, const char *path, const char *verb, int code)
{
    static const struct {
        int code;
        fr_status status;
        const char *what, *hint;
    } known[] = {
        {ENOENT, FR_BAD_DATA, "no such file or folder", "check the path"},
        {ENOTDIR, FR_BAD_DATA, "a part of the path is not a folder", "check the path"},
        {EISDIR, FR_BAD_DATA, "is a folder, a file is needed", "name a file inside it"},
        {ENAMETOOLONG, FR_BAD_DATA, "the path is too long", "use a shorter path"},
        {EACCES, FR_BAD_ENVIRONMENT, "permission denied", "check who owns the file and its permissions"},
        {ENOSPC, FR_BAD_ENVIRONMENT, "the disk is full", "free some space or choose another folder"},
        {EROFS, FR_BAD_ENVIRONMENT, "the file system is read-only", "choose another folder"},
        {EMFILE, FR_BAD_ENVIRONMENT, "too many open files", "raise the limit with ulimit -n"},
    };
    bool making = strncmp(verb, "create", 6) == 0; /* then it is no input that is bad, but a place that is missing */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].code == code)
            return fr_error_set(error, making ? FR_BAD_ENVIRONMENT : known[i].status, path, known[i].hint,
                                "cannot %s: %s", verb, known[i].what);
    return fr_error_set(error, FR_BAD_ENVIRONMENT, path, NULL, "cannot %s: %s", verb, strerror(code));
}

fr_status fr_file_open_read(const char *path, int *descriptor, fr_error *error)
{
    int opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0)
        return fr_file_error(error, path, "open", errno);
    struct stat info;
    if (fstat(opened, &info) == 0 && S_ISDIR(info.st_mode)) {
        close(opened);
        return fr_file_error(error, path, "open", EISDIR);
    }
    *descriptor = opened;
    return FR_OK;
}

/* Reads until the end or until `capacity` bytes; *got < capacity means the end was reached. */
static fr_status read_up_to(int descriptor, const char *path, char *out, size_t capacity, size_t *got,
                            fr_error *error)
{
    *got = 0;
    while (*got < capacity) {
        ssize_t n = read(descriptor, out + *got, capacity - *got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fr_file_error(error, path, "read", errno);
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return FR_OK;
}

/* For pipes and the files of /proc, whose size is not known beforehand. */
static fr_status read_unsized(fr_arena *arena, int descriptor, const char *path, char **out, size_t *bytes,
                              fr_error *error)
{
    fr_buffer buffer;
    fr_buffer_init(&buffer, 0);
    char chunk[16 * 1024];
    size_t got = 0;
    fr_status status;
    do {
        status = read_up_to(descriptor, path, chunk, sizeof chunk, &got, error);
        fr_buffer_append(&buffer, chunk, got);
    } while (status == FR_OK && got == sizeof chunk && !buffer.failed);
    char *copy = status == FR_OK && !buffer.failed ? fr_arena_alloc(arena, buffer.length + 1) : NULL;
    if (copy) {
        memcpy(copy, buffer.data, buffer.length);
        *out = copy;
        *bytes = buffer.length;
    } else if (status == FR_OK) {
        status = fr_error_memory(error, buffer.length + sizeof chunk, path);
    }
    fr_buffer_release(&buffer);
    return status;
}

static fr_status read_sized(fr_arena *arena, int descriptor, size_t size, const char *path, char **out,
                            size_t *bytes, fr_error *error)
{
    fr_arena_mark mark = fr_arena_save(arena);
    char *text = fr_arena_alloc(arena, size + 1);
    if (!text)
        return fr_error_memory(error, size + 1, path);
    size_t got;
    fr_status status = read_up_to(descriptor, path, text, size, &got, error);
    if (status != FR_OK) {
        fr_arena_rewind(arena, mark);
        return status;
    }
    text[got] = '\0';
    *out = text;
    *bytes = got;
    return FR_OK;
}

/* A pipe in a folder may have no writer, and a device no end. What was handed to this process is meant. */
static fr_status refuse_special(const char *path, fr_error *error)
{
    struct stat info;
    bool handed = strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
                  strncmp(path, "/proc/self/fd/", 14) == 0;
    if (handed || stat(path, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode))
        return FR_OK;
    return fr_error_set(error, FR_BAD_DATA, path, "copy what it gives into a file",
                        "not a regular file but a pipe, socket or device");
}

fr_status fr_file_read(fr_arena *arena, const char *path, char **out, size_t *bytes, fr_error *error)
{
    int descriptor = -1;
    FR_TRY(refuse_special(path, error));
    FR_TRY(fr_file_open_read(path, &descriptor, error));
    struct stat info;
    fr_status status;
    if (fstat(descriptor, &info) != 0)
        status = fr_file_error(error, path, "read", errno);
    else if (S_ISREG(info.st_mode) && info.st_size > 0)
        status = read_sized(arena, descriptor, (size_t)info.st_size, path, out, bytes, error);
    else
        status = read_unsized(arena, descriptor, path, out, bytes, error);
    close(descriptor);
    return status;
}

fr_status fr_mapping_init(fr_mapping *mapping, const char *path, fr_error *error)
{
    *mapping = (fr_mapping){(const uint8_t *)"", 0};
    int descriptor = -1;
    struct stat info;
    bool known = stat(path, &info) == 0;
    if (known && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) /* opening a pipe would wait */
        return fr_error_set(error, FR_BAD_DATA, path, NULL, "cannot map: not a regular file");
    FR_TRY(fr_file_open_read(path, &descriptor, error));
    fr_status status = FR_OK;
    if (fstat(descriptor, &info) != 0) {
        status = fr_file_error(error, path, "map", errno);
    } else if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED)
            status = fr_file_error(error, path, "map", errno);
        else
            *mapping = (fr_mapping){data, (size_t)info.st_size};
    }
    close(descriptor);
    return status;
}

void fr_mapping_release(fr_mapping *mapping)
{
    if (mapping->bytes > 0)
        munmap((void *)(uintptr_t)mapping->data, mapping->bytes);
    *mapping = (fr_mapping){(const uint8_t *)"", 0};
}

bool fr_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool fr_path_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

char *fr_path_join(char *out, size_t size, const char *folder, const char *name)
{
    size_t length = strlen(folder);
    bool slash = length > 0 && folder[length - 1] != '/';
    snprintf(out, size, "%s%s%s", folder, slash ? "/" : "", name);
    return out;
}

static fr_status make_one(const char *path, fr_error *error)
{
    if (mkdir(path, 0777) == 0)
        return FR_OK;
    int code = errno;
    if (fr_path_is_folder(path))
        return FR_OK;
    return fr_file_error(error, path, "create folder", code == EEXIST ? ENOTDIR : code);
}

fr_status fr_folder_make(const char *path, fr_error *error)
{
    char partial[4096];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof partial)
        return fr_file_error(error, path, "create folder", length ? ENAMETOOLONG : ENOENT);
    memcpy(partial, path, length + 1);
    for (size_t i = 1; i < length; i++) {
        if (partial[i] != '/')
            continue;
        partial[i] = '\0';
        FR_TRY(make_one(partial, error));
        partial[i] = '/';
    }
    return make_one(partial, error);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

typedef struct name_list {
    char **names;
    size_t count, capacity;
} name_list;

/* The list always keeps room for its closing NULL. */
static bool push_name(name_list *list, fr_arena *arena, const char *name)
{
    if (list->count + 1 >= list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        char **grown = fr_reallocate(list->names, capacity * sizeof *grown);
        if (!grown)
            return false;
        list->names = grown;
        list->capacity = capacity;
    }
    char *copy = fr_arena_strdup(arena, name);
    if (copy)
        list->names[list->count++] = copy;
    return copy != NULL;
}

static fr_status collect_names(DIR *folder, const char *path, fr_arena *arena, name_list *list,
                               fr_error *error)
{
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(folder);
        if (!entry)
            return errno ? fr_file_error(error, path, "list", errno) : FR_OK;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!push_name(list, arena, entry->d_name))
            return fr_error_memory(error, (list->count + 1) * sizeof(char *), path);
    }
}

fr_status fr_folder_list(fr_arena *arena, const char *path, char ***names, size_t *count, fr_error *error)
{
    DIR *folder = opendir(path);
    if (!folder)
        return fr_file_error(error, path, "list", errno);
    name_list list = {0};
    fr_status status = collect_names(folder, path, arena, &list, error);
    closedir(folder);
    char **out = status == FR_OK ? fr_arena_alloc(arena, (list.count + 1) * sizeof *out) : NULL;
    if (out) {
        if (list.count > 0) {
            qsort(list.names, list.count, sizeof *list.names, compare_names);
            memcpy(out, list.names, list.count * sizeof *out);
        }
        *names = out;
        *count = list.count;
    } else if (status == FR_OK) {
        status = fr_error_memory(error, (list.count + 1) * sizeof *out, path);
    }
    fr_deallocate(list.names);
    return status;
}
