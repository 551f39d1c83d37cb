/* Time of a NeuronCore: pairs of kernels whose difference is worked out by hand, on a machine with round
 * numbers. */
#include "neuron_time_fixture.h"
#include "neuron/time_band.h"

/* A load lasts 8 rows of 20 + 128 ns = 1184 ns an engine: seen 900 + 1184 + 300 = 2384 ns after its
 * trigger. Vector takes 1000 ns; the next load into the same tile may be triggered 50 ns after that (the
 * semaphore wakes Sync). */
static double buffered(int tiles)
{
    fixture *f = fixture_create();
    uint32_t x = add_tensor(f, FR_NEURON_HBM), out = add_tensor(f, FR_NEURON_SBUF), tile[2];
    for (int i = 0; i < tiles; i++)
        tile[i] = add_tensor(f, FR_NEURON_SBUF);
    for (int i = 0; i < 8; i++) {
        add_copy(f, x, tile[i % tiles], 2048, true);
        add_compute(f, FR_NEURON_VECTOR, 1000, tile[i % tiles], out, 2048)->extent = 512;
    }
    double total = fixture_time(f, 1, 0, 0).predicted_ns;
    fr_deallocate(f);
    return total;
}

TEST(double_buffering)
{
    double period = 2384 + 1000 + 50;
    CHECK_NEAR(buffered(1), 7 * period + 2384 + 1000 + 100, 1e-6, 0);
    /* The second load follows the first through the engines (990 -> 2084 + 1184 + 300), then pairs repeat. */
    CHECK_NEAR(buffered(2), 3 * period + 3568 + 1000 + 100, 1e-6, 0);
}

static double with_bank(int bank)
{
    fixture *f = fixture_create();
    uint32_t w = add_tensor(f, FR_NEURON_SBUF), p = add_tile_at(f, FR_NEURON_PSUM, 0),
             q = add_tile_at(f, FR_NEURON_PSUM, bank * 2048 + 1024);
    fr_neuron_record *r = add_record(f, FR_NEURON_VECTOR, 1000); /* reads the first half of bank 0 */
    add_region(r, region_of(f, p, 0, 1024, 0));
    r = add_record(f, FR_NEURON_TENSOR, 500); /* writes the second half of `bank` */
    add_region(r, region_of(f, w, 0, 256, 0));
    add_region(r, region_of(f, q, 0, 1024, 1));
    double total = fixture_time(f, 1, 0, 0).predicted_ns;
    CHECK(f->seen[1].stall == (bank ? FR_NEURON_STALL_NONE : FR_NEURON_STALL_BANK));
    fr_deallocate(f);
    return total;
}

TEST(psum_bank_conflict)
{
    CHECK_NEAR(with_bank(1), 1000 + 100, 1e-9, 0);       /* side by side: Vector is the longer */
    CHECK_NEAR(with_bank(0), 1000 + 500 + 100, 1e-9, 0); /* one after the other */
}

static double with_tables(int second)
{
    fixture *f = fixture_create();
    uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF),
             c = add_tensor(f, FR_NEURON_SBUF);
    add_compute(f, FR_NEURON_SCALAR, 400, a, b, 512)->table = 1;
    add_compute(f, FR_NEURON_SCALAR, 400, a, c, 512)->table = (uint8_t)second;
    fr_neuron_timing timing = fixture_time(f, 1, 0, 0);
    CHECK_NEAR(timing.stall_ns[FR_NEURON_SCALAR][FR_NEURON_STALL_TABLE], second == 2 ? 2580 : 1290, 1e-9, 0);
    fr_deallocate(f);
    return timing.predicted_ns;
}

TEST(activation_table)
{
    CHECK_NEAR(with_tables(1), 1290 + 400 + 400 + 100, 1e-9, 0);
    CHECK_NEAR(with_tables(0), 1290 + 400 + 400 + 100, 1e-9, 0); /* a function of every table */
    CHECK_NEAR(with_tables(2), 1290 + 400 + 1290 + 400 + 100, 1e-9, 0);
}

