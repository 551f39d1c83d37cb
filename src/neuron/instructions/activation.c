/* activation, activation_reduce, activate2: the Scalar engine's function of a scaled and shifted tile.
 *
 * One pipeline, three ways to ask: two fused operators with numbers before the function, the function from the loaded
 * table, and the row's sum (activate2: or extreme) into the lane's accumulator after it. Values for which the engine's
 * table is not valid are refused before anything is written. */
#include "neuron/accumulators.h"
#include "neuron/functions.h"
#include "neuron/instructions.h"

enum { DST, OP, DATA }; /* the same place in all three */
enum { BIAS = 3, SCALE, REDUCE_OP, RESULT, COMMAND };
enum { SUM_REDUCE_OP = 3, SUM_RESULT, SUM_BIAS, SUM_SCALE };
enum { IMM0 = 3, IMM1, OP0, OP1, SLOPE, REVERSE0, REVERSE1, TWO_REDUCE_OP, TWO_RESULT, TWO_COMMAND };
static const int inputs[] = {DATA};

/* What the pipeline does, whichever instruction asked. Operators: NO_OPERATOR or BYPASS: nothing. */
typedef struct pipeline {
    fr_neuron_operator op0, op1;
    bool reverse0, reverse1;
    int operand0, operand1, slope; /* positions; slope -1 when there is none */
    fr_neuron_accumulation sum;
} pipeline;

enum {
    SCALAR_COMMANDS = 1 << FR_NEURON_REDUCE_IDLE | 1 << FR_NEURON_REDUCE_RESET | 1 << FR_NEURON_REDUCE_ADD |
                      1 << FR_NEURON_REDUCE_RESET_ADD
};

static pipeline of_activation(const fr_neuron_call *call, int scale, int bias, int command, int result)
{
    return (pipeline){.op0 = FR_NEURON_MULTIPLY,
                      .op1 = call->argument[bias].given ? FR_NEURON_ADD : FR_NEURON_NO_OPERATOR,
                      .operand0 = scale,
                      .operand1 = bias,
                      .slope = -1,
                      .sum = {.command = command,
                              .result = result,
                              .start = -1,
                              .input = DATA,
                              .op = FR_NEURON_ADD,
                              .allowed = SCALAR_COMMANDS}};
}

static pipeline of_activate2(const fr_neuron_call *call)
{
    return (pipeline){.op0 = fr_neuron_operator_of(call, OP0),
                      .op1 = fr_neuron_operator_of(call, OP1),
                      .reverse0 = call->argument[REVERSE0].number > 0,
                      .reverse1 = call->argument[REVERSE1].number > 0,
                      .operand0 = IMM0,
                      .operand1 = IMM1,
                      .slope = SLOPE,
                      .sum = {.command = TWO_COMMAND,
                              .result = TWO_RESULT,
                              .start = -1,
                              .input = DATA,
                              .op = fr_neuron_operator_of(call, TWO_REDUCE_OP),
                              .allowed = SCALAR_COMMANDS}};
}

static fr_neuron_function function_of(const fr_neuron_call *call)
{
    return (fr_neuron_function)call->argument[OP].number;
}

/* ---- legality ------------------------------------------------------------------------------------------------- */

static fr_status check_common(const fr_neuron *core, const fr_neuron_call *call, const pipeline *p,
                              fr_error *error)
{
    double number = call->argument[OP].number;
    if (!(number > 0 && number < FR_NEURON_FUNCTIONS && number == (double)(int)number))
        return fr_neuron_misuse(core, call, error, "op is no activation function");
    if (function_of(call) == FR_NEURON_PRELU && p->slope < 0)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator, error,
                                "op is prelu, whose slope only activate2 takes");
    FR_TRY(fr_neuron_arithmetic(core, call, DST, error));
    FR_TRY(fr_neuron_arithmetic(core, call, DATA, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, DATA, error));
    FR_TRY(fr_neuron_column(core, call, p->operand0, DATA, true, error));
    FR_TRY(fr_neuron_column(core, call, p->operand1, DATA, false, error));
    return fr_neuron_accumulate_check(core, call, &p->sum, error);
}

