/* cli/help.c: everything that explains the command, read from the command tables.
 *
 * --help, `help --json`, the man page and shell completion are four renderings of one table. Nothing here knows a
 * command by name.
 */
#include <string.h>

#include "cli.h"

static const struct {
    int code;
    const char *meaning;
} exit_codes[] = {
    {0, "done"},
    {1, "the answer is no: an invalid score, a failed check, a contestant's failure"},
    {2, "usage: the command line or a recipe makes no sense"},
    {3, "bad input data"},
    {4, "the environment lacks something"},
    {5, "a bug in frontier"},
    {6, "stopped early, saved, resumable"},
};

static const char *const type_names[] = {"flag", "text",     "path", "integer", "integer",
                                         "real", "duration", "size", "choice"};

static size_t words_of(const char *name)
{
    size_t words = 1;
    for (; *name; name++)
        words += *name == ' ';
    return words;
}

static bool command_matches(const char *name, int argc, char **argv)
{
    for (int word = 0; *name; word++) {
        size_t length = strcspn(name, " ");
        if (word >= argc || strlen(argv[word]) != length || memcmp(argv[word], name, length) != 0)
            return false;
        name += length;
        name += *name == ' ';
    }
    return true;
}

const cli_command *cli_find(int argc, char **argv, int *words)
{
    const cli_command *best = NULL;
    for (int i = 0; i < cli_command_count; i++) {
        int count = (int)words_of(cli_commands[i]->name);
        if (command_matches(cli_commands[i]->name, argc, argv) && (!best || count > *words)) {
            best = cli_commands[i];
            *words = count;
        }
    }
    return best;
}

/* What a word that is no command may have meant: a family such as "data", or a slip of the fingers. */
static void hint_at_commands(const char *word, const char *given, char *hint, size_t room)
{
    const char *names[128];
    int count = cli_command_count < 128 ? cli_command_count : 128;
    size_t length = strlen(word), used = 0;
    for (int i = 0; i < count; i++) {
        names[i] = cli_commands[i]->name;
        if (strncmp(names[i], word, length) == 0 && names[i][length] == ' ' && used < room)
            used += (size_t)snprintf(hint + used, room - used, "%s'%s'", used ? ", " : "there are ", names[i]);
    }
    if (used)
        return;
    const char *nearest = fr_nearest(given, names, (size_t)count);
    if (nearest)
        snprintf(hint, room, "did you mean '%s'?", nearest);
    else
        snprintf(hint, room, "see 'frontier help'");
}

fr_status cli_unknown_command(int argc, char **argv, fr_error *error)
{
    char given[200], hint[300];
    bool second = argc > 1 && argv[1][0] != '-';
    snprintf(given, sizeof given, "%s%s%s", argv[0], second ? " " : "", second ? argv[1] : "");
    hint_at_commands(argv[0], given, hint, sizeof hint);
    return fr_error_set(error, FR_BAD_USAGE, given, hint, "unknown command");
}

void cli_help_overview(FILE *out)
{
    fprintf(out,
            "%sfrontier%s: train the best language model that a fixed stretch of wall-clock time can buy\n\n",
            cli_bold(out), cli_plain(out));
    fprintf(out, "usage: frontier COMMAND [ARGUMENT...] [--OPTION VALUE...]\n\n");
    for (int i = 0; i < cli_command_count; i++)
        if (!cli_commands[i]->hidden)
            fprintf(out, "  %-18s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fprintf(
        out,
        "\nfrontier COMMAND --help explains one command; frontier help --json lists them all for scripts.\n");
}

static void help_option(FILE *out, const cli_option *option)
{
    char left[100];
    if (!option->help)
        return;
    snprintf(left, sizeof left, "--%s%s%s", option->name, option->value ? " " : "",
             option->value ? option->value : "");
    fprintf(out, "  %-28s %s", left, option->help);
    if (option->fallback && option->fallback[0])
        fprintf(out, " (default %s)", option->fallback);
    if (option->repeats)
        fprintf(out, " (may be repeated)");
    fputc('\n', out);
}

void cli_help_command(FILE *out, const cli_command *command)
{
    fprintf(out, "%sfrontier %s%s: %s\n\n", cli_bold(out), command->name, cli_plain(out), command->summary);
    fprintf(out, "usage: frontier %s%s%s%s\n", command->name, command->arguments ? " " : "",
            command->arguments ? command->arguments : "",
            command->option_count ? " [--OPTION VALUE...]" : "");
    if (command->details)
        fprintf(out, "\n%s\n", command->details);
    if (command->option_count || command->schema)
        fprintf(out, "\noptions:\n");
    for (int i = 0; i < command->option_count; i++)
        help_option(out, &command->options[i]);
    if (command->schema)
        fprintf(out, "  %-28s print one JSON object (docs/schema/%s.json) as the last line of stdout\n",
                "--json", command->schema);
    if (command->examples)
        fprintf(out, "\nexamples:\n%s\n", command->examples);
}

static json_t *option_json(const cli_option *option)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(option->name));
    json_object_set_new(object, "type", json_string(type_names[option->type]));
    json_object_set_new(object, "value", option->value ? json_string(option->value) : json_null());
    json_object_set_new(object, "default", option->fallback ? json_string(option->fallback) : json_null());
    json_object_set_new(object, "help", json_string(option->help));
    json_object_set_new(object, "repeats", json_boolean(option->repeats));
    json_object_set_new(object, "required", json_boolean(option->required));
    return object;
}

