/* Plans: the memory layout, which nodes run, which kernels, what a run refuses, how failures are named.
 */
#include "graph/plan_internal.h"
#include "graph_model.h"

static const model_shape small = {
    .depth = 2, .heads = 2, .kv_heads = 1, .columns = 12, .vocab = 11, .padded_vocab = 13};
static const model_shape depth10 = {
    .depth = 10, .heads = 5, .kv_heads = 5, .columns = 640, .vocab = 8192, .padded_vocab = 8192};
static const char *const nats[] = {"nats"};
static fr_error error;

/* ---- memory ---- */

static bool overlap(const fr_block *a, const fr_block *b)
{
    bool in_time = a->first <= b->last && b->first <= a->last;
    return in_time && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static void check_layout(const fr_block *blocks, int count, size_t total)
{
    int bad = 0;
    for (int i = 0; i < count; i++) {
        bad += blocks[i].offset % 64 != 0 || blocks[i].offset + blocks[i].bytes > total;
        for (int j = 0; j < i; j++)
            bad += overlap(&blocks[i], &blocks[j]);
    }
    CHECK_INT(bad, 0);
}

/* The most bytes alive at one step: no layout can be smaller. */
static size_t lower_bound(const fr_block *blocks, int count, int steps)
{
    size_t most = 0;
    for (int s = 0; s <= steps; s++) {
        size_t alive = 0;
        for (int i = 0; i < count; i++)
            if (blocks[i].first <= s && s <= blocks[i].last)
                alive += (blocks[i].bytes + 63) / 64 * 64;
        most = alive > most ? alive : most;
    }
    return most;
}

TEST(random_blocks_never_overlap)
{
    enum { MOST = 150 };
    fr_block blocks[MOST];
    int order[MOST];
    fr_rng rng = {.seed = 8};
    for (int round = 0; round < 200; round++) {
        int count = (int)fr_rng_below(&rng, MOST) + 1, steps = (int)fr_rng_below(&rng, 60) + 1;
        for (int i = 0; i < count; i++) {
            int first = (int)fr_rng_below(&rng, (uint64_t)steps);
            blocks[i] =
                (fr_block){.bytes = fr_rng_below(&rng, 1u << fr_rng_below(&rng, 16)) + 1, .first = first};
            blocks[i].last = first + (int)fr_rng_below(&rng, (uint64_t)(steps - first));
        }
        size_t total = fr_layout(blocks, count, order);
        check_layout(blocks, count, total);
        CHECK(total >= lower_bound(blocks, count, steps));
    }
    CHECK_INT(fr_layout(blocks, 0, order), 0);
}

/* The arena values of a plan as blocks; returns how many. */
static int plan_blocks(const fr_plan *plan, fr_block *blocks, int most)
{
    int count = 0;
    for (int v = 0; v < plan->value_count && count < most; v++) {
        const fr_value *value = &plan->values[v];
        if (value->base == FR_BASE_ARENA && value->first <= value->last)
            blocks[count++] = (fr_block){value->bytes, value->offset, value->first, value->last};
    }
    return count;
}

/* A chain of random operators on tensors picked at random, all of one width. */
static fr_graph *random_graph(fr_rng *rng)
{
    enum { NODES = 40, WIDTH = 8 };
    fr_tensor *made[NODES + 1];
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *a = fr_parameter(g, "a", 1, 1, fr_init_constant(0.5), "scalar");
    fr_tensor *w = fr_parameter(g, "w", WIDTH, WIDTH, fr_init_normal(0.3), "matrix");
    made[0] = fr_embed(g, fr_parameter(g, "table", 11, WIDTH, fr_init_normal(1), "embedding"),
                       fr_input_ids(g, "tokens"));
    int count = 1;
    while (count <= NODES) {
        fr_tensor *x = made[fr_rng_below(rng, (uint64_t)count)],
                  *y = made[fr_rng_below(rng, (uint64_t)count)], *z;
        switch (fr_rng_below(rng, 6)) {
        case 0:
            z = fr_add(g, x, y);
            break;
        case 1:
            z = fr_blend(g, a, x, a, y);
            break;
        case 2:
            z = fr_linear(g, x, w);
            break;
        case 3:
            z = fr_rms_norm(g, x, (fr_norm_options){.eps = 0.1});
            break;
        case 4:
            z = fr_attention(g, x, y, x, (fr_attention_options){.heads = 2, .kv_heads = 2});
            break;
        default:
            z = fr_gelu(g, x);
            break;
        }
        made[count++] = z;
    }
    probe(g, fr_add(g, made[NODES], made[NODES / 2]));
    return g;
}

TEST(random_graphs_are_laid_out_and_differentiated_right)
{
    fr_rng rng = {.seed = 21};
    for (int round = 0; round < 20; round++) {
        fr_graph *g = random_graph(&rng);
        bench b;
        if (bench_create(&b, g, (fr_extent){2, 3}, 11)) {
            fr_block blocks[1000];
            int count = plan_blocks(b.plan, blocks, 1000);
            check_layout(blocks, count, b.arena_bytes);
            memset(b.arena, 0xff, b.arena_bytes);
            CHECK(gradient_error(g, &b, 4) < 1e-5);
        }
        bench_free(&b);
        fr_graph_free(g);
    }
}

/* Training the baseline: what the backward pass needs must be kept, little else may be. Per layer and
 * token that is 3 streams of fp32 and 17 widths of bf16 (two norms, q k v twice less one, attention, 4 + 4
 * MLP, ...). */
TEST(the_baseline_fits)
{
    fr_graph *g = baseline_model(depth10);
    fr_plan_options options = {.extent = {1, 1024}, .numerics = FR_NUMERICS_BF16, .train = true};
    fr_plan *plan = NULL;
    CHECK_OK(fr_plan_create(&plan, g, &options, &error));
    fr_block blocks[2000];
    int count = plan_blocks(plan, blocks, 2000);
    size_t least = lower_bound(blocks, count, plan->step_count);
    printf("# baseline at 1 x 1024: %d steps, %.1f MiB, lower bound %.1f MiB\n", plan->step_count,
           (double)fr_plan_arena_bytes(plan) / 1048576, (double)least / 1048576);
    CHECK((double)fr_plan_arena_bytes(plan) <= 1.05 * (double)least);
    CHECK(fr_plan_arena_bytes(plan) < (size_t)292 << 20);
    fr_plan_free(plan);
    options.train = false;
    options.outputs = nats;
    options.output_count = 1;
    CHECK_OK(fr_plan_create(&plan, g, &options, &error));
    CHECK(fr_plan_arena_bytes(plan) < (size_t)64 << 20);
    fr_plan_free(plan);
    fr_graph_free(g);
}

TEST(equal_constants_are_shared)
{
    fr_graph *g = baseline_model(
        (model_shape){.depth = 3, .heads = 2, .kv_heads = 1, .columns = 12, .vocab = 11, .padded_vocab = 11});
    fr_plan_options options = {.extent = {1, 50}, .train = true};
    fr_plan *plan = NULL;
    CHECK_OK(fr_plan_create(&plan, g, &options, &error));
    CHECK(plan->constants && !plan->constants->next);
    const float *table = plan->constants->data;
    CHECK_NEAR(table[49 * 6], cos(49), 1e-7, 0);
    CHECK_NEAR(table[49 * 6 + 3 + 2], sin(49 * pow(100000, -2.0 / 3)), 1e-7, 0);
    fr_plan_free(plan);
    fr_graph_free(g);
}

/* ---- which steps ---- */

typedef struct seen {
    int forward, backward, head_loss, head_logits;
    const char *linear_kernel;
} seen;

static void see(void *context, const fr_node *node, fr_pass pass, const fr_kernel *kernel)
{
    seen *s = context;
    s->forward += pass == FR_FORWARD;
    s->backward += pass == FR_BACKWARD;
    s->head_loss += strcmp(node->op->name, "head_loss") == 0;
    s->head_logits += strcmp(node->op->name, "head_logits") == 0;
    if (strcmp(node->op->name, "linear") == 0 && pass == FR_FORWARD)
        s->linear_kernel = kernel->name;
}

static seen steps_of(const fr_graph *g, fr_plan_options options)
{
    seen s = {0};
    fr_plan *plan = NULL;
    error = (fr_error){0};
    if (options.extent.rows == 0)
        options.extent = (fr_extent){1, 4};
    CHECK_OK(fr_plan_create(&plan, g, &options, &error));
    if (plan)
        fr_plan_visit(plan, see, &s);
    fr_plan_free(plan);
    return s;
}

TEST(only_needed_nodes_run)
{
    fr_graph *g = baseline_model(small);
    seen s = steps_of(g, (fr_plan_options){.outputs = nats, .output_count = 1});
    CHECK(s.head_loss == 1 && s.head_logits == 0 && s.backward == 0 && s.forward == fr_graph_nodes(g) - 1);
    s = steps_of(g, (fr_plan_options){.outputs = (const char *[]){"logits"}, .output_count = 1});
    CHECK(s.head_loss == 0 && s.head_logits == 1);
    s = steps_of(g, (fr_plan_options){.outputs = (const char *[]){"hidden"}, .output_count = 1});
    CHECK(s.head_loss == 0 && s.head_logits == 0 && s.forward == fr_graph_nodes(g) - 2);
    s = steps_of(g, (fr_plan_options){.train = true});
    CHECK(s.head_loss == 1 && s.head_logits == 0);
    /* Each node but the loss goes back once; the first blend reads one tensor twice: a share step more. */
    CHECK_INT(s.backward, fr_graph_nodes(g) - 2 + 1);
    fr_graph_free(g);
}

/* The output of the first node that takes the tensor called `name`. */
static const char *user_of(const fr_graph *g, const char *name)
{
    const fr_tensor *tensor = fr_graph_find(g, name);
    for (int n = 0; n < fr_graph_nodes(g); n++)
        for (int i = 0; i < fr_graph_node(g, n)->inputs; i++)
            if (fr_graph_node(g, n)->in[i] == tensor)
                return fr_graph_node(g, n)->out[0]->name;
    return "(nobody)";
}

TEST(outputs_keep_their_memory)
{
    fr_graph *g = baseline_model(small);
    const char *inner = user_of(g, "h.0.fc"), *outputs[] = {"hidden", "logits", "nats", inner};
    fr_plan_options options = {
        .extent = {2, 5}, .numerics = FR_NUMERICS_BF16, .train = true, .outputs = outputs, .output_count = 4};
    bench b, alone;
    bool ready = bench_open(&b, g, &options, 11);
    options.train = false;
    ready = bench_open(&alone, g, &options, 11) && ready;
    if (ready) {
        fr_dtype dtype = FR_I32;
        bench_run(&b);
        bench_run(&alone);
        CHECK(fr_plan_output(b.plan, b.arena, "hidden", &dtype) && dtype == FR_BF16);
        CHECK(fr_plan_output(b.plan, b.arena, "logits", &dtype) && dtype == FR_F32);
        CHECK(!fr_plan_output(b.plan, b.arena, "loss", &dtype));
        for (int64_t i = 0; i < 10 * 48; i++)
            CHECK(bench_output(&alone, inner, i) == bench_output(&b, inner, i));
        for (int64_t i = 0; i < 10 * 11; i++)
            CHECK(bench_output(&alone, "logits", i) == bench_output(&b, "logits", i));
    }
    bench_free(&b);
    bench_free(&alone);
    fr_graph_free(g);
}

/* ---- what is refused ---- */

static void expect_refusal(const fr_graph *g, fr_plan_options options, fr_status status, const char *what)
{
    fr_plan *plan = (fr_plan *)&error;
    error = (fr_error){0};
    if (options.extent.rows == 0)
        options.extent = (fr_extent){1, 4};
    CHECK_INT(fr_plan_create(&plan, g, &options, &error), status);
    CHECK(plan == NULL);
    if (!strstr(error.what, what))
        test_fail(__FILE__, __LINE__, error.what);
}

TEST(impossible_plans_are_refused)
{
    fr_graph *g = baseline_model(small);
    expect_refusal(g, (fr_plan_options){0}, FR_BAD_USAGE, "nothing is wanted");
    expect_refusal(g, (fr_plan_options){.outputs = (const char *[]){"nuts"}, .output_count = 1}, FR_BAD_USAGE,
                   "no tensor");
    CHECK(strstr(error.hint, "nats") != NULL);
    expect_refusal(g, (fr_plan_options){.outputs = (const char *[]){"tokens"}, .output_count = 1},
                   FR_BAD_USAGE, "input");
    expect_refusal(g, (fr_plan_options){.extent = {-1, 4}, .train = true}, FR_BAD_USAGE, "-1 rows");
    expect_refusal(g, (fr_plan_options){.extent = {1, 0}, .train = true}, FR_BAD_USAGE, "0 tokens");
    expect_refusal(g, (fr_plan_options){.extent = {INT64_MAX, 2}, .train = true}, FR_BAD_USAGE, "2^31");
    fr_graph_free(g);
    g = baseline_model(depth10);
    fr_plan_options huge = {.extent = {1 << 20, 1 << 11}, .outputs = nats, .output_count = 1};
    expect_refusal(g, huge, FR_BAD_USAGE, "a tensor of more than");
    huge.extent.rows = 1 << 17;
    expect_refusal(g, (huge.train = true, huge), FR_BAD_USAGE, "bytes of memory");
    fr_graph_free(g);
    g = fr_graph_create(NULL);
    fr_tensor *x = leaf(g, "x", 4, 6);
    expect_refusal(g, (fr_plan_options){.train = true}, FR_BAD_USAGE, "named 'loss'");
    probe(g, fr_embed_positions(g, x, fr_parameter(g, "p", 4, 6, fr_init_constant(0), "m")));
    expect_refusal(g, (fr_plan_options){.extent = {2, 5}, .train = true}, FR_BAD_USAGE, "4 positions");
    fr_linear(g, x, x);
    expect_refusal(g, (fr_plan_options){.train = true}, FR_BAD_USAGE, "fixed number of rows");
    fr_graph_free(g);
}

TEST(losses_that_cannot_train_are_refused)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *x = leaf(g, "x", 4, 6), *head = fr_parameter(g, "head", 8, 6, fr_init_constant(1), "m");
    fr_tensor *first = fr_head_loss(g, x, head, fr_input_ids(g, "targets"), (fr_head_options){.vocab = 8});
    fr_name(g, first->producer->out[1], "inner");
    probe(g, first);
    expect_refusal(g, (fr_plan_options){.train = true}, FR_BAD_USAGE, "trains on its own");
    fr_graph_free(g);
    g = fr_graph_create(NULL);
    fr_name(g, fr_apply(g, &probe_op, (fr_tensor *[]){fr_input_scalar(g, "s")}, 1, NULL, 0), "loss");
    expect_refusal(g, (fr_plan_options){.train = true}, FR_BAD_USAGE, "any parameter");
    fr_graph_free(g);
}

