/* Bits per byte: every byte once, the same bits however it is computed, and no comparison of unlike things.
 *
 * Sources of nats are made up, so that the right answer is known without a model: "a token costs its bytes in
 * bits" must give exactly one bit per byte, in total and for every document.
 */
#include "frontier/eval.h"

#include "model_fixture.h"
#include "test.h"

#include <jansson.h>

typedef struct fake {
    int32_t lengths[4096];
    int64_t calls, most_rows, targets, masked;
    int64_t poison; /* the target (in order) whose nats are NaN; -1: none */
} fake;

static fr_tokenizer *tokenizer;
static fr_corpus *corpus;
static fr_recipe recipe;
static fake source_state;

static fake *prepare(fr_byte_lengths convention)
{
    if (!corpus) {
        tokenizer = fixture_tokenizer(20);
        corpus = model_fixture_corpus(scratch("data"), tokenizer, 37);
        recipe = model_fixture_recipe();
    }
    memset(&source_state, 0, sizeof source_state);
    source_state.poison = -1;
    fr_tokenizer_byte_lengths(tokenizer, convention, source_state.lengths);
    return &source_state;
}

/* ln 2 per byte of the target. */
static fr_status one_bit_per_byte(void *context, int64_t rows, int64_t T, const int32_t *inputs,
                                  const int32_t *targets, float *nats, fr_error *error)
{
    fake *f = context;
    (void)inputs, (void)error;
    f->calls++;
    if (rows > f->most_rows)
        f->most_rows = rows;
    for (int64_t i = 0; i < rows * T; i++) {
        nats[i] = targets[i] < 0 ? 0 : (float)(f->lengths[targets[i]] * 0.69314718055994530942);
        if (targets[i] >= 0 && f->targets++ == f->poison)
            nats[i] = NAN;
        f->masked += targets[i] < 0;
    }
    return FR_OK;
}

/* Something that depends on the whole row before the target, as a model does. */
static fr_status row_dependent(void *context, int64_t rows, int64_t T, const int32_t *inputs,
                               const int32_t *targets, float *nats, fr_error *error)
{
    (void)context, (void)error;
    for (int64_t i = 0; i < rows * T; i++) {
        int64_t start = i / T * T;
        uint64_t hash =
            fr_hash64(inputs + start, (size_t)(i - start + 1) * sizeof *inputs, (uint64_t)targets[i]);
        nats[i] = targets[i] < 0 ? 0 : (float)(hash % 100000) * 1e-4f;
    }
    return FR_OK;
}

static fr_status refusing(void *context, int64_t rows, int64_t T, const int32_t *inputs,
                          const int32_t *targets, float *nats, fr_error *error)
{
    (void)context, (void)rows, (void)T, (void)inputs, (void)targets, (void)nats;
    return fr_error_set(error, FR_ANSWER_NO, "program", NULL, "it did not answer");
}

TEST(a_bit_per_byte_is_one)
{
    fake *f = prepare(FR_LENGTHS_RAW);
    for (int64_t context = 2; context < 200; context = context * 3 - 1) {
        fr_bpb_result result;
        fr_error error = {0};
        CHECK_OK(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &(fr_bpb_options){.context = context},
                                  &result, &error));
        CHECK_NEAR(result.val_bpb, 1, 0, 1e-7);
        CHECK_INT(result.bytes, fr_corpus_bytes(corpus, FR_VALID));
        CHECK_INT(result.tokens, fr_corpus_tokens(corpus, FR_VALID) - fr_corpus_documents(corpus, FR_VALID));
        CHECK_INT(result.documents, 37);
        CHECK_INT(result.context, context);
        CHECK_STR(result.eval_set, "valid");
        CHECK_STR(result.layout, "stream");
        CHECK_STR(result.byte_lengths, "raw");
        CHECK_INT(strlen(result.text_sha256), 64);
        CHECK_INT(strlen(result.tokenizer_sha256), 64);
    }
    CHECK(f->masked >= 36); /* a BOS target per document after the first, at each context */
}

