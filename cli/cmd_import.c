/* cli/cmd_import.c: `frontier import --format F --out RUN PATH`: another program's model becomes a run folder. */
#include <string.h>

#include "commands.h"
#include "frontier/formats.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"format", CLI_CHOICE, "hf|llama2c", NULL, "hf: a folder with config.json; llama2c: a .bin file", false, true},
    {"out", CLI_PATH, "RUN", NULL, "the run folder to write", false, true},
    {"tokenizer", CLI_PATH, "FILE", NULL, "llama2c: its tokenizer file; hf: another tokenizer.json than the folder's",
     false, false},
    {"context", CLI_COUNT, "T", "0", "tokens seen at once, when fewer than the model's own; 0 = its own", false,
     false},
};

static void tell(cli_run *run, const fr_foreign *model, const char *out)
{
    char params[40];
    const fr_recipe *recipe = fr_foreign_recipe(model);
    int32_t vocab = fr_tokenizer_vocab(fr_foreign_tokenizer(model));
    cli_print(run, "%s: %s, %s parameters, depth %lld, width %lld, context %lld, vocabulary %d\n", out,
              fr_foreign_family(model), fr_format_count(params, sizeof params, fr_foreign_params(model)),
              (long long)recipe->model.depth, (long long)fr_recipe_width(recipe),
              (long long)recipe->model.context, vocab);
    cli_put(run, "run", json_string(out));
    cli_put(run, "family", json_string(fr_foreign_family(model)));
    cli_put(run, "params", json_integer(fr_foreign_params(model)));
    cli_put(run, "vocab", json_integer(vocab));
    cli_put(run, "context", json_integer(recipe->model.context));
}

static fr_status run_import(cli_run *run, fr_error *error)
{
    fr_foreign *model;
    fr_foreign_options reading = {.tokenizer_path = cli_text(run, "tokenizer"),
                                  .context = cli_int(run, "context", 0)};
    FR_TRY(fr_foreign_open(&model, cli_text(run, "format"), run->arguments[0], &reading, error));
    fr_status status = fr_foreign_save(model, cli_text(run, "out"), error);
    if (status == FR_OK)
        tell(run, model, cli_text(run, "out"));
    fr_foreign_free(model);
    return status;
}

const cli_command cmd_import = {
    .name = "import",
    .arguments = "PATH",
    .least = 1,
    .most = 1,
    .summary = "read another program's model into a run folder",
    .options = options,
    .option_count = COUNT(options),
    .details = "The run can be scored, sampled and exported; its weights are fixed: `train` does not continue it. "
               "What is read\nis listed in docs/formats.md.",
    .examples = "  frontier import --format hf --out runs/gpt2 gpt2\n"
                "  frontier import --format llama2c --tokenizer tok512.bin --out runs/stories stories260K.bin",
    .run = run_import,
    .schema = "import",
};
