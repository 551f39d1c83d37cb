/* cli/cli.h: how a command of `frontier` is declared and what it is given.
 *
 * Every command is one row of a table: name, arguments, options, examples and a function. Parsing, --help, the
 * man page, shell completion and `frontier help --json` are all read from that table, so they cannot
 * disagree. A command returns an fr_status, which is the exit code; it prints people's text with cli_print
 * and puts what scripts want into run->result. With --json the only thing on stdout is that object, on its
 * last line, and people's text goes to stderr.
 */
#ifndef FRONTIER_CLI_H
#define FRONTIER_CLI_H
#include <jansson.h>

#include "frontier/base.h"

typedef enum cli_type {
    CLI_FLAG,
    CLI_TEXT,
    CLI_PATH,
    CLI_INT,   /* any whole number: a seed */
    CLI_COUNT, /* 0 to 2^31-1: fits an int */
    CLI_REAL,
    CLI_DURATION,
    CLI_SIZE,
    CLI_CHOICE
} cli_type;

typedef struct cli_option {
    const char *name; /* without dashes: "budget" */
    cli_type type;
    const char *value;    /* placeholder in help: "TIME"; for CLI_CHOICE the choices "a|b"; NULL for flags */
    const char *fallback; /* default as text; NULL = not given */
    const char *help;     /* one line; NULL: used between our own processes, not shown */
    bool repeats;         /* may be given several times */
    bool required;
} cli_option;

typedef struct cli_run cli_run;

typedef struct cli_command {
    const char *name;      /* "data import" */
    const char *arguments; /* "PATH..." as shown; NULL for none */
    int least, most;       /* how many arguments; most < 0: any number */
    const char *summary;   /* one line */
    const cli_option *options;
    int option_count;
    const char *details;  /* paragraphs for --help; may be NULL */
    const char *examples; /* command lines, one per line */
    fr_status (*run)(cli_run *run, fr_error *error);
    const char *schema; /* docs/schema/NAME.json describes --json; NULL: no --json output */
    bool hidden;        /* started by frontier itself: not in any help */
} cli_command;

typedef struct cli_value {
    const cli_option *option;
    const char *text;
} cli_value;

struct cli_run {
    const cli_command *command;
    cli_value *values;
    int value_count;
    const char **arguments;
    int argument_count;
    bool json;
    json_t *result; /* the object --json prints; owned by main */
    fr_progress
        progress; /* a bar on a terminal, lines otherwise, on stderr; stop() is true after Ctrl-C or SIGTERM */
    fr_arena arena; /* for the command; released by main */
};

extern const cli_command *const cli_commands[];
extern const int cli_command_count;

/* Values, already checked to be of their type. Asking for an undeclared option is our bug and ends in exit 5. */
bool cli_flag(const cli_run *run, const char *name);
const char *cli_text(const cli_run *run, const char *name);       /* last one given, the default, or NULL */
int cli_texts(cli_run *run, const char *name, const char ***out); /* all that were given */
int64_t cli_int(const cli_run *run, const char *name, int64_t otherwise);
double cli_real(const cli_run *run, const char *name, double otherwise);
double cli_seconds(const cli_run *run, const char *name, double otherwise);
int64_t cli_bytes(const cli_run *run, const char *name, int64_t otherwise);

/* People's text: stdout, or stderr under --json. */
void cli_print(const cli_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_warn(const cli_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_put(cli_run *run, const char *key, json_t *value); /* steals value */

/* console.c */
bool cli_colour(FILE *stream); /* a terminal, no NO_COLOR, TERM not dumb */
const char *cli_bold(FILE *stream);
const char *cli_plain(FILE *stream);
void cli_signals_install(void); /* first Ctrl-C or SIGTERM: finish cleanly; the second ends at once */
bool cli_interrupted(void);
fr_progress cli_progress(void);
void cli_progress_end(void); /* clears an open bar */

/* options.c */
fr_status cli_parse(cli_run *run, const cli_command *command, int argc, char **argv, bool *help,
                    fr_error *error);

/* help.c */
void cli_help_overview(FILE *out);
void cli_help_command(FILE *out, const cli_command *command);
json_t *cli_help_json(void);
void cli_help_man(FILE *out);
void cli_help_completion(FILE *out, const char *shell);
const cli_command *cli_find(int argc, char **argv, int *words);
/* FR_BAD_USAGE, with the commands that the words may have meant. */
fr_status cli_unknown_command(int argc, char **argv, fr_error *error);

/* version.c */
void cli_version(FILE *out);

/* shared.c: lines several commands print alike */
json_t *cli_round(double value, int digits);
/* `text` as a shell takes it for one word, in single quotes when it needs them; in the run's arena. */
const char *cli_quoted(cli_run *run, const char *text);
fr_status cli_read_json(const char *folder, const char *name, json_t **out, fr_error *error);

#endif
