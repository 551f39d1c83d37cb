/* Transfers of the NeuronCore: dma_copy in every pattern, gather and scatter, dma_transpose, dma_compute,
 * against loops written out; and what each refuses. */
#include "neuron_fixture.h"

static neuron_fixture f;

static fr_neuron_view whole(fr_neuron_tensor *t)
{
    return fr_neuron_view_of(t);
}

/* Rows of a matrix in HBM, by the numbers in a tile of indices. */
static fr_neuron_view listed(fr_neuron_tensor *matrix, fr_neuron_tensor *index, int64_t rows)
{
    fr_neuron_view view = whole(matrix);
    view.size[0] = rows;
    view.index = index;
    view.whole_rows = true;
    view.index_partitions = (int16_t)(rows < 128 ? rows : 128);
    view.index_stride = view.stride[0];
    view.index_limit = fr_neuron_tensor_layout(matrix)->shape[0];
    return view;
}

static fr_neuron_tensor *indices(const float *values, int64_t rows, int64_t columns, fr_neuron_dtype dtype)
{
    fr_neuron_tensor *t = neuron_tile(&f, FR_NEURON_SBUF, dtype, rows, columns);
    neuron_put(&f, t, values);
    return t;
}

TEST(copies_between_shapes_and_dtypes)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *h = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 256, 48);
    fr_neuron_tensor *s = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 128, 96);
    fr_neuron_tensor *g = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_INT32, 48, 256);
    neuron_fill(&f, h, 1);
    CHECK_DONE(neuron_two(&f, "dma_copy", whole(s), whole(h))); /* two rows to a partition */
    CHECK_DONE(neuron_two(&f, "dma_copy", whole(g), whole(s)));
    float *in = neuron_get(h), *out = neuron_get(g);
    for (int i = 0; i < 256 * 48; i++)
        CHECK(in[i] == out[i]);
    fr_neuron_view column = neuron_slice(g, 0, 48, 7, 1), transposed = whole(h);
    transposed.size[0] = 48; /* a strided walk: h[i, 0] down the first column, in steps of 2 rows */
    transposed.stride[0] = 96;
    transposed.size[1] = 1;
    CHECK_DONE(neuron_two(&f, "dma_copy", column, transposed));
    free(out);
    out = neuron_get(g);
    for (int i = 0; i < 48; i++)
        CHECK(out[i * 256 + 7] == in[i * 96]);
    CHECK_RULE(neuron_two(&f, "dma_copy", neuron_slice(g, 0, 47, 0, 256), whole(s)), "elements_match");
    free(in);
    free(out);
    neuron_end(&f);
}

TEST(a_copy_onto_itself_reads_before_it_writes)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *h = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 1, 1000);
    neuron_fill(&f, h, 1);
    float *before = neuron_get(h);
    CHECK_DONE(neuron_two(&f, "dma_copy", neuron_slice(h, 0, 1, 1, 999), neuron_slice(h, 0, 1, 0, 999)));
    float *after = neuron_get(h);
    for (int i = 1; i < 1000; i++)
        CHECK(after[i] == before[i - 1]);
    free(before);
    free(after);
    neuron_end(&f);
}

