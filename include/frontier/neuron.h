/* frontier/neuron.h: a NeuronCore: its memories, instructions, rules and time.
 *
 * Mental model. A kernel is a sequence of instructions over tensors in three memories: HBM (flat), SBUF
 * and PSUM (128 partitions each). The functional pass runs at once and in program order: fr_neuron_issue
 * checks an instruction against the rules of the machine, computes its result, and appends a record of at
 * most 96 bytes to the trace. The timing pass (fr_neuron_time) replays the records as discrete events on
 * five in-order engine queues and sixteen DMA engines; it never looks at data. Everything about one
 * instruction - parameters, meaning, limits, cost, where the cost is from - is one fr_neuron_instruction,
 * and every reader (the Python package, `frontier nki isa`, the rule checks, the clock) works from that
 * descriptor.
 *
 *     fr_neuron_machine machine;                                   // a machines file: trn1, trn2, trn3
 *     fr_neuron_machine_load(&machine, "machines/trn2.toml", &error);
 *     fr_neuron *core;
 *     fr_neuron_create(&core, &machine, 1, &error);
 *     fr_neuron_tensor *x, *y;                                     // HBM in, SBUF tile
 *     fr_neuron_tensor_create(&x, core, (fr_neuron_layout){.memory = FR_NEURON_HBM,
 *                             .dtype = FR_NEURON_FLOAT32,
 *                             .dims = 2, .shape = {128, 512}, .name = "x"}, &error);
 *     ... fr_neuron_tensor_write(x, data, bytes, &error); the same for y in FR_NEURON_SBUF ...
 *     fr_neuron_call call = fr_neuron_call_of("dma_copy");
 *     fr_neuron_call_view(&call, "dst", fr_neuron_view_of(y));
 *     fr_neuron_call_view(&call, "src", fr_neuron_view_of(x));
 *     fr_neuron_issue(core, &call, &error);                        // checked, done, recorded
 *     fr_neuron_timing timing;
 *     fr_neuron_time(core, &timing, NULL, &error);                 // timing.predicted_ns and its two bounds
 *
 * Errors. A broken rule is FR_ANSWER_NO (the kernel's failure, not ours): `where` is "FILE:LINE:
 * instruction", `what` names rule and values, `hint` the usual fix. Unknown names and arguments of a wrong
 * kind are FR_BAD_USAGE. Thread rule: a core and its tensors belong to one thread at a time. Machines are
 * read-only after loading. Sources: AWS Neuron SDK documentation (architecture and NKI guides); each cost
 * names its own in the descriptor. */
#ifndef FRONTIER_NEURON_H
#define FRONTIER_NEURON_H
#include "frontier/base.h"

/* ---- numbers --------------------------------------------------------------------------------------- */

typedef enum fr_neuron_dtype {
    FR_NEURON_NO_DTYPE,
    FR_NEURON_FLOAT32,
    FR_NEURON_TFLOAT32, /* stored in 32 bits, 10 bits of fraction count */
    FR_NEURON_BFLOAT16,
    FR_NEURON_FLOAT16,
    FR_NEURON_FLOAT8_E4M3, /* with infinities; largest finite 240 */
    FR_NEURON_FLOAT8_E5M2,
    FR_NEURON_FLOAT8_E3M4,
    FR_NEURON_FLOAT8_E4M3FN, /* OCP: no infinities; largest 448 */
    FR_NEURON_FLOAT8_E8M0FNU,
    FR_NEURON_FLOAT8_E4M3FN_X4,
    FR_NEURON_FLOAT8_E5M2_X4,
    FR_NEURON_FLOAT4_E2M1FN_X4,
    FR_NEURON_INT8,
    FR_NEURON_INT16,
    FR_NEURON_INT32,
    FR_NEURON_UINT8,
    FR_NEURON_UINT16,
    FR_NEURON_UINT32,
    FR_NEURON_BOOL,
    FR_NEURON_DTYPES
} fr_neuron_dtype;

