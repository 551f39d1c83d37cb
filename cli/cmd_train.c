/* cli/cmd_train.c: `frontier train`: recipe, forecast, the run, its score.
 *
 * Before anything is charged it says what will happen: which recipe, how big, how fast, how many steps and epochs the
 * budget buys. With --program the training runs in the submission's own program, started by this one, which
 * keeps the scoring to itself.
 */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "frontier/submission.h"
#include "linked.h"
#include "program.h"
#include "run_folder.h"
#include "score.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"data", CLI_PATH, "FOLDER", NULL, "the data folder to train on", false, true},
    {"out", CLI_PATH, "RUN", "run", "the run folder to make", false, false},
    {"recipe", CLI_PATH, "FILE", NULL,
     "recipe to follow (default: one is chosen for machine and budget, and printed; a resumed or replayed "
     "run keeps its own)", false, false},
    {"set", CLI_TEXT, "KEY=VALUE", NULL, "override a recipe key, e.g. model.depth=6", true, false},
    {"budget", CLI_DURATION, "TIME", NULL,
     "charged time: 90s, 30m, 4h (default 10m unless clock.max_steps is set)", false, false},
    {"clock", CLI_TEXT, "SOURCE", "wall", "wall, virtual:SECONDS per step, or replay:RUN", false, false},
    {"charge", CLI_CHOICE, "first-batch|kit", "first-batch",
     "what start-up is free: until the first batch (60 s at most), or 5 steps (900 s at most)", false, false},
    {"seed", CLI_INT, "N", "42", "random seed of weights and data order", false, false},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
    {"device", CLI_CHOICE, "cpu", "cpu", "where to compute", false, false},
    {"program", CLI_PATH, "FOLDER", NULL, "train with this submission's program (see baseline/)", false,
     false},
    {"eval-set", CLI_TEXT, "NAME", "valid", "evaluation set for the final score", false, false},
    {"resume", CLI_FLAG, NULL, NULL, "continue a stopped run in --out", false, false},
    {"forecast", CLI_FLAG, NULL, NULL, "print the forecast and stop", false, false},
    {"unscored", CLI_FLAG, NULL, NULL, "leave out the final evaluation", false, false},
    {"program-sha256", CLI_TEXT, "HEX", NULL, NULL, false, false},
};

/* ---- what to run ------------------------------------------------------------------------------------- */

static fr_status choose_recipe(cli_run *run, fr_train_options *t, const fr_corpus *corpus, fr_error *error)
{
    fr_peak peak;
    char why[400];
    FR_TRY(fr_cpu_peak(t->threads > 0 ? t->threads : fr_cpu_available(), 0.3, &peak, error));
    FR_TRY(fr_recipe_choose(&t->recipe, t->clock.budget > 0 ? t->clock.budget : 600, peak.flops,
                            fr_corpus_tokens(corpus, FR_TRAIN),
                            fr_tokenizer_vocab(fr_corpus_tokenizer(corpus)), why, sizeof why, error));
    cli_print(run, "recipe: chosen for this machine and budget: %s\n", why);
    t->recipe_name = "chosen";
    return FR_OK;
}

static fr_status resolve_recipe(cli_run *run, fr_train_options *t, const fr_corpus *corpus, fr_error *error)
{
    const char *path = cli_text(run, "recipe"), **sets;
    char kept[1200];
    if (!path && (t->resume || t->clock.replay_path)) {
        path = fr_path_join(kept, sizeof kept, t->resume ? t->run_folder : t->clock.replay_path, "recipe.toml");
        if (t->resume && !fr_path_exists(path))
            return fr_error_set(error, FR_BAD_USAGE, t->run_folder, "leave --resume out to start one",
                                "there is no run to continue");
    }
    if (path) {
        FR_TRY(fr_recipe_load(&t->recipe, path, error));
        t->recipe_name = fr_arena_strdup(&run->arena, path);
    } else {
        FR_TRY(choose_recipe(run, t, corpus, error));
    }
    int count = cli_texts(run, "set", &sets);
    for (int i = 0; i < count; i++)
        FR_TRY(fr_recipe_set(&t->recipe, sets[i], error));
    return fr_recipe_check(&t->recipe, error);
}