static void expect_run_refused(const bench *b, const fr_run_args *args, fr_status status, const char *where)
{
    error = (fr_error){0};
    CHECK_INT(fr_plan_run(b->plan, args, &error), status);
    CHECK_STR(error.where, where);
}

TEST(bad_runs_are_refused_before_they_start)
{
    fr_graph *g = baseline_model(small);
    bench b;
    if (!bench_create(&b, g, (fr_extent){2, 5}, 11))
        return;
    fr_run_args args = b.args;
    args.arena = (char *)b.arena + 8;
    expect_run_refused(&b, &args, FR_BAD_USAGE, "arena");
    args = b.args;
    args.parameters = NULL;
    expect_run_refused(&b, &args, FR_BAD_USAGE, "parameters");
    args = b.args;
    args.gradients = NULL;
    expect_run_refused(&b, &args, FR_BAD_USAGE, "gradients");
    args = b.args;
    args.input_count = 2;
    expect_run_refused(&b, &args, FR_BAD_USAGE, "targets");
    b.tokens[7] = 13; /* one past the padded table */
    expect_run_refused(&b, &b.args, FR_BAD_DATA, "tokens");
    b.tokens[7] = -1;
    expect_run_refused(&b, &b.args, FR_BAD_DATA, "tokens");
    b.tokens[7] = 12;
    bench_run(&b);
    b.targets[9] = 11; /* in the padding: has no logit */
    expect_run_refused(&b, &b.args, FR_BAD_DATA, "targets");
    b.targets[9] = -2;
    expect_run_refused(&b, &b.args, FR_BAD_DATA, "targets");
    bench_free(&b);
    fr_graph_free(g);
}

