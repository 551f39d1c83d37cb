/* Fuzz target: bytes as a zip archive with the member lib.so. What comes out is what the directory promises, or nothing. */
#include "text/unzip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 1 << 20 };
    char archive[64], target[64];
    struct stat info;
    fr_error error = {0};
    int memory = memfd_create("zip", MFD_CLOEXEC);
    if (memory < 0 || write(memory, data, size) != (ssize_t)size)
        abort();
    snprintf(archive, sizeof archive, "/proc/self/fd/%d", memory);
    snprintf(target, sizeof target, "/tmp/frontier-fuzz-zip-%ld", (long)getpid());
    fr_status status = unzip_member(archive, "lib.so", target, MOST, &error);
    bool there = stat(target, &info) == 0;
    if (there != (status == FR_OK) || (there && info.st_size > MOST) || (!there && !error.what[0]))
        abort();
    unlink(target);
    close(memory);
    return 0;
}
