/* The scanner of the built-in split pattern against PCRE2 running the same pattern: every code point's
 * class, then random mixtures chosen to hit the pattern's edges, well formed and not. */
#include "frontier/text.h"
#include "test.h"
#include "text/pretokenizer.h"
#include "text/pretokenizer_utf8.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

static bool unicode_is_14(void)
{
    char version[64] = "";
    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version);
    return strcmp(version, "14.0.0") == 0;
}

/* Splits with both and compares; prints the first difference. */
static bool same_chunks(const fr_split_pattern *one, const fr_split_pattern *two, const uint8_t *text,
                        size_t bytes)
{
    fr_splitter a, b;
    bool ready_a = fr_splitter_init(&a, one, text, bytes), ready_b = fr_splitter_init(&b, two, text, bytes);
    bool same = ready_a && ready_b;
    fr_split_step step_a = FR_SPLIT_CHUNK, step_b = FR_SPLIT_CHUNK;
    size_t start_a = 0, end_a = 0, start_b = 0, end_b = 0, expected = 0;
    while (same && step_a == FR_SPLIT_CHUNK) {
        step_a = fr_splitter_next(&a, &start_a, &end_a);
        step_b = fr_splitter_next(&b, &start_b, &end_b);
        same = step_a == step_b && step_a != FR_SPLIT_FAILED;
        if (step_a == FR_SPLIT_CHUNK) {
            same = same && start_a == expected && start_b == expected && end_a == end_b && end_a > start_a;
            expected = end_a;
        }
    }
    if (!same) {
        printf("# differ at %zu: scanner ends %zu, PCRE2 ends %zu, bytes:", expected, end_a, end_b);
        for (size_t i = 0; i < bytes && i < 64; i++)
            printf(" %02x", text[i]);
        printf("\n");
    }
    fr_splitter_release(&a);
    fr_splitter_release(&b);
    return same && expected == bytes;
}

typedef struct pair {
    fr_split_pattern *scanner, *oracle;
} pair;

static pair open_pair(void)
{
    fr_error error = {0};
    pair both = {NULL, NULL};
    CHECK_OK(fr_split_pattern_create(&both.scanner, NULL, &error));
    CHECK_OK(fr_split_pattern_create_pcre2(&both.oracle, NULL, &error));
    return both;
}

static void close_pair(pair both)
{
    fr_split_pattern_free(both.scanner);
    fr_split_pattern_free(both.oracle);
}

TEST(every_code_point_splits_like_pcre2)
{
    if (!unicode_is_14())
        SKIP("needs a PCRE2 with Unicode 14.0.0");
    pair both = open_pair();
    uint8_t text[32];
    for (uint32_t code = 0; code < 0x110000; code++) {
        if (code >= 0xD800 && code < 0xE000)
            continue;
        size_t n = fr_utf8_write(code, text);
        memcpy(text + n, "a'", 2);
        n += 2;
        n += fr_utf8_write(code, text + n);
        memcpy(text + n, "7 ", 2);
        n += 2;
        n += fr_utf8_write(code, text + n);
        if (!same_chunks(both.scanner, both.oracle, text, n)) {
            printf("# code point U+%04X\n", code);
            CHECK(false);
            break;
        }
    }
    close_pair(both);
}

/* Pieces whose neighbourhoods decide between alternatives. */
static const char *const pieces[] = {
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\v",
    "\f",
    "\xC2\xA0",
    "\xC2\x85",
    "\xE3\x80\x80",
    "\xE1\xA0\x8E",
    "\xE2\x80\xA8",
    "a",
    "Z",
    "s",
    "S",
    "t",
    "d",
    "m",
    "l",
    "L",
    "v",
    "e",
    "E",
    "r",
    "ll",
    "ve",
    "re",
    "\xC5\xBF",
    "\xC3\xA9",
    "\xD0\x96",
    "\xE4\xB8\xAD",
    "\xF0\x9D\x94\xB8",
    "\xCC\x81",
    "\xE2\x84\xAA",
    "'",
    "'",
    "'",
    "\xE2\x80\x99",
    "0",
    "7",
    "12",
    "\xD9\xA3",
    "\xC2\xBD",
    "\xE2\x85\xA7",
    "!",
    "-",
    "_",
    "\"",
    "\xE2\x82\xAC",
    "\xF0\x9F\x98\x80",
    "\xE2\x80\x8D",
    "\xEF\xBB\xBF",
    "\0",
    "\xFF",
    "\x80",
    "\xC3",
    "\xE2\x82",
    "\xF0\x9F\x98",
    "\xED\xA0\x80",
    "\xC0\x80",
    "\xF4\x90\x80\x80",
    "\xEF\xBF\xBD",
};

static size_t mixture(fr_rng *rng, uint8_t *text, size_t limit)
{
    size_t bytes = 0, count = fr_rng_below(rng, 40);
    uint64_t style = fr_rng_below(rng, 4);
    for (size_t i = 0; i < count && bytes + 8 < limit; i++) {
        if (style == 0) {
            text[bytes++] = (uint8_t)fr_rng_next(rng);
        } else if (style == 1) {
            bytes += fr_utf8_write((uint32_t)fr_rng_below(rng, 0xD800), text + bytes);
        } else {
            const char *piece = pieces[fr_rng_below(rng, sizeof pieces / sizeof pieces[0])];
            size_t length = *piece ? strlen(piece) : 1;
            memcpy(text + bytes, piece, length);
            bytes += length;
        }
    }
    return bytes;
}

