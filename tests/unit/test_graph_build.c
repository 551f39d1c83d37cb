/* Building a graph: what it holds afterwards, and that the first mistake is kept and named. */
#include "frontier/graph.h"
#include "test.h"

static fr_graph *graph;
static fr_error error;

static void begin(void)
{
    error = (fr_error){0};
    graph = fr_graph_create(&error);
}

/* The graph has a mistake about `where` whose text contains `what`; everything after it is dead. */
static void expect_mistake(const char *where, const char *what)
{
    CHECK_INT(fr_graph_check(graph, &error), FR_BAD_USAGE);
    if (!strstr(error.where, where) || !strstr(error.what, what)) {
        char text[1000];
        snprintf(text, sizeof text, "wanted '%s' about '%s', got '%s: %s'", what, where, error.where,
                 error.what);
        test_fail(__FILE__, __LINE__, text);
    }
    int nodes = fr_graph_nodes(graph);
    fr_tensor *dead = fr_relu_squared(graph, fr_parameter(graph, "late", 2, 2, fr_init_constant(0), "m"));
    CHECK(dead && dead->producer && dead->producer->out[1] == dead);
    CHECK(fr_name(graph, dead, "x") == dead);
    CHECK_INT(fr_graph_nodes(graph), nodes);
    fr_graph_free(graph);
    graph = NULL;
}

static fr_tensor *tokens_by(int64_t columns)
{
    char name[32];
    snprintf(name, sizeof name, "table%lld", (long long)columns);
    return fr_embed(graph, fr_parameter(graph, name, 10, columns, fr_init_constant(0), "m"),
                    fr_input_ids(graph, "tokens"));
}

static fr_tensor *matrix(const char *name, int64_t rows, int64_t columns)
{
    return fr_parameter(graph, name, rows, columns, fr_init_constant(0), "m");
}

TEST(a_graph_reads_as_it_was_built)
{
    begin();
    fr_tensor *x = tokens_by(6), *h = fr_rms_norm(graph, x, (fr_norm_options){0});
    fr_tensor *q = fr_name(graph, fr_linear(graph, h, matrix("wq", 6, 6)), "q");
    fr_tensor *y = fr_attention(graph, q, h, h, (fr_attention_options){.heads = 3, .kv_heads = 3});
    CHECK_OK(fr_graph_check(graph, &error));
    CHECK_INT(fr_graph_nodes(graph), 4);
    CHECK_STR(fr_graph_node(graph, 2)->op->name, "linear");
    CHECK(fr_graph_node(graph, 2)->in[0] == h && fr_graph_node(graph, 2)->out[0] == q);
    CHECK(fr_graph_find(graph, "q") == q && fr_graph_find(graph, "linear:2") == NULL);
    CHECK(fr_graph_find(graph, "tokens") == fr_input_ids(graph, "tokens"));
    CHECK_STR(y->name, "attention:3");
    CHECK_STR(y->producer->out[1]->name, "attention:3.1");
    CHECK_INT(y->producer->out[1]->columns, 3);
    CHECK(x->kind == FR_KIND_STREAM && h->kind == FR_KIND_ACTIVATION &&
          y->producer->out[1]->kind == FR_KIND_STATISTIC);
    CHECK(x->rows == FR_TOKENS && x->columns == 6 && x->parameter == -1 && x->producer->index == 0);
    CHECK_NEAR(((const fr_attention_options *)y->producer->attributes)->scale, 1 / sqrt(2.0), 1e-12, 0);
    CHECK_NEAR(((const fr_norm_options *)h->producer->attributes)->eps, 1.1920929e-07, 0, 1e-12);
    fr_graph_free(graph);
}

TEST(losses_get_their_names)
{
    begin();
    fr_tensor *x = tokens_by(4), *targets = fr_input_ids(graph, "targets");
    fr_tensor *first = fr_head_loss(graph, x, matrix("head", 8, 4), targets, (fr_head_options){.vocab = 8});
    fr_tensor *second =
        fr_head_loss(graph, x, matrix("head2", 8, 4), targets, (fr_head_options){.vocab = 8, .weight = 0.5});
    CHECK_OK(fr_graph_check(graph, &error));
    CHECK_STR(first->name, "nats");
    CHECK_STR(first->producer->out[1]->name, "loss");
    CHECK_STR(second->name, "nats:2");
    CHECK_STR(second->producer->out[1]->name, "loss:2");
    CHECK(fr_graph_find(graph, "loss_scale") != NULL);
    fr_graph_free(graph);
}

TEST(names_are_unique)
{
    begin();
    matrix("w", 2, 2);
    matrix("w", 2, 2);
    expect_mistake("w", "two tensors have this name");
    begin();
    fr_name(graph, fr_gelu(graph, tokens_by(4)), "tokens");
    expect_mistake("tokens", "two tensors");
    begin();
    fr_name(graph, matrix("w", 2, 2), "v");
    expect_mistake("w", "keep the name");
    begin();
    matrix("", 2, 2);
    expect_mistake("graph", "needs a name");
    begin();
    fr_input_ids(graph, "both");
    fr_input_scalar(graph, "both");
    expect_mistake("both", "two tensors");
}

