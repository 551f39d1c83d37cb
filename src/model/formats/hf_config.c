/* config.json as a recipe.
 *
 * Every family has its list of settings, with the value `transformers` assumes where the file is silent. A setting
 * that would change what is computed in a way a recipe cannot say is refused by name; numbers meet the range of
 * the recipe key they become.
 */
#include "model/formats/hf.h"

#include <string.h>

/* ---- reading values --------------------------------------------------------------------------------- */

static fr_status refuse(const fr_foreign *model, const char *key, const char *what, fr_error *error)
{
    return fr_error_set(error, FR_BAD_DATA, model->path, "this model computes something a recipe cannot express",
                        "config.json: %s %s", key, what);
}

/* A whole number; `otherwise` when the file is silent, which must be at least 0 then. */
static fr_status whole(const fr_foreign *model, const json_t *config, const char *key, int64_t otherwise,
                       int64_t *out, fr_error *error)
{
    *out = otherwise;
    if (fr_json_has(config, key))
        return fr_json_get_int(config, key, 0, INT32_MAX, out, model->path, error);
    return otherwise >= 0 ? FR_OK : refuse(model, key, "is missing", error);
}

static fr_status real(const fr_foreign *model, const json_t *config, const char *key, double otherwise, double *out,
                      fr_error *error)
{
    *out = otherwise;
    return fr_json_has(config, key) ? fr_json_get_real(config, key, out, model->path, error) : FR_OK;
}

static fr_status yes(const fr_foreign *model, const json_t *config, const char *key, bool otherwise, bool *out,
                     fr_error *error)
{
    *out = otherwise;
    return fr_json_has(config, key) ? fr_json_get_bool(config, key, out, model->path, error) : FR_OK;
}

static fr_status word(const fr_foreign *model, const json_t *config, const char *key, const char *otherwise,
                      const char **out, fr_error *error)
{
    *out = otherwise;
    return fr_json_has(config, key) ? fr_json_get_string(config, key, out, model->path, error) : FR_OK;
}

/* The setting must be absent, null or `wanted`. */
static fr_status must_be(const fr_foreign *model, const json_t *config, const char *key, bool wanted, fr_error *error)
{
    bool value;
    FR_TRY(yes(model, config, key, wanted, &value, error));
    return value == wanted ? FR_OK : refuse(model, key, wanted ? "is false" : "is true", error);
}

static const char *boolean(bool value)
{
    return value ? "true" : "false";
}

/* ---- what families share ---------------------------------------------------------------------------- */

/* Which of our activations a name of theirs is. */
static fr_status set_activation(fr_foreign *model, const char *name, bool gated, fr_error *error)
{
    static const struct {
        const char *theirs, *ours;
        bool gated;
    } table[] = {{"gelu_new", "gelu", false},
                 {"gelu_pytorch_tanh", "gelu", false},
                 {"relu2", "relu2", false},
                 {"silu", "swiglu", true},
                 {"swish", "swiglu", true}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].gated == gated && strcmp(table[i].theirs, name) == 0)
            return foreign_set(model, error, "activation=\"%s\"", table[i].ours);
    char what[120];
    snprintf(what, sizeof what, "is %.60s, which is not supported here", name);
    return refuse(model, "the activation", what, error);
}

/* Base of the rotation: a number of its own, or in rope_parameters; scaled rotations are refused. */
static fr_status set_rotation(fr_foreign *model, const json_t *config, fr_error *error)
{
    static const char *const places[] = {"rope_scaling", "rope_parameters"};
    double base;
    FR_TRY(real(model, config, "rope_theta", 10000, &base, error));
    for (int i = 0; i < 2; i++) {
        const json_t *rope = json_object_get(config, places[i]);
        const char *kind = "default";
        if (!rope || json_is_null(rope))
            continue;
        if (!json_is_object(rope))
            return refuse(model, places[i], "is no object", error);
        FR_TRY(word(model, rope, "type", kind, &kind, error));
        FR_TRY(word(model, rope, "rope_type", kind, &kind, error));
        if (strcmp(kind, "default") != 0)
            return refuse(model, places[i], "scales the rotation", error);
        FR_TRY(real(model, rope, "rope_theta", base, &base, error));
        double share;
        FR_TRY(real(model, rope, "partial_rotary_factor", 1, &share, error));
        if (share != 1)
            return refuse(model, places[i], "rotates a part of the channels", error);
    }
    FR_TRY(foreign_set(model, error, "position=\"rotary\""));
    return foreign_set(model, error, "rope_base=%.17g", base);
}

