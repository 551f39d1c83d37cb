/* cli/score.c: one way to score and sample, for library runs and for submissions.
 *
 * A run that a submission's program trained holds that program; then its logits come over the block protocol and
 * the cross-entropy is computed here. Otherwise the library opens the checkpoint itself, or the folder of another
 * program's model.
 */
#include "score.h"

#include <string.h>

#include "base/json.h"
#include "frontier/formats.h"

static fr_status open_program(cli_scored *s, const char *program, int threads, fr_error *error)
{
    char path[1200];
    FR_TRY(fr_run_recipe_load(&s->recipe, s->folder, error));
    FR_TRY(fr_tokenizer_load(&s->tokenizer, fr_path_join(path, sizeof path, s->folder, "tokenizer.json"),
                             error));
    fr_program_options options = {.threads = threads};
    return fr_program_start(&s->program, program, s->folder, fr_tokenizer_vocab(s->tokenizer), &options,
                            error);
}

fr_status cli_scored_open(cli_scored *s, const char *run_folder, int threads, const char *numerics,
                          fr_error *error)
{
    char program[1200];
    *s = (cli_scored){.threads = threads, .numerics = numerics};
    snprintf(s->folder, sizeof s->folder, "%s", run_folder);
    fr_path_join(program, sizeof program, run_folder, "program");
    fr_status status;
    if (fr_path_exists(program)) {
        status = open_program(s, program, threads, error);
    } else {
        status = fr_scorer_open(&s->scorer, run_folder,
                                &(fr_scorer_options){.threads = threads, .numerics = numerics}, error);
        if (status == FR_OK)
            s->recipe = *fr_scorer_recipe(s->scorer);
    }
    if (status != FR_OK)
        cli_scored_release(s);
    return status;
}

static fr_status open_foreign(cli_scored *s, const char *folder, int threads, const char *numerics,
                              fr_error *error)
{
    fr_foreign *model;
    *s = (cli_scored){.foreign = true, .threads = threads, .numerics = numerics};
    snprintf(s->folder, sizeof s->folder, "%s", folder);
    FR_TRY(fr_foreign_open(&model, "hf", folder, NULL, error));
    FR_TRY(fr_scorer_open_foreign(&s->scorer, model,
                                  &(fr_scorer_options){.threads = threads, .numerics = numerics}, error));
    s->recipe = *fr_scorer_recipe(s->scorer);
    return FR_OK;
}

fr_status cli_scored_open_asked(cli_scored *s, const cli_run *run, fr_error *error)
{
    const char *foreign = cli_text(run, "hf"), *numerics = cli_text(run, "numerics");
    int threads = (int)cli_int(run, "threads", 0);
    if (!foreign == !run->argument_count)
        return fr_error_set(error, FR_BAD_USAGE, NULL, "give one of the two",
                            foreign ? "both a run and --hf are given" : "neither a run nor --hf is given");
    return foreign ? open_foreign(s, foreign, threads, numerics, error)
                   : cli_scored_open(s, run->arguments[0], threads, numerics, error);
}

/* Appends name and hash of a file, if it is there. */
static fr_status add_hash(const cli_scored *s, const char *name, fr_buffer *all, fr_error *error)
{
    char path[1300], sha256[65];
    if (!fr_path_exists(fr_path_join(path, sizeof path, s->folder, name)))
        return FR_OK;
    FR_TRY(fr_sha256_file(path, sha256, error));
    fr_buffer_printf(all, "%s %s\n", name, sha256);
    return FR_OK;
}

/* Every tensor file of a foreign folder; of a run, its weights. */
static fr_status add_weights(const cli_scored *s, fr_buffer *all, fr_error *error)
{
    fr_arena arena;
    char **names;
    size_t count = 0;
    if (!s->foreign)
        return add_hash(s, "model.safetensors", all, error);
    fr_arena_init(&arena, 1 << 14);
    fr_status status = fr_folder_list(&arena, s->folder, &names, &count, error);
    for (size_t i = 0; i < count && status == FR_OK; i++)
        if (strstr(names[i], ".safetensors"))
            status = add_hash(s, names[i], all, error);
    fr_arena_release(&arena);
    return status;
}

