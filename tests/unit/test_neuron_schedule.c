/* Schedules of random traces, checked by another way of thinking: not event by event as the replay works,
 * but every pair of operations against the rules. Each operation must be legal where it is, and refused
 * anywhere earlier: some rule must forbid its start 1 ns before. The DMA engines are followed by a slow
 * model that recomputes every share at every change. And the prediction must lie between its bounds, and
 * come out the same twice. */
#include "neuron_time_fixture.h"

enum { PLACES = 8 };

/* ---- random traces -------------------------------------------------------------------------------- */

typedef struct tensors {
    uint32_t sbuf[PLACES], psum[PLACES], hbm[PLACES];
} tensors;

static uint64_t below(fr_rng *rng, uint64_t n)
{
    return fr_rng_below(rng, n);
}

static void make_tensors(fixture *f, fr_rng *rng, tensors *t)
{
    for (int i = 0; i < PLACES; i++) { /* some lie over each other */
        t->sbuf[i] = below(rng, 2) ? add_tile_at(f, FR_NEURON_SBUF, 1024 * (int64_t)below(rng, 12))
                                   : add_tensor(f, FR_NEURON_SBUF);
        t->psum[i] = add_tile_at(f, FR_NEURON_PSUM, 1024 * (int64_t)below(rng, 12));
        t->hbm[i] = add_tensor(f, FR_NEURON_HBM);
    }
}

static fr_neuron_region some_region(const fixture *f, fr_rng *rng, uint32_t tensor, int write)
{
    uint32_t first = 256 * (uint32_t)below(rng, 8), bytes = 256 * (1 + (uint32_t)below(rng, 4));
    fr_neuron_region region = region_of(f, tensor, first, first + bytes, write);
    if (f->memory[tensor] != FR_NEURON_HBM && below(rng, 3) == 0) {
        region.partition = (uint8_t)(32 * below(rng, 4));
        region.partitions = (uint8_t)(1 + below(rng, 32));
    }
    return region;
}

static void random_transfer(fixture *f, fr_rng *rng, const tensors *t)
{
    static const fr_neuron_engine triggers[] = {FR_NEURON_SYNC, FR_NEURON_SYNC, FR_NEURON_SCALAR,
                                                FR_NEURON_GPSIMD};
    fr_neuron_record *r = add_record(f, FR_NEURON_DMA, 0);
    int load = (int)below(rng, 2);
    r->trigger = (uint8_t)triggers[below(rng, 4)];
    r->flags = below(rng, 2) ? FR_NEURON_DYNAMIC : 0;
    add_region(r, some_region(f, rng, t->sbuf[below(rng, PLACES)], load));
    add_region(r, some_region(f, rng, t->hbm[below(rng, PLACES)], !load));
    r->descriptors = r->region[0].partitions;
    r->bytes = r->descriptors * (r->region[0].last - r->region[0].first);
}

static void random_compute(fixture *f, fr_rng *rng, const tensors *t)
{
    static const fr_neuron_engine engines[] = {FR_NEURON_TENSOR, FR_NEURON_TENSOR, FR_NEURON_VECTOR,
                                               FR_NEURON_SCALAR, FR_NEURON_GPSIMD};
    fr_neuron_engine engine = engines[below(rng, 5)];
    fr_neuron_record *r = add_record(f, engine, (float)(64 + below(rng, 1000)));
    bool psum = engine != FR_NEURON_GPSIMD && below(rng, 2);
    r->extent = (uint32_t)below(rng, 600);
    r->table = engine == FR_NEURON_SCALAR ? (uint8_t)below(rng, 3) : 0;
    add_region(r, some_region(f, rng, t->sbuf[below(rng, PLACES)], 0));
    if (engine == FR_NEURON_TENSOR)
        add_region(r, some_region(f, rng, t->psum[below(rng, PLACES)], below(rng, 2) ? 2 : 1));
    else
        add_region(r, some_region(f, rng, psum ? t->psum[below(rng, PLACES)] : t->sbuf[below(rng, PLACES)],
                                  1 + (int)below(rng, 2)));
}

