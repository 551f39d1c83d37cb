/* The GPT family, written as it would be on paper.
 *
 *     x = norm(wte[tokens]);  x0 = x
 *     for each block:  x = r x + z x0;  x = x + Wo attention(norm x);  x = x + Wproj act(Wfc norm x)
 *     logits = softcap(head norm(x))
 *
 * Each choice of the recipe is one line here: windows, value embeddings, smear, backout, positions, norms.
 * Tensor names are nanochat's, so checkpoints travel; where the kit differs the kit's names hold: residual
 * and embedding shares are one 1 x 1 tensor per block (transformer.h.I.resid_lambda, x0_lambda), where
 * nanochat stacks them in vectors over blocks. Gains and biases of norms, biases of projections and learned
 * positions carry GPT-2's names (ln_1.weight, ln_f.bias, attn.c_proj.bias, wpe). Groups name what the optimizer may treat apart: embedding, head, matrix, value, scalar,
 * resid, x0.
 */
#include "model/model_internal.h"

#include <math.h>
#include <string.h>

typedef struct model {
    fr_graph *g;
    const fr_recipe *recipe;
    int64_t vocab, depth, width, head_dim, heads, kv_heads, hidden;
    double s; /* sqrt(3 / width): U(-s, s) has standard deviation 1 / sqrt(width) */
    bool layer_norm, norm_gain, rotary, learned, gelu, swiglu;
    fr_tensor *tokens, *x0, *middle;
} model;

