/* tensor_scalar: one or two operators between a tile and numbers: (data op0 operand0) op1 operand1.
 *
 * The numbers are constants or one per partition. The second operator is free, which is why kernels fuse a scale and a
 * shift. All of Vector's operators, rsqrt on GpSimd, and on Scalar (generation 3) just multiply and add. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

#include <string.h>

enum { DST, DATA, OP0, OPERAND0, REVERSE0, OP1, OPERAND1, REVERSE1, ENGINE };
static const int tiles[] = {DST, DATA};

static bool uses(const fr_neuron_call *call, fr_neuron_operator op)
{
    return fr_neuron_operator_of(call, OP0) == op || fr_neuron_operator_of(call, OP1) == op;
}

static fr_neuron_engine choose(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core;
    fr_neuron_engine asked = (fr_neuron_engine)call->argument[ENGINE].number;
    if (asked != FR_NEURON_ANY)
        return asked;
    return uses(call, FR_NEURON_RSQRT) || uses(call, FR_NEURON_POWER) ? FR_NEURON_GPSIMD : FR_NEURON_VECTOR;
}

static fr_status refuse_pair(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_error *error)
{
    return fr_neuron_refuse(
        core, call, FR_NEURON_RULE_operator_engine, error, "op0 is %s and op1 %s on the %s engine",
        fr_neuron_operator_name(fr_neuron_operator_of(call, OP0)),
        fr_neuron_operator_name(fr_neuron_operator_of(call, OP1)), fr_neuron_engine_name(engine));
}

/* What Scalar's pipeline computes: multiply then add, multiply, add. */
static bool suits_scalar(fr_neuron_operator op0, fr_neuron_operator op1)
{
    if (op0 == FR_NEURON_ADD)
        return op1 == FR_NEURON_NO_OPERATOR;
    return op0 == FR_NEURON_MULTIPLY && (op1 == FR_NEURON_ADD || op1 == FR_NEURON_NO_OPERATOR);
}

/* Scalar of generation 3: multiply then add, multiply, add. GpSimd: for rsqrt (and power) only. */
static fr_status check_pair(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                            fr_error *error)
{
    fr_neuron_operator op0 = fr_neuron_operator_of(call, OP0), op1 = fr_neuron_operator_of(call, OP1);
    bool bits0 = fr_neuron_operator_facts_of(op0)->bits, bits1 = fr_neuron_operator_facts_of(op1)->bits;
    if (op1 != FR_NEURON_NO_OPERATOR && bits0 != bits1)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator_kind, error,
                                "op0 is %s, op1 is %s: bitvec and "
                                "arithmetic",
                                fr_neuron_operator_name(op0), fr_neuron_operator_name(op1));
    if (engine == FR_NEURON_SCALAR) {
        FR_TRY(fr_neuron_generation_at_least(core, call, 3, "tensor_scalar on the Scalar engine", error));
        if (!suits_scalar(op0, op1))
            return refuse_pair(core, call, engine, error);
    }
    if (engine == FR_NEURON_GPSIMD && !uses(call, FR_NEURON_RSQRT) && !uses(call, FR_NEURON_POWER))
        return refuse_pair(core, call, engine, error);
    return FR_OK;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    const uint32_t takes = FR_NEURON_TAKES_BINARY | FR_NEURON_TAKES_UNARY | FR_NEURON_TAKES_BITS;
    FR_TRY(fr_neuron_check_operator(core, call, OP0, engine, takes, error));
    FR_TRY(fr_neuron_check_operator(core, call, OP1, engine, takes, error));
    FR_TRY(check_pair(core, call, engine, error));
    FR_TRY(fr_neuron_operator_dtypes(core, call, fr_neuron_operator_of(call, OP0), tiles, 2, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, DATA, error));
    FR_TRY(fr_neuron_operator_scalar(core, call, OP0, OPERAND0, DATA, error));
    return fr_neuron_operator_scalar(core, call, OP1, OPERAND1, DATA, error);
}

/* One integer of partition p as the engine sees it: constants and registers as 32 bits, vectors as their own bits. */
static uint32_t integer_operand(const fr_neuron *core, const fr_neuron_argument *argument, int p)
{
    if (!argument->given)
        return 0;
    if (!argument->is_view)
        return (uint32_t)(int64_t)argument->number;
    if (fr_neuron_tensor_layout(argument->view.tensor)->memory == FR_NEURON_REGISTER)
        return (uint32_t)*fr_neuron_register(argument->view.tensor);
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, &argument->view);
    uint32_t word;
    fr_neuron_widen(&word, fr_neuron_lane_base(&lanes, p), lanes.row.width, 1);
    return word;
}

static void apply_bits(const fr_neuron_rows *rows, const fr_neuron_call *call, int op_at, uint32_t *x,
                       uint32_t *y, uint32_t operand, int64_t n, int width)
{
    fr_neuron_operator op = fr_neuron_operator_of(call, op_at);
    bool reverse = call->argument[op_at == OP0 ? REVERSE0 : REVERSE1].number > 0;
    for (int64_t i = 0; i < n; i++)
        y[i] = operand;
    rows->pair_bits(op, x, reverse ? y : x, reverse ? x : y, n, width);
}