static fixture *random_trace(uint64_t seed, int records, int cores)
{
    fr_rng rng = {.seed = seed};
    fixture *f = fixture_create();
    tensors t[2];
    fr_neuron_machine *m = &f->machine;
    m->stationary_load_cycles = 32;
    m->tensor_bubble_cycles = 10;
    m->dma_dynamic_descriptor_ns = 0.5;
    m->vector_gpsimd_share_port = m->vector_scalar_share_psum = below(&rng, 2);
    if (below(&rng, 2)) {
        m->throttle_window_ns = 3000;
        m->throttle_share = 0.5;
    }
    if (below(&rng, 2))
        m->hbm_stack_bytes_per_ns = 200;
    for (int c = 0; c < cores; c++)
        make_tensors(f, &rng, &t[c]);
    for (int i = 0; i < records; i++) {
        f->core = (int)below(&rng, (uint64_t)cores);
        if (below(&rng, 3) == 0)
            random_transfer(f, &rng, &t[f->core]);
        else
            random_compute(f, &rng, &t[f->core]);
    }
    return f;
}

/* ---- pairs ---------------------------------------------------------------------------------------- */

typedef struct flat { /* a region where it really lies */
    bool chip, reads, writes, late;
    int memory;
    uint32_t tensor, low, high, first, last;
} flat;

static bool hbm_both_ways(const fixture *f, uint32_t tensor)
{
    bool read = false, written = false;
    for (int64_t i = 0; i < f->records; i++)
        for (int r = 0; r < f->record[i].regions; r++)
            if (f->record[i].region[r].tensor == tensor) {
                read |= f->record[i].region[r].write != 1;
                written |= f->record[i].region[r].write != 0;
            }
    return read && written;
}

static flat flatten(const fixture *f, const fr_neuron_liveness *l, const fr_neuron_record *record, int which)
{
    const fr_neuron_region *r = &record->region[which];
    flat x = {.chip = r->memory != FR_NEURON_HBM,
              .reads = r->write != 1,
              .writes = r->write != 0,
              .memory = r->memory,
              .tensor = r->tensor,
              .low = r->partition,
              .first = r->first,
              .last = r->last};
    x.high = x.low + r->partitions + (x.chip ? 0u : 1u);
    x.late = r->write == 1 && x.chip && r->last - r->first < record->extent;
    if (x.chip) {
        CHECK(l->place[r->tensor].residence == FR_NEURON_RESIDENT);
        x.first += l->place[r->tensor].address;
        x.last += l->place[r->tensor].address;
        if (f->facts[r->tensor].placed)
            CHECK_INT(l->place[r->tensor].address, f->facts[r->tensor].byte_offset);
    }
    return x;
}

static bool touch_each_other(const flat *a, const flat *b)
{
    if (a->memory != b->memory || (!a->chip && a->tensor != b->tensor))
        return false;
    return a->first < b->last && b->first < a->last && a->low < b->high && b->low < a->high;
}

/* When the conflict with an earlier operation lets this one start, from the rules as docs/neuron-time.md
 * words them. */
static double allowed(const fixture *f, const fr_neuron_happening *a, const fr_neuron_happening *b,
                      const flat *x, const flat *y)
{
    const fr_neuron_machine *m = &f->machine;
    if (!touch_each_other(x, y) || !(x->writes || y->writes))
        return 0;
    if (a->op->dma)
        return a->visible;
    bool raw = x->writes && y->reads, war = !x->writes;
    double result = war ? a->end : a->visible;
    if (a->op->queue != b->op->queue)
        return result + m->wake_ns[b->op->queue];
    if (b->op->dma)
        return result;
    if (!raw || b->op->queue == FR_NEURON_TENSOR)
        return 0;
    return x->late ? a->visible : fmax(a->end, a->start + 64 + m->drain_ns[a->op->queue]);
}

static double dependences(const fixture *f, const fr_neuron_liveness *l, int64_t i)
{
    double earliest = 0;
    const fr_neuron_happening *b = seen_of(f, i);
    for (int64_t j = 0; j < i; j++) {
        const fr_neuron_happening *a = seen_of(f, j);
        if (f->record[j].core != f->record[i].core)
            continue;
        for (int r = 0; r < f->record[j].regions; r++)
            for (int s = 0; s < f->record[i].regions; s++) {
                flat x = flatten(f, l, &f->record[j], r), y = flatten(f, l, &f->record[i], s);
                if (!x.chip && !hbm_both_ways(f, x.tensor))
                    continue;
                earliest = fmax(earliest, allowed(f, a, b, &x, &y));
            }
    }
    return earliest;
}

