/* text/fetch_receipt.h: fetch.json, what was fetched into a folder. See fetch_receipt.c. */
#ifndef TEXT_FETCH_RECEIPT_H
#define TEXT_FETCH_RECEIPT_H
#include "frontier/text.h"

#include <jansson.h>

typedef struct fetch_receipt {
    char path[1200];
    json_t *root, *files; /* name -> {url, bytes, sha256}; files is in root */
} fetch_receipt;

/* Reads the folder's receipt or begins one; a folder of another origin is refused. */
fr_status fetch_receipt_open(fetch_receipt *receipt, const char *folder, const fr_fetch_origin *origin, fr_error *error);
/* Is the file there already? It is when it is listed and has its size, and with `verify` its hash, as listed. */
fr_status fetch_receipt_keeps(const fetch_receipt *receipt, const char *name, const char *path, bool verify, bool *kept,
                              fr_error *error);
fr_status fetch_receipt_add(fetch_receipt *receipt, const char *name, const char *url, int64_t bytes, const char *sha256,
                            fr_error *error); /* and writes it */
fr_status fetch_receipt_measure(const char *path, int64_t *bytes, fr_error *error);
void fetch_receipt_close(fetch_receipt *receipt);

#endif
