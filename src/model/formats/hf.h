/* What the readers and the writer of Hugging Face folders share: families and their tables of names.
 *
 * A family is a class of models of the `transformers` library that a recipe can express. Its rows say which of
 * our parameters is which of its tensors; # is the block. A row may take a third of the tensor, or the
 * tensor transposed, or with the two halves of every head swapped: Llama's rotation turns the channels (m, m + d/2) of
 * a head by +angle, ours by -angle, and swapping the halves of queries and keys turns one into the other.
 */
#ifndef FRONTIER_MODEL_FORMATS_HF_H
#define FRONTIER_MODEL_FORMATS_HF_H
#include "model/formats/foreign.h"

enum { HF_NAME = 200 };

typedef struct hf_row {
    const char *ours, *theirs;
    int part;        /* 1, 2, 3: that third of it; 0: all */
    bool transposed; /* input x output */
    bool halves;     /* the halves of every head change places */
} hf_row;

typedef struct hf_family {
    const char *model_type, *architecture;
    const hf_row *rows; /* ends with ours NULL; a family without rows uses our names */
    const char *prefix; /* may stand before every name, or not; NULL: none */
    const char *const *ignored; /* endings of tensors that hold no weights; ends with NULL */
    fr_status (*recipe)(fr_foreign *model, const json_t *config, fr_error *error);
} hf_family;

const hf_family *hf_find_family(const char *model_type); /* NULL: none */
extern const hf_family hf_nanochat, hf_frontier;

/* Fills in `theirs` (HF_NAME bytes) for a parameter of ours; returns the row, or NULL if the family has none. */
const hf_row *hf_translate(const hf_family *family, const char *ours, char *theirs);

/* What config.json of each family becomes. */
fr_status hf_recipe_gpt2(fr_foreign *model, const json_t *config, fr_error *error);
fr_status hf_recipe_llama(fr_foreign *model, const json_t *config, fr_error *error);
fr_status hf_recipe_nanochat(fr_foreign *model, const json_t *config, fr_error *error);
fr_status hf_recipe_frontier(fr_foreign *model, const json_t *config, fr_error *error);

/* config.json: fills recipe and vocab of the model, names the family. */
fr_status hf_read_config(fr_foreign *model, const hf_family **family, const json_t *config, int64_t context,
                         fr_error *error);

#endif
