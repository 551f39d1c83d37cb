/* The inside of the timing pass, for its own files, its tests and the benchmark. Time never looks at data:
 * a job is records, facts about tensors and a machine, whether they come from a core or were written by
 * hand.
 *
 *     records -> liveness.c      where each tile lies, what does not fit
 *             -> time_repeat.c   what the compiler leaves out: its result is on chip already
 *             -> time_stream.c   operations of one core: continuations joined, spills added, boxes resolved
 *             -> depend.c        which earlier accesses an operation has to wait for
 *             -> time_bounds.c   program order and perfect overlap, one pass each record
 *             -> time_replay.c   discrete events, with time_dma.c and time_unit.c for the resources
 *             -> time.c          sums
 *             -> trace.c         the same as a timeline for Perfetto
 *             -> time_core.c     the public calls: a core as a job
 *
 * All times are nanoseconds from the start of the kernel. docs/neuron-time.md states the model in words. */
#ifndef NEURON_TIME_H
#define NEURON_TIME_H
#include "frontier/neuron.h"

enum {
    FR_NEURON_TIME_CORES = 2,
    FR_NEURON_DMA_ENGINES = 16, /* at most, per core */
    FR_NEURON_BOXES = 40,       /* regions of one operation, continuation records included */
    FR_NEURON_WINDOW =
        4096, /* operations of a core between the oldest unfinished and the newest considered */
    FR_NEURON_LOOKAHEAD = 16 /* how far the compiler is taken to reorder within a queue */
};

/* ---- a job ---------------------------------------------------------------------------------------- */

typedef struct fr_neuron_facts { /* of a tensor, as far as time needs them */
    bool placed;
    int32_t start_partition;
    int64_t byte_offset;
} fr_neuron_facts;

typedef struct fr_neuron_job {
    const fr_neuron_machine *machine;
    int cores;
    int64_t records;
    uint32_t tensors; /* ids are below this */
    const fr_neuron_record *(*record)(const void *context, int64_t index);
    fr_neuron_facts (*tensor)(const void *context, uint32_t id);
    const char *(*name)(const void *context, uint16_t instruction);         /* for the trace */
    const char *(*source)(const void *context, uint32_t source, int *line); /* file; may be NULL */
    const void *context;
    int transpose; /* instruction number of dma_transpose, or -1 */
    int copy, pair; /* of tensor_copy and tensor_tensor; only for compilers that remove repeats */
} fr_neuron_job;

/* ---- liveness ------------------------------------------------------------------------------------- */

typedef enum fr_neuron_residence {
    FR_NEURON_APART,    /* HBM and registers, and tiles for which no hole was free: known by tensor only */
    FR_NEURON_RESIDENT, /* on chip at `address` */
    FR_NEURON_SPILLED   /* did not fit: lives in HBM, predicted traffic */
} fr_neuron_residence;

typedef struct fr_neuron_place {
    int64_t first, last; /* records of the first and the last access; first < 0: never touched */
    uint32_t bytes;      /* in each partition, as far as it is touched */
    uint32_t address;
    uint8_t start, partitions, core, memory;
    uint8_t residence;
    bool read, written, placed;
    bool made; /* written by something else than a transfer */
} fr_neuron_place;

typedef struct fr_neuron_liveness {
    fr_neuron_place *place; /* by tensor */
    uint32_t tensors;
    int64_t sbuf_peak_bytes, psum_peak_banks, spilled;
} fr_neuron_liveness;
fr_status fr_neuron_liveness_init(fr_neuron_liveness *liveness, const fr_neuron_job *job, fr_error *error);
void fr_neuron_liveness_release(fr_neuron_liveness *liveness);

/* ---- operations ----------------------------------------------------------------------------------- */

/* A region with its place resolved. Boxes of one space conflict when both intervals overlap. */
typedef struct fr_neuron_box {
    uint8_t memory; /* SBUF or PSUM with physical addresses; otherwise the tensor is its own space */
    bool resident;
    uint16_t low, high; /* partitions, high exclusive; HBM: columns in 1/256 of a row */
    bool reads, writes;
    bool late; /* a result that is written at the end (a reduction), not while the input streams through */
    uint32_t tensor, first, last;
} fr_neuron_box;

typedef struct fr_neuron_op {
    int64_t record; /* the first; of a spill, the one it serves */
    const fr_neuron_record *data;
    int records;                 /* with continuation records; 0 of a spill */
    uint8_t core, engine, queue; /* queue: the engine whose sequencer issues it */
    bool dma, dynamic, fence, accumulate, transpose, from_sbuf;
    uint8_t table;
    uint8_t low, high; /* DMA: partitions of the on-chip side, both 0 when it has none */
    double busy;       /* engines: nominal time */
    bool either;       /* Vector or Scalar, chosen by the stream */
    bool spare;        /* its result is on chip already: a compiler can do without it */
    bool left_out;     /* and is taken to */
    double choice[2];  /* time on Vector and on Scalar, of what runs on one of them */
    double descriptors, bytes;
    double hbm_read, hbm_write;
    uint16_t banks; /* PSUM banks touched */
    bool sbuf;      /* touches SBUF */
    int boxes;
    const fr_neuron_box *box; /* the stream's, until its next operation */
} fr_neuron_op;

