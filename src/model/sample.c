/* Continuing a prompt, one token at a time.
 *
 * Each step asks for the logits behind the text so far: the prefix is run again, in a plan of rounded length,
 * and when it is longer than the context its last T tokens are. Then one token is chosen: greedily at
 * temperature 0, otherwise from the softmax of logits / temperature over the top_k largest and, of those, the
 * smallest set that holds top_p of the probability. Ties go to the lower id everywhere, so a seed gives one
 * text. Bytes are handed out as soon as they form whole characters.
 */
#include "model/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    float logit;
    int32_t id;
} candidate;

typedef struct sampling {
    fr_logits_source source;
    void *source_context;
    const fr_tokenizer *tokenizer;
    const fr_sample_options *options;
    int64_t context, vocab, length; /* tokens in `ids` so far */
    int32_t *ids;
    float *logits;
    candidate *candidates;
    fr_rng rng;
    char held[8]; /* bytes of a character that is not complete yet */
    size_t held_count;
    bool stopped; /* by the receiver */
    bool (*emit)(void *context, const char *bytes, size_t count);
    void *emit_context;
} sampling;

/* ---- choosing a token -------------------------------------------------------------------------------- */

static int by_logit(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->logit != b->logit)
        return a->logit > b->logit ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int32_t greedy(const float *logits, int64_t vocab)
{
    int64_t best = 0;
    for (int64_t i = 1; i < vocab; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

/* The smallest number of sorted candidates that hold `top_p` of the probability of the first `count`. */
static int64_t cut_mass(const candidate *sorted, int64_t count, double temperature, double top_p)
{
    if (!(top_p > 0 && top_p < 1))
        return count;
    double total = 0, mass = 0;
    for (int64_t i = 0; i < count; i++)
        total += exp((sorted[i].logit - sorted[0].logit) / temperature);
    for (int64_t i = 0; i < count; i++) {
        mass += exp((sorted[i].logit - sorted[0].logit) / temperature);
        if (mass >= top_p * total)
            return i + 1;
    }
    return count;
}

static int32_t draw(const candidate *sorted, int64_t count, double temperature, fr_rng *rng)
{
    double total = 0, mass = 0;
    for (int64_t i = 0; i < count; i++)
        total += exp((sorted[i].logit - sorted[0].logit) / temperature);
    double point = fr_rng_uniform(rng) * total;
    for (int64_t i = 0; i < count; i++) {
        mass += exp((sorted[i].logit - sorted[0].logit) / temperature);
        if (point < mass)
            return sorted[i].id;
    }
    return sorted[count - 1].id;
}

int32_t fr_sample_choose(const float *logits, int64_t vocab, const fr_sample_options *options, fr_rng *rng,
                         void *scratch)
{
    candidate *sorted = scratch;
    if (options->temperature <= 0)
        return greedy(logits, vocab);
    for (int64_t i = 0; i < vocab; i++)
        sorted[i] = (candidate){logits[i], (int32_t)i};
    qsort(sorted, (size_t)vocab, sizeof *sorted, by_logit);
    int64_t count = options->top_k > 0 && options->top_k < vocab ? options->top_k : vocab;
    count = cut_mass(sorted, count, options->temperature, options->top_p);
    return draw(sorted, count, options->temperature, rng);
}

size_t fr_sample_scratch_bytes(int64_t vocab)
{
    return (size_t)vocab * sizeof(candidate);
}

/* ---- handing out bytes -------------------------------------------------------------------------------- */

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

/* Emits what was held and the new bytes, up to the last whole character; holds the rest. */
static fr_status hand_out(sampling *s, const char *bytes, size_t count, bool last, fr_error *error)
{
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_buffer_append(&text, s->held, s->held_count);
    fr_buffer_append(&text, bytes, count);
    if (text.failed) {
        fr_buffer_release(&text);
        return fr_error_memory(error, count, "sampled text");
    }
    size_t whole = text.length - (last ? 0 : fr_utf8_unfinished(text.data, text.length));
    s->held_count = text.length - whole;
    memcpy(s->held, text.data + whole, s->held_count);
    if (whole)
        s->stopped = !s->emit(s->emit_context, text.data, whole);
    fr_buffer_release(&text);
    return FR_OK;
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

static fr_status check_options(const fr_sample_options *options, fr_error *error)
{
    if (options->tokens < 0 || options->tokens > 100000000)
        return fr_error_set(error, FR_BAD_USAGE, "sampling", NULL, "%lld tokens cannot be sampled",
                            (long long)options->tokens);
    if (!(options->temperature >= 0 && options->temperature <= 1e6) ||
        !(options->top_p >= 0 && options->top_p <= 1) || options->top_k < 0)
        return fr_error_set(error, FR_BAD_USAGE, "sampling",
                            "temperature and top_k are at least 0, top_p is between 0 and 1",
                            "temperature %g, top_k %lld, top_p %g cannot be", options->temperature,
                            (long long)options->top_k, options->top_p);
    return FR_OK;
}

static fr_status allocate(sampling *s, size_t prompt_bytes, fr_error *error)
{
    size_t most = prompt_bytes + 3 + (size_t)s->options->tokens;
    size_t scratch = fr_sample_scratch_bytes(s->vocab);
    s->ids = fr_allocate(most * sizeof *s->ids);
    s->logits = fr_allocate((size_t)s->vocab * sizeof *s->logits);
    s->candidates = fr_allocate(scratch);
    if (!s->ids || !s->logits || !s->candidates)
        return fr_error_memory(error, most * sizeof *s->ids + 2 * scratch, "sampling");
    return FR_OK;
}

static fr_status encode_prompt(sampling *s, const char *prompt, fr_error *error)
{
    int32_t bos = fr_tokenizer_bos(s->tokenizer);
    size_t bytes = strlen(prompt);
    if (bos >= 0)
        s->ids[s->length++] = bos;
    int64_t count = fr_tokenizer_encode(s->tokenizer, prompt, bytes, s->ids + s->length, (int64_t)bytes + 1);
    if (count < 0)
        return fr_error_memory(error, bytes, "the prompt's tokens");
    s->length += count;
    if (s->length == 0)
        return fr_error_set(error, FR_BAD_USAGE, "sampling", "give a prompt",
                            "the tokenizer has no start token and the prompt is empty");
    return FR_OK;
}

/* One token. True in *over when the document is. */
static fr_status extend(sampling *s, bool *over, fr_error *error)
{
    int64_t T = s->length < s->context ? s->length : s->context;
    FR_TRY(s->source(s->source_context, T, s->ids + s->length - T, T - 1, s->logits, error));
    for (int64_t i = 0; i < s->vocab; i++)
        if (!isfinite(s->logits[i]))
            return fr_error_set(error, FR_BAD_DATA, "sampling", "the weights are broken, or the run diverged",
                                "logit %lld is %g", (long long)i, (double)s->logits[i]);
    int32_t id = fr_sample_choose(s->logits, s->vocab, s->options, &s->rng, s->candidates);
    if (s->options->stop_at_bos && id == fr_tokenizer_bos(s->tokenizer)) {
        *over = true;
        return FR_OK;
    }
    size_t bytes = 0;
    const char *text = fr_tokenizer_token_after(s->tokenizer, s->ids[s->length - 1], id, &bytes);
    s->ids[s->length++] = id;
    return text ? hand_out(s, text, bytes, false, error) : FR_OK;
}

static fr_status run(sampling *s, const char *prompt, fr_error *error)
{
    FR_TRY(allocate(s, strlen(prompt), error));
    FR_TRY(encode_prompt(s, prompt, error));
    bool over = false;
    for (int64_t i = 0; !over && !s->stopped && i < s->options->tokens; i++)
        FR_TRY(extend(s, &over, error));
    return s->held_count && !s->stopped ? hand_out(s, "", 0, true, error) : FR_OK;
}

fr_status fr_sample_from(fr_logits_source source, void *source_context, int64_t context,
                         const fr_tokenizer *tokenizer, const char *prompt, const fr_sample_options *options,
                         bool (*emit)(void *context, const char *bytes, size_t count), void *emit_context,
                         fr_error *error)
{
    FR_TRY(check_options(options, error));
    sampling s = {.source = source,
                  .source_context = source_context,
                  .tokenizer = tokenizer,
                  .options = options,
                  .context = context,
                  .vocab = fr_tokenizer_vocab(tokenizer),
                  .rng = {.seed = options->seed, .stream = 0x73616d706c65},
                  .emit = emit,
                  .emit_context = emit_context};
    fr_status status = run(&s, prompt, error);
    fr_deallocate(s.ids);
    fr_deallocate(s.logits);
    fr_deallocate(s.candidates);
    return status;
}

static fr_status scorer_logits(void *context, int64_t T, const int32_t *tokens, int64_t first, float *logits,
                               fr_error *error)
{
    return fr_scorer_logits(context, T, tokens, first, logits, error);
}

fr_status fr_sample(fr_scorer *scorer, const char *prompt, const fr_sample_options *options,
                    bool (*emit)(void *context, const char *bytes, size_t count), void *context,
                    fr_error *error)
{
    if (!fr_scorer_tokenizer(scorer))
        return fr_error_set(error, FR_BAD_USAGE, "sampling", "open the run from its folder",
                            "this scorer has no tokenizer");
    return fr_sample_from(scorer_logits, scorer, fr_scorer_recipe(scorer)->model.context,
                          fr_scorer_tokenizer(scorer), prompt, options, emit, context, error);
}
