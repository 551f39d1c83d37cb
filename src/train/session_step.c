/* session_step.c: one step of training, in the four calls the header shows.
 *
 * begin      asks the clock whether a step may start, reads progress, takes the step's rows and counts
 *            their targets
 * gradients  runs forward and backward of every shard; before each micro-batch the clock and the stop
 *            request are looked at, and a step that cannot be finished is dropped whole
 * update     norm, clipping, optimizer, fresh copies for the kernels
 * end        charges the step, writes the log, saves and evaluates when it is their turn
 *
 * Between a look at the clock and the next one lie a micro-batch and perhaps the update. Their measured
 * times are kept free in front of the clock's own reserve, which is for the save and for stalls; so a run
 * ends in time even when a micro-batch takes longer than a save.
 *
 * The loss is scaled by one over the valid targets of the whole step, so the gradient is that of the mean
 * whatever the cut into micro-batches. Micro-batch losses are kept by place and summed in that order.
 */
#include "train/session.h"

#include "train/timing.h"

#include <math.h>
#include <string.h>

/* ---- order of calls ---- */

static bool is_terminal(const fr_session *session)
{
    return session->state == FR_SESSION_OVER || session->state == FR_SESSION_STOPPED ||
           session->state == FR_SESSION_FAILED;
}

/* FR_OK when the call is in its place. After the end: FR_STOPPED; after a failure: the failure again. */
static fr_status expect(const fr_session *session, fr_session_state state, const char *call, fr_error *error)
{
    if (session->state == state)
        return FR_OK;
    if (session->state == FR_SESSION_FAILED) {
        if (error)
            *error = session->failure;
        return session->failure.status;
    }
    if (is_terminal(session))
        return fr_error_set(error, FR_STOPPED, session->options.run_folder, NULL, "the run has ended");
    return fr_error_set(error, FR_BAD_USAGE, call, "a step is begin_step, gradients, update, end_step",
                        "called out of order");
}

/* ---- begin ---- */

static double estimate_step(const fr_session *session)
{
    /* A lower bound: nine tenths of the fastest step so far, by tokens. */
    return 0.9 * session->totals.best_seconds_per_token * (double)session->options.recipe.optim.batch_tokens;
}

static fr_status take_rows(fr_session *session, fr_error *error)
{
    int64_t rows = session->scalars.batch_tokens / session->shape.T, got, valid = 0;
    session->loader_row = fr_loader_row(session->loader);
    FR_TRY(fr_loader_next(session->loader, rows, session->inputs, session->targets, &got, error));
    for (int64_t i = 0; i < rows * session->shape.T; i++)
        valid += session->targets[i] >= 0;
    session->loss_scale = valid > 0 ? (float)(1 / (double)valid) : 0;
    session->micro_batches = fr_batch_micro_batches(&session->shape, session->scalars.batch_tokens);
    if (!session->data_repeats && fr_loader_epochs(session->loader) > 1) {
        session->data_repeats = true;
        fr_progress_message(session->options.progress,
                            "step %lld begins the second epoch: the data repeats from here",
                            (long long)session->totals.step);
    }
    return FR_OK;
}

static fr_status begin(fr_session *session, fr_error *error)
{
    double progress = fr_clock_begin_step(session->clock, session->totals.step, error);
    if (progress < 0)
        return error ? error->status : FR_BAD_DATA;
    session->step_start_ns = fr_monotonic_ns();
    fr_step_scalars_at(&session->options.recipe, progress, session->totals.step, &session->scalars);
    int64_t mark = session->step_start_ns;
    fr_status status = take_rows(session, error);
    fr_time_parts_lap(&session->time, "data", &mark);
    return status;
}

