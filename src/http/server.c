/* The HTTP server over libmicrohttpd: requests whole, answers at once or later, from any thread.
 *
 * libmicrohttpd calls us when bytes come and asks us for bytes to send; our callers answer when they are
 * ready. What stands between is a request with a lock: its answer is a buffer, and a connection that has
 * nothing to send is suspended until somebody writes. Two parties hold a request, the library and whoever
 * answers it; the last one to let go frees it. Suspended connections must be woken before the library can
 * be stopped, so the server knows all its requests.
 *
 * Connections are few, and a client that sends its request a byte at a time would hold one for ever. So one more is
 * taken than there may be, and whoever has been sending longest, or idle, makes room for it.
 */
#include "frontier/http.h"

#include <string.h>

enum {
    BODY_BYTES = 1 << 20,
    CONNECTIONS = 64,
    IDLE_SECONDS = 30,
    PATIENCE = 16 /* a body of so many limits is cut off instead of being read to its end */
};

#ifdef FR_HAVE_MICROHTTPD
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct fr_http_request {
    fr_http_server *server;
    struct MHD_Connection *connection;
    char *method, *path;
    fr_buffer body;
    size_t received; /* of the body, kept or not */
    int refused;     /* status the server itself answers with; 0: none */
    const char *why;
    /* Everything below is under the server's lock. */
    int holders;                        /* the library, whoever answers */
    bool suspended, begun, ended, gone; /* gone: the connection is no more */
    int status;
    char type[64];
    bool whole; /* the answer came in one piece: its length is known */
    fr_buffer out;
    size_t sent;
    fr_http_request *next, *previous;
};

/* A client's connection; in the library's thread alone. */
typedef struct caller {
    int socket;
    int64_t
        turn; /* when its request began, or its last one ended, counted in events; 0: it waits for our answer */
    struct caller *next, *previous;
} caller;

struct fr_http_server {
    fr_http_options options;
    caller *connections; /* these three in the library's thread alone */
    int connection_count;
    int64_t turns;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock;
    fr_http_request *requests;
    int port;
    bool loopback;
    bool closing; /* under the lock: nobody answers any more */
};

/* ---- requests ---------------------------------------------------------------------------------- */

static fr_http_request *new_request(fr_http_server *server, struct MHD_Connection *connection,
                                    const char *method, const char *path)
{
    fr_http_request *r = fr_allocate(sizeof *r);
    size_t m = strlen(method) + 1, p = strlen(path) + 1;
    if (!r)
        return NULL;
    r->method = fr_allocate(m);
    r->path = fr_allocate(p);
    if (!r->method || !r->path) {
        fr_deallocate(r->method);
        fr_deallocate(r->path);
        fr_deallocate(r);
        return NULL;
    }
    memcpy(r->method, method, m);
    memcpy(r->path, path, p);
    r->server = server;
    r->connection = connection;
    r->holders = 1;
    fr_buffer_init(&r->body, (size_t)server->options.most_body_bytes);
    fr_buffer_init(&r->out, 0);
    pthread_mutex_lock(&server->lock);
    r->next = server->requests;
    if (r->next)
        r->next->previous = r;
    server->requests = r;
    pthread_mutex_unlock(&server->lock);
    return r;
}

/* One holder lets go. Called with the lock held. */
static void let_go(fr_http_request *r)
{
    if (--r->holders > 0)
        return;
    if (r->next)
        r->next->previous = r->previous;
    if (r->previous)
        r->previous->next = r->next;
    else
        r->server->requests = r->next;
    fr_buffer_release(&r->body);
    fr_buffer_release(&r->out);
    fr_deallocate(r->method);
    fr_deallocate(r->path);
    fr_deallocate(r);
}

/* Something changed that the library should look at. Called with the lock held. */
static void wake(fr_http_request *r)
{
    if (r->suspended && !r->gone) {
        r->suspended = false;
        MHD_resume_connection(r->connection);
    }
}

/* Nothing to do until wake. Called with the lock held, in the library's thread. */
static void suspend(fr_http_request *r)
{
    r->suspended = true;
    MHD_suspend_connection(r->connection);
}

/* Nobody will answer any more. Called with the lock held. */
static void close_request(fr_http_request *r)
{
    if (!r->begun) {
        r->status = 503;
        snprintf(r->type, sizeof r->type, "text/plain");
        r->whole = r->begun = true;
    }
    r->ended = true;
    wake(r);
}

