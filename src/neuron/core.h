/* The inside of a core and its tensors, for the files that implement them and for the timing pass.
 * Instruction files do not need it: they work through neuron_internal.h.
 *
 * Storage. A tensor on chip has its own memory, partition after partition at a pitch that is an odd number
 * of cache lines (a large power of two makes 128 rows fight for the same few lines of cache). One with an
 * explicit address lies in the memory of the chip itself, so that tensors placed over each other share
 * bytes. `written` remembers which bytes hold data: nothing, a bitmap, or everything. */
#ifndef NEURON_CORE_H
#define NEURON_CORE_H
#include "neuron/neuron_internal.h"

/* Which bytes of rows hold data; bits by row, 64 to a word. Grows from EMPTY to PARTLY to FULL. */
typedef enum fr_neuron_fill { FR_NEURON_EMPTY, FR_NEURON_PARTLY, FR_NEURON_FULL } fr_neuron_fill;
typedef struct fr_neuron_shadow {
    fr_neuron_fill fill;
    int64_t rows, row_bytes, row_words;
    int64_t missing; /* bytes without data, while PARTLY */
    uint64_t *bits;
} fr_neuron_shadow;
fr_status fr_neuron_shadow_ready(fr_neuron_shadow *shadow, fr_error *error); /* to PARTLY, with a bitmap */
void fr_neuron_shadow_become(fr_neuron_shadow *shadow, fr_neuron_fill fill); /* EMPTY or FULL */
void fr_neuron_shadow_set(fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes);
bool fr_neuron_shadow_has(const fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes);
void fr_neuron_shadow_drop(fr_neuron_shadow *shadow, int64_t row, int64_t first, int64_t bytes);
void fr_neuron_shadow_release(fr_neuron_shadow *shadow);

struct fr_neuron_tensor {
    fr_neuron_layout layout;
    uint32_t id;
    int core; /* physical */
    bool released;
    char name[48];
    int64_t rows, row_bytes; /* partitions and bytes in each; HBM and registers: 1 row */
    int64_t pitch;           /* bytes from row to row */
    uint8_t *data;           /* first row; NULL after release */
    size_t storage;          /* bytes of own memory; 0 when data lies in the chip's */
    fr_neuron_shadow own;
    fr_neuron_shadow *written;       /* &own, or the chip's */
    int64_t shadow_row, shadow_byte; /* where the first row begins in *written */
    fr_neuron_shadow begun;          /* PSUM: bytes that a matmul has written since allocation */
    bool filled;                     /* PSUM: something else than a matmul wrote here */
    int64_t record_pitch; /* HBM: bytes of a row, for the columns of regions; 0 until a strided access */
};

/* One physical core's memory of a kind, as explicit addresses see it. */
typedef struct fr_neuron_array {
    uint8_t *data;
    int64_t pitch, row_bytes;
    fr_neuron_shadow written;
} fr_neuron_array;

enum { FR_NEURON_CHUNK = 4096, FR_NEURON_POOL = 64, FR_NEURON_CORES = 2 };

typedef struct fr_neuron_spare { /* freed storage of one size, kept for the next tensor */
    size_t bytes;
    void *first; /* each begins with a pointer to the next */
    int count;
} fr_neuron_spare;

typedef struct fr_neuron_source {
    const char *file;
    int line;
} fr_neuron_source;

/* The half of a sendrecv that came first. */
typedef struct fr_neuron_mail {
    bool waiting;
    double pipe;
    fr_neuron_view dst;
    uint8_t *data;
} fr_neuron_mail;

struct fr_neuron {
    const fr_neuron_machine *machine;
    int cores, physical;
    bool compute;
    fr_arena arena; /* tensors, records, names: what lives as long as the core */
    fr_neuron_tensor **tensors;
    int64_t tensor_count, tensor_capacity;
    fr_neuron_array sbuf[FR_NEURON_CORES], psum[FR_NEURON_CORES];
    fr_neuron_lane_state *lanes[FR_NEURON_CORES];
    fr_neuron_mail mail[FR_NEURON_CORES];
    fr_neuron_record **chunks;
    int64_t record_count, chunk_capacity;
    fr_neuron_source *sources;
    int64_t source_count, source_capacity;
    uint32_t *source_slots; /* hash table of source numbers + 1 */
    int64_t source_slot_count;
    const char **files;
    int64_t file_count, file_capacity;
    uint32_t source; /* of the next call */
    bool source_failed;
    fr_neuron_spare spares[FR_NEURON_POOL];
    fr_arena scratch;
    uint8_t *scratch_block; /* the first and usual scratch; more comes from the arena */
    int64_t scratch_used;
};

void *fr_neuron_storage_take(fr_neuron *core, size_t bytes); /* not zeroed */
void fr_neuron_storage_give(fr_neuron *core, void *memory, size_t bytes);
void fr_neuron_scratch_reset(fr_neuron *core);
fr_status fr_neuron_records_ready(fr_neuron *core, int more, fr_error *error);
void fr_neuron_record_add(fr_neuron *core, const fr_neuron_record *record);

/* The view is all of a tensor that has memory of its own: no bitmap is needed to note that it was written. */
bool fr_neuron_covers(const fr_neuron *core, const fr_neuron_view *view);

/* What a matmul may add to (written.c). */
typedef enum fr_neuron_begun { FR_NEURON_NOT_BEGUN, FR_NEURON_PARTLY_BEGUN, FR_NEURON_BEGUN } fr_neuron_begun;
fr_neuron_begun fr_neuron_begun_of(const fr_neuron *core, const fr_neuron_view *view);
fr_status fr_neuron_prepare_begin(fr_neuron *core, const fr_neuron_view *view, fr_error *error);
void fr_neuron_begin(fr_neuron *core, const fr_neuron_view *view);
/* PSUM written by something else. */
void fr_neuron_unbegin(fr_neuron *core, const fr_neuron_view *view);
void fr_neuron_zero_unbegun(fr_neuron *core, const fr_neuron_view *view);

/* Geometry of views (view.c). */
fr_status fr_neuron_view_check(const fr_neuron *core, const fr_neuron_call *call, const fr_neuron_view *view,
                               const char *name, bool *outside, fr_error *error);
fr_neuron_region fr_neuron_region_of(const fr_neuron_view *view, int write);
/* `view` with a scalar dynamic offset added in; a static one unchanged. */
fr_neuron_view fr_neuron_resolved(const fr_neuron_view *view);

#endif
