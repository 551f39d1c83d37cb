/* Tokenizers as a whole: what is encoded comes back, training is exactly greedy, files survive a round
 * trip, and a failing allocation is an error and nothing worse. */
#include "frontier/text.h"
#include "test.h"
#include "text/tokenizer.h"

static const char *const sample_words[] = {
    "the",
    "the",
    "cat",
    "cats",
    "sat",
    "on",
    "mat",
    "matter",
    "that",
    "don't",
    "12",
    "345",
    "x",
    "\xC3\xA9t\xC3\xA9",
    "\xE4\xB8\xAD\xE6\x96\x87",
    "aaaa",
    "aaaaaaa",
    "\xF0\x9F\x98\x80",
    ";\n",
    "==",
    "\xFF\xFE",
    "banana",
    "\t",
};

static size_t random_text(fr_rng *rng, char *text, size_t limit)
{
    size_t bytes = 0, wanted = fr_rng_below(rng, limit - 16);
    while (bytes < wanted) {
        const char *word = sample_words[fr_rng_below(rng, sizeof sample_words / sizeof sample_words[0])];
        size_t length = strlen(word);
        memcpy(text + bytes, word, length);
        bytes += length;
        if (fr_rng_below(rng, 3))
            text[bytes++] = ' ';
    }
    return bytes;
}

static fr_tokenizer *train_on(const char *const *texts, const size_t *bytes, size_t count, int32_t vocab,
                              fr_pool *pool)
{
    fr_error error = {0};
    fr_tokenizer_options options = {.vocab = vocab, .pool = pool};
    fr_tokenizer_trainer *trainer = NULL;
    fr_tokenizer *made = NULL;
    CHECK_OK(fr_tokenizer_trainer_create(&trainer, &options, &error));
    for (size_t i = 0; trainer && i < count; i++)
        CHECK_OK(fr_tokenizer_trainer_feed(trainer, texts[i], bytes[i], &error));
    if (trainer)
        CHECK_OK(fr_tokenizer_trainer_finish(trainer, &made, &error));
    fr_tokenizer_trainer_free(trainer);
    return made;
}

static fr_tokenizer *train_sample(uint64_t seed, size_t size, int32_t vocab)
{
    char *text = malloc(size);
    fr_rng rng = {.seed = seed};
    size_t bytes = text ? random_text(&rng, text, size) : 0;
    fr_tokenizer *made = train_on((const char *const *)&text, &bytes, 1, vocab, NULL);
    free(text);
    return made;
}

static bool round_trips(const fr_tokenizer *t, const char *text, size_t bytes)
{
    fr_error error = {0};
    int32_t *ids = malloc((bytes + 1) * sizeof *ids);
    fr_buffer out;
    fr_buffer_init(&out, 0);
    int64_t count = ids ? fr_tokenizer_encode(t, text, bytes, ids, (int64_t)bytes) : -1;
    bool same = count >= 0 && count <= (int64_t)bytes &&
                fr_tokenizer_decode(t, ids, count, false, &out, &error) == FR_OK && out.length == bytes &&
                memcmp(out.data, text, bytes) == 0;
    fr_buffer_release(&out);
    free(ids);
    return same;
}

/* ---- encoding ------------------------------------------------------------------------------------------ */

TEST(any_bytes_come_back)
{
    fr_tokenizer *t = train_sample(1, 20000, 500);
    fr_rng rng = {.seed = 3};
    char text[2048];
    bool same = t != NULL;
    for (int i = 0; i < 3000 && same; i++) {
        size_t bytes = 0;
        if (i % 2) {
            bytes = random_text(&rng, text, sizeof text);
        } else {
            for (size_t wanted = fr_rng_below(&rng, 400); bytes < wanted; bytes++)
                text[bytes] = (char)fr_rng_next(&rng);
        }
        CHECK(same = round_trips(t, text, bytes));
    }
    fr_tokenizer_free(t);
}

TEST(capacity_limits_what_is_written_not_the_count)
{
    fr_tokenizer *t = train_sample(1, 4000, 300);
    int32_t ids[8] = {-7, -7, -7, -7, -7, -7, -7, -7};
    int64_t all = fr_tokenizer_encode(t, "zqzqzqzq", 8, ids, 8);
    CHECK_INT(all, 8);
    ids[2] = -7;
    CHECK_INT(fr_tokenizer_encode(t, "zqzqzqzq", 8, ids, 2), all);
    CHECK_INT(ids[2], -7);
    CHECK_INT(fr_tokenizer_encode(t, NULL, 0, NULL, 0), 0);
    fr_tokenizer_free(t);
}

