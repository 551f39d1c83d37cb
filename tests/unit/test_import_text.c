/* Looking at documents: UTF-8 by its definition, folding by its definition. */
#include "test.h"

#include "text/import_text.h"

/* The naive fold: lower, collapse, trim. */
static size_t naive_fold(const char *text, size_t bytes, char *out)
{
    size_t used = 0;
    bool space = false;
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (c == ' ' || (c >= 9 && c <= 13)) {
            space = true;
            continue;
        }
        if (space && used > 0)
            out[used++] = ' ';
        space = false;
        out[used++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    return used;
}

TEST(equal_folded_texts_have_equal_hashes)
{
    static const char *const same[][2] = {
        {"Hello World", "hello   world"}, {"a\r\nb", " a b\n"}, {"  x", "X\t\t"}, {"one two\n\nthree", "ONE\vtwo\fthree"}, {"", " \n\t"}};
    static const char *const different[][2] = {{"ab", "a b"}, {"a", "b"}, {"", "a"}, {"\xC3\x89", "\xC3\xA9"}, {"a-b", "a b"}};
    size_t length;
    for (int i = 0; i < 5; i++) {
        CHECK(import_fold_hash(same[i][0], strlen(same[i][0]), &length) == import_fold_hash(same[i][1], strlen(same[i][1]), &length));
        CHECK(import_fold_hash(different[i][0], strlen(different[i][0]), &length) !=
              import_fold_hash(different[i][1], strlen(different[i][1]), &length));
    }
}

/* Random texts, many longer than a hashing block: the hash is a function of the folded bytes, and sees its length. */
TEST(folding_equals_the_naive_one)
{
    enum { MOST = 20000 };
    static char text[MOST], folded[MOST + 1], again[2 * MOST + 2];
    static const char alphabet[] = "aA bB\t\nzZ\r 9\xC3";
    fr_rng rng = {1, 2, 0};
    for (int round = 0; round < 300; round++) {
        size_t bytes = (size_t)fr_rng_below(&rng, MOST), length, other;
        for (size_t i = 0; i < bytes; i++)
            text[i] = alphabet[fr_rng_below(&rng, sizeof alphabet - 1)];
        size_t want = naive_fold(text, bytes, folded);
        uint64_t hash = import_fold_hash(text, bytes, &length);
        CHECK_INT(length, want);
        CHECK(hash == import_fold_hash(folded, want, &other) && other == want);
        size_t used = 0; /* the same with other space and case */
        for (size_t i = 0; i < want; i++) {
            again[used++] = folded[i] == ' ' ? '\n' : folded[i] == 'z' ? 'Z' : folded[i];
            if (folded[i] == ' ')
                again[used++] = '\t';
        }
        CHECK(hash == import_fold_hash(again, used, &other));
        if (want > 0) {
            folded[want / 2] ^= 1;
            size_t changed = naive_fold(folded, want, again);
            CHECK(changed != want || memcmp(again, folded, want) != 0 || hash != import_fold_hash(folded, want, &other));
        }
    }
}

/* Every code point by the definition of UTF-8, and every two-byte string. */
TEST(utf8_is_exactly_utf8)
{
    for (uint32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 61) {
        char s[12] = "ascii...";
        size_t n = 8;
        if (c < 0x80) {
            s[n++] = (char)c;
        } else if (c < 0x800) {
            s[n++] = (char)(0xC0 | c >> 6);
            s[n++] = (char)(0x80 | (c & 63));
        } else if (c < 0x10000) {
            s[n++] = (char)(0xE0 | c >> 12);
            s[n++] = (char)(0x80 | (c >> 6 & 63));
            s[n++] = (char)(0x80 | (c & 63));
        } else {
            s[n++] = (char)(0xF0 | c >> 18);
            s[n++] = (char)(0x80 | (c >> 12 & 63));
            s[n++] = (char)(0x80 | (c >> 6 & 63));
            s[n++] = (char)(0x80 | (c & 63));
        }
        CHECK(import_is_utf8(s, n) == (c < 0xD800 || c > 0xDFFF));
        CHECK(n == 9 || !import_is_utf8(s, n - 1));
    }
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            char s[2] = {(char)a, (char)b};
            bool good = (a < 128 && b < 128) || (a >= 0xC2 && a <= 0xDF && b >= 0x80 && b <= 0xBF);
            CHECK(import_is_utf8(s, 2) == good);
        }
    static const char *const bad[] = {"\xE0\x80\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xED\xA0\x80"};
    for (int i = 0; i < 5; i++)
        CHECK(!import_is_utf8(bad[i], strlen(bad[i])));
    CHECK(import_has_crlf("a\r\nb", 4) && !import_has_crlf("a\rb\n", 4));
}

TEST_MAIN(import_text)