int fr_neuron_dtype_bytes(fr_neuron_dtype dtype);
const char *fr_neuron_dtype_name(fr_neuron_dtype dtype); /* "float32", "bfloat16", ... */
fr_neuron_dtype fr_neuron_dtype_named(const char *name); /* FR_NEURON_NO_DTYPE when unknown */
bool fr_neuron_dtype_integer(fr_neuron_dtype dtype);
/* count elements, contiguous. To fp32 is exact but for 32-bit integers; back is round to nearest even,
 * integers saturate. */
void fr_neuron_to_float(float *out, const void *in, fr_neuron_dtype dtype, int64_t count);
void fr_neuron_from_float(void *out, const float *in, fr_neuron_dtype dtype, int64_t count);

/* ---- machines -------------------------------------------------------------------------------------- */

typedef enum fr_neuron_engine {
    FR_NEURON_ANY, /* the instruction's default, chosen as the compiler would */
    FR_NEURON_TENSOR,
    FR_NEURON_VECTOR,
    FR_NEURON_SCALAR,
    FR_NEURON_GPSIMD,
    FR_NEURON_SYNC,
    FR_NEURON_DMA, /* the sixteen DMA engines; triggered from SYNC, SCALAR or GPSIMD */
    FR_NEURON_ENGINES
} fr_neuron_engine;
const char *fr_neuron_engine_name(fr_neuron_engine engine);

/* One generation. Every field is a key of the machines file; values without a public measurement are
 * listed there under [guesses], and any time that used one says so. */
typedef struct fr_neuron_machine {
    char name[64];  /* "trn2" */
    int generation; /* 2, 3, 4 */
    double clock_ghz[FR_NEURON_ENGINES];
    double drain_ns[FR_NEURON_ENGINES]; /* result visible to others this long after the last cycle */
    double wake_ns[FR_NEURON_ENGINES];  /* a satisfied semaphore starts the instruction this much later */
    double issue_floor_cycles[FR_NEURON_ENGINES];
    int64_t sbuf_partition_bytes, sbuf_usable_bytes, psum_bank_bytes, psum_banks;
    int64_t hbm_bytes;
    double hbm_stack_bytes_per_ns; /* shared by the cores of a stack */
    int stack_cores;
    int dma_engines, dma_queues;
    double dma_descriptor_ns, dma_bytes_per_ns, dma_start_ns, dma_done_ns, dma_static_issue_ns,
        dma_dynamic_issue_ns, dma_dynamic_descriptor_ns;
    double dma_transpose_bytes_per_ns, dma_transpose_sbuf_bytes_per_ns;
    double activation_table_ns, throttle_window_ns, throttle_share, launch_ns;
    double tensor_passes_fp32, tensor_bubble_cycles, stationary_load_cycles;
    bool vector_gpsimd_share_port, vector_scalar_share_psum, has_hardware_descriptors, has_mx;
    double dma_peak_bytes_per_ns; /* of an engine, descriptors not counted: what no transfer exceeds */
    bool removes_repeats;         /* its compiler leaves out what is on chip already */
    char guesses[1024]; /* names of the keys that are guesses, separated by spaces */
} fr_neuron_machine;
fr_status fr_neuron_machine_load(fr_neuron_machine *machine, const char *path, fr_error *error);
bool fr_neuron_machine_guessed(const fr_neuron_machine *machine, const char *key);

/* ---- tensors and views ----------------------------------------------------------------------------- */

typedef enum fr_neuron_memory {
    FR_NEURON_HBM,
    FR_NEURON_SBUF,
    FR_NEURON_PSUM,
    FR_NEURON_REGISTER /* one 32-bit value of a sequencer */
} fr_neuron_memory;

enum { FR_NEURON_RANK = 5, FR_NEURON_PARTITIONS = 128 };

typedef struct fr_neuron fr_neuron;
typedef struct fr_neuron_tensor fr_neuron_tensor;

