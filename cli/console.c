/* cli/console.c: what a person sees while waiting, and how they stop it.
 *
 * Progress goes to stderr: one line redrawn ten times a second on a terminal, a plain line every five seconds
 * elsewhere, each with an estimate of the time left. Colour only on terminals, never with NO_COLOR. The first Ctrl-C, SIGTERM or
 * hang-up asks the work to finish cleanly, which it does through fr_progress_stop; the second ends the process.
 * The state is a static struct of this file because a signal handler and a process have exactly one terminal.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static volatile sig_atomic_t console_stop;

static struct {
    char phase[64];
    double started, last_drawn;
    double first_done;
    bool open;
} bar;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool cli_colour(FILE *stream)
{
    const char *term = getenv("TERM"), *off = getenv("NO_COLOR");
    return isatty(fileno(stream)) && !(off && *off) && term && strcmp(term, "dumb") != 0;
}

const char *cli_bold(FILE *stream)
{
    return cli_colour(stream) ? "\033[1m" : "";
}

const char *cli_plain(FILE *stream)
{
    return cli_colour(stream) ? "\033[0m" : "";
}

static void on_signal(int number)
{
    if (console_stop++)
        _exit(128 + number);
    static const char text[] = "\nfrontier: stopping cleanly; once more to end at once\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        return;
}

/* A mapped file lost the page that was wanted. */
static void on_lost_page(int number)
{
    static const char text[] =
        "\nfrontier: error: a file in use became shorter or unreadable\n"
        "  hint: see that nothing changes the data and run folders, and check the disk\n";
    (void)number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(FR_BAD_DATA);
}

void cli_signals_install(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (signal(SIGHUP, SIG_IGN) != SIG_IGN) /* a closed terminal; nohup keeps its word */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGBUS, on_lost_page);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* whoever ignores it before starting us would hide how our children end */
}

bool cli_interrupted(void)
{
    return console_stop != 0;
}

static bool stop_wanted(void *context)
{
    (void)context;
    return console_stop != 0;
}

static void draw(const char *phase, double done, double total, const char *note, double now)
{
    char left[40] = "", line[400];
    double elapsed = now - bar.started, moved = done - bar.first_done;
    if (total > 0 && moved > 0 && elapsed > 0.5)
        fr_format_duration(left, sizeof left, elapsed * (total - done) / moved);
    int percent = total > 0 ? (int)(100 * done / total) : -1;
    if (percent >= 0)
        snprintf(line, sizeof line, "%s %3d %%%s%s%s%s", phase, percent, left[0] ? ", left " : "", left,
                 note && *note ? "  " : "", note ? note : "");
    else
        snprintf(line, sizeof line, "%s %.0f  %s", phase, done, note ? note : "");
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%.*s", 150, line);
    else
        fprintf(stderr, "%s\n", line);
    fflush(stderr);
}

static void update(void *context, const char *phase, double done, double total, const char *note)
{
    (void)context;
    double now = now_seconds();
    bool terminal = isatty(STDERR_FILENO);
    if (strncmp(bar.phase, phase, sizeof bar.phase - 1) != 0) {
        cli_progress_end();
        snprintf(bar.phase, sizeof bar.phase, "%s", phase);
        bar.started = now;
        bar.last_drawn = now; /* work under the first interval stays silent */
        bar.first_done = done;
    }
    if (now - bar.last_drawn < (terminal ? 0.1 : 5.0))
        return;
    bar.last_drawn = now;
    bar.open = true;
    draw(phase, done, total, note, now);
}

static void clear_line(void)
{
    if (bar.open && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    bar.open = false;
}

/* The phase goes on after a message, and with it the estimate of the time left. */
static void message(void *context, const char *text)
{
    (void)context;
    clear_line();
    fprintf(stderr, "%s\n", text);
}

void cli_progress_end(void)
{
    clear_line();
    bar.phase[0] = 0;
}

fr_progress cli_progress(void)
{
    return (fr_progress){.update = update, .message = message, .stop = stop_wanted};
}

void cli_print(const cli_run *run, const char *format, ...)
{
    va_list arguments;
    cli_progress_end();
    va_start(arguments, format);
    vfprintf(run->json ? stderr : stdout, format, arguments);
    va_end(arguments);
    fflush(run->json ? stderr : stdout);
}

void cli_warn(const cli_run *run, const char *format, ...)
{
    va_list arguments;
    (void)run;
    cli_progress_end();
    fprintf(stderr, "frontier: warning: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void cli_put(cli_run *run, const char *key, json_t *value)
{
    json_object_set_new(run->result, key, value);
}
