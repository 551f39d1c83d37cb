/* Muon against an independent float64 implementation, and what must hold for any matrix. */
#include "frontier/train.h"
#include "train/polar.h"
#include "train_numbers.h"

typedef struct matrix {
    int64_t rows, columns;
    float *weight, *gradient, *momentum, *second;
    void *scratch;
} matrix;

static matrix make_matrix(int64_t rows, int64_t columns)
{
    size_t bytes = (size_t)(rows * columns) * sizeof(float);
    int64_t longer = rows > columns ? rows : columns;
    return (matrix){rows,
                    columns,
                    fr_allocate(bytes),
                    fr_allocate(bytes),
                    fr_allocate(bytes),
                    fr_allocate((size_t)longer * sizeof(float)),
                    fr_allocate(fr_muon_scratch_bytes(rows, columns))};
}

static void free_matrix(matrix *m)
{
    fr_deallocate(m->weight);
    fr_deallocate(m->gradient);
    fr_deallocate(m->momentum);
    fr_deallocate(m->second);
    fr_deallocate(m->scratch);
}

static void update(matrix *m, const fr_muon_options *options)
{
    fr_muon_update(m->weight, m->gradient, m->momentum, m->second, m->rows, m->columns, options, m->scratch);
}

static void check_case(const json_t *item)
{
    matrix m = make_matrix((int64_t)number_of(item, "rows"), (int64_t)number_of(item, "columns"));
    fr_muon_options options = {.lr = number_of(item, "lr"),
                               .decay = number_of(item, "wd"),
                               .momentum = number_of(item, "mu"),
                               .beta2 = number_of(item, "beta2"),
                               .equalize = flag_of(item, "equalize"),
                               .plus = flag_of(item, "plus"),
                               .bf16 = flag_of(item, "bf16")};
    uint64_t seed = (uint64_t)number_of(item, "seed");
    draw_numbers(seed, m.weight, m.rows * m.columns, 1);
    for (int64_t step = 0; step < (int64_t)number_of(item, "steps"); step++) {
        draw_numbers(seed + 1 + (uint64_t)step, m.gradient, m.rows * m.columns, 0.01);
        if (step == 0 && flag_of(item, "zero_first"))
            memset(m.gradient, 0, (size_t)(m.rows * m.columns) * sizeof(float));
        update(&m, &options);
    }
    /* A step moves a weight by about lr; bf16 rounding of the iterate moves that by a few parts in a hundred. */
    double tolerance = options.bf16 ? 0.05 * options.lr : 2e-5 * options.lr;
    double worst = worst_of(m.weight, json_object_get(item, "weight"), tolerance, 2e-7);
    double moment = worst_of(m.second, json_object_get(item, "second"), options.bf16 ? 1e-3 : 1e-6,
                             options.bf16 ? 3e-2 : 1e-5);
    if (!(worst <= 1) || !(moment <= 1))
        printf("# %s: weights %.3g, moments %.3g tolerances off\n",
               json_string_value(json_object_get(item, "name")), worst, moment);
    CHECK(worst <= 1);
    CHECK(moment <= 1);
    free_matrix(&m);
}

TEST(equals_the_float64_reference)
{
    json_t *vectors = load_vectors();
    CHECK(vectors != NULL);
    size_t index;
    json_t *item;
    CHECK(json_array_size(json_object_get(vectors, "muon")) >= 10);
    json_array_foreach(json_object_get(vectors, "muon"), index, item) check_case(item);
    json_decref(vectors);
}

/* The first projections of a block start at zero, so their gradients' neighbours see exact zeros in step 0. */
TEST(a_zero_gradient_only_decays)
{
    matrix m = make_matrix(24, 10);
    fr_muon_options options = {
        .lr = 0.5, .decay = 0.1, .momentum = 0.9, .beta2 = 0.9, .equalize = true, .plus = true};
    draw_numbers(3, m.weight, 240, 1);
    float before[240];
    memcpy(before, m.weight, sizeof before);
    update(&m, &options);
    for (int i = 0; i < 240; i++)
        CHECK_NEAR(m.weight[i], before[i] * 0.95, 0, 1e-6);
    for (int i = 0; i < 24; i++)
        CHECK(m.second[i] == 0);
    free_matrix(&m);
}

