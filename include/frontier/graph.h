/* frontier/graph.h: a model as a static tensor graph; plans that run it.
 *
 * Mental model. Model code declares parameters and applies operators; that builds a graph, once. Every
 * tensor is a matrix: `rows x columns`, where rows is a number or FR_TOKENS, meaning "one row per token",
 * and columns is the width. A head-split activation is still tokens x (heads * head_dim). A plan fixes how
 * many sequences of which length go through (rows x T tokens), in which numerics, and whether gradients are
 * wanted; it extends the graph by autograd, lays out one arena and binds a kernel to every step. Running a
 * plan allocates nothing. One graph has many readers: plans, the cost model, exporters.
 *
 *     fr_graph *g = fr_graph_create(&error);
 *     fr_tensor *ids = fr_input_ids(g, "tokens"), *targets = fr_input_ids(g, "targets");
 *     fr_tensor *table = fr_parameter(g, "wte", 256, 64, fr_init_normal(0.8), "embedding");
 *     fr_tensor *head = fr_parameter(g, "head", 256, 64, fr_init_normal(0.001), "head");
 *     fr_tensor *x = fr_rms_norm(g, fr_embed(g, table, ids), (fr_norm_options){0});
 *     fr_head_loss(g, x, head, targets, (fr_head_options){.vocab = 256, .softcap = 15});
 *     if (fr_graph_check(g, &error) != FR_OK) ...   // the first mistake made while building
 *
 * Building never fails half-way: after a mistake the operators return a dead tensor and fr_graph_check names
 * the first mistake, so model code reads like a page of mathematics.
 *
 * Numbers. In FR_NUMERICS_BF16 the residual stream and statistics are fp32, inputs of matrix products and
 * saved activations are bf16; in FR_NUMERICS_F32 everything is fp32; in FR_NUMERICS_F64 everything is
 * double (gradient checks). Parameters are fp32 masters (double in F64).
 */
#ifndef FRONTIER_GRAPH_H
#define FRONTIER_GRAPH_H
#include "frontier/base.h"

typedef struct fr_graph fr_graph;
typedef struct fr_node fr_node;
typedef struct fr_tensor fr_tensor;
typedef struct fr_plan fr_plan;

#define FR_TOKENS (-1)
#define FR_MAX_INPUTS 8
#define FR_MAX_OUTPUTS 3

typedef enum fr_dtype { FR_F32, FR_BF16, FR_F64, FR_I32, FR_F16 } fr_dtype; /* F16: in files only */
typedef enum fr_numerics { FR_NUMERICS_F32, FR_NUMERICS_BF16, FR_NUMERICS_F64 } fr_numerics;
size_t fr_dtype_bytes(fr_dtype dtype);
const char *fr_dtype_name(fr_dtype dtype);

/* What a tensor is for; with the plan's numerics this decides its dtype. */
typedef enum fr_kind {
    FR_KIND_IDS,        /* int32 token ids */
    FR_KIND_PARAMETER,  /* fp32 master */
    FR_KIND_STREAM,     /* residual stream: fp32 in bf16 numerics unless the plan says otherwise */
    FR_KIND_ACTIVATION, /* input of a matrix product or saved: bf16 in bf16 numerics */
    FR_KIND_STATISTIC   /* losses, log-sum-exps, run-time scalars: fp32 in bf16 numerics */
} fr_kind;

struct fr_tensor {
    const char *name;     /* inputs and parameters always have one; others "op:3" */
    int id;               /* index in the graph */
    fr_kind kind;
    int64_t rows, columns;
    fr_node *producer;    /* NULL for inputs and parameters */
    int output_index;     /* which output of the producer */
    int parameter;        /* index among parameters, or -1 */
};

/* ---- building ----------------------------------------------------------------------------------- */

fr_graph *fr_graph_create(fr_error *error); /* NULL when memory is out */
void fr_graph_free(fr_graph *graph);
fr_status fr_graph_check(const fr_graph *graph, fr_error *error); /* the first building mistake, if any */
fr_arena *fr_graph_arena(fr_graph *graph);  /* for attributes of own operators: lives as long as the graph */