/* On chip shape[0] counts partitions and the rest is the free size of each. start_partition and
 * byte_offset are an explicit address when `placed`; otherwise the trace places the tensor by liveness, or
 * reports a spill. */
typedef struct fr_neuron_layout {
    fr_neuron_memory memory;
    fr_neuron_dtype dtype;
    int dims;
    int64_t shape[FR_NEURON_RANK];
    const char *name;    /* copied; may be NULL */
    bool placed, shared; /* shared: HBM that both cores of a launch see */
    int32_t start_partition;
    int64_t byte_offset;
} fr_neuron_layout;

fr_status fr_neuron_tensor_create(fr_neuron_tensor **out, fr_neuron *core, fr_neuron_layout layout,
                                  fr_error *error);
/* The core owns its tensors. Releasing early says that the kernel can no longer reach it; its memory is
 * reused. */
void fr_neuron_tensor_release(fr_neuron *core, fr_neuron_tensor *tensor);
const fr_neuron_layout *fr_neuron_tensor_layout(const fr_neuron_tensor *tensor);
uint32_t fr_neuron_tensor_id(const fr_neuron_tensor *tensor); /* 0, 1, 2, ... in order of creation */
/* By id, released ones too: layouts outlive data. NULL beyond the last. */
const fr_neuron_tensor *fr_neuron_tensor_at(const fr_neuron *core, uint32_t id);
int fr_neuron_tensor_core(const fr_neuron_tensor *tensor); /* physical core whose memory holds it */
/* Whole contents, row-major, in the tensor's dtype; host access, not part of the kernel's time. */
fr_status fr_neuron_tensor_write(fr_neuron_tensor *tensor, const void *data, size_t bytes, fr_error *error);
fr_status fr_neuron_tensor_read(const fr_neuron_tensor *tensor, void *data, size_t bytes, fr_error *error);

/* Which elements of a tensor an operand means, and in what order: partitions [partition, partition +
 * partitions), and in each the free pattern, outermost first, strides in elements of `dtype`. In HBM
 * partitions = 0 and the pattern walks all of the tensor from `offset`. A stride of 0 broadcasts. The
 * dimensions are the shape the kernel sees: they are not merged, as some instructions (tensor_reduce,
 * dma_transpose, fp8 double rows) ask for them. With a dynamic offset on chip, index_stride may move by
 * whole partitions: the sum is taken in elements of (partition, free) order. */
typedef struct fr_neuron_view {
    fr_neuron_tensor *tensor;
    fr_neuron_dtype dtype; /* may reinterpret the tensor's bytes */
    int16_t partition, partitions;
    int16_t dims;
    bool whole_rows; /* vector index: element p replaces the leading index by index[p] */
    int64_t offset;
    int64_t stride[FR_NEURON_RANK + 1], size[FR_NEURON_RANK + 1];
    fr_neuron_tensor *index; /* dynamic offset: a register, or an SBUF tile of row numbers; NULL = static */
    /* Where the index is read: element i of a list of rows is in partition index_partition + i % index_partitions,
     * at index_offset + i / index_partitions. */
    int16_t index_partition, index_partitions;
    int64_t index_offset;
    int64_t index_stride;    /* elements that one unit of the index moves */
    int64_t index_limit;     /* exclusive bound of a legal index */
} fr_neuron_view;
fr_neuron_view fr_neuron_view_of(fr_neuron_tensor *tensor); /* all of it */
int64_t fr_neuron_view_free(const fr_neuron_view *view);    /* elements per partition; in HBM all */
int64_t fr_neuron_view_elements(const fr_neuron_view *view);
/* What came from elsewhere, as from another rank: the whole contents are given, the view says which of them
 * are new and thereby written. And whether all that a view shows was written. Neither takes dynamic views. */
fr_status fr_neuron_receive(fr_neuron *core, const fr_neuron_view *view, const void *data, size_t bytes,
                            fr_error *error);
bool fr_neuron_written(const fr_neuron *core, const fr_neuron_view *view);

