/* The processor module from outside: plans on fast kernels only, the same bits for any batch and any threads,
 * prepared weights, flat vectors, the peak, and no thread but ours.
 */
#include "frontier/cpu.h"
#include "test.h"

#include <dirent.h>
#include <pthread.h>

enum { VOCAB = 70, WIDTH = 48, T = 40, MOST_ROWS = 5 };

/* A small transformer block between embedding and head: enough to go through every kind of kernel. */
static fr_graph *make_graph(void)
{
    fr_error error = {0};
    fr_graph *g = fr_graph_create(&error);
    fr_tensor *ids = fr_input_ids(g, "tokens"), *targets = fr_input_ids(g, "targets");
    fr_tensor *x = fr_embed(g, fr_parameter(g, "wte", 128, WIDTH, fr_init_normal(1), "embedding"), ids);
    fr_tensor *h = fr_rms_norm(g, x, (fr_norm_options){0});
    fr_tensor *q = fr_linear(g, h, fr_parameter(g, "q", WIDTH, WIDTH, fr_init_normal(0.2), "matrix"));
    fr_tensor *k = fr_linear(g, h, fr_parameter(g, "k", WIDTH / 2, WIDTH, fr_init_normal(0.2), "matrix"));
    fr_tensor *v = fr_linear(g, h, fr_parameter(g, "v", WIDTH / 2, WIDTH, fr_init_normal(0.2), "matrix"));
    q = fr_rotary(g, q, (fr_rotary_options){.heads = 4, .base = 10000, .norm = true});
    k = fr_rotary(g, k, (fr_rotary_options){.heads = 2, .base = 10000, .norm = true});
    fr_tensor *y = fr_attention(g, q, k, v, (fr_attention_options){.heads = 4, .kv_heads = 2, .window = 17});
    x = fr_add(g, x, fr_linear(g, y, fr_parameter(g, "o", WIDTH, WIDTH, fr_init_normal(0.2), "matrix")));
    fr_tensor *u = fr_linear(g, fr_rms_norm(g, x, (fr_norm_options){0}),
                             fr_parameter(g, "fc", 4 * WIDTH, WIDTH, fr_init_normal(0.2), "matrix"));
    x = fr_add(g, x,
               fr_linear(g, fr_relu_squared(g, u),
                         fr_parameter(g, "proj", WIDTH, 4 * WIDTH, fr_init_normal(0.1), "matrix")));
    fr_tensor *head = fr_parameter(g, "head", 128, WIDTH, fr_init_normal(0.5), "head");
    fr_head_loss(g, fr_rms_norm(g, x, (fr_norm_options){0}), head, targets,
                 (fr_head_options){.vocab = VOCAB, .softcap = 15});
    CHECK_OK(fr_graph_check(g, &error));
    return g;
}

typedef struct outcome {
    float nats[MOST_ROWS * T];
    float *gradients;
} outcome;

/* Runs rows first .. first + rows - 1 of the test's data. */
static void run_rows(const fr_graph *g, fr_numerics numerics, const fr_kernel_table *kernels,
                     const fr_prepared *prepared, bool train, int64_t first, int64_t rows, fr_pool *pool,
                     outcome *out)
{
    fr_error error = {0};
    fr_plan *plan = NULL;
    const char *names[] = {"nats"};
    fr_plan_options options = {.extent = {rows, T},
                               .numerics = numerics,
                               .train = train,
                               .outputs = names,
                               .output_count = 1,
                               .kernels = kernels};
    CHECK_OK(fr_plan_create(&plan, g, &options, &error));
    if (!plan)
        return;
    int32_t tokens[MOST_ROWS * T], targets[MOST_ROWS * T];
    for (int i = 0; i < MOST_ROWS * T; i++) {
        tokens[i] = (int32_t)(fr_rng_at(1, 1, (uint64_t)i) % VOCAB);
        targets[i] = (int32_t)(fr_rng_at(1, 2, (uint64_t)i) % VOCAB);
    }
    size_t flat = sizeof(float) * (size_t)fr_graph_flat_elements(g);
    float *parameters = fr_allocate(flat);
    void *arena = fr_allocate(fr_plan_arena_bytes(plan));
    fr_graph_initialize(g, 5, NULL, parameters);
    out->gradients = train ? fr_allocate(flat) : NULL;
    fr_binding inputs[] = {{"tokens", tokens + first * T}, {"targets", targets + first * T}};
    fr_run_args args = {.arena = arena,
                        .parameters = parameters,
                        .prepared = fr_prepared_table(prepared),
                        .gradients = out->gradients,
                        .inputs = inputs,
                        .input_count = 2,
                        .pool = pool};
    CHECK_OK(fr_plan_run(plan, &args, &error));
    fr_dtype dtype;
    const void *nats = fr_plan_output(plan, arena, "nats", &dtype);
    CHECK(nats && dtype == FR_F32);
    if (nats)
        memcpy(out->nats, nats, sizeof(float) * (size_t)(rows * T));
    fr_deallocate(parameters);
    fr_deallocate(arena);
    fr_plan_free(plan);
}

