/* Data folders: what is written comes back, and every altered file is refused by name. */
#include "test.h"
#include "text_fixture.h"

#include "text/corpus_shard.h"
#include "text/corpus_writer.h"

enum { DOCUMENTS = 120 };

static size_t make_text(int64_t index, char *out) /* distinct, lengths from 1 to about 300 */
{
    size_t length = 1 + (size_t)(fr_rng_at(7, 1, (uint64_t)index) % 300);
    for (size_t i = 0; i < length; i++)
        out[i] = (char)fr_rng_at(7, 2 + (uint64_t)index, i);
    return length;
}

static fr_corpus_split split_of(int64_t index)
{
    return index % 3 == 0 ? FR_VALID : FR_TRAIN;
}

/* Writes the standard corpus with small shards and a prefix of 2,000 tokens. */
static fr_status write_corpus(const char *folder, const fr_tokenizer *tokenizer, const char *details, fr_error *error)
{
    fr_corpus_writer *writer = NULL;
    FR_TRY(fr_corpus_writer_create(&writer, folder, tokenizer, error));
    corpus_writer_set_sizes(writer, 3000, 2000);
    fr_status status = FR_OK;
    for (int64_t i = 0; status == FR_OK && i < DOCUMENTS; i++) {
        char text[512];
        size_t bytes = make_text(i, text);
        status = fr_corpus_writer_document(writer, split_of(i), text, bytes, error);
    }
    if (status == FR_OK)
        status = fr_corpus_writer_finish(writer, details, error);
    fr_corpus_writer_free(writer);
    return status;
}

