/* The engine's logits are those of whole rows: to the bit with vector kernels, however tokens are cut and
 * batched. */
#include "frontier/model.h"

#include "model_fixture.h"
#include "test.h"

enum { VOCAB = 300, LONGEST = 700 };

/* What every case changes about the fixture's model, which has windows, grouped heads, value embeddings,
 * smear and backout. */
static const char *const knobs[][6] = {
    {NULL},
    {"model.kv_heads=1", "model.windows=S", "model.short_window=7"},
    {"model.kv_heads=4", "model.windows=L", "model.smear=false", "model.backout=false"},
    {"model.position=learned", "model.qk_norm=false", "model.norm=layer", "model.activation=gelu",
     "model.value_embeddings=false"},
    {"model.position=none", "model.qk_norm=false", "model.tied=true", "model.resid_scalars=false",
     "model.x0_scalars=false"},
    {"model.qk_norm=false", "model.x0_scalars=false", "model.embedding_norm=false", "model.softcap=0"},
    {"model.width=80", "model.head_dim=20", "model.kv_heads=2", "model.qk_gain=1.2"},
    {"model.residual=bf16", "model.resid_first=1.15", "model.x0_first=0.2", "model.width=48"},
};
enum { KNOBS = sizeof knobs / sizeof knobs[0] };

typedef struct world {
    fr_recipe recipe;
    fr_graph *graph;
    float *weights;
    fr_pool *pool;
    fr_scorer *scorer;
    fr_engine *engine;
    bool exact; /* vector kernels */
    int32_t ids[LONGEST];
} world;

static void build(world *w, int which, const char *numerics, const char *kernels, int64_t sequences)
{
    fr_error error = {0};
    char set[64];
    *w = (world){.recipe = model_fixture_recipe()};
    for (int i = 0; i < 6 && knobs[which][i]; i++)
        CHECK_OK(fr_recipe_set(&w->recipe, knobs[which][i], &error));
    snprintf(set, sizeof set, "model.numerics=%s", numerics);
    CHECK_OK(fr_recipe_set(&w->recipe, set, &error));
    if (kernels)
        setenv("FRONTIER_KERNELS", kernels, 1);
    w->graph = fr_graph_create(&error);
    CHECK_OK(fr_model_build(w->graph, &w->recipe, VOCAB, &error));
    w->weights = model_fixture_weights(w->graph);
    CHECK_OK(fr_pool_create(&w->pool, 2, &error));
    CHECK_OK(fr_scorer_create(&w->scorer, w->graph, &w->recipe, w->weights, w->pool, &error));
    CHECK_OK(fr_engine_create(&w->engine, w->scorer, sequences, &error));
    fr_cpu_features features;
    fr_cpu_detect(&features);
    w->exact = strcmp(features.path, "ref") != 0;
    unsetenv("FRONTIER_KERNELS");
    for (int i = 0; i < LONGEST; i++)
        w->ids[i] = (int32_t)(fr_rng_at(7, (uint64_t)which, (uint64_t)i) % VOCAB);
}

static void destroy(world *w)
{
    fr_engine_free(w->engine);
    fr_scorer_free(w->scorer);
    fr_pool_free(w->pool);
    fr_graph_free(w->graph);
    free(w->weights);
}

static int64_t length_for(const world *w, int64_t wanted)
{
    int64_t most = fr_engine_positions(w->engine);
    return wanted < most ? wanted : most;
}

static float *row_logits(world *w, const int32_t *ids, int64_t T)
{
    fr_error error = {0};
    float *out = malloc((size_t)(T * VOCAB) * sizeof *out);
    CHECK_OK(fr_scorer_logits(w->scorer, T, ids, 0, out, &error));
    return out;
}

/* Equal bits, or 1e-5 of the largest logit (15: the soft cap) by the reference kernels. */
static void check_same(const world *w, const float *got, const float *want, int64_t positions,
                       const char *what)
{
    double worst = 0;
    bool same = memcmp(got, want, (size_t)(positions * VOCAB) * sizeof *got) == 0;
    for (int64_t i = 0; i < positions * VOCAB; i++)
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
    if (w->exact ? !same : !(worst <= 1.5e-4))
        test_fail_format(__FILE__, __LINE__, "%s: logits differ by %g", what, worst);
}

