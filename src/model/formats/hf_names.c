/* Names of tensors, family by family. */
#include "model/formats/hf.h"

#include <string.h>

static const hf_row llama_rows[] = {
    {"transformer.wte.weight", "model.embed_tokens.weight", 0, false, false},
    {"lm_head.weight", "lm_head.weight", 0, false, false},
    {"transformer.ln_f.weight", "model.norm.weight", 0, false, false},
    {"transformer.h.#.ln_1.weight", "model.layers.#.input_layernorm.weight", 0, false, false},
    {"transformer.h.#.ln_2.weight", "model.layers.#.post_attention_layernorm.weight", 0, false, false},
    {"transformer.h.#.attn.c_q.weight", "model.layers.#.self_attn.q_proj.weight", 0, false, true},
    {"transformer.h.#.attn.c_k.weight", "model.layers.#.self_attn.k_proj.weight", 0, false, true},
    {"transformer.h.#.attn.c_v.weight", "model.layers.#.self_attn.v_proj.weight", 0, false, false},
    {"transformer.h.#.attn.c_proj.weight", "model.layers.#.self_attn.o_proj.weight", 0, false, false},
    {"transformer.h.#.mlp.c_gate.weight", "model.layers.#.mlp.gate_proj.weight", 0, false, false},
    {"transformer.h.#.mlp.c_fc.weight", "model.layers.#.mlp.up_proj.weight", 0, false, false},
    {"transformer.h.#.mlp.c_proj.weight", "model.layers.#.mlp.down_proj.weight", 0, false, false},
    {"transformer.h.#.attn.c_q.bias", "model.layers.#.self_attn.q_proj.bias", 0, false, true},
    {"transformer.h.#.attn.c_k.bias", "model.layers.#.self_attn.k_proj.bias", 0, false, true},
    {"transformer.h.#.attn.c_v.bias", "model.layers.#.self_attn.v_proj.bias", 0, false, false},
    {"transformer.h.#.attn.c_proj.bias", "model.layers.#.self_attn.o_proj.bias", 0, false, false},
    {"transformer.h.#.mlp.c_gate.bias", "model.layers.#.mlp.gate_proj.bias", 0, false, false},
    {"transformer.h.#.mlp.c_fc.bias", "model.layers.#.mlp.up_proj.bias", 0, false, false},
    {"transformer.h.#.mlp.c_proj.bias", "model.layers.#.mlp.down_proj.bias", 0, false, false},
    {NULL, NULL, 0, false, false},
};

static const hf_row gpt2_rows[] = {
    {"transformer.wte.weight", "wte.weight", 0, false, false},
    {"transformer.wpe.weight", "wpe.weight", 0, false, false},
    {"lm_head.weight", "lm_head.weight", 0, false, false},
    {"transformer.ln_f.weight", "ln_f.weight", 0, false, false},
    {"transformer.ln_f.bias", "ln_f.bias", 0, false, false},
    {"transformer.h.#.ln_1.weight", "h.#.ln_1.weight", 0, false, false},
    {"transformer.h.#.ln_1.bias", "h.#.ln_1.bias", 0, false, false},
    {"transformer.h.#.ln_2.weight", "h.#.ln_2.weight", 0, false, false},
    {"transformer.h.#.ln_2.bias", "h.#.ln_2.bias", 0, false, false},
    {"transformer.h.#.attn.c_q.weight", "h.#.attn.c_attn.weight", 1, true, false},
    {"transformer.h.#.attn.c_k.weight", "h.#.attn.c_attn.weight", 2, true, false},
    {"transformer.h.#.attn.c_v.weight", "h.#.attn.c_attn.weight", 3, true, false},
    {"transformer.h.#.attn.c_q.bias", "h.#.attn.c_attn.bias", 1, false, false},
    {"transformer.h.#.attn.c_k.bias", "h.#.attn.c_attn.bias", 2, false, false},
    {"transformer.h.#.attn.c_v.bias", "h.#.attn.c_attn.bias", 3, false, false},
    {"transformer.h.#.attn.c_proj.weight", "h.#.attn.c_proj.weight", 0, true, false},
    {"transformer.h.#.attn.c_proj.bias", "h.#.attn.c_proj.bias", 0, false, false},
    {"transformer.h.#.mlp.c_fc.weight", "h.#.mlp.c_fc.weight", 0, true, false},
    {"transformer.h.#.mlp.c_fc.bias", "h.#.mlp.c_fc.bias", 0, false, false},
    {"transformer.h.#.mlp.c_proj.weight", "h.#.mlp.c_proj.weight", 0, true, false},
    {"transformer.h.#.mlp.c_proj.bias", "h.#.mlp.c_proj.bias", 0, false, false},
    {NULL, NULL, 0, false, false},
};

