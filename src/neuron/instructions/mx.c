/* quantize_mx and nc_matmul_mx: micro-scaled numbers (OCP MX) of generation 4.
 *
 * A group is 32 numbers along the contraction: 8 partitions by the 4 numbers packed in one element. It shares one scale, a
 * power of two (e8m0). Per quadrant of 32 partitions there are four groups a column, so four rows of scales, which lie in
 * the same quadrant at partition 0, 4, 8 or 12 of it: that is why the scales of a 128-partition tile are spread over 128
 * partitions, and why up to four tiles can share one tile of scales. Such views start where no other operand may, and
 * most of what they cover is never written: parameters say `scattered`, and the checks are here.
 *
 * The scale leaves one bit of head room against the OCP sample: X = 2^(floor(log2 max) - (E - 1)), E = 8 for e4m3fn, 15 for
 * e5m2, so the largest number of a group rounds without saturating. A group of zeros gets 2^-127. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/matmul.h"
#include "neuron/product.h"
#include "neuron/streams.h"

#include <math.h>
#include <string.h>

enum { DST, SRC, SCALE };
enum { SUM, STATIONARY, MOVING, STATIONARY_SCALE, MOVING_SCALE, TILE_POSITION, TILE_SIZE, ACCUMULATE };
enum { QUADRANT = 32, GROUP = 8, PACKED = 4, ROWS = QUADRANT / GROUP, NAN_SCALE = 255, BIAS = 127 };
enum { SCALES = FR_NEURON_OF(FR_NEURON_FLOAT8_E8M0FNU) | FR_NEURON_OF(FR_NEURON_UINT8) };

/* ---- tiles of scales ------------------------------------------------------------------------------------------ */

static int start_of(const fr_neuron_view *view)
{
    const fr_neuron_layout *layout = fr_neuron_tensor_layout(view->tensor);
    return view->partition + (layout->placed ? layout->start_partition : 0);
}

/* The four rows of quadrant q of the data, as a view. */
static fr_neuron_view quadrant_rows(const fr_neuron_view *scale, int q)
{
    fr_neuron_view rows = *scale;
    rows.partition = (int16_t)(rows.partition + q * QUADRANT);
    rows.partitions = ROWS;
    return rows;
}

static fr_status check_scale(const fr_neuron *core, const fr_neuron_call *call, int which, int data,
                             fr_error *error)
{
    const fr_neuron_view *scale = &call->argument[which].view, *tile = &call->argument[data].view;
    const char *name = call->instruction->parameters[which].name;
    int start = start_of(scale), quadrants = tile->partitions / QUADRANT, row = start % QUADRANT;
    FR_TRY(fr_neuron_memory_allowed(core, call, which, FR_NEURON_IN(FR_NEURON_SBUF), error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, which, SCALES, error));
    if (row % ROWS != 0 || row > 3 * ROWS || start / QUADRANT != start_of(tile) / QUADRANT)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_mx_layout, error,
                                "%s starts at partition %d for data at partition %d", name, start,
                                start_of(tile));
    if (scale->partitions >= (quadrants - 1) * QUADRANT + ROWS)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_mx_layout, error,
                            "%s has %d partitions, the rows of %d quadrants end at %d", name,
                            scale->partitions, quadrants, (quadrants - 1) * QUADRANT + ROWS);
}

static fr_status check_data(const fr_neuron *core, const fr_neuron_call *call, int which, uint32_t dtypes,
                            fr_error *error)
{
    const fr_neuron_view *view = &call->argument[which].view;
    FR_TRY(fr_neuron_memory_allowed(core, call, which, FR_NEURON_IN(FR_NEURON_SBUF), error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, which, dtypes, error));
    if (view->partitions % QUADRANT == 0)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_mx_layout, error,
                            "%s has %d partitions, not a multiple of 32",
                            call->instruction->parameters[which].name, view->partitions);
}

/* ---- quantize_mx ---------------------------------------------------------------------------------------------- */

