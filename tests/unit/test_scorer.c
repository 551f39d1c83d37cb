/* The scorer: the same bits for any batch and any number of threads, and losses that are those of its logits.
 */
#include "frontier/eval.h"

#include "model_fixture.h"
#include "test.h"

enum { ROWS = 7, MOST_T = 96 };

static fr_tokenizer *tokenizer;
static char run_folder[512];

static const char *prepare(void)
{
    if (!tokenizer) {
        fr_recipe recipe = model_fixture_recipe();
        tokenizer = fixture_tokenizer(20);
        snprintf(run_folder, sizeof run_folder, "%s", scratch("run"));
        model_fixture_run(run_folder, &recipe, tokenizer);
    }
    return run_folder;
}

static fr_scorer *open_with(int threads)
{
    fr_scorer *scorer = NULL;
    fr_error error = {0};
    CHECK_OK(fr_scorer_open(&scorer, prepare(), &(fr_scorer_options){.threads = threads}, &error));
    return scorer;
}

static void make_rows(int64_t T, int32_t *inputs, int32_t *targets)
{
    uint64_t vocab = (uint64_t)fr_tokenizer_vocab(tokenizer);
    for (int64_t i = 0; i < ROWS * T; i++) {
        inputs[i] = (int32_t)(fr_rng_at(1, 1, (uint64_t)i) % vocab);
        targets[i] = i % 11 == 3 ? -1 : (int32_t)(fr_rng_at(1, 2, (uint64_t)i) % vocab);
    }
}

TEST(batch_and_threads_change_no_bit)
{
    int32_t inputs[ROWS * MOST_T], targets[ROWS * MOST_T];
    float first[ROWS * MOST_T], nats[ROWS * MOST_T];
    fr_error error = {0};
    prepare();
    for (int64_t T = 1; T <= MOST_T; T = T * 5 + 5) {
        make_rows(T, inputs, targets);
        for (int threads = 1; threads <= 4; threads += threads) {
            fr_scorer *scorer = open_with(threads);
            CHECK_OK(fr_scorer_nats(scorer, ROWS, T, inputs, targets, nats, &error));
            if (threads == 1)
                memcpy(first, nats, sizeof first);
            CHECK(memcmp(first, nats, (size_t)(ROWS * T) * sizeof *nats) == 0);
            for (int64_t row = 0; row < ROWS; row++) /* alone, operators split over the threads */
                CHECK_OK(fr_scorer_nats(scorer, 1, T, inputs + row * T, targets + row * T, nats + row * T,
                                        &error));
            CHECK(memcmp(first, nats, (size_t)(ROWS * T) * sizeof *nats) == 0);
            fr_scorer_free(scorer);
        }
        for (int64_t i = 0; i < ROWS * T; i++)
            CHECK(targets[i] < 0 ? first[i] == 0 : first[i] > 0 && isfinite(first[i]));
    }
}

TEST(losses_are_those_of_the_logits)
{
    enum { T = 40 };
    int32_t inputs[ROWS * T], targets[ROWS * T];
    float nats[ROWS * T];
    fr_error error = {0};
    fr_scorer *scorer = open_with(2);
    int64_t vocab = fr_scorer_vocab(scorer);
    CHECK_INT(vocab, fr_tokenizer_vocab(tokenizer));
    float *logits = calloc((size_t)(T * vocab), sizeof *logits),
          *tail = calloc((size_t)(3 * vocab), sizeof *tail);
    make_rows(T, inputs, targets);
    CHECK_OK(fr_scorer_nats(scorer, 1, T, inputs, targets, nats, &error));
    CHECK_OK(fr_scorer_logits(scorer, T, inputs, 0, logits, &error));
    CHECK_OK(fr_scorer_logits(scorer, T, inputs, T - 3, tail, &error));
    CHECK(memcmp(tail, logits + (T - 3) * vocab, (size_t)(3 * vocab) * sizeof *tail) == 0);
    for (int t = 0; t < T; t++) {
        double sum = 0;
        for (int64_t v = 0; v < vocab; v++)
            sum += exp((double)logits[t * vocab + v]);
        if (targets[t] >= 0)
            CHECK_NEAR(nats[t], log(sum) - (double)logits[t * vocab + targets[t]], 1e-5, 1e-5);
    }
    free(logits);
    free(tail);
    fr_scorer_free(scorer);
}

