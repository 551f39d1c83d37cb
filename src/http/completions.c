/* Completions: many requests, one engine, one thread that runs it.
 *
 * The HTTP thread reads requests and lines them up; the thread in fr_completions_run does everything else,
 * in rounds: waiting jobs take free sequences, one piece of one prompt goes in, and one pass adds a token
 * to every text that is being written. So a long prompt delays the others by a piece and no more, and
 * texts share passes, which changes none of their bits: a seed gives the text that `frontier sample`
 * gives. Every job ends in one place, with a reply or a refusal; time and length are bounded from the
 * start.
 */
#include "http/completions.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { MOST_TOKENS = 1024, MOST_WAITING = 64, MOST_SECONDS = 120, PIECE = 256, LOOK_MS = 50 };

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
    float *logits;
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

/* ---- jobs --------------------------------------------------------------------------------------- */

static void free_job(completions_job *job)
{
    fr_generation_free(job->generation);
    fr_deallocate(job->ids);
    fr_buffer_release(&job->text);
    fr_deallocate(job);
}

/* One event of a stream; `piece` NULL: its end. False when the client is gone. */
static bool send_event(completions_job *job, const completions_piece *piece)
{
    fr_buffer event;
    fr_buffer_init(&event, 0);
    fr_buffer_printf(&event, "data: ");
    if (piece)
        completions_write_piece(piece, &event);
    else
        fr_buffer_printf(&event, "[DONE]");
    fr_buffer_printf(&event, "\n\n");
    bool reached = !event.failed && fr_http_write(job->request, event.data, event.length);
    fr_buffer_release(&event);
    return reached;
}

static completions_piece piece_of(const completions_job *job, const char *text, size_t bytes,
                                  const char *finish)
{
    return (completions_piece){.model = job->completions->options.model,
                               .text = text,
                               .text_bytes = bytes,
                               .finish = finish,
                               .number = job->number,
                               .created = job->created,
                               .prompt_tokens = job->id_count,
                               .completion_tokens = fr_generation_tokens(job->generation)};
}

static bool take_text(void *context, const char *bytes, size_t count)
{
    completions_job *job = context;
    if (!job->stream) {
        fr_buffer_append(&job->text, bytes, count);
        return true;
    }
    completions_piece piece = piece_of(job, bytes, count, NULL);
    job->lost = !send_event(job, &piece);
    return !job->lost;
}

static void count_job(const completions_job *job)
{
    fr_completions *c = job->completions;
    pthread_mutex_lock(&c->lock);
    c->metrics.prompt_tokens += job->fed;
    c->metrics.completion_tokens += fr_generation_tokens(job->generation);
    c->metrics.lost += job->lost;
    completions_count_request(&c->metrics, now() - job->arrived);
    pthread_mutex_unlock(&c->lock);
}

/* The end of a job that has its text. */
static void complete(completions_job *job)
{
    fr_completions *c = job->completions;
    const char *finish = fr_generation_finish(job->generation) == FR_FINISH_LENGTH ? "length" : "stop";
    count_job(job);
    if (!job->stream) {
        completions_piece piece =
            piece_of(job, job->text.length ? job->text.data : "", job->text.length, finish);
        fr_buffer body;
        fr_buffer_init(&body, 0);
        piece.with_usage = true;
        completions_write_piece(&piece, &body);
        reply(c, job->request, 200, "application/json", &body);
    } else {
        completions_piece piece = piece_of(job, "", 0, finish);
        send_event(job, &piece);
        piece.with_usage = piece.without_choices = true;
        if (job->usage)
            send_event(job, &piece);
        send_event(job, NULL);
        count_status(c, 200);
        fr_http_end(job->request);
    }
    free_job(job);
}

/* The end of a job that has none, or not all of it. */
static void fail(completions_job *job, const completions_refusal *refusal)
{
    fr_completions *c = job->completions;
    if (job->stream) { /* begun with status 200: the error is an event */
        fr_buffer event;
        fr_buffer_init(&event, 0);
        fr_buffer_printf(&event, "data: ");
        completions_write_refusal(refusal, &event);
        fr_buffer_printf(&event, "\n\n");
        fr_http_write(job->request, event.length ? event.data : "", event.length);
        fr_buffer_release(&event);
        count_status(c, refusal->status);
        fr_http_end(job->request);
    } else {
        reply_refusal(c, job->request, refusal);
    }
    count_job(job);
    free_job(job);
}

/* ---- a request becomes a job ---------------------------------------------------------------------- */

static void check_room(const fr_completions *c, const completions_job *job, int64_t tokens,
                       completions_refusal *refusal)
{
    int64_t most = fr_engine_positions(c->engine);
    if (tokens > 0 && job->id_count > most - (tokens - 1))
        completions_refuse(
            refusal, 400, "invalid_request_error", "context_length_exceeded", "max_tokens",
            "the model learned %lld positions; the prompt has %lld tokens and %lld more are asked for",
            (long long)most, (long long)job->id_count, (long long)tokens);
}

static void refuse_by_error(completions_refusal *refusal, fr_status status, const fr_error *error)
{
    bool theirs = status == FR_BAD_USAGE;
    completions_refuse(refusal, theirs ? 400 : 500, theirs ? "invalid_request_error" : "server_error", NULL,
                       "", "%s", error->what);
}

