/* frontier/scan.h: evaluation text inside training data, found before it flatters a score.
 *
 * Mental model. Text counts as words: ASCII letters in lower case, digits and bytes of other scripts; all else separates.
 * An item is what it says with its right answer, without examples. When `words` successive words of an item (13, or
 * all of an item of 8 to 12) stand in a document, the item is found there. Sentences that many items share (more than
 * 64: the wording of a task, not of an item) do not count. Words are compared by 64-bit hashes, which two different
 * stretches of text share by accident about once in 10^19 pairs.
 *
 *     fr_scan_result *result;
 *     fr_scan(corpus, bundle, &(fr_scan_options){.train = true}, &result, &error);
 *     printf("%lld items in %lld documents\n", result->found, result->documents);
 *     fr_scan_result_free(result);
 */
#ifndef FRONTIER_SCAN_H
#define FRONTIER_SCAN_H
#include "frontier/core.h"

typedef struct fr_scan_options {
    int words;              /* 0: 13; 8 to 64 */
    bool train, valid;      /* which documents */
    const char *documents_path; /* every document with a find, as JSON lines; NULL: none */
    const fr_progress *progress;
} fr_scan_options;

enum { FR_SCAN_WORDS = 13, FR_SCAN_LEAST_WORDS = 8, FR_SCAN_MOST_ITEMS = 64, FR_SCAN_EXAMPLES = 20 };

typedef struct fr_scan_task {
    const fr_core_task *task;
    int64_t items, found, short_items; /* short: fewer than 8 words, cannot be told */
} fr_scan_task;
typedef struct fr_scan_document {
    fr_corpus_split split;
    int64_t document, items; /* index in its split; different items found in it */
    int task;                /* of the first find: task, item (line of its file, from 1) and the words */
    int64_t line;
    char text[200];
} fr_scan_document;
typedef struct fr_scan_result {
    int words, task_count, missing;
    fr_scan_task *tasks; /* of the bundle, those without a file left out */
    int64_t items, found, scanned, documents; /* scanned: documents read; documents: with a find */
    fr_scan_document examples[FR_SCAN_EXAMPLES]; /* those with most items */
    int example_count;
    double seconds;
    fr_arena arena;
} fr_scan_result;

fr_status fr_scan(const fr_corpus *corpus, const fr_core_bundle *bundle, const fr_scan_options *options,
                  fr_scan_result **out, fr_error *error);
void fr_scan_result_free(fr_scan_result *result);

#endif
