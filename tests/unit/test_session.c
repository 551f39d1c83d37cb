/* A training run from the first step to its receipt: it learns, threads do not matter, the clock is obeyed. */
#include "session_fixture.h"

TEST(loss_falls_and_the_receipt_is_complete)
{
    fr_train_options options = session_options("learns", 15, 2, NULL);
    fr_error error = {0};
    CHECK_OK(fr_train(&options, &error));
    json_t *record = run_record("learns");
    double first, last;
    CHECK_OK(fr_json_get_real(record, "loss_first", &first, "run.json", &error));
    CHECK_OK(fr_json_get_real(record, "loss_last", &last, "run.json", &error));
    CHECK_NEAR(first, log(276), 0.02, 0); /* 13. of the sheet: about ln V */
    CHECK(last < first - 1);
    static const char *const keys[] = {"schema",
                                       "status",
                                       "budget_s",
                                       "startup_s",
                                       "charged_s",
                                       "steps",
                                       "tokens",
                                       "epochs",
                                       "params",
                                       "val_bpb",
                                       "val_bytes",
                                       "val_tokens",
                                       "eval_set",
                                       "seed",
                                       "tokens_per_s",
                                       "flops_per_token",
                                       "mfu",
                                       "peak_rss_bytes",
                                       "loss_first",
                                       "loss_last",
                                       "clock",
                                       "prepared_in_clock",
                                       "kernels",
                                       "basis",
                                       "host",
                                       "hashes",
                                       "tokens_per_step_declared",
                                       "tokens_per_step_measured"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!json_object_get(record, keys[i]))
            test_fail(__FILE__, __LINE__, keys[i]);
    CHECK_STR(json_string_value(json_object_get(record, "status")), "finished");
    CHECK_STR(json_string_value(json_object_get(record, "basis")), "simulated");
    CHECK_INT(json_integer_value(json_object_get(record, "steps")), 15);
    CHECK_INT(json_integer_value(json_object_get(record, "tokens")), 15 * 256);
    CHECK_NEAR(json_number_value(json_object_get(record, "charged_s")), 15, 1e-12, 0);
    CHECK(json_is_null(json_object_get(record, "mfu")));
    CHECK(json_is_string(
        json_object_get(json_object_get(json_object_get(record, "kernels"), "head_loss"), "forward")));
    CHECK_INT(log_lines("learns"), 15);
    json_decref(record);
}

TEST(a_finished_folder_is_not_overwritten)
{
    fr_train_options options = session_options("learns", 15, 1, NULL);
    fr_error error = {0};
    char before[65];
    snprintf(before, sizeof before, "%s", model_hash("learns"));
    CHECK_INT(fr_train(&options, &error), FR_BAD_USAGE);
    CHECK(strstr(error.hint, "--resume") != NULL);
    CHECK_STR(model_hash("learns"), before);
}

TEST(threads_do_not_change_a_bit)
{
    const char *want = train_hash("threads-1", 4, 1, NULL);
    CHECK_STR(train_hash("threads-2", 4, 2, NULL), want);
    CHECK_STR(train_hash("threads-3", 4, 3, NULL), want);
    CHECK_STR(train_hash("threads-4", 4, 4, NULL), want);
    CHECK_STR(train_hash("threads-6", 4, 6, NULL), want); /* more than shards: operators are split */
    CHECK_STR(file_hash("threads-6", "optimizer.safetensors"),
              file_hash("threads-1", "optimizer.safetensors"));
}

TEST(bf16_numerics_too)
{
    const char *const more[] = {"model.numerics=bf16", "optim.muon_plus=true", NULL};
    const char *want = train_hash("bf16-1", 3, 1, more);
    CHECK_STR(train_hash("bf16-2", 3, 2, more), want);
    CHECK(strcmp(want, model_hash("threads-1")) != 0);
}

TEST(a_seed_matters)
{
    fr_train_options options = session_options("seed-8", 4, 2, NULL);
    fr_error error = {0};
    options.seed = 8;
    CHECK_OK(fr_train(&options, &error));
    CHECK(strcmp(model_hash("seed-8"), model_hash("threads-1")) != 0);
}

