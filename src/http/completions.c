/* Completions: many requests, one engine, one thread that runs it.
 *
 * The HTTP thread reads requests and lines their jobs up; the thread in fr_completions_run does everything else,
 * in rounds: waiting jobs take free sequences, one piece of one prompt goes in, and one pass adds a token
 * to every text that is being written. So a long prompt delays the others by a piece and no more, and
 * texts share passes, which changes none of their bits: a seed gives the text that `frontier sample`
 * gives. Every job ends in `settle`, and the last of a call sends its reply or refusal; time and length are
 * bounded from the start. A call that failed or lost its client takes its other jobs along at the next round.
 */
#include "http/completions.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    MOST_TOKENS = 1024,
    MOST_WAITING = 64,
    MOST_SECONDS = 120,
    PIECE = 256,
    LOOK_MS = 50,
    SCORED_TOKENS = 32768
};

struct fr_completions {
    fr_completions_options options;
    fr_engine *engine;
    fr_http_server *server;
    const fr_tokenizer *tokenizer;
    int64_t vocab, sequences, started; /* started: seconds since 1970 */
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    /* Under the lock. */
    completions_job *first, *last;
    int64_t waiting, active, number;
    bool closing;
    completions_metrics metrics;
    /* The engine's thread alone. */
    completions_job **jobs; /* `sequences` places, the first `running` in use */
    int64_t running, *batch;
    int32_t *tokens;
    float *logits, *piece_logits; /* piece_logits: made when the first prompt is scored */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- replies ------------------------------------------------------------------------------------ */

static void count_status(fr_completions *c, int status)
{
    pthread_mutex_lock(&c->lock);
    c->metrics.answered[status < METRIC_STATUSES ? status : 0]++;
    pthread_mutex_unlock(&c->lock);
}

static void reply(fr_completions *c, fr_http_request *request, int status, const char *type, fr_buffer *body)
{
    count_status(c, status);
    fr_http_answer(request, status, type, body->length ? body->data : "", body->length);
    fr_buffer_release(body);
}

static void reply_refusal(fr_completions *c, fr_http_request *request, const completions_refusal *refusal)
{
    fr_buffer body;
    fr_buffer_init(&body, 0);
    completions_write_refusal(refusal, &body);
    reply(c, request, refusal->status, "application/json", &body);
}

static void refuse_early(void *context, fr_http_request *request, int status, const char *why)
{
    completions_refusal refusal = {0};
    completions_refuse(&refusal, status, status < 500 ? "invalid_request_error" : "server_error", NULL, "",
                       "%s", why);
    reply_refusal(context, request, &refusal);
}

/* ---- calls and jobs ----------------------------------------------------------------------------- */

static void free_call(completions_call *call)
{
    for (int64_t i = 0; i < call->prompt_count; i++)
        fr_deallocate(call->prompts[i].ids);
    for (int64_t i = 0; call->jobs && i < call->choices; i++) {
        fr_generation_free(call->jobs[i].generation);
        fr_buffer_release(&call->jobs[i].text);
        fr_deallocate(call->jobs[i].scores.items);
    }
    fr_deallocate(call->prompts);
    fr_deallocate(call->jobs);
    fr_deallocate(call);
}

static bool is_over(const completions_call *call)
{
    return call->lost || call->refusal.status;
}

static void begin(completions_call *call)
{
    if (call->stream && !call->begun)
        fr_http_begin(call->request, 200, "text/event-stream");
    call->begun = true;
}

/* Sends one event of a stream, and releases it. */
static void send_event(completions_call *call, fr_buffer *event)
{
    fr_buffer_printf(event, "\n\n");
    if (event->failed || !fr_http_write(call->request, event->data, event->length))
        call->lost = true;
    fr_buffer_release(event);
}

static void start_event(fr_buffer *event)
{
    fr_buffer_init(event, 0);
    fr_buffer_printf(event, "data: ");
}

static completions_piece piece_of(const completions_call *call, const completions_choice *choices,
                                  int64_t count)
{
    completions_piece piece = {.model = call->completions->options.model,
                               .tokenizer = call->completions->tokenizer,
                               .number = call->number,
                               .created = call->created,
                               .likeliest = call->likeliest,
                               .choices = choices,
                               .choice_count = count};
    for (int64_t i = 0; i < call->prompt_count; i++)
        piece.prompt_tokens += call->prompts[i].count;
    for (int64_t i = 0; i < call->choices; i++)
        piece.completion_tokens += fr_generation_tokens(call->jobs[i].generation);
    return piece;
}

static completions_choice choice_of(const completions_job *job)
{
    fr_finish finish = fr_generation_finish(job->generation);
    return (completions_choice){.index = job->index,
                                .text = job->text.length ? job->text.data : "",
                                .text_bytes = job->text.length,
                                .finish = finish == FR_FINISH_NOT      ? NULL
                                          : finish == FR_FINISH_LENGTH ? "length"
                                                                       : "stop",
                                .scores = job->call->likeliest >= 0 ? &job->scores : NULL};
}

/* Streams what a job has that was not sent. */
static void tell(completions_job *job)
{
    fr_buffer event;
    completions_choice choice = choice_of(job);
    completions_piece piece = piece_of(job->call, &choice, 1);
    start_event(&event);
    completions_write_piece(&piece, &event);
    send_event(job->call, &event);
    fr_buffer_clear(&job->text);
    job->scores.told = job->scores.count;
}

static bool take_text(void *context, const char *bytes, size_t count)
{
    completions_job *job = context;
    fr_buffer_append(&job->text, bytes, count);
    return !job->text.failed;
}

static void count_call(const completions_call *call)
{
    fr_completions *c = call->completions;
    pthread_mutex_lock(&c->lock);
    for (int64_t i = 0; i < call->choices; i++) {
        c->metrics.prompt_tokens += call->jobs[i].fed;
        c->metrics.completion_tokens += fr_generation_tokens(call->jobs[i].generation);
    }
    c->metrics.lost += call->lost;
    completions_count_request(&c->metrics, now() - call->arrived);
    pthread_mutex_unlock(&c->lock);
}

/* The end of a stream: what it cost, or what went wrong; the status was 200 already. */
static void end_stream(completions_call *call)
{
    fr_buffer event;
    completions_piece piece = piece_of(call, NULL, 0);
    begin(call);
    piece.with_usage = true;
    if (call->refusal.status || call->usage) {
        start_event(&event);
        if (call->refusal.status)
            completions_write_refusal(&call->refusal, &event);
        else
            completions_write_piece(&piece, &event);
        send_event(call, &event);
    }
    if (!call->refusal.status) {
        start_event(&event);
        fr_buffer_printf(&event, "[DONE]");
        send_event(call, &event);
    }
    count_status(call->completions, call->refusal.status ? call->refusal.status : 200);
    fr_http_end(call->request);
}

static void reply_whole(completions_call *call)
{
    fr_completions *c = call->completions;
    completions_refusal no_memory = {0};
    completions_choice *choices = fr_allocate((size_t)call->choices * sizeof *choices);
    completions_refuse(&no_memory, 503, "server_error", NULL, "", "out of memory");
    if (!choices) {
        reply_refusal(c, call->request, &no_memory);
        return;
    }
    for (int64_t i = 0; i < call->choices; i++)
        choices[i] = choice_of(&call->jobs[i]);
    completions_piece piece = piece_of(call, choices, call->choices);
    piece.with_usage = true;
    fr_buffer body;
    fr_buffer_init(&body, 0);
    completions_write_piece(&piece, &body);
    if (body.failed)
        reply_refusal(c, call->request, &no_memory);
    else
        reply(c, call->request, 200, "application/json", &body);
    if (body.failed)
        fr_buffer_release(&body);
    fr_deallocate(choices);
}

/* The end of every job; with the last one the call ends. */
static void settle(completions_job *job)
{
    completions_call *call = job->call;
    if (call->stream && !is_over(call))
        tell(job);
    if (--call->left > 0)
        return;
    if (call->stream)
        end_stream(call);
    else if (call->refusal.status)
        reply_refusal(call->completions, call->request, &call->refusal);
    else
        reply_whole(call);
    count_call(call);
    free_call(call);
}

static void fail(completions_job *job, const completions_refusal *refusal)
{
    if (!job->call->refusal.status)
        job->call->refusal = *refusal;
    settle(job);
}

/* ---- a request becomes a call ------------------------------------------------------------------- */

static void refuse_memory(completions_refusal *refusal)
{
    completions_refuse(refusal, 503, "server_error", NULL, "", "out of memory");
}

static void check_room(const fr_completions *c, int64_t count, int64_t tokens, completions_refusal *refusal)
{
    int64_t most = fr_engine_positions(c->engine);
    if (tokens > 0 && count > most - (tokens - 1))
        completions_refuse(
            refusal, 400, "invalid_request_error", "context_length_exceeded", "max_tokens",
            "the model learned %lld positions; the prompt has %lld tokens and %lld more are asked for",
            (long long)most, (long long)count, (long long)tokens);
    else if (count - 1 > most)
        completions_refuse(refusal, 400, "invalid_request_error", "context_length_exceeded", "prompt",
                           "the model learned %lld positions; the prompt has %lld tokens", (long long)most,
                           (long long)count);
}

static void refuse_by_error(completions_refusal *refusal, fr_status status, const fr_error *error)
{
    bool theirs = status == FR_BAD_USAGE;
    completions_refuse(refusal, theirs ? 400 : 500, theirs ? "invalid_request_error" : "server_error", NULL,
                       "", "%s", error->what);
}

/* Ids as they were given, behind a start token. */
static void take_ids(fr_completions *c, const json_t *list, completions_ids *out,
                     completions_refusal *refusal)
{
    size_t count = json_array_size(list);
    int32_t bos = fr_tokenizer_bos(c->tokenizer), vocab = fr_tokenizer_vocab(c->tokenizer);
    bool front = bos >= 0 && json_integer_value(json_array_get(list, 0)) != bos;
    out->ids = fr_allocate((count + 1) * sizeof *out->ids);
    if (!out->ids) {
        refuse_memory(refusal);
        return;
    }
    if (front)
        out->ids[out->count++] = bos;
    for (size_t i = 0; i < count; i++) {
        json_int_t id = json_integer_value(json_array_get(list, i));
        if (id >= vocab)
            completions_refuse(refusal, 400, "invalid_request_error", NULL, "prompt",
                               "there is no token %lld: the vocabulary has %d", (long long)id, (int)vocab);
        out->ids[out->count++] = (int32_t)id;
    }
}

static void take_prompt(fr_completions *c, const json_t *prompt, completions_ids *out,
                        completions_refusal *refusal)
{
    fr_error error = {0};
    if (json_is_array(prompt)) {
        take_ids(c, prompt, out, refusal);
        return;
    }
    fr_status status = fr_prompt_encode(c->tokenizer, prompt ? json_string_value(prompt) : "",
                                        json_string_length(prompt), &out->ids, &out->count, &error);
    if (status != FR_OK)
        refuse_by_error(refusal, status, &error);
}

/* `echo`: the choice's text begins with the prompt's. */
static void echo_prompt(completions_job *job, const json_t *prompt, completions_refusal *refusal)
{
    const fr_tokenizer *tokenizer = job->call->completions->tokenizer;
    int64_t first = job->ids[0] == fr_tokenizer_bos(tokenizer);
    if (!json_is_array(prompt))
        fr_buffer_append(&job->text, prompt ? json_string_value(prompt) : "", json_string_length(prompt));
    for (int64_t i = first; i < job->id_count && json_is_array(prompt); i++) {
        size_t bytes = 0;
        const char *text = fr_tokenizer_token_after(tokenizer, i ? job->ids[i - 1] : -1, job->ids[i], &bytes);
        if (text)
            fr_buffer_append(&job->text, text, bytes);
    }
    bool kept = !job->text.failed;
    if (kept && !first && job->call->likeliest >= 0)
        kept = completions_scores_add(&job->scores, tokenizer, NULL, -1, job->ids[0]);
    if (!kept)
        refuse_memory(refusal);
}

static void make_job(completions_call *call, int64_t index, const completions_wish *wish,
                     completions_refusal *refusal)
{
    fr_error error = {0};
    completions_job *job = &call->jobs[index];
    const completions_ids *prompt = &call->prompts[index / wish->n];
    fr_sample_options sampling = wish->sampling;
    sampling.seed = wish->seeded ? sampling.seed + (uint64_t)(index % wish->n)
                                 : (uint64_t)(call->arrived * 1e9) + (uint64_t)index;
    *job = (completions_job){
        .call = call, .index = index, .sequence = -1, .ids = prompt->ids, .id_count = prompt->count};
    job->token = job->ids[job->id_count - 1];
    fr_buffer_init(&job->text, 0);
    check_room(call->completions, job->id_count, sampling.tokens, refusal);
    fr_status status = fr_generation_create(&job->generation, call->completions->tokenizer, job->token,
                                            &sampling, take_text, job, &error);
    if (status != FR_OK)
        refuse_by_error(refusal, status, &error);
    else if (call->echo)
        echo_prompt(job, completions_prompt(wish, index / wish->n), refusal);
}

static void fill_call(completions_call *call, const completions_wish *wish, completions_refusal *refusal)
{
    int64_t scored = 0;
    call->prompts = fr_allocate((size_t)wish->prompts * sizeof *call->prompts);
    call->jobs = fr_allocate((size_t)call->choices * sizeof *call->jobs);
    if (!call->prompts || !call->jobs) {
        refuse_memory(refusal);
        return;
    }
    for (; call->prompt_count < wish->prompts && !refusal->status; call->prompt_count++) {
        completions_ids *prompt = &call->prompts[call->prompt_count];
        take_prompt(call->completions, completions_prompt(wish, call->prompt_count), prompt, refusal);
        scored += prompt->count * wish->n;
    }
    if (call->echo && call->likeliest >= 0 && scored > SCORED_TOKENS)
        completions_refuse(refusal, 400, "invalid_request_error", NULL, "logprobs",
                           "%lld tokens of prompts would have to be scored; at most %d are",
                           (long long)scored, SCORED_TOKENS);
    for (int64_t i = 0; i < call->choices && !refusal->status; i++)
        make_job(call, i, wish, refusal);
}

static completions_call *make_call(fr_completions *c, fr_http_request *request, const completions_wish *wish,
                                   completions_refusal *refusal)
{
    completions_call *call = fr_allocate(sizeof *call);
    if (!call) {
        refuse_memory(refusal);
        return NULL;
    }
    *call = (completions_call){
        .request = request, .completions = c, .created = (int64_t)time(NULL), .arrived = now()};
    call->stream = wish->stream;
    call->usage = wish->usage;
    call->echo = wish->echo;
    call->likeliest = wish->likeliest;
    call->choices = call->left = wish->prompts * wish->n;
    fill_call(call, wish, refusal);
    if (!refusal->status)
        return call;
    free_call(call);
    return NULL;
}

/* Lines a call's jobs up; false when there is no room. */
static bool line_up(fr_completions *c, completions_call *call, completions_refusal *refusal)
{
    pthread_mutex_lock(&c->lock);
    if (c->closing)
        completions_refuse(refusal, 503, "server_error", NULL, "", "the server is ending");
    else if (c->waiting >= c->options.most_waiting)
        completions_refuse(refusal, 429, "rate_limit_error", NULL, "",
                           "%lld completions are waiting; try again later", (long long)c->waiting);
    if (!refusal->status) {
        call->number = ++c->number;
        for (int64_t i = 0; i < call->choices; i++) {
            completions_job *job = &call->jobs[i];
            if (c->last)
                c->last->next = job;
            else
                c->first = job;
            c->last = job;
        }
        c->waiting += call->choices;
        pthread_cond_signal(&c->arrived);
    }
    pthread_mutex_unlock(&c->lock);
    return !refusal->status;
}

/* "application/json" in any case, alone or with parameters behind it. */
static bool is_json(const char *type)
{
    static const char name[] = "application/json";
    size_t length = sizeof name - 1;
    return type && strncasecmp(type, name, length) == 0 && strchr("; \t", type[length]) != NULL;
}

static void handle_completion(fr_completions *c, fr_http_request *request)
{
    size_t bytes;
    json_t *root = NULL;
    completions_wish wish;
    completions_refusal refusal = {0};
    const char *type = fr_http_header(request, "Content-Type"), *body = fr_http_body(request, &bytes);
    completions_call *call = NULL;
    if (!is_json(type))
        completions_refuse(&refusal, 415, "invalid_request_error", NULL, "", "send application/json");
    else
        completions_read(body, bytes, c->options.model, c->options.most_tokens, &root, &wish, &refusal);
    if (!refusal.status)
        call = make_call(c, request, &wish, &refusal);
    json_decref(root);
    if (call && !line_up(c, call, &refusal))
        free_call(call);
    if (refusal.status)
        reply_refusal(c, request, &refusal);
}

/* ---- the other paths ------------------------------------------------------------------------------ */

static void handle_models(fr_completions *c, fr_http_request *request)
{
    fr_buffer body;
    fr_buffer_init(&body, 0);
    completions_write_models(c->options.model, c->started, true, &body);
    reply(c, request, 200, "application/json", &body);
}

static void handle_health(fr_completions *c, fr_http_request *request)
{
    fr_buffer body;
    fr_buffer_init(&body, 0);
    fr_buffer_printf(&body, "{\"status\":\"ok\"}");
    reply(c, request, 200, "application/json", &body);
}

static void handle_metrics(fr_completions *c, fr_http_request *request)
{
    fr_buffer body;
    fr_buffer_init(&body, 0);
    pthread_mutex_lock(&c->lock);
    completions_write_metrics(&c->metrics, c->active, c->waiting, c->sequences, &body);
    pthread_mutex_unlock(&c->lock);
    reply(c, request, 200, "text/plain; version=0.0.4", &body);
}

static const struct {
    const char *path, *method;
    void (*handle)(fr_completions *c, fr_http_request *request);
} paths[] = {
    {"/v1/completions", "POST", handle_completion},
    {"/v1/models", "GET", handle_models},
    {"/healthz", "GET", handle_health},
    {"/metrics", "GET", handle_metrics},
};

static void handle_one_model(fr_completions *c, fr_http_request *request, const char *name)
{
    completions_refusal refusal = {0};
    fr_buffer body;
    if (strcmp(name, c->options.model) != 0) {
        completions_refuse(&refusal, 404, "invalid_request_error", "model_not_found", "model",
                           "the model '%.100s' does not exist", name);
        reply_refusal(c, request, &refusal);
        return;
    }
    fr_buffer_init(&body, 0);
    completions_write_models(c->options.model, c->started, false, &body);
    reply(c, request, 200, "application/json", &body);
}

static void handle(void *context, fr_http_request *request)
{
    fr_completions *c = context;
    const char *path = fr_http_path(request), *method = fr_http_method(request);
    completions_refusal refusal = {0};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (strcmp(paths[i].path, path) != 0)
            continue;
        if (strcmp(paths[i].method, method) == 0) {
            paths[i].handle(c, request);
            return;
        }
        completions_refuse(&refusal, 405, "invalid_request_error", NULL, "", "%s takes %s", path,
                           paths[i].method);
    }
    if (!refusal.status && strncmp(path, "/v1/models/", 11) == 0 && strcmp(method, "GET") == 0) {
        handle_one_model(c, request, path + 11);
        return;
    }
    completions_refuse(&refusal, 404, "invalid_request_error", NULL, "", "there is nothing at %.100s", path);
    reply_refusal(c, request, &refusal);
}

