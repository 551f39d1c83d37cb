/* cli/cmd_help.c: `frontier help`: the overview, and the renderings other programs read. */
#include <string.h>

#include "commands.h"

static const cli_option options[] = {
    {"man", CLI_FLAG, NULL, NULL, "print the manual page (roff)", false, false},
    {"completion", CLI_CHOICE, "bash|zsh", NULL, "print shell completion", false, false},
};

static fr_status run_help(cli_run *run, fr_error *error)
{
    const char *shell = cli_text(run, "completion");
    if (cli_flag(run, "man")) {
        cli_help_man(stdout);
    } else if (shell) {
        cli_help_completion(stdout, shell);
    } else if (run->argument_count) {
        int words = 0;
        const cli_command *command = cli_find(run->argument_count, (char **)run->arguments, &words);
        if (!command)
            return cli_unknown_command(run->argument_count, (char **)run->arguments, error);
        cli_help_command(stdout, command);
    } else if (run->json) {
        json_t *all = cli_help_json();
        json_object_update(run->result, all);
        json_decref(all);
    } else {
        cli_help_overview(stdout);
    }
    return FR_OK;
}

const cli_command cmd_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .least = 0,
    .most = 2,
    .summary = "explain a command, or list all of them",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .examples =
        "  frontier help train\n  frontier help --json\n  frontier help --completion bash > frontier.bash",
    .run = run_help,
    .schema = "help",
};
