/* The NeuronCore's core: machines, tensors and their addresses, views, the path of one instruction,
 * records, refusals, and every allocation failing in turn. */
#include "neuron_fixture.h"

#include "neuron/core.h"

static neuron_fixture f;

TEST(machine_files_load_and_name_their_guesses)
{
    static const char *const names[] = {"trn1", "trn2", "trn3"};
    for (int i = 0; i < 3; i++) {
        neuron_begin(&f, names[i]);
        CHECK_STR(f.machine.name, names[i]);
        CHECK_INT(f.machine.generation, i + 2);
        CHECK_INT(f.machine.psum_banks * f.machine.psum_bank_bytes, 16384);
        CHECK(f.machine.clock_ghz[FR_NEURON_TENSOR] > 2 && f.machine.clock_ghz[FR_NEURON_VECTOR] > 0.9);
        CHECK(fr_neuron_machine_guessed(&f.machine, "launch_ns"));
        CHECK(!fr_neuron_machine_guessed(&f.machine, "launch"));
        CHECK(!fr_neuron_machine_guessed(&f.machine, "tensor.clock_ghz"));
        CHECK(fr_neuron_machine_guessed(&f.machine, "scalar.drain_ns"));
        neuron_end(&f);
    }
    CHECK_INT(fr_neuron_machine_load(&f.machine, "machines/none.toml", &f.error), FR_BAD_DATA);
}

TEST(names_go_both_ways)
{
    for (int i = 1; i < FR_NEURON_DTYPES; i++)
        CHECK_INT(fr_neuron_dtype_named(fr_neuron_dtype_name((fr_neuron_dtype)i)), i);
    for (int i = 1; i < FR_NEURON_OPERATORS; i++)
        CHECK_INT(fr_neuron_operator_named(fr_neuron_operator_name((fr_neuron_operator)i)), i);
    for (int i = 1; i < FR_NEURON_FUNCTIONS; i++)
        CHECK_INT(fr_neuron_function_named(fr_neuron_function_name((fr_neuron_function)i)), i);
    CHECK_INT(fr_neuron_operator_named("frobnicate"), 0);
    CHECK_INT(fr_neuron_dtype_named("float"), 0);
}

TEST(every_instruction_is_found_and_documented)
{
    int count, rules;
    const fr_neuron_instruction *const *all = fr_neuron_instructions(&count);
    CHECK(count >= 11);
    for (int i = 0; i < count; i++) {
        CHECK(i == 0 || strcmp(all[i - 1]->name, all[i]->name) < 0);
        CHECK(fr_neuron_instruction_named(all[i]->name) == all[i]);
        CHECK_INT(fr_neuron_instruction_index(all[i]), i);
        CHECK(all[i]->summary && all[i]->semantics && all[i]->limits && all[i]->cost && all[i]->cost_source);
        CHECK(all[i]->engine && all[i]->execute && all[i]->price && all[i]->engines);
    }
    CHECK(!fr_neuron_instruction_named("nc_matmull"));
    CHECK(!fr_neuron_call_of("nc_matmull").instruction);
    const fr_neuron_rule *rule = fr_neuron_rules(&rules);
    for (int i = 0; i < rules; i++)
        CHECK(rule[i].name && rule[i].text && rule[i].fix);
}

TEST(contents_go_in_and_out)
{
    neuron_begin(&f, "trn2");
    static const fr_neuron_memory memories[] = {FR_NEURON_HBM, FR_NEURON_SBUF, FR_NEURON_PSUM};
    for (int m = 0; m < 3; m++) {
        fr_neuron_tensor *t = neuron_tile(&f, memories[m], FR_NEURON_BFLOAT16, 96, 33);
        neuron_fill(&f, t, 1);
        float *values = neuron_get(t);
        for (int64_t i = 0; i < 96 * 33; i++)
            CHECK(values[i] == (float)((i * 7919 + 13) % 251 - 125));
        free(values);
        CHECK_INT(fr_neuron_tensor_read(t, &m, 4, &f.error), FR_BAD_USAGE);
        fr_neuron_tensor_release(f.core, t);
        fr_neuron_tensor_release(f.core, t);
        CHECK_INT(fr_neuron_tensor_write(t, &m, 96 * 33 * 2, &f.error), FR_BAD_USAGE);
        CHECK_INT(fr_neuron_tensor_layout(fr_neuron_tensor_at(f.core, fr_neuron_tensor_id(t)))->shape[1], 33);
    }
    CHECK(!fr_neuron_tensor_at(f.core, 99));
    neuron_end(&f);
}