TEST(gather_scatter_and_rows_outside)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *table = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 50, 16);
    fr_neuron_tensor *tile = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 8, 16);
    fr_neuron_tensor *out = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 50, 16);
    static const float order[8] = {3, 49, 0, 7, 7, 21, 12, 1}, bad[8] = {3, 50, 0, 7, 9, 21, 12, 1};
    fr_neuron_tensor *good = indices(order, 8, 1, FR_NEURON_UINT32),
                     *wrong = indices(bad, 8, 1, FR_NEURON_INT32);
    neuron_fill(&f, table, 1);
    CHECK_DONE(neuron_two(&f, "dma_copy", whole(tile), listed(table, good, 8)));
    float *all = neuron_get(table), *got = neuron_get(tile);
    for (int i = 0; i < 8; i++)
        CHECK(memcmp(got + 16 * i, all + 16 * (int)order[i], 64) == 0);
    const fr_neuron_record *r = fr_neuron_record_at(f.core, 0);
    CHECK_INT(r->trigger, FR_NEURON_GPSIMD);
    CHECK(r->flags & FR_NEURON_DYNAMIC);
    CHECK_INT(r->descriptors, 8);
    CHECK_INT(r->regions, 3); /* dst, src, the list */

    CHECK_RULE(neuron_two(&f, "dma_copy", whole(tile), listed(table, wrong, 8)), "index_bounds");
    fr_neuron_tensor *fresh = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 8, 16);
    const fr_neuron_view views[2] = {whole(fresh), listed(table, wrong, 8)};
    fr_neuron_call call = neuron_call("dma_copy", 2, views);
    fr_neuron_call_number(&call, "oob_mode", 1);
    CHECK_DONE(neuron_issue(&f, &call));
    CHECK_RULE(neuron_two(&f, "dma_copy", whole(tile), whole(fresh)),
               "uninitialised_read"); /* row 1 was skipped */
    CHECK_DONE(neuron_two(&f, "dma_copy", neuron_slice(tile, 2, 6, 0, 16), neuron_slice(fresh, 2, 6, 0, 16)));

    CHECK_DONE(neuron_two(&f, "dma_copy", listed(out, good, 8), whole(tile)));
    fr_neuron_view some = neuron_slice(out, 12, 1, 0, 16), untouched = neuron_slice(out, 2, 1, 0, 16);
    CHECK_DONE(neuron_two(&f, "dma_copy", neuron_slice(tile, 0, 1, 0, 16), some));
    CHECK_RULE(neuron_two(&f, "dma_copy", neuron_slice(tile, 0, 1, 0, 16), untouched), "uninitialised_read");
    free(all);
    free(got);
    neuron_end(&f);
}

TEST(dynamic_offsets_by_register)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *h = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 64, 8);
    fr_neuron_tensor *s = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 8, 8);
    fr_neuron_tensor *counter = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_INT32, 1, 1);
    const int64_t one = 1;
    fr_neuron_tensor *reg = neuron_tensor(&f, FR_NEURON_REGISTER, FR_NEURON_INT32, 1, &one);
    neuron_fill(&f, h, 1);
    float *all = neuron_get(h), start = 5;
    neuron_put(&f, counter, &start);
    CHECK_RULE(neuron_two(&f, "register_store", whole(counter), whole(reg)), "uninitialised_read");
    CHECK_DONE(neuron_two(&f, "register_load", whole(reg), whole(counter)));
    fr_neuron_view moved = neuron_slice(h, 0, 8, 0, 8);
    moved.index = reg;
    moved.index_stride = 64;
    moved.index_limit = 8;
    CHECK_DONE(neuron_two(&f, "dma_copy", whole(s), moved));
    float *got = neuron_get(s);
    CHECK(memcmp(got, all + 5 * 64, 256) == 0);
    free(got);
    fr_neuron_call call = fr_neuron_call_of("register_move");
    fr_neuron_call_view(&call, "dst", whole(reg));
    fr_neuron_call_number(&call, "src", 8);
    CHECK_DONE(neuron_issue(&f, &call));
    CHECK_RULE(neuron_two(&f, "dma_copy", whole(s), moved), "index_bounds");
    fr_neuron_call_number(&call, "src", 7.5);
    CHECK_RULE(neuron_issue(&f, &call), "register");
    CHECK_RULE(neuron_two(&f, "register_load", whole(reg), whole(s)), "register");
    CHECK_RULE(neuron_two(&f, "register_load", whole(s), whole(counter)), "register");
    CHECK_DONE(neuron_two(&f, "register_store", whole(counter), whole(reg)));
    got = neuron_get(counter);
    CHECK(got[0] == 8);
    free(got);
    fr_neuron_compute(f.core, false);
    CHECK_INT(neuron_two(&f, "register_load", whole(reg), neuron_slice(s, 0, 1, 0, 1)), FR_ANSWER_NO);
    fr_neuron_tensor *later = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_INT32, 1, 1);
    CHECK_INT(neuron_two(&f, "register_load", whole(reg), whole(later)), FR_BAD_USAGE);
    free(all);
    neuron_end(&f);
}

