/* JSON: line numbers in errors, typed getters, deterministic bytes, torn JSON lines. */
#include "base/json.h"
#include "scratch.h"
#include "test.h"

static fr_error error;

static json_t *parsed(const char *text)
{
    json_t *root = NULL;
    CHECK_OK(fr_json_parse(&root, text, strlen(text), "t.json", &error));
    return root;
}

TEST(errors_name_the_line)
{
    static const struct {
        const char *text, *where;
    } bad[] = {
        {"{\n\"a\": 1,\n}", "t.json:3"}, {"", "t.json:1"},          {"{\"a\":1,\n\"a\":2}", "t.json:2"},
        {"[1] 2", "t.json:1"},           {"[1e999]", "t.json:1"},   {"[99999999999999999999]", "t.json:1"},
        {"[\"\xFF\"]", "t.json:1"},      {"[\n\"open", "t.json:2"}, {"{\"a\":nan}", "t.json:1"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *root;
        CHECK_INT(fr_json_parse(&root, bad[i].text, strlen(bad[i].text), "t.json", &error), FR_BAD_DATA);
        CHECK_STR(error.where, bad[i].where);
    }
}

TEST(deep_nesting_is_refused)
{
    char *deep = malloc(200001);
    memset(deep, '[', 200000);
    deep[200000] = '\0';
    json_t *root;
    CHECK_INT(fr_json_parse(&root, deep, 200000, "t.json", &error), FR_BAD_DATA);
    free(deep);
}

TEST(getters_check_type_and_range)
{
    json_t *root = parsed("{\"i\":5,\"r\":1.5,\"t\":true,\"s\":\"x\",\"n\":null,\"o\":{},\"a\":[]}"), *inner;
    int64_t i = 0;
    double r = 0;
    bool t = false;
    const char *s = NULL;
    CHECK_OK(fr_json_get_int(root, "i", 0, 10, &i, "t.json", &error));
    CHECK_OK(fr_json_get_real(root, "r", &r, "t.json", &error));
    CHECK_OK(fr_json_get_bool(root, "t", &t, "t.json", &error));
    CHECK_OK(fr_json_get_string(root, "s", &s, "t.json", &error));
    CHECK_OK(fr_json_get_object(root, "o", &inner, "t.json", &error));
    CHECK_OK(fr_json_get_array(root, "a", &inner, "t.json", &error));
    CHECK(i == 5 && r == 1.5 && t);
    CHECK_STR(s, "x");
    CHECK_OK(fr_json_get_real(root, "i", &r, "t.json", &error));
    CHECK(r == 5);
    CHECK(fr_json_has(root, "i") && !fr_json_has(root, "n") && !fr_json_has(root, "zzz"));
    CHECK_INT(fr_json_get_int(root, "i", 6, 10, &i, "t.json", &error), FR_BAD_DATA);
    CHECK_INT(fr_json_get_int(root, "r", 0, 10, &i, "t.json", &error), FR_BAD_DATA);
    CHECK_STR(error.what, "'r' must be a whole number, not a number");
    CHECK_INT(fr_json_get_string(root, "n", &s, "t.json", &error), FR_BAD_DATA);
    CHECK_INT(fr_json_get_bool(root, "zzz", &t, "t.json", &error), FR_BAD_DATA);
    CHECK_STR(error.what, "the key 'zzz' is missing");
    CHECK_STR(error.where, "t.json");
    CHECK_INT(fr_json_get_object(root, "a", &inner, "t.json", &error), FR_BAD_DATA);
    CHECK_INT(fr_json_get_array(inner, "a", &inner, "t.json", &error),
              FR_BAD_DATA); /* of an array: no keys */
    json_decref(root);
}

TEST(printing_is_deterministic)
{
    fr_buffer out;
    fr_buffer_init(&out, 0);
    json_t *root = parsed("{\"b\":[1,2.5,1e-5,true,null,{}],\"a\":\"q\\\"\\\\\\n\\u0001\\u00e9\",\"B\":{"
                          "\"y\":0.1,\"x\":-0.0}}");
    fr_json_print(root, 0, &out);
    CHECK_STR(out.data, "{\"B\":{\"x\":-0.0,\"y\":0.1},\"a\":\"q\\\"\\\\\\n\\u0001\xC3\xA9\",\"b\":[1,2.5,1e-"
                        "05,true,null,{}]}");
    fr_buffer_clear(&out);
    json_t *small = parsed("{\"b\":[1],\"a\":{}}");
    fr_json_print(small, 2, &out);
    CHECK_STR(out.data, "{\n  \"a\": {},\n  \"b\": [\n    1\n  ]\n}");
    fr_buffer_release(&out);
    json_decref(small);
    json_decref(root);
}

TEST(setters_and_odd_values)
{
    fr_buffer out;
    fr_buffer_init(&out, 0);
    json_t *root = json_object();
    CHECK(fr_json_set_int(root, "i", INT64_MIN) && fr_json_set_real(root, "nan", NAN) &&
          fr_json_set_real(root, "inf", -INFINITY));
    CHECK(fr_json_set_bool(root, "t", true) && fr_json_set_string(root, "s", "a\xFFz") &&
          !fr_json_set(root, "x", NULL));
    fr_json_print(root, 0, &out);
    CHECK_STR(out.data,
              "{\"i\":-9223372036854775808,\"inf\":null,\"nan\":null,\"s\":\"a\xEF\xBF\xBDz\",\"t\":true}");
    fr_buffer_release(&out);
    json_decref(root);
}

TEST(written_files_read_back)
{
    json_t *root = parsed("{\"x\":[0.1,3]}"), *back = NULL;
    CHECK_OK(fr_json_write(root, scratch("x.json"), &error));
    CHECK_OK(fr_json_read(&back, scratch("x.json"), &error));
    CHECK(json_equal(root, back));
    json_decref(back);
    fr_allocate_fail_after(0);
    CHECK_INT(fr_json_write(root, scratch("y.json"), &error), FR_BAD_ENVIRONMENT);
    fr_allocate_fail_after(-1);
    fr_file_fail_after(3);
    CHECK_INT(fr_json_write(root, scratch("y.json"), &error), FR_BAD_ENVIRONMENT);
    fr_file_fail_after(-1);
    CHECK(!fr_path_exists(scratch("y.json")));
    CHECK_INT(fr_json_read(&back, scratch("y.json"), &error), FR_BAD_DATA);
    json_decref(root);
}

static fr_status add_up(void *context, const json_t *value, int64_t line, fr_error *failure)
{
    int64_t n;
    FR_TRY(fr_json_get_int(value, "n", 0, 100, &n, "lines", failure));
    *(int64_t *)context += n * 1000 + line;
    return FR_OK;
}

TEST(json_lines)
{
    int64_t sum = 0;
    bool torn;
    const char *text = "{\"n\":1}\n\n{\"n\":2}\r\n{\"n\":3}";
    CHECK_OK(fr_json_lines(text, strlen(text), "l", add_up, &sum, &torn, &error));
    CHECK_INT(sum, 6000 + 1 + 3 + 4);
    CHECK(!torn);
    for (size_t cut = 0; cut < 7; cut++) {
        sum = 0;
        CHECK_OK(fr_json_lines(text, 8 + cut, "l", add_up, &sum, &torn, &error));
        CHECK_INT(sum, 1001);
        CHECK_INT(torn, cut > 1);
    }
    const char *bad = "{\"n\":1}\n{\"n\n{\"n\":3}\n";
    CHECK_INT(fr_json_lines(bad, strlen(bad), "l", add_up, &sum, NULL, &error), FR_BAD_DATA);
    CHECK_STR(error.where, "l:2");
    CHECK_INT(fr_json_lines("{}\n", 3, "l", add_up, &sum, NULL, &error), FR_BAD_DATA);
}

TEST_MAIN(json)