TEST(decay_acts_only_where_step_and_weight_agree)
{
    matrix m = make_matrix(16, 16);
    draw_numbers(5, m.weight, 256, 1);
    draw_numbers(6, m.gradient, 256, 1);
    matrix plain = make_matrix(16, 16);
    draw_numbers(5, plain.weight, 256, 1);
    draw_numbers(6, plain.gradient, 256, 1);
    fr_muon_options options = {.lr = 0.1, .decay = 0.3, .momentum = 0.9, .beta2 = 0.9};
    update(&m, &options);
    options.decay = 0;
    update(&plain, &options);
    float start[256];
    draw_numbers(5, start, 256, 1);
    int agree = 0;
    for (int i = 0; i < 256; i++) {
        double g = ((double)start[i] - plain.weight[i]) / 0.1;
        bool same = g * start[i] >= 0;
        agree += same;
        CHECK_NEAR(plain.weight[i] - m.weight[i], same ? 0.03 * start[i] : 0, 1e-6, 1e-4);
    }
    CHECK(agree > 50 && agree < 206);
    free_matrix(&m);
    free_matrix(&plain);
}

static void update_with(matrix *m, fr_pool *pool, bool bf16)
{
    fr_muon_options options = {.lr = 0.02,
                               .decay = 0.1,
                               .momentum = 0.9,
                               .beta2 = 0.9,
                               .equalize = true,
                               .plus = true,
                               .bf16 = bf16,
                               .pool = pool};
    draw_numbers(8, m->weight, m->rows * m->columns, 1);
    for (int step = 0; step < 2; step++) {
        draw_numbers(9 + (uint64_t)step, m->gradient, m->rows * m->columns, 0.1);
        update(m, &options);
    }
}

static void same_bits_with_threads(int64_t rows, int64_t columns, int threads, bool bf16)
{
    fr_error error = {0};
    fr_pool *pool = NULL;
    matrix one = make_matrix(rows, columns), many = make_matrix(rows, columns);
    CHECK_OK(fr_pool_create(&pool, threads, &error));
    update_with(&one, NULL, bf16);
    update_with(&many, pool, bf16);
    CHECK(memcmp(one.weight, many.weight, (size_t)(rows * columns) * sizeof(float)) == 0);
    CHECK(memcmp(one.momentum, many.momentum, (size_t)(rows * columns) * sizeof(float)) == 0);
    CHECK(memcmp(one.second, many.second, (size_t)(rows > columns ? rows : columns) * sizeof(float)) == 0);
    fr_pool_free(pool);
    free_matrix(&one);
    free_matrix(&many);
}

TEST(threads_do_not_change_a_bit)
{
    same_bits_with_threads(700, 400, 3, false);
    same_bits_with_threads(350, 430, 2, true);
    same_bits_with_threads(1, 37, 2, false);
}

/* Singular values end near 1, so the product with the transpose is near the identity. */
TEST(polar_express_orthogonalizes)
{
    enum { N = 48, M = 96 };
    static float x[N * M], next[N * M], gram[N * N], polynomial[N * N];
    draw_numbers(77, x, N * M, 1);
    double norm = 0;
    for (int i = 0; i < N * M; i++)
        norm += (double)x[i] * x[i];
    for (int i = 0; i < N * M; i++)
        x[i] /= (float)(sqrt(norm) * 1.01);
    fr_polar polar = {
        .rows = N, .columns = M, .small = N, .x = x, .next = next, .gram = gram, .polynomial = polynomial};
    fr_polar_express(&polar);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double dot = 0;
            for (int k = 0; k < M; k++)
                dot += (double)polar.x[i * M + k] * polar.x[j * M + k];
            CHECK_NEAR(dot, i == j, 0.12, 0); /* the coefficients leave singular values within 0.06 of 1 */
        }
}

TEST(rounding_to_bf16_is_to_nearest_even)
{
    float values[] = {1.0f, 1.00390625f, 1.01171875f, -1.00390625f, 0, INFINITY, 3.4e38f};
    float want[] = {1.0f, 1.0f, 1.015625f, -1.0f, 0, INFINITY, INFINITY};
    fr_round_to_bf16(values, 6);
    for (int i = 0; i < 6; i++)
        CHECK(values[i] == want[i]);
    float nan = NAN;
    fr_round_to_bf16(&nan, 1);
    CHECK(nan != nan);
}

TEST_MAIN(muon)
