/* The completions endpoint over loopback: the text of `sample` for whoever asks, whoever asks besides, and
 * an error in OpenAI's form for everything else. Requests are HTTP/1.0, so that an answer is what comes
 * until the end. */
#include "base/json.h"
#include "frontier/http.h"

#include "model_fixture.h"
#include "test.h"

#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef FR_HAVE_MICROHTTPD
static const bool have_http = true;
#else
static const bool have_http = false;
#endif

/* ---- a server in a thread ---------------------------------------------------------------------- */

typedef struct house {
    fr_engine *engine;
    fr_completions *completions;
    pthread_t thread;
    atomic_bool stop;
    int port;
} house;

static bool stop_wanted(void *context)
{
    return atomic_load(&((house *)context)->stop);
}

static void *run_house(void *context)
{
    house *h = context;
    fr_error error = {0};
    fr_completions_run(h->completions, stop_wanted, h, &error);
    return NULL;
}

/* Makes the logit of a document's end 0: the largest of three hundred is above that, so greedy text goes
 * on for ever. */
static void silence_end(const char *folder, const fr_recipe *recipe, const fr_tokenizer *tokenizer)
{
    char path[700];
    fr_error error = {0};
    fr_graph *graph = fr_graph_create(&error);
    CHECK_OK(fr_model_build(graph, recipe, fr_tokenizer_vocab(tokenizer), &error));
    float *weights = calloc((size_t)fr_graph_flat_elements(graph), sizeof *weights);
    fr_path_join(path, sizeof path, folder, "model.safetensors");
    CHECK_OK(fr_model_load(graph, weights, path, &error));
    const fr_tensor *head = fr_graph_find(graph, "lm_head.weight");
    const fr_parameter_info *info = fr_graph_parameter(graph, head->parameter);
    memset(weights + info->offset + fr_tokenizer_bos(tokenizer) * info->columns, 0,
           (size_t)info->columns * sizeof *weights);
    CHECK_OK(fr_model_save(graph, weights, path, &error));
    free(weights);
    fr_graph_free(graph);
}

static void open_house(house *h, int64_t sequences, fr_completions_options options, bool learned)
{
    fr_error error = {0};
    fr_recipe recipe = model_fixture_recipe();
    const char *folder = scratch(learned ? "learned" : "model");
    memset(h, 0, sizeof *h);
    if (learned) {
        CHECK_OK(fr_recipe_set(&recipe, "model.position=learned", &error));
        CHECK_OK(fr_recipe_set(&recipe, "model.qk_norm=false", &error));
    }
    fr_tokenizer *tokenizer = fixture_tokenizer(20);
    model_fixture_run(folder, &recipe, tokenizer);
    silence_end(folder, &recipe, tokenizer);
    fr_tokenizer_free(tokenizer);
    CHECK_OK(fr_engine_open(&h->engine, folder, &(fr_engine_options){.threads = 1, .sequences = sequences},
                            &error));
    options.model = "tiny";
    CHECK_OK(fr_completions_create(&h->completions, h->engine, &options, &error));
    h->port = fr_completions_port(h->completions);
    pthread_create(&h->thread, NULL, run_house, h);
}

static void close_house(house *h)
{
    atomic_store(&h->stop, true);
    pthread_join(h->thread, NULL);
    fr_completions_free(h->completions);
    fr_engine_free(h->engine);
}

/* ---- a client ---------------------------------------------------------------------------------- */

typedef struct answer {
    int status;
    char bytes[400000], *body;
    size_t length;
} answer;

static int dial(const house *h)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)h->port)};
    struct timeval patience = {.tv_sec = 20};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(s, (struct sockaddr *)&at, sizeof at) != 0)
        test_fail(__FILE__, __LINE__, "cannot connect");
    return s;
}

