/* Recipes: loading, overriding, checking, and the sizes they imply.
 *
 * A recipe is plain data, filled from the key table. Ranges of single values are the table's business; this
 * file knows which values cannot go together and says so with the way out. Sizes that follow from others
 * (width from depth, heads from width) are computed here and nowhere else, so a recipe keeps what its author
 * wrote.
 */
#include "frontier/model.h"
#include <math.h>
#include <string.h>

fr_status fr_recipe_defaults(fr_recipe *recipe, fr_error *error)
{
    int count;
    const fr_config_key *keys = fr_recipe_keys(&count);
    memset(recipe, 0, sizeof *recipe);
    return fr_config_defaults(keys, (size_t)count, recipe, error);
}

fr_status fr_recipe_parse(fr_recipe *recipe, const char *text, const char *origin, fr_error *error)
{
    int count;
    const fr_config_key *keys = fr_recipe_keys(&count);
    FR_TRY(fr_recipe_defaults(recipe, error));
    FR_TRY(fr_config_parse(keys, (size_t)count, recipe, text, origin, error));
    fr_status status = fr_recipe_check(recipe, error);
    return status == FR_OK ? FR_OK : fr_error_within(error, status, origin);
}

fr_status fr_recipe_load(fr_recipe *recipe, const char *path, fr_error *error)
{
    fr_arena arena;
    fr_arena_init(&arena, 1 << 14);
    char *text;
    size_t bytes;
    fr_status status = fr_file_read(&arena, path, &text, &bytes, error);
    if (status == FR_OK && memchr(text, 0, bytes))
        status =
            fr_error_set(error, FR_BAD_DATA, path, "a recipe is plain text", "the file contains a NUL byte");
    if (status == FR_OK)
        status = fr_recipe_parse(recipe, text, path, error);
    fr_arena_release(&arena);
    return status;
}

fr_status fr_recipe_set(fr_recipe *recipe, const char *assignment, fr_error *error)
{
    int count;
    const fr_config_key *keys = fr_recipe_keys(&count);
    return fr_config_set(keys, (size_t)count, recipe, assignment, error);
}

void fr_recipe_write(const fr_recipe *recipe, fr_buffer *out)
{
    int count;
    const fr_config_key *keys = fr_recipe_keys(&count);
    fr_config_write(keys, (size_t)count, recipe, out);
}

/* ---- sizes that follow from others ---------------------------------------------------------------- */

static int64_t divide_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit;
}

int64_t fr_recipe_width(const fr_recipe *recipe)
{
    if (recipe->model.width)
        return recipe->model.width;
    return divide_up(recipe->model.depth * recipe->model.aspect, recipe->model.head_dim) *
           recipe->model.head_dim;
}

int64_t fr_recipe_heads(const fr_recipe *recipe)
{
    return fr_recipe_width(recipe) / recipe->model.head_dim;
}

int64_t fr_recipe_kv_heads(const fr_recipe *recipe)
{
    return recipe->model.kv_heads ? recipe->model.kv_heads : fr_recipe_heads(recipe);
}

int64_t fr_recipe_hidden(const fr_recipe *recipe)
{
    return recipe->model.hidden ? recipe->model.hidden
                                : llround(recipe->model.mlp_ratio * (double)fr_recipe_width(recipe));
}

int64_t fr_recipe_window(const fr_recipe *recipe, int64_t layer)
{
    size_t pattern = strlen(recipe->model.windows);
    bool last = layer == recipe->model.depth - 1;
    if (last || pattern == 0 || recipe->model.windows[(size_t)layer % pattern] == 'L')
        return recipe->model.context;
    if (recipe->model.short_window)
        return recipe->model.short_window;
    return 128 * divide_up(divide_up(recipe->model.context, 4), 128);
}

bool fr_recipe_has_value_embedding(const fr_recipe *recipe, int64_t layer)
{
    return recipe->model.value_embeddings && layer % 2 == (recipe->model.depth - 1) % 2;
}

/* ---- values that cannot go together ---------------------------------------------------------------- */

static fr_status check_heads(const fr_recipe *recipe, fr_error *error)
{
    int64_t width = fr_recipe_width(recipe), head_dim = recipe->model.head_dim;
    if (head_dim % 2)
        return fr_error_set(error, FR_BAD_USAGE, "model.head_dim",
                            "the rotation works on pairs of channels; choose an even number",
                            "head_dim is odd: %lld", (long long)head_dim);
    if (width % head_dim) {
        char hint[128];
        snprintf(hint, sizeof hint, "choose a multiple of head_dim, for example %lld",
                 (long long)(divide_up(width, head_dim) * head_dim));
        return fr_error_set(error, FR_BAD_USAGE, "model.width", hint,
                            "width %lld is not a multiple of head_dim %lld", (long long)width,
                            (long long)head_dim);
    }
    int64_t heads = width / head_dim, kv_heads = fr_recipe_kv_heads(recipe);
    if (kv_heads > heads || heads % kv_heads)
        return fr_error_set(error, FR_BAD_USAGE, "model.kv_heads",
                            "query heads must be a multiple of it; 0 means as many as query heads",
                            "%lld key and value heads cannot serve %lld query heads", (long long)kv_heads,
                            (long long)heads);
    if (width > 65536)
        return fr_error_set(error, FR_BAD_USAGE, "model.aspect", "lower depth or aspect",
                            "width would be %lld, more than 65536", (long long)width);
    return FR_OK;
}

