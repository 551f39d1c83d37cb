/* tensor_scalar_cumulative: running sums, products and extremes of a row, after an operator with a number. */
#include "neuron/accumulators.h"
#include "neuron/instructions.h"
#include "neuron/rows/scan.h"

enum { DST, SRC, OP0, OP1, IMM0, IMM1, COMMAND };
static const int tiles[] = {DST, SRC};
static const fr_neuron_operator running[] = {FR_NEURON_ADD, FR_NEURON_SUBTRACT, FR_NEURON_MULTIPLY,
                                             FR_NEURON_MAXIMUM, FR_NEURON_MINIMUM};
enum {
    DTYPES = FR_NEURON_OF(FR_NEURON_BFLOAT16) | FR_NEURON_OF(FR_NEURON_FLOAT16) |
             FR_NEURON_OF(FR_NEURON_FLOAT32) | FR_NEURON_OF(FR_NEURON_FLOAT8_E4M3) |
             FR_NEURON_OF(FR_NEURON_FLOAT8_E5M2) | FR_NEURON_OF(FR_NEURON_FLOAT8_E3M4) |
             FR_NEURON_OF(FR_NEURON_FLOAT8_E4M3FN) | FR_NEURON_OF(FR_NEURON_UINT8) |
             FR_NEURON_OF(FR_NEURON_UINT16) | FR_NEURON_OF(FR_NEURON_INT8) | FR_NEURON_OF(FR_NEURON_INT16)
};

static fr_neuron_accumulation accumulation(const fr_neuron_call *call)
{
    return (fr_neuron_accumulation){.command = COMMAND,
                                    .result = -1,
                                    .start = IMM1,
                                    .input = SRC,
                                    .op = fr_neuron_operator_of(call, OP1),
                                    .allowed = 1 << FR_NEURON_REDUCE_ADD | 1 << FR_NEURON_REDUCE_RESET_ADD |
                                               1 << FR_NEURON_REDUCE_LOAD_ADD};
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    fr_neuron_accumulation a = accumulation(call);
    FR_TRY(fr_neuron_check_operator(core, call, OP0, engine, FR_NEURON_TAKES_BINARY | FR_NEURON_TAKES_UNARY,
                                    error));
    FR_TRY(fr_neuron_operator_among(core, call, OP1, running, 5, error));
    for (int i = 0; i < 2; i++)
        FR_TRY(fr_neuron_dtype_allowed(core, call, tiles[i], DTYPES, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, SRC, error));
    FR_TRY(fr_neuron_operator_scalar(core, call, OP0, IMM0, SRC, error));
    return fr_neuron_accumulate_check(core, call, &a, error);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    fr_neuron_accumulation a = accumulation(call);
    fr_neuron_scan scan = {.op0 = a.op, .op1 = FR_NEURON_BYPASS};
    fr_neuron_operator op0 = fr_neuron_operator_of(call, OP0);
    fr_neuron_streams s;
    fr_neuron_column_values first;
    float *lane;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, tiles + 1, 1, error));
    FR_TRY(fr_neuron_accumulate_begin(core, call, &a, engine, &lane, error));
    fr_neuron_column_read(&first, core, &call->argument[IMM0], s.partitions);
    while (fr_neuron_streams_next(&s, &p)) {
        s.rows->scalar[op0](s.block, s.out.at, s.out.stride, s.in[0].at, s.in[0].stride,
                            fr_neuron_column_at(&first, p), first.step);
        fr_neuron_scan_rows(&scan, s.block, s.out.at, s.out.stride, s.out.at, s.out.stride, NULL, 0,
                            lane + p);
        fr_neuron_streams_done(&s, p);
    }
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = 2 * fr_neuron_extent(call, SRC);
    cost->flops = cost->cycles * call->argument[SRC].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_tensor_scalar_cumulative = {
    .name = "tensor_scalar_cumulative",
    .summary = "running sum, product or extreme of each row",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "op0",
                    .kind = FR_NEURON_OPERATOR,
                    .required = true,
                    .text = "arithmetic operator with imm0"},
                   {.name = "op1",
                    .kind = FR_NEURON_OPERATOR,
                    .required = true,
                    .text = "add, subtract, multiply, maximum or minimum"},
                   {.name = "imm0",
                    .kind = FR_NEURON_READ_OR_NUMBER,
                    .required = true,
                    .text = "number or [P, 1] vector"},
                   {.name = "imm1", .kind = FR_NEURON_READ_OR_NUMBER, .text = "start of load_reduce"},
                   {.name = "reduce_cmd",
                    .kind = FR_NEURON_REDUCE_COMMAND,
                    .number = FR_NEURON_REDUCE_RESET_ADD,
                    .text = "reset_reduce, reduce or load_reduce"}},
    .semantics = "r = (src[i] op0 imm0) op1 r; dst[i] = r, in fp32, rounded to dst's dtype. r is the lane's "
                 "accumulator: "
                 "reset to op1's identity (0, 1 or an infinity), kept, or loaded from imm1.",
    .limits = "Equal partitions and elements per partition. int32 and uint32 are not taken. imm1 comes with "
              "load_reduce "
              "and only then.",
    .cost = "2N cycles, 64 at least (guess: as tensor_tensor_scan).",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "nisa.tensor_scalar_cumulative(dst=c, src=a, op0=nl.multiply, op1=nl.add, imm0=1.0)",
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