static const fr_kernel_table *kernels_here(void)
{
    const fr_kernel_table *table = NULL;
    fr_error error = {0};
    CHECK_OK(fr_cpu_kernels(&table, &error));
    return table;
}

TEST(fast_equals_reference)
{
    fr_graph *g = make_graph();
    int64_t flat = fr_graph_flat_elements(g);
    for (int n = 0; n < 2; n++) {
        outcome fast, slow;
        run_rows(g, (fr_numerics)n, kernels_here(), NULL, true, 0, 2, NULL, &fast);
        run_rows(g, (fr_numerics)n, NULL, NULL, true, 0, 2, NULL, &slow);
        double tolerance = n == FR_NUMERICS_BF16 ? 0.1 : 1e-4, worst = 0, scale = 0;
        for (int i = 0; i < 2 * T; i++)
            CHECK_NEAR(fast.nats[i], slow.nats[i], tolerance, 0);
        for (int64_t i = 0; i < flat; i++) {
            worst = fmax(worst, fabs((double)fast.gradients[i] - (double)slow.gradients[i]));
            scale = fmax(scale, fabs((double)slow.gradients[i]));
        }
        CHECK(worst <= tolerance * scale);
        fr_deallocate(fast.gradients);
        fr_deallocate(slow.gradients);
    }
    fr_graph_free(g);
}

/* A row's nats: alone, in a batch, and on three threads. */
TEST(a_score_does_not_know_its_batch)
{
    fr_graph *g = make_graph();
    fr_error error = {0};
    fr_pool *pool = NULL;
    CHECK_OK(fr_pool_create(&pool, 3, &error));
    for (int n = 0; n < 2; n++) {
        outcome all, part, threads;
        run_rows(g, (fr_numerics)n, kernels_here(), NULL, false, 0, MOST_ROWS, NULL, &all);
        run_rows(g, (fr_numerics)n, kernels_here(), NULL, false, 0, MOST_ROWS, pool, &threads);
        CHECK(memcmp(all.nats, threads.nats, sizeof all.nats) == 0);
        for (int64_t r = 0; r < MOST_ROWS; r++) {
            run_rows(g, (fr_numerics)n, kernels_here(), NULL, false, r, 1, r % 2 ? pool : NULL, &part);
            CHECK(memcmp(all.nats + r * T, part.nats, sizeof(float) * T) == 0);
        }
    }
    fr_pool_free(pool);
    fr_graph_free(g);
}