static fr_status check_attention(const fr_recipe *recipe, fr_error *error)
{
    const char *windows = recipe->model.windows;
    if (!windows[0] || windows[strspn(windows, "LS")])
        return fr_error_set(error, FR_BAD_USAGE, "model.windows",
                            "use L for long and S for short, for example \"SSSL\"",
                            "'%s' is not a window pattern", windows);
    bool rotary = strcmp(recipe->model.position, "rotary") == 0;
    if (recipe->model.qk_norm && !rotary)
        return fr_error_set(
            error, FR_BAD_USAGE, "model.qk_norm", "set model.qk_norm = false, or model.position = \"rotary\"",
            "query and key norm goes with rotary positions, not with '%s'", recipe->model.position);
    if (!recipe->model.qk_norm && recipe->model.qk_gain != 1)
        return fr_error_set(error, FR_BAD_USAGE, "model.qk_gain",
                            "set model.qk_norm = true, or leave qk_gain at 1",
                            "a gain on queries and keys without their norm");
    return FR_OK;
}

static fr_status check_channels(const fr_recipe *recipe, fr_error *error)
{
    int64_t width = fr_recipe_width(recipe);
    if (fr_recipe_hidden(recipe) < 1)
        return fr_error_set(error, FR_BAD_USAGE, "model.mlp_ratio", "choose a larger ratio",
                            "the MLP would have no channels");
    if (recipe->model.value_embeddings && recipe->model.value_gate_channels > width)
        return fr_error_set(error, FR_BAD_USAGE, "model.value_gate_channels", "choose at most the width",
                            "the value gate cannot read %lld of %lld channels",
                            (long long)recipe->model.value_gate_channels, (long long)width);
    if (recipe->model.smear && recipe->model.smear_channels > width)
        return fr_error_set(error, FR_BAD_USAGE, "model.smear_channels", "choose at most the width",
                            "the smear gate cannot read %lld of %lld channels",
                            (long long)recipe->model.smear_channels, (long long)width);
    return FR_OK;
}

static fr_status check_batch(const fr_recipe *recipe, fr_error *error)
{
    int64_t batch = recipe->optim.batch_tokens, context = recipe->model.context;
    if (batch % context || batch / context % recipe->optim.shards) {
        char hint[200];
        int64_t unit = context * recipe->optim.shards;
        int64_t nearest = batch < unit ? unit : (batch + unit / 2) / unit * unit;
        snprintf(hint, sizeof hint,
                 "choose a multiple of context * shards = %lld, for example %lld; or fewer shards",
                 (long long)unit, (long long)nearest);
        return fr_error_set(error, FR_BAD_USAGE, "optim.batch_tokens", hint,
                            "%lld tokens are not whole rows of %lld for each of %lld shards",
                            (long long)batch, (long long)context, (long long)recipe->optim.shards);
    }
    int64_t rows = batch / context / recipe->optim.shards;
    if (recipe->optim.micro_rows && rows % recipe->optim.micro_rows)
        return fr_error_set(error, FR_BAD_USAGE, "optim.micro_rows", "choose a divisor of that number, or 0",
                            "a shard's %lld rows cannot be cut into micro-batches of %lld", (long long)rows,
                            (long long)recipe->optim.micro_rows);
    return FR_OK;
}

/* Phases are pairs (progress, fraction of the batch): progress rises within [0, 1), and every fraction of the
 * batch is still whole rows for every shard. */
static fr_status check_phases(const fr_recipe *recipe, fr_error *error)
{
    const fr_config_reals *phases = &recipe->schedule.batch_phases;
    const char *where = "schedule.batch_phases";
    if (phases->count % 2)
        return fr_error_set(error, FR_BAD_USAGE, where, "for example [0.0, 0.5, 0.25, 1.0]",
                            "phases come in pairs: progress, fraction");
    double unit = (double)(recipe->model.context * recipe->optim.shards);
    for (int i = 0; i < phases->count; i += 2) {
        double p = phases->values[i], fraction = phases->values[i + 1];
        if (!(p >= 0 && p < 1) || (i > 0 && !(p > phases->values[i - 2])))
            return fr_error_set(error, FR_BAD_USAGE, where, "progress values rise, from 0 to below 1",
                                "phase %d starts at %g", i / 2 + 1, p);
        double tokens = fraction * (double)recipe->optim.batch_tokens;
        if (!(fraction > 0 && fraction <= 1) || tokens < unit || fmod(tokens, unit) != 0)
            return fr_error_set(
                error, FR_BAD_USAGE, where,
                "every phase needs whole rows for every shard: fewer shards, or another fraction",
                "%g of the batch is %g tokens, not a multiple of context * shards = %g", fraction, tokens,
                unit);
    }
    return FR_OK;
}

fr_status fr_recipe_check(const fr_recipe *recipe, fr_error *error)
{
    FR_TRY(check_heads(recipe, error));
    FR_TRY(check_attention(recipe, error));
    FR_TRY(check_channels(recipe, error));
    FR_TRY(check_batch(recipe, error));
    FR_TRY(check_phases(recipe, error));
    if (recipe->schedule.warm + recipe->schedule.cool > 1)
        return fr_error_set(error, FR_BAD_USAGE, "schedule.cool", "warm + cool may be at most 1",
                            "warm-up %g and cool-down %g overlap", recipe->schedule.warm,
                            recipe->schedule.cool);
    return FR_OK;
}
