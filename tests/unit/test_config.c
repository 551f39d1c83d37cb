/* Configuration: every mistake is refused, named with path:line and a suggestion, and changes nothing. */
#include "frontier/base.h"
#include "test.h"

typedef struct settings {
    int64_t seed, depth, width;
    double lr;
    bool tied;
    char kind[64], note[64];
    fr_config_reals betas;
    int64_t after; /* not in the schema: must never be touched */
} settings;

#define AT(FIELD) offsetof(settings, FIELD)
static const fr_config_key KEYS[] = {
    {"seed", FR_CONFIG_INT, AT(seed), "1", 0, 0, NULL, "random seed"},
    {"model.depth", FR_CONFIG_INT, AT(depth), "10", 1, 100, NULL, "layers"},
    {"model.width", FR_CONFIG_INT, AT(width), "640", 1, 1e6, NULL, "channels"},
    {"model.tied", FR_CONFIG_BOOL, AT(tied), "true", 0, 0, NULL, ""},
    {"optim.lr", FR_CONFIG_REAL, AT(lr), "0.02", 0, 1, NULL, "learning rate"},
    {"optim.kind", FR_CONFIG_STRING, AT(kind), "\"muon\"", 0, 0, "muon|adamw", "optimizer"},
    {"optim.betas", FR_CONFIG_REALS, AT(betas), "[0.8, 0.95]", 0, 1, NULL, "decay of the moments"},
    {"data.note", FR_CONFIG_STRING, AT(note), "''", 0, 0, NULL, NULL},
};
enum { COUNT = sizeof KEYS / sizeof *KEYS };

static fr_error error;

static settings defaults(void)
{
    settings s;
    memset(&s, 0, sizeof s);
    s.after = 77;
    CHECK_OK(fr_config_defaults(KEYS, COUNT, &s, &error));
    return s;
}

TEST(defaults_are_set)
{
    settings s = defaults();
    CHECK(s.seed == 1 && s.depth == 10 && s.width == 640 && s.tied && s.lr == 0.02 && s.after == 77);
    CHECK(strcmp(s.kind, "muon") == 0 && strcmp(s.note, "") == 0);
    CHECK(s.betas.count == 2 && s.betas.values[0] == 0.8 && s.betas.values[1] == 0.95);
}

TEST(the_whole_subset_parses)
{
    settings s = defaults();
    const char *text = "\xEF\xBB\xBF# a recipe\r\n"
                       "seed = 42 # answer\r\n"
                       "\n"
                       "  [ model ]  # section\n"
                       "depth=+12\n"
                       "\twidth = 65_536\n"
                       "tied = false\n"
                       "[optim]\n"
                       "lr = 1e-3\n"
                       "kind = 'adamw'\n"
                       "betas = [ 0.5, # first\n"
                       "   1,\n"
                       "]\n"
                       "[data]\n"
                       "note = \"a \\\"b\\\" \\\\ \\t \\u00e9 # no comment\"";
    CHECK_OK(fr_config_parse(KEYS, COUNT, &s, text, "r.toml", &error));
    CHECK(s.seed == 42 && s.depth == 12 && s.width == 65536 && !s.tied && s.lr == 1e-3);
    CHECK_STR(s.kind, "adamw");
    CHECK_STR(s.note, "a \"b\" \\ \t \xC3\xA9 # no comment");
    CHECK(s.betas.count == 2 && s.betas.values[0] == 0.5 && s.betas.values[1] == 1);
}

TEST(dotted_keys_integers_as_reals_and_empty_texts)
{
    settings s = defaults();
    CHECK_OK(
        fr_config_parse(KEYS, COUNT, &s, "model.depth = 3\noptim.lr = 1\noptim.betas = []", "r", &error));
    CHECK(s.depth == 3 && s.lr == 1 && s.betas.count == 0);
    CHECK_OK(fr_config_parse(KEYS, COUNT, &s, "", "r", &error));
    CHECK_OK(fr_config_parse(KEYS, COUNT, &s, "\n\r\n# x", "r", &error));
    CHECK(s.depth == 3);
}

