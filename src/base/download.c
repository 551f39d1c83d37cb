/* download.c: several files at once, politely, until each is whole or one cannot be had.
 *
 * One libcurl multi handle in one thread: at most four transfers run, others wait for a place or for the end of their
 * pause. A retry goes on where the last attempt stopped (download_transfer.c decides whether it may), after a pause
 * that doubles or that the server named. A file that arrived is checked before it gets its name: size and SHA-256 where
 * the caller or the server named them, and the bytes it begins and ends with, which tells a file from the page that
 * a captive portal serves in its place. What fails a check is fetched again from its first byte.
 *
 * The first file that cannot be had ends the whole call: with a server or a disk gone, the others would fail too. Whatever
 * the reason to stop, unfinished parts stay on disk, and the same call goes on from them.
 */
#include "base/download.h"

#include <math.h>
#include <string.h>

enum { MOST_RETRIES = 1000, MOST_STALL = 3600 };

static fr_status check_address(const char *url, fr_error *error)
{
    if (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0)
        return FR_OK;
    return fr_error_set(error, FR_BAD_USAGE, url, "it looks like https://host/path", "not an http or https address");
}

#ifdef FR_HAVE_CURL
#include "base/download_transfer.h"

#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 200, LONGEST_PAUSE = 60 };

typedef struct download_run {
    const download_options *options;
    CURLM *multi;
    transfer *list;
    int count, running, done;
} download_run;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- checks of what arrived ---- */

static bool ends_right(const transfer *t)
{
    char start[16], end[16];
    size_t size = t->file->magic ? strlen(t->file->magic) : 0;
    if (size == 0)
        return true;
    return size <= sizeof start && t->part.bytes >= (int64_t)(2 * size) &&
           pread(t->part.descriptor, start, size, 0) == (ssize_t)size &&
           pread(t->part.descriptor, end, size, (off_t)(t->part.bytes - (int64_t)size)) == (ssize_t)size &&
           memcmp(start, t->file->magic, size) == 0 && memcmp(end, t->file->magic, size) == 0;
}

static fr_status check_arrived(transfer *t, fr_error *error)
{
    download_file *file = t->file;
    const char *want = file->sha256 ? file->sha256 : t->part.sha256;
    int64_t linked = t->response.linked_size;
    if (linked >= 0 && linked != t->part.bytes)
        return fr_error_set(error, FR_BAD_DATA, file->url, "the server's copy is damaged, or another file",
                            "%lld bytes came, it should have %lld", (long long)t->part.bytes, (long long)linked);
    if (!ends_right(t))
        return fr_error_set(error, FR_BAD_DATA, file->url, "look at what the address serves, in a browser",
                            "what came does not begin and end with '%s': another kind of file", file->magic);
    FR_TRY(fr_sha256_file(t->part.path, file->got_sha256, error));
    if (want[0] && strcmp(want, file->got_sha256) != 0)
        return fr_error_set(error, FR_BAD_DATA, file->url, "the server's copy is damaged, or another file",
                            "its SHA-256 is %.16s..., it should be %.16s...", file->got_sha256, want);
    return FR_OK;
}

static fr_status keep(download_run *run, transfer *t, fr_error *error)
{
    t->file->bytes = t->part.bytes;
    FR_TRY(download_part_finish(&t->part, error));
    t->file->finished = t->done = true;
    run->done++;
    return run->options->finished ? run->options->finished(run->options->context, t->file, error) : FR_OK;
}

/* ---- attempts ---- */

static fr_status start(download_run *run, transfer *t, fr_error *error)
{
    if (t->part.descriptor < 0)
        FR_TRY(download_part_open(&t->part, t->file->path, t->file->url, error));
    FR_TRY(transfer_begin(t, run->options, error));
    run->running++;
    if (curl_multi_add_handle(run->multi, t->easy) != CURLM_OK)
        return fr_error_memory(error, 1 << 16, "a connection");
    return FR_OK;
}

