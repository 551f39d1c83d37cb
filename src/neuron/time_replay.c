/* time_replay.c: the prediction: records as discrete events.
 *
 * State. Each core has five queues of operations that wait to start. An operation enters its queue in
 * program order, together with the edges to the unfinished operations it conflicts with; it is ready when
 * all of those have said when. A queue may start any ready operation among its oldest FR_NEURON_LOOKAHEAD,
 * the earliest one first and in doubt the older: the freedom a compiler has when it reorders independent
 * instructions. At most FR_NEURON_WINDOW operations lie between a core's oldest unfinished one and the
 * newest that is considered.
 *
 * The loop. Of all events that can be next - a start in some queue, an arrival or completion at the DMA
 * engines, the retirement that lets the window move - the earliest is done. Nothing that happens later can
 * come before it, so each decision about engines, banks and the DMA engines is made in order of time and is
 * final. An engine's operation tells its successors at once when they may start; a transfer tells them when
 * it is complete.
 *
 * Ties are broken by kind and age in the trace: the same records give the same times, always.
 */
#include "neuron/time.h"

#include <math.h>
#include <string.h>

enum { NONE = -1, QUEUES = FR_NEURON_DMA };

typedef enum slot_state { WAITING, STARTED, DONE } slot_state;

typedef struct slot { /* an operation inside the window; its boxes are with `depend` */
    fr_neuron_op op;
    fr_neuron_happening what;
} slot;

/* What the loop itself touches is kept small and apart. */
typedef struct node {
    double ready;
    fr_neuron_when when;
    int64_t blamed; /* record of the operation that made it wait longest */
    int32_t pending, edges, older, newer;
    int32_t fence; /* which of its core's, of a fence */
    uint8_t state, stall;
} node;

typedef struct edge {
    int32_t consumer, next; /* position in the ring */
    uint8_t kind;
    bool late;
} edge;

typedef struct queue {
    int32_t oldest, newest;
    int32_t best; /* position to start next, or NONE */
    fr_neuron_start start;
    bool stale;
    double fence_ready; /* of the fence at the head when it is ready */
} queue;

typedef struct core_state {
    fr_neuron_stream stream;
    fr_neuron_depend *depend;
    fr_neuron_units units;
    node *node;
    slot *slot;
    uint32_t base, entered; /* numbers; position = number & mask */
    bool exhausted;
    queue queue[QUEUES];
    int32_t fences, fences_entered; /* started; in the window or before */
    double fence_start;             /* of the latest */
} core_state;

typedef struct replay {
    const fr_neuron_job *job;
    const fr_neuron_machine *machine;
    const fr_neuron_replay_options *options;
    int window, lookahead, cores;
    uint32_t mask;
    core_state core[FR_NEURON_TIME_CORES];
    fr_neuron_dma *dma;
    edge *edges;
    int32_t edge_count, edge_capacity, free_edge;
    double now, wake, total;
    bool starved; /* memory ran out */
    /* the operation that is entering */
    core_state *entering;
    int32_t entering_at;
    fr_neuron_op scratch;
} replay;

/* ---- edges ---------------------------------------------------------------------------------------- */

static void add_edge(replay *r, node *producer, int32_t consumer, fr_neuron_edge kind, bool late)
{
    int32_t i = r->free_edge;
    if (i != NONE) {
        r->free_edge = r->edges[i].next;
    } else {
        if (r->edge_count == r->edge_capacity) {
            int32_t capacity = r->edge_capacity ? 2 * r->edge_capacity : 1024;
            void *grown = fr_reallocate(r->edges, sizeof *r->edges * (size_t)capacity);
            if (!grown) {
                r->starved = true;
                return;
            }
            r->edges = grown;
            r->edge_capacity = capacity;
        }
        i = r->edge_count++;
    }
    r->edges[i] = (edge){consumer, producer->edges, (uint8_t)kind, late};
    producer->edges = i;
}

