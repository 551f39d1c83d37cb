/* text/import_files.h: which files an import reads, and in which order. */
#ifndef TEXT_IMPORT_FILES_H
#define TEXT_IMPORT_FILES_H
#include "text/import_source.h"

typedef enum import_format { IMPORT_TEXT, IMPORT_JSONL, IMPORT_PARQUET } import_format;

typedef struct import_file {
    const char *path; /* to open it */
    const char *name; /* relative to what the user named: for the manifest */
    import_format format;
    import_compression compression;
    int64_t bytes; /* on disk */
} import_file;

/* Owned by the arena that listing was given. */
typedef struct import_files {
    import_file *list;
    int64_t count, capacity, bytes;
} import_files;

/* Appends a file, or a folder's files in byte order of their names, depth first. A path given by name must exist and
 * be of a known kind; inside folders unknown and hidden files are reported and skipped, links to folders too. */
fr_status import_files_add(import_files *files, fr_arena *arena, const char *path, fr_import_summary *summary, fr_error *error);

/* The kinds of files, for errors and help. */
extern const char import_files_known[];

#endif
