/* step_log.h: log.jsonl, a line per step; see step_log.c. */
#ifndef FRONTIER_TRAIN_STEP_LOG_H
#define FRONTIER_TRAIN_STEP_LOG_H
#include "frontier/base.h"

typedef struct fr_step_log {
    FILE *stream;
    char *path;
} fr_step_log;

typedef struct fr_step_line {
    int64_t step, tokens, batch_tokens;
    double loss, lr, momentum, charged, tokens_per_s, gradient_norm, progress, epochs;
} fr_step_line;

/* Keeps the lines of steps up to `keep_steps` and drops the rest, a torn last line too; 0 starts a new log. */
fr_status fr_step_log_open(fr_step_log *log, const char *path, int64_t keep_steps, fr_error *error);
fr_status fr_step_log_write(fr_step_log *log, const fr_step_line *line, fr_error *error);
fr_status fr_step_log_write_score(fr_step_log *log, int64_t step, double charged, double val_bpb, fr_error *error);
void fr_step_log_close(fr_step_log *log);

#endif