static void alter(const char *folder, const char *name, long at, int change) /* change < 0: cut there */
{
    char path[1300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (change < 0) {
        CHECK(truncate(path, at) == 0);
        return;
    }
    FILE *file = fopen(path, "r+b");
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    int c = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(c ^ change, file);
    fclose(file);
}

TEST(documents_come_back)
{
    fr_error error = {0};
    fr_tokenizer *tokenizer = fixture_tokenizer(10);
    const char *folder = fixture_path("round");
    CHECK_OK(write_corpus(folder, tokenizer, "{\"licence\": \"CC0\", \"floor_bpb\": 0.75}", &error));
    fr_corpus *corpus = NULL;
    CHECK_OK(fr_corpus_open(&corpus, folder, true, &error));
    if (!corpus)
        return;
    CHECK_NEAR(fr_corpus_floor_bpb(corpus), 0.75, 0, 0);
    CHECK(fixture_exists(folder, "train-00002.tok"));
    int64_t at[2] = {0, 0}, bytes[2] = {0, 0}, tokens[2] = {0, 0};
    for (int64_t i = 0; i < DOCUMENTS; i++) {
        char text[512];
        int32_t ids[600];
        size_t length = make_text(i, text);
        fr_corpus_split split = split_of(i);
        int64_t count = fr_corpus_document(corpus, split, at[split], ids, 600);
        CHECK(count >= 2 && ids[0] == fr_tokenizer_bos(tokenizer));
        CHECK_INT(fr_corpus_document_tokens(corpus, split, at[split]), count);
        CHECK_INT(fr_corpus_document_bytes(corpus, split, at[split]), length);
        fr_buffer decoded;
        fr_buffer_init(&decoded, 0);
        CHECK_OK(fr_tokenizer_decode(tokenizer, ids + 1, count - 1, false, &decoded, &error));
        CHECK(decoded.length == length && memcmp(decoded.data, text, length) == 0);
        fr_buffer_release(&decoded);
        at[split]++;
        bytes[split] += (int64_t)length;
        tokens[split] += count;
    }
    for (int split = 0; split < 2; split++) {
        CHECK_INT(fr_corpus_documents(corpus, (fr_corpus_split)split), at[split]);
        CHECK_INT(fr_corpus_bytes(corpus, (fr_corpus_split)split), bytes[split]);
        CHECK_INT(fr_corpus_tokens(corpus, (fr_corpus_split)split), tokens[split]);
        CHECK_INT(fr_corpus_document_tokens(corpus, (fr_corpus_split)split, at[split]), -1);
        CHECK_INT(fr_corpus_document_bytes(corpus, (fr_corpus_split)split, -1), -1);
    }
    fr_corpus_free(corpus);
    fr_tokenizer_free(tokenizer);
}

TEST(evaluation_sets_are_prefixes_with_text_hashes)
{
    fr_error error = {0};
    fr_tokenizer *tokenizer = fixture_tokenizer(0);
    const char *folder = fixture_path("sets");
    CHECK_OK(write_corpus(folder, tokenizer, NULL, &error));
    fr_corpus *corpus = NULL;
    CHECK_OK(fr_corpus_open(&corpus, folder, false, &error));
    if (!corpus)
        return;
    fr_eval_set whole, prefix;
    CHECK_OK(fr_corpus_eval_set(corpus, NULL, &whole, &error));
    CHECK_OK(fr_corpus_eval_set(corpus, "valid-2M", &prefix, &error));
    CHECK_INT(whole.documents, fr_corpus_documents(corpus, FR_VALID));
    CHECK(prefix.tokens >= 2000 && prefix.documents < whole.documents);
    CHECK(prefix.tokens - fr_corpus_document_tokens(corpus, FR_VALID, prefix.documents - 1) < 2000);
    /* The hash by its definition: uint64 length, then bytes, per document. */
    fr_buffer all;
    fr_buffer_init(&all, 0);
    char hex[65], text[512];
    for (int64_t i = 0, seen = 0; i < DOCUMENTS; i++) {
        if (split_of(i) != FR_VALID)
            continue;
        uint64_t length = make_text(i, text);
        unsigned char prefix_bytes[8];
        for (int b = 0; b < 8; b++)
            prefix_bytes[b] = (unsigned char)(length >> (8 * b));
        fr_buffer_append(&all, prefix_bytes, 8);
        fr_buffer_append(&all, text, length);
        if (++seen == prefix.documents) {
            fr_sha256(all.data, all.length, hex);
            CHECK_STR(prefix.text_sha256, hex);
            CHECK_INT(prefix.bytes, (int64_t)all.length - 8 * seen);
        }
    }
    fr_sha256(all.data, all.length, hex);
    CHECK_STR(whole.text_sha256, hex);
    fr_buffer_release(&all);
    CHECK_INT(fr_corpus_eval_set(corpus, "valid-7M", &whole, &error), FR_BAD_USAGE);
    CHECK(strstr(error.hint, "valid-2M") != NULL);
    fr_corpus_free(corpus);
    fr_tokenizer_free(tokenizer);
}

static void check_refused(const char *folder, bool verify, const char *part)
{
    fr_error error = {0};
    fr_corpus *corpus = NULL;
    CHECK_INT(fr_corpus_open(&corpus, folder, verify, &error), FR_BAD_DATA);
    CHECK(corpus == NULL);
    if (!strstr(error.what, part) && !strstr(error.where, part))
        CHECK_STR(error.what, part);
    CHECK(error.hint[0] != '\0');
}

/* Each case alters one file of a good folder; `verify` is needed when only the content can tell. */
TEST(altered_files_are_refused)
{
    static const struct {
        const char *file;
        long at;
        int change;
        bool verify;
        const char *part;
    } cases[] = {
        {"train-00000.tok", 0, 1, false, "not a token shard"},
        {"train-00000.tok", 8, 2, false, "version 3"},
        {"train-00000.tok", 17, 1, false, "header checksum"},
        {"train-00000.tok", 64, 1, false, "header checksum"},
        {"train-00000.tok", 500, -1, false, "truncated"},
        {"train-00000.tok", 10, -1, false, "too short"},
        {"train-00000.tok", 0, -1, false, "too short"},
        {"train-00000.tok", 100, 1, true, "content checksum"},
        {"valid-00000.tok", -16, 1, false, "index"},
        {"valid-00000.tok", 3, 1, false, "valid-00000.tok"},
        {"corpus.json", 30, -1, false, "corpus.json"},
        {"tokenizer.json", 100, -1, false, "tokenizer.json"},
    };
    fr_error error = {0};
    fr_tokenizer *tokenizer = fixture_tokenizer(3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[32];
        snprintf(name, sizeof name, "altered-%zu", i);
        const char *folder = fixture_path(name);
        CHECK_OK(write_corpus(folder, tokenizer, NULL, &error));
        alter(folder, cases[i].file, cases[i].at, cases[i].change);
        check_refused(folder, cases[i].verify, cases[i].part);
    }
    fr_tokenizer_free(tokenizer);
}

static void copy_file(const char *from, const char *to)
{
    fr_arena arena;
    fr_arena_init(&arena, 1 << 12);
    fr_error error = {0};
    char *text;
    size_t bytes;
    CHECK_OK(fr_file_read(&arena, from, &text, &bytes, &error));
    CHECK_OK(fr_file_write(to, text, bytes, &error));
    fr_arena_release(&arena);
}

TEST(files_that_do_not_belong_together_are_refused)
{
    fr_error error = {0};
    fr_tokenizer *one = fixture_tokenizer(3), *other = fixture_tokenizer(4);
    char folder[700], foreign[700], from[800], to[800];
    snprintf(folder, sizeof folder, "%s", fixture_path("mixed"));
    snprintf(foreign, sizeof foreign, "%s", fixture_path("foreign"));
    CHECK_OK(write_corpus(folder, one, NULL, &error));
    CHECK_OK(write_corpus(foreign, other, NULL, &error));
    fr_path_join(from, sizeof from, folder, "train-00001.tok");
    fr_path_join(to, sizeof to, folder, "train-00000.tok");
    copy_file(from, to);
    check_refused(folder, false, "not the one corpus.json describes");
    fr_path_join(from, sizeof from, foreign, "train-00000.tok");
    copy_file(from, to);
    check_refused(folder, false, "another tokenizer");
    CHECK(unlink(to) == 0);
    fr_corpus *corpus = NULL;
    CHECK(fr_corpus_open(&corpus, folder, false, &error) != FR_OK);
    CHECK(strstr(error.where, "train-00000.tok") != NULL);
    fr_path_join(from, sizeof from, folder, "tokenizer.json");
    fr_path_join(to, sizeof to, foreign, "tokenizer.json");
    copy_file(from, to);
    check_refused(foreign, false, "not the tokenizer");
    fr_tokenizer_free(one);
    fr_tokenizer_free(other);
}

static void check_manifest(const char *folder, const char *json, const char *part)
{
    char path[800];
    fr_error error = {0};
    fr_path_join(path, sizeof path, folder, "corpus.json");
    CHECK_OK(fr_file_write(path, json, strlen(json), &error));
    check_refused(folder, false, part);
}

TEST(manifests_are_not_believed)
{
    const char *folder = fixture_folder("manifest");
    check_manifest(folder, "", "line");
    check_manifest(folder, "[]", "not a data folder");
    check_manifest(folder, "{\"format\": \"frontier-corpus\", \"schema\": 2}", "schema 2");
    check_manifest(folder, "{\"format\": \"frontier-corpus\", \"schema\": 1}", "hash");
    static const char start[] = "{\"format\": \"frontier-corpus\", \"schema\": 1, \"tokenizer\": {\"hash\": "
                                "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\", \"vocab\": 300, \"bos\": 299}";
    char json[1200];
    snprintf(json, sizeof json, "%s}", start);
    check_manifest(folder, json, "split");
    static const char hash[] = "\"text_sha256\": \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"";
    snprintf(json, sizeof json, "%s, \"train\": {\"documents\": -1, \"shards\": []}}", start);
    check_manifest(folder, json, "documents");
    snprintf(json, sizeof json,
             "%s, \"train\": {\"documents\": 1, \"bytes\": 1, \"tokens\": 2, %s, \"shards\": [{\"file\": \"../../etc/passwd\"}]}}", start, hash);
    check_manifest(folder, json, "must be named");
    snprintf(json, sizeof json, "%s, \"train\": {\"documents\": 9, \"bytes\": 1, \"tokens\": 2, %s, \"shards\": []}}", start, hash);
    check_manifest(folder, json, "do not add up");
    check_refused(fixture_path("nowhere"), false, "no corpus.json");
}

/* Hostile headers with right checksums: the values themselves must be refused. */
TEST(contradicting_headers_are_refused)
{
    fr_error error = {0};
    uint8_t file[CORPUS_SHARD_HEADER + 8 + CORPUS_INDEX_ENTRY] = {0};
    const corpus_shard_header good = {2, 300, 299, 2, 1, 1, 0, 0};
    for (int i = 0; i < 10; i++) {
        corpus_shard_header header = good;
        int64_t token_end = 2, byte_end = 1;
        int32_t ids[2] = {299, 5};
        switch (i) {
        case 1: header.tokens = INT64_MAX / 2; break;
        case 2: header.documents = INT64_MAX / 8; break;
        case 3: header.id_bytes = 4; break;
        case 4: header.vocab = 0; break;
        case 5: header.bos = 300; break;
        case 6: token_end = 3; break;
        case 7: byte_end = -1; break;
        case 8: ids[1] = 299; break;
        case 9: ids[1] = 300; break;
        default: break;
        }
        corpus_shard_write_id(ids[0], 2, file + CORPUS_SHARD_HEADER);
        corpus_shard_write_id(ids[1], 2, file + CORPUS_SHARD_HEADER + 2);
        corpus_shard_write_entry(token_end, byte_end, file + CORPUS_SHARD_HEADER + 8);
        header.checksum = corpus_shard_checksum(file + CORPUS_SHARD_HEADER, 8, file + CORPUS_SHARD_HEADER + 8, CORPUS_INDEX_ENTRY);
        corpus_shard_write_header(&header, file);
        CHECK_INT(fr_corpus_check_shard(file, sizeof file, "shard", &error), i == 0 ? FR_OK : FR_BAD_DATA);
    }
}

TEST(wide_vocabularies_use_four_bytes)
{
    uint8_t file[CORPUS_SHARD_HEADER + 16 + CORPUS_INDEX_ENTRY] = {0};
    corpus_shard_header header = {4, 70000, 69999, 3, 1, 2, 0, 0};
    const int32_t ids[3] = {69999, 65536, 5};
    for (int i = 0; i < 3; i++)
        corpus_shard_write_id(ids[i], 4, file + CORPUS_SHARD_HEADER + 4 * i);
    corpus_shard_write_entry(3, 2, file + CORPUS_SHARD_HEADER + 16);
    header.checksum = corpus_shard_checksum(file + CORPUS_SHARD_HEADER, 16, file + CORPUS_SHARD_HEADER + 16, CORPUS_INDEX_ENTRY);
    corpus_shard_write_header(&header, file);
    corpus_shard shard;
    fr_error error = {0};
    CHECK_OK(corpus_shard_open(&shard, file, sizeof file, "shard", &error));
    CHECK_OK(corpus_shard_verify(&shard, "shard", &error));
    int32_t back[3];
    CHECK(corpus_shard_copy(&shard, 0, 3, back) && memcmp(back, ids, sizeof ids) == 0);
    CHECK_INT(corpus_shard_id_bytes(65536), 2);
    CHECK_INT(corpus_shard_id_bytes(65537), 4);
}

TEST(an_existing_corpus_is_not_overwritten)
{
    fr_error error = {0};
    fr_tokenizer *tokenizer = fixture_tokenizer(0);
    const char *folder = fixture_path("twice");
    CHECK_OK(write_corpus(folder, tokenizer, NULL, &error));
    CHECK_INT(write_corpus(folder, tokenizer, NULL, &error), FR_BAD_USAGE);
    CHECK_OK(fr_corpus_remove(folder, &error));
    CHECK(!fixture_exists(folder, "corpus.json") && !fixture_exists(folder, "train-00000.tok"));
    CHECK_OK(fr_corpus_remove(fixture_path("never-was"), &error));
    CHECK_OK(write_corpus(folder, tokenizer, NULL, &error));
    CHECK_INT(write_corpus(fixture_path("details"), tokenizer, "{\"train\": 1}", &error), FR_BAD_USAGE);
    CHECK_INT(write_corpus(fixture_path("details"), tokenizer, "no json", &error), FR_BAD_USAGE);
    CHECK(!fixture_exists(fixture_path("details"), "corpus.json"));
    fr_tokenizer_free(tokenizer);
}

/* The disk fills up after n bytes, for n up to success: never a corpus.json before the end, no shards left. */
TEST(a_full_disk_leaves_no_corpus)
{
    fr_error error = {0};
    fr_tokenizer *tokenizer = fixture_tokenizer(0);
    const char *folder = fixture_path("full");
    bool done = false;
    int failures = 0;
    for (int64_t n = 0; !done && n < 10000000; n += 4001) {
        fr_file_fail_after(n);
        fr_status status = write_corpus(folder, tokenizer, NULL, &error);
        fr_file_fail_after(-1);
        done = status == FR_OK;
        failures += !done;
        CHECK(done == fixture_exists(folder, "corpus.json"));
        CHECK(done || (status == FR_BAD_ENVIRONMENT && !fixture_exists(folder, "train-00000.tok")));
    }
    CHECK(done && failures > 5);
    fr_tokenizer_free(tokenizer);
}

TEST(failed_allocations_are_reported)
{
    fr_error error = {0};
    fr_tokenizer *tokenizer = fixture_tokenizer(0);
    const char *folder = fixture_path("memory");
    bool done = false;
    for (int64_t n = 0; !done && n < 2000; n++) {
        fr_allocate_fail_after(n);
        fr_status status = write_corpus(folder, tokenizer, NULL, &error);
        fr_allocate_fail_after(-1);
        done = status == FR_OK;
        CHECK(done || status == FR_BAD_ENVIRONMENT);
        CHECK(done == fixture_exists(folder, "corpus.json"));
    }
    CHECK(done);
    fr_corpus *corpus = NULL;
    for (int64_t n = 0; !corpus && n < 5000; n++) {
        fr_allocate_fail_after(n);
        fr_status status = fr_corpus_open(&corpus, folder, true, &error);
        fr_allocate_fail_after(-1);
        CHECK(status == (corpus ? FR_OK : FR_BAD_ENVIRONMENT));
    }
    CHECK(corpus != NULL);
    fr_corpus_free(corpus);
    fr_tokenizer_free(tokenizer);
}

TEST_MAIN(corpus)
