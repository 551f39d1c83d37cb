/* text/import_parquet.h: the rows of one text column of a parquet file. See import_parquet.c. */
#ifndef TEXT_IMPORT_PARQUET_H
#define TEXT_IMPORT_PARQUET_H
#include "text/duckdb.h"

typedef struct import_parquet {
    const duckdb_library *library;
    const char *path; /* the caller's */
    int descriptor;   /* the open file; DuckDB gets its name under /proc */
    duckdb_handle database, connection, chunk;
    duckdb_result result;
    bool running;           /* result is a stream that is not at its end */
    uint64_t at, size;      /* rows of the chunk: next, all */
    int64_t row, rows;      /* rows read of the file, rows it has */
} import_parquet;

/* `column` NULL: the column "text", else the only column of strings. Zero `file` first. */
fr_status import_parquet_open(import_parquet *file, const duckdb_library *library, const char *path, const char *column,
                              fr_error *error);
/* The next row: *text is valid until the next call, NULL for a null. false in *found: the end. */
fr_status import_parquet_next(import_parquet *file, bool *found, const char **text, size_t *bytes, fr_error *error);
void import_parquet_close(import_parquet *file); /* a zeroed or closed file is fine */

#endif