fr_tensor *fr_input_ids(fr_graph *graph, const char *name);    /* tokens x 1, int32 */
fr_tensor *fr_input_scalar(fr_graph *graph, const char *name); /* 1 x 1, given at run time (fading weights) */

typedef struct fr_init {
    enum { FR_INIT_CONSTANT, FR_INIT_NORMAL, FR_INIT_UNIFORM } kind;
    double a, b; /* constant a; N(0, a); U(a, b) */
} fr_init;
fr_init fr_init_constant(double value);
fr_init fr_init_normal(double deviation);
fr_init fr_init_uniform(double low, double high);

/* A trained matrix. `group` names the optimizer group ("matrix", "embedding", "head", "scalar", ...). */
fr_tensor *fr_parameter(fr_graph *graph, const char *name, int64_t rows, int64_t columns, fr_init init,
                        const char *group);
/* Gives a tensor a name that outputs, traces and messages use. Returns it. */
fr_tensor *fr_name(fr_graph *graph, fr_tensor *tensor, const char *name);

typedef struct fr_norm_options {
    double eps;        /* 0 = 1.1920929e-07, the fp32 machine epsilon, in fp32 statistics */
    fr_tensor *gain;   /* optional 1 x columns */
    fr_tensor *bias;   /* layer norm only, optional */
    bool stream;       /* the output joins the residual stream instead of feeding a product */
} fr_norm_options;
typedef struct fr_rotary_options {
    int heads;         /* columns = heads * head_dim, head_dim even */
    double base;       /* e.g. 100000 */
    bool interleaved;  /* pairs (2m, 2m+1) by +angle as Llama; false: (m, m + d/2) by -angle as nanochat */
    bool norm;         /* afterwards y = gain * rms(y) per head (QK norm; norm AFTER rotation) */
    double eps, gain;  /* eps 0 = default; gain 0 = 1 */
} fr_rotary_options;
typedef struct fr_attention_options {
    int heads, kv_heads; /* heads a multiple of kv_heads */
    int64_t window;      /* query i sees keys j with 0 <= i-j <= window; <= 0: all before it */
    double scale;        /* 0 = 1/sqrt(head_dim) */
} fr_attention_options;
typedef struct fr_head_options {
    int64_t vocab;       /* logits beyond it (padding rows of the table) do not exist */
    double softcap;      /* z = c tanh(logit / c); 0 = off */
    double weight;       /* head loss only: multiplies loss_scale; 0 = 1 */
} fr_head_options;
typedef struct fr_add_scaled_options {
    double sign;
} fr_add_scaled_options;
typedef struct fr_value_gate_options {
    double range;
} fr_value_gate_options;
typedef struct fr_leaky_options {
    double slope;
} fr_leaky_options;
/* node->attributes of the built-in operators is the options struct above with every default filled in
 * (eps, gain, scale, weight); operators without options have NULL. */

