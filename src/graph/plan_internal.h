/* The inside of a plan: values and steps.
 *
 * A value is one stretch of memory with a dtype: a tensor's data, a tensor's gradient, or a step's
 * scratch. A step is one kernel call; it names the values it touches by number. The making of a plan is a
 * pipeline over these two lists: autograd.c writes the steps, plan.c binds a kernel to each and finds the
 * lifetime of each value, layout.c gives the values that live in the arena their places, and plan.c turns
 * value numbers into the list of pointers (slots) that run.c fills in before every call.
 */
#ifndef FRONTIER_PLAN_INTERNAL_H
#define FRONTIER_PLAN_INTERNAL_H
#include "graph/graph_internal.h"

/* What a pointer is relative to while a plan runs. Run-time input k is base FR_BASE_INPUTS + k. */
typedef enum fr_base { FR_BASE_ARENA, FR_BASE_PARAMETERS, FR_BASE_GRADIENTS, FR_BASE_INPUTS } fr_base;
enum { FR_MAX_PLAN_INPUTS = 32 };

typedef struct fr_value {
    const char *name; /* "x", "gradient of x"; NULL for scratch */
    fr_dtype dtype;
    int64_t elements;
    int base;
    size_t bytes, offset; /* within its base */
    size_t row_bytes;     /* of a token; 0: not a row per token */
    int first, last;      /* steps that touch it, inclusive; first > last: none */
} fr_value;

#define FR_NO_VALUE (-1)

typedef struct fr_slot {
    uint16_t field; /* byte offset of the pointer in fr_call */
    uint16_t base;
    size_t offset, row_bytes;
} fr_slot;

typedef struct fr_step {
    const fr_node *node;
    fr_pass pass;
    const fr_kernel *kernel;
    int in[FR_MAX_INPUTS], out[FR_MAX_OUTPUTS], grad_out[FR_MAX_OUTPUTS], grad_in[FR_MAX_INPUTS], scratch;
    int constants;                /* value of constants made in every run; FR_NO_VALUE: none, or made once */
    int parameter[FR_MAX_INPUTS]; /* parameter index of input i, or -1: for prepared copies */
    unsigned first_gradient; /* bit i: grad_in[i] is a parameter's and this is the run's first share of it */
    fr_call call;            /* everything but the pointers */
    int slot, slots;         /* the pointers */
    int level;               /* of a forward plan of one row, see fr_plan_levels */
} fr_step;

typedef struct fr_plan_input {
    const fr_tensor *tensor;
    fr_dtype dtype;
    int64_t elements, least, most; /* range of ids */
} fr_plan_input;

typedef struct fr_plan_output_entry {
    const char *name;
    int value;
} fr_plan_output_entry;

typedef struct fr_shared_constants {
    const fr_op *op;
    fr_constants want;
    void *data; /* NULL: in the arena, made in every run */
    int value;
    struct fr_shared_constants *next;
} fr_shared_constants;

struct fr_plan {
    fr_arena memory;                     /* owns everything below */
    const fr_parameter_info *parameters; /* as they were: the graph may grow later */
    int parameter_count;
    int64_t flat_elements;
    fr_extent extent;
    fr_numerics numerics;
    bool residual_bf16, train;
    fr_continuing continuing;
    size_t sequence_bytes;
    int positions; /* value: position of every token, for constants made in every run */
    fr_value *values;
    int value_count, value_capacity;
    fr_step *steps;
    int step_count, step_capacity;
    fr_slot *slots;
    int slot_count;
    fr_plan_input inputs[FR_MAX_PLAN_INPUTS];
    int input_count;
    fr_plan_output_entry *outputs;
    int output_count;
    const fr_parameter_info **unreached; /* parameters no step writes a gradient of */
    int unreached_count;
    fr_shared_constants *constants;
    int64_t *looks_back; /* per level */
    int levels;
    size_t arena_bytes;
    double flops, flops_full;
};

/* What the pipeline needs while it runs; arrays are indexed by tensor id or node index. */
typedef struct fr_planning {
    fr_plan *plan;
    const fr_graph *graph;
    const fr_plan_options *options;
    int *data, *gradient; /* value numbers, FR_NO_VALUE until there is one */
    bool *needed;         /* nodes that run */
    bool *wanted;         /* tensors whose gradient leads to a parameter */
    size_t *kept;         /* per node: where its part of a sequence's memory begins */
    bool *given;          /* tensors bound at run time though something in the graph would make them */
    fr_error *error;      /* never NULL */
} fr_planning;

fr_dtype fr_plan_dtype(const fr_plan *plan, const fr_tensor *tensor);
/* Fills in node, extent, tokens, dtypes and continuing of a call. */
void fr_plan_describe_call(const fr_plan *plan, const fr_node *node, fr_call *call);
/* A value in the arena that belongs to no tensor; -1 after setting the error. */
int fr_plan_bytes_value(fr_planning *planning, size_t bytes);
int64_t fr_plan_elements(const fr_plan *plan, const fr_tensor *tensor); /* -1 when they overflow */
/* A new value for a tensor's data or gradient, or FR_NO_VALUE after setting the error. */
int fr_plan_value(fr_planning *planning, const fr_tensor *tensor, bool gradient);
/* A new step with no values, or NULL after setting the error. Later steps may move it. */
fr_step *fr_plan_step(fr_planning *planning, const fr_node *node, fr_pass pass);
void *fr_plan_memory(fr_planning *planning, size_t bytes); /* NULL after setting the error */

/* autograd.c: marks needed nodes and writes all steps. */
fr_status fr_plan_write_steps(fr_planning *planning);

/* continuing.c: where every node's part of a sequence's memory lies; refuses operators that cannot
 * continue. */
fr_status fr_plan_lay_out_sequence(fr_planning *planning);
/* Checks a run's sequences and fills in the positions and constants of its tokens. */
fr_status fr_plan_start_sequences(const fr_plan *plan, const fr_run_args *args, fr_error *error);

/* levels.c: which level every step of a forward plan runs on. */
fr_status fr_plan_find_levels(fr_planning *planning);

/* layout.c: places blocks so that no two that live at the same time overlap. */
typedef struct fr_block {
    size_t bytes, offset;
    int first, last;
} fr_block;
/* Fills in offsets (multiples of 64); returns the bytes they span. `order` is room for `count` numbers. */
size_t fr_layout(fr_block *blocks, int count, int *order);

#endif