TEST(activation_table_hides_behind_a_load)
{
    fixture *f = fixture_create();
    uint32_t x = add_tensor(f, FR_NEURON_HBM), a = add_tensor(f, FR_NEURON_SBUF),
             b = add_tensor(f, FR_NEURON_SBUF);
    add_copy(f, x, a, 2048, true);
    add_compute(f, FR_NEURON_SCALAR, 400, a, b, 2048)->table = 1;
    CHECK_NEAR(fixture_time(f, 1, 0, 0).predicted_ns, 2384 + 400 + 100, 1e-9, 0);
    CHECK(f->seen[1].stall == FR_NEURON_STALL_DMA);
    CHECK_INT(f->seen[1].blamed, 0);
    fr_deallocate(f);
}

/* Ten small loads: triggers of made descriptors are 90 ns apart, generated ones 600 ns. */
static double issue(bool dynamic, fr_neuron_engine trigger)
{
    fixture *f = fixture_create();
    uint32_t x = add_tensor(f, FR_NEURON_HBM);
    for (int i = 0; i < 10; i++) {
        fr_neuron_record *r = add_copy(f, x, add_tensor(f, FR_NEURON_SBUF), 16, true);
        r->flags = dynamic ? FR_NEURON_DYNAMIC : 0;
        r->trigger = (uint8_t)trigger;
    }
    double total = fixture_time(f, 1, 0, 0).predicted_ns;
    fr_deallocate(f);
    return total;
}

TEST(dma_issue_limit)
{
    /* One load lasts 8 x 21 = 168 ns an engine: longer than 90, so the engines are the limit of static ones. */
    CHECK_NEAR(issue(false, FR_NEURON_SYNC), 900 + 10 * 168 + 300, 1e-6, 0);
    CHECK_NEAR(issue(true, FR_NEURON_SYNC), 9 * 600 + 900 + 168 + 300, 1e-6, 0);
    CHECK_NEAR(issue(true, FR_NEURON_GPSIMD), 9 * 600 + 900 + 168 + 300, 1e-6, 0);
}

/* Rows go to engines by groups of eight partitions, so 16 partitions use two of sixteen engines. */
TEST(dma_engines_used)
{
    fr_neuron_machine m = fixture_machine();
    double work[FR_NEURON_DMA_ENGINES];
    fr_neuron_op op = {.dma = true, .descriptors = 16, .bytes = 16 * 2048, .low = 8, .high = 24};
    CHECK_NEAR(fr_neuron_dma_split(&m, &op, work), 8 * 148, 1e-9, 0);
    CHECK_NEAR(work[0], 0, 0, 0);
    CHECK_NEAR(work[1] + work[2], 16 * 148, 1e-9, 0);
    op = (fr_neuron_op){.dma = true, .descriptors = 4, .bytes = 4 * 2048, .low = 0, .high = 4};
    CHECK_NEAR(fr_neuron_dma_split(&m, &op, work), 4 * 148, 1e-9, 0);
    op = (fr_neuron_op){.dma = true, .descriptors = 4, .bytes = 4 * 2048}; /* HBM to HBM: dealt out */
    CHECK_NEAR(fr_neuron_dma_split(&m, &op, work), 148, 1e-9, 0);
    op = (fr_neuron_op){.dma = true, .descriptors = 128, .bytes = 128 * 2048, .high = 128, .transpose = true};
    CHECK_NEAR(fr_neuron_dma_split(&m, &op, work), 8 * (20 + 204.8), 1e-9, 0);
}

/* A long and a short transfer of different queues on the same engines take turns; of one queue they do
 * not. */
static double short_end(fr_neuron_engine second)
{
    fixture *f = fixture_create();
    uint32_t x = add_tensor(f, FR_NEURON_HBM), a = add_tensor(f, FR_NEURON_SBUF),
             b = add_tensor(f, FR_NEURON_SBUF);
    add_copy(f, x, a, 65536, true);                           /* 8 x 4116 ns */
    add_copy(f, x, b, 2048, true)->trigger = (uint8_t)second; /* 8 x 148 ns */
    fixture_time(f, 1, 0, 0);
    CHECK_NEAR(f->seen[0].end > f->seen[1].end ? f->seen[0].end : f->seen[1].end, 900 + 8 * 4116 + 8 * 148,
               1e-6, 0);
    double end = f->seen[1].end;
    fr_deallocate(f);
    return end;
}

TEST(dma_queues_take_turns)
{
    CHECK_NEAR(short_end(FR_NEURON_SYNC), 900 + 8 * 4116 + 8 * 148, 1e-6, 0);
    CHECK_NEAR(short_end(FR_NEURON_SCALAR), 900 + 2 * 8 * 148, 1e-6, 0);
}