TEST(parameters_are_checked)
{
    begin();
    matrix("w", 0, 3);
    expect_mistake("w", "0 x 3");
    begin();
    matrix("w", INT64_MAX / 2, 3);
    expect_mistake("w", "elements");
    begin();
    fr_parameter(graph, "w", 2, 2, fr_init_normal(NAN), "m");
    expect_mistake("w", "not finite");
    begin();
    fr_parameter(graph, "w", 2, 2, fr_init_normal(1), "");
    expect_mistake("w", "group");
}

TEST(shapes_are_checked)
{
    begin();
    fr_linear(graph, tokens_by(5), matrix("w", 3, 4));
    expect_mistake("linear:1", "must be 3 x 5");
    begin();
    fr_add(graph, tokens_by(5), tokens_by(4));
    expect_mistake("add", "must be tokens x 5");
    begin();
    fr_embed(graph, matrix("table", 4, 4), tokens_by(4));
    expect_mistake("embed:1", "must be token ids");
    begin();
    fr_rotary(graph, tokens_by(6), (fr_rotary_options){.heads = 2, .base = 10});
    expect_mistake("rotary", "heads of even width");
    begin();
    fr_rotary(graph, tokens_by(6), (fr_rotary_options){.heads = 0, .base = 10});
    expect_mistake("rotary", "0 heads");
    begin();
    fr_tensor *x = tokens_by(6);
    fr_attention(graph, x, x, x, (fr_attention_options){.heads = 3, .kv_heads = 2});
    expect_mistake("attention", "2 key-value heads");
    begin();
    x = tokens_by(6);
    fr_attention(graph, x, x, x, (fr_attention_options){.heads = 3, .kv_heads = 1});
    expect_mistake("attention", "must be tokens x 2");
    begin();
    fr_head_logits(graph, tokens_by(4), matrix("head", 8, 4), (fr_head_options){.vocab = 9});
    expect_mistake("head", "vocabulary of 9");
    begin();
    fr_smear(graph, tokens_by(4), matrix("gate", 1, 5), matrix("lambda", 1, 1));
    expect_mistake("smear", "5 channels of 4");
    begin();
    fr_two_tap(graph, tokens_by(4), matrix("taps", 3, 4));
    expect_mistake("taps", "must be 2 x 4");
    begin();
    fr_leaky_relu_squared(graph, tokens_by(4), 1);
    expect_mistake("leaky_relu_squared", "slope of 1");
    begin();
    fr_gelu(graph, matrix("w", 3, 4));
    expect_mistake("gelu", "must be tokens x 4");
    begin();
    fr_gelu(graph, fr_input_ids(graph, "tokens"));
    expect_mistake("gelu", "ids");
}

TEST(strangers_are_refused)
{
    begin();
    fr_graph *first = graph;
    fr_tensor *x = tokens_by(4);
    begin();
    fr_gelu(graph, x);
    expect_mistake("gelu", "not a tensor of this graph");
    fr_graph_free(first);
    begin();
    fr_gelu(graph, NULL);
    expect_mistake("gelu", "not a tensor of this graph");
    begin();
    fr_apply(graph, fr_ops(&(int){0})[0], NULL, 0, NULL, 0);
    expect_mistake("embed", "takes 2 to 2 inputs");
}

TEST(the_first_mistake_is_kept)
{
    begin();
    fr_tensor *bad = fr_linear(graph, tokens_by(5), matrix("w", 3, 4));
    fr_name(graph, fr_add(graph, bad, bad), "");
    matrix("w", 1, 1);
    expect_mistake("linear:1", "must be 3 x 5");
}

TEST(many_tensors_keep_their_addresses)
{
    begin();
    fr_tensor *x = tokens_by(2), *first = x;
    for (int i = 0; i < 1000; i++)
        x = fr_add(graph, x, first);
    CHECK_OK(fr_graph_check(graph, &error));
    CHECK_INT(fr_graph_nodes(graph), 1001);
    for (int i = 1; i <= 1000; i++)
        CHECK(fr_graph_node(graph, i)->in[1] == first && fr_graph_node(graph, i)->index == i);
    fr_graph_free(graph);
}

TEST(memory_may_run_out_anywhere)
{
    int64_t allowed = 0;
    for (bool done = false; !done && allowed < 1000; allowed++) {
        fr_allocate_fail_after(allowed);
        begin();
        if (graph) {
            fr_tensor *x = tokens_by(200), *y = x;
            for (int i = 0; i < 200; i++)
                y = fr_linear(graph, fr_add(graph, y, x), matrix(i % 2 ? "a" : "b", 200, 200)) == NULL ? NULL
                                                                                                       : y;
            fr_status status = fr_graph_check(graph, &error);
            CHECK(status == FR_BAD_ENVIRONMENT || status == FR_BAD_USAGE);
            done = status == FR_BAD_USAGE; /* the third matrix reuses a name: the end of the walk */
        } else {
            CHECK_INT(error.status, FR_BAD_ENVIRONMENT);
        }
        fr_graph_free(graph);
    }
    fr_allocate_fail_after(-1);
    CHECK(allowed > 2 && allowed < 1000);
}

TEST_MAIN(graph_build)