typedef struct fr_neuron_repeats fr_neuron_repeats;
fr_status fr_neuron_repeats_create(fr_neuron_repeats **out, const fr_neuron_job *job,
                                   const fr_neuron_liveness *liveness, fr_error *error);
void fr_neuron_repeats_free(fr_neuron_repeats *repeats);
/* Notes an operation, in the order of the program, and says whether it is spare or left out. False: no memory. */
bool fr_neuron_repeats_note(fr_neuron_repeats *repeats, fr_neuron_op *op, fr_error *error);

typedef struct fr_neuron_stream {
    const fr_neuron_job *job;
    const fr_neuron_liveness *liveness;
    int core;
    int64_t next;     /* record */
    int64_t *touched; /* of spilled tensors: last record, or -2 - record while only loaded; NULL: no spills */
    fr_neuron_op main;
    fr_neuron_box box[FR_NEURON_BOXES], spill; /* of `main`; of the fetch or write-back emitted last */
    int phase, at;                             /* what is emitted for `main`: fetches, itself, write-backs */
    fr_neuron_repeats *repeats;                /* NULL: nothing is left out */
    bool whole;                                /* what is left out comes too */
    double load[2];                            /* given to Vector and to Scalar so far, ns */
    uint8_t table;                             /* Scalar's, in the order of the program */
    bool starved;
} fr_neuron_stream;
fr_status fr_neuron_stream_init(fr_neuron_stream *stream, const fr_neuron_job *job,
                                const fr_neuron_liveness *liveness, int core, fr_error *error);
bool fr_neuron_stream_next(fr_neuron_stream *stream, fr_neuron_op *op); /* false at the end */
void fr_neuron_stream_release(fr_neuron_stream *stream);

/* Work of a transfer on each DMA engine of its core, in ns at full rate; returns the largest. */
double fr_neuron_dma_split(const fr_neuron_machine *machine, const fr_neuron_op *op,
                           double work[FR_NEURON_DMA_ENGINES]);
/* Time the issuing engine spends on the trigger, and time the descriptor generator is taken (0 = not
 * used). */
double fr_neuron_dma_trigger_ns(const fr_neuron_machine *machine, const fr_neuron_op *op);
double fr_neuron_dma_generate_ns(const fr_neuron_machine *machine, const fr_neuron_op *op);

/* ---- dependences ---------------------------------------------------------------------------------- */

typedef enum fr_neuron_edge {
    FR_NEURON_RAW,  /* reads what the earlier one wrote */
    FR_NEURON_WAW,  /* overwrites it */
    FR_NEURON_WAR,  /* overwrites what the earlier one reads */
    FR_NEURON_ORDER /* reads of one place by one engine stay in order */
} fr_neuron_edge;

/* When an operation's effects can be relied on. */
typedef struct fr_neuron_when {
    double end;     /* inputs read, engine done */
    double visible; /* results visible to everybody */
    double near;    /* results visible to the engine's own next instruction */
} fr_neuron_when;

typedef struct fr_neuron_access {
    uint32_t op;
    uint8_t engine; /* issuing queue */
    bool dma;
    fr_neuron_box box;
    fr_neuron_when actual, critical; /* used by the bounds only */
} fr_neuron_access;
typedef void fr_neuron_conflict_function(void *context, const fr_neuron_access *earlier, fr_neuron_edge edge);
typedef bool fr_neuron_settled_function(void *context,
                                        const fr_neuron_access *earlier); /* may be forgotten */

typedef struct fr_neuron_depend fr_neuron_depend;
fr_status fr_neuron_depend_create(fr_neuron_depend **out, const fr_neuron_job *job,
                                  fr_neuron_settled_function *settled, void *context, fr_error *error);
void fr_neuron_depend_free(fr_neuron_depend *depend);
/* Reports every earlier access that `access` conflicts with; an access may be reported more than once. */
void fr_neuron_depend_find(fr_neuron_depend *depend, const fr_neuron_access *access,
                           fr_neuron_conflict_function *report, void *context);
bool fr_neuron_depend_note(fr_neuron_depend *depend, const fr_neuron_access *access); /* false: no memory */

/* Earliest start that an edge allows. `late` results are not there before they are visible. */
double fr_neuron_release_ns(const fr_neuron_machine *machine, fr_neuron_edge edge,
                            const fr_neuron_access *earlier, const fr_neuron_when *when, int queue, bool dma);