/* Unless it says otherwise an operator makes an activation from tokens x columns inputs. */
/* Row ids[t] of the table: tokens x C, stream. */
fr_tensor *fr_embed(fr_graph *g, fr_tensor *table, fr_tensor *ids);
/* x + table[position], position = index within the row; stream. Rows longer than the table are refused. */
fr_tensor *fr_embed_positions(fr_graph *g, fr_tensor *x, fr_tensor *table);
fr_tensor *fr_rms_norm(fr_graph *g, fr_tensor *x, fr_norm_options options);
fr_tensor *fr_layer_norm(fr_graph *g, fr_tensor *x, fr_norm_options options);
/* x W^T; the weight is out x in. */
fr_tensor *fr_linear(fr_graph *g, fr_tensor *x, fr_tensor *weight);
fr_tensor *fr_add_bias(fr_graph *g, fr_tensor *x, fr_tensor *bias); /* x + bias, bias 1 x columns */
/* Position = index within the row. Constants: per position head_dim/2 float cosines, then as many sines. */
fr_tensor *fr_rotary(fr_graph *g, fr_tensor *x, fr_rotary_options options);
/* Causal softmax attention within each row. Output 1: log-sum-exp of the scaled scores, tokens x heads. */
fr_tensor *fr_attention(fr_graph *g, fr_tensor *q, fr_tensor *k, fr_tensor *v, fr_attention_options options);
fr_tensor *fr_relu_squared(fr_graph *g, fr_tensor *x);
fr_tensor *fr_leaky_relu_squared(fr_graph *g, fr_tensor *x, double slope); /* max(x, slope x)^2 */
fr_tensor *fr_gelu(fr_graph *g, fr_tensor *x); /* tanh form */
fr_tensor *fr_swiglu(fr_graph *g, fr_tensor *gate, fr_tensor *up); /* silu(gate) * up */
fr_tensor *fr_add(fr_graph *g, fr_tensor *x, fr_tensor *y); /* stream */
/* a x + b y, a and b 1 x 1; stream. */
fr_tensor *fr_blend(fr_graph *g, fr_tensor *a, fr_tensor *x, fr_tensor *b, fr_tensor *y);
/* x + sign * scale * y, scale 1 x 1; stream. */
fr_tensor *fr_add_scaled(fr_graph *g, fr_tensor *x, double sign, fr_tensor *scale, fr_tensor *y);
/* x_t + lambda sigmoid(<gate, x_t[0:gate.columns]>) x_{t-1}; stream.
 * The first position of a row is unchanged. */
fr_tensor *fr_smear(fr_graph *g, fr_tensor *x, fr_tensor *gate, fr_tensor *lambda);
/* taps[0] x_t + taps[1] x_{t-1}, channel by channel; taps 2 x columns; stream. Before a row there are zeros. */
fr_tensor *fr_two_tap(fr_graph *g, fr_tensor *x, fr_tensor *taps);
/* v + range * sigmoid(gate h[0:gate.columns]) * e per kv head; gate is kv_heads x channels. */
fr_tensor *fr_value_gate(fr_graph *g, fr_tensor *v, fr_tensor *e, fr_tensor *h, fr_tensor *gate,
                         double range);
/* Logits of x (tokens x C) against head (V' x C): tokens x vocab, fp32. The output is named "logits". */
fr_tensor *fr_head_logits(fr_graph *g, fr_tensor *x, fr_tensor *head, fr_head_options options);
/* Cross-entropy. Returns nats per token (tokens x 1, 0 where target is -1), named "nats"; a second output
 * named "loss" is 1 x 1: weight * loss_scale * sum of nats, where loss_scale is the run-time scalar of that
 * name (declared here; 1 when a run does not bind it). A second head loss in a graph names its outputs
 * "nats:2" and "loss:2"; a training plan trains the sum of all of them. In a training plan the forward pass
 * also makes the gradients of x and head, chunk by chunk, so the logits exist once and never whole. */
fr_tensor *fr_head_loss(fr_graph *g, fr_tensor *x, fr_tensor *head, fr_tensor *targets,
                        fr_head_options options);

/* The two functions the loss is made of, for one row. z = softcap(l); softcap 0 is off. */
double fr_softcap(double logit, double softcap);
/* Nats of a row of capped logits z, which become scale * d nats / d l. Target -1: no nats, no gradient. */
double fr_cross_entropy_row(double *z, int64_t count, int32_t target, double softcap, double scale);

/* ---- reading a graph ------------------------------------------------------------------------------ */

int fr_graph_nodes(const fr_graph *graph);
const fr_node *fr_graph_node(const fr_graph *graph, int index); /* in topological (= building) order */
fr_tensor *fr_graph_find(const fr_graph *graph, const char *name); /* NULL if there is none */

typedef struct fr_parameter_info {
    const char *name, *group;
    int64_t rows, columns;
    int64_t offset; /* in elements, into one flat vector of all parameters; a multiple of 16 */
    fr_init init;
    fr_tensor *tensor;
} fr_parameter_info;
int fr_graph_parameters(const fr_graph *graph);
const fr_parameter_info *fr_graph_parameter(const fr_graph *graph, int index);
int64_t fr_graph_parameter_elements(const fr_graph *graph); /* sum of rows * columns: "params" */
int64_t fr_graph_flat_elements(const fr_graph *graph);      /* length of the flat vector, gaps included */
/* Fills a flat vector from the init of each parameter; depends on (seed, parameter name, element) only. */
void fr_graph_initialize(const fr_graph *graph, uint64_t seed, fr_pool *pool, float *flat);

