/* time_bounds.c: the two times between which a prediction must lie.
 *
 * Program order. One stream of instructions a core, as written: nothing starts before the instruction
 * written before it has started. Engines still work at the same time and results still travel by semaphore,
 * but nothing overtakes: no prefetch, no software pipeline. Transfers are served in order of arrival. When
 * two cores share a stack they are both taken to slow down as if both were always busy. What a compiler
 * that reorders nothing would give.
 *
 * Perfect overlap. The largest of: each engine's work, each DMA engine's work, bytes over the bandwidth of
 * HBM, descriptor generation, and the longest chain of true dependences with its latencies. Storage is
 * unlimited (a buffer in use delays nobody) and Tensor is never throttled. No schedule of these
 * instructions on this machine is shorter.
 *
 * Both come from one pass over the records in order, core by core; at a fence the cores meet.
 */
#include "neuron/time.h"

#include <string.h>

enum { WEIGHTS = 17 };

typedef struct walker { /* one core */
    const fr_neuron_machine *machine;
    fr_neuron_stream stream;
    fr_neuron_depend *depend;
    fr_neuron_units units;
    fr_neuron_op op;
    bool alive; /* `op` is to be done */
    uint32_t number;
    int64_t left_out;
    double last_start;      /* program order */
    double ready, critical; /* of `op` */
    double dma_free[FR_NEURON_DMA_ENGINES], arrival[FR_NEURON_ENGINES];
    double demand; /* of all DMA engines of the stack, in its bandwidths */
    double shared[WEIGHTS]; /* Vector and Scalar weighed against each other */
    double busy[FR_NEURON_ENGINES], generating[FR_NEURON_ENGINES], dma_bytes, hbm;
    double end, critical_end, wake; /* wake: the longest */
} walker;

/* ---- waiting -------------------------------------------------------------------------------------- */

static bool long_past(void *context, const fr_neuron_access *earlier)
{
    const walker *w = context;
    return earlier->actual.visible + w->wake <=
           w->last_start; /* a chain forgotten only lowers the lower bound */
}

static void wait_for(void *context, const fr_neuron_access *earlier, fr_neuron_edge edge)
{
    walker *w = context;
    double at = fr_neuron_release_ns(w->machine, edge, earlier, &earlier->actual, w->op.queue, w->op.dma);
    w->ready = at > w->ready ? at : w->ready;
    if (edge != FR_NEURON_RAW)
        return;
    at = fr_neuron_release_ns(w->machine, edge, earlier, &earlier->critical, w->op.queue, w->op.dma);
    if (w->op.either && !earlier->dma && earlier->engine != w->op.queue) /* no semaphore if it went there */
        at -= w->machine->wake_ns[w->op.queue] + w->machine->drain_ns[earlier->engine];
    w->critical = at > w->critical ? at : w->critical;
}

static void find_ready(walker *w)
{
    w->ready = w->last_start;
    w->critical = 0;
    fr_neuron_access access = {.op = w->number, .engine = w->op.queue, .dma = w->op.dma};
    for (int b = 0; b < w->op.boxes; b++) {
        access.box = w->op.box[b];
        fr_neuron_depend_find(w->depend, &access, wait_for, w);
    }
}

/* Of a DMA engine: the documented peak, whatever the descriptors. How rows are merged into descriptors and dealt to
 * engines is the compiler's business. */
static double peak_of(const fr_neuron_machine *m)
{
    return m->dma_peak_bytes_per_ns > m->dma_bytes_per_ns ? m->dma_peak_bytes_per_ns : m->dma_bytes_per_ns;
}

/* ---- running -------------------------------------------------------------------------------------- */

static void add_transfer(walker *w)
{
    if (w->op.spare)
        return;
    w->dma_bytes += w->op.bytes;
    w->hbm += w->op.hbm_read + w->op.hbm_write;
    w->busy[w->op.queue] += fr_neuron_dma_trigger_ns(w->machine, &w->op);
    w->generating[w->op.queue] += fr_neuron_dma_generate_ns(w->machine, &w->op);
}

