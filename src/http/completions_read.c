/* A completion request, read with suspicion.
 *
 * Every key OpenAI's completions have is known here by name, with what this server does about it: taken,
 * accepted when it asks for nothing special, or refused because leaving it out silently would change the
 * text. A key nobody knows is refused too: it is a spelling mistake more often than not. Numbers are
 * checked before they are used.
 */
#include "base/json.h"
#include "http/completions.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void completions_refuse(completions_refusal *refusal, int status, const char *type, const char *code,
                        const char *parameter, const char *format, ...)
{
    va_list arguments;
    if (refusal->status) /* the first one counts */
        return;
    refusal->status = status;
    refusal->type = type;
    refusal->code = code;
    snprintf(refusal->parameter, sizeof refusal->parameter, "%s", parameter ? parameter : "");
    va_start(arguments, format);
    vsnprintf(refusal->message, sizeof refusal->message, format, arguments);
    va_end(arguments);
}

static void refuse(completions_refusal *refusal, const char *parameter, const char *message)
{
    completions_refuse(refusal, 400, "invalid_request_error", NULL, parameter, "%s", message);
}

typedef struct reading {
    completions_wish *wish;
    completions_refusal *refusal;
    const char *model;
    int64_t most_tokens;
    json_int_t best_of; /* 0: not given */
} reading;

/* ---- one key each ------------------------------------------------------------------------------- */

static void read_model(reading *r, const char *key, const json_t *value)
{
    const char *name = json_string_value(value);
    if (!name)
        refuse(r->refusal, key, "model must be a string");
    else if (strcmp(name, r->model) != 0)
        completions_refuse(r->refusal, 404, "invalid_request_error", "model_not_found", key,
                           "the model '%.100s' does not exist; this server has '%.100s'", name, r->model);
}

static bool is_prompt(const json_t *value)
{
    size_t count = json_array_size(value);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(value, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
            return false;
    }
    return json_is_string(value) || count > 0;
}

const json_t *completions_prompt(const completions_wish *wish, int64_t index)
{
    return !wish->prompt || is_prompt(wish->prompt) ? wish->prompt
                                                    : json_array_get(wish->prompt, (size_t)index);
}

static void read_prompt(reading *r, const char *key, const json_t *value)
{
    size_t count = json_array_size(value);
    bool one = is_prompt(value), several = count > 0;
    for (size_t i = 0; i < count && several && !one; i++)
        several = is_prompt(json_array_get(value, i));
    if (!one && !several)
        refuse(r->refusal, key, "prompt must be a string, an array of token ids, or an array of such");
    r->wish->prompt = value;
    r->wish->prompts = one ? 1 : (int64_t)count;
}

static void read_n(reading *r, const char *key, const json_t *value)
{
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < 1 || n > COMPLETIONS_CHOICES)
        completions_refuse(r->refusal, 400, "invalid_request_error", NULL, key,
                           "n must be an integer from 1 to %d", COMPLETIONS_CHOICES);
    else
        r->wish->n = n;
}

static void read_best_of(reading *r, const char *key, const json_t *value)
{
    (void)key;
    r->best_of = json_is_integer(value) ? json_integer_value(value) : -1;
}

static void read_echo(reading *r, const char *key, const json_t *value)
{
    if (!json_is_boolean(value))
        refuse(r->refusal, key, "echo must be true or false");
    r->wish->echo = json_is_true(value);
}

static void read_logprobs(reading *r, const char *key, const json_t *value)
{
    json_int_t count = json_integer_value(value);
    if (json_is_false(value))
        return;
    if (!json_is_integer(value) || count < 0 || count > COMPLETIONS_LIKELIEST)
        completions_refuse(r->refusal, 400, "invalid_request_error", NULL, key,
                           "logprobs must be an integer from 0 to %d", COMPLETIONS_LIKELIEST);
    else
        r->wish->likeliest = count;
}

static void read_tokens(reading *r, const char *key, const json_t *value)
{
    json_int_t tokens = json_integer_value(value);
    if (!json_is_integer(value) || tokens < 0 || tokens > r->most_tokens)
        completions_refuse(r->refusal, 400, "invalid_request_error", NULL, key,
                           "max_tokens must be an integer from 0 to %lld", (long long)r->most_tokens);
    else
        r->wish->sampling.tokens = tokens;
}

static void read_temperature(reading *r, const char *key, const json_t *value)
{
    double temperature = json_number_value(value);
    if (!json_is_number(value) || !(temperature >= 0 && temperature <= 100))
        refuse(r->refusal, key, "temperature must be a number from 0 to 100");
    else
        r->wish->sampling.temperature = temperature;
}

static void read_top_p(reading *r, const char *key, const json_t *value)
{
    double top_p = json_number_value(value);
    if (!json_is_number(value) || !(top_p > 0 && top_p <= 1))
        refuse(r->refusal, key,
               "top_p must be a number above 0 and at most 1; for the likeliest token give "
               "temperature 0");
    else
        r->wish->sampling.top_p = top_p;
}

