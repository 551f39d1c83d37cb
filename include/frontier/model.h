/* frontier/model.h: the GPT family from a recipe; checkpoints; scoring; the inference engine.
 *
 * Mental model. A recipe is every choice of a run, resolved: sections [model] [optim] [schedule] [data]
 * [clock]. fr_model_build turns its [model] section into a graph with the names of nanochat's tensors, so
 * checkpoints travel. A run folder holds model.safetensors + recipe.toml + tokenizer.json: with those three
 * anything that was trained can be scored, sampled and resumed.
 *
 *     fr_recipe recipe;
 *     fr_recipe_load(&recipe, "recipes/baseline.toml", &error);
 *     fr_graph *graph = fr_graph_create(&error);
 *     fr_model_build(graph, &recipe, 8192, &error);
 *     printf("%lld parameters\n", (long long)fr_graph_parameter_elements(graph));
 */
#ifndef FRONTIER_MODEL_H
#define FRONTIER_MODEL_H
#include "frontier/cpu.h"
#include "frontier/graph.h"
#include "frontier/text.h"

/* ---- recipe --------------------------------------------------------------------------------------- */

/* One field per TOML key of the same name; defaults are the kit baseline (baseline.md 10). */
typedef struct fr_recipe {
    struct {
        int64_t depth;            /* blocks */
        int64_t width;            /* 0: ceil(depth * aspect / head_dim) * head_dim */
        int64_t aspect, head_dim; /* 64, 128 */
        int64_t kv_heads;         /* 0: as many as heads; heads = width / head_dim */
        int64_t context;          /* T */
        char windows[64];     /* pattern of L and S tiled over layers, last layer forced to L: "L", "SSSL" */
        int64_t short_window; /* S: 0 = 128 * ceil(ceil(T/4)/128) */
        double mlp_ratio;     /* 4 */
        int64_t hidden;       /* channels inside the MLP; 0: mlp_ratio * width */
        char activation[64];  /* relu2 | gelu | swiglu (a third matrix, c_gate) */
        bool bias;            /* the blocks' linear projections have one */
        char norm[64];        /* rms (no parameters) | rms_gain (gain) | layer (gain and bias) */
        double norm_eps;      /* 0: 1.1920929e-07 for rms, 1e-5 for layer; of the QK norm too */
        bool embedding_norm;  /* normalise the embedding before the first block */
        char position[64];    /* rotary | learned | none */
        char rotary_pairs[64]; /* halves (m, m + d/2) | interleaved (2m, 2m + 1) */
        double rope_base;
        bool qk_norm;
        double qk_gain;     /* 1 in the kit, 1.2 in nanochat */
        double softcap;     /* 15; 0 = off */
        bool tied;          /* head = embedding table */
        bool resid_scalars; /* per block r (init resid_first..resid_last over depth) */
        double resid_first, resid_last;
        bool x0_scalars; /* per block z (init x0_first..x0_last) */
        double x0_first, x0_last;
        bool value_embeddings;       /* on layers i with i mod 2 == (depth-1) mod 2 */
        int64_t value_gate_channels; /* 12 */
        double value_gate_range;     /* 3 */
        bool smear, backout;
        int64_t smear_channels;                  /* 24 */
        double backout_init;                     /* 0.2 */
        double embedding_std, head_std, fc_init; /* 0.8, 0.001, 0.4 (times sqrt(3/C)) */
        char numerics[64]; /* auto | fp32 | bf16; auto = bf16 where the CPU multiplies bf16 */
        char residual[64]; /* fp32 | bf16 */
    } model;
    struct {
        char kind[64];                                /* muon | adamw (everything) */
        int64_t batch_tokens;                         /* per step, at the end of the batch phases */
        int64_t shards;                               /* gradient shards S per step, 8 */
        int64_t micro_rows;                           /* rows per micro-batch of a shard; 0 = choose */
        double matrix_lr, matrix_decay, matrix_beta2; /* 0.02, 0.2, 0.9 */
        double momentum_start, momentum; /* 0.85 -> 0.95 over momentum_steps */
        double momentum_end;             /* at the end of the cool-down; 0 = stays */
        int64_t momentum_steps;        /* 300 */
        bool muon_equalize, muon_plus; /* MuonEq, Muon+ of nanochat HEAD */
        double embedding_lr, embedding_beta1, embedding_beta2, embedding_decay; /* 0.3, 0.8, 0.995, 0.001 */
        double head_lr, head_beta1, head_beta2, head_decay;                     /* 0.006, 0.8, 0.96, 0.01 */
        double value_lr, value_beta1, value_beta2, value_decay;                 /* 0.15, 0.8, 0.995, 0.01 */
        double scalar_lr, scalar_beta1, scalar_beta2, scalar_decay;             /* 0.2, 0.9, 0.95, 0 */
        double resid_lr_factor;                                 /* 1 in the kit, 0.01 in nanochat */
        double adamw_lr, adamw_beta1, adamw_beta2, adamw_decay; /* matrices when kind = adamw */
        double eps;                                             /* 1e-10 */
        double clip;                                            /* global gradient norm; 0 = off */
        bool width_scale;                                       /* embedding and head lr times (C/768)^-0.5 */
        int64_t reference_batch; /* > 0: all lr times sqrt(batch_tokens / reference_batch) (2.5) */
    } optim;
    struct {
        double warm, cool, floor;     /* fractions of progress; lr multiplier at the end */
        char decay[64];               /* constant | linear | cosine: matrix decay over progress */
        fr_config_reals batch_phases; /* pairs p, fraction: from progress p on use fraction of batch_tokens */
        bool by_step;                 /* progress = step / max_steps even when a time budget exists */
    } schedule;
    struct {
        char packing[64]; /* best-fit | stream */
        int64_t buffer;   /* 512 */
        int64_t pool_rows;
        bool mask_bos_target;
        char byte_lengths[64]; /* raw | decoded */
    } data;
    struct {
        int64_t max_steps;        /* 0 = the budget decides */
        int64_t checkpoint_every; /* steps; 0 = only at the end and on a signal */
        int64_t eval_every;       /* steps; charged */
        int64_t eval_tokens;      /* for the periodic evaluation */
    } clock;
} fr_recipe;

