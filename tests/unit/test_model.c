/* The model: its sizes are the published ones, every recipe key matters, its gradient is the gradient.
 *
 * Every test runs a tiny model on the reference kernels, mostly in double. Weights are the initial ones plus
 * noise, because the initial output projections are zero and would hide what lies before them.
 */
#include "frontier/model.h"

#include "test.h"

#include <unistd.h>

enum { VOCAB = 70, ROWS = 2, T = 16 };

typedef struct tiny {
    fr_graph *graph;
    int64_t flat;
    double *parameters, *gradients;
    float *initial;
    int32_t tokens[ROWS * T], targets[ROWS * T];
} tiny;

static void set(fr_recipe *recipe, const char *assignment)
{
    fr_error error = {0};
    if (assignment)
        CHECK_OK(fr_recipe_set(recipe, assignment, &error));
}

static fr_recipe tiny_recipe(void)
{
    static const char *const assignments[] = {"model.depth=3",           "model.width=32",
                                              "model.head_dim=8",        "model.context=16",
                                              "optim.batch_tokens=1024", "model.numerics=\"fp32\""};
    fr_recipe recipe;
    fr_error error = {0};
    CHECK_OK(fr_recipe_defaults(&recipe, &error));
    for (int i = 0; i < 6; i++)
        set(&recipe, assignments[i]);
    return recipe;
}

/* All of nanochat's parts, and two kv heads. */
static fr_recipe full_recipe(void)
{
    static const char *const assignments[] = {
        "model.windows=\"SSL\"", "model.short_window=5",   "model.value_embeddings=true",
        "model.smear=true",      "model.backout=true",     "model.qk_gain=1.2",
        "model.kv_heads=2",      "model.resid_first=1.15", "model.resid_last=1.05",
        "model.x0_first=0.2"};
    fr_recipe recipe = tiny_recipe();
    for (int i = 0; i < 10; i++)
        set(&recipe, assignments[i]);
    return recipe;
}

static void fill_parameters(tiny *m, double noise)
{
    fr_graph_initialize(m->graph, 1, NULL, m->initial);
    for (int p = 0; p < fr_graph_parameters(m->graph); p++) {
        const fr_parameter_info *info = fr_graph_parameter(m->graph, p);
        uint64_t stream = fr_hash64(info->name, strlen(info->name), 9);
        for (int64_t i = 0; i < info->rows * info->columns; i++)
            m->parameters[info->offset + i] =
                m->initial[info->offset + i] + noise * fr_rng_normal_at(3, stream, (uint64_t)i);
    }
}

static tiny tiny_create(const fr_recipe *recipe, double noise)
{
    tiny m = {0};
    fr_error error = {0};
    m.graph = fr_graph_create(&error);
    CHECK_OK(fr_model_build(m.graph, recipe, VOCAB, &error));
    m.flat = fr_graph_flat_elements(m.graph);
    m.parameters = calloc((size_t)m.flat, sizeof(double));
    m.gradients = calloc((size_t)m.flat, sizeof(double));
    m.initial = calloc((size_t)m.flat, sizeof(float));
    fill_parameters(&m, noise);
    for (int i = 0; i < ROWS * T; i++) {
        m.tokens[i] = (int32_t)(fr_rng_at(5, 0, (uint64_t)i) % VOCAB);
        m.targets[i] = (int32_t)(fr_rng_at(5, 1, (uint64_t)i) % VOCAB);
    }
    return m;
}

static void tiny_release(tiny *m)
{
    fr_graph_free(m->graph);
    free(m->parameters);
    free(m->gradients);
    free(m->initial);
}

/* Runs the model in these numerics; fills `nats` when not NULL and, when training, m->gradients; returns the
 * sum of nats. */
