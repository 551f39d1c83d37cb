/* A text as it is generated: logits in, tokens and bytes out.
 *
 * Tokens are pieces of bytes; people want characters, and programs want texts that end before a stop text.
 * So bytes are held while they may still become something else: the beginning of a character, or of a stop
 * text. What is held is at most a stop text long. A stop text is found wherever it begins, also across
 * tokens, and the earliest one wins.
 */
#include "model/sample.h"

#include <math.h>
#include <string.h>

enum { MOST_STOPS = 16, LONGEST_STOP = 1024 };

struct fr_generation {
    const fr_tokenizer *tokenizer;
    fr_sample_options options; /* without the stop texts */
    fr_text_sink emit;
    void *context;
    char *stops[MOST_STOPS];
    size_t stop_bytes[MOST_STOPS];
    int stop_count;
    fr_rng rng;
    void *scratch;
    fr_buffer held; /* chosen, not handed out */
    int64_t tokens;
    int32_t last; /* the token before the next one */
    fr_finish finish;
};

/* ---- whole characters ------------------------------------------------------------------------------- */

/* Length of the character a byte begins; 1 for bytes that begin none. */
static size_t character_length(uint8_t byte)
{
    return byte >= 0xF0 && byte < 0xF8 ? 4 : byte >= 0xE0 ? (byte < 0xF0 ? 3 : 1) : byte >= 0xC2 ? 2 : 1;
}

size_t fr_utf8_unfinished(const char *bytes, size_t count)
{
    for (size_t back = 1; back <= 3 && back <= count; back++) {
        uint8_t byte = (uint8_t)bytes[count - back];
        if ((byte & 0xC0) == 0x80)
            continue;
        return character_length(byte) > back ? back : 0;
    }
    return 0;
}

/* ---- stop texts ------------------------------------------------------------------------------------- */

/* Where the first stop text begins in what is held; its length when there is none. */
static size_t find_stop(const fr_generation *g)
{
    size_t first = g->held.length;
    for (int i = 0; i < g->stop_count; i++) {
        const char *at =
            g->held.length ? memmem(g->held.data, g->held.length, g->stops[i], g->stop_bytes[i]) : NULL;
        if (at && (size_t)(at - g->held.data) < first)
            first = (size_t)(at - g->held.data);
    }
    return first;
}

/* How many bytes at the end of what is held begin a stop text. */
static size_t may_become_stop(const fr_generation *g)
{
    size_t longest = 0;
    for (int i = 0; i < g->stop_count; i++) {
        size_t most = g->stop_bytes[i] - 1 < g->held.length ? g->stop_bytes[i] - 1 : g->held.length;
        for (size_t n = most; n > longest; n--)
            if (memcmp(g->held.data + g->held.length - n, g->stops[i], n) == 0) {
                longest = n;
                break;
            }
    }
    return longest;
}

/* ---- handing out ------------------------------------------------------------------------------------ */

static void hand_out(fr_generation *g, size_t count)
{
    if (count == 0)
        return;
    if (!g->emit(g->context, g->held.data, count))
        g->finish = FR_FINISH_SINK;
    memmove(g->held.data, g->held.data + count, g->held.length - count);
    g->held.length -= count;
}

static void end(fr_generation *g, fr_finish why)
{
    g->finish = why;
    hand_out(g, g->held.length);
}

static fr_status take_text(fr_generation *g, const char *bytes, size_t count, fr_error *error)
{
    fr_buffer_append(&g->held, bytes, count);
    if (g->held.failed)
        return fr_error_memory(error, count, "generated text");
    size_t stop = find_stop(g);
    if (stop < g->held.length) {
        g->held.length = stop;
        end(g, FR_FINISH_STOP);
        return FR_OK;
    }
    size_t ready = g->held.length - may_become_stop(g);
    hand_out(g, ready - fr_utf8_unfinished(g->held.data, ready));
    return FR_OK;
}

/* ---- life ------------------------------------------------------------------------------------------- */

