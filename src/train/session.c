/* session.c: making a run ready, and taking it apart.
 *
 * Everything that can fail or take time happens here, before charging starts: the data folder is opened,
 * the graph is built, the plan laid out, memory checked and taken, weights made or loaded, the peak of the
 * processor measured. The clock is created as soon as its reserve is known, because the free start-up time
 * counts from there.
 *
 * Threads: up to as many as there are shards, each runs whole shards alone. With more threads than shards,
 * the shards go one after the other and every operator is split over the whole pool; the bits are the same.
 */
#include "train/session.h"

#include "base/files.h"
#include "train/memory.h"
#include "train/optimizer.h"
#include "train/timing.h"

#include <math.h>
#include <string.h>

/* ---- small things ---- */

fr_status fr_session_fail(fr_session *session, fr_status status, const fr_error *error)
{
    session->state = FR_SESSION_FAILED;
    if (error)
        session->failure = *error;
    session->failure.status = status;
    return status;
}

char *fr_session_path(const fr_session *session, const char *name, char out[1024])
{
    return fr_path_join(out, 1024, session->options.run_folder, name);
}

static fr_status copy_text(fr_session *session, const char **text, fr_error *error)
{
    if (!*text)
        return FR_OK;
    char *copy = fr_arena_strdup(&session->arena, *text);
    if (!copy)
        return fr_error_memory(error, strlen(*text) + 1, "the options of a run");
    *text = copy;
    return FR_OK;
}

static fr_status copy_options(fr_session *session, const fr_train_options *options, fr_error *error)
{
    session->options = *options;
    fr_train_options *o = &session->options;
    if (!o->data_folder || !o->run_folder)
        return fr_error_set(error, FR_BAD_USAGE, "train", NULL, "a run needs a data folder and a run folder");
    if (strlen(o->run_folder) > 900)
        return fr_error_set(error, FR_BAD_USAGE, "run folder", "use a shorter path",
                            "the path of the run folder is too long");
    if (!o->recipe_name)
        o->recipe_name = "built-in";
    if (!o->clock_text)
        o->clock_text = "wall";
    const char **texts[] = {&o->recipe_name, &o->data_folder,    &o->run_folder,       &o->clock_text,
                            &o->eval_set,    &o->program_sha256, &o->clock.replay_path};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        FR_TRY(copy_text(session, texts[i], error));
    return FR_OK;
}

/* ---- the parts of a run, in the order they are made ---- */

static fr_status prepare_folder(const fr_session *session, fr_error *error)
{
    static const char *const marks[] = {"run.json", "model.safetensors", "optimizer.safetensors"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0] && !session->options.resume; i++) {
        char path[1024];
        if (fr_path_exists(fr_session_path(session, marks[i], path)))
            return fr_error_set(error, FR_BAD_USAGE, session->options.run_folder,
                                "continue it with --resume, or choose another folder with --out",
                                "the folder already holds a run");
    }
    return fr_folder_make(session->options.run_folder, error);
}

static fr_status build_graph(fr_session *session, fr_error *error)
{
    session->graph = fr_graph_create(error);
    if (!session->graph)
        return FR_BAD_ENVIRONMENT;
    int64_t vocab = fr_tokenizer_vocab(fr_corpus_tokenizer(session->corpus));
    fr_status (*build)(fr_graph *, const fr_recipe *, int64_t, fr_error *) =
        session->options.model ? session->options.model : fr_model_build;
    FR_TRY(build(session->graph, &session->options.recipe, vocab, error));
    FR_TRY(fr_graph_check(session->graph, error));
    if (fr_graph_parameters(session->graph) == 0)
        return fr_error_set(error, FR_BAD_USAGE, "model", NULL, "the model has no parameters");
    return FR_OK;
}

