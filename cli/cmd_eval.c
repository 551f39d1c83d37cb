/* cli/cmd_eval.c: `frontier eval bpb RUN`: score a checkpoint again, on its own or another evaluation set. */
#include <string.h>

#include "causality.h"
#include "commands.h"
#include "frontier/eval.h"
#include "run_folder.h"
#include "score.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    CLI_OPTION_HF,
    {"data", CLI_PATH, "FOLDER", NULL, "data folder (default: the one the run was trained on)", false, false},
    {"set", CLI_TEXT, "NAME", "valid", "evaluation set of that folder", false, false},
    {"context", CLI_COUNT, "T", "0", "row length; 0 = the recipe's", false, false},
    {"documents", CLI_PATH, "FILE", NULL, "write nats and bytes per document, as JSON lines", false, false},
    {"max-tokens", CLI_SIZE, "N", "0", "stop after that many tokens; the set's name then says so", false,
     false},
    {"record", CLI_FLAG, NULL, NULL, "make this the run's score in RUN/run.json, as after --unscored", false, false},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
    {"numerics", CLI_CHOICE, "fp32|bf16", NULL, "override the recipe's numerics", false, false},
};

static void put_result(cli_run *run, const fr_bpb_result *r)
{
    cli_put(run, "val_bpb", json_real(r->val_bpb));
    cli_put(run, "nats", json_real(r->nats));
    cli_put(run, "bytes", json_integer(r->bytes));
    cli_put(run, "tokens", json_integer(r->tokens));
    cli_put(run, "documents", json_integer(r->documents));
    cli_put(run, "eval_set", json_string(r->eval_set));
    cli_put(run, "text_sha256", json_string(r->text_sha256));
    cli_put(run, "tokenizer_sha256", json_string(r->tokenizer_sha256));
    cli_put(run, "layout", json_string(r->layout));
    cli_put(run, "byte_lengths", json_string(r->byte_lengths));
    cli_put(run, "context", json_integer(r->context));
    cli_put(run, "seconds", json_real(r->seconds));
    cli_put(run, "basis", json_string("measured"));
}

static fr_status score(cli_run *run, cli_scored *scored, const char *folder, fr_error *error)
{
    fr_corpus *corpus;
    fr_bpb_result result;
    FR_TRY(fr_corpus_open(&corpus, folder, false, error));
    fr_bpb_options bpb = {.set = cli_text(run, "set"),
                          .context = cli_int(run, "context", 0),
                          .max_tokens = cli_bytes(run, "max-tokens", 0),
                          .documents_path = cli_text(run, "documents"),
                          .progress = &run->progress};
    fr_status status = cli_scored_bpb(scored, corpus, &bpb, &result, error);
    if (status == FR_OK)
        status = cli_plausible(scored, result.val_bpb, fr_corpus_floor_bpb(corpus), error);
    if (status == FR_OK) {
        char bytes[40], seconds[40];
        cli_print(run, "val_bpb %.6f  (set %s, %s, %lld documents, context %lld, %s)\n", result.val_bpb,
                  result.eval_set, fr_format_bytes(bytes, sizeof bytes, (double)result.bytes),
                  (long long)result.documents, (long long)result.context,
                  fr_format_duration(seconds, sizeof seconds, result.seconds));
        put_result(run, &result);
    }
    if (status == FR_OK && cli_flag(run, "record"))
        status = fr_run_record_score(run->arguments[0], &result, fr_corpus_floor_bpb(corpus), error);
    fr_corpus_free(corpus);
    return status;
}

static fr_status run_bpb(cli_run *run, fr_error *error)
{
    const char *folder = cli_text(run, "data");
    json_t *record = NULL;
    cli_scored scored;
    if (cli_flag(run, "record") && (cli_text(run, "numerics") || cli_bytes(run, "max-tokens", 0)))
        return fr_error_set(error, FR_BAD_USAGE, "--record", "leave out --max-tokens and --numerics",
                            "only the whole set in the recipe's numerics is a run's score");
    if (cli_flag(run, "record") && cli_text(run, "hf"))
        return fr_error_set(error, FR_BAD_USAGE, "--record", "import the folder first",
                            "a Hugging Face folder has no run.json to record a score in");
    if (run->argument_count)
        FR_TRY(cli_run_record(run->arguments[0], &record, error));
    if (!folder)
        folder = cli_string(record, "data");
    fr_status status = *folder || (!run->argument_count && !cli_text(run, "hf"))
                           ? cli_scored_open_asked(&scored, run, error)
                           : fr_error_set(error, FR_BAD_USAGE, NULL, "frontier eval bpb RUN --data FOLDER",
                                          "the run does not say what it was trained on");
    if (status == FR_OK) {
        status = score(run, &scored, folder, error);
        cli_scored_release(&scored);
    }
    json_decref(record);
    return status;
}

const cli_command cmd_eval_bpb = {
    .name = "eval bpb",
    .arguments = "[RUN]",
    .least = 0,
    .most = 1,
    .summary = "bits per byte of a run on an evaluation set",
    .options = options,
    .option_count = COUNT(options),
    .details = "Whole documents, joined by BOS, cut into rows; every document byte is scored exactly once. "
               "The result is\n"
               "the same to the last bit for any number of threads. A score below what honest models reach (0.35, or 0.98 of\n"
               "the data's known floor) is refused until 'eval causality' passed on these weights.",
    .examples = "  frontier eval bpb runs/first\n  frontier eval bpb runs/first --data data/other "
                "--documents per-document.jsonl\n  frontier eval bpb --hf gpt2 --data data/for-gpt2",
    .run = run_bpb,
    .schema = "eval-bpb",
};