/* Lowest rank first, leftmost on ties, by the book. */
static int64_t encode_naively(const fr_tokenizer *t, const uint8_t *bytes, size_t count, int32_t *ids)
{
    for (size_t i = 0; i < count; i++)
        ids[i] = t->byte_ids[bytes[i]];
    for (;;) {
        const fr_merge *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < count; i++)
            for (int64_t m = 0; m < t->merge_count && (!best || t->merges[m].rank < best->rank); m++)
                if (t->merges[m].left == ids[i] && t->merges[m].right == ids[i + 1]) {
                    best = &t->merges[m];
                    at = i;
                }
        if (!best)
            return (int64_t)count;
        ids[at] = best->result;
        memmove(ids + at + 1, ids + at + 2, (count - at - 2) * sizeof *ids);
        count--;
    }
}

TEST(short_and_long_chunks_merge_by_the_book)
{
    fr_tokenizer *t = train_sample(5, 20000, 420);
    fr_bpe_scratch scratch = {.memory = NULL};
    fr_rng rng = {.seed = 9};
    uint8_t text[160];
    int32_t wanted[160];
    for (int i = 0; i < 600; i++) {
        size_t bytes = 1 + fr_rng_below(&rng, sizeof text);
        for (size_t b = 0; b < bytes; b++)
            text[b] = (uint8_t) "abnt eh"[fr_rng_below(&rng, i % 3 ? 7 : 2)];
        const int32_t *got = NULL;
        int64_t count = fr_bpe_merge_chunk(t, &scratch, text, bytes, &got);
        int64_t want = encode_naively(t, text, bytes, wanted);
        CHECK_INT(count, want);
        CHECK(count == want && memcmp(got, wanted, (size_t)count * sizeof *got) == 0);
    }
    fr_bpe_scratch_release(&scratch);
    fr_tokenizer_free(t);
}

TEST(a_million_equal_characters)
{
    size_t bytes = 1000000;
    char *text = malloc(bytes);
    fr_error error = {0};
    memset(text, 'a', bytes);
    fr_tokenizer_options options = {.vocab = 300, .document_crop = (int64_t)bytes};
    fr_tokenizer_trainer *trainer = NULL;
    fr_tokenizer *t = NULL;
    CHECK_OK(fr_tokenizer_trainer_create(&trainer, &options, &error));
    CHECK_OK(fr_tokenizer_trainer_feed(trainer, text, bytes, &error));
    CHECK_OK(fr_tokenizer_trainer_finish(trainer, &t, &error));
    fr_tokenizer_trainer_free(trainer);
    CHECK(round_trips(t, text, bytes));
    fr_tokenizer_free(t);
    t = train_sample(1, 20000, 500);
    CHECK(round_trips(t, text, bytes));
    fr_tokenizer_free(t);
    free(text);
}

/* ---- training ------------------------------------------------------------------------------------------ */

enum { NAIVE_LIMIT = 4000 };

typedef struct naive {
    int32_t ids[NAIVE_LIMIT]; /* chunks one after another, -1 between them */
    int count;
} naive;

/* Recounts every pair from scratch and returns the best: largest count, then smallest left, then right. */
static int64_t naive_best(const naive *n, int32_t *left, int32_t *right)
{
    int64_t best = 0;
    for (int i = 0; i + 1 < n->count; i++) {
        int32_t a = n->ids[i], b = n->ids[i + 1];
        if (a < 0 || b < 0)
            continue;
        int64_t count = 0;
        for (int j = 0; j + 1 < n->count; j++)
            count += n->ids[j] == a && n->ids[j + 1] == b;
        if (count > best || (count == best && (a < *left || (a == *left && b < *right)))) {
            best = count;
            *left = a;
            *right = b;
        }
    }
    return best;
}

static void naive_merge(naive *n, int32_t left, int32_t right, int32_t made)
{
    int to = 0;
    for (int i = 0; i < n->count;) {
        bool hit = i + 1 < n->count && n->ids[i] == left && n->ids[i + 1] == right;
        n->ids[to++] = hit ? made : n->ids[i];
        i += hit ? 2 : 1;
    }
    n->count = to;
}

