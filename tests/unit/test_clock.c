/* The charged clock under an invented time: budgets kept through stalls, start-up rules, exact replay and
 * resume. */
#include "base/clock_log.h"
#include "frontier/base.h"
#include "scratch.h"
#include "test.h"

#include <fcntl.h>

static fr_error error;

/* ---- an invented machine ------------------------------------------------------------------------ */

typedef struct machine {
    int64_t now;
    fr_rng rng;
    double batch_s;      /* longest micro-batch, seconds */
    double stall_s;      /* longest stall */
    double stall_chance; /* per micro-batch */
    int batches;         /* micro-batches per step */
} machine;

static int64_t machine_now(void *context)
{
    machine *m = context;
    m->now += 137; /* time passes even while one looks at the clock */
    return m->now;
}

static void pass(machine *m, double seconds)
{
    m->now += (int64_t)(seconds * 1e9);
}

static void work(machine *m)
{
    pass(m, m->batch_s * fr_rng_uniform(&m->rng));
    if (fr_rng_uniform(&m->rng) < m->stall_chance)
        pass(m, m->stall_s * fr_rng_uniform(&m->rng));
}

typedef struct trace {
    int64_t steps, dropped; /* completed steps; number of the dropped step or -1 */
    double progress[4096];
    double charged, startup;
    bool over;
} trace;

/* The loop of the manual, from `step` on; `most` ends it as a kill would (no stop, no drop). */
static void train(fr_clock *clock, machine *m, int64_t step, int64_t most, trace *t)
{
    t->dropped = -1;
    t->steps = step;
    while (step < most && !fr_clock_finished(clock, step, 0)) {
        double p = fr_clock_begin_step(clock, step, &error);
        CHECK(p >= 0 && p <= 1);
        t->progress[step] = p;
        for (int i = 0; i < m->batches; i++) {
            if (fr_clock_expired(clock)) {
                fr_clock_drop_step(clock, step);
                t->dropped = step;
                CHECK(fr_clock_finished(clock, step, 0));
                goto stopped;
            }
            work(m);
        }
        CHECK_OK(fr_clock_end_step(clock, step, &error));
        t->steps = ++step;
    }
stopped:
    t->charged = fr_clock_charged(clock);
    t->startup = fr_clock_startup(clock);
    t->over = fr_clock_over_budget(clock);
}

static fr_clock *make(const fr_clock_options *options)
{
    fr_clock *clock = NULL;
    CHECK_OK(fr_clock_create(&clock, options, &error));
    return clock;
}

static fr_clock_options wall(machine *m, double budget, double reserve, const char *log)
{
    return (fr_clock_options){.kind = FR_CLOCK_WALL,
                              .budget = budget,
                              .startup_cap = 60,
                              .reserve = reserve,
                              .log_path = log,
                              .now_ns = machine_now,
                              .now_context = m};
}

static bool same_trace(const trace *a, const trace *b)
{
    int64_t begun = a->steps + (a->dropped >= 0);
    return a->steps == b->steps && a->dropped == b->dropped && a->charged == b->charged &&
           a->over == b->over && memcmp(a->progress, b->progress, (size_t)begun * sizeof(double)) == 0;
}

static void replay(const char *run, const char *log, trace *t)
{
    machine m = {.now = 5, .batches = 3, .batch_s = 1e-3};
    fr_clock_options options = {.kind = FR_CLOCK_REPLAY,
                                .replay_path = run,
                                .log_path = log,
                                .now_ns = machine_now,
                                .now_context = &m};
    fr_clock *clock = make(&options);
    train(clock, &m, 0, 4096, t);
    fr_clock_free(clock);
}

/* ---- budget ------------------------------------------------------------------------------------- */