/* Sizes of the Llama-like families. */
static fr_status set_sizes(fr_foreign *model, const json_t *config, fr_error *error)
{
    int64_t width, heads, kv_heads, layers, hidden, head_dim;
    FR_TRY(whole(model, config, "hidden_size", -1, &width, error));
    FR_TRY(whole(model, config, "num_attention_heads", -1, &heads, error));
    FR_TRY(whole(model, config, "num_key_value_heads", heads, &kv_heads, error));
    FR_TRY(whole(model, config, "num_hidden_layers", -1, &layers, error));
    FR_TRY(whole(model, config, "intermediate_size", -1, &hidden, error));
    if (heads < 1 || width < 1 || width % heads)
        return refuse(model, "num_attention_heads", "does not divide hidden_size", error);
    FR_TRY(whole(model, config, "head_dim", width / heads, &head_dim, error));
    if (head_dim != width / heads)
        return refuse(model, "head_dim", "is not hidden_size / num_attention_heads", error);
    if (hidden < 1 || kv_heads < 1)
        return refuse(model, "intermediate_size or num_key_value_heads", "is 0", error);
    FR_TRY(foreign_set(model, error, "depth=%lld", (long long)layers));
    FR_TRY(foreign_set(model, error, "width=%lld", (long long)width));
    FR_TRY(foreign_set(model, error, "head_dim=%lld", (long long)head_dim));
    FR_TRY(foreign_set(model, error, "kv_heads=%lld", (long long)kv_heads));
    return foreign_set(model, error, "hidden=%lld", (long long)hidden);
}

static fr_status set_tied(fr_foreign *model, const json_t *config, bool otherwise, fr_error *error)
{
    bool tied;
    FR_TRY(yes(model, config, "tie_word_embeddings", otherwise, &tied, error));
    return foreign_set(model, error, "tied=%s", boolean(tied));
}

static fr_status set_eps(fr_foreign *model, const json_t *config, const char *key, double otherwise, fr_error *error)
{
    double eps;
    FR_TRY(real(model, config, key, otherwise, &eps, error));
    if (!(eps > 0))
        return refuse(model, key, "is not above 0", error);
    return foreign_set(model, error, "norm_eps=%.17g", eps);
}

/* ---- families --------------------------------------------------------------------------------------- */

static const char *const gpt2_constants[] = {
    "norm=\"layer\"", "embedding_norm=false", "position=\"learned\"", "qk_norm=false", "bias=true", NULL};

fr_status hf_recipe_gpt2(fr_foreign *model, const json_t *config, fr_error *error)
{
    int64_t width, heads, layers, hidden;
    const char *activation;
    FR_TRY(foreign_set_all(model, gpt2_constants, error));
    FR_TRY(must_be(model, config, "scale_attn_weights", true, error));
    FR_TRY(must_be(model, config, "scale_attn_by_inverse_layer_idx", false, error));
    FR_TRY(must_be(model, config, "add_cross_attention", false, error));
    FR_TRY(whole(model, config, "n_embd", -1, &width, error));
    FR_TRY(whole(model, config, "n_head", -1, &heads, error));
    FR_TRY(whole(model, config, "n_layer", -1, &layers, error));
    FR_TRY(whole(model, config, "n_inner", 4 * width, &hidden, error));
    if (heads < 1 || width < 1 || width % heads || hidden < 1)
        return refuse(model, "n_head", "does not divide n_embd, or n_inner is 0", error);
    FR_TRY(foreign_set(model, error, "depth=%lld", (long long)layers));
    FR_TRY(foreign_set(model, error, "width=%lld", (long long)width));
    FR_TRY(foreign_set(model, error, "head_dim=%lld", (long long)(width / heads)));
    FR_TRY(foreign_set(model, error, "hidden=%lld", (long long)hidden));
    FR_TRY(word(model, config, "activation_function", "gelu_new", &activation, error));
    FR_TRY(set_activation(model, activation, false, error));
    FR_TRY(set_eps(model, config, "layer_norm_epsilon", 1e-5, error));
    return set_tied(model, config, true, error);
}

static const char *const llama_constants[] = {
    "norm=\"rms_gain\"", "embedding_norm=false", "rotary_pairs=\"halves\"", "qk_norm=false", NULL};