TEST(rows_longer_than_the_context_are_scored)
{
    enum { T = 130 };
    int32_t inputs[ROWS * T], targets[ROWS * T];
    float nats[ROWS * T], again[ROWS * T];
    fr_error error = {0};
    fr_scorer *scorer = open_with(2);
    make_rows(T, inputs, targets);
    CHECK_OK(fr_scorer_nats(scorer, ROWS, T, inputs, targets, nats, &error));
    CHECK_OK(fr_scorer_nats(scorer, 1, T, inputs, targets, again, &error));
    CHECK(memcmp(nats, again, T * sizeof *nats) == 0);
    fr_scorer_free(scorer);
}

TEST(many_lengths_share_few_plans)
{
    int32_t inputs[ROWS * MOST_T], targets[ROWS * MOST_T];
    float nats[ROWS * MOST_T], first[3];
    fr_error error = {0};
    fr_scorer *scorer = open_with(1);
    make_rows(MOST_T, inputs, targets);
    CHECK_OK(fr_scorer_nats(scorer, 1, 3, inputs, targets, first, &error));
    for (int64_t T = 90; T < 115; T++) /* beyond the context every length is a plan: more than are kept */
        CHECK_OK(fr_scorer_nats(scorer, 1, T, inputs, targets, nats, &error));
    CHECK_OK(fr_scorer_nats(scorer, 1, 3, inputs, targets, nats, &error));
    CHECK(memcmp(first, nats, sizeof first) == 0);
    fr_scorer_free(scorer);
}

TEST(borrowed_weights_are_followed)
{
    fr_recipe recipe = model_fixture_recipe();
    fr_error error = {0};
    prepare();
    fr_graph *graph = fr_graph_create(&error);
    CHECK_OK(fr_model_build(graph, &recipe, fr_tokenizer_vocab(tokenizer), &error));
    float *weights = model_fixture_weights(graph), before[24], after[24], loaded[24];
    int32_t inputs[ROWS * 24], targets[ROWS * 24];
    fr_pool *pool = NULL;
    fr_scorer *scorer = NULL, *opened = open_with(1);
    make_rows(24, inputs, targets);
    CHECK_OK(fr_pool_create(&pool, 2, &error));
    CHECK_OK(fr_scorer_create(&scorer, graph, &recipe, weights, pool, &error));
    CHECK_OK(fr_scorer_prepare(scorer, 24, &error));
    CHECK(fr_scorer_tokenizer(scorer) == NULL);
    CHECK_STR(fr_scorer_run(scorer), "");
    CHECK_OK(fr_scorer_nats(scorer, 1, 24, inputs, targets, before, &error));
    CHECK_OK(fr_scorer_nats(opened, 1, 24, inputs, targets, loaded, &error));
    CHECK(memcmp(before, loaded, sizeof before) == 0);
    weights[fr_graph_parameter(graph, fr_graph_find(graph, "transformer.h.1.mlp.c_fc.weight")->parameter)
                ->offset] += 1;
    fr_scorer_refresh(scorer);
    CHECK_OK(fr_scorer_nats(scorer, 1, 24, inputs, targets, after, &error));
    CHECK(memcmp(before, after, sizeof before) != 0);
    fr_scorer_free(scorer);
    fr_scorer_free(opened);
    fr_pool_free(pool);
    fr_graph_free(graph);
    free(weights);
}

TEST(bits_per_byte_are_the_same_on_any_threads)
{
    prepare();
    fr_corpus *corpus = model_fixture_corpus(scratch("data"), tokenizer, 9);
    fr_bpb_result first = {0}, result;
    fr_error error = {0};
    for (int threads = 1; threads <= 3; threads++) {
        fr_scorer *scorer = open_with(threads);
        CHECK_OK(fr_eval_bpb(scorer, corpus, &(fr_bpb_options){.rows = threads * 2 - 1}, &result, &error));
        if (threads == 1)
            first = result;
        CHECK(memcmp(&first.nats, &result.nats, sizeof(double)) == 0);
        CHECK(result.val_bpb > 0 && isfinite(result.val_bpb));
        fr_scorer_free(scorer);
    }
    fr_corpus_free(corpus);
    fr_tokenizer *other = fixture_tokenizer(12);
    corpus = model_fixture_corpus(scratch("other"), other, 3);
    fr_scorer *scorer = open_with(1);
    CHECK_INT(fr_eval_bpb(scorer, corpus, &(fr_bpb_options){0}, &result, &error), FR_BAD_USAGE);
    fr_scorer_free(scorer);
    fr_corpus_free(corpus);
    fr_tokenizer_free(other);
}