/* One line per document: its number, its bytes as the corpus has them, and a bit for each. */
static void check_documents(const char *path)
{
    fr_error error = {0};
    fr_arena arena;
    fr_arena_init(&arena, 1 << 16);
    char *text = NULL;
    size_t bytes;
    CHECK_OK(fr_file_read(&arena, path, &text, &bytes, &error));
    int64_t document = 0;
    for (char *line = text ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n"), document++) {
        json_t *object = json_loads(line, 0, NULL);
        CHECK_INT(json_integer_value(json_object_get(object, "document")), document);
        CHECK_INT(json_integer_value(json_object_get(object, "bytes")),
                  fr_corpus_document_bytes(corpus, FR_VALID, document));
        CHECK_INT(json_integer_value(json_object_get(object, "tokens")),
                  fr_corpus_document_tokens(corpus, FR_VALID, document) - 1);
        CHECK_NEAR(json_real_value(json_object_get(object, "nats")),
                   log(2) * (double)fr_corpus_document_bytes(corpus, FR_VALID, document), 0, 1e-6);
        json_decref(object);
    }
    CHECK_INT(document, 37);
    fr_arena_release(&arena);
}

TEST(every_document_has_its_line)
{
    fake *f = prepare(FR_LENGTHS_RAW);
    fr_bpb_result result;
    fr_error error = {0};
    const char *path = scratch("documents.jsonl");
    fr_bpb_options options = {.context = 31, .documents_path = path};
    CHECK_OK(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &options, &result, &error));
    check_documents(path);
}

TEST(rows_per_forward_change_no_bit)
{
    prepare(FR_LENGTHS_RAW);
    fr_bpb_result first = {0};
    fr_error error = {0};
    char first_hash[65] = "", hash[65];
    for (int64_t rows = 1; rows <= 64; rows = rows * 2 + rows / 3) {
        fr_bpb_result result;
        fr_bpb_options options = {.context = 24, .rows = rows, .documents_path = scratch("rows.jsonl")};
        CHECK_OK(fr_eval_bpb_from(row_dependent, NULL, &recipe, corpus, &options, &result, &error));
        CHECK_OK(fr_sha256_file(options.documents_path, hash, &error));
        result.seconds = 0;
        if (rows == 1) {
            first = result;
            memcpy(first_hash, hash, sizeof hash);
        }
        CHECK(memcmp(&first.val_bpb, &result.val_bpb, sizeof(double)) == 0);
        CHECK(memcmp(&first.nats, &result.nats, sizeof(double)) == 0);
        CHECK_INT(result.bytes, first.bytes);
        CHECK_STR(hash, first_hash);
    }
}

TEST(the_older_byte_count_is_another_score)
{
    prepare(FR_LENGTHS_RAW);
    fake *f = prepare(FR_LENGTHS_DECODED);
    fr_recipe older = recipe;
    fr_error error = {0};
    fr_bpb_result raw, decoded;
    CHECK_OK(fr_recipe_set(&older, "data.byte_lengths=\"decoded\"", &error));
    CHECK_OK(fr_eval_bpb_from(one_bit_per_byte, f, &older, corpus, &(fr_bpb_options){0}, &decoded, &error));
    CHECK_NEAR(decoded.val_bpb, 1, 0, 1e-7);
    CHECK_STR(decoded.byte_lengths, "decoded");
    CHECK(decoded.bytes > fr_corpus_bytes(corpus, FR_VALID)); /* lone bytes count three */
    f = prepare(FR_LENGTHS_RAW);
    CHECK_OK(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &(fr_bpb_options){0}, &raw, &error));
    CHECK_INT(fr_bpb_comparable(&raw, &decoded, true, NULL, 0, &error), FR_BAD_USAGE);
}

TEST(a_part_of_a_set_says_so)
{
    fake *f = prepare(FR_LENGTHS_RAW);
    fr_bpb_result whole, part, again;
    fr_error error = {0};
    fr_bpb_options options = {.context = 24, .max_tokens = 100};
    CHECK_OK(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &(fr_bpb_options){.context = 24}, &whole,
                              &error));
    CHECK_OK(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &options, &part, &error));
    CHECK(part.tokens >= 100 && part.tokens < 100 + 24);
    CHECK_NEAR(part.val_bpb, 1, 0, 1e-7);
    CHECK_STR(part.eval_set, "valid/first-100-tokens");
    CHECK_INT(fr_bpb_comparable(&whole, &part, true, NULL, 0, &error), FR_BAD_USAGE);
    options.rows = 1;
    CHECK_OK(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &options, &again, &error));
    CHECK(memcmp(&again.nats, &part.nats, sizeof(double)) == 0);
    CHECK_INT(again.tokens, part.tokens);
    options.max_tokens = 1000000000;
    CHECK_OK(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &options, &again, &error));
    CHECK_INT(again.tokens, whole.tokens);
}