static fr_status resolve_clock(cli_run *run, fr_train_options *t, fr_error *error)
{
    char *storage = fr_arena_alloc(&run->arena, 1024);
    if (!storage)
        return fr_error_memory(error, 1024, "the clock");
    t->clock_text = cli_text(run, "clock");
    FR_TRY(fr_clock_parse(t->clock_text, &t->clock, storage, 1024, error));
    t->clock.startup_cap = 60;
    if (strcmp(cli_text(run, "charge"), "kit") == 0) {
        t->clock.free_steps = 5;
        t->clock.startup_cap = 900;
    }
    t->clock.budget = cli_seconds(run, "budget", 0);
    if (cli_text(run, "budget") && t->clock.budget <= 0)
        return fr_error_set(error, FR_BAD_USAGE, "--budget", "give a time such as 10m",
                            "the budget is not above zero");
    return FR_OK;
}

static void warn_of_threads(cli_run *run, int threads)
{
    if (threads > fr_cpu_available())
        cli_warn(run, "%d threads share %d processors: they will wait for each other", threads, fr_cpu_available());
}

static void default_budget(fr_train_options *t)
{
    t->clock.max_steps = t->recipe.clock.max_steps;
    if (t->clock.budget <= 0 && t->clock.max_steps <= 0 && t->clock.kind != FR_CLOCK_REPLAY)
        t->clock.budget = 600;
}

/* ---- what will happen ---------------------------------------------------------------------------------- */

static void print_forecast(cli_run *run, const fr_forecast *f)
{
    char a[40], b[40], c[40], d[40];
    cli_print(run, "forecast: %s per step of %s tokens", fr_format_duration(a, sizeof a, f->seconds_per_step),
              fr_format_count(b, sizeof b, f->batch_tokens));
    cli_print(
        run,
        " (%lld shards, %lld rows each at a time): about %.0f steps, %s tokens, %.2f epochs; memory %s\n",
        (long long)f->shards, (long long)f->micro_rows, f->steps,
        fr_format_count(c, sizeof c, (int64_t)f->tokens), f->epochs,
        fr_format_bytes(d, sizeof d, (double)f->memory_bytes));
    if (f->epochs > 1.001)
        cli_warn(run, "the data repeats after %.1f %% of the run (%.2f epochs); more text would help",
                 100 / f->epochs, f->epochs);
    if (f->few_steps)
        cli_warn(run, "%s", f->advice);
}

static void put_forecast(cli_run *run, const fr_forecast *f)
{
    json_t *out = json_object();
    fr_json_set_real(out, "seconds_per_step", f->seconds_per_step);
    fr_json_set_real(out, "steps", f->steps);
    fr_json_set_real(out, "tokens", f->tokens);
    fr_json_set_real(out, "epochs", f->epochs);
    fr_json_set_int(out, "params", f->params);
    fr_json_set_int(out, "memory_bytes", f->memory_bytes);
    fr_json_set_int(out, "batch_tokens", f->batch_tokens);
    fr_json_set_bool(out, "few_steps", f->few_steps);
    fr_json_set_string(out, "advice", f->advice);
    fr_json_set_string(out, "basis", "predicted");
    cli_put(run, "forecast", out);
}

static void print_start(cli_run *run, const fr_train_options *t, const fr_graph *graph)
{
    char a[40], b[40] = "no time limit";
    if (t->clock.budget > 0)
        fr_format_duration(b, sizeof b, t->clock.budget);
    cli_print(run, "model: depth %lld, width %lld, context %lld, %s parameters; budget %s on the %s clock\n",
              (long long)t->recipe.model.depth, (long long)fr_recipe_width(&t->recipe),
              (long long)t->recipe.model.context,
              fr_format_count(a, sizeof a, fr_graph_parameter_elements(graph)), b, t->clock_text);
}

/* ---- the run --------------------------------------------------------------------------------------------- */