/* ---- rounds of the engine ------------------------------------------------------------------------- */

static void leave(fr_completions *c, int64_t place)
{
    fr_engine_remove(c->engine, c->jobs[place]->sequence);
    c->jobs[place] = c->jobs[--c->running];
    pthread_mutex_lock(&c->lock);
    c->active = c->running;
    pthread_mutex_unlock(&c->lock);
}

static completions_job *next_waiting(fr_completions *c)
{
    pthread_mutex_lock(&c->lock);
    completions_job *job = c->running < c->sequences ? c->first : NULL;
    if (job) {
        c->first = job->next;
        c->last = c->first ? c->last : NULL;
        c->waiting--;
        c->active = c->running + 1;
    }
    pthread_mutex_unlock(&c->lock);
    return job;
}

static bool takes_prompt(const completions_job *job)
{
    return job->fed < job->id_count - 1;
}

/* Whether the prompt's own tokens are scored: then all of it goes in, even if nothing is generated. */
static bool scores_prompt(const completions_job *job)
{
    return job->call->echo && job->call->likeliest >= 0;
}

static bool is_done(const completions_job *job)
{
    return fr_generation_finish(job->generation) != FR_FINISH_NOT &&
           !(scores_prompt(job) && takes_prompt(job));
}

/* Waiting jobs take free sequences. */
static void admit(fr_completions *c)
{
    completions_job *job;
    fr_error error = {0};
    while ((job = next_waiting(c))) {
        begin(job->call);
        c->jobs[c->running++] = job;
        if (is_over(job->call) || is_done(job)) {
            leave(c, c->running - 1);
            settle(job);
        } else if (fr_engine_add(c->engine, &job->sequence, &error) != FR_OK) {
            completions_refusal refusal = {0};
            refuse_by_error(&refusal, FR_BUG, &error);
            leave(c, c->running - 1);
            fail(job, &refusal);
        }
    }
}

