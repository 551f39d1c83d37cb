/* range_select: keep the columns of a row whose number lies between two bounds of that row, as attention over sequences
 * of different lengths does; the rest becomes the least float. */
#include "neuron/accumulators.h"
#include "neuron/instructions.h"

#include <float.h>

enum { DST, ON_TRUE, COMPARE0, COMPARE1, BOUND0, BOUND1, COMMAND, RESULT, REDUCE_OP, START, ON_FALSE };
static const fr_neuron_operator maximum[] = {FR_NEURON_MAXIMUM};
static const fr_neuron_operator comparisons[] = {FR_NEURON_EQUAL, FR_NEURON_LESS, FR_NEURON_LESS_EQUAL,
                                                 FR_NEURON_GREATER, FR_NEURON_GREATER_EQUAL};

static fr_neuron_accumulation accumulation(void)
{
    return (fr_neuron_accumulation){.command = COMMAND,
                                    .result = RESULT,
                                    .start = -1,
                                    .input = ON_TRUE,
                                    .op = FR_NEURON_MAXIMUM,
                                    .allowed = 1 << FR_NEURON_REDUCE_IDLE | 1 << FR_NEURON_REDUCE_RESET |
                                               1 << FR_NEURON_REDUCE_ADD | 1 << FR_NEURON_REDUCE_RESET_ADD};
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    fr_neuron_accumulation a = accumulation();
    const fr_neuron_view *data = &call->argument[ON_TRUE].view;
    FR_TRY(fr_neuron_operator_among(core, call, COMPARE0, comparisons, 5, error));
    FR_TRY(fr_neuron_operator_among(core, call, COMPARE1, comparisons, 5, error));
    FR_TRY(fr_neuron_operator_among(core, call, REDUCE_OP, maximum, 1, error));
    if (!fr_neuron_float_dtype(data->dtype))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_dtype, error,
                                "on_true_tile is %s, it must be a float", fr_neuron_dtype_name(data->dtype));
    FR_TRY(fr_neuron_arithmetic(core, call, DST, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, ON_TRUE, error));
    FR_TRY(fr_neuron_column(core, call, BOUND0, ON_TRUE, true, error));
    FR_TRY(fr_neuron_column(core, call, BOUND1, ON_TRUE, true, error));
    FR_TRY(fr_neuron_whole_within(core, call, START, -16777216, 16777216 - fr_neuron_extent(call, ON_TRUE),
                                  error));
    if (call->argument[ON_FALSE].number != (double)-FLT_MAX &&
        (float)call->argument[ON_FALSE].number != -FLT_MAX)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_value, error,
                                "on_false_value is %g, it must be %.9g", call->argument[ON_FALSE].number,
                                (double)-FLT_MAX);
    return fr_neuron_accumulate_check(core, call, &a, error);
}

static bool holds(fr_neuron_operator op, float a, float b)
{
    switch (op) {
    case FR_NEURON_EQUAL: return a == b;
    case FR_NEURON_LESS: return a < b;
    case FR_NEURON_LESS_EQUAL: return a <= b;
    case FR_NEURON_GREATER: return a > b;
    default: return a >= b;
    }
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    static const int inputs[] = {ON_TRUE};
    fr_neuron_accumulation a = accumulation();
    fr_neuron_streams s;
    fr_neuron_column_values bound0, bound1;
    fr_neuron_operator op0 = fr_neuron_operator_of(call, COMPARE0),
                       op1 = fr_neuron_operator_of(call, COMPARE1);
    float start = (float)call->argument[START].number, *lane;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, inputs, 1, error));
    FR_TRY(fr_neuron_accumulate_begin(core, call, &a, engine, &lane, error));
    fr_neuron_column_read(&bound0, core, &call->argument[BOUND0], s.partitions);
    fr_neuron_column_read(&bound1, core, &call->argument[BOUND1], s.partitions);
    while (fr_neuron_streams_next(&s, &p)) {
        for (int64_t r = 0; r < s.block.rows; r++) {
            const float *data = s.in[0].at + r * s.in[0].stride;
            float *out = s.out.at + r * s.out.stride;
            float b0 = *fr_neuron_column_at(&bound0, p + (int)r),
                  b1 = *fr_neuron_column_at(&bound1, p + (int)r);
            for (int64_t i = 0; i < s.count; i++)
                out[i] =
                    holds(op0, start + (float)i, b0) && holds(op1, start + (float)i, b1) ? data[i] : -FLT_MAX;
        }
        if (fr_neuron_accumulates(call, &a))
            s.rows->fold[FR_NEURON_MAXIMUM](s.block, lane + p, s.out.at, s.out.stride);
        fr_neuron_streams_done(&s, p);
    }
    fr_neuron_accumulate_end(core, call, &a, lane, false);
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    double n = fr_neuron_extent(call, ON_TRUE);
    cost->cycles = fr_neuron_floored(core, engine, n);
    if (fr_neuron_operand(call, RESULT))
        cost->cycles += fr_neuron_floored(core, engine, 0);
    cost->flops = n * call->argument[ON_TRUE].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_range_select = {
    .name = "range_select",
    .summary = "keep the columns between two bounds of each row, and their maximum",
    .least_generation = 3,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "on_true_tile", .kind = FR_NEURON_READ, .required = true, .text = "float tile"},
         {.name = "comp_op0", .kind = FR_NEURON_OPERATOR, .required = true, .text = "comparison with bound0"},
         {.name = "comp_op1", .kind = FR_NEURON_OPERATOR, .required = true, .text = "comparison with bound1"},
         {.name = "bound0", .kind = FR_NEURON_READ, .required = true, .text = "[P, 1] float32"},
         {.name = "bound1", .kind = FR_NEURON_READ, .required = true, .text = "[P, 1] float32"},
         {.name = "reduce_cmd",
          .kind = FR_NEURON_REDUCE_COMMAND,
          .number = FR_NEURON_REDUCE_RESET_ADD,
          .text = "idle, reset, reduce or reset_reduce"},
         {.name = "reduce_res", .kind = FR_NEURON_WRITE, .text = "[P, 1] tile for the maximum"},
         {.name = "reduce_op", .kind = FR_NEURON_OPERATOR, .number = FR_NEURON_MAXIMUM, .text = "maximum"},
         {.name = "range_start", .kind = FR_NEURON_INTEGER, .text = "number of the first column"},
         {.name = "on_false_value",
          .kind = FR_NEURON_NUMBER,
          .number = -0x1.fffffep127,
          .text = "-3.4028235e38, nothing else"}},
    .semantics =
        "j = range_start + column, in fp32. dst = (j comp_op0 bound0) and (j comp_op1 bound1) ? on_true_tile "
        ": "
        "-3.4028235e38, which becomes -infinity in a 16- or 8-bit dst. The accumulators take the maximum.",
    .limits = "Float tile, float32 bounds, comparisons equal, less, less_equal, greater, greater_equal. "
              "Column numbers "
              "below 2^24.",
    .cost = "max(64, N) cycles, and 64 more to read the accumulators out.",
    .cost_source = "NKI API pages up to SDK 2.26 (range_select)",
    .example = "lo = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
               "hi = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.memset(dst=lo, value=4.0)\n"
               "nisa.memset(dst=hi, value=32.0)\n"
               "nisa.range_select(dst=c, on_true_tile=a, comp_op0=nl.greater_equal, comp_op1=nl.less, "
               "bound0=lo, bound1=hi)",
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