/* ---- kernels ---- */

static void do_nothing(const fr_call *call)
{
    (void)call;
}

static bool only_bf16(const fr_call *call)
{
    return call->in_dtype[0] == FR_BF16 && call->tokens == 4 && call->node->in[1]->columns >= 12;
}

TEST(later_kernels_win_where_they_fit)
{
    static const fr_kernel first = {"linear", FR_FORWARD, "first", do_nothing, NULL, NULL};
    static const fr_kernel second = {"linear", FR_FORWARD, "second", do_nothing, NULL, only_bf16};
    static const fr_kernel *const kernels[] = {&first, &second};
    fr_kernel_table table = {kernels, 2, false, false};
    fr_graph *g = baseline_model(small);
    fr_plan_options options = {.outputs = nats,
                               .output_count = 1,
                               .kernels = &table,
                               .numerics = FR_NUMERICS_BF16};
    CHECK_STR(steps_of(g, options).linear_kernel, "second");
    options.numerics = FR_NUMERICS_F32;
    CHECK_STR(steps_of(g, options).linear_kernel, "first");
    table.reference_only = true;
    CHECK_STR(steps_of(g, options).linear_kernel, "linear_forward_reference");
    table.forbid_fallback = true; /* asked for by name: no silent fallback */
    CHECK_STR(steps_of(g, options).linear_kernel, "linear_forward_reference");
    table.reference_only = false;
    expect_refusal(g, options, FR_BAD_ENVIRONMENT, "no fast forward kernel");
    table.forbid_fallback = false;
    table.count = 0;
    CHECK_STR(steps_of(g, options).linear_kernel, "linear_forward_reference");
    fr_graph_free(g);
}