/* ---- operators ------------------------------------------------------------------------------------ */

typedef enum fr_pass { FR_FORWARD, FR_BACKWARD } fr_pass;
/* The batch a plan is for: `rows` sequences of T tokens, N = rows * T. Row r is tokens r*T .. r*T+T-1. */
typedef struct fr_extent {
    int64_t rows, T;
} fr_extent;

/* Sequences that continue. A plan made with `continuing` runs rows that go on where their sequences stopped
 * instead of starting at position 0: what an operator needs of the tokens before (attention: keys and values)
 * it keeps in memory of the sequence, which the caller owns. So a prompt goes through in a few long rows and
 * every further token in a row of one, and many sequences go on at once, each at its own position. */
typedef struct fr_continuing {
    int64_t chunk;     /* most tokens one run adds to a sequence; 0: rows start at position 0 */
    int64_t positions; /* longest sequence; 0: no end, which attention without a window refuses */
} fr_continuing;
typedef struct fr_sequence {
    void *memory;  /* fr_plan_sequence_bytes, 64-byte aligned; any content when start is 0 */
    int64_t start; /* tokens it has seen: the position of the row's first token */
    int64_t count; /* tokens of the row that count, 0 to T; behind them is padding: ids of any known token */
} fr_sequence;

/* Tokens of one run that are not one row: stretches, each of which goes on from an earlier one or begins a row of
 * its own. So what several rows begin with is computed once, and short rows share a run. `before_count` tokens
 * from `before` on, which is a segment that begins a row, come first; 0: nothing does. The first `left_out`
 * tokens of the row are not in the run, because nothing that is wanted depends on them.
 *
 * Not every operator needs every token (fr_plan_levels). With `first`, level k runs the tokens of the run from
 * first[k] on, so those of level 0 come last; `order` then says where the tokens of the segments lie.
 *
 * Numbers of `order` that no segment holds repeat tokens that some segment does. So a beginning may be put together
 * from pieces: two questions that share their first example, each with options that share the question. */
typedef struct fr_segment {
    int64_t first, count, before, before_count, left_out;
} fr_segment;
typedef struct fr_segments {
    const fr_segment *list; /* in order, together all tokens of the run, each once */
    int64_t count;
    const int32_t *positions, *previous; /* of every token: its place in its row, the token before it or -1 */
    const int32_t *order; /* token of the run that is the i-th of the segments; NULL: the i-th */
    const int64_t *first; /* of every level of the plan; NULL: 0 */
    int64_t numbers;      /* length of `order`; 0: one for every token */
} fr_segments;
/* Fills in positions and previous of every token of the segments. */
void fr_segments_fill(const fr_segment *segments, int64_t count, const int32_t *order, int32_t *positions,
                      int32_t *previous);

/* What a kernel sees. Forward: in, out. Backward: in and out as saved, grad_out (NULL: zero), grad_in (NULL:
 * not wanted) with accumulate[i]: add to it, else overwrite it. No two grad_in are the same memory. Matrices
 * are dense row-major; the dtype of each is in in_dtype / out_dtype; a gradient has the dtype of its tensor
 * (a parameter's: fp32, double in F64). */
