/* The fixed tree of shards, the cut of a step, the step log: what determinism and resume rest on. */
#include "frontier/cpu.h"
#include "frontier/train.h"
#include "test.h"
#include "text_fixture.h"
#include "train/batch.h"
#include "train/memory.h"
#include "train/shards.h"
#include "train/step_log.h"

/* Sum of [first, first + count) by the tree's rule, on numbers whose sum depends on the order. */
static float value_of(int64_t shard)
{
    return (float)(fr_rng_uniform_at(5, 0, (uint64_t)shard) * (shard % 3 ? 1.0 : 1e6));
}

static float tree_sum(int64_t first, int64_t count)
{
    if (count == 1)
        return value_of(first);
    int64_t left = 1;
    while (left * 2 < count)
        left *= 2;
    return tree_sum(first, left) + tree_sum(first + left, count - left);
}

typedef struct race {
    fr_shards *shards;
    int64_t seen;
} race;

static void run_racer(void *context, int64_t index, int thread)
{
    (void)thread;
    race *r = context;
    int64_t shard;
    int buffer;
    while (fr_shards_take(r->shards, &shard, &buffer)) {
        struct timespec pause = {0, (long)(fr_rng_at(6, (uint64_t)shard, (uint64_t)index) % 200000)};
        nanosleep(&pause, NULL);
        for (int64_t i = 0; i < r->shards->elements; i++)
            r->shards->memory[buffer][i] = value_of(shard) * (float)(i + 1);
        __atomic_fetch_add(&r->seen, 1, __ATOMIC_RELAXED);
        fr_shards_give(r->shards, shard, buffer);
    }
}

TEST(the_tree_is_the_same_for_any_number_of_threads)
{
    static const int64_t counts[] = {1, 2, 3, 5, 8, 13, 16};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (int threads = 1; threads <= 5; threads += 2) {
            fr_shards shards;
            fr_pool *pool;
            fr_error error = {0};
            CHECK_OK(fr_pool_create(&pool, threads, &error));
            CHECK_OK(fr_shards_init(&shards, counts[c], 17, threads, &error));
            for (int step = 0; step < 3; step++) {
                race r = {&shards, 0};
                fr_shards_begin(&shards);
                CHECK(fr_shards_sum(&shards) == NULL);
                fr_pool_for(pool, threads, run_racer, &r);
                CHECK_INT(r.seen, counts[c]);
                CHECK(fr_shards_sum(&shards) != NULL);
                CHECK(fr_shards_sum(&shards) && fr_shards_sum(&shards)[0] == tree_sum(0, counts[c]));
            }
            fr_shards_release(&shards);
            fr_pool_free(pool);
        }
}

TEST(few_buffers_are_enough)
{
    CHECK_INT(fr_shards_buffers(8, 1), 4);
    CHECK_INT(fr_shards_buffers(8, 2), 5);
    CHECK_INT(fr_shards_buffers(8, 8), 8);
    CHECK_INT(fr_shards_buffers(1, 1), 1);
    CHECK_INT(fr_shards_buffers(1024, 2), 12);
}

TEST(an_abandoned_step_hands_nothing_out)
{
    fr_shards shards;
    fr_error error = {0};
    int64_t shard;
    int buffer;
    CHECK_OK(fr_shards_init(&shards, 4, 3, 2, &error));
    CHECK(fr_shards_take(&shards, &shard, &buffer));
    fr_shards_abandon(&shards);
    CHECK(!fr_shards_take(&shards, &shard, &buffer));
    CHECK(fr_shards_sum(&shards) == NULL);
    fr_shards_begin(&shards);
    CHECK(fr_shards_take(&shards, &shard, &buffer));
    CHECK_INT(shard, 0);
    fr_shards_release(&shards);
}

/* ---- the cut of a step ---- */

static fr_recipe recipe_with(const char *const *more)
{
    fr_recipe recipe;
    fr_error error = {0};
    CHECK_OK(fr_recipe_defaults(&recipe, &error));
    for (; *more; more++)
        CHECK_OK(fr_recipe_set(&recipe, *more, &error));
    return recipe;
}

