/* corpus_writer.c: from documents to the shards and manifest of a data folder.
 *
 * A shard is collected in memory (64 MB of ids) and written whole: then its header can hold its checksum,
 * every write is atomic, and memory stays bounded whatever the corpus. corpus.json is written last, so a
 * killed or failed writer leaves no data folder; freeing an unfinished writer also removes its shards.
 *
 * Evaluation sets are fixed here, once: "valid" is the whole validation split, and when that is larger,
 * "valid-2M" and "valid-20M" are its shortest prefixes of whole documents with at least 2^21 and 10 * 2^21
 * tokens. A set's text hash is SHA-256 over, per document, uint64 little-endian length and the bytes: it
 * names the text whatever the tokenizer.
 */
#include "text/corpus_writer.h"

#include "text/corpus_manifest.h"
#include "text/corpus_shard.h"

#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PREFIXES = 2 };
static const struct {
    const char *name;
    int64_t factor; /* times the prefix size, 2^21 tokens */
} prefixes[PREFIXES] = {{"valid-2M", 1}, {"valid-20M", 10}};

typedef struct split_writer {
    fr_buffer ids, index; /* of the open shard */
    int64_t documents, bytes, tokens; /* in the open shard */
    corpus_split_entry total;
    int64_t shard_capacity;
    crypto_hash_sha256_state text_hash;
} split_writer;

struct fr_corpus_writer {
    char folder[1024];
    const fr_tokenizer *tokenizer;
    int32_t vocab, bos;
    int id_bytes;
    int64_t shard_tokens, prefix_tokens;
    split_writer splits[2];
    fr_eval_set sets[PREFIXES];
    int32_t *scratch; /* ids of one document */
    int64_t scratch_capacity;
    bool finished;
};

/* ---- the folder ---- */

/* Shards, and the temporary files of a writer that was killed in the middle of one. */
static bool is_shard_name(const char *name)
{
    if (strncmp(name, "train-", 6) != 0 && strncmp(name, "valid-", 6) != 0)
        return false;
    const char *rest = name + 6;
    rest += strspn(rest, "0123456789");
    return strcmp(rest, ".tok") == 0 || strncmp(rest, ".tok.tmp-", 9) == 0;
}

static fr_status remove_file(const char *folder, const char *name, fr_error *error)
{
    char path[1200];
    fr_path_join(path, sizeof path, folder, name);
    if (unlink(path) != 0 && errno != ENOENT)
        return fr_error_set(error, FR_BAD_ENVIRONMENT, path, "check the folder's permissions", "cannot remove: %s",
                            strerror(errno));
    return FR_OK;
}

static fr_status remove_shards(const char *folder, fr_error *error)
{
    fr_arena arena;
    fr_arena_init(&arena, 1 << 14);
    char **names = NULL;
    size_t count = 0;
    fr_status status = fr_folder_list(&arena, folder, &names, &count, error);
    for (size_t i = 0; status == FR_OK && i < count; i++)
        if (is_shard_name(names[i]))
            status = remove_file(folder, names[i], error);
    fr_arena_release(&arena);
    return status;
}

fr_status fr_corpus_remove(const char *folder, fr_error *error)
{
    if (!fr_path_exists(folder))
        return FR_OK;
    FR_TRY(remove_file(folder, "corpus.json", error));
    return remove_shards(folder, error);
}

/* ---- life ---- */

static void init(fr_corpus_writer *writer, const char *folder, const fr_tokenizer *tokenizer)
{
    snprintf(writer->folder, sizeof writer->folder, "%s", folder);
    writer->tokenizer = tokenizer;
    writer->vocab = fr_tokenizer_vocab(tokenizer);
    writer->bos = fr_tokenizer_bos(tokenizer);
    writer->id_bytes = corpus_shard_id_bytes(writer->vocab);
    corpus_writer_set_sizes(writer, CORPUS_SHARD_TOKENS, INT64_C(1) << 21);
    for (int i = 0; i < 2; i++) {
        fr_buffer_init(&writer->splits[i].ids, 0);
        fr_buffer_init(&writer->splits[i].index, 0);
        crypto_hash_sha256_init(&writer->splits[i].text_hash);
    }
}

fr_status fr_corpus_writer_create(fr_corpus_writer **out, const char *folder, const fr_tokenizer *tokenizer, fr_error *error)
{
    *out = NULL;
    char path[1200];
    if (strlen(folder) > 1000)
        return fr_error_set(error, FR_BAD_USAGE, folder, "choose a shorter path", "folder name is too long");
    fr_path_join(path, sizeof path, folder, "corpus.json");
    if (fr_path_exists(path))
        return fr_error_set(error, FR_BAD_USAGE, path, "choose another folder, or replace it with --force",
                            "the folder already holds a corpus");
    if (fr_tokenizer_bos(tokenizer) < 0)
        return fr_error_set(error, FR_BAD_DATA, folder, "use a tokenizer made by 'data import'",
                            "the tokenizer has no BOS token");
    FR_TRY(fr_folder_make(folder, error));
    FR_TRY(remove_shards(folder, error)); /* left by an import that was killed */
    fr_corpus_writer *writer = fr_allocate(sizeof *writer);
    if (!writer)
        return fr_error_memory(error, sizeof *writer, "the corpus writer");
    init(writer, folder, tokenizer);
    *out = writer;
    return FR_OK;
}