/* Scale is fp32; bias any dtype but tfloat32, and before generation 3 a vector, or nothing. */
static fr_status check_bias(const fr_neuron *core, const fr_neuron_call *call, const pipeline *p,
                            fr_error *error)
{
    const fr_neuron_argument *bias = &call->argument[p->operand1];
    if (bias->given && !bias->is_view && bias->number != 0)
        FR_TRY(fr_neuron_generation_at_least(core, call, 3, "a bias that is a number", error));
    if (bias->given && function_of(call) == FR_NEURON_RECIPROCAL)
        FR_TRY(fr_neuron_generation_at_least(core, call, 3, "a bias with op=reciprocal", error));
    if (bias->given && bias->is_view && bias->view.dtype == FR_NEURON_TFLOAT32)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_dtype, error, "bias is tfloat32");
    return FR_OK;
}

/* Sums only: whoever accumulates says so. */
static fr_status check_sum(const fr_neuron *core, const fr_neuron_call *call, const pipeline *p,
                           int reduce_op, fr_error *error)
{
    fr_neuron_operator op = fr_neuron_operator_of(call, reduce_op);
    if (op == FR_NEURON_ADD || (op == FR_NEURON_NO_OPERATOR && !fr_neuron_accumulates(call, &p->sum)))
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator, error, "reduce_op is %s, it must be add",
                            fr_neuron_operator_name(op));
}

static fr_status check_activation(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                  fr_error *error)
{
    (void)engine;
    pipeline p = of_activation(call, SCALE, BIAS, COMMAND, RESULT);
    FR_TRY(check_common(core, call, &p, error));
    FR_TRY(check_bias(core, call, &p, error));
    return check_sum(core, call, &p, REDUCE_OP, error);
}

static fr_status check_activation_reduce(const fr_neuron *core, const fr_neuron_call *call,
                                         fr_neuron_engine engine, fr_error *error)
{
    (void)engine;
    pipeline p = of_activation(call, SUM_SCALE, SUM_BIAS, -1, SUM_RESULT);
    FR_TRY(check_common(core, call, &p, error));
    FR_TRY(check_bias(core, call, &p, error));
    return check_sum(core, call, &p, SUM_REDUCE_OP, error);
}

static fr_status check_activate2(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                 fr_error *error)
{
    (void)engine;
    static const fr_neuron_operator pairs[][2] = {
        {FR_NEURON_MULTIPLY, FR_NEURON_ADD},    {FR_NEURON_MULTIPLY, FR_NEURON_SUBTRACT},
        {FR_NEURON_MULTIPLY, FR_NEURON_BYPASS}, {FR_NEURON_ADD, FR_NEURON_BYPASS},
        {FR_NEURON_SUBTRACT, FR_NEURON_BYPASS}, {FR_NEURON_BYPASS, FR_NEURON_BYPASS}};
    static const fr_neuron_operator sums[] = {FR_NEURON_ADD, FR_NEURON_MAXIMUM, FR_NEURON_MINIMUM,
                                              FR_NEURON_ABS_MAX, FR_NEURON_ABS_MIN};
    pipeline p = of_activate2(call);
    bool known = false;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        known = known || (pairs[i][0] == p.op0 && pairs[i][1] == p.op1);
    if (!known)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator, error, "op0 is %s and op1 %s",
                                fr_neuron_operator_name(p.op0), fr_neuron_operator_name(p.op1));
    if ((p.reverse0 && p.op0 == FR_NEURON_BYPASS) || (p.reverse1 && p.op1 == FR_NEURON_BYPASS))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator, error,
                                "a bypassed operator cannot be reversed");
    if (p.sum.op != FR_NEURON_NO_OPERATOR || fr_neuron_accumulates(call, &p.sum))
        FR_TRY(fr_neuron_operator_among(core, call, TWO_REDUCE_OP, sums, 5, error));
    FR_TRY(fr_neuron_column(core, call, SLOPE, DATA, false, error));
    if (call->argument[IMM0].is_view && call->argument[IMM1].is_view)
        FR_TRY(fr_neuron_same_dtype(core, call, IMM0, IMM1, error));
    return check_common(core, call, &p, error);
}

/* ---- effect --------------------------------------------------------------------------------------------------- */

typedef struct numbers {
    fr_neuron_column_values operand0, operand1, slope;
} numbers;

static void read_numbers(numbers *n, const fr_neuron *core, const fr_neuron_call *call, const pipeline *p,
                         int partitions)
{
    n->slope = (fr_neuron_column_values){.step = 0};
    fr_neuron_column_read(&n->operand0, core, &call->argument[p->operand0], partitions);
    fr_neuron_column_read(&n->operand1, core, &call->argument[p->operand1], partitions);
    if (p->slope >= 0)
        fr_neuron_column_read(&n->slope, core, &call->argument[p->slope], partitions);
}