static uint8_t stall_of(fr_neuron_edge kind, bool from_dma)
{
    if (kind != FR_NEURON_RAW)
        return FR_NEURON_STALL_REUSE;
    return from_dma ? FR_NEURON_STALL_DMA : FR_NEURON_STALL_DATA;
}

/* The producer at `from` is known to allow a start at some time: tell the consumer. */
static void release(replay *r, core_state *core, int32_t from, int32_t to, fr_neuron_edge kind, bool late)
{
    const slot *producer = &core->slot[from], *consumer = &core->slot[to];
    fr_neuron_access access = {.engine = producer->op.queue, .dma = producer->op.dma, .box.late = late};
    double at = fr_neuron_release_ns(r->machine, kind, &access, &core->node[from].when, consumer->op.queue,
                                     consumer->op.dma);
    node *n = &core->node[to];
    if (at <= n->ready)
        return;
    n->ready = at;
    n->blamed = producer->op.record;
    n->stall = stall_of(kind, producer->op.dma);
}

static void release_all(replay *r, core_state *core, int32_t from)
{
    node *producer = &core->node[from];
    for (int32_t i = producer->edges, next; i != NONE; i = next) {
        edge *e = &r->edges[i];
        next = e->next;
        release(r, core, from, e->consumer, (fr_neuron_edge)e->kind, e->late);
        if (--core->node[e->consumer].pending == 0)
            core->queue[core->slot[e->consumer].op.queue].stale = true;
        e->next = r->free_edge;
        r->free_edge = i;
    }
    producer->edges = NONE;
    producer->state = DONE;
}

/* ---- entering ------------------------------------------------------------------------------------- */

static bool settled(void *context, const fr_neuron_access *earlier)
{
    const core_state *core = context;
    return (int32_t)(earlier->op - core->base) < 0;
}

static void wait_for(void *context, const fr_neuron_access *earlier, fr_neuron_edge kind)
{
    replay *r = context;
    core_state *core = r->entering;
    if (settled(core, earlier) || earlier->op == core->entered)
        return;
    int32_t from = (int32_t)(earlier->op & r->mask), to = r->entering_at;
    node *producer = &core->node[from];
    if (producer->state == DONE) {
        release(r, core, from, to, kind, earlier->box.late);
        return;
    }
    const edge *latest = producer->edges == NONE ? NULL : &r->edges[producer->edges];
    if (latest && latest->consumer == to && latest->kind == kind && latest->late == earlier->box.late)
        return;
    add_edge(r, producer, to, kind, earlier->box.late);
    core->node[to].pending++;
}

static void join_queue(core_state *core, int32_t at)
{
    queue *q = &core->queue[core->slot[at].op.queue];
    node *n = &core->node[at];
    n->older = q->newest;
    n->newer = NONE;
    if (q->newest != NONE)
        core->node[q->newest].newer = at;
    else
        q->oldest = at;
    q->newest = at;
    q->stale = true;
}

static void enter(replay *r, core_state *core)
{
    int32_t at = (int32_t)(core->entered & r->mask);
    fr_neuron_op *op = &r->scratch;
    core->slot[at].op = *op;
    core->slot[at].op.box = NULL;
    core->node[at] = (node){.ready = r->now, .blamed = -1, .edges = NONE, .fence = core->fences_entered};
    core->fences_entered += op->fence;
    r->entering = core;
    r->entering_at = at;
    fr_neuron_access access = {.op = core->entered, .engine = op->queue, .dma = op->dma};
    for (int b = 0; b < op->boxes; b++) {
        access.box = op->box[b];
        fr_neuron_depend_find(core->depend, &access, wait_for, r);
    }
    for (int b = 0; b < op->boxes; b++) {
        access.box = op->box[b];
        r->starved |= !fr_neuron_depend_note(core->depend, &access);
    }
    join_queue(core, at);
    core->entered++;
}

static void fill_window(replay *r, core_state *core)
{
    while (!core->exhausted && core->entered - core->base < (uint32_t)r->window && !r->starved) {
        core->exhausted = !fr_neuron_stream_next(&core->stream, &r->scratch);
        r->starved |= core->stream.starved;
        if (!core->exhausted)
            enter(r, core);
    }
}