/* ---- instructions ---------------------------------------------------------------------------------- */

/* What a parameter of an instruction is. The Python package parses a call by this table alone. */
typedef enum fr_neuron_kind {
    FR_NEURON_READ, /* a view */
    FR_NEURON_WRITE,
    FR_NEURON_UPDATE,         /* read and written */
    FR_NEURON_READ_LIST,      /* dma_compute's sources */
    FR_NEURON_READ_OR_NUMBER, /* fp32 vector [P,1], register, or constant */
    FR_NEURON_NUMBER,
    FR_NEURON_NUMBER_LIST,
    FR_NEURON_INTEGER,
    FR_NEURON_INTEGER_LIST, /* shuffle mask, axes, tile position */
    FR_NEURON_FLAG,         /* true, false, or absent */
    FR_NEURON_OPERATOR,     /* ALU operator, fr_neuron_operator */
    FR_NEURON_FUNCTION,     /* activation function, fr_neuron_function */
    FR_NEURON_ENGINE,
    FR_NEURON_REDUCE_COMMAND,
    FR_NEURON_CHOICE, /* one of `choices`, separated by spaces; the value is its position */
    FR_NEURON_PATTERN /* list of [step, count] */
} fr_neuron_kind;

typedef enum fr_neuron_operator {
    FR_NEURON_NO_OPERATOR,
    FR_NEURON_ADD,
    FR_NEURON_SUBTRACT,
    FR_NEURON_MULTIPLY,
    FR_NEURON_MAXIMUM,
    FR_NEURON_MINIMUM,
    FR_NEURON_EQUAL,
    FR_NEURON_NOT_EQUAL,
    FR_NEURON_GREATER_EQUAL,
    FR_NEURON_GREATER,
    FR_NEURON_LESS_EQUAL,
    FR_NEURON_LESS,
    FR_NEURON_LOGICAL_AND,
    FR_NEURON_LOGICAL_OR,
    FR_NEURON_LOGICAL_XOR,
    FR_NEURON_POWER,
    FR_NEURON_ABS_MAX,
    FR_NEURON_ABS_MIN,
    FR_NEURON_ABS,
    FR_NEURON_SQUARE,
    FR_NEURON_RELU,
    FR_NEURON_RSQRT,
    FR_NEURON_INVERSE, /* "reciprocal" */
    FR_NEURON_DIVIDE,
    FR_NEURON_BYPASS,
    FR_NEURON_AVERAGE,
    FR_NEURON_INVERT,
    FR_NEURON_BITWISE_AND,
    FR_NEURON_BITWISE_OR,
    FR_NEURON_BITWISE_XOR,
    FR_NEURON_LEFT_SHIFT,
    FR_NEURON_RIGHT_SHIFT,
    FR_NEURON_OPERATORS
} fr_neuron_operator;

typedef enum fr_neuron_function {
    FR_NEURON_NO_FUNCTION,
    FR_NEURON_COPY,
    FR_NEURON_F_SQUARE,
    FR_NEURON_SIGMOID,
    FR_NEURON_F_RELU,
    FR_NEURON_PRELU,
    FR_NEURON_GELU,
    FR_NEURON_GELU_DX,
    FR_NEURON_GELU_TANH,
    FR_NEURON_GELU_SIGMOID,
    FR_NEURON_GELU_SIGMOID_DX,
    FR_NEURON_SILU,
    FR_NEURON_SILU_DX,
    FR_NEURON_TANH,
    FR_NEURON_SOFTPLUS,
    FR_NEURON_MISH,
    FR_NEURON_ERF,
    FR_NEURON_ERF_DX,
    FR_NEURON_EXP,
    FR_NEURON_LOG,
    FR_NEURON_SIN,
    FR_NEURON_ARCTAN,
    FR_NEURON_SQRT,
    FR_NEURON_F_RSQRT,
    FR_NEURON_RECIPROCAL,
    FR_NEURON_SIGN,
    FR_NEURON_F_ABS,
    FR_NEURON_FUNCTIONS
} fr_neuron_function;

