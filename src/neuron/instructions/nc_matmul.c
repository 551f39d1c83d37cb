/* nc_matmul: dst[M, N] (+)= stationary[K, M]^T moving[K, N] on the Tensor engine, from SBUF into PSUM.
 *
 * Whether a product overwrites or adds is a flag of the instruction. PSUM remembers which bytes a matmul
 * has begun since the tile was made: True asks for all of them, None (the compiler decides) adds where a
 * sum was begun and overwrites the rest. Transpose mode moves bits instead of multiplying from generation
 * 3 on. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/matmul.h"

enum {
    DST,
    STATIONARY,
    MOVING,
    STATIONARY_ONEZERO,
    MOVING_ONEZERO,
    TRANSPOSE,
    ACCUMULATE,
    TILE_POSITION,
    TILE_SIZE,
    PERF_MODE
};
enum { DOUBLE_ROW = 1 };

enum {
    NARROW_FLOATS = FR_NEURON_OF(FR_NEURON_FLOAT8_E4M3) | FR_NEURON_OF(FR_NEURON_FLOAT8_E5M2) |
                    FR_NEURON_OF(FR_NEURON_FLOAT8_E4M3FN),
    WIDE_FLOATS = FR_NEURON_OF(FR_NEURON_FLOAT32) | FR_NEURON_OF(FR_NEURON_TFLOAT32),
    FLOATS = NARROW_FLOATS | WIDE_FLOATS | FR_NEURON_OF(FR_NEURON_FLOAT8_E3M4) |
             FR_NEURON_OF(FR_NEURON_BFLOAT16) | FR_NEURON_OF(FR_NEURON_FLOAT16)
};

static bool flag(const fr_neuron_call *call, int which)
{
    return call->argument[which].given && call->argument[which].number > 0;
}

static bool double_rows(const fr_neuron_call *call)
{
    return call->argument[PERF_MODE].number == DOUBLE_ROW;
}

static bool is_in(uint32_t set, fr_neuron_dtype dtype)
{
    return set & FR_NEURON_OF(dtype);
}

static fr_status check_inputs(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    fr_neuron_dtype a = call->argument[STATIONARY].view.dtype, b = call->argument[MOVING].view.dtype;
    const char *trouble = NULL;
    if (!is_in(FLOATS, a) || !is_in(FLOATS, b))
        trouble = "both must be floats of 8, 16 or 32 bits";
    else if (is_in(WIDE_FLOATS, a) != is_in(WIDE_FLOATS, b))
        trouble = "float32 and tfloat32 go only with each other";
    else if ((a == FR_NEURON_FLOAT8_E4M3 && b == FR_NEURON_FLOAT8_E4M3FN) ||
             (b == FR_NEURON_FLOAT8_E4M3 && a == FR_NEURON_FLOAT8_E4M3FN))
        trouble = "the two kinds of e4m3 do not mix";
    else if (double_rows(call) && !(is_in(NARROW_FLOATS, a) && is_in(NARROW_FLOATS, b)))
        trouble = "double rows are float8";
    if (trouble)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_dtypes, error,
                                "stationary is %s, moving is %s: %s", fr_neuron_dtype_name(a),
                                fr_neuron_dtype_name(b), trouble);
    if (a == FR_NEURON_FLOAT8_E4M3FN || b == FR_NEURON_FLOAT8_E4M3FN)
        FR_TRY(fr_neuron_generation_at_least(core, call, 4, "float8_e4m3fn in a matmul", error));
    if (a == FR_NEURON_FLOAT8_E3M4 || b == FR_NEURON_FLOAT8_E3M4)
        FR_TRY(fr_neuron_generation_at_least(core, call, 3, "float8_e3m4 in a matmul", error));
    return double_rows(call) ? fr_neuron_generation_at_least(core, call, 3, "perf_mode double_row", error)
                             : FR_OK;
}

static fr_status check_sum(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    fr_neuron_dtype dtype = call->argument[DST].view.dtype, in = call->argument[STATIONARY].view.dtype;
    int generation = core->machine->generation;
    bool moved = flag(call, TRANSPOSE) && generation >= 3 &&
                 (dtype == in || dtype == call->argument[MOVING].view.dtype);
    if (moved && dtype != FR_NEURON_FLOAT32)
        return fr_neuron_transposed_slots(core, call, DST, error);
    if (dtype == FR_NEURON_FLOAT32 || (generation >= 4 && dtype == FR_NEURON_BFLOAT16))
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_dtypes, error, "dst is %s on generation %d",
                            fr_neuron_dtype_name(dtype), generation);
}

typedef struct extents {
    int64_t k, m, n;
} extents;

static fr_status measure(const fr_neuron *core, const fr_neuron_call *call, extents *out, fr_error *error)
{
    const fr_neuron_view *a = &call->argument[STATIONARY].view, *b = &call->argument[MOVING].view;
    int pairs = double_rows(call) ? 2 : 1;
    if (pairs == 2 && (a->size[0] != 2 || b->size[0] != 2 || a->dims < 2 || b->dims < 2))
        return fr_neuron_refuse(
            core, call, FR_NEURON_RULE_matmul_shape, error,
            "double rows need [K, 2, M] and [K, 2, N]; first free sizes are %lld and %lld",
            (long long)a->size[0], (long long)b->size[0]);
    *out = (extents){a->partitions, fr_neuron_view_free(a) / pairs, fr_neuron_view_free(b) / pairs};
    return FR_OK;
}

static fr_status check_shape(const fr_neuron *core, const fr_neuron_call *call, const extents *e,
                             fr_error *error)
{
    const fr_neuron_view *dst = &call->argument[DST].view;
    int64_t most = core->machine->generation < 4 ? 512 : dst->dtype == FR_NEURON_BFLOAT16 ? 8192 : 4096;
    if (call->argument[MOVING].view.partitions != e->k)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_shape, error,
                                "stationary has %lld partitions, moving %d", (long long)e->k,
                                call->argument[MOVING].view.partitions);
    if (e->m > 128 || e->n > most)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_shape, error,
                                "M is %lld (128 at most), N is %lld (%lld at most)", (long long)e->m,
                                (long long)e->n, (long long)most);
    if (dst->partitions != e->m || fr_neuron_view_free(dst) != e->n)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_shape, error,
                                "dst is [%d, %lld], the product [%lld, %lld]", dst->partitions,
                                (long long)fr_neuron_view_free(dst), (long long)e->m, (long long)e->n);
    return FR_OK;
}

/* One bank holds 2 KiB of each partition. Tiles without an address begin at a bank. */
static fr_status check_bank(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    const fr_neuron_view *dst = &call->argument[DST].view;
    if (core->machine->generation >= 4)
        return FR_OK;
    fr_neuron_region region = fr_neuron_region_of(dst, 1);
    const fr_neuron_layout *layout = fr_neuron_tensor_layout(dst->tensor);
    int64_t start = layout->placed ? layout->byte_offset : 0, bank = core->machine->psum_bank_bytes;
    int64_t first = start + region.first, last = start + region.last - 1;
    if (first / bank == last / bank)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_psum_bank, error,
                            "dst is bytes %lld to %lld of a partition, banks %lld to %lld", (long long)first,
                            (long long)last, (long long)(first / bank), (long long)(last / bank));
}