static fr_status check_options(const fr_sample_options *options, fr_error *error)
{
    if (options->tokens < 0 || options->tokens > 100000000)
        return fr_error_set(error, FR_BAD_USAGE, "sampling", NULL, "%lld tokens cannot be sampled",
                            (long long)options->tokens);
    if (!(options->temperature >= 0 && options->temperature <= 1e6) ||
        !(options->top_p >= 0 && options->top_p <= 1) || options->top_k < 0)
        return fr_error_set(error, FR_BAD_USAGE, "sampling",
                            "temperature is 0 to 1000000, top_k at least 0, top_p above 0 and at most 1",
                            "temperature %g, top_k %lld, top_p %g cannot be", options->temperature,
                            (long long)options->top_k, options->top_p);
    if (options->stop_count < 0 || options->stop_count > MOST_STOPS)
        return fr_error_set(error, FR_BAD_USAGE, "sampling", NULL, "%d stop texts; at most %d are taken",
                            options->stop_count, MOST_STOPS);
    for (int i = 0; i < options->stop_count; i++)
        if (!options->stop[i][0] || strlen(options->stop[i]) > LONGEST_STOP)
            return fr_error_set(error, FR_BAD_USAGE, "sampling", NULL,
                                "a stop text has 1 to %d bytes, not %zu", LONGEST_STOP,
                                strlen(options->stop[i]));
    return FR_OK;
}

static fr_status fill(fr_generation *g, const fr_sample_options *options, fr_error *error)
{
    size_t scratch = fr_sample_scratch_bytes(fr_tokenizer_vocab(g->tokenizer));
    g->scratch = fr_allocate(scratch);
    if (!g->scratch)
        return fr_error_memory(error, scratch, "sampling");
    for (int i = 0; i < options->stop_count; i++) {
        size_t bytes = strlen(options->stop[i]);
        g->stops[i] = fr_allocate(bytes + 1);
        if (!g->stops[i])
            return fr_error_memory(error, bytes, "a stop text");
        memcpy(g->stops[i], options->stop[i], bytes);
        g->stop_bytes[i] = bytes;
        g->stop_count++;
    }
    return FR_OK;
}

fr_status fr_generation_create(fr_generation **out, const fr_tokenizer *tokenizer, int32_t last,
                               const fr_sample_options *options, fr_text_sink emit, void *context,
                               fr_error *error)
{
    *out = NULL;
    FR_TRY(check_options(options, error));
    fr_generation *g = fr_allocate(sizeof *g);
    if (!g)
        return fr_error_memory(error, sizeof *g, "sampling");
    g->tokenizer = tokenizer;
    g->last = last;
    g->options = *options;
    g->options.stop = NULL;
    g->emit = emit;
    g->context = context;
    g->rng = (fr_rng){.seed = options->seed, .stream = 0x73616d706c65};
    g->finish = options->tokens ? FR_FINISH_NOT : FR_FINISH_LENGTH;
    fr_buffer_init(&g->held, 0);
    fr_status status = fill(g, options, error);
    if (status == FR_OK)
        *out = g;
    else
        fr_generation_free(g);
    return status;
}

void fr_generation_free(fr_generation *g)
{
    if (!g)
        return;
    for (int i = 0; i < g->stop_count; i++)
        fr_deallocate(g->stops[i]);
    fr_deallocate(g->scratch);
    fr_buffer_release(&g->held);
    fr_deallocate(g);
}

/* ---- one token -------------------------------------------------------------------------------------- */

fr_status fr_generation_next(fr_generation *g, const float *logits, int32_t *token, fr_error *error)
{
    int64_t vocab = fr_tokenizer_vocab(g->tokenizer);
    *token = -1;
    if (g->finish != FR_FINISH_NOT)
        return FR_OK;
    for (int64_t i = 0; i < vocab; i++)
        if (!isfinite(logits[i]))
            return fr_error_set(error, FR_BAD_DATA, "sampling", "the weights are broken, or the run diverged",
                                "logit %lld is %g", (long long)i, (double)logits[i]);
    int32_t id = fr_sample_choose(logits, vocab, &g->options, &g->rng, g->scratch);
    if (g->options.stop_at_bos && id == fr_tokenizer_bos(g->tokenizer)) {
        end(g, FR_FINISH_DOCUMENT);
        return FR_OK;
    }
    g->tokens++;
    size_t bytes = 0;
    const char *text = fr_tokenizer_token_after(g->tokenizer, g->last, id, &bytes);
    g->last = id;
    if (text)
        FR_TRY(take_text(g, text, bytes, error));
    if (g->finish == FR_FINISH_NOT && g->tokens == g->options.tokens)
        end(g, FR_FINISH_LENGTH);
    if (g->finish == FR_FINISH_NOT)
        *token = id;
    return FR_OK;
}

fr_finish fr_generation_finish(const fr_generation *g)
{
    return g ? g->finish : FR_FINISH_NOT;
}

int32_t fr_generation_last(const fr_generation *g)
{
    return g->last;
}

int64_t fr_generation_tokens(const fr_generation *g)
{
    return g->tokens;
}
