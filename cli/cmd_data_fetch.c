/* cli/cmd_data_fetch.c: `frontier data fetch`: real text from the web, and the library that reads it.
 *
 * The source and the licence are said before the first byte moves. Text is data and comes at once; a library is a program
 * that will run in this process, so it comes only with consent: a yes on the terminal, or --yes.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "frontier/text.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

enum { SHARD_MEGABYTES = 93 };

static const cli_option fetch_options[] = {
    {"out", CLI_PATH, "FOLDER", NULL, "where to put it; the same folder again goes on where it stopped", false, true},
    {"shards", CLI_COUNT, "N", "5", "climbmix: training shards of about 93 MB; the validation shard comes too", false, false},
    {"url", CLI_TEXT, "URL", NULL, "another place; climbmix: {index} stands for the shard's five digits", false, false},
    {"sha256", CLI_TEXT, "HEX", NULL, "duckdb: what the archive from --url must have", false, false},
    {"connections", CLI_COUNT, "N", "3", "downloads at a time, 1 to 4", false, false},
    {"retries", CLI_COUNT, "N", "6", "further attempts per file", false, false},
    {"timeout", CLI_DURATION, "TIME", "30s", "an attempt ends after so long without data", false, false},
    {"verify", CLI_FLAG, NULL, NULL, "climbmix: also hash the shards that are there already", false, false},
    {"yes", CLI_FLAG, NULL, NULL, "duckdb: fetch it without asking", false, false},
};

static fr_status consent(cli_run *run, const fr_fetch_options *options, fr_error *error)
{
    int64_t bytes;
    char size[40], answer[16] = "";
    const fr_fetch_origin *origin = fr_fetch_origin_of(options->kind);
    FR_TRY(fr_fetch_size(options, &bytes, error));
    cli_print(run, "DuckDB's C library reads .parquet files. It is a program and will run inside frontier.\n");
    cli_print(run, "  from     %s\n  size     %s\n  licence  %s\n  checked  %s\n", fr_fetch_address(options),
              bytes < 0 ? "not said" : fr_format_bytes(size, sizeof size, (double)bytes), origin->licence,
              options->url && !options->sha256 ? "no: give --sha256 for an address of your own" : "its SHA-256 is known");
    if (cli_flag(run, "yes"))
        return FR_OK;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return fr_error_set(error, FR_BAD_USAGE, "--yes", "say --yes when you agree", "nobody is here to ask");
    fprintf(stderr, "Fetch it? [y/N] ");
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return FR_OK;
    return fr_error_set(error, FR_ANSWER_NO, NULL, NULL, "nothing was fetched");
}

static void announce(cli_run *run, const fr_fetch_options *options)
{
    const fr_fetch_origin *origin = fr_fetch_origin_of(options->kind);
    char size[40];
    double bytes = (double)(options->shards + 1) * SHARD_MEGABYTES * 1e6;
    cli_print(run, "ClimbMix: %d training shards and the validation shard, about %s\n", options->shards,
              fr_format_bytes(size, sizeof size, bytes));
    cli_print(run, "  from     %s\n  of       %s\n  licence  %s\n", fr_fetch_address(options), origin->derived_from, origin->licence);
}

static fr_status put_receipt(cli_run *run, const fr_fetch_options *options, const fr_fetch_summary *summary, fr_error *error)
{
    json_t *receipt;
    FR_TRY(cli_read_json(options->out_folder, "fetch.json", &receipt, error));
    cli_put(run, "fetched", json_integer((json_int_t)summary->fetched));
    cli_put(run, "kept", json_integer((json_int_t)summary->kept));
    cli_put(run, "bytes", json_integer((json_int_t)summary->bytes));
    cli_put(run, "seconds", json_real(summary->seconds));
    cli_put(run, "receipt", receipt);
    if (options->kind == FR_FETCH_DUCKDB) {
        cli_put(run, "library", json_string(summary->library));
        cli_put(run, "version", json_string(summary->version));
    }
    return FR_OK;
}

static void print_done(cli_run *run, const fr_fetch_options *options, const fr_fetch_summary *summary)
{
    char size[40], seconds[40];
    const char *out = options->out_folder;
    cli_print(run, "%s: %lld files fetched, %s in %s; %lld were there\n", out, (long long)summary->fetched,
              fr_format_bytes(size, sizeof size, (double)summary->bytes),
              fr_format_duration(seconds, sizeof seconds, summary->seconds), (long long)summary->kept);
    if (options->kind == FR_FETCH_DUCKDB)
        cli_print(run, "DuckDB %s\nnext: export FRONTIER_DUCKDB=%s, or give --duckdb %s to 'data import'\n", summary->version,
                  summary->library, summary->library);
    else
        cli_print(run, "next: frontier data import --out data/climbmix %s/train --valid %s/valid --licence 'CC BY-NC 4.0'\n",
                  cli_quoted(run, out), cli_quoted(run, out));
}

/* Options of the other kind are mistakes, not wishes to be ignored. */
static fr_status check_kind(const cli_run *run, const char *kind, fr_error *error)
{
    bool climbmix = strcmp(kind, "climbmix") == 0;
    if (!climbmix && strcmp(kind, "duckdb") != 0)
        return fr_error_set(error, FR_BAD_USAGE, kind, "frontier data fetch climbmix, or duckdb", "nothing is known by this name");
    if (climbmix && cli_text(run, "sha256"))
        return fr_error_set(error, FR_BAD_USAGE, "--sha256", NULL, "is for duckdb: each shard has its own");
    if (climbmix && cli_flag(run, "yes"))
        return fr_error_set(error, FR_BAD_USAGE, "--yes", NULL, "is for duckdb");
    if (!climbmix && cli_flag(run, "verify"))
        return fr_error_set(error, FR_BAD_USAGE, "--verify", NULL, "is for climbmix");
    const char *hex = cli_text(run, "sha256");
    if (hex && (strlen(hex) != 64 || strspn(hex, "0123456789abcdef") != 64))
        return fr_error_set(error, FR_BAD_USAGE, "--sha256", "64 digits, 0 to 9 and a to f", "not a SHA-256");
    return FR_OK;
}