TEST(prepared_weights_and_threads_change_no_gradient)
{
    fr_graph *g = make_graph();
    fr_error error = {0};
    fr_pool *pool = NULL;
    size_t flat = sizeof(float) * (size_t)fr_graph_flat_elements(g);
    float *parameters = fr_allocate(flat);
    fr_graph_initialize(g, 5, NULL, parameters);
    CHECK_OK(fr_pool_create(&pool, 3, &error));
    for (int n = 0; n < 2; n++) {
        fr_prepared *prepared = NULL;
        outcome plain, other;
        CHECK_OK(fr_prepared_create(&prepared, g, (fr_numerics)n, kernels_here(), &error));
        fr_prepared_refresh(prepared, parameters, pool);
        CHECK(kernels_here()->reference_only ||
              (fr_prepared_bytes(prepared) > 0 && fr_prepared_table(prepared)));
        run_rows(g, (fr_numerics)n, kernels_here(), NULL, true, 0, 3, NULL, &plain);
        run_rows(g, (fr_numerics)n, kernels_here(), prepared, true, 0, 3, pool, &other);
        CHECK(memcmp(plain.gradients, other.gradients, flat) == 0);
        fr_deallocate(plain.gradients);
        fr_deallocate(other.gradients);
        fr_prepared_free(prepared);
    }
    fr_deallocate(parameters);
    fr_pool_free(pool);
    fr_graph_free(g);
}

TEST(preparing_survives_lack_of_memory)
{
    fr_graph *g = make_graph();
    fr_status status = FR_BAD_ENVIRONMENT;
    for (int n = 0; n < 100 && status != FR_OK; n++) {
        fr_error error = {0};
        fr_prepared *prepared = NULL;
        fr_allocate_fail_after(n);
        status = fr_prepared_create(&prepared, g, FR_NUMERICS_F32, kernels_here(), &error);
        fr_allocate_fail_after(-1);
        CHECK(status == FR_OK ? prepared != NULL : status == FR_BAD_ENVIRONMENT && error.what[0]);
        fr_prepared_free(prepared);
    }
    CHECK_INT(status, FR_OK);
    fr_graph_free(g);
}

TEST(vectors_have_the_same_bits_on_any_threads)
{
    fr_error error = {0};
    fr_pool *pool = NULL;
    CHECK_OK(fr_pool_create(&pool, 3, &error));
    const int64_t counts[] = {0, 1, 7, 255, 2049, 100003};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int64_t n = counts[c];
        float *a = fr_allocate(sizeof(float) * (size_t)(n + 1)),
              *b = fr_allocate(sizeof(float) * (size_t)(n + 1));
        double want = 0;
        for (int64_t i = 0; i < n; i++) {
            a[i] = b[i] = (float)fr_rng_normal_at(1, 1, (uint64_t)i);
            want += (double)a[i] * (double)a[i];
        }
        double one = fr_vector_sum_squares(a, n, NULL), many = fr_vector_sum_squares(a, n, pool);
        CHECK(memcmp(&one, &many, sizeof one) == 0);
        CHECK_NEAR(one, want, 0, 1e-12);
        fr_vector_add(a, b, n, pool);
        for (int64_t i = 0; i < n; i++)
            CHECK(a[i] == 2 * b[i]);
        fr_deallocate(a);
        fr_deallocate(b);
    }
    fr_pool_free(pool);
}

static int count_threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

TEST(peak_is_measured_on_our_threads_alone)
{
    fr_peak peak;
    fr_error error = {0};
    int before = count_threads();
    CHECK_OK(fr_cpu_peak(2, 0.05, &peak, &error));
    CHECK(peak.register_loop > 1e8 && peak.library_product > 1e8);
    CHECK(peak.flops >= peak.register_loop && peak.flops >= peak.library_product);
    CHECK_INT(count_threads(), before); /* the library left no threads of its own */
    CHECK_INT(fr_cpu_peak(0, 1, &peak, &error), FR_BAD_USAGE);
}

TEST(features_name_the_processor)
{
    fr_cpu_features f;
    fr_cpu_detect(&f);
    CHECK(f.name[0] && f.path && memchr(f.name, 0, sizeof f.name));
    CHECK(!f.avx512 || f.avx2);
    CHECK(strncmp(fr_cpu_library_version(), "oneDNN ", 7) == 0);
    printf("# %s, kernels %s, %s\n", f.name, f.path, fr_cpu_library_version());
}

TEST_MAIN(cpu)