static fr_status place(int64_t rows, int64_t columns, fr_neuron_memory memory, int partition, int64_t byte,
                       fr_neuron_tensor **out)
{
    fr_neuron_layout layout = {
        .memory = memory, .dtype = FR_NEURON_FLOAT32, .dims = 2, .shape = {rows, columns}};
    layout.placed = true;
    layout.start_partition = partition;
    layout.byte_offset = byte;
    f.error = (fr_error){0};
    return fr_neuron_tensor_create(out, f.core, layout, &f.error);
}

TEST(addresses_beyond_the_memories_are_refused)
{
    fr_neuron_tensor *t;
    neuron_begin(&f, "trn2");
    CHECK_DONE(place(128, 512, FR_NEURON_PSUM, 0, 7 * 2048, &t));
    CHECK_RULE(place(128, 512, FR_NEURON_PSUM, 0, 7 * 2048 + 4, &t), "capacity");
    CHECK_STR(f.error.where, "kernel.py:7: ndarray");
    CHECK_RULE(place(128, 512, FR_NEURON_PSUM, 1, 0, &t), "capacity");
    CHECK_RULE(place(32, 4, FR_NEURON_SBUF, -32, 0, &t), "capacity");
    CHECK_RULE(place(32, 4, FR_NEURON_SBUF, 0, -4, &t), "capacity");
    int64_t usable = f.machine.sbuf_usable_bytes;
    CHECK_DONE(place(128, usable / 4, FR_NEURON_SBUF, 0, 0, &t));
    CHECK_RULE(place(128, usable / 4, FR_NEURON_SBUF, 0, 4, &t), "capacity");
    CHECK_RULE(place(1, INT64_C(1) << 33, FR_NEURON_SBUF, 0, INT64_MAX - 5, &t), "capacity");
    fr_neuron_layout absurd = {.memory = FR_NEURON_HBM, .dtype = FR_NEURON_FLOAT32, .dims = 3};
    absurd.shape[0] = absurd.shape[1] = absurd.shape[2] = INT64_C(1) << 40;
    CHECK_INT(fr_neuron_tensor_create(&t, f.core, absurd, &f.error), FR_BAD_USAGE);
    neuron_end(&f);
}

TEST(tensors_placed_over_each_other_share_bytes)
{
    fr_neuron_tensor *a, *b;
    neuron_begin(&f, "trn2");
    CHECK_DONE(place(64, 16, FR_NEURON_SBUF, 0, 1024, &a));
    CHECK_DONE(place(32, 8, FR_NEURON_SBUF, 32, 1024 + 32, &b));
    fr_neuron_tensor *c = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 32, 8);
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(c), fr_neuron_view_of(b)),
               "uninitialised_read");
    neuron_fill(&f, a, 1);
    CHECK_DONE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(c), fr_neuron_view_of(b)));
    float *whole = neuron_get(a), *part = neuron_get(c);
    for (int r = 0; r < 32; r++)
        for (int k = 0; k < 8; k++)
            CHECK(part[r * 8 + k] == whole[(32 + r) * 16 + 8 + k]);
    free(whole);
    free(part);
    fr_neuron_view wide = fr_neuron_view_of(b); /* float32 where bfloat16 begin at byte 2 */
    fr_neuron_layout odd = {
        .memory = FR_NEURON_SBUF, .dtype = FR_NEURON_BFLOAT16, .dims = 2, .shape = {32, 16}};
    odd.placed = true;
    odd.byte_offset = 2;
    fr_neuron_tensor *o = NULL;
    CHECK_DONE(fr_neuron_tensor_create(&o, f.core, odd, &f.error));
    wide.tensor = o;
    wide.partition = 0;
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(c), wide), "access_pattern");
    /* b's first partition is 32 of the chip: 31 of them fit, 33 would wrap. */
    CHECK_RULE(neuron_two(&f, "tensor_copy", neuron_slice(c, 0, 16, 0, 8), neuron_slice(b, 16, 16, 0, 8)),
               "partition_start");
    neuron_end(&f);
}

