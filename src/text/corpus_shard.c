/* corpus_shard.c: the token shard, a file that can be mapped and read in place.
 *
 * Layout, all numbers little-endian:
 *     0  magic "FRTOKENS"     8  uint32 version        12  uint32 bytes per id (2 or 4)
 *    16  uint64 tokens       24  uint64 documents      32  uint64 raw text bytes
 *    40  uint32 vocabulary   44  uint32 BOS id         48  uint64 tokenizer tag
 *    56  uint64 checksum of the body                   64  uint64 checksum of bytes 0..63
 *    72  the ids, zero-padded to a multiple of 8 bytes
 *        the index: per document uint64 end in tokens, uint64 end in raw bytes, both counted from the
 *        shard's start, so lengths are differences and prefixes are single reads.
 * Upgrade rule: a reader refuses versions it does not know; a new layout gets a new version.
 *
 * Opening checks everything that memory safety needs (sizes, index order); verifying also reads the content.
 * The two are separate because opening must not read gigabytes; a corpus checks a shard's checksum before it first
 * copies from it. Copying still checks every id: a model indexes its embedding table by them.
 */
#include "text/corpus_shard.h"

#include <endian.h>
#include <string.h>

static const char magic[8] = {'F', 'R', 'T', 'O', 'K', 'E', 'N', 'S'};
static const char damaged_hint[] = "the file was altered or badly copied: copy it again, or run the import again";

static uint64_t load64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

static uint32_t load32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

static void store64(uint8_t *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof value);
}

static void store32(uint8_t *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof value);
}

int corpus_shard_id_bytes(int64_t vocab)
{
    return vocab <= 65536 ? 2 : 4;
}

size_t corpus_shard_ids_size(int64_t tokens, int id_bytes)
{
    return ((size_t)tokens * (size_t)id_bytes + 7) & ~(size_t)7;
}

