/* Replies in OpenAI's form, and the numbers of /metrics in Prometheus' text form. */
#include "base/json.h"
#include "http/completions.h"

#include <string.h>

static void print(json_t *value, fr_buffer *out)
{
    fr_json_print(value, 0, out);
    json_decref(value);
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

void completions_write_refusal(const completions_refusal *refusal, fr_buffer *out)
{
    print(json_pack("{s:{s:o,s:s,s:o,s:o}}", "error", "message",
                    fr_json_text(refusal->message, strlen(refusal->message)), "type", refusal->type, "param",
                    text_or_null(refusal->parameter), "code", text_or_null(refusal->code)),
          out);
}

static json_t *choice_json(const completions_piece *p, const completions_choice *choice)
{
    json_t *scores = choice->scores ? completions_scores_json(choice->scores, (int)p->likeliest, p->tokenizer)
                                    : json_null();
    return json_pack("{s:o,s:I,s:o,s:o}", "text", fr_json_text(choice->text, choice->text_bytes), "index",
                     (json_int_t)choice->index, "logprobs", scores, "finish_reason",
                     text_or_null(choice->finish));
}

void completions_write_piece(const completions_piece *p, fr_buffer *out)
{
    char id[32];
    json_t *choices = json_array();
    snprintf(id, sizeof id, "cmpl-%lld", (long long)p->number);
    for (int64_t i = 0; i < p->choice_count; i++)
        json_array_append_new(choices, choice_json(p, &p->choices[i]));
    json_t *piece = json_pack("{s:s,s:s,s:I,s:s,s:o}", "id", id, "object", "text_completion", "created",
                              (json_int_t)p->created, "model", p->model, "choices", choices);
    if (p->with_usage)
        json_object_set_new(piece, "usage",
                            json_pack("{s:I,s:I,s:I}", "prompt_tokens", (json_int_t)p->prompt_tokens,
                                      "completion_tokens", (json_int_t)p->completion_tokens, "total_tokens",
                                      (json_int_t)(p->prompt_tokens + p->completion_tokens)));
    print(piece, out);
}

void completions_write_models(const char *model, int64_t created, bool list, fr_buffer *out)
{
    json_t *one = json_pack("{s:s,s:s,s:I,s:s}", "id", model, "object", "model", "created",
                            (json_int_t)created, "owned_by", "frontier");
    print(list ? json_pack("{s:s,s:[o]}", "object", "list", "data", one) : one, out);
}

/* ---- metrics ------------------------------------------------------------------------------------ */

static const double bucket_ends[METRIC_BUCKETS] = {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120};

void completions_count_request(completions_metrics *m, double seconds)
{
    int i = 0;
    while (i < METRIC_BUCKETS && seconds > bucket_ends[i])
        i++;
    m->buckets[i]++;
    m->requests++;
    m->request_seconds += seconds;
}

static void write_number(fr_buffer *out, const char *name, const char *type, const char *help, double value)
{
    fr_buffer_printf(out, "# HELP frontier_%s %s\n# TYPE frontier_%s %s\nfrontier_%s %.17g\n", name, help,
                     name, type, name, value);
}

static void write_histogram(const completions_metrics *m, fr_buffer *out)
{
    int64_t below = 0;
    fr_buffer_printf(out, "# HELP frontier_completion_seconds time of a completion, waiting included\n"
                          "# TYPE frontier_completion_seconds histogram\n");
    for (int i = 0; i < METRIC_BUCKETS; i++) {
        below += m->buckets[i];
        fr_buffer_printf(out, "frontier_completion_seconds_bucket{le=\"%g\"} %lld\n", bucket_ends[i],
                         (long long)below);
    }
    fr_buffer_printf(
        out,
        "frontier_completion_seconds_bucket{le=\"+Inf\"} %lld\nfrontier_completion_seconds_sum %.6f\n"
        "frontier_completion_seconds_count %lld\n",
        (long long)m->requests, m->request_seconds, (long long)m->requests);
}

void completions_write_metrics(const completions_metrics *m, int64_t active, int64_t waiting,
                               int64_t sequences, fr_buffer *out)
{
    fr_buffer_printf(out, "# HELP frontier_requests_total answers by status\n"
                          "# TYPE frontier_requests_total counter\n");
    for (int status = 0; status < METRIC_STATUSES; status++)
        if (m->answered[status])
            fr_buffer_printf(out, "frontier_requests_total{status=\"%d\"} %lld\n", status,
                             (long long)m->answered[status]);
    write_number(out, "prompt_tokens_total", "counter", "prompt tokens taken in", (double)m->prompt_tokens);
    write_number(out, "completion_tokens_total", "counter", "tokens generated", (double)m->completion_tokens);
    write_number(out, "clients_lost_total", "counter", "clients that went away", (double)m->lost);
    write_number(out, "passes_total", "counter", "passes of the engine", (double)m->passes);
    write_number(out, "pass_seconds_total", "counter", "time in passes of the engine", m->pass_seconds);
    write_number(out, "sequences_active", "gauge", "completions under way", (double)active);
    write_number(out, "sequences", "gauge", "completions that can be under way at once", (double)sequences);
    write_number(out, "requests_waiting", "gauge", "completions that wait for a sequence", (double)waiting);
    write_histogram(m, out);
}
