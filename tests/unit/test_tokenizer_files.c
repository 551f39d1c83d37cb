/* Tokenizer files that are wrong, each in one way: the call must say what is wrong and where, and change
 * nothing. */
#include "frontier/text.h"
#include "test.h"
#include "text/tokenizer_alphabet.h"
#include <unistd.h>

/* A small but whole file, with places to break it. */
typedef struct parts {
    const char *root, *pre_tokenizer, *model, *vocab, *merges, *added;
} parts;

static const char byte_level[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";

static void write_json(fr_buffer *out, parts p)
{
    fr_buffer_printf(
        out, "{%s \"added_tokens\":[%s],\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\"%s,\"vocab\":{",
        p.root, p.added, p.pre_tokenizer, p.model);
    for (int value = 0; value < 256; value++) {
        uint8_t byte = (uint8_t)value;
        fr_buffer_printf(out, "%s\"%s", value ? "," : "", byte == '"' || byte == '\\' ? "\\" : "");
        fr_alphabet_write(out, &byte, 1);
        fr_buffer_printf(out, "\":%d", value);
    }
    fr_buffer_printf(out, "%s},\"merges\":[%s]}}", p.vocab, p.merges);
}

static parts whole(void)
{
    return (parts){.root = "",
                   .pre_tokenizer = byte_level,
                   .model = "",
                   .vocab = ",\"ab\":256,\"abc\":257",
                   .merges = "\"a b\",[\"ab\",\"c\"]",
                   .added = "{\"id\":258,\"content\":\"<|end|>\",\"special\":true}"};
}

static fr_status parse(parts p, fr_tokenizer **out, fr_error *error)
{
    fr_buffer json;
    fr_buffer_init(&json, 0);
    write_json(&json, p);
    fr_status status = fr_tokenizer_parse(out, json.data, json.length, "file.json", error);
    fr_buffer_release(&json);
    return status;
}

static void check_refused(parts p, const char *message)
{
    fr_error error = {0};
    fr_tokenizer *t = NULL;
    CHECK_INT(parse(p, &t, &error), FR_BAD_DATA);
    CHECK(t == NULL);
    CHECK(strncmp(error.where, "file.json", 9) == 0);
    if (!strstr(error.what, message))
        CHECK_STR(error.what, message);
    fr_tokenizer_free(t);
}

TEST(a_small_file_is_read)
{
    fr_error error = {0};
    fr_tokenizer *t = NULL;
    int32_t ids[8];
    CHECK_OK(parse(whole(), &t, &error));
    CHECK_INT(fr_tokenizer_vocab(t), 259);
    CHECK_INT(fr_tokenizer_bos(t), 258);
    CHECK_INT(fr_tokenizer_encode(t, "abcab", 5, ids, 8), 2);
    CHECK_INT(ids[0], 257);
    CHECK_INT(ids[1], 256);
    fr_tokenizer_free(t);
}

/* PCRE2 gives up on such a text; that is no lack of memory. */
TEST(endless_patterns_are_named)
{
    fr_error error = {0};
    fr_tokenizer *t = NULL;
    int32_t ids[64];
    char text[60];
    parts p = whole();
    p.pre_tokenizer = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
                      "\"(((a+)+)+)+$\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
                      "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]}";
    CHECK_OK(parse(p, &t, &error));
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 'b';
    CHECK_INT(fr_tokenizer_encode(t, "aaaa", 4, ids, 64), 4);
    CHECK_INT(fr_tokenizer_encode(t, text, sizeof text, ids, 64), -1);
    CHECK_INT(fr_tokenizer_encode_error(t, sizeof text, "the prompt", &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "split pattern") != NULL);
    fr_tokenizer_free(t);
}

TEST(ids_may_have_gaps)
{
    fr_error error = {0};
    fr_tokenizer *t = NULL;
    fr_buffer out;
    size_t bytes;
    parts p = whole();
    p.added = "{\"id\":300,\"content\":\"<s>\",\"special\":true}";
    CHECK_OK(parse(p, &t, &error));
    CHECK_INT(fr_tokenizer_vocab(t), 301);
    CHECK(fr_tokenizer_token(t, 270, &bytes) == NULL);
    fr_buffer_init(&out, 0);
    int32_t gap = 270;
    CHECK_INT(fr_tokenizer_decode(t, &gap, 1, true, &out, &error), FR_BAD_DATA);
    fr_buffer_release(&out);
    fr_tokenizer_free(t);
}

TEST(whole_chunks_are_looked_up_first_with_ignore_merges)
{
    fr_error error = {0};
    fr_tokenizer *t = NULL;
    int32_t ids[8];
    parts p = whole();
    p.merges = "\"a b\"";
    CHECK_OK(parse(p, &t, &error)); /* abc is a token that no merge makes */
    CHECK_INT(fr_tokenizer_encode(t, "abc", 3, ids, 8), 2);
    fr_tokenizer_free(t);
    p.model = ",\"ignore_merges\":true";
    CHECK_OK(parse(p, &t, &error));
    CHECK_INT(fr_tokenizer_encode(t, "abc", 3, ids, 8), 1);
    CHECK_INT(ids[0], 257);
    fr_tokenizer_free(t);
}

TEST(what_would_change_ids_is_refused_by_name)
{
    parts p = whole();
    p.root = "\"normalizer\":{\"type\":\"NFC\"},";
    check_refused(p, "normalizer");
    p = whole();
    p.pre_tokenizer = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}";
    check_refused(p, "add_prefix_space");
    p.pre_tokenizer = "{\"type\":\"Whitespace\"}";
    check_refused(p, "unsupported pre_tokenizer");
    p.pre_tokenizer = "null";
    check_refused(p, "unsupported pre_tokenizer");
    p.pre_tokenizer =
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a+\"},"
        "\"behavior\":\"Removed\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
        "\"use_regex\":false}]}";
    check_refused(p, "unsupported pre_tokenizer");
    p = whole();
    p.model = ",\"dropout\":0.1";
    check_refused(p, "dropout");
    p.model = ",\"byte_fallback\":true";
    check_refused(p, "byte_fallback");
    p.model = ",\"end_of_word_suffix\":\"</w>\"";
    check_refused(p, "suffixes");
    p.model = ",\"type\":\"Unigram\"";
    check_refused(p, "BPE");
}