static void stop(download_run *run, transfer *t)
{
    if (!t->running)
        return;
    curl_multi_remove_handle(run->multi, t->easy);
    transfer_end_attempt(t);
    run->running--;
}

/* Another attempt after a pause, or none. */
static fr_status again(const download_run *run, transfer *t, fr_status status, const fr_error *reason)
{
    if (t->attempts > run->options->retries)
        return status;
    double pause = run->options->backoff * pow(2, t->attempts - 1);
    pause = t->response.retry_after > pause ? t->response.retry_after : pause;
    pause = pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE;
    t->not_before = now() + pause;
    fr_progress_message(run->options->progress, "%s: %s; attempt %d of %d in %.1f s", reason->where, reason->what, t->attempts + 1,
                        run->options->retries + 1, pause);
    return FR_OK;
}

static fr_status settle(download_run *run, transfer *t, CURLcode code, fr_error *error)
{
    fr_error reason = {0};
    transfer_end end = transfer_judge(t, code, &reason);
    fr_status status = reason.status;
    stop(run, t);
    if (end == TRANSFER_WHOLE) {
        status = check_arrived(t, &reason);
        if (status == FR_OK)
            return keep(run, t, error);
        end = status == FR_BAD_DATA ? TRANSFER_RESTART : TRANSFER_FAILED;
    }
    if (end == TRANSFER_RESTART)
        FR_TRY(download_part_restart(&t->part, error));
    if (end != TRANSFER_FAILED)
        status = again(run, t, status, &reason);
    if (status != FR_OK && error)
        *error = reason;
    return status;
}

static fr_status start_waiting(download_run *run, fr_error *error)
{
    double time = now();
    for (int i = 0; i < run->count && run->running < run->options->connections; i++) {
        transfer *t = &run->list[i];
        if (!t->done && !t->running && t->not_before <= time)
            FR_TRY(start(run, t, error));
    }
    return FR_OK;
}

static fr_status settle_ended(download_run *run, fr_error *error)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(run->multi, &left)) != NULL) {
        char *context = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &context);
        FR_TRY(settle(run, (transfer *)(void *)context, code, error));
    }
    return FR_OK;
}

static void report(const download_run *run)
{
    char note[60];
    double done = 0, total = 0;
    for (int i = 0; i < run->count; i++) {
        const transfer *t = &run->list[i];
        int64_t bytes = t->done ? t->file->bytes : t->part.bytes;
        int64_t whole = t->done ? bytes : t->part.total >= 0 ? t->part.total : run->options->guess;
        done += (double)bytes;
        total += (double)(whole > bytes ? whole : bytes);
    }
    snprintf(note, sizeof note, "%d of %d files", run->done, run->count);
    fr_progress_update(run->options->progress, run->options->phase, done, total, note);
}

static fr_status loop(download_run *run, fr_error *error)
{
    while (run->done < run->count) {
        int active;
        FR_TRY(start_waiting(run, error));
        if (curl_multi_perform(run->multi, &active) != CURLM_OK ||
            curl_multi_poll(run->multi, NULL, 0, WAIT_MS, NULL) != CURLM_OK)
            return fr_error_set(error, FR_BAD_ENVIRONMENT, run->list[0].file->url, NULL, "libcurl cannot go on");
        FR_TRY(settle_ended(run, error));
        report(run);
        if (run->done < run->count && fr_progress_stop(run->options->progress))
            return fr_error_set(error, FR_STOPPED, run->options->phase, "run it again: it goes on where it stopped",
                                "stopped with %d of %d files finished", run->done, run->count);
    }
    return FR_OK;
}

static fr_status run_all(download_run *run, download_file *files, fr_error *error)
{
    for (int i = 0; i < run->count; i++) {
        run->list[i].file = &files[i];
        run->list[i].part.descriptor = run->list[i].part.total = -1;
    }
    return loop(run, error);
}