const char *fr_http_method(const fr_http_request *request)
{
    return request->method;
}

const char *fr_http_path(const fr_http_request *request)
{
    return request->path;
}

const char *fr_http_header(const fr_http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *fr_http_body(const fr_http_request *request, size_t *bytes)
{
    *bytes = request->body.length;
    return request->body.length ? request->body.data : "";
}

/* ---- answers ----------------------------------------------------------------------------------- */

void fr_http_answer(fr_http_request *r, int status, const char *type, const void *body, size_t bytes)
{
    fr_http_server *server = r->server;
    pthread_mutex_lock(&server->lock);
    r->status = status;
    r->whole = true;
    snprintf(r->type, sizeof r->type, "%s", type);
    fr_buffer_append(&r->out, body, bytes);
    r->begun = r->ended = true;
    wake(r);
    let_go(r);
    pthread_mutex_unlock(&server->lock);
}

void fr_http_begin(fr_http_request *r, int status, const char *type)
{
    pthread_mutex_lock(&r->server->lock);
    r->status = status;
    snprintf(r->type, sizeof r->type, "%s", type);
    r->begun = true;
    wake(r);
    pthread_mutex_unlock(&r->server->lock);
}

bool fr_http_write(fr_http_request *r, const void *bytes, size_t count)
{
    pthread_mutex_lock(&r->server->lock);
    if (r->sent == r->out.length) {
        fr_buffer_clear(&r->out);
        r->sent = 0;
    }
    fr_buffer_append(&r->out, bytes, count);
    bool reached = !r->gone && !r->out.failed;
    wake(r);
    pthread_mutex_unlock(&r->server->lock);
    return reached;
}

void fr_http_end(fr_http_request *r)
{
    fr_http_server *server = r->server;
    pthread_mutex_lock(&server->lock);
    r->ended = true;
    wake(r);
    let_go(r);
    pthread_mutex_unlock(&server->lock);
}

/* ---- what the library asks ---------------------------------------------------------------------- */

/* Bytes of an answer in pieces, as they come. */
static ssize_t read_answer(void *context, uint64_t position, char *to, size_t room)
{
    fr_http_request *r = context;
    ssize_t count = 0;
    (void)position;
    pthread_mutex_lock(&r->server->lock);
    size_t left = r->out.length - r->sent;
    if (left > 0) {
        count = (ssize_t)(left < room ? left : room);
        memcpy(to, r->out.data + r->sent, (size_t)count);
        r->sent += (size_t)count;
    } else if (r->ended) {
        count = r->out.failed ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        suspend(r);
    }
    pthread_mutex_unlock(&r->server->lock);
    return count;
}

/* Hands the answer, which has begun, to the library. Without the lock, since the library takes one of its
 * own here and holds it when it calls read_answer; what is read here does not change any more. */
static enum MHD_Result queue_answer(fr_http_request *r)
{
    struct MHD_Response *response =
        r->whole ? MHD_create_response_from_buffer(r->out.length, r->out.length ? r->out.data : (void *)"",
                                                   MHD_RESPMEM_MUST_COPY)
                 : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_answer, r, NULL);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", r->type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    enum MHD_Result queued = MHD_queue_response(r->connection, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return queued;
}

static bool is_local_name(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) == 0 && (host[length] == 0 || host[length] == ':'))
            return true;
    }
    return false;
}

static void check_request(fr_http_request *r)
{
    const char *host = fr_http_header(r, "Host");
    if (r->server->loopback && host && !is_local_name(host)) {
        r->refused = 403;
        r->why = "this server answers for localhost only";
    }
}

/* False: cut the client off. */
static bool take_body(fr_http_request *r, const char *bytes, size_t count)
{
    size_t most = (size_t)r->server->options.most_body_bytes;
    r->received += count;
    if (!r->refused && r->received > most) {
        r->refused = 413;
        r->why = "the request is too large";
    }
    if (!r->refused)
        fr_buffer_append(&r->body, bytes, count);
    if (!r->refused && r->body.failed) {
        r->refused = 503;
        r->why = "out of memory";
    }
    return r->received / PATIENCE <= most;
}

