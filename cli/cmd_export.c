/* cli/cmd_export.c: `frontier export RUN --format hf --out FOLDER`: a run as a folder for `transformers`. */
#include "commands.h"
#include "frontier/formats.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"format", CLI_CHOICE, "hf", NULL, "hf: a folder that Hugging Face's transformers loads", false, true},
    {"out", CLI_PATH, "FOLDER", NULL, "the folder to write", false, true},
};

static fr_status run_export(cli_run *run, fr_error *error)
{
    fr_export_summary summary;
    char size[40];
    FR_TRY(fr_export_hf(run->arguments[0], cli_text(run, "out"), &summary, error));
    cli_print(run, "%s: %s, %d tensors, %s\n", cli_text(run, "out"), summary.architecture, summary.tensors,
              fr_format_bytes(size, sizeof size, (double)summary.bytes));
    if (summary.beyond_nanochat)
        cli_print(run,
                  "load it with trust_remote_code=True: NanoChatForCausalLM cannot express model.%s, so the model's\n"
                  "code lies beside the weights, in modeling_frontier.py\n",
                  summary.beyond_nanochat);
    cli_put(run, "folder", json_string(cli_text(run, "out")));
    cli_put(run, "architecture", json_string(summary.architecture));
    cli_put(run, "beyond_nanochat",
            summary.beyond_nanochat ? json_string(summary.beyond_nanochat) : json_null());
    cli_put(run, "tensors", json_integer(summary.tensors));
    cli_put(run, "bytes", json_integer(summary.bytes));
    return FR_OK;
}

const cli_command cmd_export = {
    .name = "export",
    .arguments = "RUN",
    .least = 1,
    .most = 1,
    .summary = "write a run as a folder that other programs load",
    .options = options,
    .option_count = COUNT(options),
    .details = "With NanoChat's class where it can express the recipe, else with a model file of its own beside the "
               "weights.\n`frontier import --format hf` reads the folder back. See docs/formats.md.",
    .examples = "  frontier export runs/first --format hf --out exported",
    .run = run_export,
    .schema = "export",
};
