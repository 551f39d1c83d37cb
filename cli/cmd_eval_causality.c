/* cli/cmd_eval_causality.c: `frontier eval causality RUN`: does the model answer from the past alone?
 *
 * The verdict is kept in RUN/causality.json under a hash of what answered, so that it cannot be lent to other
 * weights: `eval bpb` looks there before it believes a score that no model of text should reach.
 */
#include "causality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "commands.h"
#include "frontier/causality.h"
#include "run_folder.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"data", CLI_PATH, "FOLDER", NULL, "rows come from here (default: the run's data; random tokens if that is gone)",
     false, false},
    {"rows", CLI_COUNT, "N", "4", "rows to probe", false, false},
    {"context", CLI_COUNT, "T", "0", "tokens of a row; 0 = the recipe's", false, false},
    {"seed", CLI_TEXT, "N", NULL, "where and with what to probe (default: not to be known beforehand)", false, false},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
    {"numerics", CLI_CHOICE, "fp32|bf16", NULL, "override the recipe's numerics", false, false},
};

/* ---- the record --------------------------------------------------------------------------------------- */

static fr_status write_record(const cli_run *run, const cli_scored *scored, const fr_causality_result *result,
                              fr_error *error)
{
    char path[1200], hash[65];
    FR_TRY(cli_scored_hash(scored, hash, error));
    json_t *record = json_object();
    json_object_set_new(record, "schema", json_integer(1));
    json_object_set_new(record, "model_sha256", json_string(hash));
    json_object_set_new(record, "passed", json_boolean(result->passed));
    json_object_set(record, "max_difference", json_object_get(run->result, "max_difference"));
    json_object_set(record, "probes", json_object_get(run->result, "probes"));
    json_object_set(record, "seed", json_object_get(run->result, "seed"));
    fr_status status = fr_json_write(
        record, fr_path_join(path, sizeof path, scored->folder, "causality.json"), error);
    json_decref(record);
    return status;
}

/* Whether this very model was probed, and what came of it. */
static fr_status read_record(const cli_scored *scored, bool *probed, bool *passed, fr_error *error)
{
    char path[1200], hash[65];
    json_t *record;
    *probed = *passed = false;
    fr_path_join(path, sizeof path, scored->folder, "causality.json");
    if (!fr_path_exists(path))
        return FR_OK;
    FR_TRY(cli_scored_hash(scored, hash, error));
    FR_TRY(fr_json_read(&record, path, error));
    *probed = strcmp(cli_string(record, "model_sha256"), hash) == 0;
    *passed = *probed && json_is_true(json_object_get(record, "passed"));
    json_decref(record);
    return FR_OK;
}

fr_status cli_plausible(const cli_scored *scored, double bpb, double floor_bpb, fr_error *error)
{
    char hint[300];
    bool probed, passed;
    double limit = fr_implausible_bpb(floor_bpb);
    if (!(bpb < limit) || scored->foreign) /* the library's own code over weights of others: nothing to probe */
        return FR_OK;
    FR_TRY(read_record(scored, &probed, &passed, error));
    if (passed)
        return FR_OK;
    snprintf(hint, sizeof hint, "frontier eval causality %.200s; it is believed once that passes", scored->folder);
    return fr_error_set(error, FR_ANSWER_NO, "val_bpb", probed ? NULL : hint,
                        probed ? "%.6f is below %.4f, and this model failed 'eval causality'"
                               : "%.6f is below %.4f, which no honest model of this text should reach",
                        bpb, limit);
}

/* ---- what is told ------------------------------------------------------------------------------------- */

