/* text/corpus_manifest.h: corpus.json as a value; written by corpus_writer.c, read by corpus.c. */
#ifndef TEXT_CORPUS_MANIFEST_H
#define TEXT_CORPUS_MANIFEST_H
#include "frontier/text.h"

enum { CORPUS_MANIFEST_SCHEMA = 1, CORPUS_SETS = 4 };

typedef struct corpus_shard_entry {
    char file[32];
    int64_t documents, bytes, tokens;
    uint64_t checksum;
} corpus_shard_entry;

/* One split's totals and shards. */
typedef struct corpus_split_entry {
    int64_t documents, bytes, tokens;
    char text_sha256[65];
    corpus_shard_entry *shards; /* owner: whoever filled it */
    int64_t shard_count;
} corpus_split_entry;

typedef struct corpus_manifest {
    corpus_split_entry split[2]; /* by fr_corpus_split */
    fr_eval_set sets[CORPUS_SETS];
    int set_count;
    char tokenizer_hash[65];
    int32_t vocab, bos;
    double floor_bpb; /* NaN when unknown */
} corpus_manifest;

/* "train" or "valid". */
const char *corpus_split_name(fr_corpus_split split);
/* "train-00000.tok" */
void corpus_shard_name(char out[32], fr_corpus_split split, int64_t number);
/* Text of corpus.json; `details` (a JSON object or NULL) gives further keys. Caller frees with free(). */
fr_status corpus_manifest_format(const corpus_manifest *manifest, const char *details, char **json, fr_error *error);
/* Reads and checks; shards are allocated from the arena. */
fr_status corpus_manifest_parse(corpus_manifest *manifest, fr_arena *arena, const char *json, size_t bytes,
                                const char *origin, fr_error *error);

#endif