/* text, expected place, part of the message, part of the hint */
static const struct {
    const char *text, *where, *what, *hint;
} MISTAKES[] = {
    {"[model]\n\ndept = 6\n", "r.toml:3", "unknown key 'model.dept'", "did you mean 'model.depth'?"},
    {"depth = 6\n", "r.toml:1", "unknown key 'depth'", "did you mean 'model.depth'?"},
    {"[model]\nbanana = 6\n", "r.toml:2", "unknown key", "known keys here: depth, width, tied"},
    {"[modle]\n", "r.toml:1", "unknown section [modle]", "did you mean [model]?"},
    {"[model]\ndepth = 6\ndepth = 7\n", "r.toml:3", "already set on line 2", ""},
    {"model.depth = 6\n[model]\ndepth = 7\n", "r.toml:3", "already set on line 1", ""},
    {"[model]\ndepth = 6.0\n", "r.toml:2", "needs a whole number, not a number", ""},
    {"[model]\ndepth = \"6\"\n", "r.toml:2", "needs a whole number, not a string", ""},
    {"[model]\ndepth = 0\n", "r.toml:2", "out of range: 1 to 100", ""},
    {"[model]\ndepth = 101\n", "r.toml:2", "out of range", ""},
    {"[model]\ndepth = 99999999999999999999\n", "r.toml:2", "is not a value", ""},
    {"[model]\ndepth = six\n", "r.toml:2", "'six' is not a value", "need quotes"},
    {"[model]\ndepth = 1__0\n", "r.toml:2", "is not a value", ""},
    {"[model]\ndepth = _1\n", "r.toml:2", "is not a value", ""},
    {"[model]\ndepth = 0x10\n", "r.toml:2", "is not a value", ""},
    {"[model]\ndepth =\n", "r.toml:2", "value is missing", ""},
    {"[model]\ndepth 6\n", "r.toml:2", "expected '='", ""},
    {"[model]\ndepth = 6 7\n", "r.toml:2", "unexpected '7", ""},
    {"[model]\n= 6\n", "r.toml:2", "expected a key", ""},
    {"[model\n", "r.toml:1", "not closed", ""},
    {"[]\n", "r.toml:1", "expected a section name", ""},
    {"[[model]]\n", "r.toml:1", "not supported", ""},
    {"[model] x\n", "r.toml:1", "unexpected 'x", ""},
    {"[model]\ntied = yes\n", "r.toml:2", "is not a value", ""},
    {"[model]\ntied = truely\n", "r.toml:2", "is not a value", ""},
    {"[optim]\nlr = nan\n", "r.toml:2", "is not a value", ""},
    {"[optim]\nlr = inf\n", "r.toml:2", "is not a value", ""},
    {"[optim]\nlr = 1e999\n", "r.toml:2", "is not a value", ""},
    {"[optim]\nlr = .5\n", "r.toml:2", "is not a value", ""},
    {"[optim]\nlr = -0.1\n", "r.toml:2", "out of range: 0 to 1", ""},
    {"[optim]\nkind = \"sgd\"\n", "r.toml:2", "cannot be 'sgd'", "one of muon, adamw"},
    {"[optim]\nkind = \"muon|adamw\"\n", "r.toml:2", "cannot be", ""},
    {"[optim]\nkind = \"\"\n", "r.toml:2", "cannot be ''", ""},
    {"[optim]\nkind = \"mu\n", "r.toml:2", "not closed", ""},
    {"[optim]\nbetas = [0.1, 2]\n", "r.toml:2", "out of range", ""},
    {"[optim]\nbetas = [0.1\n\n0.2]\n", "r.toml:4", "not closed", ""},
    {"[optim]\nbetas = [0.1,\n", "r.toml:3", "not closed", ""},
    {"[optim]\nbetas = [\"a\"]\n", "r.toml:2", "is not a value", ""},
    {"[optim]\nbetas = [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]\n", "r.toml:2", "more than 16", ""},
    {"[optim]\nbetas = 0.5\n", "r.toml:2", "needs an array", ""},
    {"[data]\nnote = \"\\x\"\n", "r.toml:2", "unknown escape", "known escapes"},
    {"[data]\nnote = \"\\uD800\"\n", "r.toml:2", "unknown escape", ""},
    {"[data]\nnote = \"\xFF\"\n", "r.toml:2", "byte 0xFF", "UTF-8"},
    {"[data]\nnote = \"\x01\"\n", "r.toml:2", "byte 0x01", ""},
    {"[data]\nnote = '0123456789012345678901234567890123456789012345678901234567890123'\n", "r.toml:2",
     "longer than 63", ""},
    {"\r", "r.toml:1", "expected a key", ""},
};

