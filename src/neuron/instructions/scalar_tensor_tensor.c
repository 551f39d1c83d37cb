/* scalar_tensor_tensor: a number, then a tile: (data op0 operand0) op1 operand1, for the price of the second alone. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

enum { DST, DATA, OP0, OPERAND0, OP1, OPERAND1, REVERSE0, REVERSE1 };
static const int tiles[] = {DST, DATA, OPERAND1};

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    FR_TRY(fr_neuron_check_operator(core, call, OP0, engine, FR_NEURON_TAKES_BINARY | FR_NEURON_TAKES_UNARY,
                                    error));
    FR_TRY(fr_neuron_check_operator(core, call, OP1, engine, FR_NEURON_TAKES_BINARY, error));
    FR_TRY(fr_neuron_operator_dtypes(core, call, fr_neuron_operator_of(call, OP0), tiles, 3, error));
    FR_TRY(fr_neuron_same_elements(core, call, DATA, OPERAND1, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, DATA, error));
    FR_TRY(fr_neuron_operator_scalar(core, call, OP0, OPERAND0, DATA, error));
    return fr_neuron_not_both_psum(core, call, DATA, OPERAND1, error);
}

/* Between the two operators a block lives in its own scratch: dst may be operand1 itself. */
static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    fr_neuron_streams s;
    fr_neuron_column_values first;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, tiles + 1, 2, error));
    float *between = fr_neuron_scratch(core, s.block_rows * s.count * 4);
    if (!between)
        return fr_error_memory(error, (size_t)(s.block_rows * s.count * 4), "a block of rows");
    fr_neuron_column_read(&first, core, &call->argument[OPERAND0], s.partitions);
    fr_neuron_operator op0 = fr_neuron_operator_of(call, OP0), op1 = fr_neuron_operator_of(call, OP1);
    fr_neuron_scalar_rows *apply0 =
        (call->argument[REVERSE0].number > 0 ? s.rows->reversed : s.rows->scalar)[op0];
    bool reverse = call->argument[REVERSE1].number > 0;
    while (fr_neuron_streams_next(&s, &p)) {
        apply0(s.block, between, s.count, s.in[0].at, s.in[0].stride, fr_neuron_column_at(&first, p),
               first.step);
        if (reverse)
            s.rows->pair[op1](s.block, s.out.at, s.out.stride, s.in[1].at, s.in[1].stride, between, s.count);
        else
            s.rows->pair[op1](s.block, s.out.at, s.out.stride, between, s.count, s.in[1].at, s.in[1].stride);
        fr_neuron_streams_done(&s, p);
    }
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    double n = fr_neuron_extent(call, DATA);
    bool quick = call->argument[DATA].view.dtype == FR_NEURON_BFLOAT16 &&
                 call->argument[OPERAND1].view.dtype == FR_NEURON_BFLOAT16 &&
                 fr_neuron_view_free(&call->argument[DATA].view) % 2 == 0;
    for (int i = 0; i < 2; i++) {
        fr_neuron_operator op = fr_neuron_operator_of(call, i ? OP1 : OP0);
        quick = quick && (op == FR_NEURON_ADD || op == FR_NEURON_SUBTRACT || op == FR_NEURON_MULTIPLY);
    }
    cost->cycles = quick ? n : 2 * n;
    cost->flops = 2 * n * call->argument[DATA].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_scalar_tensor_tensor = {
    .name = "scalar_tensor_tensor",
    .summary = "a number, then a tile: dst = (data op0 operand0) op1 operand1",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "op0", .kind = FR_NEURON_OPERATOR, .required = true, .text = "arithmetic operator"},
         {.name = "operand0", .kind = FR_NEURON_READ_OR_NUMBER, .text = "number or [P, 1] vector"},
         {.name = "op1", .kind = FR_NEURON_OPERATOR, .required = true, .text = "arithmetic operator"},
         {.name = "operand1", .kind = FR_NEURON_READ, .required = true, .text = "tile of data's size"},
         {.name = "reverse0", .kind = FR_NEURON_FLAG, .text = "operand0 op0 data instead"},
         {.name = "reverse1", .kind = FR_NEURON_FLAG, .text = "operand1 op1 (...) instead"}},
    .semantics = "dst = (data op0 operand0) op1 operand1, in fp32, rounded to dst's dtype.",
    .limits = "Equal partitions and elements per partition. data and operand1 not both in PSUM. Arithmetic "
              "operators; "
              "vectors are float32.",
    .cost = "2N cycles; N when data and operand1 are bfloat16, N is even, and both operators are add, "
            "subtract or "
            "multiply. 64 at least.",
    .cost_source =
        "NKI API pages up to SDK 2.26 (scalar_tensor_tensor names subtract and multiply for the fast case)",
    .example =
        "nisa.scalar_tensor_tensor(dst=c, data=a, op0=nl.multiply, operand0=0.5, op1=nl.add, operand1=b)",
    .pure = true,
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