static const fr_op *operator(const char *name)
{
    int count;
    const fr_op *const *ops = fr_ops(&count);
    for (int i = 0; i < count; i++)
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    return NULL;
}

/* What the last linear call saw of its weight. */
static const void *seen_weight, *seen_copy;
static unsigned seen_wanted;

static void remember_weight(const fr_call *call)
{
    seen_weight = call->in[1];
    seen_copy = call->prepared[1];
    operator("linear")->reference[FR_FORWARD].run(call);
}

static size_t remember_wanted(const fr_call *call)
{
    seen_wanted |= call->wanted;
    return operator("linear")->reference[FR_FORWARD].scratch(call);
}

TEST(kernels_get_prepared_copies_and_know_what_is_wanted)
{
    fr_kernel forward = {"linear", FR_FORWARD, "remember", remember_weight, remember_wanted, NULL};
    const fr_kernel *kernels[] = {&forward};
    fr_kernel_table table = {kernels, 1, false, false};
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *x = leaf(g, "x", 4, 6);
    probe(g, fr_linear(g, x, fr_parameter(g, "w", 3, 6, fr_init_normal(1), "m")));
    fr_plan_options options = {.extent = {1, 4}, .train = true, .kernels = &table};
    bench b;
    if (bench_open(&b, g, &options, 4)) {
        const void *copies[2] = {NULL, "a copy"};
        bench_run(&b);
        CHECK(seen_weight == (float *)b.parameters + fr_graph_parameter(g, 1)->offset && seen_copy == NULL);
        b.args.prepared = copies;
        bench_run(&b);
        CHECK(seen_copy == copies[1]);
    }
    bench_free(&b);
    CHECK_INT(seen_wanted, 0);
    fr_kernel backward = operator("linear")->reference[FR_BACKWARD];
    backward.scratch = remember_wanted;
    kernels[0] = &backward;
    if (bench_open(&b, g, &options, 4))
        CHECK_INT(seen_wanted, 3);
    bench_free(&b);
    fr_graph_free(g);
}