static void say(int s, const char *method, const char *path, const char *headers, const char *body,
                size_t bytes)
{
    char head[1000];
    int count = snprintf(head, sizeof head, "%s %s HTTP/1.0\r\n%sContent-Length: %zu\r\n\r\n", method, path,
                         headers, bytes);
    CHECK_INT(send(s, head, (size_t)count, MSG_NOSIGNAL), count);
    for (size_t at = 0; at < bytes;) {
        ssize_t sent = send(s, body + at, bytes - at, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the server has heard enough */
        at += (size_t)sent;
    }
}

static void hear(int s, answer *a)
{
    a->length = 0;
    for (ssize_t count; a->length < sizeof a->bytes - 1 &&
                        (count = recv(s, a->bytes + a->length, sizeof a->bytes - 1 - a->length, 0)) > 0;)
        a->length += (size_t)count;
    a->bytes[a->length] = 0;
    a->status = a->length > 12 ? atoi(a->bytes + 9) : 0;
    a->body = strstr(a->bytes, "\r\n\r\n");
    a->body = a->body ? a->body + 4 : a->bytes + a->length;
    close(s);
}

static const char as_json[] = "Content-Type: application/json\r\n";

static void ask(const house *h, const char *method, const char *path, const char *headers, const char *body,
                answer *a)
{
    int s = dial(h);
    say(s, method, path, headers, body, strlen(body));
    hear(s, a);
}

static void complete(const house *h, const char *body, answer *a)
{
    ask(h, "POST", "/v1/completions", as_json, body, a);
}

/* choices[0].text of an answer in one piece; what a stream's pieces add up to. Reasons in `finish`. */
static void text_of(const answer *a, char *out, size_t room, char finish[32])
{
    *out = 0;
    *finish = 0;
    CHECK_INT(a->status, 200);
    bool stream = strncmp(a->body, "data: ", 6) == 0, done = !stream;
    for (const char *at = a->body; at && *at; at = stream ? strstr(at + 1, "data: ") : NULL) {
        const char *from = stream ? at + 6 : at, *end = stream ? strstr(from, "\n\n") : a->bytes + a->length;
        if (stream && strncmp(from, "[DONE]", 6) == 0) {
            done = true;
            continue;
        }
        json_t *piece = end ? json_loadb(from, (size_t)(end - from), JSON_ALLOW_NUL, NULL) : NULL;
        json_t *choice = json_array_get(json_object_get(piece, "choices"), 0);
        const char *text = json_string_value(json_object_get(choice, "text"));
        const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
        CHECK(piece != NULL);
        strncat(out, text ? text : "", room - strlen(out) - 1);
        if (reason)
            snprintf(finish, 32, "%s", reason);
        json_decref(piece);
    }
    CHECK(done);
}

/* The error's message; "" when it is not in OpenAI's form. */
static const char *error_of(const answer *a, char *out, size_t room)
{
    json_t *root = json_loads(a->body, 0, NULL), *error = json_object_get(root, "error");
    bool form = json_is_string(json_object_get(error, "message")) &&
                json_is_string(json_object_get(error, "type")) && json_object_get(error, "param") &&
                json_object_get(error, "code");
    snprintf(out, room, "%s", form ? json_string_value(json_object_get(error, "message")) : "");
    json_decref(root);
    return out;
}

static double metric(const house *h, const char *name)
{
    static answer a;
    char line[100];
    ask(h, "GET", "/metrics", "", "", &a);
    CHECK_INT(a.status, 200);
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(a.body, line);
    return at ? atof(at + strlen(line)) : -1;
}

static void await_metric(const house *h, const char *name, double value)
{
    for (int i = 0; i < 400 && metric(h, name) != value; i++)
        usleep(10000);
    CHECK_NEAR(metric(h, name), value, 0, 0);
}

/* ---- what `sample` says -------------------------------------------------------------------------- */

typedef struct said {
    char text[8000];
    size_t length;
} said;

static bool keep(void *context, const char *bytes, size_t count)
{
    said *s = context;
    memcpy(s->text + s->length, bytes, count);
    s->length += count;
    return true;
}

/* Through fr_json_text, as a reply is: bytes that are no characters become U+FFFD. */
static void sample_text(const char *prompt, uint64_t seed, int64_t tokens, const char *stop, char *out)
{
    static fr_scorer *scorer;
    fr_error error = {0};
    said s = {.length = 0};
    fr_sample_options options = {
        .tokens = tokens, .temperature = 0.9, .top_p = 0.95, .top_k = 200, .seed = seed, .stop_at_bos = true};
    if (!scorer)
        CHECK_OK(fr_scorer_open(&scorer, scratch("model"), &(fr_scorer_options){.threads = 2}, &error));
    options.stop = &stop;
    options.stop_count = stop != NULL;
    CHECK_OK(fr_sample(scorer, prompt, &options, keep, &s, NULL, &error));
    json_t *text = fr_json_text(s.text, s.length);
    snprintf(out, 16000, "%s", json_string_value(text));
    json_decref(text);
}

/* The body of a request whose text never ends: greedy, by a model that cannot like the end of a document. */
static const char *endless(const char *more, char out[300])
{
    snprintf(out, 300, "{\"prompt\": \"the\", \"max_tokens\": 10000000, \"temperature\": 0%s}", more);
    return out;
}

static const char request_form[] = "{\"model\": \"tiny\", \"prompt\": \"the cat %d\", \"max_tokens\": %d, "
                                   "\"temperature\": 0.9, \"top_p\": 0.95, "
                                   "\"top_k\": 200, \"seed\": %d, \"stream\": %s}";

/* ---- tests ---------------------------------------------------------------------------------------- */

typedef struct caller {
    house *h;
    int number;
    answer answer;
    pthread_t thread;
} caller;

static void *call(void *context)
{
    caller *c = context;
    char body[400];
    snprintf(body, sizeof body, request_form, c->number, 20 + c->number, c->number,
             c->number % 2 ? "true" : "false");
    complete(c->h, body, &c->answer);
    return NULL;
}

TEST(many_at_once_get_the_text_of_sample)
{
    enum { CALLERS = 12 };
    static caller callers[CALLERS];
    static house h;
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 5, (fr_completions_options){0}, false);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (caller){.h = &h, .number = i};
        pthread_create(&callers[i].thread, NULL, call, &callers[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        char prompt[32], want[16000], got[16000], finish[32];
        pthread_join(callers[i].thread, NULL);
        snprintf(prompt, sizeof prompt, "the cat %d", i);
        sample_text(prompt, (uint64_t)i, 20 + i, NULL, want);
        text_of(&callers[i].answer, got, sizeof got, finish);
        if (i % 2 == 0) /* a stream is cut between characters; odd bytes may be cut differently */
            CHECK_STR(got, want);
        else
            CHECK(strlen(got) > 0);
        CHECK(strcmp(finish, "length") == 0 || strcmp(finish, "stop") == 0);
    }
    await_metric(&h, "frontier_sequences_active", 0);
    CHECK_NEAR(metric(&h, "frontier_completion_seconds_count"), CALLERS, 0, 0);
    close_house(&h);
}

TEST(a_seed_gives_one_text_and_streams_say_the_same)
{
    static house h;
    static answer a;
    char texts[3][16000], finish[32], body[400];
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 2, (fr_completions_options){0}, false);
    const char *streams[] = {"false", "true", "false"};
    for (int i = 0; i < 3; i++) {
        snprintf(body, sizeof body,
                 "{\"prompt\": [\"the cat\"], \"max_tokens\": 30, \"temperature\": 0, \"seed\": %d, "
                 "\"stream\": %s, "
                 "\"stream_options\": {\"include_usage\": true}}",
                 i, streams[i]);
        complete(&h, body, &a);
        text_of(&a, texts[i], sizeof texts[i], finish);
        CHECK(strstr(a.body, "\"completion_tokens\":30") != NULL || strcmp(finish, "stop") == 0);
    }
    CHECK_STR(texts[1], texts[0]);
    CHECK_STR(texts[2], texts[0]);
    complete(&h, "{\"prompt\": \"a\", \"max_tokens\": 0}", &a);
    text_of(&a, texts[0], sizeof texts[0], finish);
    CHECK_STR(texts[0], "");
    CHECK_STR(finish, "length");
    complete(&h, "{\"prompt\": \"a\", \"stream\": true, \"max_tokens\": 0}", &a);
    text_of(&a, texts[0], sizeof texts[0], finish);
    CHECK_STR(finish, "length");
    close_house(&h);
}

