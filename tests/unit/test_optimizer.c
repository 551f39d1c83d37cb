/* The optimizer over a whole model: groups and their rates, threads, files, bad gradients. */
#include "frontier/train.h"
#include "train/groups.h"
#include "train/optimizer.h"
#include "train_numbers.h"

#include <unistd.h>

static const char *const small_model[] = {
    "model.depth=2",
    "model.width=48",
    "model.head_dim=16",
    "model.context=32",
    "model.value_embeddings=true",
    "model.smear=true",
    "model.backout=true",
    "model.numerics=fp32",
    "optim.batch_tokens=512",
    "optim.shards=4",
};

static fr_recipe small_recipe(const char *const *more, int count)
{
    fr_recipe recipe;
    fr_error error = {0};
    CHECK_OK(fr_recipe_defaults(&recipe, &error));
    for (size_t i = 0; i < sizeof small_model / sizeof small_model[0]; i++)
        CHECK_OK(fr_recipe_set(&recipe, small_model[i], &error));
    for (int i = 0; i < count; i++)
        CHECK_OK(fr_recipe_set(&recipe, more[i], &error));
    CHECK_OK(fr_recipe_check(&recipe, &error));
    return recipe;
}

static fr_graph *build(const fr_recipe *recipe)
{
    fr_error error = {0};
    fr_graph *graph = fr_graph_create(&error);
    CHECK_OK(fr_model_build(graph, recipe, 100, &error));
    CHECK_OK(fr_graph_check(graph, &error));
    return graph;
}

static float *flat_vector(const fr_graph *graph, uint64_t seed, double scale)
{
    float *flat = fr_allocate((size_t)fr_graph_flat_elements(graph) * sizeof(float));
    for (int i = 0; i < fr_graph_parameters(graph); i++) {
        const fr_parameter_info *info = fr_graph_parameter(graph, i);
        draw_numbers(seed + (uint64_t)i, flat + info->offset, info->rows * info->columns, scale);
    }
    return flat;
}

static const fr_parameter_info *parameter_of_group(const fr_graph *graph, const char *group)
{
    for (int i = 0; i < fr_graph_parameters(graph); i++)
        if (strcmp(fr_graph_parameter(graph, i)->group, group) == 0)
            return fr_graph_parameter(graph, i);
    return NULL;
}

static fr_group_rule rule_of(const fr_recipe *recipe, const fr_graph *graph, const char *group)
{
    fr_group_rule rule = {0};
    fr_error error = {0};
    const fr_parameter_info *info = parameter_of_group(graph, group);
    CHECK(info != NULL);
    if (info)
        CHECK_OK(fr_group_rule_for(recipe, info, &rule, &error));
    return rule;
}

/* baseline.md 2.1 and 10.3: base rate, scales, betas. */
TEST(groups_have_the_rates_of_the_sheet)
{
    const char *const more[] = {"optim.reference_batch=2048", "optim.resid_lr_factor=0.01"};
    fr_recipe recipe = small_recipe(more, 2);
    fr_graph *graph = build(&recipe);
    double ds = 1 / sqrt(48 / 768.0), bs = sqrt(512 / 2048.0);
    fr_group_rule embedding = rule_of(&recipe, graph, "embedding"), head = rule_of(&recipe, graph, "head");
    CHECK_NEAR(embedding.lr, 0.3 * ds * bs, 0, 1e-12);
    CHECK_NEAR(embedding.beta2, 0.995, 0, 1e-12);
    CHECK_NEAR(embedding.decay, 0.001, 0, 1e-12);
    CHECK_NEAR(head.lr, 0.006 * ds * bs, 0, 1e-12);
    CHECK_NEAR(head.beta2, 0.96, 0, 1e-12);
    CHECK_NEAR(rule_of(&recipe, graph, "value").lr, 0.15 * ds * bs, 0, 1e-12);
    CHECK_NEAR(rule_of(&recipe, graph, "resid").lr, 0.2 * 0.01 * bs, 0, 1e-12);
    CHECK_NEAR(rule_of(&recipe, graph, "x0").lr, 0.2 * bs, 0, 1e-12);
    CHECK_NEAR(rule_of(&recipe, graph, "x0").beta1, 0.9, 0, 1e-12);
    CHECK_NEAR(rule_of(&recipe, graph, "scalar").lr, 0.2, 0, 1e-12); /* smear and backout: no scale */
    CHECK_NEAR(head.eps, 1e-10, 0, 1e-12);
    for (int i = 0; i < fr_graph_parameters(graph); i++) {
        const fr_parameter_info *info = fr_graph_parameter(graph, i);
        fr_group_rule rule;
        fr_error error = {0};
        if (strcmp(info->group, "matrix") != 0)
            continue;
        CHECK_OK(fr_group_rule_for(&recipe, info, &rule, &error));
        double tall = (double)info->rows / (double)info->columns;
        CHECK(rule.muon);
        CHECK_NEAR(rule.lr, 0.02 * bs * sqrt(tall > 1 ? tall : 1), 0, 1e-12);
    }
    fr_graph_free(graph);
}