static fr_status check_quantize(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                fr_error *error)
{
    (void)engine;
    int64_t n = fr_neuron_view_free(&call->argument[SRC].view);
    FR_TRY(check_data(core, call, SRC, FR_NEURON_OF(FR_NEURON_FLOAT16) | FR_NEURON_OF(FR_NEURON_BFLOAT16),
                      error));
    FR_TRY(fr_neuron_memory_allowed(core, call, DST, FR_NEURON_IN(FR_NEURON_SBUF), error));
    FR_TRY(fr_neuron_dtype_allowed(
        core, call, DST, FR_NEURON_OF(FR_NEURON_FLOAT8_E4M3FN_X4) | FR_NEURON_OF(FR_NEURON_FLOAT8_E5M2_X4),
        error));
    FR_TRY(fr_neuron_same_partitions(core, call, DST, SRC, error));
    if (n % PACKED != 0)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_mx_layout, error,
                                "src has %lld elements per partition, not a multiple of 4", (long long)n);
    FR_TRY(fr_neuron_elements_within(core, call, DST, n / PACKED, n / PACKED, error));
    FR_TRY(fr_neuron_elements_within(core, call, SCALE, n / PACKED, n / PACKED, error));
    return check_scale(core, call, SCALE, SRC, error);
}

/* Scale of one group of rows at `rows` (eight of `pitch`), columns 4c to 4c + 3, as an e8m0 code. */
static uint8_t scale_code(const float *rows, int64_t pitch, int64_t column, int largest)
{
    float most = 0;
    bool lost = false;
    for (int r = 0; r < GROUP; r++)
        for (int j = 0; j < PACKED; j++) {
            float size = fabsf(rows[r * pitch + column * PACKED + j]);
            most = size > most ? size : most;
            lost = lost || !(size <= 3.4028234e38f);
        }
    if (lost)
        return NAN_SCALE;
    int exponent = most > 0 ? ilogbf(most) - (largest - 1) + BIAS : 0;
    return (uint8_t)(exponent < 0 ? 0 : exponent);
}

/* One group of partitions: eight rows of fp32 become eight packed rows and one row of scales. */
static void quantize_group(float *rows, int64_t columns, fr_neuron_dtype dtype, uint8_t *codes)
{
    int largest = dtype == FR_NEURON_FLOAT8_E4M3FN_X4 ? 8 : 15;
    int64_t pitch = columns * PACKED;
    for (int64_t c = 0; c < columns; c++) {
        codes[c] = scale_code(rows, pitch, c, largest);
        for (int r = 0; r < GROUP; r++)
            for (int j = 0; j < PACKED; j++) {
                float *x = &rows[r * pitch + c * PACKED + j];
                *x = codes[c] == NAN_SCALE ? NAN : ldexpf(*x, BIAS - codes[c]);
            }
    }
}

static fr_status execute_quantize(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                  fr_error *error)
{
    (void)engine;
    const fr_neuron_view *scale_view = &call->argument[SCALE].view;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes src = fr_neuron_lanes_of(core, &call->argument[SRC].view);
    fr_neuron_lanes scale = fr_neuron_lanes_of(core, scale_view);
    int64_t columns = dst.row.elements, n = src.row.elements;
    float *rows = fr_neuron_scratch(core, GROUP * n * (int64_t)sizeof *rows);
    void *packed = fr_neuron_scratch(core, n);
    uint8_t *codes = fr_neuron_scratch(core, columns);
    if (!rows || !packed || !codes)
        return fr_error_memory(error, (size_t)n * 40, "a group of rows");
    FR_TRY(fr_neuron_prepare(core, scale_view, error));
    for (int p = 0; p < src.partitions; p += GROUP) {
        for (int r = 0; r < GROUP; r++) {
            const float *row = fr_neuron_row(&src, p + r, rows + r * n);
            if (row != rows + r * n)
                memcpy(rows + r * n, row, (size_t)n * sizeof *row);
        }
        quantize_group(rows, columns, dst.dtype, codes);
        for (int r = 0; r < GROUP; r++) {
            fr_neuron_pack(packed, rows + r * n, dst.dtype, columns);
            fr_neuron_put_raw(&dst, p + r, packed);
        }
        fr_neuron_put_raw(&scale, p / QUADRANT * QUADRANT + p % QUADRANT / GROUP, codes);
    }
    for (int q = 0; q < src.partitions / QUADRANT; q++) {
        fr_neuron_view wrote = quadrant_rows(scale_view, q);
        fr_neuron_wrote(core, &wrote);
    }
    return FR_OK;
}