typedef struct fr_call {
    const fr_node *node;
    fr_extent extent;
    int64_t tokens;                      /* extent.rows * extent.T */
    int64_t first;                       /* with segments: tokens of the run before these; the pointers of in and
                                          * out are to the row of token `first`, and rows before it are there */
    const fr_segments *segments;         /* forward only: rows are not T long but as told here; NULL: they are */
    const void *in[FR_MAX_INPUTS];
    void *out[FR_MAX_OUTPUTS];
    const void *grad_out[FR_MAX_OUTPUTS];
    void *grad_in[FR_MAX_INPUTS];
    bool accumulate[FR_MAX_INPUTS];
    unsigned wanted;                     /* bit i: grad_in[i] is given; known to accepts and scratch too */
    fr_dtype in_dtype[FR_MAX_INPUTS], out_dtype[FR_MAX_OUTPUTS];
    const void *prepared[FR_MAX_INPUTS]; /* cast or packed copy of a parameter, see cpu.h; NULL: use in[] */
    const void *constants;               /* what the operator's fill_constants made, see fr_constants */
    fr_continuing continuing;            /* chunk > 0: rows continue sequences */
    const fr_sequence *sequences;        /* then: one per row */
    size_t sequence_offset;              /* then: where the node's part of a sequence's memory begins */
    void *scratch;                       /* the bytes the kernel's `scratch` asked for, 64-byte aligned */
    fr_pool *pool;                       /* threads to split one operator over; NULL: this thread alone */
} fr_call;

typedef struct fr_kernel {
    const char *op;    /* operator name */
    fr_pass pass;
    const char *name;  /* "rms_norm_forward_avx512"; recorded in run.json */
    void (*run)(const fr_call *call);
    /* bytes of scratch; NULL = 0. Filled in: node, extent, tokens, dtypes, wanted; the pointers are not. */
    size_t (*scratch)(const fr_call *call);
    /* NULL: handles every float dtype combination; else says if it can do this call */
    bool (*accepts)(const fr_call *call);
} fr_kernel;

/* The position of token t of a call, and the row of position-wise constants that is its own. */
static inline int64_t fr_call_position(const fr_call *call, int64_t t)
{
    int64_t T = call->extent.T;
    if (call->segments)
        return call->segments->positions[call->first + t];
    return call->continuing.chunk > 0 ? call->sequences[t / T].start + t % T : t % T;
}
static inline int64_t fr_call_constants_row(const fr_call *call, int64_t t)
{
    if (call->segments)
        return call->segments->positions[call->first + t];
    return call->continuing.chunk > 0 ? t : t % call->extent.T;
}

/* Read-only data an operator computes from positions (rotary's angles): a row per position of an extent.
 * Nodes of one operator with equal keys share it. It is made once per plan, for positions 0 to T-1; where
 * sequences continue it is made in every run, the extent then being one row of all tokens. */
typedef struct fr_constants {
    size_t bytes;
    double key[4];
    const int64_t *positions; /* of every row; NULL: row t is for position t */
} fr_constants;

/* An operator. Own operators are declared the same way (examples/). */
typedef struct fr_op {
    const char *name;
    int min_inputs, max_inputs, outputs;
    /* Checks shapes and sets kind, rows, columns of node->out[]. */
    fr_status (*infer)(fr_node *node, fr_error *error);
    /* Bit i: input i / output i must still be there in the backward pass. */
    unsigned keeps_inputs, keeps_outputs;
    /* Bit i: input i has no gradient (ids, targets). */
    unsigned no_gradient;
    /* Bit i: output i is a by-product that passes no gradient back (log-sum-exps). */
    unsigned detached_outputs;
    /* Gradients of inputs are made by the forward kernel (head and loss): when training, the forward call has
     * grad_in and accumulate filled in as a backward call has, and there is no backward call. */
    bool backward_in_forward;
    bool reference_suffices; /* the reference kernels are fit for real runs: no fallback error */
    /* The least and the greatest id allowed in ids input i; checked before every run. NULL: anything. */
    void (*ids_range)(const fr_node *node, int input, int64_t *least, int64_t *most);
    /* Every output row depends on the input rows of the same token alone, or the forward kernels know sequences
     * that continue and segments; an operator without this runs in rows that start at position 0 only. */
    bool continues;
    /* How many tokens before its own a row of output reads of input i; 0: none, INT64_MAX: all. NULL: none, or
     * all of every input where something is kept of a sequence. */
    int64_t (*looks_back)(const fr_node *node, int input);
    /* What a node keeps of a sequence: bytes. Filled in: node, extent, dtypes, continuing. NULL: nothing. */
    size_t (*sequence_bytes)(const fr_call *call);
    /* Can the node work on this extent? NULL: on any. */
    fr_status (*check_extent)(const fr_node *node, fr_extent extent, fr_error *error);
    /* Constants: their size and key, and how to fill them from key and positions. NULL: none. */
    void (*constants)(const fr_node *node, fr_extent extent, fr_constants *want);
    void (*fill_constants)(const fr_constants *want, void *data);
    /* Work actually needed (attention: causal pairs); NULL = 0. */
    double (*flops)(const fr_node *node, fr_extent extent, fr_pass pass);
    /* By the convention 6 M + 12 H d min(w, T) per trained token: causality not discounted; NULL = flops. */
    double (*flops_full)(const fr_node *node, fr_extent extent, fr_pass pass);
    /* Reference kernels, plain C, every float dtype, arithmetic in double. */
    fr_kernel reference[2]; /* [FR_FORWARD], [FR_BACKWARD] */
} fr_op;

