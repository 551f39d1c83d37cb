/* A scorer of a foreign model: the model's graph, weights and tokenizer become the scorer's own. */
#include "model/formats/foreign.h"
#include "model/scorer.h"

static fr_status take_over(fr_scorer *scorer, fr_foreign *model, const fr_scorer_options *options, fr_error *error)
{
    snprintf(scorer->run, sizeof scorer->run, "%s", model->path);
    scorer->recipe = model->recipe;
    scorer->graph = scorer->own_graph = model->graph;
    scorer->parameters = scorer->own_parameters = model->parameters;
    scorer->tokenizer = model->tokenizer;
    model->graph = NULL;
    model->parameters = NULL;
    model->tokenizer = NULL;
    FR_TRY(fr_scorer_choose_numerics(scorer, options ? options->numerics : NULL, error));
    FR_TRY(fr_pool_create(&scorer->own_pool, options ? options->threads : 0, error));
    scorer->pool = scorer->own_pool;
    return FR_OK;
}

fr_status fr_scorer_open_foreign(fr_scorer **out, fr_foreign *model, const fr_scorer_options *options,
                                 fr_error *error)
{
    *out = NULL;
    fr_scorer *scorer = fr_allocate(sizeof *scorer);
    fr_status status = scorer ? take_over(scorer, model, options, error)
                              : fr_error_memory(error, sizeof *scorer, "a scorer");
    fr_foreign_free(model);
    if (status == FR_OK)
        return fr_scorer_begin(out, scorer, error);
    fr_scorer_free(scorer);
    return status;
}