static void dispatch(fr_http_request *r)
{
    const fr_http_options *o = &r->server->options;
    pthread_mutex_lock(&r->server->lock);
    r->holders++;
    pthread_mutex_unlock(&r->server->lock);
    if (!r->refused)
        o->handle(o->context, r);
    else if (o->refuse)
        o->refuse(o->context, r, r->refused, r->why);
    else
        fr_http_answer(r, r->refused, "text/plain", r->why, strlen(r->why));
}

/* ---- connections -------------------------------------------------------------------------------- */

static caller *connection_of(struct MHD_Connection *of)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(of, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* The library closes it when it reads its end. */
static void cut_off_slowest(fr_http_server *server)
{
    caller *slowest = NULL;
    for (caller *c = server->connections; c; c = c->next)
        if (c->turn && (!slowest || c->turn < slowest->turn))
            slowest = c;
    if (slowest)
        shutdown(slowest->socket, SHUT_RDWR);
}

static void open_connection(fr_http_server *server, struct MHD_Connection *of, void **own)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(of, MHD_CONNECTION_INFO_CONNECTION_FD);
    caller *c = info ? fr_allocate(sizeof *c) : NULL;
    if (!c)
        return;
    *c = (caller){.socket = info->connect_fd, .turn = ++server->turns, .next = server->connections};
    if (c->next)
        c->next->previous = c;
    server->connections = *own = c;
    if (++server->connection_count > server->options.most_connections)
        cut_off_slowest(server);
}

static void close_connection(fr_http_server *server, caller *c)
{
    if (c->next)
        c->next->previous = c->previous;
    if (c->previous)
        c->previous->next = c->next;
    else
        server->connections = c->next;
    server->connection_count--;
    fr_deallocate(c);
}

static void on_connection(void *context, struct MHD_Connection *of, void **own,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        open_connection(context, of, own);
    else if (*own)
        close_connection(context, *own);
}

/* ---- requests arrive ---------------------------------------------------------------------------- */

/* Called for the header, for pieces of the body, at its end, and again when a suspended connection wakes. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *client, const char *path,
                                  const char *method, const char *version, const char *bytes, size_t *count,
                                  void **own)
{
    fr_http_server *server = context;
    fr_http_request *r = *own;
    (void)version;
    if (!r) {
        *own = r = new_request(server, client, method, path);
        if (r)
            check_request(r);
        return r ? MHD_YES : MHD_NO;
    }
    if (*count) {
        bool going_on = take_body(r, bytes, *count);
        *count = 0;
        return going_on ? MHD_YES : MHD_NO;
    }
    pthread_mutex_lock(&server->lock);
    bool fresh = r->holders == 1 && !r->begun && !server->closing;
    pthread_mutex_unlock(&server->lock);
    caller *from = fresh ? connection_of(client) : NULL;
    if (from)
        from->turn = 0;
    if (fresh)
        dispatch(r);
    pthread_mutex_lock(&server->lock);
    if (!r->begun && server->closing)
        close_request(r);
    bool begun = r->begun;
    if (!begun)
        suspend(r);
    pthread_mutex_unlock(&server->lock);
    return begun ? queue_answer(r) : MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *client, void **own,
                         enum MHD_RequestTerminationCode why)
{
    fr_http_server *server = context;
    fr_http_request *r = *own;
    caller *from = connection_of(client);
    (void)why;
    if (from)
        from->turn = ++server->turns;
    if (!r)
        return;
    pthread_mutex_lock(&server->lock);
    r->gone = true;
    let_go(r);
    pthread_mutex_unlock(&server->lock);
    *own = NULL;
}

/* ---- life -------------------------------------------------------------------------------------- */

static fr_status start(fr_http_server *server, fr_error *error)
{
    const fr_http_options *o = &server->options;
    const char *address = o->address ? o->address : "127.0.0.1";
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
    char where[64];
    snprintf(where, sizeof where, "%.40s:%d", address, o->port);
    if (o->port < 0 || o->port > 65535 || inet_pton(AF_INET, address, &at.sin_addr) != 1)
        return fr_error_set(error, FR_BAD_USAGE, where, "an IPv4 address, as 127.0.0.1; a port up to 65535",
                            "is no address to listen on");
    server->loopback = ntohl(at.sin_addr.s_addr) >> 24 == 127;
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_ALLOW_SUSPEND_RESUME, (uint16_t)o->port, NULL,
        NULL, on_request, server, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->most_connections + 1, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)o->idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)64 << 10, MHD_OPTION_END);
    if (!server->daemon)
        return fr_error_set(error, FR_BAD_ENVIRONMENT, where,
                            "choose another --port, or end who listens there", "cannot listen: %s",
                            errno ? strerror(errno) : "the server did not start");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    server->port = info ? info->port : o->port;
    return FR_OK;
}

