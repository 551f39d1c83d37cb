/* time_stream.c: records of one core as operations.
 *
 * A call with many operands continues in further records; here it is whole again. Boxes get physical
 * addresses from liveness. An operand that was spilled is fetched before the operation that reads it and
 * written back after the one that writes it: transfers of their own, marked by `records` 0. A fetched tile
 * is taken to stay for as long as it is used at least every 32 records (a guess: what the compiler keeps is
 * not public).
 *
 * What a transfer costs the DMA engines is also decided here: rows are dealt to engines by groups of eight
 * partitions, and a transfer without an on-chip side is dealt out evenly.
 */
#include "neuron/time.h"

#include <math.h>
#include <string.h>

enum { RECENT = 32, ROWS_PER_ENGINE = 8, DESCRIPTOR_BYTES = 65536 };

fr_status fr_neuron_stream_init(fr_neuron_stream *stream, const fr_neuron_job *job,
                                const fr_neuron_liveness *liveness, int core, fr_error *error)
{
    memset(stream, 0, sizeof *stream);
    stream->job = job;
    stream->liveness = liveness;
    stream->core = core;
    stream->phase = 3;
    size_t bytes = sizeof *stream->touched * ((size_t)job->tensors + 1);
    if (liveness->spilled && !(stream->touched = fr_allocate(bytes)))
        return fr_error_memory(error, bytes, "spilled tensors");
    for (uint32_t t = 0; stream->touched && t < job->tensors; t++)
        stream->touched[t] = -1;
    if (job->machine->removes_repeats && job->cores == 1)
        FR_TRY(fr_neuron_repeats_create(&stream->repeats, job, liveness, error));
    return FR_OK;
}

void fr_neuron_stream_release(fr_neuron_stream *stream)
{
    fr_deallocate(stream->touched);
    fr_neuron_repeats_free(stream->repeats);
    stream->touched = NULL;
    stream->repeats = NULL;
}

/* ---- boxes ---------------------------------------------------------------------------------------- */

static bool tracked(const fr_neuron_place *place, const fr_neuron_region *region)
{
    return region->memory != FR_NEURON_HBM || (place->read && place->written);
}

static void add_box(fr_neuron_stream *stream, fr_neuron_op *op, const fr_neuron_record *record,
                    const fr_neuron_region *region)
{
    const fr_neuron_place *place = &stream->liveness->place[region->tensor];
    if (op->boxes == FR_NEURON_BOXES || !tracked(place, region))
        return;
    bool chip = region->memory == FR_NEURON_SBUF || region->memory == FR_NEURON_PSUM;
    fr_neuron_box *box = &stream->box[op->boxes++];
    *box = (fr_neuron_box){.memory = region->memory,
                           .low = region->partition,
                           .high = (uint16_t)(region->partition + region->partitions + (chip ? 0 : 1)),
                           .reads = region->write != 1,
                           .writes = region->write != 0,
                           .tensor = region->tensor,
                           .first = region->first,
                           .last = region->last};
    box->late = region->write == 1 && chip && region->last - region->first < record->extent;
    if (place->residence != FR_NEURON_RESIDENT)
        return;
    box->resident = true;
    box->first += place->address;
    box->last += place->address;
    box->low = (uint16_t)(box->low + place->start);
    box->high = (uint16_t)(box->high + place->start);
}

static void note_memories(const fr_neuron_machine *machine, fr_neuron_op *op, const fr_neuron_box *box)
{
    op->sbuf |= box->memory == FR_NEURON_SBUF;
    if (box->memory != FR_NEURON_PSUM || !box->resident || box->last <= box->first)
        return;
    uint32_t first = box->first / (uint32_t)machine->psum_bank_bytes;
    uint32_t last = (box->last - 1) / (uint32_t)machine->psum_bank_bytes;
    for (uint32_t b = first; b <= last && b < 16; b++)
        op->banks |= (uint16_t)(1u << b);
}

static void note_transfer(fr_neuron_op *op, const fr_neuron_region *region, double bytes)
{
    if (region->memory == FR_NEURON_HBM) {
        op->hbm_read += region->write != 1 ? bytes : 0;
        op->hbm_write += region->write != 0 ? bytes : 0;
    } else if (region->memory == FR_NEURON_SBUF) {
        op->from_sbuf |= region->write != 1;
        if (op->high && region->write == 1)
            return; /* the first on-chip side decides; indices come after data */
        op->low = region->partition;
        op->high = (uint8_t)(region->partition + region->partitions);
    }
}

/* ---- operations ----------------------------------------------------------------------------------- */