static bool late(const fr_completions *c, const completions_call *call, completions_refusal *refusal)
{
    *refusal = (completions_refusal){0};
    if (is_over(call))
        return true;
    if (now() - call->arrived < c->options.most_seconds)
        return false;
    completions_refuse(refusal, 504, "timeout", "timeout", "", "the request took longer than %g seconds",
                       c->options.most_seconds);
    return true;
}

/* Takes jobs that waited too long, or for a call that is over, out of the line. */
static completions_job *late_waiting(fr_completions *c, completions_refusal *refusal)
{
    completions_job *found = NULL;
    pthread_mutex_lock(&c->lock);
    if (c->first &&
        late(c, c->first->call, refusal)) { /* the first has waited longest; a call's jobs stand together */
        found = c->first;
        c->first = found->next;
        c->last = c->first ? c->last : NULL;
        c->waiting--;
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

static void end_late(fr_completions *c)
{
    completions_refusal refusal;
    completions_job *job;
    for (int64_t i = c->running - 1; i >= 0; i--)
        if (late(c, c->jobs[i]->call, &refusal)) {
            job = c->jobs[i];
            leave(c, i);
            fail(job, &refusal);
        }
    while ((job = late_waiting(c, &refusal)))
        fail(job, &refusal);
}

static void fail_by_error(fr_completions *c, int64_t place, fr_status status, const fr_error *error)
{
    completions_refusal refusal = {0};
    completions_job *job = c->jobs[place];
    refuse_by_error(&refusal, status, error);
    leave(c, place);
    fail(job, &refusal);
}

static void fail_by_memory(fr_completions *c, int64_t place)
{
    fr_error error = {0};
    fail_by_error(c, place, fr_error_memory(&error, sizeof(completions_score), "scores"), &error);
}

/* Scores of the prompt's tokens behind each of `count` that went in. */
static bool score_piece(fr_completions *c, completions_job *job, int64_t count)
{
    const int32_t *ids = job->ids + job->fed;
    for (int64_t i = 0; i < count; i++)
        if (!completions_scores_add(&job->scores, c->tokenizer, c->piece_logits + i * c->vocab, ids[i],
                                    ids[i + 1]))
            return false;
    return true;
}

/* One piece of the prompt of the job that is served first. */
static void feed_one(fr_completions *c)
{
    fr_error error = {0};
    int64_t place = 0;
    while (place < c->running && !takes_prompt(c->jobs[place]))
        place++;
    if (place == c->running)
        return;
    completions_job *job = c->jobs[place];
    int64_t left = job->id_count - 1 - job->fed, count = left < PIECE ? left : PIECE;
    bool scored = scores_prompt(job), kept = true;
    if (scored && !c->piece_logits)
        c->piece_logits = fr_allocate(PIECE * (size_t)c->vocab * sizeof *c->piece_logits);
    fr_status status =
        scored && !c->piece_logits
            ? fr_error_memory(&error, PIECE * (size_t)c->vocab * sizeof *c->piece_logits, "logits")
            : fr_engine_feed(c->engine, job->sequence, count, job->ids + job->fed,
                             scored ? c->piece_logits : NULL, &error);
    if (status == FR_OK && scored)
        kept = score_piece(c, job, count);
    job->fed += count;
    if (status != FR_OK) {
        fail_by_error(c, place, status, &error);
    } else if (!kept) {
        fail_by_memory(c, place);
    } else if (is_done(job)) {
        leave(c, place);
        settle(job);
    }
}

/* The next token of the job at `place`, which may be its last. */
static void take_logits(fr_completions *c, int64_t place, const float *logits)
{
    fr_error error = {0};
    completions_job *job = c->jobs[place];
    int32_t before = fr_generation_last(job->generation);
    int64_t chosen = fr_generation_tokens(job->generation);
    fr_status status = fr_generation_next(job->generation, logits, &job->token, &error);
    bool kept = !job->text.failed;
    job->fed = job->id_count;
    if (status == FR_OK && kept && job->call->likeliest >= 0 &&
        fr_generation_tokens(job->generation) > chosen)
        kept = completions_scores_add(&job->scores, c->tokenizer, logits, before,
                                      fr_generation_last(job->generation));
    if (status != FR_OK) {
        fail_by_error(c, place, status, &error);
    } else if (!kept) {
        fail_by_memory(c, place);
    } else if (fr_generation_finish(job->generation) != FR_FINISH_NOT) {
        leave(c, place);
        settle(job);
    } else if (job->call->stream && job->text.length && !is_over(job->call)) {
        tell(job);
    }
}

static void step_all(fr_completions *c)
{
    fr_error error = {0};
    int64_t count = 0, places[1024];
    for (int64_t i = 0; i < c->running; i++)
        if (!takes_prompt(c->jobs[i])) {
            places[count] = i;
            c->batch[count] = c->jobs[i]->sequence;
            c->tokens[count++] = c->jobs[i]->token;
        }
    if (!count)
        return;
    fr_status status = fr_engine_step(c->engine, count, c->batch, c->tokens, c->logits, &error);
    for (int64_t k = count - 1; k >= 0;
         k--) { /* from the end: a job that leaves is replaced by the last one */
        if (status != FR_OK)
            fail_by_error(c, places[k], status, &error);
        else
            take_logits(c, places[k], c->logits + k * c->vocab);
    }
}

static void pass(fr_completions *c)
{
    double start = now();
    feed_one(c);
    step_all(c);
    pthread_mutex_lock(&c->lock);
    c->metrics.passes++;
    c->metrics.pass_seconds += now() - start;
    pthread_mutex_unlock(&c->lock);
}

static void wait_for_work(fr_completions *c)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&c->lock);
    if (!c->first)
        pthread_cond_timedwait(&c->arrived, &c->lock, &until);
    pthread_mutex_unlock(&c->lock);
}