static double run(tiny *m, const fr_recipe *recipe, fr_numerics numerics, bool train, double *nats_out)
{
    fr_error error = {0};
    const char *outputs[] = {"nats", "loss"};
    fr_plan_options options = {.extent = {ROWS, T},
                               .numerics = numerics,
                               .residual_bf16 = fr_recipe_residual_bf16(recipe),
                               .train = train,
                               .outputs = outputs,
                               .output_count = 2};
    fr_plan *plan = NULL;
    CHECK_OK(fr_plan_create(&plan, m->graph, &options, &error));
    if (!plan)
        return NAN;
    float *single = calloc((size_t)m->flat, sizeof *single);
    for (int64_t i = 0; i < m->flat; i++)
        single[i] = (float)m->parameters[i];
    void *arena = fr_allocate(fr_plan_arena_bytes(plan));
    fr_binding inputs[] = {{"tokens", m->tokens}, {"targets", m->targets}};
    fr_run_args args = {.arena = arena,
                        .parameters = numerics == FR_NUMERICS_F64 ? (void *)m->parameters : single,
                        .gradients = train ? m->gradients : NULL,
                        .inputs = inputs,
                        .input_count = 2};
    CHECK_OK(fr_plan_run(plan, &args, &error));
    fr_dtype dtype;
    const void *nats = fr_plan_output(plan, arena, "nats", &dtype);
    double values[ROWS * T], sum = 0;
    fr_load_doubles(nats, dtype, 0, ROWS * T, values);
    for (int i = 0; i < ROWS * T; i++)
        sum += values[i];
    if (nats_out)
        memcpy(nats_out, values, sizeof values);
    fr_deallocate(arena);
    free(single);
    fr_plan_free(plan);
    return sum;
}

/* ---- every key matters ------------------------------------------------------------------------------ */

typedef struct key_case {
    const char *key, *base[3], *change;
} key_case;

static const key_case key_cases[] = {
    {"model.depth", {0}, "model.depth=4"},
    {"model.width", {0}, "model.width=40"},
    {"model.aspect", {"model.width=0", "model.aspect=11"}, "model.aspect=8"},
    {"model.head_dim", {0}, "model.head_dim=16"},
    {"model.kv_heads", {0}, "model.kv_heads=2"},
    {"model.context", {0}, "model.context=8"},
    {"model.windows", {"model.short_window=4"}, "model.windows=\"SL\""},
    {"model.short_window", {"model.windows=\"S\"", "model.short_window=4"}, "model.short_window=6"},
    {"model.mlp_ratio", {0}, "model.mlp_ratio=2"},
    {"model.hidden", {0}, "model.hidden=50"},
    {"model.activation", {0}, "model.activation=\"swiglu\""},
    {"model.bias", {0}, "model.bias=true"},
    {"model.norm", {0}, "model.norm=\"rms_gain\""},
    {"model.norm_eps", {0}, "model.norm_eps=0.01"},
    {"model.embedding_norm", {0}, "model.embedding_norm=false"},
    {"model.position", {"model.qk_norm=false"}, "model.position=\"learned\""},
    {"model.rotary_pairs", {0}, "model.rotary_pairs=\"interleaved\""},
    {"model.rope_base", {0}, "model.rope_base=1000"},
    {"model.qk_norm", {0}, "model.qk_norm=false"},
    {"model.qk_gain", {0}, "model.qk_gain=1.2"},
    {"model.softcap", {0}, "model.softcap=0"},
    {"model.tied", {0}, "model.tied=true"},
    {"model.resid_scalars", {0}, "model.resid_scalars=false"},
    {"model.resid_first", {0}, "model.resid_first=1.1"},
    {"model.resid_last", {0}, "model.resid_last=1.1"},
    {"model.x0_scalars", {0}, "model.x0_scalars=false"},
    {"model.x0_first", {0}, "model.x0_first=0.1"},
    {"model.x0_last", {0}, "model.x0_last=0.1"},
    {"model.value_embeddings", {0}, "model.value_embeddings=true"},
    {"model.value_gate_channels", {"model.value_embeddings=true"}, "model.value_gate_channels=6"},
    {"model.value_gate_range", {"model.value_embeddings=true"}, "model.value_gate_range=2"},
    {"model.smear", {0}, "model.smear=true"},
    {"model.smear_channels", {"model.smear=true"}, "model.smear_channels=6"},
    {"model.backout", {0}, "model.backout=true"},
    {"model.backout_init", {"model.backout=true"}, "model.backout_init=0.3"},
    {"model.embedding_std", {0}, "model.embedding_std=0.5"},
    {"model.head_std", {0}, "model.head_std=0.02"},
    {"model.fc_init", {0}, "model.fc_init=1"},
    {"model.numerics", {0}, "model.numerics=\"bf16\""},
    {"model.residual", {"model.numerics=\"bf16\""}, "model.residual=\"bf16\""},
};