static void price_quantize(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                           fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    double n = fr_neuron_extent(call, SRC);
    cost->cycles = n / PACKED;
    cost->flops = 2 * n * call->argument[SRC].view.partitions;
}

/* ---- nc_matmul_mx --------------------------------------------------------------------------------------------- */

/* Rows only: a tile of 32, 64 or 128 rows and all 128 columns. */
static fr_status check_tile(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    const fr_neuron_argument *position = &call->argument[TILE_POSITION], *size = &call->argument[TILE_SIZE];
    bool placed = position->given && position->count > 0, sized = size->given && size->count > 0;
    if (!placed && !sized)
        return FR_OK;
    if (!placed || !sized || position->count != 2 || size->count != 2)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_tile, error,
                                "tile_position has %d numbers, tile_size %d", position->count, size->count);
    double row = position->numbers[0], rows = size->numbers[0];
    bool legal =
        (rows == 32 || rows == 64 || rows == 128) && size->numbers[1] == 128 && position->numbers[1] == 0;
    if (legal && row >= 0 && row + rows <= 128 && row / rows == floor(row / rows) &&
        call->argument[STATIONARY].view.partitions <= rows)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_tile, error,
                            "a tile of (%g, %g) at (%g, %g) for %d partitions", rows, size->numbers[1], row,
                            position->numbers[1], call->argument[STATIONARY].view.partitions);
}

static fr_status check_operand(const fr_neuron *core, const fr_neuron_call *call, int data, int scale,
                               fr_error *error)
{
    const fr_neuron_view *view = &call->argument[scale].view;
    int64_t n = fr_neuron_view_free(&call->argument[data].view);
    FR_TRY(check_data(core, call, data, FR_NEURON_PACKED, error));
    FR_TRY(fr_neuron_elements_within(core, call, scale, n, n, error));
    FR_TRY(check_scale(core, call, scale, data, error));
    for (int q = 0; q < call->argument[data].view.partitions / QUADRANT; q++) {
        fr_neuron_view rows = quadrant_rows(view, q);
        if (core->compute && !fr_neuron_written(core, &rows))
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_uninitialised_read, error,
                                    "%s: the scales of quadrant %d were not written",
                                    call->instruction->parameters[scale].name, q);
    }
    return FR_OK;
}

static fr_status check_matmul(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                              fr_error *error)
{
    (void)engine;
    const fr_neuron_view *sum = &call->argument[SUM].view;
    int64_t m = fr_neuron_view_free(&call->argument[STATIONARY].view),
            n = fr_neuron_view_free(&call->argument[MOVING].view);
    int64_t most = sum->dtype == FR_NEURON_BFLOAT16 ? 8192 : 4096;
    FR_TRY(fr_neuron_memory_allowed(core, call, SUM, FR_NEURON_IN(FR_NEURON_PSUM), error));
    FR_TRY(fr_neuron_dtype_allowed(
        core, call, SUM, FR_NEURON_OF(FR_NEURON_FLOAT32) | FR_NEURON_OF(FR_NEURON_BFLOAT16), error));
    FR_TRY(check_operand(core, call, STATIONARY, STATIONARY_SCALE, error));
    FR_TRY(check_operand(core, call, MOVING, MOVING_SCALE, error));
    FR_TRY(fr_neuron_same_partitions(core, call, STATIONARY, MOVING, error));
    if (m % 2 != 0 || m > 128 || n > most || sum->partitions != m || fr_neuron_view_free(sum) != n)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_shape, error,
                                "M is %lld (even, 128 at most), N is %lld (%lld at most), dst is [%d, %lld]",
                                (long long)m, (long long)n, (long long)most, sum->partitions,
                                (long long)fr_neuron_view_free(sum));
    FR_TRY(check_tile(core, call, error));
    return fr_neuron_sum_check(core, call, SUM, ACCUMULATE, error);
}