/* What a stream's or a whole answer's pieces say of the choice `index`, put together; the number of [DONE]. */
static int choice_text(const answer *a, int index, char *out, size_t room, char finish[32])
{
    int done = 0;
    *out = *finish = 0;
    CHECK_INT(a->status, 200);
    bool stream = strncmp(a->body, "data: ", 6) == 0;
    for (const char *at = a->body; at && *at; at = stream ? strstr(at + 1, "data: ") : NULL) {
        const char *from = stream ? at + 6 : at, *end = stream ? strstr(from, "\n\n") : a->bytes + a->length;
        done += strncmp(from, "[DONE]", 6) == 0;
        json_t *piece = end ? json_loadb(from, (size_t)(end - from), JSON_ALLOW_NUL, NULL) : NULL, *choice;
        size_t i;
        json_array_foreach(json_object_get(piece, "choices"), i, choice)
        {
            const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
            if (json_integer_value(json_object_get(choice, "index")) != index)
                continue;
            strncat(out, json_string_value(json_object_get(choice, "text")), room - strlen(out) - 1);
            if (reason)
                snprintf(finish, 32, "%s", reason);
        }
        json_decref(piece);
    }
    return done;
}

TEST(several_prompts_and_n_are_as_many_samples)
{
    static house h;
    static answer a;
    char body[500], got[16000], want[16000], finish[32];
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 2, (fr_completions_options){0}, false); /* fewer places than choices */
    for (int stream = 0; stream < 2; stream++) {
        snprintf(body, sizeof body,
                 "{\"prompt\": [\"the cat\", \"\", \"a rat\"], \"n\": 3, \"best_of\": 3, \"max_tokens\": 25, "
                 "\"temperature\": 0.9, \"top_p\": 0.95, \"top_k\": 200, \"seed\": 7, \"stream\": %s, "
                 "\"stream_options\": {\"include_usage\": true}}",
                 stream ? "true" : "false");
        complete(&h, body, &a);
        for (int i = 0; i < 9; i++) {
            static const char *const prompts[] = {"the cat", "", "a rat"};
            sample_text(prompts[i / 3], 7 + (uint64_t)i % 3, 25, NULL, want);
            CHECK_INT(choice_text(&a, i, got, sizeof got, finish), stream);
            CHECK(*finish);
            if (stream) /* odd bytes may be cut differently */
                CHECK(*got || !*want);
            else
                CHECK_STR(got, want);
        }
        CHECK(strstr(a.body, "\"prompt_tokens\":") != NULL);
    }
    await_metric(&h, "frontier_sequences_active", 0);
    CHECK_NEAR(metric(&h, "frontier_requests_waiting"), 0, 0, 0);
    CHECK_NEAR(metric(&h, "frontier_completion_seconds_count"), 2, 0, 0);
    close_house(&h);
}