static void check_case(int which, const char *numerics, const char *kernels)
{
    world w;
    char what[128];
    fr_error error = {0};
    int64_t sequence;
    build(&w, which, numerics, kernels, 1);
    int64_t T = length_for(&w, 150); /* the context is 96 */
    float *want = row_logits(&w, w.ids, T), *got = calloc((size_t)(T * VOCAB), sizeof *got);
    snprintf(what, sizeof what, "case %d, %s, %s, step by step", which, numerics, kernels ? kernels : "best");
    CHECK_OK(fr_engine_add(w.engine, &sequence, &error));
    for (int64_t t = 0; t < T; t++)
        CHECK_OK(fr_engine_step(w.engine, 1, &sequence, &w.ids[t], got + t * VOCAB, &error));
    check_same(&w, got, want, T, what);
    CHECK_INT(fr_engine_length(w.engine, sequence), T);
    fr_engine_remove(w.engine, sequence);
    CHECK_OK(fr_engine_add(w.engine, &sequence, &error)); /* the memory is used again, uncleared */
    memset(got, 0, (size_t)(T * VOCAB) * sizeof *got);
    for (int64_t t = 0, now, i = 0; t < T;
         t += now, i++) { /* pieces of 1 to 70 tokens, with and without logits */
        now = 1 + (int64_t)(fr_rng_at(9, (uint64_t)which, (uint64_t)i) % 70);
        now = now < T - t ? now : T - t;
        bool quiet = i % 3 == 1;
        CHECK_OK(fr_engine_feed(w.engine, sequence, now, w.ids + t, quiet ? NULL : got + t * VOCAB, &error));
        if (quiet)
            memcpy(got + t * VOCAB, want + t * VOCAB, (size_t)(now * VOCAB) * sizeof *got);
    }
    snprintf(what, sizeof what, "case %d, %s, %s, in pieces", which, numerics, kernels ? kernels : "best");
    check_same(&w, got, want, T, what);
    free(want);
    free(got);
    destroy(&w);
}

TEST(every_model_decodes_as_whole_rows)
{
    for (int which = 0; which < KNOBS; which++) {
        check_case(which, "fp32", NULL);
        check_case(which, "bf16", NULL);
    }
}

TEST(reference_kernels_decode_as_whole_rows)
{
    for (int which = 0; which < KNOBS; which += 2)
        check_case(which, "fp32", "ref");
}

TEST(avx2_kernels_decode_as_whole_rows)
{
    fr_cpu_features features;
    fr_cpu_detect(&features);
    if (!features.avx2)
        SKIP("needs AVX2");
    for (int which = 0; which < KNOBS; which += 3) {
        check_case(which, "fp32", "avx2");
        check_case(which, "bf16", "avx2");
    }
}

TEST(positions_far_beyond_the_context)
{
    world w;
    fr_error error = {0};
    int64_t sequence;
    build(&w, 0, "fp32", NULL, 1);
    float *want = row_logits(&w, w.ids, LONGEST), *got = calloc(LONGEST * VOCAB, sizeof *got);
    CHECK_OK(fr_engine_add(w.engine, &sequence, &error)); /* rings of 128 + 256 positions wrap around */
    CHECK_OK(fr_engine_feed(w.engine, sequence, LONGEST - 60, w.ids, NULL, &error));
    memcpy(got, want, (LONGEST - 60) * VOCAB * sizeof *got);
    for (int64_t t = LONGEST - 60; t < LONGEST; t++)
        CHECK_OK(fr_engine_step(w.engine, 1, &sequence, &w.ids[t], got + t * VOCAB, &error));
    check_same(&w, got, want, LONGEST, "700 tokens with a context of 96");
    free(want);
    free(got);
    destroy(&w);
}