fr_status hf_recipe_llama(fr_foreign *model, const json_t *config, fr_error *error)
{
    bool attention_bias, mlp_bias;
    const char *activation;
    FR_TRY(foreign_set_all(model, llama_constants, error));
    FR_TRY(set_sizes(model, config, error));
    FR_TRY(set_rotation(model, config, error));
    FR_TRY(yes(model, config, "attention_bias", false, &attention_bias, error));
    FR_TRY(yes(model, config, "mlp_bias", false, &mlp_bias, error));
    if (attention_bias != mlp_bias)
        return refuse(model, "attention_bias and mlp_bias", "differ", error);
    FR_TRY(foreign_set(model, error, "bias=%s", boolean(attention_bias)));
    FR_TRY(word(model, config, "hidden_act", "silu", &activation, error));
    FR_TRY(set_activation(model, activation, true, error));
    FR_TRY(set_eps(model, config, "rms_norm_eps", 1e-6, error));
    return set_tied(model, config, false, error);
}

static const char *const nanochat_constants[] = {
    "norm=\"rms\"", "embedding_norm=true", "rotary_pairs=\"halves\"", "qk_norm=true", "bias=false", NULL};

fr_status hf_recipe_nanochat(fr_foreign *model, const json_t *config, fr_error *error)
{
    const char *activation;
    double cap;
    FR_TRY(foreign_set_all(model, nanochat_constants, error));
    FR_TRY(set_sizes(model, config, error));
    FR_TRY(set_rotation(model, config, error));
    FR_TRY(must_be(model, config, "attention_bias", false, error));
    FR_TRY(word(model, config, "hidden_act", "relu2", &activation, error));
    FR_TRY(set_activation(model, activation, false, error));
    bool silent = !json_object_get(config, "final_logit_softcapping"); /* null means off */
    FR_TRY(real(model, config, "final_logit_softcapping", silent ? 15 : 0, &cap, error));
    FR_TRY(foreign_set(model, error, "softcap=%.17g", cap));
    FR_TRY(set_eps(model, config, "rms_norm_eps", 1e-6, error));
    return set_tied(model, config, false, error);
}

/* Our own folders carry the [model] section of the recipe. */
fr_status hf_recipe_frontier(fr_foreign *model, const json_t *config, fr_error *error)
{
    json_t *recipe, *value;
    const char *key;
    FR_TRY(fr_json_get_object(config, "recipe", &recipe, model->path, error));
    json_object_foreach(recipe, key, value)
    {
        if (strlen(key) > 60)
            return refuse(model, "a key of recipe", "is too long", error);
        if (json_is_string(value) && json_string_length(value) < 60)
            FR_TRY(foreign_set(model, error, "%s=\"%s\"", key, json_string_value(value)));
        else if (json_is_boolean(value))
            FR_TRY(foreign_set(model, error, "%s=%s", key, boolean(json_is_true(value))));
        else if (json_is_integer(value))
            FR_TRY(foreign_set(model, error, "%s=%lld", key, (long long)json_integer_value(value)));
        else if (json_is_real(value))
            FR_TRY(foreign_set(model, error, "%s=%.17g", key, json_real_value(value)));
        else
            return refuse(model, key, "is no number, truth value or short word", error);
    }
    return FR_OK;
}

/* ---- the file --------------------------------------------------------------------------------------- */

static fr_status check_common(const fr_foreign *model, const json_t *config, fr_error *error)
{
    static const char *const absent[] = {"quantization_config", "sliding_window"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        if (fr_json_has(config, absent[i]))
            return refuse(model, absent[i], "is not supported", error);
    return must_be(model, config, "is_encoder_decoder", false, error);
}

fr_status hf_read_config(fr_foreign *model, const hf_family **family, const json_t *config, int64_t context,
                         fr_error *error)
{
    static const char *const common[] = {"windows=\"L\"",         "softcap=0.0",      "resid_scalars=false",
                                         "x0_scalars=false",      "numerics=\"fp32\"", NULL};
    const char *type;
    int64_t positions;
    FR_TRY(fr_json_get_string(config, "model_type", &type, model->path, error));
    *family = hf_find_family(type);
    if (!*family)
        return fr_error_set(error, FR_BAD_DATA, model->path, "gpt2, llama, nanochat and frontier are read",
                            "models of type '%.60s' are not supported", type);
    model->family = (*family)->model_type;
    FR_TRY(check_common(model, config, error));
    FR_TRY(foreign_set_all(model, common, error));
    FR_TRY((*family)->recipe(model, config, error));
    FR_TRY(fr_json_get_int(config, "vocab_size", 1, 1 << 20, &model->vocab, model->path, error));
    bool gpt2 = json_object_get(config, "n_positions") != NULL;
    FR_TRY(whole(model, config, gpt2 ? "n_positions" : "max_position_embeddings", 2048, &positions, error));
    if (context > positions)
        return fr_error_set(error, FR_BAD_USAGE, model->path, "leave --context out for the model's own",
                            "a context of %lld is more than the model's %lld", (long long)context,
                            (long long)positions);
    return foreign_set_context(model, context ? context : positions, error);
}
