/* cli/cmd_sample.c: `frontier sample RUN`: let the model continue a text, once or line by line. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "commands.h"
#include "frontier/model.h"
#include "score.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"prompt", CLI_TEXT, "TEXT", "", "the text to continue; without it, a document from its start", false,
     false},
    {"tokens", CLI_COUNT, "N", "128", "at most so many tokens", false, false},
    {"temperature", CLI_REAL, "X", "0.8", "0 = always the likeliest token", false, false},
    {"top-k", CLI_COUNT, "K", "0", "choose among the K likeliest; 0 = all", false, false},
    {"top-p", CLI_REAL, "P", "1", "choose among the likeliest that hold P of the probability; above 0", false,
     false},
    {"seed", CLI_INT, "N", "1", "random seed", false, false},
    {"stop", CLI_TEXT, "TEXT", NULL, "end before this text appears; it is not printed", true, false},
    {"interactive", CLI_FLAG, NULL, NULL, "read lines and continue the text after each of them", false,
     false},
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

static fr_status read_options(cli_run *run, fr_sample_options *sampling, fr_error *error)
{
    const char **stops;
    double top_p = cli_real(run, "top-p", 1);
    *sampling = (fr_sample_options){
        .tokens = cli_int(run, "tokens", 128),
        .temperature = cli_real(run, "temperature", 0.8),
        .top_k = cli_int(run, "top-k", 0),
        .top_p = top_p,
        .seed = (uint64_t)cli_int(run, "seed", 1),
        .stop_at_bos = true,
        .stop_count = cli_texts(run, "stop", &stops),
    };
    sampling->stop = stops;
    if (!(sampling->temperature >= 0) || !(top_p > 0 && top_p <= 1))
        return fr_error_set(error, FR_BAD_USAGE, NULL,
                            "temperature is 0 or more, top-p above 0 and at most 1; for the likeliest token "
                            "alone give --temperature 0",
                            "a sampling option is out of range");
    return FR_OK;
}

static const char *finish_name(fr_finish finish)
{
    static const char *const names[] = {[FR_FINISH_NOT] = "none",
                                        [FR_FINISH_LENGTH] = "length",
                                        [FR_FINISH_STOP] = "stop",
                                        [FR_FINISH_DOCUMENT] = "document",
                                        [FR_FINISH_SINK] = "interrupted"};
    return names[finish];
}

static fr_status sample_once(cli_run *run, cli_scored *scored, const fr_sample_options *sampling,
                             fr_error *error)
{
    sink s = {.quiet = run->json};
    fr_finish finish = FR_FINISH_NOT;
    fr_buffer_init(&s.text, 64 << 20);
    fr_status status = cli_scored_sample(scored, cli_text(run, "prompt"), sampling, emit, &s, &finish, error);
    if (status == FR_OK && !s.quiet)
        fputc('\n', stdout);
    cli_put(run, "text", fr_json_text(s.text.data ? s.text.data : "", s.text.length));
    cli_put(run, "finish", json_string(finish_name(finish)));
    fr_buffer_release(&s.text);
    return status;
}

/* ---- line by line --------------------------------------------------------------------------------------- */

/* One text that person and model write in turn. */
typedef struct dialogue {
    const fr_tokenizer *tokenizer;
    fr_engine *engine;
    int64_t sequence;
    int32_t last; /* chosen and not yet fed; -1: the text is at its start */
    fr_sample_options sampling;
} dialogue;

/* The tokens to go on with: what was not fed yet, then the line. */
static fr_status encode_line(const dialogue *d, const char *line, int32_t **ids, int64_t *count,
                             fr_error *error)
{
    if (d->last < 0)
        return fr_prompt_encode(d->tokenizer, line, strlen(line), ids, count, error);
    size_t bytes = strlen(line), most = bytes + 1 + (size_t)fr_tokenizer_prefix(d->tokenizer);
    *ids = fr_allocate(most * sizeof **ids);
    if (!*ids)
        return fr_error_memory(error, most * sizeof **ids, "a line's tokens");
    (*ids)[0] = d->last;
    int64_t more = fr_tokenizer_encode(d->tokenizer, line, bytes, *ids + 1, (int64_t)most - 1);
    *count = 1 + more;
    return more < 0 ? fr_tokenizer_encode_error(d->tokenizer, bytes, "a line", error) : FR_OK;
}