void corpus_writer_set_sizes(fr_corpus_writer *writer, int64_t shard_tokens, int64_t prefix_tokens)
{
    writer->shard_tokens = shard_tokens;
    writer->prefix_tokens = prefix_tokens;
}

void fr_corpus_writer_free(fr_corpus_writer *writer)
{
    if (!writer)
        return;
    if (!writer->finished) /* nobody is left to be told about a failure, and stray shards do no harm */
        remove_shards(writer->folder, NULL);
    for (int i = 0; i < 2; i++) {
        fr_buffer_release(&writer->splits[i].ids);
        fr_buffer_release(&writer->splits[i].index);
        fr_deallocate(writer->splits[i].total.shards);
    }
    fr_deallocate(writer->scratch);
    fr_deallocate(writer);
}

/* ---- documents ---- */

static void append_ids(split_writer *split, const int32_t *ids, int64_t count, int id_bytes)
{
    uint8_t block[4096];
    size_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        corpus_shard_write_id(ids[i], id_bytes, block + used);
        used += (size_t)id_bytes;
        if (used == sizeof block || i + 1 == count) {
            fr_buffer_append(&split->ids, block, used);
            used = 0;
        }
    }
}

static void hash_text(split_writer *split, const char *text, size_t bytes)
{
    uint64_t length = htole64(bytes);
    crypto_hash_sha256_update(&split->text_hash, (const unsigned char *)&length, sizeof length);
    crypto_hash_sha256_update(&split->text_hash, (const unsigned char *)text, bytes);
}

static void finish_hash(const split_writer *split, char hex[65])
{
    crypto_hash_sha256_state state = split->text_hash;
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(&state, digest);
    sodium_bin2hex(hex, 65, digest, sizeof digest);
}

static void fill_set(fr_eval_set *set, const char *name, const split_writer *split)
{
    snprintf(set->name, sizeof set->name, "%s", name);
    set->documents = split->total.documents;
    set->bytes = split->total.bytes;
    set->tokens = split->total.tokens;
    finish_hash(split, set->text_sha256);
}

/* Notes the prefix sets that the document just added completes. */
static void note_prefixes(fr_corpus_writer *writer)
{
    const split_writer *split = &writer->splits[FR_VALID];
    for (int i = 0; i < PREFIXES; i++)
        if (writer->sets[i].documents == 0 && split->total.tokens >= writer->prefix_tokens * prefixes[i].factor)
            fill_set(&writer->sets[i], prefixes[i].name, split);
}

static fr_status grow_shards(split_writer *split, fr_error *error)
{
    if (split->total.shard_count < split->shard_capacity)
        return FR_OK;
    int64_t capacity = split->shard_capacity * 2 + 8;
    size_t size = (size_t)capacity * sizeof *split->total.shards;
    corpus_shard_entry *shards = fr_reallocate(split->total.shards, size);
    if (!shards)
        return fr_error_memory(error, size, "the list of shards");
    split->total.shards = shards;
    split->shard_capacity = capacity;
    return FR_OK;
}

static fr_status write_shard(const fr_corpus_writer *writer, split_writer *split, const corpus_shard_entry *entry, const uint8_t *header, fr_error *error)
{
    char path[1200];
    fr_path_join(path, sizeof path, writer->folder, entry->file);
    fr_file_writer file;
    FR_TRY(fr_file_writer_begin(&file, path, error));
    fr_file_writer_append(&file, header, CORPUS_SHARD_HEADER);
    fr_file_writer_append(&file, split->ids.data, split->ids.length);
    fr_file_writer_append(&file, split->index.data, split->index.length);
    fr_status status = fr_file_writer_commit(&file, error);
    if (status != FR_OK)
        fr_file_writer_abort(&file);
    return status;
}

