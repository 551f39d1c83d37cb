/* Runs that are killed, stopped, cut off or fed bad numbers: nothing is lost that was saved, and what goes
 * on is the same run bit for bit. */
#include "session_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static const char *const every_two[] = {"clock.checkpoint_every=2", NULL};
enum { STEPS = 5 };

/* The hash of an undisturbed run, made once. */
static const char *undisturbed(void)
{
    static char hash[65];
    if (!hash[0])
        snprintf(hash, sizeof hash, "%s", train_hash("undisturbed", STEPS, 2, every_two));
    return hash;
}

static void resume_and_compare(const char *run, int threads)
{
    fr_train_options options = session_options(run, STEPS, threads, every_two);
    fr_error error = {0};
    options.resume = true;
    CHECK_OK(fr_train(&options, &error));
    CHECK_STR(model_hash(run), undisturbed());
    CHECK_STR(file_hash(run, "optimizer.safetensors"), file_hash("undisturbed", "optimizer.safetensors"));
    CHECK_INT(log_lines(run), STEPS);
    json_t *record = run_record(run);
    CHECK_NEAR(json_number_value(json_object_get(record, "charged_s")), STEPS, 1e-12, 0);
    CHECK_INT(json_integer_value(json_object_get(record, "tokens")), STEPS * 256);
    json_decref(record);
}

static fr_session *start(const char *run, int steps)
{
    fr_train_options options = session_options(run, STEPS, 2, every_two);
    fr_session *session = NULL;
    fr_error error = {0};
    CHECK_OK(fr_session_create(&session, &options, &error));
    for (int i = 0; i < steps; i++)
        one_step(session);
    return session;
}

TEST(an_abandoned_run_continues)
{
    fr_session *session = start("abandoned", 3); /* saved after step 2 */
    fr_error error = {0};
    CHECK(fr_session_begin_step(session, &error)); /* rows taken, never used */
    fr_session_free(session);
    resume_and_compare("abandoned", 1);
}

TEST(a_killed_run_continues)
{
    undisturbed(); /* the corpus is made before the fork */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        start("killed", 4);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    resume_and_compare("killed", 4);
}

TEST(a_run_killed_before_its_first_checkpoint_starts_over)
{
    fr_session_free(start("early", 1));
    resume_and_compare("early", 2);
}

/* ---- stop requests ---- */

typedef struct stopper {
    int asked, after;
} stopper;

static bool stop_after(void *context)
{
    stopper *s = context;
    return ++s->asked > s->after;
}

TEST(a_stop_request_saves_and_can_be_continued)
{
    for (int after = 0; after < 30; after += 7) {
        char run[32];
        stopper s = {.after = after};
        fr_progress progress = {.stop = stop_after, .context = &s};
        snprintf(run, sizeof run, "stopped-%d", after);
        fr_train_options options = session_options(run, STEPS, 1, every_two);
        fr_error error = {0};
        options.progress = &progress;
        CHECK_INT(fr_train(&options, &error), FR_STOPPED);
        json_t *record = run_record(run);
        CHECK_STR(json_string_value(json_object_get(record, "status")), "stopped");
        json_decref(record);
        resume_and_compare(run, 2);
    }
}

/* ---- files from different moments ---- */

static void copy_file(const char *run, const char *from, const char *to)
{
    char source[1024], target[1024], *bytes = NULL;
    size_t count = 0;
    fr_arena arena;
    fr_error error = {0};
    fr_arena_init(&arena, 1024);
    CHECK_OK(fr_file_read(&arena, fr_path_join(source, sizeof source, fixture_path(run), from), &bytes,
                          &count, &error));
    CHECK_OK(fr_file_write(fr_path_join(target, sizeof target, fixture_path(run), to), bytes, count, &error));
    fr_arena_release(&arena);
}

TEST(a_save_cut_off_between_its_renames_is_finished)
{
    fr_session *session = start("between", 2);
    copy_file("between", "model.safetensors", "old");
    one_step(session);
    one_step(session); /* saves step 4 */
    fr_session_free(session);
    copy_file("between", "model.safetensors", "model.safetensors.next");
    copy_file("between", "old", "model.safetensors");
    resume_and_compare("between", 2);
}

/* A second run over the weights of a finished one would destroy them. */
TEST(weights_without_their_state_are_kept)
{
    char path[1024];
    fr_session_free(start("stateless", 2));
    CHECK(unlink(fr_path_join(path, sizeof path, fixture_path("stateless"), "optimizer.safetensors")) == 0);
    fr_train_options options = session_options("stateless", STEPS, 2, every_two);
    fr_error error = {0};
    options.resume = true;
    CHECK_INT(fr_train(&options, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "optimizer.safetensors") != NULL);
}

