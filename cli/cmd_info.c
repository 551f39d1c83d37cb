/* cli/cmd_info.c: `frontier info RUN|RECIPE`: parameters, FLOPs, memory, and for a run what came of it. */
#include <math.h>
#include <string.h>

#include "commands.h"
#include "frontier/model.h"
#include "run_folder.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"vocab", CLI_COUNT, "N", "8192", "tokenizer entries to count a recipe with", false, false},
    {"set", CLI_TEXT, "KEY=VALUE", NULL, "override a recipe key", true, false},
    {"write", CLI_FLAG, NULL, NULL, "print the resolved recipe as TOML", false, false},
};

static void print_size(cli_run *run, const fr_recipe *recipe, const fr_model_size *size, int64_t vocab)
{
    char a[40], b[40];
    cli_print(run, "  model       depth %lld, width %lld, %lld heads, context %lld, vocabulary %lld\n",
              (long long)recipe->model.depth, (long long)fr_recipe_width(recipe),
              (long long)fr_recipe_heads(recipe), (long long)recipe->model.context, (long long)vocab);
    cli_print(run, "  parameters  %s (%s in matrix products)\n", fr_format_count(a, sizeof a, size->params),
              fr_format_count(b, sizeof b, size->matmul_params));
    cli_print(run, "  FLOPs       %.4g per token, forward and backward, full attention; %.4g causal\n",
              size->flops_per_token, size->flops_per_token_causal);
    cli_print(run, "  memory      %s of weights, gradients and optimizer state, plus activations\n",
              fr_format_bytes(a, sizeof a, 16.0 * (double)size->params));
}

static void put_size(cli_run *run, const fr_recipe *recipe, const fr_model_size *size, int64_t vocab)
{
    cli_put(run, "params", json_integer(size->params));
    cli_put(run, "matmul_params", json_integer(size->matmul_params));
    cli_put(run, "value_params", json_integer(size->value_params));
    cli_put(run, "scalars", json_integer(size->scalars));
    cli_put(run, "flops_per_token", json_real(size->flops_per_token));
    cli_put(run, "flops_per_token_causal", json_real(size->flops_per_token_causal));
    cli_put(run, "vocab", json_integer(vocab));
    cli_put(run, "batch_tokens", json_integer(recipe->optim.batch_tokens));
}

static void print_recipe(cli_run *run, const fr_recipe *recipe)
{
    fr_buffer text;
    fr_buffer_init(&text, 1 << 20);
    fr_recipe_write(recipe, &text);
    cli_print(run, "%s", text.data ? text.data : "");
    cli_put(run, "recipe", json_string(text.data ? text.data : ""));
    fr_buffer_release(&text);
}

static fr_status info_recipe(cli_run *run, const char *path, int64_t vocab, fr_error *error)
{
    fr_recipe recipe;
    fr_model_size size;
    const char **sets;
    FR_TRY(fr_recipe_load(&recipe, path, error));
    int count = cli_texts(run, "set", &sets);
    for (int i = 0; i < count; i++)
        FR_TRY(fr_recipe_set(&recipe, sets[i], error));
    FR_TRY(fr_recipe_check(&recipe, error));
    FR_TRY(fr_model_measure(&recipe, vocab, &size, error));
    put_size(run, &recipe, &size, vocab);
    if (cli_flag(run, "write")) {
        print_recipe(run, &recipe);
        return FR_OK;
    }
    cli_print(run, "%s\n", path);
    print_size(run, &recipe, &size, vocab);
    return FR_OK;
}

static void print_run(cli_run *run, const json_t *record)
{
    char time[40];
    const json_t *imported = json_object_get(record, "imported");
    if (imported)
        cli_print(run, "  status      imported from %s (%s)\n", cli_string(imported, "path"),
                  cli_string(imported, "family"));
    else
        cli_print(run, "  status      %s after %.0f steps, %s charged (%s clock)\n", cli_string(record, "status"),
              cli_number(record, "steps"),
              fr_format_duration(time, sizeof time, cli_number(record, "charged_s")),
              cli_string(json_object_get(record, "clock"), "source"));
    if (isfinite(cli_number(record, "val_bpb")))
        cli_print(run, "  val_bpb     %.6f on %s\n", cli_number(record, "val_bpb"),
                  cli_string(record, "eval_set"));
    if (!isfinite(cli_number(record, "tokens_per_s")))
        return;
    cli_print(run, "  speed       %.0f tokens/s", cli_number(record, "tokens_per_s"));
    if (isfinite(cli_number(record, "mfu")))
        cli_print(run, ", %.1f %% of peak", 100 * cli_number(record, "mfu"));
    cli_print(run, " (%s)\n", cli_string(record, "basis"));
}

static fr_status info_run(cli_run *run, const char *folder, fr_error *error)
{
    json_t *record;
    char path[1200];
    fr_tokenizer *tokenizer;
    fr_recipe checked;
    FR_TRY(cli_run_record(folder, &record, error));
    fr_status status = fr_run_recipe_load(&checked, folder, error);
    if (status == FR_OK)
        status = fr_tokenizer_load(&tokenizer, fr_path_join(path, sizeof path, folder, "tokenizer.json"), error);
    if (status == FR_OK) {
        int64_t vocab = fr_tokenizer_vocab(tokenizer);
        fr_tokenizer_free(tokenizer);
        status = info_recipe(run, fr_path_join(path, sizeof path, folder, "recipe.toml"), vocab, error);
    }
    if (status == FR_OK && !cli_flag(run, "write"))
        print_run(run, record);
    cli_put(run, "run", record);
    return status;
}

static fr_status run_info(cli_run *run, fr_error *error)
{
    if (fr_path_is_folder(run->arguments[0]))
        return info_run(run, run->arguments[0], error);
    return info_recipe(run, run->arguments[0], cli_int(run, "vocab", 8192), error);
}

const cli_command cmd_info = {
    .name = "info",
    .arguments = "RUN|RECIPE",
    .least = 1,
    .most = 1,
    .summary = "parameters, FLOPs and memory of a recipe; the outcome of a run",
    .options = options,
    .option_count = COUNT(options),
    .examples = "  frontier info recipes/baseline.toml\n  frontier info recipes/baseline.toml --set "
                "model.depth=6 --json\n  frontier info runs/first",
    .run = run_info,
    .schema = "info",
};
