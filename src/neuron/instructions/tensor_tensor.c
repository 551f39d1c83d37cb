/* tensor_tensor: two tiles, element by element.
 *
 * Three ways to compute, chosen as the chip does. Bitvec operators see raw bits. On GpSimd, tiles of 32-bit integers
 * are added and compared as integers, exactly. Everything else is fp32 arithmetic with a cast on the way in and out:
 * int32 on Vector is exact to 24 bits only. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

enum { DST, DATA1, DATA2, OP, ENGINE };
static const int tiles[] = {DST, DATA1, DATA2};

static fr_neuron_engine choose(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core;
    fr_neuron_operator op = fr_neuron_operator_of(call, OP);
    fr_neuron_engine asked = (fr_neuron_engine)call->argument[ENGINE].number;
    if (asked != FR_NEURON_ANY)
        return asked;
    bool whole = fr_neuron_all_words(call, tiles, 3) && !fr_neuron_operator_facts_of(op)->bits;
    return whole || op == FR_NEURON_POWER ? FR_NEURON_GPSIMD : FR_NEURON_VECTOR;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    FR_TRY(fr_neuron_check_operator(core, call, OP, engine, FR_NEURON_TAKES_BINARY | FR_NEURON_TAKES_BITS,
                                    error));
    FR_TRY(fr_neuron_operator_dtypes(core, call, fr_neuron_operator_of(call, OP), tiles, 3, error));
    FR_TRY(fr_neuron_same_elements(core, call, DATA1, DATA2, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, DATA1, error));
    return fr_neuron_not_both_psum(core, call, DATA1, DATA2, error);
}

/* Rows of words: whole numbers (width 32, by the sign of data1's dtype) or bit patterns. */
static fr_status execute_words(fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    const fr_neuron_rows *rows = fr_neuron_rows_best();
    fr_neuron_operator op = fr_neuron_operator_of(call, OP);
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes a = fr_neuron_lanes_of(core, &call->argument[DATA1].view);
    fr_neuron_lanes b = fr_neuron_lanes_of(core, &call->argument[DATA2].view);
    int64_t n = a.row.elements;
    uint32_t *x = fr_neuron_scratch(core, n * 4), *y = fr_neuron_scratch(core, n * 4);
    void *raw = fr_neuron_scratch(core, n * 4);
    if (!x || !y || !raw)
        return fr_error_memory(error, (size_t)n * 12, "rows of integers");
    for (int p = 0; p < a.partitions; p++) {
        fr_neuron_widen(x, fr_neuron_raw(&a, p, raw), a.row.width, n);
        fr_neuron_widen(y, fr_neuron_raw(&b, p, raw), b.row.width, n);
        if (fr_neuron_operator_facts_of(op)->bits)
            rows->pair_bits(op, x, x, y, n, 8 * dst.row.width);
        else if (a.dtype == FR_NEURON_INT32)
            rows->pair_signed(op, (int32_t *)x, (const int32_t *)x, (const int32_t *)y, n);
        else
            rows->pair_unsigned(op, x, x, y, n);
        fr_neuron_narrow_words(raw, x, dst.row.width, n);
        fr_neuron_put_raw(&dst, p, raw);
    }
    return FR_OK;
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    fr_neuron_operator op = fr_neuron_operator_of(call, OP);
    bool whole = engine == FR_NEURON_GPSIMD && op != FR_NEURON_POWER && fr_neuron_all_words(call, tiles, 3);
    if (whole || fr_neuron_operator_facts_of(op)->bits)
        return execute_words(core, call, error);
    fr_neuron_streams s;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, tiles + 1, 2, error));
    while (fr_neuron_streams_next(&s, &p)) {
        s.rows->pair[op](s.block, s.out.at, s.out.stride, s.in[0].at, s.in[0].stride, s.in[1].at,
                         s.in[1].stride);
        fr_neuron_streams_done(&s, p);
    }
    return FR_OK;
}

static bool simple(fr_neuron_operator op)
{
    return op == FR_NEURON_ADD || op == FR_NEURON_SUBTRACT || op == FR_NEURON_MULTIPLY;
}

/* Two streams share a port, so 2N; one of them in PSUM, or contiguous bf16 with a simple operator, N. Generation 3 on:
 * twice that rate when all is 16-bit in SBUF. */
static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    double n = fr_neuron_extent(call, DATA1);
    bool sbuf = fr_neuron_all_sbuf(call, tiles + 1, 2), narrow = true, bf16 = true;
    for (int i = 0; i < 3; i++) {
        narrow = narrow && fr_neuron_narrow(call, tiles[i], 2) &&
                 !fr_neuron_dtype_integer(call->argument[tiles[i]].view.dtype);
        bf16 = bf16 && call->argument[tiles[i]].view.dtype == FR_NEURON_BFLOAT16;
    }
    bool rows = fr_neuron_packed_rows(call, DATA1) && fr_neuron_packed_rows(call, DATA2);
    bool quick = !sbuf || (bf16 && rows && simple(fr_neuron_operator_of(call, OP)));
    cost->cycles = quick ? n : 2 * n;
    if (fr_neuron_machine_of(core)->generation >= 3 && narrow && sbuf && !fr_neuron_in_psum(call, DST))
        cost->cycles /= 2;
    if (engine == FR_NEURON_GPSIMD) {
        cost->cycles = 150 + 2 * n;
        cost->guess = true;
    }
    cost->flops = n * call->argument[DATA1].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_tensor_tensor = {
    .name = "tensor_tensor",
    .summary = "element by element: dst = data1 op data2",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR) | FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "data1", .kind = FR_NEURON_READ, .required = true, .text = "left operand"},
                   {.name = "data2", .kind = FR_NEURON_READ, .required = true, .text = "right operand"},
                   {.name = "op", .kind = FR_NEURON_OPERATOR, .required = true, .text = "binary operator"},
                   {.name = "engine", .kind = FR_NEURON_ENGINE, .text = "vector or gpsimd"}},
    .semantics =
        "dst = data1 op data2. Arithmetic operators work in fp32 and round to dst's dtype. Bitvec operators "
        "work on raw bits. When all three tiles are int32 or uint32 in SBUF the default is GpSimd, which "
        "computes whole numbers exactly (sums wrap); on Vector they pass through fp32.",
    .limits = "Equal partitions and elements per partition. data1 and data2 not both in PSUM. Bitvec "
              "operators: integer "
              "dtypes, Vector. power: GpSimd, so SBUF only. Unary operators and divide are not taken.",
    .cost = "Vector: N cycles when one input is in PSUM, or all tiles are contiguous bfloat16 in SBUF and op "
            "is add, "
            "subtract or multiply; else 2N. Generation 3 on: half of that when all tiles are 16-bit floats "
            "in SBUF. "
            "64 at least. GpSimd: 150 + 2N (guess).",
    .cost_source =
        "NKI API pages up to SDK 2.26 (tensor_tensor); trainium2 architecture guide (performance mode)",
    .example = "nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add)",
    .pure = true,
    .engine = choose,
    .check = check,
    .execute = execute,
    .price = price,
};
