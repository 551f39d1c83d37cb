/* Log-probabilities of tokens, as `logprobs` asks for them: of the token that stands there and of the likeliest
 * ones, by the model's own distribution, before temperature, top_k and top_p. A score keeps ids and numbers; texts
 * are made when a reply is written.
 */
#include "http/completions.h"

#include <math.h>
#include <string.h>

/* ln of the sum of all exp(logit). */
static double log_total(const float *logits, int64_t count)
{
    double largest = -INFINITY, total = 0;
    for (int64_t i = 0; i < count; i++)
        largest = logits[i] > largest ? (double)logits[i] : largest;
    for (int64_t i = 0; i < count; i++)
        total += exp((double)logits[i] - largest);
    return largest + log(total);
}

static void find_likeliest(completions_score *score, const float *logits, int64_t count, double total)
{
    int found = 0;
    for (int64_t i = 0; i < count; i++) {
        int at = found;
        while (at > 0 && logits[i] > logits[score->likeliest[at - 1]])
            at--;
        if (at == COMPLETIONS_LIKELIEST)
            continue;
        found += found < COMPLETIONS_LIKELIEST;
        memmove(score->likeliest + at + 1, score->likeliest + at, (size_t)(found - 1 - at) * sizeof(int32_t));
        score->likeliest[at] = (int32_t)i;
    }
    score->likeliest_count = found;
    for (int i = 0; i < found; i++)
        score->likeliest_logprobs[i] = (double)logits[score->likeliest[i]] - total;
}

static const char *text_of(const fr_tokenizer *tokenizer, int32_t before, int32_t token, size_t *bytes)
{
    const char *text = fr_tokenizer_token_after(tokenizer, before, token, bytes);
    *bytes = text ? *bytes : 0;
    return text ? text : "";
}

bool completions_scores_add(completions_scores *s, const fr_tokenizer *tokenizer, const float *logits,
                            int32_t before, int32_t token)
{
    size_t bytes;
    if (s->count == s->room) {
        int64_t room = s->room ? 2 * s->room : 32;
        completions_score *items = fr_reallocate(s->items, (size_t)room * sizeof *items);
        if (!items)
            return false;
        s->items = items;
        s->room = room;
    }
    completions_score *score = &s->items[s->count++];
    *score = (completions_score){.before = before, .token = token, .offset = s->characters, .logprob = NAN};
    if (logits) {
        double total = log_total(logits, fr_tokenizer_vocab(tokenizer));
        score->logprob = (double)logits[token] - total;
        find_likeliest(score, logits, fr_tokenizer_vocab(tokenizer), total);
    }
    const char *text = text_of(tokenizer, before, token, &bytes);
    for (size_t i = 0; i < bytes; i++)
        s->characters += ((unsigned char)text[i] & 0xC0) != 0x80;
    return true;
}

/* ---- in a reply --------------------------------------------------------------------------------- */

/* A token's text; where that is no UTF-8 by itself, "bytes:" and each byte as \xNN. */
static void append_name(const fr_tokenizer *tokenizer, int32_t before, int32_t token, fr_buffer *out)
{
    size_t bytes;
    const char *text = text_of(tokenizer, before, token, &bytes);
    json_t *whole = json_stringn(text, bytes);
    fr_buffer_clear(out);
    if (!whole)
        fr_buffer_printf(out, "bytes:");
    for (size_t i = 0; i < bytes; i++)
        fr_buffer_printf(out, whole ? "%c" : "\\x%02x", (unsigned char)text[i]);
    fr_buffer_append(out, "", 1);
    json_decref(whole);
}

static json_t *likeliest_json(const completions_score *score, int most, const fr_tokenizer *tokenizer,
                              fr_buffer *name)
{
    if (!score->likeliest_count)
        return json_null();
    json_t *out = json_object();
    for (int i = 0; i < most && i < score->likeliest_count; i++) {
        append_name(tokenizer, score->before, score->likeliest[i], name);
        fr_json_set_real(out, name->data, score->likeliest_logprobs[i]);
    }
    append_name(tokenizer, score->before, score->token, name);
    fr_json_set_real(out, name->data, score->logprob);
    return out;
}

json_t *completions_scores_json(const completions_scores *s, int most, const fr_tokenizer *tokenizer)
{
    json_t *tokens = json_array(), *logprobs = json_array(), *offsets = json_array(), *tops = json_array();
    fr_buffer name;
    fr_buffer_init(&name, 0);
    for (int64_t i = s->told; i < s->count; i++) {
        const completions_score *score = &s->items[i];
        append_name(tokenizer, score->before, score->token, &name);
        if (name.failed)
            break;
        json_array_append_new(tokens, fr_json_text(name.data, name.length - 1));
        json_array_append_new(logprobs, isfinite(score->logprob) ? json_real(score->logprob) : json_null());
        json_array_append_new(offsets, json_integer((json_int_t)score->offset));
        json_array_append_new(tops, likeliest_json(score, most, tokenizer, &name));
    }
    fr_buffer_release(&name);
    if (most == 0) {
        json_decref(tops);
        tops = json_null();
    }
    return json_pack("{s:o,s:o,s:o,s:o}", "tokens", tokens, "token_logprobs", logprobs, "top_logprobs", tops,
                     "text_offset", offsets);
}