static const char asked[] = "\"echo\": true, \"logprobs\": 3";

/* Scores of a reply against a whole row by the scorer: of `ids` from the second on, whose first `sure` are ASCII. */
static void check_scores(const answer *a, const int32_t *ids, int64_t count, int64_t sure)
{
    fr_error error = {0};
    fr_scorer *scorer;
    CHECK_OK(fr_scorer_open(&scorer, scratch("model"), &(fr_scorer_options){.threads = 1}, &error));
    int64_t vocab = fr_scorer_vocab(scorer), real = fr_tokenizer_vocab(fr_scorer_tokenizer(scorer));
    float *logits = malloc((size_t)(count * vocab) * sizeof *logits);
    CHECK_OK(fr_scorer_logits(scorer, count, ids, 0, logits, &error));
    json_t *root = json_loads(a->body, JSON_ALLOW_NUL, NULL);
    json_t *choice = json_array_get(json_object_get(root, "choices"), 0),
           *scores = json_object_get(choice, "logprobs");
    const char *text = json_string_value(json_object_get(choice, "text"));
    CHECK_INT((int64_t)json_array_size(json_object_get(scores, "tokens")), count - 1);
    for (int64_t i = 0; i < count - 1; i++) {
        const float *row = logits + i * vocab;
        double total = 0, best = -1e30, told = -1e30;
        const char *key,
            *token = json_string_value(json_array_get(json_object_get(scores, "tokens"), (size_t)i));
        json_int_t at = json_integer_value(json_array_get(json_object_get(scores, "text_offset"), (size_t)i));
        json_t *top = json_array_get(json_object_get(scores, "top_logprobs"), (size_t)i), *value;
        for (int64_t v = 0; v < real; v++) {
            total += exp((double)row[v]);
            best = row[v] > best ? (double)row[v] : best;
        }
        CHECK_NEAR(json_real_value(json_array_get(json_object_get(scores, "token_logprobs"), (size_t)i)),
                   (double)row[ids[i + 1]] - log(total), 1e-6, 1e-6);
        json_object_foreach(top, key, value) told =
            json_real_value(value) > told ? json_real_value(value) : told;
        CHECK_NEAR(told, best - log(total), 1e-6, 1e-6);
        CHECK(json_object_size(top) >= 2 && json_object_size(top) <= 4);
        if (i < sure)
            CHECK(strncmp(text + at, token, strlen(token)) == 0);
    }
    json_decref(root);
    free(logits);
    fr_scorer_free(scorer);
}

