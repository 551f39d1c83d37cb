/* tests/unit/test_reference.c: the whole model against an independent implementation.
 *
 * lab/model_reference.py computes loss, logits, gradients and 20 optimizer steps of two small models in JAX and
 * float64; its results are in tests/vectors. Here the same models come from recipes, run in fp32 on the reference
 * kernels and on this processor's, and must agree: loss, logits and gradients to 1e-4, twenty losses to 1e-3,
 * every group's weights after them to 5e-3 of their norm.
 */
#include <string.h>

#include "frontier/cpu.h"
#include "frontier/model.h"
#include "frontier/train.h"
#include "test.h"

enum { ROWS = 4, T = 24, N = ROWS * T, VOCAB = 61, STEPS = 20 };

static const char kit[] = "model.depth=3 model.width=32 model.head_dim=16 model.context=24 "
                          "model.windows=\"L\" model.numerics=\"fp32\" "
                          "optim.batch_tokens=96 optim.shards=4 optim.clip=0.0 optim.momentum=0.95 "
                          "schedule.warm=0.0 schedule.cool=0.75 schedule.floor=0.05";
static const char nanochat[] =
    "model.depth=4 model.width=32 model.head_dim=8 model.kv_heads=2 model.context=24 model.windows=\"SSSL\" "
    "model.short_window=5 "
    "model.qk_gain=1.2 model.value_embeddings=true model.smear=true model.backout=true "
    "model.numerics=\"fp32\" optim.batch_tokens=96 optim.shards=4 optim.clip=0.0 "
    "optim.matrix_decay=0.28 optim.momentum=0.97 optim.momentum_steps=400 optim.muon_equalize=true "
    "optim.muon_plus=true optim.head_lr=0.008 "
    "optim.scalar_lr=0.05 optim.scalar_beta1=0.8 optim.resid_lr_factor=0.01 schedule.warm=0.1 "
    "schedule.cool=0.65 schedule.floor=0.05 schedule.decay=\"cosine\"";

typedef struct fixture {
    fr_recipe recipe;
    fr_graph *graph;
    fr_plan *plan;
    fr_tensor_file *file;
    void *arena;
    float *parameters, *gradients;
    int32_t inputs[N], targets[N];
    float loss_scale;
} fixture;

/* Uniform in [-0.5, 0.5): the hash of lab/model_reference.py. */
static double hash_uniform(uint64_t index, uint64_t salt)
{
    uint64_t x = (index * UINT64_C(2654435761) + 12345 * (salt + 1)) & 0xffffffff;
    x ^= x >> 15;
    x = (x * UINT64_C(2246822519)) & 0xffffffff;
    x ^= x >> 13;
    return (double)x / 4294967296.0 - 0.5;
}

static void set_tokens(fixture *f, int step)
{
    int valid = 0;
    for (int r = 0; r < ROWS; r++)
        for (int t = 0; t <= T; t++) {
            double u = hash_uniform((uint64_t)(r * (T + 1) + t), (uint64_t)(1000 + step)) + 0.5;
            int32_t id = (int32_t)floor(u * u * VOCAB);
            if (t < T)
                f->inputs[r * T + t] = id;
            if (t > 0)
                f->targets[r * T + t - 1] = id;
        }
    f->targets[T + T - 1] = f->targets[T + T - 2] = -1;
    for (int i = 0; i < N; i++)
        valid += f->targets[i] >= 0;
    f->loss_scale = 1.0f / (float)valid;
}

/* Center and spread of a parameter's first values, as lab/model_reference.py has them. */
static void start_of(const char *name, double *center, double *spread)
{
    static const struct {
        const char *part;
        double center, spread;
    } table[] = {{"wte.weight", 0, 2.0},   {"lm_head", 0, 0.6},       {"attn.c_proj", 0, 0.4},
                 {"attn.ve_gate", 0, 0.3}, {"attn.c_", 0, 0.6},       {"mlp.c_fc", 0, 0.4},
                 {"mlp.c_proj", 0, 0.3},   {"value_embeds", 0, 0.6},  {"smear_gate", 0, 0.3},
                 {"smear_lambda", 0.3, 0}, {"backout_lambda", 0.2, 0}};
    int layer = 0;
    sscanf(name, "transformer.h.%d.", &layer);
    *center = strstr(name, "resid_lambda") ? 1.1 - 0.03 * layer : 0.2 - 0.04 * layer;
    *spread = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strstr(name, table[i].part)) {
            *center = table[i].center;
            *spread = table[i].spread;
            return;
        }
}

/* The salt of a parameter is its place in the order of names. */
static void set_parameters(fixture *f)
{
    int count = fr_graph_parameters(f->graph);
    for (int i = 0; i < count; i++) {
        const fr_parameter_info *p = fr_graph_parameter(f->graph, i);
        uint64_t salt = 0;
        double center, spread;
        for (int j = 0; j < count; j++)
            salt += strcmp(fr_graph_parameter(f->graph, j)->name, p->name) < 0;
        start_of(p->name, &center, &spread);
        for (int64_t k = 0; k < p->rows * p->columns; k++)
            f->parameters[p->offset + k] = (float)(center + spread * hash_uniform((uint64_t)k, salt));
    }
}