TEST(adamw_everything)
{
    const char *const more[] = {"optim.kind=adamw"};
    fr_recipe recipe = small_recipe(more, 1);
    fr_graph *graph = build(&recipe);
    fr_group_rule rule = rule_of(&recipe, graph, "matrix");
    CHECK(!rule.muon);
    CHECK_NEAR(rule.lr, 0.0006, 0, 1e-12);
    CHECK_NEAR(rule.decay, 0.1, 0, 1e-12);
    fr_graph_free(graph);
}

TEST(an_unknown_group_is_named)
{
    fr_recipe recipe = small_recipe(NULL, 0);
    fr_parameter_info info = {.name = "mine", .group = "matrx", .rows = 2, .columns = 2};
    fr_group_rule rule;
    fr_error error = {0};
    CHECK_INT(fr_group_rule_for(&recipe, &info, &rule, &error), FR_BAD_USAGE);
    CHECK_STR(error.where, "mine");
    CHECK(strstr(error.hint, "'matrix'") != NULL);
}

/* A few steps on `threads` threads (0: no pool) with made-up gradients; returns the parameters. */
static float *train_with(const fr_recipe *recipe, const fr_graph *graph, int threads, int steps)
{
    fr_error error = {0};
    fr_pool *pool = NULL;
    fr_optimizer *optimizer = NULL;
    if (threads > 0)
        CHECK_OK(fr_pool_create(&pool, threads, &error));
    CHECK_OK(fr_optimizer_create(&optimizer, graph, recipe, pool, &error));
    float *parameters = flat_vector(graph, 1, 1);
    for (int step = 0; step < steps; step++) {
        float *gradients = flat_vector(graph, 1000 + (uint64_t)step * 100, 0.01);
        fr_step_scalars scalars;
        fr_step_scalars_at(recipe, step * 0.1, step, &scalars);
        CHECK_OK(fr_optimizer_step(optimizer, parameters, gradients, &scalars, &error));
        fr_deallocate(gradients);
    }
    CHECK_INT(fr_optimizer_steps(optimizer), steps);
    fr_optimizer_free(optimizer);
    fr_pool_free(pool);
    return parameters;
}

static void check_threads_of(const fr_recipe *the_recipe, fr_graph *graph)
{
    fr_recipe recipe = *the_recipe;
    size_t bytes = (size_t)fr_graph_flat_elements(graph) * sizeof(float);
    float *want = train_with(&recipe, graph, 0, 3);
    static const int threads[] = {1, 2, 3, 7};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        float *got = train_with(&recipe, graph, threads[i], 3);
        CHECK(memcmp(want, got, bytes) == 0);
        fr_deallocate(got);
    }
    fr_deallocate(want);
    fr_graph_free(graph);
}

static void check_threads(const char *const *more, int count)
{
    fr_recipe recipe = small_recipe(more, count);
    check_threads_of(&recipe, build(&recipe));
}

/* One large matrix: threads share it instead of taking whole ones. */
TEST(a_matrix_split_inside_has_the_same_bits)
{
    fr_error error = {0};
    fr_recipe recipe = small_recipe(NULL, 0);
    fr_graph *g = fr_graph_create(&error);
    fr_tensor *ids = fr_input_ids(g, "tokens"), *targets = fr_input_ids(g, "targets");
    fr_tensor *table = fr_parameter(g, "table", 64, 48, fr_init_normal(1), "embedding");
    fr_tensor *large = fr_parameter(g, "large", 700, 48, fr_init_normal(1), "matrix");
    fr_tensor *head = fr_parameter(g, "head", 64, 700, fr_init_normal(1), "head");
    fr_tensor *x = fr_linear(g, fr_rms_norm(g, fr_embed(g, table, ids), (fr_norm_options){0}), large);
    fr_head_loss(g, x, head, targets, (fr_head_options){.vocab = 64});
    CHECK_OK(fr_graph_check(g, &error));
    fr_pool *pool;
    fr_optimizer *optimizer;
    CHECK_OK(fr_pool_create(&pool, 2, &error));
    CHECK_OK(fr_optimizer_create(&optimizer, g, &recipe, pool, &error));
    CHECK(fr_optimizer_splits_inside(optimizer));
    fr_optimizer_free(optimizer);
    fr_pool_free(pool);
    check_threads_of(&recipe, g);
}