static void begin_op(const fr_neuron_stream *stream, fr_neuron_op *op, const fr_neuron_record *record,
                     int64_t at)
{
    const fr_neuron_machine *machine = stream->job->machine;
    memset(op, 0, sizeof *op);
    op->box = stream->box;
    op->record = at;
    op->data = record;
    op->core = record->core;
    op->dma = record->engine == FR_NEURON_DMA;
    op->engine = record->engine;
    op->queue = op->dma ? record->trigger : record->engine;
    if (op->queue <= FR_NEURON_ANY || op->queue >= FR_NEURON_DMA)
        op->queue = FR_NEURON_SYNC;
    op->dynamic = record->flags & FR_NEURON_DYNAMIC;
    op->fence = stream->job->cores > 1 && (record->flags & FR_NEURON_FENCE);
    op->accumulate = record->flags & FR_NEURON_ACCUMULATE;
    op->table = op->dma ? 0 : record->table;
    if (op->dma) {
        op->descriptors = record->descriptors;
        op->bytes = record->bytes;
        op->transpose = record->instruction == stream->job->transpose;
    } else if (machine->clock_ghz[op->queue] > 0) {
        op->busy = (double)record->cycles / machine->clock_ghz[op->queue];
    }
}

/* Vector or Scalar, where the kernel leaves it open: the one with less to do so far, as "the compiler selects the best
 * engine based on engine workload" (NKI's words for tensor_copy). A table that has to come and go again counts. */
static void choose_engine(fr_neuron_stream *stream, fr_neuron_op *op)
{
    const fr_neuron_machine *machine = stream->job->machine;
    const fr_neuron_record *record = op->data;
    double clock = machine->clock_ghz[FR_NEURON_SCALAR], floor = machine->issue_floor_cycles[FR_NEURON_SCALAR];
    op->choice[op->queue == FR_NEURON_SCALAR] = op->busy;
    op->either = record->flags & FR_NEURON_EITHER && clock > 0;
    if (op->either) {
        double cycles = record->extent / (record->flags & FR_NEURON_HALF ? 2.0 : 1.0);
        op->choice[1] = (cycles > floor ? cycles : floor) / clock;
        bool other = record->table && record->table != stream->table;
        double on_scalar = stream->load[1] + op->choice[1] + (other ? 2 * machine->activation_table_ns : 0);
        if (on_scalar < stream->load[0] + op->choice[0]) {
            op->engine = op->queue = FR_NEURON_SCALAR;
            op->busy = op->choice[1];
        }
    }
    bool scalar = op->queue == FR_NEURON_SCALAR;
    op->table = scalar ? op->table : 0;
    stream->load[scalar] += op->busy + (op->table && op->table != stream->table ? machine->activation_table_ns : 0);
    stream->table = op->table ? op->table : stream->table;
}

/* Reads the next call of this core into stream->main. */
static bool read_call(fr_neuron_stream *stream)
{
    const fr_neuron_job *job = stream->job;
    const fr_neuron_record *record = NULL;
    while (stream->next < job->records) {
        record = job->record(job->context, stream->next++);
        if (record->core == stream->core)
            break;
        record = NULL;
    }
    if (!record)
        return false;
    fr_neuron_op *op = &stream->main;
    begin_op(stream, op, record, stream->next - 1);
    for (;;) {
        op->records++;
        for (int r = 0; r < record->regions; r++) {
            add_box(stream, op, record, &record->region[r]);
            if (op->dma)
                note_transfer(op, &record->region[r], op->bytes);
        }
        if (!(record->flags & FR_NEURON_MORE) || stream->next >= job->records)
            break;
        record = job->record(job->context, stream->next++);
    }
    for (int b = 0; b < op->boxes; b++)
        note_memories(job->machine, op, &op->box[b]);
    if (!op->dma && (op->queue == FR_NEURON_VECTOR || op->queue == FR_NEURON_SCALAR))
        choose_engine(stream, op);
    return true;
}

/* The next call that is not left out. */
static bool read_needed(fr_neuron_stream *stream)
{
    fr_error error;
    while (read_call(stream)) {
        if (!stream->repeats)
            return true;
        stream->starved = !fr_neuron_repeats_note(stream->repeats, &stream->main, &error);
        if (stream->starved)
            return false;
        if (stream->whole || !stream->main.left_out)
            return true;
    }
    return false;
}

