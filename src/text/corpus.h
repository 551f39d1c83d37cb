/* text/corpus.h: what the loader sees of an opened corpus beyond frontier/text.h. */
#ifndef TEXT_CORPUS_H
#define TEXT_CORPUS_H
#include "frontier/text.h"

/* Copies ids [start, start + count) of a document (0 is its BOS). FR_BAD_DATA names the shard when its content
 * is not what was written, or an id is not below the vocabulary. The range must lie inside the document. */
fr_status corpus_copy(const fr_corpus *corpus, fr_corpus_split split, int64_t document, int64_t start, int64_t count,
                      int32_t *ids, fr_error *error);
/* Ids of the documents before `document`: where it begins in the split's stream. */
int64_t corpus_token_start(const fr_corpus *corpus, fr_corpus_split split, int64_t document);
/* The document that holds id `position` of the split's stream. */
int64_t corpus_document_at(const fr_corpus *corpus, fr_corpus_split split, int64_t position);

#endif