static fr_status answer_line(dialogue *d, const char *line, sink *s, fr_error *error)
{
    fr_generation *generation = NULL;
    int32_t *ids = NULL;
    int64_t count = 0;
    fr_status status = encode_line(d, line, &ids, &count, error);
    if (status == FR_OK)
        status =
            fr_generation_create(&generation, d->tokenizer, ids[count - 1], &d->sampling, emit, s, error);
    if (status == FR_OK)
        status = fr_engine_generate(d->engine, d->sequence, count, ids, generation, error);
    if (status == FR_OK)
        d->last = fr_generation_finish(generation) == FR_FINISH_DOCUMENT ? fr_tokenizer_bos(d->tokenizer)
                                                                         : fr_generation_last(generation);
    fr_deallocate(ids);
    fr_generation_free(generation);
    s->text.length = 0;
    d->sampling.seed++; /* the next answer draws other numbers */
    fputc('\n', stdout);
    return status;
}

static fr_status talk(dialogue *d, const char *prompt, fr_error *error)
{
    sink s = {0};
    char *line = NULL;
    size_t room = 0;
    fr_status status = FR_OK;
    fr_buffer_init(&s.text, 64 << 20);
    fputs("The model continues the text; no chat format is trained. Each line is added to the text, an empty "
          "one "
          "goes on; end with Ctrl-D.\n",
          stderr);
    if (*prompt)
        status = answer_line(d, prompt, &s, error);
    while (status == FR_OK && !cli_interrupted() && !ferror(stdout)) {
        if (isatty(STDIN_FILENO))
            fputs("> ", stderr);
        ssize_t bytes = getline(&line, &room, stdin);
        if (bytes < 0)
            break;
        if (bytes > 0 && line[bytes - 1] == '\n')
            line[bytes - 1] = 0;
        status = answer_line(d, line, &s, error);
    }
    free(line);
    fr_buffer_release(&s.text);
    return status;
}

static fr_status run_interactive(cli_run *run, cli_scored *scored, const fr_sample_options *sampling,
                                 fr_error *error)
{
    dialogue d = {.last = -1, .sampling = *sampling};
    if (run->json)
        return fr_error_set(error, FR_BAD_USAGE, "--interactive", "leave one of them out",
                            "a conversation is not one JSON object");
    if (!scored->scorer)
        return fr_error_set(error, FR_BAD_USAGE, "--interactive", "give --prompt instead",
                            "a submission's program answers for whole texts only");
    d.tokenizer = fr_scorer_tokenizer(scored->scorer);
    FR_TRY(fr_engine_create(&d.engine, scored->scorer, 1, error));
    fr_status status = fr_engine_add(d.engine, &d.sequence, error);
    if (status == FR_OK)
        status = talk(&d, cli_text(run, "prompt"), error);
    fr_engine_free(d.engine);
    return status;
}

static fr_status run_sample(cli_run *run, fr_error *error)
{
    cli_scored scored;
    fr_sample_options sampling;
    FR_TRY(read_options(run, &sampling, error));
    FR_TRY(cli_scored_open(&scored, run->arguments[0], (int)cli_int(run, "threads", 0), NULL, error));
    fr_status status = cli_flag(run, "interactive") ? run_interactive(run, &scored, &sampling, error)
                                                    : sample_once(run, &scored, &sampling, error);
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
    .details =
        "Prints the continuation as it comes, without the prompt; no chat format is trained. Stops at the "
        "end of a\ndocument, before a --stop text, or after --tokens. The same seed gives the same text.",
    .examples =
        "  frontier sample runs/first --prompt 'Once upon a time' --tokens 60\n  frontier sample "
        "runs/first --prompt 'The' --temperature 0 --stop .\n  frontier sample runs/first --interactive",
    .run = run_sample,
    .schema = "sample",
};