/* Five texts, each from another place in the ids, stepped in changing company. */
TEST(company_changes_no_bit)
{
    enum { TEXTS = 5, STEPS = 120 };
    world w;
    fr_error error = {0};
    int64_t sequences[TEXTS], fed[TEXTS];
    float *want[TEXTS], logits[TEXTS * VOCAB];
    build(&w, 0, "fp32", NULL, TEXTS);
    for (int i = 0; i < TEXTS; i++) {
        want[i] = row_logits(&w, w.ids + 100 * i, 140);
        CHECK_OK(fr_engine_add(w.engine, &sequences[i], &error));
        fed[i] = 3 * i * i;
        CHECK_OK(fr_engine_feed(w.engine, sequences[i], fed[i], w.ids + 100 * i, NULL, &error));
    }
    for (int step = 0; step < STEPS; step++) {
        int64_t who[TEXTS], batch[TEXTS];
        int32_t tokens[TEXTS];
        int count = 0;
        for (int i = 0; i < TEXTS; i++)
            if (fed[i] < 140 && (i == step % TEXTS || fr_rng_at(5, (uint64_t)step, (uint64_t)i) % 2)) {
                who[count] = i;
                batch[count] = sequences[i];
                tokens[count++] = w.ids[100 * i + fed[i]];
            }
        if (!count)
            continue;
        CHECK_OK(fr_engine_step(w.engine, count, batch, tokens, logits, &error));
        for (int k = 0; k < count; k++)
            check_same(&w, logits + k * VOCAB, want[who[k]] + fed[who[k]]++ * VOCAB, 1, "in company");
    }
    for (int i = 0; i < TEXTS; i++)
        free(want[i]);
    destroy(&w);
}

TEST(learned_positions_end_with_a_clear_error)
{
    world w;
    fr_error error = {0};
    int64_t sequence;
    float logits[VOCAB];
    build(&w, 3, "fp32", NULL, 1);
    CHECK_INT(fr_engine_positions(w.engine), 96);
    CHECK_OK(fr_engine_add(w.engine, &sequence, &error));
    CHECK_INT(fr_engine_feed(w.engine, sequence, 97, w.ids, NULL, &error), FR_BAD_USAGE);
    CHECK(strstr(error.what, "96 positions") != NULL);
    CHECK_INT(fr_engine_length(w.engine, sequence), 0);
    CHECK_OK(fr_engine_feed(w.engine, sequence, 96, w.ids, NULL, &error));
    CHECK_INT(fr_engine_step(w.engine, 1, &sequence, w.ids, logits, &error), FR_BAD_USAGE);
    CHECK_INT(fr_engine_length(w.engine, sequence), 96);
    destroy(&w);
}

TEST(mistakes_change_nothing)
{
    world w;
    fr_error error = {0};
    int64_t a, b, none;
    float logits[2 * VOCAB], *want;
    build(&w, 0, "fp32", NULL, 2);
    want = row_logits(&w, w.ids, 11);
    CHECK_OK(fr_engine_add(w.engine, &a, &error));
    CHECK_OK(fr_engine_add(w.engine, &b, &error));
    CHECK_INT(fr_engine_add(w.engine, &none, &error), FR_ANSWER_NO);
    CHECK_OK(fr_engine_feed(w.engine, a, 10, w.ids, NULL, &error));
    int32_t wrong[300] = {0};
    wrong[290] = VOCAB;
    CHECK_INT(fr_engine_feed(w.engine, a, 300, wrong, NULL, &error), FR_BAD_DATA);
    wrong[290] = -1;
    CHECK_INT(fr_engine_feed(w.engine, a, 300, wrong, NULL, &error), FR_BAD_DATA);
    CHECK_INT(fr_engine_step(w.engine, 2, (int64_t[]){a, a}, wrong, logits, &error), FR_BAD_USAGE);
    CHECK_INT(fr_engine_step(w.engine, 1, (int64_t[]){7}, wrong, logits, &error), FR_BAD_USAGE);
    CHECK_INT(fr_engine_step(w.engine, 0, &a, wrong, logits, &error), FR_BAD_USAGE);
    CHECK_INT(fr_engine_step(w.engine, 2, (int64_t[]){b, a}, (int32_t[]){1, VOCAB}, logits, &error),
              FR_BAD_DATA);
    fr_engine_remove(w.engine, b);
    CHECK_INT(fr_engine_feed(w.engine, b, 1, w.ids, NULL, &error), FR_BAD_USAGE);
    fr_engine_remove(w.engine, 99);
    CHECK_INT(fr_engine_length(w.engine, a), 10);
    CHECK_OK(fr_engine_step(w.engine, 1, &a, w.ids + 10, logits, &error));
    check_same(&w, logits, want + 10 * VOCAB, 1, "after mistakes");
    fr_engine *engine;
    CHECK_INT(fr_engine_create(&engine, w.scorer, 2000, &error), FR_BAD_USAGE);
    CHECK_INT(fr_engine_create(&engine, w.scorer, -1, &error), FR_BAD_USAGE);
    CHECK_INT(fr_engine_open(&engine, "/nonexistent", NULL, &error), FR_BAD_DATA);
    free(want);
    destroy(&w);
}