TEST(never_past_the_budget_when_stalls_fit_the_reserve)
{
    fr_rng rng = {1, 0, 0};
    int dropped = 0;
    for (int round = 0; round < 2000; round++) {
        machine m = {.now = (int64_t)fr_rng_below(&rng, 1u << 30), .rng = {(uint64_t)round, 1, 0}};
        double reserve = 0.05 + fr_rng_uniform(&rng);
        m.batch_s = reserve * 0.999 * fr_rng_uniform(&rng);
        m.stall_s = reserve * 0.999 - m.batch_s; /* batch and stall together stay below the reserve */
        m.stall_chance = fr_rng_uniform(&rng);
        m.batches = 1 + (int)fr_rng_below(&rng, 8);
        fr_clock_options options = wall(&m, reserve + 10 * fr_rng_uniform(&rng), reserve, NULL);
        fr_clock *clock = make(&options);
        pass(&m, 3 * fr_rng_uniform(&rng));
        trace t;
        train(clock, &m, 0, 4096, &t);
        CHECK(!t.over && t.charged <= options.budget);
        CHECK(t.charged >= options.budget - reserve); /* and no time is wasted either */
        pass(&m, 100);
        CHECK(fr_clock_charged(clock) == t.charged); /* saving after the stop is free */
        dropped += t.dropped >= 0;
        fr_clock_free(clock);
    }
    CHECK(dropped > 200 && dropped < 1990); /* both ways of stopping were seen */
}

TEST(a_longer_stall_is_on_record)
{
    char run[600];
    snprintf(run, sizeof run, "%s", scratch("stall.jsonl"));
    for (int where = 0; where < 2; where++) {
        machine m = {.now = 1000, .batches = 4, .batch_s = 0.1};
        fr_clock_options options = wall(&m, 10, 1, run);
        fr_clock *clock = make(&options);
        trace t;
        train(clock, &m, 0, 3, &t);
        CHECK(!t.over);
        if (where == 0) { /* inside a step */
            fr_clock_begin_step(clock, 3, &error);
            pass(&m, 12);
            CHECK(fr_clock_expired(clock));
            fr_clock_drop_step(clock, 3);
        } else { /* between steps */
            pass(&m, 12);
        }
        CHECK(fr_clock_finished(clock, 3, 0));
        CHECK(fr_clock_over_budget(clock) && fr_clock_charged(clock) > 10);
        fr_clock_free(clock);
        char text[8192] = "";
        FILE *file = fopen(run, "r");
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        CHECK(strstr(text, "\"event\":\"stop\"") && strstr(text, "\"over_budget\":true"));
        trace again;
        replay(run, NULL, &again);
        CHECK(again.over && again.steps == 3);
    }
}

TEST(the_estimate_skips_a_hopeless_step)
{
    machine m = {.now = 0};
    fr_clock_options options = wall(&m, 100, 5, NULL);
    fr_clock *clock = make(&options);
    fr_clock_first_batch(clock);
    pass(&m, 80);
    CHECK(!fr_clock_finished(clock, 1, 0));
    CHECK(!fr_clock_finished(clock, 1, 14.9));
    CHECK(!fr_clock_expired(clock));
    CHECK(fr_clock_finished(clock, 1, 15.1));
    CHECK(fr_clock_finished(clock, 1, 0)); /* the stop is final */
    CHECK(fr_clock_expired(clock));
    fr_clock_free(clock);
}

TEST(without_budget_steps_decide)
{
    machine m = {.now = 0, .batches = 2, .batch_s = 5};
    fr_clock_options options = wall(&m, 0, 5, NULL);
    options.max_steps = 8;
    fr_clock *clock = make(&options);
    trace t;
    train(clock, &m, 0, 4096, &t);
    CHECK_INT(t.steps, 8);
    for (int i = 0; i < 8; i++)
        CHECK(t.progress[i] == i / 8.0);
    CHECK(!t.over);
    fr_clock_free(clock);
}

TEST(budget_and_steps_whichever_first)
{
    machine m = {.now = 0, .batches = 1, .batch_s = 0.1};
    fr_clock_options options = wall(&m, 1000, 5, NULL);
    options.max_steps = 3;
    fr_clock *clock = make(&options);
    trace t;
    train(clock, &m, 0, 4096, &t);
    CHECK_INT(t.steps, 3);
    CHECK(t.progress[2] < 0.01); /* progress stays the budget's */
    fr_clock_free(clock);
}

/* ---- start-up ----------------------------------------------------------------------------------- */