static double loss_of(const fr_recipe *recipe)
{
    tiny m = tiny_create(recipe, 0.05);
    double loss = run(&m, recipe, fr_recipe_numerics(recipe), false, NULL);
    tiny_release(&m);
    return loss;
}

static bool try_case(const char *key)
{
    for (size_t i = 0; i < sizeof key_cases / sizeof key_cases[0]; i++) {
        if (strcmp(key_cases[i].key, key) != 0)
            continue;
        fr_recipe recipe = tiny_recipe();
        for (int b = 0; b < 3; b++)
            set(&recipe, key_cases[i].base[b]);
        double before = loss_of(&recipe);
        set(&recipe, key_cases[i].change);
        double after = loss_of(&recipe);
        if (!(fabs(after - before) > 1e-6))
            printf("# %s: %.9g stays %.9g\n", key, before, after);
        return fabs(after - before) > 1e-6;
    }
    printf("# no case for %s\n", key);
    return false;
}

TEST(every_model_key_changes_the_loss)
{
    int count;
    const fr_config_key *keys = fr_recipe_keys(&count);
    for (int i = 0; i < count; i++)
        if (strncmp(keys[i].name, "model.", 6) == 0)
            CHECK(try_case(keys[i].name));
}

TEST(position_none_is_not_learned_and_not_rotary)
{
    fr_recipe recipe = tiny_recipe();
    set(&recipe, "model.qk_norm=false");
    double rotary = loss_of(&recipe);
    set(&recipe, "model.position=\"none\"");
    double none = loss_of(&recipe);
    set(&recipe, "model.position=\"learned\"");
    double learned = loss_of(&recipe);
    CHECK(fabs(rotary - none) > 1e-6 && fabs(none - learned) > 1e-6);
}

/* ---- published sizes --------------------------------------------------------------------------------- */

typedef struct published {
    const char *recipe, *changes[5];
    int64_t vocab, matrices, table, value_tables, scalars, total;
    double flops;
} published;

static const published table[] = {
    {"nanochat-d10", {"model.context=2048"}, 32768, 49152300, 20971520, 104857600, 46, 195952986, 4.955e8},
    {"nanochat-d10", {0}, 8192, 49152300, 5242880, 26214400, 46, 85852506, 3.637e8},
    {"nanochat-d10",
     {"model.context=2048", "model.depth=12"},
     32768,
     84935088,
     25165824,
     150994944,
     50,
     286261730,
     7.597e8},
    {"nanochat-d10",
     {"model.context=2048", "model.depth=16"},
     32768,
     201327360,
     33554432,
     268435456,
     58,
     536871738,
     1.585e9},
    {"nanochat-d10",
     {"model.context=2048", "model.depth=20"},
     32768,
     393217200,
     41943040,
     419430400,
     66,
     896533746,
     2.886e9},
    {"nanochat-d10",
     {"model.context=2048", "model.depth=24"},
     32768,
     679478976,
     50331648,
     603979776,
     74,
     1384122122,
     4.775e9},
    {"nanochat-d10",
     {"model.context=2048", "model.depth=26"},
     32768,
     863897580,
     54525952,
     708837376,
     78,
     1681786938,
     5.991e9},
    {"baseline",
     {"model.context=2048", "model.depth=8", "model.windows=\"SSSL\"", "model.short_window=1024",
      "model.value_embeddings=true"},
     8192,
     25166336,
     4194304,
     16777216,
     16,
     50332176,
     2.391e8},
    {"baseline", {0}, 8192, 49152000, 5242880, 0, 20, 59637780, 4.050e8},
};