TEST(training_is_exactly_greedy)
{
    static naive n;
    fr_rng rng = {.seed = 11};
    for (int round = 0; round < 12; round++) {
        char text[1200];
        size_t bytes = 0;
        if (round % 3 == 0)
            for (bytes = 0; bytes < 700; bytes++)
                text[bytes] = "ab "[fr_rng_below(&rng, 3)];
        else
            bytes = random_text(&rng, text, sizeof text);
        const char *texts[] = {text};
        fr_tokenizer *t = train_on(texts, &bytes, 1, 256 + 9 + 120, NULL);
        n.count = 0;
        fr_splitter splitter;
        size_t start, end;
        CHECK(fr_splitter_init(&splitter, t->pattern, text, bytes));
        while (fr_splitter_next(&splitter, &start, &end) == FR_SPLIT_CHUNK) {
            for (size_t i = start; i < end; i++)
                n.ids[n.count++] = (uint8_t)text[i];
            n.ids[n.count++] = -1;
        }
        fr_splitter_release(&splitter);
        for (int32_t m = 0; m < 120; m++) {
            int32_t left = 0, right = 0;
            int64_t best = naive_best(&n, &left, &right);
            CHECK_INT(m<t->merge_count, best> 0);
            if (best == 0 || m >= t->merge_count)
                break;
            CHECK_INT(t->merges[m].left, left);
            CHECK_INT(t->merges[m].right, right);
            naive_merge(&n, left, right, 256 + m);
        }
        fr_tokenizer_free(t);
    }
}

TEST(threads_do_not_show)
{
    enum { DOCUMENTS = 400 };
    static char texts[DOCUMENTS][3000];
    const char *pointers[DOCUMENTS];
    size_t bytes[DOCUMENTS];
    fr_rng rng = {.seed = 21};
    fr_error error = {0};
    fr_pool *pool = NULL;
    char one[65], many[65];
    for (int i = 0; i < DOCUMENTS; i++) {
        bytes[i] = random_text(&rng, texts[i], sizeof texts[i]);
        pointers[i] = texts[i];
    }
    fr_tokenizer *t = train_on(pointers, bytes, DOCUMENTS, 400, NULL);
    fr_tokenizer_hash(t, one);
    fr_tokenizer_free(t);
    CHECK_OK(fr_pool_create(&pool, 3, &error));
    t = train_on(pointers, bytes, DOCUMENTS, 400, pool);
    fr_tokenizer_hash(t, many);
    CHECK_STR(many, one);
    fr_tokenizer_free(t);
    fr_pool_free(pool);
}

TEST(ids_and_specials_of_a_trained_tokenizer)
{
    fr_tokenizer *t = train_sample(1, 20000, 400);
    size_t bytes;
    CHECK_INT(fr_tokenizer_vocab(t), 400);
    CHECK_INT(fr_tokenizer_bos(t), 391);
    CHECK_INT(fr_tokenizer_special(t, "<|output_end|>"), 399);
    CHECK_INT(fr_tokenizer_special(t, "<|nothing|>"), -1);
    for (int i = 0; i < 256; i++) {
        const char *token = fr_tokenizer_token(t, i, &bytes);
        CHECK(bytes == 1 && (uint8_t)token[0] == i);
    }
    CHECK(fr_tokenizer_token(t, 400, &bytes) == NULL);
    CHECK(fr_tokenizer_token(t, -1, &bytes) == NULL);
    int32_t ids[16];
    int64_t count = fr_tokenizer_encode(t, "<|bos|>", 7, ids, 16);
    for (int64_t i = 0; i < count; i++)
        CHECK(ids[i] < 391); /* the text of a special is text */
    fr_error error = {0};
    fr_buffer out;
    fr_buffer_init(&out, 0);
    int32_t mixed[] = {391, 'h', 'i', 399};
    CHECK_OK(fr_tokenizer_decode(t, mixed, 4, true, &out, &error));
    CHECK_STR(out.data, "<|bos|>hi<|output_end|>");
    fr_buffer_clear(&out);
    CHECK_OK(fr_tokenizer_decode(t, mixed, 4, false, &out, &error));
    CHECK_STR(out.data, "hi");
    mixed[1] = 400;
    CHECK_INT(fr_tokenizer_decode(t, mixed, 4, false, &out, &error), FR_BAD_DATA);
    CHECK_STR(out.data, "hi");
    fr_buffer_release(&out);
    fr_tokenizer_free(t);
}

