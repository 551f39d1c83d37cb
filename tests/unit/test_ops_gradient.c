/* Every built-in operator against central differences in double.
 *
 * The list of cases is checked against fr_ops(): an operator without a case here fails the suite. Each
 * case builds a graph in which every input that can have a gradient is a parameter, for several extents:
 * several rows, odd lengths, a single token.
 */
#include "graph_fixture.h"

typedef struct gradient_case {
    const char *op, *what;
    void (*build)(fr_graph *g, int64_t tokens);
} gradient_case;

static fr_tensor *scalar(fr_graph *g, const char *name)
{
    return fr_parameter(g, name, 1, 1, fr_init_uniform(0.5, 1.5), "scalar");
}

static fr_tensor *matrix(fr_graph *g, const char *name, int64_t rows, int64_t columns)
{
    return fr_parameter(g, name, rows, columns, fr_init_normal(0.7), "matrix");
}

static void build_embed(fr_graph *g, int64_t tokens)
{
    (void)tokens; /* the ids repeat, so rows of the table collect several gradients */
    probe(g, fr_embed(g, matrix(g, "table", 7, 5), fr_input_ids(g, "tokens")));
}

static void build_rms_norm(fr_graph *g, int64_t tokens)
{
    probe(g, fr_rms_norm(g, leaf(g, "x", tokens, 7), (fr_norm_options){.stream = true}));
}

static void build_rms_norm_gain(fr_graph *g, int64_t tokens)
{
    probe(g, fr_rms_norm(g, leaf(g, "x", tokens, 5),
                         (fr_norm_options){.eps = 0.3, .gain = matrix(g, "gain", 1, 5)}));
}

static void build_linear(fr_graph *g, int64_t tokens)
{
    probe(g, fr_linear(g, leaf(g, "x", tokens, 5), matrix(g, "w", 19, 5)));
}

static void build_add_bias(fr_graph *g, int64_t tokens)
{
    probe(g, fr_add_bias(g, leaf(g, "x", tokens, 5), matrix(g, "bias", 1, 5)));
}

static void build_rotary(fr_graph *g, int64_t tokens)
{
    probe(g, fr_rotary(g, leaf(g, "x", tokens, 12), (fr_rotary_options){.heads = 2, .base = 100}));
}

static void build_rotary_norm(fr_graph *g, int64_t tokens)
{
    probe(g, fr_rotary(g, leaf(g, "x", tokens, 12),
                       (fr_rotary_options){.heads = 3, .base = 10, .norm = true, .gain = 1.2}));
}

static void build_rotary_interleaved(fr_graph *g, int64_t tokens)
{
    probe(g, fr_rotary(
                 g, leaf(g, "x", tokens, 8),
                 (fr_rotary_options){.heads = 1, .base = 10, .interleaved = true, .norm = true, .eps = 0.1}));
}

static void attention_case(fr_graph *g, int64_t tokens, fr_attention_options options)
{
    int64_t width = 3;
    probe(g, fr_attention(g, leaf(g, "q", tokens, options.heads * width),
                          leaf(g, "k", tokens, options.kv_heads * width),
                          leaf(g, "v", tokens, options.kv_heads * width), options));
}

static void build_attention(fr_graph *g, int64_t tokens)
{
    attention_case(g, tokens, (fr_attention_options){.heads = 2, .kv_heads = 2});
}

static void build_attention_grouped(fr_graph *g, int64_t tokens)
{
    attention_case(g, tokens, (fr_attention_options){.heads = 4, .kv_heads = 2, .scale = 0.9});
}

static void build_attention_window(fr_graph *g, int64_t tokens)
{
    attention_case(g, tokens, (fr_attention_options){.heads = 2, .kv_heads = 1, .window = 2});
}

static void build_attention_one_tensor(fr_graph *g, int64_t tokens)
{
    fr_tensor *x = leaf(g, "x", tokens, 6);
    probe(g, fr_attention(g, x, x, x, (fr_attention_options){.heads = 2, .kv_heads = 2}));
}