const fr_config_key *fr_recipe_keys(int *count); /* the table behind parsing, help and docs */
fr_status fr_recipe_defaults(fr_recipe *recipe, fr_error *error);
fr_status fr_recipe_load(fr_recipe *recipe, const char *path, fr_error *error); /* defaults, file, check */
/* The recipe of a run folder. One that is not what run.json says the run was made with is refused: what is missing
 * from it would be filled in with defaults. */
fr_status fr_run_recipe_load(fr_recipe *recipe, const char *run_folder, fr_error *error);
/* The same from memory. */
fr_status fr_recipe_parse(fr_recipe *recipe, const char *text, const char *origin, fr_error *error);
/* "model.depth=6". Values are not checked against each other: call fr_recipe_check after the last one. */
fr_status fr_recipe_set(fr_recipe *recipe, const char *assignment, fr_error *error);
fr_status fr_recipe_check(const fr_recipe *recipe, fr_error *error); /* what cannot go together, named */
void fr_recipe_write(const fr_recipe *recipe, fr_buffer *out);
int64_t fr_recipe_width(const fr_recipe *recipe);
int64_t fr_recipe_heads(const fr_recipe *recipe);
int64_t fr_recipe_kv_heads(const fr_recipe *recipe);
int64_t fr_recipe_hidden(const fr_recipe *recipe);                /* width of the MLP's inside */
int64_t fr_recipe_window(const fr_recipe *recipe, int64_t layer); /* keys to the left of the query */
bool fr_recipe_has_value_embedding(const fr_recipe *recipe, int64_t layer);
fr_numerics fr_recipe_numerics(const fr_recipe *recipe); /* auto resolved for this processor */
bool fr_recipe_residual_bf16(const fr_recipe *recipe);   /* for fr_plan_options */

/* ---- model ---------------------------------------------------------------------------------------- */

/* Builds the model: inputs "tokens", "targets", scalar "loss_scale"; outputs "nats", "loss", "logits".
 * Groups: "embedding", "head", "matrix", "value", "scalar", "resid", "x0". The vocabulary is padded to 64
 * rows. */
fr_status fr_model_build(fr_graph *graph, const fr_recipe *recipe, int64_t vocab, fr_error *error);

