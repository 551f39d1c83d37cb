/* time_dma.c: the DMA engines.
 *
 * A core has sixteen. Each moves one descriptor at a time and takes its queues in turns, so over a transfer
 * of many descriptors the queues that have work get equal shares of it: an engine is modelled as shared
 * equally by the heads of its queues. Only arrivals and departures change anything, which makes the cost of
 * a transfer independent of its number of descriptors.
 *
 * Attained service. Heads of an engine's queues progress alike, so one number per engine, `service`, says
 * how much each head has been given; a head is done when service reaches the value it had at its start plus
 * its work. With k heads an engine's service grows by 1/k per ns.
 *
 * HBM. The cores of a stack share its bandwidth. When the active engines together ask for more, all slow
 * down alike, so engines live in a stretched time of their own; `real` and `stretched` are kept at the
 * latest event, and `pace`, at most 1, is how fast stretched time passes.
 *
 * Nearly all transfers load every engine of a core alike. As long as that was so since the engines were
 * last idle, one engine stands for all of them.
 */
#include "neuron/time.h"

#include <math.h>
#include <string.h>

enum { QUEUES = FR_NEURON_DMA + 1, NONE = -1 };

typedef struct item { /* one transfer on one engine */
    int32_t transfer, next;
    double work;
} item;

typedef struct transfer {
    uint64_t token;
    double at, begun, hbm_share;
    double work[FR_NEURON_DMA_ENGINES];
    int32_t next, pending;
    int8_t core, queue;
    bool uniform;
} transfer;

typedef struct engine {
    double service, since; /* attained by each head, at stretched time `since` */
    int heads;
    double next; /* stretched time of the next completion */
    int32_t first[QUEUES], last[QUEUES];
    double goal[QUEUES]; /* service at which the head is done */
} engine;

typedef struct side { /* one core */
    engine engine[FR_NEURON_DMA_ENGINES];
    bool uniform;
    int active;                              /* engines with work, as simulated */
    int32_t waiting[QUEUES], newest[QUEUES]; /* transfers on their way to the engines */
    double newest_at[QUEUES];
} side;

struct fr_neuron_dma {
    const fr_neuron_machine *machine;
    int cores, engines;
    side side[FR_NEURON_TIME_CORES];
    item *items;
    transfer *transfers;
    int32_t item_count, item_capacity, free_item;
    int32_t transfer_count, transfer_capacity, free_transfer;
    double real, stretched, pace, next;
};

fr_status fr_neuron_dma_create(fr_neuron_dma **out, const fr_neuron_machine *machine, int cores,
                               fr_error *error)
{
    fr_neuron_dma *dma = *out = fr_allocate(sizeof *dma);
    if (!dma)
        return fr_error_memory(error, sizeof *dma, "DMA engines");
    dma->machine = machine;
    dma->cores = cores;
    dma->engines =
        machine->dma_engines < FR_NEURON_DMA_ENGINES ? machine->dma_engines : FR_NEURON_DMA_ENGINES;
    dma->free_item = dma->free_transfer = NONE;
    dma->pace = 1;
    dma->next = INFINITY;
    for (int c = 0; c < FR_NEURON_TIME_CORES; c++) {
        side *s = &dma->side[c];
        s->uniform = true;
        for (int q = 0; q < QUEUES; q++)
            s->waiting[q] = s->newest[q] = NONE;
        for (int e = 0; e < FR_NEURON_DMA_ENGINES; e++) {
            s->engine[e].next = INFINITY;
            for (int q = 0; q < QUEUES; q++)
                s->engine[e].first[q] = s->engine[e].last[q] = NONE;
        }
    }
    return FR_OK;
}

void fr_neuron_dma_free(fr_neuron_dma *dma)
{
    if (!dma)
        return;
    fr_deallocate(dma->items);
    fr_deallocate(dma->transfers);
    fr_deallocate(dma);
}

double fr_neuron_dma_next(const fr_neuron_dma *dma)
{
    return dma->next;
}

/* ---- pools ---------------------------------------------------------------------------------------- */

static bool grow(void **array, int32_t *capacity, size_t bytes)
{
    int32_t larger = *capacity ? 2 * *capacity : 256;
    void *grown = fr_reallocate(*array, bytes * (size_t)larger);
    if (!grown)
        return false;
    *array = grown;
    *capacity = larger;
    return true;
}

/* Room for `count` more items, so that nothing can fail half-way. */
static bool reserve_items(fr_neuron_dma *dma, int count)
{
    while (dma->item_capacity - dma->item_count < count)
        if (!grow((void **)&dma->items, &dma->item_capacity, sizeof *dma->items))
            return false;
    return true;
}

static int32_t new_item(fr_neuron_dma *dma, int32_t owner, double work)
{
    int32_t i = dma->free_item;
    if (i != NONE)
        dma->free_item = dma->items[i].next;
    else
        i = dma->item_count++;
    dma->items[i] = (item){owner, NONE, work};
    return i;
}

static void drop_item(fr_neuron_dma *dma, int32_t i)
{
    dma->items[i].next = dma->free_item;
    dma->free_item = i;
}