static fr_status with_curl(download_file *files, int count, const download_options *options, fr_error *error)
{
    download_run run = {.options = options, .count = count};
    run.list = fr_allocate((size_t)count * sizeof *run.list + 1);
    run.multi = curl_multi_init();
    fr_status status = run.list && run.multi ? FR_OK : fr_error_memory(error, (size_t)count * sizeof *run.list, "the downloads");
    if (status == FR_OK)
        status = run_all(&run, files, error);
    for (int i = 0; run.list && i < count; i++) {
        stop(&run, &run.list[i]);
        if (run.list[i].file && run.list[i].part.bytes == 0)
            download_part_discard(&run.list[i].part); /* nothing to go on from */
        else if (run.list[i].file)
            download_part_close(&run.list[i].part);
    }
    if (run.multi)
        curl_multi_cleanup(run.multi);
    fr_deallocate(run.list);
    return status;
}

static size_t ignore(char *data, size_t size, size_t count, void *context)
{
    (void)data;
    (void)context;
    return size * count;
}

static fr_status ask_size(CURL *easy, const char *url, double stall, int64_t *bytes, fr_error *error)
{
    long code = 0;
    curl_off_t length = -1;
    transfer_configure(easy, url, stall);
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    CURLcode result = curl_easy_perform(easy);
    if (result != CURLE_OK)
        return transfer_explain(result, url, stall, error);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    if (code != 200)
        return fr_error_set(error, FR_BAD_DATA, url, "check the address", "the server answers HTTP %ld", code);
    curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    *bytes = (int64_t)length;
    return FR_OK;
}

static fr_status size_with_curl(const char *url, double stall, int64_t *bytes, fr_error *error)
{
    CURL *easy = curl_easy_init();
    fr_status status = easy ? ask_size(easy, url, stall, bytes, error) : fr_error_memory(error, 1 << 16, "a connection");
    curl_easy_cleanup(easy);
    return status;
}

static fr_status library_begin(fr_error *error)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
               ? FR_OK
               : fr_error_set(error, FR_BAD_ENVIRONMENT, "libcurl", NULL, "cannot start");
}

static void library_end(void)
{
    curl_global_cleanup();
}
#else
static fr_status library_begin(fr_error *error)
{
    return fr_error_set(error, FR_BAD_ENVIRONMENT, "libcurl", "install libcurl4-openssl-dev (make deps), then make clean all",
                        "downloads need libcurl, and this program was built without it");
}

static void library_end(void)
{
}

static fr_status with_curl(download_file *files, int count, const download_options *options, fr_error *error)
{
    (void)files;
    (void)count;
    (void)options;
    return library_begin(error);
}

static fr_status size_with_curl(const char *url, double stall, int64_t *bytes, fr_error *error)
{
    (void)url;
    (void)stall;
    (void)bytes;
    return library_begin(error);
}
#endif

fr_status fr_download(download_file *files, int count, const download_options *options, fr_error *error)
{
    if (options->connections < 1 || options->connections > DOWNLOAD_MOST_CONNECTIONS)
        return fr_error_set(error, FR_BAD_USAGE, "connections", NULL, "%d is not in 1..%d", options->connections,
                            DOWNLOAD_MOST_CONNECTIONS);
    if (options->retries < 0 || options->retries > MOST_RETRIES)
        return fr_error_set(error, FR_BAD_USAGE, "retries", NULL, "%d is not in 0..%d", options->retries, MOST_RETRIES);
    if (!(options->stall >= 0 && options->stall <= MOST_STALL))
        return fr_error_set(error, FR_BAD_USAGE, "timeout", "30s is a good choice", "not between nothing and an hour");
    for (int i = 0; i < count; i++)
        FR_TRY(check_address(files[i].url, error));
    FR_TRY(library_begin(error));
    fr_status status = count > 0 ? with_curl(files, count, options, error) : FR_OK;
    library_end();
    return status;
}

fr_status fr_download_size(const char *url, double stall, int64_t *bytes, fr_error *error)
{
    *bytes = -1;
    stall = stall <= MOST_STALL ? stall : MOST_STALL;
    FR_TRY(check_address(url, error));
    FR_TRY(library_begin(error));
    fr_status status = size_with_curl(url, stall, bytes, error);
    library_end();
    return status;
}
