/* baseline/train.c: the starter submission. Edit this file.
 *
 *     frontier train --data DATA --program baseline --recipe baseline/recipe.toml --budget 10m --out runs/mine
 *
 * It holds the whole of what a contestant may change: the model (below, one line per operation), the training
 * loop (at the end), and, in recipe.toml, the numbers. As it stands it computes exactly what the library's own
 * baseline computes, bit for bit; a test holds it to that. Scoring happens elsewhere: the finished program is asked
 * for logits and never sees what it is scored on.
 *
 * The model is the kit baseline: untied embedding and head, RMS norms without gains, rotary positions, QK norm, full
 * causal attention, squared ReLU, a residual share r and an embedding share z per block, a soft cap on the logits.
 * Parameters are born where they are used: name, shape, first values, and the optimizer group they belong to
 * ("embedding", "head", "matrix", "resid", "x0", "scalar").
 */
#include <math.h>
#include <stdio.h>

#include "frontier/submission.h"

typedef struct block {
    fr_graph *g;
    const fr_recipe *recipe;
    int64_t index;
    int64_t width; /* C */
    int64_t heads;
} block;

/* transformer.h.INDEX.NAME, the names nanochat's checkpoints use. */
static fr_tensor *weight(const block *b, const char *name, int64_t rows, int64_t columns, fr_init init,
                         const char *group)
{
    char full[96];
    snprintf(full, sizeof full, "transformer.h.%lld.%s", (long long)b->index, name);
    return fr_parameter(b->g, full, rows, columns, init, group);
}

/* U(-s, s) with standard deviation factor / sqrt(C). */
static fr_init spread(const block *b, double factor)
{
    double s = factor * sqrt(3.0 / (double)b->width);
    return fr_init_uniform(-s, s);
}

static fr_tensor *attention(const block *b, fr_tensor *h)
{
    const int64_t C = b->width;
    const fr_init zero = fr_init_constant(0);
    fr_rotary_options rotary = {.heads = (int)b->heads,
                                .base = b->recipe->model.rope_base,
                                .norm = true,
                                .gain = b->recipe->model.qk_gain};

    fr_tensor *q = fr_linear(b->g, h, weight(b, "attn.c_q.weight", C, C, spread(b, 1), "matrix"));
    fr_tensor *k = fr_linear(b->g, h, weight(b, "attn.c_k.weight", C, C, spread(b, 1), "matrix"));
    fr_tensor *v = fr_linear(b->g, h, weight(b, "attn.c_v.weight", C, C, spread(b, 1), "matrix"));
    q = fr_rotary(b->g, q, rotary);
    k = fr_rotary(b->g, k, rotary);
    fr_attention_options options = {
        .heads = (int)b->heads, .kv_heads = (int)b->heads, .window = fr_recipe_window(b->recipe, b->index)};
    fr_tensor *y = fr_attention(b->g, q, k, v, options);
    return fr_linear(b->g, y, weight(b, "attn.c_proj.weight", C, C, zero, "matrix"));
}

static fr_tensor *mlp(const block *b, fr_tensor *h)
{
    const int64_t C = b->width, hidden = (int64_t)(b->recipe->model.mlp_ratio * (double)C);
    fr_tensor *u = fr_linear(
        b->g, h, weight(b, "mlp.c_fc.weight", hidden, C, spread(b, b->recipe->model.fc_init), "matrix"));
    u = fr_relu_squared(b->g, u);
    return fr_linear(b->g, u, weight(b, "mlp.c_proj.weight", C, hidden, fr_init_constant(0), "matrix"));
}

static fr_tensor *transformer_block(const block *b, fr_tensor *x, fr_tensor *x0)
{
    fr_tensor *r = weight(b, "resid_lambda", 1, 1, fr_init_constant(b->recipe->model.resid_first), "resid");
    fr_tensor *z = weight(b, "x0_lambda", 1, 1, fr_init_constant(b->recipe->model.x0_first), "x0");
    const fr_norm_options norm = {0};

    x = fr_blend(b->g, r, x, z, x0);
    x = fr_add(b->g, x, attention(b, fr_rms_norm(b->g, x, norm)));
    return fr_add(b->g, x, mlp(b, fr_rms_norm(b->g, x, norm)));
}

static fr_status model(fr_graph *g, const fr_recipe *recipe, int64_t vocab, fr_error *error)
{
    const int64_t C = fr_recipe_width(recipe), rows = (vocab + 63) / 64 * 64;
    fr_tensor *tokens = fr_input_ids(g, "tokens");
    fr_tensor *wte = fr_parameter(g, "transformer.wte.weight", rows, C,
                                  fr_init_normal(recipe->model.embedding_std), "embedding");
    fr_tensor *lm_head =
        fr_parameter(g, "lm_head.weight", rows, C, fr_init_normal(recipe->model.head_std), "head");

    fr_tensor *x0 = fr_rms_norm(g, fr_embed(g, wte, tokens), (fr_norm_options){.stream = true});
    fr_tensor *x = x0;
    for (int64_t i = 0; i < recipe->model.depth; i++) {
        block b = {g, recipe, i, C, fr_recipe_heads(recipe)};
        x = transformer_block(&b, x, x0);
    }
    x = fr_rms_norm(g, x, (fr_norm_options){0});

    fr_head_options head = {.vocab = vocab, .softcap = recipe->model.softcap};
    fr_head_logits(g, x, lm_head, head);                           /* for scoring and sampling */
    fr_head_loss(g, x, lm_head, fr_input_ids(g, "targets"), head); /* for training */
    return fr_graph_check(g, error);
}

/* One pass of this loop is one optimizer step. The clock decides when there is no next one. */
static fr_status train(fr_session *session, fr_error *error)
{
    while (fr_session_begin_step(session, error)) {
        fr_status status =
            fr_session_gradients(session, error); /* forward and backward over the step's rows */
        if (status == FR_STOPPED)
            break; /* the clock ran out within the step: it does not count */
        if (status != FR_OK)
            return status;
        FR_TRY(fr_session_update(session, error));   /* clip, schedules, Muon and AdamW */
        FR_TRY(fr_session_end_step(session, error)); /* charge, log, checkpoint */
    }
    return error->status;
}

const fr_submission frontier_submission = {.name = "baseline", .model = model, .train = train};
