/* cli/run_folder.h: a finished or stopped run as the reading commands (info, report, compare) see it. */
#ifndef FRONTIER_CLI_RUN_FOLDER_H
#define FRONTIER_CLI_RUN_FOLDER_H
#include "cli.h"

/* The columns of log.jsonl that readers use. Lines of steps and lines of periodic scores are kept apart; NaN where a
 * line has no number. */
typedef struct cli_run_log {
    int64_t count;
    double *charged_s, *loss, *lr, *tokens_per_s, *grad_norm;
    int64_t scores;
    double *scored_s, *val_bpb;
} cli_run_log;

/* Reads FOLDER/log.jsonl into the arena. A torn last line is ignored; another bad line is an error naming it. */
fr_status cli_run_log_read(fr_arena *arena, const char *folder, cli_run_log *log, fr_error *error);
double cli_number(const json_t *record, const char *key);                       /* NaN when absent */
const char *cli_string(const json_t *record, const char *key);                  /* "" when absent */
fr_status cli_run_record(const char *folder, json_t **record, fr_error *error); /* run.json, schema checked */

#endif