static void go_on_greedily(int32_t *row, int64_t count, int64_t more)
{
    fr_error error = {0};
    fr_scorer *scorer;
    CHECK_OK(fr_scorer_open(&scorer, scratch("model"), &(fr_scorer_options){.threads = 1}, &error));
    float *logits = malloc((size_t)fr_scorer_vocab(scorer) * sizeof *logits);
    for (; more > 0; more--, count++) {
        CHECK_OK(fr_scorer_logits(scorer, count, row, count - 1, logits, &error));
        row[count] = 0;
        for (int32_t v = 1; v < fr_tokenizer_vocab(fr_scorer_tokenizer(scorer)); v++)
            row[count] = logits[v] > logits[row[count]] ? v : row[count];
    }
    free(logits);
    fr_scorer_free(scorer);
}

TEST(echo_and_logprobs_are_the_models_own)
{
    static house h;
    static answer a, b;
    fr_error error = {0};
    char body[3000], finish[32], text[16000];
    int32_t *ids = NULL;
    int64_t count = 0;
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 1, (fr_completions_options){0}, false);
    const fr_tokenizer *tokenizer = fr_scorer_tokenizer(fr_engine_scorer(h.engine));
    char prompt[1200] = "the cat sat on the mat.";
    for (int round = 0; round < 2; round++) { /* the second prompt is longer than a piece */
        CHECK_OK(fr_prompt_encode(tokenizer, prompt, strlen(prompt), &ids, &count, &error));
        CHECK(round == 0 || count > 300);
        snprintf(body, sizeof body,
                 "{\"prompt\": \"%s\", \"max_tokens\": 0, \"echo\": true, \"logprobs\": 3}", prompt);
        complete(&h, body, &a);
        CHECK_INT(choice_text(&a, 0, text, sizeof text, finish), 0);
        CHECK_STR(text, prompt);
        CHECK_STR(finish, "length");
        check_scores(&a, ids, count, count - 1);
        fr_deallocate(ids);
        while (strlen(prompt) + 20 < sizeof prompt)
            strcat(prompt, " the rat ran");
    }
    /* What is generated is scored as well; ids say the same as text. */
    snprintf(body, sizeof body, "{\"prompt\": \"the cat\", \"max_tokens\": 6, \"temperature\": 0, %s}",
             asked);
    complete(&h, body, &a);
    CHECK_OK(fr_prompt_encode(tokenizer, "the cat", 7, &ids, &count, &error));
    int32_t row[40];
    memcpy(row, ids, (size_t)count * sizeof *row);
    go_on_greedily(row, count, 6);
    check_scores(&a, row, count + 6, count - 1);
    int length =
        snprintf(body, sizeof body, "{\"max_tokens\": 6, \"temperature\": 0, %s, \"prompt\": [", asked);
    for (int64_t i = 1; i < count; i++)
        length += snprintf(body + length, sizeof body - (size_t)length, "%s%d", i > 1 ? "," : "", ids[i]);
    snprintf(body + length, sizeof body - (size_t)length, "]}");
    complete(&h, body, &b);
    check_scores(&b, row, count + 6, count - 1);
    choice_text(&a, 0, text, sizeof text, finish);
    choice_text(&b, 0, prompt, sizeof prompt, finish);
    CHECK_STR(prompt, text);
    CHECK(strncmp(text, "the cat", 7) == 0);
    fr_deallocate(ids);
    close_house(&h);
}

