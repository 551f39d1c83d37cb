/* The JSON line reader: strict about grammar, tolerant about bytes; every prefix and every byte change of a good line is
 * harmless. */
#include "test.h"

#include "text/import_json.h"

static void check_line(const char *line, size_t bytes, fr_import_kind problem, const char *text, size_t text_bytes)
{
    char *copy = malloc(bytes + 1); /* exact size: the sanitizer sees any read beyond */
    char *exact = realloc(copy, bytes ? bytes : 1);
    memcpy(exact, line, bytes);
    import_json out;
    import_json_line(exact, bytes, "text", &out);
    if (out.problem != problem)
        printf("# %.*s\n", (int)bytes, line);
    CHECK_INT(out.problem, problem);
    if (problem == FR_IMPORT_KINDS && out.problem == problem)
        CHECK(out.bytes == text_bytes && memcmp(out.text, text, text_bytes) == 0);
    free(exact);
}

static void check_text(const char *line, const char *text)
{
    check_line(line, strlen(line), FR_IMPORT_KINDS, text, strlen(text));
}

static void check_problem(const char *line, fr_import_kind problem)
{
    check_line(line, strlen(line), problem, NULL, 0);
}

TEST(good_lines_give_their_text)
{
    check_text("{\"text\":\"hello\"}", "hello");
    check_text("  { \"id\" : 7 , \"text\" : \"a b\" , \"x\" : [ 1 , { \"text\" : \"no\" } ] }  \r", "a b");
    check_text("{\"text\":\"\"}", "");
    check_text("{\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "\"\\/\b\f\n\r\t");
    check_text("{\"text\":\"\\u00e9\\u20AC\\ud83d\\uDE00\\u0041\"}", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80" "A");
    check_text("{\"te\\u0078t\":\"escaped key\"}", "escaped key");
    check_text("{\"a\":-0.5e+10,\"b\":true,\"c\":false,\"d\":null,\"e\":0,\"f\":12E3,\"text\":\"x\"}", "x");
    check_text("{\"text\":\"caf\xE9 \xFF\xFE\"}", "caf\xE9 \xFF\xFE"); /* invalid UTF-8 passes byte for byte */
    check_line("{\"text\":\"a\\u0000b\"}", 19, FR_IMPORT_KINDS, "a\0b", 3);
}

TEST(bad_lines_are_told_apart)
{
    static const char *const bad[] = {
        "", "{", "}", "{]", "{\"text\"}", "{\"text\":}", "{\"text\":\"a\"", "{\"text\":\"a}", "{\"text\":\"a\",}", "{,\"text\":\"a\"}",
        "{\"text\":\"a\"} x", "{\"text\":\"a\"}{}", "{text:\"a\"}", "{'text':'a'}", "{\"text\":\"\\x41\"}", "{\"text\":\"\\u12\"}",
        "{\"text\":\"\\u12g4\"}", "{\"text\":\"\\", "{\"text\":\"tab\there\"}", "{\"n\":01}", "{\"n\":1.}", "{\"n\":.5}", "{\"n\":+1}", "{\"n\":1e}",
        "{\"n\":-}", "{\"n\":NaN}", "{\"n\":tru}", "{\"n\":nul}", "[1,]", "[,1]", "[1 2]", "\"open", "hello",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_problem(bad[i], FR_IMPORT_BAD_JSON);
    check_line("{\"text\":\"a\0b\"}", 14, FR_IMPORT_BAD_JSON, NULL, 0);
    check_problem("{}", FR_IMPORT_NO_TEXT);
    check_problem("{\"Text\":\"a\"}", FR_IMPORT_NO_TEXT);
    check_problem("{\"text\":5}", FR_IMPORT_NO_TEXT);
    check_problem("{\"text\":[\"a\"]}", FR_IMPORT_NO_TEXT);
    check_problem("{\"inner\":{\"text\":\"a\"}}", FR_IMPORT_NO_TEXT);
    check_problem("[{\"text\":\"a\"}]", FR_IMPORT_NO_TEXT);
    check_problem("\"text\"", FR_IMPORT_NO_TEXT);
    check_problem("3", FR_IMPORT_NO_TEXT);
    check_problem("{\"text\":null}", FR_IMPORT_NULL_TEXT);
}

TEST(the_last_of_equal_keys_counts)
{
    char line[] = "{\"text\":\"first\",\"text\":\"last\"}", null[] = "{\"text\":\"first\",\"text\":null}", one[] = "{\"text\":\"a\"}";
    import_json out;
    import_json_line(line, strlen(line), "text", &out);
    CHECK(out.duplicate_key && out.bytes == 4 && memcmp(out.text, "last", 4) == 0);
    import_json_line(null, strlen(null), "text", &out);
    CHECK(out.duplicate_key && out.problem == FR_IMPORT_NULL_TEXT);
    import_json_line(one, strlen(one), "text", &out);
    CHECK(!out.duplicate_key && !out.lone_surrogate);
}

TEST(lone_surrogates_become_replacement_characters)
{
    static const char *const lines[] = {"{\"text\":\"\\ud800\"}", "{\"text\":\"\\udc00\"}", "{\"text\":\"\\uDBFF\\u0041\"}", "{\"text\":\"\\ud800\\ud800\\udc00\"}"};
    static const char *const texts[] = {"\xEF\xBF\xBD", "\xEF\xBF\xBD", ("\xEF\xBF\xBD" "A"), "\xEF\xBF\xBD\xF0\x90\x80\x80"};
    for (int i = 0; i < 4; i++) {
        char line[64];
        import_json out;
        snprintf(line, sizeof line, "%s", lines[i]);
        import_json_line(line, strlen(line), "text", &out);
        CHECK(out.lone_surrogate && out.bytes == strlen(texts[i]) && memcmp(out.text, texts[i], out.bytes) == 0);
    }
}

TEST(deep_nesting_is_an_error_not_a_crash)
{
    enum { DEEP = 2000000 };
    char *line = malloc(DEEP);
    memset(line, '[', DEEP);
    check_line(line, DEEP, FR_IMPORT_BAD_JSON, NULL, 0);
    for (size_t i = 0; i + 5 < DEEP; i += 5)
        memcpy(line + i, "{\"a\":", 5);
    check_line(line, DEEP - 5, FR_IMPORT_BAD_JSON, NULL, 0);
    free(line);
}

TEST(prefixes_and_byte_changes_do_no_harm)
{
    static const char line[] = "{\"a\":[1,-2.5e3,{\"b\":null}],\"text\":\"x\\u00e9\\ud83d\\ude00 \\n y\",\"c\":true}";
    for (size_t n = 0; n < strlen(line); n++)
        check_line(line, n, FR_IMPORT_BAD_JSON, NULL, 0);
    for (size_t at = 0; at < strlen(line); at++)
        for (int c = 0; c < 256; c++) {
            char changed[sizeof line];
            memcpy(changed, line, sizeof line);
            changed[at] = (char)c;
            char *exact = malloc(strlen(line));
            memcpy(exact, changed, strlen(line));
            import_json out;
            import_json_line(exact, strlen(line), "text", &out);
            CHECK(out.problem != FR_IMPORT_KINDS || out.bytes <= strlen(line));
            free(exact);
        }
}

TEST_MAIN(import_json)