/* The same gradient whatever the cut into micro-batches, up to rounding. */
TEST(micro_batches_share_one_mean)
{
    const char *const whole[] = {"optim.micro_rows=4", NULL}, *const single[] = {"optim.micro_rows=1", NULL};
    fr_session *session[2];
    fr_error error = {0};
    fr_train_options options = session_options("micro-4", 4, 2, whole);
    CHECK_OK(fr_session_create(&session[0], &options, &error));
    options = session_options("micro-1", 4, 2, single);
    CHECK_OK(fr_session_create(&session[1], &options, &error));
    for (int i = 0; i < 2; i++) {
        CHECK(fr_session_begin_step(session[i], &error));
        CHECK_OK(fr_session_gradients(session[i], &error));
    }
    CHECK_NEAR(fr_session_loss(session[0]), fr_session_loss(session[1]), 1e-5, 0);
    const float *a = fr_session_gradient_vector(session[0]), *b = fr_session_gradient_vector(session[1]);
    int64_t count = fr_graph_flat_elements(fr_session_graph(session[0]));
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        worst = fmax(worst, fabs((double)a[i] - b[i]));
        largest = fmax(largest, fabs((double)a[i]));
    }
    CHECK(worst <= 1e-5 * largest);
    fr_session_free(session[0]);
    fr_session_free(session[1]);
}

TEST(batch_phases_change_the_step)
{
    const char *const more[] = {"schedule.batch_phases=[0.0, 0.5, 0.5, 1.0]", NULL};
    fr_train_options options = session_options("phases", 6, 2, more);
    fr_error error = {0};
    CHECK_OK(fr_train(&options, &error));
    json_t *record = run_record("phases");
    CHECK_INT(json_integer_value(json_object_get(record, "tokens")), 3 * 128 + 3 * 256);
    CHECK_NEAR(json_number_value(json_object_get(record, "tokens_per_step_measured")), 192, 1e-9, 0);
    json_decref(record);
}

TEST(clipping_bounds_the_gradient)
{
    const char *const more[] = {"optim.clip=0.01", NULL};
    fr_train_options options = session_options("clip", 2, 2, more);
    fr_session *session;
    fr_error error = {0};
    CHECK_OK(fr_session_create(&session, &options, &error));
    CHECK(fr_session_begin_step(session, &error));
    CHECK_OK(fr_session_gradients(session, &error));
    int64_t count = fr_graph_flat_elements(fr_session_graph(session));
    CHECK(sqrt(fr_vector_sum_squares(fr_session_gradient_vector(session), count, NULL)) > 0.02);
    CHECK_OK(fr_session_update(session, &error));
    CHECK_NEAR(sqrt(fr_vector_sum_squares(fr_session_gradient_vector(session), count, NULL)), 0.01, 1e-5, 0);
    fr_session_free(session);
}

/* ---- evaluation, calls out of order, scalars ---- */

static fr_status count_evaluations(void *context, fr_session *session, double *val_bpb, fr_error *error)
{
    (void)error;
    *val_bpb = (double)fr_session_step(session);
    ++*(int *)context;
    return FR_OK;
}

TEST(periodic_evaluation_and_the_final_score)
{
    const char *const more[] = {"clock.eval_every=2", NULL};
    fr_train_options options = session_options("evaluates", 5, 2, more);
    fr_session *session;
    fr_error error = {0};
    int count = 0;
    options.evaluate = count_evaluations;
    options.evaluate_context = &count;
    CHECK_OK(fr_session_create(&session, &options, &error));
    CHECK_OK(fr_session_run(session, &error));
    CHECK_INT(count, 2);
    CHECK_INT(log_lines("evaluates"), 7);
    fr_bpb_result score = {.val_bpb = 1.25,
                           .bytes = 1000,
                           .tokens = 300,
                           .documents = 9,
                           .context = 16,
                           .eval_set = "valid",
                           .text_sha256 = "ab",
                           .layout = "stream",
                           .byte_lengths = "raw"};
    char folder[700];
    snprintf(folder, sizeof folder, "%s", options.run_folder);
    fr_session_free(session);
    CHECK_OK(fr_run_record_score(folder, &score, (double)NAN, &error));
    json_t *record = run_record("evaluates");
    CHECK_NEAR(json_number_value(json_object_get(record, "val_bpb")), 1.25, 0, 0);
    CHECK_NEAR(json_number_value(json_object_get(record, "val_bpb_last_periodic")), 4, 0, 0);
    CHECK_STR(json_string_value(json_object_get(record, "eval_set")), "valid");
    CHECK_STR(json_string_value(json_object_get(record, "status")), "finished");
    json_decref(record);
}

