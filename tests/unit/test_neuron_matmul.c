/* Matmul and transposes of the NeuronCore, tile copies by predicate, memset: against loops written out, in
 * every dtype they take, at and beyond every limit; and what accumulate means. */
#include "neuron_fixture.h"

static neuron_fixture f;

static fr_neuron_view whole(fr_neuron_tensor *t)
{
    return fr_neuron_view_of(t);
}

static fr_neuron_tensor *sbuf(fr_neuron_dtype dtype, int64_t rows, int64_t columns)
{
    fr_neuron_tensor *t = neuron_tile(&f, FR_NEURON_SBUF, dtype, rows, columns);
    neuron_fill(&f, t, 1 / 128.0f);
    return t;
}

static fr_neuron_tensor *psum(fr_neuron_dtype dtype, int64_t rows, int64_t columns)
{
    return neuron_tile(&f, FR_NEURON_PSUM, dtype, rows, columns);
}

enum { ABSENT = -1 };

static fr_status matmul_views(fr_neuron_view dst, fr_neuron_view stationary, fr_neuron_view moving,
                              double accumulate)
{
    const fr_neuron_view views[3] = {dst, stationary, moving};
    fr_neuron_call call = neuron_call("nc_matmul", 3, views);
    if (accumulate != ABSENT)
        fr_neuron_call_number(&call, "accumulate", accumulate);
    return neuron_issue(&f, &call);
}

static fr_status matmul(fr_neuron_tensor *dst, fr_neuron_tensor *stationary, fr_neuron_tensor *moving,
                        double accumulate)
{
    return matmul_views(whole(dst), whole(stationary), whole(moving), accumulate);
}

/* times the product, plus nothing: dst against double sums. */
static void check_product(fr_neuron_tensor *dst, fr_neuron_tensor *stationary, fr_neuron_tensor *moving,
                          double times)
{
    int64_t k = fr_neuron_tensor_layout(stationary)->shape[0],
            m = fr_neuron_tensor_layout(stationary)->shape[1];
    int64_t n = fr_neuron_tensor_layout(moving)->shape[1];
    float *a = neuron_get(stationary), *b = neuron_get(moving), *c = neuron_get(dst);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t x = 0; x < k; x++) {
                sum += times * a[x * m + i] * b[x * n + j];
                size += fabs(times * a[x * m + i] * b[x * n + j]);
            }
            CHECK_NEAR(c[i * n + j], sum, 1e-6 * size + 1e-12, 0);
        }
    free(a);
    free(b);
    free(c);
}

TEST(products_in_every_pair_of_dtypes)
{
    static const fr_neuron_dtype dtypes[] = {
        FR_NEURON_FLOAT32,     FR_NEURON_TFLOAT32,      FR_NEURON_BFLOAT16,
        FR_NEURON_FLOAT16,     FR_NEURON_FLOAT8_E4M3,   FR_NEURON_FLOAT8_E5M2,
        FR_NEURON_FLOAT8_E3M4, FR_NEURON_FLOAT8_E4M3FN, FR_NEURON_INT8};
    static const char *const machines[] = {"trn1", "trn2", "trn3"};
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < 9; i++)
            for (int j = 0; j < 9; j++) {
                neuron_begin(&f, machines[g]);
                fr_neuron_tensor *a = sbuf(dtypes[i], 40, 13), *b = sbuf(dtypes[j], 40, 50),
                                 *c = psum(FR_NEURON_FLOAT32, 13, 50);
                bool mixed =
                    (i < 2) != (j < 2) || i == 8 || j == 8 || (i == 4 && j == 7) || (i == 7 && j == 4);
                bool missing = (g < 2 && (i == 7 || j == 7)) || (g < 1 && (i == 6 || j == 6));
                fr_status status = matmul(c, a, b, ABSENT);
                CHECK_INT(status, mixed || missing ? FR_ANSWER_NO : FR_OK);
                CHECK(status == FR_OK || strstr(f.error.what, mixed ? "matmul_dtypes" : "generation"));
                if (status == FR_OK)
                    check_product(c, a, b, 1);
                neuron_end(&f);
            }
}

