/* text/import_json.h: the text of one JSON line. See import_json.c. */
#ifndef TEXT_IMPORT_JSON_H
#define TEXT_IMPORT_JSON_H
#include "frontier/text.h"

typedef struct import_json {
    fr_import_kind problem; /* FR_IMPORT_BAD_JSON, _NO_TEXT, _NULL_TEXT; FR_IMPORT_KINDS when there is text */
    char *text;             /* inside the line */
    size_t bytes;
    bool duplicate_key;     /* the text key occurs more than once; the last one counts */
    bool lone_surrogate;    /* an escaped lone surrogate became U+FFFD */
} import_json;

/* Reads an object on one line and finds string `key`. Strict JSON (RFC 8259), except that string bytes need not be
 * UTF-8. The line is overwritten: the text is decoded in place. */
void import_json_line(char *line, size_t bytes, const char *key, import_json *out);

#endif
