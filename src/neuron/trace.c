/* trace.c: a kernel's timeline as Chrome trace events, which Perfetto and chrome://tracing open.
 *
 * One process per core. Threads: the five engines; rows of transfers per DMA queue, from the first byte
 * moved to the last (transfers of one queue that use different engines overlap and go to the next row);
 * counters of SBUF and PSUM in use. An engine's idle time before an instruction is a slice named after its
 * reason. An arrow runs from the instruction that was waited for to the one that waited: the semaphore.
 *
 * Events are written as they come, nothing is collected but where recent records ended (for the arrows) and
 * when tiles begin and end (for the counters). ts and dur are microseconds with three decimals: whole
 * nanoseconds.
 */
#include "neuron/time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY = 4 * FR_NEURON_WINDOW, TRANSFERS = 16, LANES = 4, HISTORY = 64 };

typedef struct ended { /* where a record is in the timeline */
    int64_t record;
    double end;
    int row;
} ended;

typedef struct change { /* of memory in use */
    double at;
    int64_t bytes;
    int core, memory;
} change;

typedef struct lane { /* the latest transfers of a row, in any order: triggers may pass each other */
    double begin[HISTORY], end[HISTORY];
    int next;
} lane;

typedef struct tracing {
    const fr_neuron_job *job;
    fr_file_writer writer;
    fr_neuron_liveness liveness;
    fr_buffer line;
    ended *recent[FR_NEURON_TIME_CORES];
    change *changes;
    int64_t change_count, change_capacity;
    lane lane[FR_NEURON_TIME_CORES][FR_NEURON_ENGINES][LANES];
    int64_t arrows;
    bool first, starved;
} tracing;

static const char *const stall_names[FR_NEURON_STALLS] = {"idle",      "wait: data",     "wait: buffer",
                                                          "wait: DMA", "wait: bank",     "activation table",
                                                          "throttle",  "wait: DMA queue"};
static const char *const row_names[FR_NEURON_DMA] = {"", "Tensor", "Vector", "Scalar", "GpSimd", "Sync"};

/* ---- JSON ----------------------------------------------------------------------------------------- */

/* Text between quotes; bytes that are no part of plain ASCII become \u escapes of Latin-1, which keeps the
 * file valid whatever a file is called. */
static void put_text(fr_buffer *out, const char *text)
{
    fr_buffer_append(out, "\"", 1);
    for (const unsigned char *c = (const unsigned char *)(text ? text : ""); *c; c++) {
        char byte = (char)*c;
        if (*c == '"' || *c == '\\')
            fr_buffer_printf(out, "\\%c", byte);
        else if (*c < 0x20 || *c > 0x7e)
            fr_buffer_printf(out, "\\u%04x", *c);
        else
            fr_buffer_append(out, &byte, 1);
    }
    fr_buffer_append(out, "\"", 1);
}

static void open_event(tracing *t, const char *name, const char *phase, int core, int row)
{
    fr_buffer_clear(&t->line);
    fr_buffer_printf(&t->line, "%s{\"name\":", t->first ? "\n" : ",\n");
    put_text(&t->line, name);
    fr_buffer_printf(&t->line, ",\"ph\":\"%s\",\"pid\":%d,\"tid\":%d", phase, core, row);
    t->first = false;
}

static void close_event(tracing *t)
{
    fr_buffer_append(&t->line, "}", 1);
    t->starved |= t->line.failed;
    if (!t->line.failed)
        fr_file_writer_append(&t->writer, t->line.data, t->line.length);
}

static void put_time(tracing *t, const char *key, double ns)
{
    fr_buffer_printf(&t->line, ",\"%s\":%.3f", key, ns / 1000);
}

static void name_row(tracing *t, const char *kind, int core, int row, const char *text)
{
    open_event(t, kind, "M", core, row);
    fr_buffer_printf(&t->line, ",\"args\":{\"name\":");
    put_text(&t->line, text);
    fr_buffer_append(&t->line, "}", 1);
    close_event(t);
    open_event(t, "thread_sort_index", "M", core, row);
    fr_buffer_printf(&t->line, ",\"args\":{\"sort_index\":%d}", row);
    close_event(t);
}

static void name_rows(tracing *t)
{
    for (int c = 0; c < t->job->cores; c++) {
        name_row(t, "process_name", c, 0, c ? "NeuronCore 1" : "NeuronCore 0");
        for (int e = 1; e < FR_NEURON_DMA; e++) {
            name_row(t, "thread_name", c, e, row_names[e]);
            for (int i = 0; i < LANES; i++) {
                char text[64];
                snprintf(text, sizeof text, "DMA, queue of %s%.*s", row_names[e], i, "'''");
                name_row(t, "thread_name", c, TRANSFERS + LANES * e + i, text);
            }
        }
    }
}