TEST(sizes_are_the_published_ones)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const published *row = &table[i];
        fr_recipe recipe;
        fr_error error = {0};
        char path[100];
        snprintf(path, sizeof path, "recipes/%s.toml", row->recipe);
        CHECK_OK(fr_recipe_load(&recipe, path, &error));
        for (int c = 0; c < 5; c++)
            set(&recipe, row->changes[c]);
        if (strcmp(row->recipe, "baseline") == 0 && recipe.model.value_embeddings)
            set(&recipe, "model.value_gate_channels=32");
        fr_model_size size;
        CHECK_OK(fr_model_measure(&recipe, row->vocab, &size, &error));
        int64_t gate = recipe.model.smear ? recipe.model.smear_channels : 0;
        CHECK_INT(size.params, row->total);
        CHECK_INT(size.value_params, row->value_tables);
        CHECK_INT(size.scalars, row->scalars);
        CHECK_INT(size.matmul_params, row->matrices + row->table + gate);
        CHECK_NEAR(size.flops_per_token, row->flops, 0, 4e-4);
        CHECK(size.flops_per_token_causal < size.flops_per_token);
    }
}

TEST(causal_flops_count_the_pairs_there_are)
{
    fr_recipe recipe = full_recipe();
    fr_model_size size;
    fr_error error = {0};
    CHECK_OK(fr_model_measure(&recipe, VOCAB, &size, &error));
    double pairs = 0;
    for (int64_t i = 0; i < recipe.model.depth; i++)
        for (int64_t query = 0; query < T; query++)
            for (int64_t key = 0; key <= query; key++)
                pairs += query - key <= fr_recipe_window(&recipe, i);
    CHECK_NEAR(size.flops_per_token_causal, 6.0 * (double)size.matmul_params + 12.0 * 32 * pairs / T, 0,
               1e-12);
}

TEST(the_graph_prices_itself_as_published)
{
    fr_recipe recipe = full_recipe();
    fr_model_size size;
    fr_error error = {0};
    CHECK_OK(fr_model_measure(&recipe, VOCAB, &size, &error));
    tiny m = tiny_create(&recipe, 0);
    const char *outputs[] = {"loss"};
    fr_plan_options options = {.extent = {ROWS, T},
                               .numerics = FR_NUMERICS_F32,
                               .train = true,
                               .outputs = outputs,
                               .output_count = 1};
    fr_plan *plan = NULL;
    CHECK_OK(fr_plan_create(&plan, m.graph, &options, &error));
    if (plan)
        CHECK_NEAR(fr_plan_flops(plan, true) / (ROWS * T), size.flops_per_token, 0, 1e-9);
    fr_plan_free(plan);
    tiny_release(&m);
}

/* ---- the function ------------------------------------------------------------------------------------ */

TEST(an_untrained_model_knows_nothing)
{
    fr_recipe recipe = full_recipe();
    tiny m = tiny_create(&recipe, 0);
    CHECK_NEAR(run(&m, &recipe, FR_NUMERICS_F32, false, NULL) / (ROWS * T), log(VOCAB), 5e-3, 0);
    tiny_release(&m);
}