static fr_status check_tile(const fr_neuron *core, const fr_neuron_call *call, const extents *e,
                            fr_error *error)
{
    const fr_neuron_argument *position = &call->argument[TILE_POSITION], *size = &call->argument[TILE_SIZE];
    bool placed = position->given && position->count > 0, sized = size->given && size->count > 0;
    if (!placed && !sized)
        return FR_OK;
    if (!placed || !sized || position->count != 2 || size->count != 2)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_tile, error,
                                "tile_position has %d numbers, tile_size %d", position->count, size->count);
    const int64_t used[2] = {e->k, e->m};
    for (int i = 0; i < 2; i++) {
        double at = position->numbers[i], extent = size->numbers[i];
        bool legal = extent == 64 || extent == 128 || (extent == 32 && core->machine->generation >= 3);
        double ratio = legal ? at / extent : 0.5;
        if (ratio != (double)(int64_t)ratio || at < 0 || at + extent > 128 || (double)used[i] > extent)
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_tile, error,
                                    "%s of the tile: %g from %g for %lld of the operand",
                                    i ? "columns" : "rows", extent, at, (long long)used[i]);
    }
    if (double_rows(call) && size->numbers[1] != 128)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_matmul_tile, error, "double rows with %g columns",
                                size->numbers[1]);
    return FR_OK;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    extents e = {0};
    FR_TRY(fr_neuron_memory_allowed(core, call, STATIONARY, FR_NEURON_IN(FR_NEURON_SBUF), error));
    FR_TRY(fr_neuron_memory_allowed(core, call, MOVING, FR_NEURON_IN(FR_NEURON_SBUF), error));
    FR_TRY(fr_neuron_memory_allowed(core, call, DST, FR_NEURON_IN(FR_NEURON_PSUM), error));
    FR_TRY(check_inputs(core, call, error));
    FR_TRY(check_sum(core, call, error));
    FR_TRY(measure(core, call, &e, error));
    FR_TRY(check_shape(core, call, &e, error));
    FR_TRY(check_tile(core, call, &e, error));
    FR_TRY(check_bank(core, call, error));
    return fr_neuron_sum_check(core, call, DST, ACCUMULATE, error);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    const fr_neuron_view *dst = &call->argument[DST].view;
    const fr_neuron_view *a = &call->argument[STATIONARY].view, *b = &call->argument[MOVING].view;
    bool clear, add = fr_neuron_sum_adds(core, call, DST, ACCUMULATE, &clear);
    FR_TRY(fr_neuron_prepare_begin(core, dst, error));
    if (clear)
        fr_neuron_zero_unbegun(core, dst);
    bool moved = flag(call, TRANSPOSE) && core->machine->generation >= 3 && !add &&
                 fr_neuron_select_bits(core, dst, a, b);
    if (!moved)
        FR_TRY(fr_neuron_multiply(core, dst, a, b, double_rows(call), add, error));
    fr_neuron_wrote(core, dst);
    fr_neuron_begin(core, dst);
    return FR_OK;
}

