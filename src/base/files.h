/* files.h: what the file units of base share. */
#ifndef FRONTIER_BASE_FILES_H
#define FRONTIER_BASE_FILES_H
#include "frontier/base.h"

/* Opens a file (not a folder) for reading, close-on-exec; the error says in words what is wrong. */
fr_status fr_file_open_read(const char *path, int *descriptor, fr_error *error);
/* The error for a failed system call on `path`: missing or unsuitable files are bad data, the rest is the
 * machine. */
fr_status fr_file_error(fr_error *error, const char *path, const char *verb, int code);
/* Flushes the folder that holds `path`, so that a created or renamed entry survives a power cut. */
fr_status fr_file_sync_folder(const char *path, fr_error *error);
/* Removes the temporary files that killed writers left in a folder; nobody may be writing into it. */
fr_status fr_file_remove_strays(const char *folder, fr_error *error);
/* Fault injection: how many of `count` bytes may still be written; less than `count` means a full disk. */
size_t fr_file_allowance(size_t count);

#endif
