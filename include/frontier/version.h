/* frontier/version.h: the version of the library and of what built it. FR_COMMIT comes from the Makefile. */
#ifndef FRONTIER_VERSION_H
#define FRONTIER_VERSION_H
#define FR_VERSION "0.1.0"
#ifndef FR_COMMIT
#define FR_COMMIT "unknown"
#endif
#if defined(__clang__)
#define FR_COMPILER "clang " __clang_version__
#else
#define FR_COMPILER "gcc " __VERSION__
#endif
#endif