/* ---- resources ------------------------------------------------------------------------------------ */

static double generating(const fixture *f, const fr_neuron_happening *h)
{
    return f->machine.dma_dynamic_issue_ns + f->machine.dma_dynamic_descriptor_ns * h->op->descriptors;
}

static double occupied_until(const fixture *f, const fr_neuron_happening *h)
{
    bool software = h->op->queue == FR_NEURON_GPSIMD && h->op->dynamic;
    return h->op->dma
               ? h->start + (software ? generating(f, h) : f->machine.dma_static_issue_ns)
               : h->end;
}

static uint32_t banks_of(const fixture *f, const fr_neuron_liveness *l, const fr_neuron_happening *h)
{
    uint32_t banks = 0;
    const fr_neuron_record *r = &f->record[h->op->record];
    for (int i = 0; i < r->regions && !h->op->dma; i++)
        if (r->region[i].memory == FR_NEURON_PSUM) {
            flat x = flatten(f, l, r, i);
            for (uint32_t b = x.first / 2048; b <= (x.last - 1) / 2048; b++)
                banks |= 1u << b;
        }
    return banks;
}

static bool uses_sbuf(const fixture *f, const fr_neuron_happening *h)
{
    const fr_neuron_record *r = &f->record[h->op->record];
    bool sbuf = false;
    for (int i = 0; i < r->regions && !h->op->dma; i++)
        sbuf |= r->region[i].memory == FR_NEURON_SBUF;
    return sbuf;
}

static bool pair_is(const fr_neuron_happening *a, const fr_neuron_happening *b, fr_neuron_engine p,
                    fr_neuron_engine q)
{
    return (a->op->queue == p && b->op->queue == q) || (a->op->queue == q && b->op->queue == p);
}

static bool exclude(const fixture *f, const fr_neuron_liveness *l, const fr_neuron_happening *a,
                    const fr_neuron_happening *b)
{
    if (a->op->dma || b->op->dma || a->op->queue == b->op->queue)
        return false;
    uint32_t mine = banks_of(f, l, a), theirs = banks_of(f, l, b);
    if (mine & theirs)
        return true;
    if (f->machine.vector_gpsimd_share_port && pair_is(a, b, FR_NEURON_VECTOR, FR_NEURON_GPSIMD) &&
        uses_sbuf(f, a) && uses_sbuf(f, b))
        return true;
    return f->machine.vector_scalar_share_psum && pair_is(a, b, FR_NEURON_VECTOR, FR_NEURON_SCALAR) && mine &&
           theirs;
}

/* Earliest start that everything which started before this operation allows. */
static double resources(const fixture *f, const fr_neuron_liveness *l, const fr_neuron_happening *h,
                        double ready)
{
    const fr_neuron_machine *m = &f->machine;
    double engine = 0, earliest = 0, previous_start = 0, loaded = 0;
    int table = 0;
    bool any = false;
    for (int i = 0; i < f->seen_count; i++) {
        const fr_neuron_happening *o = &f->seen[i];
        if (o == h || o->op->core != h->op->core)
            continue;
        bool before = o->start < h->start || (o->start == h->start && o->op->record < h->op->record);
        if (!before)
            continue;
        if (exclude(f, l, o, h))
            earliest = fmax(earliest, o->end);
        if (o->op->queue != h->op->queue)
            continue;
        if (h->op->dma && h->op->dynamic && o->op->dma && o->op->dynamic)
            earliest = fmax(earliest, o->start + generating(f, o));
        if (!o->op->dma && o->op->data->table && o->start >= loaded) {
            table = o->op->data->table;
            loaded = o->start;
        }
        if (!o->op->dma)
            previous_start = fmax(previous_start, o->start);
        engine = fmax(engine, occupied_until(f, o));
        any = true;
    }
    if (h->op->dma)
        return fmax(earliest, engine);
    if (h->op->queue == FR_NEURON_TENSOR)
        return fmax(earliest, fmax(engine + (any ? 10 : 0), fmax(ready, previous_start) + 32));
    if (h->op->queue == FR_NEURON_SCALAR && h->op->data->table && h->op->data->table != table)
        engine += m->activation_table_ns;
    return fmax(earliest, engine);
}

/* With reordering, when the operation came within reach: so many older ones of its queue had to start
 * first. */
