/* Sampling: the choice follows the distribution asked for, a seed gives one text, characters come whole. */
#include "model/sample.h"

#include "model_fixture.h"
#include "test.h"

static const float logits[6] = {0.0f, 2.0f, 1.0f, 2.0f, -1.0f, 1.5f};

/* Frequencies of `draws` choices. */
static void frequencies(const fr_sample_options *options, double *share)
{
    enum { DRAWS = 20000 };
    char scratch_memory[256];
    fr_rng rng = {.seed = 1};
    CHECK(fr_sample_scratch_bytes(6) <= sizeof scratch_memory);
    memset(share, 0, 6 * sizeof *share);
    for (int i = 0; i < DRAWS; i++)
        share[fr_sample_choose(logits, 6, options, &rng, scratch_memory)] += 1.0 / DRAWS;
}

static void check_shares(const fr_sample_options *options, const bool *allowed)
{
    double share[6], total = 0;
    frequencies(options, share);
    for (int i = 0; i < 6; i++)
        total += allowed[i] ? exp((double)logits[i] / options->temperature) : 0;
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(share[i], allowed[i] ? exp((double)logits[i] / options->temperature) / total : 0, 0.02, 0);
}

TEST(choices_follow_the_distribution)
{
    check_shares(&(fr_sample_options){.temperature = 1}, (const bool[]){1, 1, 1, 1, 1, 1});
    check_shares(&(fr_sample_options){.temperature = 0.5}, (const bool[]){1, 1, 1, 1, 1, 1});
    check_shares(&(fr_sample_options){.temperature = 1, .top_k = 3}, (const bool[]){0, 1, 0, 1, 0, 1});
    check_shares(&(fr_sample_options){.temperature = 1, .top_k = 1},
                 (const bool[]){0, 1, 0, 0, 0, 0}); /* a tie: the lower id */
    check_shares(&(fr_sample_options){.temperature = 1, .top_p = 0.5}, (const bool[]){0, 1, 0, 1, 0, 0});
    check_shares(&(fr_sample_options){.temperature = 1, .top_p = 1e-9}, (const bool[]){0, 1, 0, 0, 0, 0});
    check_shares(&(fr_sample_options){.temperature = 1, .top_k = 3, .top_p = 0.99},
                 (const bool[]){0, 1, 0, 1, 0, 1});
    check_shares(&(fr_sample_options){.temperature = 1, .top_k = 100, .top_p = 1},
                 (const bool[]){1, 1, 1, 1, 1, 1});
}

TEST(temperature_zero_is_greedy)
{
    double share[6];
    frequencies(&(fr_sample_options){.temperature = 0}, share);
    CHECK_NEAR(share[1], 1, 1e-6, 0);
    frequencies(&(fr_sample_options){.temperature = 1e-6}, share);
    CHECK_NEAR(share[1] + share[3], 1, 1e-6, 0);
}

