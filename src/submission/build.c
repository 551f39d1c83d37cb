/* src/submission/build.c: from a folder of C files to one program with our command in it.
 *
 * The compiler is run directly, never through a shell, on the C files of a folder and two archives that lie beside the running
 * executable: libfrontier-cli.a (the command) and libfrontier.a. In a source tree they are in the build folder
 * and the headers in include/; once installed they are in PREFIX/lib/frontier and PREFIX/include.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontier/submission.h"

extern char **environ;

enum { BUILD_MAX_ARGUMENTS = 128 };

typedef struct places {
    char include[1024], command[1088], library[1088];
} places;

static fr_status find_places(places *p, fr_error *error)
{
    char self[900], folder[1000];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return fr_error_set(error, FR_BAD_ENVIRONMENT, "/proc/self/exe", NULL,
                            "cannot tell where frontier is installed");
    self[length] = 0;
    *strrchr(self, '/') = 0;
    static const struct {
        const char *include, *library;
    } layouts[] = {{"/../include", ""}, {"/../../include", ""}, {"/../include", "/../lib/frontier"}};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        snprintf(folder, sizeof folder, "%s%s", self, layouts[i].library);
        snprintf(p->include, sizeof p->include, "-I%s%s", self, layouts[i].include);
        snprintf(p->command, sizeof p->command, "%s/libfrontier-cli.a", folder);
        snprintf(p->library, sizeof p->library, "%s/libfrontier.a", folder);
        char header[1100];
        snprintf(header, sizeof header, "%s/frontier/submission.h", p->include + 2);
        if (fr_path_exists(p->library) && fr_path_exists(header))
            return FR_OK;
    }
    return fr_error_set(error, FR_BAD_ENVIRONMENT, self,
                        "build it with 'make', or install it with 'make install'",
                        "libfrontier.a and the headers are not beside this frontier");
}

/* The sources in order of name, hashed as (name, size, bytes) each. */
static fr_status list_sources(fr_arena *arena, const char *folder, char ***paths, size_t *count,
                              char sha256[65], fr_error *error)
{
    char **names;
    size_t all;
    fr_buffer text;
    if (!fr_path_is_folder(folder))
        return fr_error_set(error, FR_BAD_USAGE, folder, "give the folder that holds train.c",
                            "no such folder");
    FR_TRY(fr_folder_list(arena, folder, &names, &all, error));
    *paths = fr_arena_alloc(arena, (all + 1) * sizeof **paths);
    *count = 0;
    fr_buffer_init(&text, 64 << 20);
    fr_status status = *paths ? FR_OK : fr_error_memory(error, all * 8, folder);
    for (size_t i = 0; status == FR_OK && i < all; i++) {
        size_t length = strlen(names[i]), bytes;
        bool header = length > 2 && strcmp(names[i] + length - 2, ".h") == 0;
        if (!header && !(length > 2 && strcmp(names[i] + length - 2, ".c") == 0))
            continue;
        char *source = NULL; /* "./": a folder named -x is no option of the compiler */
        char *path = fr_arena_printf(arena, "%s%s/%s", *folder == '-' ? "./" : "", folder, names[i]);
        status =
            path ? fr_file_read(arena, path, &source, &bytes, error) : fr_error_memory(error, length, folder);
        if (status != FR_OK)
            break;
        fr_buffer_printf(&text, "%s\n%zu\n", names[i], bytes);
        fr_buffer_append(&text, source, bytes);
        if (!header)
            (*paths)[(*count)++] = path;
    }
    if (status == FR_OK && text.failed)
        status = fr_error_set(error, FR_BAD_DATA, folder, "keep data out of the sources",
                              "more than 64 MiB of source");
    if (status == FR_OK && *count == 0)
        status = fr_error_set(error, FR_BAD_USAGE, folder, "copy baseline/train.c there and edit it",
                              "no .c file in the folder");
    if (status == FR_OK)
        fr_sha256(text.data, text.length, sha256);
    fr_buffer_release(&text);
    return status;
}

/* Runs the compiler; its messages go to `log`. */
static fr_status run_compiler(char *const *arguments, const char *log, fr_error *error)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int state = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    int failed = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return fr_error_set(error, FR_BAD_ENVIRONMENT, arguments[0], "install gcc, or name a compiler in CC",
                            "the compiler does not start: %s", strerror(failed));
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return FR_OK;
    return fr_error_set(error, FR_ANSWER_NO, NULL, NULL, "the submission does not compile");
}

