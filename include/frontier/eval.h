/* frontier/eval.h: bits per byte, done right.
 *
 * Mental model. An evaluation set is whole documents, laid out as one BOS-joined stream cut into rows of T+1
 * ids with stride T; every document byte is scored exactly once, BOS targets count neither nats nor bytes.
 *     bpb = sum of nats / (ln 2 * sum of raw bytes)
 * A score = set + layout + context + tokenizer + byte-length convention; different sets refuse to be
 * compared.
 *
 *     fr_bpb_result result;
 *     fr_eval_bpb(scorer, corpus, &(fr_bpb_options){0}, &result, &error);
 */
#ifndef FRONTIER_EVAL_H
#define FRONTIER_EVAL_H
#include "frontier/model.h"

typedef struct fr_bpb_options {
    const char *set;    /* NULL: "valid" */
    int64_t context;    /* 0: the recipe's */
    int64_t rows;       /* rows per forward; 0: choose; never changes a bit of the result */
    int64_t max_tokens; /* > 0: stop after whole rows reaching it; the set's name then says so */
    const char *documents_path; /* not NULL: nats and raw bytes per document, JSON lines */
    const fr_progress *progress;
} fr_bpb_options;
typedef struct fr_bpb_result {
    double val_bpb, nats;
    int64_t bytes, tokens, documents;
    char eval_set[96], text_sha256[65], tokenizer_sha256[65], layout[32], byte_lengths[16];
    int64_t context;
    double seconds;
} fr_bpb_result;
/* nats: any source of per-target losses (a scorer, a submission's program). */
typedef fr_status (*fr_nats_source)(void *context, int64_t rows, int64_t T, const int32_t *inputs,
                                    const int32_t *targets, float *nats, fr_error *error);
fr_status fr_eval_bpb_from(fr_nats_source source, void *context, const fr_recipe *recipe,
                           const fr_corpus *corpus, const fr_bpb_options *options, fr_bpb_result *result,
                           fr_error *error);
fr_status fr_eval_bpb(fr_scorer *scorer, const fr_corpus *corpus, const fr_bpb_options *options,
                      fr_bpb_result *result, fr_error *error);
/* FR_OK when two results may be compared; else names the difference (sets: never; context, layout: unless
 * `told`). */
fr_status fr_bpb_comparable(const fr_bpb_result *a, const fr_bpb_result *b, bool told, char *note,
                            size_t note_size, fr_error *error);

#endif