/* Two cores that copy inside one stack ask for 2 x 16 x 16 = 512 bytes/ns of 725; with a narrow stack they
 * share it. */
TEST(hbm_is_shared_by_the_cores)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        fixture *f = fixture_create();
        f->machine.dma_descriptor_ns = 0;
        f->machine.hbm_stack_bytes_per_ns = narrow ? 256 : 725;
        for (f->core = 0; f->core < 2; f->core++)
            add_copy(f, add_tensor(f, FR_NEURON_HBM), add_tensor(f, FR_NEURON_SBUF), 2048, true);
        fr_neuron_timing timing = fixture_time(f, 2, 0, 0);
        CHECK_NEAR(timing.predicted_ns, 900 + (narrow ? 2 : 1) * 1024 + 300, 1e-6, 0);
        CHECK_NEAR(timing.hbm_read_bytes, 2 * 128 * 2048, 0, 0);
        fr_deallocate(f);
    }
}

/* 3 us of work at half rate, whenever less than half of the last 3 us was used. */
TEST(tensor_throttle)
{
    fixture *f = fixture_create();
    f->machine.throttle_window_ns = 3000;
    f->machine.throttle_share = 0.5;
    uint32_t w = add_tensor(f, FR_NEURON_SBUF), p = add_tensor(f, FR_NEURON_PSUM),
             x = add_tensor(f, FR_NEURON_SBUF);
    for (int i = 0; i < 20; i++)
        add_compute(f, FR_NEURON_TENSOR, 500, w, p, 2048)->flags = FR_NEURON_ACCUMULATE;
    fr_neuron_timing timing = fixture_time(f, 1, 0, 0);
    CHECK_NEAR(timing.predicted_ns, 20 * 500 + 1500 + 100, 1e-6, 0); /* 1500 ns of work took 3000 */
    CHECK_NEAR(timing.stall_ns[FR_NEURON_TENSOR][FR_NEURON_STALL_THROTTLE], 1500, 1e-6, 0);
    CHECK_NEAR(timing.lower_bound_ns, 20 * 500, 1e-6, 0.02);
    add_compute(f, FR_NEURON_VECTOR, 4000, p, x, 2048)->extent =
        512; /* Tensor rests 4 us and is cold again */
    add_compute(f, FR_NEURON_TENSOR, 500, x, p, 2048);
    timing = fixture_time(f, 1, 0, 0);
    CHECK_NEAR(timing.predicted_ns, 11500 + 150 + 4000 + 150 + 1000 + 100, 1e-6, 0);
    fr_deallocate(f);
}

/* Loading weights hides behind the product before; alone it is seen. Bubbles are between products only. */
TEST(tensor_weights)
{
    fixture *f = fixture_create();
    f->machine.stationary_load_cycles = 32;
    f->machine.tensor_bubble_cycles = 10;
    uint32_t w = add_tensor(f, FR_NEURON_SBUF), p = add_tensor(f, FR_NEURON_PSUM);
    for (int i = 0; i < 4; i++)
        add_compute(f, FR_NEURON_TENSOR, 128, w, p, 512)->flags = FR_NEURON_ACCUMULATE;
    CHECK_NEAR(fixture_time(f, 1, 0, 0).predicted_ns, 32 + 4 * 128 + 3 * 10 + 100, 1e-9, 0);
    fr_deallocate(f);
}

/* Drain and wake-up are seen by other engines; the engine's own next instruction waits for its pipeline
 * only. */
TEST(latencies)
{
    fixture *f = fixture_create();
    uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF),
             c = add_tensor(f, FR_NEURON_SBUF);
    add_compute(f, FR_NEURON_VECTOR, 1000, a, b, 2048)->extent = 512;
    add_compute(f, FR_NEURON_VECTOR, 64, b, c, 2048)->extent = 512; /* long enough: at once */
    add_compute(f, FR_NEURON_VECTOR, 64, c, b, 2048)->extent = 512; /* 64 + 100 ns later */
    add_compute(f, FR_NEURON_SCALAR, 64, b, a, 2048)->extent = 512; /* 100 + 50 ns after the end */
    fixture_time(f, 1, 0, 0);
    CHECK_NEAR(f->seen[1].start, 1000, 1e-9, 0);
    CHECK_NEAR(f->seen[2].start, 1164, 1e-9, 0);
    CHECK_NEAR(f->seen[3].start, 1228 + 150, 1e-9, 0);
    CHECK(f->seen[3].stall == FR_NEURON_STALL_DATA);
    CHECK_INT(f->seen[3].blamed, 2);
    fr_deallocate(f);
}