static fr_status periodic_score(void *context, fr_session *session, double *val_bpb, fr_error *error)
{
    fr_scorer *scorer;
    fr_bpb_result result;
    const fr_recipe *recipe = fr_session_recipe(session);
    (void)context;
    FR_TRY(fr_scorer_create(&scorer, fr_session_graph(session), recipe, fr_session_parameters(session),
                            fr_session_pool(session), error));
    fr_status status =
        fr_eval_bpb(scorer, fr_session_corpus(session),
                    &(fr_bpb_options){.max_tokens = recipe->clock.eval_tokens}, &result, error);
    fr_scorer_free(scorer);
    *val_bpb = result.val_bpb;
    return status;
}

static fr_status run_loop(fr_session *session, fr_error *error)
{
    const fr_submission *submission = cli_linked_submission();
    if (!submission || !submission->train)
        return fr_session_run(session, error);
    fr_status status = submission->train(session, error);
    fr_error final = {0};
    if (status == FR_STOPPED) { /* a step was dropped, by the clock or on request: finishing tells which */
        status = FR_OK;
        *error = final;
    }
    fr_status finished = fr_session_finish(session, &final);
    if (status == FR_OK && finished != FR_OK)
        *error = final;
    return status != FR_OK ? status : finished;
}

static fr_status train_here(cli_run *run, fr_train_options *t, bool *stop, fr_error *error)
{
    fr_session *session;
    fr_forecast forecast;
    FR_TRY(fr_session_create(&session, t, error));
    print_start(run, t, fr_session_graph(session));
    fr_status status = fr_session_forecast(session, &forecast, error);
    if (status == FR_OK) {
        print_forecast(run, &forecast);
        put_forecast(run, &forecast);
        *stop = cli_flag(run, "forecast");
        if (!*stop)
            status = run_loop(session, error);
    }
    fr_session_free(session);
    return status;
}

static fr_status train_with_options(cli_run *run, bool *stop, fr_error *error)
{
    const fr_submission *submission = cli_linked_submission();
    fr_train_options t = {.data_folder = cli_text(run, "data"),
                          .run_folder = cli_text(run, "out"),
                          .resume = cli_flag(run, "resume"),
                          .rehearsal = cli_flag(run, "forecast"),
                          .seed = (uint64_t)cli_int(run, "seed", 42),
                          .threads = (int)cli_int(run, "threads", 0),
                          .eval_set = cli_text(run, "eval-set"),
                          .model = submission ? submission->model : NULL,
                          .program_sha256 = cli_text(run, "program-sha256"),
                          .progress = &run->progress,
                          .evaluate = periodic_score};
    fr_corpus *corpus;
    FR_TRY(resolve_clock(run, &t, error));
    FR_TRY(fr_corpus_open(&corpus, t.data_folder, false, error));
    fr_status status = resolve_recipe(run, &t, corpus, error);
    fr_corpus_free(corpus);
    FR_TRY(status);
    default_budget(&t);
    warn_of_threads(run, t.threads);
    return train_here(run, &t, stop, error);
}

/* ---- the score ------------------------------------------------------------------------------------------- */

static void print_score(cli_run *run, const fr_bpb_result *r, double floor)
{
    char bytes[40];
    cli_print(run, "%sval_bpb %.6f%s on %s of '%s'", cli_bold(stdout), r->val_bpb, cli_plain(stdout),
              fr_format_bytes(bytes, sizeof bytes, (double)r->bytes), r->eval_set);
    if (isfinite(floor))
        cli_print(run, "; floor %.4f, %.4f above it", floor, r->val_bpb - floor);
    cli_print(run, "\n");
}

static fr_status score_run(cli_run *run, const char *folder, fr_error *error)
{
    cli_scored scored;
    fr_corpus *corpus;
    fr_bpb_result result;
    FR_TRY(fr_corpus_open(&corpus, cli_text(run, "data"), false, error));
    double floor = fr_corpus_floor_bpb(corpus);
    fr_status status = cli_scored_open(&scored, folder, (int)cli_int(run, "threads", 0), NULL, error);
    if (status == FR_OK) {
        status = cli_scored_bpb(
            &scored, corpus, &(fr_bpb_options){.set = cli_text(run, "eval-set"), .progress = &run->progress},
            &result, error);
        cli_scored_release(&scored);
    }
    fr_corpus_free(corpus);
    if (status == FR_OK)
        status = fr_run_record_score(folder, &result, floor, error);
    if (status == FR_OK)
        print_score(run, &result, floor);
    return status;
}