bool fr_session_begin_step(fr_session *session, fr_error *error)
{
    fr_error local = {0};
    fr_error *place = error ? error : &local;
    if (is_terminal(session) && session->state != FR_SESSION_FAILED)
        return false;
    if (expect(session, FR_SESSION_READY, "fr_session_begin_step", place) != FR_OK)
        return false;
    if (fr_progress_stop(session->options.progress)) {
        session->state = FR_SESSION_STOPPED;
        return false;
    }
    if (fr_clock_finished(session->clock, session->totals.step, estimate_step(session))) {
        session->state = FR_SESSION_OVER;
        return false;
    }
    fr_status status = begin(session, place);
    if (status != FR_OK) {
        fr_session_fail(session, status, place);
        return false;
    }
    session->state = FR_SESSION_BEGUN;
    return true;
}

/* ---- gradients ---- */

void fr_session_stage(const fr_session *session, int worker, int64_t shard, int64_t micro)
{
    const fr_batch_shape *shape = &session->shape;
    size_t bytes = (size_t)shape->T * sizeof(int32_t);
    int32_t *tokens = session->staging[worker], *targets = tokens + shape->micro_rows * shape->T;
    for (int64_t i = 0; i < shape->micro_rows; i++) {
        int64_t row = fr_batch_row(shape, shard, micro, i);
        memcpy(tokens + i * shape->T, session->inputs + row * shape->T, bytes);
        memcpy(targets + i * shape->T, session->targets + row * shape->T, bytes);
    }
}

void fr_session_micro_run(const fr_session *session, int worker, float *gradients, bool accumulate,
                          fr_micro_run *run)
{
    const int32_t *tokens = session->staging[worker];
    int count = 0;
    run->inputs[count++] = (fr_binding){"tokens", tokens};
    run->inputs[count++] = (fr_binding){"targets", tokens + session->shape.micro_rows * session->shape.T};
    run->inputs[count++] = (fr_binding){"loss_scale", &session->loss_scale};
    for (int i = 0; i < session->run_scalar_count; i++)
        run->inputs[count++] = (fr_binding){session->run_scalars[i].name, &session->run_scalars[i].value};
    run->args = (fr_run_args){
        .arena = session->arenas[worker],
        .parameters = session->parameters,
        .prepared = fr_prepared_table(session->prepared),
        .gradients = gradients,
        .accumulate_gradients = accumulate,
        .inputs = run->inputs,
        .input_count = count,
        .pool = session->operators,
    };
}

typedef struct gradient_work {
    fr_session *session;
    _Atomic bool asked_to_stop; /* by the caller's callback, which only the caller's thread may ask */
    pthread_mutex_t mutex;      /* of what follows, and of the clock */
    bool interrupted;           /* time is up or a stop was asked for */
    bool time_is_up;
    double slowest;       /* seconds of a micro-batch of this step */
    int64_t failed_shard; /* the first shard with an error, or -1 */
    fr_error failure;
} gradient_work;

/* Seconds until the clock can next be obeyed, and what saves took beyond the reserve. */
static double seconds_ahead(const fr_session *session)
{
    double beyond = session->save_seconds - session->options.clock.reserve;
    return session->micro_seconds + session->update_seconds + (beyond > 0 ? beyond : 0);
}

static bool is_time_up(const fr_session *session)
{
    if (fr_clock_expired(session->clock))
        return true;
    double budget = fr_clock_budget(session->clock),
           left = budget - session->options.clock.reserve - fr_clock_charged(session->clock);
    return session->options.clock.kind == FR_CLOCK_WALL && budget > 0 && left < seconds_ahead(session);
}

static bool must_stop(gradient_work *work, int thread)
{
    const fr_session *session = work->session;
    if (thread == 0 && fr_progress_stop(session->options.progress))
        atomic_store(&work->asked_to_stop, true);
    pthread_mutex_lock(&work->mutex);
    if (!work->interrupted) {
        work->time_is_up = is_time_up(session);
        work->interrupted = work->time_is_up || atomic_load(&work->asked_to_stop);
    }
    bool stop = work->interrupted;
    pthread_mutex_unlock(&work->mutex);
    return stop;
}