/* A column of sums is written when the row is through. */
TEST(reductions_are_late)
{
    fixture *f = fixture_create();
    uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF);
    fr_neuron_record *r = add_record(f, FR_NEURON_VECTOR, 1000);
    r->extent = 1000;
    add_region(r, region_of(f, a, 0, 4000, 0));
    add_region(r, region_of(f, b, 0, 4, 1));
    add_compute(f, FR_NEURON_VECTOR, 64, b, a, 4);
    fixture_time(f, 1, 0, 0);
    CHECK_NEAR(f->seen[1].start, 1100, 1e-9, 0);
    fr_deallocate(f);
}

/* Two halves of 512 go where less is to do; the bound lets them be divided. */
TEST(open_engines)
{
    fixture *f = fixture_create();
    for (int i = 0; i < 4; i++) {
        uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF);
        fr_neuron_record *r = add_compute(f, FR_NEURON_VECTOR, 512, a, b, 2048);
        r->extent = 512;
        r->flags = FR_NEURON_EITHER;
    }
    fr_neuron_timing timing = fixture_time(f, 1, 0, 0);
    CHECK_NEAR(timing.busy_ns[FR_NEURON_VECTOR], 1024, 1e-9, 0);
    CHECK_NEAR(timing.busy_ns[FR_NEURON_SCALAR], 1024, 1e-9, 0);
    CHECK_NEAR(timing.lower_bound_ns, 1024, 1e-9, 0);
    /* Eight times slower on Vector: all on Scalar, until a table stands against it. */
    for (int i = 0; i < 4; i++)
        f->record[i].cycles = 4096;
    timing = fixture_time(f, 1, 0, 0);
    CHECK_NEAR(timing.busy_ns[FR_NEURON_SCALAR], 4 * 512, 1e-9, 0);
    CHECK_NEAR(timing.busy_ns[FR_NEURON_VECTOR], 0, 0, 0);
    fr_deallocate(f);
}

/* What goes to Scalar needs its table there and back: 512 + 2 * 1290 against 4,096 and against 2,048. */
TEST(open_engines_and_tables)
{
    for (int slow = 0; slow < 2; slow++) {
        fixture *f = fixture_create();
        uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF);
        fr_neuron_record *r = add_compute(f, FR_NEURON_VECTOR, slow ? 4096 : 2048, a, b, 2048);
        r->extent = 512;
        r->flags = FR_NEURON_EITHER;
        r->table = 3;
        fr_neuron_timing timing = fixture_time(f, 1, 0, 0);
        CHECK_NEAR(timing.busy_ns[FR_NEURON_SCALAR], slow ? 512 : 0, 1e-9, 0);
        fr_deallocate(f);
    }
}

/* A load repeated in each turn, and a product that the turns do not change: done once by the compiler that leaves out
 * repeats, always as written; the bound needs them once. Another source, and a tile that was changed, are no repeats. */
TEST(repeats)
{
    for (int removes = 0; removes < 2; removes++) {
        fixture *f = fixture_create();
        f->machine.removes_repeats = removes;
        uint32_t x = add_tensor(f, FR_NEURON_HBM), y = add_tensor(f, FR_NEURON_HBM);
        for (int i = 0; i < 4; i++) {
            uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF);
            add_copy(f, i == 3 ? y : x, a, 2048, true)->flags = FR_NEURON_PURE;
            fr_neuron_record *r = add_compute(f, FR_NEURON_VECTOR, 1024, a, b, 2048);
            r->flags = FR_NEURON_PURE;
            r->source = 7;
            r->instruction = 5;
        }
        fr_neuron_timing timing = fixture_time(f, 1, 0, 0);
        CHECK_INT(timing.removed, removes ? 4 : 0); /* turns 1 and 2: the load and the product */
        CHECK_NEAR(timing.dma_bytes, (removes ? 2 : 4) * 128 * 2048, 0, 0);
        CHECK_NEAR(timing.busy_ns[FR_NEURON_VECTOR], (removes ? 2 : 4) * 1024, 1e-9, 0);
        CHECK(timing.program_order_ns >= 4 * 1024);
        CHECK((timing.lower_bound_ns < 4 * 1024) == (removes == 1));
        fr_deallocate(f);
    }
}

