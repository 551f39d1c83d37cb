/* Recipes: the files that ship, the sizes they imply, and what is refused with which way out. */
#include "frontier/model.h"

#include "test.h"

static fr_recipe defaults(void)
{
    fr_recipe recipe;
    fr_error error = {0};
    CHECK_OK(fr_recipe_defaults(&recipe, &error));
    return recipe;
}

/* Tests run in the repository's root. */
static fr_status load(fr_recipe *recipe, const char *name, fr_error *error)
{
    char path[200];
    snprintf(path, sizeof path, "recipes/%s.toml", name);
    return fr_recipe_load(recipe, path, error);
}

TEST(the_defaults_are_the_baseline_file)
{
    fr_recipe from_file, recipe = defaults();
    fr_error error = {0};
    CHECK_OK(load(&from_file, "baseline", &error));
    CHECK(memcmp(&from_file, &recipe, sizeof recipe) == 0);
    CHECK_OK(fr_recipe_check(&recipe, &error));
    CHECK_INT(fr_recipe_width(&recipe), 640);
    CHECK_INT(fr_recipe_heads(&recipe), 5);
    CHECK_INT(fr_recipe_kv_heads(&recipe), 5);
    CHECK_INT(fr_recipe_hidden(&recipe), 2560);
}

TEST(shipped_recipes_load)
{
    static const char *const names[] = {"baseline", "nanochat-d10", "plain"};
    for (int i = 0; i < 3; i++) {
        fr_recipe recipe;
        fr_error error = {0};
        CHECK_OK(load(&recipe, names[i], &error));
    }
}

TEST(a_written_recipe_reads_back_the_same)
{
    fr_recipe recipe, again;
    fr_error error = {0};
    CHECK_OK(load(&recipe, "nanochat-d10", &error));
    CHECK_OK(fr_recipe_set(&recipe, "schedule.batch_phases=[0.0, 0.25, 0.5, 1.0]", &error));
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_recipe_write(&recipe, &text);
    CHECK(!text.failed);
    CHECK_OK(fr_recipe_parse(&again, text.data, "written", &error));
    CHECK(memcmp(&recipe, &again, sizeof recipe) == 0);
    fr_buffer_release(&text);
}

TEST(keys_are_unique_and_explained)
{
    int count;
    const fr_config_key *keys = fr_recipe_keys(&count);
    CHECK(count > 70);
    for (int i = 0; i < count; i++) {
        CHECK(keys[i].help && strlen(keys[i].help) > 5);
        CHECK(keys[i].fallback != NULL);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(keys[i].name, keys[j].name) != 0 && keys[i].offset != keys[j].offset);
    }
}

TEST(windows_tile_and_the_last_is_long)
{
    fr_recipe recipe = defaults();
    fr_error error = {0};
    CHECK_OK(fr_recipe_set(&recipe, "model.windows=\"SSSL\"", &error));
    const int64_t wanted[10] = {256, 256, 256, 1024, 256, 256, 256, 1024, 256, 1024};
    for (int64_t i = 0; i < 10; i++)
        CHECK_INT(fr_recipe_window(&recipe, i), wanted[i]);
    recipe.model.context = 2048;
    CHECK_INT(fr_recipe_window(&recipe, 0), 512);
    recipe.model.short_window = 77;
    CHECK_INT(fr_recipe_window(&recipe, 0), 77);
    CHECK_INT(fr_recipe_window(&recipe, 9), 2048);
}

TEST(value_embeddings_alternate_and_the_last_block_has_one)
{
    fr_recipe recipe = defaults();
    CHECK(!fr_recipe_has_value_embedding(&recipe, 9));
    recipe.model.value_embeddings = true;
    for (int64_t depth = 1; depth < 8; depth++) {
        recipe.model.depth = depth;
        for (int64_t i = 0; i < depth; i++)
            CHECK_INT(fr_recipe_has_value_embedding(&recipe, i), (depth - 1 - i) % 2 == 0);
    }
}

/* Assignments, one after the other; then the check must refuse and name `where`, and the hint must hold
 * `hint`. */
typedef struct refusal {
    const char *assignments[3];
    const char *where, *hint;
} refusal;