static json_t *command_json(const cli_command *command)
{
    json_t *object = json_object(), *options = json_array();
    for (int i = 0; i < command->option_count; i++)
        if (command->options[i].help)
            json_array_append_new(options, option_json(&command->options[i]));
    json_object_set_new(object, "name", json_string(command->name));
    json_object_set_new(object, "summary", json_string(command->summary));
    json_object_set_new(object, "arguments",
                        command->arguments ? json_string(command->arguments) : json_null());
    json_object_set_new(object, "options", options);
    json_object_set_new(object, "schema", command->schema ? json_string(command->schema) : json_null());
    return object;
}

json_t *cli_help_json(void)
{
    json_t *root = json_object(), *commands = json_array(), *codes = json_object();
    for (int i = 0; i < cli_command_count; i++)
        if (!cli_commands[i]->hidden)
            json_array_append_new(commands, command_json(cli_commands[i]));
    for (size_t i = 0; i < sizeof exit_codes / sizeof *exit_codes; i++) {
        char code[12];
        snprintf(code, sizeof code, "%d", exit_codes[i].code);
        json_object_set_new(codes, code, json_string(exit_codes[i].meaning));
    }
    json_object_set_new(root, "commands", commands);
    json_object_set_new(root, "exit_codes", codes);
    return root;
}

/* roff: a dash is written \- and a line must not start with a dot. */
static void man_text(FILE *out, const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at == '-')
            fputs("\\-", out);
        else if (*at == '\\')
            fputs("\\\\", out);
        else if (*at == '.' && (at == text || at[-1] == '\n'))
            fputs("\\&.", out);
        else
            fputc(*at, out);
    }
}

static void man_command(FILE *out, const cli_command *command)
{
    fprintf(out, ".SS \"frontier %s%s%s\"\n", command->name, command->arguments ? " " : "",
            command->arguments ? command->arguments : "");
    man_text(out, command->summary);
    fputs(".\n", out);
    if (command->details) {
        fputs(".PP\n", out);
        man_text(out, command->details);
        fputc('\n', out);
    }
    for (int i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        if (!option->help)
            continue;
        fprintf(out, ".TP\n\\fB\\-\\-");
        man_text(out, option->name);
        fprintf(out, "\\fR %s\n", option->value ? option->value : "");
        man_text(out, option->help);
        if (option->fallback && option->fallback[0]) {
            fputs(" (default ", out);
            man_text(out, option->fallback);
            fputc(')', out);
        }
        fputs(option->repeats ? " (may be repeated)\n" : "\n", out);
    }
    if (command->schema)
        fputs(".TP\n\\fB\\-\\-json\\fR\nprint one JSON object as the last line of stdout\n", out);
    if (command->examples) {
        fputs(".PP\nExamples:\n.nf\n", out);
        man_text(out, command->examples);
        fputs("\n.fi\n", out);
    }
}

void cli_help_man(FILE *out)
{
    fputs(".TH FRONTIER 1\n.SH NAME\nfrontier \\- train a language model against the clock\n.SH SYNOPSIS\n"
          ".B frontier\n.I COMMAND\n[ARGUMENT...] [OPTION...]\n.SH COMMANDS\n",
          out);
    for (int i = 0; i < cli_command_count; i++)
        if (!cli_commands[i]->hidden)
            man_command(out, cli_commands[i]);
    fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; i < sizeof exit_codes / sizeof *exit_codes; i++)
        fprintf(out, ".TP\n%d\n%s\n", exit_codes[i].code, exit_codes[i].meaning);
}

static void bash_completion(FILE *out)
{
    fputs("_frontier() {\n    local cur=${COMP_WORDS[COMP_CWORD]} line=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\" "
          "words=\n    case \"$line\" in\n",
          out);
    for (int pass = 2; pass >= 1; pass--)
        for (int i = 0; i < cli_command_count; i++) {
            if ((int)words_of(cli_commands[i]->name) != pass || cli_commands[i]->hidden)
                continue;
            fprintf(out, "    \"%s\"*) words=\"--help", cli_commands[i]->name);
            for (int o = 0; o < cli_commands[i]->option_count; o++)
                if (cli_commands[i]->options[o].help)
                    fprintf(out, " --%s", cli_commands[i]->options[o].name);
            fprintf(out, "%s\" ;;\n", cli_commands[i]->schema ? " --json" : "");
        }
    fputs("    *) words=$(printf '%s\\n'", out); /* the next words of the commands that begin like the line */
    for (int i = 0; i < cli_command_count; i++)
        if (!cli_commands[i]->hidden)
            fprintf(out, " '%s'", cli_commands[i]->name);
    fputs(" | sed -n \"s/^$line *//p\" 2>/dev/null | cut -d' ' -f1 | sort -u) ;;\n    esac\n"
          "    [[ $cur == -* || $words != --* ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "    [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$cur\"))\n}\n"
          "complete -o filenames -F _frontier frontier\n",
          out);
}

void cli_help_completion(FILE *out, const char *shell)
{
    if (strcmp(shell, "zsh") == 0)
        fputs("autoload -U +X bashcompinit && bashcompinit\n", out);
    bash_completion(out);
}
