/* Fuzz target: the body of a completion request. Whatever comes over the wire, either a wish that sampling can follow
 * comes out, or a refusal with a status and a message that is whole JSON. */
#include "http/completions.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const completions_refusal *refusal)
{
    fr_buffer body;
    json_t *root;
    fr_buffer_init(&body, 0);
    completions_write_refusal(refusal, &body);
    root = json_loadb(body.data, body.length, 0, NULL);
    if (!json_is_string(json_object_get(json_object_get(root, "error"), "message")))
        abort();
    json_decref(root);
    fr_buffer_release(&body);
}

static void check_prompt(const json_t *prompt)
{
    if (!prompt || json_is_string(prompt))
        return;
    if (json_array_size(prompt) == 0)
        abort();
    for (size_t i = 0; i < json_array_size(prompt); i++) {
        json_int_t id = json_integer_value(json_array_get(prompt, i));
        if (!json_is_integer(json_array_get(prompt, i)) || id < 0 || id > INT32_MAX)
            abort();
    }
}

static void check_wish(const completions_wish *wish)
{
    const fr_sample_options *s = &wish->sampling;
    if (s->tokens < 0 || s->tokens > 1000 || !(s->temperature >= 0) || !(s->top_p > 0 && s->top_p <= 1) ||
        s->top_k < 0 || s->stop_count < 0 || s->stop_count > COMPLETIONS_STOPS)
        abort();
    for (int i = 0; i < s->stop_count; i++)
        if (!s->stop[i][0])
            abort();
    if (wish->prompts < 1 || wish->n < 1 || wish->prompts * wish->n > COMPLETIONS_CHOICES || wish->likeliest < -1 ||
        wish->likeliest > COMPLETIONS_LIKELIEST)
        abort();
    for (int64_t i = 0; i < wish->prompts; i++)
        check_prompt(completions_prompt(wish, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *root;
    completions_wish wish;
    completions_refusal refusal = {0};
    completions_read((const char *)data, size, "model", 1000, &root, &wish, &refusal);
    if (refusal.status)
        check_refusal(&refusal);
    else
        check_wish(&wish);
    json_decref(root);
    return 0;
}