/* ---- retiring ------------------------------------------------------------------------------------- */

static double retires_at(const replay *r, const core_state *core)
{
    const node *n = &core->node[core->base & r->mask];
    return core->base == core->entered || n->state != DONE ? INFINITY : n->when.visible + r->wake;
}

/* In order, once nobody can be made to wait by the oldest operation any more. */
static void retire(replay *r, core_state *core)
{
    while (retires_at(r, core) <= r->now) {
        uint32_t at = core->base++ & r->mask;
        slot *s = &core->slot[at];
        if (r->options->happening)
            r->options->happening(r->options->user, &s->what);
    }
    fill_window(r, core);
}

/* ---- starting ------------------------------------------------------------------------------------- */

/* The operation a queue would start next: the earliest among its oldest few, the older in doubt. Nothing
 * passes a fence. */
static void choose(replay *r, core_state *core, queue *q)
{
    q->best = NONE;
    q->stale = false;
    int seen = 0;
    for (int32_t i = q->oldest; i != NONE && seen < r->lookahead; i = core->node[i].newer, seen++) {
        const fr_neuron_op *op = &core->slot[i].op;
        if (op->fence && i != q->oldest)
            return;
        if (core->node[i].pending == 0) {
            fr_neuron_start start = fr_neuron_units_start(&core->units, op, core->node[i].ready);
            if (q->best == NONE || start.at < q->start.at) {
                q->best = i;
                q->start = start;
            }
            if (start.stall == FR_NEURON_STALL_NONE && core->node[i].ready <= start.engine)
                return; /* nothing can be earlier */
        }
        if (op->fence)
            return;
    }
}

static void leave_queue(core_state *core, queue *q, int32_t at)
{
    const node *n = &core->node[at];
    if (n->older != NONE)
        core->node[n->older].newer = n->newer;
    else
        q->oldest = n->newer;
    if (n->newer != NONE)
        core->node[n->newer].older = n->older;
    else
        q->newest = n->older;
}

/* Why it did not start when its engine was free. The larger part counts: its inputs, or what the engine
 * still lacked. */
static void explain(core_state *core, int32_t at, const fr_neuron_start *start)
{
    const node *n = &core->node[at];
    fr_neuron_happening *what = &core->slot[at].what;
    double waited = start->at - start->engine, inputs = n->ready - start->engine;
    what->stall = FR_NEURON_STALL_NONE;
    what->blamed = -1;
    if (!(waited > 0))
        return;
    if (start->stall != FR_NEURON_STALL_NONE && start->lost > inputs) {
        what->stall = start->stall;
    } else if (inputs > 0) {
        what->stall = (fr_neuron_stall)n->stall;
        what->blamed = n->blamed;
    }
}

static void send_transfer(replay *r, core_state *core, int32_t at, double start)
{
    slot *s = &core->slot[at];
    double work[FR_NEURON_DMA_ENGINES];
    double share = s->op.bytes > 0 ? (s->op.hbm_read + s->op.hbm_write) / s->op.bytes : 0;
    s->what.work = fr_neuron_dma_split(r->machine, &s->op, work);
    uint64_t token = (uint64_t)s->op.core << 32 | (uint32_t)at;
    core->node[at].state = STARTED;
    r->starved |= !fr_neuron_dma_add(r->dma, s->op.core, s->op.queue, start + r->machine->dma_start_ns, work,
                                     share, token);
}

static void start(replay *r, core_state *core, queue *q)
{
    int32_t at = q->best;
    fr_neuron_start begun = q->start;
    node *n = &core->node[at];
    slot *s = &core->slot[at];
    leave_queue(core, q, at);
    s->what = (fr_neuron_happening){
        .op = &s->op, .ready = n->ready, .start = begun.at, .engine_free = begun.engine};
    explain(core, at, &begun);
    n->when = fr_neuron_units_run(&core->units, &s->op, begun.at, &s->what.throttled);
    s->what.end = n->when.end;
    s->what.visible = n->when.visible;
    core->fences += s->op.fence;
    for (int i = 0; i < QUEUES; i++) /* banks and ports changed for those that use them */
        core->queue[i].stale |= i == s->op.queue || s->op.banks || r->machine->vector_gpsimd_share_port;
    if (s->op.dma) {
        send_transfer(r, core, at, begun.at);
    } else {
        r->total = s->what.visible > r->total ? s->what.visible : r->total;
        release_all(r, core, at);
    }
}

