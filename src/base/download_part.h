/* base/download_part.h: an unfinished download on disk. See download_part.c. */
#ifndef BASE_DOWNLOAD_PART_H
#define BASE_DOWNLOAD_PART_H
#include "frontier/base.h"

typedef struct download_part {
    char target[1024], path[1056], state[1088]; /* FILE, FILE.part, FILE.part.json */
    int descriptor;
    int64_t bytes;                 /* in the part */
    /* What the server said of the whole file when the part was begun. */
    char etag[256], modified[64];  /* strong validators; "" = none */
    char sha256[65];               /* "" = not said */
    int64_t total;                 /* bytes; -1 = not said */
} download_part;

/* Opens or creates the part of `target`, alone: a second process gets an error. What an earlier attempt left is kept
 * when its state is there, is of the same address and can be continued; otherwise the part starts empty. */
fr_status download_part_open(download_part *part, const char *target, const char *url, fr_error *error);
bool download_part_resumable(const download_part *part); /* has bytes, and a way to know that they are of the same file */
fr_status download_part_restart(download_part *part, fr_error *error);                  /* back to no bytes */
fr_status download_part_save(const download_part *part, const char *url, fr_error *error); /* what the server said */
fr_status download_part_append(download_part *part, const void *bytes, size_t count, fr_error *error);
fr_status download_part_finish(download_part *part, fr_error *error);  /* becomes the target, durably */
void download_part_discard(download_part *part);                       /* removes part and state */
void download_part_close(download_part *part);                         /* keeps both; a zeroed or closed one is fine */

#endif