/* Scaled fp32 rows of an operand: 4 P of them, row 4 p + j from number j of partition p; zeros up to `pitch`. */
static float *dequantise(fr_neuron *core, const fr_neuron_call *call, int data, int scale_at, int64_t pitch)
{
    fr_neuron_lanes tile = fr_neuron_lanes_of(core, &call->argument[data].view);
    fr_neuron_lanes scale = fr_neuron_lanes_of(core, &call->argument[scale_at].view);
    int64_t columns = tile.row.elements;
    float *rows = fr_neuron_scratch(core, tile.partitions * PACKED * pitch * (int64_t)sizeof *rows);
    float *numbers = fr_neuron_scratch(core, columns * PACKED * (int64_t)sizeof *numbers);
    void *raw = fr_neuron_scratch(core, columns * 4);
    uint8_t *codes = fr_neuron_scratch(core, columns);
    if (!rows || !numbers || !raw || !codes)
        return NULL;
    for (int p = 0; p < tile.partitions; p++) {
        const uint8_t *code = fr_neuron_raw(&scale, p / QUADRANT * QUADRANT + p % QUADRANT / GROUP, codes);
        fr_neuron_unpack(numbers, fr_neuron_raw(&tile, p, raw), tile.dtype, columns);
        for (int j = 0; j < PACKED; j++) {
            float *row = rows + (p * PACKED + j) * pitch;
            for (int64_t c = 0; c < columns; c++)
                row[c] = code[c] == NAN_SCALE ? NAN : ldexpf(numbers[c * PACKED + j], code[c] - BIAS);
            memset(row + columns, 0, (size_t)(pitch - columns) * sizeof *row);
        }
    }
    return rows;
}

static fr_status execute_matmul(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                fr_error *error)
{
    (void)engine;
    const fr_neuron_view *view = &call->argument[SUM].view;
    fr_neuron_lanes sum = fr_neuron_lanes_of(core, view);
    int64_t m = sum.partitions, n = sum.row.elements, left = (m + 15) / 16 * 16 + 16,
            right = (n + 15) / 16 * 16 + 16;
    bool clear, add = fr_neuron_sum_adds(core, call, SUM, ACCUMULATE, &clear);
    float *stationary = dequantise(core, call, STATIONARY, STATIONARY_SCALE, left);
    float *moving = dequantise(core, call, MOVING, MOVING_SCALE, right);
    float *product = fr_neuron_scratch(core, m * right * (int64_t)sizeof *product);
    float *old = fr_neuron_scratch_row(core, &sum);
    if (!stationary || !moving || !product || !old)
        return fr_error_memory(error, (size_t)(m * right) * sizeof *product, "a product");
    FR_TRY(fr_neuron_prepare_begin(core, view, error));
    if (clear)
        fr_neuron_zero_unbegun(core, view);
    fr_neuron_product job = {.out = product,
                             .out_pitch = right,
                             .stationary = stationary,
                             .stationary_pitch = left,
                             .moving = moving,
                             .moving_pitch = right,
                             .m = m,
                             .n = n,
                             .k = call->argument[STATIONARY].view.partitions * PACKED};
    fr_neuron_kernels_best()->product(&job);
    for (int p = 0; p < m; p++) {
        float *row = product + p * right;
        const float *before = add ? fr_neuron_row(&sum, p, old) : NULL;
        for (int64_t i = 0; before && i < n; i++)
            row[i] += before[i];
        fr_neuron_put_row(&sum, p, row);
    }
    fr_neuron_wrote(core, view);
    fr_neuron_begin(core, view);
    return FR_OK;
}

static void price_matmul(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_neuron_cost *cost)
{
    (void)engine;
    bool clear;
    double m = fr_neuron_extent(call, STATIONARY), n = fr_neuron_extent(call, MOVING),
           columns = m < 64 ? m : 64;
    cost->cycles = n > columns ? n : columns;
    cost->flops = 2 * PACKED * call->argument[STATIONARY].view.partitions * m * n;
    cost->accumulate = fr_neuron_sum_adds(core, call, SUM, ACCUMULATE, &clear);
}

