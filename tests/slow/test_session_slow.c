/* A hundred steps in bf16 numerics under a virtual clock: one hash on 1, 2 and 4 threads, after kill -9 and
 * resume, and by replaying a wall-clock run. The same claims as the unit tests, at the length and in the
 * numbers a real run has. */
#include "../unit/session_fixture.h"

#include <signal.h>
#include <sys/wait.h>

enum { STEPS = 100 };
static const char *const more[] = {"model.depth=3",
                                   "model.width=64",
                                   "model.head_dim=32",
                                   "model.context=64",
                                   "model.numerics=bf16",
                                   "optim.batch_tokens=1024",
                                   "optim.micro_rows=2",
                                   "clock.checkpoint_every=20",
                                   "model.smear=true",
                                   "model.backout=true",
                                   "model.value_embeddings=true",
                                   NULL};

TEST(hundred_steps_on_any_number_of_threads)
{
    const char *want = train_hash("one", STEPS, 1, more);
    CHECK_STR(train_hash("two", STEPS, 2, more), want);
    CHECK_STR(train_hash("four", STEPS, 4, more), want);
    json_t *record = run_record("one");
    double first = json_number_value(json_object_get(record, "loss_first")),
           last = json_number_value(json_object_get(record, "loss_last"));
    printf("# loss %.3f -> %.3f\n", first, last);
    CHECK(last < first - 3);
    json_decref(record);
}

static void listen(void *context, const char *phase, double done, double total, const char *note)
{
    (void)context, (void)phase, (void)total, (void)note;
    if (done >= 57)
        kill(getpid(), SIGKILL);
}

TEST(kill_nine_and_resume)
{
    fflush(stdout);
    pid_t child = fork();
    fr_train_options options = session_options("killed", STEPS, 2, more);
    fr_error error = {0};
    if (child == 0) {
        fr_progress progress = {.update = listen};
        options.progress = &progress;
        fr_train(&options, &error);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    options.resume = true;
    options.threads = 4;
    CHECK_OK(fr_train(&options, &error));
    CHECK_STR(model_hash("killed"), model_hash("one"));
    CHECK_INT(log_lines("killed"), STEPS);
}

TEST(a_wall_run_replays)
{
    fr_train_options options = session_options("wall", 0, 2, more);
    fr_error error = {0};
    options.clock = (fr_clock_options){.kind = FR_CLOCK_WALL, .budget = 8, .startup_cap = 60};
    options.clock_text = "wall";
    CHECK_OK(fr_train(&options, &error));
    fr_train_options replay = session_options("replayed", 0, 1, more);
    replay.clock =
        (fr_clock_options){.kind = FR_CLOCK_REPLAY, .replay_path = fixture_path("wall"), .startup_cap = 60};
    CHECK_OK(fr_train(&replay, &error));
    CHECK_STR(model_hash("replayed"), model_hash("wall"));
    json_t *record = run_record("wall");
    printf("# %lld steps of wall time replayed, mfu %.4f\n",
           (long long)json_integer_value(json_object_get(record, "steps")),
           json_number_value(json_object_get(record, "mfu")));
    CHECK(json_number_value(json_object_get(record, "charged_s")) <= 8);
    json_decref(record);
}

TEST_MAIN(session_slow)
