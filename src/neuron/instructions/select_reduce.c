/* select_reduce: a tile where the predicate holds, another value elsewhere, and the row's maximum on the way. */
#include "neuron/accumulators.h"
#include "neuron/instructions.h"

enum { DST, PREDICATE, ON_TRUE, ON_FALSE, RESULT, COMMAND, REDUCE_OP, REVERSE };
static const fr_neuron_operator maximum[] = {FR_NEURON_MAXIMUM};

static fr_neuron_accumulation accumulation(void)
{
    return (fr_neuron_accumulation){.command = COMMAND,
                                    .result = RESULT,
                                    .start = -1,
                                    .input = ON_TRUE,
                                    .op = FR_NEURON_MAXIMUM,
                                    .allowed = 1 << FR_NEURON_REDUCE_IDLE | 1 << FR_NEURON_REDUCE_ADD |
                                               1 << FR_NEURON_REDUCE_RESET_ADD};
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    fr_neuron_accumulation a = accumulation();
    const fr_neuron_view *data = &call->argument[ON_TRUE].view, *result = fr_neuron_operand(call, RESULT);
    FR_TRY(fr_neuron_dtype_allowed(core, call, PREDICATE,
                                   FR_NEURON_OF(FR_NEURON_INT8) | FR_NEURON_OF(FR_NEURON_UINT8) |
                                       FR_NEURON_OF(FR_NEURON_INT16) | FR_NEURON_OF(FR_NEURON_UINT16),
                                   error));
    if (data->dtype == FR_NEURON_TFLOAT32 || data->dtype == FR_NEURON_INT32 ||
        data->dtype == FR_NEURON_UINT32)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_dtype, error, "on_true is %s",
                                fr_neuron_dtype_name(data->dtype));
    FR_TRY(fr_neuron_arithmetic(core, call, ON_TRUE, error));
    FR_TRY(fr_neuron_arithmetic(core, call, DST, error));
    FR_TRY(fr_neuron_same_elements(core, call, ON_TRUE, PREDICATE, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, ON_TRUE, error));
    FR_TRY(fr_neuron_column(core, call, ON_FALSE, ON_TRUE, false, error));
    FR_TRY(fr_neuron_not_both_psum(core, call, ON_TRUE, PREDICATE, error));
    FR_TRY(fr_neuron_operator_among(core, call, REDUCE_OP, maximum, 1, error));
    if (result && !fr_neuron_float_dtype(result->dtype))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_dtype, error,
                                "reduce_res is %s, it must be a float", fr_neuron_dtype_name(result->dtype));
    return fr_neuron_accumulate_check(core, call, &a, error);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    static const int inputs[] = {PREDICATE, ON_TRUE};
    fr_neuron_accumulation a = accumulation();
    fr_neuron_streams s;
    fr_neuron_column_values other;
    bool reverse = call->argument[REVERSE].number > 0;
    float *lane;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, inputs, 2, error));
    FR_TRY(fr_neuron_accumulate_begin(core, call, &a, engine, &lane, error));
    fr_neuron_column_read(&other, core, &call->argument[ON_FALSE], s.partitions);
    while (fr_neuron_streams_next(&s, &p)) {
        for (int64_t r = 0; r < s.block.rows; r++) {
            const float *predicate = s.in[0].at + r * s.in[0].stride, *data = s.in[1].at + r * s.in[1].stride;
            float *out = s.out.at + r * s.out.stride, no = *fr_neuron_column_at(&other, p + (int)r);
            for (int64_t i = 0; i < s.count; i++)
                out[i] = (predicate[i] != 0) != reverse ? data[i] : no;
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
    bool psum = fr_neuron_in_psum(call, ON_TRUE) || fr_neuron_in_psum(call, PREDICATE);
    double n = fr_neuron_extent(call, ON_TRUE);
    cost->cycles = fr_neuron_floored(core, engine, psum ? n : 2 * n);
    if (fr_neuron_operand(call, RESULT))
        cost->cycles += fr_neuron_floored(core, engine, 0);
    cost->flops = n * call->argument[ON_TRUE].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_select_reduce = {
    .name = "select_reduce",
    .summary = "choose by a predicate, and the maximum of what was chosen",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "predicate",
          .kind = FR_NEURON_READ,
          .required = true,
          .text = "int8, uint8, int16 or uint16"},
         {.name = "on_true", .kind = FR_NEURON_READ, .required = true, .text = "tile"},
         {.name = "on_false",
          .kind = FR_NEURON_READ_OR_NUMBER,
          .required = true,
          .text = "number or [P, 1] vector"},
         {.name = "reduce_res", .kind = FR_NEURON_WRITE, .text = "[P, 1] float tile for the maximum"},
         {.name = "reduce_cmd",
          .kind = FR_NEURON_REDUCE_COMMAND,
          .number = FR_NEURON_REDUCE_IDLE,
          .text = "idle, reset_reduce or reduce"},
         {.name = "reduce_op", .kind = FR_NEURON_OPERATOR, .number = FR_NEURON_MAXIMUM, .text = "maximum"},
         {.name = "reverse_pred", .kind = FR_NEURON_FLAG, .text = "choose on_true where predicate is 0"}},
    .semantics = "dst = predicate != 0 ? on_true : on_false, through fp32; the accumulators take the maximum "
                 "of each row "
                 "unless reduce_cmd is idle.",
    .limits = "Equal partitions and elements per partition. on_true and predicate not both in PSUM; on_true "
              "not tfloat32, "
              "int32 or uint32. reduce_op is maximum.",
    .cost =
        "2N cycles, N with an input in PSUM, 64 at least; 64 more to read the accumulators out (guess: as "
        "tensor_copy_predicated).",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "m = nl.ndarray((128, 64), dtype=nl.uint8, buffer=nl.sbuf)\n"
               "nisa.memset(dst=m, value=1)\n"
               "nisa.select_reduce(dst=c, predicate=m, on_true=a, on_false=-1.0)",
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
