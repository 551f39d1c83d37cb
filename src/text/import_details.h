/* text/import_details.h: what corpus.json says about an import. */
#ifndef TEXT_IMPORT_DETAILS_H
#define TEXT_IMPORT_DETAILS_H
#include "text/import_files.h"

typedef struct import_details {
    const fr_import_options *options;
    const fr_import_summary *summary;
    const import_files *train, *valid;
    fr_split_kind split;
    int64_t split_bytes;
    double valid_fraction; /* 0 with validation files */
} import_details;

/* JSON object text; the caller frees it with free(). Reads every source once more for its SHA-256. */
fr_status import_details_format(const import_details *details, char **json, fr_error *error);

#endif