TEST(charging_starts_at_the_first_batch)
{
    machine m = {.now = 0};
    fr_clock_options options = wall(&m, 100, 5, NULL);
    fr_clock *clock = make(&options);
    pass(&m, 40);
    CHECK(fr_clock_charged(clock) == 0);
    CHECK_NEAR(fr_clock_startup(clock), 40, 1e-5, 0);
    fr_clock_first_batch(clock);
    pass(&m, 7);
    fr_clock_first_batch(clock); /* only the first counts */
    CHECK_NEAR(fr_clock_charged(clock), 7, 1e-5, 0);
    CHECK_NEAR(fr_clock_startup(clock), 40, 1e-5, 0);
    fr_clock_free(clock);
}

TEST(a_slow_start_is_charged_beyond_the_cap)
{
    machine m = {.now = 0};
    fr_clock_options options = wall(&m, 100, 5, NULL);
    fr_clock *clock = make(&options);
    pass(&m, 75);
    CHECK_NEAR(fr_clock_charged(clock), 15, 1e-5, 0);
    CHECK_NEAR(fr_clock_begin_step(clock, 0, &error), 0.15, 1e-6, 0);
    CHECK_NEAR(fr_clock_startup(clock), 60, 1e-5, 0);
    CHECK_NEAR(fr_clock_charged(clock), 15, 1e-5, 0);
    pass(&m, 81);
    CHECK(fr_clock_expired(clock));
    fr_clock_free(clock);
    options.startup_cap = INFINITY;
    clock = make(&options);
    pass(&m, 1e6);
    CHECK(fr_clock_charged(clock) == 0);
    fr_clock_free(clock);
}

/* The kit: five steps free, cap 900 s; the clock starts at the end of the fifth step. */
TEST(the_kit_preset)
{
    for (int slow = 0; slow < 2; slow++) {
        machine m = {.now = 0, .batches = 1};
        fr_clock_options options = wall(&m, 1800, 10, NULL);
        options.free_steps = 5;
        options.startup_cap = 900;
        fr_clock *clock = make(&options);
        pass(&m, slow ? 850 : 100);
        fr_clock_first_batch(clock);
        for (int64_t step = 0; step < 5; step++) {
            double p = fr_clock_begin_step(clock, step, &error);
            CHECK(slow ? p < 0.1 : p == 0);
            pass(&m, 20);
            CHECK_OK(fr_clock_end_step(clock, step, &error));
        }
        CHECK_NEAR(fr_clock_charged(clock), slow ? 50 : 0, 1e-4, 0);
        CHECK_NEAR(fr_clock_startup(clock), slow ? 900 : 200, 1e-4, 0);
        pass(&m, 18);
        CHECK_NEAR(fr_clock_begin_step(clock, 5, &error), (slow ? 68 : 18) / 1800.0, 1e-6, 0);
        fr_clock_free(clock);
    }
}

/* ---- virtual ------------------------------------------------------------------------------------ */

static fr_clock_options virtual_options(double seconds, double budget)
{
    return (fr_clock_options){.kind = FR_CLOCK_VIRTUAL,
                              .seconds_per_step = seconds,
                              .budget = budget,
                              .startup_cap = 60,
                              .reserve = 5};
}

TEST(virtual_budget_buys_whole_steps)
{
    static const double seconds[] = {0.1, 0.3, 1.0 / 3, 0.7, 1, 1e-3, 17.77};
    for (int s = 0; s < 7; s++) {
        for (int64_t steps = 1; steps < 400; steps += 7) {
            machine m = {.batches = 2};
            fr_clock_options options = virtual_options(seconds[s], seconds[s] * (double)steps);
            fr_clock *clock = make(&options);
            trace t;
            train(clock, &m, 0, 4096, &t);
            CHECK_INT(t.steps, steps);
            CHECK(!t.over && t.dropped < 0);
            CHECK_NEAR(t.progress[steps - 1], (double)(steps - 1) / (double)steps, 1e-12, 0);
            fr_clock_free(clock);
        }
    }
}