static double passes(const fr_neuron *core, const fr_neuron_call *call)
{
    bool wide = call->argument[STATIONARY].view.dtype == FR_NEURON_FLOAT32 ||
                call->argument[MOVING].view.dtype == FR_NEURON_FLOAT32;
    bool half = flag(call, STATIONARY_ONEZERO) || flag(call, MOVING_ONEZERO) || flag(call, TRANSPOSE);
    return !wide ? 1 : half ? core->machine->tensor_passes_fp32 / 2 : core->machine->tensor_passes_fp32;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)engine;
    bool clear;
    double pairs = double_rows(call) ? 2 : 1;
    double m = fr_neuron_extent(call, STATIONARY) / pairs, n = fr_neuron_extent(call, MOVING) / pairs;
    double k = call->argument[STATIONARY].view.partitions * pairs, columns = m < 64 ? m : 64;
    cost->cycles = (n > columns ? n : columns) * passes(core, call);
    cost->flops = 2 * k * m * n;
    cost->accumulate = fr_neuron_sum_adds(core, call, DST, ACCUMULATE, &clear);
}

const fr_neuron_instruction fr_neuron_i_nc_matmul = {
    .name = "nc_matmul",
    .summary = "matrix product of two SBUF tiles into PSUM",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_TENSOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_UPDATE, .required = true, .text = "PSUM tile [M, N]"},
         {.name = "stationary", .kind = FR_NEURON_READ, .required = true, .text = "SBUF tile [K, M]"},
         {.name = "moving", .kind = FR_NEURON_READ, .required = true, .text = "SBUF tile [K, N]"},
         {.name = "is_stationary_onezero",
          .kind = FR_NEURON_FLAG,
          .text = "only zeros and ones: fp32 twice as fast"},
         {.name = "is_moving_onezero",
          .kind = FR_NEURON_FLAG,
          .text = "only zeros and ones: fp32 twice as fast"},
         {.name = "is_transpose", .kind = FR_NEURON_FLAG, .text = "one operand selects: move bits"},
         {.name = "accumulate",
          .kind = FR_NEURON_FLAG,
          .number = -1,
          .text = "add, overwrite, or (absent) as begun"},
         {.name = "tile_position", .kind = FR_NEURON_INTEGER_LIST, .text = "(row, column) of the tile"},
         {.name = "tile_size", .kind = FR_NEURON_INTEGER_LIST, .text = "(rows, columns) of the tile"},
         {.name = "perf_mode",
          .kind = FR_NEURON_CHOICE,
          .choices = "none double_row",
          .text = "float8 at twice the rate"}},
    .semantics = "dst = stationary transposed times moving, in fp32; added to dst with accumulate=True, or "
                 "without the argument "
                 "where a matmul has begun a sum since the tile was made. is_transpose from generation 3 on: "
                 "where one operand "
                 "is a selection (one 1 in each column), bits of the other are moved. double_row: operands "
                 "are [K/2, 2, M] "
                 "and [K/2, 2, N].",
    .limits = "K, M at most 128, N at most 512 (4096, bfloat16 8192 from generation 4 on), inside one PSUM "
              "bank before "
              "generation 4. float32 and tfloat32 only with each other, e4m3 not with e4m3fn. dst float32 "
              "(bfloat16 too "
              "from generation 4 on; the input's dtype for is_transpose, float8 in slots of 16 bits). "
              "Tiles of 64 or 128 (32 from generation 3 on).",
    .cost = "max(N, min(64, M)) cycles of Tensor: once for 8 and 16 bits and tfloat32, 4 times for float32, "
            "twice with a onezero "
            "hint or is_transpose. Loading the stationary operand hides behind the product before.",
    .cost_source =
        "NKI API pages up to SDK 2.26 (nc_matmul); measured 4.03 cycles a column in the fp32 tutorial",
    .example = "p = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)\n"
               "nisa.nc_matmul(dst=p, stationary=a, moving=b)\n"
               "nisa.tensor_copy(dst=c[0:64, :], src=p)",
    .engine = fr_neuron_on_tensor,
    .check = check,
    .execute = execute,
    .price = price,
};