TEST(broken_vocabularies_are_refused)
{
    parts p = whole();
    p.vocab = ",\"ab\":256,\"abc\":256";
    check_refused(p, "used twice");
    p.vocab = ",\"ab\":256,\"abc\":-1";
    check_refused(p, "out of range");
    p.vocab = ",\"ab\":256,\"abc\":99999999999";
    check_refused(p, "out of range");
    p.vocab = ",\"ab\":256,\"abc\":\"257\"";
    check_refused(p, "out of range");
    p.vocab = ",\"\":256";
    check_refused(p, "empty");
    p = whole();
    p.vocab = ",\"a\":256,\"ab\":257"; /* the later id of "a" wins; 97 becomes a gap */
    p.merges = "\"a q\"";
    check_refused(p, "merges[0]");
    p = whole();
    p.added = "{\"id\":256,\"content\":\"<|end|>\"}";
    check_refused(p, "takes the id");
    p.added = "{\"id\":258,\"content\":7}";
    check_refused(p, "no content");
    p.added = "{\"content\":\"x\"}";
    check_refused(p, "out of range");
    p.added = "{\"id\":258,\"content\":\"x\"},{\"id\":258,\"content\":\"y\"}";
    check_refused(p, "used twice");
}

TEST(broken_merges_are_refused)
{
    static const char *const bad[] = {"\"ab\"",
                                      "\"a b c\"",
                                      "\"a  b\"",
                                      "7",
                                      "[\"a\"]",
                                      "[\"a\",7]",
                                      "\"a z\"",
                                      "\" b\"",
                                      "\"a \"",
                                      "\"\\u20ac b\"",
                                      "[\"a\",\"b\",\"c\"]",
                                      "null"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        parts p = whole();
        p.merges = bad[i];
        check_refused(p, "model.merges[0]");
    }
    parts p = whole();
    p.merges = "\"a b\",\"a b\"";
    check_refused(p, "merged twice");
}

TEST(a_missing_byte_is_named)
{
    fr_error error = {0};
    fr_tokenizer *t = NULL;
    fr_buffer json;
    fr_buffer_init(&json, 0);
    write_json(&json, whole());
    char *at = strstr(json.data, "\"q\":");
    CHECK(at != NULL);
    if (at)
        at[1] = 'a'; /* now "a" is listed twice and "q" not at all */
    CHECK_INT(fr_tokenizer_parse(&t, json.data, json.length, "file.json", &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "0x71") != NULL);
    fr_buffer_release(&json);
}