typedef struct fr_model_size {
    int64_t params, matmul_params, value_params, scalars;
    double flops_per_token; /* forward + backward, baseline.md 1.6 (full attention) */
    double flops_per_token_causal;
} fr_model_size;
fr_status fr_model_measure(const fr_recipe *recipe, int64_t vocab, fr_model_size *size, fr_error *error);

/* ---- checkpoints ---------------------------------------------------------------------------------- */

/* safetensors, one file per role. Metadata carries format version and a checksum of all content, verified on
 * read; truncated, altered, overlapping, oversized files are named errors. Files without a format version
 * were written by others: they are read, unverified. Entries come in data order and point into the file;
 * `data` of a foreign file may be unaligned, so copy it with memcpy. */
typedef struct fr_tensor_file fr_tensor_file;
typedef struct fr_tensor_entry {
    const char *name;
    fr_dtype dtype;
    int dims;
    int64_t shape[4];
    const void *data;
} fr_tensor_entry;
/* Atomic and durable; equal input gives equal bytes. Metadata: key, value, key, value ... as UTF-8. */
fr_status fr_tensor_file_write(const char *path, const fr_tensor_entry *entries, int count,
                               const char *const *metadata_pairs, int pair_count, fr_error *error);
fr_status fr_tensor_file_open(fr_tensor_file **out, const char *path, fr_error *error);
/* The same from memory, which must outlive the file. */
fr_status fr_tensor_file_parse(fr_tensor_file **out, const void *bytes, size_t count, const char *origin,
                               fr_error *error);
int fr_tensor_file_count(const fr_tensor_file *file);
const fr_tensor_entry *fr_tensor_file_entry(const fr_tensor_file *file, int index);
const fr_tensor_entry *fr_tensor_file_find(const fr_tensor_file *file, const char *name);
const char *fr_tensor_file_metadata(const fr_tensor_file *file, const char *key);
void fr_tensor_file_close(fr_tensor_file *file);

fr_status fr_model_save(const fr_graph *graph, const float *parameters, const char *path, fr_error *error);
/* Names and shapes must match exactly. */
fr_status fr_model_load(const fr_graph *graph, float *parameters, const char *path, fr_error *error);

/* ---- a loaded model --------------------------------------------------------------------------------- */

/* Weights, graph and plans of a run, ready to score. Library models run here; a run made by a submission's
 * own program answers through its program (submission.h). */
typedef struct fr_scorer fr_scorer;
typedef struct fr_scorer_options {
    int threads;          /* <= 0: all */
    const char *numerics; /* NULL: the recipe's; "fp32", "bf16" */
    /* Builds the graph instead of fr_model_build: a submission's model, inside its own program. */
    fr_status (*model)(fr_graph *graph, const fr_recipe *recipe, int64_t vocab, fr_error *error);
} fr_scorer_options;
fr_status fr_scorer_open(fr_scorer **out, const char *run_folder, const fr_scorer_options *options,
                         fr_error *error);
/* From memory: used by the trainer for periodic evaluation. Borrowed graph, parameters and pool. */
fr_status fr_scorer_create(fr_scorer **out, const fr_graph *graph, const fr_recipe *recipe,
                           const float *parameters, fr_pool *pool, fr_error *error);
/* Call after the borrowed parameters changed. */
void fr_scorer_refresh(fr_scorer *scorer);
/* Makes the plan and memory for rows of T now, so that scoring them allocates nothing. Optional. */
fr_status fr_scorer_prepare(fr_scorer *scorer, int64_t T, fr_error *error);
const fr_recipe *fr_scorer_recipe(const fr_scorer *scorer);
const fr_tokenizer *fr_scorer_tokenizer(const fr_scorer *scorer); /* NULL for created ones */
const char *fr_scorer_run(const fr_scorer *scorer);               /* the run folder; "" for created ones */
/* nats[i] of every target (0 where ignored). Bit-identical for any rows per call and any number of
 * threads. */
fr_status fr_scorer_nats(fr_scorer *scorer, int64_t rows, int64_t T, const int32_t *inputs,
                         const int32_t *targets, float *nats, fr_error *error);
/* Logits of positions `first`..T-1 of one row: (T - first) x vocab fp32. */
fr_status fr_scorer_logits(fr_scorer *scorer, int64_t T, const int32_t *inputs, int64_t first, float *logits,
                           fr_error *error);