/* A layer with a window of 20 keeps a fraction of what one with 1024 keeps. */
TEST(windowed_layers_keep_only_their_window)
{
    fr_error error = {0};
    size_t bytes[2];
    for (int full = 0; full < 2; full++) {
        world w;
        fr_recipe recipe = model_fixture_recipe();
        recipe.model.context = 4096;
        recipe.optim.batch_tokens = 32768;
        snprintf(recipe.model.windows, sizeof recipe.model.windows, "%s", full ? "L" : "SSL");
        fr_graph *graph = fr_graph_create(&error);
        CHECK_OK(fr_model_build(graph, &recipe, VOCAB, &error));
        float *weights = model_fixture_weights(graph);
        CHECK_OK(fr_pool_create(&w.pool, 1, &error));
        CHECK_OK(fr_scorer_create(&w.scorer, graph, &recipe, weights, w.pool, &error));
        CHECK_OK(fr_engine_create(&w.engine, w.scorer, 1, &error));
        bytes[full] = fr_engine_sequence_bytes(w.engine);
        w.graph = graph;
        w.weights = weights;
        destroy(&w);
    }
    size_t row = 2 * 2 * 8 * sizeof(float), smear = 32 * sizeof(float); /* keys and values of two heads */
    CHECK_INT(bytes[1], 3 * (4096 + 256) * row + smear);
    CHECK_INT(bytes[0], (4096 + 256) * row + 2 * 384 * row + smear); /* 20 + 256 in steps of 128 */
}

static void plain(const fr_call *call)
{
    memcpy(call->out[0], call->in[0], (size_t)(call->tokens * call->node->out[0]->columns) * sizeof(float));
}

static fr_status plain_infer(fr_node *node, fr_error *error)
{
    (void)error;
    fr_node_output(node, 0, FR_KIND_STREAM, FR_TOKENS, node->in[0]->columns);
    return FR_OK;
}

TEST(operators_that_may_mix_tokens_are_refused)
{
    static const fr_op mixer = {.name = "mixer",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .outputs = 1,
                                .infer = plain_infer,
                                .reference = {{"mixer", FR_FORWARD, "mixer", plain, NULL, NULL}}};
    fr_error error = {0};
    fr_graph *g = fr_graph_create(&error);
    fr_tensor *table = fr_parameter(g, "table", 10, 16, fr_init_normal(1), "embedding");
    fr_tensor *x = fr_embed(g, table, fr_input_ids(g, "tokens"));
    fr_tensor *mixed = fr_apply(g, &mixer, &x, 1, NULL, 0);
    fr_attention(g, x, x, x, (fr_attention_options){.heads = 2, .kv_heads = 2});
    const char *outputs[] = {mixed->name, "attention:2"};
    fr_plan_options options = {
        .extent = {1, 4}, .continuing = {.chunk = 4}, .outputs = outputs, .output_count = 1};
    fr_plan *plan;
    CHECK_INT(fr_plan_create(&plan, g, &options, &error), FR_BAD_USAGE);
    CHECK(strstr(error.what, "mixer cannot continue") != NULL);
    options.outputs = outputs + 1; /* attention without a window needs an end of positions */
    CHECK_INT(fr_plan_create(&plan, g, &options, &error), FR_BAD_USAGE);
    CHECK(strstr(error.what, "looks back without end") != NULL);
    options.continuing.positions = 20;
    CHECK_OK(fr_plan_create(&plan, g, &options, &error));
    CHECK_INT(fr_plan_sequence_bytes(plan), 2 * 128 * 16 * sizeof(float));
    fr_plan_free(plan);
    options.extent.T = 5;
    CHECK_INT(fr_plan_create(&plan, g, &options, &error), FR_BAD_USAGE);
    fr_graph_free(g);
}

TEST_MAIN(engine)