static fr_status copy_with(fr_neuron_view dst, fr_neuron_view src, const char *name, double value,
                           const char *other, double other_value)
{
    const fr_neuron_view views[2] = {dst, src};
    fr_neuron_call call = neuron_call("dma_copy", 2, views);
    CHECK(fr_neuron_call_number(&call, name, value));
    if (other)
        CHECK(fr_neuron_call_number(&call, other, other_value));
    return neuron_issue(&f, &call);
}

TEST(descriptor_modes)
{
    enum { SOFTWARE = 1, HARDWARE = 2, STATIC = 3 };
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *h = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 64, 8);
    fr_neuron_tensor *s = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 64, 8);
    fr_neuron_tensor *b = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 64, 8);
    float order[64];
    for (int i = 0; i < 64; i++)
        order[i] = (float)(63 - i);
    fr_neuron_tensor *list = indices(order, 64, 1, FR_NEURON_UINT32);
    neuron_fill(&f, h, 1);
    CHECK_DONE(copy_with(whole(s), whole(h), "dge_mode", HARDWARE, NULL, 0));
    CHECK_DONE(copy_with(whole(s), whole(h), "dge_mode", HARDWARE, "engine", FR_NEURON_SCALAR));
    CHECK_INT(fr_neuron_record_at(f.core, 1)->trigger, FR_NEURON_SCALAR);
    CHECK_DONE(copy_with(whole(b), whole(h), "dge_mode", STATIC, NULL, 0));
    CHECK(!(fr_neuron_record_at(f.core, 2)->flags & FR_NEURON_DYNAMIC));
    CHECK_RULE(copy_with(whole(b), whole(h), "dge_mode", HARDWARE, NULL, 0), "descriptor_mode");
    CHECK_RULE(copy_with(whole(s), listed(h, list, 64), "dge_mode", HARDWARE, NULL, 0), "descriptor_mode");
    CHECK_RULE(copy_with(whole(s), listed(h, list, 64), "dge_mode", STATIC, NULL, 0), "descriptor_mode");
    CHECK_DONE(copy_with(whole(s), listed(h, list, 64), "dge_mode", SOFTWARE, NULL, 0));
    CHECK_RULE(copy_with(whole(s), whole(h), "engine", FR_NEURON_SCALAR, NULL, 0), "descriptor_mode");
    CHECK_RULE(copy_with(whole(s), whole(h), "dge_mode", HARDWARE, "engine", FR_NEURON_VECTOR),
               "descriptor_mode");
    CHECK_RULE(copy_with(whole(s), whole(h), "priority", 1, NULL, 0), "generation");
    CHECK_RULE(neuron_two(&f, "dma_copy", listed(h, list, 64), listed(h, list, 64)), "indirect");
    neuron_end(&f);
    neuron_begin(&f, "trn1");
    h = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 64, 8);
    neuron_fill(&f, h, 1);
    s = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 64, 8);
    CHECK_RULE(copy_with(whole(s), whole(h), "dge_mode", HARDWARE, NULL, 0), "generation");
    neuron_end(&f);
    neuron_begin(&f, "trn3");
    h = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 64, 8);
    neuron_fill(&f, h, 1);
    s = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 64, 8);
    CHECK_DONE(copy_with(whole(s), whole(h), "priority", 3, NULL, 0));
    CHECK_RULE(copy_with(whole(s), whole(h), "priority", 4, NULL, 0), "value");
    neuron_end(&f);
}

