/* download_transfer.c: one HTTP exchange, and what its answer means.
 *
 * A request for the rest of a file says "only if it is still the same" (Range with If-Range). The answer decides:
 * 206 with the range that was asked for is appended; 200 is the whole file and starts the part over; 416 means that
 * nothing is missing or that the file changed. Headers are read from every hop of a redirect, because the first hop of a
 * file hub names the file's size and SHA-256 (X-Linked-Size, X-Linked-Etag) and the last one, some content network,
 * names its own. Redirects stay on http and https, and never go from https back to http.
 * A server that is busy or broken (408, 429, 5xx, a cut connection) is asked again; one that says no is believed.
 */
#ifdef FR_HAVE_CURL
#include "base/download_transfer.h"

#include "frontier/version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_REDIRECTS = 8, CONNECT_SECONDS = 30, MOST_RETRY_AFTER = 60 };

/* ---- headers ---- */

static int64_t number_of(const char *text)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    return end != text && value >= 0 ? (int64_t)value : -1;
}

static void take_etag(transfer_response *response, const char *value)
{
    response->etag[0] = '\0';
    if (value[0] == '"' && strlen(value) < sizeof response->etag) /* W/"..." does not promise equal bytes */
        memcpy(response->etag, value, strlen(value) + 1);
}

static void take_modified(transfer_response *response, const char *value)
{
    if (strlen(value) < sizeof response->modified)
        memcpy(response->modified, value, strlen(value) + 1);
}

static void take_length(transfer_response *response, const char *value)
{
    response->length = number_of(value);
}

/* "bytes 100-199/200" or "bytes * /200". */
static void take_range(transfer_response *response, const char *value)
{
    const char *slash = strchr(value, '/');
    if (strncasecmp(value, "bytes ", 6) != 0 || !slash)
        return;
    response->range_start = value[6] == '*' ? -1 : number_of(value + 6);
    response->range_total = number_of(slash + 1);
}

static void take_retry(transfer_response *response, const char *value)
{
    int64_t seconds = number_of(value); /* a date instead of seconds counts as not said */
    response->retry_after = seconds > MOST_RETRY_AFTER ? MOST_RETRY_AFTER : seconds > 0 ? (double)seconds : 0;
}

static void take_linked_size(transfer_response *response, const char *value)
{
    response->linked_size = number_of(value);
}

static void take_linked_hash(transfer_response *response, const char *value)
{
    value += *value == '"';
    if (strspn(value, "0123456789abcdef") == 64)
        snprintf(response->linked_sha256, sizeof response->linked_sha256, "%.64s", value);
}

static const struct {
    const char *name;
    void (*take)(transfer_response *response, const char *value);
} known_headers[] = {
    {"etag", take_etag},          {"last-modified", take_modified},      {"content-length", take_length},
    {"content-range", take_range}, {"retry-after", take_retry},          {"x-linked-size", take_linked_size},
    {"x-linked-etag", take_linked_hash},
};

/* The next hop's answer: what the hub said of the file stays, what a hop said of its own answer goes. */
static void next_response(transfer_response *response, const char *line)
{
    transfer_response next = {.length = -1, .range_start = -1, .range_total = -1, .linked_size = response->linked_size};
    memcpy(next.linked_sha256, response->linked_sha256, sizeof next.linked_sha256);
    const char *space = strchr(line, ' ');
    next.code = space ? strtol(space, NULL, 10) : 0;
    *response = next;
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    transfer *t = context;
    char line[600];
    size_t bytes = size * count, length = bytes < sizeof line - 1 ? bytes : sizeof line - 1;
    memcpy(line, data, length);
    while (length > 0 && isspace((unsigned char)line[length - 1]))
        length--;
    line[length] = '\0';
    if (strncmp(line, "HTTP/", 5) == 0) {
        next_response(&t->response, line);
        return bytes;
    }
    char *colon = strchr(line, ':');
    if (!colon || bytes >= sizeof line)
        return bytes;
    *colon = '\0';
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    for (size_t i = 0; i < sizeof known_headers / sizeof *known_headers; i++)
        if (strcasecmp(line, known_headers[i].name) == 0)
            known_headers[i].take(&t->response, value);
    return bytes;
}

