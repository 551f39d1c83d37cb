/* clock_log.h: the record a charged clock leaves, written and read back.
 *
 * One JSON object per line: t_ns (monotonic), boot_id, event, step, progress, charged_s. Events:
 *   start   the clock was made (with source, budget_s, reserve_s, startup_cap_s, free_steps, max_steps)
 *   charge  charging began; startup_s were free
 *   step    a step was completed: the progress it used, the charge after it
 *   drop    a step was begun and dropped
 *   stop    no further step; the final charge, over_budget
 *   resume  like start, for a saved run that continues at `step`: what was logged from there on is void
 *
 * Reals have 17 digits, so they read back to the same bits.
 */
#ifndef FRONTIER_BASE_CLOCK_LOG_H
#define FRONTIER_BASE_CLOCK_LOG_H
#include "frontier/base.h"

#define FR_CLOCK_LOG_NAME "clock.jsonl"

typedef struct fr_clock_log {
    int descriptor; /* -1: no log is kept */
    int64_t length; /* bytes of whole lines; -1 until the first event decides between a new log and a resumed
                       one */
    char boot_id[40];
    char *path;
    fr_error failure; /* the first one; afterwards nothing is written */
} fr_clock_log;

typedef struct fr_clock_event {
    const char *name;
    int64_t t_ns, step;
    double progress, charged;
    const char *details; /* further JSON members, starting with a comma, or NULL */
} fr_clock_event;

/* Opens (creates) and locks without touching what is there. `path` NULL: every call below does nothing. */
fr_status fr_clock_log_open(fr_clock_log *log, const char *path, fr_error *error);
/* The next event continues the existing log: a torn last line is cut off. Without this the first event
 * empties it. */
void fr_clock_log_continue(fr_clock_log *log);
void fr_clock_log_write(fr_clock_log *log, const fr_clock_event *event);
void fr_clock_log_close(fr_clock_log *log);

typedef struct fr_clock_record {
    double progress, charged;
    bool dropped;
} fr_clock_record;

/* The steps that count, in order: records[i] is step first + i. Only the last one can be dropped. */
typedef struct fr_clock_history {
    fr_clock_record *records;
    int64_t first, count, capacity;
    double budget;       /* as logged; 0 = none */
    double startup;      /* free seconds */
    bool stopped;        /* the log has its stop; otherwise the run was cut off */
    double stop_charged; /* the charge at the stop, or at the last event */
    bool torn;           /* the last line was cut off */
} fr_clock_history;

/* `path`: a run folder or a clock log. Hostile content gives FR_BAD_DATA with path:line. */
fr_status fr_clock_history_load(fr_clock_history *history, const char *path, fr_error *error);
void fr_clock_history_release(fr_clock_history *history);

#endif