/* Every row of every phase belongs to exactly one place, and micro-batches stay near 2,048 tokens. */
TEST(every_row_has_one_place)
{
    static const char *const cases[][5] = {
        {"optim.batch_tokens=65536", NULL},
        {"model.context=256", "optim.batch_tokens=24576", "optim.shards=3", NULL},
        {"model.context=64", "optim.batch_tokens=8192",
         "schedule.batch_phases=[0.0, 0.25, 0.2, 0.5, 0.5, 1.0]", NULL},
        {"model.context=512", "optim.batch_tokens=36864", "optim.micro_rows=3", NULL},
        {"model.context=4096", "optim.batch_tokens=32768", NULL},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        fr_recipe recipe = recipe_with(cases[c]);
        fr_batch_shape shape;
        fr_error error = {0};
        CHECK_OK(fr_batch_shape_of(&recipe, &shape, &error));
        CHECK(shape.micro_rows == 1 || shape.micro_rows * shape.T <= 2048);
        for (int tenth = 0; tenth <= 10; tenth++) {
            fr_step_scalars scalars;
            static int count[4096];
            memset(count, 0, sizeof count);
            fr_step_scalars_at(&recipe, tenth / 10.0, 0, &scalars);
            int64_t micro = fr_batch_micro_batches(&shape, scalars.batch_tokens);
            CHECK_INT(micro * shape.micro_rows * shape.shards * shape.T, scalars.batch_tokens);
            CHECK(micro <= shape.most_micro_batches);
            for (int64_t s = 0; s < shape.shards; s++)
                for (int64_t m = 0; m < micro; m++)
                    for (int64_t r = 0; r < shape.micro_rows; r++) {
                        int64_t row = fr_batch_row(&shape, s, m, r);
                        CHECK_INT(row % shape.shards, s);
                        count[row]++;
                    }
            for (int64_t row = 0; row < scalars.batch_tokens / shape.T; row++)
                CHECK_INT(count[row], 1);
        }
    }
}

TEST(a_batch_that_cannot_be_cut_names_the_nearest)
{
    const char *const odd[] = {"optim.batch_tokens=70000", NULL}, *const rows[] = {"optim.micro_rows=3",
                                                                                   NULL};
    fr_recipe recipe = recipe_with(odd);
    fr_batch_shape shape;
    fr_error error = {0};
    CHECK_INT(fr_batch_shape_of(&recipe, &shape, &error), FR_BAD_USAGE);
    CHECK(strstr(error.hint, "73728") != NULL);
    recipe = recipe_with(rows);
    CHECK_INT(fr_batch_shape_of(&recipe, &shape, &error), FR_BAD_USAGE);
    CHECK_STR(error.where, "optim.micro_rows");
}

/* ---- choosing a recipe ---- */

static fr_recipe chosen(double budget, double flops, int64_t corpus_tokens, int64_t vocab)
{
    fr_recipe recipe = {0};
    fr_error error = {0};
    char why[400] = "";
    CHECK_OK(fr_recipe_choose(&recipe, budget, flops, corpus_tokens, vocab, why, sizeof why, &error));
    CHECK(strstr(why, "parameters") != NULL && strlen(why) < sizeof why - 1 && !strchr(why, '\n'));
    return recipe;
}

static void check_chosen(const fr_recipe *recipe, double budget, double flops, int64_t vocab)
{
    fr_error error = {0};
    fr_batch_shape shape;
    fr_model_size size;
    CHECK_OK(fr_recipe_check(recipe, &error));
    CHECK_OK(fr_batch_shape_of(recipe, &shape, &error));
    CHECK_OK(fr_model_measure(recipe, vocab, &size, &error));
    CHECK(recipe->model.depth >= 2 && recipe->model.depth <= 24 && recipe->model.width >= 128);
    CHECK_STR(recipe->data.packing, "stream"); /* no text of a short corpus is dropped */
    double available = (double)fr_memory_available(), batch = (double)recipe->optim.batch_tokens;
    CHECK(recipe->model.width == 128 || available == 0 || 20.0 * (double)size.params < available);
    double tokens = 0.45 * flops * budget / size.flops_per_token / (1 + 3.0 * recipe->model.width / batch);
    int64_t row_each = recipe->model.context;
    while (row_each < fr_cpu_available() * recipe->model.context)
        row_each *= 2;
    CHECK(tokens / batch >= 199 || recipe->optim.batch_tokens <= row_each);
    CHECK(recipe->optim.shards >= fr_cpu_available() || recipe->optim.shards >= 8);
}

