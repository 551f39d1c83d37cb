/* clock_log.c: writing and reading the clock's record.
 *
 * Each event is one write of one line, so a killed process leaves whole lines and at most one torn tail,
 * which the reader leaves out and a resumed run cuts off. A failed write (full disk) takes its partial line
 * back and is remembered: the next end of a step reports it, and the log stays a whole record of the steps
 * before.
 *
 * Reading folds the events into the steps that count. A resume at step s takes back everything from s on,
 * because those steps were computed again from the checkpoint, with the progress values that follow.
 */
#include "base/clock_log.h"
#include "base/files.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- writing ----------------------------------------------------------------------------------- */

static void read_boot_id(char out[40])
{
    out[0] = '\0';
    int descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    ssize_t got = read(descriptor, out, 36);
    close(descriptor);
    out[got > 0 ? got : 0] = '\0';
    out[strspn(out, "0123456789abcdef-")] = '\0';
}

/* Two processes in one run folder would mix their runs. The lock ends with the process, however it ends. */
static fr_status lock_log(const fr_clock_log *log, fr_error *error)
{
    if (flock(log->descriptor, LOCK_EX | LOCK_NB) == 0)
        return FR_OK;
    if (errno != EWOULDBLOCK)
        return fr_file_error(error, log->path, "lock", errno);
    return fr_error_set(error, FR_BAD_USAGE, log->path, "wait for it, or choose another folder",
                        "another process is writing this run");
}

fr_status fr_clock_log_open(fr_clock_log *log, const char *path, fr_error *error)
{
    *log = (fr_clock_log){.descriptor = -1, .length = -1};
    if (!path)
        return FR_OK;
    size_t size = strlen(path) + 1;
    log->path = fr_allocate(size);
    if (!log->path)
        return fr_error_memory(error, size, "a clock log");
    memcpy(log->path, path, size);
    read_boot_id(log->boot_id);
    log->descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    fr_status status =
        log->descriptor >= 0 ? lock_log(log, error) : fr_file_error(error, path, "create", errno);
    if (status != FR_OK)
        fr_clock_log_close(log);
    return status;
}

static void remember_failure(fr_clock_log *log, int code)
{
    if (log->failure.status == FR_OK)
        fr_file_error(&log->failure, log->path, "write", code);
}

/* Where the last whole line ends. */
static int64_t whole_lines(int descriptor)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return -1;
    char chunk[4096];
    for (int64_t end = info.st_size; end > 0;) {
        size_t size = end < (int64_t)sizeof chunk ? (size_t)end : sizeof chunk;
        if (pread(descriptor, chunk, size, end - (int64_t)size) != (ssize_t)size)
            return -1;
        const char *newline = memrchr(chunk, '\n', size);
        if (newline)
            return end - (int64_t)size + (newline - chunk) + 1;
        end -= (int64_t)size;
    }
    return 0;
}

void fr_clock_log_continue(fr_clock_log *log)
{
    if (log->descriptor < 0)
        return;
    int64_t length = whole_lines(log->descriptor);
    if (length < 0 || ftruncate(log->descriptor, length) != 0)
        remember_failure(log, errno ? errno : EIO);
    else
        log->length = length;
}

static void append_line(fr_clock_log *log, const char *line, size_t size)
{
    size_t granted = fr_file_allowance(size), done = 0;
    int code = granted < size ? ENOSPC : 0;
    while (done < granted && code == 0) {
        ssize_t wrote = pwrite(log->descriptor, line + done, granted - done, log->length + (int64_t)done);
        if (wrote >= 0)
            done += (size_t)wrote;
        else if (errno != EINTR)
            code = errno;
    }
    if (code == 0) {
        log->length += (int64_t)size;
        return;
    }
    remember_failure(log, code);
    if (ftruncate(log->descriptor, log->length) != 0)
        remember_failure(log, errno); /* the torn tail stays; readers leave it out */
}

void fr_clock_log_write(fr_clock_log *log, const fr_clock_event *event)
{
    if (log->descriptor < 0 || log->failure.status != FR_OK)
        return;
    if (log->length < 0) {
        log->length = 0;
        if (ftruncate(log->descriptor, 0) != 0) {
            remember_failure(log, errno);
            return;
        }
    }
    char line[1024];
    int size = snprintf(line, sizeof line,
                        "{\"t_ns\":%lld,\"boot_id\":\"%s\",\"event\":\"%s\",\"step\":%lld,\"progress\":%.17g,"
                        "\"charged_s\":%.17g%s}\n",
                        (long long)event->t_ns, log->boot_id, event->name, (long long)event->step,
                        event->progress, event->charged, event->details ? event->details : "");
    if (size > 0 && size < (int)sizeof line)
        append_line(log, line, (size_t)size);
}

void fr_clock_log_close(fr_clock_log *log)
{
    if (log->descriptor >= 0)
        close(log->descriptor);
    fr_deallocate(log->path);
    log->path = NULL;
    log->descriptor = -1;
}

/* ---- reading ----------------------------------------------------------------------------------- */

typedef struct folding {
    fr_clock_history *history;
    const char *path;
} folding;

/* One line's members, checked. */
typedef struct line_fields {
    const char *event, *where;
    int64_t step;
    double progress, charged;
    const json_t *object;
} line_fields;