/* Whoever is still here gets an error. */
static void end_all(fr_completions *c)
{
    completions_refusal refusal = {0};
    completions_refuse(&refusal, 503, "server_error", NULL, "", "the server is ending");
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    completions_job *job = c->first;
    c->first = c->last = NULL;
    c->waiting = 0;
    pthread_mutex_unlock(&c->lock);
    while (c->running) {
        completions_job *running = c->jobs[0];
        leave(c, 0);
        fail(running, &refusal);
    }
    while (job) {
        completions_job *following = job->next;
        fail(job, &refusal);
        job = following;
    }
}

fr_status fr_completions_run(fr_completions *c, bool (*stop)(void *context), void *context, fr_error *error)
{
    (void)error;
    while (!stop(context)) {
        admit(c);
        end_late(c);
        if (c->running)
            pass(c);
        else
            wait_for_work(c);
    }
    fr_http_server_quiesce(c->server);
    end_all(c);
    return FR_OK;
}

/* ---- life ----------------------------------------------------------------------------------------- */

static fr_status set_up(fr_completions *c, fr_error *error)
{
    fr_completions_options *o = &c->options;
    size_t places = (size_t)c->sequences;
    o->most_tokens = o->most_tokens > 0 ? o->most_tokens : MOST_TOKENS;
    o->most_waiting = o->most_waiting > 0 ? o->most_waiting : MOST_WAITING;
    o->most_seconds = o->most_seconds > 0 ? o->most_seconds : MOST_SECONDS;
    o->http.handle = handle;
    o->http.refuse = refuse_early;
    o->http.context = c;
    c->jobs = fr_allocate(places * sizeof *c->jobs);
    c->batch = fr_allocate(places * sizeof *c->batch);
    c->tokens = fr_allocate(places * sizeof *c->tokens);
    c->logits = fr_allocate(places * (size_t)c->vocab * sizeof *c->logits);
    if (!c->jobs || !c->batch || !c->tokens || !c->logits)
        return fr_error_memory(error, places * (size_t)c->vocab * sizeof *c->logits,
                               "the completions server");
    return fr_http_server_create(&c->server, &o->http, error);
}