TEST(threads_do_not_change_a_bit)
{
    const char *const nanochat[] = {"optim.muon_equalize=true", "optim.muon_plus=true",
                                    "model.numerics=bf16"};
    const char *const adamw[] = {"optim.kind=adamw"};
    check_threads(NULL, 0);
    check_threads(nanochat, 3);
    check_threads(adamw, 1);
}

TEST(a_step_is_the_update_of_each_group)
{
    fr_recipe recipe = small_recipe(NULL, 0);
    fr_graph *graph = build(&recipe);
    float *got = train_with(&recipe, graph, 2, 1), *want = flat_vector(graph, 1, 1),
          *gradients = flat_vector(graph, 1000, 0.01);
    fr_step_scalars scalars;
    fr_error error = {0};
    fr_step_scalars_at(&recipe, 0, 0, &scalars);
    for (int i = 0; i < fr_graph_parameters(graph); i++) {
        const fr_parameter_info *info = fr_graph_parameter(graph, i);
        int64_t elements = info->rows * info->columns;
        float *first = fr_allocate((size_t)elements * 4), *second = fr_allocate((size_t)elements * 4);
        void *scratch = fr_allocate(fr_muon_scratch_bytes(info->rows, info->columns));
        fr_group_rule rule;
        CHECK_OK(fr_group_rule_for(&recipe, info, &rule, &error));
        fr_muon_options muon = {.lr = rule.lr, .decay = 0.2, .momentum = 0.85, .beta2 = 0.9};
        fr_adamw_options adamw = {rule.lr, rule.decay, rule.beta1, rule.beta2, rule.eps, 1};
        if (rule.muon)
            fr_muon_update(want + info->offset, gradients + info->offset, first, second, info->rows,
                           info->columns, &muon, scratch);
        else
            fr_adamw_update(want + info->offset, gradients + info->offset, first, second, elements, &adamw);
        CHECK(memcmp(want + info->offset, got + info->offset, (size_t)elements * sizeof(float)) == 0);
        fr_deallocate(first);
        fr_deallocate(second);
        fr_deallocate(scratch);
    }
    fr_deallocate(got);
    fr_deallocate(want);
    fr_deallocate(gradients);
    fr_graph_free(graph);
}

TEST(a_bad_gradient_is_named_and_nothing_moves)
{
    fr_recipe recipe = small_recipe(NULL, 0);
    fr_graph *graph = build(&recipe);
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int trial = 0; trial < 3; trial++) {
        fr_optimizer *optimizer;
        fr_error error = {0};
        CHECK_OK(fr_optimizer_create(&optimizer, graph, &recipe, NULL, &error));
        float *parameters = flat_vector(graph, 1, 1), *before = flat_vector(graph, 1, 1),
              *gradients = flat_vector(graph, 9, 1);
        const fr_parameter_info *info = fr_graph_parameter(graph, 3 + trial);
        gradients[info->offset + info->rows * info->columns - 1] = bad[trial];
        fr_step_scalars scalars;
        fr_step_scalars_at(&recipe, 0, 0, &scalars);
        CHECK_INT(fr_optimizer_step(optimizer, parameters, gradients, &scalars, &error), FR_ANSWER_NO);
        CHECK_STR(error.where, info->name);
        CHECK(memcmp(parameters, before, (size_t)fr_graph_flat_elements(graph) * sizeof(float)) == 0);
        CHECK_INT(fr_optimizer_steps(optimizer), 0);
        fr_deallocate(parameters);
        fr_deallocate(before);
        fr_deallocate(gradients);
        fr_optimizer_free(optimizer);
    }
    fr_graph_free(graph);
}

/* ---- files ---- */

typedef struct saved {
    fr_recipe recipe;
    fr_graph *graph;
    fr_optimizer *optimizer;
    float *parameters;
    char path[64];
} saved;

static void take_steps(saved *s, int first, int count)
{
    fr_error error = {0};
    for (int step = first; step < first + count; step++) {
        float *gradients = flat_vector(s->graph, 50 + (uint64_t)step * 100, 0.01);
        fr_step_scalars scalars;
        fr_step_scalars_at(&s->recipe, 0.1, step, &scalars);
        CHECK_OK(fr_optimizer_step(s->optimizer, s->parameters, gradients, &scalars, &error));
        fr_deallocate(gradients);
    }
}

