/* iota and affine_select: index patterns and masks made on GpSimd instead of being loaded. */
#include "neuron/instructions/affine.h"
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

#include <math.h>

enum { IOTA_DST, IOTA_PATTERN, IOTA_OFFSET, IOTA_MULTIPLIER };
enum { DST, PATTERN, MULTIPLIER, ON_TRUE, ON_FALSE, COMPARE, OFFSET };

/* ---- the pattern ---------------------------------------------------------------------------------------------- */

fr_status fr_neuron_affine_check(const fr_neuron *core, const fr_neuron_call *call, int pattern, int tile,
                                 int offset, int multiplier, fr_error *error)
{
    const fr_neuron_argument *pairs = &call->argument[pattern];
    double product = 1;
    if (pairs->count < 2 || pairs->count % 2 || pairs->count > 2 * FR_NEURON_PATTERN_DIMS)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_pattern, error,
                                "%d numbers, not 1 to 4 pairs [step, count]", pairs->count);
    for (int i = 0; i < pairs->count; i += 2) {
        double step = pairs->numbers[i], count = pairs->numbers[i + 1];
        if (step != floor(step) || fabs(step) > INT32_MAX || count != floor(count) || count < 1 ||
            count > UINT16_MAX)
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_pattern, error, "the pair [%g, %g]", step,
                                    count);
        product *= count;
    }
    FR_TRY(fr_neuron_whole_within(core, call, offset, INT32_MIN, INT32_MAX, error));
    FR_TRY(fr_neuron_whole_within(core, call, multiplier, INT32_MIN, INT32_MAX, error));
    double elements = fr_neuron_extent(call, tile);
    if (product == elements)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_pattern, error,
                            "the pattern has %.0f elements, %s has %.0f per partition", product,
                            call->instruction->parameters[tile].name, elements);
}

void fr_neuron_affine_row(const fr_neuron_call *call, int pattern, int offset, int multiplier, int p,
                          int32_t *out)
{
    const fr_neuron_argument *pairs = &call->argument[pattern];
    uint32_t start = (uint32_t)(int32_t)call->argument[offset].number +
                     (uint32_t)p * (uint32_t)(int32_t)call->argument[multiplier].number;
    int64_t filled = 1; /* inner dimensions done so far; each outer one repeats them */
    out[0] = (int32_t)start;
    for (int i = pairs->count - 2; i >= 0; i -= 2) {
        uint32_t step = (uint32_t)(int32_t)pairs->numbers[i];
        int64_t count = (int64_t)pairs->numbers[i + 1];
        for (int64_t k = 1; filled == 1 && k < count; k++)
            out[k] = (int32_t)(start + (uint32_t)k * step);
        for (int64_t k = 1; filled > 1 && k < count; k++)
            for (int64_t j = 0; j < filled; j++)
                out[k * filled + j] = (int32_t)((uint32_t)out[j] + (uint32_t)k * step);
        filled *= count;
    }
}

/* ---- iota ----------------------------------------------------------------------------------------------------- */

static fr_status check_iota(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                            fr_error *error)
{
    (void)engine;
    FR_TRY(fr_neuron_arithmetic(core, call, IOTA_DST, error));
    return fr_neuron_affine_check(core, call, IOTA_PATTERN, IOTA_DST, IOTA_OFFSET, IOTA_MULTIPLIER, error);
}

static fr_status execute_iota(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                              fr_error *error)
{
    (void)engine;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[IOTA_DST].view);
    bool words = dst.dtype == FR_NEURON_INT32 || dst.dtype == FR_NEURON_UINT32;
    int64_t n = dst.row.elements;
    int32_t *values = (int32_t *)fr_neuron_scratch_row(core, &dst);
    float *row = fr_neuron_scratch_row(core, &dst);
    if (!values || !row)
        return fr_error_memory(error, (size_t)n * 8, "a row");
    for (int p = 0; p < dst.partitions; p++) {
        fr_neuron_affine_row(call, IOTA_PATTERN, IOTA_OFFSET, IOTA_MULTIPLIER, p, values);
        if (words) {
            fr_neuron_put_raw(&dst, p, values);
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            row[i] = (float)values[i];
        fr_neuron_put_row(&dst, p, row);
    }
    return FR_OK;
}

static void price_iota(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = 150 + fr_neuron_extent(call, IOTA_DST);
}

/* ---- affine_select -------------------------------------------------------------------------------------------- */

static fr_status check_select(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                              fr_error *error)
{
    (void)engine;
    static const fr_neuron_operator comparisons[] = {FR_NEURON_EQUAL,         FR_NEURON_NOT_EQUAL,
                                                     FR_NEURON_GREATER_EQUAL, FR_NEURON_GREATER,
                                                     FR_NEURON_LESS_EQUAL,    FR_NEURON_LESS};
    FR_TRY(fr_neuron_arithmetic(core, call, DST, error));
    FR_TRY(fr_neuron_arithmetic(core, call, ON_TRUE, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, ON_TRUE, error));
    FR_TRY(fr_neuron_operator_among(core, call, COMPARE, comparisons, 6, error));
    return fr_neuron_affine_check(core, call, PATTERN, DST, OFFSET, MULTIPLIER, error);
}

/* Which signs of the value satisfy the comparison with zero. */
typedef struct signs {
    uint32_t negative, zero, positive; /* all ones or nothing */
} signs;

static signs signs_of(fr_neuron_operator op)
{
    const uint32_t yes = ~0u;
    switch (op) {
    case FR_NEURON_EQUAL: return (signs){.zero = yes};
    case FR_NEURON_NOT_EQUAL: return (signs){.negative = yes, .positive = yes};
    case FR_NEURON_GREATER_EQUAL: return (signs){.zero = yes, .positive = yes};
    case FR_NEURON_GREATER: return (signs){.positive = yes};
    case FR_NEURON_LESS_EQUAL: return (signs){.negative = yes, .zero = yes};
    default: return (signs){.negative = yes};
    }
}

