/* tensor_partition_reduce: all partitions of a tile into one, on GpSimd, whose cores see 16 partitions each. Slow: a
 * matmul against ones does sums much faster. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

enum { DST, OP, DATA };
static const fr_neuron_operator operators[] = {FR_NEURON_ADD, FR_NEURON_AVERAGE, FR_NEURON_MAXIMUM,
                                               FR_NEURON_BITWISE_OR, FR_NEURON_BITWISE_AND};

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    static const int tiles[] = {DST, DATA};
    const fr_neuron_view *dst = &call->argument[DST].view, *data = &call->argument[DATA].view;
    FR_TRY(fr_neuron_operator_among(core, call, OP, operators, 5, error));
    FR_TRY(fr_neuron_operator_dtypes(core, call, fr_neuron_operator_of(call, OP), tiles, 2, error));
    if (dst->partitions != 1)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_partitions_match, error,
                                "dst has %d partitions, not 1", dst->partitions);
    if (fr_neuron_view_free(dst) == fr_neuron_view_free(data))
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_elements_match, error,
                            "dst has %lld elements per partition, data has %lld",
                            (long long)fr_neuron_view_free(dst), (long long)fr_neuron_view_free(data));
}

static fr_status execute_bits(fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    const fr_neuron_rows *rows = fr_neuron_rows_best();
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes data = fr_neuron_lanes_of(core, &call->argument[DATA].view);
    int64_t n = data.row.elements;
    uint32_t *total = fr_neuron_scratch(core, n * 4), *x = fr_neuron_scratch(core, n * 4);
    void *raw = fr_neuron_scratch(core, n * 4);
    if (!total || !x || !raw)
        return fr_error_memory(error, (size_t)n * 12, "rows of integers");
    fr_neuron_widen(total, fr_neuron_raw(&data, 0, raw), data.row.width, n);
    for (int p = 1; p < data.partitions; p++) {
        fr_neuron_widen(x, fr_neuron_raw(&data, p, raw), data.row.width, n);
        rows->pair_bits(fr_neuron_operator_of(call, OP), total, total, x, n, 32);
    }
    fr_neuron_narrow_words(raw, total, dst.row.width, n);
    fr_neuron_put_raw(&dst, 0, raw);
    return FR_OK;
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    static const float nothing = 0;
    const fr_neuron_rows *rows = fr_neuron_rows_best();
    fr_neuron_operator op = fr_neuron_operator_of(call, OP);
    if (fr_neuron_operator_facts_of(op)->bits)
        return execute_bits(core, call, error);
    fr_neuron_operator step = op == FR_NEURON_MAXIMUM ? FR_NEURON_MAXIMUM : FR_NEURON_ADD;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes data = fr_neuron_lanes_of(core, &call->argument[DATA].view);
    fr_neuron_block block = {1, data.row.elements};
    float *total = fr_neuron_scratch_row(core, &data), *scratch = fr_neuron_scratch_row(core, &data);
    if (!total || !scratch)
        return fr_error_memory(error, (size_t)data.row.elements * 8, "rows");
    rows->scalar[FR_NEURON_BYPASS](block, total, 0, fr_neuron_row(&data, 0, scratch), 0, &nothing, 0);
    for (int p = 1; p < data.partitions; p++)
        rows->pair[step](block, total, 0, total, 0, fr_neuron_row(&data, p, scratch), 0);
    float share = 1.0f / (float)data.partitions;
    if (op == FR_NEURON_AVERAGE)
        rows->scalar[FR_NEURON_MULTIPLY](block, total, 0, total, 0, &share, 0);
    fr_neuron_put_row(&dst, 0, total);
    return FR_OK;
}

/* Each core walks its 16 partitions at one element a lane and cycle, then the eight partial rows are combined. */
static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    double n = fr_neuron_extent(call, DATA);
    cost->cycles = 150 + 8 * n;
    cost->flops = n * call->argument[DATA].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_tensor_partition_reduce = {
    .name = "tensor_partition_reduce",
    .summary = "reduce all partitions of a tile into one",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "[1, N] SBUF tile"},
                   {.name = "op",
                    .kind = FR_NEURON_OPERATOR,
                    .required = true,
                    .text = "add, average, maximum, bitwise_or, bitwise_and"},
                   {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "[P, N] SBUF tile"}},
    .semantics = "dst[0, i] = reduction of data[p, i] over p: in fp32, or on raw bits for bitvec operators.",
    .limits = "SBUF. dst has one partition and data's elements. Bitvec operators take integers.",
    .cost =
        "150 + 8N cycles (guess: a core of GpSimd reads 16 partitions, and the documentation calls it slow).",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "s = nl.ndarray((1, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.tensor_partition_reduce(dst=s, op=nl.add, data=a)",
    .engine = fr_neuron_on_gpsimd,
    .check = check,
    .execute = execute,
    .price = price,
};