TEST(calls_out_of_order_are_refused)
{
    fr_train_options options = session_options("order", 2, 1, NULL);
    fr_session *session;
    fr_error error = {0};
    CHECK_OK(fr_session_create(&session, &options, &error));
    CHECK_INT(fr_session_gradients(session, &error), FR_BAD_USAGE);
    CHECK_INT(fr_session_update(session, &error), FR_BAD_USAGE);
    CHECK_INT(fr_session_end_step(session, &error), FR_BAD_USAGE);
    one_step(session);
    CHECK(fr_session_begin_step(session, &error));
    CHECK(!fr_session_begin_step(session, &error));
    CHECK_OK(fr_session_gradients(session, &error));
    CHECK_OK(fr_session_update(session, &error));
    CHECK_OK(fr_session_end_step(session, &error));
    CHECK(!fr_session_begin_step(session, &error)); /* the budget is spent */
    CHECK_INT(fr_session_gradients(session, &error), FR_STOPPED);
    CHECK_INT(fr_session_set_scalar(session, "nonsense", 1, &error), FR_BAD_USAGE);
    CHECK_OK(fr_session_finish(session, &error));
    CHECK_INT(fr_session_step(session), 2);
    fr_session_free(session);
}

/* The library's model and a scalar that training code may fade. */
static fr_status model_with_scalar(fr_graph *graph, const fr_recipe *recipe, int64_t vocab, fr_error *error)
{
    FR_TRY(fr_model_build(graph, recipe, vocab, error));
    fr_input_scalar(graph, "fade");
    return FR_OK;
}

TEST(a_model_of_ones_own_and_its_scalar)
{
    fr_train_options options = session_options("own-model", 2, 2, NULL);
    fr_session *session;
    fr_error error = {0};
    options.model = model_with_scalar;
    CHECK_OK(fr_session_create(&session, &options, &error));
    CHECK_OK(fr_session_set_scalar(session, "fade", 0.5, &error));
    CHECK_OK(fr_session_set_scalar(session, "fade", 0.25, &error));
    CHECK_INT(fr_session_set_scalar(session, "tokens", 1, &error), FR_BAD_USAGE);
    CHECK_INT(fr_session_set_scalar(session, "loss_scale", 1, &error), FR_BAD_USAGE);
    CHECK_OK(fr_session_run(session, &error));
    fr_session_free(session);
}

/* ---- the clock ---- */

typedef struct invented_time {
    int64_t now, step_ns, stall_ns;
    int calls, stall_every;
} invented_time;

static int64_t invented_now(void *context)
{
    invented_time *time = context;
    time->now += time->step_ns;
    if (time->stall_every && ++time->calls % time->stall_every == 0)
        time->now += time->stall_ns;
    return time->now;
}

/* Stalls of up to the reserve, wherever they fall: the charge at the stop never passes the budget. */
TEST(stalls_up_to_the_reserve_stay_within_the_budget)
{
    for (int every = 20; every < 80;
         every += 13) { /* far enough apart that only one falls between two looks */
        char name[32];
        invented_time time = {.step_ns = 40000000, .stall_ns = 4000000000, .stall_every = every};
        snprintf(name, sizeof name, "stall-%d", every);
        fr_train_options options = session_options(name, 0, 2, NULL);
        options.clock = (fr_clock_options){.kind = FR_CLOCK_WALL,
                                           .budget = 30,
                                           .reserve = 5,
                                           .startup_cap = 60,
                                           .now_ns = invented_now,
                                           .now_context = &time};
        options.peak_flops = -1;
        fr_error error = {0};
        CHECK_OK(fr_train(&options, &error));
        json_t *record = run_record(name);
        CHECK(json_number_value(json_object_get(record, "charged_s")) <= 30);
        CHECK(json_integer_value(json_object_get(record, "steps")) > 0);
        CHECK(json_is_false(json_object_get(record, "over_budget")));
        json_decref(record);
    }
}

TEST(a_longer_stall_is_on_record)
{
    invented_time time = {.step_ns = 40000000, .stall_ns = 60000000000, .stall_every = 60};
    fr_train_options options = session_options("over", 0, 2, NULL);
    options.clock = (fr_clock_options){.kind = FR_CLOCK_WALL,
                                       .budget = 30,
                                       .reserve = 5,
                                       .startup_cap = 60,
                                       .now_ns = invented_now,
                                       .now_context = &time};
    options.peak_flops = -1;
    fr_error error = {0};
    CHECK_OK(fr_train(&options, &error));
    json_t *record = run_record("over");
    CHECK(json_is_true(json_object_get(record, "over_budget")));
    json_decref(record);
}