TEST(what_is_wrong_is_named_and_nothing_is_returned)
{
    fake *f = prepare(FR_LENGTHS_RAW);
    fr_bpb_result result = {.val_bpb = 7};
    fr_error error = {0};
    f->poison = 555;
    CHECK_INT(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &(fr_bpb_options){0}, &result, &error),
              FR_BAD_DATA);
    CHECK(strstr(error.what, "nan") != NULL);
    CHECK_INT(fr_eval_bpb_from(refusing, NULL, &recipe, corpus, &(fr_bpb_options){0}, &result, &error),
              FR_ANSWER_NO);
    CHECK_STR(error.what, "it did not answer");
    CHECK(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &(fr_bpb_options){.set = "hidden"}, &result,
                           &error) != FR_OK);
    CHECK(strstr(error.what, "hidden") != NULL);
    CHECK_INT(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &(fr_bpb_options){.context = -1},
                               &result, &error),
              FR_BAD_USAGE);
    CHECK_NEAR(result.val_bpb, 7, 0, 0);
}

/* Adds an evaluation set of the first 5 documents to a corpus and opens it again. */
static fr_corpus *with_small_set(const char *folder, int64_t *bytes, int64_t *document_tokens)
{
    char path[700];
    fr_corpus *small = model_fixture_corpus(folder, tokenizer, 12);
    fr_error error = {0};
    *bytes = *document_tokens = 0;
    for (int64_t i = 0; i < 5; i++) {
        *bytes += fr_corpus_document_bytes(small, FR_VALID, i);
        *document_tokens += fr_corpus_document_tokens(small, FR_VALID, i);
    }
    fr_corpus_free(small);
    json_t *manifest = json_load_file(fr_path_join(path, sizeof path, folder, "corpus.json"), 0, NULL);
    json_t *whole = json_array_get(json_object_get(manifest, "eval_sets"), 0);
    json_t *set = json_pack("{s:s, s:i, s:I, s:I, s:O}", "name", "valid-small", "documents", 5, "bytes",
                            (json_int_t)*bytes, "tokens", (json_int_t)*document_tokens, "text_sha256",
                            json_object_get(whole, "text_sha256"));
    json_array_append_new(json_object_get(manifest, "eval_sets"), set);
    CHECK_INT(json_dump_file(manifest, path, 0), 0);
    json_decref(manifest);
    CHECK_OK(fr_corpus_open(&small, folder, true, &error));
    return small;
}

TEST(a_named_set_is_a_prefix_of_whole_documents)
{
    fake *f = prepare(FR_LENGTHS_RAW);
    int64_t bytes, document_tokens;
    fr_bpb_result result;
    fr_error error = {0};
    fr_corpus *small = with_small_set(scratch("small"), &bytes, &document_tokens);
    for (int64_t context = 7; context < 300; context *= 6) {
        fr_bpb_options options = {.set = "valid-small", .context = context, .rows = 3};
        CHECK_OK(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, small, &options, &result, &error));
        CHECK_INT(result.bytes, bytes);
        CHECK_INT(result.tokens, document_tokens - 5);
        CHECK_INT(result.documents, 5);
        CHECK_STR(result.eval_set, "valid-small");
        CHECK_NEAR(result.val_bpb, 1, 0, 1e-7);
    }
    fr_corpus_free(small);
}

static bool stop_at_once(void *context)
{
    (void)context;
    return true;
}

TEST(it_stops_when_asked)
{
    fake *f = prepare(FR_LENGTHS_RAW);
    fr_bpb_result result;
    fr_error error = {0};
    fr_progress progress = {.stop = stop_at_once};
    fr_bpb_options options = {.context = 8, .rows = 1, .progress = &progress};
    CHECK_INT(fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &options, &result, &error), FR_STOPPED);
    CHECK_INT(f->calls, 1);
}

