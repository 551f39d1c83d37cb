/* The inside of a bundle, shared by its two readers and the file that joins them.
 *
 * Both readers work on a text in memory and name origin:line in errors, so they can be tested and fuzzed
 * without files. Strings live in the bundle's arena.
 */
#ifndef FRONTIER_EVAL_CORE_BUNDLE_H
#define FRONTIER_EVAL_CORE_BUNDLE_H
#include "frontier/core.h"

enum { CORE_MAX_TASKS = 256 };

struct fr_core_bundle {
    fr_core_task tasks[CORE_MAX_TASKS];
    int count;
    fr_arena arena;
};

/* core.yaml: appends tasks; `file` becomes the dataset_uri as written, chance and category stay unset. */
fr_status core_yaml_parse(fr_core_bundle *bundle, const char *text, size_t bytes, const char *origin,
                          fr_error *error);
/* eval_meta_data.csv: fills chance and category of the bundle's tasks; each must have one row. */
fr_status core_table_parse(fr_core_bundle *bundle, const char *text, size_t bytes, const char *origin,
                           fr_error *error);
/* Length of the byte-order mark that some editors put in front of a file: 3 or 0. It is no part of the text. */
size_t core_mark_bytes(const char *text, size_t bytes);

#endif
