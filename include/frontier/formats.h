/* frontier/formats.h: models in other programs' formats, in and out.
 *
 * Mental model. A foreign model is a folder or file that another program wrote. Opening it translates its
 * settings into a recipe and its weights into the parameters of that recipe's graph; from then on it is a model
 * like any other: score it directly, or save it as a run folder. Export goes the other way: a run folder becomes
 * a folder that Hugging Face's `transformers` loads, as one of that library's own classes where one can express the
 * recipe, else with a model file of ours beside the weights.
 *
 *     fr_foreign *model;
 *     fr_foreign_open(&model, "hf", "gpt2", NULL, &error);
 *     fr_foreign_save(model, "runs/gpt2", &error);
 *     fr_foreign_free(model);
 *
 * Everything in a foreign file is checked before it is believed; a tensor that is missing, extra or of another shape
 * is an error that names it.
 */
#ifndef FRONTIER_FORMATS_H
#define FRONTIER_FORMATS_H
#include "frontier/model.h"

typedef struct fr_foreign fr_foreign;
typedef struct fr_foreign_options {
    const char *tokenizer_path; /* NULL: the tokenizer.json of an hf folder */
    int64_t context;            /* 0: the model's own; fewer tokens at once save memory */
} fr_foreign_options;

/* Formats: "llama2c" (a .bin of that program; tokenizer_path is needed), "hf" (a folder with config.json). */
fr_status fr_foreign_open(fr_foreign **out, const char *format, const char *path,
                          const fr_foreign_options *options, fr_error *error);
const fr_recipe *fr_foreign_recipe(const fr_foreign *model);
const char *fr_foreign_family(const fr_foreign *model); /* "llama2c", "gpt2", "llama", "nanochat", "frontier" */
int64_t fr_foreign_params(const fr_foreign *model);
const fr_tokenizer *fr_foreign_tokenizer(const fr_foreign *model);
/* Writes a run folder: recipe.toml, tokenizer.json, model.safetensors and, last, run.json with status "imported". A
 * folder that holds a run is refused. */
fr_status fr_foreign_save(const fr_foreign *model, const char *run_folder, fr_error *error);
void fr_foreign_free(fr_foreign *model);

/* A scorer of the model, which it takes over (also when it fails). */
fr_status fr_scorer_open_foreign(fr_scorer **out, fr_foreign *model, const fr_scorer_options *options,
                                 fr_error *error);

typedef struct fr_export_summary {
    const char *architecture;    /* "NanoChatForCausalLM" or "FrontierForCausalLM" */
    const char *beyond_nanochat; /* the recipe key that class cannot express; NULL: none */
    int tensors;
    int64_t bytes;
} fr_export_summary;
/* Writes config.json, model.safetensors (fp32), tokenizer.json with its settings and generation_config.json; beside
 * them modeling_frontier.py, unless the class is NanoChat's. A folder that holds a model is refused. */
fr_status fr_export_hf(const char *run_folder, const char *out_folder, fr_export_summary *summary, fr_error *error);

/* For fuzzing: the two readers from memory, an hf model without its tokenizer. */
fr_status fr_foreign_parse_llama2c(fr_foreign **out, const void *weights, size_t weight_bytes,
                                   const void *tokenizer, size_t tokenizer_bytes, fr_error *error);
fr_status fr_foreign_parse_hf(fr_foreign **out, const char *config, size_t config_bytes, const void *tensors,
                              size_t tensor_bytes, fr_error *error);

#endif