TEST(views_walk_their_elements_in_order)
{
    neuron_begin(&f, "trn2");
    const int64_t shape[4] = {4, 3, 5, 7};
    fr_neuron_tensor *t = neuron_tensor(&f, FR_NEURON_SBUF, FR_NEURON_INT16, 4, shape);
    fr_neuron_tensor *out = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 4, 21);
    float values[4 * 105];
    for (int i = 0; i < 4 * 105; i++)
        values[i] = (float)i;
    neuron_put(&f, t, values);
    fr_neuron_view view = fr_neuron_view_of(t); /* t[:, ::-1, 2, :] with the middle dimension chosen */
    view.dims = 2;
    view.size[0] = 3;
    view.stride[0] = -35;
    view.size[1] = 7;
    view.stride[1] = 1;
    view.offset = 2 * 35 + 2 * 7;
    CHECK_INT(fr_neuron_view_free(&view), 21);
    CHECK_INT(fr_neuron_view_elements(&view), 84);
    CHECK_DONE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view));
    float *got = neuron_get(out);
    for (int p = 0; p < 4; p++)
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 7; k++)
                CHECK(got[p * 21 + i * 7 + k] == (float)(p * 105 + (2 - i) * 35 + 14 + k));
    free(got);
    view.stride[0] = 0; /* broadcast */
    view.offset = 14;
    CHECK_DONE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view));
    got = neuron_get(out);
    CHECK(got[0] == 14 && got[7] == 14 && got[20] == 20);
    free(got);
    view.offset = -1;
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view), "out_of_bounds");
    view.offset = 99;
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view), "out_of_bounds");
    view.offset = 98;
    CHECK_DONE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view));
    view.partitions = 5;
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view), "out_of_bounds");
    view.size[0] = 0;
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view), "access_pattern");
    view.size[0] = INT64_C(1) << 30;
    view.stride[0] = INT64_C(1) << 35;
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view), "access_pattern");
    view.size[0] = 3;
    view.stride[0] = 0;
    view.offset = INT64_MIN;
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view), "out_of_bounds");
    view.size[0] = INT64_MAX;
    view.stride[0] = INT64_MAX / 2;
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view), "access_pattern");
    neuron_end(&f);
}

TEST(four_dimensions_and_no_more)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *t = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 128, 256);
    fr_neuron_tensor *out = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 128, 32);
    fr_neuron_tensor *h = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 128, 32);
    neuron_fill(&f, t, 1);
    static const int64_t strides[2][5] = {{100, 40, 15, 6, 2},
                                          {128, 32, 8, 4, 2}}; /* the second merges to three */
    for (int s = 0; s < 2; s++) {
        fr_neuron_view view = fr_neuron_view_of(t);
        view.dims = 5;
        for (int i = 0; i < 5; i++) {
            view.size[i] = 2;
            view.stride[i] = strides[s][i];
        }
        if (s == 0)
            CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view), "access_pattern");
        else
            CHECK_DONE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(out), view));
        CHECK_DONE(neuron_two(&f, "dma_copy", fr_neuron_view_of(h), view));
    }
    neuron_end(&f);
}

