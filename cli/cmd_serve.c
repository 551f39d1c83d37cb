/* cli/cmd_serve.c: `frontier serve RUN`: a trained model behind an OpenAI-compatible completions endpoint. */
#include <string.h>

#include "commands.h"
#include "frontier/http.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"port", CLI_COUNT, "N", "8000", "port to listen on; 0 = any that is free", false, false},
    {"address", CLI_TEXT, "IP", "127.0.0.1", "address to listen on; other machines reach 0.0.0.0", false,
     false},
    {"name", CLI_TEXT, "TEXT", NULL, "the model's name to clients (default: the run folder's)", false, false},
    {"sequences", CLI_COUNT, "N", "8", "completions under way at once; each costs memory", false, false},
    {"max-tokens", CLI_COUNT, "N", "1024", "most tokens of one completion", false, false},
    {"max-waiting", CLI_COUNT, "N", "64", "completions in line at which requests are refused", false, false},
    {"max-body", CLI_SIZE, "SIZE", "1MB", "most bytes of one request", false, false},
    {"max-connections", CLI_COUNT, "N", "64", "most connections at once", false, false},
    {"time-limit", CLI_DURATION, "TIME", "2m", "longest time of one request, waiting included", false, false},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
};

static bool stop(void *context)
{
    (void)context;
    return cli_interrupted();
}

/* The last name of a path, without trailing slashes. */
static void name_of(const char *path, char *out, size_t room)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    snprintf(out, room, "%.*s", (int)(end - start), path + start);
}

static fr_status serve(cli_run *run, fr_engine *engine, fr_error *error)
{
    char name[256];
    name_of(run->arguments[0], name, sizeof name);
    const char *given = cli_text(run, "name"), *address = cli_text(run, "address");
    fr_completions_options wanted = {
        .model = given ? given : name,
        .most_tokens = cli_int(run, "max-tokens", 1024),
        .most_waiting = cli_int(run, "max-waiting", 64),
        .most_seconds = cli_seconds(run, "time-limit", 120),
        .http = {.address = address,
                 .port = (int)cli_int(run, "port", 8000),
                 .most_body_bytes = cli_bytes(run, "max-body", 1000000),
                 .most_connections = (int)cli_int(run, "max-connections", 64)},
    };
    fr_completions *completions;
    FR_TRY(fr_completions_create(&completions, engine, &wanted, error));
    cli_print(run,
              "serving %s at http://%s:%d/v1; no chat format is trained: completions only; Ctrl-C ends it\n",
              wanted.model, address, fr_completions_port(completions));
    if (strncmp(address, "127.", 4) != 0)
        cli_warn(run, "other machines can reach %s: requests are neither encrypted nor authenticated",
                 address);
    fr_status status = fr_completions_run(completions, stop, NULL, error);
    fr_completions_free(completions);
    return status;
}

static fr_status run_serve(cli_run *run, fr_error *error)
{
    fr_engine *engine;
    fr_engine_options wanted = {.threads = (int)cli_int(run, "threads", 0),
                                .sequences = cli_int(run, "sequences", 8)};
    FR_TRY(fr_engine_open(&engine, run->arguments[0], &wanted, error));
    fr_status status = serve(run, engine, error);
    fr_engine_free(engine);
    return status;
}

const cli_command cmd_serve = {
    .name = "serve",
    .arguments = "RUN",
    .least = 1,
    .most = 1,
    .summary = "answer completion requests over HTTP, in OpenAI's form",
    .options = options,
    .option_count = COUNT(options),
    .details =
        "POST /v1/completions (streams too), GET /v1/models, /metrics (Prometheus), /healthz; on this "
        "machine "
        "only unless\n--address says otherwise. Requests share the engine's passes. A seed gives the text of "
        "`frontier sample`.",
    .examples =
        "  frontier serve runs/first\n  curl -s http://127.0.0.1:8000/v1/completions -H 'Content-Type: "
        "application/json' \\\n    -d '{\"prompt\": \"Once\", \"max_tokens\": 40, \"stream\": true}'",
    .run = run_serve,
};