static fr_status put_record(cli_run *run, const char *folder, fr_error *error)
{
    json_t *record;
    FR_TRY(cli_run_record(folder, &record, error));
    char time[40], speed[40] = "", peak[40] = "";
    if (isfinite(cli_number(record, "tokens_per_s")))
        snprintf(speed, sizeof speed, ", %.0f tokens/s", cli_number(record, "tokens_per_s"));
    if (isfinite(cli_number(record, "mfu")))
        snprintf(peak, sizeof peak, ", %.1f %% of peak", 100 * cli_number(record, "mfu"));
    if (!cli_linked_submission()) { /* a submission's program leaves the summary to the process that started it */
        cli_print(run, "%s: %s after %.0f steps in %s charged (%s clock)%s%s\n", folder,
                  cli_string(record, "status"), cli_number(record, "steps"),
                  fr_format_duration(time, sizeof time, cli_number(record, "charged_s")),
                  cli_string(json_object_get(record, "clock"), "source"), speed, peak);
        if (strcmp(cli_string(record, "status"), "finished") == 0)
            cli_print(run, "next: frontier sample %s --prompt \"The\"; frontier report %s\n",
                      cli_quoted(run, folder), cli_quoted(run, folder));
    }
    json_object_update_missing(run->result, record);
    json_decref(record);
    return FR_OK;
}

/* A run of hours must not end in "no such evaluation set". */
static fr_status check_eval_set(cli_run *run, fr_error *error)
{
    fr_corpus *corpus;
    fr_eval_set set;
    if (cli_flag(run, "unscored") || cli_flag(run, "forecast"))
        return FR_OK;
    FR_TRY(fr_corpus_open(&corpus, cli_text(run, "data"), false, error));
    fr_status status = fr_corpus_eval_set(corpus, cli_text(run, "eval-set"), &set, error);
    if (status == FR_OK && set.documents == 0)
        status = fr_error_set(error, FR_BAD_DATA, cli_text(run, "data"),
                              "import more text, or give --valid PATH; --unscored trains without a score",
                              "the evaluation set '%s' has no document", set.name);
    fr_corpus_free(corpus);
    return status;
}

static fr_status run_train(cli_run *run, fr_error *error)
{
    const char *folder = cli_text(run, "out");
    bool only_forecast = cli_flag(run, "forecast");
    fr_train_options unused = {0};
    FR_TRY(resolve_clock(run, &unused, error)); /* a mistyped option comes before anything is opened or compiled */
    FR_TRY(check_eval_set(run, error));
    fr_status status = cli_text(run, "program")
                           ? cli_train_program(run, cli_text(run, "program"), folder, error)
                           : train_with_options(run, &only_forecast, error);
    if (status == FR_OK && !only_forecast && !cli_flag(run, "unscored"))
        status = score_run(run, folder, error);
    if (!only_forecast && (status == FR_OK || status == FR_STOPPED)) {
        fr_error ignored = {0};
        fr_status put = put_record(run, folder, status == FR_OK ? error : &ignored);
        status = status == FR_OK ? put : status;
    }
    return status;
}

const cli_command cmd_train = {
    .name = "train",
    .least = 0,
    .most = 0,
    .summary = "train a language model until the charged clock stops it, then score it",
    .options = options,
    .option_count = COUNT(options),
    .details = "Charging starts when the first batch enters the model. Evaluation, sampling and saving "
               "before the stop are\n"
               "charged; the final save and the score are not. Ctrl-C and SIGTERM save the run and end with "
               "exit code 6.\n"
               "--set clock.eval_every=100 scores a part of the validation text every 100 steps, "
               "--set clock.checkpoint_every=100\n"
               "saves as often. RUN/recipe.toml lists every recipe key with its meaning.",
    .examples =
        "  frontier train --data data/mine --budget 10m --out runs/first\n"
        "  frontier train --data data/mine --recipe recipes/baseline.toml --budget 30m --set model.depth=6\n"
        "  frontier train --data data/mine --program baseline --recipe baseline/recipe.toml --budget 10m "
        "--out runs/mine",
    .run = run_train,
    .schema = "train",
};
