/* Hand-built traces for the tests of time: a small machine with round numbers, records by one call each. */
#ifndef NEURON_TIME_FIXTURE_H
#define NEURON_TIME_FIXTURE_H
#include "neuron/time.h"
#include "test.h"

enum { FIXTURE_RECORDS = 4096, FIXTURE_TENSORS = 512 };

typedef struct fixture {
    fr_neuron_machine machine;
    fr_neuron_record record[FIXTURE_RECORDS];
    fr_neuron_facts facts[FIXTURE_TENSORS];
    uint8_t memory[FIXTURE_TENSORS];
    int64_t records;
    uint32_t tensors;
    int core;
    fr_neuron_happening seen[FIXTURE_RECORDS];
    fr_neuron_op op[FIXTURE_RECORDS]; /* of seen */
    int seen_count;
} fixture;

/* Clocks of 1 GHz: cycles are nanoseconds. A row of 2,048 bytes takes a DMA engine 20 + 128 ns. */
static inline fr_neuron_machine fixture_machine(void)
{
    fr_neuron_machine m = {.name = "round",
                           .generation = 3,
                           .sbuf_partition_bytes = 229376,
                           .sbuf_usable_bytes = 200000,
                           .psum_bank_bytes = 2048,
                           .psum_banks = 8,
                           .hbm_stack_bytes_per_ns = 725,
                           .stack_cores = 2,
                           .dma_engines = 16,
                           .dma_queues = 16,
                           .dma_descriptor_ns = 20,
                           .dma_bytes_per_ns = 16,
                           .dma_start_ns = 900,
                           .dma_done_ns = 300,
                           .dma_static_issue_ns = 90,
                           .dma_dynamic_issue_ns = 600,
                           .dma_transpose_bytes_per_ns = 160,
                           .dma_transpose_sbuf_bytes_per_ns = 80,
                           .activation_table_ns = 1290,
                           .tensor_passes_fp32 = 4,
                           .throttle_share = 1};
    for (int e = 1; e < FR_NEURON_ENGINES; e++) {
        m.clock_ghz[e] = 1;
        m.drain_ns[e] = 100;
        m.wake_ns[e] = 50;
        m.issue_floor_cycles[e] = 64;
    }
    return m;
}

static inline fixture *fixture_create(void)
{
    fixture *f = fr_allocate(sizeof *f);
    f->machine = fixture_machine();
    return f;
}

static inline uint32_t add_tensor(fixture *f, fr_neuron_memory memory)
{
    f->memory[f->tensors] = (uint8_t)memory;
    return f->tensors++;
}

static inline uint32_t add_tile_at(fixture *f, fr_neuron_memory memory, int64_t byte_offset)
{
    f->facts[f->tensors] = (fr_neuron_facts){.placed = true, .byte_offset = byte_offset};
    return add_tensor(f, memory);
}

static inline fr_neuron_region region_of(const fixture *f, uint32_t tensor, uint32_t first, uint32_t last,
                                         int write)
{
    bool hbm = f->memory[tensor] == FR_NEURON_HBM;
    return (fr_neuron_region){.tensor = tensor,
                              .memory = f->memory[tensor],
                              .partitions = hbm ? 255 : 128,
                              .write = (uint8_t)write,
                              .first = hbm ? first / 16 : first,
                              .last = hbm ? last / 16 : last};
}

static inline fr_neuron_record *add_record(fixture *f, fr_neuron_engine engine, float cycles)
{
    fr_neuron_record *r = &f->record[f->records++];
    *r = (fr_neuron_record){
        .engine = (uint8_t)engine, .core = (uint8_t)f->core, .cycles = cycles, .extent = 1};
    return r;
}

static inline void add_region(fr_neuron_record *r, fr_neuron_region region)
{
    r->region[r->regions++] = region;
}

/* One engine instruction over all partitions and bytes [0, bytes) of its tiles; UINT32_MAX = none. */
static inline fr_neuron_record *add_compute(fixture *f, fr_neuron_engine engine, float cycles, uint32_t reads,
                                            uint32_t writes, uint32_t bytes)
{
    fr_neuron_record *r = add_record(f, engine, cycles);
    if (reads != UINT32_MAX)
        add_region(r, region_of(f, reads, 0, bytes, 0));
    if (writes != UINT32_MAX)
        add_region(r, region_of(f, writes, 0, bytes, 1));
    return r;
}

/* A transfer of `row` bytes for each of 128 partitions between HBM and a tile. */
static inline fr_neuron_record *add_copy(fixture *f, uint32_t hbm, uint32_t tile, uint32_t row, bool load)
{
    fr_neuron_record *r = add_record(f, FR_NEURON_DMA, 0);
    r->trigger = FR_NEURON_SYNC;
    r->descriptors = 128;
    r->bytes = 128 * row;
    add_region(r, region_of(f, tile, 0, row, load ? 1 : 0));
    add_region(r, region_of(f, hbm, 0, 128 * row, load ? 0 : 1));
    return r;
}

static inline const fr_neuron_record *fixture_record(const void *context, int64_t index)
{
    return &((const fixture *)context)->record[index];
}

static inline fr_neuron_facts fixture_facts(const void *context, uint32_t id)
{
    return ((const fixture *)context)->facts[id];
}

static inline fr_neuron_job fixture_job(const fixture *f, int cores)
{
    return (fr_neuron_job){.machine = &f->machine,
                           .cores = cores,
                           .records = f->records,
                           .tensors = f->tensors,
                           .record = fixture_record,
                           .tensor = fixture_facts,
                           .context = f,
                           .transpose = 77};
}

static inline void fixture_see(void *user, const fr_neuron_happening *h)
{
    fixture *f = user;
    if (f->seen_count == FIXTURE_RECORDS)
        return;
    f->op[f->seen_count] = *h->op;
    f->seen[f->seen_count] = *h;
    f->seen[f->seen_count].op = &f->op[f->seen_count];
    f->seen_count++;
}

static inline const fr_neuron_happening *seen_of(const fixture *f, int64_t record)
{
    for (int i = 0; i < f->seen_count; i++)
        if (f->op[i].record == record && f->op[i].records)
            return &f->seen[i];
    return NULL;
}

static inline fr_neuron_timing fixture_time(fixture *f, int cores, int window, int lookahead)
{
    fr_error error = {0};
    fr_neuron_job job = fixture_job(f, cores);
    fr_neuron_timing timing = {0};
    fr_neuron_replay_options options = {
        .window = window, .lookahead = lookahead, .happening = fixture_see, .user = f};
    f->seen_count = 0;
    CHECK_OK(fr_neuron_time_job(&job, &timing, &options, &error));
    return timing;
}
#endif