TEST(wrong_ids_and_shapes_are_refused)
{
    int32_t inputs[2 * 64] = {0}, targets[2 * 64] = {0};
    float nats[2 * 64];
    fr_error error = {0};
    fr_scorer *scorer = open_with(2);
    inputs[64 + 7] = (int32_t)fr_scorer_vocab(scorer) + 1000;
    CHECK(fr_scorer_nats(scorer, 2, 64, inputs, targets, nats, &error) != FR_OK);
    inputs[64 + 7] = -1;
    CHECK(fr_scorer_nats(scorer, 2, 64, inputs, targets, nats, &error) != FR_OK);
    inputs[64 + 7] = 0;
    CHECK_OK(fr_scorer_nats(scorer, 2, 64, inputs, targets, nats, &error));
    CHECK_INT(fr_scorer_nats(scorer, 1, 0, inputs, targets, nats, &error), FR_BAD_USAGE);
    CHECK_INT(fr_scorer_logits(scorer, 4, inputs, 5, nats, &error), FR_BAD_USAGE);
    CHECK_OK(fr_scorer_nats(scorer, 0, 64, inputs, targets, nats, &error));
    fr_scorer_free(scorer);
}

TEST(broken_run_folders_are_named)
{
    fr_scorer *scorer = NULL;
    fr_error error = {0};
    char folder[512], path[600];
    CHECK_INT(fr_scorer_open(&scorer, scratch("nowhere"), NULL, &error), FR_BAD_DATA);
    snprintf(folder, sizeof folder, "%s", scratch("broken"));
    prepare();
    fr_recipe recipe = model_fixture_recipe();
    model_fixture_run(folder, &recipe, tokenizer);
    CHECK_INT(fr_scorer_open(&scorer, folder, &(fr_scorer_options){.numerics = "fp8"}, &error), FR_BAD_USAGE);
    fr_path_join(path, sizeof path, folder, "run.json");
    CHECK_OK(fr_file_write(path, "{\"hashes\":{\"program\":\"ab\"}}", 27, &error));
    CHECK_INT(fr_scorer_open(&scorer, folder, NULL, &error), FR_BAD_USAGE);
    CHECK(strstr(error.hint, "program") != NULL);
    CHECK_OK(
        fr_scorer_open(&scorer, folder, &(fr_scorer_options){.threads = 1, .model = fr_model_build}, &error));
    fr_scorer_free(scorer);
    CHECK_OK(fr_file_write(path, "{", 1, &error));
    CHECK_INT(fr_scorer_open(&scorer, folder, NULL, &error), FR_BAD_DATA);
    CHECK_OK(fr_file_write(path, "{\"hashes\":{\"program\":null}}", 27, &error));
    CHECK_OK(fr_scorer_open(&scorer, folder, NULL, &error));
    fr_scorer_free(scorer);
    fr_path_join(path, sizeof path, folder, "model.safetensors");
    CHECK_INT(truncate(path, 5000), 0);
    CHECK_INT(fr_scorer_open(&scorer, folder, NULL, &error), FR_BAD_DATA);
    CHECK(strstr(error.where, "model.safetensors") != NULL);
    CHECK(scorer == NULL);
}

TEST(memory_failures_are_reported)
{
    int32_t inputs[ROWS * 32], targets[ROWS * 32];
    float nats[ROWS * 32];
    prepare();
    make_rows(32, inputs, targets);
    bool done = false;
    for (int64_t n = 0; n < 2000 && !done; n += 1 + n / 8) {
        fr_scorer *scorer = NULL;
        fr_error error = {0};
        fr_allocate_fail_after(n);
        fr_status status = fr_scorer_open(&scorer, run_folder, &(fr_scorer_options){.threads = 2}, &error);
        if (status == FR_OK)
            status = fr_scorer_nats(scorer, ROWS, 32, inputs, targets, nats, &error);
        fr_allocate_fail_after(-1);
        CHECK(status == FR_OK || status == FR_BAD_ENVIRONMENT);
        done = status == FR_OK;
        fr_scorer_free(scorer);
    }
    CHECK(done);
}

TEST_MAIN(scorer)