/* ---- one engine ----------------------------------------------------------------------------------- */

static void serve_until(engine *e, double now)
{
    if (e->heads)
        e->service += (now - e->since) / e->heads;
    e->since = now;
}

static void schedule(engine *e)
{
    double goal = INFINITY;
    for (int q = 0; q < QUEUES; q++)
        if (e->first[q] != NONE && e->goal[q] < goal)
            goal = e->goal[q];
    e->next = e->heads ? e->since + (goal > e->service ? goal - e->service : 0) * e->heads : INFINITY;
}

static void begin(fr_neuron_dma *dma, engine *e, int queue)
{
    const item *head = &dma->items[e->first[queue]];
    transfer *moving = &dma->transfers[head->transfer];
    e->goal[queue] = e->service + head->work;
    moving->begun = moving->begun < 0 ? dma->real : moving->begun;
}

static void append(fr_neuron_dma *dma, side *s, engine *e, int queue, int32_t i)
{
    serve_until(e, dma->stretched);
    if (e->first[queue] != NONE) {
        dma->items[e->last[queue]].next = i;
    } else {
        s->active += e->heads == 0;
        if (e->heads++ == 0)
            e->service = 0;
        e->first[queue] = i;
        begin(dma, e, queue);
    }
    e->last[queue] = i;
    schedule(e);
}

/* Removes the head of the queue that is done; returns its item. */
static int32_t complete(fr_neuron_dma *dma, side *s, engine *e)
{
    int done = -1;
    for (int q = 0; q < QUEUES; q++)
        if (e->first[q] != NONE && (done < 0 || e->goal[q] < e->goal[done]))
            done = q;
    int32_t i = e->first[done];
    e->service = e->goal[done];
    e->since = dma->stretched;
    e->first[done] = dma->items[i].next;
    if (e->first[done] != NONE) {
        begin(dma, e, done);
    } else {
        e->last[done] = NONE;
        s->active -= --e->heads == 0;
    }
    schedule(e);
    return i;
}

/* ---- all engines ---------------------------------------------------------------------------------- */

/* One engine stood for all: now each gets its own copy of the queues. */
static void part_ways(fr_neuron_dma *dma, side *s)
{
    s->uniform = false;
    for (int q = 0; q < QUEUES; q++)
        for (int32_t i = s->engine[0].first[q]; i != NONE; i = dma->items[i].next)
            dma->transfers[dma->items[i].transfer].pending = dma->engines;
    for (int n = 1; n < dma->engines; n++) {
        engine *e = &s->engine[n];
        *e = s->engine[0];
        for (int q = 0; q < QUEUES; q++) {
            e->first[q] = e->last[q] = NONE;
            for (int32_t i = s->engine[0].first[q]; i != NONE; i = dma->items[i].next) {
                int32_t copy = new_item(dma, dma->items[i].transfer, dma->items[i].work);
                if (e->first[q] == NONE)
                    e->first[q] = copy;
                else
                    dma->items[e->last[q]].next = copy;
                e->last[q] = copy;
            }
        }
    }
    s->active = s->engine[0].heads ? dma->engines : 0;
}

static int queued_items(const fr_neuron_dma *dma, const side *s)
{
    int count = 0;
    for (int q = 0; q < QUEUES; q++)
        for (int32_t i = s->engine[0].first[q]; i != NONE; i = dma->items[i].next)
            count++;
    return count;
}

static double demand_of(const fr_neuron_dma *dma, const side *s)
{
    double demand = 0;
    int simulated = s->uniform ? 1 : dma->engines;
    for (int n = 0; n < simulated; n++) {
        const engine *e = &s->engine[n];
        double share = 0;
        for (int q = 0; e->heads && q < QUEUES; q++)
            if (e->first[q] != NONE)
                share += dma->transfers[dma->items[e->first[q]].transfer].hbm_share / e->heads;
        demand += share * dma->machine->dma_bytes_per_ns;
    }
    return s->uniform ? demand * dma->engines : demand;
}

static void set_pace(fr_neuron_dma *dma)
{
    double cap = dma->machine->hbm_stack_bytes_per_ns;
    double most = 2.0 * dma->cores * dma->engines * dma->machine->dma_bytes_per_ns, demand = 0;
    dma->pace = 1;
    if (!(cap > 0) || most <= cap)
        return;
    for (int c = 0; c < dma->cores; c++)
        demand += demand_of(dma, &dma->side[c]);
    if (demand > cap)
        dma->pace = cap / demand;
}

static double to_real(const fr_neuron_dma *dma, double stretched)
{
    return stretched <= dma->stretched ? dma->real : dma->real + (stretched - dma->stretched) / dma->pace;
}

