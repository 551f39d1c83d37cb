/* A matrix product on a simulated NeuronCore, without Python: C = A^T B for A [K, M] and B [K, N] in
 * bfloat16.
 *
 * The kernel is the textbook one. For each strip of 512 columns, the K x 512 strip of B is loaded once;
 * for each 128 rows of C, tiles of A are loaded, products are added in one bank of PSUM over K, and the
 * sum leaves by way of SBUF. Every call is checked against the rules of the chip, computed and recorded;
 * then the clock replays the records. Build and run:
 *     make build/examples/neuron_matmul && build/examples/neuron_matmul [SIZE [MACHINE]]
 * from the top of the repository (it reads machines/trn2.toml). SIZE 4096 shows how fast the simulator is. */
#include "frontier/frontier.h"
#include "frontier/neuron.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 128, COLUMNS = 512 };

typedef struct kernel {
    fr_neuron *core;
    fr_error *error;
    int64_t size;
    fr_neuron_tensor *a, *b, *c; /* in HBM */
} kernel;

static fr_neuron_tensor *tile(kernel *k, fr_neuron_memory memory, fr_neuron_dtype dtype, int64_t rows,
                              int64_t columns)
{
    fr_neuron_tensor *tensor = NULL;
    fr_neuron_layout layout = {.memory = memory, .dtype = dtype, .dims = 2, .shape = {rows, columns}};
    return fr_neuron_tensor_create(&tensor, k->core, layout, k->error) == FR_OK ? tensor : NULL;
}

/* Rows and columns of a matrix in HBM. */
static fr_neuron_view part(fr_neuron_tensor *matrix, int64_t row, int64_t rows, int64_t column,
                           int64_t columns)
{
    fr_neuron_view view = fr_neuron_view_of(matrix);
    view.offset = row * view.stride[0] + column;
    view.size[0] = rows;
    view.size[1] = columns;
    return view;
}

/* An instruction with a destination and up to two sources, which is most of them. */
static fr_status issue(kernel *k, const char *name, fr_neuron_view dst, fr_neuron_view one,
                       const fr_neuron_view *two)
{
    fr_neuron_call call = fr_neuron_call_of(name);
    const fr_neuron_view *views[3] = {&dst, &one, two};
    for (int i = 0; i < 3 && views[i]; i++)
        call.argument[i] = (fr_neuron_argument){.given = true, .is_view = true, .view = *views[i]};
    return fr_neuron_issue(k->core, &call, k->error);
}

static fr_neuron_tensor *load(kernel *k, fr_neuron_tensor *matrix, int64_t row, int64_t column,
                              int64_t columns)
{
    fr_neuron_tensor *t = tile(k, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, ROWS, columns);
    if (!t ||
        issue(k, "dma_copy", fr_neuron_view_of(t), part(matrix, row, ROWS, column, columns), NULL) != FR_OK)
        return NULL;
    return t;
}

/* 128 rows of C in one strip of columns: the sum over K stays in PSUM until it is whole. */
static fr_status block(kernel *k, fr_neuron_tensor *const *strip, int64_t row, int64_t column)
{
    fr_neuron_tensor *sum = tile(k, FR_NEURON_PSUM, FR_NEURON_FLOAT32, ROWS, COLUMNS);
    fr_neuron_tensor *out = tile(k, FR_NEURON_SBUF, FR_NEURON_BFLOAT16, ROWS, COLUMNS);
    if (!sum || !out)
        return FR_BAD_ENVIRONMENT;
    fr_neuron_at(k->core, "neuron_matmul.c", __LINE__);
    for (int64_t i = 0; i < k->size / ROWS; i++) {
        fr_neuron_tensor *a = load(k, k->a, i * ROWS, row, ROWS);
        fr_neuron_view moving = fr_neuron_view_of(strip[i]);
        if (!a)
            return k->error->status;
        FR_TRY(issue(k, "nc_matmul", fr_neuron_view_of(sum), fr_neuron_view_of(a), &moving));
        fr_neuron_tensor_release(k->core, a);
    }
    fr_neuron_at(k->core, "neuron_matmul.c", __LINE__);
    FR_TRY(issue(k, "tensor_copy", fr_neuron_view_of(out), fr_neuron_view_of(sum), NULL));
    FR_TRY(issue(k, "dma_copy", part(k->c, row, ROWS, column, COLUMNS), fr_neuron_view_of(out), NULL));
    fr_neuron_tensor_release(k->core, sum);
    fr_neuron_tensor_release(k->core, out);
    return FR_OK;
}

