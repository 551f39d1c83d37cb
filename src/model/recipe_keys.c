/* The table of every recipe key.
 *
 * One line per field of fr_recipe: its TOML name, type, default, range and one line of help. Parsing, --set,
 * writing a resolved recipe, the help text and the documentation all read this table, and the tests walk
 * it: a key without a test of its effect fails them. The defaults are the kit baseline (59,637,780 parameters
 * with 8,192 ids), so an empty recipe file is that baseline.
 */
#include "frontier/model.h"

#define KEY(TYPE, SECTION, FIELD, FALLBACK, LEAST, MOST, CHOICES, HELP) \
    {#SECTION "." #FIELD, FR_CONFIG_##TYPE, offsetof(fr_recipe, SECTION.FIELD), FALLBACK, LEAST, MOST, \
     CHOICES, HELP}
#define INT(SECTION, FIELD, FALLBACK, LEAST, MOST, HELP) \
    KEY(INT, SECTION, FIELD, FALLBACK, LEAST, MOST, NULL, HELP)
#define REAL(SECTION, FIELD, FALLBACK, LEAST, MOST, HELP) \
    KEY(REAL, SECTION, FIELD, FALLBACK, LEAST, MOST, NULL, HELP)
#define BOOL(SECTION, FIELD, FALLBACK, HELP) KEY(BOOL, SECTION, FIELD, FALLBACK, 0, 0, NULL, HELP)
#define WORD(SECTION, FIELD, FALLBACK, CHOICES, HELP) \
    KEY(STRING, SECTION, FIELD, "\"" FALLBACK "\"", 0, 0, CHOICES, HELP)