static void find_next(fr_neuron_dma *dma)
{
    double arrival = INFINITY, completion = INFINITY;
    for (int c = 0; c < dma->cores; c++) {
        const side *s = &dma->side[c];
        for (int q = 0; q < QUEUES; q++)
            if (s->waiting[q] != NONE && dma->transfers[s->waiting[q]].at < arrival)
                arrival = dma->transfers[s->waiting[q]].at;
        int simulated = !s->active ? 0 : s->uniform ? 1 : dma->engines;
        for (int n = 0; n < simulated; n++)
            completion = s->engine[n].next < completion ? s->engine[n].next : completion;
    }
    double at = completion < INFINITY ? to_real(dma, completion) : INFINITY;
    dma->next = arrival < at ? arrival : at;
}

static void pass_to(fr_neuron_dma *dma, double real, double stretched)
{
    dma->stretched = stretched;
    dma->real = real;
}

bool fr_neuron_dma_add(fr_neuron_dma *dma, int core, int queue, double at,
                       const double work[FR_NEURON_DMA_ENGINES], double hbm_share, uint64_t token)
{
    side *s = &dma->side[core];
    int32_t t = dma->free_transfer;
    if (t != NONE)
        dma->free_transfer = dma->transfers[t].next;
    else if (dma->transfer_count == dma->transfer_capacity &&
             !grow((void **)&dma->transfers, &dma->transfer_capacity, sizeof *dma->transfers))
        return false;
    else
        t = dma->transfer_count++;
    transfer *added = &dma->transfers[t];
    at = at > s->newest_at[queue] ? at : s->newest_at[queue];
    s->newest_at[queue] = at;
    *added = (transfer){.token = token,
                        .at = at,
                        .hbm_share = hbm_share,
                        .next = NONE,
                        .core = (int8_t)core,
                        .queue = (int8_t)queue,
                        .uniform = true};
    for (int n = 0; n < dma->engines; n++) {
        added->work[n] = work[n];
        added->uniform &= work[n] == work[0];
    }
    if (s->waiting[queue] == NONE)
        s->waiting[queue] = t;
    else
        dma->transfers[s->newest[queue]].next = t;
    s->newest[queue] = t;
    dma->next = at < dma->next ? at : dma->next;
    return true;
}

/* The earliest waiting transfer reaches its engines. Returns false when memory is short. */
static bool arrive(fr_neuron_dma *dma, int core, int queue)
{
    side *s = &dma->side[core];
    int32_t t = s->waiting[queue];
    transfer *arrived = &dma->transfers[t];
    if (!s->active)
        s->uniform = true;
    bool parting = s->uniform && !arrived->uniform;
    if (!reserve_items(dma, dma->engines * (1 + (parting ? queued_items(dma, s) : 0))))
        return false;
    s->waiting[queue] = arrived->next;
    if (parting)
        part_ways(dma, s);
    arrived->begun = -1;
    arrived->pending = 0;
    int simulated = s->uniform ? 1 : dma->engines;
    for (int n = 0; n < simulated; n++)
        if (s->uniform || arrived->uniform || arrived->work[n] > 0) {
            arrived->pending++;
            append(dma, s, &s->engine[n], queue, new_item(dma, t, arrived->work[n]));
        }
    return true;
}

static bool finish(fr_neuron_dma *dma, side *s, engine *e, uint64_t *token, double *at, double *begun)
{
    int32_t i = complete(dma, s, e), t = dma->items[i].transfer;
    drop_item(dma, i);
    if (--dma->transfers[t].pending > 0)
        return false;
    *token = dma->transfers[t].token;
    *begun = dma->transfers[t].begun;
    *at = dma->real;
    dma->transfers[t].next = dma->free_transfer;
    dma->free_transfer = t;
    return true;
}

/* Completions before arrivals: a slot that frees now serves who comes now. */
static engine *due_engine(fr_neuron_dma *dma, side **owner, double *stretched)
{
    engine *due = NULL;
    for (int c = 0; c < dma->cores; c++) {
        side *s = &dma->side[c];
        int simulated = !s->active ? 0 : s->uniform ? 1 : dma->engines;
        for (int n = 0; n < simulated; n++)
            if (s->engine[n].next < INFINITY && (!due || s->engine[n].next < due->next)) {
                due = &s->engine[n];
                *owner = s;
            }
    }
    if (!due || to_real(dma, due->next) > dma->next)
        return NULL;
    *stretched = due->next > dma->stretched ? due->next : dma->stretched;
    return due;
}

int fr_neuron_dma_step(fr_neuron_dma *dma, uint64_t *token, double *at, double *begun)
{
    side *s = NULL;
    double stretched = 0;
    engine *due = due_engine(dma, &s, &stretched);
    int finished = 0;
    if (due) {
        pass_to(dma, dma->next, stretched);
        finished = finish(dma, s, due, token, at, begun);
    } else {
        pass_to(dma, dma->next, dma->stretched + (dma->next - dma->real) * dma->pace);
        for (int c = 0; c < dma->cores; c++)
            for (int q = 0; q < QUEUES; q++)
                if (dma->side[c].waiting[q] != NONE &&
                    dma->transfers[dma->side[c].waiting[q]].at <= dma->real && !arrive(dma, c, q))
                    return -1;
    }
    set_pace(dma);
    find_next(dma);
    return finished;
}
