/* text/import_reader.h: from files to batches of raw records, in order. See import_reader.c. */
#ifndef TEXT_IMPORT_READER_H
#define TEXT_IMPORT_READER_H
#include "text/import_files.h"
#include "text/import_parquet.h"

/* A document of a .txt, a line of a .jsonl that is still JSON, or a row of a .parquet. */
typedef struct import_record {
    size_t offset, bytes; /* in the batch's text */
    int64_t file, line;
} import_record;

typedef struct import_batch {
    char *text;
    size_t bytes, capacity;
    import_record *records;
    int64_t count, record_capacity;
} import_batch;
void import_batch_release(import_batch *batch);

typedef struct import_reader {
    const import_files *files;
    fr_split_kind split;
    size_t split_bytes;
    fr_import_summary *summary; /* NULL: this pass reports nothing */
    const char *column;         /* of a .parquet; NULL: choose */
    const duckdb_library *library; /* loaded when there is a .parquet */
    import_source source;
    import_parquet parquet;   /* instead of source, for the open .parquet */
    int64_t file;             /* index of the open or next file */
    bool open, started;       /* started: past a byte-order mark */
    bool at_end;              /* the open file's bytes are all in the window, and none is missing */
    char *window;             /* bytes [start, end) are unread */
    size_t start, end, capacity;
    size_t scanned;           /* beyond start: known to hold no end of record */
    size_t line_start;        /* beyond start: the block's line being looked at */
    size_t content;           /* beyond start: end of the block's last line with text */
    int64_t line, found;      /* line at start, or row; records found in this file */
    int64_t done_bytes;       /* on disk, of files finished */
} import_reader;

void import_reader_init(import_reader *reader, const import_files *files, const fr_import_options *options,
                        const duckdb_library *library, fr_import_summary *summary);
/* Fills a batch with at least one record; count 0 means all files are read. */
fr_status import_reader_next(import_reader *reader, import_batch *batch, fr_error *error);
int64_t import_reader_done(const import_reader *reader); /* bytes on disk read so far */
void import_reader_release(import_reader *reader);

#endif