TEST(transposes_reverse_the_axes)
{
    neuron_begin(&f, "trn2");
    const int64_t shape[4] = {6, 4, 3, 10}, turned[4] = {10, 4, 3, 6}, three[3] = {6, 4, 30},
                  back[3] = {30, 4, 6};
    fr_neuron_tensor *h = neuron_tensor(&f, FR_NEURON_HBM, FR_NEURON_BFLOAT16, 4, shape);
    fr_neuron_tensor *s = neuron_tensor(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 4, turned);
    neuron_fill(&f, h, 1);
    CHECK_DONE(neuron_two(&f, "dma_transpose", whole(s), whole(h)));
    float *in = neuron_get(h), *out = neuron_get(s);
    for (int a = 0; a < 6; a++)
        for (int m = 0; m < 12; m++)
            for (int d = 0; d < 10; d++)
                CHECK(out[(d * 12 + m) * 6 + a] == in[(a * 12 + m) * 10 + d]);
    free(in);
    free(out);
    fr_neuron_tensor *x = neuron_tensor(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 3, three);
    fr_neuron_tensor *y = neuron_tensor(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 3, back);
    neuron_fill(&f, x, 1);
    CHECK_DONE(neuron_two(&f, "dma_transpose", whole(y), whole(x)));
    in = neuron_get(x);
    out = neuron_get(y);
    for (int a = 0; a < 6; a++)
        for (int m = 0; m < 4; m++)
            for (int d = 0; d < 30; d++)
                CHECK(out[(d * 4 + m) * 6 + a] == in[(a * 4 + m) * 30 + d]);
    free(in);
    free(out);
    CHECK_RULE(neuron_two(&f, "dma_transpose", whole(s), whole(y)), "dtype_match");
    CHECK_RULE(neuron_two(&f, "dma_transpose", whole(h), whole(s)), "operand_memory");
    CHECK_RULE(neuron_two(&f, "dma_transpose", whole(x), whole(x)), "dma_transpose_shape");
    const fr_neuron_view views[2] = {whole(y), whole(x)};
    fr_neuron_call call = neuron_call("dma_transpose", 2, views);
    static const double axes[3] = {1, 2, 0};
    call.argument[2] = (fr_neuron_argument){.given = true, .numbers = axes, .count = 3};
    CHECK_RULE(neuron_issue(&f, &call), "dma_transpose_shape");
    call.argument[2].given = false;
    fr_neuron_call_number(&call, "dge_mode", 2);
    CHECK_RULE(neuron_issue(&f, &call), "dma_transpose_shape"); /* 6 rows of 4 bytes */
    fr_neuron_tensor *rows = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_BFLOAT16, 16, 128);
    fr_neuron_tensor *columns = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 128, 16);
    neuron_fill(&f, rows, 1);
    fr_neuron_call_view(&call, "dst", whole(columns));
    fr_neuron_call_view(&call, "src", whole(rows));
    CHECK_DONE(neuron_issue(&f, &call));
    neuron_end(&f);
}

TEST(transposes_of_listed_rows)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *table = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_BFLOAT16, 300, 64);
    fr_neuron_tensor *out = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 64, 256);
    float order[256];
    for (int i = 0; i < 256; i++)
        order[i] = (float)((i * 37) % 300);
    fr_neuron_tensor *list = indices(order, 128, 2, FR_NEURON_UINT32); /* read down the columns */
    neuron_fill(&f, table, 1);
    CHECK_DONE(neuron_two(&f, "dma_transpose", whole(out), listed(table, list, 256)));
    float *in = neuron_get(table), *got = neuron_get(out);
    for (int i = 0; i < 256; i++)
        for (int d = 0; d < 64; d++)
            CHECK(got[d * 256 + i] == in[(int)order[i % 128 * 2 + i / 128] * 64 + d]);
    CHECK_RULE(neuron_two(&f, "dma_transpose", neuron_slice(out, 0, 64, 0, 250), listed(table, list, 250)),
               "dma_transpose_shape");
    free(in);
    free(got);
    neuron_end(&f);
}