static fr_status push_record(fr_clock_history *history, fr_clock_record record, fr_error *error)
{
    if (history->count == history->capacity) {
        int64_t capacity = history->capacity ? history->capacity * 2 : 256;
        size_t bytes = (size_t)capacity * sizeof record;
        fr_clock_record *grown = fr_reallocate(history->records, bytes);
        if (!grown)
            return fr_error_memory(error, bytes, "a clock log");
        history->records = grown;
        history->capacity = capacity;
    }
    history->records[history->count++] = record;
    return FR_OK;
}

static fr_status fold_step(fr_clock_history *history, const line_fields *line, fr_error *error)
{
    if (history->count == 0)
        history->first = line->step;
    if (line->step != history->first + history->count)
        return fr_error_set(error, FR_BAD_DATA, line->where, NULL, "step %lld follows step %lld",
                            (long long)line->step, (long long)(history->first + history->count - 1));
    if (history->count > 0 && history->records[history->count - 1].dropped)
        return fr_error_set(error, FR_BAD_DATA, line->where, NULL, "a step follows the dropped step %lld",
                            (long long)(history->first + history->count - 1));
    history->stop_charged = line->charged;
    return push_record(
        history, (fr_clock_record){line->progress, line->charged, strcmp(line->event, "drop") == 0}, error);
}

static fr_status fold_resume(fr_clock_history *history, const line_fields *line, fr_error *error)
{
    int64_t kept = line->step - history->first;
    if (history->count > 0 && (kept < 0 || kept > history->count))
        return fr_error_set(error, FR_BAD_DATA, line->where, NULL,
                            "resumes at step %lld, which the log never reached", (long long)line->step);
    if (history->count > 0)
        history->count = kept;
    history->stop_charged = line->charged;
    history->stopped = false;
    return fr_json_get_real(line->object, "budget_s", &history->budget, line->where, error);
}

static fr_status fold_start(fr_clock_history *history, const line_fields *line, fr_error *error)
{
    FR_TRY(fr_json_get_real(line->object, "budget_s", &history->budget, line->where, error));
    if (history->count > 0)
        return fr_error_set(error, FR_BAD_DATA, line->where, NULL, "a second start inside the log");
    return FR_OK;
}

static fr_status fold_charge(fr_clock_history *history, const line_fields *line, fr_error *error)
{
    return fr_json_get_real(line->object, "startup_s", &history->startup, line->where, error);
}

static fr_status fold_stop(fr_clock_history *history, const line_fields *line, fr_error *error)
{
    (void)error;
    history->stopped = true;
    history->stop_charged = line->charged;
    return FR_OK;
}

static const struct {
    const char *event;
    fr_status (*fold)(fr_clock_history *history, const line_fields *line, fr_error *error);
} FOLDS[] = {{"start", fold_start}, {"charge", fold_charge}, {"step", fold_step},
             {"drop", fold_step},   {"stop", fold_stop},     {"resume", fold_resume}};

static fr_status fold_line(void *context, const json_t *object, int64_t number, fr_error *error)
{
    folding *f = context;
    char where[300];
    snprintf(where, sizeof where, "%.270s:%lld", f->path, (long long)number);
    line_fields line = {.where = where, .object = object};
    FR_TRY(fr_json_get_string(object, "event", &line.event, where, error));
    FR_TRY(fr_json_get_int(object, "step", 0, INT64_MAX / 2, &line.step, where, error));
    FR_TRY(fr_json_get_real(object, "progress", &line.progress, where, error));
    FR_TRY(fr_json_get_real(object, "charged_s", &line.charged, where, error));
    if (!(line.progress >= 0 && line.progress <= 1) || !(line.charged >= 0))
        return fr_error_set(error, FR_BAD_DATA, where, NULL, "progress %g or charge %g cannot be",
                            line.progress, line.charged);
    for (size_t i = 0; i < sizeof FOLDS / sizeof *FOLDS; i++)
        if (strcmp(FOLDS[i].event, line.event) == 0)
            return FOLDS[i].fold(f->history, &line, error);
    return fr_error_set(error, FR_BAD_DATA, where, "was it written by a newer version?",
                        "unknown clock event '%.40s'", line.event);
}

fr_status fr_clock_history_load(fr_clock_history *history, const char *path, fr_error *error)
{
    char inside[4096];
    *history = (fr_clock_history){0};
    if (fr_path_is_folder(path))
        path = fr_path_join(inside, sizeof inside, path, FR_CLOCK_LOG_NAME);
    fr_mapping mapping;
    FR_TRY(fr_mapping_init(&mapping, path, error));
    folding f = {history, path};
    fr_status status =
        fr_json_lines((const char *)mapping.data, mapping.bytes, path, fold_line, &f, &history->torn, error);
    fr_mapping_release(&mapping);
    if (status == FR_OK && history->count == 0)
        status = fr_error_set(error, FR_BAD_DATA, path, "replay a run that took at least one step",
                              "the clock log has no step");
    if (status != FR_OK)
        fr_clock_history_release(history);
    return status;
}

void fr_clock_history_release(fr_clock_history *history)
{
    fr_deallocate(history->records);
    *history = (fr_clock_history){0};
}