TEST(shapes_at_and_beyond_their_limits)
{
    static const int64_t shapes[][3] = {
        {128, 128, 512}, {1, 1, 1}, {128, 128, 511}, {128, 127, 33}, {3, 100, 512}};
    neuron_begin(&f, "trn2");
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        fr_neuron_tensor *a = sbuf(FR_NEURON_BFLOAT16, shapes[s][0], shapes[s][1]);
        fr_neuron_tensor *b = sbuf(FR_NEURON_BFLOAT16, shapes[s][0], shapes[s][2]);
        fr_neuron_tensor *c = psum(FR_NEURON_FLOAT32, shapes[s][1], shapes[s][2]);
        CHECK_DONE(matmul(c, a, b, 0));
        check_product(c, a, b, 1);
    }
    fr_neuron_tensor *a = sbuf(FR_NEURON_FLOAT32, 64, 128), *b = sbuf(FR_NEURON_FLOAT32, 64, 513);
    fr_neuron_tensor *c = psum(FR_NEURON_FLOAT32, 128, 513), *d = psum(FR_NEURON_FLOAT32, 128, 512);
    CHECK_RULE(matmul(c, a, b, 0), "matmul_shape");
    CHECK_RULE(matmul_views(whole(d), whole(a), neuron_slice(b, 0, 64, 0, 511), 0), "matmul_shape");
    CHECK_RULE(matmul_views(whole(d), whole(a), neuron_slice(b, 0, 32, 0, 512), 0), "matmul_shape");
    CHECK_RULE(matmul_views(whole(d), neuron_slice(b, 0, 64, 0, 129), neuron_slice(b, 0, 64, 0, 512), 0),
               "matmul_shape");
    CHECK_RULE(matmul_views(neuron_slice(c, 0, 128, 1, 512), whole(a), neuron_slice(b, 0, 64, 0, 512), 0),
               "psum_bank");
    CHECK_RULE(matmul_views(neuron_slice(b, 0, 64, 0, 4), neuron_slice(a, 0, 64, 0, 64),
                            neuron_slice(a, 0, 64, 0, 4), 0),
               "operand_memory");
    CHECK_DONE(matmul_views(whole(d), whole(a), neuron_slice(b, 0, 64, 0, 512), 0));
    CHECK_RULE(matmul_views(whole(d), whole(a), whole(d), 0), "operand_memory");
    fr_neuron_tensor *h = psum(FR_NEURON_BFLOAT16, 128, 512);
    CHECK_RULE(matmul_views(whole(h), whole(a), neuron_slice(b, 0, 64, 0, 512), 0), "matmul_dtypes");
    neuron_end(&f);
    neuron_begin(&f, "trn3"); /* eight banks, bfloat16 sums */
    a = sbuf(FR_NEURON_BFLOAT16, 64, 32);
    b = sbuf(FR_NEURON_BFLOAT16, 64, 4096);
    c = psum(FR_NEURON_FLOAT32, 32, 4096);
    CHECK_DONE(matmul(c, a, b, 0));
    check_product(c, a, b, 1);
    h = psum(FR_NEURON_BFLOAT16, 32, 4096);
    CHECK_DONE(matmul(h, a, b, 0));
    CHECK_DONE(matmul(h, a, b, 1));
    float *single = neuron_get(c), *rounded = neuron_get(h);
    for (int i = 0; i < 32 * 4096; i++) {
        uint16_t code;
        float once, twice;
        fr_neuron_from_float(&code, single + i, FR_NEURON_BFLOAT16, 1);
        fr_neuron_to_float(&once, &code, FR_NEURON_BFLOAT16, 1);
        twice = once + single[i]; /* each addition is rounded */
        fr_neuron_from_float(&code, &twice, FR_NEURON_BFLOAT16, 1);
        fr_neuron_to_float(&once, &code, FR_NEURON_BFLOAT16, 1);
        CHECK(rounded[i] == once);
    }
    free(single);
    free(rounded);
    neuron_end(&f);
}