static fr_status execute_bits(fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    const fr_neuron_rows *rows = fr_neuron_rows_best();
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes data = fr_neuron_lanes_of(core, &call->argument[DATA].view);
    int64_t n = data.row.elements;
    int width = 8 * dst.row.width;
    uint32_t mask = width < 32 ? (1u << width) - 1 : ~0u;
    uint32_t *x = fr_neuron_scratch(core, n * 4), *y = fr_neuron_scratch(core, n * 4);
    void *raw = fr_neuron_scratch(core, n * 4);
    if (!x || !y || !raw)
        return fr_error_memory(error, (size_t)n * 12, "rows of integers");
    for (int p = 0; p < data.partitions; p++) {
        fr_neuron_widen(x, fr_neuron_raw(&data, p, raw), data.row.width, n);
        apply_bits(rows, call, OP0, x, y, integer_operand(core, &call->argument[OPERAND0], p) & mask, n,
                   width);
        if (fr_neuron_operator_of(call, OP1) != FR_NEURON_NO_OPERATOR)
            apply_bits(rows, call, OP1, x, y, integer_operand(core, &call->argument[OPERAND1], p) & mask, n,
                       width);
        fr_neuron_narrow_words(raw, x, dst.row.width, n);
        fr_neuron_put_raw(&dst, p, raw);
    }
    return FR_OK;
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    fr_neuron_operator op0 = fr_neuron_operator_of(call, OP0), op1 = fr_neuron_operator_of(call, OP1);
    if (fr_neuron_operator_facts_of(op0)->bits)
        return execute_bits(core, call, error);
    fr_neuron_streams s;
    fr_neuron_column_values first, second;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, tiles + 1, 1, error));
    fr_neuron_column_read(&first, core, &call->argument[OPERAND0], s.partitions);
    fr_neuron_column_read(&second, core, &call->argument[OPERAND1], s.partitions);
    fr_neuron_scalar_rows *apply0 =
        (call->argument[REVERSE0].number > 0 ? s.rows->reversed : s.rows->scalar)[op0];
    fr_neuron_scalar_rows *apply1 =
        (call->argument[REVERSE1].number > 0 ? s.rows->reversed : s.rows->scalar)[op1];
    while (fr_neuron_streams_next(&s, &p)) {
        apply0(s.block, s.out.at, s.out.stride, s.in[0].at, s.in[0].stride, fr_neuron_column_at(&first, p),
               first.step);
        if (apply1)
            apply1(s.block, s.out.at, s.out.stride, s.out.at, s.out.stride, fr_neuron_column_at(&second, p),
                   second.step);
        fr_neuron_streams_done(&s, p);
    }
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    double n = fr_neuron_extent(call, DATA);
    int operators = 1 + (fr_neuron_operator_of(call, OP1) != FR_NEURON_NO_OPERATOR);
    cost->cycles = fr_neuron_stream_cycles(core, call, DST, DATA, engine);
    if (engine == FR_NEURON_GPSIMD) {
        cost->cycles = 150 + 4 * n;
        cost->guess = true;
    }
    bool open = (fr_neuron_engine)call->argument[ENGINE].number == FR_NEURON_ANY;
    if (open && suits_scalar(fr_neuron_operator_of(call, OP0), fr_neuron_operator_of(call, OP1)))
        cost->scalar_cycles = fr_neuron_stream_cycles(core, call, DST, DATA, FR_NEURON_SCALAR);
    cost->flops = n * call->argument[DATA].view.partitions * operators;
}

const fr_neuron_instruction fr_neuron_i_tensor_scalar = {
    .name = "tensor_scalar",
    .summary = "one or two operators with numbers: dst = (data op0 operand0) op1 operand1",
    .least_generation = 2,
    .engines =
        FR_NEURON_ON(FR_NEURON_VECTOR) | FR_NEURON_ON(FR_NEURON_SCALAR) | FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "op0", .kind = FR_NEURON_OPERATOR, .required = true, .text = "first operator"},
                   {.name = "operand0", .kind = FR_NEURON_READ_OR_NUMBER, .text = "number or [P, 1] vector"},
                   {.name = "reverse0", .kind = FR_NEURON_FLAG, .text = "operand0 op0 data instead"},
                   {.name = "op1", .kind = FR_NEURON_OPERATOR, .text = "second operator"},
                   {.name = "operand1", .kind = FR_NEURON_READ_OR_NUMBER, .text = "number or [P, 1] vector"},
                   {.name = "reverse1", .kind = FR_NEURON_FLAG, .text = "operand1 op1 (...) instead"},
                   {.name = "engine", .kind = FR_NEURON_ENGINE, .text = "vector, scalar or gpsimd"}},
    .semantics =
        "dst = (data op0 operand0) op1 operand1, in fp32, rounded to dst's dtype; reverse swaps the operands "
        "of "
        "an operator. Bitvec operators work on raw bits. Default engine: Vector; GpSimd for rsqrt and power.",
    .limits =
        "Equal partitions and elements per partition. Both operators bitvec (Vector, integer dtypes) or both "
        "arithmetic; vectors are float32 then. Scalar engine: from generation 3 on, multiply and add, "
        "multiply, or "
        "add. GpSimd: rsqrt and power only. A unary operator takes no operand.",
    .cost = "N cycles, 64 at least; two operators cost the same as one. Vector from generation 3 on with "
            "16-bit data: N/4 "
            "contiguous in SBUF, N/2 when one tile is in PSUM or not contiguous. Scalar of generation 4: N/2 "
            "with "
            "16-bit data. GpSimd: 150 + 4N (guess).",
    .cost_source =
        "NKI API pages up to SDK 2.26 (tensor_scalar); trainium2 and trainium3 architecture guides",
    .example = "nisa.tensor_scalar(dst=c, data=a, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=1.0)",
    .pure = true,
    .engine = choose,
    .check = check,
    .execute = execute,
    .price = price,
};