/* Names as kernels write them (nl.add is "add", nl.gelu_apprx_tanh is "gelu_apprx_tanh"); 0 when unknown. */
const char *fr_neuron_operator_name(fr_neuron_operator op);
fr_neuron_operator fr_neuron_operator_named(const char *name);
const char *fr_neuron_function_name(fr_neuron_function function);
fr_neuron_function fr_neuron_function_named(const char *name);

typedef struct fr_neuron_parameter {
    const char *name; /* as in nki.isa */
    fr_neuron_kind kind;
    bool required;
    double number;       /* the default of numbers, flags (-1 = absent), choices, operators */
    const char *choices; /* of FR_NEURON_CHOICE */
    const char *text;    /* one line for `nki isa` */
    bool scattered; /* only parts of the tile are used: where it starts and what holds data, the instruction checks */
} fr_neuron_parameter;

enum { FR_NEURON_PARAMETERS = 16, FR_NEURON_LIST = 32 };

/* One argument: a view, or a number (constants, enumerations, flags), or a list. */
typedef struct fr_neuron_argument {
    bool given, is_view;
    double number;
    fr_neuron_view view;
    const fr_neuron_view *views; /* of FR_NEURON_READ_LIST; borrowed until issue returns */
    const double *numbers;       /* of the list kinds and patterns (step, count pairs); borrowed */
    int count;
} fr_neuron_argument;

typedef struct fr_neuron_instruction fr_neuron_instruction;
typedef struct fr_neuron_call {
    const fr_neuron_instruction *instruction;
    fr_neuron_argument argument[FR_NEURON_PARAMETERS]; /* in the order of the descriptor's parameters */
} fr_neuron_call;

/* What an instruction occupies. `guess`: no public figure supports it. */
typedef struct fr_neuron_cost {
    fr_neuron_engine engine;
    double cycles; /* of that engine, before the issue floor; the DMA engines use the next two instead */
    double scalar_cycles; /* of Scalar, where the kernel leaves open whether Vector or Scalar runs it; else 0 */
    double descriptors, bytes;
    double flops;
    fr_neuron_engine trigger; /* of a DMA: the engine whose queue starts it; FR_NEURON_ANY = SYNC */
    uint8_t table;            /* of an activation, or of what runs on Scalar instead: its table set, 0 = any */
    bool guess;
    bool dynamic;    /* addresses or descriptors are made while the kernel runs */
    bool accumulate; /* a matmul that adds to what PSUM holds */
} fr_neuron_cost;

struct fr_neuron_instruction {
    const char *name; /* "tensor_tensor" */
    const char *summary;
    int least_generation;
    uint32_t engines; /* bit 1 << fr_neuron_engine for each that may run it */
    fr_neuron_parameter parameters[FR_NEURON_PARAMETERS];
    const char *semantics, *limits, *cost, *cost_source; /* paragraphs for `nki isa` */
    bool cost_guessed;
    bool pure;  /* the result depends on operands alone: the same call again gives the same */
    bool fence; /* the two cores of a launch meet here; a barrier's operand is named, not touched */
    const char *example; /* Python lines that the tests run; tiles a, b, c are 128 x 64 float32 in SBUF */
    /* Engine chosen for a call, legality, effect, cost; internal headers say what they may use. */
    fr_neuron_engine (*engine)(const fr_neuron *core, const fr_neuron_call *call);
    fr_status (*check)(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error);
    fr_status (*execute)(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error);
    void (*price)(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost);
};
const fr_neuron_instruction *const *fr_neuron_instructions(int *count); /* sorted by name */
const fr_neuron_instruction *fr_neuron_instruction_named(const char *name);

fr_neuron_call
fr_neuron_call_of(const char *instruction); /* defaults filled in; .instruction NULL when unknown */
/* Argument by name; false when the instruction has no such parameter. */
bool fr_neuron_call_view(fr_neuron_call *call, const char *name, fr_neuron_view view);
bool fr_neuron_call_number(fr_neuron_call *call, const char *name, double number);