/* No room beside the kernel's tiles: the load is made again. */
TEST(repeats_without_room)
{
    fixture *f = fixture_create();
    f->machine.removes_repeats = true;
    f->machine.sbuf_usable_bytes = 3 * 2048;
    uint32_t x = add_tensor(f, FR_NEURON_HBM);
    for (int i = 0; i < 2; i++) {
        uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF);
        add_copy(f, x, a, 2048, true)->flags = FR_NEURON_PURE;
        add_copy(f, x, b, 2 * 2048, true)->flags = FR_NEURON_PURE;
        add_compute(f, FR_NEURON_VECTOR, 100, a, b, 2048);
    }
    CHECK_INT(fixture_time(f, 1, 0, 0).removed, 0);
    fr_deallocate(f);
}

/* Program order lets nothing pass the store that waits for Vector; the prediction triggers the next load
 * at once. */
TEST(bounds_of_a_pipeline)
{
    fixture *f = fixture_create();
    uint32_t x = add_tensor(f, FR_NEURON_HBM), y = add_tensor(f, FR_NEURON_HBM);
    for (int i = 0; i < 4; i++) {
        uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF);
        add_copy(f, x, a, 2048, true);
        add_compute(f, FR_NEURON_VECTOR, 100, a, b, 2048)->extent = 512;
        add_copy(f, y, b, 2048, false);
    }
    fr_neuron_timing timing = fixture_time(f, 1, 0, 0);
    /* Load, Vector, drain, Sync wakes: the store starts. The next load follows it through the DMA engines. */
    double store = 2384 + 100 + 100 + 50, period = 2084 + 1184 + 300 + 100 + 100 + 50;
    CHECK_NEAR(timing.program_order_ns, store + 3 * period + 2384, 1e-6, 0);
    CHECK_NEAR(timing.lower_bound_ns, 8 * 1024, 1e-6, 0); /* the DMA engines, descriptors not counted */
    CHECK(timing.predicted_ns < 900 + 8 * 1184 + 300 + 1500);
    CHECK(timing.predicted_ns >= 900 + 8 * 1184 + 300);
    fr_deallocate(f);
}

/* The two cores leave a barrier together. */
TEST(fence)
{
    fixture *f = fixture_create();
    for (f->core = 0; f->core < 2; f->core++) {
        uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF);
        add_compute(f, FR_NEURON_GPSIMD, f->core ? 5000 : 100, a, b, 64);
        add_compute(f, FR_NEURON_GPSIMD, 64, UINT32_MAX, UINT32_MAX, 0)->flags = FR_NEURON_FENCE;
        add_compute(f, FR_NEURON_GPSIMD, 64, a, b, 64);
    }
    CHECK_NEAR(fixture_time(f, 2, 0, 0).predicted_ns, 5000 + 64 + 64 + 100, 1e-9, 0);
    CHECK_NEAR(seen_of(f, 1)->start, 5000, 1e-9, 0);
    CHECK_NEAR(seen_of(f, 4)->start, 5000, 1e-9, 0);
    fr_deallocate(f);
}

/* Fences of different queues meet in the order they were written, whichever is ready first. */
TEST(fences_in_order)
{
    fixture *f = fixture_create();
    for (f->core = 0; f->core < 2; f->core++) {
        uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF);
        add_compute(f, FR_NEURON_GPSIMD, f->core ? 5000 : 100, a, b, 64);
        add_compute(f, FR_NEURON_GPSIMD, 64, UINT32_MAX, UINT32_MAX, 0)->flags = FR_NEURON_FENCE;
        add_compute(f, FR_NEURON_SCALAR, 64, UINT32_MAX, UINT32_MAX, 0)->flags = FR_NEURON_FENCE;
    }
    fixture_time(f, 2, 0, 0);
    for (int c = 0; c < 2; c++) {
        CHECK_NEAR(seen_of(f, 3 * c + 1)->start, 5000, 1e-9, 0);
        CHECK_NEAR(seen_of(f, 3 * c + 2)->start, 5000, 1e-9, 0);
    }
    fr_deallocate(f);
}

