/* corpus.c: an opened data folder.
 *
 * Opening believes nothing: manifest against shard headers against file sizes against the tokenizer. After
 * that every document is a range of a mapped shard, found by one binary search over shards; the maps are
 * shared, so a corpus larger than memory is fine and any number of threads may read. A corpus is immutable.
 * Content is checked shard by shard before it is first used: a flipped bit would else become training text that
 * nobody wrote, and checking all at the start would read gigabytes that a short run never needs.
 */
#include "text/corpus.h"

#include "text/corpus_manifest.h"
#include "text/corpus_shard.h"

#include <stdatomic.h>
#include <string.h>

typedef struct mapped_shard {
    fr_mapping mapping;
    corpus_shard view;
    atomic_bool intact; /* the content's checksum was found right */
    int64_t first_document, first_token; /* of the split */
    char path[1200];
} mapped_shard;

struct fr_corpus {
    fr_arena arena; /* holds the manifest's shard lists and the shards */
    char folder[1024], hash[65];
    corpus_manifest manifest;
    fr_tokenizer *tokenizer;
    mapped_shard *shards[2];
    int64_t mapped[2]; /* shards of each split whose mapping exists */
};

static const char import_hint[] = "the folder's files do not belong together: run the import again";

/* ---- opening ---- */

static fr_status check_entry(const fr_corpus *corpus, const mapped_shard *shard, const corpus_shard_entry *entry, fr_error *error)
{
    const corpus_shard_header *header = &shard->view.header;
    if (header->vocab != (uint32_t)corpus->manifest.vocab || header->bos != (uint32_t)corpus->manifest.bos ||
        header->tokenizer_tag != corpus_shard_tag(corpus->manifest.tokenizer_hash))
        return fr_error_set(error, FR_BAD_DATA, shard->path, import_hint, "the shard was made with another tokenizer");
    if (header->documents != entry->documents || header->bytes != entry->bytes || header->tokens != entry->tokens ||
        header->checksum != entry->checksum)
        return fr_error_set(error, FR_BAD_DATA, shard->path, import_hint,
                            "the shard is not the one corpus.json describes");
    return FR_OK;
}

static fr_status open_shard(fr_corpus *corpus, mapped_shard *shard, const corpus_shard_entry *entry, bool verify, fr_error *error)
{
    FR_TRY(corpus_shard_open(&shard->view, shard->mapping.data, shard->mapping.bytes, shard->path, error));
    FR_TRY(check_entry(corpus, shard, entry, error));
    if (verify)
        FR_TRY(corpus_shard_verify(&shard->view, shard->path, error));
    atomic_store(&shard->intact, verify);
    return FR_OK;
}

/* Before the first copy from a shard, wherever that is: in training, on the thread that packs ahead. Two threads may both
 * find out; neither waits for the other. */
static fr_status check_intact(mapped_shard *shard, fr_error *error)
{
    if (atomic_load_explicit(&shard->intact, memory_order_relaxed))
        return FR_OK;
    FR_TRY(corpus_shard_intact(&shard->view, shard->path, error));
    atomic_store_explicit(&shard->intact, true, memory_order_relaxed);
    return FR_OK;
}

static fr_status open_split(fr_corpus *corpus, fr_corpus_split kind, bool verify, fr_error *error)
{
    const corpus_split_entry *split = &corpus->manifest.split[kind];
    size_t size = (size_t)(split->shard_count + 1) * sizeof(mapped_shard);
    corpus->shards[kind] = fr_arena_alloc(&corpus->arena, size);
    if (!corpus->shards[kind])
        return fr_error_memory(error, size, "the list of shards");
    int64_t documents = 0, tokens = 0;
    for (int64_t i = 0; i < split->shard_count; i++) {
        mapped_shard *shard = &corpus->shards[kind][i];
        fr_path_join(shard->path, sizeof shard->path, corpus->folder, split->shards[i].file);
        shard->first_document = documents;
        shard->first_token = tokens;
        FR_TRY(fr_mapping_init(&shard->mapping, shard->path, error));
        corpus->mapped[kind]++;
        FR_TRY(open_shard(corpus, shard, &split->shards[i], verify, error));
        documents += split->shards[i].documents;
        tokens += split->shards[i].tokens;
    }
    return FR_OK;
}