TEST(virtual_resume_has_the_same_bits)
{
    machine m = {.batches = 1};
    fr_clock_options options = virtual_options(0.1, 20);
    options.free_steps = 5;
    trace whole, part;
    fr_clock *clock = make(&options);
    train(clock, &m, 0, 4096, &whole);
    CHECK_INT(whole.steps, 205);
    fr_clock_free(clock);
    for (int64_t at = 0; at < 205; at += 13) {
        clock = make(&options);
        train(clock, &m, 0, at, &part);
        double saved = fr_clock_charged(clock);
        fr_clock_free(clock);
        clock = make(&options);
        fr_clock_restore(clock, saved, at);
        train(clock, &m, at, 4096, &part);
        CHECK(same_trace(&whole, &part));
        fr_clock_free(clock);
    }
}

/* ---- replay ------------------------------------------------------------------------------------- */

TEST(replay_is_the_same_run_bit_for_bit)
{
    char run[600], second[600];
    CHECK_OK(fr_folder_make(scratch("run"), &error));
    snprintf(run, sizeof run, "%s", scratch("run/clock.jsonl"));
    snprintf(second, sizeof second, "%s", scratch("second.jsonl"));
    int dropped = 0;
    for (int round = 0; round < 200; round++) {
        machine m = {.now = round * 1000000007ll,
                     .rng = {(uint64_t)round, 3, 0},
                     .batch_s = 0.05,
                     .stall_s = 1.5,
                     .stall_chance = 0.05};
        m.batches = 1 + round % 5;
        fr_clock_options options = wall(&m, 3, 0.2, run);
        options.free_steps = round % 3;
        fr_clock *clock = make(&options);
        trace original, copy, copy_of_copy;
        train(clock, &m, 0, 4096, &original);
        CHECK_OK(fr_clock_log_status(clock, &error));
        fr_clock_free(clock);
        replay(scratch("run"), second, &copy);
        replay(second, NULL, &copy_of_copy);
        CHECK(same_trace(&original, &copy));
        CHECK(same_trace(&original, &copy_of_copy));
        CHECK_NEAR(copy.startup, original.startup, 1e-6, 0);
        dropped += original.dropped >= 0;
    }
    CHECK(dropped > 20 && dropped < 195);
}

TEST(replay_names_the_source_and_budget)
{
    machine m = {.batches = 1};
    fr_clock_options options = virtual_options(1, 3);
    char path[600];
    snprintf(path, sizeof path, "%s", scratch("v.jsonl"));
    options.log_path = path;
    fr_clock *clock = make(&options);
    trace t;
    CHECK_STR(fr_clock_source(clock), "virtual");
    train(clock, &m, 0, 4096, &t);
    fr_clock_free(clock);
    fr_clock_options again = {.kind = FR_CLOCK_REPLAY, .replay_path = path, .budget = 77};
    clock = make(&again);
    CHECK_STR(fr_clock_source(clock), "replay");
    CHECK(fr_clock_budget(clock) == 3);
    CHECK(fr_clock_begin_step(clock, 9, &error) < 0);
    CHECK(strstr(error.what, "steps 0 to 2, not step 9"));
    fr_clock_free(clock);
}

/* A run that is killed (its last line torn at any byte) and resumed replays as the steps that count. */
TEST(kill_resume_replay)
{
    char path[600];
    snprintf(path, sizeof path, "%s", scratch("kill.jsonl"));
    for (int cut = 0; cut < 150; cut += 7) {
        machine m = {.now = 12345, .rng = {(uint64_t)cut, 5, 0}, .batch_s = 0.05, .batches = 3};
        fr_clock_options options = wall(&m, 3, 0.2, path);
        trace whole, t;
        fr_clock *clock = make(&options);
        train(clock, &m, 0, 10, &t); /* checkpoint after step 9 */
        whole = t;
        double saved = t.charged;
        train(clock, &m, 10, 14, &t); /* four more, then the kill */
        fr_clock_free(clock);
        int descriptor = open(path, O_WRONLY);
        off_t size = lseek(descriptor, 0, SEEK_END);
        CHECK(ftruncate(descriptor, size - cut) == 0);
        close(descriptor);
        clock = make(&options);
        fr_clock_restore(clock, saved, 10);
        pass(&m, 20); /* starting again is free, too */
        train(clock, &m, 10, 4096, &t);
        CHECK(t.charged >= 2.8 && t.charged <= 3);
        fr_clock_free(clock);
        memcpy(t.progress, whole.progress, 10 * sizeof(double));
        trace copy;
        replay(path, NULL, &copy);
        CHECK(same_trace(&t, &copy));
    }
}