static double reach(const fixture *f, const fr_neuron_happening *h, int lookahead)
{
    double starts[FIXTURE_RECORDS];
    int older = 0;
    for (int i = 0; i < f->seen_count; i++) {
        const fr_neuron_happening *o = &f->seen[i];
        if (o->op->core == h->op->core && o->op->queue == h->op->queue && o->op->record < h->op->record)
            starts[older++] = o->start;
    }
    if (older < lookahead)
        return 0;
    for (int i = 1; i < older; i++)
        for (int j = i; j > 0 && starts[j] < starts[j - 1]; j--) {
            double swap = starts[j];
            starts[j] = starts[j - 1];
            starts[j - 1] = swap;
        }
    return starts[older - lookahead];
}

static void check_schedule(fixture *f, int cores, int lookahead, uint64_t seed)
{
    fr_neuron_liveness l;
    fr_error error = {0};
    fr_neuron_job job = fixture_job(f, cores);
    CHECK_OK(fr_neuron_liveness_init(&l, &job, &error));
    CHECK_INT(f->seen_count, f->records);
    for (int64_t i = 0; i < f->records; i++) {
        const fr_neuron_happening *h = seen_of(f, i);
        double ready = dependences(f, &l, i);
        double earliest = fmax(ready, fmax(resources(f, &l, h, ready), reach(f, h, lookahead)));
        if (fabs(earliest - h->start) > 1e-6)
            test_fail_format(__FILE__, __LINE__,
                             "seed %llu record %lld on %d: starts at %.3f, %.3f is allowed",
                             (unsigned long long)seed, (long long)i, h->op->queue, h->start, earliest);
    }
    fr_neuron_liveness_release(&l);
}

/* ---- the DMA engines, slowly ---------------------------------------------------------------------- */

typedef struct slow_dma {
    int transfers;
    const fr_neuron_happening *h[FIXTURE_RECORDS];
    double arrival[FIXTURE_RECORDS], left[FIXTURE_RECORDS][FR_NEURON_DMA_ENGINES], end[FIXTURE_RECORDS];
} slow_dma;

static bool is_head(const slow_dma *d, int t, int e, double now)
{
    if (d->arrival[t] > now || !(d->left[t][e] > 0))
        return false;
    for (int o = 0; o < t; o++)
        if (d->h[o]->op->core == d->h[t]->op->core && d->h[o]->op->queue == d->h[t]->op->queue &&
            d->left[o][e] > 0)
            return false;
    return true;
}

static int heads(const slow_dma *d, int core, int e, double now)
{
    int n = 0;
    for (int t = 0; t < d->transfers; t++)
        n += d->h[t]->op->core == core && is_head(d, t, e, now);
    return n;
}

static double pace_of(const slow_dma *d, const fr_neuron_machine *m, double now)
{
    double demand = 0;
    for (int t = 0; t < d->transfers; t++)
        for (int e = 0; e < 16; e++)
            if (is_head(d, t, e, now)) {
                const fr_neuron_op *op = d->h[t]->op;
                demand += m->dma_bytes_per_ns * (op->hbm_read + op->hbm_write) / op->bytes /
                          heads(d, op->core, e, now);
            }
    return demand > m->hbm_stack_bytes_per_ns ? m->hbm_stack_bytes_per_ns / demand : 1;
}

/* One change: until the next arrival or the end of a head. Returns the new time. */
static double advance(slow_dma *d, const fr_neuron_machine *m, double now)
{
    double pace = pace_of(d, m, now), until = INFINITY;
    static double share[FIXTURE_RECORDS][16]; /* of heads; others 0 */
    for (int t = 0; t < d->transfers; t++) {
        if (d->arrival[t] > now)
            until = fmin(until, d->arrival[t]);
        for (int e = 0; e < 16; e++) {
            share[t][e] = is_head(d, t, e, now) ? pace / heads(d, d->h[t]->op->core, e, now) : 0;
            if (share[t][e] > 0)
                until = fmin(until, now + d->left[t][e] / share[t][e]);
        }
    }
    for (int t = 0; t < d->transfers; t++)
        for (int e = 0; e < 16; e++)
            if (share[t][e] > 0) {
                d->left[t][e] -= (until - now) * share[t][e];
                if (d->left[t][e] < 1e-7) {
                    d->left[t][e] = 0;
                    d->end[t] = until;
                }
            }
    return until;
}