static fr_status make_plan(fr_session *session, fr_error *error)
{
    static const char *const outputs[] = {"loss"};
    session->numerics = fr_recipe_numerics(&session->options.recipe);
    FR_TRY(fr_cpu_kernels(&session->kernels, error));
    fr_plan_options options = {
        .extent = {session->shape.micro_rows, session->shape.T},
        .numerics = session->numerics,
        .residual_bf16 = strcmp(session->options.recipe.model.residual, "bf16") == 0,
        .train = true,
        .outputs = outputs,
        .output_count = 1,
        .kernels = session->kernels,
    };
    return fr_plan_create(&session->plan, session->graph, &options, error);
}

static fr_status choose_workers(fr_session *session, fr_error *error)
{
    FR_TRY(fr_pool_create(&session->pool, session->options.threads, error));
    int threads = fr_pool_threads(session->pool);
    session->workers = threads <= session->shape.shards ? threads : 1;
    session->operators = threads <= session->shape.shards ? NULL : session->pool;
    return FR_OK;
}

/* Seconds to keep for the last save: what the bytes take on a slow disk and one second, but at most half the budget. */
static double reserve_for(const fr_session *session, int64_t bytes)
{
    const fr_clock_options *clock = &session->options.clock;
    if (clock->kind != FR_CLOCK_WALL || clock->budget <= 0)
        return clock->reserve;
    double reserve = (double)bytes / 200e6 + 1;
    if (reserve > clock->budget / 2)
        reserve = clock->budget / 2;
    return clock->reserve > reserve ? clock->reserve : reserve;
}

static fr_status make_clock(fr_session *session, fr_error *error)
{
    int64_t optimizer_bytes;
    char path[1024];
    FR_TRY(fr_optimizer_estimate(session->graph, &session->options.recipe, 0, &optimizer_bytes, error));
    fr_clock_options clock = session->options.clock;
    clock.log_path = session->options.rehearsal ? NULL : fr_session_path(session, "clock.jsonl", path);
    clock.reserve = reserve_for(session, fr_session_checkpoint_bytes(session->graph, optimizer_bytes));
    if (session->options.recipe.clock.max_steps > 0)
        clock.max_steps = session->options.recipe.clock.max_steps;
    if (clock.budget <= 0 && clock.max_steps <= 0 && clock.kind != FR_CLOCK_REPLAY)
        return fr_error_set(error, FR_BAD_USAGE, "budget", "give a budget or clock.max_steps",
                            "nothing would ever end this run");
    session->options.clock.reserve = clock.reserve;
    return fr_clock_create(&session->clock, &clock, error);
}

static fr_status take_buffers(fr_session *session, fr_error *error)
{
    const fr_batch_shape *shape = &session->shape;
    size_t elements = (size_t)fr_graph_flat_elements(session->graph), workers = (size_t)session->workers;
    size_t rows = (size_t)(shape->most_rows * shape->T), micro = (size_t)(shape->micro_rows * shape->T);
    size_t losses = (size_t)(shape->shards * shape->most_micro_batches);
    session->parameters = fr_allocate(elements * sizeof(float));
    session->inputs = fr_allocate(rows * sizeof(int32_t));
    session->targets = fr_allocate(rows * sizeof(int32_t));
    session->micro_losses = fr_allocate(losses * sizeof(double));
    session->arenas = fr_allocate(workers * sizeof(void *));
    session->staging = fr_allocate(workers * sizeof(int32_t *));
    if (!session->parameters || !session->inputs || !session->targets || !session->micro_losses ||
        !session->arenas || !session->staging)
        return fr_error_memory(error, elements * sizeof(float) + rows * 2 * sizeof(int32_t),
                               "weights and rows");
    for (size_t i = 0; i < workers; i++) {
        session->arenas[i] = fr_allocate(fr_plan_arena_bytes(session->plan));
        session->staging[i] = fr_allocate(2 * micro * sizeof(int32_t));
        if (!session->arenas[i] || !session->staging[i])
            return fr_error_memory(error, fr_plan_arena_bytes(session->plan), "activations");
    }
    return fr_shards_init(&session->shards, shape->shards, (int64_t)elements, session->workers, error);
}