fr_status fr_http_server_create(fr_http_server **out, const fr_http_options *options, fr_error *error)
{
    *out = NULL;
    fr_http_server *server = fr_allocate(sizeof *server);
    if (!server)
        return fr_error_memory(error, sizeof *server, "an HTTP server");
    server->options = *options;
    fr_http_options *o = &server->options;
    o->most_body_bytes = o->most_body_bytes > 0 ? o->most_body_bytes : BODY_BYTES;
    o->most_connections = o->most_connections > 0 ? o->most_connections : CONNECTIONS;
    o->idle_seconds = o->idle_seconds > 0 ? o->idle_seconds : IDLE_SECONDS;
    pthread_mutex_init(&server->lock, NULL);
    errno = 0;
    fr_status status = start(server, error);
    if (status == FR_OK)
        *out = server;
    else
        fr_http_server_free(server);
    return status;
}

int fr_http_server_port(const fr_http_server *server)
{
    return server->port;
}

void fr_http_server_quiesce(fr_http_server *server)
{
    MHD_socket listening = MHD_quiesce_daemon(server->daemon);
    if (listening != MHD_INVALID_SOCKET)
        close(listening);
}

/* Answers that are complete get a second to reach their clients. */
static void await_sending(fr_http_server *server)
{
    bool sending = server->daemon != NULL;
    for (int i = 0; i < 100 && sending; i++) {
        sending = false;
        pthread_mutex_lock(&server->lock);
        for (const fr_http_request *r = server->requests; r; r = r->next)
            sending |= r->ended;
        pthread_mutex_unlock(&server->lock);
        if (sending)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

void fr_http_server_free(fr_http_server *server)
{
    if (!server)
        return;
    await_sending(server);
    pthread_mutex_lock(&server->lock);
    server->closing = true;
    for (fr_http_request *r = server->requests; r; r = r->next)
        close_request(r);
    pthread_mutex_unlock(&server->lock);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    while (server->requests) {
        server->requests->holders = 1;
        let_go(server->requests);
    }
    pthread_mutex_destroy(&server->lock);
    fr_deallocate(server);
}

#else

fr_status fr_http_server_create(fr_http_server **out, const fr_http_options *options, fr_error *error)
{
    (void)options;
    *out = NULL;
    return fr_error_set(error, FR_BAD_ENVIRONMENT, "http",
                        "install libmicrohttpd-dev and build frontier again",
                        "this frontier was built without libmicrohttpd");
}

/* Without a server there are no requests: these are never reached, and do nothing. */
int fr_http_server_port(const fr_http_server *server)
{
    (void)server;
    return 0;
}

void fr_http_server_quiesce(fr_http_server *server)
{
    (void)server;
}

void fr_http_server_free(fr_http_server *server)
{
    (void)server;
}

const char *fr_http_method(const fr_http_request *request)
{
    (void)request;
    return "";
}

const char *fr_http_path(const fr_http_request *request)
{
    (void)request;
    return "";
}

const char *fr_http_header(const fr_http_request *request, const char *name)
{
    (void)request, (void)name;
    return NULL;
}

const char *fr_http_body(const fr_http_request *request, size_t *bytes)
{
    (void)request;
    *bytes = 0;
    return "";
}

void fr_http_answer(fr_http_request *request, int status, const char *type, const void *body, size_t bytes)
{
    (void)request, (void)status, (void)type, (void)body, (void)bytes;
}

void fr_http_begin(fr_http_request *request, int status, const char *type)
{
    (void)request, (void)status, (void)type;
}

bool fr_http_write(fr_http_request *request, const void *bytes, size_t count)
{
    (void)request, (void)bytes, (void)count;
    return false;
}

void fr_http_end(fr_http_request *request)
{
    (void)request;
}
#endif