uint64_t corpus_shard_tag(const char hex[65])
{
    uint64_t tag = 0;
    for (int i = 0; i < 16 && hex[i]; i++)
        tag = tag << 4 | (uint64_t)(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
    return tag;
}

uint64_t corpus_shard_checksum(const void *ids, size_t id_bytes, const void *index, size_t index_bytes)
{
    return fr_hash64(index, index_bytes, fr_hash64(ids, id_bytes, 0));
}

void corpus_shard_write_header(const corpus_shard_header *header, uint8_t out[CORPUS_SHARD_HEADER])
{
    memcpy(out, magic, sizeof magic);
    store32(out + 8, CORPUS_SHARD_VERSION);
    store32(out + 12, (uint32_t)header->id_bytes);
    store64(out + 16, (uint64_t)header->tokens);
    store64(out + 24, (uint64_t)header->documents);
    store64(out + 32, (uint64_t)header->bytes);
    store32(out + 40, header->vocab);
    store32(out + 44, header->bos);
    store64(out + 48, header->tokenizer_tag);
    store64(out + 56, header->checksum);
    store64(out + 64, fr_checksum64(out, 64));
}

void corpus_shard_write_entry(int64_t token_end, int64_t byte_end, uint8_t out[CORPUS_INDEX_ENTRY])
{
    store64(out, (uint64_t)token_end);
    store64(out + 8, (uint64_t)byte_end);
}

void corpus_shard_write_id(int32_t id, int id_bytes, uint8_t *out)
{
    out[0] = (uint8_t)id;
    out[1] = (uint8_t)(id >> 8);
    if (id_bytes == 4) {
        out[2] = (uint8_t)(id >> 16);
        out[3] = (uint8_t)(id >> 24);
    }
}

/* Magic, version and the header's own checksum: is this a shard we can read at all? */
static fr_status check_kind(const uint8_t *bytes, size_t count, const char *origin, fr_error *error)
{
    if (count < CORPUS_SHARD_HEADER)
        return fr_error_set(error, FR_BAD_DATA, origin, damaged_hint,
                            "too short for a token shard: %zu bytes, the header alone has %d", count,
                            CORPUS_SHARD_HEADER);
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return fr_error_set(error, FR_BAD_DATA, origin, "token shards are made by 'data import' and 'data world'",
                            "not a token shard: it does not begin with FRTOKENS");
    uint32_t version = load32(bytes + 8);
    if (version != CORPUS_SHARD_VERSION)
        return fr_error_set(error, FR_BAD_DATA, origin,
                            "use the program that wrote it, or run the import again",
                            "token shard version %u, this program reads version %d", version,
                            CORPUS_SHARD_VERSION);
    if (load64(bytes + 64) != fr_checksum64(bytes, 64))
        return fr_error_set(error, FR_BAD_DATA, origin, damaged_hint, "header checksum does not match");
    return FR_OK;
}

static void read_header(corpus_shard_header *header, const uint8_t *bytes)
{
    header->id_bytes = (int)load32(bytes + 12);
    header->tokens = (int64_t)load64(bytes + 16);
    header->documents = (int64_t)load64(bytes + 24);
    header->bytes = (int64_t)load64(bytes + 32);
    header->vocab = load32(bytes + 40);
    header->bos = load32(bytes + 44);
    header->tokenizer_tag = load64(bytes + 48);
    header->checksum = load64(bytes + 56);
}

/* Values a writer never produces; a checksum is no protection against an attacker. */
static fr_status check_values(const corpus_shard_header *header, size_t count, const char *origin, fr_error *error)
{
    const int64_t most = INT64_C(1) << 40;
    bool fits = header->vocab > 0 && header->vocab <= INT32_MAX && header->bos < header->vocab &&
                header->id_bytes == corpus_shard_id_bytes(header->vocab) && header->tokens > 0 &&
                header->tokens < most && header->documents > 0 && header->documents <= header->tokens &&
                header->bytes >= 0 && header->bytes < most;
    if (!fits)
        return fr_error_set(error, FR_BAD_DATA, origin, damaged_hint, "header values contradict each other");
    size_t want = CORPUS_SHARD_HEADER + corpus_shard_ids_size(header->tokens, header->id_bytes) +
                  (size_t)header->documents * CORPUS_INDEX_ENTRY;
    if (count != want)
        return fr_error_set(error, FR_BAD_DATA, origin, damaged_hint, "%s: %zu bytes, its header promises %zu",
                            count < want ? "truncated" : "has bytes after its end", count, want);
    return FR_OK;
}

static fr_status check_index(const corpus_shard *shard, const char *origin, fr_error *error)
{
    uint64_t token = 0, byte = 0;
    for (int64_t i = 0; i < shard->header.documents; i++) {
        uint64_t token_end = load64(shard->index + i * CORPUS_INDEX_ENTRY);
        uint64_t byte_end = load64(shard->index + i * CORPUS_INDEX_ENTRY + 8);
        if (token_end <= token || byte_end < byte || token_end > (uint64_t)shard->header.tokens)
            return fr_error_set(error, FR_BAD_DATA, origin, damaged_hint,
                                "document index is out of order at document %lld", (long long)i);
        token = token_end;
        byte = byte_end;
    }
    if (token != (uint64_t)shard->header.tokens || byte != (uint64_t)shard->header.bytes)
        return fr_error_set(error, FR_BAD_DATA, origin, damaged_hint,
                            "document index does not add up to the header's counts");
    return FR_OK;
}

fr_status corpus_shard_open(corpus_shard *shard, const void *bytes, size_t count, const char *origin, fr_error *error)
{
    memset(shard, 0, sizeof *shard);
    FR_TRY(check_kind(bytes, count, origin, error));
    read_header(&shard->header, bytes);
    FR_TRY(check_values(&shard->header, count, origin, error));
    shard->ids = (const uint8_t *)bytes + CORPUS_SHARD_HEADER;
    shard->index = shard->ids + corpus_shard_ids_size(shard->header.tokens, shard->header.id_bytes);
    shard->body_bytes = count - CORPUS_SHARD_HEADER;
    return check_index(shard, origin, error);
}

static uint32_t id_at(const corpus_shard *shard, int64_t position)
{
    const uint8_t *at = shard->ids + position * shard->header.id_bytes;
    return shard->header.id_bytes == 2 ? (uint32_t)(at[0] | at[1] << 8) : load32(at);
}

static fr_status verify_document(const corpus_shard *shard, int64_t index, const char *origin, fr_error *error)
{
    int64_t start = corpus_shard_token_start(shard, index), end = corpus_shard_token_start(shard, index + 1);
    for (int64_t i = start; i < end; i++) {
        uint32_t id = id_at(shard, i);
        if (id >= shard->header.vocab)
            return fr_error_set(error, FR_BAD_DATA, origin, damaged_hint,
                                "token %lld has id %u, the vocabulary ends at %u", (long long)i, id,
                                shard->header.vocab - 1);
        if ((id == shard->header.bos) != (i == start))
            return fr_error_set(error, FR_BAD_DATA, origin, damaged_hint,
                                "document %lld does not have its one BOS at the start", (long long)index);
    }
    return FR_OK;
}

fr_status corpus_shard_intact(const corpus_shard *shard, const char *origin, fr_error *error)
{
    size_t id_bytes = (size_t)(shard->index - shard->ids);
    if (corpus_shard_checksum(shard->ids, id_bytes, shard->index, shard->body_bytes - id_bytes) !=
        shard->header.checksum)
        return fr_error_set(error, FR_BAD_DATA, origin, damaged_hint, "content checksum does not match");
    return FR_OK;
}

fr_status corpus_shard_verify(const corpus_shard *shard, const char *origin, fr_error *error)
{
    FR_TRY(corpus_shard_intact(shard, origin, error));
    for (int64_t i = 0; i < shard->header.documents; i++)
        FR_TRY(verify_document(shard, i, origin, error));
    return FR_OK;
}

fr_status fr_corpus_check_shard(const void *bytes, size_t count, const char *origin, fr_error *error)
{
    corpus_shard shard;
    FR_TRY(corpus_shard_open(&shard, bytes, count, origin, error));
    return corpus_shard_verify(&shard, origin, error);
}

int64_t corpus_shard_token_start(const corpus_shard *shard, int64_t index)
{
    return index == 0 ? 0 : (int64_t)load64(shard->index + (index - 1) * CORPUS_INDEX_ENTRY);
}

int64_t corpus_shard_byte_start(const corpus_shard *shard, int64_t index)
{
    return index == 0 ? 0 : (int64_t)load64(shard->index + (index - 1) * CORPUS_INDEX_ENTRY + 8);
}

bool corpus_shard_copy(const corpus_shard *shard, int64_t start, int64_t count, int32_t *ids)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t id = id_at(shard, start + i);
        most = id > most ? id : most;
        ids[i] = (int32_t)id;
    }
    return most < shard->header.vocab;
}