TEST(names_are_nanochats)
{
    static const char *const names[] = {"transformer.wte.weight",
                                        "lm_head.weight",
                                        "transformer.h.0.attn.c_q.weight",
                                        "transformer.h.1.attn.c_k.weight",
                                        "transformer.h.2.attn.c_v.weight",
                                        "transformer.h.2.attn.c_proj.weight",
                                        "transformer.h.2.attn.ve_gate.weight",
                                        "transformer.h.0.mlp.c_fc.weight",
                                        "transformer.h.0.mlp.c_proj.weight",
                                        "transformer.h.0.resid_lambda",
                                        "transformer.h.0.x0_lambda",
                                        "smear_gate.weight",
                                        "smear_lambda",
                                        "backout_lambda",
                                        "value_embeds.0.weight",
                                        "value_embeds.2.weight"};
    fr_recipe recipe = full_recipe();
    tiny m = tiny_create(&recipe, 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const fr_tensor *tensor = fr_graph_find(m.graph, names[i]);
        CHECK(tensor && tensor->parameter >= 0);
    }
    CHECK(fr_graph_find(m.graph, "value_embeds.1.weight") == NULL);
    CHECK_INT(fr_graph_parameters(m.graph), 2 + 3 * 8 + 2 * 2 + 3);
    CHECK_INT(fr_graph_find(m.graph, "transformer.wte.weight")->rows, 128);
    CHECK_INT(fr_graph_find(m.graph, "logits")->columns, VOCAB);
    tiny_release(&m);
}

TEST(the_future_does_not_reach_back)
{
    fr_recipe recipe = full_recipe();
    tiny m = tiny_create(&recipe, 0.1);
    double before[ROWS * T], after[ROWS * T];
    run(&m, &recipe, FR_NUMERICS_F64, false, before);
    m.tokens[9] = (m.tokens[9] + 1) % VOCAB;
    run(&m, &recipe, FR_NUMERICS_F64, false, after);
    for (int i = 0; i < ROWS * T; i++)
        CHECK(i >= 9 && i < T ? before[i] != after[i] : before[i] == after[i]);
    tiny_release(&m);
}

/* Central differences on a few elements of every parameter. */
static void check_gradient(const fr_recipe *recipe)
{
    tiny m = tiny_create(recipe, 0.1);
    run(&m, recipe, FR_NUMERICS_F64, true, NULL);
    double *gradients = malloc((size_t)m.flat * sizeof *gradients);
    memcpy(gradients, m.gradients, (size_t)m.flat * sizeof *gradients);
    for (int p = 0; p < fr_graph_parameters(m.graph); p++) {
        const fr_parameter_info *info = fr_graph_parameter(m.graph, p);
        int64_t count = info->rows * info->columns;
        int64_t at = info->offset + (int64_t)(fr_rng_at(11, (uint64_t)p, 0) % (uint64_t)count);
        if (strstr(info->name, "wte") || strstr(info->name, "value_embeds"))
            at = info->offset + m.tokens[3] * info->columns + 1; /* a row that is used */
        double kept = m.parameters[at], h = 1e-5;
        m.parameters[at] = kept + h;
        double up = run(&m, recipe, FR_NUMERICS_F64, false, NULL);
        m.parameters[at] = kept - h;
        double down = run(&m, recipe, FR_NUMERICS_F64, false, NULL);
        m.parameters[at] = kept;
        double numeric = (up - down) / (2 * h);
        if (!(fabs(numeric - gradients[at]) <= 1e-6 + 1e-6 * fabs(numeric)))
            printf("# %s: gradient %.9g, numeric %.9g\n", info->name, gradients[at], numeric);
        CHECK_NEAR(gradients[at], numeric, 1e-6, 1e-6);
    }
    free(gradients);
    tiny_release(&m);
}

TEST(the_gradient_is_the_gradient)
{
    fr_recipe recipe = full_recipe();
    check_gradient(&recipe);
}

TEST(the_gradient_of_a_plain_model_too)
{
    static const char *const plain[] = {"model.norm=\"layer\"",   "model.position=\"learned\"",
                                        "model.qk_norm=false",    "model.activation=\"gelu\"",
                                        "model.x0_scalars=false", "model.tied=true",
                                        "model.softcap=0"};
    fr_recipe recipe = tiny_recipe();
    for (int i = 0; i < 7; i++)
        set(&recipe, plain[i]);
    check_gradient(&recipe); /* keeps the residual scalars: the scale operator */
    set(&recipe, "model.resid_scalars=false");
    set(&recipe, "model.x0_scalars=true");
    check_gradient(&recipe);
}