TEST(accumulate_true_false_and_absent)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = sbuf(FR_NEURON_BFLOAT16, 64, 16), *b = sbuf(FR_NEURON_BFLOAT16, 64, 24);
    fr_neuron_tensor *c = psum(FR_NEURON_FLOAT32, 16, 24);
    CHECK_RULE(matmul(c, a, b, 1), "accumulate_start");
    CHECK_DONE(matmul(c, a, b, 0));
    CHECK_DONE(matmul(c, a, b, 1));
    CHECK_DONE(matmul(c, a, b, ABSENT));
    check_product(c, a, b, 3);
    CHECK_DONE(matmul(c, a, b, 0));
    check_product(c, a, b, 1);
    CHECK(fr_neuron_record_at(f.core, 1)->flags & FR_NEURON_ACCUMULATE);
    CHECK(!(fr_neuron_record_at(f.core, 3)->flags & FR_NEURON_ACCUMULATE));

    fr_neuron_tensor *d = psum(FR_NEURON_FLOAT32, 16, 24); /* absent: half of it is begun, the rest is not */
    CHECK_DONE(matmul_views(neuron_slice(d, 0, 16, 0, 12), whole(a), neuron_slice(b, 0, 64, 0, 12), ABSENT));
    CHECK_DONE(matmul(d, a, b, ABSENT));
    float *once = neuron_get(c), *got = neuron_get(d);
    for (int i = 0; i < 16 * 24; i++)
        CHECK_NEAR(got[i], once[i] * (i % 24 < 12 ? 2 : 1), 1e-6, 1e-6);
    free(once);
    free(got);
    neuron_end(&f);
}

static fr_status set(fr_neuron_view dst, double value)
{
    fr_neuron_call call = neuron_call("memset", 1, &dst);
    fr_neuron_call_number(&call, "value", value);
    return neuron_issue(&f, &call);
}

TEST(sums_over_what_no_matmul_began)
{
    static const char *const machines[] = {"trn2", "trn3"};
    for (int g = 0; g < 2; g++) {
        neuron_begin(&f, machines[g]);
        fr_neuron_tensor *a = sbuf(FR_NEURON_BFLOAT16, 64, 16), *b = sbuf(FR_NEURON_BFLOAT16, 64, 24);
        fr_neuron_tensor *c = psum(FR_NEURON_FLOAT32, 16, 24), *d = psum(FR_NEURON_FLOAT32, 16, 24);
        CHECK_DONE(set(whole(c), 0));
        if (g == 0)
            CHECK_RULE(matmul(c, a, b, 1), "accumulate_start");
        CHECK_DONE(matmul(c, a, b, ABSENT));
        check_product(c, a, b, 1);
        CHECK_DONE(set(whole(c), 2)); /* takes the begun sum away again */
        CHECK_DONE(matmul(d, a, b, 0));
        if (g == 0) {
            CHECK_RULE(matmul(c, a, b, 1), "accumulate_start");
            CHECK_RULE(matmul(c, a, b, ABSENT), "accumulate_start");
        } else {
            CHECK_DONE(matmul(c, a, b, 1));
            float *sum = neuron_get(c), *product = neuron_get(d);
            for (int i = 0; i < 16 * 24; i++)
                CHECK(sum[i] == product[i] + 2);
            free(sum);
            free(product);
        }
        neuron_end(&f);
    }
}