TEST(random_mixtures_split_like_pcre2)
{
    if (!unicode_is_14())
        SKIP("needs a PCRE2 with Unicode 14.0.0");
    const char *rounds = getenv("FRONTIER_FUZZ_ROUNDS");
    pair both = open_pair();
    fr_rng rng = {.seed = 2, .stream = 7};
    uint8_t text[512];
    bool same = true;
    for (long i = 0, n = rounds ? atol(rounds) : 100000; i < n && same; i++) {
        size_t bytes = mixture(&rng, text, sizeof text);
        CHECK(same = same_chunks(both.scanner, both.oracle, text, bytes));
    }
    close_pair(both);
}

TEST(long_runs_take_linear_time)
{
    pair both = open_pair();
    size_t bytes = 1000000;
    uint8_t *text = malloc(bytes);
    static const char runs[] = {' ', '\n', 'a', '!', '1', '\xFF'};
    for (size_t i = 0; text && i < sizeof runs; i++) {
        memset(text, runs[i], bytes);
        text[bytes - 1] = 'x';
        CHECK(same_chunks(both.scanner, both.oracle, text, runs[i] == '\xFF' ? bytes / 10 : bytes));
    }
    free(text);
    close_pair(both);
}

static void check_chunks(const fr_split_pattern *pattern, const char *text, const char *wanted)
{
    char got[256] = "";
    fr_splitter splitter;
    size_t start, end, used = 0;
    CHECK(fr_splitter_init(&splitter, pattern, text, strlen(text)));
    while (fr_splitter_next(&splitter, &start, &end) == FR_SPLIT_CHUNK)
        used += (size_t)snprintf(got + used, sizeof got - used, "[%.*s]", (int)(end - start), text + start);
    fr_splitter_release(&splitter);
    CHECK_STR(got, wanted);
}

TEST(known_splits)
{
    pair both = open_pair();
    const fr_split_pattern *engines[] = {both.scanner, both.oracle};
    for (int i = 0; i < 2; i++) {
        check_chunks(engines[i], "", "");
        check_chunks(engines[i], "Hello world  again", "[Hello][ world][ ][ again]");
        check_chunks(engines[i], "it's IT'S we'LL 'tis", "[it]['s][ IT]['S][ we]['LL][ '][tis]");
        check_chunks(engines[i], "12345 6", "[12][34][5][ ][6]");
        check_chunks(engines[i], "x = y;\n\n  z", "[x][ =][ y][;\n\n][ ][ z]");
        check_chunks(engines[i], "a \n \n  b", "[a][ \n \n][ ][ b]");
        check_chunks(engines[i], "tail   ", "[tail][   ]");
        check_chunks(engines[i], "don\xE2\x80\x99t", "[don][\xE2\x80\x99t]");
    }
    close_pair(both);
}

TEST(foreign_patterns)
{
    fr_error error = {0};
    fr_split_pattern *pattern = NULL;
    CHECK_OK(fr_split_pattern_create(&pattern, fr_pattern_gpt2, &error));
    check_chunks(pattern, "It's 2024,  ok", "[It]['s][ 2024][,][ ][ ok]");
    fr_split_pattern_free(pattern);
    CHECK_OK(fr_split_pattern_create(&pattern, "b+", &error)); /* covers little: the gaps are chunks */
    check_chunks(pattern, "abbcab", "[a][bb][ca][b]");
    fr_split_pattern_free(pattern);
    CHECK_OK(fr_split_pattern_create(&pattern, "[\\s.]+", &error));
    check_chunks(pattern,
                 "a. b\xE1\xA0\x8E"
                 "c",
                 "[a][. ][b\xE1\xA0\x8E"
                 "c]"); /* U+180E is no white space */
    fr_split_pattern_free(pattern);
}

TEST(bad_patterns_are_refused)
{
    static const char *const bad[] = {"(", "[a&&[b]]", "[a[b]]", "\\p{Nonsense}", "a\\C", "(?<=\\K"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fr_error error = {0};
        fr_split_pattern *pattern = NULL;
        CHECK_INT(fr_split_pattern_create(&pattern, bad[i], &error), FR_BAD_DATA);
        CHECK(error.what[0] != 0);
        CHECK(pattern == NULL);
    }
}

TEST(utf8_steps)
{
    static const struct {
        const char *bytes;
        size_t count, length;
        bool valid;
    } cases[] = {
        {"a", 1, 1, true},
        {"\xC3\xA9", 2, 2, true},
        {"\xC3", 1, 1, false},
        {"\xE2\x82\xAC", 3, 3, true},
        {"\xE2\x82g", 3, 2, false},
        {"\xE0\x80\x80", 3, 1, false},
        {"\xED\xA0\x80", 3, 1, false},
        {"\xF0\x9F\x98\x80", 4, 4, true},
        {"\xF0\x9F\x98", 3, 3, false},
        {"\xF4\x90\x80\x80", 4, 1, false},
        {"\xC0\x80", 2, 1, false},
        {"\xF5", 1, 1, false},
        {"\x80", 1, 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool valid;
        CHECK_INT(fr_utf8_step((const uint8_t *)cases[i].bytes, cases[i].count, &valid), cases[i].length);
        CHECK_INT(valid, cases[i].valid);
    }
}

TEST_MAIN(tokenizer_split)