static void note_time(gradient_work *work, int64_t start_ns)
{
    double seconds = (double)(fr_monotonic_ns() - start_ns) * 1e-9;
    pthread_mutex_lock(&work->mutex);
    if (seconds > work->slowest)
        work->slowest = seconds;
    pthread_mutex_unlock(&work->mutex);
}

static void note_failure(gradient_work *work, int64_t shard, const fr_error *failure)
{
    pthread_mutex_lock(&work->mutex);
    if (work->failed_shard < 0 || shard < work->failed_shard) {
        work->failed_shard = shard;
        work->failure = *failure;
    }
    pthread_mutex_unlock(&work->mutex);
}

/* All micro-batches of a shard into one buffer; false: the step cannot be finished. */
static bool run_shard(gradient_work *work, int worker, int thread, int64_t shard, float *gradients)
{
    fr_session *session = work->session;
    for (int64_t micro = 0; micro < session->micro_batches; micro++) {
        if (must_stop(work, thread))
            return false;
        fr_micro_run run;
        fr_error failure = {0};
        int64_t start = fr_monotonic_ns();
        fr_session_stage(session, worker, shard, micro);
        fr_session_micro_run(session, worker, gradients, micro > 0, &run);
        if (worker == 0) {
            run.args.timed = fr_time_parts_node;
            run.args.timed_context = &session->time;
        }
        if (fr_plan_run(session->plan, &run.args, &failure) != FR_OK) {
            note_failure(work, shard, &failure);
            return false;
        }
        fr_dtype dtype;
        const float *loss = fr_plan_output(session->plan, session->arenas[worker], "loss", &dtype);
        session->micro_losses[shard * session->micro_batches + micro] = (double)*loss;
        note_time(work, start);
    }
    return true;
}

static void run_worker(void *context, int64_t index, int thread)
{
    gradient_work *work = context;
    fr_shards *shards = &work->session->shards;
    int64_t shard;
    int buffer;
    while (fr_shards_take(shards, &shard, &buffer)) {
        if (!run_shard(work, (int)index, thread, shard, shards->memory[buffer])) {
            fr_shards_abandon(shards);
            return;
        }
        fr_shards_give(shards, shard, buffer);
    }
}

static fr_status drop_step(fr_session *session, bool time_is_up, fr_error *error)
{
    fr_clock_drop_step(session->clock, session->totals.step);
    if (time_is_up)
        fr_clock_finished(session->clock, session->totals.step,
                          seconds_ahead(session)); /* the charge stands still from here */
    session->state = time_is_up ? FR_SESSION_OVER : FR_SESSION_STOPPED;
    return fr_error_set(error, FR_STOPPED, session->options.run_folder, NULL, "step %lld was dropped: %s",
                        (long long)session->totals.step,
                        time_is_up ? "the time is up" : "a stop was asked for");
}

static double sum_losses(const fr_session *session)
{
    double sum = 0;
    for (int64_t i = 0; i < session->shape.shards * session->micro_batches; i++)
        sum += session->micro_losses[i];
    return sum;
}

fr_status fr_session_gradients(fr_session *session, fr_error *error)
{
    FR_TRY(expect(session, FR_SESSION_BEGUN, "fr_session_gradients", error));
    gradient_work work = {.session = session, .failed_shard = -1};
    pthread_mutex_init(&work.mutex, NULL);
    fr_shards_begin(&session->shards);
    if (session->operators)
        run_worker(&work, 0, 0);
    else
        fr_pool_for(session->pool, session->workers, run_worker, &work);
    pthread_mutex_destroy(&work.mutex);
    if (work.failed_shard >= 0) {
        if (error)
            *error = work.failure;
        return fr_session_fail(session, work.failure.status, &work.failure);
    }
    if (work.interrupted)
        return drop_step(session, work.time_is_up, error);
    session->micro_seconds = work.slowest;
    session->loss = sum_losses(session);
    if (!(session->loss <= 100)) /* NaN too */
        return fr_session_diagnose(session, error);
    session->state = FR_SESSION_GRADIENTS;
    return FR_OK;
}

