/* AdamW against an independent float64 implementation, and its properties. */
#include "train_numbers.h"

static void check_case(const json_t *item)
{
    float weight[64], gradient[64], first[64] = {0}, second[64] = {0};
    int64_t count = (int64_t)number_of(item, "count");
    uint64_t seed = (uint64_t)number_of(item, "seed");
    fr_adamw_options options = {.lr = number_of(item, "lr"),
                                .decay = number_of(item, "wd"),
                                .beta1 = number_of(item, "beta1"),
                                .beta2 = number_of(item, "beta2"),
                                .eps = number_of(item, "eps")};
    draw_numbers(seed, weight, count, 1);
    for (options.step = 1; options.step <= (int64_t)number_of(item, "steps"); options.step++) {
        draw_numbers(seed + (uint64_t)options.step, gradient, count, 0.01);
        if (options.step == 1 && flag_of(item, "zero_first"))
            memset(gradient, 0, sizeof gradient);
        fr_adamw_update(weight, gradient, first, second, count, &options);
    }
    CHECK(worst_of(weight, json_object_get(item, "weight"), 1e-6, 1e-6) <= 1);
    CHECK(worst_of(first, json_object_get(item, "first"), 1e-9, 1e-5) <= 1);
    CHECK(worst_of(second, json_object_get(item, "second"), 1e-12, 1e-5) <= 1);
}

TEST(equals_the_float64_reference)
{
    json_t *vectors = load_vectors();
    size_t index;
    json_t *item;
    CHECK(json_array_size(json_object_get(vectors, "adamw")) >= 3);
    json_array_foreach(json_object_get(vectors, "adamw"), index, item) check_case(item);
    json_decref(vectors);
}

/* baseline.md 13.15: whatever the size of the gradient, the first step is lr against its sign. */
TEST(the_first_step_is_lr_times_sign)
{
    for (double size = 1e-8; size < 1e9; size *= 100) {
        float weight[2] = {0, 0}, gradient[2] = {(float)size, (float)-size}, first[2] = {0}, second[2] = {0};
        fr_adamw_options options = {.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-12, .step = 1};
        fr_adamw_update(weight, gradient, first, second, 2, &options);
        CHECK_NEAR(weight[0], -0.01, 0, 1e-3);
        CHECK_NEAR(weight[1], 0.01, 0, 1e-3);
    }
}

TEST(a_zero_gradient_only_decays)
{
    float weight = 2, gradient = 0, first = 0, second = 0;
    fr_adamw_options options = {
        .lr = 0.1, .decay = 0.5, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-10, .step = 1};
    fr_adamw_update(&weight, &gradient, &first, &second, 1, &options);
    CHECK_NEAR(weight, 1.9, 0, 1e-6);
    CHECK(first == 0 && second == 0);
}

TEST(may_be_cut_anywhere)
{
    enum { N = 101 };
    float a[4][N], b[4][N];
    for (int i = 0; i < 4; i++) {
        draw_numbers((uint64_t)i + 1, a[i], N, 1);
        for (int j = 0; j < N && i == 3; j++)
            a[i][j] = fabsf(a[i][j]);
    }
    memcpy(b, a, sizeof a);
    fr_adamw_options options = {
        .lr = 0.1, .decay = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-10, .step = 7};
    fr_adamw_update(a[0], a[1], a[2], a[3], N, &options);
    fr_adamw_update(b[0], b[1], b[2], b[3], 13, &options);
    fr_adamw_update(b[0] + 13, b[1] + 13, b[2] + 13, b[3] + 13, N - 13, &options);
    CHECK(memcmp(a, b, sizeof a) == 0);
}

TEST_MAIN(adamw)
