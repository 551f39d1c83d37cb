/* The inside of a CORE evaluation: one task while it is being scored, and its record in the log. */
#ifndef FRONTIER_EVAL_CORE_RUN_H
#define FRONTIER_EVAL_CORE_RUN_H
#include "frontier/core.h"

typedef struct core_run {
    fr_span_source source;
    void *source_context;
    fr_scorer *scorer; /* the source is this scorer's; it knows what spans take */
    const fr_tokenizer *tokenizer;
    const fr_core_options *options;
    fr_log *log; /* NULL: none */
    fr_core_result *result;
    fr_file_writer *items_writer; /* NULL: none */
} core_run;

typedef struct core_task_run {
    const fr_core_task *task;
    fr_core_items items;
    fr_core_answer *answers; /* one per item */
    bool *known;             /* from the log or scored */
    int64_t resumed;
    double seconds; /* spent on known items, earlier runs included */
    char key[65];   /* what an answer depends on */
} core_task_run;

/* Loads the items and what the log knows of them. */
fr_status core_task_open(core_task_run *out, const core_run *run, const fr_core_task *task, fr_error *error);
void core_task_close(core_task_run *t);

/* core_log.c */
void core_task_key(const core_run *run, core_task_run *t);
fr_status core_log_recall(const core_run *run, core_task_run *t, fr_error *error);
/* Items indices[0..count) have been answered in `seconds`. */
fr_status core_log_answers(const core_run *run, const core_task_run *t, const int64_t *indices, int count,
                           double seconds, fr_error *error);

/* core_order.c: the indices of all items, those whose prompts begin with the same example side by side; the caller
 * frees it; NULL: no memory. *repeated (may be NULL): the share of items whose first example another has shown. */
int64_t *core_order(const core_task_run *t, double *repeated);

/* core_forecast.c: checks every task's file, and with options.forecast fills result->forecast_s. */
fr_status core_forecast(core_run *run, fr_error *error);

bool core_wanted(const core_run *run, const fr_core_task *task); /* asked for and present */
double core_now(void);

#endif