fr_status cli_scored_hash(const cli_scored *s, char hex[65], fr_error *error)
{
    static const char *const others[] = {"config.json", "recipe.toml", "program"};
    fr_buffer all;
    fr_buffer_init(&all, 1 << 20);
    fr_status status = add_weights(s, &all, error);
    for (size_t i = s->foreign ? 0 : 1; i < (s->foreign ? 1u : 3u) && status == FR_OK; i++)
        status = add_hash(s, others[i], &all, error);
    bool fp32 =
        s->numerics ? strcmp(s->numerics, "fp32") == 0 : fr_recipe_numerics(&s->recipe) == FR_NUMERICS_F32;
    fr_buffer_printf(&all, "%s\n", fp32 ? "fp32" : "bf16");
    if (status == FR_OK && all.failed)
        status = fr_error_memory(error, all.length, "a model's hash");
    if (status == FR_OK)
        fr_sha256(all.data, all.length, hex);
    fr_buffer_release(&all);
    return status;
}

void cli_scored_release(cli_scored *s)
{
    fr_program_stop(s->program);
    fr_scorer_free(s->scorer);
    fr_tokenizer_free(s->tokenizer);
    *s = (cli_scored){0};
}

fr_status cli_scored_restart(cli_scored *s, fr_error *error)
{
    cli_scored old = *s;
    cli_scored_release(s);
    return cli_scored_open(s, old.folder, old.threads, old.numerics, error);
}

const fr_tokenizer *cli_scored_tokenizer(const cli_scored *s)
{
    return s->scorer ? fr_scorer_tokenizer(s->scorer) : s->tokenizer;
}

fr_status cli_scored_logits(void *scored, int64_t T, const int32_t *tokens, int64_t first, float *logits,
                            fr_error *error)
{
    cli_scored *s = scored;
    return s->scorer ? fr_scorer_logits(s->scorer, T, tokens, first, logits, error)
                     : fr_program_logits(s->program, 0, T, tokens, first, logits, error);
}

fr_status cli_scored_nats(void *scored, int64_t rows, int64_t T, const int32_t *inputs, const int32_t *targets,
                          float *nats, fr_error *error)
{
    cli_scored *s = scored;
    return s->scorer ? fr_scorer_nats(s->scorer, rows, T, inputs, targets, nats, error)
                     : fr_program_nats(s->program, rows, T, inputs, targets, nats, error);
}

fr_status cli_scored_fits(const cli_scored *s, const fr_corpus *corpus, fr_error *error)
{
    char mine[65], theirs[65];
    fr_tokenizer_hash(cli_scored_tokenizer(s), mine);
    fr_tokenizer_hash(fr_corpus_tokenizer(corpus), theirs);
    if (strcmp(mine, theirs) == 0)
        return FR_OK;
    return fr_error_set(error, FR_BAD_DATA, fr_corpus_folder(corpus),
                        s->foreign ? "frontier import the folder; then that text, with --tokenizer RUN/tokenizer.json"
                                   : "import that text again with --tokenizer RUN/tokenizer.json",
                        "the data folder was made with another tokenizer than the run");
}

fr_status cli_scored_bpb(cli_scored *s, const fr_corpus *corpus, const fr_bpb_options *options,
                         fr_bpb_result *result, fr_error *error)
{
    FR_TRY(cli_scored_fits(s, corpus, error));
    if (s->scorer)
        return fr_eval_bpb(s->scorer, corpus, options, result, error);
    return fr_eval_bpb_from(fr_program_nats, s->program, &s->recipe, corpus, options, result, error);
}

fr_status cli_scored_sample(cli_scored *s, const char *prompt, const fr_sample_options *options,
                            fr_text_sink emit, void *context, fr_finish *finish, fr_error *error)
{
    if (s->scorer)
        return fr_sample(s->scorer, prompt, options, emit, context, finish, error);
    return fr_sample_from(cli_scored_logits, s, s->recipe.model.context, s->tokenizer, prompt, options,
                          emit, context, finish, error);
}
