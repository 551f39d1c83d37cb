/* bench_neuron: how fast recorded instructions are timed.
 *
 *     bench_neuron [RECORDS]         default 1,000,000
 *
 * The trace is a tiled product: per tile of the result two loads, eight products that add up in a PSUM
 * bank, an evacuation on Vector, an activation on Scalar and a store, in tiles of their own, as a kernel
 * writes it. The clock (processor time of this thread) covers all of fr_neuron_time_job: liveness, both
 * bounds and the replay; making the trace is outside. Best of three.
 */
#include "neuron/time.h"

#include <stdlib.h>
#include <time.h>

enum { PER_TILE = 13, TILES_PER_RESULT = 5 };

typedef struct trace {
    fr_neuron_record *record;
    int64_t count;
    uint32_t tensors;
} trace;

static const fr_neuron_record *record_at(const void *context, int64_t index)
{
    return &((const trace *)context)->record[index];
}

static fr_neuron_facts facts_of(const void *context, uint32_t id)
{
    (void)context, (void)id;
    return (fr_neuron_facts){0};
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fr_neuron_machine trn2(void)
{
    fr_neuron_machine m = {.sbuf_partition_bytes = 229376,
                           .sbuf_usable_bytes = 212984,
                           .psum_bank_bytes = 2048,
                           .psum_banks = 8,
                           .hbm_stack_bytes_per_ns = 725,
                           .dma_engines = 16,
                           .dma_queues = 16,
                           .dma_descriptor_ns = 22.6,
                           .dma_bytes_per_ns = 25.2,
                           .dma_start_ns = 900,
                           .dma_done_ns = 300,
                           .dma_static_issue_ns = 90,
                           .dma_dynamic_issue_ns = 600,
                           .activation_table_ns = 1290,
                           .throttle_window_ns = 3000,
                           .throttle_share = 0.5,
                           .tensor_bubble_cycles = 10,
                           .stationary_load_cycles = 32};
    for (int e = 1; e < FR_NEURON_ENGINES; e++) {
        m.clock_ghz[e] = e == FR_NEURON_TENSOR ? 2.4 : 1;
        m.drain_ns[e] = m.wake_ns[e] = 150;
        m.issue_floor_cycles[e] = 64;
    }
    return m;
}

static void touch(fr_neuron_record *r, uint32_t tensor, fr_neuron_memory memory, uint32_t bytes, int write)
{
    r->region[r->regions++] = (fr_neuron_region){.tensor = tensor,
                                                 .memory = (uint8_t)memory,
                                                 .write = (uint8_t)write,
                                                 .partitions = memory == FR_NEURON_HBM ? 255 : 128,
                                                 .last = bytes};
}

static fr_neuron_record *add(trace *t, fr_neuron_engine engine, float cycles)
{
    fr_neuron_record *r = &t->record[t->count++];
    *r = (fr_neuron_record){
        .engine = (uint8_t)engine, .cycles = cycles, .extent = 512, .trigger = FR_NEURON_SYNC};
    return r;
}

static void add_copy(trace *t, uint32_t tile, uint32_t bytes, bool load)
{
    fr_neuron_record *r = add(t, FR_NEURON_DMA, 0);
    r->descriptors = 128;
    r->bytes = 128 * bytes;
    touch(r, tile, FR_NEURON_SBUF, bytes, load);
    touch(r, load ? 0 : 1, FR_NEURON_HBM, 1 << 20, !load);
}

static void add_tile(trace *t)
{
    uint32_t a = t->tensors, b = a + 1, p = a + 2, c = a + 3, d = a + 4;
    t->tensors += TILES_PER_RESULT;
    add_copy(t, a, 2048, true);
    add_copy(t, b, 8192, true);
    for (int k = 0; k < 8; k++) {
        fr_neuron_record *r = add(t, FR_NEURON_TENSOR, 512);
        r->flags = FR_NEURON_ACCUMULATE;
        touch(r, a, FR_NEURON_SBUF, 2048, 0);
        touch(r, b, FR_NEURON_SBUF, 8192, 0);
        touch(r, p, FR_NEURON_PSUM, 2048, k ? 2 : 1);
    }
    fr_neuron_record *r = add(t, FR_NEURON_VECTOR, 512);
    touch(r, p, FR_NEURON_PSUM, 2048, 0);
    touch(r, c, FR_NEURON_SBUF, 2048, 1);
    r = add(t, FR_NEURON_SCALAR, 512);
    touch(r, c, FR_NEURON_SBUF, 2048, 0);
    touch(r, d, FR_NEURON_SBUF, 2048, 1);
    add_copy(t, d, 2048, false);
}

static void report(const char *name, int64_t records, double seconds)
{
    printf("%-28s %8.0f ns a record  %6.2f million a second\n", name, 1e9 * seconds / (double)records,
           1e-6 * (double)records / seconds);
}

int main(int argc, char **argv)
{
    int64_t wanted = argc > 1 ? atoll(argv[1]) : 1000000;
    fr_neuron_machine machine = trn2();
    trace t = {.record = fr_allocate(sizeof *t.record * (size_t)(wanted + PER_TILE)), .tensors = 2};
    if (!t.record || wanted < PER_TILE) {
        fprintf(stderr, "bench_neuron: no memory for %lld records\n", (long long)wanted);
        return 1;
    }
    while (t.count < wanted)
        add_tile(&t);
    fr_neuron_job job = {.machine = &machine,
                         .cores = 1,
                         .records = t.count,
                         .tensors = t.tensors,
                         .record = record_at,
                         .tensor = facts_of,
                         .context = &t,
                         .transpose = -1};
    double best[4] = {1e9, 1e9, 1e9, 1e9}, total;
    fr_neuron_timing timing = {0};
    fr_error error = {0};
    fr_status status = FR_OK;
    for (int round = 0; round < 3 && status == FR_OK; round++) {
        fr_neuron_liveness liveness;
        fr_neuron_bounds bounds;
        double start = now(), at[4];
        status = fr_neuron_liveness_init(&liveness, &job, &error);
        at[0] = now() - start;
        start = now();
        status = status ? status : fr_neuron_bounds_of(&job, &liveness, &bounds, &error);
        at[1] = now() - start;
        start = now();
        status = status ? status : fr_neuron_replay(&job, &liveness, NULL, &total, &error);
        at[2] = now() - start;
        fr_neuron_liveness_release(&liveness);
        start = now();
        status = status ? status : fr_neuron_time_job(&job, &timing, NULL, &error);
        at[3] = now() - start;
        for (int i = 0; i < 4; i++)
            best[i] = at[i] < best[i] ? at[i] : best[i];
    }
    fr_deallocate(t.record);
    if (status != FR_OK) {
        fprintf(stderr, "bench_neuron: %s\n", error.what);
        return 1;
    }
    printf("%lld records, predicted %.3f ms (%.3f to %.3f)\n", (long long)t.count, 1e-6 * timing.predicted_ns,
           1e-6 * timing.lower_bound_ns, 1e-6 * timing.program_order_ns);
    report("liveness", t.count, best[0]);
    report("bounds", t.count, best[1]);
    report("replay", t.count, best[2]);
    report("all of fr_neuron_time_job", t.count, best[3]);
    return 0;
}