const fr_neuron_instruction fr_neuron_i_quantize_mx = {
    .name = "quantize_mx",
    .summary = "16-bit floats to micro-scaled float8, four to an element, and their scales",
    .least_generation = 4,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst",
                    .kind = FR_NEURON_WRITE,
                    .required = true,
                    .text = "float8_e4m3fn_x4 or float8_e5m2_x4"},
                   {.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "float16 or bfloat16"},
                   {.name = "dst_scale",
                    .kind = FR_NEURON_UPDATE,
                    .required = true,
                    .scattered = true,
                    .text = "float8_e8m0fnu or uint8"}},
    .semantics = "Groups of 8 partitions by 4 elements share a scale X = 2^(floor(log2 max) - (E - 1)), E = "
                 "8 for e4m3fn, 15 "
                 "for e5m2 (2^-127 for zeros); dst = src / X in float8, four packed in an element. Row g of "
                 "the four scale "
                 "rows of a quadrant belongs to partitions 8g to 8g + 7 of it.",
    .limits = "SBUF. Partitions a multiple of 32, elements a multiple of 4. dst_scale has dst's elements, "
              "starts in the data's "
              "quadrant at partition 0, 4, 8 or 12 of it, and reaches the last quadrant's four rows.",
    .cost = "N/4 cycles, 64 at least.",
    .cost_source = "trainium3 architecture guide: four elements per partition and cycle",
    .example = "h = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
               "q = nl.ndarray((128, 16), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)\n"
               "s = nl.ndarray((128, 16), dtype=nl.uint8, buffer=nl.sbuf)\n"
               "nisa.tensor_copy(dst=h, src=a)\n"
               "nisa.quantize_mx(dst=q, src=h, dst_scale=s)",
    .engine = fr_neuron_on_vector,
    .check = check_quantize,
    .execute = execute_quantize,
    .price = price_quantize,
};

const fr_neuron_instruction fr_neuron_i_nc_matmul_mx = {
    .name = "nc_matmul_mx",
    .summary = "matrix product of micro-scaled tiles into PSUM",
    .least_generation = 4,
    .engines = FR_NEURON_ON(FR_NEURON_TENSOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_UPDATE, .required = true, .text = "PSUM tile [M, N]"},
         {.name = "stationary", .kind = FR_NEURON_READ, .required = true, .text = "packed SBUF tile [P, M]"},
         {.name = "moving", .kind = FR_NEURON_READ, .required = true, .text = "packed SBUF tile [P, N]"},
         {.name = "stationary_scale",
          .kind = FR_NEURON_READ,
          .required = true,
          .scattered = true,
          .text = "scales of stationary, as quantize_mx lays them"},
         {.name = "moving_scale",
          .kind = FR_NEURON_READ,
          .required = true,
          .scattered = true,
          .text = "scales of moving"},
         {.name = "tile_position", .kind = FR_NEURON_INTEGER_LIST, .text = "(row, 0) of the tile"},
         {.name = "tile_size", .kind = FR_NEURON_INTEGER_LIST, .text = "(rows, 128) of the tile"},
         {.name = "accumulate",
          .kind = FR_NEURON_FLAG,
          .number = -1,
          .text = "add, overwrite, or (absent) as begun"}},
    .semantics = "dst[m, n] (+)= the sum over partitions p and the four numbers j of an element of "
                 "stationary[p, m, j] * "
                 "moving[p, n, j], each times its group's scale, in fp32. Accumulation as in nc_matmul; "
                 "bfloat16 sums are read "
                 "as fp32, added to, and rounded.",
    .limits =
        "P a multiple of 32, M even and at most 128, N at most 4096 (8192 for bfloat16). float8_e4m3fn_x4, "
        "float8_e5m2_x4 and float4_e2m1fn_x4 in any combination; scales as in quantize_mx. Row tiles only.",
    .cost = "max(N, min(64, M)) cycles: four times the products of a 16-bit matmul.",
    .cost_source = "trainium3 architecture guide",
    .example = "h = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
               "q = nl.ndarray((128, 16), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)\n"
               "s = nl.ndarray((128, 16), dtype=nl.uint8, buffer=nl.sbuf)\n"
               "p = nl.ndarray((16, 16), dtype=nl.float32, buffer=nl.psum)\n"
               "nisa.tensor_copy(dst=h, src=a)\n"
               "nisa.quantize_mx(dst=q, src=h, dst_scale=s)\n"
               "nisa.nc_matmul_mx(dst=p, stationary=q, moving=q, stationary_scale=s, moving_scale=s)",
    .engine = fr_neuron_on_tensor,
    .check = check_matmul,
    .execute = execute_matmul,
    .price = price_matmul,
};