static completions_job *make_job(fr_completions *c, fr_http_request *request, const completions_wish *wish,
                                 completions_refusal *refusal)
{
    fr_error error = {0};
    fr_sample_options sampling = wish->sampling;
    completions_job *job = fr_allocate(sizeof *job);
    if (!job) {
        completions_refuse(refusal, 503, "server_error", NULL, "", "out of memory");
        return NULL;
    }
    *job = (completions_job){
        .request = request, .completions = c, .created = (int64_t)time(NULL), .arrived = now()};
    job->sequence = -1;
    job->stream = wish->stream;
    job->usage = wish->usage;
    fr_buffer_init(&job->text, 0);
    if (!wish->seeded)
        sampling.seed = (uint64_t)(job->arrived * 1e9);
    fr_status status =
        fr_prompt_encode(c->tokenizer, wish->prompt, wish->prompt_bytes, &job->ids, &job->id_count, &error);
    if (status == FR_OK)
        status = fr_generation_create(&job->generation, c->tokenizer, job->ids[job->id_count - 1], &sampling,
                                      take_text, job, &error);
    if (status == FR_OK) {
        job->token = job->ids[job->id_count - 1];
        check_room(c, job, sampling.tokens, refusal);
    } else {
        refuse_by_error(refusal, status, &error);
    }
    if (!refusal->status)
        return job;
    free_job(job);
    return NULL;
}

/* Lines the job up; false when there is no room. */
static bool line_up(fr_completions *c, completions_job *job, completions_refusal *refusal)
{
    pthread_mutex_lock(&c->lock);
    if (c->closing)
        completions_refuse(refusal, 503, "server_error", NULL, "", "the server is ending");
    else if (c->waiting >= c->options.most_waiting)
        completions_refuse(refusal, 429, "rate_limit_error", NULL, "",
                           "%lld requests are waiting; try again later", (long long)c->waiting);
    if (!refusal->status) {
        job->number = ++c->number;
        if (c->last)
            c->last->next = job;
        else
            c->first = job;
        c->last = job;
        c->waiting++;
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
    completions_job *job = NULL;
    if (!is_json(type))
        completions_refuse(&refusal, 415, "invalid_request_error", NULL, "", "send application/json");
    else
        completions_read(body, bytes, c->options.model, c->options.most_tokens, &root, &wish, &refusal);
    if (!refusal.status)
        job = make_job(c, request, &wish, &refusal);
    json_decref(root);
    if (job && !line_up(c, job, &refusal))
        free_job(job);
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

/* Waiting jobs take free sequences. */
static void admit(fr_completions *c)
{
    completions_job *job;
    fr_error error = {0};
    while ((job = next_waiting(c))) {
        if (job->stream)
            fr_http_begin(job->request, 200, "text/event-stream");
        c->jobs[c->running++] = job;
        if (fr_generation_finish(job->generation) != FR_FINISH_NOT) { /* no tokens were asked for */
            leave(c, c->running - 1);
            complete(job);
        } else if (fr_engine_add(c->engine, &job->sequence, &error) != FR_OK) {
            completions_refusal refusal = {0};
            refuse_by_error(&refusal, FR_BUG, &error);
            leave(c, c->running - 1);
            fail(job, &refusal);
        }
    }
}

static bool late(const fr_completions *c, const completions_job *job, completions_refusal *refusal)
{
    *refusal = (completions_refusal){0};
    if (now() - job->arrived < c->options.most_seconds)
        return false;
    completions_refuse(refusal, 504, "timeout", "timeout", "", "the request took longer than %g seconds",
                       c->options.most_seconds);
    return true;
}

/* Takes jobs that waited too long out of the line. */
static completions_job *late_waiting(fr_completions *c, completions_refusal *refusal)
{
    completions_job *found = NULL;
    pthread_mutex_lock(&c->lock);
    if (c->first && late(c, c->first, refusal)) { /* the first has waited longest */
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
        if (late(c, c->jobs[i], &refusal)) {
            job = c->jobs[i];
            leave(c, i);
            fail(job, &refusal);
        }
    while ((job = late_waiting(c, &refusal))) {
        if (job->stream)
            fr_http_begin(job->request, 200, "text/event-stream");
        fail(job, &refusal);
    }
}

static void fail_by_error(fr_completions *c, int64_t place, fr_status status, const fr_error *error)
{
    completions_refusal refusal = {0};
    completions_job *job = c->jobs[place];
    refuse_by_error(&refusal, status, error);
    leave(c, place);
    fail(job, &refusal);
}

static bool takes_prompt(const completions_job *job)
{
    return job->fed < job->id_count - 1;
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
    fr_status status = fr_engine_feed(c->engine, job->sequence, count, job->ids + job->fed, NULL, &error);
    job->fed += count;
    if (status != FR_OK)
        fail_by_error(c, place, status, &error);
}

/* The next token of the job at `place`, which may be its last. */
static void take_logits(fr_completions *c, int64_t place, const float *logits)
{
    fr_error error = {0};
    completions_job *job = c->jobs[place];
    fr_status status = fr_generation_next(job->generation, logits, &job->token, &error);
    job->fed = job->id_count;
    if (status != FR_OK) {
        fail_by_error(c, place, status, &error);
    } else if (fr_generation_finish(job->generation) != FR_FINISH_NOT) {
        leave(c, place);
        complete(job);
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
        if (job->stream)
            fr_http_begin(job->request, 200, "text/event-stream");
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
    fr_deallocate(c);
}