static fr_status close_shard(fr_corpus_writer *writer, fr_corpus_split kind, fr_error *error)
{
    split_writer *split = &writer->splits[kind];
    if (split->documents == 0)
        return FR_OK;
    static const char zeros[8];
    fr_buffer_append(&split->ids, zeros, corpus_shard_ids_size(split->tokens, writer->id_bytes) - split->ids.length);
    if (split->ids.failed || split->index.failed)
        return fr_error_memory(error, split->ids.length, "a token shard");
    FR_TRY(grow_shards(split, error));
    char tokenizer_hash[65];
    fr_tokenizer_hash(writer->tokenizer, tokenizer_hash);
    corpus_shard_header header = {writer->id_bytes, (uint32_t)writer->vocab, (uint32_t)writer->bos, split->tokens,
                                  split->documents, split->bytes, corpus_shard_tag(tokenizer_hash),
                                  corpus_shard_checksum(split->ids.data, split->ids.length, split->index.data, split->index.length)};
    uint8_t bytes[CORPUS_SHARD_HEADER];
    corpus_shard_write_header(&header, bytes);
    corpus_shard_entry *entry = &split->total.shards[split->total.shard_count];
    *entry = (corpus_shard_entry){"", split->documents, split->bytes, split->tokens, header.checksum};
    corpus_shard_name(entry->file, kind, split->total.shard_count);
    FR_TRY(write_shard(writer, split, entry, bytes, error));
    split->total.shard_count++;
    split->documents = split->bytes = split->tokens = 0;
    fr_buffer_clear(&split->ids);
    fr_buffer_clear(&split->index);
    return FR_OK;
}

fr_status corpus_writer_append(fr_corpus_writer *writer, fr_corpus_split kind, const char *text, size_t bytes,
                               const int32_t *ids, int64_t count, fr_error *error)
{
    split_writer *split = &writer->splits[kind];
    append_ids(split, &writer->bos, 1, writer->id_bytes);
    append_ids(split, ids, count, writer->id_bytes);
    split->documents++;
    split->bytes += (int64_t)bytes;
    split->tokens += count + 1;
    split->total.documents++;
    split->total.bytes += (int64_t)bytes;
    split->total.tokens += count + 1;
    uint8_t entry[CORPUS_INDEX_ENTRY];
    corpus_shard_write_entry(split->tokens, split->bytes, entry);
    fr_buffer_append(&split->index, entry, sizeof entry);
    hash_text(split, text, bytes);
    if (kind == FR_VALID)
        note_prefixes(writer);
    if (split->ids.failed || split->index.failed)
        return fr_error_memory(error, split->ids.length, "a token shard");
    return split->tokens >= writer->shard_tokens ? close_shard(writer, kind, error) : FR_OK;
}

static fr_status reserve_scratch(fr_corpus_writer *writer, size_t bytes, fr_error *error)
{
    if ((int64_t)bytes <= writer->scratch_capacity)
        return FR_OK;
    size_t size = (bytes + bytes / 4 + 1024) * sizeof *writer->scratch;
    fr_deallocate(writer->scratch);
    writer->scratch_capacity = 0;
    writer->scratch = fr_allocate(size);
    if (!writer->scratch)
        return fr_error_memory(error, size, "a document's ids");
    writer->scratch_capacity = (int64_t)(size / sizeof *writer->scratch);
    return FR_OK;
}

fr_status fr_corpus_writer_document(fr_corpus_writer *writer, fr_corpus_split split, const char *text, size_t bytes, fr_error *error)
{
    FR_TRY(reserve_scratch(writer, bytes + 1, error));
    int64_t count = fr_tokenizer_encode(writer->tokenizer, text, bytes, writer->scratch, writer->scratch_capacity);
    if (count < 0)
        return fr_tokenizer_encode_error(writer->tokenizer, bytes, "a document", error);
    return corpus_writer_append(writer, split, text, bytes, writer->scratch, count, error);
}

/* ---- finish ---- */

static void fill_manifest(const fr_corpus_writer *writer, corpus_manifest *manifest)
{
    memset(manifest, 0, sizeof *manifest);
    for (int i = 0; i < 2; i++) {
        manifest->split[i] = writer->splits[i].total;
        finish_hash(&writer->splits[i], manifest->split[i].text_sha256);
    }
    fr_tokenizer_hash(writer->tokenizer, manifest->tokenizer_hash);
    manifest->vocab = writer->vocab;
    manifest->bos = writer->bos;
    const split_writer *valid = &writer->splits[FR_VALID];
    if (valid->total.documents > 0)
        fill_set(&manifest->sets[manifest->set_count++], "valid", valid);
    for (int i = 0; i < PREFIXES; i++) /* a prefix that is the whole set has no name of its own */
        if (writer->sets[i].documents > 0 && writer->sets[i].documents < valid->total.documents)
            manifest->sets[manifest->set_count++] = writer->sets[i];
}

fr_status fr_corpus_writer_finish(fr_corpus_writer *writer, const char *details, fr_error *error)
{
    char path[1200];
    for (int i = 0; i < 2; i++)
        FR_TRY(close_shard(writer, (fr_corpus_split)i, error));
    fr_path_join(path, sizeof path, writer->folder, "tokenizer.json");
    FR_TRY(fr_tokenizer_save(writer->tokenizer, path, error));
    corpus_manifest manifest;
    char *json = NULL;
    fill_manifest(writer, &manifest);
    FR_TRY(corpus_manifest_format(&manifest, details, &json, error));
    fr_path_join(path, sizeof path, writer->folder, "corpus.json");
    fr_status status = fr_file_write(path, json, strlen(json), error);
    free(json);
    writer->finished = status == FR_OK;
    return status;
}
