/* reciprocal: 1 / x on Vector: exact to fp32 for every x, and eight times slower than the Scalar engine's table. */
#include "neuron/functions.h"
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

enum { DST, DATA };

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    FR_TRY(fr_neuron_arithmetic(core, call, DST, error));
    FR_TRY(fr_neuron_arithmetic(core, call, DATA, error));
    return fr_neuron_same_elements(core, call, DST, DATA, error);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    static const int inputs[] = {DATA};
    static const float nothing = 0;
    fr_neuron_streams s;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, inputs, 1, error));
    while (fr_neuron_streams_next(&s, &p)) {
        s.rows->scalar[FR_NEURON_INVERSE](s.block, s.out.at, s.out.stride, s.in[0].at, s.in[0].stride,
                                          &nothing, 0);
        fr_neuron_streams_done(&s, p);
    }
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)engine;
    cost->cycles = 8 * fr_neuron_extent(call, DATA);
    if (fr_neuron_machine_of(core)->generation == 2) {
        cost->scalar_cycles = fr_neuron_extent(call, DATA);
        cost->table = (uint8_t)fr_neuron_function_facts_of(FR_NEURON_RECIPROCAL)->table;
    }
    cost->flops = fr_neuron_extent(call, DATA) * call->argument[DATA].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_reciprocal = {
    .name = "reciprocal",
    .summary = "dst = 1 / data",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"}},
    .semantics = "dst = 1 / data in fp32, rounded to dst's dtype.",
    .limits = "Equal partitions and elements per partition.",
    .cost = "8N cycles, 64 at least: activation(op=nl.reciprocal) takes N, with a limited range. On generation 2 the "
            "compiler may take Scalar instead, N.",
    .cost_source = "NKI API pages of SDK 2.21 (reciprocal: Scalar or Vector, N and 8N) and up to 2.26 (Vector, 8N)",
    .example = "nisa.reciprocal(dst=c, data=a)",
    .pure = true,
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