/* ---- the body ---- */

static fr_status adopt(transfer *t, int64_t total, fr_error *error)
{
    snprintf(t->part.etag, sizeof t->part.etag, "%s", t->response.etag);
    snprintf(t->part.modified, sizeof t->part.modified, "%s", t->response.modified);
    snprintf(t->part.sha256, sizeof t->part.sha256, "%s", t->response.linked_sha256);
    t->part.total = total >= 0 ? total : t->response.linked_size;
    return download_part_save(&t->part, t->file->url, error);
}

/* Before the first byte of an answer that carries the file. */
static fr_status begin_body(transfer *t, fr_error *error)
{
    t->response.began = true;
    if (t->response.code == 206) {
        bool fits = t->response.range_start == t->part.bytes &&
                    (t->part.total < 0 || t->response.range_total < 0 || t->response.range_total == t->part.total);
        if (!fits)
            return fr_error_set(error, FR_BAD_DATA, t->file->url, NULL, "the server sent another part than the one asked for");
        if (t->part.total < 0)
            t->part.total = t->response.range_total;
        return FR_OK;
    }
    FR_TRY(download_part_restart(&t->part, error));
    return adopt(t, t->response.length, error);
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    transfer *t = context;
    size_t bytes = size * count;
    if (t->response.code != 200 && t->response.code != 206)
        return bytes; /* a page about an error */
    if (!t->response.began)
        t->status = begin_body(t, &t->error);
    if (t->status == FR_OK && t->part.bytes + (int64_t)bytes > t->file->most_bytes)
        t->status = fr_error_set(&t->error, FR_BAD_DATA, t->file->url, NULL, "more than %lld bytes, which is no sane size for it",
                                 (long long)t->file->most_bytes);
    if (t->status == FR_OK)
        t->status = download_part_append(&t->part, data, bytes, &t->error);
    return t->status == FR_OK ? bytes : 0;
}

/* ---- the request ---- */

void transfer_configure(CURL *easy, const char *url, double stall)
{
    bool secure = strncasecmp(url, "https:", 6) == 0;
    curl_easy_setopt(easy, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
#else
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS, (long)(secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)MOST_REDIRECTS);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "frontier/" FR_VERSION);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, stall < CONNECT_SECONDS ? (long)(stall + 1) : (long)CONNECT_SECONDS);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, stall < 1 ? 1L : (long)stall);
}

fr_status transfer_begin(transfer *t, const download_options *options, fr_error *error)
{
    char line[400];
    memset(&t->response, 0, sizeof t->response);
    t->response.length = t->response.linked_size = -1;
    t->status = FR_OK;
    t->stall = options->stall;
    t->easy = curl_easy_init();
    if (!t->easy)
        return fr_error_memory(error, 1 << 16, "a connection");
    transfer_configure(t->easy, t->file->url, options->stall);
    curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    if (download_part_resumable(&t->part)) {
        snprintf(line, sizeof line, "%lld-", (long long)t->part.bytes);
        curl_easy_setopt(t->easy, CURLOPT_RANGE, line);
        snprintf(line, sizeof line, "If-Range: %s", t->part.etag[0] ? t->part.etag : t->part.modified);
        t->headers = curl_slist_append(NULL, line);
        curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
    }
    t->running = true;
    t->attempts++;
    return FR_OK;
}

void transfer_end_attempt(transfer *t)
{
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    t->easy = NULL;
    t->headers = NULL;
    t->running = false;
}

/* ---- the verdict ---- */