static void build_relu_squared(fr_graph *g, int64_t tokens)
{
    probe(g, fr_relu_squared(g, leaf(g, "x", tokens, 9)));
}

static void build_leaky_relu_squared(fr_graph *g, int64_t tokens)
{
    probe(g, fr_leaky_relu_squared(g, leaf(g, "x", tokens, 9), 0.35));
}

static void build_two_tap(fr_graph *g, int64_t tokens)
{
    probe(g, fr_two_tap(g, leaf(g, "x", tokens, 5), matrix(g, "taps", 2, 5)));
}

static void build_add(fr_graph *g, int64_t tokens)
{
    probe(g, fr_add(g, leaf(g, "x", tokens, 5), leaf(g, "y", tokens, 5)));
}

static void build_blend(fr_graph *g, int64_t tokens)
{
    probe(g, fr_blend(g, scalar(g, "a"), leaf(g, "x", tokens, 5), scalar(g, "b"), leaf(g, "y", tokens, 5)));
}

static void build_blend_one_tensor(fr_graph *g, int64_t tokens)
{
    fr_tensor *a = scalar(g, "a"), *x = leaf(g, "x", tokens, 5);
    probe(g, fr_blend(g, a, x, a, x));
}

static void build_embed_positions(fr_graph *g, int64_t tokens)
{
    probe(g, fr_embed_positions(g, leaf(g, "x", tokens, 5), matrix(g, "table", 20, 5)));
}

static void build_layer_norm(fr_graph *g, int64_t tokens)
{
    probe(g, fr_layer_norm(g, leaf(g, "x", tokens, 5), (fr_norm_options){.eps = 0.1}));
}

static void build_layer_norm_bias(fr_graph *g, int64_t tokens)
{
    fr_norm_options options = {.eps = 0.1, .bias = matrix(g, "bias", 1, 5)};
    probe(g, fr_layer_norm(g, leaf(g, "x", tokens, 5), options));
}

static void build_layer_norm_both(fr_graph *g, int64_t tokens)
{
    fr_norm_options options = {.gain = matrix(g, "gain", 1, 7), .bias = matrix(g, "bias", 1, 7)};
    probe(g, fr_layer_norm(g, leaf(g, "x", tokens, 7), options));
}

static void build_gelu(fr_graph *g, int64_t tokens)
{
    probe(g, fr_gelu(g, leaf(g, "x", tokens, 9)));
}

static void build_swiglu(fr_graph *g, int64_t tokens)
{
    probe(g, fr_swiglu(g, leaf(g, "gate", tokens, 9), leaf(g, "up", tokens, 9)));
}

static void build_add_scaled(fr_graph *g, int64_t tokens)
{
    probe(g, fr_add_scaled(g, leaf(g, "x", tokens, 5), -1, scalar(g, "scale"), leaf(g, "y", tokens, 5)));
}

static void build_smear(fr_graph *g, int64_t tokens)
{
    probe(g, fr_smear(g, leaf(g, "x", tokens, 5), matrix(g, "gate", 1, 3), scalar(g, "lambda")));
}

static void build_value_gate(fr_graph *g, int64_t tokens)
{
    probe(g, fr_value_gate(g, leaf(g, "v", tokens, 6), leaf(g, "e", tokens, 6), leaf(g, "h", tokens, 5),
                           matrix(g, "gate", 2, 3), 3));
}

static void build_value_gate_one_tensor(fr_graph *g, int64_t tokens)
{
    fr_tensor *x = leaf(g, "x", tokens, 6);
    probe(g, fr_value_gate(g, x, x, x, matrix(g, "gate", 3, 6), 2));
}

static void build_head_logits(fr_graph *g, int64_t tokens)
{
    probe(g, fr_head_logits(g, leaf(g, "x", tokens, 4), matrix(g, "head", 9, 4),
                            (fr_head_options){.vocab = 7, .softcap = 3}));
}

static void build_head_logits_plain(fr_graph *g, int64_t tokens)
{
    probe(g,
          fr_head_logits(g, leaf(g, "x", tokens, 4), matrix(g, "head", 7, 4), (fr_head_options){.vocab = 7}));
}