static void read_top_k(reading *r, const char *key, const json_t *value)
{
    json_int_t top_k = json_integer_value(value);
    if (!json_is_integer(value) || top_k < 0 || top_k > INT32_MAX)
        refuse(r->refusal, key, "top_k must be an integer, 0 or more");
    else
        r->wish->sampling.top_k = top_k;
}

static void read_seed(reading *r, const char *key, const json_t *value)
{
    if (!json_is_integer(value)) {
        refuse(r->refusal, key, "seed must be an integer");
        return;
    }
    r->wish->sampling.seed = (uint64_t)json_integer_value(value);
    r->wish->seeded = true;
}

static void read_stop(reading *r, const char *key, const json_t *value)
{
    size_t count = json_is_string(value) ? 1 : json_array_size(value);
    if ((!json_is_string(value) && !json_is_array(value)) || count > COMPLETIONS_STOPS) {
        refuse(r->refusal, key, "stop must be a string or an array of at most 4 strings");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_is_string(value) ? value : json_array_get(value, i);
        const char *text = json_string_value(item);
        if (!text || !*text || json_string_length(item) > 256 || strlen(text) != json_string_length(item))
            refuse(r->refusal, key, "a stop text has 1 to 256 bytes, none of them NUL");
        else
            r->wish->stops[r->wish->sampling.stop_count++] = text;
    }
}

static void read_stream(reading *r, const char *key, const json_t *value)
{
    if (!json_is_boolean(value))
        refuse(r->refusal, key, "stream must be true or false");
    r->wish->stream = json_is_true(value);
}

static void read_stream_options(reading *r, const char *key, const json_t *value)
{
    if (!json_is_object(value))
        refuse(r->refusal, key, "stream_options must be an object");
    r->wish->usage = json_is_true(json_object_get(value, "include_usage"));
}

/* ---- keys that may ask for nothing special -------------------------------------------------------- */

static void accept_any(reading *r, const char *key, const json_t *value)
{
    (void)r, (void)key, (void)value;
}

static void accept_zero(reading *r, const char *key, const json_t *value)
{
    if (!json_is_number(value) || json_number_value(value) != 0)
        refuse(r->refusal, key, "only 0 is supported");
}

static void accept_empty(reading *r, const char *key, const json_t *value)
{
    if (!(json_is_object(value) && json_object_size(value) == 0) &&
        !(json_is_string(value) && json_string_length(value) == 0))
        refuse(r->refusal, key, "is not supported");
}

static const struct {
    const char *key;
    void (*read)(reading *r, const char *key, const json_t *value);
} keys[] = {
    {"model", read_model},
    {"prompt", read_prompt},
    {"max_tokens", read_tokens},
    {"temperature", read_temperature},
    {"top_p", read_top_p},
    {"top_k", read_top_k},
    {"seed", read_seed},
    {"stop", read_stop},
    {"stream", read_stream},
    {"stream_options", read_stream_options},
    {"user", accept_any},
    {"n", read_n},
    {"best_of", read_best_of},
    {"presence_penalty", accept_zero},
    {"frequency_penalty", accept_zero},
    {"echo", read_echo},
    {"logprobs", read_logprobs},
    {"logit_bias", accept_empty},
    {"suffix", accept_empty},
};

static void read_key(reading *r, const char *key, const json_t *value)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].key, key) == 0) {
            if (!json_is_null(value)) /* as if it were not there */
                keys[i].read(r, key, value);
            return;
        }
    completions_refuse(r->refusal, 400, "invalid_request_error", NULL, "", "unknown parameter '%.60s'", key);
}

void completions_read(const char *body, size_t bytes, const char *model, int64_t most_tokens, json_t **root,
                      completions_wish *wish, completions_refusal *refusal)
{
    fr_error error = {0};
    reading r = {wish, refusal, model, most_tokens, 0};
    const char *key;
    json_t *value;
    *root = NULL;
    *wish = (completions_wish){.prompts = 1, .n = 1, .likeliest = -1};
    wish->sampling = (fr_sample_options){
        .tokens = most_tokens < 16 ? most_tokens : 16, .temperature = 1, .top_p = 1, .stop_at_bos = true};
    if (fr_json_parse(root, body, bytes, "request", &error) != FR_OK || !json_is_object(*root)) {
        completions_refuse(refusal, 400, "invalid_request_error", NULL, "",
                           "the body is not a JSON object: %s", *root ? "it is an array" : error.what);
        return;
    }
    json_object_foreach(*root, key, value) read_key(&r, key, value);
    if (r.best_of && r.best_of != wish->n)
        refuse(refusal, "best_of", "best_of can only be n");
    if (wish->prompts > COMPLETIONS_CHOICES / wish->n)
        completions_refuse(refusal, 400, "invalid_request_error", NULL, wish->prompts > 1 ? "prompt" : "n",
                           "%lld prompts and n %lld are more than %d completions", (long long)wish->prompts,
                           (long long)wish->n, COMPLETIONS_CHOICES);
    wish->sampling.stop = wish->stops;
}