static const fr_config_key recipe_keys[] = {
    INT(model, depth, "10", 1, 512, "number of blocks"),
    INT(model, width, "0", 0, 65536, "channels; 0 = depth * aspect rounded up to a multiple of head_dim"),
    INT(model, aspect, "64", 1, 4096, "channels per block of depth, when width is 0"),
    INT(model, head_dim, "128", 2, 1024, "channels of one attention head; even"),
    INT(model, kv_heads, "0", 0, 4096, "key and value heads; 0 = as many as query heads"),
    INT(model, context, "1024", 2, 1048576, "tokens the model sees at once (T)"),
    WORD(model, windows, "L", NULL,
         "attention windows tiled over the blocks, L long or S short; the last is always L"),
    INT(model, short_window, "0", 0, 1048576, "tokens to the left an S block sees; 0 = about context / 4"),
    REAL(model, mlp_ratio, "4.0", 0.01, 64, "inner width of the MLP, in widths"),
    INT(model, hidden, "0", 0, 1048576, "inner width of the MLP in channels; 0 = mlp_ratio * width"),
    WORD(model, activation, "relu2", "relu2|gelu|swiglu", "activation of the MLP; swiglu has a third matrix"),
    BOOL(model, bias, "false", "a trained bias on every linear projection of the blocks"),
    WORD(model, norm, "rms", "rms|rms_gain|layer",
         "normalisation: rms has no parameters, rms_gain a gain, layer gain and bias"),
    REAL(model, norm_eps, "0.0", 0, 1, "added to the variance by norms; 0 = 1.19e-7 for rms, 1e-5 for layer"),
    BOOL(model, embedding_norm, "true", "normalise the embedding before the first block"),
    WORD(model, position, "rotary", "rotary|learned|none", "how position enters"),
    WORD(model, rotary_pairs, "halves", "halves|interleaved",
         "channels a rotation turns together: m and m + head_dim / 2, or 2m and 2m + 1"),
    REAL(model, rope_base, "100000.0", 1, 1e12, "base of the rotary angles"),
    BOOL(model, qk_norm, "true", "normalise queries and keys per head after the rotation"),
    REAL(model, qk_gain, "1.0", 1e-3, 100, "factor on normalised queries and keys"),
    REAL(model, softcap, "15.0", 0, 1e6, "logits become c tanh(logit / c); 0 = off"),
    BOOL(model, tied, "false",
         "the head is the embedding table: choose embedding_std and embedding_lr as for a head"),
    BOOL(model, resid_scalars, "true", "a trained factor on the residual stream at the start of every block"),
    REAL(model, resid_first, "1.0", -100, 100, "initial residual factor of the first block"),
    REAL(model, resid_last, "1.0", -100, 100, "initial residual factor of the last block; linear between"),
    BOOL(model, x0_scalars, "true", "a trained share of the embedding, added at the start of every block"),
    REAL(model, x0_first, "0.05", -100, 100, "initial share of the embedding in the first block"),
    REAL(model, x0_last, "0.05", -100, 100,
         "initial share of the embedding in the last block; linear between"),
    BOOL(model, value_embeddings, "false", "gated token tables added to the values of every other block"),
    INT(model, value_gate_channels, "12", 1, 65536, "channels of the block's input its value gate reads"),
    REAL(model, value_gate_range, "3.0", 1e-3, 100, "the value gate is range * sigmoid"),
    BOOL(model, smear, "false", "a gated share of the previous token's embedding"),
    INT(model, smear_channels, "24", 1, 65536, "channels the smear gate reads"),
    BOOL(model, backout, "false", "subtract a trained share of the middle block's output before the head"),
    REAL(model, backout_init, "0.2", -100, 100, "initial share subtracted by backout"),
    REAL(model, embedding_std, "0.8", 0, 100,
         "standard deviation of the initial embedding and position tables"),
    REAL(model, head_std, "0.001", 0, 100, "standard deviation of the initial head"),
    REAL(model, fc_init, "0.4", 0, 100,
         "initial MLP input weights are uniform within fc_init * sqrt(3 / width)"),
    WORD(model, numerics, "auto", "auto|fp32|bf16",
         "matrix products in bf16 or fp32; auto = bf16 where the processor has it"),
    WORD(model, residual, "fp32", "fp32|bf16", "precision of the residual stream in bf16 numerics"),

    WORD(optim, kind, "muon", "muon|adamw",
         "muon: Muon for matrices, AdamW for the rest; adamw: AdamW for everything"),
    INT(optim, batch_tokens, "65536", 1, 1073741824, "tokens per step"),
    INT(optim, shards, "8", 1, 1024, "gradient shards per step; as many threads or ranks can share a step"),
    INT(optim, micro_rows, "0", 0, 65536, "rows per micro-batch of a shard; 0 = choose"),
    REAL(optim, matrix_lr, "0.02", 0, 100, "Muon learning rate"),
    REAL(optim, matrix_decay, "0.2", 0, 100, "Muon weight decay (cautious)"),
    REAL(optim, matrix_beta2, "0.9", 0, 0.999999, "Muon: decay of the per-row second moment"),
    REAL(optim, momentum_start, "0.85", 0, 0.999999, "Muon momentum at step 0"),
    REAL(optim, momentum, "0.95", 0, 0.999999, "Muon momentum after momentum_steps"),
    REAL(optim, momentum_end, "0.0", 0, 0.999999, "Muon momentum at the end of the cool-down; 0 = stays"),
    INT(optim, momentum_steps, "300", 0, 1000000000, "steps from momentum_start to momentum"),
    BOOL(optim, muon_equalize, "false", "Muon: equal row norms before the orthogonalisation"),
    BOOL(optim, muon_plus, "false", "Muon: unit root-mean-square singular value after it"),
    REAL(optim, embedding_lr, "0.3", 0, 100, "AdamW learning rate of the embedding"),
    REAL(optim, embedding_beta1, "0.8", 0, 0.999999, "first-moment decay of the embedding"),
    REAL(optim, embedding_beta2, "0.995", 0, 0.9999999, "second-moment decay of the embedding"),
    REAL(optim, embedding_decay, "0.001", 0, 100, "weight decay of the embedding"),
    REAL(optim, head_lr, "0.006", 0, 100, "AdamW learning rate of the head"),
    REAL(optim, head_beta1, "0.8", 0, 0.999999, "first-moment decay of the head"),
    REAL(optim, head_beta2, "0.96", 0, 0.9999999, "second-moment decay of the head"),
    REAL(optim, head_decay, "0.01", 0, 100, "weight decay of the head"),
    REAL(optim, value_lr, "0.15", 0, 100, "AdamW learning rate of the value embeddings"),
    REAL(optim, value_beta1, "0.8", 0, 0.999999, "first-moment decay of the value embeddings"),
    REAL(optim, value_beta2, "0.995", 0, 0.9999999, "second-moment decay of the value embeddings"),
    REAL(optim, value_decay, "0.01", 0, 100, "weight decay of the value embeddings"),
    REAL(optim, scalar_lr, "0.2", 0, 100, "AdamW learning rate of scalars, gains and biases"),
    REAL(optim, scalar_beta1, "0.9", 0, 0.999999, "first-moment decay of scalars"),
    REAL(optim, scalar_beta2, "0.95", 0, 0.9999999, "second-moment decay of scalars"),
    REAL(optim, scalar_decay, "0.0", 0, 100, "weight decay of scalars"),
    REAL(optim, resid_lr_factor, "1.0", 0, 100, "factor on scalar_lr for the residual factors"),
    REAL(optim, adamw_lr, "0.0006", 0, 100, "learning rate of matrices when kind = adamw"),
    REAL(optim, adamw_beta1, "0.9", 0, 0.999999, "first-moment decay of matrices when kind = adamw"),
    REAL(optim, adamw_beta2, "0.95", 0, 0.9999999, "second-moment decay of matrices when kind = adamw"),
    REAL(optim, adamw_decay, "0.1", 0, 100, "weight decay of matrices when kind = adamw"),
    REAL(optim, eps, "1e-10", 0, 1, "AdamW epsilon"),
    REAL(optim, clip, "1.0", 0, 1e9, "largest norm of the whole gradient; 0 = no clipping"),
    BOOL(optim, width_scale, "true", "embedding and head learning rates times (width / 768)^-0.5"),
    INT(optim, reference_batch, "0", 0, 1073741824,
        "learning rates times sqrt(batch_tokens / this); 0 = off"),

    REAL(schedule, warm, "0.0", 0, 1, "share of the run that warms the learning rate up"),
    REAL(schedule, cool, "0.75", 0, 1, "share of the run, at its end, that cools it down"),
    REAL(schedule, floor, "0.05", 0, 1, "learning-rate multiplier at the end"),
    WORD(schedule, decay, "linear", "constant|linear|cosine", "how matrix weight decay fades over the run"),
    KEY(REALS, schedule, batch_phases, "[]", 0, 0, NULL,
        "pairs p, fraction: from progress p on, steps have this fraction of batch_tokens"),
    BOOL(schedule, by_step, "false", "progress = step / max_steps even under a time budget"),

    WORD(data, packing, "best-fit", "best-fit|stream", "rows begin at documents, or are cut from one stream"),
    INT(data, buffer, "512", 1, 1000000, "documents best-fit chooses from"),
    INT(data, pool_rows, "0", 0, 10000000,
        "rows pass through a seeded shuffle pool of this size; 0 = no pool"),
    BOOL(data, mask_bos_target, "false", "do not train on predicting the start of a document"),
    WORD(data, byte_lengths, "raw", "raw|decoded",
         "bytes of a token in bits per byte; decoded is the older convention"),

    INT(clock, max_steps, "0", 0, 1000000000, "stop after this many steps; 0 = the budget decides"),
    INT(clock, checkpoint_every, "0", 0, 1000000000,
        "steps between checkpoints; 0 = only at the end and on a signal"),
    INT(clock, eval_every, "0", 0, 1000000000, "steps between evaluations, which are charged; 0 = none"),
    INT(clock, eval_tokens, "65536", 1, 1000000000000, "tokens of a periodic evaluation"),
};

const fr_config_key *fr_recipe_keys(int *count)
{
    *count = (int)(sizeof recipe_keys / sizeof recipe_keys[0]);
    return recipe_keys;
}