TEST(truncated_files_are_refused)
{
    fr_buffer json;
    fr_buffer_init(&json, 0);
    write_json(&json, whole());
    for (size_t bytes = 0; bytes < json.length; bytes += bytes < 200 ? 1 : 37) {
        fr_error error = {0};
        fr_tokenizer *t = NULL;
        CHECK_INT(fr_tokenizer_parse(&t, json.data, bytes, "file.json", &error), FR_BAD_DATA);
    }
    fr_buffer_release(&json);
}

TEST(non_special_added_tokens_are_text)
{
    fr_error error = {0};
    fr_tokenizer *t = NULL;
    fr_buffer out;
    int32_t lengths[259], id = 258;
    parts p = whole();
    p.added = "{\"id\":258,\"content\":\"<tool>\",\"special\":false}";
    CHECK_OK(parse(p, &t, &error));
    fr_buffer_init(&out, 0);
    CHECK_OK(fr_tokenizer_decode(t, &id, 1, false, &out, &error));
    CHECK_STR(out.data, "<tool>");
    fr_tokenizer_byte_lengths(t, FR_LENGTHS_RAW, lengths);
    CHECK_INT(lengths[258], 6);
    CHECK_INT(fr_tokenizer_bos(t), -1);
    fr_buffer_release(&out);
    fr_tokenizer_free(t);
}

/* ---- rank files ---------------------------------------------------------------------------------------- */

static fr_status load_ranks(const char *lines, const char *const *specials, int count, fr_tokenizer **out,
                            fr_error *error)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char path[] = "/tmp/frontier-ranks-XXXXXX";
    int descriptor = mkstemp(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (!file)
        return FR_BAD_ENVIRONMENT;
    for (int value = 0; value < 256; value++)
        fprintf(file, "%c%c== %d\n", digits[value >> 2], digits[(value & 3) << 4], value);
    fputs(lines, file);
    fclose(file);
    fr_status status = fr_tokenizer_load_tiktoken(out, path, NULL, specials, count, error);
    remove(path);
    return status;
}

TEST(rank_files_merge_what_joins_to_a_token)
{
    static const char *const specials[] = {NULL, "<|end|>"};
    fr_error error = {0};
    fr_tokenizer *t = NULL;
    int32_t ids[8];
    CHECK_OK(load_ranks("YWI= 256\r\nYmM= 257\nYWJj 258", specials, 2, &t, &error)); /* ab, bc, abc */
    CHECK_INT(fr_tokenizer_vocab(t), 261);
    CHECK_INT(fr_tokenizer_bos(t), 260);
    CHECK_INT(fr_tokenizer_encode(t, "abc", 3, ids, 8), 1);
    CHECK_INT(ids[0], 258);
    CHECK_INT(fr_tokenizer_encode(t, "xabcc", 5, ids, 8), 3); /* x, ab+c, c */
    CHECK_INT(ids[1], 258);
    fr_tokenizer_free(t);
}

TEST(broken_rank_files_are_refused)
{
    static const struct {
        const char *lines, *message;
    } bad[] = {
        {"YWI=", "no space"},       {"YWI= x", "rank"},
        {"YWI= -1", "rank"},        {"YWI= 99999999", "rank"},
        {"YWI= 256 7", "rank"},     {"Y!I= 256", "base64"},
        {" 256", "base64"},         {"YWI= 255", "used twice"},
        {"YQ== 256", "same bytes"}, {"YWI= 11111111111111111111111111111111", "rank"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fr_error error = {0};
        fr_tokenizer *t = NULL;
        CHECK_INT(load_ranks(bad[i].lines, NULL, 0, &t, &error), FR_BAD_DATA);
        CHECK(error.where[0] != 0);
        if (!strstr(error.what, bad[i].message))
            CHECK_STR(error.what, bad[i].message);
    }
    static const char *const twice[] = {"<x>", "<x>"}, *const malformed[] = {"\xFF"};
    fr_error error = {0};
    fr_tokenizer *t = NULL;
    CHECK_INT(load_ranks("", twice, 2, &t, &error), FR_BAD_USAGE);
    CHECK_INT(load_ranks("", malformed, 1, &t, &error), FR_BAD_USAGE);
    CHECK_INT(fr_tokenizer_load_tiktoken(&t, "/nonexistent/ranks", NULL, NULL, 0, &error), FR_BAD_DATA);
}

TEST_MAIN(tokenizer_files)
