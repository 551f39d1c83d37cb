/* text/bpe_merges.h: learns byte-pair merges from chunk counts, exactly greedily. */
#ifndef FRONTIER_TEXT_BPE_MERGES_H
#define FRONTIER_TEXT_BPE_MERGES_H
#include "frontier/base.h"
#include "text/bpe_count.h"
#include "text/tokenizer.h"

/* Up to `wanted` merges into `merges`; *made is fewer when no pair is left. Result ids are 256, 257, ... */
fr_status fr_bpe_learn(const fr_chunk_counts *counts, int32_t wanted, fr_merge *merges, int32_t *made,
                       const fr_progress *progress, fr_error *error);

#endif