/* The families of other people's files: Llama's parts, and GPT-2's. */
TEST(the_gradient_of_foreign_families_too)
{
    static const char *const llama[] = {"model.norm=\"rms_gain\"", "model.norm_eps=1e-2",
                                        "model.activation=\"swiglu\"", "model.hidden=44",
                                        "model.rotary_pairs=\"interleaved\"", "model.kv_heads=2",
                                        "model.qk_norm=false"};
    fr_recipe recipe = tiny_recipe();
    for (int i = 0; i < 7; i++)
        set(&recipe, llama[i]);
    check_gradient(&recipe);
    set(&recipe, "model.bias=true");
    set(&recipe, "model.norm=\"layer\"");
    check_gradient(&recipe);
}

TEST(mistakes_are_named)
{
    fr_error error = {0};
    fr_recipe recipe = tiny_recipe();
    fr_model_size size;
    set(&recipe, "model.head_dim=7");
    CHECK_INT(fr_model_measure(&recipe, VOCAB, &size, &error), FR_BAD_USAGE);
    CHECK_STR(error.where, "model.head_dim");
    recipe = tiny_recipe();
    CHECK_INT(fr_model_measure(&recipe, 0, &size, &error), FR_BAD_USAGE);
    CHECK_INT(fr_model_measure(&recipe, INT64_MAX, &size, &error), FR_BAD_USAGE);
}

/* ---- checkpoints ------------------------------------------------------------------------------------- */

TEST(weights_save_and_load)
{
    char path[64] = "/tmp/frontier-model-XXXXXX", second[80];
    int file = mkstemp(path);
    close(file);
    snprintf(second, sizeof second, "%s.2", path);
    fr_recipe recipe = full_recipe();
    fr_error error = {0};
    tiny m = tiny_create(&recipe, 0);
    float *loaded = calloc((size_t)m.flat, sizeof *loaded);
    CHECK_OK(fr_model_save(m.graph, m.initial, path, &error));
    CHECK_OK(fr_model_load(m.graph, loaded, path, &error));
    CHECK(memcmp(m.initial, loaded, (size_t)m.flat * sizeof *loaded) == 0);
    CHECK_OK(fr_model_save(m.graph, loaded, second, &error));
    char one[65], two[65];
    CHECK_OK(fr_sha256_file(path, one, &error));
    CHECK_OK(fr_sha256_file(second, two, &error));
    CHECK_STR(one, two);

    set(&recipe, "model.depth=4");
    tiny other = tiny_create(&recipe, 0);
    CHECK_INT(fr_model_load(other.graph, other.initial, path, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "missing") != NULL);
    tiny_release(&other);
    set(&recipe, "model.depth=2");
    other = tiny_create(&recipe, 0);
    CHECK_INT(fr_model_load(other.graph, other.initial, path, &error), FR_BAD_DATA);
    tiny_release(&other);
    set(&recipe, "model.depth=3");
    set(&recipe, "model.mlp_ratio=2");
    other = tiny_create(&recipe, 0);
    CHECK_INT(fr_model_load(other.graph, other.initial, path, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "128 x 32") && strstr(error.what, "64 x 32"));
    tiny_release(&other);
    fr_tensor_entry foreign = {
        .name = "lm_head.weight", .dtype = FR_F32, .dims = 1, .shape = {1}, .data = m.initial};
    CHECK_OK(fr_tensor_file_write(second, &foreign, 1, NULL, 0, &error));
    CHECK_INT(fr_model_load(m.graph, loaded, second, &error), FR_BAD_DATA);
    CHECK(strstr(error.hint, "run folder") != NULL);
    free(loaded);
    tiny_release(&m);
    remove(path);
    remove(second);
}

TEST_MAIN(model)
