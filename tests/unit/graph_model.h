/* Two models for the graph tests: the plain baseline at any size, and a small one with every trick.
 */
#ifndef FRONTIER_GRAPH_MODEL_H
#define FRONTIER_GRAPH_MODEL_H
#include "graph_fixture.h"

typedef struct model_shape {
    int depth, heads, kv_heads;
    int64_t columns, vocab, padded_vocab;
} model_shape;

static inline fr_tensor *weight(fr_graph *g, const char *what, int layer, int64_t rows, int64_t columns)
{
    char name[64];
    snprintf(name, sizeof name, "h.%d.%s", layer, what);
    return fr_parameter(g, name, rows, columns, fr_init_normal(1 / sqrt((double)columns)), "matrix");
}

static inline fr_tensor *model_scalar(fr_graph *g, const char *what, int layer)
{
    char name[64];
    snprintf(name, sizeof name, "h.%d.%s", layer, what);
    return fr_parameter(g, name, 1, 1, fr_init_uniform(0.5, 1), "scalar");
}

static inline fr_tensor *model_attention(fr_graph *g, const model_shape *m, int layer, fr_tensor *h, fr_tensor *v,
                                         int64_t window)
{
    int64_t C = m->columns, kv = C / m->heads * m->kv_heads;
    fr_rotary_options rotary = {.heads = m->heads, .base = 100000, .norm = true}, kv_rotary = rotary;
    kv_rotary.heads = m->kv_heads;
    fr_tensor *q = fr_rotary(g, fr_linear(g, h, weight(g, "q", layer, C, C)), rotary);
    fr_tensor *k = fr_rotary(g, fr_linear(g, h, weight(g, "k", layer, kv, C)), kv_rotary);
    fr_attention_options options = {.heads = m->heads, .kv_heads = m->kv_heads, .window = window};
    return fr_linear(g, fr_attention(g, q, k, v, options), weight(g, "o", layer, C, C));
}

static inline fr_tensor *model_mlp(fr_graph *g, const model_shape *m, int layer, fr_tensor *x)
{
    fr_tensor *h = fr_rms_norm(g, x, (fr_norm_options){0});
    fr_tensor *u = fr_linear(g, h, weight(g, "fc", layer, 4 * m->columns, m->columns));
    return fr_linear(g, fr_relu_squared(g, u), weight(g, "proj", layer, m->columns, 4 * m->columns));
}

/* The kit's baseline (10.2): with depth 10, 640 columns, 5 heads and 8192 entries, 59,637,780 parameters. */
static inline fr_graph *baseline_model(model_shape m)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *tokens = fr_input_ids(g, "tokens"), *targets = fr_input_ids(g, "targets");
    fr_tensor *wte = fr_parameter(g, "wte", m.padded_vocab, m.columns, fr_init_normal(0.8), "embedding");
    fr_tensor *head = fr_parameter(g, "head", m.padded_vocab, m.columns, fr_init_normal(0.1), "head");
    fr_tensor *x = fr_rms_norm(g, fr_embed(g, wte, tokens), (fr_norm_options){.stream = true}), *x0 = x;
    for (int i = 0; i < m.depth; i++) {
        x = fr_blend(g, model_scalar(g, "r", i), x, model_scalar(g, "z", i), x0);
        fr_tensor *h = fr_rms_norm(g, x, (fr_norm_options){0});
        fr_tensor *v = fr_linear(g, h, weight(g, "v", i, m.columns / m.heads * m.kv_heads, m.columns));
        x = fr_add(g, x, model_attention(g, &m, i, h, v, 0));
        x = fr_add(g, x, model_mlp(g, &m, i, x));
    }
    x = fr_name(g, fr_rms_norm(g, x, (fr_norm_options){0}), "hidden");
    fr_head_loss(g, x, head, targets, (fr_head_options){.vocab = m.vocab, .softcap = 15});
    fr_head_logits(g, x, head, (fr_head_options){.vocab = m.vocab, .softcap = 15});
    return g;
}

/* Smear, value embeddings, windows, grouped heads, backout, a tied head, a run-time scalar, a second loss. */
static inline fr_graph *full_model(void)
{
    model_shape m = {.depth = 2, .heads = 4, .kv_heads = 2, .columns = 16, .vocab = 11, .padded_vocab = 16};
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *tokens = fr_input_ids(g, "tokens"), *targets = fr_input_ids(g, "targets"), *middle = NULL;
    fr_tensor *wte = fr_parameter(g, "wte", m.padded_vocab, m.columns, fr_init_normal(0.8), "embedding");
    fr_tensor *x = fr_rms_norm(g, fr_embed(g, wte, tokens), (fr_norm_options){.stream = true});
    x = fr_smear(g, x, weight(g, "smear", 0, 1, 5), model_scalar(g, "smear_lambda", 0));
    fr_tensor *x0 = x;
    for (int i = 0; i < m.depth; i++) {
        x = fr_blend(g, model_scalar(g, "r", i), x, model_scalar(g, "z", i), x0);
        fr_tensor *h = fr_rms_norm(g, x, (fr_norm_options){0}), *v = fr_linear(g, h, weight(g, "v", i, 8, 16));
        fr_tensor *e = fr_embed(g, weight(g, "ve", i, m.padded_vocab, 8), tokens);
        v = fr_value_gate(g, v, e, h, weight(g, "ve_gate", i, 2, 6), 3);
        x = fr_add(g, x, model_attention(g, &m, i, h, v, i ? 0 : 3));
        x = fr_add(g, x, model_mlp(g, &m, i, x));
        middle = i ? middle : x;
    }
    x = fr_add_scaled(g, x, -1, model_scalar(g, "backout", 0), middle);
    x = fr_rms_norm(g, x, (fr_norm_options){0});
    fr_head_loss(g, x, wte, targets, (fr_head_options){.vocab = m.vocab, .softcap = 15});
    fr_tensor *second = fr_rms_norm(g, middle, (fr_norm_options){0});
    fr_head_loss(g, second, wte, targets, (fr_head_options){.vocab = m.vocab, .softcap = 15, .weight = 0.3});
    fr_parameter(g, "unused", 3, 5, fr_init_normal(1), "matrix");
    return g;
}

#endif
