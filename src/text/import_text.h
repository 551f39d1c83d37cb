/* text/import_text.h: what a document's bytes are like. See import_text.c. */
#ifndef TEXT_IMPORT_TEXT_H
#define TEXT_IMPORT_TEXT_H
#include "frontier/text.h"

/* Hash of the text after folding ASCII case and white space; *folded gets the folded length (0: blank). */
uint64_t import_fold_hash(const char *text, size_t bytes, size_t *folded);
bool import_is_utf8(const char *text, size_t bytes);
bool import_has_crlf(const char *text, size_t bytes);

#endif