static void apply(const fr_neuron_rows *rows, fr_neuron_operator op, bool reverse, float *out,
                  const float *in, int64_t count, const float *number)
{
    fr_neuron_scalar_rows *run =
        (reverse ? rows->reversed : rows->scalar)[op == FR_NEURON_NO_OPERATOR ? FR_NEURON_BYPASS : op];
    run((fr_neuron_block){1, count}, out, 0, in, 0, number, 0);
}

/* The function's argument for row p: `in` when nothing is to be done. */
static const float *argument_row(const fr_neuron_rows *rows, const pipeline *line, const numbers *n, int p,
                                 const float *in, float *out, int64_t count)
{
    const float *first = fr_neuron_column_at(&n->operand0, p), *second = fr_neuron_column_at(&n->operand1, p);
    bool plain = line->op0 == FR_NEURON_BYPASS || (line->op0 == FR_NEURON_MULTIPLY && *first == 1.0f);
    bool last = line->op1 == FR_NEURON_BYPASS || line->op1 == FR_NEURON_NO_OPERATOR;
    if (plain && last)
        return in;
    if (line->op0 == FR_NEURON_MULTIPLY &&
        line->op1 == FR_NEURON_ADD) { /* reversing either changes nothing */
        rows->affine(out, in, count, *first, *second);
        return out;
    }
    apply(rows, line->op0, line->reverse0, out, in, count, first);
    if (!last)
        apply(rows, line->op1, line->reverse1, out, out, count, second);
    return out;
}

/* Refuses arguments outside the range of the function's table. Nothing is written yet. */
static fr_status check_range(fr_neuron *core, const fr_neuron_call *call, const pipeline *line,
                             const numbers *n, fr_error *error)
{
    const fr_neuron_function_facts *facts = fr_neuron_function_facts_of(function_of(call));
    if (facts->continues || (facts->least == 0 && facts->most == 0))
        return FR_OK;
    const fr_neuron_rows *rows = fr_neuron_rows_best();
    fr_neuron_lanes data = fr_neuron_lanes_of(core, &call->argument[DATA].view);
    float *scratch = fr_neuron_scratch_row(core, &data), *argument = fr_neuron_scratch_row(core, &data);
    if (!scratch || !argument)
        return fr_error_memory(error, (size_t)data.row.elements * 8, "rows");
    for (int p = 0; p < data.partitions; p++) {
        const float *x =
            argument_row(rows, line, n, p, fr_neuron_row(&data, p, scratch), argument, data.row.elements);
        int64_t bad = fr_neuron_function_outside(function_of(call), x, data.row.elements);
        if (bad >= 0)
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_activation_range, error,
                                    "%s of %.9g (partition %d, element %lld); its range is %s[%.9g, %.9g]",
                                    fr_neuron_function_name(function_of(call)), (double)x[bad], p,
                                    (long long)bad, facts->by_size ? "+-" : "", facts->least, facts->most);
    }
    return FR_OK;
}

static fr_status run(fr_neuron *core, const fr_neuron_call *call, const pipeline *line, fr_error *error)
{
    fr_neuron_streams s;
    numbers n;
    float *lane;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, inputs, 1, error));
    read_numbers(&n, core, call, line, s.partitions);
    FR_TRY(check_range(core, call, line, &n, error));
    FR_TRY(fr_neuron_accumulate_begin(core, call, &line->sum, FR_NEURON_SCALAR, &lane, error));
    fr_neuron_map_row *function = s.rows->map[function_of(call)];
    while (fr_neuron_streams_next(&s, &p)) {
        for (int r = 0; r < s.block.rows; r++) {
            float *out = s.out.at + r * s.out.stride;
            const float *x =
                argument_row(s.rows, line, &n, p + r, s.in[0].at + r * s.in[0].stride, out, s.count);
            function(out, x, s.count, *fr_neuron_column_at(&n.slope, p + r));
        }
        if (fr_neuron_accumulates(call, &line->sum))
            s.rows->fold[line->sum.op](s.block, lane + p, s.out.at, s.out.stride);
        fr_neuron_streams_done(&s, p);
    }
    fr_neuron_accumulate_end(core, call, &line->sum, lane, false);
    return FR_OK;
}

