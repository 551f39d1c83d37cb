/* json.h: JSON for the library's own modules, over jansson.
 *
 *     json_t *root;
 *     FR_TRY(fr_json_read(&root, path, error));
 *     status = fr_json_get_int(root, "steps", 0, INT64_MAX, &steps, path, error);
 *     json_decref(root);
 *
 * Reading rejects what a careful writer never makes (duplicate keys, trailing text) and names path:line.
 * Getters check type and range; the value of a missing or mistyped key is never guessed. `where` names the
 * document in errors. Borrowed results (strings, objects, arrays) live as long as the document. Writing is
 * deterministic: the same value gives the same bytes.
 */
#ifndef FRONTIER_BASE_JSON_H
#define FRONTIER_BASE_JSON_H
#include "frontier/base.h"

#include <jansson.h>

/* The caller owns *out (json_decref). The root is an object or an array. */
fr_status fr_json_parse(json_t **out, const char *text, size_t bytes, const char *origin, fr_error *error);
fr_status fr_json_read(json_t **out, const char *path, fr_error *error);
/* Calls visit for each line of a JSON-lines text; blank lines are skipped. A last line without a newline that
 * does not parse is a torn write: it is left out and *torn (may be NULL) becomes true. `line` counts from 1.
 */
fr_status fr_json_lines(const char *text, size_t bytes, const char *origin,
                        fr_status (*visit)(void *context, const json_t *value, int64_t line, fr_error *error),
                        void *context, bool *torn, fr_error *error);

bool fr_json_has(const json_t *object, const char *key); /* present and not null */
fr_status fr_json_get_int(const json_t *object, const char *key, int64_t least, int64_t most, int64_t *out,
                          const char *where, fr_error *error);
fr_status fr_json_get_real(const json_t *object, const char *key, double *out, const char *where,
                           fr_error *error);
fr_status fr_json_get_bool(const json_t *object, const char *key, bool *out, const char *where,
                           fr_error *error);
fr_status fr_json_get_string(const json_t *object, const char *key, const char **out, const char *where,
                             fr_error *error);
fr_status fr_json_get_object(const json_t *object, const char *key, json_t **out, const char *where,
                             fr_error *error);
fr_status fr_json_get_array(const json_t *object, const char *key, json_t **out, const char *where,
                            fr_error *error);

/* Setters return false only when memory runs out. A real that is NaN or infinite is written as null; text
 * that is not UTF-8 gets U+FFFD for each stray byte; fr_json_set takes over `value` (NULL, a failed creation,
 * gives false). */
bool fr_json_set(json_t *object, const char *key, json_t *value);
bool fr_json_set_int(json_t *object, const char *key, int64_t value);
bool fr_json_set_real(json_t *object, const char *key, double value);
bool fr_json_set_bool(json_t *object, const char *key, bool value);
bool fr_json_set_string(json_t *object, const char *key, const char *value);
json_t *fr_json_text(const char *bytes,
                     size_t count); /* a string value from any bytes, as above; NULL: no memory */

/* Keys in byte order, reals as the shortest text that reads back equal; indent 0 = one line without spaces.
 */
void fr_json_print(const json_t *value, int indent, fr_buffer *out);
fr_status fr_json_write(const json_t *value, const char *path,
                        fr_error *error); /* durable; indent 2, final newline */

#endif
