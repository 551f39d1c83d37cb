/* text/corpus_shard.h: one token shard, the file format and a checked view of it. See corpus_shard.c. */
#ifndef TEXT_CORPUS_SHARD_H
#define TEXT_CORPUS_SHARD_H
#include "frontier/text.h"

enum {
    CORPUS_SHARD_VERSION = 1,
    CORPUS_SHARD_HEADER = 72, /* bytes before the ids */
    CORPUS_INDEX_ENTRY = 16   /* bytes per document in the index */
};

/* What the header says. */
typedef struct corpus_shard_header {
    int id_bytes; /* 2 or 4 */
    uint32_t vocab, bos;
    int64_t tokens, documents, bytes;
    uint64_t tokenizer_tag; /* first 64 bits of the tokenizer's hash */
    uint64_t checksum;      /* of ids, padding and index */
} corpus_shard_header;

/* A view of a whole shard in memory. Does not own it. */
typedef struct corpus_shard {
    corpus_shard_header header;
    const uint8_t *ids, *index;
    size_t body_bytes;
} corpus_shard;

/* Bytes per id for a vocabulary. */
int corpus_shard_id_bytes(int64_t vocab);
/* Padded size of the ids. */
size_t corpus_shard_ids_size(int64_t tokens, int id_bytes);
/* The number in a tokenizer hash's first 16 hex digits. */
uint64_t corpus_shard_tag(const char hex[65]);
/* Checksum of a body in its two parts: ids with padding, then index. */
uint64_t corpus_shard_checksum(const void *ids, size_t id_bytes, const void *index, size_t index_bytes);
void corpus_shard_write_header(const corpus_shard_header *header, uint8_t out[CORPUS_SHARD_HEADER]);
void corpus_shard_write_entry(int64_t token_end, int64_t byte_end, uint8_t out[CORPUS_INDEX_ENTRY]);
void corpus_shard_write_id(int32_t id, int id_bytes, uint8_t *out);

/* Checks header, size and index, so that every later access is in bounds; not the content. */
fr_status corpus_shard_open(corpus_shard *shard, const void *bytes, size_t count, const char *origin, fr_error *error);
/* Checks the content's checksum: about 0.2 s per GB in memory. */
fr_status corpus_shard_intact(const corpus_shard *shard, const char *origin, fr_error *error);
/* Checks the content: checksum, every id below vocab, BOS first in each document and nowhere else. */
fr_status corpus_shard_verify(const corpus_shard *shard, const char *origin, fr_error *error);

/* First token and first raw byte of document `index`; index == documents gives the totals. */
int64_t corpus_shard_token_start(const corpus_shard *shard, int64_t index);
int64_t corpus_shard_byte_start(const corpus_shard *shard, int64_t index);
/* Copies ids [start, start + count); false when one is not below the vocabulary. */
bool corpus_shard_copy(const corpus_shard *shard, int64_t start, int64_t count, int32_t *ids);

#endif