/* ---- update ---- */

typedef struct scaling {
    float *values;
    int64_t count;
    float factor;
} scaling;

enum { ELEMENTS_PER_SLICE = 1 << 16 };

static void scale_slice(void *context, int64_t index, int thread)
{
    (void)thread;
    const scaling *job = context;
    int64_t first = index * ELEMENTS_PER_SLICE, last = first + ELEMENTS_PER_SLICE;
    for (int64_t i = first; i < last && i < job->count; i++)
        job->values[i] *= job->factor;
}

static void clip(fr_session *session, float *gradients, int64_t count)
{
    double most = session->options.recipe.optim.clip;
    if (most <= 0 || session->gradient_norm <= most)
        return;
    scaling job = {gradients, count, (float)(most / session->gradient_norm)};
    fr_pool_for(session->pool, (count + ELEMENTS_PER_SLICE - 1) / ELEMENTS_PER_SLICE, scale_slice, &job);
}

static double measure_gradient(fr_session *session)
{
    int64_t count = fr_graph_flat_elements(session->graph);
    session->gradient_norm =
        sqrt(fr_vector_sum_squares(fr_shards_sum(&session->shards), count, session->pool));
    return session->gradient_norm;
}

static void parameters_moved(fr_session *session, int64_t start_ns)
{
    fr_prepared_refresh(session->prepared, session->parameters, session->pool);
    session->update_seconds = fmax(session->update_seconds, (double)(fr_monotonic_ns() - start_ns) * 1e-9);
    fr_time_parts_lap(&session->time, "optimizer", &start_ns);
    session->state = FR_SESSION_UPDATED;
}

fr_status fr_session_update(fr_session *session, fr_error *error)
{
    FR_TRY(expect(session, FR_SESSION_GRADIENTS, "fr_session_update", error));
    int64_t start = fr_monotonic_ns();
    if (!isfinite(measure_gradient(session)))
        return fr_session_diagnose(session, error);
    float *gradients = fr_shards_sum(&session->shards);
    clip(session, gradients, fr_graph_flat_elements(session->graph));
    fr_status status =
        fr_optimizer_step(session->optimizer, session->parameters, gradients, &session->scalars, error);
    if (status != FR_OK)
        return fr_session_fail(session, status, error);
    parameters_moved(session, start);
    return FR_OK;
}

fr_status fr_session_updated(fr_session *session, fr_error *error)
{
    FR_TRY(expect(session, FR_SESSION_GRADIENTS, "fr_session_updated", error));
    int64_t start = fr_monotonic_ns();
    measure_gradient(session);
    parameters_moved(session, start);
    return FR_OK;
}

/* ---- end ---- */

static void learn_speed(fr_session *session)
{
    double seconds = (double)(fr_monotonic_ns() - session->step_start_ns) * 1e-9;
    double each = seconds / (double)session->scalars.batch_tokens,
           *best = &session->totals.best_seconds_per_token;
    if (*best <= 0 || each < *best)
        *best = each;
}

static double matrix_lr(const fr_session *session)
{
    const fr_recipe *recipe = &session->options.recipe;
    double lr = strcmp(recipe->optim.kind, "muon") == 0 ? recipe->optim.matrix_lr : recipe->optim.adamw_lr;
    return lr * session->scalars.lr_multiplier;
}