TEST(double_rows_contract_over_pairs)
{
    neuron_begin(&f, "trn2");
    const int64_t left[3] = {128, 2, 20}, right[3] = {128, 2, 48};
    fr_neuron_tensor *a = neuron_tensor(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT8_E4M3, 3, left);
    fr_neuron_tensor *b = neuron_tensor(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT8_E5M2, 3, right);
    fr_neuron_tensor *c = psum(FR_NEURON_FLOAT32, 20, 48);
    neuron_fill(&f, a, 1 / 64.0f);
    neuron_fill(&f, b, 1 / 64.0f);
    const fr_neuron_view views[3] = {whole(c), whole(a), whole(b)};
    fr_neuron_call call = neuron_call("nc_matmul", 3, views);
    fr_neuron_call_number(&call, "perf_mode", 1);
    CHECK_DONE(neuron_issue(&f, &call));
    float *x = neuron_get(a), *y = neuron_get(b), *z = neuron_get(c);
    for (int m = 0; m < 20; m++)
        for (int n = 0; n < 48; n++) {
            double sum = 0;
            for (int k = 0; k < 256; k++)
                sum += (double)x[k * 20 + m] * y[k * 48 + n];
            CHECK_NEAR(z[m * 48 + n], sum, 1e-4, 1e-5);
        }
    const fr_neuron_record *r = fr_neuron_record_at(f.core, 0);
    CHECK(r->cycles == 64 && r->bytes == 2 * 256 * 20 * 48 / 64);
    free(x);
    free(y);
    free(z);
    fr_neuron_tensor *h = sbuf(FR_NEURON_BFLOAT16, 128, 40);
    fr_neuron_call_view(&call, "stationary", whole(h));
    CHECK_RULE(neuron_issue(&f, &call), "matmul_dtypes");
    neuron_end(&f);
}

static fr_status tiled(double row, double column, double rows, double columns, int64_t k, int64_t m)
{
    fr_neuron_tensor *a = sbuf(FR_NEURON_BFLOAT16, k, m), *b = sbuf(FR_NEURON_BFLOAT16, k, 64),
                     *c = psum(FR_NEURON_FLOAT32, m, 64);
    const fr_neuron_view views[3] = {whole(c), whole(a), whole(b)};
    const double position[2] = {row, column}, size[2] = {rows, columns};
    fr_neuron_call call = neuron_call("nc_matmul", 3, views);
    call.argument[7] = (fr_neuron_argument){.given = true, .numbers = position, .count = 2};
    call.argument[8] = (fr_neuron_argument){.given = rows > 0, .numbers = size, .count = 2};
    return neuron_issue(&f, &call);
}

TEST(tiles_of_the_array)
{
    neuron_begin(&f, "trn2");
    CHECK_DONE(tiled(64, 0, 64, 128, 64, 128));
    CHECK_DONE(tiled(96, 32, 32, 32, 32, 32));
    CHECK_RULE(tiled(48, 0, 32, 32, 32, 32), "matmul_tile");
    CHECK_RULE(tiled(0, 0, 32, 32, 33, 32), "matmul_tile");
    CHECK_RULE(tiled(0, 0, 32, 32, 32, 33), "matmul_tile");
    CHECK_RULE(tiled(128, 0, 32, 32, 32, 32), "matmul_tile");
    CHECK_RULE(tiled(0, 0, 0, 0, 32, 32), "matmul_tile");
    neuron_end(&f);
    neuron_begin(&f, "trn1");
    CHECK_DONE(tiled(64, 64, 64, 64, 64, 64));
    CHECK_RULE(tiled(32, 32, 32, 32, 32, 32), "matmul_tile");
    neuron_end(&f);
}