TEST(start_partitions_follow_the_quadrants)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 128, 8);
    fr_neuron_tensor *b = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 128, 8);
    neuron_fill(&f, a, 1);
    for (int count = 1; count <= 128; count++)
        for (int start = 0; start + count <= 128; start++) {
            bool legal = count > 64 ? start == 0 : count > 32 ? start == 0 || start == 64 : start % 32 == 0;
            fr_status status = neuron_two(&f, "tensor_copy", neuron_slice(b, start, count, 0, 8),
                                          neuron_slice(a, start, count, 0, 8));
            CHECK_INT(status, legal ? FR_OK : FR_ANSWER_NO);
        }
    CHECK_DONE(neuron_two(&f, "tensor_copy", neuron_slice(b, 64, 32, 0, 8), neuron_slice(a, 32, 32, 0, 8)));
    CHECK_RULE(neuron_two(&f, "tensor_copy", neuron_slice(b, 64, 32, 0, 8), neuron_slice(a, 32, 31, 0, 8)),
               "partitions_match");
    neuron_end(&f);
}

TEST(reads_of_what_was_not_written_are_found)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 64, 100);
    fr_neuron_tensor *b = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 64, 100);
    fr_neuron_tensor *z = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 64, 100);
    neuron_fill(&f, z, 1);
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(b), fr_neuron_view_of(a)),
               "uninitialised_read");
    CHECK_INT(fr_neuron_record_count(f.core), 0);
    CHECK_DONE(neuron_two(&f, "tensor_copy", neuron_slice(a, 0, 32, 10, 30), neuron_slice(z, 0, 32, 0, 30)));
    CHECK_DONE(neuron_two(&f, "tensor_copy", neuron_slice(b, 0, 32, 0, 30), neuron_slice(a, 0, 32, 10, 30)));
    CHECK_RULE(neuron_two(&f, "tensor_copy", neuron_slice(b, 0, 32, 0, 30), neuron_slice(a, 0, 32, 11, 30)),
               "uninitialised_read");
    CHECK_RULE(neuron_two(&f, "tensor_copy", neuron_slice(b, 32, 32, 0, 30), neuron_slice(a, 32, 32, 10, 30)),
               "uninitialised_read");
    CHECK_DONE(neuron_two(&f, "tensor_copy", neuron_slice(a, 0, 64, 40, 60), neuron_slice(z, 0, 64, 40, 60)));
    CHECK_DONE(neuron_two(&f, "tensor_copy", neuron_slice(a, 0, 64, 0, 40), neuron_slice(z, 0, 64, 0, 40)));
    CHECK_DONE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(b), fr_neuron_view_of(a)));
    fr_neuron_compute(f.core, false);
    fr_neuron_tensor *c = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 64, 100);
    CHECK_DONE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(b), fr_neuron_view_of(c)));
    neuron_end(&f);
}

TEST(engines_reach_what_they_reach)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *h = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 32, 8);
    fr_neuron_tensor *s = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 32, 8);
    fr_neuron_tensor *p = neuron_tile(&f, FR_NEURON_PSUM, FR_NEURON_FLOAT32, 32, 8);
    neuron_fill(&f, s, 1);
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(h), fr_neuron_view_of(s)), "engine_memory");
    CHECK_RULE(neuron_two(&f, "dma_copy", fr_neuron_view_of(p), fr_neuron_view_of(s)), "engine_memory");
    const fr_neuron_view views[2] = {fr_neuron_view_of(p), fr_neuron_view_of(s)};
    fr_neuron_call call = neuron_call("tensor_copy", 2, views);
    fr_neuron_call_number(&call, "engine", FR_NEURON_GPSIMD);
    CHECK_RULE(neuron_issue(&f, &call), "engine_memory");
    fr_neuron_call_number(&call, "engine", FR_NEURON_TENSOR);
    CHECK_RULE(neuron_issue(&f, &call), "engine");
    static const double senseless[] = {1e9, -1, 0.5, 1e300, NAN, FR_NEURON_ENGINES};
    for (int i = 0; i < 6; i++) {
        fr_neuron_call_number(&call, "engine", senseless[i]);
        CHECK_INT(neuron_issue(&f, &call), FR_BAD_USAGE);
    }
    fr_neuron_select(f.core, 1);
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(p), fr_neuron_view_of(s)), "other_core");
    neuron_end(&f);
}