static saved make_saved(void)
{
    saved s = {.recipe = small_recipe(NULL, 0), .path = "/tmp/frontier-optimizer-XXXXXX"};
    fr_error error = {0};
    int descriptor = mkstemp(s.path);
    CHECK(descriptor >= 0);
    close(descriptor);
    s.graph = build(&s.recipe);
    CHECK_OK(fr_optimizer_create(&s.optimizer, s.graph, &s.recipe, NULL, &error));
    s.parameters = flat_vector(s.graph, 1, 1);
    take_steps(&s, 0, 2);
    CHECK_OK(fr_optimizer_save(s.optimizer, s.path, "{\"note\":\"kept\"}", &error));
    return s;
}

static void free_saved(saved *s)
{
    unlink(s->path);
    fr_deallocate(s->parameters);
    fr_optimizer_free(s->optimizer);
    fr_graph_free(s->graph);
}

TEST(a_loaded_state_continues_exactly)
{
    saved s = make_saved();
    fr_error error = {0};
    size_t bytes = (size_t)fr_graph_flat_elements(s.graph) * sizeof(float);
    float *kept = fr_allocate(bytes), *want = fr_allocate(bytes);
    memcpy(kept, s.parameters, bytes);
    take_steps(&s, 2, 2);
    memcpy(want, s.parameters, bytes);
    fr_optimizer_free(s.optimizer);
    CHECK_OK(fr_optimizer_create(&s.optimizer, s.graph, &s.recipe, NULL, &error));
    fr_arena arena;
    char *extra = NULL;
    fr_arena_init(&arena, 256);
    CHECK_OK(fr_optimizer_load(s.optimizer, s.path, &arena, &extra, &error));
    CHECK_STR(extra, "{\"note\":\"kept\"}");
    CHECK_INT(fr_optimizer_steps(s.optimizer), 2);
    memcpy(s.parameters, kept, bytes);
    take_steps(&s, 2, 2);
    CHECK(memcmp(s.parameters, want, bytes) == 0);
    fr_arena_release(&arena);
    fr_deallocate(kept);
    fr_deallocate(want);
    free_saved(&s);
}

TEST(a_state_of_another_optimizer_is_refused)
{
    saved s = make_saved();
    fr_error error = {0};
    fr_optimizer *other;
    const char *const more[] = {"optim.kind=adamw"};
    fr_recipe recipe = small_recipe(more, 1);
    CHECK_OK(fr_optimizer_create(&other, s.graph, &recipe, NULL, &error));
    CHECK_INT(fr_optimizer_load(other, s.path, NULL, NULL, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "is missing") != NULL);
    fr_optimizer_free(other);
    CHECK_OK(fr_model_save(s.graph, s.parameters, s.path, &error));
    CHECK_INT(fr_optimizer_load(s.optimizer, s.path, NULL, NULL, &error), FR_BAD_DATA);
    CHECK_STR(error.where, s.path);
    free_saved(&s);
}

TEST(memory_failures_are_reported)
{
    fr_recipe recipe = small_recipe(NULL, 0);
    fr_graph *graph = build(&recipe);
    for (int64_t n = 0; n < 5; n++) {
        fr_optimizer *optimizer;
        fr_error error = {0};
        fr_allocate_fail_after(n);
        fr_status status = fr_optimizer_create(&optimizer, graph, &recipe, NULL, &error);
        fr_allocate_fail_after(-1);
        CHECK_INT(status, FR_BAD_ENVIRONMENT);
    }
    fr_graph_free(graph);
}

TEST(timing_changes_nothing)
{
    saved s = make_saved();
    fr_error error = {0};
    double seconds = -1;
    size_t bytes = (size_t)fr_graph_flat_elements(s.graph) * sizeof(float), state = s.optimizer->memory_bytes;
    float *kept = fr_allocate(bytes), *kept_state = fr_allocate(state);
    memcpy(kept, s.parameters, bytes);
    memcpy(kept_state, s.optimizer->memory, state);
    CHECK_OK(fr_optimizer_time(s.optimizer, &seconds, &error));
    CHECK(seconds > 0 && seconds < 10);
    CHECK(memcmp(kept, s.parameters, bytes) == 0);
    CHECK(memcmp(kept_state, s.optimizer->memory, state) == 0);
    CHECK_INT(fr_optimizer_steps(s.optimizer), 2);
    fr_deallocate(kept);
    fr_deallocate(kept_state);
    free_saved(&s);
}

TEST_MAIN(optimizer)
