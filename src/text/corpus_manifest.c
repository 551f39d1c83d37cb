/* corpus_manifest.c: corpus.json, the list of what a data folder holds.
 *
 * The manifest is written last and read first: it names every shard with its counts and checksum, so a
 * missing, swapped or added file is noticed, and it names the evaluation sets that scores refer to. Its
 * own SHA-256 names the data in receipts; therefore nothing in it depends on when, where or on how many
 * threads the import ran. Checksums are hex strings because JSON numbers end at 53 bits in many readers.
 * Upgrade rule: "schema" counts up; a reader refuses what is newer than itself.
 */
#include "text/corpus_manifest.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static const char damaged_hint[] = "corpus.json was altered or cut short: run the import again";

const char *corpus_split_name(fr_corpus_split split)
{
    return split == FR_TRAIN ? "train" : "valid";
}

void corpus_shard_name(char out[32], fr_corpus_split split, int64_t number)
{
    snprintf(out, 32, "%s-%05lld.tok", corpus_split_name(split), (long long)number);
}

/* ---- writing ---- */

static json_t *format_shards(const corpus_split_entry *split)
{
    json_t *shards = json_array();
    for (int64_t i = 0; i < split->shard_count; i++) {
        const corpus_shard_entry *shard = &split->shards[i];
        char checksum[17];
        snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)shard->checksum);
        json_t *entry = json_pack("{s:s, s:I, s:I, s:I, s:s}", "file", shard->file, "documents",
                                  (json_int_t)shard->documents, "bytes", (json_int_t)shard->bytes, "tokens",
                                  (json_int_t)shard->tokens, "checksum", checksum);
        if (!entry || json_array_append_new(shards, entry) != 0) {
            json_decref(shards);
            return NULL;
        }
    }
    return shards;
}

static json_t *format_split(const corpus_split_entry *split)
{
    json_t *shards = format_shards(split);
    if (!shards)
        return NULL;
    return json_pack("{s:I, s:I, s:I, s:s, s:o}", "documents", (json_int_t)split->documents, "bytes",
                     (json_int_t)split->bytes, "tokens", (json_int_t)split->tokens, "text_sha256",
                     split->text_sha256, "shards", shards);
}

static json_t *format_sets(const corpus_manifest *manifest)
{
    json_t *sets = json_array();
    for (int i = 0; i < manifest->set_count; i++) {
        const fr_eval_set *set = &manifest->sets[i];
        json_t *entry = json_pack("{s:s, s:I, s:I, s:I, s:s}", "name", set->name, "documents",
                                  (json_int_t)set->documents, "bytes", (json_int_t)set->bytes, "tokens",
                                  (json_int_t)set->tokens, "text_sha256", set->text_sha256);
        if (!entry || json_array_append_new(sets, entry) != 0) {
            json_decref(sets);
            return NULL;
        }
    }
    return sets;
}

/* jansson's setters take NULL values as failures, so one check of the result is enough. */
static bool put_all(json_t *root, const corpus_manifest *manifest)
{
    json_t *tokenizer = json_pack("{s:s, s:s, s:i, s:i}", "file", "tokenizer.json", "hash",
                                  manifest->tokenizer_hash, "vocab", (int)manifest->vocab, "bos",
                                  (int)manifest->bos);
    int failures = json_object_set_new(root, "format", json_string("frontier-corpus"));
    failures |= json_object_set_new(root, "schema", json_integer(CORPUS_MANIFEST_SCHEMA));
    failures |= json_object_set_new(root, "tokenizer", tokenizer);
    failures |= json_object_set_new(root, "train", format_split(&manifest->split[FR_TRAIN]));
    failures |= json_object_set_new(root, "valid", format_split(&manifest->split[FR_VALID]));
    failures |= json_object_set_new(root, "eval_sets", format_sets(manifest));
    return failures == 0;
}

static fr_status put_details(json_t *root, const char *details, fr_error *error)
{
    json_error_t problem;
    json_t *more = json_loads(details, JSON_REJECT_DUPLICATES, &problem);
    if (!json_is_object(more)) {
        json_decref(more);
        return fr_error_set(error, FR_BAD_USAGE, "corpus details", NULL, "not a JSON object: %s", problem.text);
    }
    const char *key;
    json_t *value;
    fr_status status = FR_OK;
    json_object_foreach(more, key, value) {
        if (json_object_get(root, key))
            status = fr_error_set(error, FR_BAD_USAGE, "corpus details", NULL, "key '%s' is taken", key);
        else if (json_object_set(root, key, value) != 0)
            status = fr_error_memory(error, 0, "corpus.json");
        if (status != FR_OK)
            break;
    }
    json_decref(more);
    return status;
}

