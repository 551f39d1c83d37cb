/* python/_core/compat.c: the extension runs on every glibc from 2.28 on.
 *
 * stat and fstat became symbols of their own with glibc 2.33; binding to those would turn away older systems
 * that the wheel serves. The kernel's structure is the C library's on the 64-bit machines we build for, so
 * the calls are made directly, under the same names, inside this library only.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__linux__) && defined(__LP64__) && defined(SYS_newfstatat)
int fstat(int descriptor, struct stat *out);
int stat(const char *restrict path, struct stat *restrict out);

int fstat(int descriptor, struct stat *out)
{
    return (int)syscall(SYS_newfstatat, descriptor, "", out, AT_EMPTY_PATH);
}

int stat(const char *restrict path, struct stat *restrict out)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}
#endif
