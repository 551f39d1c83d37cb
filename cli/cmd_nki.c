/* cli/cmd_nki.c: `frontier nki run`, `compare`, `check`, `accept`: hand over to the Python package.
 *
 * Kernels are Python, so these commands become `python3 -m frontier_nki` with the package that `make nki`
 * built beside this binary; the command itself does not link Python. FRONTIER_PYTHON names another
 * interpreter. What a script wants for itself comes after `--`.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option run_options[] = {
    {"machine", CLI_TEXT, "NAME", NULL,
     "trn1, trn2, trn3 or the path of a machine file (default: the kernel's, else trn2)", false, false},
    {"trace", CLI_PATH, "FILE", NULL, "write a timeline that ui.perfetto.dev opens", false, false},
    {"html", CLI_PATH, "FILE", NULL, "write a page to look into: timeline, memory, source", false, false},
    {"timeline", CLI_FLAG, NULL, NULL, "draw how busy each engine is over the time", false, false},
    {"timing-only", CLI_FLAG, NULL, NULL, "rules and time without computing data", false, false},
    {"time", CLI_CHOICE, "all|first|none", NULL,
     "which launches are timed (default all); first: one of each kernel and its shapes", false, false},
    {"unwritten", CLI_CHOICE, "error|nan", NULL,
     "nan: SBUF that was never written may be read and is NaN, as in AWS's simulator", false, false},
    {"backend", CLI_CHOICE, "simulator|aws", NULL, "aws: AWS's own nki package, where it is installed", false,
     false},
};
static const cli_option check_options[] = {
    {"against", CLI_TEXT, "FILE:NAME", NULL,
     "the reference, of numpy arrays; reference:NAME is the trainer's", false, true},
    {"backward", CLI_TEXT, "FILE:NAME", NULL, "the kernel's gradient (default: NAME_backward beside it)",
     false, false},
    {"backward-against", CLI_TEXT, "FILE:NAME", NULL,
     "the reference's (default: NAME_backward, else differences)", false, false},
    {"shape", CLI_TEXT, "MxN,...", NULL,
     "shapes of the inputs (repeat for more cases); :idsN integers, :positive", true, false},
    {"fixed", CLI_TEXT, "N,...", NULL, "sizes that stay in edge and hidden shapes", false, false},
    {"set", CLI_TEXT, "NAME=VALUE", NULL, "an argument for whoever has a parameter of that name; @N a size",
     true, false},
    {"outputs", CLI_TEXT, "N,...", NULL, "only these outputs, from 0", false, false},
    {"dtype", CLI_TEXT, "NAME,...", NULL, "dtypes of the inputs (default float32,bfloat16,float16)", false,
     false},
    {"values", CLI_TEXT, "NAME,...", NULL, "kinds of values (default: all)", false, false},
    {"tolerance", CLI_TEXT, "X", NULL, "instead of the dtype's", false, false},
    {"hidden", CLI_INT, "N", "4", "shapes drawn from the seed", false, false},
    {"in-place", CLI_FLAG, NULL, NULL, "the kernel may write to its arguments", false, false},
    {"strict", CLI_FLAG, NULL, NULL, "what the kernel refuses is a failure", false, false},
    {"machine", CLI_TEXT, "NAME", NULL, "trn1, trn2, trn3 or the path of a machine file", false, false},
    {"seed", CLI_INT, "N", NULL, "repeat a run (default: drawn afresh, and printed)", false, false},
};
static const cli_option accept_options[] = {
    {"only", CLI_TEXT, "TEXT", NULL, "only kernels whose path contains TEXT", false, false},
    {"machine", CLI_TEXT, "NAME", NULL, "trn1, trn2, trn3 or the path of a machine file", false, false},
};

/* The folder of frontier_nki: beside a build, or where `make install` put it. */
static bool find_package(char *out, size_t size)
{
    static const char *const places[] = {"python", "../lib/frontier/python"};
    char self[900], probe[1200];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return false;
    self[length] = 0;
    char *slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = 0;
    for (int i = 0; i < COUNT(places); i++) {
        snprintf(out, size, "%s/%s", self, places[i]);
        snprintf(probe, sizeof probe, "%.1000s/frontier_nki/_core.abi3.so", out);
        if (fr_path_exists(probe))
            return true;
    }
    return false;
}

typedef struct arguments {
    const char *list[256];
    int count;
    bool full;
} arguments;

static void add(arguments *a, const char *text)
{
    if (a->count < COUNT(a->list) - 1)
        a->list[a->count++] = text;
    else
        a->full = true;
}

