/* cli/run_folder.c: reads run.json and log.jsonl back. */
#include <math.h>
#include <string.h>

#include "run_folder.h"

enum { RUN_SCHEMA_NEWEST = 1 };

double cli_number(const json_t *record, const char *key)
{
    json_t *value = json_object_get(record, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

const char *cli_string(const json_t *record, const char *key)
{
    const char *text = json_string_value(json_object_get(record, key));
    return text ? text : "";
}

fr_status cli_run_record(const char *folder, json_t **record, fr_error *error)
{
    if (!fr_path_is_folder(folder))
        return fr_error_set(error, FR_BAD_DATA, folder, "give the folder that --out named",
                            "no such run folder");
    char path[1200];
    if (!fr_path_exists(fr_path_join(path, sizeof path, folder, "run.json")))
        return fr_error_set(error, FR_BAD_DATA, path, "give the folder that --out named",
                            "no such file: not a run folder, or a damaged one");
    FR_TRY(cli_read_json(folder, "run.json", record, error));
    json_int_t schema = json_integer_value(json_object_get(*record, "schema"));
    if (schema >= 1 && schema <= RUN_SCHEMA_NEWEST)
        return FR_OK;
    json_decref(*record);
    *record = NULL;
    if (schema < 1)
        return fr_error_set(error, FR_BAD_DATA, folder, "give the folder that --out named",
                            "its run.json is not the record of a run");
    return fr_error_set(error, FR_BAD_DATA, folder, "update frontier: a newer version wrote this run",
                        "run.json has schema %lld, this frontier reads 1 to %d", (long long)schema,
                        RUN_SCHEMA_NEWEST);
}

static int64_t count_lines(const char *text, size_t bytes)
{
    int64_t lines = 0;
    for (const char *at = text, *end = text + bytes; at < end && (at = memchr(at, '\n', (size_t)(end - at)));
         at++)
        lines++;
    return lines;
}

static bool allocate_columns(fr_arena *arena, cli_run_log *log, int64_t lines)
{
    double **columns[] = {&log->charged_s, &log->loss,     &log->lr,     &log->tokens_per_s,
                          &log->grad_norm, &log->scored_s, &log->val_bpb};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (!(*columns[i] = fr_arena_alloc(arena, (size_t)(lines + 1) * sizeof(double))))
            return false;
    return true;
}

static void take_line(cli_run_log *log, const json_t *line)
{
    double charged = cli_number(line, "charged_s");
    if (json_object_get(line, "val_bpb")) {
        log->scored_s[log->scores] = charged;
        log->val_bpb[log->scores++] = cli_number(line, "val_bpb");
        return;
    }
    int64_t i = log->count++;
    log->charged_s[i] = charged;
    log->loss[i] = cli_number(line, "loss");
    log->lr[i] = cli_number(line, "lr");
    log->tokens_per_s[i] = cli_number(line, "tokens_per_s");
    log->grad_norm[i] = cli_number(line, "grad_norm");
}

fr_status cli_run_log_read(fr_arena *arena, const char *folder, cli_run_log *log, fr_error *error)
{
    char path[1200], where[1300];
    char *text;
    size_t bytes;
    fr_path_join(path, sizeof path, folder, "log.jsonl");
    FR_TRY(fr_file_read(arena, path, &text, &bytes, error));
    int64_t lines = count_lines(text, bytes);
    *log = (cli_run_log){0};
    if (!allocate_columns(arena, log, lines))
        return fr_error_memory(error, (size_t)lines * 56, path);
    const char *at = text;
    for (int64_t number = 1; number <= lines; number++) {
        const char *end = memchr(at, '\n', (size_t)(text + bytes - at));
        json_error_t problem;
        json_t *line = json_loadb(at, (size_t)(end - at), 0, &problem);
        snprintf(where, sizeof where, "%s:%lld", path, (long long)number);
        if (!line)
            return fr_error_set(error, FR_BAD_DATA, where, NULL, "not valid JSON: %s", problem.text);
        take_line(log, line);
        json_decref(line);
        at = end + 1;
    }
    return FR_OK;
}
