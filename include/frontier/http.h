/* frontier/http.h: one small HTTP server, and the completions endpoint that runs on it.
 *
 * Mental model. A server has one thread of its own, which reads whole requests, keeps to its limits and
 * calls `handle` for each. The handler answers at once, or keeps the request and answers later from any
 * thread, whole or in pieces while the client reads. A client that goes away is noticed when it is written
 * to. It listens on the loopback interface unless told otherwise, and then refuses requests for other host
 * names, so that a page in a browser cannot reach it by naming a host of its own.
 *
 * Completions are requests in OpenAI's form, served by one inference engine: whichever are there share its
 * passes.
 */
#ifndef FRONTIER_HTTP_H
#define FRONTIER_HTTP_H
#include "frontier/model.h"

/* ---- the server --------------------------------------------------------------------------------------- */

typedef struct fr_http_server fr_http_server;
typedef struct fr_http_request fr_http_request;

typedef struct fr_http_options {
    const char *address;     /* NULL: 127.0.0.1; another IPv4 address of this machine, or 0.0.0.0 */
    int port;                /* 0: any that is free */
    int64_t most_body_bytes; /* 0: 1 MiB; what is longer is answered with status 413 */
    int most_connections;    /* 0: 64; for one more, who is longest at sending or idle is cut off */
    int idle_seconds;        /* 0: 30; a client that is silent for so long in a request is cut off */
    /* In the server's thread. Each request is answered or ended exactly once, here or later. */
    void (*handle)(void *context, fr_http_request *request);
    /* Answers what the server itself refuses (413, 403, 400), in the form of its users; NULL: plain text. */
    void (*refuse)(void *context, fr_http_request *request, int status, const char *why);
    void *context;
} fr_http_options;
/* FR_BAD_ENVIRONMENT without libmicrohttpd, or when the port is taken. */
fr_status fr_http_server_create(fr_http_server **out, const fr_http_options *options, fr_error *error);
int fr_http_server_port(const fr_http_server *server);
/* Stops accepting; requests under way may still be answered. */
void fr_http_server_quiesce(fr_http_server *server);
/* Ends every connection. Requests not answered by now are cut off, and must not be used any more. */
void fr_http_server_free(fr_http_server *server);

/* Of a request until it is answered or ended; strings are the request's. */
const char *fr_http_method(const fr_http_request *request);
const char *fr_http_path(const fr_http_request *request); /* without the query */
const char *fr_http_header(const fr_http_request *request, const char *name); /* NULL: not given; in `handle` only */
const char *fr_http_body(const fr_http_request *request, size_t *bytes);

/* A whole answer; ends the request. */
void fr_http_answer(fr_http_request *request, int status, const char *type, const void *body, size_t bytes);
/* An answer in pieces: begin, write any number of times, end. write is false once the client is gone; end
 * all the same. What the client has not read yet waits in memory. */
void fr_http_begin(fr_http_request *request, int status, const char *type);
bool fr_http_write(fr_http_request *request, const void *bytes, size_t count);
void fr_http_end(fr_http_request *request);

/* ---- completions -------------------------------------------------------------------------------------- */

typedef struct fr_completions fr_completions;
typedef struct fr_completions_options {
    const char *model;       /* name that clients see */
    int64_t most_tokens;     /* of one completion; 0: 1024 */
    int64_t most_waiting;    /* completions that wait for a sequence; 0: 64; when so many do, status 429 */
    double most_seconds;     /* of one request, waiting included; 0: 120 */
    fr_http_options http;    /* handle, refuse and context are filled in */
} fr_completions_options;
/* Starts listening. The engine is borrowed, and used by the thread in fr_completions_run alone. */
fr_status fr_completions_create(fr_completions **out, fr_engine *engine, const fr_completions_options *options,
                                fr_error *error);
int fr_completions_port(const fr_completions *completions);
/* Serves until stop(context) is true, asked at least ten times a second; requests under way then get an
 * error. */
fr_status fr_completions_run(fr_completions *completions, bool (*stop)(void *context), void *context,
                             fr_error *error);
void fr_completions_free(fr_completions *completions);

#endif
