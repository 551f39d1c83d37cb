/* processors.c: how many processors this process may really use.
 *
 * Containers and batch systems hand out processors in two ways. Affinity names the processors; a control
 * group gives a quota of processor time per period. Threads beyond either only wait for each other, and a
 * training step is as slow as its slowest thread, so both are respected. A fractional quota is rounded up:
 * 1.5 processors' worth of time is used better by two threads than by one.
 */
#include "base/processors.h"
#include "frontier/base.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first bytes of a small system file; false when it cannot be read. */
static bool read_small(const char *path, char *out, size_t size)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    size_t length = 0;
    while (length + 1 < size) {
        ssize_t got = read(descriptor, out + length, size - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    close(descriptor);
    out[length] = '\0';
    return length > 0;
}

/* Version 2: "max 100000" or "150000 100000" in cpu.max. */
static double limit_v2(const char *folder)
{
    char path[4352], text[128];
    long long quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_small(path, text, sizeof text) || sscanf(text, "%lld %lld", &quota, &period) != 2)
        return 0;
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

/* Version 1: two files; a quota of -1 is none. */
static double limit_v1(const char *folder)
{
    char path[4352], quota[64], period[64];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_small(path, quota, sizeof quota))
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_small(path, period, sizeof period))
        return 0;
    double q = strtod(quota, NULL), p = strtod(period, NULL);
    return q > 0 && p > 0 ? q / p : 0;
}

static double tighter(double a, double b)
{
    return a == 0 ? b : b == 0 || a < b ? a : b;
}

/* Limits apply from every folder between the group and the mount point. Inside a container the group's path
 * may name folders of the host that are not visible; those are skipped and the mount point itself remains. */
static double limit_up_the_tree(const char *mount, const char *group, double (*limit)(const char *folder))
{
    char folder[4224];
    double found = limit(mount);
    size_t base = strlen(mount);
    int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (length >= (int)sizeof folder || strstr(group, ".."))
        return found;
    for (char *slash = strrchr(folder, '/'); slash && slash >= folder + base; slash = strrchr(folder, '/')) {
        found = tighter(found, limit(folder));
        *slash = '\0';
    }
    return found;
}

static bool has_controller(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* One line is "number:controllers:path"; version 2 has the number 0 and no controllers. */
static double limit_of_line(char *line, const char *root)
{
    char mount[512];
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return 0;
    *group++ = '\0';
    controllers++;
    if (controllers[0] == '\0') {
        snprintf(mount, sizeof mount, "%s/unified", root);
        return tighter(limit_up_the_tree(root, group, limit_v2), limit_up_the_tree(mount, group, limit_v2));
    }
    if (!has_controller(controllers, "cpu"))
        return 0;
    snprintf(mount, sizeof mount, "%s/%s", root, controllers);
    double found = limit_up_the_tree(mount, group, limit_v1);
    snprintf(mount, sizeof mount, "%s/cpu", root);
    return tighter(found, limit_up_the_tree(mount, group, limit_v1));
}

double fr_cpu_quota(const char *membership, const char *root)
{
    double found = 0;
    char line[4096];
    for (const char *at = membership; *at;) {
        size_t length = strcspn(at, "\n");
        if (length < sizeof line) {
            memcpy(line, at, length);
            line[length] = '\0';
            found = tighter(found, limit_of_line(line, root));
        }
        at += length;
        at += *at == '\n';
    }
    return found;
}

/* Grows the mask until the kernel accepts it: machines with more than 1024 processors exist. */
static int affinity_count(void)
{
    for (int processors = 1024; processors <= 1 << 20; processors *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)processors);
        if (!set)
            break;
        size_t bytes = CPU_ALLOC_SIZE((size_t)processors);
        int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

int fr_cpu_available(void)
{
    char membership[8192];
    int count = affinity_count();
    double quota = read_small("/proc/self/cgroup", membership, sizeof membership)
                       ? fr_cpu_quota(membership, "/sys/fs/cgroup")
                       : 0;
    if (quota > 0 && ceil(quota) < count)
        count = (int)ceil(quota);
    return count < 1 ? 1 : count;
}