/* Elements of a row by their width, as bits: a kept element keeps its bits when the dtypes are equal. */
#define CHOOSE(WORD)                                                                                         \
    for (int64_t i = 0; i < count; i++) {                                                                    \
        int32_t v = values[i];                                                                               \
        uint32_t keep = v < 0 ? s.negative : v > 0 ? s.positive : s.zero;                                    \
        ((WORD *)out)[i] = (WORD)((((const WORD *)yes)[i] & keep) | (no & ~keep));                           \
    }

static void choose(const int32_t *values, fr_neuron_operator op, const void *yes, uint32_t no, int width,
                   int64_t count, void *out)
{
    signs s = signs_of(op);
    if (width == 4)
        CHOOSE(uint32_t)
    else if (width == 2)
        CHOOSE(uint16_t)
    else
        CHOOSE(uint8_t)
}

static fr_status execute_select(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                fr_error *error)
{
    (void)engine;
    fr_neuron_operator op = fr_neuron_operator_of(call, COMPARE);
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes data = fr_neuron_lanes_of(core, &call->argument[ON_TRUE].view);
    int64_t n = dst.row.elements;
    int32_t *values = (int32_t *)fr_neuron_scratch_row(core, &dst);
    float *row = fr_neuron_scratch_row(core, &dst);
    void *cast = fr_neuron_scratch_row(core, &dst), *out = fr_neuron_scratch_row(core, &dst);
    float other = (float)call->argument[ON_FALSE].number;
    uint32_t no, raw;
    if (!values || !row || !cast || !out)
        return fr_error_memory(error, (size_t)n * 16, "rows");
    fr_neuron_from_float(&raw, &other, dst.dtype, 1);
    fr_neuron_widen(&no, &raw, dst.row.width, 1);
    for (int p = 0; p < dst.partitions; p++) {
        const void *yes = cast;
        if (data.dtype == dst.dtype)
            yes = fr_neuron_raw(&data, p, cast);
        else
            fr_neuron_from_float(cast, fr_neuron_row(&data, p, row), dst.dtype, n);
        fr_neuron_affine_row(call, PATTERN, OFFSET, MULTIPLIER, p, values);
        choose(values, op, yes, no, dst.row.width, n, out);
        fr_neuron_put_raw(&dst, p, out);
    }
    return FR_OK;
}

static void price_select(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = 150 + fr_neuron_extent(call, DST);
    cost->flops = fr_neuron_extent(call, DST) * call->argument[DST].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_iota = {
    .name = "iota",
    .summary = "an affine pattern of integers",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF tile"},
         {.name = "pattern", .kind = FR_NEURON_PATTERN, .required = true, .text = "up to four [step, count]"},
         {.name = "offset", .kind = FR_NEURON_INTEGER, .text = "added to every value"},
         {.name = "channel_multiplier", .kind = FR_NEURON_INTEGER, .text = "times the partition's number"}},
    .semantics =
        "dst = offset + p * channel_multiplier + the sum of step_k * i_k, outermost index first, in 32-bit "
        "integers, cast to dst's dtype.",
    .limits = "SBUF. The counts multiply to the elements per partition of dst.",
    .cost = "150 + N cycles.",
    .cost_source = "NKI API pages up to SDK 2.26 (iota)",
    .example = "i = nl.ndarray((128, 64), dtype=nl.int32, buffer=nl.sbuf)\n"
               "nisa.iota(dst=i, pattern=[[1, 64]], offset=0, channel_multiplier=64)",
    .engine = fr_neuron_on_gpsimd,
    .check = check_iota,
    .execute = execute_iota,
    .price = price_iota,
};

const fr_neuron_instruction fr_neuron_i_affine_select = {
    .name = "affine_select",
    .summary = "choose by the sign of an affine pattern, as a causal mask does",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF tile"},
         {.name = "pattern", .kind = FR_NEURON_PATTERN, .required = true, .text = "up to four [step, count]"},
         {.name = "channel_multiplier",
          .kind = FR_NEURON_INTEGER,
          .required = true,
          .text = "times the partition's number"},
         {.name = "on_true_tile", .kind = FR_NEURON_READ, .required = true, .text = "SBUF tile"},
         {.name = "on_false_value", .kind = FR_NEURON_NUMBER, .required = true, .text = "number"},
         {.name = "cmp_op",
          .kind = FR_NEURON_OPERATOR,
          .number = FR_NEURON_EQUAL,
          .text = "comparison with 0"},
         {.name = "offset", .kind = FR_NEURON_INTEGER, .text = "added to every value"}},
    .semantics =
        "v = offset + p * channel_multiplier + the sum of step_k * i_k; dst = (v cmp_op 0) ? on_true_tile : "
        "on_false_value. Equal dtypes move bits, others go through fp32.",
    .limits = "SBUF. Equal partitions and elements per partition; the counts multiply to them. cmp_op is a "
              "comparison.",
    .cost = "150 + N cycles.",
    .cost_source = "NKI API pages up to SDK 2.26 (affine_select)",
    .example = "nisa.affine_select(dst=c, pattern=[[-1, 64]], channel_multiplier=1, on_true_tile=a, "
               "on_false_value=-1e9,\n"
               "                   cmp_op=nl.greater_equal)",
    .engine = fr_neuron_on_gpsimd,
    .check = check_select,
    .execute = execute_select,
    .price = price_select,
};