TEST(scalars_are_read_at_every_run)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *x = leaf(g, "x", 3, 4), *fade = fr_input_scalar(g, "fade");
    probe(g, fr_add_scaled(g, x, 1, fade, x));
    bench b;
    if (bench_create(&b, g, (fr_extent){1, 3}, 3)) {
        double value = 0;
        b.inputs[1] = (fr_binding){"fade", &value};
        double without = bench_run(&b);
        value = 0.5;
        CHECK_NEAR(bench_run(&b), 1.5 * without, 1e-12, 0);
        CHECK(gradient_error(g, &b, 12) < 1e-6);
    }
    bench_free(&b);
    fr_graph_free(g);
}

/* Ids that index two tables must fit the smaller one. */
TEST(ids_must_fit_every_table_they_index)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *ids = fr_input_ids(g, "tokens");
    fr_tensor *large = fr_embed(g, fr_parameter(g, "large", 9, 2, fr_init_normal(1), "m"), ids);
    probe(g, fr_add(g, large, fr_embed(g, fr_parameter(g, "small", 5, 2, fr_init_normal(1), "m"), ids)));
    bench b;
    if (bench_create(&b, g, (fr_extent){1, 3}, 5)) {
        b.tokens[1] = 4;
        bench_run(&b);
        b.tokens[1] = 5;
        expect_run_refused(&b, &b.args, FR_BAD_DATA, "tokens");
        CHECK(strstr(error.what, "0..4") != NULL);
    }
    bench_free(&b);
    fr_graph_free(g);
}

static void count_time(void *context, const fr_node *node, fr_pass pass, int64_t ns)
{
    int *calls = context;
    (void)node;
    (void)pass;
    CHECK(ns >= 0);
    ++*calls;
}

