/* frontier/core.h: CORE, the mean centred accuracy over 22 in-context tasks.
 *
 * Mental model. A bundle is a folder: core.yaml lists tasks, eval_meta_data.csv says what chance scores,
 * and eval_data/ holds one JSON-lines file per task. An item becomes one row of tokens per option (its
 * few-shot examples, then the item), and a span of each row is what the options differ in. The option with
 * the smallest mean loss over its span is the prediction; a language-modelling item is right when the
 * model's first choice is the expected token everywhere in the span. Which items, in which order and with
 * which examples follows Python's random numbers, so results can be held against published ones.
 *
 *     centred = (accuracy - chance) / (1 - chance)        CORE = mean of centred over all tasks of the bundle
 *
 * A task that is not there makes the result partial: it is named, and there is no CORE.
 *
 *     fr_core_bundle *bundle;
 *     fr_core_result *result;
 *     fr_core_bundle_open(&bundle, "eval_bundle", &error);
 *     fr_eval_core(scorer, bundle, &(fr_core_options){.max_per_task = 200}, &result, &error);
 *     printf("%g\n", result->core);
 *     fr_core_result_free(result);
 *     fr_core_bundle_free(bundle);
 */
#ifndef FRONTIER_CORE_H
#define FRONTIER_CORE_H
#include "frontier/model.h"

/* ---- bundle ----------------------------------------------------------------------------------------- */

typedef enum fr_core_kind {
    FR_CORE_CHOICE,  /* one context, several endings: "multiple_choice" */
    FR_CORE_SCHEMA,  /* several contexts, one ending: "schema" */
    FR_CORE_LANGUAGE /* the ending must be produced: "language_modeling" */
} fr_core_kind;
const char *fr_core_kind_name(fr_core_kind kind); /* as in core.yaml */

typedef struct fr_core_task {
    const char *label, *file, *delimiter, *category; /* file: path of the .jsonl */
    fr_core_kind kind;
    int64_t shots;
    double chance; /* 0..1 */
    bool present;  /* the file exists */
} fr_core_task;

typedef struct fr_core_bundle fr_core_bundle;
/* Reads core.yaml and eval_meta_data.csv; errors name path:line. Task files are looked for, not read. */
fr_status fr_core_bundle_open(fr_core_bundle **out, const char *folder, fr_error *error);
int fr_core_bundle_tasks(const fr_core_bundle *bundle);
const fr_core_task *fr_core_bundle_task(const fr_core_bundle *bundle, int index);
void fr_core_bundle_free(fr_core_bundle *bundle);

/* ---- items ------------------------------------------------------------------------------------------ */

typedef struct fr_core_text {
    const char *bytes;
    size_t count;
} fr_core_text;
typedef struct fr_core_item {
    fr_core_text text; /* query; of a schema the continuation; of language modelling the trimmed context */
    fr_core_text *options; /* choices; contexts of a schema; the one continuation of language modelling */
    int option_count, gold;
    int64_t line; /* of its file, from 1 */
} fr_core_item;
typedef struct fr_core_items {
    fr_core_item *items; /* shuffled, then cut to max_per_task */
    int64_t count;
    char sha256[65]; /* of the file */
    fr_arena arena;
} fr_core_items;
/* max_per_task 0: all. A task without items, or with fewer than its shots need, is an error. */
fr_status fr_core_items_load(fr_core_items *out, const fr_core_task *task, int64_t max_per_task,
                             fr_error *error);
void fr_core_items_release(fr_core_items *items);

/* Indices of the few-shot examples of item `index` of `count`: `shots` of them, in order of appearance. */
void fr_core_examples(int64_t index, int64_t count, int64_t shots, int64_t *out);

typedef struct fr_core_row {
    int32_t *ids;              /* BOS first */
    int64_t count, first, end; /* tokens first..end-1 are judged; first >= end: nothing to judge */
} fr_core_row;
typedef struct fr_core_rows {
    fr_core_row *rows; /* one per option; of language modelling the one with the continuation */
    int count;
    bool misaligned; /* language modelling: the prompt's tokens do not begin the whole's */
    int cut;         /* rows shortened at the left to `most` tokens */
} fr_core_rows;
/* Prompts of an item as tokens, in the arena. most > 0: rows keep their last `most` tokens. */
fr_status fr_core_rows_make(fr_core_rows *out, fr_arena *arena, const fr_core_task *task,
                            const fr_core_items *items, int64_t index, const fr_tokenizer *tokenizer,
                            int64_t most, fr_error *error);
/* The text of one prompt, for people and tests. Option -1 of language modelling: without the continuation. */
fr_status fr_core_prompt(fr_buffer *out, const fr_core_task *task, const fr_core_items *items, int64_t index,
                         int option, fr_error *error);