int64_t fr_scorer_vocab(const fr_scorer *scorer);

/* A row of which only some targets count: the target of position p is ids[p + 1], for p in [first, end). */
typedef struct fr_span {
    const int32_t *ids; /* end + 1 are read */
    int64_t first, end;
    bool greedy;   /* ask whether every target is the model's first choice, instead of its nats */
    double nats;   /* out: the sum over the span; NaN when the model's numbers are not finite */
    bool followed; /* out, of greedy spans: all targets are first choices (lowest id on ties) */
} fr_span;
/* Rows of any lengths, longer than the context too. A row's plan depends on its own length alone, so results
 * are the same bits for any company and any number of threads. */
fr_status fr_scorer_spans(fr_scorer *scorer, int64_t count, fr_span *spans, fr_error *error);
/* A measure of what that takes, to be compared with that of other spans: operations, or tokens. */
fr_status fr_scorer_spans_work(fr_scorer *scorer, int64_t count, fr_span *spans, double *work, fr_error *error);
/* The length at which a row of T tokens is run: rows of equal ones cost the same. */
int64_t fr_span_padded(int64_t T);
void fr_scorer_free(fr_scorer *scorer);

/* ---- the inference engine -------------------------------------------------------------------------- */

/* Mental model. An engine holds up to `sequences` texts being continued. Each remembers what attention
 * needs of its tokens (a KV cache; layers with a window keep only the window), so a new token costs one
 * pass over the weights, and one pass serves a token of every sequence at once. The graph is the scorer's
 * own, run by plans that continue sequences (graph.h).
 *
 *     fr_engine *engine;
 *     fr_engine_open(&engine, "runs/first", &(fr_engine_options){.sequences = 2}, &error);
 *     fr_engine_add(engine, &a, &error);
 *     fr_engine_feed(engine, a, count, prompt, NULL, &error);       // all but the last token
 *     fr_engine_step(engine, 1, &a, &last, logits, &error);            // logits behind `last`
 *
 * Logits are those of a whole row (fr_scorer_logits): to the bit with our vector kernels, in fp32 and
 * bf16, however the tokens were cut into calls and whichever sequences go along; to 1e-5 relative with the
 * reference kernels. Positions go on beyond the training context: attention looks back as far as its
 * windows (the context in full layers) and rotary angles are exact at any position; a model with learned
 * positions ends with its table, FR_BAD_USAGE. Ids outside the vocabulary are FR_BAD_DATA. A call that
 * fails changes no sequence.
 *
 * One thread at a time uses an engine and its scorer; work is split over the scorer's pool. After creation
 * neither feeding nor stepping allocates. */
typedef struct fr_engine fr_engine;
typedef struct fr_engine_options {
    int threads;          /* <= 0: all */
    const char *numerics; /* NULL: the recipe's; "fp32", "bf16" */
    int64_t sequences;    /* at most at once, 1 to 1024; 0: 1. Each costs fr_engine_sequence_bytes */
} fr_engine_options;
fr_status fr_engine_open(fr_engine **out, const char *run_folder, const fr_engine_options *options,
                         fr_error *error);
/* On a scorer, which must outlive the engine; sequences as above. */
fr_status fr_engine_create(fr_engine **out, fr_scorer *scorer, int64_t sequences, fr_error *error);
void fr_engine_free(fr_engine *engine);
fr_scorer *fr_engine_scorer(const fr_engine *engine); /* recipe, tokenizer, vocabulary; the engine's */
int64_t fr_engine_sequences(const fr_engine *engine);
size_t fr_engine_sequence_bytes(const fr_engine *engine); /* memory of one sequence, at any length */
/* Positions a sequence can have; INT64_MAX unless the model's positions are learned. */
int64_t fr_engine_positions(const fr_engine *engine);
/* An empty sequence, numbered 0 to sequences-1; FR_ANSWER_NO when all are in use. */
fr_status fr_engine_add(fr_engine *engine, int64_t *sequence, fr_error *error);
void fr_engine_remove(fr_engine *engine, int64_t sequence);
int64_t fr_engine_length(const fr_engine *engine, int64_t sequence); /* tokens it has seen */
/* Adds tokens to one sequence, many at a time. logits: count x vocab, of every position; NULL: none are
 * computed. */