static fr_status execute_activation(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                    fr_error *error)
{
    (void)engine;
    pipeline p = of_activation(call, SCALE, BIAS, COMMAND, RESULT);
    return run(core, call, &p, error);
}

static fr_status execute_activation_reduce(fr_neuron *core, const fr_neuron_call *call,
                                           fr_neuron_engine engine, fr_error *error)
{
    (void)engine;
    pipeline p = of_activation(call, SUM_SCALE, SUM_BIAS, -1, SUM_RESULT);
    return run(core, call, &p, error);
}

static fr_status execute_activate2(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                   fr_error *error)
{
    (void)engine;
    pipeline p = of_activate2(call);
    return run(core, call, &p, error);
}

/* ---- cost ----------------------------------------------------------------------------------------------------- */

static void price_with(const fr_neuron *core, const fr_neuron_call *call, int result, fr_neuron_cost *cost)
{
    double n = fr_neuron_extent(call, DATA);
    cost->cycles = fr_neuron_floored(core, FR_NEURON_SCALAR, n);
    if (fr_neuron_operand(call, result))
        cost->cycles += fr_neuron_floored(core, FR_NEURON_SCALAR, 0);
    cost->table = (uint8_t)fr_neuron_function_facts_of(function_of(call))->table;
    cost->guess = fr_neuron_function_facts_of(function_of(call))->table_guessed;
    cost->flops = 3 * n * call->argument[DATA].view.partitions;
}

static void price_activation(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_neuron_cost *cost)
{
    (void)engine;
    price_with(core, call, RESULT, cost);
}

static void price_activation_reduce(const fr_neuron *core, const fr_neuron_call *call,
                                    fr_neuron_engine engine, fr_neuron_cost *cost)
{
    (void)engine;
    price_with(core, call, SUM_RESULT, cost);
}

static void price_activate2(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                            fr_neuron_cost *cost)
{
    (void)engine;
    price_with(core, call, TWO_RESULT, cost);
}

/* ---- descriptors ---------------------------------------------------------------------------------------------- */

#define RANGES                                                                                               \
    "log [2^-64, 2^64], sqrt [2^-116, 2^118], rsqrt [2^-87, 2^97], reciprocal +-[2^-42, 2^42], arctan "      \
    "[-pi/2, pi/2]: an "                                                                                     \
    "argument outside is refused. sin is right in [-pi, pi] and continues as a cubic outside (sin(9) is "    \
    "27.65)."
#define TABLES                                                                                               \
    " A function whose table is not loaded costs a table load first (1.29 us); copy, square, relu, prelu, "  \
    "sign and abs "                                                                                          \
    "are in every table, exp and log share one; which others share is a guess."

const fr_neuron_instruction fr_neuron_i_activation = {
    .name = "activation",
    .summary = "dst = op(data * scale + bias), and optionally the row's sum",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_SCALAR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "op", .kind = FR_NEURON_FUNCTION, .required = true, .text = "activation function"},
         {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "bias",
          .kind = FR_NEURON_READ_OR_NUMBER,
          .text = "[P, 1] vector, or number (generation 3)"},
         {.name = "scale", .kind = FR_NEURON_READ_OR_NUMBER, .number = 1, .text = "number or [P, 1] float32"},
         {.name = "reduce_op", .kind = FR_NEURON_OPERATOR, .text = "add"},
         {.name = "reduce_res", .kind = FR_NEURON_WRITE, .text = "[P, 1] tile for the accumulators"},
         {.name = "reduce_cmd",
          .kind = FR_NEURON_REDUCE_COMMAND,
          .number = FR_NEURON_REDUCE_IDLE,
          .text = "idle, reset, reduce or reset_reduce"}},
    .semantics =
        "dst = op(data * scale + bias) in fp32, rounded to dst's dtype. reduce adds the row to the lane's "
        "accumulator, reset_reduce sets it to the row's sum; reduce_res gets the accumulators. They last "
        "from "
        "one instruction to the next. " RANGES,
    .limits = "Equal partitions and elements per partition. scale is float32, bias not tfloat32; before "
              "generation 3 bias "
              "is a vector, and none with reciprocal. reduce_op is add. prelu needs activate2.",
    .cost = "max(64, N) cycles, and 64 more to read the accumulators out." TABLES,
    .cost_source =
        "NKI API pages up to SDK 2.26 (activation); names of table sets: runtime guide to NEFF files",
    .example = "nisa.activation(dst=c, op=nl.exp, data=a, scale=0.5)",
    .engine = fr_neuron_on_scalar,
    .check = check_activation,
    .execute = execute_activation,
    .price = price_activation,
};