TEST(transpose_mode_moves_bits)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = sbuf(FR_NEURON_BFLOAT16, 64, 32),
                     *i = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 64, 64);
    fr_neuron_tensor *c = psum(FR_NEURON_BFLOAT16, 32, 64);
    float identity[64 * 64] = {0}, data[64 * 32];
    for (int k = 0; k < 64; k++)
        identity[k * 64 + (k + 5) % 64] = 1; /* a rotation, to tell it from the identity */
    for (int k = 0; k < 64 * 32; k++)
        data[k] = k % 97 == 0 ? NAN : k % 31 == 0 ? -INFINITY : (float)k;
    neuron_put(&f, i, identity);
    neuron_put(&f, a, data);
    const fr_neuron_view views[3] = {whole(c), whole(a), whole(i)};
    fr_neuron_call call = neuron_call("nc_matmul", 3, views);
    fr_neuron_call_number(&call, "is_transpose", 1);
    CHECK_DONE(neuron_issue(&f, &call));
    float *in = neuron_get(a), *out = neuron_get(c);
    for (int m = 0; m < 32; m++)
        for (int k = 0; k < 64; k++)
            CHECK(memcmp(&out[m * 64 + (k + 5) % 64], &in[k * 32 + m], 4) == 0);
    free(in);
    free(out);
    neuron_end(&f);
}

static fr_status transpose(fr_neuron_tensor *dst, fr_neuron_tensor *data, double engine)
{
    const fr_neuron_view views[2] = {whole(dst), whole(data)};
    fr_neuron_call call = neuron_call("nc_transpose", 2, views);
    fr_neuron_call_number(&call, "engine", engine);
    return neuron_issue(&f, &call);
}

TEST(transposes_on_tensor_and_vector)
{
    static const char *const machines[] = {"trn1", "trn2"};
    for (int g = 0; g < 2; g++) {
        neuron_begin(&f, machines[g]);
        fr_neuron_tensor *a = sbuf(FR_NEURON_FLOAT32, 100, 128), *c = psum(FR_NEURON_FLOAT32, 128, 100);
        float *in = neuron_get(a);
        in[5 * 128 + 9] = INFINITY;
        neuron_put(&f, a, in);
        CHECK_DONE(transpose(c, a, FR_NEURON_ANY));
        CHECK_INT(fr_neuron_record_at(f.core, 0)->engine, FR_NEURON_TENSOR);
        float *out = neuron_get(c);
        for (int p = 0; p < 100; p++)
            for (int k = 0; k < 128; k++)
                CHECK(g == 0 && k == 9 && p != 5 ? isnan(out[k * 100 + p])
                                                 : out[k * 100 + p] == in[p * 128 + k]);
        free(in);
        free(out);
        fr_neuron_tensor *x = sbuf(FR_NEURON_INT16, 32, 20),
                         *y = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_INT16, 20, 32);
        CHECK_DONE(transpose(y, x, FR_NEURON_ANY));
        CHECK_INT(fr_neuron_record_at(f.core, 1)->engine, FR_NEURON_VECTOR);
        in = neuron_get(x);
        out = neuron_get(y);
        for (int p = 0; p < 32; p++)
            for (int k = 0; k < 20; k++)
                CHECK(out[k * 32 + p] == in[p * 20 + k]);
        free(in);
        free(out);
        CHECK_RULE(transpose(y, x, FR_NEURON_TENSOR), "operand_memory");
        CHECK_RULE(transpose(c, a, FR_NEURON_VECTOR), "transpose_shape");
        CHECK_RULE(transpose(x, y, FR_NEURON_SCALAR), "engine");
        CHECK_RULE(transpose(y, y, FR_NEURON_VECTOR), "transpose_shape");
        neuron_end(&f);
    }
}

TEST(float8_transposes_into_slots_of_16_bits)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = sbuf(FR_NEURON_FLOAT8_E4M3, 40, 24);
    fr_neuron_tensor *packed = psum(FR_NEURON_FLOAT8_E4M3, 24, 40), *wide = psum(FR_NEURON_FLOAT8_E4M3, 24, 80);
    CHECK_RULE(transpose(packed, a, FR_NEURON_TENSOR), "transpose_slots");
    neuron_fill(&f, wide, 1);
    fr_neuron_view views[2] = {whole(wide), whole(a)};
    views[0].size[0] = 40;
    views[0].stride[0] = 2;
    fr_neuron_call call = neuron_call("nc_transpose", 2, views);
    CHECK_DONE(neuron_issue(&f, &call));
    float *in = neuron_get(a), *out = neuron_get(wide);
    for (int p = 0; p < 40; p++)
        for (int k = 0; k < 24; k++)
            CHECK(out[k * 80 + 2 * p] == in[p * 24 + k]);
    free(in);
    free(out);
    call.argument[0].view.offset = 1;
    CHECK_RULE(neuron_issue(&f, &call), "transpose_slots");
    neuron_end(&f);
}