TEST(too_much_to_score_is_refused)
{
    static house h;
    static answer a;
    static char body[70000];
    char message[400];
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 1, (fr_completions_options){0}, false);
    int length = snprintf(body, sizeof body, "{\"n\": 2, \"max_tokens\": 1, %s, \"prompt\": [1", asked);
    for (int i = 0; i < 17000; i++)
        length += snprintf(body + length, sizeof body - (size_t)length, ",1");
    snprintf(body + length, sizeof body - (size_t)length, "]}");
    complete(&h, body, &a);
    CHECK_INT(a.status, 400);
    CHECK(strstr(error_of(&a, message, sizeof message), "at most 32768") != NULL);
    close_house(&h);
}

TEST(stop_texts_stop)
{
    static house h;
    static answer a;
    char body[500], got[16000], want[16000], finish[32];
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 1, (fr_completions_options){0}, false);
    sample_text("the", 3, 60, "a", want);
    snprintf(
        body, sizeof body,
        "{\"prompt\": \"the\", \"max_tokens\": 60, \"temperature\": 0.9, \"top_p\": 0.95, \"top_k\": 200, "
        "\"seed\": 3, \"stop\": [\"a\", \"never said\"]}");
    complete(&h, body, &a);
    text_of(&a, got, sizeof got, finish);
    CHECK_STR(got, want);
    CHECK_STR(finish, "stop");
    CHECK(strchr(got, 'a') == NULL);
    close_house(&h);
}

TEST(nonsense_is_refused_in_openai_form)
{
    static const struct {
        const char *body, *says;
        int status;
    } cases[] = {
        {"{\"prompt\": \"a", "not a JSON object", 400},
        {"", "not a JSON object", 400},
        {"[]", "not a JSON object", 400},
        {"{\"prompt\": \"a\", \"prompt\": \"b\"}", "not a JSON object", 400},
        {"{\"prompt\": 3}", "prompt must be a string", 400},
        {"{\"prompt\": []}", "prompt must be a string", 400},
        {"{\"prompt\": [\"a\", 3]}", "prompt must be a string", 400},
        {"{\"prompt\": [[1], \"a\", []]}", "prompt must be a string", 400},
        {"{\"prompt\": [-1]}", "prompt must be a string", 400},
        {"{\"prompt\": [1.5]}", "prompt must be a string", 400},
        {"{\"prompt\": [99999]}", "no token 99999", 400},
        {"{\"prompt\": [[1], [1, 99999]]}", "no token 99999", 400},
        {"{\"max_tokens\": 5000}", "from 0 to 1024", 400},
        {"{\"max_tokens\": -1}", "max_tokens", 400},
        {"{\"max_tokens\": 1.5}", "max_tokens", 400},
        {"{\"max_tokens\": 99999999999999999999}", "not a JSON object", 400},
        {"{\"temperature\": \"hot\"}", "temperature", 400},
        {"{\"temperature\": -0.1}", "temperature", 400},
        {"{\"top_p\": 0}", "top_p", 400},
        {"{\"top_p\": 1.01}", "top_p", 400},
        {"{\"stop\": [\"a\",\"b\",\"c\",\"d\",\"e\"]}", "at most 4", 400},
        {"{\"stop\": \"\"}", "stop text", 400},
        {"{\"stop\": \"a\\u0000b\"}", "", 400},
        {"{\"stop\": [1]}", "stop text", 400},
        {"{\"stream\": 1}", "stream", 400},
        {"{\"n\": 0}", "from 1 to 128", 400},
        {"{\"n\": 129}", "from 1 to 128", 400},
        {"{\"n\": 100, \"prompt\": [\"a\", \"b\"]}", "more than 128 completions", 400},
        {"{\"n\": 2, \"best_of\": 3}", "best_of", 400},
        {"{\"best_of\": \"x\"}", "best_of", 400},
        {"{\"logprobs\": 6}", "from 0 to 5", 400},
        {"{\"logprobs\": true}", "from 0 to 5", 400},
        {"{\"echo\": 1}", "echo must be", 400},
        {"{\"presence_penalty\": 1}", "only 0", 400},
        {"{\"temprature\": 1}", "unknown parameter 'temprature'", 400},
        {"{\"model\": \"other\"}", "does not exist", 404},
    };
    static house h;
    static answer a;
    char message[400];
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 1, (fr_completions_options){.http.most_body_bytes = 5000}, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        complete(&h, cases[i].body, &a);
        CHECK_INT(a.status, cases[i].status);
        if (!strstr(error_of(&a, message, sizeof message), cases[i].says) || !*message)
            test_fail_format(__FILE__, __LINE__, "%s: %s", cases[i].body, message);
    }
    complete(&h, "{\"prompt\": \"the\", \"n\": 1, \"logit_bias\": {}, \"user\": \"me\", \"suffix\": null}",
             &a);
    CHECK_INT(a.status, 200);
    ask(&h, "POST", "/v1/completions", "Content-Type: text/plain\r\n", "{}", &a);
    CHECK_INT(a.status, 415);
    ask(&h, "POST", "/v1/completions", "Content-Type: application/jsonlines\r\n", "{}", &a);
    CHECK_INT(a.status, 415);
    ask(&h, "POST", "/v1/completions", "Content-Type: Application/JSON;charset=utf-8\r\n", "{}", &a);
    CHECK_INT(a.status, 200);
    ask(&h, "GET", "/v1/completions", "", "", &a);
    CHECK_INT(a.status, 405);
    ask(&h, "POST", "/v1/chat/completions", as_json, "{}", &a);
    CHECK_INT(a.status, 404);
    CHECK(*error_of(&a, message, sizeof message));
    ask(&h, "GET", "/v1/models/tiny", "", "", &a);
    CHECK_INT(a.status, 200);
    ask(&h, "GET", "/v1/models/large", "", "", &a);
    CHECK_INT(a.status, 404);
    ask(&h, "GET", "/healthz", "Host: evil.example\r\n", "", &a);
    CHECK_INT(a.status, 403);
    ask(&h, "GET", "/healthz", "Host: localhost:8000\r\n", "", &a);
    CHECK_INT(a.status, 200);
    close_house(&h);
}