static fr_status open_loader(fr_session *session, fr_error *error)
{
    const fr_recipe *recipe = &session->options.recipe;
    fr_loader_options options = {
        .split = FR_TRAIN,
        .packing = strcmp(recipe->data.packing, "stream") == 0 ? FR_PACK_STREAM : FR_PACK_BEST_FIT,
        .context = recipe->model.context,
        .buffer = recipe->data.buffer,
        .pool_rows = recipe->data.pool_rows,
        .mask_bos_target = recipe->data.mask_bos_target,
        .seed = session->options.seed,
        .prefetch = true,
    };
    return fr_loader_create(&session->loader, session->corpus, &options, error);
}

static fr_status make_weights(fr_session *session, fr_error *error)
{
    bool found = false;
    if (session->options.resume && !session->options.rehearsal)
        FR_TRY(fr_file_remove_strays(session->options.run_folder, error));
    if (session->options.resume)
        FR_TRY(fr_session_restore(session, &found, error));
    if (!found)
        fr_graph_initialize(session->graph, session->options.seed, session->pool, session->parameters);
    if (session->options.resume && !found)
        fr_progress_message(session->options.progress, "no checkpoint in %s: starting from the first step",
                            session->options.run_folder);
    FR_TRY(
        fr_prepared_create(&session->prepared, session->graph, session->numerics, session->kernels, error));
    fr_prepared_refresh(session->prepared, session->parameters, session->pool);
    return FR_OK;
}

static fr_status write_start_files(fr_session *session, fr_error *error)
{
    char path[1024];
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_recipe_write(&session->options.recipe, &text);
    fr_status status = text.failed ? fr_error_memory(error, text.length, "recipe.toml")
                                   : fr_file_write(fr_session_path(session, "recipe.toml", path), text.data,
                                                   text.length, error);
    fr_buffer_release(&text);
    FR_TRY(status);
    FR_TRY(fr_tokenizer_save(fr_corpus_tokenizer(session->corpus),
                             fr_session_path(session, "tokenizer.json", path), error));
    FR_TRY(fr_step_log_open(&session->log, fr_session_path(session, "log.jsonl", path), session->totals.step,
                            error));
    return fr_run_record_write(session, "running", error);
}

/* Only the wall clock's seconds mean something for a share of the processor's peak. */
static fr_status measure_peak(fr_session *session, fr_error *error)
{
    session->peak_flops = session->options.peak_flops > 0 ? session->options.peak_flops : 0;
    if (session->options.peak_flops != 0 || session->options.clock.kind != FR_CLOCK_WALL)
        return FR_OK;
    fr_peak peak;
    FR_TRY(fr_cpu_peak(fr_pool_threads(session->pool), 0.3, &peak, error));
    session->peak_flops = peak.flops;
    return FR_OK;
}

static fr_status init_session(fr_session *session, const fr_train_options *options, fr_error *error)
{
    FR_TRY(copy_options(session, options, error));
    FR_TRY(fr_recipe_check(&session->options.recipe, error));
    FR_TRY(fr_batch_shape_of(&session->options.recipe, &session->shape, error));
    FR_TRY(fr_corpus_open(&session->corpus, session->options.data_folder, false, error));
    FR_TRY(build_graph(session, error));
    if (!session->options.rehearsal)
        FR_TRY(prepare_folder(session, error));
    FR_TRY(make_clock(session, error));
    FR_TRY(make_plan(session, error));
    FR_TRY(choose_workers(session, error));
    FR_TRY(fr_session_check_memory(session, error));
    FR_TRY(take_buffers(session, error));
    FR_TRY(fr_optimizer_create(&session->optimizer, session->graph, &session->options.recipe, session->pool,
                               error));
    FR_TRY(open_loader(session, error));
    FR_TRY(fr_run_record_identify(session, error));
    FR_TRY(make_weights(session, error));
    FR_TRY(measure_peak(session, error));
    return session->options.rehearsal ? FR_OK : write_start_files(session, error);
}