TEST(memset_in_every_dtype)
{
    neuron_begin(&f, "trn3");
    for (int d = 1; d < FR_NEURON_DTYPES; d++) {
        fr_neuron_tensor *t = neuron_tile(&f, FR_NEURON_SBUF, (fr_neuron_dtype)d, 33, 7);
        bool packed = d >= FR_NEURON_FLOAT8_E4M3FN_X4 && d <= FR_NEURON_FLOAT4_E2M1FN_X4;
        if (packed) {
            CHECK_RULE(set(whole(t), 1), "value");
            CHECK_DONE(set(whole(t), 0));
            continue;
        }
        CHECK_DONE(set(whole(t), 1));
        float *values = neuron_get(t);
        for (int i = 0; i < 33 * 7; i++)
            CHECK(values[i] == 1);
        free(values);
    }
    fr_neuron_tensor *t = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_INT32, 1, 3);
    int32_t exact[3];
    CHECK_DONE(set(whole(t), 16777217));
    CHECK_DONE(fr_neuron_tensor_read(t, exact, sizeof exact, &f.error));
    CHECK_INT(exact[2], 16777217);
    CHECK_DONE(set(neuron_slice(t, 0, 1, 1, 1), -1e300));
    CHECK_DONE(fr_neuron_tensor_read(t, exact, sizeof exact, &f.error));
    CHECK(exact[0] == 16777217 && exact[1] == INT32_MIN && exact[2] == 16777217);
    neuron_end(&f);
}

TEST(copies_by_predicate)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = sbuf(FR_NEURON_BFLOAT16, 64, 30),
                     *m = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_UINT8, 64, 30);
    fr_neuron_tensor *c = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 64, 30);
    fr_neuron_tensor *fresh = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, 64, 30);
    float mask[64 * 30];
    for (int i = 0; i < 64 * 30; i++)
        mask[i] = (float)(i % 30 >= 10 && i % 30 < 20);
    neuron_put(&f, m, mask);
    CHECK_DONE(set(whole(c), 7));
    const fr_neuron_view views[3] = {whole(c), whole(a), whole(m)};
    fr_neuron_call call = neuron_call("tensor_copy_predicated", 3, views);
    CHECK_DONE(neuron_issue(&f, &call));
    float *in = neuron_get(a), *out = neuron_get(c);
    for (int i = 0; i < 64 * 30; i++)
        CHECK(out[i] == (mask[i] != 0 ? in[i] : 7));
    free(out);
    fr_neuron_call_number(&call, "src", -3);
    fr_neuron_call_number(&call, "reverse_pred", 1);
    CHECK_DONE(neuron_issue(&f, &call));
    out = neuron_get(c);
    for (int i = 0; i < 64 * 30; i++)
        CHECK(out[i] == (mask[i] != 0 ? in[i] : -3));
    fr_neuron_call_number(&call, "reverse_pred", 0);
    fr_neuron_call_view(&call, "dst", whole(fresh));
    CHECK_DONE(neuron_issue(&f, &call)); /* columns 10 to 19 hold data now, the others do not */
    CHECK_DONE(
        neuron_two(&f, "tensor_copy", neuron_slice(c, 0, 64, 10, 10), neuron_slice(fresh, 0, 64, 10, 10)));
    CHECK_RULE(
        neuron_two(&f, "tensor_copy", neuron_slice(c, 0, 64, 10, 10), neuron_slice(fresh, 0, 64, 9, 10)),
        "uninitialised_read");
    fr_neuron_call_view(&call, "predicate", whole(a));
    CHECK_RULE(neuron_issue(&f, &call), "dtype");
    free(in);
    free(out);
    neuron_end(&f);
}