/* ---- units: what an engine does with an operation ------------------------------------------------- */

/* State of the compute engines of one core. */
typedef struct fr_neuron_units {
    const fr_neuron_machine *machine;
    double free[FR_NEURON_ENGINES];
    double generator[FR_NEURON_ENGINES]; /* descriptor generation of each queue */
    double load_after;                   /* Tensor: weights of the next product may load from here */
    int table;                           /* Scalar's activation table */
    double bank_free[16];
    uint8_t bank_owner[16];
    double port_free[2]; /* 0: SBUF port of Vector and GpSimd, 1: PSUM port of Vector and Scalar */
    uint8_t port_owner[2];
    double *busy_start, *busy_end; /* Tensor: recent activity, a ring */
    int recent_first, recent_count;
    double slow_left; /* throttle: time still to be spent at the reduced rate */
} fr_neuron_units;
fr_status fr_neuron_units_init(fr_neuron_units *units, const fr_neuron_machine *machine, fr_error *error);
void fr_neuron_units_release(fr_neuron_units *units);

typedef struct fr_neuron_start {
    double at;
    double engine; /* when the engine was free, the state it needs not counted */
    fr_neuron_stall stall;
    double lost; /* time of the largest reason other than the operation's inputs */
} fr_neuron_start;
/* Earliest start of an operation whose inputs are ready at `ready`. Changes nothing. */
fr_neuron_start fr_neuron_units_start(const fr_neuron_units *units, const fr_neuron_op *op, double ready);
/* Takes the engine, banks and ports; returns when it ends and adds what the throttle costs. */
fr_neuron_when fr_neuron_units_run(fr_neuron_units *units, const fr_neuron_op *op, double start,
                                   double *throttled);

/* ---- DMA engines ---------------------------------------------------------------------------------- */

/* Sixteen serial engines a core. Each serves its queues in turns (equal shares), each queue in order; cores
 * of one HBM stack share its bandwidth. Finished operations are taken with fr_neuron_dma_take. */
typedef struct fr_neuron_dma fr_neuron_dma;
fr_status fr_neuron_dma_create(fr_neuron_dma **out, const fr_neuron_machine *machine, int cores,
                               fr_error *error);
void fr_neuron_dma_free(fr_neuron_dma *dma);
/* `token` arrives at the engines at `at` (not before the previous arrival of its queue); false: no memory. */
bool fr_neuron_dma_add(fr_neuron_dma *dma, int core, int queue, double at,
                       const double work[FR_NEURON_DMA_ENGINES], double hbm_share, uint64_t token);
double fr_neuron_dma_next(const fr_neuron_dma *dma); /* time of the next event, infinite when idle */
/* Advances to the next event. 1 when an operation finished there, with its token, the time, and when its
 * first byte moved; 0 when none did; -1 when memory is short. */
int fr_neuron_dma_step(fr_neuron_dma *dma, uint64_t *token, double *at, double *begun);

/* ---- replay --------------------------------------------------------------------------------------- */

/* One operation as it went; for the public events, the trace and the checks. */
typedef struct fr_neuron_happening {
    const fr_neuron_op *op; /* boxes are gone by now */
    double ready, start, end, visible;
    double engine_free;
    double transfer; /* DMA: first byte moves */
    double work;     /* DMA: longest engine's work at full rate */
    fr_neuron_stall stall;
    int64_t blamed; /* record */
    double throttled;
} fr_neuron_happening;
typedef void fr_neuron_happening_function(void *user, const fr_neuron_happening *happening);

typedef struct fr_neuron_replay_options {
    int window, lookahead;                   /* powers of two for the window; 0 = the constants above */
    fr_neuron_happening_function *happening; /* in the order of each core's trace; may be NULL */
    void *user;
} fr_neuron_replay_options;
fr_status fr_neuron_replay(const fr_neuron_job *job, const fr_neuron_liveness *liveness,
                           const fr_neuron_replay_options *options, double *total_ns, fr_error *error);

typedef struct fr_neuron_bounds {
    double overlap_ns, program_order_ns;
    double critical_ns, engine_ns, dma_ns, hbm_ns; /* the parts of overlap_ns */
    int64_t left_out;                              /* operations that the prediction does without */
} fr_neuron_bounds;
fr_status fr_neuron_bounds_of(const fr_neuron_job *job, const fr_neuron_liveness *liveness,
                              fr_neuron_bounds *bounds, fr_error *error);

/* Everything for a job; `happening` may be NULL. */
fr_status fr_neuron_time_job(const fr_neuron_job *job, fr_neuron_timing *timing,
                             const fr_neuron_replay_options *options, fr_error *error);
fr_neuron_job fr_neuron_job_of(const fr_neuron *core);
fr_status fr_neuron_write_trace_job(const fr_neuron_job *job, const char *path, fr_error *error);

#endif