fr_status fr_engine_feed(fr_engine *engine, int64_t sequence, int64_t count, const int32_t *tokens,
                         float *logits, fr_error *error);
/* Adds one token to each of `count` different sequences in one pass. logits: count x vocab. */
fr_status fr_engine_step(fr_engine *engine, int64_t count, const int64_t *sequences, const int32_t *tokens,
                         float *logits, fr_error *error);
/* Of one pass that adds one token to `count` sequences of `length` tokens, or `count` tokens to one of them:
 * operations, and bytes of weights, keys and values that must be read. For benchmarks. */
void fr_engine_cost(const fr_engine *engine, int64_t count, int64_t length, bool step, double *flops,
                    double *bytes);

/* ---- text ------------------------------------------------------------------------------------------- */

typedef bool (*fr_text_sink)(void *context, const char *bytes, size_t count); /* false: no more, please */
typedef struct fr_sample_options {
    int64_t tokens;     /* at most */
    double temperature; /* 0 = greedy */
    int64_t top_k;      /* 0 = off */
    double top_p;       /* in (0, 1]; 0, as in a struct that names no top_p, and 1 = off */
    uint64_t seed;
    bool stop_at_bos; /* a document's end; otherwise special tokens appear as their text */
    const char *const *stop; /* texts that end it; they are not handed out */
    int stop_count;          /* at most 16 of at most 1024 bytes */
} fr_sample_options;

typedef enum fr_finish {
    FR_FINISH_NOT,
    FR_FINISH_LENGTH,
    FR_FINISH_STOP,
    FR_FINISH_DOCUMENT,
    FR_FINISH_SINK
} fr_finish;
/* A text as it is generated: logits go in, tokens and bytes come out. Bytes are handed to `emit` as they
 * come: a character of several bytes only when it is complete, and nothing that may still become a stop
 * text. The same options and logits give the same text. */
typedef struct fr_generation fr_generation;
/* `last`: the token the text goes on behind, -1 at its start. Strings of the options are copied; tokenizer and
 * sink are borrowed. */
fr_status fr_generation_create(fr_generation **out, const fr_tokenizer *tokenizer, int32_t last,
                               const fr_sample_options *options, fr_text_sink emit, void *context,
                               fr_error *error);
void fr_generation_free(fr_generation *generation);
/* Chooses the next token by the logits of the position before it. *token is -1 when the text ended
 * instead. */
fr_status fr_generation_next(fr_generation *generation, const float *logits, int32_t *token, fr_error *error);
fr_finish fr_generation_finish(const fr_generation *generation); /* why it ended, or that it goes on */
int64_t fr_generation_tokens(const fr_generation *generation);   /* chosen so far */
int32_t fr_generation_last(const fr_generation *generation);     /* the latest, or what create was given */

/* Token ids of a prompt, BOS in front where the tokenizer has one; fr_deallocate them. FR_BAD_USAGE if
 * there are none. */
fr_status fr_prompt_encode(const fr_tokenizer *tokenizer, const char *prompt, size_t bytes, int32_t **ids,
                           int64_t *count, fr_error *error);
/* Goes on with a sequence: `count` >= 1 new tokens, then what follows until the generation ends. The last
 * token chosen is not fed. */
fr_status fr_engine_generate(fr_engine *engine, int64_t sequence, int64_t count, const int32_t *prompt,
                             fr_generation *generation, fr_error *error);
/* Continues `prompt` (BOS in front) by an engine of one sequence. finish may be NULL. */
fr_status fr_sample(fr_scorer *scorer, const char *prompt, const fr_sample_options *options,
                    fr_text_sink emit, void *context, fr_finish *finish, fr_error *error);
/* The same with logits from anywhere (a submission's program): positions first..T-1 of one row. The prefix
 * is run again for every token, its last `context` tokens when it is longer. */
typedef fr_status (*fr_logits_source)(void *context, int64_t T, const int32_t *tokens, int64_t first,
                                      float *logits, fr_error *error);
fr_status fr_sample_from(fr_logits_source source, void *source_context, int64_t context,
                         const fr_tokenizer *tokenizer, const char *prompt, const fr_sample_options *options,
                         fr_text_sink emit, void *emit_context, fr_finish *finish, fr_error *error);

#endif