fr_status corpus_manifest_format(const corpus_manifest *manifest, const char *details, char **json, fr_error *error)
{
    json_t *root = json_object();
    fr_status status = FR_OK;
    if (!root || !put_all(root, manifest))
        status = fr_error_memory(error, 0, "corpus.json");
    else if (details)
        status = put_details(root, details, error);
    if (status == FR_OK) {
        *json = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
        if (!*json)
            status = fr_error_memory(error, 0, "corpus.json");
    }
    json_decref(root);
    return status;
}

/* ---- reading ---- */

typedef struct manifest_reader {
    fr_arena *arena;
    const char *origin;
    fr_error *error;
} manifest_reader;

static fr_status damaged(const manifest_reader *reader, const char *what)
{
    return fr_error_set(reader->error, FR_BAD_DATA, reader->origin, damaged_hint, "%s", what);
}

static fr_status get_count(const manifest_reader *reader, const json_t *object, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >> 40)
        return fr_error_set(reader->error, FR_BAD_DATA, reader->origin, damaged_hint,
                            "'%s' is missing or is no count", key);
    *out = json_integer_value(value);
    return FR_OK;
}

static fr_status get_text(const manifest_reader *reader, const json_t *object, const char *key, char *out, size_t size)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value) || json_string_length(value) >= size || strlen(json_string_value(value)) == 0)
        return fr_error_set(reader->error, FR_BAD_DATA, reader->origin, damaged_hint,
                            "'%s' is missing, empty or too long", key);
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return FR_OK;
}

static fr_status get_hex(const manifest_reader *reader, const json_t *object, const char *key, char *out, size_t digits)
{
    FR_TRY(get_text(reader, object, key, out, digits + 1));
    if (strlen(out) != digits || strspn(out, "0123456789abcdef") != digits)
        return fr_error_set(reader->error, FR_BAD_DATA, reader->origin, damaged_hint, "'%s' is no hash", key);
    return FR_OK;
}

static fr_status get_counts(const manifest_reader *reader, const json_t *object, int64_t *documents, int64_t *bytes, int64_t *tokens)
{
    FR_TRY(get_count(reader, object, "documents", documents));
    FR_TRY(get_count(reader, object, "bytes", bytes));
    return get_count(reader, object, "tokens", tokens);
}

/* File names are fixed by number: a manifest can never point outside its folder. */
static fr_status parse_shard(const manifest_reader *reader, const json_t *object, fr_corpus_split split, int64_t number, corpus_shard_entry *shard)
{
    char want[32], checksum[17];
    corpus_shard_name(want, split, number);
    FR_TRY(get_text(reader, object, "file", shard->file, sizeof shard->file));
    if (strcmp(shard->file, want) != 0)
        return fr_error_set(reader->error, FR_BAD_DATA, reader->origin, damaged_hint,
                            "shard %lld of %s must be named '%s'", (long long)number, corpus_split_name(split), want);
    FR_TRY(get_counts(reader, object, &shard->documents, &shard->bytes, &shard->tokens));
    FR_TRY(get_hex(reader, object, "checksum", checksum, 16));
    shard->checksum = strtoull(checksum, NULL, 16);
    return FR_OK;
}

static fr_status check_sum(const manifest_reader *reader, const corpus_split_entry *split)
{
    int64_t documents = 0, bytes = 0, tokens = 0;
    for (int64_t i = 0; i < split->shard_count; i++) {
        documents += split->shards[i].documents;
        bytes += split->shards[i].bytes;
        tokens += split->shards[i].tokens;
    }
    if (documents != split->documents || bytes != split->bytes || tokens != split->tokens)
        return damaged(reader, "shards do not add up to the split's counts");
    return FR_OK;
}