static fr_status log_step(fr_session *session, double charged_before, fr_error *error)
{
    const fr_run_totals *totals = &session->totals;
    double seconds = totals->charged - charged_before;
    fr_step_line line = {
        .step = totals->step,
        .tokens = totals->tokens,
        .batch_tokens = session->scalars.batch_tokens,
        .loss = session->loss,
        .lr = matrix_lr(session),
        .momentum = session->scalars.momentum,
        .charged = totals->charged,
        .tokens_per_s = seconds > 0 ? (double)session->scalars.batch_tokens / seconds : NAN,
        .gradient_norm = session->gradient_norm,
        .progress = session->scalars.progress,
        .epochs = fr_loader_epochs(session->loader),
    };
    return fr_step_log_write(&session->log, &line, error);
}

static void show_step(const fr_session *session)
{
    double budget = fr_clock_budget(session->clock);
    int64_t most = session->options.recipe.clock.max_steps;
    char note[160];
    double speed = session->totals.charged > 0 ? (double)session->totals.tokens / session->totals.charged : 0;
    snprintf(note, sizeof note, "step %lld  loss %.4f  %.0f tokens/s  epoch %.2f",
             (long long)session->totals.step, session->loss, speed, fr_loader_epochs(session->loader));
    if (budget > 0)
        fr_progress_update(session->options.progress, "train", session->totals.charged, budget, note);
    else
        fr_progress_update(session->options.progress, "train", (double)session->totals.step,
                           (double)(most > 0 ? most : 0), note);
}

static bool is_due(const fr_session *session, int64_t every)
{
    return every > 0 && session->totals.step % every == 0;
}

/* A full disk must not end a run that may still be saved later: say so and go on. The final save does fail. */
static void save_if_due(fr_session *session)
{
    fr_error trouble = {0};
    if (!is_due(session, session->options.recipe.clock.checkpoint_every))
        return;
    if (fr_session_save(session, &trouble) == FR_OK &&
        fr_run_record_write(session, "running", &trouble) == FR_OK)
        return;
    session->failed_saves++;
    fr_progress_message(session->options.progress, "checkpoint of step %lld failed: %s: %s",
                        (long long)session->totals.step, trouble.where, trouble.what);
}

static fr_status evaluate_if_due(fr_session *session, fr_error *error)
{
    const fr_train_options *options = &session->options;
    if (!options->evaluate || !is_due(session, options->recipe.clock.eval_every))
        return FR_OK;
    FR_TRY(options->evaluate(options->evaluate_context, session, &session->last_val_bpb, error));
    fr_progress_message(options->progress, "step %lld  val_bpb %.4f on the first %lld tokens",
                        (long long)session->totals.step, session->last_val_bpb,
                        (long long)options->recipe.clock.eval_tokens);
    return fr_step_log_write_score(&session->log, session->totals.step, fr_clock_charged(session->clock),
                                   session->last_val_bpb, error);
}

static fr_status end(fr_session *session, fr_error *error)
{
    fr_run_totals *totals = &session->totals;
    double charged_before = totals->charged;
    FR_TRY(fr_clock_end_step(session->clock, totals->step, error));
    learn_speed(session);
    totals->step++;
    totals->tokens += session->scalars.batch_tokens;
    totals->charged = fr_clock_charged(session->clock);
    totals->loss_last = session->loss;
    if (totals->step == 1)
        totals->loss_first = session->loss;
    FR_TRY(log_step(session, charged_before, error));
    show_step(session);
    int64_t mark = fr_monotonic_ns();
    save_if_due(session);
    fr_time_parts_lap(&session->time, "checkpoint", &mark);
    fr_status status = evaluate_if_due(session, error);
    fr_time_parts_lap(&session->time, "evaluation", &mark);
    return status;
}

fr_status fr_session_end_step(fr_session *session, fr_error *error)
{
    FR_TRY(expect(session, FR_SESSION_UPDATED, "fr_session_end_step", error));
    fr_error local = {0};
    fr_status status = end(session, error ? error : &local);
    if (status != FR_OK)
        return fr_session_fail(session, status, error ? error : &local);
    session->state = FR_SESSION_READY;
    return FR_OK;
}
