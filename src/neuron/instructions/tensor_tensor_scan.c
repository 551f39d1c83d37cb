/* tensor_tensor_scan: a recurrence along each row, such as the state of a selective scan: r = d0 * r + d1. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/rows/scan.h"
#include "neuron/streams.h"

enum { DST, DATA0, DATA1, INITIAL, OP0, OP1, REVERSE0, REVERSE1 };
static const int tiles[] = {DST, DATA0, DATA1};

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    FR_TRY(fr_neuron_check_operator(core, call, OP0, engine, FR_NEURON_TAKES_BINARY, error));
    FR_TRY(fr_neuron_check_operator(core, call, OP1, engine, FR_NEURON_TAKES_BINARY, error));
    FR_TRY(fr_neuron_operator_dtypes(core, call, fr_neuron_operator_of(call, OP0), tiles, 3, error));
    FR_TRY(fr_neuron_same_elements(core, call, DATA0, DATA1, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, DATA0, error));
    FR_TRY(fr_neuron_column(core, call, INITIAL, DATA0, false, error));
    return fr_neuron_not_both_psum(core, call, DATA0, DATA1, error);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    fr_neuron_streams s;
    fr_neuron_column_values initial;
    float carry[FR_NEURON_PARTITIONS];
    fr_neuron_scan scan = {fr_neuron_operator_of(call, OP0), fr_neuron_operator_of(call, OP1),
                           call->argument[REVERSE0].number > 0, call->argument[REVERSE1].number > 0};
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, tiles + 1, 2, error));
    fr_neuron_column_read(&initial, core, &call->argument[INITIAL], s.partitions);
    for (p = 0; p < s.partitions; p++)
        carry[p] = *fr_neuron_column_at(&initial, p);
    while (fr_neuron_streams_next(&s, &p)) {
        fr_neuron_scan_rows(&scan, s.block, s.out.at, s.out.stride, s.in[0].at, s.in[0].stride, s.in[1].at,
                            s.in[1].stride, carry + p);
        fr_neuron_streams_done(&s, p);
    }
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = 2 * fr_neuron_extent(call, DATA0);
    cost->flops = cost->cycles * call->argument[DATA0].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_tensor_tensor_scan = {
    .name = "tensor_tensor_scan",
    .summary = "a recurrence along each row: r = (data0 op0 r) op1 data1",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "data0", .kind = FR_NEURON_READ, .required = true, .text = "operand of op0"},
         {.name = "data1", .kind = FR_NEURON_READ, .required = true, .text = "operand of op1"},
         {.name = "initial",
          .kind = FR_NEURON_READ_OR_NUMBER,
          .required = true,
          .text = "state before the first element: number or [P, 1] vector"},
         {.name = "op0", .kind = FR_NEURON_OPERATOR, .required = true, .text = "binary arithmetic operator"},
         {.name = "op1", .kind = FR_NEURON_OPERATOR, .required = true, .text = "binary arithmetic operator"},
         {.name = "reverse0", .kind = FR_NEURON_FLAG, .text = "r op0 data0 instead"},
         {.name = "reverse1", .kind = FR_NEURON_FLAG, .text = "data1 op1 (...) instead"}},
    .semantics =
        "dst[0] = (data0[0] op0 initial) op1 data1[0]; dst[i] = (data0[i] op0 r) op1 data1[i] with r the "
        "fp32 "
        "state of element i - 1, before rounding to dst's dtype. To go on in the next tile pass the last "
        "column as initial.",
    .limits = "Equal partitions and elements per partition. data0 and data1 not both in PSUM. Binary "
              "arithmetic operators.",
    .cost = "2N cycles, 64 at least.",
    .cost_source = "NKI API pages up to SDK 2.26 (tensor_tensor_scan)",
    .example = "nisa.tensor_tensor_scan(dst=c, data0=a, data1=b, initial=0.0, op0=nl.multiply, op1=nl.add)",
    .pure = true,
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
