/* cli/cmd_doctor.c: `frontier doctor`: what is off on this machine, what it costs, how to turn it on.
 *
 * A table of checks; each says good, or what is lost and what to do. Nothing here changes the machine.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "commands.h"
#include "frontier/cpu.h"
#include "text/duckdb.h"

typedef struct finding {
    bool good;
    char state[160];
    const char *cost, *cure;
} finding;

static void check_processor(finding *f)
{
    fr_cpu_features features;
    fr_cpu_detect(&features);
    f->good = strcmp(features.path, "avx512") == 0;
    snprintf(f->state, sizeof f->state, "%s, kernels %s", features.name, features.path);
    f->cost = "training runs on slower kernels";
    f->cure = getenv("FRONTIER_KERNELS") ? "unset FRONTIER_KERNELS" : "use a machine with AVX-512";
}

static void check_bf16(finding *f)
{
    fr_cpu_features features;
    fr_cpu_detect(&features);
    f->good = features.avx512_bf16 || features.amx_bf16;
    snprintf(f->state, sizeof f->state, "bf16 products %s", f->good ? "in hardware" : "not in hardware");
    f->cost = "matrix products run in fp32, about half (avx512_bf16) or a tenth (AMX) of that peak";
    f->cure = "a processor with avx512_bf16 or AMX; nothing to install";
}

static void check_threads(finding *f)
{
    int available = fr_cpu_available();
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    f->good = available >= online;
    snprintf(f->state, sizeof f->state, "%d of %ld processors usable", available, online);
    f->cost = "affinity or a cgroup quota holds back the rest";
    f->cure = "raise the container's CPU limit or run outside taskset";
}

static void check_memory(finding *f)
{
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    char text[40];
    f->good = bytes > 7e9;
    snprintf(f->state, sizeof f->state, "%s of memory", fr_format_bytes(text, sizeof text, bytes));
    f->cost = "the baseline recipe (depth 10) needs about 4 GB and will not fit beside other work";
    f->cure = "use a smaller recipe: --set model.depth=6";
}

static void check_disk(finding *f)
{
    struct statvfs s;
    double bytes = statvfs(".", &s) == 0 ? (double)s.f_bavail * (double)s.f_frsize : 0;
    char text[40];
    f->good = bytes > 2e9;
    snprintf(f->state, sizeof f->state, "%s free here", fr_format_bytes(text, sizeof text, bytes));
    f->cost = "checkpoints and shards may not fit";
    f->cure = "free some space or work in another folder";
}

static void check_huge_pages(finding *f)
{
    char text[128] = "";
    FILE *in = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (in) {
        if (!fgets(text, sizeof text, in))
            text[0] = 0;
        fclose(in);
    }
    f->good = strstr(text, "[always]") || strstr(text, "[madvise]");
    snprintf(f->state, sizeof f->state, "transparent huge pages %s", f->good ? "available" : "off");
    f->cost = "a few per cent of speed in large models";
    f->cure = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
}

static void check_parquet(finding *f)
{
    duckdb_library library;
    fr_error error = {0};
    f->good = duckdb_library_load(&library, NULL, &error) == FR_OK;
    if (f->good)
        snprintf(f->state, sizeof f->state, "DuckDB %.40s reads .parquet", library.library_version());
    else
        snprintf(f->state, sizeof f->state, "no usable DuckDB library");
    f->cost = ".parquet files cannot be imported";
    f->cure = "frontier data fetch duckdb --out lib; export FRONTIER_DUCKDB=lib/libduckdb.so";
}

static const struct {
    const char *name;
    void (*run)(finding *);
} checks[] = {
    {"processor", check_processor}, {"bf16", check_bf16}, {"threads", check_threads},
    {"memory", check_memory},       {"disk", check_disk}, {"huge-pages", check_huge_pages},
    {"parquet", check_parquet},
};

static fr_status run_doctor(cli_run *run, fr_error *error)
{
    json_t *list = json_array();
    int off = 0;
    (void)error;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        finding f = {0};
        checks[i].run(&f);
        off += !f.good;
        cli_print(run, "%-4s %-11s %s\n", f.good ? "ok" : "off", checks[i].name, f.state);
        if (!f.good)
            cli_print(run, "                 costs: %s\n                 to turn on: %s\n", f.cost, f.cure);
        json_array_append_new(list, json_pack("{s:s,s:b,s:s,s:s,s:s}", "name", checks[i].name, "good", f.good,
                                              "state", f.state, "cost", f.good ? "" : f.cost, "cure",
                                              f.good ? "" : f.cure));
    }
    cli_print(run, "%s\n",
              off ? "Frontier works here; the lines marked off cost speed, room or a kind of file." : "Everything is on.");
    cli_put(run, "checks", list);
    cli_put(run, "off", json_integer(off));
    return FR_OK;
}

const cli_command cmd_doctor = {
    .name = "doctor",
    .least = 0,
    .most = 0,
    .summary = "what is off on this machine, what that costs, how to turn it on",
    .examples = "  frontier doctor",
    .run = run_doctor,
    .schema = "doctor",
};