static fr_status parse_split(const manifest_reader *reader, const json_t *root, fr_corpus_split kind, corpus_split_entry *split)
{
    const json_t *object = json_object_get(root, corpus_split_name(kind));
    const json_t *shards = json_object_get(object, "shards");
    if (!json_is_array(shards) || json_array_size(shards) > 65536)
        return damaged(reader, "a split or its shard list is missing");
    FR_TRY(get_counts(reader, object, &split->documents, &split->bytes, &split->tokens));
    FR_TRY(get_hex(reader, object, "text_sha256", split->text_sha256, 64));
    split->shard_count = (int64_t)json_array_size(shards);
    size_t size = (json_array_size(shards) + 1) * sizeof *split->shards;
    split->shards = fr_arena_alloc(reader->arena, size);
    if (!split->shards)
        return fr_error_memory(reader->error, size, "the list of shards");
    for (int64_t i = 0; i < split->shard_count; i++)
        FR_TRY(parse_shard(reader, json_array_get(shards, (size_t)i), kind, i, &split->shards[i]));
    return check_sum(reader, split);
}

static fr_status parse_sets(const manifest_reader *reader, const json_t *root, corpus_manifest *manifest)
{
    const json_t *sets = json_object_get(root, "eval_sets");
    size_t count = json_array_size(sets);
    if (!json_is_array(sets) || count > CORPUS_SETS)
        return damaged(reader, "'eval_sets' is missing or too long");
    manifest->set_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        fr_eval_set *set = &manifest->sets[i];
        const json_t *object = json_array_get(sets, i);
        FR_TRY(get_text(reader, object, "name", set->name, sizeof set->name));
        FR_TRY(get_counts(reader, object, &set->documents, &set->bytes, &set->tokens));
        FR_TRY(get_hex(reader, object, "text_sha256", set->text_sha256, 64));
    }
    return FR_OK;
}

static fr_status parse_tokenizer(const manifest_reader *reader, const json_t *root, corpus_manifest *manifest)
{
    const json_t *object = json_object_get(root, "tokenizer");
    int64_t vocab = 0, bos = 0;
    FR_TRY(get_hex(reader, object, "hash", manifest->tokenizer_hash, 64));
    FR_TRY(get_count(reader, object, "vocab", &vocab));
    FR_TRY(get_count(reader, object, "bos", &bos));
    if (vocab > INT32_MAX || bos >= vocab)
        return damaged(reader, "the tokenizer's vocabulary makes no sense");
    manifest->vocab = (int32_t)vocab;
    manifest->bos = (int32_t)bos;
    return FR_OK;
}

static fr_status check_schema(const manifest_reader *reader, const json_t *root)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!format || strcmp(format, "frontier-corpus") != 0)
        return fr_error_set(reader->error, FR_BAD_DATA, reader->origin, "a data folder comes from 'data import' or 'data world'",
                            "not a data folder's corpus.json");
    json_int_t schema = json_integer_value(json_object_get(root, "schema"));
    if (schema != CORPUS_MANIFEST_SCHEMA)
        return fr_error_set(reader->error, FR_BAD_DATA, reader->origin, "use the program that wrote it, or run the import again",
                            "corpus.json schema %lld, this program reads schema %d", (long long)schema,
                            CORPUS_MANIFEST_SCHEMA);
    return FR_OK;
}

static fr_status parse_root(const manifest_reader *reader, const json_t *root, corpus_manifest *manifest)
{
    FR_TRY(check_schema(reader, root));
    FR_TRY(parse_tokenizer(reader, root, manifest));
    FR_TRY(parse_split(reader, root, FR_TRAIN, &manifest->split[FR_TRAIN]));
    FR_TRY(parse_split(reader, root, FR_VALID, &manifest->split[FR_VALID]));
    FR_TRY(parse_sets(reader, root, manifest));
    const json_t *floor_bpb = json_object_get(root, "floor_bpb");
    manifest->floor_bpb = json_is_number(floor_bpb) ? json_number_value(floor_bpb) : NAN;
    return FR_OK;
}

fr_status corpus_manifest_parse(corpus_manifest *manifest, fr_arena *arena, const char *json, size_t bytes,
                                const char *origin, fr_error *error)
{
    memset(manifest, 0, sizeof *manifest);
    json_error_t problem;
    json_t *root = json_loadb(json, bytes, JSON_REJECT_DUPLICATES, &problem);
    if (!root)
        return fr_error_set(error, FR_BAD_DATA, origin, damaged_hint, "line %d: %s", problem.line, problem.text);
    manifest_reader reader = {arena, origin, error};
    fr_status status = parse_root(&reader, root, manifest);
    json_decref(root);
    return status;
}
