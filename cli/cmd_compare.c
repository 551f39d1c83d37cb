/* cli/cmd_compare.c: `frontier compare RUN RUN...`: runs side by side, best first.
 *
 * Scores are only ranked when they are scores of the same thing: another evaluation set is refused, another context or
 * layout too unless --anyway, another tokenizer compares with a note, since bits per byte do not depend on it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "frontier/eval.h"
#include "run_folder.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"anyway", CLI_FLAG, NULL, NULL, "compare across contexts and layouts too", false, false},
};

static void score_of(const json_t *record, fr_bpb_result *r)
{
    *r = (fr_bpb_result){.val_bpb = cli_number(record, "val_bpb"),
                         .bytes = (int64_t)cli_number(record, "val_bytes"),
                         .context = (int64_t)cli_number(record, "val_context")};
    snprintf(r->eval_set, sizeof r->eval_set, "%s", cli_string(record, "eval_set"));
    snprintf(r->text_sha256, sizeof r->text_sha256, "%s", cli_string(record, "val_text_sha256"));
    snprintf(r->tokenizer_sha256, sizeof r->tokenizer_sha256, "%s",
             cli_string(json_object_get(record, "hashes"), "tokenizer"));
    snprintf(r->layout, sizeof r->layout, "%s", cli_string(record, "val_layout"));
    snprintf(r->byte_lengths, sizeof r->byte_lengths, "%s", cli_string(record, "val_byte_lengths"));
}

static fr_status load_all(cli_run *run, json_t **records, fr_error *error)
{
    for (int i = 0; i < run->argument_count; i++) {
        FR_TRY(cli_run_record(run->arguments[i], &records[i], error));
        if (!isfinite(cli_number(records[i], "val_bpb")))
            return fr_error_set(
                error, FR_BAD_DATA, run->arguments[i],
                "finish it with 'frontier train --resume' or score it with 'frontier eval bpb RUN --record'",
                "this run has no score (status %s)", cli_string(records[i], "status"));
    }
    return FR_OK;
}

static fr_status check_all(cli_run *run, json_t **records, fr_error *error)
{
    fr_bpb_result first, other;
    char note[200];
    score_of(records[0], &first);
    for (int i = 1; i < run->argument_count; i++) {
        score_of(records[i], &other);
        note[0] = 0;
        fr_status status =
            fr_bpb_comparable(&first, &other, cli_flag(run, "anyway"), note, sizeof note, error);
        if (status != FR_OK)
            return fr_error_within(error, status, run->arguments[i]);
        if (note[0])
            cli_print(run, "note: %s: %s\n", run->arguments[i], note);
    }
    return FR_OK;
}

static json_t *row_of(const json_t *record, const char *folder, double best)
{
    static const char *const copied[] = {"val_bpb", "params", "steps", "charged_s"};
    json_t *row = json_object();
    fr_json_set_string(row, "run", folder);
    for (int i = 0; i < COUNT(copied); i++)
        fr_json_set_real(row, copied[i], cli_number(record, copied[i]));
    fr_json_set_real(row, "behind", cli_number(record, "val_bpb") - best);
    fr_json_set_string(row, "basis", cli_string(record, "basis"));
    return row;
}

static void print_table(cli_run *run, json_t **records, const int *order)
{
    json_t *rows = json_array();
    double best = cli_number(records[order[0]], "val_bpb");
    cli_print(run, "%10s %9s %12s %9s %11s %8s  %s\n", "val_bpb", "behind", "parameters", "steps", "charged",
              "basis", "run");
    for (int k = 0; k < run->argument_count; k++) {
        const json_t *r = records[order[k]];
        char params[40], time[40];
        double bpb = cli_number(r, "val_bpb");
        cli_print(run, "%10.6f %+9.6f %12s %9.0f %11s %8s  %s\n", bpb, bpb - best,
                  fr_format_count(params, sizeof params, (int64_t)cli_number(r, "params")),
                  cli_number(r, "steps"), fr_format_duration(time, sizeof time, cli_number(r, "charged_s")),
                  cli_string(r, "basis"), run->arguments[order[k]]);
        json_array_append_new(rows, row_of(r, run->arguments[order[k]], best));
    }
    cli_put(run, "runs", rows);
    cli_put(run, "eval_set", json_string(cli_string(records[0], "eval_set")));
}

static fr_status run_compare(cli_run *run, fr_error *error)
{
    json_t **records = fr_arena_alloc(&run->arena, sizeof *records * (size_t)run->argument_count);
    int *order = fr_arena_alloc(&run->arena, sizeof *order * (size_t)run->argument_count);
    if (!records || !order)
        return fr_error_memory(error, 16 * (size_t)run->argument_count, "the comparison");
    fr_status status = load_all(run, records, error);
    if (status == FR_OK)
        status = check_all(run, records, error);
    if (status == FR_OK) {
        for (int i = 0; i < run->argument_count; i++) {
            int at = i;
            for (;
                 at > 0 && cli_number(records[order[at - 1]], "val_bpb") > cli_number(records[i], "val_bpb");
                 at--)
                order[at] = order[at - 1];
            order[at] = i;
        }
        print_table(run, records, order);
    }
    for (int i = 0; i < run->argument_count; i++)
        json_decref(records[i]);
    return status;
}

const cli_command cmd_compare = {
    .name = "compare",
    .arguments = "RUN RUN...",
    .least = 2,
    .most = -1,
    .summary = "runs side by side, best first; refuses scores of different things",
    .options = options,
    .option_count = COUNT(options),
    .examples = "  frontier compare runs/baseline runs/wider",
    .run = run_compare,
    .schema = "compare",
};