TEST(calls_that_make_no_sense_are_usage_errors)
{
    neuron_begin(&f, "trn2");
    fr_neuron_call call = fr_neuron_call_of("tensor_copy");
    CHECK_INT(neuron_issue(&f, &call), FR_BAD_USAGE);
    CHECK_STR(f.error.where, "kernel.py:7: tensor_copy");
    CHECK(!fr_neuron_call_number(&call, "axis", 1));
    fr_neuron_call_number(&call, "dst", 1);
    CHECK_INT(neuron_issue(&f, &call), FR_BAD_USAGE);
    call = fr_neuron_call_of("nothing");
    CHECK_INT(neuron_issue(&f, &call), FR_BAD_USAGE);
    fr_neuron_tensor *t = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 32, 8);
    fr_neuron_view view = fr_neuron_view_of(t);
    fr_neuron_tensor_release(f.core, t);
    CHECK_INT(neuron_two(&f, "tensor_copy", view, view), FR_BAD_USAGE);
    neuron_end(&f);
}

TEST(records_hold_regions_costs_and_lines)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 128, 512);
    fr_neuron_tensor *h = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 256, 1024);
    neuron_fill(&f, h, 1);
    fr_neuron_at(f.core, "kernel.py", 20);
    CHECK_DONE(neuron_two(&f, "dma_copy", fr_neuron_view_of(a), neuron_slice(h, 128, 128, 512, 512)));
    fr_neuron_at(f.core, "other.py", 21);
    CHECK_DONE(
        neuron_two(&f, "tensor_copy", neuron_slice(a, 32, 32, 0, 32), neuron_slice(a, 64, 32, 100, 32)));
    CHECK_INT(fr_neuron_record_count(f.core), 2);
    const fr_neuron_record *r = fr_neuron_record_at(f.core, 0);
    int line;
    CHECK_INT(r->engine, FR_NEURON_DMA);
    CHECK_INT(r->trigger, FR_NEURON_SYNC);
    CHECK_INT(r->descriptors, 128);
    CHECK_INT(r->bytes, 128 * 512 * 4);
    CHECK_INT(r->regions, 2);
    CHECK_INT(r->region[0].write, 1);
    CHECK_INT(r->region[0].partitions, 128);
    CHECK_INT(r->region[1].first, (128 * 1024 + 512) * 4 / 16);
    CHECK_INT(r->region[1].last, 256 * 1024 * 4 / 16);
    CHECK_INT(r->region[1].partition, 128); /* the second half of the columns */
    CHECK_INT(r->region[1].partitions, 127);
    CHECK_STR(fr_neuron_source_file(f.core, r->source, &line), "kernel.py");
    CHECK_INT(line, 20);
    r = fr_neuron_record_at(f.core, 1);
    CHECK_INT(r->engine, FR_NEURON_VECTOR);
    CHECK(r->cycles == 64);
    CHECK_INT(r->extent, 32);
    CHECK_INT(r->region[1].partition, 64);
    CHECK_INT(r->region[1].first, 400);
    CHECK_INT(r->region[1].last, 528);
    CHECK_STR(fr_neuron_source_file(f.core, r->source, &line), "other.py");
    CHECK(!fr_neuron_record_at(f.core, 2));
    CHECK(sizeof *r <= 96);
    neuron_end(&f);
}

TEST(many_lines_and_many_records)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 1, 1);
    neuron_fill(&f, a, 1);
    fr_neuron_view view = fr_neuron_view_of(a);
    for (int i = 0; i < 20000; i++) {
        char file[16];
        snprintf(file, sizeof file, "f%d.py", i % 3);
        fr_neuron_at(f.core, file, i % 1000);
        CHECK_DONE(neuron_two(&f, "tensor_copy", view, view));
    }
    CHECK_INT(fr_neuron_record_count(f.core), 20000);
    for (int i = 0; i < 20000; i += 7) {
        int line;
        char file[16];
        snprintf(file, sizeof file, "f%d.py", i % 3);
        CHECK_STR(fr_neuron_source_file(f.core, fr_neuron_record_at(f.core, i)->source, &line), file);
        CHECK_INT(line, i % 1000);
    }
    CHECK(f.core->source_count <= 3001);
    neuron_end(&f);
}