static fr_neuron_when run_transfer(walker *w, double start, fr_neuron_when *critical)
{
    const fr_neuron_machine *m = w->machine;
    double work[FR_NEURON_DMA_ENGINES], trigger, end = 0;
    fr_neuron_dma_split(m, &w->op, work);
    fr_neuron_units_run(&w->units, &w->op, start, &trigger);
    double arrival = start + m->dma_start_ns;
    arrival = w->arrival[w->op.queue] > arrival ? w->arrival[w->op.queue] : arrival;
    w->arrival[w->op.queue] = arrival;
    double share = w->op.bytes > 0 ? (w->op.hbm_read + w->op.hbm_write) / w->op.bytes : 0;
    double slowdown = w->demand * share > 1 ? w->demand * share : 1;
    end = arrival;
    for (int e = 0; e < m->dma_engines && e < FR_NEURON_DMA_ENGINES; e++) {
        if (!(work[e] > 0))
            continue;
        w->dma_free[e] = (w->dma_free[e] > arrival ? w->dma_free[e] : arrival) + work[e] * slowdown;
        end = w->dma_free[e] > end ? w->dma_free[e] : end;
    }
    add_transfer(w);
    double moved = w->critical + m->dma_start_ns + w->op.bytes / (m->dma_engines * peak_of(m)), done = m->dma_done_ns;
    *critical = (fr_neuron_when){moved, moved + done, moved + done};
    return (fr_neuron_when){end, end + done, end + done};
}

/* Vector and Scalar together, where the choice between them is free: T is at least w V + (1 - w) S for every w between
 * 0 and 1 when the loads V and S are at most T, and at best each open instruction goes where its part is less. */
static void weigh_choice(walker *w)
{
    const fr_neuron_op *op = &w->op;
    for (int i = 0; i < WEIGHTS; i++) {
        double weight = i / (double)(WEIGHTS - 1), vector = weight * op->choice[0],
               scalar = (1 - weight) * op->choice[1];
        double least = vector < scalar ? vector : scalar;
        w->shared[i] += op->either ? least : op->queue == FR_NEURON_VECTOR ? vector : scalar;
    }
}

static fr_neuron_when run_engine(walker *w, double start, fr_neuron_when *critical)
{
    const fr_neuron_machine *m = w->machine;
    double throttled, clock = m->clock_ghz[w->op.queue], load = 0;
    fr_neuron_when actual = fr_neuron_units_run(&w->units, &w->op, start, &throttled);
    if (w->op.queue == FR_NEURON_TENSOR)
        load = m->stationary_load_cycles / clock;
    double busy = w->op.busy, drain = m->drain_ns[w->op.queue];
    if (w->op.spare)
        busy = 0;
    else if (w->op.queue == FR_NEURON_VECTOR || w->op.queue == FR_NEURON_SCALAR)
        weigh_choice(w);
    else
        w->busy[w->op.queue] += busy;
    if (w->op.either) {
        busy = w->op.choice[w->op.choice[1] < w->op.choice[0]];
        drain = 0;
    }
    double from = w->critical + load, end = from + busy;
    double through = from + (clock > 0 ? m->issue_floor_cycles[w->op.queue] / clock : 0) + drain;
    *critical = (fr_neuron_when){end, end + drain - (w->op.either ? w->wake : 0), through > end ? through : end};
    return actual;
}

/* Does `op`, not before `earliest`. */
static bool run(walker *w, double earliest)
{
    fr_neuron_when critical, actual;
    double start = fr_neuron_units_start(&w->units, &w->op, earliest).at;
    w->last_start = start;
    actual = w->op.dma ? run_transfer(w, start, &critical) : run_engine(w, start, &critical);
    w->end = actual.visible > w->end ? actual.visible : w->end;
    w->left_out += w->op.left_out;
    if (w->op.spare)
        critical = (fr_neuron_when){0};
    w->critical_end = critical.visible > w->critical_end ? critical.visible : w->critical_end;
    fr_neuron_access access = {
        .op = w->number++, .engine = w->op.queue, .dma = w->op.dma, .actual = actual, .critical = critical};
    for (int b = 0; b < w->op.boxes; b++) {
        access.box = w->op.box[b];
        if (!fr_neuron_depend_note(w->depend, &access))
            return false;
    }
    return true;
}

/* Up to the next fence or the end. */
static bool walk(walker *w)
{
    while ((w->alive = fr_neuron_stream_next(&w->stream, &w->op))) {
        find_ready(w);
        if (w->op.fence)
            return true;
        if (!run(w, w->ready))
            return false;
    }
    return !w->stream.starved;
}

