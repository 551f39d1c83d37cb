/* text/corpus_writer.h: what import and tests may do with a corpus writer beyond frontier/text.h. */
#ifndef TEXT_CORPUS_WRITER_H
#define TEXT_CORPUS_WRITER_H
#include "frontier/text.h"

enum { CORPUS_SHARD_TOKENS = 32000000 }; /* a shard is closed when it has at least so many */

/* Appends a document whose ids (without BOS) the caller has already computed, on many threads perhaps. */
fr_status corpus_writer_append(fr_corpus_writer *writer, fr_corpus_split split, const char *text, size_t bytes,
                               const int32_t *ids, int64_t count, fr_error *error);
/* Tests: close shards at `tokens`, and make prefix sets at `tokens` instead of 2^21. */
void corpus_writer_set_sizes(fr_corpus_writer *writer, int64_t shard_tokens, int64_t prefix_tokens);

#endif