/* The first mistake, as the compiler words it; all of them stay in the log. */
static fr_status explain_refusal(fr_arena *arena, const char *log, fr_error *error)
{
    char *text = NULL, hint[300];
    size_t bytes = 0;
    snprintf(hint, sizeof hint, "all messages are in %.270s", log);
    if (fr_file_read(arena, log, &text, &bytes, NULL) != FR_OK || bytes == 0)
        return FR_ANSWER_NO;
    const char *first = strstr(text, "error:");
    while (first && first > text && first[-1] != '\n')
        first--;
    if (first && strncmp(first, "collect2", 8) == 0) /* the linker's own words stand before */
        first = text;
    return fr_error_set(error, FR_ANSWER_NO, NULL, hint, "the submission does not compile:\n%.340s",
                        first ? first : text);
}

static fr_status put_in_place(const char *next, const char *program, const char *log, fr_error *error)
{
    unlink(log);
    if (rename(next, program) == 0)
        return FR_OK;
    int code = errno;
    unlink(next);
    return fr_error_set(error, FR_BAD_ENVIRONMENT, program, "name another file with --out",
                        "the program cannot be put there: %s", strerror(code));
}

/* Into a file beside the program, which is replaced only by a whole one. */
static fr_status compile(fr_arena *arena, char **sources, size_t count, const char *program, const places *p,
                         fr_error *error)
{
    static const char *const flags[] = {
        "-std=c11", "-D_GNU_SOURCE", "-O2",
        "-g",       "-Wall",         "-ffp-contract=off",
        "-pthread", "-rdynamic",     "-Wl,--require-defined=frontier_submission"};
    static const char *const libraries[] = {
        "-ldnnl", "-lpcre2-8", "-ljansson", "-lzstd", "-lz", "-lsodium",
#ifdef FR_HAVE_CURL
        "-lcurl",
#endif
#ifdef FR_HAVE_MICROHTTPD
        "-lmicrohttpd",
#endif
        "-lm",    "-ldl"};
    char *arguments[BUILD_MAX_ARGUMENTS];
    size_t n = 0, fixed = 8 + sizeof flags / sizeof *flags + sizeof libraries / sizeof *libraries;
    const char *compiler = getenv("CC");
    char *log = fr_arena_printf(arena, "%s.log", program);
    char *next = fr_arena_printf(arena, "%s.next", program);
    if (!log || !next)
        return fr_error_memory(error, strlen(program), program);
    if (count + fixed > BUILD_MAX_ARGUMENTS)
        return fr_error_set(error, FR_BAD_USAGE, program, "put the code into fewer files",
                            "%zu source files are too many", count);
    arguments[n++] = (char *)(uintptr_t)(compiler && *compiler ? compiler : "gcc");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        arguments[n++] = (char *)(uintptr_t)flags[i];
    arguments[n++] = (char *)(uintptr_t)p->include;
    for (size_t i = 0; i < count; i++)
        arguments[n++] = sources[i];
    arguments[n++] = (char *)(uintptr_t)p->command;
    arguments[n++] = (char *)(uintptr_t)p->library;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        arguments[n++] = (char *)(uintptr_t)libraries[i];
    arguments[n++] = (char *)(uintptr_t) "-o";
    arguments[n++] = next;
    arguments[n] = NULL;
    fr_status status = run_compiler(arguments, log, error);
    if (status == FR_OK)
        return put_in_place(next, program, log, error);
    unlink(next);
    return status == FR_ANSWER_NO ? explain_refusal(arena, log, error) : status;
}

fr_status fr_submission_hash(const char *folder, char sha256[65], fr_error *error)
{
    fr_arena arena;
    char **sources;
    size_t count;
    fr_arena_init(&arena, 1 << 16);
    fr_status status = list_sources(&arena, folder, &sources, &count, sha256, error);
    fr_arena_release(&arena);
    return status;
}

fr_status fr_submission_build(const char *folder, const char *program, char sha256[65], fr_error *error)
{
    fr_arena arena;
    places where;
    char **sources = NULL;
    size_t count = 0;
    fr_arena_init(&arena, 1 << 16);
    fr_status status = list_sources(&arena, folder, &sources, &count, sha256, error);
    if (status == FR_OK)
        status = find_places(&where, error);
    if (status == FR_OK)
        status = compile(&arena, sources, count, program, &where, error);
    fr_arena_release(&arena);
    return status;
}
