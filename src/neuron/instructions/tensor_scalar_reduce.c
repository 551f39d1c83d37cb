/* tensor_scalar_reduce: one operator with a number, and the row's sum, product or extreme on the way out. */
#include "neuron/accumulators.h"
#include "neuron/instructions.h"

enum { DST, DATA, OP0, OPERAND0, REDUCE_OP, RESULT, REVERSE0, COMMAND, INIT, NEGATE };
static const int tiles[] = {DST, DATA};
static const fr_neuron_operator reductions[] = {FR_NEURON_ADD, FR_NEURON_MULTIPLY, FR_NEURON_MAXIMUM,
                                                FR_NEURON_MINIMUM};

static fr_neuron_accumulation accumulation(const fr_neuron_call *call)
{
    return (fr_neuron_accumulation){.command = COMMAND,
                                    .result = RESULT,
                                    .start = INIT,
                                    .input = DATA,
                                    .op = fr_neuron_operator_of(call, REDUCE_OP),
                                    .allowed = 1 << FR_NEURON_REDUCE_ADD | 1 << FR_NEURON_REDUCE_RESET_ADD |
                                               1 << FR_NEURON_REDUCE_LOAD_ADD};
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    fr_neuron_accumulation a = accumulation(call);
    FR_TRY(fr_neuron_check_operator(core, call, OP0, engine, FR_NEURON_TAKES_BINARY | FR_NEURON_TAKES_UNARY,
                                    error));
    FR_TRY(fr_neuron_operator_among(core, call, REDUCE_OP, reductions, 4, error));
    FR_TRY(fr_neuron_operator_dtypes(core, call, fr_neuron_operator_of(call, OP0), tiles, 2, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, DATA, error));
    FR_TRY(fr_neuron_operator_scalar(core, call, OP0, OPERAND0, DATA, error));
    if (call->argument[REVERSE0].number > 0)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_value, error,
                                "reverse0 is not supported here yet");
    return fr_neuron_accumulate_check(core, call, &a, error);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    fr_neuron_accumulation a = accumulation(call);
    fr_neuron_streams s;
    fr_neuron_column_values first;
    float *lane;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, tiles + 1, 1, error));
    FR_TRY(fr_neuron_accumulate_begin(core, call, &a, engine, &lane, error));
    fr_neuron_column_read(&first, core, &call->argument[OPERAND0], s.partitions);
    while (fr_neuron_streams_next(&s, &p)) {
        s.rows->scalar[fr_neuron_operator_of(call, OP0)](s.block, s.out.at, s.out.stride, s.in[0].at,
                                                         s.in[0].stride, fr_neuron_column_at(&first, p),
                                                         first.step);
        s.rows->fold[a.op](s.block, lane + p, s.out.at, s.out.stride);
        fr_neuron_streams_done(&s, p);
    }
    fr_neuron_accumulate_end(core, call, &a, lane, call->argument[NEGATE].number > 0);
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    double n = fr_neuron_extent(call, DATA), floor = fr_neuron_floored(core, engine, 0);
    cost->cycles = fr_neuron_floored(core, engine, n) + (fr_neuron_operand(call, RESULT) ? floor : 0);
    cost->flops = 2 * n * call->argument[DATA].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_tensor_scalar_reduce = {
    .name = "tensor_scalar_reduce",
    .summary = "dst = data op0 operand0, and its reduction along the row",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "op0", .kind = FR_NEURON_OPERATOR, .required = true, .text = "arithmetic operator"},
         {.name = "operand0", .kind = FR_NEURON_READ_OR_NUMBER, .text = "number or [P, 1] vector"},
         {.name = "reduce_op",
          .kind = FR_NEURON_OPERATOR,
          .required = true,
          .text = "add, multiply, maximum, minimum"},
         {.name = "reduce_res", .kind = FR_NEURON_WRITE, .text = "[P, 1] tile for the result"},
         {.name = "reverse0", .kind = FR_NEURON_FLAG, .text = "must be false"},
         {.name = "reduce_cmd",
          .kind = FR_NEURON_REDUCE_COMMAND,
          .number = FR_NEURON_REDUCE_RESET_ADD,
          .text = "reset_reduce, reduce or load_reduce"},
         {.name = "reduce_init", .kind = FR_NEURON_READ_OR_NUMBER, .text = "start of load_reduce"},
         {.name = "reduce_res_negate", .kind = FR_NEURON_FLAG, .text = "write minus the result"}},
    .semantics =
        "dst = data op0 operand0 in fp32; each lane's accumulator takes in the row before it is rounded to "
        "dst's dtype; reduce_res gets the accumulators, negated when asked. All free axes are reduced.",
    .limits =
        "Equal partitions and elements per partition. Arithmetic op0. reduce_op is add, multiply, maximum or "
        "minimum. reduce_init comes with load_reduce and only then. reverse0 is not supported.",
    .cost = "max(64, N) cycles, and 64 more to read the accumulators out.",
    .cost_source = "NKI API pages up to SDK 2.26 (tensor_scalar_reduce)",
    .example = "s = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.tensor_scalar_reduce(dst=c, data=a, op0=nl.multiply, operand0=2.0, reduce_op=nl.add, "
               "reduce_res=s)",
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