TEST(too_large_a_body_is_refused)
{
    static house h;
    static answer a;
    static char large[200000];
    char message[400];
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 1, (fr_completions_options){.http.most_body_bytes = 5000}, false);
    memset(large, 'a', sizeof large);
    int s = dial(&h);
    say(s, "POST", "/v1/completions", as_json, large, 5001);
    hear(s, &a);
    CHECK_INT(a.status, 413);
    CHECK_STR(error_of(&a, message, sizeof message), "the request is too large");
    s = dial(&h);
    say(s, "POST", "/v1/completions", as_json, large, sizeof large); /* cut off, not read to the end */
    hear(s, &a);
    CHECK(a.status == 0 || a.status == 413);
    complete(&h, "{\"prompt\": \"the\"}", &a);
    CHECK_INT(a.status, 200);
    close_house(&h);
}

TEST(a_client_that_goes_away_frees_its_place)
{
    static house h;
    static answer a;
    char piece[300], body[300];
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 1, (fr_completions_options){.most_tokens = 10000000}, false);
    endless(", \"stream\": true", body);
    for (int i = 0; i < 2; i++) {
        int s = dial(&h);
        say(s, "POST", "/v1/completions", as_json, body, strlen(body));
        CHECK(recv(s, piece, sizeof piece, 0) > 0); /* it has begun */
        close(s);
    }
    endless(", \"stream\": true, \"n\": 3", body); /* two of three are still in line */
    int s = dial(&h);
    say(s, "POST", "/v1/completions", as_json, body, strlen(body));
    CHECK(recv(s, piece, sizeof piece, 0) > 0);
    close(s);
    complete(&h, "{\"prompt\": \"the\", \"max_tokens\": 2}", &a); /* the only place is free again */
    CHECK_INT(a.status, 200);
    CHECK_NEAR(metric(&h, "frontier_clients_lost_total"), 3, 0, 0);
    close_house(&h);
}