/* A barrier that the other core never reaches holds nobody. */
TEST(fence_without_partner)
{
    fixture *f = fixture_create();
    f->core = 1;
    add_compute(f, FR_NEURON_GPSIMD, 64, UINT32_MAX, UINT32_MAX, 0)->flags = FR_NEURON_FENCE;
    add_compute(f, FR_NEURON_GPSIMD, 64, UINT32_MAX, UINT32_MAX, 0)->flags = FR_NEURON_FENCE;
    CHECK_NEAR(fixture_time(f, 2, 0, 0).predicted_ns, 64 + 64 + 100, 1e-9, 0);
    fr_deallocate(f);
}

/* On the second generation Vector and GpSimd exclude each other, and so do Vector and Scalar in PSUM. */
TEST(shared_ports)
{
    for (int shared = 0; shared < 2; shared++) {
        fixture *f = fixture_create();
        f->machine.vector_gpsimd_share_port = f->machine.vector_scalar_share_psum = shared;
        uint32_t tile[6];
        for (int i = 0; i < 4; i++)
            tile[i] = add_tensor(f, FR_NEURON_SBUF);
        add_compute(f, FR_NEURON_VECTOR, 1000, tile[0], tile[1], 64);
        add_compute(f, FR_NEURON_GPSIMD, 1000, tile[2], tile[3], 64);
        CHECK_NEAR(fixture_time(f, 1, 0, 0).predicted_ns, shared ? 2100 : 1100, 1e-9, 0);
        f->records = 0;
        tile[4] = add_tile_at(f, FR_NEURON_PSUM, 0);
        tile[5] = add_tile_at(f, FR_NEURON_PSUM, 2048);
        add_compute(f, FR_NEURON_VECTOR, 1000, tile[4], tile[1], 64);
        add_compute(f, FR_NEURON_SCALAR, 1000, tile[5], tile[3], 64);
        CHECK_NEAR(fixture_time(f, 1, 0, 0).predicted_ns, shared ? 2100 : 1100, 1e-9, 0);
        fr_deallocate(f);
    }
}

/* The published timelines of section 1.7, with the constants of trn2: [4, 4096] and [128, 128] bf16
 * through Scalar. */
TEST(published_dma_timelines)
{
    fixture *f = fixture_create();
    fr_neuron_machine *m = &f->machine;
    m->dma_descriptor_ns = 22.6;
    m->dma_bytes_per_ns = 25.2;
    m->clock_ghz[FR_NEURON_SCALAR] = 1.2;
    uint32_t x = add_tensor(f, FR_NEURON_HBM), a = add_tensor(f, FR_NEURON_SBUF),
             b = add_tensor(f, FR_NEURON_SBUF);
    fr_neuron_record *r = add_copy(f, x, a, 8192, true);
    r->region[0].partitions = 4;
    r->descriptors = 4;
    r->bytes = 4 * 8192;
    r = add_compute(f, FR_NEURON_SCALAR, 4096, a, b, 8192);
    r->extent = 4096;
    r->table = 1;
    fixture_time(f, 1, 0, 0);
    CHECK_NEAR(f->seen[0].transfer - f->seen[0].start, 900, 100, 0);  /* published: 0.8 to 1.0 us */
    CHECK_NEAR(f->seen[0].end - f->seen[0].transfer, 1416, 0, 0.03);  /* published: 1416 ns */
    CHECK_NEAR(f->seen[1].start - f->seen[0].end, 320, 0, 0.10);      /* published: about 320 ns */
    CHECK_NEAR(f->seen[1].visible - f->seen[1].start, 3710, 0, 0.08); /* published: 3.71 us */
    fr_deallocate(f);
}

/* ---- liveness ------------------------------------------------------------------------------------- */

/* Tiles that are never alive together need the room of one; the addresses go round, so nobody waits for
 * them. */
TEST(tiles_by_liveness)
{
    fixture *f = fixture_create();
    uint32_t x = add_tensor(f, FR_NEURON_HBM);
    for (int i = 0; i < 8; i++) {
        uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF);
        add_copy(f, x, a, 2048, true);
        add_compute(f, FR_NEURON_VECTOR, 1000, a, b, 2048)->extent = 512;
    }
    fr_neuron_timing timing = fixture_time(f, 1, 0, 0);
    CHECK_INT(timing.sbuf_peak_bytes, 2 * 2048);
    CHECK_NEAR(timing.spill_bytes, 0, 0, 0);
    CHECK_NEAR(timing.predicted_ns, 900 + 8 * 1184 + 300 + 1000 + 100, 1e-6, 0); /* loads never wait */
    /* With room for two pairs only, a load waits for the tile that was there. */
    f->machine.sbuf_usable_bytes = 2 * 4096;
    fr_neuron_timing tight = fixture_time(f, 1, 0, 0);
    CHECK(tight.predicted_ns > timing.predicted_ns + 1000);
    CHECK_NEAR(tight.spill_bytes, 0, 0, 0);
    fr_deallocate(f);
}

