/* Whole models on the reference kernels: gradients, row independence, causality, numerics, flops.
 */
#include "graph_model.h"

static const model_shape small = {
    .depth = 2, .heads = 2, .kv_heads = 1, .columns = 12, .vocab = 11, .padded_vocab = 13};
static const model_shape depth10 = {
    .depth = 10, .heads = 5, .kv_heads = 5, .columns = 640, .vocab = 8192, .padded_vocab = 8192};
static const char *const nats[] = {"nats"};

TEST(baseline_gradients_equal_differences)
{
    bench b;
    fr_graph *g = baseline_model(small);
    if (bench_create(&b, g, (fr_extent){2, 9}, 11))
        CHECK(gradient_error(g, &b, 12) < 1e-6);
    bench_free(&b);
    fr_graph_free(g);
}

TEST(every_trick_at_once_has_right_gradients)
{
    bench b;
    fr_graph *g = full_model();
    if (bench_create(&b, g, (fr_extent){2, 7}, 11))
        CHECK(gradient_error(g, &b, 12) < 1e-6);
    bench_free(&b);
    fr_graph_free(g);
}

/* What lay in the arena before must not matter: nothing is read that was not written. */
TEST(results_do_not_depend_on_old_arena_contents)
{
    bench b;
    fr_graph *g = full_model();
    if (bench_create(&b, g, (fr_extent){3, 6}, 11)) {
        size_t bytes = (size_t)b.elements * sizeof(double);
        double *first = fr_allocate(bytes);
        memset(b.arena, 0, b.arena_bytes);
        memset(b.gradients, 0, bytes);
        double loss = bench_run(&b);
        memcpy(first, b.gradients, bytes);
        memset(b.arena, 0xff, b.arena_bytes);
        memset(b.gradients, 0xff, bytes);
        CHECK(bench_run(&b) == loss);
        CHECK(memcmp(first, b.gradients, bytes) == 0);
        fr_deallocate(first);
    }
    bench_free(&b);
    fr_graph_free(g);
}

TEST(gradients_accumulate_when_asked)
{
    bench b;
    fr_graph *g = full_model();
    if (bench_create(&b, g, (fr_extent){1, 6}, 11)) {
        double *gradients = b.gradients, *once = fr_allocate((size_t)b.elements * sizeof *once);
        bench_run(&b);
        memcpy(once, gradients, (size_t)b.elements * sizeof *once);
        b.args.accumulate_gradients = true;
        bench_run(&b);
        for (int64_t i = 0; i < b.elements; i++)
            CHECK_NEAR(gradients[i], 2 * once[i], 1e-12, 1e-12);
        fr_deallocate(once);
    }
    bench_free(&b);
    fr_graph_free(g);
}

TEST(unused_parameters_have_zero_gradients)
{
    bench b;
    fr_graph *g = full_model();
    if (bench_create(&b, g, (fr_extent){1, 6}, 11)) {
        double *gradients = b.gradients;
        for (int64_t i = 0; i < b.elements; i++)
            gradients[i] = 77;
        bench_run(&b);
        int64_t end = 0;
        for (int p = 0; p < fr_graph_parameters(g); p++) {
            const fr_parameter_info *info = fr_graph_parameter(g, p);
            for (int64_t i = end; i < info->offset; i++)
                CHECK(gradients[i] == 0);
            end = info->offset + info->rows * info->columns;
            for (int64_t i = info->offset; i < end; i++)
                CHECK(strcmp(info->name, "unused") == 0 ? gradients[i] == 0 : gradients[i] != 77);
        }
        for (int64_t i = end; i < b.elements; i++)
            CHECK(gradients[i] == 0);
    }
    bench_free(&b);
    fr_graph_free(g);
}