/* A rule the machine has: what `nki rules` lists, what messages quote. */
typedef struct fr_neuron_rule {
    const char *name, *text, *fix;
    const char *example; /* Python lines that break it; the tests run them */
} fr_neuron_rule;
const fr_neuron_rule *fr_neuron_rules(int *count);
/* What Python kernels may be written in: warnings, as a simulator runs more than the compiler takes. */
const fr_neuron_rule *fr_neuron_language_rules(int *count);
/* What ranks keep that meet in nki.collectives: errors, of the Python package. */
const fr_neuron_rule *fr_neuron_collective_rules(int *count);

/* ---- the core -------------------------------------------------------------------------------------- */

/* One logical core of `cores` (1 or 2) physical ones that share an HBM stack. `machine` must outlive it. */
fr_status fr_neuron_create(fr_neuron **out, const fr_neuron_machine *machine, int cores, fr_error *error);
void fr_neuron_free(fr_neuron *core);
const fr_neuron_machine *fr_neuron_machine_of(const fr_neuron *core);
void fr_neuron_select(fr_neuron *core, int physical); /* which physical core issues next */
void fr_neuron_at(fr_neuron *core, const char *file,
                  int line); /* source of the next calls; file is copied once */
/* With false only control flow, rules and time are kept: no data is computed, uninitialised reads are not
 * found. */
void fr_neuron_compute(fr_neuron *core, bool on);
/* Checks, computes, records. A refused call changes nothing. */
fr_status fr_neuron_issue(fr_neuron *core, const fr_neuron_call *call, fr_error *error);

/* ---- the trace ------------------------------------------------------------------------------------- */

/* Bytes of one tensor, the bounding box of a view: what dependences are made of. HBM: first and last count
 * units of 16 bytes, and as tiles of a matrix overlap by that measure alone, partition and partitions are
 * the columns touched, in 1/256 of the tensor's row: first column, and number of columns less one. Two
 * regions meet when both ranges do. */
typedef struct fr_neuron_region {
    uint32_t tensor;
    uint8_t partition, partitions; /* 128 partitions: 0 and 128 */
    uint8_t write;                 /* 0 read, 1 write, 2 both */
    uint8_t memory;
    uint32_t first, last; /* byte interval in each partition, last exclusive */
} fr_neuron_region;

/* 32 bytes and four regions of 16. Calls with more operands continue in the next record (`more`). */
typedef struct fr_neuron_record {
    uint16_t instruction; /* index into fr_neuron_instructions */
    uint8_t engine;       /* fr_neuron_engine; DMA: see trigger */
    uint8_t trigger;      /* engine that starts the DMA */
    uint8_t core;
    uint8_t regions;
    uint8_t flags;               /* FR_NEURON_GUESS ... */
    uint8_t table;               /* activation table set of the function, 0 = any; DMA: low 4 bits of the source's byte */
    uint32_t source;             /* line table entry */
    float cycles;                /* engine cycles, floor applied */
    uint32_t descriptors, bytes; /* DMA: descriptors and bytes; others: a digest of their numbers, flops / 64 */
    uint32_t extent;             /* free elements per partition of the main operand */
    fr_neuron_region region[4];
} fr_neuron_record;
enum {
    FR_NEURON_GUESS = 1,
    FR_NEURON_MORE = 2,
    FR_NEURON_DYNAMIC = 4,
    FR_NEURON_ACCUMULATE = 8,
    FR_NEURON_FENCE = 16,
    FR_NEURON_EITHER = 32, /* Vector, as `cycles` says, or Scalar in a cycle for each of `extent`: the compiler's choice */
    FR_NEURON_HALF = 64,   /* Scalar would take half of that */
    FR_NEURON_PURE = 128   /* the same instruction on the same data gives the same */
};

