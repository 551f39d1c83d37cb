/* cli/cmd_build.c: `frontier build DIR`, training through the program it makes, and that program's answering side. */
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/json.h"
#include "commands.h"
#include "frontier/submission.h"
#include "linked.h"
#include "program.h"
#include "run_folder.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

extern char **environ;

static const cli_option build_options[] = {
    {"out", CLI_PATH, "FILE", NULL, "the program to make (default FOLDER/program)", false, false},
};

static fr_status run_build(cli_run *run, fr_error *error)
{
    char sha256[65], beside[1200];
    const char *program = cli_text(run, "out");
    if (!program)
        program = fr_path_join(beside, sizeof beside, run->arguments[0], "program");
    FR_TRY(fr_submission_build(run->arguments[0], program, sha256, error));
    cli_print(run, "%s: built, sources %.12s\n", program, sha256);
    cli_put(run, "program", fr_json_text(program, strlen(program)));
    cli_put(run, "sha256", json_string(sha256));
    return FR_OK;
}

const cli_command cmd_build = {
    .name = "build",
    .arguments = "FOLDER",
    .least = 1,
    .most = 1,
    .summary = "compile a submission into one program",
    .options = build_options,
    .option_count = COUNT(build_options),
    .details = "Links the folder's C files with this command. The folder defines one constant, "
               "frontier_submission;\n"
               "baseline/ is the place to start from.",
    .examples = "  frontier build baseline --out my-program",
    .run = run_build,
    .schema = "build",
};

/* ---- the answering side: started by frontier itself, not shown in help ------------------------------------- */

static const cli_option serve_options[] = {
    {"descriptor", CLI_COUNT, "N", NULL, "the shared ring", false, true},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
};

static fr_status run_serve(cli_run *run, fr_error *error)
{
    return fr_submission_serve(cli_linked_submission(), run->arguments[0],
                               (int)cli_int(run, "descriptor", -1), (int)cli_int(run, "threads", 0), error);
}

const cli_command cmd_serve_blocks = {
    .name = "serve-blocks",
    .arguments = "RUN",
    .least = 1,
    .most = 1,
    .summary = "answer for a run over the block protocol (started by frontier itself)",
    .options = serve_options,
    .option_count = COUNT(serve_options),
    .run = run_serve,
    .hidden = true,
};

/* ---- training through a program ---------------------------------------------------------------------------- */

static bool passed_on(const char *name)
{
    return strcmp(name, "program") != 0 && strcmp(name, "json") != 0 && strcmp(name, "unscored") != 0;
}

/* The command line for the program: ours, without what this process keeps to itself. */
static char **program_arguments(cli_run *run, const char *program, const char *sha256)
{
    char **out = fr_arena_alloc(&run->arena, sizeof *out * (size_t)(2 * run->value_count + 8));
    int n = 0;
    if (!out)
        return NULL;
    out[n++] = (char *)(uintptr_t)program;
    out[n++] = (char *)(uintptr_t) "train";
    for (int i = 0; i < run->value_count; i++) {
        const cli_option *option = run->values[i].option;
        if (!passed_on(option->name))
            continue;
        out[n++] = fr_arena_printf(&run->arena, "--%s", option->name);
        if (option->type != CLI_FLAG)
            out[n++] = (char *)(uintptr_t)run->values[i].text;
    }
    out[n++] = (char *)(uintptr_t) "--unscored";
    out[n++] = (char *)(uintptr_t) "--program-sha256";
    out[n++] = (char *)(uintptr_t)sha256;
    return out;
}

/* Waits for the program; a stop asked of us, at any moment, is asked of it. A terminal's Ctrl-C reaches both
 * already. */
static int wait_passing_signals(pid_t child)
{
    int state = 0;
    bool told = false;
    while (waitpid(child, &state, WNOHANG) == 0) {
        if (cli_interrupted() && !told) {
            kill(child, SIGTERM);
            told = true;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
    }
    return state;
}

/* The program in a run folder belongs to that run's weights: it is never replaced by another one. */
static fr_status check_run_folder(cli_run *run, const char *source, const char *run_folder, fr_error *error)
{
    char path[1200], sha256[65];
    json_t *record;
    if (!fr_path_exists(fr_path_join(path, sizeof path, run_folder, "run.json")))
        return FR_OK;
    if (!cli_flag(run, "resume"))
        return fr_error_set(error, FR_BAD_USAGE, run_folder,
                            "continue it with --resume, or choose another folder with --out",
                            "the folder already holds a run");
    FR_TRY(fr_submission_hash(source, sha256, error));
    FR_TRY(cli_run_record(run_folder, &record, error));
    bool same = strcmp(cli_string(json_object_get(record, "hashes"), "program"), sha256) == 0;
    json_decref(record);
    return same ? FR_OK
                : fr_error_set(error, FR_BAD_USAGE, run_folder,
                               "resume with what the run was started with, or start a new run",
                               "the run was made by another program than %.200s", source);
}

/* A program can end with exit code 0 anywhere. */
static fr_status check_ended_run(const char *program, const char *run_folder, fr_error *error)
{
    json_t *record = NULL;
    bool ended = false;
    if (cli_run_record(run_folder, &record, NULL) == FR_OK) {
        const char *status = cli_string(record, "status");
        ended = strcmp(status, "finished") == 0 || strcmp(status, "stopped") == 0;
        json_decref(record);
    }
    return ended ? FR_OK
                 : fr_error_set(error, FR_ANSWER_NO, program, "return from train instead of calling exit",
                                "the submission's program ended before its run did");
}

fr_status cli_train_program(cli_run *run, const char *source, const char *run_folder, fr_error *error)
{
    char sha256[65], *program = fr_arena_printf(&run->arena, "%s/program", run_folder);
    pid_t child;
    if (cli_linked_submission())
        return fr_error_set(error, FR_BAD_USAGE, "--program", "call 'frontier' itself",
                            "this is a submission's program already");
    FR_TRY(check_run_folder(run, source, run_folder, error));
    FR_TRY(fr_folder_make(run_folder, error));
    FR_TRY(fr_submission_build(source, program, sha256, error));
    char **arguments = program_arguments(run, program, sha256);
    if (!arguments)
        return fr_error_memory(error, 4096, "the program's command line");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (run->json)
        posix_spawn_file_actions_adddup2(&actions, 2, 1);
    int failed = posix_spawn(&child, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return fr_error_set(error, FR_ANSWER_NO, program, NULL, "the submission's program does not start: %s",
                            strerror(failed));
    int state = wait_passing_signals(child);
    if (WIFEXITED(state) && WEXITSTATUS(state) == FR_STOPPED)
        return FR_STOPPED;
    if (WIFEXITED(state) && WEXITSTATUS(state) == FR_OK)
        return cli_flag(run, "forecast") ? FR_OK : check_ended_run(program, run_folder, error);
    if (WIFEXITED(
            state)) /* it said why on stderr; its own mistakes keep their kind, ours of usage and data too */
        return fr_error_set(
            error, WEXITSTATUS(state) <= FR_STOPPED ? (fr_status)WEXITSTATUS(state) : FR_ANSWER_NO, program,
            "its messages are above", "the submission's program ended with exit code %d", WEXITSTATUS(state));
    return fr_error_set(error, FR_ANSWER_NO, program, "run it in a debugger: it was built with -g",
                        "the submission's program was ended by signal %d", WTERMSIG(state));
}