struct fr_node {
    const fr_op *op;
    int index;
    int inputs, outputs;
    fr_tensor *in[FR_MAX_INPUTS]; /* optional inputs may be NULL */
    fr_tensor *out[FR_MAX_OUTPUTS];
    const void *attributes;       /* the operator's options struct, in the graph's arena */
};
/* Applies an operator; attributes are copied. Returns output 0 (others through producer->out[]). */
fr_tensor *fr_apply(fr_graph *graph, const fr_op *op, fr_tensor *const *inputs, int count,
                    const void *attributes, size_t attribute_bytes);
const fr_op *const *fr_ops(int *count); /* the built-in operators */

/* For `infer`: input i must be rows x columns (an empty expectation: 0); the error names both shapes. */
fr_status fr_node_expect(const fr_node *node, int input, int64_t rows, int64_t columns, fr_error *error);
/* For `infer`: says what output i is. */
void fr_node_output(fr_node *node, int output, fr_kind kind, int64_t rows, int64_t columns);

/* Where x of the token before t lies, for smear and two_tap; NULL at position 0. And what they keep of a sequence:
 * the last x of every row, once all have been read. */
const void *fr_smear_before(const fr_call *call, int64_t t);
void fr_smear_remember(const fr_call *call);
/* What attention keeps of a sequence: rings of keys and of values per key-value head, capacity x head_dim
 * each in the dtype of the inputs; position p is row p mod capacity. The capacity is a multiple of 128
 * that holds the window and a chunk. */
typedef struct fr_attention_ring {
    int64_t capacity;
    void *k, *v;
} fr_attention_ring;
int64_t fr_attention_capacity(const fr_call *call);
fr_attention_ring fr_attention_ring_of(const fr_call *call, int64_t row, int kv_head);
void fr_attention_remember(const fr_call *call, int64_t row, int kv_head); /* the row's new tokens */

/* Row access for reference kernels and tests: any float dtype to and from double. */
void fr_load_doubles(const void *data, fr_dtype dtype, int64_t start, int64_t count, double *out);
void fr_store_doubles(void *data, fr_dtype dtype, int64_t start, int64_t count, const double *values,
                      bool accumulate);
float fr_bf16_to_f32(uint16_t value);
uint16_t fr_f32_to_bf16(float value); /* round to nearest even; NaN stays NaN */

/* ---- plans ---------------------------------------------------------------------------------------- */

typedef struct fr_kernel_table { /* later entries win; the reference is always the last resort when allowed */
    const fr_kernel *const *kernels;
    int count;
    bool reference_only;      /* force the reference (tests, FRONTIER_KERNELS=ref) */
    bool forbid_fallback;     /* an operator without a fast kernel is an error, not a silent reference */
} fr_kernel_table;