static bool idle(const core_state *core)
{
    bool empty = core->exhausted;
    for (int i = 1; i < QUEUES; i++)
        empty &= core->queue[i].oldest == NONE;
    return empty;
}

/* The queue that stands before its core's next fence, ready but for the other core; or NULL. */
static queue *at_fence(replay *r, core_state *core)
{
    for (int i = 1; i < QUEUES; i++) {
        queue *q = &core->queue[i];
        if (q->stale)
            choose(r, core, q);
        if (q->best != NONE && core->slot[q->best].op.fence && core->node[q->best].fence == core->fences)
            return q;
    }
    return NULL;
}

/* A fence waits until the other core stands before the same one. */
static bool partner_ready(replay *r, int core, const queue *q, double *at)
{
    core_state *mine = &r->core[core], *other = &r->core[1 - core];
    if (mine->node[q->best].fence != mine->fences)
        return false; /* an earlier one comes first */
    const queue *theirs = at_fence(r, other);
    *at = mine->fence_start > *at ? mine->fence_start : *at;
    if (!theirs)
        return idle(other); /* nobody to wait for */
    *at = theirs->start.at > *at ? theirs->start.at : *at;
    return true;
}

static double earliest_start(replay *r, core_state **owner, queue **which)
{
    double earliest = INFINITY;
    for (int c = 0; c < r->cores; c++) {
        core_state *core = &r->core[c];
        for (int i = 1; i < QUEUES; i++) {
            queue *q = &core->queue[i];
            if (q->stale)
                choose(r, core, q);
            if (q->best == NONE)
                continue;
            double at = q->start.at;
            if (core->slot[q->best].op.fence && !partner_ready(r, c, q, &at))
                continue;
            bool older =
                at == earliest && core->slot[q->best].op.record < (*owner)->slot[(*which)->best].op.record;
            if (at < earliest || older) {
                earliest = at;
                *owner = core;
                *which = q;
            }
        }
    }
    return earliest;
}

/* Both fences start at one time. */
static void start_fences(replay *r, core_state *core, queue *q, double at)
{
    core_state *other = &r->core[core == &r->core[0]];
    queue *theirs = at_fence(r, other);
    core->fence_start = other->fence_start = at;
    if (theirs) {
        theirs->start.at = at;
        start(r, other, theirs);
    }
    q->start.at = at;
    start(r, core, q);
}

/* ---- the loop ------------------------------------------------------------------------------------- */

static bool finish_transfer(replay *r)
{
    uint64_t token;
    double end, begun;
    r->now = fr_neuron_dma_next(r->dma);
    int finished = fr_neuron_dma_step(r->dma, &token, &end, &begun);
    if (finished <= 0)
        return finished == 0;
    core_state *core = &r->core[token >> 32];
    int32_t at = (int32_t)(token & UINT32_MAX);
    slot *s = &core->slot[at];
    double visible = end + r->machine->dma_done_ns;
    s->what.transfer = begun;
    s->what.end = end;
    s->what.visible = visible;
    core->node[at].when = (fr_neuron_when){end, visible, visible};
    r->total = visible > r->total ? visible : r->total;
    release_all(r, core, at);
    return true;
}

/* Lets the window move when that is the next thing to happen. */
static bool slide(replay *r, double before)
{
    double earliest = INFINITY;
    for (int c = 0; c < r->cores; c++) {
        const core_state *core = &r->core[c];
        if (core->exhausted && !r->options->happening)
            continue;
        double at = retires_at(r, core);
        earliest = at < earliest ? at : earliest;
    }
    if (!(earliest < before))
        return false;
    r->now = earliest > r->now ? earliest : r->now;
    for (int c = 0; c < r->cores; c++)
        retire(r, &r->core[c]);
    return true;
}