/* Row r of a batch gives the very bits it gives alone. */
TEST(rows_are_independent)
{
    fr_graph *g = full_model();
    fr_plan_options options = {.extent = {3, 7},
                               .numerics = FR_NUMERICS_BF16,
                               .outputs = nats,
                               .output_count = 1};
    bench together, alone;
    bool ready = bench_open(&together, g, &options, 11);
    options.extent.rows = 1;
    ready = bench_open(&alone, g, &options, 11) && ready;
    if (ready)
        bench_run(&together);
    for (int64_t row = 0; ready && row < 3; row++) {
        memcpy(alone.tokens, together.tokens + 7 * row, 7 * sizeof *alone.tokens);
        memcpy(alone.targets, together.targets + 7 * row, 7 * sizeof *alone.targets);
        bench_run(&alone);
        for (int64_t t = 0; t < 7; t++)
            CHECK(bench_output(&alone, "nats", t) == bench_output(&together, "nats", 7 * row + t));
    }
    bench_free(&together);
    bench_free(&alone);
    fr_graph_free(g);
}

TEST(later_tokens_do_not_reach_back)
{
    fr_graph *g = full_model();
    fr_plan_options options = {.extent = {1, 9},
                               .numerics = FR_NUMERICS_F64,
                               .outputs = nats,
                               .output_count = 1};
    bench b;
    if (bench_open(&b, g, &options, 11))
        for (int64_t changed = 1; changed < 9; changed++) {
            double before[9];
            bench_run(&b);
            for (int64_t t = 0; t < changed; t++)
                before[t] = bench_output(&b, "nats", t);
            b.tokens[changed] = (b.tokens[changed] + 1) % 11;
            bench_run(&b);
            for (int64_t t = 0; t < changed; t++)
                CHECK(bench_output(&b, "nats", t) == before[t]);
        }
    bench_free(&b);
    fr_graph_free(g);
}

/* nats are those of the logits; the loss is their scaled sum; -1 counts nothing. */
TEST(nats_agree_with_logits)
{
    static const char *const outputs[] = {"nats", "logits", "loss"};
    fr_graph *g = baseline_model(small);
    fr_plan_options options = {.extent = {2, 6},
                               .numerics = FR_NUMERICS_F64,
                               .outputs = outputs,
                               .output_count = 3};
    bench b;
    if (bench_open(&b, g, &options, 11)) {
        double total = 0, loss = bench_run(&b);
        for (int64_t t = 0; t < 12; t++) {
            double sum = 0, target = 0;
            for (int v = 0; v < 11; v++) {
                double z = bench_output(&b, "logits", t * 11 + v);
                sum += exp(z);
                target = v == b.targets[t] ? z : target;
            }
            double want = b.targets[t] < 0 ? 0 : log(sum) - target;
            CHECK_NEAR(bench_output(&b, "nats", t), want, 1e-12, 1e-12);
            total += want;
        }
        CHECK_NEAR(loss, 0.37 * total, 1e-12, 1e-12);
    }
    bench_free(&b);
    fr_graph_free(g);
}

/* The gradient vector of a run, as doubles. */
static double *gradients_of(const bench *b)
{
    double *copy = fr_allocate((size_t)b->elements * sizeof *copy);
    fr_load_doubles(b->gradients, b->numerics == FR_NUMERICS_F64 ? FR_F64 : FR_F32, 0, b->elements, copy);
    return copy;
}

/* |a - b| / |b| */
static double distance(const double *a, const double *b, int64_t count)
{
    double difference = 0, length = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        length += b[i] * b[i];
    }
    return sqrt(difference / length);
}

/* fp32 and bf16 follow double as far as their digits go, in loss and gradients. */
TEST(numerics_agree)
{
    static const struct {
        fr_numerics numerics;
        bool residual_bf16;
        double loss, gradients; /* tolerances */
    } levels[] = {{FR_NUMERICS_F64, false, 0, 0},
                  {FR_NUMERICS_F32, false, 1e-6, 1e-5},
                  {FR_NUMERICS_BF16, false, 0.01, 0.03},
                  {FR_NUMERICS_BF16, true, 0.02, 0.05}};
    fr_graph *g = full_model();
    double *exact = NULL, loss = 0;
    for (int i = 0; i < 4; i++) {
        fr_plan_options options = {.extent = {2, 8}, .train = true, .outputs = (const char *[]){"loss"}};
        options.output_count = 1;
        options.numerics = levels[i].numerics;
        options.residual_bf16 = levels[i].residual_bf16;
        bench b;
        if (bench_open(&b, g, &options, 11)) {
            double got = bench_run(&b), *gradients = gradients_of(&b);
            loss = i ? loss : got;
            exact = i ? exact : gradients;
            CHECK_NEAR(got, loss, 0, levels[i].loss);
            CHECK_NEAR(distance(gradients, exact, b.elements), 0, levels[i].gradients, 0);
            if (i)
                fr_deallocate(gradients);
        }
        bench_free(&b);
    }
    fr_deallocate(exact);
    fr_graph_free(g);
}

