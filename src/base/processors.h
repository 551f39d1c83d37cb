/* processors.h: the parts of fr_cpu_available that tests drive with a made-up file tree. */
#ifndef FRONTIER_BASE_PROCESSORS_H
#define FRONTIER_BASE_PROCESSORS_H

/* Processors' worth of time the control groups allow, from `membership` (the text of /proc/self/cgroup) and
 * the mount point `root` (/sys/fs/cgroup); both versions, the tightest limit on the way up counts. 0 = no
 * limit. */
double fr_cpu_quota(const char *membership, const char *root);

#endif
