/* Errors: kinds pass through, texts are cut at characters, arguments may alias the error itself. */
#include "frontier/base.h"
#include "test.h"

TEST(set_fills_and_returns_kind)
{
    fr_error error = {0};
    CHECK_INT(fr_error_set(&error, FR_BAD_DATA, "a.txt:3", "look there", "bad %s %d", "thing", 7),
              FR_BAD_DATA);
    CHECK_INT(error.status, FR_BAD_DATA);
    CHECK_STR(error.what, "bad thing 7");
    CHECK_STR(error.where, "a.txt:3");
    CHECK_STR(error.hint, "look there");
}

TEST(null_error_and_null_texts_are_fine)
{
    fr_error error = {0};
    CHECK_INT(fr_error_set(NULL, FR_BUG, "x", NULL, "y"), FR_BUG);
    CHECK_INT(fr_error_within(NULL, FR_BUG, "x"), FR_BUG);
    fr_error_set(&error, FR_BUG, NULL, NULL, "y");
    CHECK_STR(error.where, "");
    CHECK_STR(error.hint, "");
}

TEST(within_nests_subjects)
{
    fr_error error = {0};
    fr_error_set(&error, FR_BAD_DATA, "model.depth", NULL, "too small");
    CHECK_INT(fr_error_within(&error, FR_BAD_DATA, "recipe.toml"), FR_BAD_DATA);
    CHECK_STR(error.where, "recipe.toml: model.depth");
    fr_error_set(&error, FR_BAD_DATA, "", NULL, "too small");
    fr_error_within(&error, FR_BAD_DATA, "recipe.toml");
    CHECK_STR(error.where, "recipe.toml");
    CHECK_INT(fr_error_within(&error, FR_OK, "outer"), FR_OK);
    CHECK_STR(error.where, "recipe.toml");
}

TEST(arguments_may_come_from_the_error)
{
    fr_error error = {0};
    fr_error_set(&error, FR_BAD_DATA, "inner", "hint", "first");
    fr_error_set(&error, FR_BUG, error.where, error.hint, "again: %s", error.what);
    CHECK_STR(error.what, "again: first");
    CHECK_STR(error.where, "inner");
    CHECK_STR(error.hint, "hint");
}

TEST(format_has_subject_text_and_hint)
{
    fr_error error = {0};
    char text[1100];
    fr_error_set(&error, FR_BAD_DATA, "a", "b", "c");
    fr_error_format(&error, text, sizeof text);
    CHECK(strcmp(text, "frontier: error: a: c\n  hint: b\n") == 0);
    fr_error_set(&error, FR_BAD_DATA, NULL, NULL, "c");
    fr_error_format(&error, text, sizeof text);
    CHECK(strcmp(text, "frontier: error: c\n") == 0);
    fr_error_format(&error, text, 10);
    CHECK_INT(strlen(text), 9);
}

/* Whatever the phase of the cut, the text stays whole UTF-8. */
TEST(names_cannot_command_a_terminal)
{
    fr_error error;
    char text[400];
    fr_error_set(&error, FR_BAD_DATA, "a\033[2J\nb\xc2\x9b" "c\x7f", NULL, "first line\nsecond\033]0;x\007 caf\xc3\xa9");
    fr_error_format(&error, text, sizeof text);
    CHECK_STR(text, "frontier: error: a?[2J?b??c?: first line\nsecond?]0;x? caf\xc3\xa9\n");
}

TEST(long_texts_are_cut_between_characters)
{
    static const char *const characters[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x99\x82"};
    for (int c = 0; c < 3; c++) {
        for (int phase = 0; phase < 4; phase++) {
            char longer[2000] = "";
            fr_error error = {0};
            size_t width = strlen(characters[c]);
            for (int i = 0; i < phase; i++)
                strcat(longer, "x");
            while (strlen(longer) + width < 1000)
                strcat(longer, characters[c]);
            fr_error_set(&error, FR_BAD_DATA, longer, longer, "%s", longer);
            CHECK_INT((strlen(error.what) - (size_t)phase) % width, 0);
            CHECK_INT((strlen(error.where) - (size_t)phase) % width, 0);
            CHECK_INT((strlen(error.hint) - (size_t)phase) % width, 0);
            CHECK(strlen(error.what) > sizeof error.what - 5);
            fr_error_within(&error, FR_BAD_DATA, "outer");
            CHECK_INT((strlen(error.where) - 7 - (size_t)phase) % width, 0);
        }
    }
}

TEST(text_that_just_fits_is_kept)
{
    fr_error error = {0};
    char exact[sizeof error.where];
    memset(exact, 'a', sizeof exact);
    exact[sizeof exact - 1] = '\0';
    fr_error_set(&error, FR_BAD_DATA, exact, NULL, "x");
    CHECK_STR(error.where, exact);
}

TEST(memory_error_names_size_and_purpose)
{
    fr_error error = {0};
    CHECK_INT(fr_error_memory(&error, 3u << 30, "the corpus"), FR_BAD_ENVIRONMENT);
    CHECK(strstr(error.what, "3.0 GiB"));
    CHECK_STR(error.where, "the corpus");
}

TEST_MAIN(error)