/* Clients that never finish a request; who is being answered stays. */
TEST(slow_senders_lock_nobody_out)
{
    enum { SLOW = 12 };
    static house h;
    static answer a;
    char body[300], piece[300];
    int slow[SLOW], streaming;
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 2, (fr_completions_options){.most_tokens = 10000000, .http.most_connections = 4}, false);
    endless(", \"stream\": true", body);
    streaming = dial(&h);
    say(streaming, "POST", "/v1/completions", as_json, body, strlen(body));
    CHECK(recv(streaming, piece, sizeof piece, 0) > 0);
    for (int i = 0; i < SLOW; i++) { /* half of them in the header, half in the body */
        const char *text =
            i % 2 ? "POST /v1/completions HTTP/1.1\r\nX: a"
                  : "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{";
        slow[i] = dial(&h);
        CHECK_INT(send(slow[i], text, strlen(text), MSG_NOSIGNAL), (long long)strlen(text));
    }
    for (int i = 0; i < 3; i++) {
        complete(&h, "{\"prompt\": \"the\", \"max_tokens\": 2}", &a);
        CHECK_INT(a.status, 200);
    }
    CHECK(recv(streaming, piece, sizeof piece, 0) > 0);
    CHECK_NEAR(metric(&h, "frontier_clients_lost_total"), 0, 0, 0);
    for (int i = 0; i < SLOW; i++)
        close(slow[i]);
    close(streaming);
    close_house(&h);
}

TEST(limits_of_time_and_line)
{
    static house h;
    static answer a;
    char message[400], body[300];
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 1, (fr_completions_options){.most_tokens = 10000000, .most_waiting = 1, .most_seconds = 2},
               false);
    endless("", body);
    int first = dial(&h), second = dial(&h);
    say(first, "POST", "/v1/completions", as_json, body, strlen(body));
    await_metric(&h, "frontier_sequences_active", 1);
    say(second, "POST", "/v1/completions", as_json, body, strlen(body));
    await_metric(&h, "frontier_requests_waiting", 1);
    complete(&h, "{\"prompt\": \"the\"}", &a);
    CHECK_INT(a.status, 429);
    CHECK(*error_of(&a, message, sizeof message));
    hear(first, &a);
    CHECK_INT(a.status, 504);
    hear(second, &a);
    CHECK_INT(a.status, 504);
    endless(", \"n\": 5", body); /* one late choice ends them all */
    complete(&h, body, &a);
    CHECK_INT(a.status, 504);
    CHECK_NEAR(metric(&h, "frontier_requests_waiting"), 0, 0, 0);
    complete(&h, "{\"prompt\": \"the\", \"max_tokens\": 2}", &a);
    CHECK_INT(a.status, 200);
    close_house(&h);
}

TEST(learned_positions_are_a_limit)
{
    static house h;
    static answer a;
    char message[400];
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 1, (fr_completions_options){0}, true);
    complete(&h, "{\"prompt\": \"a\", \"max_tokens\": 200}", &a);
    CHECK_INT(a.status, 400);
    CHECK(strstr(error_of(&a, message, sizeof message), "96 positions") != NULL);
    CHECK(strstr(a.body, "context_length_exceeded") != NULL);
    complete(&h, "{\"prompt\": \"\", \"max_tokens\": 96}", &a); /* the last token is not fed */
    CHECK_INT(a.status, 200);
    close_house(&h);
}

TEST(ending_the_server_ends_streams_and_waiting_requests)
{
    static house h;
    static answer a;
    char piece[300], stream[300], whole[300];
    if (!have_http)
        SKIP("built without libmicrohttpd");
    open_house(&h, 1, (fr_completions_options){.most_tokens = 10000000}, false);
    endless(", \"stream\": true", stream);
    endless("", whole);
    int first = dial(&h), second = dial(&h);
    say(first, "POST", "/v1/completions", as_json, stream, strlen(stream));
    CHECK(recv(first, piece, sizeof piece, 0) > 0);
    say(second, "POST", "/v1/completions", as_json, whole, strlen(whole));
    close_house(&h);
    hear(first, &a);
    hear(second, &a);
    CHECK(a.status == 503 || a.status == 0); /* told so, or cut off before it was read */
}

TEST_MAIN(serve)
