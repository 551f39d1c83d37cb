/* import_files.c: from paths to an ordered list of readable files.
 *
 * The order of files decides the order of documents and which of two equal documents stays, so it must not
 * depend on the file system: folders are read in byte order of names. A file's kind is its name's ending, the
 * way people already mark it; contents are never guessed. Links to folders are not followed: they are
 * how a folder comes to contain itself.
 */
#include "text/import_files.h"

#include "text/import_report.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MOST_DEPTH = 64, MOST_PATH = 4000 };

static const struct {
    const char *ending;
    import_compression compression;
} compressions[] = {{".gz", IMPORT_GZIP}, {".zst", IMPORT_ZSTD}};

static const struct {
    const char *ending;
    import_format format;
} formats[] = {{".txt", IMPORT_TEXT}, {".jsonl", IMPORT_JSONL}, {".parquet", IMPORT_PARQUET}};

const char import_files_known[] = "known are .txt and .jsonl, alone or with .gz or .zst, and .parquet";

static bool ends_with(const char *name, size_t length, const char *ending)
{
    size_t size = strlen(ending);
    return length > size && strncasecmp(name + length - size, ending, size) == 0;
}

static bool classify(const char *name, import_file *file)
{
    size_t length = strlen(name);
    file->compression = IMPORT_PLAIN;
    for (size_t i = 0; i < sizeof compressions / sizeof *compressions; i++)
        if (ends_with(name, length, compressions[i].ending)) {
            file->compression = compressions[i].compression;
            length -= strlen(compressions[i].ending);
            break;
        }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (ends_with(name, length, formats[i].ending)) {
            file->format = formats[i].format; /* a .parquet is compressed inside, and read from any place in it */
            return file->format != IMPORT_PARQUET || file->compression == IMPORT_PLAIN;
        }
    return false;
}

static fr_status append(import_files *files, fr_arena *arena, const import_file *file, fr_error *error)
{
    if (files->count == files->capacity) { /* the arena keeps the old list: at most as much again */
        int64_t capacity = files->capacity ? files->capacity * 2 : 64;
        import_file *list = fr_arena_alloc(arena, (size_t)capacity * sizeof *list);
        if (!list)
            return fr_error_memory(error, (size_t)capacity * sizeof *list, "the list of files");
        if (files->count > 0)
            memcpy(list, files->list, (size_t)files->count * sizeof *list);
        files->list = list;
        files->capacity = capacity;
    }
    files->list[files->count] = *file;
    files->list[files->count].path = fr_arena_strdup(arena, file->path);
    files->list[files->count].name = fr_arena_strdup(arena, file->name);
    if (!files->list[files->count].path || !files->list[files->count].name)
        return fr_error_memory(error, strlen(file->path), "the list of files");
    files->count++;
    files->bytes += file->bytes;
    return FR_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static fr_status add_folder(import_files *files, fr_arena *arena, const char *path, size_t name_start, int depth,
                            fr_import_summary *summary, fr_error *error);

/* One entry of a folder. */
static fr_status add_entry(import_files *files, fr_arena *arena, const char *path, size_t name_start, int depth,
                           fr_import_summary *summary, fr_error *error)
{
    struct stat own, target;
    import_file file = {path, path + name_start, IMPORT_TEXT, IMPORT_PLAIN, 0};
    bool hidden = base_name(path)[0] == '.';
    if (lstat(path, &own) != 0 || stat(path, &target) != 0 || hidden) {
        import_report(summary, FR_IMPORT_UNKNOWN_FILE, path, 1);
        return FR_OK;
    }
    if (S_ISDIR(own.st_mode))
        return add_folder(files, arena, path, name_start, depth + 1, summary, error);
    if (!S_ISREG(target.st_mode) || !classify(path, &file)) {
        import_report(summary, FR_IMPORT_UNKNOWN_FILE, path, 1);
        return FR_OK;
    }
    file.bytes = (int64_t)target.st_size;
    return append(files, arena, &file, error);
}

static fr_status add_folder(import_files *files, fr_arena *arena, const char *path, size_t name_start, int depth,
                            fr_import_summary *summary, fr_error *error)
{
    if (depth > MOST_DEPTH)
        return fr_error_set(error, FR_BAD_DATA, path, "name the inner folder instead", "folders nested more than %d deep", MOST_DEPTH);
    char **names;
    size_t count;
    FR_TRY(fr_folder_list(arena, path, &names, &count, error));
    for (size_t i = 0; i < count; i++) {
        const char *entry = fr_arena_printf(arena, "%s/%s", path, names[i]);
        if (!entry)
            return fr_error_memory(error, strlen(path), "the list of files");
        if (strlen(entry) > MOST_PATH)
            return fr_error_set(error, FR_BAD_DATA, path, "name the inner folder instead", "a path of more than %d bytes", MOST_PATH);
        FR_TRY(add_entry(files, arena, entry, name_start, depth, summary, error));
    }
    return FR_OK;
}

fr_status import_files_add(import_files *files, fr_arena *arena, const char *path, fr_import_summary *summary, fr_error *error)
{
    struct stat target;
    char *own = fr_arena_strdup(arena, path);
    if (!own)
        return fr_error_memory(error, strlen(path), "the list of files");
    for (size_t n = strlen(own); n > 1 && own[n - 1] == '/'; n--)
        own[n - 1] = '\0';
    if (stat(own, &target) != 0)
        return fr_error_set(error, FR_BAD_DATA, path, "check the path", "no such file or folder");
    import_file file = {own, base_name(own), IMPORT_TEXT, IMPORT_PLAIN, (int64_t)target.st_size};
    if (S_ISDIR(target.st_mode))
        return add_folder(files, arena, own, (size_t)(base_name(own) - own), 0, summary, error);
    if (!S_ISREG(target.st_mode))
        return fr_error_set(error, FR_BAD_DATA, path, "write it to a file first: it is read more than once",
                            "a pipe or device, not a file or folder");
    if (!classify(own, &file))
        return fr_error_set(error, FR_BAD_DATA, path, import_files_known, "cannot tell what kind of file this is");
    return append(files, arena, &file, error);
}