int64_t fr_neuron_record_count(const fr_neuron *core);
const fr_neuron_record *fr_neuron_record_at(const fr_neuron *core, int64_t index);
const char *fr_neuron_source_file(const fr_neuron *core, uint32_t source, int *line);

/* ---- time ------------------------------------------------------------------------------------------ */

typedef enum fr_neuron_stall {
    FR_NEURON_STALL_NONE,
    FR_NEURON_STALL_DATA,  /* waits for a result another engine makes */
    FR_NEURON_STALL_REUSE, /* waits until a reader or writer is done with the buffer */
    FR_NEURON_STALL_DMA,   /* waits for a transfer */
    FR_NEURON_STALL_BANK,  /* a PSUM bank or shared port is busy */
    FR_NEURON_STALL_TABLE, /* loads an activation table */
    FR_NEURON_STALL_THROTTLE,
    FR_NEURON_STALL_QUEUE, /* DMA queue or HBM stack is full */
    FR_NEURON_STALLS
} fr_neuron_stall;

/* What the timing pass says of one record, in order of the trace, each core for itself. A transfer starts
 * when its trigger does; its bytes move from transfer_ns to end_ns. */
typedef struct fr_neuron_event {
    int64_t record;
    fr_neuron_engine engine; /* that ran it; where the kernel leaves it open, the one chosen */
    double ready_ns;         /* its engine was free for it */
    double start_ns, end_ns, visible_ns;
    double transfer_ns;
    fr_neuron_stall stall; /* the largest reason for start_ns - ready_ns */
    int64_t blamed;        /* record it waited for, or -1 */
} fr_neuron_event;
typedef void fr_neuron_event_function(void *user, const fr_neuron_event *event,
                                      const fr_neuron_record *record);

typedef struct fr_neuron_timing {
    /* Without launch_ns; docs/neuron-time.md defines them. */
    double predicted_ns, lower_bound_ns, program_order_ns;
    double launch_ns;
    double busy_ns[FR_NEURON_ENGINES]; /* busy and stalled: mean over the cores; DMA: mean over its engines */
    double stall_ns[FR_NEURON_ENGINES][FR_NEURON_STALLS];
    double flops, hbm_read_bytes, hbm_write_bytes, dma_bytes, dma_descriptors;
    int64_t sbuf_peak_bytes, psum_peak_banks; /* per partition, by liveness and addresses */
    double spill_bytes;                       /* predicted traffic of tensors that do not fit */
    int64_t instructions, guessed;            /* records; records whose cost is a guess */
    int64_t removed; /* records the compiler is taken to leave out: their result is on chip already */
} fr_neuron_timing;
typedef struct fr_neuron_time_options {
    fr_neuron_event_function *event; /* called once per record when not NULL */
    void *user;
} fr_neuron_time_options;
/* Replays the trace. `options` may be NULL. */
fr_status fr_neuron_time(const fr_neuron *core, fr_neuron_timing *timing,
                         const fr_neuron_time_options *options, fr_error *error);
/* The same for the records from `first` on, as if they began on an idle core: what follows a collective. */
fr_status fr_neuron_time_since(const fr_neuron *core, int64_t first, fr_neuron_timing *timing, fr_error *error);
/* How far the truth may be off, from kernels with a published time: what those that load the engines most alike took
 * over what was predicted for them. Their kernels are ours, in the published tiling (bench/neuron-validation). */
typedef struct fr_neuron_band {
    double low_ns, high_ns;
    const char *nearest; /* the kernel most alike */
    double nearest_ratio; /* its published time over its prediction */
    double distance;      /* 0: loads the engines as this one does; 1: other engines, or another chip */
} fr_neuron_band;
fr_neuron_band fr_neuron_band_of(const fr_neuron_machine *machine, const fr_neuron_timing *timing);
/* Chrome trace events that Perfetto opens: a row per engine and DMA queue, stalls, source lines. */
fr_status fr_neuron_write_trace(const fr_neuron *core, const char *path, fr_error *error);

#endif