fr_status fr_session_create(fr_session **out, const fr_train_options *options, fr_error *error)
{
    *out = NULL;
    fr_session *session = fr_allocate(sizeof *session);
    if (!session)
        return fr_error_memory(error, sizeof *session, "a training session");
    fr_arena_init(&session->arena, 1 << 14);
    session->loader_row = -1;
    session->saved_step = -1;
    session->totals.loss_first = session->totals.loss_last = session->loss = session->last_val_bpb = NAN;
    fr_status status = init_session(session, options, error);
    if (status == FR_OK)
        *out = session;
    else
        fr_session_free(session);
    return status;
}

void fr_session_free(fr_session *session)
{
    if (!session)
        return;
    fr_step_log_close(&session->log);
    fr_clock_free(session->clock);
    fr_loader_free(session->loader);
    fr_optimizer_free(session->optimizer);
    fr_prepared_free(session->prepared);
    fr_plan_free(session->plan);
    fr_shards_release(&session->shards);
    for (int i = 0; i < session->workers; i++) {
        fr_deallocate(session->arenas ? session->arenas[i] : NULL);
        fr_deallocate(session->staging ? session->staging[i] : NULL);
    }
    fr_deallocate(session->arenas);
    fr_deallocate(session->staging);
    fr_deallocate(session->parameters);
    fr_deallocate(session->inputs);
    fr_deallocate(session->targets);
    fr_deallocate(session->micro_losses);
    fr_deallocate(session->record);
    fr_graph_free(session->graph);
    fr_pool_free(session->pool);
    fr_corpus_free(session->corpus);
    fr_arena_release(&session->arena);
    fr_deallocate(session);
}

/* ---- access ---- */

const fr_recipe *fr_session_recipe(const fr_session *session)
{
    return &session->options.recipe;
}

const fr_graph *fr_session_graph(const fr_session *session)
{
    return session->graph;
}

float *fr_session_parameters(fr_session *session)
{
    return session->parameters;
}

float *fr_session_gradient_vector(fr_session *session)
{
    return fr_shards_sum(&session->shards);
}

const fr_step_scalars *fr_session_scalars(const fr_session *session)
{
    return &session->scalars;
}

fr_pool *fr_session_pool(fr_session *session)
{
    return session->pool;
}

double fr_session_loss(const fr_session *session)
{
    return session->loss;
}

int64_t fr_session_step(const fr_session *session)
{
    return session->totals.step;
}

const fr_corpus *fr_session_corpus(const fr_session *session)
{
    return session->corpus;
}

const char *fr_session_folder(const fr_session *session)
{
    return session->options.run_folder;
}

const char *fr_session_record(const fr_session *session)
{
    return session->record ? session->record : "";
}

fr_status fr_session_set_scalar(fr_session *session, const char *name, double value, fr_error *error)
{
    const fr_tensor *tensor = fr_graph_find(session->graph, name);
    if (!tensor || tensor->producer || tensor->kind != FR_KIND_STATISTIC || strcmp(name, "loss_scale") == 0)
        return fr_error_set(error, FR_BAD_USAGE, name, "declare it with fr_input_scalar",
                            "the model has no such run-time scalar");
    int i = 0;
    while (i < session->run_scalar_count && strcmp(session->run_scalars[i].name, name) != 0)
        i++;
    if (i == FR_MOST_RUN_SCALARS || strlen(name) >= sizeof session->run_scalars[0].name)
        return fr_error_set(error, FR_BAD_USAGE, name, NULL,
                            "a run takes at most %d scalars with names below 64 bytes", FR_MOST_RUN_SCALARS);
    snprintf(session->run_scalars[i].name, sizeof session->run_scalars[0].name, "%s", name);
    session->run_scalars[i].value = (float)value;
    session->run_scalar_count += i == session->run_scalar_count;
    return FR_OK;
}