TEST(small_texts_give_small_vocabularies)
{
    const char *texts[] = {"abab", ""};
    size_t bytes[] = {4, 0};
    fr_tokenizer *t = train_on(texts, bytes, 2, 8192, NULL);
    CHECK_INT(fr_tokenizer_vocab(t), 256 + 2 + 9); /* ab, abab */
    fr_tokenizer_free(t);
    fr_error error = {0};
    fr_tokenizer_trainer *trainer = NULL;
    fr_tokenizer_options options = {.vocab = 264};
    CHECK_INT(fr_tokenizer_trainer_create(&trainer, &options, &error), FR_BAD_USAGE);
}

static bool stop_at_once(void *context)
{
    (*(int *)context)++;
    return true;
}

TEST(training_stops_when_asked)
{
    int asked = 0;
    fr_error error = {0};
    fr_progress progress = {.stop = stop_at_once, .context = &asked};
    fr_tokenizer_options options = {.vocab = 300, .progress = &progress};
    fr_tokenizer_trainer *trainer = NULL;
    fr_tokenizer *t = NULL;
    CHECK_OK(fr_tokenizer_trainer_create(&trainer, &options, &error));
    CHECK_OK(fr_tokenizer_trainer_feed(trainer, "abcabcabc", 9, &error));
    CHECK_INT(fr_tokenizer_trainer_finish(trainer, &t, &error), FR_STOPPED);
    CHECK(asked > 0 && t == NULL);
    fr_tokenizer_trainer_free(trainer);
}

TEST(the_hash_names_pattern_and_merges)
{
    static const struct {
        const char *text, *pattern;
    } cases[] = {{"ab ab ab", NULL}, {"ab ab ab", "[a-z]+| "}, {"ba ba ba", NULL}};
    char hashes[3][65];
    for (int i = 0; i < 3; i++) {
        fr_error error = {0};
        fr_tokenizer_options options = {.vocab = 266, .pattern = cases[i].pattern};
        fr_tokenizer_trainer *trainer = NULL;
        fr_tokenizer *t = NULL;
        CHECK_OK(fr_tokenizer_trainer_create(&trainer, &options, &error));
        CHECK_OK(fr_tokenizer_trainer_feed(trainer, cases[i].text, strlen(cases[i].text), &error));
        CHECK_OK(fr_tokenizer_trainer_finish(trainer, &t, &error));
        fr_tokenizer_hash(t, hashes[i]);
        fr_tokenizer_free(t);
        fr_tokenizer_trainer_free(trainer);
    }
    CHECK(strcmp(hashes[0], hashes[1]) != 0);
    CHECK(strcmp(hashes[0], hashes[2]) != 0);
}

TEST(documents_are_cropped_by_characters)
{
    fr_error error = {0};
    fr_tokenizer_options options = {.vocab = 300, .document_crop = 3, .max_characters = 4};
    fr_tokenizer_trainer *trainer = NULL;
    fr_tokenizer *t = NULL;
    CHECK_OK(fr_tokenizer_trainer_create(&trainer, &options, &error));
    CHECK_OK(fr_tokenizer_trainer_feed(trainer, "\xC3\xA9\xC3\xA9\xC3\xA9zz", 8, &error)); /* zz is cut off */
    CHECK_OK(fr_tokenizer_trainer_feed(trainer, "kkk", 3, &error)); /* crosses the maximum: taken */
    CHECK_OK(fr_tokenizer_trainer_feed(trainer, "qqq", 3, &error)); /* beyond it: ignored */
    CHECK_OK(fr_tokenizer_trainer_finish(trainer, &t, &error));
    bool z = false, k = false, q = false;
    for (int64_t m = 0; m < t->merge_count; m++) {
        z = z || t->merges[m].left == 'z';
        k = k || t->merges[m].left == 'k';
        q = q || t->merges[m].left == 'q';
    }
    CHECK(!z && k && !q);
    fr_tokenizer_free(t);
    fr_tokenizer_trainer_free(trainer);
}

