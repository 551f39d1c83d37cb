/* The inside of a foreign model, and what its readers share.
 *
 * A reader does two things: it fills the recipe (through fr_recipe_set, so every number of a foreign file meets the
 * range of its key), and it answers, for a parameter of the graph, where the parameter lies in the file: a view,
 * that is a pointer, a type and two strides. Strides express what formats do to a matrix: transposed, three in
 * one, or the two halves of every head swapped. foreign_fill builds the graph, asks for every view, checks all
 * shapes and only then takes memory for the weights.
 */
#ifndef FRONTIER_MODEL_FORMATS_FOREIGN_H
#define FRONTIER_MODEL_FORMATS_FOREIGN_H
#include "base/json.h"
#include "frontier/formats.h"

struct fr_foreign {
    fr_recipe recipe;
    fr_tokenizer *tokenizer;
    fr_graph *graph;
    float *parameters;
    int64_t vocab;
    const char *family;
    char path[1024];
    json_t *files; /* what was read: array of {file, bytes, sha256}; NULL when it came from memory */
};

fr_status foreign_create(fr_foreign **out, const char *family, const char *path, fr_error *error);
/* foreign_set(f, error, "depth=%d", 4): a key of [model]. */
fr_status foreign_set(fr_foreign *model, fr_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets a NULL-terminated list of assignments. */
fr_status foreign_set_all(fr_foreign *model, const char *const *assignments, fr_error *error);
/* Sets the context and a batch that fits it; checks the recipe. */
fr_status foreign_set_context(fr_foreign *model, int64_t context, fr_error *error);
/* Records a file that was read, by content. */
fr_status foreign_record(fr_foreign *model, const char *name, const char *path, fr_error *error);

/* Element (r, c) of a parameter is data[r * row_stride + c * column_stride]. */
typedef struct foreign_view {
    const char *name; /* as the file calls it */
    const void *data;
    fr_dtype dtype;
    int64_t rows, columns, row_stride, column_stride;
    int64_t swap; /* > 0: rows (of one row: columns) come in groups of so many, whose halves change places */
} foreign_view;
/* Finds a parameter's view; name is "transformer.h.3.ln_1.weight" or the like. */
typedef fr_status (*foreign_find)(void *context, const char *name, foreign_view *view, fr_error *error);
fr_status foreign_fill(fr_foreign *model, foreign_find find, void *context, fr_error *error);

#endif