TEST(a_new_run_replaces_an_old_log)
{
    char path[600];
    snprintf(path, sizeof path, "%s", scratch("twice.jsonl"));
    for (int round = 0; round < 2; round++) {
        machine m = {.batches = 1, .batch_s = 0.1, .rng = {(uint64_t)round, 9, 0}};
        fr_clock_options options = wall(&m, 2, 0.2, path);
        fr_clock *clock = make(&options);
        trace t, copy;
        train(clock, &m, 0, 4096, &t);
        fr_clock_free(clock);
        replay(path, NULL, &copy);
        CHECK(same_trace(&t, &copy));
    }
}

/* ---- failures ----------------------------------------------------------------------------------- */

TEST(a_full_disk_is_reported_and_the_log_stays_whole)
{
    char path[600];
    snprintf(path, sizeof path, "%s", scratch("disk.jsonl"));
    for (int n = 0; n < 1200; n += 37) {
        machine m = {.batches = 1, .batch_s = 0.1};
        fr_clock_options options = wall(&m, 100, 1, path);
        fr_clock *clock = make(&options);
        fr_file_fail_after(n);
        int64_t step = 0;
        fr_status status = FR_OK;
        for (; step < 20 && status == FR_OK; step++) {
            fr_clock_begin_step(clock, step, &error);
            work(&m);
            status = fr_clock_end_step(clock, step, &error);
        }
        fr_file_fail_after(-1);
        CHECK_INT(status, FR_BAD_ENVIRONMENT);
        CHECK(strstr(error.what, "disk is full"));
        CHECK_INT(fr_clock_log_status(clock, NULL), FR_BAD_ENVIRONMENT);
        fr_clock_free(clock);
        fr_clock_history history;
        status = fr_clock_history_load(&history, path, &error);
        CHECK(step == 1 ? status == FR_BAD_DATA
                        : status == FR_OK && history.count == step - 1 && !history.torn && !history.stopped);
        if (status == FR_OK)
            fr_clock_history_release(&history);
    }
}

#define STEP(N, P)                                                                                           \
    "{\"t_ns\":1,\"boot_id\":\"\",\"event\":\"step\",\"step\":" #N ",\"progress\":" P ",\"charged_s\":1}\n"