TEST(a_chosen_recipe_always_fits_its_rules)
{
    const double budgets[] = {1e-3, 5, 60, 600, 1800, 14400, 1e7};
    const double flops[] = {1e9, 4e11, 1e15};
    const int64_t corpora[] = {0, 30000, 5000000, 250000000, 2500000000}; /* tokens of 100 KB to 10 GB */
    const int64_t vocabs[] = {257, 8192, 50304};
    for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++)
        for (size_t f = 0; f < sizeof flops / sizeof *flops; f++)
            for (size_t c = 0; c < sizeof corpora / sizeof *corpora; c++)
                for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++) {
                    fr_recipe recipe = chosen(budgets[b], flops[f], corpora[c], vocabs[v]);
                    check_chosen(&recipe, budgets[b], flops[f], vocabs[v]);
                }
}

TEST(more_time_chooses_no_smaller_model)
{
    int64_t before = 0;
    for (double budget = 5; budget < 1e6; budget *= 1.5) {
        fr_recipe recipe = chosen(budget, 3.8e11, 45000000, 2048);
        int64_t size = recipe.model.depth * recipe.model.width * recipe.model.width;
        CHECK(size >= before);
        before = size;
    }
    fr_recipe minute = chosen(60, 3.8e11, 6000000, 2048), hours = chosen(14400, 3.8e11, 45000000, 8192);
    CHECK(minute.model.depth == 4 || minute.model.depth == 3);
    CHECK_INT(minute.model.width, 128);
    CHECK(hours.model.width > minute.model.width);
    CHECK_INT(minute.data.pool_rows, 6000000 / minute.model.context); /* the whole corpus is in the pool */
}

/* What `make demo` and ten minutes on two cores (383 GFLOP/s) would get without a recipe: the tuned ones. */
TEST(a_chosen_recipe_is_the_tuned_one_where_one_was_tuned)
{
    const char *const paths[] = {"recipes/demo.toml", "recipes/cpu-10m.toml"};
    const double budgets[] = {60, 600};
    for (int i = 0; i < 2; i++) {
        fr_recipe tuned, recipe = chosen(budgets[i], 3.83e11, i ? 60000000 : 6113948, 2048);
        fr_error error = {0};
        CHECK_OK(fr_recipe_load(&tuned, paths[i], &error));
        CHECK_INT(recipe.model.depth, tuned.model.depth);
        CHECK_INT(recipe.model.width, tuned.model.width);
        CHECK_INT(recipe.model.context, tuned.model.context);
        CHECK(recipe.model.value_embeddings && recipe.model.smear && recipe.model.backout);
        CHECK_NEAR(recipe.optim.matrix_lr, tuned.optim.matrix_lr, 1e-12, 0);
        CHECK_NEAR(recipe.optim.clip, tuned.optim.clip, 1e-12, 0);
        CHECK(fr_cpu_available() > 2 || recipe.optim.batch_tokens == tuned.optim.batch_tokens);
    }
}

TEST(a_recipe_cannot_be_chosen_for_nothing)
{
    fr_recipe recipe;
    fr_error error = {0};
    char why[400];
    CHECK_INT(fr_recipe_choose(&recipe, 0, 1e12, 1000, 8192, why, sizeof why, &error), FR_BAD_USAGE);
    CHECK_INT(fr_recipe_choose(&recipe, 60, NAN, 1000, 8192, why, sizeof why, &error), FR_BAD_USAGE);
}

/* ---- the step log ---- */

TEST(a_resumed_log_drops_later_and_torn_lines)
{
    const char *path = fixture_text(
        "log.jsonl", "{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":1.5}\n{\"step\":2,\"val_bpb\":1}\n"
                     "{\"step\":3,\"loss\":1.4}\n{\"step\":4,\"lo");
    fr_step_log log = {0};
    fr_error error = {0};
    fr_step_line line = {.step = 3, .loss = NAN, .charged = 3};
    CHECK_OK(fr_step_log_open(&log, path, 2, &error));
    CHECK_OK(fr_step_log_write(&log, &line, &error));
    fr_step_log_close(&log);
    char *text = NULL;
    size_t bytes = 0;
    fr_arena arena;
    fr_arena_init(&arena, 1024);
    CHECK_OK(fr_file_read(&arena, path, &text, &bytes, &error));
    const char *want = "{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":1.5}\n{\"step\":2,\"val_bpb\":1}\n{"
                       "\"step\":3,\"loss\":null,";
    CHECK(strncmp(text, want, strlen(want)) == 0);
    CHECK(text[bytes - 1] == '\n');
    fr_arena_release(&arena);
    CHECK_INT(fr_step_log_open(&log, fixture_root, 0, &error), FR_BAD_DATA);
}

TEST_MAIN(shards)