TEST(unfinished_characters_are_recognised)
{
    static const struct {
        const char *bytes;
        size_t unfinished;
    } cases[] = {{"", 0},
                 {"a", 0},
                 {"\xc3", 1},
                 {"\xc3\xa9", 0},
                 {"a\xe2\x82", 2},
                 {"\xe2\x82\xac", 0},
                 {"\xf0\x9f\x98", 3},
                 {"\xf0", 1},
                 {"\xf0\x9f\x98\x80", 0},
                 {"\xff", 0},
                 {"\x80\x80\x80\x80", 0},
                 {"\xc3\xa9\xa9", 0},
                 {"\xc0", 0},
                 {"\xf8\x80", 0},
                 {"\xe2\x41", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_INT(fr_utf8_unfinished(cases[i].bytes, strlen(cases[i].bytes)), cases[i].unfinished);
}

/* ---- with a model ----------------------------------------------------------------------------------- */

static fr_scorer *scorer;

typedef struct received {
    char text[8000];
    size_t length, ends[400]; /* where each call's bytes end */
    int calls, stop_after;
} received;

static bool receive(void *context, const char *bytes, size_t count)
{
    received *r = context;
    memcpy(r->text + r->length, bytes, count);
    r->length += count;
    r->ends[r->calls] = r->length;
    return ++r->calls != r->stop_after;
}

static void prepare(void)
{
    if (scorer)
        return;
    fr_recipe recipe = model_fixture_recipe();
    fr_error error = {0};
    recipe.model.context = 48;
    fr_tokenizer *tokenizer = fixture_tokenizer(20);
    model_fixture_run(scratch("run"), &recipe, tokenizer);
    CHECK_OK(fr_scorer_open(&scorer, scratch("run"), &(fr_scorer_options){.threads = 2}, &error));
    fr_tokenizer_free(tokenizer);
}

static received sample(const char *prompt, fr_sample_options options, int stop_after)
{
    received r = {.stop_after = stop_after};
    fr_error error = {0};
    prepare();
    CHECK_OK(fr_sample(scorer, prompt, &options, receive, &r, NULL, &error));
    return r;
}

/* What greedy sampling must say, straight from the logits of ever longer rows. */
static size_t greedy_by_hand(const char *prompt, int tokens, char *out)
{
    const fr_tokenizer *tokenizer = fr_scorer_tokenizer(scorer);
    int64_t vocab = fr_scorer_vocab(scorer);
    int32_t ids[400] = {fr_tokenizer_bos(tokenizer)};
    int64_t length = 1 + fr_tokenizer_encode(tokenizer, prompt, strlen(prompt), ids + 1, 300);
    float *row = calloc((size_t)vocab, sizeof *row);
    fr_buffer text;
    fr_error error = {0};
    fr_buffer_init(&text, 0);
    int64_t start = length;
    for (int i = 0; i < tokens; i++) {
        int32_t best = 0;
        CHECK_OK(fr_scorer_logits(scorer, length, ids, length - 1, row, &error));
        for (int32_t v = 1; v < vocab; v++)
            best = row[v] > row[best] ? v : best;
        ids[length++] = best;
    }
    CHECK_OK(fr_tokenizer_decode(tokenizer, ids + start, tokens, true, &text, &error));
    memcpy(out, text.data, text.length);
    size_t count = text.length;
    fr_buffer_release(&text);
    free(row);
    return count;
}

TEST(greedy_text_is_the_likeliest_token_each_time)
{
    char wanted[4000];
    received r = sample("the cat", (fr_sample_options){.tokens = 55}, 0); /* beyond the context of 48 */
    size_t count = greedy_by_hand("the cat", 55, wanted);
    CHECK_INT(r.length, count);
    CHECK(r.length == count && memcmp(r.text, wanted, count) == 0);
}

TEST(a_seed_gives_one_text)
{
    fr_sample_options options = {.tokens = 30, .temperature = 1, .top_k = 50, .seed = 4};
    received a = sample("the", options, 0), b = sample("the", options, 0);
    CHECK(a.length == b.length && memcmp(a.text, b.text, a.length) == 0);
    options.seed = 5;
    received c = sample("the", options, 0);
    CHECK(a.length != c.length || memcmp(a.text, c.text, a.length) != 0);
}

TEST(characters_come_whole_and_no_byte_is_lost)
{
    for (uint64_t seed = 0; seed < 3; seed++) {
        received r = sample("", (fr_sample_options){.tokens = 60, .temperature = 1.5, .seed = seed},
                            0); /* odd bytes */
        CHECK(r.length > 50 && r.calls > 20);
        for (int i = 0; i + 1 < r.calls;
             i++) /* where an unfinished character is cut, no continuation may follow */
            CHECK(fr_utf8_unfinished(r.text, r.ends[i]) == 0 || ((uint8_t)r.text[r.ends[i]] & 0xC0) != 0x80);
        CHECK_INT(r.ends[r.calls - 1], r.length);
    }
}

/* Says the ids of a script, one per call; checks that it is given the last `context` tokens of the text. */
typedef struct script {
    const int32_t *ids;
    int64_t vocab, context, prompt_length, calls;
} script;

static fr_status read_script(void *context, int64_t T, const int32_t *tokens, int64_t first, float *row,
                             fr_error *error)
{
    script *s = context;
    int64_t length = s->prompt_length + s->calls;
    (void)error;
    CHECK_INT(T, length < s->context ? length : s->context);
    CHECK_INT(first, T - 1);
    for (int64_t back = 1; back <= T && back <= s->calls; back++)
        CHECK_INT(tokens[T - back], s->ids[s->calls - back]);
    for (int64_t v = 0; v < s->vocab; v++)
        row[v] = v == s->ids[s->calls] ? 5 : 0;
    s->calls++;
    return FR_OK;
}

TEST(a_scripted_source_is_followed_to_the_documents_end)
{
    static const char text[] = "h\xc3\xa9 \xe2\x82\xac and \xf0\x9f\x98\x80!";
    fr_tokenizer *tokenizer = fixture_tokenizer(0); /* every token is one byte */
    int32_t bos = fr_tokenizer_bos(tokenizer), ids[64];
    int64_t count = fr_tokenizer_encode(tokenizer, text, sizeof text - 1, ids, 62);
    ids[count] = bos;
    ids[count + 1] = ids[0];
    script s = {.ids = ids, .vocab = fr_tokenizer_vocab(tokenizer), .context = 9, .prompt_length = 3};
    received r = {0};
    fr_error error = {0};
    fr_sample_options options = {.tokens = count + 2, .stop_at_bos = true};
    CHECK_OK(fr_sample_from(read_script, &s, 9, tokenizer, "ab", &options, receive, &r, NULL, &error));
    CHECK_INT(r.length, sizeof text - 1);
    CHECK(memcmp(r.text, text, sizeof text - 1) == 0);
    CHECK_INT(s.calls, count + 1);
    for (int i = 0; i < r.calls; i++)
        CHECK_INT(fr_utf8_unfinished(r.text, r.ends[i]), 0);

    script past = s;
    past.calls = 0;
    r = (received){0};
    options.stop_at_bos = false; /* the marker appears as its text, and the text goes on */
    CHECK_OK(fr_sample_from(read_script, &past, 9, tokenizer, "ab", &options, receive, &r, NULL, &error));
    CHECK(strstr(r.text, "!<|bos|>h") != NULL);
    fr_tokenizer_free(tokenizer);
}

/* The text of a script under stop texts, a byte per token. Leaves why it ended. */
static received say(const char *text, const char *const *stop, int stops, fr_finish *finish)
{
    fr_tokenizer *tokenizer = fixture_tokenizer(0);
    int32_t ids[64];
    int64_t count = fr_tokenizer_encode(tokenizer, text, strlen(text), ids, 64);
    script s = {.ids = ids, .vocab = fr_tokenizer_vocab(tokenizer), .context = 99, .prompt_length = 2};
    received r = {0};
    fr_error error = {0};
    fr_sample_options options = {.tokens = count, .stop = stop, .stop_count = stops};
    CHECK_OK(fr_sample_from(read_script, &s, 99, tokenizer, "a", &options, receive, &r, finish, &error));
    for (int i = 0; i < r.calls; i++)
        CHECK_INT(fr_utf8_unfinished(r.text, r.ends[i]), 0);
    fr_tokenizer_free(tokenizer);
    return r;
}

TEST(a_stop_text_ends_it_and_is_not_handed_out)
{
    static const struct {
        const char *text, *stop[3], *want;
        fr_finish finish;
    } cases[] = {
        {"one two", {NULL}, "one two", FR_FINISH_LENGTH},
        {"one two", {"two"}, "one ", FR_FINISH_STOP},
        {"one two", {"o"}, "", FR_FINISH_STOP},
        {"one two", {"twos"}, "one two", FR_FINISH_LENGTH}, /* what was held comes at the end */
        {"aab aaab.", {"aaab"}, "aab ", FR_FINISH_STOP},    /* a beginning that begins again */
        {"one two three", {"three", "ne t"}, "o", FR_FINISH_STOP},
        {"one two", {"two", "e t", "wo"}, "on", FR_FINISH_STOP},
        {"h\xc3\xa9 \xe2\x82\xac!", {"\xe2\x82\xac"}, "h\xc3\xa9 ", FR_FINISH_STOP},
        {"h\xc3\xa9 \xe2\x82\xac!", {"\xe2\x82\xad"}, "h\xc3\xa9 \xe2\x82\xac!", FR_FINISH_LENGTH},
        {"a\n\nb", {"\n\n"}, "a", FR_FINISH_STOP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fr_finish finish;
        int stops = 0;
        while (stops < 3 && cases[i].stop[stops])
            stops++;
        received r = say(cases[i].text, cases[i].stop, stops, &finish);
        CHECK_STR(r.text, cases[i].want);
        CHECK_INT(finish, cases[i].finish);
    }
    fr_finish finish;
    received r = say("one two", (const char *const[]){"two"}, 1, &finish);
    CHECK_INT(r.calls, 4); /* nothing waits that cannot become the stop text */
}

TEST(the_receiver_can_stop_it)
{
    received r = sample("the", (fr_sample_options){.tokens = 100, .temperature = 1}, 3);
    CHECK_INT(r.calls, 3);
}

TEST(no_tokens_no_text)
{
    received r = sample("the", (fr_sample_options){.tokens = 0}, 0);
    CHECK_INT(r.calls, 0);
}

TEST(impossible_wishes_are_refused)
{
    received r = {0};
    fr_error error = {0};
    prepare();
    static const char *const no_text[] = {""};
    static const fr_sample_options wrong[] = {{.tokens = -1},
                                              {.tokens = 1, .temperature = -1},
                                              {.tokens = 1, .temperature = NAN},
                                              {.tokens = 1, .top_p = 1.5},
                                              {.tokens = 1, .top_k = -1},
                                              {.tokens = 1, .stop = no_text, .stop_count = 1},
                                              {.tokens = 1, .stop = no_text, .stop_count = 17}};
    for (int i = 0; i < 7; i++)
        CHECK_INT(fr_sample(scorer, "a", &wrong[i], receive, &r, NULL, &error), FR_BAD_USAGE);
    CHECK_INT(r.calls, 0);
}

TEST_MAIN(sample)
