/* Numbers from text: what is accepted, what is refused, and that refusal leaves the output alone. */
#include "base/numbers.h"
#include "base/utf8.h"
#include "frontier/base.h"
#include "test.h"

#define COUNT(A) (sizeof(A) / sizeof *(A))

TEST(integers)
{
    static const struct {
        const char *text;
        int64_t want;
    } good[] = {{"0", 0},
                {"-5", -5},
                {"+7", 7},
                {"007", 7},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {
        "",     " 1", "1 ", "1.0", "1e3", "0x10", "--1", "+", "9223372036854775808", "-9223372036854775809",
        "1_000"};
    fr_error error = {0};
    int64_t got;
    for (size_t i = 0; i < COUNT(good); i++) {
        CHECK_OK(fr_parse_int(good[i].text, INT64_MIN, INT64_MAX, &got, "--n", &error));
        CHECK_INT(got, good[i].want);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        got = 99;
        CHECK_INT(fr_parse_int(bad[i], INT64_MIN, INT64_MAX, &got, "--n", &error), FR_BAD_USAGE);
        CHECK_INT(got, 99);
        CHECK_STR(error.where, "--n");
    }
    CHECK_INT(fr_parse_int("5", 6, 9, &got, "--n", &error), FR_BAD_USAGE);
    CHECK_STR(error.what, "5 is out of range: 6 to 9");
    CHECK_INT(fr_parse_int("10", 6, 9, &got, "--n", NULL), FR_BAD_USAGE);
}

TEST(reals)
{
    static const struct {
        const char *text;
        double want;
    } good[] = {{"0", 0},       {"-1.5", -1.5}, {".5", .5},  {"5.", 5},
                {"1e-8", 1e-8}, {"+2E3", 2000}, {"0.1", 0.1}};
    static const char *const bad[] = {"",   "nan", "inf",   "-inf", "infinity", "1e999", "0x1p3",
                                      " 1", "1 ",  "1.0.0", "1e",   ".",        "-",     "abc"};
    fr_error error = {0};
    double got;
    for (size_t i = 0; i < COUNT(good); i++) {
        CHECK_OK(fr_parse_real(good[i].text, -1e9, 1e9, &got, "x", &error));
        CHECK(got == good[i].want);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK_INT(fr_parse_real(bad[i], -1e300, 1e300, &got, "x", &error), FR_BAD_USAGE);
    CHECK_INT(fr_parse_real("2", 0, 1, &got, "x", &error), FR_BAD_USAGE);
}

TEST(durations)
{
    static const struct {
        const char *text;
        double want;
    } good[] = {{"30m", 1800}, {"90s", 90},  {"1h30m", 5400}, {"250ms", 0.25},
                {"12", 12},    {"0.5", 0.5}, {"1.5h", 5400},  {"1d2h3m4s5ms", 93784.005},
                {"0", 0},      {"2min", 120}};
    static const char *const bad[] = {"",       "m",    "30x", "-5s", "+5s",    "5m1h", "1m1m", "30 m",
                                      "1h 30m", "1h30", "nan", "inf", "1e400s", "0x5s", "s5"};
    fr_error error = {0};
    double got;
    for (size_t i = 0; i < COUNT(good); i++) {
        CHECK_OK(fr_parse_duration(good[i].text, &got, "--budget", &error));
        CHECK_NEAR(got, good[i].want, 1e-9, 0);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        got = 99;
        if (fr_parse_duration(bad[i], &got, "--budget", &error) != FR_BAD_USAGE || got != 99)
            printf("# accepted '%s' as %g\n", bad[i], got);
        CHECK_INT(fr_parse_duration(bad[i], &got, "--budget", &error), FR_BAD_USAGE);
    }
}

TEST(sizes)
{
    static const struct {
        const char *text;
        int64_t want;
    } good[] = {{"0", 0},
                {"5MB", 5000000},
                {"64MiB", 64 << 20},
                {"1e6", 1000000},
                {"1.5kB", 1500},
                {"2G", 2000000000},
                {"9223372036854775807", INT64_MAX},
                {"9007199254740993", 9007199254740993},
                {"123B", 123},
                {"1KiB", 1024}};
    static const char *const bad[] = {
        "",     "MB",  "-5",  "5XB",    "5 MB",        "1.5", "9223372036854775808",
        "1e30", "nan", "5mb", "10TiBB", "9999999999TB"};
    fr_error error = {0};
    int64_t got;
    for (size_t i = 0; i < COUNT(good); i++) {
        CHECK_OK(fr_parse_size(good[i].text, &got, "--bytes", &error));
        CHECK_INT(got, good[i].want);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK_INT(fr_parse_size(bad[i], &got, "--bytes", &error), FR_BAD_USAGE);
}

TEST(nearest)
{
    static const char *const keys[] = {"depth", "width", "heads", "learning_rate", "kv_heads"};
    CHECK_STR(fr_nearest("dept", keys, 5), "depth");
    CHECK_STR(fr_nearest("detph", keys, 5), "depth");
    CHECK_STR(fr_nearest("DEPTH", keys, 5), "depth");
    CHECK_STR(fr_nearest("learnign_rate", keys, 5), "learning_rate");
    CHECK_STR(fr_nearest("head", keys, 5), "heads");
    CHECK(!fr_nearest("banana", keys, 5));
    CHECK(!fr_nearest("", keys, 5));
    CHECK(!fr_nearest("depth", keys, 0));
    char longest[200];
    memset(longest, 'a', sizeof longest - 1);
    longest[199] = '\0';
    CHECK(!fr_nearest(longest, keys, 5));
    longest[64] = '\0';
    const char *const wide[] = {longest};
    CHECK_STR(fr_nearest(longest, wide, 1), longest);
}

TEST(human_forms)
{
    char out[64];
    CHECK_STR(fr_format_bytes(out, sizeof out, 0), "0 B");
    CHECK_STR(fr_format_bytes(out, sizeof out, 1023), "1023 B");
    CHECK_STR(fr_format_bytes(out, sizeof out, 1024), "1.0 KiB");
    CHECK_STR(fr_format_bytes(out, sizeof out, 1048575), "1.0 MiB");
    CHECK_STR(fr_format_bytes(out, sizeof out, 1.25 * 0x1p30), "1.2 GiB");
    CHECK_STR(fr_format_duration(out, sizeof out, 0.25), "250 ms");
    CHECK_STR(fr_format_duration(out, sizeof out, 59.94), "59.9 s");
    CHECK_STR(fr_format_duration(out, sizeof out, 59.96), "1 m 00 s");
    CHECK_STR(fr_format_duration(out, sizeof out, 184), "3 m 04 s");
    CHECK_STR(fr_format_duration(out, sizeof out, 3600), "1 h 00 m");
    CHECK_STR(fr_format_duration(out, sizeof out, NAN), "?");
    CHECK_STR(fr_format_count(out, sizeof out, 12345678), "12,345,678");
    CHECK_STR(fr_format_count(out, sizeof out, -999), "-999");
    CHECK_STR(fr_format_count(out, sizeof out, INT64_MIN), "-9,223,372,036,854,775,808");
}

TEST(reals_read_back_to_the_same_bits)
{
    char out[32];
    CHECK_STR(fr_format_real(out, sizeof out, 0.1), "0.1");
    CHECK_STR(fr_format_real(out, sizeof out, 1), "1.0");
    CHECK_STR(fr_format_real(out, sizeof out, -0.0), "-0.0");
    CHECK_STR(fr_format_real(out, sizeof out, 1e-5), "1e-05");
    fr_rng rng = {3, 0, 0};
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = fr_rng_next(&rng), back_bits;
        double value, back;
        memcpy(&value, &bits, 8);
        if (!isfinite(value))
            continue;
        back = strtod(fr_format_real(out, sizeof out, value), NULL);
        memcpy(&back_bits, &back, 8);
        CHECK(bits == back_bits);
    }
}

static bool is_utf8(const char *text, int length)
{
    return fr_utf8_character((const unsigned char *)text, (size_t)length) == length;
}

TEST(utf8_is_strict)
{
    CHECK(is_utf8("a", 1) && is_utf8("\xC3\xA9", 2) && is_utf8("\xE2\x82\xAC", 3) &&
          is_utf8("\xF4\x8F\xBF\xBF", 4));
    static const char *const bad[] = {
        "\x80",         "\xC0\x80",         "\xC1\xBF",         "\xE0\x80\x80",
        "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xC3",         "\xE2\x82",         "\xE2\x28\xA1",     "\xFF"};
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK_INT(fr_utf8_character((const unsigned char *)bad[i], strlen(bad[i])), 0);
    CHECK_INT(fr_utf8_character((const unsigned char *)"", 0), 0);
}

TEST_MAIN(strings)
