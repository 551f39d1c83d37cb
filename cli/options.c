/* cli/options.c: argument vectors into checked values.
 *
 * Long options only, "--name value" or "--name=value", options and arguments in any order, "--" ends options.
 * A value is checked against its declared type here, so a command never sees a number that is not one. A
 * misspelt option names the nearest one: the commonest mistake should cost one second, not a manual.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { CLI_LONGEST_PATH = 900 };

static const cli_option cli_common[] = {
    {"help", CLI_FLAG, NULL, NULL, "show this help", false, false},
    {"json", CLI_FLAG, NULL, NULL, "print one JSON object as the last line of stdout", false, false},
};

static const cli_option *find_option(const cli_command *command, const char *name, size_t length)
{
    for (int i = 0; i < command->option_count; i++)
        if (strlen(command->options[i].name) == length && memcmp(command->options[i].name, name, length) == 0)
            return &command->options[i];
    for (size_t i = 0; i < sizeof cli_common / sizeof *cli_common; i++)
        if (strlen(cli_common[i].name) == length && memcmp(cli_common[i].name, name, length) == 0)
            return &cli_common[i];
    return NULL;
}

static fr_status unknown_option(const cli_command *command, const char *name, size_t length, fr_error *error)
{
    const char *names[64];
    char given[100], hint[200];
    size_t count = 0;
    for (int i = 0; i < command->option_count && count < 62; i++)
        names[count++] = command->options[i].name;
    names[count++] = "help";
    names[count++] = "json";
    snprintf(given, sizeof given, "%.*s", (int)(length < 90 ? length : 90), name);
    const char *nearest = fr_nearest(given, names, count);
    if (nearest)
        snprintf(hint, sizeof hint, "did you mean '--%s'?", nearest);
    else
        snprintf(hint, sizeof hint, "see 'frontier %s --help'", command->name);
    char where[120];
    snprintf(where, sizeof where, "--%s", given);
    return fr_error_set(error, FR_BAD_USAGE, where, hint, "unknown option of 'frontier %s'", command->name);
}

static bool choice_allowed(const char *choices, const char *text)
{
    size_t length = strlen(text);
    for (const char *at = choices; at;) {
        const char *end = strchr(at, '|');
        size_t size = end ? (size_t)(end - at) : strlen(at);
        if (size == length && memcmp(at, text, size) == 0)
            return true;
        at = end ? end + 1 : NULL;
    }
    return false;
}

/* Paths are joined with names inside fixed buffers; nobody means the empty one. */
static fr_status check_path(const char *where, const char *path, fr_error *error)
{
    if (!*path)
        return fr_error_set(error, FR_BAD_USAGE, where, "give a file or folder, or leave it out",
                            "the path is empty");
    if (strlen(path) > CLI_LONGEST_PATH)
        return fr_error_set(error, FR_BAD_USAGE, where, "use a shorter one, or change into a folder of it",
                            "the path has %zu bytes, more than %d", strlen(path), CLI_LONGEST_PATH);
    return FR_OK;
}

static fr_status check_value(const cli_option *option, const char *text, fr_error *error)
{
    char where[100];
    int64_t integer;
    double real;
    snprintf(where, sizeof where, "--%s", option->name);
    switch (option->type) {
    case CLI_INT: return fr_parse_int(text, INT64_MIN, INT64_MAX, &integer, where, error);
    case CLI_COUNT: return fr_parse_int(text, 0, INT32_MAX, &integer, where, error);
    case CLI_PATH: return check_path(where, text, error);
    case CLI_REAL: return fr_parse_real(text, -1e300, 1e300, &real, where, error);
    case CLI_DURATION: return fr_parse_duration(text, &real, where, error);
    case CLI_SIZE: return fr_parse_size(text, &integer, where, error);
    case CLI_CHOICE:
        if (!choice_allowed(option->value, text))
            return fr_error_set(error, FR_BAD_USAGE, where, NULL, "'%.60s' is not one of %s", text, option->value);
        return FR_OK;
    default: return FR_OK;
    }
}

static fr_status take_option(cli_run *run, const char *word, int argc, char **argv, int *at, bool *help,
                             fr_error *error)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const cli_option *option = find_option(run->command, name, length);
    if (!option)
        return unknown_option(run->command, name, length, error);
    if (option->type == CLI_FLAG) {
        if (equals)
            return fr_error_set(error, FR_BAD_USAGE, word, NULL, "'--%s' takes no value", option->name);
        if (option == &cli_common[0])
            *help = true;
        if (option == &cli_common[1])
            run->json = true;
        run->values[run->value_count++] = (cli_value){option, "true"};
        return FR_OK;
    }
    const char *text = equals ? equals + 1 : *at + 1 < argc ? argv[++*at] : NULL;
    if (!text)
        return fr_error_set(error, FR_BAD_USAGE, word, NULL, "'--%s' needs a value %s", option->name,
                            option->value);
    FR_TRY(check_value(option, text, error));
    run->values[run->value_count++] = (cli_value){option, text};
    return FR_OK;
}