TEST(memory_failures_are_reported)
{
    fake *f = prepare(FR_LENGTHS_RAW);
    fr_bpb_result result;
    bool done = false;
    for (int64_t n = 0; n < 60 && !done; n++) {
        fr_error error = {0};
        fr_allocate_fail_after(n);
        fr_status status =
            fr_eval_bpb_from(one_bit_per_byte, f, &recipe, corpus, &(fr_bpb_options){0}, &result, &error);
        fr_allocate_fail_after(-1);
        CHECK(status == FR_OK || status == FR_BAD_ENVIRONMENT);
        done = status == FR_OK;
    }
    CHECK(done);
}

TEST(only_like_is_compared_with_like)
{
    fr_bpb_result a = {.eval_set = "valid",
                       .text_sha256 = "aa",
                       .tokenizer_sha256 = "t1",
                       .layout = "stream",
                       .byte_lengths = "raw",
                       .context = 1024};
    fr_bpb_result b = a;
    char note[100];
    fr_error error = {0};
    CHECK_OK(fr_bpb_comparable(&a, &b, false, note, sizeof note, &error));
    CHECK_STR(note, "");
    strcpy(b.tokenizer_sha256, "t2");
    CHECK_OK(fr_bpb_comparable(&a, &b, false, note, sizeof note, &error));
    CHECK_STR(note, "different tokenizers");
    b.context = 2048;
    CHECK_INT(fr_bpb_comparable(&a, &b, false, note, sizeof note, &error), FR_BAD_USAGE);
    CHECK(strstr(error.what, "1024") && strstr(error.what, "2048"));
    CHECK_OK(fr_bpb_comparable(&a, &b, true, note, sizeof note, &error));
    CHECK_STR(note, "different tokenizers; different contexts");
    b = a;
    strcpy(b.text_sha256, "bb");
    CHECK_INT(fr_bpb_comparable(&a, &b, true, note, sizeof note, &error), FR_BAD_USAGE);
    b = a;
    strcpy(b.eval_set, "valid-2M");
    CHECK_INT(fr_bpb_comparable(&a, &b, true, note, sizeof note, &error), FR_BAD_USAGE);
    b = a;
    strcpy(b.layout, "best-fit");
    CHECK_INT(fr_bpb_comparable(&a, &b, false, note, sizeof note, &error), FR_BAD_USAGE);
    CHECK_OK(fr_bpb_comparable(&a, &b, true, note, sizeof note, &error));
}

/* A tokenizer that puts a space in front of a text: each document still has its own bytes, no more. */
TEST(a_prefix_is_no_byte_of_the_document)
{
    const char *top = getenv("TOP");
    char path[500];
    fr_error error = {0};
    fr_tokenizer *pieces = NULL;
    fr_recipe small = model_fixture_recipe();
    snprintf(path, sizeof path, "%s%stests/vectors/formats/llama2c-tokenizer.bin", top ? top : "", top ? "/" : "");
    CHECK_OK(fr_tokenizer_load_llama2c(&pieces, path, 272, &error));
    fr_corpus *with_prefix = model_fixture_corpus(scratch("pieces"), pieces, 9);
    int64_t bytes = 0;
    for (int d = 0; d < 9; d++)
        bytes += fr_corpus_document_bytes(with_prefix, FR_VALID, d);
    fake f = {.poison = -1};
    fr_tokenizer_byte_lengths(pieces, FR_LENGTHS_RAW, f.lengths);
    fr_bpb_result result;
    CHECK_OK(fr_eval_bpb_from(one_bit_per_byte, &f, &small, with_prefix, &(fr_bpb_options){.context = 31}, &result,
                              &error));
    CHECK_INT(result.bytes, bytes); /* the nats of the nine spaces count, their bytes do not */
    CHECK_NEAR(result.val_bpb, (double)(bytes + 9) / (double)bytes, 1e-6, 0);
    fr_corpus_free(with_prefix);
    fr_tokenizer_free(pieces);
}

TEST_MAIN(bpb)
