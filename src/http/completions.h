/* The inside of the completions endpoint, shared by the files that read requests, write replies and run
 * the engine.
 *
 * A call is one request from the moment it was read; each completion it asks for, a choice in OpenAI's words, is
 * a job. The HTTP thread makes them, the engine's thread owns them from then on: a job waits for a sequence, takes
 * in its prompt, generates, is done; the last one done answers the call.
 */
#ifndef FRONTIER_HTTP_COMPLETIONS_H
#define FRONTIER_HTTP_COMPLETIONS_H
#include "base/json.h"
#include "frontier/http.h"

enum { COMPLETIONS_STOPS = 4, COMPLETIONS_CHOICES = 128, COMPLETIONS_LIKELIEST = 5 };

/* What is wrong with a request, in OpenAI's terms; status 0: nothing. */
typedef struct completions_refusal {
    int status;
    const char *type, *code; /* code may be NULL */
    char parameter[64];      /* "" : none in particular */
    char message[400];
} completions_refusal;

typedef struct completions_wish {
    fr_sample_options sampling; /* `stop` points into `stops` */
    const char *stops[COMPLETIONS_STOPS];
    const json_t *prompt; /* one, or an array of `prompts`; NULL: the empty text */
    int64_t prompts, n;   /* n: completions of each */
    int64_t likeliest;    /* `logprobs`: tokens beside the one that stands there; -1: none asked for */
    bool stream, usage, seeded, echo;
} completions_wish;
/* A text or an array of token ids; NULL: the empty text. */
const json_t *completions_prompt(const completions_wish *wish, int64_t index);

/* ---- scores: `logprobs` ---- */

typedef struct completions_score {
    int32_t before, token;
    int64_t offset; /* in characters of the choice's text */
    double logprob; /* NaN: nothing stands before it */
    int likeliest_count;
    int32_t likeliest[COMPLETIONS_LIKELIEST];
    double likeliest_logprobs[COMPLETIONS_LIKELIEST];
} completions_score;
typedef struct completions_scores {
    completions_score *items;
    int64_t count, room;
    int64_t told; /* sent already, in a stream */
    int64_t characters;
} completions_scores;
/* Adds `token` behind `before`, by the logits there (NULL: none). False: no memory. */
bool completions_scores_add(completions_scores *scores, const fr_tokenizer *tokenizer, const float *logits,
                            int32_t before, int32_t token);
/* OpenAI's object for what is not told yet, with the `most` likeliest tokens. */
json_t *completions_scores_json(const completions_scores *scores, int most, const fr_tokenizer *tokenizer);

/* ---- calls ---- */

typedef struct completions_ids {
    int32_t *ids; /* a start token in front where the tokenizer has one */
    int64_t count;
} completions_ids;

typedef struct completions_call {
    fr_http_request *request;
    fr_completions *completions;
    int64_t number, created; /* created: seconds since 1970 */
    double arrived;          /* seconds on the monotonic clock */
    bool stream, usage, echo;
    bool begun, lost; /* the stream has begun; the client is gone */
    int64_t likeliest;
    completions_refusal refusal; /* status 0: none; else the call fails when its last job is done */
    completions_ids *prompts;
    struct completions_job *jobs;
    int64_t prompt_count, choices, left; /* left: jobs that are not done */
} completions_call;

typedef struct completions_job {
    completions_call *call;
    int64_t index;      /* of the choice */
    const int32_t *ids; /* prompt; the call's */
    int64_t id_count, fed;
    int64_t sequence; /* -1: none yet */
    int32_t token;    /* to be fed next */
    fr_generation *generation;
    fr_buffer text; /* not sent yet */
    completions_scores scores;
    struct completions_job *next;
} completions_job;

/* ---- requests and replies ---- */

/* Reads and checks a request's body. The wish's strings live in *root, which the caller releases
 * (json_decref), also after a refusal. */
void completions_read(const char *body, size_t bytes, const char *model, int64_t most_tokens, json_t **root,
                      completions_wish *wish, completions_refusal *refusal);
void completions_refuse(completions_refusal *refusal, int status, const char *type, const char *code,
                        const char *parameter, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Bodies, appended to `out`: a refusal; a completion or a piece of one (finish NULL: more comes); the
 * models. */
void completions_write_refusal(const completions_refusal *refusal, fr_buffer *out);
typedef struct completions_choice {
    int64_t index;
    const char *text, *finish;
    size_t text_bytes;
    const completions_scores *scores; /* NULL: not asked for */
} completions_choice;
typedef struct completions_piece {
    const char *model;
    const fr_tokenizer *tokenizer;
    int64_t number, created, prompt_tokens, completion_tokens, likeliest;
    const completions_choice *choices;
    int64_t choice_count;
    bool with_usage;
} completions_piece;
void completions_write_piece(const completions_piece *piece, fr_buffer *out);
void completions_write_models(const char *model, int64_t created, bool list, fr_buffer *out);

/* ---- numbers for /metrics ---- */

enum { METRIC_STATUSES = 600, METRIC_BUCKETS = 10 };
typedef struct completions_metrics {
    int64_t answered[METRIC_STATUSES]; /* by status */
    int64_t prompt_tokens, completion_tokens, passes, lost;
    double pass_seconds, request_seconds;
    int64_t buckets[METRIC_BUCKETS + 1], requests; /* completions, by how long they took */
} completions_metrics;
void completions_count_request(completions_metrics *metrics, double seconds);
void completions_write_metrics(const completions_metrics *metrics, int64_t active, int64_t waiting,
                               int64_t sequences, fr_buffer *out);

#endif