static fr_status run_fetch(cli_run *run, fr_error *error)
{
    fr_fetch_summary summary;
    FR_TRY(check_kind(run, run->arguments[0], error));
    bool climbmix = strcmp(run->arguments[0], "climbmix") == 0;
    fr_fetch_options options = {
        .kind = climbmix ? FR_FETCH_CLIMBMIX : FR_FETCH_DUCKDB,
        .out_folder = cli_text(run, "out"),
        .shards = (int)cli_int(run, "shards", 0),
        .url = cli_text(run, "url"),
        .sha256 = cli_text(run, "sha256"),
        .verify = cli_flag(run, "verify"),
        .connections = (int)cli_int(run, "connections", 0),
        .retries = (int)cli_int(run, "retries", 0),
        .stall = cli_seconds(run, "timeout", 0),
        .progress = &run->progress,
    };
    if (options.connections < 1)
        return fr_error_set(error, FR_BAD_USAGE, "--connections", NULL, "0 is not in 1..4");
    if (climbmix && (options.shards < 1 || options.shards > fr_fetch_most_shards()))
        return fr_error_set(error, FR_BAD_USAGE, "--shards", NULL, "%d is not in 1..%d", options.shards, fr_fetch_most_shards());
    if (climbmix)
        announce(run, &options);
    else
        FR_TRY(consent(run, &options, error));
    FR_TRY(fr_fetch(&options, &summary, error));
    print_done(run, &options, &summary);
    return put_receipt(run, &options, &summary, error);
}

const cli_command cmd_data_fetch = {
    .name = "data fetch",
    .arguments = "climbmix|duckdb",
    .least = 1,
    .most = 1,
    .summary = "download ClimbMix's parquet shards, or the library that reads parquet",
    .options = fetch_options,
    .option_count = COUNT(fetch_options),
    .details = "climbmix: the 6,543 shards that nanochat trains on; the last one is the validation text. They land in "
               "FOLDER/train\nand FOLDER/valid; FOLDER/fetch.json names source, licence, size and SHA-256 of each. The "
               "licence does not allow\ncommercial use.\n"
               "duckdb: libduckdb.so of DuckDB's release, for 'data import' of .parquet files; asks before it fetches.\n"
               "Ctrl-C, a kill or a lost network leave parts from which the same command goes on. Proxies and "
               "certificates are\nlibcurl's: https_proxy, no_proxy.",
    .examples = "  frontier data fetch duckdb --out lib\n"
                "  frontier data fetch climbmix --out shards --shards 8\n"
                "  FRONTIER_DUCKDB=lib/libduckdb.so frontier data import --out data/climbmix shards/train --valid shards/valid",
    .run = run_fetch,
    .schema = "data-fetch",
};