static void use_four(fixture *f, const uint32_t *tile, int pause)
{
    for (int i = 0; i < pause; i++)
        add_compute(f, FR_NEURON_SCALAR, 64, UINT32_MAX, UINT32_MAX, 0);
    for (int i = 0; i < 4; i++)
        add_compute(f, FR_NEURON_VECTOR, 100, tile[i], UINT32_MAX, 2048);
}

/* Room for three tiles of four. What was loaded is loaded again when it was not used for a while. */
TEST(spills_of_loaded_tiles)
{
    fixture *f = fixture_create();
    f->machine.sbuf_usable_bytes = 3 * 2048;
    uint32_t tile[4], x = add_tensor(f, FR_NEURON_HBM);
    for (int i = 0; i < 4; i++)
        add_copy(f, x, tile[i] = add_tensor(f, FR_NEURON_SBUF), 2048, true);
    use_four(f, tile, 40);
    fr_neuron_timing timing = fixture_time(f, 1, 0, 0);
    CHECK_NEAR(timing.spill_bytes, 0, 0, 0); /* its load is taken to come before its first use */
    CHECK_INT(timing.sbuf_peak_bytes, 3 * 2048);
    use_four(f, tile, 0);
    CHECK_NEAR(fixture_time(f, 1, 0, 0).spill_bytes, 0, 0, 0); /* still there */
    use_four(f, tile, 40);
    timing = fixture_time(f, 1, 0, 0);
    CHECK_NEAR(timing.spill_bytes, 128 * 2048, 0, 0);
    CHECK_INT(timing.instructions, f->records);
    CHECK(timing.lower_bound_ns <= timing.predicted_ns);
    fr_deallocate(f);
}

/* What was made on chip is written back, and fetched. */
TEST(spills_of_made_tiles)
{
    fixture *f = fixture_create();
    f->machine.sbuf_usable_bytes = 3 * 2048;
    uint32_t tile[4];
    for (int i = 0; i < 4; i++)
        add_compute(f, FR_NEURON_VECTOR, 100, UINT32_MAX, tile[i] = add_tensor(f, FR_NEURON_SBUF), 2048);
    use_four(f, tile, 0);
    CHECK_NEAR(fixture_time(f, 1, 0, 0).spill_bytes, 128 * 2048, 0, 0);
    use_four(f, tile, 40);
    CHECK_NEAR(fixture_time(f, 1, 0, 0).spill_bytes, 2 * 128 * 2048, 0, 0);
    fr_deallocate(f);
}

/* Two tensors at one address are one place: the write of the second waits for the reader of the first. */
TEST(aliases_by_address)
{
    fixture *f = fixture_create();
    uint32_t x = add_tensor(f, FR_NEURON_HBM), a = add_tile_at(f, FR_NEURON_SBUF, 4096),
             b = add_tile_at(f, FR_NEURON_SBUF, 5000), c = add_tensor(f, FR_NEURON_SBUF);
    add_copy(f, x, a, 2048, true);
    add_compute(f, FR_NEURON_VECTOR, 1000, a, c, 2048)->extent = 512;
    add_copy(f, x, b, 2048, true);
    fixture_time(f, 1, 0, 0);
    CHECK_NEAR(f->seen[2].start, 2384 + 1000 + 50, 1e-6, 0);
    CHECK(f->seen[2].stall == FR_NEURON_STALL_REUSE);
    CHECK_INT(f->seen[2].blamed, 1);
    fr_deallocate(f);
}

/* Columns of a matrix in HBM do not conflict, although their byte intervals meet. */
TEST(columns_in_hbm)
{
    for (int same = 0; same < 2; same++) {
        fixture *f = fixture_create();
        uint32_t x = add_tensor(f, FR_NEURON_HBM), a = add_tensor(f, FR_NEURON_SBUF),
                 b = add_tensor(f, FR_NEURON_SBUF);
        add_copy(f, x, a, 2048, false)->region[1].partitions = 127; /* columns 0 .. 127 of 256 */
        fr_neuron_record *r = add_copy(f, x, b, 2048, true);
        r->region[1].partition = same ? 0 : 128;
        r->region[1].partitions = 127;
        fixture_time(f, 1, 0, 0);
        CHECK_NEAR(f->seen[1].start, same ? 2384 : 90, 1e-6, 0);
        fr_deallocate(f);
    }
}

