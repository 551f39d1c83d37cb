/* Words of a text, and hashes of windows of them; see scan_words.c. */
#ifndef FRONTIER_EVAL_SCAN_WORDS_H
#define FRONTIER_EVAL_SCAN_WORDS_H
#include "frontier/base.h"

enum { SCAN_MOST_WORDS = 64 };

typedef struct scan_reader {
    const char *text;
    size_t bytes, at;
} scan_reader;
typedef struct scan_word {
    uint64_t hash;
    size_t start, end; /* bytes of the text */
} scan_word;
bool scan_next_word(scan_reader *reader, scan_word *word); /* false at the end */

typedef struct scan_window {
    int words;
    int64_t seen;
    uint64_t sum, top;
    scan_word ring[SCAN_MOST_WORDS];
} scan_window;
void scan_window_init(scan_window *window, int words);
bool scan_window_add(scan_window *window, const scan_word *word); /* true when full */
size_t scan_window_start(const scan_window *window);              /* of a full one, in the text */
uint64_t scan_window_hash(const scan_window *window);             /* of a full one */

#endif
