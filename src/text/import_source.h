/* text/import_source.h: the bytes of a file, decompressed. See import_source.c. */
#ifndef TEXT_IMPORT_SOURCE_H
#define TEXT_IMPORT_SOURCE_H
#include "frontier/text.h"

#include <zlib.h>
#include <zstd.h>

typedef enum import_compression { IMPORT_PLAIN, IMPORT_GZIP, IMPORT_ZSTD } import_compression;

typedef struct import_source {
    FILE *file;
    const char *path; /* the caller's */
    import_compression compression;
    z_stream gzip;
    bool gzip_ready;
    ZSTD_DCtx *zstd;
    uint8_t *input;
    size_t input_at, input_size;
    bool input_ended;   /* the file has no more bytes */
    bool inside;        /* in the middle of a gzip member or zstd frame */
    bool truncated;     /* known at the end: the compressed data is cut short */
    int64_t read_bytes; /* of the file, for progress */
} import_source;

fr_status import_source_open(import_source *source, const char *path, import_compression compression, fr_error *error);
/* Up to `capacity` bytes; *got 0 means the end. */
fr_status import_source_read(import_source *source, char *out, size_t capacity, size_t *got, fr_error *error);
void import_source_close(import_source *source); /* a zeroed or closed source is fine */

#endif
