/* failure.c: explaining a loss that is not a number, and keeping the evidence.
 *
 * When loss or gradient go bad, the weights are still those the step began with and the step's rows are
 * still in memory. So the micro-batches are run again, the suspicious one first, step by step, until a
 * tensor with NaN or Inf is found and can be named. That micro-batch and the weights go into the run folder
 * (failed-batch.safetensors, failed-model.safetensors), where anybody can run them again. Earlier
 * checkpoints are not touched.
 */
#include "train/session.h"

#include "train/optimizer.h"

#include <math.h>
#include <string.h>

static const char batch_name[] = "failed-batch.safetensors", weights_name[] = "failed-model.safetensors";

typedef struct finding {
    int64_t place; /* shard * micro_batches + micro */
    char tensor[128];
} finding;

static fr_status search(fr_session *session, int64_t place, finding *found, fr_error *error)
{
    fr_micro_run run;
    const char *tensor = NULL;
    fr_session_stage(session, 0, place / session->micro_batches, place % session->micro_batches);
    fr_session_micro_run(session, 0, session->shards.memory[0], false, &run);
    FR_TRY(fr_plan_find_nonfinite(session->plan, &run.args, &tensor, error));
    if (tensor) {
        found->place = place;
        snprintf(found->tensor, sizeof found->tensor, "%s", tensor);
    }
    return FR_OK;
}

/* The micro-batch most to blame: the first whose loss is not finite, else the one with the largest. */
static int64_t most_suspicious(const fr_session *session)
{
    int64_t count = session->shape.shards * session->micro_batches, worst = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(session->micro_losses[i]))
            return i;
        if (session->micro_losses[i] > session->micro_losses[worst])
            worst = i;
    }
    return worst;
}

static fr_status find_tensor(fr_session *session, finding *found, fr_error *error)
{
    int64_t count = session->shape.shards * session->micro_batches, first = most_suspicious(session);
    bool losses_finite = isfinite(session->loss);
    const char *weight = fr_nonfinite_parameter(session->graph, session->parameters, session->pool);
    *found = (finding){.place = first};
    if (weight) {
        snprintf(found->tensor, sizeof found->tensor, "%s", weight);
        return FR_OK;
    }
    /* The search overwrites a gradient buffer, so the summed gradient is looked at before. */
    const char *gradient =
        losses_finite && fr_shards_sum(&session->shards)
            ? fr_nonfinite_parameter(session->graph, fr_shards_sum(&session->shards), session->pool)
            : NULL;
    FR_TRY(search(session, first, found, error));
    for (int64_t i = 0; i < count && !found->tensor[0] && gradient; i++)
        FR_TRY(search(session, i, found, error));
    if (!found->tensor[0] && gradient)
        snprintf(found->tensor, sizeof found->tensor, "gradient of %s", gradient);
    return FR_OK;
}

static fr_status write_evidence(fr_session *session, const finding *found, fr_error *error)
{
    const fr_batch_shape *shape = &session->shape;
    char path[1024], step[24], scale[40];
    fr_session_stage(session, 0, found->place / session->micro_batches,
                     found->place % session->micro_batches);
    const int32_t *tokens = session->staging[0];
    fr_tensor_entry entries[] = {
        {.name = "tokens",
         .dtype = FR_I32,
         .dims = 2,
         .shape = {shape->micro_rows, shape->T},
         .data = tokens},
        {.name = "targets",
         .dtype = FR_I32,
         .dims = 2,
         .shape = {shape->micro_rows, shape->T},
         .data = tokens + shape->micro_rows * shape->T},
    };
    snprintf(step, sizeof step, "%lld", (long long)session->totals.step);
    snprintf(scale, sizeof scale, "%.9g", (double)session->loss_scale);
    const char *metadata[] = {"role",       "failed batch", "step",   step,
                              "loss_scale", scale,          "tensor", found->tensor};
    FR_TRY(fr_tensor_file_write(fr_session_path(session, batch_name, path), entries, 2, metadata, 4, error));
    return fr_model_save(session->graph, session->parameters, fr_session_path(session, weights_name, path),
                         error);
}

fr_status fr_session_diagnose(fr_session *session, fr_error *error)
{
    finding found = {0};
    fr_error local = {0}, *place = error ? error : &local;
    char hint[200];
    fr_status status = find_tensor(session, &found, place);
    if (status == FR_OK)
        status = write_evidence(session, &found, place);
    if (status != FR_OK)
        return fr_session_fail(session, status, place);
    snprintf(hint, sizeof hint, "lower the learning rate; the batch is kept in %s, its weights in %s",
             batch_name, weights_name);
    const char *tensor = found.tensor[0] ? found.tensor : "loss";
    if (found.tensor[0])
        fr_error_set(place, FR_ANSWER_NO, tensor, hint, "step %lld: NaN or Inf (loss %g)",
                     (long long)session->totals.step, session->loss);
    else
        fr_error_set(place, FR_ANSWER_NO, tensor, hint, "step %lld: a loss of %g is beyond repair",
                     (long long)session->totals.step, session->loss);
    return fr_session_fail(session, FR_ANSWER_NO, place);
}

/* ---- running it again ---- */

typedef struct replay {
    fr_recipe recipe;
    fr_tokenizer *tokenizer;
    fr_graph *graph;
    fr_plan *plan;
    fr_tensor_file *batch;
    fr_prepared *prepared;
    float *parameters, *gradients;
    void *arena;
} replay;

