/* tests/unit/scratch.h: a folder for a test program's files, removed when the program ends.
 *
 *     fr_file_write(scratch("a.txt"), ...)
 *
 * scratch() returns one of 8 rotating static buffers.
 */
#ifndef FRONTIER_SCRATCH_H
#define FRONTIER_SCRATCH_H
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_folder[256];

static inline void scratch_remove(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char inner[1024];
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) >= (int)sizeof inner)
            continue;
        if (lstat(inner, &info) == 0 && S_ISDIR(info.st_mode))
            scratch_remove(inner);
        else
            unlink(inner);
    }
    if (folder)
        closedir(folder);
    rmdir(path);
}

static inline void scratch_cleanup(void)
{
    scratch_remove(scratch_folder);
}

static inline const char *scratch(const char *name)
{
    static char paths[8][512];
    static int next;
    if (!scratch_folder[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(scratch_folder, sizeof scratch_folder, "%s/frontier-test-XXXXXX",
                 base && base[0] ? base : "/tmp");
        if (!mkdtemp(scratch_folder)) {
            perror(scratch_folder);
            exit(4);
        }
        atexit(scratch_cleanup);
    }
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder, name);
    return path;
}

static inline int scratch_count(const char *folder) /* entries besides . and .. */
{
    DIR *opened = opendir(folder);
    int count = -2;
    while (opened && readdir(opened))
        count++;
    if (opened)
        closedir(opened);
    return count;
}

#endif