static fr_status check_set(const fr_corpus *corpus, const fr_eval_set *set, const char *path, fr_error *error)
{
    int64_t tokens = 0, bytes = 0;
    bool fits = set->documents <= fr_corpus_documents(corpus, FR_VALID);
    for (int64_t i = 0; fits && i < set->documents; i++) {
        tokens += fr_corpus_document_tokens(corpus, FR_VALID, i);
        bytes += fr_corpus_document_bytes(corpus, FR_VALID, i);
    }
    if (!fits || tokens != set->tokens || bytes != set->bytes)
        return fr_error_set(error, FR_BAD_DATA, path, import_hint,
                            "evaluation set '%s' does not agree with the shards", set->name);
    return FR_OK;
}

static fr_status open_tokenizer(fr_corpus *corpus, fr_error *error)
{
    char path[1200], hash[65];
    fr_path_join(path, sizeof path, corpus->folder, "tokenizer.json");
    FR_TRY(fr_tokenizer_load(&corpus->tokenizer, path, error));
    fr_tokenizer_hash(corpus->tokenizer, hash);
    if (strcmp(hash, corpus->manifest.tokenizer_hash) != 0 ||
        fr_tokenizer_vocab(corpus->tokenizer) != corpus->manifest.vocab ||
        fr_tokenizer_bos(corpus->tokenizer) != corpus->manifest.bos)
        return fr_error_set(error, FR_BAD_DATA, path, import_hint, "not the tokenizer the corpus was made with");
    return FR_OK;
}

static fr_status open_manifest(fr_corpus *corpus, const char *path, fr_error *error)
{
    char *json;
    size_t bytes;
    if (!fr_path_exists(path))
        return fr_error_set(error, FR_BAD_DATA, corpus->folder, "make one with 'frontier data import' or 'frontier data world'",
                            "not a data folder: it has no corpus.json");
    FR_TRY(fr_file_read(&corpus->arena, path, &json, &bytes, error));
    fr_sha256(json, bytes, corpus->hash);
    return corpus_manifest_parse(&corpus->manifest, &corpus->arena, json, bytes, path, error);
}

static fr_status open_all(fr_corpus *corpus, bool verify, fr_error *error)
{
    char path[1200];
    fr_path_join(path, sizeof path, corpus->folder, "corpus.json");
    FR_TRY(open_manifest(corpus, path, error));
    FR_TRY(open_tokenizer(corpus, error));
    FR_TRY(open_split(corpus, FR_TRAIN, verify, error));
    FR_TRY(open_split(corpus, FR_VALID, verify, error));
    for (int i = 0; i < corpus->manifest.set_count; i++)
        FR_TRY(check_set(corpus, &corpus->manifest.sets[i], path, error));
    return FR_OK;
}

fr_status fr_corpus_open(fr_corpus **out, const char *folder, bool verify, fr_error *error)
{
    *out = NULL;
    if (strlen(folder) > 1000)
        return fr_error_set(error, FR_BAD_USAGE, folder, "choose a shorter path", "folder name is too long");
    fr_corpus *corpus = fr_allocate(sizeof *corpus);
    if (!corpus)
        return fr_error_memory(error, sizeof *corpus, "the corpus");
    fr_arena_init(&corpus->arena, 1 << 16);
    snprintf(corpus->folder, sizeof corpus->folder, "%s", folder);
    fr_status status = open_all(corpus, verify, error);
    if (status != FR_OK) {
        fr_corpus_free(corpus);
        return status;
    }
    *out = corpus;
    return FR_OK;
}

void fr_corpus_free(fr_corpus *corpus)
{
    if (!corpus)
        return;
    for (int kind = 0; kind < 2; kind++)
        for (int64_t i = 0; i < corpus->mapped[kind]; i++)
            fr_mapping_release(&corpus->shards[kind][i].mapping);
    fr_tokenizer_free(corpus->tokenizer);
    fr_arena_release(&corpus->arena);
    fr_deallocate(corpus);
}

/* ---- what it is ---- */

const fr_tokenizer *fr_corpus_tokenizer(const fr_corpus *corpus)
{
    return corpus->tokenizer;
}

const char *fr_corpus_hash(const fr_corpus *corpus)
{
    return corpus->hash;
}

const char *fr_corpus_folder(const fr_corpus *corpus)
{
    return corpus->folder;
}

int64_t fr_corpus_documents(const fr_corpus *corpus, fr_corpus_split split)
{
    return corpus->manifest.split[split].documents;
}

int64_t fr_corpus_tokens(const fr_corpus *corpus, fr_corpus_split split)
{
    return corpus->manifest.split[split].tokens;
}