static bool setup(fixture *f, const char *settings, const char *vectors, bool reference)
{
    fr_error error = {0};
    char text[1400], path[300];
    const fr_kernel_table *kernels = NULL;
    memset(f, 0, sizeof *f);
    snprintf(text, sizeof text, "%s", settings);
    CHECK_OK(fr_recipe_defaults(&f->recipe, &error));
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        CHECK_OK(fr_recipe_set(&f->recipe, word, &error));
    f->graph = fr_graph_create(&error);
    CHECK_OK(fr_model_build(f->graph, &f->recipe, VOCAB, &error));
    if (!reference)
        CHECK_OK(fr_cpu_kernels(&kernels, &error));
    fr_plan_options options = {.extent = {ROWS, T},
                               .numerics = FR_NUMERICS_F32,
                               .train = true,
                               .outputs = (const char *const[]){"nats", "logits"},
                               .output_count = 2,
                               .kernels = kernels};
    CHECK_OK(fr_plan_create(&f->plan, f->graph, &options, &error));
    const char *top = getenv("TOP");
    snprintf(path, sizeof path, "%s/tests/vectors/%s", top ? top : ".", vectors);
    CHECK_OK(fr_tensor_file_open(&f->file, path, &error));
    size_t bytes = (size_t)fr_graph_flat_elements(f->graph) * sizeof(float);
    f->arena = fr_allocate(f->plan ? fr_plan_arena_bytes(f->plan) : 64);
    f->parameters = fr_allocate(bytes);
    f->gradients = fr_allocate(bytes);
    set_parameters(f);
    return test_failures == 0;
}

static void release(fixture *f)
{
    fr_tensor_file_close(f->file);
    fr_plan_free(f->plan);
    fr_graph_free(f->graph);
    fr_deallocate(f->arena);
    fr_deallocate(f->parameters);
    fr_deallocate(f->gradients);
}

/* Runs one batch; returns the mean loss. */
static double run_batch(fixture *f)
{
    fr_error error = {0};
    fr_binding bindings[] = {{"tokens", f->inputs}, {"targets", f->targets}, {"loss_scale", &f->loss_scale}};
    fr_run_args args = {.arena = f->arena,
                        .parameters = f->parameters,
                        .gradients = f->gradients,
                        .inputs = bindings,
                        .input_count = 3};
    CHECK_OK(fr_plan_run(f->plan, &args, &error));
    fr_dtype dtype;
    const float *nats = fr_plan_output(f->plan, f->arena, "nats", &dtype);
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += nats[i];
    return sum * f->loss_scale;
}

/* |got - want| / |want| over a whole tensor (Frobenius), against `most`. */
static void check_tensor(const char *name, const float *got, const float *want, int64_t count, double most)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        size += (double)want[i] * want[i];
    }
    double relative = sqrt(difference) / (sqrt(size) + 1e-12);
    if (!(relative <= most)) {
        char text[200];
        snprintf(text, sizeof text, "%.100s: differs by %.3g of its norm, %.3g allowed", name, relative,
                 most);
        test_fail(__FILE__, __LINE__, text);
    }
}

static void check_parameters(fixture *f, const char *prefix, const float *got, double most)
{
    for (int i = 0; i < fr_graph_parameters(f->graph); i++) {
        const fr_parameter_info *p = fr_graph_parameter(f->graph, i);
        char name[160];
        snprintf(name, sizeof name, "%s.%s", prefix, p->name);
        const fr_tensor_entry *entry = fr_tensor_file_find(f->file, name);
        CHECK(entry && entry->dtype == FR_F32 && entry->shape[0] * entry->shape[1] == p->rows * p->columns);
        if (entry)
            check_tensor(name, got + p->offset, entry->data, p->rows * p->columns, most);
    }
}

static void check_batch(const char *settings, const char *vectors, bool reference)
{
    fixture f;
    if (setup(&f, settings, vectors, reference)) {
        set_tokens(&f, 0);
        double loss = run_batch(&f);
        fr_dtype dtype;
        CHECK_NEAR(loss, *(const float *)fr_tensor_file_find(f.file, "loss")->data, 0, 1e-5);
        check_tensor("nats", fr_plan_output(f.plan, f.arena, "nats", &dtype),
                     fr_tensor_file_find(f.file, "nats")->data, N, 1e-4);
        check_tensor("logits", fr_plan_output(f.plan, f.arena, "logits", &dtype),
                     fr_tensor_file_find(f.file, "logits")->data, (int64_t)T * VOCAB, 1e-4);
        check_parameters(&f, "grad", f.gradients, 1e-4);
    }
    release(&f);
}

static void check_training(const char *settings, const char *vectors)
{
    fixture f;
    fr_error error = {0};
    fr_optimizer *optimizer = NULL;
    if (setup(&f, settings, vectors, false)) {
        CHECK_OK(fr_optimizer_create(&optimizer, f.graph, &f.recipe, NULL, &error));
        const float *losses = fr_tensor_file_find(f.file, "losses")->data;
        for (int step = 0; step < STEPS && optimizer; step++) {
            fr_step_scalars scalars;
            set_tokens(&f, step);
            CHECK_NEAR(run_batch(&f), losses[step], 1e-3, 0);
            fr_step_scalars_at(&f.recipe, (double)step / STEPS, step, &scalars);
            CHECK_OK(fr_optimizer_step(optimizer, f.parameters, f.gradients, &scalars, &error));
        }
        check_parameters(&f, "final", f.parameters, 5e-3);
    }
    fr_optimizer_free(optimizer);
    release(&f);
}

TEST(kit_batch_on_reference_kernels)
{
    check_batch(kit, "model_kit.safetensors", true);
}
TEST(kit_batch_on_this_processor)
{
    check_batch(kit, "model_kit.safetensors", false);
}
TEST(kit_twenty_steps)
{
    check_training(kit, "model_kit.safetensors");
}
TEST(nanochat_batch_on_reference_kernels)
{
    check_batch(nanochat, "model_nanochat.safetensors", true);
}
TEST(nanochat_batch_on_this_processor)
{
    check_batch(nanochat, "model_nanochat.safetensors", false);
}
TEST(nanochat_twenty_steps)
{
    check_training(nanochat, "model_nanochat.safetensors");
}

TEST_MAIN(reference)