static json_t *difference(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void tell(cli_run *run, const fr_causality_result *result, const char *rows, uint64_t seed)
{
    char text[32];
    json_t *probes = json_object();
    cli_progress_end();
    cli_print(run, "%-11s %-6s %12s %12s %9s %9s\n", "probe", "", "largest", "mean", "asked", "compared");
    for (int i = 0; i < FR_PROBE_COUNT; i++) {
        const fr_probe_result *r = &result->probes[i];
        cli_print(run, "%-11s %-6s %12.3g %12.3g %9lld %9lld  %s\n", fr_probe_name(i), r->passed ? "ok" : "FAILED",
                  r->max_difference, r->mean_difference, (long long)r->questions, (long long)r->positions,
                  fr_probe_question(i));
        json_object_set_new(
            probes, fr_probe_name(i),
            json_pack("{s:b s:o s:o s:I s:I s:I s:I}", "passed", r->passed, "max_difference",
                      difference(r->max_difference), "mean_difference", difference(r->mean_difference), "asked",
                      (json_int_t)r->questions, "positions", (json_int_t)r->positions, "row", (json_int_t)r->row,
                      "position", (json_int_t)r->position));
    }
    cli_print(run, "%s; differences of log p, at most %g anywhere and %g on average; rows: %s; seed %llu\n",
              result->passed ? "causal and consistent" : "NOT causal and consistent", FR_CAUSALITY_MOST,
              FR_CAUSALITY_MEAN, rows, (unsigned long long)seed);
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    cli_put(run, "passed", json_boolean(result->passed));
    cli_put(run, "max_difference", difference(result->max_difference));
    cli_put(run, "tolerance", json_pack("{s:f s:f}", "max", FR_CAUSALITY_MOST, "mean", FR_CAUSALITY_MEAN));
    cli_put(run, "probes", probes);
    cli_put(run, "rows", json_string(rows));
    cli_put(run, "seed", json_string(text));
    cli_put(run, "basis", json_string("measured"));
}

/* ---- the command -------------------------------------------------------------------------------------- */

static fr_status restart(void *scored, fr_error *error)
{
    return cli_scored_restart(scored, error);
}

static fr_status choose_seed(const cli_run *run, uint64_t *seed, fr_error *error)
{
    const char *given = cli_text(run, "seed");
    char *end;
    if (!given)
        return getrandom(seed, sizeof *seed, 0) == (ssize_t)sizeof *seed
                   ? FR_OK
                   : fr_error_set(error, FR_BAD_ENVIRONMENT, "--seed", "give one", "the system has no random numbers");
    *seed = strtoull(given, &end, 10);
    return *given && !*end ? FR_OK
                           : fr_error_set(error, FR_BAD_USAGE, "--seed", "a whole number", "'%.40s'", given);
}

static fr_status probe(cli_run *run, cli_scored *scored, const fr_corpus *corpus, fr_error *error)
{
    fr_causality_result result;
    int64_t vocab = fr_tokenizer_vocab(cli_scored_tokenizer(scored));
    fr_causality_options probing = {.rows = cli_int(run, "rows", 4),
                                    .T = cli_int(run, "context", 0),
                                    .progress = &run->progress};
    fr_causality_source source = {cli_scored_logits, cli_scored_nats, restart, scored};
    if (!probing.T)
        probing.T = scored->recipe.model.context;
    FR_TRY(choose_seed(run, &probing.seed, error));
    if (corpus)
        FR_TRY(cli_scored_fits(scored, corpus, error));
    int32_t *ids = fr_arena_alloc(&run->arena, (size_t)(probing.rows * (probing.T + 1)) * sizeof *ids);
    if (!ids)
        return fr_error_memory(error, (size_t)(probing.rows * probing.T) * sizeof *ids, "rows to probe");
    FR_TRY(fr_causality_rows(corpus, vocab, probing.rows, probing.T, probing.seed, ids, error));
    FR_TRY(fr_eval_causality(&source, vocab, ids, &probing, &result, error));
    tell(run, &result, corpus ? "validation text" : "random tokens", probing.seed);
    FR_TRY(write_record(run, scored, &result, error));
    return result.passed ? FR_OK : FR_ANSWER_NO;
}

static fr_status run_causality(cli_run *run, fr_error *error)
{
    json_t *record = NULL;
    fr_corpus *corpus = NULL;
    cli_scored scored;
    FR_TRY(cli_run_record(run->arguments[0], &record, error));
    const char *given = cli_text(run, "data"), *folder = given ? given : cli_string(record, "data");
    fr_status status = FR_OK;
    if (given || fr_path_is_folder(folder))
        status = fr_corpus_open(&corpus, folder, false, error);
    if (status == FR_OK)
        status = cli_scored_open(&scored, run->arguments[0], (int)cli_int(run, "threads", 0),
                                 cli_text(run, "numerics"), error);
    if (status == FR_OK) {
        status = probe(run, &scored, corpus, error);
        cli_scored_release(&scored);
    }
    fr_corpus_free(corpus);
    json_decref(record);
    return status;
}

const cli_command cmd_eval_causality = {
    .name = "eval causality",
    .arguments = "RUN",
    .least = 1,
    .most = 1,
    .summary = "whether a run's logits depend on the past alone: six probes and a verdict",
    .options = options,
    .option_count = COUNT(options),
    .details = "Every probe changes what must not matter (later tokens, other rows, how positions are asked for) and\n"
               "compares log-probabilities. Exit code 1 when one fails. RUN/causality.json keeps the verdict, for these\n"
               "weights and this program only. See docs/causality.md.",
    .examples = "  frontier eval causality runs/first\n  frontier eval causality runs/mine --rows 8 --json",
    .run = run_causality,
    .schema = "eval-causality",
};