/* ---- events --------------------------------------------------------------------------------------- */

static void put_arguments(tracing *t, const fr_neuron_happening *h)
{
    const fr_neuron_op *op = h->op;
    int line = 0;
    const char *file = t->job->source ? t->job->source(t->job->context, op->data->source, &line) : NULL;
    fr_buffer_printf(&t->line, ",\"args\":{\"record\":%lld", (long long)op->record);
    if (file) {
        char at[600];
        snprintf(at, sizeof at, "%s:%d", file, line);
        fr_buffer_printf(&t->line, ",\"source\":");
        put_text(&t->line, at);
    }
    if (op->dma)
        fr_buffer_printf(&t->line, ",\"bytes\":%.0f,\"descriptors\":%.0f", op->bytes, op->descriptors);
    else
        fr_buffer_printf(&t->line, ",\"elements_per_partition\":%u", op->data->extent);
    fr_buffer_printf(&t->line, ",\"visible_us\":%.3f", h->visible / 1000);
    if (h->throttled > 0)
        fr_buffer_printf(&t->line, ",\"throttled_us\":%.3f", h->throttled / 1000);
    if (op->data->flags & FR_NEURON_GUESS)
        fr_buffer_printf(&t->line, ",\"cost\":\"guess\"");
    fr_buffer_append(&t->line, "}", 1);
}

static void put_slice(tracing *t, const fr_neuron_happening *h, const char *name, int row, double start,
                      double end)
{
    open_event(t, name, "X", h->op->core, row);
    put_time(t, "ts", start);
    put_time(t, "dur", end - start);
    put_arguments(t, h);
    close_event(t);
}

static void put_wait(tracing *t, const fr_neuron_happening *h)
{
    if (!(h->start - h->engine_free >= 0.5) || h->stall == FR_NEURON_STALL_NONE)
        return;
    open_event(t, stall_names[h->stall], "X", h->op->core, h->op->queue);
    fr_buffer_printf(&t->line, ",\"cat\":\"stall\"");
    put_time(t, "ts", h->engine_free);
    put_time(t, "dur", h->start - h->engine_free);
    fr_buffer_printf(&t->line, ",\"args\":{\"for\":%lld,\"waits_for\":%lld}", (long long)h->op->record,
                     (long long)h->blamed);
    close_event(t);
}

static void put_arrow(tracing *t, const fr_neuron_happening *h)
{
    const ended *from = h->blamed < 0 ? NULL : &t->recent[h->op->core][h->blamed % MEMORY];
    if (!from || from->record != h->blamed)
        return;
    for (int end = 0; end < 2; end++) {
        open_event(t, "semaphore", end ? "f" : "s", h->op->core, end ? h->op->queue : from->row);
        fr_buffer_printf(&t->line, ",\"cat\":\"semaphore\",\"id\":%lld%s", (long long)t->arrows,
                         end ? ",\"bp\":\"e\"" : "");
        put_time(t, "ts", end ? h->start : from->end);
        close_event(t);
    }
    t->arrows++;
}

/* ---- memory in use -------------------------------------------------------------------------------- */

static void note_change(tracing *t, double at, int64_t bytes, const fr_neuron_place *place)
{
    if (t->change_count == t->change_capacity) {
        int64_t capacity = t->change_capacity ? 2 * t->change_capacity : 256;
        void *grown = fr_reallocate(t->changes, sizeof *t->changes * (size_t)capacity);
        if (!grown) {
            t->starved = true;
            return;
        }
        t->changes = grown;
        t->change_capacity = capacity;
    }
    t->changes[t->change_count++] = (change){at, bytes, place->core, place->memory};
}

static void note_tiles(tracing *t, const fr_neuron_happening *h)
{
    for (int r = 0; r < h->op->data->regions; r++) {
        const fr_neuron_region *region = &h->op->data->region[r];
        const fr_neuron_place *place = &t->liveness.place[region->tensor];
        bool seen = false;
        for (int s = 0; s < r; s++)
            seen |= h->op->data->region[s].tensor == region->tensor;
        if (seen || place->residence == FR_NEURON_SPILLED ||
            (place->memory != FR_NEURON_SBUF && place->memory != FR_NEURON_PSUM))
            continue;
        if (place->first == h->op->record)
            note_change(t, h->start, place->bytes, place);
        if (place->last == h->op->record)
            note_change(t, h->visible, -(int64_t)place->bytes, place);
    }
}