TEST(a_wall_run_replays_bit_for_bit)
{
    fr_train_options options = session_options("wall", 0, 2, NULL);
    options.clock = (fr_clock_options){.kind = FR_CLOCK_WALL, .budget = 2, .startup_cap = 60};
    options.clock_text = "wall";
    options.peak_flops = 1e11;
    fr_error error = {0};
    CHECK_OK(fr_train(&options, &error));
    json_t *record = run_record("wall");
    CHECK_STR(json_string_value(json_object_get(record, "basis")), "measured");
    CHECK(json_number_value(json_object_get(record, "mfu")) > 0);
    CHECK(json_number_value(json_object_get(record, "charged_s")) <= 2);
    CHECK(json_integer_value(json_object_get(record, "steps")) > 0);
    fr_train_options replay = session_options("replayed", 0, 1, NULL);
    replay.clock =
        (fr_clock_options){.kind = FR_CLOCK_REPLAY, .replay_path = fixture_path("wall"), .startup_cap = 60};
    replay.clock_text = "replay:wall";
    CHECK_OK(fr_train(&replay, &error));
    CHECK_STR(model_hash("replayed"), model_hash("wall"));
    json_t *again = run_record("replayed");
    CHECK_INT(json_integer_value(json_object_get(again, "steps")),
              json_integer_value(json_object_get(record, "steps")));
    CHECK_NEAR(json_number_value(json_object_get(again, "charged_s")),
               json_number_value(json_object_get(record, "charged_s")), 1e-2,
               0); /* the stop is a moment after the drop */
    json_decref(record);
    json_decref(again);
}

TEST(a_run_without_an_end_is_refused)
{
    fr_train_options options = session_options("endless", 0, 1, NULL);
    fr_error error = {0};
    CHECK_INT(fr_train(&options, &error), FR_BAD_USAGE);
    const char *const more[] = {"clock.max_steps=3", NULL};
    options = session_options("three", 0, 1, more);
    CHECK_OK(fr_train(&options, &error));
    json_t *record = run_record("three");
    CHECK_INT(json_integer_value(json_object_get(record, "steps")), 3);
    CHECK(json_is_null(json_object_get(record, "budget_s")));
    json_decref(record);
}

/* ---- forecast and memory ---- */

TEST(a_forecast_changes_nothing)
{
    fr_train_options options = session_options("forecast", 4, 2, NULL);
    fr_session *session;
    fr_forecast forecast;
    fr_error error = {0};
    CHECK_OK(fr_session_create(&session, &options, &error));
    CHECK_OK(fr_session_forecast(session, &forecast, &error));
    CHECK_NEAR(forecast.steps, 4, 0, 0);
    CHECK_NEAR(forecast.tokens, 1024, 0, 0);
    CHECK(forecast.seconds_per_step > 0 && forecast.micro_batch_seconds > 0 &&
          forecast.optimizer_seconds > 0);
    CHECK(forecast.epochs > 0 && forecast.memory_bytes > 0 && forecast.params > 10000);
    CHECK(forecast.few_steps);
    CHECK(strstr(forecast.advice, "only 4 steps") != NULL);
    one_step(session);
    CHECK_OK(fr_session_forecast(session, &forecast, &error));
    CHECK_OK(fr_session_run(session, &error));
    fr_session_free(session);
    CHECK_STR(model_hash("forecast"), model_hash("threads-1"));
}

TEST(too_little_memory_is_refused_by_the_number)
{
    fr_train_options options = session_options("memory", 4, 2, NULL);
    fr_error error = {0};
    options.memory_limit = 100000;
    CHECK_INT(fr_train(&options, &error), FR_BAD_ENVIRONMENT);
    CHECK(strstr(error.what, "the run needs") != NULL);
    options.memory_limit = 0;
    CHECK_OK(fr_train(&options, &error)); /* the refused attempt left nothing in the way */
}

TEST(allocation_failures_leave_no_trace)
{
    fr_train_options options = session_options("allocations", 1, 1, NULL);
    options.resume = true; /* an attempt may get as far as its first run.json */
    int refused = 0;
    for (int64_t n = 0; n < 4000; n = n * 5 / 4 + 1) {
        fr_session *session;
        fr_error error = {0};
        fr_allocate_fail_after(n);
        fr_status status = fr_session_create(&session, &options, &error);
        fr_allocate_fail_after(-1);
        if (status == FR_OK) {
            fr_session_free(session);
            break;
        }
        refused++;
        if (status != FR_BAD_ENVIRONMENT)
            printf("# %lld: %s: %s\n", (long long)n, error.where, error.what);
        CHECK_INT(status, FR_BAD_ENVIRONMENT);
    }
    CHECK(refused > 5);
}

TEST_MAIN(session)