/* ---- scoring ---------------------------------------------------------------------------------------- */

/* What became of an item. */
typedef struct fr_core_answer {
    int32_t prediction;    /* the first option of the least loss; language: 1 = as expected; -1: none */
    int32_t tied;          /* options that share the least loss */
    bool gold_tied;        /* the right one is among them */
    bool correct, invalid; /* invalid: losses not finite, or misaligned; counts as wrong */
    bool empty;            /* an option has no token of its own: no loss, so no chance to be chosen */
    bool longer;           /* a row is longer than the training context */
    bool cut;              /* a row was shortened to what the model can take */
    int32_t gold;
} fr_core_answer;
/* From the mean loss of every option (NaN: empty span). Follows the reference: the first least one, and an
 * empty first option wins because nothing is less than NaN. */
void fr_core_choose(const double *losses, int count, int gold, fr_core_answer *answer);

typedef struct fr_core_options {
    int64_t max_per_task;     /* 0 = all */
    const char *const *tasks; /* labels wanted; NULL = all */
    int task_count;
    bool ties_chance;       /* a tie counts 1/n if the right option is among the n; else first option */
    const char *log_path;   /* append-only; items already in it are not scored again; NULL = none */
    const char *model_hash; /* names the weights and numerics in the log; needed with log_path */
    const char *items_path; /* JSON lines: what became of every item; NULL = none */
    int64_t context;        /* the training context, for counting longer rows; 0 = the recipe's */
    int64_t most_tokens;    /* rows keep their last that many; 0 = any length */
    bool forecast;          /* time a row of each length first and tell how long all will take */
    const fr_progress *progress;
} fr_core_options;

typedef struct fr_core_task_result {
    const fr_core_task *task; /* of the bundle */
    bool done;
    double accuracy, centered, stderr_accuracy, stderr_centered, seconds;
    double
        guess; /* what answering without reading scores: chance; of language modelling the commonest answer */
    int64_t n, correct, invalid, empty, tied, longer, cut, resumed;
} fr_core_task_result;
typedef struct fr_core_category {
    const char *name;
    double centered; /* NaN when a task of it is missing */
    double mean;     /* over the tasks that were done */
    int tasks, missing;
} fr_core_category;
typedef struct fr_core_result {
    double core;                 /* NaN when partial */
    double mean, standard_error; /* over the tasks that were done */
    int task_count, missing;     /* tasks of the bundle; those without a score */
    fr_core_task_result *tasks;  /* in the bundle's order */
    int category_count;
    fr_core_category *categories; /* in order of appearance */
    double seconds, forecast_s;   /* forecast_s: NaN when none was asked for */
    int64_t rows, tokens;         /* scored now */
    fr_arena arena;
} fr_core_result;

/* Any source of span losses: a scorer, a submission's program. */
typedef fr_status (*fr_span_source)(void *context, int64_t count, fr_span *spans, fr_error *error);
fr_status fr_eval_core_from(fr_span_source source, void *context, const fr_tokenizer *tokenizer,
                            const fr_core_bundle *bundle, const fr_core_options *options,
                            fr_core_result **out, fr_error *error);
fr_status fr_eval_core(fr_scorer *scorer, const fr_core_bundle *bundle, const fr_core_options *options,
                       fr_core_result **out, fr_error *error);
/* Fills centred values, categories and CORE from tasks[].accuracy, n and done; published ones too. */
void fr_core_summarize(fr_core_result *result);
/* A result with every task of the bundle and nothing done. */
fr_status fr_core_result_create(fr_core_result **out, const fr_core_bundle *bundle, fr_error *error);
void fr_core_result_free(fr_core_result *result);
/* The table that published results come as: Task, Accuracy, Centered; CORE last (empty when partial). */
void fr_core_csv(const fr_core_result *result, fr_buffer *out);

/* ---- Python's random numbers ------------------------------------------------------------------------ */

/* The Mersenne Twister as CPython's `random.Random(seed)` seeds and uses it. */
typedef struct fr_python_random {
    uint32_t state[624];
    int at;
} fr_python_random;
void fr_python_seed(fr_python_random *rng, uint64_t seed);
uint32_t fr_python_u32(fr_python_random *rng);
uint32_t fr_python_below(fr_python_random *rng, uint32_t bound); /* bound > 0 */
void fr_python_shuffle(fr_python_random *rng, int64_t *values, int64_t count);
/* `random.sample(population, k)` for a population given by its size: indices into it; k <= n < 2^31. */
void fr_python_sample(fr_python_random *rng, int64_t n, int64_t k, int64_t *out);

#endif
