/* cli/cmd_sample.c: `frontier sample RUN`: let the model continue a text. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "frontier/model.h"
#include "score.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"prompt", CLI_TEXT, "TEXT", "", "the text to continue; without it, a document from its start", false, false},
    {"tokens", CLI_COUNT, "N", "128", "at most so many tokens", false, false},
    {"temperature", CLI_REAL, "X", "0.8", "0 = always the likeliest token", false, false},
    {"top-k", CLI_COUNT, "K", "0", "choose among the K likeliest; 0 = all", false, false},
    {"top-p", CLI_REAL, "P", "1", "choose among the likeliest that hold P of the probability", false, false},
    {"seed", CLI_INT, "N", "1", "random seed", false, false},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
};

typedef struct sink {
    fr_buffer text;
    bool quiet;
} sink;

static bool emit(void *context, const char *bytes, size_t count)
{
    sink *s = context;
    fr_buffer_append(&s->text, bytes, count);
    if (!s->quiet) {
        fwrite(bytes, 1, count, stdout);
        fflush(stdout);
    }
    return !cli_interrupted() && !ferror(stdout);
}

static fr_status run_sample(cli_run *run, fr_error *error)
{
    cli_scored scored;
    sink s = {.quiet = run->json};
    fr_sample_options sampling = {
        .tokens = cli_int(run, "tokens", 128),
        .temperature = cli_real(run, "temperature", 0.8),
        .top_k = cli_int(run, "top-k", 0),
        .top_p = cli_real(run, "top-p", 1),
        .seed = (uint64_t)cli_int(run, "seed", 1),
        .stop_at_bos = true,
    };
    if (sampling.tokens < 0 || sampling.temperature < 0 || sampling.top_k < 0 || sampling.top_p < 0 ||
        sampling.top_p > 1)
        return fr_error_set(error, FR_BAD_USAGE, NULL,
                            "tokens, temperature and top-k are 0 or more, top-p between 0 and 1",
                            "a sampling option is out of range");
    FR_TRY(cli_scored_open(&scored, run->arguments[0], (int)cli_int(run, "threads", 0), NULL, error));
    fr_buffer_init(&s.text, 64 << 20);
    fr_status status = cli_scored_sample(&scored, cli_text(run, "prompt"), &sampling, emit, &s, NULL, error);
    if (status == FR_OK && !s.quiet)
        fputc('\n', stdout);
    cli_put(run, "text", fr_json_text(s.text.data ? s.text.data : "", s.text.length));
    fr_buffer_release(&s.text);
    cli_scored_release(&scored);
    return status == FR_OK && cli_interrupted() ? FR_STOPPED : status;
}

const cli_command cmd_sample = {
    .name = "sample",
    .arguments = "RUN",
    .least = 1,
    .most = 1,
    .summary = "continue a text with a trained model",
    .options = options,
    .option_count = COUNT(options),
    .details = "Prints the continuation, without the prompt; no chat format is trained. Stops at the end of a document "
               "or after\n--tokens.",
    .examples = "  frontier sample runs/first --prompt 'Once upon a time' --tokens 60\n  frontier sample "
                "runs/first --prompt 'The' --temperature 0",
    .run = run_sample,
    .schema = "sample",
};