static const refusal refusals[] = {
    {{"model.head_dim=63"}, "model.head_dim", "even"},
    {{"model.width=700"}, "model.width", "768"},
    {{"model.width=640", "model.kv_heads=2"}, "model.kv_heads", "multiple"},
    {{"model.kv_heads=10"}, "model.kv_heads", "multiple"},
    {{"model.depth=512", "model.aspect=4096"}, "model.aspect", "lower"},
    {{"model.windows=\"SSXL\""}, "model.windows", "SSSL"},
    {{"model.windows=\"\""}, "model.windows", "SSSL"},
    {{"model.position=\"learned\""}, "model.qk_norm", "rotary"},
    {{"model.qk_norm=false", "model.qk_gain=1.2"}, "model.qk_gain", "qk_norm"},
    {{"model.mlp_ratio=0.01", "model.head_dim=2", "model.width=2"}, "model.mlp_ratio", "larger"},
    {{"model.value_embeddings=true", "model.value_gate_channels=641"}, "model.value_gate_channels", "width"},
    {{"model.smear=true", "model.smear_channels=641"}, "model.smear_channels", "width"},
    {{"optim.batch_tokens=65537"}, "optim.batch_tokens", "65536"},
    {{"optim.batch_tokens=4096"}, "optim.batch_tokens", "8192"},
    {{"optim.micro_rows=3"}, "optim.micro_rows", "divisor"},
    {{"schedule.batch_phases=[0.5]"}, "schedule.batch_phases", "["},
    {{"schedule.batch_phases=[0.5, 0.5, 0.25, 1.0]"}, "schedule.batch_phases", "rise"},
    {{"schedule.batch_phases=[0.0, 0.3]"}, "schedule.batch_phases", "whole rows"},
    {{"schedule.batch_phases=[0.0, 2.0]"}, "schedule.batch_phases", "whole rows"},
    {{"schedule.warm=0.5"}, "schedule.cool", "at most 1"},
};

TEST(what_cannot_go_together_is_refused_with_a_way_out)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        fr_recipe recipe = defaults();
        fr_error error = {0};
        for (int a = 0; a < 3 && refusals[i].assignments[a]; a++)
            CHECK_OK(fr_recipe_set(&recipe, refusals[i].assignments[a], &error));
        CHECK_INT(fr_recipe_check(&recipe, &error), FR_BAD_USAGE);
        CHECK_STR(error.where, refusals[i].where);
        if (!strstr(error.hint, refusals[i].hint)) {
            printf("# hint '%s' lacks '%s'\n", error.hint, refusals[i].hint);
            CHECK(!"the hint shows the way out");
        }
    }
}

TEST(unused_knobs_do_not_refuse)
{
    fr_recipe recipe = defaults();
    fr_error error = {0};
    CHECK_OK(fr_recipe_set(&recipe, "model.smear_channels=5000", &error));
    CHECK_OK(fr_recipe_check(&recipe, &error));
    CHECK_OK(fr_recipe_set(&recipe, "schedule.batch_phases=[0.0, 0.25, 0.3, 0.5, 0.6, 1.0]", &error));
    CHECK_OK(fr_recipe_check(&recipe, &error));
}

TEST(errors_name_the_file_and_the_nearest_key)
{
    fr_recipe recipe;
    fr_error error = {0};
    CHECK(fr_recipe_parse(&recipe, "[model]\ndept = 3\n", "my.toml", &error) != FR_OK);
    CHECK(strstr(error.where, "my.toml:2") && strstr(error.what, "dept") && strstr(error.hint, "depth"));
    CHECK_INT(fr_recipe_parse(&recipe, "[model]\nhead_dim = 63\n", "my.toml", &error), FR_BAD_USAGE);
    CHECK_STR(error.where, "my.toml: model.head_dim");
    CHECK(fr_recipe_load(&recipe, "/nonexistent.toml", &error) != FR_OK);
    CHECK(strstr(error.where, "/nonexistent.toml") != NULL);
    CHECK_INT(fr_recipe_set(&recipe, "model.depth=0", &error), FR_BAD_USAGE);
    CHECK_INT(fr_recipe_set(&recipe, "model.norm=\"batch\"", &error), FR_BAD_USAGE);
}

TEST_MAIN(recipe)