TEST(the_profiler_sees_every_step)
{
    fr_graph *g = baseline_model(small);
    bench b;
    int calls = 0;
    if (bench_create(&b, g, (fr_extent){1, 3}, 11)) {
        b.args.timed = count_time;
        b.args.timed_context = &calls;
        bench_run(&b);
        CHECK_INT(calls, b.plan->step_count);
    }
    bench_free(&b);
    fr_graph_free(g);
}

/* ---- sharing a plan ---- */

typedef struct shared_run {
    bench *b;
    void *arenas[4];
    double *gradients[4];
    double loss[4];
} shared_run;

static void run_shared(void *context, int64_t index, int thread)
{
    shared_run *shared = context;
    (void)thread;
    fr_run_args args = shared->b->args;
    args.arena = shared->arenas[index];
    args.gradients = shared->gradients[index];
    fr_plan_run(shared->b->plan, &args, NULL);
    shared->loss[index] = *(const double *)fr_plan_output(shared->b->plan, args.arena, "loss", NULL);
}

TEST(threads_may_share_a_plan)
{
    fr_graph *g = full_model();
    bench b;
    fr_pool *pool = NULL;
    CHECK_OK(fr_pool_create(&pool, 4, &error));
    if (bench_create(&b, g, (fr_extent){2, 8}, 11)) {
        shared_run shared = {.b = &b};
        double loss = (bench_run(&b), bench_output(&b, "loss", 0));
        for (int i = 0; i < 4; i++) {
            shared.arenas[i] = fr_allocate(b.arena_bytes);
            shared.gradients[i] = fr_allocate((size_t)b.elements * sizeof(double));
        }
        fr_pool_for(pool, 4, run_shared, &shared);
        for (int i = 0; i < 4; i++) {
            CHECK(shared.loss[i] == loss);
            CHECK(memcmp(shared.gradients[i], b.gradients, (size_t)b.elements * sizeof(double)) == 0);
            fr_deallocate(shared.arenas[i]);
            fr_deallocate(shared.gradients[i]);
        }
    }
    fr_pool_free(pool);
    bench_free(&b);
    fr_graph_free(g);
}

/* ---- NaN and Inf ---- */

static void expect_nonfinite(const bench *b, const char *want)
{
    const char *name = "unset";
    CHECK_OK(fr_plan_find_nonfinite(b->plan, &b->args, &name, &error));
    if (want)
        CHECK_STR(name, want);
    else
        CHECK(name == NULL);
}

static float *parameter_of(const bench *b, const fr_graph *g, const char *name)
{
    return (float *)b->parameters + fr_graph_parameter(g, fr_graph_find(g, name)->parameter)->offset;
}

TEST(the_first_bad_tensor_is_named)
{
    fr_graph *g = baseline_model(small);
    fr_plan_options options = {.extent = {1, 4}, .numerics = FR_NUMERICS_BF16, .train = true};
    bench b;
    if (bench_open(&b, g, &options, 11)) {
        expect_nonfinite(&b, NULL);
        float *w = parameter_of(&b, g, "h.1.fc"), saved = *w;
        *w = NAN;
        expect_nonfinite(&b, "h.1.fc");
        *w = 1e38f;
        for (int i = 0; i < 12; i++)
            w[i] = i % 2 ? 3e38f : -3e38f;
        expect_nonfinite(&b, user_of(g, "h.1.fc"));
        for (int i = 0; i < 12; i++)
            w[i] = saved;
        b.scale_f32 = INFINITY;
        expect_nonfinite(&b, "loss_scale");
        b.scale_f32 = 1e37f;
        float *head = parameter_of(&b, g, "head");
        for (int i = 0; i < 13 * 12; i++)
            head[i] *= 1000;
        expect_nonfinite(&b, "gradient of hidden");
    }
    bench_free(&b);
    fr_graph_free(g);
}

/* ---- faults ---- */

TEST(memory_may_run_out_anywhere)
{
    fr_graph *g = full_model();
    fr_plan_options options = {.extent = {2, 300}, .train = true, .outputs = nats, .output_count = 1};
    int64_t allowed = 0;
    fr_status status = FR_BAD_ENVIRONMENT;
    for (; status != FR_OK && allowed < 1000; allowed++) {
        fr_plan *plan = NULL;
        fr_allocate_fail_after(allowed);
        status = fr_plan_create(&plan, g, &options, &error);
        fr_allocate_fail_after(-1);
        CHECK(status == FR_OK ? plan != NULL : status == FR_BAD_ENVIRONMENT && plan == NULL);
        fr_plan_free(plan);
    }
    CHECK(status == FR_OK && allowed > 2);
    fr_graph_free(g);
}

TEST_MAIN(graph_plan)
