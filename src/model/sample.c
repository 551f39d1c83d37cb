/* Continuing a prompt: logits of the last position, a token, and again.
 *
 * The logits come from the engine, which is given only what is new, or from any source that answers for
 * rows of tokens, which is given the whole text again, or its last `context` tokens. Choosing a token and
 * handing out text is the generation's business.
 */
#include "model/sample.h"

#include <string.h>

fr_status fr_prompt_encode(const fr_tokenizer *tokenizer, const char *prompt, size_t bytes, int32_t **ids,
                           int64_t *count, fr_error *error)
{
    size_t most = bytes + 1 + (size_t)fr_tokenizer_prefix(tokenizer);
    int32_t bos = fr_tokenizer_bos(tokenizer), *out = fr_allocate(most * sizeof *out);
    *ids = NULL;
    *count = 0;
    if (!out)
        return fr_error_memory(error, most * sizeof *out, "the prompt's tokens");
    if (bos >= 0)
        out[(*count)++] = bos;
    int64_t more = fr_tokenizer_encode(tokenizer, prompt, bytes, out + *count, (int64_t)most - 1);
    if (more < 0 || *count + more == 0) {
        fr_deallocate(out);
        return more < 0 ? fr_tokenizer_encode_error(tokenizer, bytes, "the prompt", error)
                        : fr_error_set(error, FR_BAD_USAGE, "sampling", "give a prompt",
                                       "the tokenizer has no start token and the prompt is empty");
    }
    *ids = out;
    *count += more;
    return FR_OK;
}

/* ---- by the engine ---------------------------------------------------------------------------------- */

fr_status fr_engine_generate(fr_engine *engine, int64_t sequence, int64_t count, const int32_t *prompt,
                             fr_generation *generation, fr_error *error)
{
    size_t bytes = (size_t)fr_scorer_vocab(fr_engine_scorer(engine)) * sizeof(float);
    float *logits = fr_allocate(bytes);
    if (!logits)
        return fr_error_memory(error, bytes, "logits");
    int32_t token = prompt[count - 1];
    fr_status status = FR_OK;
    if (fr_generation_finish(generation) == FR_FINISH_NOT)
        status = fr_engine_feed(engine, sequence, count - 1, prompt, NULL, error);
    while (status == FR_OK && fr_generation_finish(generation) == FR_FINISH_NOT) {
        status = fr_engine_step(engine, 1, &sequence, &token, logits, error);
        if (status == FR_OK)
            status = fr_generation_next(generation, logits, &token, error);
    }
    fr_deallocate(logits);
    return status;
}

static fr_status sample_by_engine(fr_scorer *scorer, int64_t count, const int32_t *prompt,
                                  fr_generation *generation, fr_error *error)
{
    fr_engine *engine;
    int64_t sequence;
    FR_TRY(fr_engine_create(&engine, scorer, 1, error));
    fr_status status = fr_engine_add(engine, &sequence, error);
    if (status == FR_OK)
        status = fr_engine_generate(engine, sequence, count, prompt, generation, error);
    fr_engine_free(engine);
    return status;
}

fr_status fr_sample(fr_scorer *scorer, const char *prompt, const fr_sample_options *options,
                    fr_text_sink emit, void *context, fr_finish *finish, fr_error *error)
{
    const fr_tokenizer *tokenizer = fr_scorer_tokenizer(scorer);
    fr_generation *generation = NULL;
    int32_t *ids;
    int64_t count;
    if (!tokenizer)
        return fr_error_set(error, FR_BAD_USAGE, "sampling", "open the run from its folder",
                            "this scorer has no tokenizer");
    FR_TRY(fr_prompt_encode(tokenizer, prompt, strlen(prompt), &ids, &count, error));
    fr_status status =
        fr_generation_create(&generation, tokenizer, ids[count - 1], options, emit, context, error);
    if (status == FR_OK)
        status = sample_by_engine(scorer, count, ids, generation, error);
    if (finish)
        *finish = fr_generation_finish(generation);
    fr_deallocate(ids);
    fr_generation_free(generation);
    return status;
}

/* ---- by any source ---------------------------------------------------------------------------------- */

static fr_status run_source(fr_logits_source source, void *source_context, int64_t context,
                            fr_generation *generation, int64_t length, int32_t *ids, float *logits,
                            fr_error *error)
{
    while (fr_generation_finish(generation) == FR_FINISH_NOT) {
        int64_t T = length < context ? length : context;
        int32_t token;
        FR_TRY(source(source_context, T, ids + length - T, T - 1, logits, error));
        FR_TRY(fr_generation_next(generation, logits, &token, error));
        if (token >= 0)
            ids[length++] = token;
    }
    return FR_OK;
}

fr_status fr_sample_from(fr_logits_source source, void *source_context, int64_t context,
                         const fr_tokenizer *tokenizer, const char *prompt, const fr_sample_options *options,
                         fr_text_sink emit, void *emit_context, fr_finish *finish, fr_error *error)
{
    fr_generation *generation = NULL;
    int32_t *start, *ids = NULL;
    int64_t count;
    FR_TRY(fr_prompt_encode(tokenizer, prompt, strlen(prompt), &start, &count, error));
    fr_status status =
        fr_generation_create(&generation, tokenizer, start[count - 1], options, emit, emit_context, error);
    if (status == FR_OK) {
        size_t bytes = (size_t)(count + options->tokens) * sizeof *ids;
        float *logits = fr_allocate((size_t)fr_tokenizer_vocab(tokenizer) * sizeof *logits);
        ids = fr_allocate(bytes);
        if (ids && logits) {
            memcpy(ids, start, (size_t)count * sizeof *ids);
            status = run_source(source, source_context, context, generation, count, ids, logits, error);
        } else {
            status = fr_error_memory(error, bytes, "sampling");
        }
        fr_deallocate(logits);
    }
    if (finish)
        *finish = fr_generation_finish(generation);
    fr_deallocate(start);
    fr_deallocate(ids);
    fr_generation_free(generation);
    return status;
}