const fr_neuron_instruction fr_neuron_i_activation_reduce = {
    .name = "activation_reduce",
    .summary = "dst = op(data * scale + bias), and the row's sum",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_SCALAR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "op", .kind = FR_NEURON_FUNCTION, .required = true, .text = "activation function"},
         {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "reduce_op", .kind = FR_NEURON_OPERATOR, .required = true, .text = "add"},
         {.name = "reduce_res", .kind = FR_NEURON_WRITE, .text = "[P, 1] tile for the sum"},
         {.name = "bias",
          .kind = FR_NEURON_READ_OR_NUMBER,
          .text = "[P, 1] vector, or number (generation 3)"},
         {.name = "scale",
          .kind = FR_NEURON_READ_OR_NUMBER,
          .number = 1,
          .text = "number or [P, 1] float32"}},
    .semantics =
        "activation with reduce_cmd reset_reduce: dst = op(data * scale + bias), reduce_res = the row's sum.",
    .limits = "As activation.",
    .cost = "max(64, N) + 64 cycles." TABLES,
    .cost_source = "NKI API pages up to SDK 2.26 (activation_reduce)",
    .example = "s = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.activation_reduce(dst=c, op=nl.square, data=a, reduce_op=nl.add, reduce_res=s)",
    .engine = fr_neuron_on_scalar,
    .check = check_activation_reduce,
    .execute = execute_activation_reduce,
    .price = price_activation_reduce,
};

const fr_neuron_instruction fr_neuron_i_activate2 = {
    .name = "activate2",
    .summary = "dst = op((data op0 imm0) op1 imm1), and optionally the row's sum or extreme",
    .least_generation = 4,
    .engines = FR_NEURON_ON(FR_NEURON_SCALAR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "op", .kind = FR_NEURON_FUNCTION, .required = true, .text = "activation function"},
         {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "imm0",
          .kind = FR_NEURON_READ_OR_NUMBER,
          .required = true,
          .text = "number or [P, 1] float32"},
         {.name = "imm1",
          .kind = FR_NEURON_READ_OR_NUMBER,
          .required = true,
          .text = "number or [P, 1] vector"},
         {.name = "op0",
          .kind = FR_NEURON_OPERATOR,
          .required = true,
          .text = "multiply, add, subtract, bypass"},
         {.name = "op1", .kind = FR_NEURON_OPERATOR, .required = true, .text = "add, subtract, bypass"},
         {.name = "relu_param", .kind = FR_NEURON_READ_OR_NUMBER, .text = "slope of prelu"},
         {.name = "reverse0", .kind = FR_NEURON_FLAG, .text = "imm0 op0 data instead"},
         {.name = "reverse1", .kind = FR_NEURON_FLAG, .text = "imm1 op1 (...) instead"},
         {.name = "reduce_op", .kind = FR_NEURON_OPERATOR, .text = "add, maximum, minimum, abs_max, abs_min"},
         {.name = "reduce_res", .kind = FR_NEURON_WRITE, .text = "[P, 1] tile for the accumulators"},
         {.name = "reduce_cmd",
          .kind = FR_NEURON_REDUCE_COMMAND,
          .number = FR_NEURON_REDUCE_IDLE,
          .text = "idle, reset, reduce or reset_reduce"}},
    .semantics = "dst = op((data op0 imm0) op1 imm1) in fp32, rounded to dst's dtype; reduce commands as in "
                 "activation, "
                 "with a choice of operator. " RANGES,
    .limits = "(op0, op1) is one of (multiply, add), (multiply, subtract), (multiply, bypass), (add, "
              "bypass), (subtract, "
              "bypass), (bypass, bypass). Vectors imm0 and imm1 have one dtype.",
    .cost = "max(64, N) cycles, and 64 more to read the accumulators out." TABLES,
    .cost_source = "as activation; trainium3 architecture guide",
    .example = "nisa.activate2(dst=c, op=nl.gelu, data=a, imm0=2.0, imm1=0.5, op0=nl.multiply, op1=nl.add)",
    .engine = fr_neuron_on_scalar,
    .check = check_activate2,
    .execute = execute_activate2,
    .price = price_activate2,
};