typedef struct fr_plan_options {
    fr_extent extent;
    fr_numerics numerics;
    bool residual_bf16;              /* stream in bf16 too */
    fr_continuing continuing;        /* chunk > 0: rows continue sequences; then extent.T is at most chunk */
    bool train;                      /* gradients of every parameter from "loss" */
    const char *const *outputs;      /* tensors to keep ("nats", "logits"); what they do not need is pruned */
    int output_count;
    const char *const *given;        /* tensors that are not computed but bound at run time, like inputs */
    int given_count;
    const fr_kernel_table *kernels;  /* NULL: reference */
} fr_plan_options;
/* The graph must outlive the plan. Fails early with the bytes needed when sizes overflow. */
fr_status fr_plan_create(fr_plan **out, const fr_graph *graph, const fr_plan_options *options,
                         fr_error *error);
void fr_plan_free(fr_plan *plan);
/* 64-byte aligned memory the caller gives to run; plans may share one. */
size_t fr_plan_arena_bytes(const fr_plan *plan);
/* Memory of one sequence, for plans that continue sequences. Plans of one graph with equal `continuing` and
 * numerics share it: a sequence may go from one to the other. */
size_t fr_plan_sequence_bytes(const fr_plan *plan);
/* Of one run; `full`: by the convention 6 M + 12 H d w, see fr_op. */
double fr_plan_flops(const fr_plan *plan, bool full);
fr_extent fr_plan_extent(const fr_plan *plan);
bool fr_plan_segmented(const fr_plan *plan); /* every operator is */
/* Which tokens what is wanted depends on. Level 0 is where outputs are wanted; level k + 1 adds to level k the
 * looks_back[k] tokens before each of its tokens. An operator runs on one level; the last holds all that is needed.
 * The number of levels; `looks_back` has one number less. */
int fr_plan_levels(const fr_plan *plan, const int64_t **looks_back);
/* Operations of the operators of a level on positions [from, to) of a row, whose beginning is there. */
double fr_plan_level_flops(const fr_plan *plan, int level, int64_t from, int64_t to);
/* Visits (operator, pass, kernel) of every step, in order. Autograd has two operators of its own: "seed"
 * starts a backward pass, "share" adds the gradient of a tensor that one node reads twice. */
typedef void (*fr_plan_visitor)(void *context, const fr_node *node, fr_pass pass, const fr_kernel *kernel);
void fr_plan_visit(const fr_plan *plan, fr_plan_visitor visit, void *context);

typedef struct fr_binding { const char *name; const void *data; } fr_binding;
typedef struct fr_run_args {
    void *arena;
    const void *parameters;            /* flat, fp32 (double in F64) */
    const void *const *prepared;       /* per parameter index: cast or packed copies (cpu.h); NULL: none */
    void *gradients;                   /* flat, same layout; NULL unless training */
    bool accumulate_gradients;         /* add to gradients; false overwrites every parameter gradient */
    const fr_binding *inputs;          /* "tokens", "targets" (int32), "loss_scale" (float or double) ... */
    int input_count;
    const fr_sequence *sequences;      /* one per row, where the plan continues sequences; the run leaves
                                        * start and count as they are */
    int64_t tokens;                    /* run only that many, of a forward plan of one row; 0: the plan's T */
    const fr_segments *segments;       /* of a forward plan of one row: these rows instead of one */
    fr_pool *pool;                     /* split operators over these threads; NULL: this thread alone */
    /* Profiler hook, called after every step; NULL: off. */
    void (*timed)(void *context, const fr_node *node, fr_pass pass, int64_t ns);
    void *timed_context;
} fr_run_args;
/* Thread-safe on one plan with different arenas. Splitting over a pool never changes a bit of the result. */
fr_status fr_plan_run(const fr_plan *plan, const fr_run_args *args, fr_error *error);
/* Where an output requested at creation lies after a run (valid until the arena is reused). */
const void *fr_plan_output(const fr_plan *plan, const void *arena, const char *name, fr_dtype *dtype);
/* Names the first tensor that holds NaN or Inf, re-running the plan step by step; NULL if none. The name
 * lives as long as the plan. Arena and gradients are overwritten. */
fr_status fr_plan_find_nonfinite(const fr_plan *plan, const fr_run_args *args, const char **tensor,
                                 fr_error *error);

#endif