TEST(copies_cast_and_keep_bits)
{
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_INT32, 1, 4);
    fr_neuron_tensor *b = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_INT32, 1, 4);
    fr_neuron_tensor *h = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT16, 1, 4);
    static const int32_t values[4] = {16777217, -5, 70000, INT32_MIN};
    int32_t back[4];
    CHECK_DONE(fr_neuron_tensor_write(a, values, sizeof values, &f.error));
    CHECK_DONE(neuron_two(&f, "tensor_copy", whole(b), whole(a)));
    CHECK_DONE(fr_neuron_tensor_read(b, back, sizeof back, &f.error));
    CHECK(memcmp(back, values, sizeof back) == 0);
    CHECK_DONE(neuron_two(&f, "tensor_copy", whole(h), whole(a)));
    float *half = neuron_get(h);
    CHECK(isinf(half[0]) && half[1] == -5 && isinf(half[2]) && half[3] < 0);
    free(half);
    fr_neuron_view bits = whole(a); /* the same bytes as eight 16-bit numbers */
    bits.dtype = FR_NEURON_UINT16;
    bits.size[0] = 8;
    fr_neuron_tensor *w = neuron_tile(&f, FR_NEURON_SBUF, FR_NEURON_FLOAT32, 1, 8);
    CHECK_DONE(neuron_two(&f, "tensor_copy", whole(w), bits));
    half = neuron_get(w);
    CHECK(half[0] == 1 && half[1] == 256 && half[2] == 65531);
    free(half);
    neuron_end(&f);
    neuron_begin(&f, "trn1");
    a = sbuf(FR_NEURON_FLOAT32, 8, 8);
    const fr_neuron_view views[2] = {whole(a), whole(a)};
    fr_neuron_call call = neuron_call("tensor_copy", 2, views);
    fr_neuron_call_number(&call, "engine", FR_NEURON_SCALAR);
    CHECK_RULE(neuron_issue(&f, &call), "generation");
    neuron_end(&f);
}

TEST(prices_of_the_fast_modes)
{
    static const struct {
        const char *machine;
        fr_neuron_dtype dtype;
        fr_neuron_memory from;
        double cycles;
    } cases[] = {{"trn2", FR_NEURON_FLOAT32, FR_NEURON_SBUF, 512},
                 {"trn2", FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 128},
                 {"trn2", FR_NEURON_BFLOAT16, FR_NEURON_PSUM, 256},
                 {"trn1", FR_NEURON_BFLOAT16, FR_NEURON_SBUF, 512}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        neuron_begin(&f, cases[i].machine);
        fr_neuron_tensor *a = neuron_tile(&f, cases[i].from, cases[i].dtype, 8, 512),
                         *b = sbuf(cases[i].dtype, 8, 512);
        neuron_fill(&f, a, 1);
        CHECK_DONE(neuron_two(&f, "tensor_copy", whole(b), whole(a)));
        CHECK_NEAR(fr_neuron_record_at(f.core, 0)->cycles, cases[i].cycles, 0, 0);
        neuron_end(&f);
    }
    neuron_begin(&f, "trn2");
    fr_neuron_tensor *a = sbuf(FR_NEURON_FLOAT32, 128, 128), *b = sbuf(FR_NEURON_FLOAT32, 128, 512),
                     *c = psum(FR_NEURON_FLOAT32, 128, 512);
    CHECK_DONE(matmul(c, a, b, 0));
    CHECK_NEAR(fr_neuron_record_at(f.core, 0)->cycles, 2048, 0, 0);
    CHECK_INT(fr_neuron_record_at(f.core, 0)->bytes, 2 * 128 * 128 * 512 / 64);
    neuron_end(&f);
}

TEST_MAIN(neuron_matmul)