/* The options that were given, as text again, then the arguments. */
static void add_given(cli_run *run, arguments *a)
{
    for (int i = 0; i < run->value_count; i++) {
        add(a, fr_arena_printf(&run->arena, "--%s", run->values[i].option->name));
        if (run->values[i].option->type != CLI_FLAG)
            add(a, run->values[i].text);
    }
    if (run->json)
        add(a, "--json");
    for (int i = 0; i < run->argument_count; i++)
        add(a, run->arguments[i]);
}

static fr_status become_python(cli_run *run, const char *verb, fr_error *error)
{
    char package[1000], path[4000];
    arguments a = {.count = 0};
    const char *python = getenv("FRONTIER_PYTHON"), *before = getenv("PYTHONPATH");
    if (!python || !python[0])
        python = "python3";
    if (!find_package(package, sizeof package))
        return fr_error_set(error, FR_BAD_ENVIRONMENT, "frontier_nki",
                            "run 'make nki' (it needs python3-dev and says so)",
                            "the Python package is not built");
    snprintf(path, sizeof path, "%s%s%s", package, before && before[0] ? ":" : "", before ? before : "");
    if (setenv("PYTHONPATH", path, 1) != 0)
        return fr_error_memory(error, strlen(path), "the environment");
    add(&a, python);
    add(&a, "-m");
    add(&a, "frontier_nki");
    if (verb)
        add(&a, verb);
    add_given(run, &a);
    if (a.full)
        return fr_error_set(error, FR_BAD_USAGE, "nki", "pass a file instead", "more than 250 arguments");
    a.list[a.count] = NULL;
    fflush(NULL);
    execvp(python, (char *const *)a.list);
    return fr_error_set(error, FR_BAD_ENVIRONMENT, python,
                        "apt-get install python3 python3-numpy, or set FRONTIER_PYTHON",
                        "cannot start Python: %s", strerror(errno));
}

static fr_status run_run(cli_run *run, fr_error *error)
{
    return become_python(run, NULL, error);
}

static fr_status run_compare(cli_run *run, fr_error *error)
{
    return become_python(run, "compare", error);
}

static fr_status run_check(cli_run *run, fr_error *error)
{
    return become_python(run, "check", error);
}

static fr_status run_accept(cli_run *run, fr_error *error)
{
    return become_python(run, "accept", error);
}

const cli_command cmd_nki_run = {
    .name = "nki run",
    .arguments = "SCRIPT [-- ARGUMENT...]",
    .least = 1,
    .most = -1,
    .summary = "run a script's NKI kernels on a simulated NeuronCore: numbers, rules, time",
    .options = run_options,
    .option_count = COUNT(run_options),
    .details = "The script sees `nki` and `neuronxcc.nki` as this package serves them; nothing is installed. "
               "Every time is\n"
               "simulated and printed between its two bounds; docs/nki-guide.md explains the report.",
    .examples = "  frontier nki run examples/nki_add.py\n  frontier nki run kernel.py --machine trn1 --trace "
                "trace.json\n"
                "  frontier nki run kernel.py --json -- --rows 512",
    .run = run_run,
    .schema = "nki-run",
};

const cli_command cmd_nki_compare = {
    .name = "nki compare",
    .arguments = "SCRIPT SCRIPT",
    .least = 2,
    .most = 2,
    .summary = "the kernels of two scripts side by side: time, engines, traffic",
    .options = accept_options + 1,
    .option_count = 1,
    .examples = "  frontier nki compare before.py after.py",
    .run = run_compare,
    .schema = "nki-compare",
};

const cli_command cmd_nki_check = {
    .name = "nki check",
    .arguments = "FILE:KERNEL",
    .least = 1,
    .most = 1,
    .summary = "hold a kernel to a reference, forward and backward, on edge and hidden shapes",
    .options = check_options,
    .option_count = COUNT(check_options),
    .examples = "  frontier nki check kernel.py:add --against reference.py:add --shape 128x512,128x512\n"
                "  frontier nki check kernels/relu_squared.py:relu_squared --against reference:relu_squared",
    .run = run_check,
    .schema = "nki-check",
};

const cli_command cmd_nki_accept = {
    .name = "nki accept",
    .arguments = "DIR",
    .least = 1,
    .most = 1,
    .summary = "run the public kernels of a checkout unmodified against numpy",
    .options = accept_options,
    .option_count = COUNT(accept_options),
    .examples = "  frontier nki accept ~/nki-samples\n  frontier nki accept ~/nki-library --only rope",
    .run = run_accept,
    .schema = "nki-accept",
};