int64_t fr_corpus_bytes(const fr_corpus *corpus, fr_corpus_split split)
{
    return corpus->manifest.split[split].bytes;
}

double fr_corpus_floor_bpb(const fr_corpus *corpus)
{
    return corpus->manifest.floor_bpb;
}

static fr_status no_such_set(const fr_corpus *corpus, const char *name, fr_error *error)
{
    char known[300] = "";
    for (int i = 0; i < corpus->manifest.set_count; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "this folder has: ", corpus->manifest.sets[i].name);
    }
    return fr_error_set(error, FR_BAD_USAGE, corpus->folder, known, "no evaluation set '%s'", name);
}

fr_status fr_corpus_eval_set(const fr_corpus *corpus, const char *name, fr_eval_set *set, fr_error *error)
{
    const char *wanted = name ? name : "valid";
    for (int i = 0; i < corpus->manifest.set_count; i++)
        if (strcmp(corpus->manifest.sets[i].name, wanted) == 0) {
            *set = corpus->manifest.sets[i];
            return FR_OK;
        }
    return no_such_set(corpus, wanted, error);
}

/* ---- documents ---- */

/* The last shard whose first document (or token) is not beyond `value`. */
static mapped_shard *find_shard(const fr_corpus *corpus, fr_corpus_split split, int64_t value, bool by_token)
{
    mapped_shard *shards = corpus->shards[split];
    int64_t low = 0, high = corpus->mapped[split];
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        int64_t first = by_token ? shards[middle].first_token : shards[middle].first_document;
        if (first <= value)
            low = middle;
        else
            high = middle;
    }
    return &shards[low];
}

static bool exists(const fr_corpus *corpus, fr_corpus_split split, int64_t document)
{
    return document >= 0 && document < fr_corpus_documents(corpus, split);
}

int64_t fr_corpus_document_tokens(const fr_corpus *corpus, fr_corpus_split split, int64_t index)
{
    if (!exists(corpus, split, index))
        return -1;
    const mapped_shard *shard = find_shard(corpus, split, index, false);
    int64_t local = index - shard->first_document;
    return corpus_shard_token_start(&shard->view, local + 1) - corpus_shard_token_start(&shard->view, local);
}

int64_t fr_corpus_document_bytes(const fr_corpus *corpus, fr_corpus_split split, int64_t index)
{
    if (!exists(corpus, split, index))
        return -1;
    const mapped_shard *shard = find_shard(corpus, split, index, false);
    int64_t local = index - shard->first_document;
    return corpus_shard_byte_start(&shard->view, local + 1) - corpus_shard_byte_start(&shard->view, local);
}

int64_t fr_corpus_document(const fr_corpus *corpus, fr_corpus_split split, int64_t index, int32_t *ids, int64_t capacity)
{
    int64_t tokens = fr_corpus_document_tokens(corpus, split, index);
    int64_t count = tokens < capacity ? tokens : capacity;
    if (count > 0 && corpus_copy(corpus, split, index, 0, count, ids, NULL) != FR_OK)
        return -1;
    return tokens;
}

fr_status corpus_copy(const fr_corpus *corpus, fr_corpus_split split, int64_t document, int64_t start, int64_t count,
                      int32_t *ids, fr_error *error)
{
    mapped_shard *shard = find_shard(corpus, split, document, false);
    FR_TRY(check_intact(shard, error));
    int64_t first = corpus_shard_token_start(&shard->view, document - shard->first_document);
    if (!corpus_shard_copy(&shard->view, first + start, count, ids))
        return fr_error_set(error, FR_BAD_DATA, shard->path, import_hint, "document %lld has an id beyond the vocabulary",
                            (long long)document);
    return FR_OK;
}

int64_t corpus_token_start(const fr_corpus *corpus, fr_corpus_split split, int64_t document)
{
    if (document >= fr_corpus_documents(corpus, split))
        return fr_corpus_tokens(corpus, split);
    const mapped_shard *shard = find_shard(corpus, split, document, false);
    return shard->first_token + corpus_shard_token_start(&shard->view, document - shard->first_document);
}

int64_t corpus_document_at(const fr_corpus *corpus, fr_corpus_split split, int64_t position)
{
    const mapped_shard *shard = find_shard(corpus, split, position, true);
    int64_t local = position - shard->first_token, low = 0, high = shard->view.header.documents;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (corpus_shard_token_start(&shard->view, middle) <= local)
            low = middle;
        else
            high = middle;
    }
    return shard->first_document + low;
}