TEST(a_run_folder_belongs_to_one_session)
{
    fr_session *first = start("shared", 2), *second = NULL;
    fr_train_options options = session_options("shared", STEPS, 2, every_two);
    fr_error error = {0};
    options.resume = true;
    CHECK_INT(fr_session_create(&second, &options, &error), FR_BAD_USAGE);
    CHECK(strstr(error.what, "another process") != NULL);
    fr_session_free(first);
    resume_and_compare("shared", 1);
}

/* What killed saves left behind goes with the next resume; a rehearsal leaves everything as it is. */
TEST(a_resume_cleans_up_and_a_rehearsal_touches_nothing)
{
    char stray[1024];
    fr_session_free(start("strays", 2));
    copy_file("strays", "model.safetensors", "model.safetensors.next.tmp-1-0");
    fr_path_join(stray, sizeof stray, fixture_path("strays"), "model.safetensors.next.tmp-1-0");
    fr_train_options options = session_options("strays", STEPS, 2, every_two);
    fr_session *session;
    fr_error error = {0};
    options.resume = options.rehearsal = true;
    CHECK_OK(fr_session_create(&session, &options, &error));
    fr_session_free(session);
    CHECK(fr_path_exists(stray));
    resume_and_compare("strays", 2);
    CHECK(!fr_path_exists(stray));
    options = session_options("never", STEPS, 2, every_two);
    options.rehearsal = true;
    CHECK_OK(fr_session_create(&session, &options, &error));
    fr_session_free(session);
    CHECK(!fr_path_exists(fixture_path("never")));
}

TEST(mixed_checkpoints_are_refused)
{
    fr_session *session = start("mixed", 2);
    copy_file("mixed", "model.safetensors", "old");
    one_step(session);
    one_step(session);
    fr_session_free(session);
    copy_file("mixed", "old", "model.safetensors");
    fr_train_options options = session_options("mixed", STEPS, 2, every_two);
    fr_error error = {0};
    options.resume = true;
    CHECK_INT(fr_train(&options, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "different steps") != NULL);
}

TEST(truncated_files_are_named)
{
    static const char *const names[] = {"optimizer.safetensors", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        char run[32], path[1024];
        snprintf(run, sizeof run, "truncated-%d", i);
        fr_session_free(start(run, 2));
        CHECK(truncate(fr_path_join(path, sizeof path, fixture_path(run), names[i]), 5000) == 0);
        fr_train_options options = session_options(run, STEPS, 2, every_two);
        fr_error error = {0};
        options.resume = true;
        CHECK_INT(fr_train(&options, &error), FR_BAD_DATA);
        CHECK(strstr(error.where, names[i]) != NULL);
    }
}

TEST(another_recipe_seed_or_corpus_is_refused)
{
    fr_session_free(start("identity", 2));
    const char *const recipe[] = {"clock.checkpoint_every=2", "optim.matrix_lr=0.01", NULL};
    fr_error error = {0};
    fr_train_options options = session_options("identity", STEPS, 2, recipe);
    options.resume = true;
    CHECK_INT(fr_train(&options, &error), FR_BAD_USAGE);
    CHECK(strstr(error.what, "recipe") != NULL);
    options = session_options("identity", STEPS, 2, every_two);
    options.resume = true;
    options.seed = 8;
    CHECK_INT(fr_train(&options, &error), FR_BAD_USAGE);
    CHECK(strstr(error.what, "seed") != NULL);
}

/* A finished run may be given more steps; the schedule then differs, but nothing is refused. */
TEST(a_finished_run_can_be_extended)
{
    train_hash("extended", 3, 2, every_two);
    fr_train_options options = session_options("extended", STEPS, 2, every_two);
    fr_error error = {0};
    options.resume = true;
    CHECK_OK(fr_train(&options, &error));
    CHECK_INT(log_lines("extended"), STEPS);
}

/* ---- full disks ---- */

typedef struct talk {
    char text[1024];
} talk;

static void listen(void *context, const char *text)
{
    snprintf(((talk *)context)->text, sizeof((talk *)context)->text, "%s", text);
}

TEST(a_failed_checkpoint_leaves_the_earlier_one)
{
    char before[65];
    for (int64_t bytes = 1000; bytes < 400000; bytes *= 12) { /* the clock's line still fits */
        char run[32];
        talk heard = {""};
        fr_progress progress = {.message = listen, .context = &heard};
        snprintf(run, sizeof run, "full-%lld", (long long)bytes);
        fr_train_options options = session_options(run, STEPS, 2, every_two);
        fr_session *session;
        fr_error error = {0};
        options.progress = &progress;
        CHECK_OK(fr_session_create(&session, &options, &error));
        one_step(session);
        one_step(session);
        snprintf(before, sizeof before, "%s", model_hash(run));
        one_step(session);
        fr_file_fail_after(bytes);
        one_step(session); /* its checkpoint cannot be written; the run goes on */
        fr_file_fail_after(-1);
        CHECK_STR(model_hash(run), before);
        CHECK(strstr(heard.text, "checkpoint of step 4 failed") != NULL);
        if (bytes == 1000)
            CHECK_OK(fr_session_run(session, &error)); /* there is room again */
        fr_session_free(session);
        resume_and_compare(run, 2);
    }
}