static fr_status half(int core, fr_neuron_tensor *dst, fr_neuron_tensor *src, double pipe, double engine)
{
    const fr_neuron_view views[2] = {fr_neuron_view_of(src), fr_neuron_view_of(dst)};
    fr_neuron_select(f.core, core);
    fr_neuron_call call = neuron_call("sendrecv", 2, views);
    fr_neuron_call_number(&call, "send_to_rank", 1 - core);
    fr_neuron_call_number(&call, "recv_from_rank", 1 - core);
    fr_neuron_call_number(&call, "pipe_id", pipe);
    fr_neuron_call_number(&call, "dma_engine", engine);
    return neuron_issue(&f, &call);
}

TEST(cores_exchange_tiles)
{
    enum { DMA = 1, GPSIMD = 2 };
    fr_neuron_tensor *src[2], *dst[2], *wide[2];
    neuron_begin(&f, "trn2");
    for (int c = 0; c < 2; c++) {
        fr_neuron_select(f.core, c);
        src[c] = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 32, 40);
        dst[c] = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 32, 40);
        wide[c] = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 32, 257);
        neuron_fill(&f, src[c], (float)(c + 1));
        neuron_fill(&f, wide[c], 1);
    }
    CHECK_DONE(half(0, dst[0], src[0], 3, DMA));
    CHECK_RULE(neuron_two(&f, "tensor_copy", fr_neuron_view_of(src[0]), fr_neuron_view_of(dst[0])),
               "uninitialised_read");
    CHECK_RULE(half(0, dst[0], src[0], 3, DMA), "exchange");
    CHECK_RULE(half(1, dst[1], src[1], 4, DMA), "exchange");
    CHECK_RULE(half(1, wide[1], wide[1], 3, DMA), "exchange");
    CHECK_RULE(half(1, dst[1], src[0], 3, DMA), "other_core");
    CHECK_DONE(half(1, dst[1], src[1], 3, GPSIMD));
    for (int c = 0; c < 2; c++) {
        float *sent = neuron_get(src[c]), *got = neuron_get(dst[1 - c]);
        CHECK(memcmp(sent, got, 32 * 40 * sizeof *sent) == 0);
        free(sent);
        free(got);
    }
    CHECK_RULE(half(0, wide[0], wide[0], 3, GPSIMD), "size_limit");
    CHECK(fr_neuron_record_at(f.core, 0)->flags & FR_NEURON_FENCE);
    CHECK_INT(fr_neuron_record_at(f.core, 1)->trigger, FR_NEURON_GPSIMD);
    CHECK_INT(fr_neuron_record_at(f.core, 1)->core, 1);

    fr_neuron_tensor *shared = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 8, 8);
    fr_neuron_call call = fr_neuron_call_of("core_barrier");
    const double cores[2] = {0, 1}, wrong[2] = {1, 0};
    fr_neuron_call_view(&call, "data", fr_neuron_view_of(shared));
    call.argument[1] = (fr_neuron_argument){.given = true, .numbers = cores, .count = 2};
    CHECK_DONE(neuron_issue(&f, &call));
    CHECK_INT(fr_neuron_record_at(f.core, 2)->engine, FR_NEURON_GPSIMD);
    call.argument[1].numbers = wrong;
    CHECK_RULE(neuron_issue(&f, &call), "exchange");
    neuron_end(&f);
}

