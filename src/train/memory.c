/* memory.c: asking the system how much memory is left.
 *
 * A run that would not fit must be refused before it starts, not killed after an hour. The limit is the
 * smaller of what the kernel counts as available and what the control group (a container) still allows; page
 * cache of the group counts as free, since it is given back on demand.
 */
#include "train/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The number after `key` in a text file of "key value" lines; with an empty key the file's first number. -1: none. */
static int64_t number_in(const char *path, const char *key)
{
    FILE *file = fopen(path, "re");
    char line[512];
    int64_t value = -1;
    size_t length = strlen(key);
    while (file && value < 0 && fgets(line, sizeof line, file)) {
        char *end, *start = line + length;
        if (strncmp(line, key, length) != 0)
            continue;
        long long number = strtoll(start, &end, 10);
        value = end == start || number < 0 ? -1 : number;
    }
    if (file)
        fclose(file);
    return value;
}

/* The folder of this process's control group, version 2; false: none. */
static bool group_folder(char *out, size_t size)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[768];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, size, "/sys/fs/cgroup%s", line + 3);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

static int64_t group_left(void)
{
    char folder[800], path[900];
    if (!group_folder(folder, sizeof folder))
        return -1;
    int64_t limit = number_in(fr_path_join(path, sizeof path, folder, "memory.max"), "");
    int64_t used = number_in(fr_path_join(path, sizeof path, folder, "memory.current"), "");
    int64_t cache = number_in(fr_path_join(path, sizeof path, folder, "memory.stat"), "inactive_file ");
    if (limit < 0 || used < 0)
        return -1;
    int64_t left = limit - used + (cache > 0 ? cache : 0);
    return left > 0 ? left : 0;
}

int64_t fr_memory_available(void)
{
    int64_t system = number_in("/proc/meminfo", "MemAvailable:"), group = group_left();
    if (system >= 0)
        system *= 1024;
    if (group >= 0 && (system < 0 || group < system))
        return group;
    return system > 0 ? system : 0;
}

int64_t fr_memory_peak(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}