/* Codes with a better reason than libcurl's own; the rest is the way to the server. */
static const struct {
    CURLcode code;
    fr_status status;
    const char *what, *hint;
} reasons[] = {
    {CURLE_UNSUPPORTED_PROTOCOL, FR_BAD_DATA, "it leads to an address that is not http or https, or from https to http",
     "check the address"},
    {CURLE_TOO_MANY_REDIRECTS, FR_BAD_DATA, "it redirects again and again", "check the address"},
    {CURLE_URL_MALFORMAT, FR_BAD_USAGE, "not an address", "it looks like https://host/path"},
    {CURLE_COULDNT_RESOLVE_HOST, FR_BAD_ENVIRONMENT, "no such host, or no network",
     "check the network; behind a proxy set https_proxy"},
    {CURLE_COULDNT_RESOLVE_PROXY, FR_BAD_ENVIRONMENT, "no such proxy", "check https_proxy and http_proxy"},
    {CURLE_COULDNT_CONNECT, FR_BAD_ENVIRONMENT, "cannot connect", "check the network; behind a proxy set https_proxy"},
    {CURLE_PEER_FAILED_VERIFICATION, FR_BAD_ENVIRONMENT, "the server's certificate is not trusted",
     "install ca-certificates, or set CURL_CA_BUNDLE's file as your proxy needs it"},
    {CURLE_PARTIAL_FILE, FR_BAD_ENVIRONMENT, "the connection ended before the file did", "run it again: it goes on where it stopped"},
};

fr_status transfer_explain(CURLcode code, const char *url, double stall, fr_error *error)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].code == code)
            return fr_error_set(error, reasons[i].status, url, reasons[i].hint, "%s", reasons[i].what);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return fr_error_set(error, FR_BAD_ENVIRONMENT, url, "run it again: it goes on where it stopped",
                            "no data for %.0f seconds", stall < 1 ? 1.0 : stall);
    return fr_error_set(error, FR_BAD_ENVIRONMENT, url, "run it again: it goes on where it stopped", "%s", curl_easy_strerror(code));
}

static bool final_code(CURLcode code)
{
    return code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_URL_MALFORMAT ||
           code == CURLE_PEER_FAILED_VERIFICATION;
}

static transfer_end judge_code(const transfer *t, fr_error *error)
{
    long code = t->response.code;
    bool busy = code == 408 || code == 429 || code >= 500;
    if (code == 416 && t->part.total >= 0 && t->part.bytes == t->part.total)
        return TRANSFER_WHOLE;
    if (code == 404 || code == 410)
        fr_error_set(error, FR_BAD_DATA, t->file->url, "check the address", "the server does not have it (HTTP %ld)", code);
    else
        fr_error_set(error, busy || code == 416 ? FR_BAD_ENVIRONMENT : FR_BAD_DATA, t->file->url,
                     busy ? "run it again later: it goes on where it stopped" : "check the address", "the server answers HTTP %ld", code);
    return code == 416 ? TRANSFER_RESTART : busy ? TRANSFER_AGAIN : TRANSFER_FAILED;
}

transfer_end transfer_judge(transfer *t, CURLcode code, fr_error *error)
{
    bool carries = t->response.code == 200 || t->response.code == 206;
    if (t->status != FR_OK) { /* our side refused a piece: the disk, or an answer that does not fit */
        *error = t->error;
        return t->status == FR_BAD_DATA && t->response.code == 206 ? TRANSFER_RESTART : TRANSFER_FAILED;
    }
    if (code != CURLE_OK) {
        transfer_explain(code, t->file->url, t->stall, error);
        return final_code(code) ? TRANSFER_FAILED : TRANSFER_AGAIN;
    }
    if (!carries)
        return judge_code(t, error);
    if (!t->response.began && (t->status = begin_body(t, &t->error)) != FR_OK) { /* an empty file */
        *error = t->error;
        return TRANSFER_FAILED;
    }
    if (t->part.total < 0 || t->part.bytes == t->part.total)
        return TRANSFER_WHOLE;
    fr_error_set(error, FR_BAD_DATA, t->file->url, "the server's copy is damaged, or another file",
                 "%lld bytes came, the server promised %lld", (long long)t->part.bytes, (long long)t->part.total);
    return TRANSFER_RESTART;
}
#else
typedef int download_transfer_needs_curl; /* an empty file is not C */
#endif
