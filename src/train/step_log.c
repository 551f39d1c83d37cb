/* step_log.c: log.jsonl, where a run can be watched and plotted from.
 *
 * One JSON object per line and step, written out at once but not forced to the disk: the log is for people
 * and plots, the clock log and the checkpoints are what a resume rests on. A resumed run first cuts off
 * what it is about to compute again, so the log always tells one story from the first step to the last. A
 * number that JSON does not have (NaN) is written as null.
 */
#include "train/step_log.h"

#include "base/files.h"
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Bytes of the leading lines that stay. */
static size_t kept_bytes(const char *text, size_t bytes, int64_t keep_steps)
{
    size_t kept = 0;
    while (kept < bytes) {
        const char *end = memchr(text + kept, '\n', bytes - kept);
        json_t *line = NULL;
        int64_t step = -1;
        if (!end ||
            fr_json_parse(&line, text + kept, (size_t)(end - text) - kept, "log.jsonl", NULL) != FR_OK)
            break;
        bool stays = fr_json_get_int(line, "step", 0, INT64_MAX, &step, "log.jsonl", NULL) == FR_OK &&
                     step <= keep_steps;
        json_decref(line);
        if (!stays)
            break;
        kept = (size_t)(end - text) + 1;
    }
    return kept;
}

fr_status fr_step_log_open(fr_step_log *log, const char *path, int64_t keep_steps, fr_error *error)
{
    fr_mapping old = {(const uint8_t *)"", 0};
    size_t kept = 0;
    if (keep_steps > 0 && fr_path_exists(path)) {
        FR_TRY(fr_mapping_init(&old, path, error));
        kept = kept_bytes((const char *)old.data, old.bytes, keep_steps);
        fr_mapping_release(&old);
    }
    log->path = fr_allocate(strlen(path) + 1);
    if (!log->path)
        return fr_error_memory(error, strlen(path) + 1, "the log of steps");
    log->stream = fopen(path, kept ? "r+e" : "we");
    if (!log->stream || ftruncate(fileno(log->stream), (off_t)kept) != 0 ||
        fseek(log->stream, 0, SEEK_END) != 0) {
        int code = errno;
        fr_step_log_close(log);
        return fr_file_error(error, path, "open", code);
    }
    memcpy(log->path, path, strlen(path) + 1);
    return FR_OK;
}

static void add_real(fr_buffer *out, const char *key, double value, int digits)
{
    if (isfinite(value))
        fr_buffer_printf(out, ",\"%s\":%.*g", key, digits, value);
    else
        fr_buffer_printf(out, ",\"%s\":null", key);
}

static fr_status write_line(fr_step_log *log, fr_buffer *line, fr_error *error)
{
    fr_buffer_printf(line, "}\n");
    fr_status status = FR_OK;
    if (line->failed)
        status = fr_error_memory(error, line->length, "a line of the log");
    else if (fwrite(line->data, 1, line->length, log->stream) != line->length || fflush(log->stream) != 0)
        status = fr_file_error(error, log->path, "write", errno);
    fr_buffer_release(line);
    return status;
}

fr_status fr_step_log_write(fr_step_log *log, const fr_step_line *step, fr_error *error)
{
    fr_buffer line;
    fr_buffer_init(&line, 0);
    fr_buffer_printf(&line, "{\"step\":%lld", (long long)step->step);
    add_real(&line, "loss", step->loss, 9);
    add_real(&line, "lr", step->lr, 6);
    add_real(&line, "charged_s", step->charged, 12);
    add_real(&line, "tokens_per_s", step->tokens_per_s, 7);
    add_real(&line, "grad_norm", step->gradient_norm, 6);
    add_real(&line, "progress", step->progress, 9);
    add_real(&line, "momentum", step->momentum, 6);
    add_real(&line, "epoch", step->epochs, 6);
    fr_buffer_printf(&line, ",\"batch_tokens\":%lld,\"tokens\":%lld", (long long)step->batch_tokens,
                     (long long)step->tokens);
    return write_line(log, &line, error);
}

fr_status fr_step_log_write_score(fr_step_log *log, int64_t step, double charged, double val_bpb,
                                  fr_error *error)
{
    fr_buffer line;
    fr_buffer_init(&line, 0);
    fr_buffer_printf(&line, "{\"step\":%lld", (long long)step);
    add_real(&line, "charged_s", charged, 12);
    add_real(&line, "val_bpb", val_bpb, 9);
    return write_line(log, &line, error);
}

void fr_step_log_close(fr_step_log *log)
{
    if (log->stream)
        fclose(log->stream);
    fr_deallocate(log->path);
    *log = (fr_step_log){0};
}