TEST(mistakes_are_named)
{
    for (size_t i = 0; i < sizeof MISTAKES / sizeof *MISTAKES; i++) {
        settings s = defaults(), before = s;
        fr_error found = {0};
        fr_status status = fr_config_parse(KEYS, COUNT, &s, MISTAKES[i].text, "r.toml", &found);
        bool good = status == FR_BAD_DATA && strcmp(found.where, MISTAKES[i].where) == 0 &&
                    strstr(found.what, MISTAKES[i].what) && strstr(found.hint, MISTAKES[i].hint);
        if (!good)
            printf("# mistake %zu: %d '%s' '%s' '%s'\n", i, status, found.where, found.what, found.hint);
        CHECK(good);
        CHECK(memcmp(&s, &before, sizeof s) == 0);
    }
}

TEST(a_late_mistake_takes_everything_back)
{
    settings s = defaults(), before = s;
    CHECK_INT(fr_config_parse(KEYS, COUNT, &s, "seed = 5\n[model]\ndepth = 7\nwidth = x\n", "r", &error),
              FR_BAD_DATA);
    CHECK(memcmp(&s, &before, sizeof s) == 0);
}

TEST(required_keys)
{
    static const fr_config_key keys[] = {
        {"model.depth", FR_CONFIG_INT, AT(depth), NULL, 1, 100, NULL, "layers"}};
    settings s = {0};
    CHECK_OK(fr_config_defaults(keys, 1, &s, &error));
    CHECK_INT(fr_config_parse(keys, 1, &s, "# nothing\n", "r.toml", &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "'model.depth' is missing"));
    CHECK_OK(fr_config_parse(keys, 1, &s, "[model]\ndepth = 2", "r.toml", &error));
}

TEST(bad_defaults_are_our_bug)
{
    static const fr_config_key out_of_range[] = {{"a", FR_CONFIG_INT, AT(depth), "5", 6, 9, NULL, ""}};
    static const fr_config_key trailing[] = {{"a", FR_CONFIG_INT, AT(depth), "5 x", 0, 0, NULL, ""}};
    settings s = {0};
    CHECK_INT(fr_config_defaults(out_of_range, 1, &s, &error), FR_BUG);
    CHECK_INT(fr_config_defaults(trailing, 1, &s, &error), FR_BUG);
}

