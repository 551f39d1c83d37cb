/* frontier/causality.h: does a model predict, or does it peek?
 *
 * Mental model. A score is worth something only if the logits of a position depend on the tokens before it and
 * on nothing else. Six probes ask the same question in ways that a peeking model answers differently:
 *
 *     suffix      the tokens after a position are replaced
 *     prefix      the row ends at the position
 *     companions  other rows are asked before or with it, or none at all
 *     blocks      positions are asked in other blocks, down to one alone
 *     repeat      the same again: at once, and in the same order after a fresh start
 *     targets     only the next token is replaced; losses are asked for with other targets beside
 *
 * What is compared is log p: of the true next token at every position, of all tokens at some. A difference above
 * the tolerance anywhere, or a mean difference above its own, fails the probe.
 *
 *     fr_causality_rows(corpus, vocab, 4, T, seed, rows, &error);
 *     fr_eval_causality(&source, vocab, rows, &options, &result, &error);
 *     puts(result.passed ? "causal" : "not causal");
 */
#ifndef FRONTIER_CAUSALITY_H
#define FRONTIER_CAUSALITY_H
#include "frontier/eval.h"

typedef enum fr_probe {
    FR_PROBE_SUFFIX,
    FR_PROBE_PREFIX,
    FR_PROBE_COMPANIONS,
    FR_PROBE_BLOCKS,
    FR_PROBE_REPEAT,
    FR_PROBE_TARGETS,
    FR_PROBE_COUNT
} fr_probe;
const char *fr_probe_name(fr_probe probe);
const char *fr_probe_question(fr_probe probe); /* one line for people */

typedef struct fr_causality_source {
    fr_logits_source logits;
    fr_nats_source nats;                                   /* the way a score asks; NULL: no such way */
    fr_status (*restart)(void *context, fr_error *error); /* forget everything: a fresh process or scorer */
    void *context;
} fr_causality_source;

typedef struct fr_causality_options {
    int64_t rows, T;      /* T: tokens of a row */
    uint64_t seed;        /* of positions and replaced tokens: what is probed cannot know it */
    double most, mean;    /* tolerances; 0: FR_CAUSALITY_MOST and FR_CAUSALITY_MEAN */
    const fr_progress *progress;
} fr_causality_options;
/* Honest models that compute a position differently by company, in fp32 or bf16, stay within these (nats). */
#define FR_CAUSALITY_MOST 2e-2
#define FR_CAUSALITY_MEAN 1e-4

typedef struct fr_probe_result {
    int64_t questions, positions;           /* asked; compared */
    double max_difference;                  /* of any log p */
    double mean_difference; /* of the true next token's: over all positions or the last of each question, the larger */
    int64_t row, position;                  /* of the largest */
    bool passed;
} fr_probe_result;
typedef struct fr_causality_result {
    bool passed;
    double max_difference;
    fr_probe_result probes[FR_PROBE_COUNT];
} fr_causality_result;

/* Rows of T + 1 ids from the start of the corpus' validation documents, or random ones when corpus is NULL. */
fr_status fr_causality_rows(const fr_corpus *corpus, int64_t vocab, int64_t rows, int64_t T, uint64_t seed,
                            int32_t *ids, fr_error *error);
/* A source that fails ends this with its failure; a verdict of "no" is FR_OK with passed = false. */
fr_status fr_eval_causality(const fr_causality_source *source, int64_t vocab, const int32_t *ids,
                            const fr_causality_options *options, fr_causality_result *result,
                            fr_error *error);

/* Below this many bits per byte no model of text is: published ones of any size stay above 0.5 on web text. A
 * corpus whose entropy is known has its own limit, 0.98 of that. */
#define FR_IMPLAUSIBLE_BPB 0.35
/* The limit for a corpus with this floor (NaN: not known). */
double fr_implausible_bpb(double floor_bpb);

#endif