static fr_status multiply(kernel *k)
{
    fr_neuron_tensor *strip[64];
    for (int64_t column = 0; column < k->size; column += COLUMNS) {
        fr_neuron_at(k->core, "neuron_matmul.c", __LINE__);
        for (int64_t i = 0; i < k->size / ROWS; i++)
            if (!(strip[i] = load(k, k->b, i * ROWS, column, COLUMNS)))
                return k->error->status;
        for (int64_t row = 0; row < k->size; row += ROWS)
            FR_TRY(block(k, strip, row, column));
        for (int64_t i = 0; i < k->size / ROWS; i++)
            fr_neuron_tensor_release(k->core, strip[i]);
    }
    return FR_OK;
}

/* Small whole numbers, so that a sum is exact whatever its order. */
static float value_at(int64_t i, int seed)
{
    return (float)((i * 31 + seed) % 7 - 3);
}

static fr_status fill(kernel *k, fr_neuron_tensor *matrix, int seed)
{
    int64_t count = k->size * k->size;
    float *values = fr_allocate((size_t)count * sizeof *values);
    uint16_t *codes = fr_allocate((size_t)count * sizeof *codes);
    fr_status status = values && codes ? FR_OK : fr_error_memory(k->error, (size_t)count * 6, "a matrix");
    if (status == FR_OK) {
        for (int64_t i = 0; i < count; i++)
            values[i] = value_at(i, seed);
        fr_neuron_from_float(codes, values, FR_NEURON_BFLOAT16, count);
        status = fr_neuron_tensor_write(matrix, codes, (size_t)count * sizeof *codes, k->error);
    }
    fr_deallocate(values);
    fr_deallocate(codes);
    return status;
}

/* Some elements of C against the sum by definition, rounded as the chip rounds. */
static fr_status verify(kernel *k)
{
    int64_t n = k->size, count = n * n;
    uint16_t *codes = fr_allocate((size_t)count * sizeof *codes), want;
    if (!codes)
        return fr_error_memory(k->error, (size_t)count * 2, "the result");
    fr_status status = fr_neuron_tensor_read(k->c, codes, (size_t)count * sizeof *codes, k->error);
    for (int64_t e = 0; status == FR_OK && e < count; e += 4099) {
        float sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += value_at(i * n + e / n, 1) * value_at(i * n + e % n, 2);
        fr_neuron_from_float(&want, &sum, FR_NEURON_BFLOAT16, 1);
        if (codes[e] != want)
            status =
                fr_error_set(k->error, FR_BUG, "neuron_matmul", NULL, "element %lld is wrong", (long long)e);
    }
    fr_deallocate(codes);
    return status;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static fr_status run(kernel *k)
{
    k->a = tile(k, FR_NEURON_HBM, FR_NEURON_BFLOAT16, k->size, k->size);
    k->b = tile(k, FR_NEURON_HBM, FR_NEURON_BFLOAT16, k->size, k->size);
    k->c = tile(k, FR_NEURON_HBM, FR_NEURON_BFLOAT16, k->size, k->size);
    if (!k->a || !k->b || !k->c)
        return k->error->status;
    FR_TRY(fill(k, k->a, 1));
    FR_TRY(fill(k, k->b, 2));
    double start = seconds();
    FR_TRY(multiply(k));
    double computed = seconds();
    fr_neuron_timing timing;
    FR_TRY(fr_neuron_time(k->core, &timing, NULL, k->error));
    double timed = seconds();
    FR_TRY(verify(k));
    printf("%lld^3 on %s: predicted %.1f us, bounds %.1f to %.1f us, Tensor busy %.0f %%\n",
           (long long)k->size, fr_neuron_machine_of(k->core)->name, timing.predicted_ns / 1e3,
           timing.lower_bound_ns / 1e3, timing.program_order_ns / 1e3,
           100 * timing.busy_ns[FR_NEURON_TENSOR] / timing.predicted_ns);
    printf("%lld instructions computed in %.3f s (%.1f GFLOP/s here), timed in %.3f s\n",
           (long long)timing.instructions, computed - start, timing.flops / 1e9 / (computed - start),
           timed - computed);
    return FR_OK;
}

int main(int argc, char **argv)
{
    fr_error error = {0};
    fr_neuron_machine machine;
    kernel k = {.error = &error, .size = argc > 1 ? atoll(argv[1]) : 512};
    char path[128];
    snprintf(path, sizeof path, "machines/%s.toml", argc > 2 ? argv[2] : "trn2");
    fr_status status = k.size % COLUMNS || k.size < 1 || k.size > 64 * ROWS
                           ? fr_error_set(&error, FR_BAD_USAGE, "SIZE", NULL, "a multiple of 512 up to 8192")
                           : fr_neuron_machine_load(&machine, path, &error);
    if (status == FR_OK)
        status = fr_neuron_create(&k.core, &machine, 1, &error);
    if (status == FR_OK)
        status = run(&k);
    fr_neuron_free(k.core);
    if (status != FR_OK) {
        char text[1024];
        fr_error_format(&error, text, sizeof text);
        fputs(text, stderr);
    }
    return status;
}