static bool is(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

static model model_init(fr_graph *g, const fr_recipe *recipe, int64_t vocab)
{
    int64_t width = fr_recipe_width(recipe);
    return (model){
        .g = g,
        .recipe = recipe,
        .vocab = vocab,
        .depth = recipe->model.depth,
        .width = width,
        .head_dim = recipe->model.head_dim,
        .heads = fr_recipe_heads(recipe),
        .kv_heads = fr_recipe_kv_heads(recipe),
        .hidden = fr_recipe_hidden(recipe),
        .s = sqrt(3.0 / (double)width),
        .layer_norm = is(recipe->model.norm, "layer"),
        .norm_gain = !is(recipe->model.norm, "rms"),
        .rotary = is(recipe->model.position, "rotary"),
        .learned = is(recipe->model.position, "learned"),
        .gelu = is(recipe->model.activation, "gelu"),
        .swiglu = is(recipe->model.activation, "swiglu"),
        .tokens = fr_input_ids(g, "tokens"),
    };
}

/* ---- parameters ------------------------------------------------------------------------------------ */

static fr_init spread(double s)
{
    return fr_init_uniform(-s, s);
}

/* A value that goes from `first` in block 0 to `last` in the last block. */
static fr_init fade(const model *m, int64_t block, double first, double last)
{
    double share = m->depth > 1 ? (double)block / (double)(m->depth - 1) : 0;
    return fr_init_constant(first + (last - first) * share);
}

/* Parameter NAME of a block: transformer.h.BLOCK.NAME. */
static fr_tensor *block_parameter(model *m, int64_t block, const char *name, int64_t rows, int64_t columns,
                                  fr_init init, const char *group)
{
    char full[112];
    snprintf(full, sizeof full, "transformer.h.%lld.%s", (long long)block, name);
    return fr_parameter(m->g, full, rows, columns, init, group);
}

/* A table with a row per token id; rows up to a multiple of 64 exist but are never used. */
static fr_tensor *token_table(model *m, const char *name, int64_t columns, fr_init init, const char *group)
{
    return fr_parameter(m->g, name, (m->vocab + 63) / 64 * 64, columns, init, group);
}

static fr_tensor *scalar(model *m, int64_t block, const char *name, fr_init init, const char *group)
{
    return block_parameter(m, block, name, 1, 1, init, group);
}

/* x W^T + b with W = NAME.weight of the block, `rows` x width of x; b = NAME.bias where the recipe wants it. */
static fr_tensor *linear(model *m, int64_t block, const char *name, fr_tensor *x, int64_t rows, fr_init init)
{
    char full[48];
    snprintf(full, sizeof full, "%s.weight", name);
    fr_tensor *y = fr_linear(m->g, x, block_parameter(m, block, full, rows, x->columns, init, "matrix"));
    if (!m->recipe->model.bias)
        return y;
    snprintf(full, sizeof full, "%s.bias", name);
    return fr_add_bias(m->g, y, block_parameter(m, block, full, 1, rows, fr_init_constant(0), "scalar"));
}

/* ---- pieces ---------------------------------------------------------------------------------------- */

/* `name` is the norm's, for its gain and bias, if it has them. */
static fr_tensor *norm(model *m, fr_tensor *x, const char *name, bool stream)
{
    char full[96];
    fr_norm_options options = {.eps = m->recipe->model.norm_eps, .stream = stream};
    if (m->norm_gain) {
        snprintf(full, sizeof full, "transformer.%s.weight", name);
        options.gain = fr_parameter(m->g, full, 1, m->width, fr_init_constant(1), "scalar");
    }
    if (!m->layer_norm)
        return fr_rms_norm(m->g, x, options);
    options.eps = options.eps == 0 ? 1e-5 : options.eps;
    snprintf(full, sizeof full, "transformer.%s.bias", name);
    options.bias = fr_parameter(m->g, full, 1, m->width, fr_init_constant(0), "scalar");
    return fr_layer_norm(m->g, x, options);
}

static fr_tensor *block_norm(model *m, int64_t block, fr_tensor *x, const char *which)
{
    char name[64];
    snprintf(name, sizeof name, "h.%lld.%s", (long long)block, which);
    return norm(m, x, name, false);
}

static fr_tensor *smear(model *m, fr_tensor *x)
{
    int64_t channels = m->recipe->model.smear_channels;
    fr_tensor *gate =
        fr_parameter(m->g, "smear_gate.weight", 1, channels, fr_init_uniform(0, 0.02), "scalar");
    fr_tensor *lambda = fr_parameter(m->g, "smear_lambda", 1, 1, fr_init_constant(0), "scalar");
    return fr_smear(m->g, x, gate, lambda);
}

static fr_tensor *add_positions(model *m, fr_tensor *x)
{
    fr_init init = fr_init_normal(m->recipe->model.embedding_std);
    int64_t rows = m->recipe->model.context;
    fr_tensor *table = fr_parameter(m->g, "transformer.wpe.weight", rows, m->width, init, "embedding");
    return fr_embed_positions(m->g, x, table);
}

static fr_tensor *embed(model *m, fr_tensor *wte)
{
    fr_tensor *x = fr_embed(m->g, wte, m->tokens);
    if (m->learned)
        x = add_positions(m, x);
    if (m->recipe->model.embedding_norm)
        x = norm(m, x, "ln_e", true);
    return m->recipe->model.smear ? smear(m, x) : x;
}

/* r x + z x0, or what the recipe leaves of it. */
static fr_tensor *mix(model *m, int64_t i, fr_tensor *x)
{
    const fr_recipe *c = m->recipe;
    fr_tensor *r = NULL, *z = NULL;
    if (c->model.resid_scalars)
        r = scalar(m, i, "resid_lambda", fade(m, i, c->model.resid_first, c->model.resid_last), "resid");
    if (c->model.x0_scalars)
        z = scalar(m, i, "x0_lambda", fade(m, i, c->model.x0_first, c->model.x0_last), "x0");
    if (r && z)
        return fr_blend(m->g, r, x, z, m->x0);
    if (z)
        return fr_add_scaled(m->g, x, 1, z, m->x0);
    return r ? fr_scale(m->g, x, r) : x;
}

/* v + range sigmoid(Wg h) ve[tokens]: a per-head gate on a second, token-indexed value. */
static fr_tensor *value_embedding(model *m, int64_t i, fr_tensor *v, fr_tensor *h)
{
    char name[64];
    int64_t channels = m->recipe->model.value_gate_channels;
    snprintf(name, sizeof name, "value_embeds.%lld.weight", (long long)i);
    fr_tensor *table = token_table(m, name, m->kv_heads * m->head_dim, spread(m->s), "value");
    fr_init init = fr_init_uniform(0, 0.02);
    fr_tensor *gate = block_parameter(m, i, "attn.ve_gate.weight", m->kv_heads, channels, init, "matrix");
    return fr_value_gate(m->g, v, fr_embed(m->g, table, m->tokens), h, gate,
                         m->recipe->model.value_gate_range);
}

static fr_tensor *rotate(model *m, fr_tensor *x, int64_t heads)
{
    fr_rotary_options options = {.heads = (int)heads,
                                 .base = m->recipe->model.rope_base,
                                 .interleaved = is(m->recipe->model.rotary_pairs, "interleaved"),
                                 .eps = m->recipe->model.norm_eps,
                                 .norm = m->recipe->model.qk_norm,
                                 .gain = m->recipe->model.qk_gain};
    return m->rotary ? fr_rotary(m->g, x, options) : x;
}

static fr_tensor *attention(model *m, int64_t i, fr_tensor *h)
{
    int64_t kv = m->kv_heads * m->head_dim;
    fr_tensor *q = linear(m, i, "attn.c_q", h, m->width, spread(m->s));
    fr_tensor *k = linear(m, i, "attn.c_k", h, kv, spread(m->s));
    fr_tensor *v = linear(m, i, "attn.c_v", h, kv, spread(m->s));
    if (fr_recipe_has_value_embedding(m->recipe, i))
        v = value_embedding(m, i, v, h);
    q = rotate(m, q, m->heads);
    k = rotate(m, k, m->kv_heads);
    fr_attention_options options = {
        .heads = (int)m->heads, .kv_heads = (int)m->kv_heads, .window = fr_recipe_window(m->recipe, i)};
    fr_tensor *y = fr_attention(m->g, q, k, v, options);
    return linear(m, i, "attn.c_proj", y, m->width, fr_init_constant(0));
}

static fr_tensor *mlp(model *m, int64_t i, fr_tensor *h)
{
    fr_init init = spread(m->recipe->model.fc_init * m->s);
    fr_tensor *u = linear(m, i, "mlp.c_fc", h, m->hidden, init);
    if (m->swiglu)
        u = fr_swiglu(m->g, linear(m, i, "mlp.c_gate", h, m->hidden, init), u);
    else
        u = m->gelu ? fr_gelu(m->g, u) : fr_relu_squared(m->g, u);
    return linear(m, i, "mlp.c_proj", u, m->width, fr_init_constant(0));
}

/* ---- the model ------------------------------------------------------------------------------------- */

static fr_tensor *blocks(model *m, fr_tensor *x)
{
    for (int64_t i = 0; i < m->depth; i++) {
        x = mix(m, i, x);
        x = fr_add(m->g, x, attention(m, i, block_norm(m, i, x, "ln_1")));
        x = fr_add(m->g, x, mlp(m, i, block_norm(m, i, x, "ln_2")));
        if (i == m->depth / 2)
            m->middle = x;
    }
    return x;
}

fr_status fr_model_build(fr_graph *graph, const fr_recipe *recipe, int64_t vocab, fr_error *error)
{
    FR_TRY(fr_recipe_check(recipe, error));
    if (vocab < 1 || vocab > INT32_MAX - 63)
        return fr_error_set(error, FR_BAD_USAGE, "vocabulary", NULL,
                            "a model of %lld token ids cannot be built", (long long)vocab);
    model m = model_init(graph, recipe, vocab);
    fr_init wte_init = fr_init_normal(recipe->model.embedding_std);
    fr_tensor *wte = token_table(&m, "transformer.wte.weight", m.width, wte_init, "embedding");
    fr_tensor *head = wte;
    if (!recipe->model.tied)
        head = token_table(&m, "lm_head.weight", m.width, fr_init_normal(recipe->model.head_std), "head");

    m.x0 = embed(&m, wte);
    fr_tensor *x = blocks(&m, m.x0);
    if (recipe->model.backout) {
        fr_init init = fr_init_constant(recipe->model.backout_init);
        fr_tensor *lambda = fr_parameter(graph, "backout_lambda", 1, 1, init, "scalar");
        x = fr_add_scaled(graph, x, -1, lambda, m.middle);
    }
    x = norm(&m, x, "ln_f", false);
    fr_head_options options = {.vocab = vocab, .softcap = recipe->model.softcap};
    fr_head_logits(graph, x, head, options);
    fr_head_loss(graph, x, head, fr_input_ids(graph, "targets"), options);
    return fr_graph_check(graph, error);
}