/* A small program of every kind of memory; false when an allocation failed, cleanly. */
static bool small_program(void)
{
    fr_neuron *core = NULL;
    fr_neuron_tensor *t[4] = {0};
    fr_error error = {0};
    fr_status status = fr_neuron_create(&core, &f.machine, 1, &error);
    fr_neuron_layout layout = {
        .memory = FR_NEURON_SBUF, .dtype = FR_NEURON_FLOAT32, .dims = 2, .shape = {32, 16}};
    for (int i = 0; i < 4 && status == FR_OK; i++) {
        layout.memory = i == 3 ? FR_NEURON_PSUM : FR_NEURON_SBUF;
        layout.placed = i == 2;
        status = fr_neuron_tensor_create(&t[i], core, layout, &error);
    }
    float values[32 * 16] = {1};
    for (int i = 0; i < 2 && status == FR_OK; i++)
        status = fr_neuron_tensor_write(t[2 * i], values, sizeof values, &error);
    if (status == FR_OK) {
        fr_neuron_at(core, "a.py", 1);
        fr_neuron_call call = fr_neuron_call_of("tensor_copy");
        fr_neuron_call_view(&call, "dst", neuron_slice(t[1], 0, 32, 0, 8));
        fr_neuron_call_view(&call, "src", neuron_slice(t[0], 0, 32, 8, 8));
        status = fr_neuron_issue(core, &call, &error);
    }
    if (status == FR_OK) {
        const fr_neuron_view views[3] = {neuron_slice(t[3], 0, 16, 0, 8), fr_neuron_view_of(t[0]),
                                         neuron_slice(t[2], 0, 32, 0, 8)};
        fr_neuron_call call = neuron_call("nc_matmul", 3, views);
        status = fr_neuron_issue(core, &call, &error);
    }
    CHECK(status == FR_OK || status == FR_BAD_ENVIRONMENT);
    fr_neuron_free(core);
    return status == FR_OK;
}

TEST(a_part_received_makes_that_part_readable_and_no_other)
{
    neuron_begin(&f, "trn2");
    static float data[32 * 16];
    fr_neuron_tensor *t = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 32, 16);
    fr_neuron_view half = neuron_slice(t, 0, 32, 0, 8), all = fr_neuron_view_of(t);
    CHECK(!fr_neuron_written(f.core, &half));
    CHECK_INT(fr_neuron_receive(f.core, &half, data, 4, &f.error), FR_BAD_USAGE);
    CHECK_INT(fr_neuron_receive(f.core, &half, data, sizeof data, &f.error), FR_OK);
    CHECK(fr_neuron_written(f.core, &half) && !fr_neuron_written(f.core, &all));
    CHECK_INT(fr_neuron_receive(f.core, &all, data, sizeof data, &f.error), FR_OK);
    CHECK(fr_neuron_written(f.core, &all));
    neuron_end(&f);
}

TEST(the_clock_may_start_at_any_record)
{
    neuron_begin(&f, "trn2");
    fr_neuron_timing whole, part;
    fr_neuron_tensor *from = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 128, 512);
    neuron_fill(&f, from, 1);
    for (int i = 0; i < 2; i++) {
        fr_neuron_tensor *to = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 128, 512);
        const fr_neuron_view views[2] = {fr_neuron_view_of(to), fr_neuron_view_of(from)};
        fr_neuron_call call = neuron_call("dma_copy", 2, views);
        CHECK_INT(fr_neuron_issue(f.core, &call, &f.error), FR_OK);
        if (i == 0)
            CHECK_INT(fr_neuron_time(f.core, &whole, NULL, &f.error), FR_OK);
    }
    int64_t records = fr_neuron_record_count(f.core);
    CHECK_INT(fr_neuron_time_since(f.core, records / 2, &part, &f.error), FR_OK);
    CHECK(part.predicted_ns == whole.predicted_ns && part.instructions == whole.instructions);
    CHECK_INT(fr_neuron_time_since(f.core, records + 1, &part, &f.error), FR_BAD_USAGE);
    CHECK_INT(fr_neuron_time_since(f.core, -1, &part, &f.error), FR_BAD_USAGE);
    neuron_end(&f);
}

TEST(failed_allocations_are_reported_and_nothing_leaks)
{
    neuron_begin(&f, "trn2");
    int failures = 0;
    for (int n = 0; n < 200; n++) {
        fr_allocate_fail_after(n);
        bool done = small_program();
        fr_allocate_fail_after(-1);
        if (done)
            break;
        failures++;
    }
    CHECK(failures > 8 && failures < 100);
    fr_allocate_fail_after(0);
    CHECK_INT(fr_neuron_machine_load(&f.machine, "machines/trn2.toml", &f.error), FR_BAD_ENVIRONMENT);
    fr_allocate_fail_after(-1);
    neuron_end(&f);
}

TEST_MAIN(neuron_core)