TEST(byte_lengths_of_both_conventions)
{
    const char *texts[] = {"\xE2\x82\xAC\xE2\x82\xAC \xE2\x82\xAC", "ab"};
    size_t bytes[] = {10, 2};
    fr_tokenizer *t = train_on(texts, bytes, 2, 300, NULL);
    int32_t vocab = fr_tokenizer_vocab(t), *raw = malloc((size_t)vocab * 4),
            *decoded = malloc((size_t)vocab * 4);
    fr_tokenizer_byte_lengths(t, FR_LENGTHS_RAW, raw);
    fr_tokenizer_byte_lengths(t, FR_LENGTHS_DECODED, decoded);
    CHECK_INT(raw['a'], 1);
    CHECK_INT(decoded['a'], 1);
    CHECK_INT(raw[0xE2], 1);
    CHECK_INT(decoded[0xE2], 3); /* one U+FFFD */
    CHECK_INT(raw[vocab - 1], 0);
    CHECK_INT(decoded[vocab - 1], 0);
    for (int32_t id = 256; id < vocab - 9; id++) {
        size_t length;
        const char *token = fr_tokenizer_token(t, id, &length);
        CHECK_INT(raw[id], length);
        if (length == 2 && memcmp(token, "\xE2\x82", 2) == 0)
            CHECK_INT(decoded[id], 3); /* the start of a character is replaced as a whole */
        if (length == 3 && memcmp(token, "\xE2\x82\xAC", 3) == 0)
            CHECK_INT(decoded[id], 3);
    }
    free(raw);
    free(decoded);
    fr_tokenizer_free(t);
}

/* ---- files --------------------------------------------------------------------------------------------- */

static void check_copy(const fr_tokenizer *t)
{
    fr_error error = {0};
    fr_buffer first, second;
    fr_tokenizer *copy = NULL;
    char one[65], two[65];
    fr_buffer_init(&first, 0);
    fr_buffer_init(&second, 0);
    CHECK_OK(fr_tokenizer_write(t, &first, &error));
    CHECK_OK(fr_tokenizer_parse(&copy, first.data, first.length, "copy", &error));
    if (copy) {
        CHECK_OK(fr_tokenizer_write(copy, &second, &error));
        CHECK(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
        fr_tokenizer_hash(t, one);
        fr_tokenizer_hash(copy, two);
        CHECK_STR(two, one);
        CHECK_INT(fr_tokenizer_bos(copy), fr_tokenizer_bos(t));
    }
    fr_tokenizer_free(copy);
    fr_buffer_release(&first);
    fr_buffer_release(&second);
}

TEST(a_written_file_reads_back_as_the_same_tokenizer)
{
    fr_tokenizer *t = train_sample(1, 20000, 500);
    check_copy(t);
    fr_error error = {0};
    char path[] = "/tmp/frontier-tokenizer-XXXXXX";
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0);
    fr_tokenizer *loaded = NULL;
    CHECK_OK(fr_tokenizer_save(t, path, &error));
    CHECK_OK(fr_tokenizer_load(&loaded, path, &error));
    fr_tokenizer_free(loaded);
    remove(path);
    CHECK_INT(fr_tokenizer_load(&loaded, path, &error), FR_BAD_DATA);
    fr_tokenizer_free(t);
}

/* Every allocation in turn fails; each time the call reports it, or did not need it. */
TEST(failing_allocations_are_errors)
{
    const char *texts[] = {"the cat sat on the mat, that is the matter; the cats \xFF sat"};
    size_t bytes[] = {strlen(texts[0])};
    for (int64_t n = 0; n < 400; n++) {
        fr_error error = {0};
        fr_tokenizer_options options = {.vocab = 290};
        fr_tokenizer_trainer *trainer = NULL;
        fr_tokenizer *t = NULL, *copy = NULL;
        fr_buffer out;
        fr_buffer_init(&out, 0);
        fr_allocate_fail_after(n);
        fr_status status = fr_tokenizer_trainer_create(&trainer, &options, &error);
        if (status == FR_OK)
            status = fr_tokenizer_trainer_feed(trainer, texts[0], bytes[0], &error);
        if (status == FR_OK)
            status = fr_tokenizer_trainer_finish(trainer, &t, &error);
        if (status == FR_OK)
            status = fr_tokenizer_write(t, &out, &error);
        if (status == FR_OK)
            status = fr_tokenizer_parse(&copy, out.data, out.length, "memory", &error);
        int32_t ids[100];
        if (status == FR_OK &&
            fr_tokenizer_encode(copy, "aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbb", 60, ids,
                                100) < 0)
            status = FR_BAD_ENVIRONMENT;
        fr_allocate_fail_after(-1);
        CHECK(status == FR_OK || status == FR_BAD_ENVIRONMENT);
        fr_tokenizer_free(copy);
        fr_tokenizer_free(t);
        fr_tokenizer_trainer_free(trainer);
        fr_buffer_release(&out);
        if (status == FR_OK)
            return;
    }
    CHECK(!"still failing after 400 allocations");
}

TEST_MAIN(tokenizer)
