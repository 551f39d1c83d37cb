/* base/download.h: files from the web to disk, whole and checked or not at all. See download.c. */
#ifndef BASE_DOWNLOAD_H
#define BASE_DOWNLOAD_H
#include "frontier/base.h"

enum { DOWNLOAD_MOST_CONNECTIONS = 4 };

typedef struct download_file {
    const char *url, *path; /* the caller's */
    const char *sha256;     /* expected; NULL: only what the server says, if it does */
    const char *magic;      /* the file begins and ends with it; NULL: anything */
    int64_t most_bytes;     /* more is refused */
    /* results */
    int64_t bytes;
    char got_sha256[65];
    bool finished;
} download_file;

typedef struct download_options {
    int connections;    /* 1 to 4 */
    int retries;        /* after the first attempt, per file */
    double stall;       /* seconds without data after which an attempt ends */
    double backoff;     /* seconds before the first retry; doubles, at most 60 */
    const char *phase;  /* for progress */
    int64_t guess;      /* bytes of a file whose size is not known yet, for the estimate */
    const fr_progress *progress;
    fr_status (*finished)(void *context, const download_file *file, fr_error *error); /* after each; may be NULL */
    void *context;
} download_options;

/* Fetches all files, resuming what earlier calls left. The first file that cannot be had ends the call; unfinished
 * ones stay resumable. Statuses: FR_BAD_DATA the server does not have it or it is not what was expected;
 * FR_BAD_ENVIRONMENT no way to the server, disk full, built without libcurl; FR_BAD_USAGE not an http or https address;
 * FR_STOPPED asked to. */
fr_status fr_download(download_file *files, int count, const download_options *options, fr_error *error);
/* The size that a server gives for an address; -1 when it gives none. */
fr_status fr_download_size(const char *url, double stall, int64_t *bytes, fr_error *error);

#endif