static bool walk_together(walker *w, int cores)
{
    for (int c = 0; c < cores; c++)
        if (!walk(&w[c]))
            return false;
    while (w[0].alive || (cores > 1 && w[1].alive)) {
        double ready = 0;
        for (int c = 0; c < cores; c++)
            if (w[c].alive)
                ready = w[c].ready > ready ? w[c].ready : ready;
        for (int c = 0; c < cores; c++)
            if (w[c].alive) {
                double at = fr_neuron_units_start(&w[c].units, &w[c].op, ready).at;
                ready = at > ready ? at : ready;
            }
        for (int c = 0; c < cores; c++)
            if (w[c].alive && (!run(&w[c], ready) || !walk(&w[c])))
                return false;
    }
    return true;
}

/* ---- the answer ----------------------------------------------------------------------------------- */

static fr_status open_walker(walker *w, const fr_neuron_job *job, const fr_neuron_liveness *liveness,
                             int core, fr_error *error)
{
    const fr_neuron_machine *m = w->machine = job->machine;
    FR_TRY(fr_neuron_stream_init(&w->stream, job, liveness, core, error));
    w->stream.whole = true;
    FR_TRY(fr_neuron_units_init(&w->units, m, error));
    FR_TRY(fr_neuron_depend_create(&w->depend, job, long_past, w, error));
    for (int e = 0; e < FR_NEURON_ENGINES; e++)
        w->wake = m->wake_ns[e] > w->wake ? m->wake_ns[e] : w->wake;
    if (m->hbm_stack_bytes_per_ns > 0)
        w->demand = job->cores * m->dma_engines * m->dma_bytes_per_ns / m->hbm_stack_bytes_per_ns;
    return FR_OK;
}

static void close_walker(walker *w)
{
    fr_neuron_stream_release(&w->stream);
    fr_neuron_units_release(&w->units);
    fr_neuron_depend_free(w->depend);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Descriptors made by hardware: Sync and Scalar each have a generator, and the compiler picks the queue of most
 * transfers, so that at best each makes half. Software on GpSimd makes its own. */
static double generating(const walker *w)
{
    double hardware = (w->generating[FR_NEURON_SYNC] + w->generating[FR_NEURON_SCALAR]) / 2;
    return larger(hardware, w->generating[FR_NEURON_GPSIMD]);
}

static void sum_up(const walker *w, int cores, fr_neuron_bounds *bounds)
{
    const fr_neuron_machine *m = w->machine;
    double hbm = 0;
    for (int c = 0; c < cores; c++, w++) {
        bounds->program_order_ns = larger(bounds->program_order_ns, w->end);
        bounds->critical_ns = larger(bounds->critical_ns, w->critical_end);
        for (int e = 0; e < FR_NEURON_ENGINES; e++)
            bounds->engine_ns = larger(bounds->engine_ns, w->busy[e]);
        for (int i = 0; i < WEIGHTS; i++)
            bounds->engine_ns = larger(bounds->engine_ns, w->shared[i]);
        bounds->engine_ns = larger(bounds->engine_ns, generating(w));
        bounds->dma_ns = larger(bounds->dma_ns, w->dma_bytes / (m->dma_engines * peak_of(m)));
        hbm += w->hbm;
        bounds->left_out += w->left_out;
    }
    bounds->hbm_ns = m->hbm_stack_bytes_per_ns > 0 ? hbm / m->hbm_stack_bytes_per_ns : 0;
    bounds->overlap_ns =
        larger(larger(bounds->critical_ns, bounds->engine_ns), larger(bounds->dma_ns, bounds->hbm_ns));
}

fr_status fr_neuron_bounds_of(const fr_neuron_job *job, const fr_neuron_liveness *liveness,
                              fr_neuron_bounds *bounds, fr_error *error)
{
    memset(bounds, 0, sizeof *bounds);
    size_t bytes = sizeof(walker) * FR_NEURON_TIME_CORES;
    walker *w = fr_allocate(bytes);
    if (!w)
        return fr_error_memory(error, bytes, "the bounds of a kernel's time");
    fr_status status = FR_OK;
    for (int c = 0; c < job->cores && status == FR_OK; c++)
        status = open_walker(&w[c], job, liveness, c, error);
    if (status == FR_OK && !walk_together(w, job->cores))
        status = fr_error_memory(error, sizeof(fr_neuron_access), "dependences");
    if (status == FR_OK)
        sum_up(w, job->cores, bounds);
    for (int c = 0; c < job->cores; c++)
        close_walker(&w[c]);
    fr_deallocate(w);
    return status;
}
