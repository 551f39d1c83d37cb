/* text/pretokenizer.h: cuts text into the chunks that byte-pair merges never cross.
 *
 * Two engines, one meaning. The built-in pattern has a hand-written scanner (pretokenizer_scanner.c);
 * every other pattern, found in somebody's tokenizer file, is compiled by PCRE2 (pretokenizer_pcre2.c),
 * which is also the oracle the scanner is fuzzed against. Patterns are read as Hugging Face's `tokenizers`
 * and tiktoken read them: \s is Unicode White_Space (PCRE2's own \s adds U+180E), letters and numbers are
 * \p{L} and \p{N}.
 *
 * Rules that hold for both:
 *   - the chunks laid end to end are the text: what no match covers becomes a chunk of its own;
 *   - a byte that is not part of well-formed UTF-8 counts as one character that is no letter, number or
 *     space, exactly as if U+FFFD stood in its place. A stretch of such bytes is therefore cut like
 *     punctuation: it stays together, takes one space before it and newlines after it.
 *
 * The scanner's letters and numbers are those of Unicode 14.0, whatever the machine's PCRE2 knows, so a
 * corpus cuts into the same chunks everywhere. Characters that were assigned later count as punctuation.
 */
#ifndef FRONTIER_TEXT_PRETOKENIZER_H
#define FRONTIER_TEXT_PRETOKENIZER_H
#include "frontier/base.h"

typedef struct fr_split_pattern fr_split_pattern; /* immutable, may be shared by threads */

/* Compiles `text`; NULL is the built-in pattern. */
fr_status fr_split_pattern_create(fr_split_pattern **out, const char *text, fr_error *error);
/* The same, but through PCRE2 even for the built-in pattern: the oracle of the tests. */
fr_status fr_split_pattern_create_pcre2(fr_split_pattern **out, const char *text, fr_error *error);
const char *fr_split_pattern_text(const fr_split_pattern *pattern);
bool fr_split_pattern_outside(const fr_split_pattern *pattern); /* run by PCRE2, within its limits */
void fr_split_pattern_free(fr_split_pattern *pattern);

/* Walks one text. */
typedef struct fr_splitter {
    const fr_split_pattern *pattern;
    const uint8_t *text;
    size_t bytes, at;    /* the next chunk starts at `at` */
    size_t match, until; /* PCRE2: a match found ahead, delivered after the gap before it */
    struct fr_splitter_pcre2 *engine;
} fr_splitter;

typedef enum fr_split_step { FR_SPLIT_CHUNK, FR_SPLIT_END, FR_SPLIT_FAILED } fr_split_step;

/* False when memory runs out. Release in every case. */
bool fr_splitter_init(fr_splitter *splitter, const fr_split_pattern *pattern, const void *text, size_t bytes);
/* The next chunk is text[*start, *end), never empty. FAILED: memory, or a pattern beyond PCRE2's limits. */
fr_split_step fr_splitter_next(fr_splitter *splitter, size_t *start, size_t *end);
void fr_splitter_release(fr_splitter *splitter);

/* ---- between the two engines -------------------------------------------------------------------- */

/* End of the chunk of the built-in pattern that starts at `at` < bytes. */
size_t fr_scan_chunk(const uint8_t *text, size_t bytes, size_t at);

typedef struct fr_pcre2_pattern fr_pcre2_pattern;
fr_status fr_pcre2_pattern_create(fr_pcre2_pattern **out, const char *text, fr_error *error);
void fr_pcre2_pattern_free(fr_pcre2_pattern *pattern);
struct fr_splitter_pcre2 *fr_splitter_pcre2_create(const fr_pcre2_pattern *pattern, const uint8_t *text,
                                                   size_t bytes);
/* The next non-empty match at or after `at`, as [*start, *end) of the original text. */
fr_split_step fr_splitter_pcre2_match(struct fr_splitter_pcre2 *engine, size_t at, size_t *start,
                                      size_t *end);
void fr_splitter_pcre2_free(struct fr_splitter_pcre2 *engine);

#endif