static fr_status run(replay *r, fr_error *error)
{
    for (int c = 0; c < r->cores; c++)
        fill_window(r, &r->core[c]);
    while (!r->starved) {
        core_state *core = NULL;
        queue *q = NULL;
        double begin = earliest_start(r, &core, &q), dma = fr_neuron_dma_next(r->dma);
        if (slide(r, begin < dma ? begin : dma))
            continue;
        if (dma <= begin && dma < INFINITY) {
            if (!finish_transfer(r))
                break;
        } else if (begin < INFINITY) {
            r->now = begin;
            if (core->slot[q->best].op.fence)
                start_fences(r, core, q, begin);
            else
                start(r, core, q);
        } else {
            bool done = true;
            for (int c = 0; c < r->cores; c++)
                done &= r->core[c].exhausted;
            return done ? FR_OK
                        : fr_error_set(error, FR_BUG, "timing", NULL, "instructions wait for each other");
        }
    }
    return fr_error_memory(error, sizeof(edge) * (size_t)r->edge_capacity, "the replay of a kernel");
}

/* ---- opening and closing -------------------------------------------------------------------------- */

static fr_status open_core(replay *r, const fr_neuron_liveness *liveness, int number, fr_error *error)
{
    core_state *core = &r->core[number];
    FR_TRY(fr_neuron_stream_init(&core->stream, r->job, liveness, number, error));
    FR_TRY(fr_neuron_units_init(&core->units, r->machine, error));
    FR_TRY(fr_neuron_depend_create(&core->depend, r->job, settled, core, error));
    core->node = fr_allocate(sizeof *core->node * (size_t)r->window);
    core->slot = fr_allocate(sizeof *core->slot * (size_t)r->window);
    if (!core->node || !core->slot)
        return fr_error_memory(error, sizeof *core->slot * (size_t)r->window, "the window of a replay");
    for (int i = 0; i < QUEUES; i++)
        core->queue[i] = (queue){.oldest = NONE, .newest = NONE, .best = NONE};
    return FR_OK;
}

static void close_replay(replay *r)
{
    for (int c = 0; c < r->cores; c++) {
        core_state *core = &r->core[c];
        fr_neuron_stream_release(&core->stream);
        fr_neuron_units_release(&core->units);
        fr_neuron_depend_free(core->depend);
        fr_deallocate(core->node);
        fr_deallocate(core->slot);
    }
    fr_neuron_dma_free(r->dma);
    fr_deallocate(r->edges);
    fr_deallocate(r);
}

fr_status fr_neuron_replay(const fr_neuron_job *job, const fr_neuron_liveness *liveness,
                           const fr_neuron_replay_options *options, double *total_ns, fr_error *error)
{
    static const fr_neuron_replay_options defaults;
    replay *r = fr_allocate(sizeof *r);
    if (!r)
        return fr_error_memory(error, sizeof *r, "the replay of a kernel");
    r->job = job;
    r->machine = job->machine;
    r->options = options ? options : &defaults;
    r->cores = job->cores;
    r->window = r->options->window ? r->options->window : FR_NEURON_WINDOW;
    r->lookahead = r->options->lookahead ? r->options->lookahead : FR_NEURON_LOOKAHEAD;
    r->mask = (uint32_t)r->window - 1;
    r->free_edge = NONE;
    for (int e = 0; e < FR_NEURON_ENGINES; e++)
        r->wake = job->machine->wake_ns[e] > r->wake ? job->machine->wake_ns[e] : r->wake;
    fr_status status = fr_neuron_dma_create(&r->dma, job->machine, job->cores, error);
    for (int c = 0; c < job->cores && status == FR_OK; c++)
        status = open_core(r, liveness, c, error);
    if (status == FR_OK)
        status = run(r, error);
    *total_ns = r->total;
    close_replay(r);
    return status;
}
