/* The inside of the completions endpoint, shared by the files that read requests, write replies and run
 * the engine.
 *
 * A job is one completion from the moment its request was read. The HTTP thread makes it, the engine's
 * thread owns it from then on: waiting for a sequence, taking in its prompt, generating, done.
 */
#ifndef FRONTIER_HTTP_COMPLETIONS_H
#define FRONTIER_HTTP_COMPLETIONS_H
#include "base/json.h"
#include "frontier/http.h"

enum { COMPLETIONS_STOPS = 4 };

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
    const char *prompt;
    size_t prompt_bytes;
    bool stream, usage, seeded;
} completions_wish;

typedef struct completions_job {
    fr_http_request *request;
    fr_completions *completions;
    int64_t number, created; /* created: seconds since 1970 */
    double arrived;          /* seconds on the monotonic clock */
    bool stream, usage;
    int32_t *ids; /* prompt */
    int64_t id_count, fed;
    int64_t sequence; /* -1: none yet */
    int32_t token;    /* to be fed next */
    fr_generation *generation;
    fr_buffer text; /* of a reply in one piece */
    bool lost;      /* the client is gone */
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
typedef struct completions_piece {
    const char *model, *text, *finish;
    size_t text_bytes;
    int64_t number, created, prompt_tokens, completion_tokens;
    bool with_usage, without_choices;
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