TEST(hostile_logs_are_refused_by_line)
{
    static const struct {
        const char *text, *where;
    } bad[] = {
        {"", "h.jsonl"},
        {"[]\n", "h.jsonl:1"},
        {STEP(0, "0") "{\n" STEP(1, "0"), "h.jsonl:2"},
        {STEP(0, "0") STEP(2, "0"), "h.jsonl:2"},
        {STEP(0, "0") STEP(0, "0"), "h.jsonl:2"},
        {STEP(-1, "0"), "h.jsonl:1"},
        {STEP(0, "1.5"), "h.jsonl:1"},
        {STEP(0, "-0.1"), "h.jsonl:1"},
        {STEP(0, "\"x\""), "h.jsonl:1"},
        {"{\"event\":\"step\",\"step\":0,\"progress\":0}\n", "h.jsonl:1"},
        {"{\"event\":\"step\",\"step\":0,\"progress\":0,\"charged_s\":-1}\n", "h.jsonl:1"},
        {"{\"event\":\"dance\",\"step\":0,\"progress\":0,\"charged_s\":1}\n", "h.jsonl:1"},
        {"{\"event\":\"drop\",\"step\":0,\"progress\":0,\"charged_s\":1}\n" STEP(1, "0"), "h.jsonl:2"},
        {STEP(0, "0") "{\"event\":\"resume\",\"step\":5,\"progress\":0,\"charged_s\":1,\"budget_s\":1}\n",
         "h.jsonl:2"},
        {"{\"event\":\"start\",\"step\":0,\"progress\":0,\"charged_s\":1}\n", "h.jsonl:1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fr_clock_history history;
        CHECK_OK(fr_file_write(scratch("h.jsonl"), bad[i].text, strlen(bad[i].text), &error));
        CHECK_INT(fr_clock_history_load(&history, scratch("h.jsonl"), &error), FR_BAD_DATA);
        const char *name = strrchr(error.where, '/');
        CHECK_STR(name ? name + 1 : error.where, bad[i].where);
    }
}

TEST(options_are_checked)
{
    fr_clock *clock = NULL;
    machine m = {0};
    fr_clock_options good = wall(&m, 100, 5, NULL), o;
    o = good, o.budget = NAN;
    CHECK_INT(fr_clock_create(&clock, &o, &error), FR_BAD_USAGE);
    o = good, o.reserve = 100;
    CHECK_INT(fr_clock_create(&clock, &o, &error), FR_BAD_USAGE);
    o = good, o.reserve = -1;
    CHECK_INT(fr_clock_create(&clock, &o, &error), FR_BAD_USAGE);
    o = good, o.startup_cap = NAN;
    CHECK_INT(fr_clock_create(&clock, &o, &error), FR_BAD_USAGE);
    o = good, o.free_steps = -1;
    CHECK_INT(fr_clock_create(&clock, &o, &error), FR_BAD_USAGE);
    o = virtual_options(0, 10);
    CHECK_INT(fr_clock_create(&clock, &o, &error), FR_BAD_USAGE);
    o = (fr_clock_options){.kind = FR_CLOCK_REPLAY};
    CHECK_INT(fr_clock_create(&clock, &o, &error), FR_BAD_USAGE);
    o.replay_path = scratch("no-such-run");
    CHECK_INT(fr_clock_create(&clock, &o, &error), FR_BAD_DATA);
    o = good, o.log_path = scratch("no/such/folder");
    CHECK_INT(fr_clock_create(&clock, &o, &error), FR_BAD_ENVIRONMENT);
    for (int n = 0; n < 2; n++) {
        o = good, o.log_path = scratch("alloc.jsonl");
        fr_allocate_fail_after(n);
        CHECK_INT(fr_clock_create(&clock, &o, &error), FR_BAD_ENVIRONMENT);
        fr_allocate_fail_after(-1);
    }
    CHECK(!clock);
    fr_clock_free(NULL);
    clock = make(&good);
    fr_clock_begin_step(clock, 0, &error);
    CHECK_INT(fr_clock_end_step(clock, 1, &error), FR_BUG);
    fr_clock_free(clock);
}

TEST(parsing_the_command_line)
{
    char storage[32];
    fr_clock_options o = {0};
    CHECK_OK(fr_clock_parse("wall", &o, storage, sizeof storage, &error));
    CHECK_INT(o.kind, FR_CLOCK_WALL);
    CHECK_OK(fr_clock_parse("virtual:250ms", &o, storage, sizeof storage, &error));
    CHECK(o.kind == FR_CLOCK_VIRTUAL && o.seconds_per_step == 0.25);
    CHECK_OK(fr_clock_parse("replay:runs/a", &o, storage, sizeof storage, &error));
    CHECK(o.kind == FR_CLOCK_REPLAY && o.replay_path == storage);
    CHECK_STR(storage, "runs/a");
    static const char *const bad[] = {
        "",           "walls",     "virtual", "virtual:", "virtual:0",
        "virtual:-1", "virtual:x", "replay:", "replay",   "replay:a-path-that-is-longer-than-the-storage"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_INT(fr_clock_parse(bad[i], &o, storage, sizeof storage, &error), FR_BAD_USAGE);
}

TEST(the_real_clock_moves)
{
    fr_clock_options o = {.kind = FR_CLOCK_WALL, .budget = 100, .startup_cap = 60, .reserve = 5};
    fr_clock *clock = make(&o);
    fr_clock_first_batch(clock);
    usleep(20000);
    double charged = fr_clock_charged(clock);
    CHECK(charged >= 0.02 && charged < 10);
    CHECK(!fr_clock_expired(clock) && !fr_clock_finished(clock, 1, 0));
    fr_clock_free(clock);
}

TEST_MAIN(clock)