static int by_time(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static void put_counters(tracing *t)
{
    int64_t used[FR_NEURON_TIME_CORES][2] = {{0}};
    if (t->change_count)
        qsort(t->changes, (size_t)t->change_count, sizeof *t->changes, by_time);
    for (int64_t i = 0; i < t->change_count; i++) {
        const change *c = &t->changes[i];
        int which = c->memory == FR_NEURON_PSUM;
        used[c->core][which] += c->bytes;
        bool last = i + 1 == t->change_count || t->changes[i + 1].at > c->at;
        if (!last && t->changes[i + 1].core == c->core && t->changes[i + 1].memory == c->memory)
            continue; /* several at one time: the last counts */
        open_event(t, which ? "PSUM bytes a partition" : "SBUF bytes a partition", "C", c->core, 0);
        put_time(t, "ts", c->at);
        fr_buffer_printf(&t->line, ",\"args\":{\"bytes\":%lld}", (long long)used[c->core][which]);
        close_event(t);
    }
}

/* ---- the file ------------------------------------------------------------------------------------- */

static bool fits(const lane *l, double begin, double end)
{
    for (int i = 0; i < HISTORY; i++)
        if (begin < l->end[i] && l->begin[i] < end)
            return false;
    return true;
}

/* The row of a transfer. When all are taken it is shown after the latest of the last row, cut short. */
static int lane_of(tracing *t, const fr_neuron_happening *h, double *begin)
{
    lane *lanes = t->lane[h->op->core][h->op->queue];
    int which = 0;
    while (which < LANES - 1 && !fits(&lanes[which], *begin, h->end))
        which++;
    lane *l = &lanes[which];
    for (int i = 0; i < HISTORY; i++)
        if (l->end[i] > *begin && l->begin[i] < h->end)
            *begin = l->end[i] < h->end ? l->end[i] : h->end;
    l->begin[l->next] = *begin;
    l->end[l->next] = h->end;
    l->next = (l->next + 1) % HISTORY;
    return TRANSFERS + LANES * h->op->queue + which;
}

static void put_happening(void *user, const fr_neuron_happening *h)
{
    tracing *t = user;
    const fr_neuron_op *op = h->op;
    char name[96];
    const char *called = t->job->name ? t->job->name(t->job->context, op->data->instruction) : "instruction";
    snprintf(name, sizeof name, "%s%s", op->records ? "" : "spill of ", called);
    put_wait(t, h);
    int row = op->queue;
    if (op->dma) {
        char trigger[112];
        snprintf(trigger, sizeof trigger, "start %s", name);
        put_slice(t, h, trigger, op->queue, h->start,
                  h->start + fr_neuron_dma_trigger_ns(t->job->machine, op));
        double begin = h->transfer;
        row = lane_of(t, h, &begin);
        put_slice(t, h, name, row, begin, h->end);
    } else {
        put_slice(t, h, name, row, h->start, h->end);
    }
    put_arrow(t, h);
    if (!op->records)
        return;
    t->recent[op->core][op->record % MEMORY] = (ended){op->record, h->end - 0.001 * (h->end > h->start), row};
    note_tiles(t, h);
}

static fr_status write_events(tracing *t, fr_error *error)
{
    double total;
    const char *head = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", *tail = "\n]}\n";
    fr_neuron_replay_options options = {.happening = put_happening, .user = t};
    for (int c = 0; c < t->job->cores; c++) {
        if (!(t->recent[c] = fr_allocate(sizeof(ended) * MEMORY)))
            return fr_error_memory(error, sizeof(ended) * MEMORY, "a trace");
        for (int i = 0; i < MEMORY; i++)
            t->recent[c][i].record = -1;
    }
    fr_file_writer_append(&t->writer, head, strlen(head));
    t->first = true;
    name_rows(t);
    FR_TRY(fr_neuron_replay(t->job, &t->liveness, &options, &total, error));
    put_counters(t);
    fr_file_writer_append(&t->writer, tail, strlen(tail));
    return t->starved ? fr_error_memory(error, sizeof(change) * (size_t)t->change_capacity, "a trace")
                      : FR_OK;
}

fr_status fr_neuron_write_trace_job(const fr_neuron_job *job, const char *path, fr_error *error)
{
    tracing *t = fr_allocate(sizeof *t);
    if (!t)
        return fr_error_memory(error, sizeof *t, "a trace");
    t->job = job;
    fr_buffer_init(&t->line, 1 << 16);
    fr_status status = fr_neuron_liveness_init(&t->liveness, job, error);
    if (status == FR_OK)
        status = fr_file_writer_begin(&t->writer, path, error);
    if (status == FR_OK) {
        status = write_events(t, error);
        if (status == FR_OK)
            status = fr_file_writer_commit(&t->writer, error);
        else
            fr_file_writer_abort(&t->writer);
    }
    fr_neuron_liveness_release(&t->liveness);
    fr_buffer_release(&t->line);
    for (int c = 0; c < FR_NEURON_TIME_CORES; c++)
        fr_deallocate(t->recent[c]);
    fr_deallocate(t->changes);
    fr_deallocate(t);
    return status;
}