static void build_head_loss(fr_graph *g, int64_t tokens)
{
    fr_head_loss(g, leaf(g, "x", tokens, 4), matrix(g, "head", 9, 4), fr_input_ids(g, "targets"),
                 (fr_head_options){.vocab = 7, .softcap = 3});
}

static void build_head_loss_plain(fr_graph *g, int64_t tokens)
{
    fr_head_loss(g, leaf(g, "x", tokens, 4), matrix(g, "head", 7, 4), fr_input_ids(g, "targets"),
                 (fr_head_options){.vocab = 7, .weight = 1.7});
}

static const gradient_case cases[] = {
    {"embed", "repeated ids", build_embed},
    {"rms_norm", "plain", build_rms_norm},
    {"rms_norm", "gain", build_rms_norm_gain},
    {"linear", "plain", build_linear},
    {"add_bias", "plain", build_add_bias},
    {"rotary", "halves", build_rotary},
    {"rotary", "halves, norm", build_rotary_norm},
    {"rotary", "interleaved, norm", build_rotary_interleaved},
    {"attention", "plain", build_attention},
    {"attention", "grouped heads", build_attention_grouped},
    {"attention", "window", build_attention_window},
    {"attention", "one tensor three times", build_attention_one_tensor},
    {"relu_squared", "plain", build_relu_squared},
    {"leaky_relu_squared", "plain", build_leaky_relu_squared},
    {"two_tap", "plain", build_two_tap},
    {"add", "plain", build_add},
    {"blend", "plain", build_blend},
    {"blend", "one tensor twice", build_blend_one_tensor},
    {"embed_positions", "table longer than the rows", build_embed_positions},
    {"layer_norm", "plain", build_layer_norm},
    {"layer_norm", "bias alone", build_layer_norm_bias},
    {"layer_norm", "gain and bias", build_layer_norm_both},
    {"gelu", "plain", build_gelu},
    {"swiglu", "plain", build_swiglu},
    {"add_scaled", "negative", build_add_scaled},
    {"smear", "plain", build_smear},
    {"value_gate", "plain", build_value_gate},
    {"value_gate", "one tensor three times", build_value_gate_one_tensor},
    {"head_logits", "softcap, padding", build_head_logits},
    {"head_logits", "plain", build_head_logits_plain},
    {"head_loss", "softcap, padding", build_head_loss},
    {"head_loss", "weight", build_head_loss_plain},
};
enum { CASES = sizeof cases / sizeof *cases };

static void check_case(const gradient_case *c, fr_extent extent)
{
    fr_error error = {0};
    fr_graph *g = fr_graph_create(&error);
    c->build(g, extent.rows * extent.T);
    CHECK_OK(fr_graph_check(g, &error));
    bench b;
    if (fr_graph_check(g, NULL) == FR_OK && bench_create(&b, g, extent, 7)) {
        double wrong = gradient_error(g, &b, 60);
        if (!(wrong < 1e-6)) {
            char text[200];
            snprintf(text, sizeof text, "%s (%s) at %lld x %lld: gradient off by %g", c->op, c->what,
                     (long long)extent.rows, (long long)extent.T, wrong);
            test_fail(__FILE__, __LINE__, text);
        }
        bench_free(&b);
    }
    fr_graph_free(g);
}

TEST(every_operator_has_a_case)
{
    int count;
    const fr_op *const *ops = fr_ops(&count);
    for (int i = 0; i < count; i++) {
        bool found = false;
        for (int c = 0; c < CASES; c++)
            found |= strcmp(cases[c].op, ops[i]->name) == 0;
        if (!found)
            test_fail(__FILE__, __LINE__, ops[i]->name);
    }
}

TEST(gradients_equal_differences)
{
    static const fr_extent extents[] = {{1, 1}, {2, 5}, {3, 7}, {1, 18}};
    for (int c = 0; c < CASES; c++)
        for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
            check_case(&cases[c], extents[e]);
}

TEST_MAIN(ops_gradient)