/* ---- the band ----------------------------------------------------------------------------------------- */

/* A kernel that loads the engines exactly as a published one finds it, and the band holds that one's ratio. */
TEST(band_of_known_kernels)
{
    int count;
    const fr_neuron_calibrated *shapes = fr_neuron_calibrated_shapes(&count);
    CHECK(count >= 20);
    for (int i = 0; i < count; i++) {
        fr_neuron_machine m = fixture_machine();
        fr_neuron_timing t = {.predicted_ns = 1e6};
        m.generation = shapes[i].generation;
        m.has_hardware_descriptors = true;
        t.busy_ns[FR_NEURON_TENSOR] = 1e6 * shapes[i].share[0];
        t.busy_ns[FR_NEURON_VECTOR] = 1e6 * shapes[i].share[1];
        t.busy_ns[FR_NEURON_SCALAR] = 1e6 * shapes[i].share[2];
        t.busy_ns[FR_NEURON_GPSIMD] = 1e6 * shapes[i].share[3];
        t.busy_ns[FR_NEURON_DMA] = 1e6 * shapes[i].share[4];
        t.busy_ns[FR_NEURON_SYNC] = 1e6 * shapes[i].share[5] * m.dma_static_issue_ns / m.dma_dynamic_issue_ns;
        fr_neuron_band band = fr_neuron_band_of(&m, &t);
        CHECK_NEAR(band.distance, 0, 1e-9, 0);
        CHECK(band.low_ns <= 0.9e6 && band.high_ns >= 1.1e6);
        CHECK(band.low_ns <= 1e6 * shapes[i].ratio && 1e6 * shapes[i].ratio <= band.high_ns);
        m.generation = 4; /* on a chip without published kernels it is never close */
        CHECK(fr_neuron_band_of(&m, &t).distance >= 0.25);
    }
}

/* ---- faults --------------------------------------------------------------------------------------- */

TEST(memory_runs_out)
{
    fixture *f = fixture_create();
    uint32_t x = add_tensor(f, FR_NEURON_HBM);
    for (int i = 0; i < 100; i++)
        add_copy(f, x, add_tensor(f, FR_NEURON_SBUF), 2048, i % 2);
    fr_neuron_job job = fixture_job(f, 1);
    fr_status status = FR_BUG;
    int failures = 0;
    for (int n = 0; n < 2000 && status != FR_OK; n++) {
        fr_neuron_timing timing;
        fr_error error = {0};
        fr_allocate_fail_after(n);
        status = fr_neuron_time_job(&job, &timing, NULL, &error);
        fr_allocate_fail_after(-1);
        if (status != FR_OK) {
            failures++;
            CHECK_INT(status, FR_BAD_ENVIRONMENT);
        }
    }
    CHECK_INT(status, FR_OK);
    CHECK(failures > 10);
    fr_deallocate(f);
}

TEST(bad_traces_are_refused)
{
    fixture *f = fixture_create();
    uint32_t a = add_tensor(f, FR_NEURON_SBUF);
    add_compute(f, FR_NEURON_VECTOR, 64, a, a, 64)->region[0].tensor = 99;
    fr_neuron_job job = fixture_job(f, 1);
    fr_neuron_timing timing;
    fr_error error = {0};
    CHECK_INT(fr_neuron_time_job(&job, &timing, NULL, &error), FR_BUG);
    f->record[0].region[0].tensor = a;
    f->record[0].core = 1;
    CHECK_INT(fr_neuron_time_job(&job, &timing, NULL, &error), FR_BUG);
    fr_deallocate(f);
}

TEST(empty_trace)
{
    fixture *f = fixture_create();
    fr_neuron_timing timing = fixture_time(f, 2, 0, 0);
    CHECK_NEAR(timing.predicted_ns, 0, 0, 0);
    CHECK_NEAR(timing.program_order_ns, 0, 0, 0);
    fr_deallocate(f);
}

TEST_MAIN(neuron_time)