static void release_replay(replay *r)
{
    fr_tokenizer_free(r->tokenizer);
    fr_prepared_free(r->prepared);
    fr_plan_free(r->plan);
    fr_graph_free(r->graph);
    fr_tensor_file_close(r->batch);
    fr_deallocate(r->parameters);
    fr_deallocate(r->gradients);
    fr_deallocate(r->arena);
}

static const fr_tensor_entry *ids_of(const replay *r, const char *name)
{
    const fr_tensor_entry *entry = fr_tensor_file_find(r->batch, name);
    return entry && entry->dtype == FR_I32 && entry->dims == 2 && entry->shape[0] > 0 && entry->shape[1] > 0
               ? entry
               : NULL;
}

static fr_status open_replay(replay *r, const char *folder, fr_error *error)
{
    char path[1024];
    FR_TRY(fr_recipe_load(&r->recipe, fr_path_join(path, sizeof path, folder, "recipe.toml"), error));
    FR_TRY(
        fr_tokenizer_load(&r->tokenizer, fr_path_join(path, sizeof path, folder, "tokenizer.json"), error));
    FR_TRY(fr_tensor_file_open(&r->batch, fr_path_join(path, sizeof path, folder, batch_name), error));
    const fr_tensor_entry *tokens = ids_of(r, "tokens"), *targets = ids_of(r, "targets");
    if (!tokens || !targets || memcmp(tokens->shape, targets->shape, 2 * sizeof tokens->shape[0]) != 0)
        return fr_error_set(error, FR_BAD_DATA, path, NULL,
                            "tokens and targets are missing or of different shapes");
    r->graph = fr_graph_create(error);
    if (!r->graph)
        return FR_BAD_ENVIRONMENT;
    FR_TRY(fr_model_build(r->graph, &r->recipe, fr_tokenizer_vocab(r->tokenizer), error));
    FR_TRY(fr_graph_check(r->graph, error));
    size_t bytes = (size_t)fr_graph_flat_elements(r->graph) * sizeof(float);
    r->parameters = fr_allocate(bytes);
    r->gradients = fr_allocate(bytes);
    if (!r->parameters || !r->gradients)
        return fr_error_memory(error, 2 * bytes, "the weights of the failed step");
    return fr_model_load(r->graph, r->parameters, fr_path_join(path, sizeof path, folder, weights_name),
                         error);
}

static fr_status plan_replay(replay *r, fr_error *error)
{
    static const char *const outputs[] = {"loss"};
    const fr_tensor_entry *tokens = ids_of(r, "tokens");
    fr_plan_options options = {
        .extent = {tokens->shape[0], tokens->shape[1]},
        .numerics = fr_recipe_numerics(&r->recipe),
        .residual_bf16 = strcmp(r->recipe.model.residual, "bf16") == 0,
        .train = true,
        .outputs = outputs,
        .output_count = 1,
    };
    FR_TRY(fr_cpu_kernels(&options.kernels, error));
    FR_TRY(fr_plan_create(&r->plan, r->graph, &options, error));
    FR_TRY(fr_prepared_create(&r->prepared, r->graph, options.numerics, options.kernels, error));
    fr_prepared_refresh(r->prepared, r->parameters, NULL);
    r->arena = fr_allocate(fr_plan_arena_bytes(r->plan));
    return r->arena ? FR_OK : fr_error_memory(error, fr_plan_arena_bytes(r->plan), "activations");
}

static fr_status run_replay(replay *r, const char *folder, fr_replayed_batch *out, fr_error *error)
{
    FR_TRY(open_replay(r, folder, error));
    FR_TRY(plan_replay(r, error));
    const fr_tensor_entry *tokens = ids_of(r, "tokens"), *targets = ids_of(r, "targets");
    const char *step = fr_tensor_file_metadata(r->batch, "step"), *tensor = NULL;
    FR_TRY(fr_parse_int(step ? step : "", 0, INT64_MAX, &out->step, batch_name, error));
    int64_t valid = 0, count = tokens->shape[0] * tokens->shape[1];
    for (int64_t i = 0; i < count; i++)
        valid += ((const int32_t *)targets->data)[i] >= 0;
    float scale = valid > 0 ? (float)(1 / (double)valid) : 0;
    fr_binding inputs[] = {{"tokens", tokens->data}, {"targets", targets->data}, {"loss_scale", &scale}};
    fr_run_args args = {.arena = r->arena,
                        .parameters = r->parameters,
                        .prepared = fr_prepared_table(r->prepared),
                        .gradients = r->gradients,
                        .inputs = inputs,
                        .input_count = 3};
    FR_TRY(fr_plan_run(r->plan, &args, error));
    fr_dtype dtype;
    out->loss = (double)*(const float *)fr_plan_output(r->plan, r->arena, "loss", &dtype);
    FR_TRY(fr_plan_find_nonfinite(r->plan, &args, &tensor, error));
    snprintf(out->tensor, sizeof out->tensor, "%s", tensor ? tensor : "");
    return FR_OK;
}

fr_status fr_train_replay_batch(const char *run_folder, fr_replayed_batch *out, fr_error *error)
{
    replay r = {0};
    *out = (fr_replayed_batch){0};
    fr_status status = run_replay(&r, run_folder, out, error);
    release_replay(&r);
    return status;
}