static const hf_row nanochat_rows[] = {
    {"transformer.wte.weight", "model.embed_tokens.weight", 0, false, false},
    {"lm_head.weight", "lm_head.weight", 0, false, false},
    {"transformer.h.#.attn.c_q.weight", "model.layers.#.self_attn.q_proj.weight", 0, false, false},
    {"transformer.h.#.attn.c_k.weight", "model.layers.#.self_attn.k_proj.weight", 0, false, false},
    {"transformer.h.#.attn.c_v.weight", "model.layers.#.self_attn.v_proj.weight", 0, false, false},
    {"transformer.h.#.attn.c_proj.weight", "model.layers.#.self_attn.o_proj.weight", 0, false, false},
    {"transformer.h.#.mlp.c_fc.weight", "model.layers.#.mlp.fc1.weight", 0, false, false},
    {"transformer.h.#.mlp.c_proj.weight", "model.layers.#.mlp.fc2.weight", 0, false, false},
    {NULL, NULL, 0, false, false},
};

static const char *const gpt2_ignored[] = {".attn.bias", ".attn.masked_bias", NULL}; /* causal masks */
static const char *const llama_ignored[] = {".rotary_emb.inv_freq", NULL};

static const hf_family hf_gpt2 = {"gpt2",         "GPT2LMHeadModel", gpt2_rows,
                                  "transformer.", gpt2_ignored,      hf_recipe_gpt2};
static const hf_family hf_llama = {"llama", "LlamaForCausalLM", llama_rows, NULL, llama_ignored, hf_recipe_llama};
const hf_family hf_nanochat = {"nanochat", "NanoChatForCausalLM", nanochat_rows, NULL, llama_ignored,
                               hf_recipe_nanochat};
const hf_family hf_frontier = {"frontier", "FrontierForCausalLM", NULL, NULL, llama_ignored, hf_recipe_frontier};

const hf_family *hf_find_family(const char *model_type)
{
    static const hf_family *const families[] = {&hf_gpt2, &hf_llama, &hf_nanochat, &hf_frontier};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(families[i]->model_type, model_type) == 0)
            return families[i];
    return NULL;
}

/* The block's number within a name of ours, and the length of what stands before it; 0: not of a block. */
static size_t block_of(const char *ours, int *digits)
{
    static const char blocks[] = "transformer.h.";
    size_t start = sizeof blocks - 1;
    if (strncmp(ours, blocks, start) != 0)
        return 0;
    *digits = (int)strspn(ours + start, "0123456789");
    return start;
}

/* Writes `pattern` with # replaced by the block's number. */
static void insert_block(const char *pattern, const char *number, int digits, char *out)
{
    const char *mark = strchr(pattern, '#');
    int front = (int)(mark ? mark - pattern : (long)strlen(pattern));
    snprintf(out, HF_NAME, "%.*s%.*s%s", front, pattern, mark ? digits : 0, number, mark ? mark + 1 : "");
}

const hf_row *hf_translate(const hf_family *family, const char *ours, char *theirs)
{
    static const hf_row same = {"", "", 0, false, false};
    int digits = 0;
    size_t start = block_of(ours, &digits);
    if (!family->rows) {
        snprintf(theirs, HF_NAME, "%s", ours);
        return &same;
    }
    for (const hf_row *row = family->rows; row->ours; row++) {
        char spelled[HF_NAME];
        insert_block(row->ours, ours + start, digits, spelled);
        if (strcmp(spelled, ours) != 0)
            continue;
        insert_block(row->theirs, ours + start, digits, theirs);
        return row;
    }
    return NULL;
}
