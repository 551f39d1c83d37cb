/* cli/main.c: find the command, parse, run, report.
 *
 * The library returns errors; only here do they become text and exit codes. Under --json an error is an object
 * too, so a script never has to read prose; that holds for a command line that cannot be parsed as well. Output
 * that could not be written is an error of its own, except when the reader of a pipe has seen enough and left.
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli.h"

static void print_error(const fr_error *error)
{
    char text[1200];
    cli_progress_end();
    fr_error_format(error, text, sizeof text);
    fputs(text, stderr);
}

static void print_json(cli_run *run, fr_status status, const fr_error *error)
{
    if (status != FR_OK && error->what[0]) {
        json_t *object = json_object();
        fr_json_set_string(object, "what", error->what);
        fr_json_set_string(object, "where", error->where);
        fr_json_set_string(object, "hint", error->hint);
        cli_put(run, "error", object);
    }
    cli_put(run, "exit", json_integer(status));
    fflush(stderr);
    json_dumpf(run->result, stdout, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    fputc('\n', stdout);
}

/* A descriptor the caller closed would be given to the next file opened, and printing would then write into
 * that file. Reading from and writing to what stands in for it fails. */
static void hold_closed_streams(void)
{
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++)
        if (fcntl(descriptor, F_GETFD) == -1)
            (void)!open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Like head: it closed the pipe because it has what it wanted. */
static bool reader_left(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && output.revents & POLLERR;
}

static fr_status finish_output(fr_status status)
{
    fr_error error = {0};
    bool whole = fflush(stdout) == 0 && !ferror(stdout);
    if (whole || reader_left())
        return status;
    fr_error_set(&error, FR_BAD_ENVIRONMENT, "stdout", "is the disk full, or stdout closed?",
                 "the output could not be written");
    print_error(&error);
    return status == FR_OK ? FR_BAD_ENVIRONMENT : status;
}

/* A command line that cannot be parsed still says whether a script reads the answer. */
static bool asks_for_json(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

static int run_command(const cli_command *command, int argc, char **argv)
{
    fr_error error = {0};
    bool help = false;
    cli_run run = {.result = json_object(), .progress = cli_progress()};
    fr_arena_init(&run.arena, 1 << 16);
    fr_status status = cli_parse(&run, command, argc, argv, &help, &error);
    run.json = run.json || (status != FR_OK && asks_for_json(argc, argv));
    if (status == FR_OK && help) {
        cli_help_command(stdout, command);
    } else {
        if (status == FR_OK) {
            cli_signals_install();
            status = command->run(&run, &error);
        }
        cli_progress_end();
        if (status != FR_OK && error.what[0])
            print_error(&error);
        if (run.json)
            print_json(&run, status, &error);
    }
    json_decref(run.result);
    fr_arena_release(&run.arena);
    return (int)finish_output(status);
}

static int unknown_command(int argc, char **argv)
{
    fr_error error = {0};
    cli_unknown_command(argc, argv, &error);
    print_error(&error);
    if (asks_for_json(argc, argv)) {
        cli_run run = {.result = json_object()};
        print_json(&run, FR_BAD_USAGE, &error);
        json_decref(run.result);
    }
    return (int)finish_output(FR_BAD_USAGE);
}

int main(int argc, char **argv)
{
    int words = 0;
    hold_closed_streams();
    if (argc < 2) {
        cli_help_overview(stderr);
        return FR_BAD_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        cli_version(stdout);
        return (int)finish_output(FR_OK);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_help_overview(stdout);
        return (int)finish_output(FR_OK);
    }
    const cli_command *command = cli_find(argc - 1, argv + 1, &words);
    if (!command)
        return unknown_command(argc - 1, argv + 1);
    return run_command(command, argc - 1 - words, argv + 1 + words);
}