static fr_status add(fr_neuron_view dst, const fr_neuron_view *srcs, int count, double op)
{
    fr_neuron_call call = neuron_call("dma_compute", 1, &dst);
    call.argument[1] = (fr_neuron_argument){.given = true, .views = srcs, .count = count};
    fr_neuron_call_number(&call, "reduce_op", op);
    return neuron_issue(&f, &call);
}

TEST(sums_in_the_dma_engines)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 16, 40);
    fr_neuron_tensor *b = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 16, 40);
    fr_neuron_tensor *c = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 16, 40);
    neuron_fill(&f, a, 1);
    neuron_fill(&f, b, 0.5f);
    const fr_neuron_view srcs[3] = {whole(a), whole(b), whole(a)};
    CHECK_DONE(add(whole(c), srcs, 3, FR_NEURON_ADD));
    float *x = neuron_get(a), *y = neuron_get(b), *z = neuron_get(c);
    for (int i = 0; i < 640; i++)
        CHECK(z[i] == x[i] + y[i] + x[i]);
    CHECK_RULE(add(whole(c), srcs, 3, FR_NEURON_MAXIMUM), "dma_compute_sources");
    CHECK_RULE(add(whole(c), srcs, 0, FR_NEURON_ADD), "dma_compute_sources");
    const fr_neuron_view uneven[2] = {whole(a), neuron_slice(b, 0, 16, 0, 39)};
    CHECK_RULE(add(whole(c), uneven, 2, FR_NEURON_ADD), "elements_match");
    free(x);
    free(y);
    free(z);
    neuron_end(&f);
}

TEST(sums_into_and_from_listed_rows)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 4, 10);
    fr_neuron_tensor *h = neuron_tile(&f, FR_NEURON_HBM, FR_NEURON_FLOAT32, 9, 10);
    static const float order[4] = {8, 2, 0, 5}, twice[4] = {8, 2, 8, 5};
    fr_neuron_tensor *list = indices(order, 4, 1, FR_NEURON_UINT32),
                     *same = indices(twice, 4, 1, FR_NEURON_UINT32);
    neuron_fill(&f, a, 1);
    neuron_fill(&f, h, 0.25f);
    float *old = neuron_get(h), *tile = neuron_get(a);
    const fr_neuron_view scatter[2] = {listed(h, list, 4), whole(a)},
                         gather[2] = {whole(a), listed(h, list, 4)};
    CHECK_DONE(add(listed(h, list, 4), scatter, 2, FR_NEURON_ADD));
    float *now = neuron_get(h);
    for (int i = 0; i < 90; i++)
        CHECK(now[i] == old[i] + (i / 10 == 8   ? tile[i % 10]
                                  : i / 10 == 2 ? tile[10 + i % 10]
                                  : i / 10 == 0 ? tile[20 + i]
                                  : i / 10 == 5 ? tile[30 + i % 10]
                                                : 0));
    CHECK_DONE(add(whole(a), gather, 2, FR_NEURON_ADD));
    float *sum = neuron_get(a);
    for (int i = 0; i < 40; i++)
        CHECK(sum[i] == tile[i] + now[(int)order[i / 10] * 10 + i % 10]);
    const fr_neuron_view repeated[2] = {listed(h, same, 4), whole(a)};
    CHECK_RULE(add(listed(h, same, 4), repeated, 2, FR_NEURON_ADD), "dma_compute_sources");
    const fr_neuron_view foreign[2] = {listed(h, list, 4), listed(h, list, 4)};
    CHECK_RULE(add(whole(a), foreign, 2, FR_NEURON_ADD), "dma_compute_sources");
    free(old);
    free(tile);
    free(now);
    free(sum);
    neuron_end(&f);
}

TEST_MAIN(neuron_transfer)