/* Arguments are paths, except where a text or a name of a command may stand instead. */
static bool names_paths(const cli_command *command)
{
    return command->arguments && !strstr(command->arguments, "[");
}

static fr_status check_complete(const cli_run *run, fr_error *error)
{
    const cli_command *command = run->command;
    char hint[200];
    snprintf(hint, sizeof hint, "usage: frontier %s%s%s; see --help", command->name,
             command->arguments ? " " : "", command->arguments ? command->arguments : "");
    if (run->argument_count < command->least)
        return fr_error_set(error, FR_BAD_USAGE, NULL, hint, "'frontier %s' needs %s", command->name,
                            command->arguments);
    if (command->most >= 0 && run->argument_count > command->most)
        return fr_error_set(error, FR_BAD_USAGE, run->arguments[command->most], hint,
                            "one argument too many");
    for (int i = 0; i < run->argument_count && names_paths(command); i++)
        FR_TRY(check_path(command->arguments, run->arguments[i], error));
    for (int i = 0; i < command->option_count; i++)
        if (command->options[i].required && !cli_text(run, command->options[i].name))
            return fr_error_set(error, FR_BAD_USAGE, NULL, hint, "'frontier %s' needs --%s %s", command->name,
                                command->options[i].name, command->options[i].value);
    return FR_OK;
}

fr_status cli_parse(cli_run *run, const cli_command *command, int argc, char **argv, bool *help,
                    fr_error *error)
{
    run->command = command;
    run->values = fr_arena_alloc(&run->arena, sizeof *run->values * (size_t)(argc + 1));
    run->arguments = fr_arena_alloc(&run->arena, sizeof *run->arguments * (size_t)(argc + 1));
    if (!run->values || !run->arguments)
        return fr_error_memory(error, (size_t)argc * 32, "the command line");
    bool options = true;
    for (int at = 0; at < argc; at++) {
        const char *word = argv[at];
        if (options && strcmp(word, "--") == 0)
            options = false;
        else if (options && strncmp(word, "--", 2) == 0)
            FR_TRY(take_option(run, word, argc, argv, &at, help, error));
        else if (options && strcmp(word, "-h") == 0)
            *help = true;
        else
            run->arguments[run->argument_count++] = word;
    }
    return *help ? FR_OK : check_complete(run, error);
}

static const cli_option *declared(const cli_run *run, const char *name)
{
    const cli_option *option = find_option(run->command, name, strlen(name));
    if (!option) {
        fprintf(stderr, "frontier: bug: '%s' asks for the undeclared option '%s'\n", run->command->name,
                name);
        exit(FR_BUG);
    }
    return option;
}

const char *cli_text(const cli_run *run, const char *name)
{
    const cli_option *option = declared(run, name);
    for (int i = run->value_count - 1; i >= 0; i--)
        if (run->values[i].option == option)
            return run->values[i].text;
    return option->fallback;
}

bool cli_flag(const cli_run *run, const char *name)
{
    return cli_text(run, name) != NULL;
}

int cli_texts(cli_run *run, const char *name, const char ***out)
{
    const cli_option *option = declared(run, name);
    int count = 0;
    *out = fr_arena_alloc(&run->arena, sizeof **out * (size_t)(run->value_count + 1));
    for (int i = 0; *out && i < run->value_count; i++)
        if (run->values[i].option == option)
            (*out)[count++] = run->values[i].text;
    return count;
}

int64_t cli_int(const cli_run *run, const char *name, int64_t otherwise)
{
    const char *text = cli_text(run, name);
    int64_t value = otherwise;
    if (text)
        fr_parse_int(text, INT64_MIN, INT64_MAX, &value, name, NULL);
    return value;
}

double cli_real(const cli_run *run, const char *name, double otherwise)
{
    const char *text = cli_text(run, name);
    double value = otherwise;
    if (text)
        fr_parse_real(text, -1e300, 1e300, &value, name, NULL);
    return value;
}

double cli_seconds(const cli_run *run, const char *name, double otherwise)
{
    const char *text = cli_text(run, name);
    double value = otherwise;
    if (text)
        fr_parse_duration(text, &value, name, NULL);
    return value;
}

int64_t cli_bytes(const cli_run *run, const char *name, int64_t otherwise)
{
    const char *text = cli_text(run, name);
    int64_t value = otherwise;
    if (text)
        fr_parse_size(text, &value, name, NULL);
    return value;
}