TEST(a_final_save_that_fails_is_an_error)
{
    fr_session *session = start("final", 3);
    fr_error error = {0};
    fr_file_fail_after(0);
    CHECK_INT(fr_session_run(session, &error), FR_BAD_ENVIRONMENT);
    fr_file_fail_after(-1);
    fr_session_free(session);
    resume_and_compare("final", 1);
}

/* ---- bad numbers ---- */

static fr_session *poisoned(const char *run, const char *parameter, float value, const char *const *more)
{
    fr_train_options options = session_options(run, STEPS, 2, more);
    fr_session *session;
    fr_error error = {0};
    CHECK_OK(fr_session_create(&session, &options, &error));
    one_step(session);
    CHECK(fr_session_begin_step(session, &error));
    CHECK_OK(fr_session_gradients(session, &error));
    const fr_tensor *tensor = fr_graph_find(fr_session_graph(session), parameter);
    CHECK(tensor != NULL);
    const fr_parameter_info *info = fr_graph_parameter(fr_session_graph(session), tensor->parameter);
    for (int64_t i = 0; i < info->rows * info->columns; i++)
        fr_session_parameters(session)[info->offset + i] *= value;
    CHECK_OK(fr_session_updated(session, &error));
    CHECK_OK(fr_session_end_step(session, &error));
    return session;
}

static const char *a_matrix(const fr_session *session)
{
    for (int i = 0; i < fr_graph_parameters(fr_session_graph(session)); i++)
        if (strcmp(fr_graph_parameter(fr_session_graph(session), i)->group, "matrix") == 0)
            return fr_graph_parameter(fr_session_graph(session), i)->name;
    return NULL;
}

static void check_failed(fr_session *session, const char *run, const char *tensor)
{
    fr_error error = {0};
    char before[65];
    snprintf(before, sizeof before, "%s", model_hash(run));
    CHECK_INT(fr_session_run(session, &error), FR_ANSWER_NO);
    CHECK_STR(error.where, tensor);
    CHECK(strstr(error.what, "step 2") != NULL);
    CHECK_STR(model_hash(run), before);
    CHECK(fixture_exists(fixture_path(run), "failed-batch.safetensors"));
    json_t *record = run_record(run);
    CHECK_STR(json_string_value(json_object_get(record, "status")), "failed");
    CHECK_STR(json_string_value(json_object_get(json_object_get(record, "failure"), "where")), tensor);
    json_decref(record);
    fr_session_free(session);
}

TEST(a_weight_that_is_not_a_number_is_named)
{
    fr_session *session = start("probe", 0);
    char name[128];
    snprintf(name, sizeof name, "%s", a_matrix(session));
    fr_session_free(session);
    check_failed(poisoned("nan-weight", name, NAN, every_two), "nan-weight", name);
    fr_replayed_batch again;
    fr_error error = {0};
    CHECK_OK(fr_train_replay_batch(fixture_path("nan-weight"), &again, &error));
    CHECK_INT(again.step, 2);
    CHECK(again.loss != again.loss);
    CHECK(again.tensor[0] != '\0');
}

TEST(a_loss_beyond_100_ends_the_run)
{
    const char *const more[] = {"clock.checkpoint_every=2", "model.softcap=0", NULL};
    check_failed(poisoned("too-large", "lm_head.weight", 1e6f, more), "too-large", "loss");
    fr_replayed_batch again;
    fr_error error = {0};
    CHECK_OK(fr_train_replay_batch(fixture_path("too-large"), &again, &error));
    CHECK(again.loss > 100);
    CHECK_STR(again.tensor, "");
}

TEST(a_gradient_that_is_not_a_number_is_named)
{
    fr_session *session = start("nan-gradient", 2);
    fr_error error = {0};
    const fr_parameter_info *info = fr_graph_parameter(fr_session_graph(session), 1);
    char want[200];
    snprintf(want, sizeof want, "gradient of %s", info->name);
    CHECK(fr_session_begin_step(session, &error));
    CHECK_OK(fr_session_gradients(session, &error));
    fr_session_gradient_vector(session)[info->offset] = NAN;
    CHECK_INT(fr_session_update(session, &error), FR_ANSWER_NO);
    CHECK_STR(error.where, want);
    CHECK_INT(fr_session_finish(session, &error), FR_ANSWER_NO);
    fr_session_free(session);
    resume_and_compare("nan-gradient", 2); /* the checkpoint is as good as before */
}

TEST_MAIN(session_resume)
