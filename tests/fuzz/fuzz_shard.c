/* Fuzz target: bytes as a token shard. Tried as they are and, because no mutation guesses a checksum, once more
 * with the checksums made right, so that the checks behind them are reached. What opens must be readable to the
 * last id; what verifies must keep its promises.
 */
#include "text/corpus_shard.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const corpus_shard *shard, bool verified)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < shard->header.documents; i++) {
        int64_t start = corpus_shard_token_start(shard, i), count = corpus_shard_token_start(shard, i + 1) - start;
        int32_t *ids = malloc((size_t)count * sizeof *ids);
        if (!ids)
            return;
        bool good = corpus_shard_copy(shard, start, count, ids);
        if (verified && (!good || ids[0] != (int32_t)shard->header.bos))
            abort();
        bytes += corpus_shard_byte_start(shard, i + 1) - corpus_shard_byte_start(shard, i);
        free(ids);
    }
    if (bytes != shard->header.bytes)
        abort();
}

static void try_shard(const uint8_t *bytes, size_t size)
{
    corpus_shard shard;
    fr_error error = {0};
    if (corpus_shard_open(&shard, bytes, size, "fuzz", &error) != FR_OK) {
        if (!error.what[0] || fr_corpus_check_shard(bytes, size, "fuzz", NULL) == FR_OK)
            abort();
        return;
    }
    read_all(&shard, corpus_shard_verify(&shard, "fuzz", &error) == FR_OK);
}

/* Magic, version and checksums as they should be; counts and content stay the mutator's. */
static void make_right(uint8_t *bytes, size_t size)
{
    static const uint8_t start[12] = {'F', 'R', 'T', 'O', 'K', 'E', 'N', 'S', CORPUS_SHARD_VERSION};
    memcpy(bytes, start, sizeof start);
    corpus_shard shard = {0};
    uint64_t tokens, documents, checksum;
    memcpy(&tokens, bytes + 16, 8);
    memcpy(&documents, bytes + 24, 8);
    size_t body = size - CORPUS_SHARD_HEADER;
    if (documents <= body / CORPUS_INDEX_ENTRY && tokens <= body) {
        size_t ids = body - (size_t)documents * CORPUS_INDEX_ENTRY;
        shard.ids = bytes + CORPUS_SHARD_HEADER;
        checksum = corpus_shard_checksum(shard.ids, ids, shard.ids + ids, body - ids);
        memcpy(bytes + 56, &checksum, 8);
    }
    checksum = fr_checksum64(bytes, 64);
    memcpy(bytes + 64, &checksum, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_shard(data, size);
    if (size < CORPUS_SHARD_HEADER)
        return 0;
    uint8_t *copy = malloc(size); /* exact size: reads beyond are seen */
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    make_right(copy, size);
    try_shard(copy, size);
    free(copy);
    return 0;
}