TEST(a_run_allocates_nothing)
{
    fr_graph *g = full_model();
    bench b;
    if (bench_create(&b, g, (fr_extent){1, 6}, 11)) {
        fr_allocate_fail_after(0);
        bench_run(&b);
        fr_allocate_fail_after(-1);
    }
    bench_free(&b);
    fr_graph_free(g);
}

TEST(a_missing_loss_scale_is_one)
{
    fr_graph *g = baseline_model(small);
    fr_plan_options options = {.extent = {1, 4}, .outputs = (const char *[]){"loss"}, .output_count = 1};
    bench b;
    if (bench_open(&b, g, &options, 11)) {
        double scaled = bench_run(&b);
        b.args.input_count = 3;
        CHECK_NEAR(bench_run(&b), scaled / 0.37, 0, 1e-6);
    }
    bench_free(&b);
    fr_graph_free(g);
}

/* Published figures of the kit: parameters and FLOPs per token, with and without the causal half. */
TEST(the_baseline_has_its_published_size)
{
    fr_error error = {0};
    fr_graph *g = baseline_model(depth10);
    CHECK_OK(fr_graph_check(g, &error));
    CHECK_INT(fr_graph_parameter_elements(g), 59637780);
    fr_plan_options options = {.extent = {1, 1024}, .numerics = FR_NUMERICS_BF16, .train = true};
    fr_plan *plan = NULL;
    CHECK_OK(fr_plan_create(&plan, g, &options, &error));
    double M = 49152000 + 5242880, attention = 10 * 12.0 * 5 * 128 * 1024;
    CHECK_NEAR(fr_plan_flops(plan, true) / 1024, 6 * M + attention, 1, 0);
    CHECK_NEAR(fr_plan_flops(plan, true) / 1024, 4.050e8, 0, 1e-3);
    CHECK_NEAR(fr_plan_flops(plan, false) / 1024, 6 * M + attention * 1025 / 2048, 1, 0);
    fr_plan_free(plan);
    options = (fr_plan_options){.extent = {1, 1024}, .outputs = nats, .output_count = 1};
    CHECK_OK(fr_plan_create(&plan, g, &options, &error));
    CHECK_NEAR(fr_plan_flops(plan, true) / 1024, 2 * M + attention / 3, 1, 0);
    fr_plan_free(plan);
    fr_graph_free(g);
}

/* A window of w keys costs 12 H d w by convention and the exact number of pairs otherwise. */
TEST(windows_are_counted)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *x = leaf(g, "x", 20, 8);
    probe(g, fr_attention(g, x, x, x, (fr_attention_options){.heads = 2, .kv_heads = 2, .window = 6}));
    fr_plan_options options = {.extent = {1, 20}, .outputs = (const char *[]){"loss"}, .output_count = 1};
    fr_plan *plan = NULL;
    fr_error error = {0};
    CHECK_OK(fr_plan_create(&plan, g, &options, &error));
    double pairs = 0;
    for (int i = 0; i < 20; i++)
        pairs += i < 6 ? i + 1 : 7;
    CHECK_NEAR(fr_plan_flops(plan, false), 4 * 8 * pairs, 1e-6, 0);
    CHECK_NEAR(fr_plan_flops(plan, true), 4 * 8 * 20 * 6, 1e-6, 0);
    fr_plan_free(plan);
    fr_graph_free(g);
}

TEST_MAIN(graph_model)