static void collect(const fixture *f, slow_dma *d)
{
    for (int i = 0; i < f->seen_count; i++)
        if (f->seen[i].op->dma)
            d->h[d->transfers++] = &f->seen[i];
    for (int i = 1; i < d->transfers; i++) /* in order of their triggers, as each queue sees them */
        for (int j = i; j > 0 && d->h[j]->start < d->h[j - 1]->start; j--) {
            const fr_neuron_happening *swap = d->h[j];
            d->h[j] = d->h[j - 1];
            d->h[j - 1] = swap;
        }
    for (int i = 0; i < d->transfers; i++) {
        d->arrival[i] = d->h[i]->start + f->machine.dma_start_ns;
        fr_neuron_dma_split(&f->machine, d->h[i]->op, d->left[i]);
    }
}

static void check_transfers(const fixture *f, uint64_t seed)
{
    slow_dma *d = fr_allocate(sizeof *d);
    collect(f, d);
    for (double now = 0; now < INFINITY;)
        now = advance(d, &f->machine, now);
    for (int i = 0; i < d->transfers; i++) {
        const fr_neuron_happening *h = d->h[i];
        if (fabs(h->end - d->end[i]) > 1e-3 || fabs(h->visible - h->end - f->machine.dma_done_ns) > 1e-6)
            test_fail_format(__FILE__, __LINE__,
                             "seed %llu record %lld: transfer ends at %.4f, should at %.4f",
                             (unsigned long long)seed, (long long)h->op->record, h->end, d->end[i]);
    }
    fr_deallocate(d);
}

/* ---- tests ---------------------------------------------------------------------------------------- */

static void try_seeds(uint64_t from, int seeds, int records, int cores, int lookahead)
{
    for (uint64_t seed = from; seed < from + (uint64_t)seeds; seed++) {
        fixture *f = random_trace(seed, records, cores);
        fr_neuron_timing timing = fixture_time(f, cores, 0, lookahead);
        check_schedule(f, cores, lookahead, seed);
        check_transfers(f, seed);
        CHECK(timing.lower_bound_ns <= timing.predicted_ns * (1 + 1e-12));
        CHECK(timing.predicted_ns <= timing.program_order_ns);
        fr_deallocate(f);
    }
}

TEST(in_order)
{
    try_seeds(1, 15, 60, 1, 1);
}
TEST(reordered)
{
    try_seeds(100, 15, 60, 1, FR_NEURON_LOOKAHEAD);
    try_seeds(200, 10, 60, 1, 4);
}
TEST(two_cores)
{
    try_seeds(300, 8, 60, 2, 1);
    try_seeds(400, 8, 60, 2, FR_NEURON_LOOKAHEAD);
}

/* Long traces, small windows: between the bounds, and the same twice. */
TEST(bounds_enclose)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        int cores = 1 + (int)(seed & 1), window = seed % 3 == 0 ? 32 : 0;
        fixture *f = random_trace(1000 + seed, 800, cores);
        f->machine.sbuf_usable_bytes = seed % 5 == 0 ? 8192 : 200000;
        fr_neuron_timing a = fixture_time(f, cores, window, 0), b = fixture_time(f, cores, window, 0);
        CHECK(a.lower_bound_ns > 0 && a.lower_bound_ns <= a.predicted_ns * (1 + 1e-12));
        CHECK(a.predicted_ns <= a.program_order_ns);
        CHECK(memcmp(&a, &b, sizeof a) == 0);
        for (int e = 1; e < FR_NEURON_ENGINES; e++)
            CHECK(a.busy_ns[e] <= a.predicted_ns * (1 + 1e-12));
        CHECK(a.program_order_ns < 1e3 * a.lower_bound_ns);
        fr_deallocate(f);
    }
}

/* A greedy reordering is rarely longer than program order; when it is, program order is what is raised.
 * Mostly not. */
TEST(reordering_helps)
{
    int helped = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        fixture *f = random_trace(2000 + seed, 400, 1);
        fr_neuron_timing with = fixture_time(f, 1, 0, 0), without = fixture_time(f, 1, 0, 1);
        helped += with.predicted_ns <= without.predicted_ns;
        fr_deallocate(f);
    }
    CHECK(helped >= 18);
}

TEST_MAIN(neuron_schedule)