static void make_spill(fr_neuron_stream *stream, fr_neuron_op *op, int which, bool fetch)
{
    const fr_neuron_op *main = &stream->main;
    fr_neuron_box box = main->box[which];
    memset(op, 0, sizeof *op);
    op->record = main->record;
    op->data = main->data;
    op->core = main->core;
    op->engine = FR_NEURON_DMA;
    op->queue = FR_NEURON_SYNC;
    op->dma = true;
    op->low = (uint8_t)box.low;
    op->high = (uint8_t)box.high;
    double row = (double)(box.last - box.first), rows = box.high - box.low;
    op->bytes = row * rows;
    op->descriptors = rows * ceil(row / DESCRIPTOR_BYTES);
    op->hbm_read = fetch ? op->bytes : 0;
    op->hbm_write = fetch ? 0 : op->bytes;
    op->boxes = 1;
    op->box = &stream->spill;
    stream->spill = box;
    stream->spill.reads = stream->spill.writes = true;
    stream->spill.late = false;
}

/* Does the operand of `main` move? Fetched: read, and not touched for a while. Written back: made on chip; what
 * was only loaded is loaded again instead, and the compiler is taken to put its first load before its first use. */
static bool spill_moves(const fr_neuron_stream *stream, const fr_neuron_box *box, bool fetch)
{
    int64_t before = stream->touched[box->tensor];
    if (!fetch)
        return box->writes && stream->liveness->place[box->tensor].made;
    return box->reads && before >= 0 && stream->main.record - before > RECENT;
}

/* The next spill of this phase: fetches before (phase 0), write-backs after (phase 2). */
static bool next_spill(fr_neuron_stream *stream, fr_neuron_op *op)
{
    bool fetch = stream->phase == 0;
    while (stream->at < stream->main.boxes) {
        const fr_neuron_box *box = &stream->main.box[stream->at++];
        bool chip = box->memory == FR_NEURON_SBUF || box->memory == FR_NEURON_PSUM;
        const fr_neuron_place *place = &stream->liveness->place[box->tensor];
        if (!chip || place->residence != FR_NEURON_SPILLED)
            continue;
        bool moves = spill_moves(stream, box, fetch), loaded = box->writes && !place->made;
        if (!fetch)
            stream->touched[box->tensor] = loaded ? -2 - stream->main.record : stream->main.record;
        if (!moves)
            continue;
        make_spill(stream, op, stream->at - 1, fetch);
        return true;
    }
    return false;
}

bool fr_neuron_stream_next(fr_neuron_stream *stream, fr_neuron_op *op)
{
    for (;;) {
        if (stream->phase == 3) {
            if (!read_needed(stream))
                return false;
            stream->phase = 0;
            stream->at = 0;
        }
        if (stream->phase == 1 || !stream->touched) {
            stream->phase = stream->touched ? 2 : 3;
            stream->at = 0;
            *op = stream->main;
            return true;
        }
        if (next_spill(stream, op))
            return true;
        stream->phase++;
        stream->at = 0;
    }
}

/* ---- transfers ------------------------------------------------------------------------------------ */

static double rate_of(const fr_neuron_machine *machine, const fr_neuron_op *op)
{
    if (!op->transpose)
        return machine->dma_bytes_per_ns;
    double whole =
        op->from_sbuf ? machine->dma_transpose_sbuf_bytes_per_ns : machine->dma_transpose_bytes_per_ns;
    return whole / machine->dma_engines;
}

double fr_neuron_dma_split(const fr_neuron_machine *machine, const fr_neuron_op *op,
                           double work[FR_NEURON_DMA_ENGINES])
{
    int engines = machine->dma_engines, rows = op->high - op->low;
    double whole = op->descriptors * machine->dma_descriptor_ns + op->bytes / rate_of(machine, op), most = 0;
    if (rows == FR_NEURON_PARTITIONS && engines * ROWS_PER_ENGINE == rows) {
        for (int e = 0; e < engines; e++)
            work[e] = whole / engines;
        return whole / engines;
    }
    for (int e = 0; e < engines; e++)
        work[e] = 0;
    int pieces = rows > 0 ? rows : (int)fmin(engines, fmax(op->descriptors, 1));
    for (int i = 0; i < pieces; i++) {
        int engine = (rows > 0 ? (op->low + i) / ROWS_PER_ENGINE : i) % engines;
        work[engine] += whole / pieces;
        most = work[engine] > most ? work[engine] : most;
    }
    return most;
}

/* Software on GpSimd builds descriptors itself; the hardware generator works beside the engine that
 * triggers it. */
double fr_neuron_dma_trigger_ns(const fr_neuron_machine *machine, const fr_neuron_op *op)
{
    return op->dynamic && op->queue == FR_NEURON_GPSIMD ? fr_neuron_dma_generate_ns(machine, op)
                                                        : machine->dma_static_issue_ns;
}

double fr_neuron_dma_generate_ns(const fr_neuron_machine *machine, const fr_neuron_op *op)
{
    return op->dynamic ? machine->dma_dynamic_issue_ns + op->descriptors * machine->dma_dynamic_descriptor_ns : 0;
}