fr_status fr_completions_create(fr_completions **out, fr_engine *engine,
                                const fr_completions_options *options, fr_error *error)
{
    const fr_scorer *scorer = fr_engine_scorer(engine);
    *out = NULL;
    fr_completions *c = fr_allocate(sizeof *c);
    if (!c)
        return fr_error_memory(error, sizeof *c, "the completions server");
    c->options = *options;
    c->engine = engine;
    c->tokenizer = fr_scorer_tokenizer(scorer);
    c->vocab = fr_scorer_vocab(scorer);
    c->sequences = fr_engine_sequences(engine);
    c->started = (int64_t)time(NULL);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->arrived, NULL);
    fr_status status = set_up(c, error);
    if (status == FR_OK)
        *out = c;
    else
        fr_completions_free(c);
    return status;
}

int fr_completions_port(const fr_completions *c)
{
    return fr_http_server_port(c->server);
}

void fr_completions_free(fr_completions *c)
{
    if (!c)
        return;
    end_all(c);
    fr_http_server_free(c->server);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->arrived);
    fr_deallocate(c->jobs);
    fr_deallocate(c->batch);
    fr_deallocate(c->tokens);
    fr_deallocate(c->logits);
    fr_deallocate(c->piece_logits);
    fr_deallocate(c);
}
