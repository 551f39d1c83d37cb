/* A scorer from a run folder: recipe.toml, tokenizer.json and model.safetensors are all it takes.
 *
 * run.json is asked one question: whether a submission's own program made the run. Its weights may fit the
 * library's model by name and shape and still mean another function, so such a run is refused here and scored
 * through its program.
 */
#include "base/json.h"
#include "model/scorer.h"

#include <string.h>

fr_status fr_scorer_refuse_programs(const char *run_folder, fr_error *error)
{
    char path[1024];
    json_t *run;
    fr_path_join(path, sizeof path, run_folder, "run.json");
    if (!fr_path_exists(path))
        return FR_OK;
    FR_TRY(fr_json_read(&run, path, error));
    bool own = fr_json_has(json_object_get(run, "hashes"), "program");
    json_decref(run);
    if (own)
        return fr_error_set(error, FR_BAD_USAGE, run_folder, "score it through the program that made it",
                            "the run was made by a submission's own program, not by the library's model");
    return FR_OK;
}

fr_status fr_run_recipe_load(fr_recipe *recipe, const char *run_folder, fr_error *error)
{
    char path[1024], record[1024], found[65];
    json_t *run = NULL;
    fr_path_join(path, sizeof path, run_folder, "recipe.toml");
    fr_path_join(record, sizeof record, run_folder, "run.json");
    if (!fr_path_exists(path))
        return fr_error_set(error, FR_BAD_DATA, path, "give the folder a run was written to",
                            "no such file: not a run folder, or a damaged one");
    FR_TRY(fr_recipe_load(recipe, path, error));
    if (!fr_path_exists(record))
        return FR_OK;
    FR_TRY(fr_json_read(&run, record, error));
    const char *wanted = json_string_value(json_object_get(json_object_get(run, "hashes"), "recipe_file"));
    fr_status status = wanted ? fr_sha256_file(path, found, error) : FR_OK;
    if (status == FR_OK && wanted && strcmp(wanted, found) != 0)
        status = fr_error_set(error, FR_BAD_DATA, path, "put back the file the run was made with",
                              "this is not the recipe that run.json names");
    json_decref(run);
    return status;
}

fr_status fr_scorer_choose_numerics(fr_scorer *scorer, const char *wanted, fr_error *error)
{
    scorer->numerics = fr_recipe_numerics(&scorer->recipe);
    if (!wanted)
        return FR_OK;
    if (strcmp(wanted, "fp32") == 0)
        scorer->numerics = FR_NUMERICS_F32;
    else if (strcmp(wanted, "bf16") == 0)
        scorer->numerics = FR_NUMERICS_BF16;
    else
        return fr_error_set(error, FR_BAD_USAGE, "numerics", "fp32 or bf16", "'%.50s' are no numerics",
                            wanted);
    return FR_OK;
}

static fr_status load_weights(fr_scorer *scorer, const fr_scorer_options *options, fr_error *error)
{
    char path[1024];
    scorer->own_graph = fr_graph_create(error);
    if (!scorer->own_graph)
        return FR_BAD_ENVIRONMENT;
    int64_t vocab = fr_tokenizer_vocab(scorer->tokenizer);
    FR_TRY(options->model ? options->model(scorer->own_graph, &scorer->recipe, vocab, error)
                          : fr_model_build(scorer->own_graph, &scorer->recipe, vocab, error));
    FR_TRY(fr_graph_check(scorer->own_graph, error));
    size_t bytes = (size_t)fr_graph_flat_elements(scorer->own_graph) * sizeof(float);
    scorer->own_parameters = fr_allocate(bytes);
    if (!scorer->own_parameters)
        return fr_error_memory(error, bytes, "the model's weights");
    fr_path_join(path, sizeof path, scorer->run, "model.safetensors");
    FR_TRY(fr_model_load(scorer->own_graph, scorer->own_parameters, path, error));
    scorer->graph = scorer->own_graph;
    scorer->parameters = scorer->own_parameters;
    return FR_OK;
}

static fr_status load(fr_scorer *scorer, const fr_scorer_options *options, fr_error *error)
{
    char path[1024];
    if (!options->model)
        FR_TRY(fr_scorer_refuse_programs(scorer->run, error));
    FR_TRY(fr_run_recipe_load(&scorer->recipe, scorer->run, error));
    fr_path_join(path, sizeof path, scorer->run, "tokenizer.json");
    FR_TRY(fr_tokenizer_load(&scorer->tokenizer, path, error));
    FR_TRY(load_weights(scorer, options, error));
    FR_TRY(fr_scorer_choose_numerics(scorer, options->numerics, error));
    FR_TRY(fr_pool_create(&scorer->own_pool, options->threads, error));
    scorer->pool = scorer->own_pool;
    return FR_OK;
}

fr_status fr_scorer_open(fr_scorer **out, const char *run_folder, const fr_scorer_options *options,
                         fr_error *error)
{
    *out = NULL;
    if (!fr_path_is_folder(run_folder))
        return fr_error_set(error, FR_BAD_DATA, run_folder, "give the folder a run was written to",
                            "there is no such run folder");
    if (strlen(run_folder) > 900)
        return fr_error_set(error, FR_BAD_USAGE, run_folder, NULL, "the path is too long");
    fr_scorer *scorer = fr_allocate(sizeof *scorer);
    if (!scorer)
        return fr_error_memory(error, sizeof *scorer, "a scorer");
    snprintf(scorer->run, sizeof scorer->run, "%s", run_folder);
    static const fr_scorer_options plain = {0};
    fr_status status = load(scorer, options ? options : &plain, error);
    if (status == FR_OK)
        return fr_scorer_begin(out, scorer, error);
    fr_scorer_free(scorer);
    return status;
}