TEST(assignments)
{
    settings s = defaults();
    CHECK_OK(fr_config_set(KEYS, COUNT, &s, "model.depth=6", &error));
    CHECK_OK(fr_config_set(KEYS, COUNT, &s, " optim.lr = 0.5 ", &error));
    CHECK_OK(fr_config_set(KEYS, COUNT, &s, "optim.kind=adamw", &error));
    CHECK_OK(fr_config_set(KEYS, COUNT, &s, "optim.betas=[0.1,0.2,0.3]", &error));
    CHECK_OK(fr_config_set(KEYS, COUNT, &s, "data.note=two words", &error));
    CHECK(s.depth == 6 && s.lr == 0.5 && s.betas.count == 3);
    CHECK_STR(s.kind, "adamw");
    CHECK_STR(s.note, "two words");
    CHECK_OK(fr_config_set(KEYS, COUNT, &s, "data.note=\"quoted\"", &error));
    CHECK_STR(s.note, "quoted");
    static const char *const bad[] = {
        "model.dept=6",   "model.depth",     "model.depth=",   "=6",          "", "model.depth=6 7",
        "optim.kind=sgd", "model.depth=1e3", "data.note=\xFF", "model.tied=1"};
    settings before = s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_INT(fr_config_set(KEYS, COUNT, &s, bad[i], &error), FR_BAD_USAGE);
    CHECK(memcmp(&s, &before, sizeof s) == 0);
    fr_config_set(KEYS, COUNT, &s, "model.dept=6", &error);
    CHECK_STR(error.hint, "did you mean 'model.depth'?");
    CHECK_STR(error.where, "model.dept=6");
}

/* What is written parses to the same struct, bit for bit, for random values. */
TEST(written_text_reads_back)
{
    fr_rng rng = {1, 1, 1};
    for (int round = 0; round < 300; round++) {
        settings s = defaults(), back = defaults();
        fr_buffer text;
        fr_buffer_init(&text, 0);
        s.seed = (int64_t)fr_rng_next(&rng);
        s.lr = fr_rng_uniform(&rng);
        s.betas.count = (int)fr_rng_below(&rng, 17);
        for (int i = 0; i < s.betas.count; i++)
            s.betas.values[i] = fr_rng_uniform(&rng);
        for (int i = 0; i < 20; i++)
            s.note[i] = (char)(1 + fr_rng_below(&rng, 127));
        fr_config_write(KEYS, COUNT, &s, &text);
        CHECK_OK(fr_config_parse(KEYS, COUNT, &back, text.data, "resolved", &error));
        CHECK(memcmp(&s.betas.values, &back.betas.values, (size_t)s.betas.count * sizeof(double)) == 0);
        CHECK(s.seed == back.seed && s.lr == back.lr && s.betas.count == back.betas.count);
        CHECK_STR(back.note, s.note);
        fr_buffer_release(&text);
    }
}

TEST(written_text_groups_sections_and_explains)
{
    settings s = defaults();
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_config_write(KEYS, 3, &s, &text);
    CHECK_STR(text.data, "seed = 1                         # random seed\n"
                         "\n[model]\n"
                         "depth = 10                       # layers\n"
                         "width = 640                      # channels\n");
    fr_buffer_release(&text);
}

/* No text may crash or hang the parser: mutate a good one. */
TEST(mutations_never_crash)
{
    const char *good = "seed = 1\n[model]\ndepth = 10 # x\ntied = true\n[optim]\nbetas = [0.8,\n 0.9]\nkind "
                       "= \"muon\"\nlr = 1e-3\n";
    fr_rng rng = {2, 0, 0};
    char text[256];
    for (int round = 0; round < 20000; round++) {
        settings s = defaults();
        strcpy(text, good);
        for (uint64_t edits = 1 + fr_rng_below(&rng, 4); edits > 0; edits--)
            text[fr_rng_below(&rng, strlen(good))] = (char)fr_rng_below(&rng, 256);
        fr_status status = fr_config_parse(KEYS, COUNT, &s, text, "m", &error);
        CHECK(status == FR_OK || (status == FR_BAD_DATA && error.what[0]));
        CHECK_INT(s.after, 77);
    }
}

TEST(allocation_failure)
{
    settings s = defaults(), before = s;
    fr_allocate_fail_after(0);
    CHECK_INT(fr_config_parse(KEYS, COUNT, &s, "seed = 5", "r", &error), FR_BAD_ENVIRONMENT);
    fr_allocate_fail_after(-1);
    CHECK(memcmp(&s, &before, sizeof s) == 0);
}

TEST_MAIN(config)
