/* exponential: e^(x - max) on the Vector engine of generation 4, with the row's sum: the middle of a softmax. */
#include "neuron/accumulators.h"
#include "neuron/instructions.h"

enum { DST, SRC, MAX_VALUE, RESULT, COMMAND, INIT };
enum {
    SOURCES = FR_NEURON_OF(FR_NEURON_FLOAT8_E4M3) | FR_NEURON_OF(FR_NEURON_FLOAT8_E5M2) |
              FR_NEURON_OF(FR_NEURON_FLOAT16) | FR_NEURON_OF(FR_NEURON_BFLOAT16) |
              FR_NEURON_OF(FR_NEURON_FLOAT32) | FR_NEURON_OF(FR_NEURON_INT8) | FR_NEURON_OF(FR_NEURON_INT16) |
              FR_NEURON_OF(FR_NEURON_INT32) | FR_NEURON_OF(FR_NEURON_UINT8) | FR_NEURON_OF(FR_NEURON_UINT16) |
              FR_NEURON_OF(FR_NEURON_UINT32),
    RESULTS = (SOURCES & ~FR_NEURON_OF(FR_NEURON_UINT32)) | FR_NEURON_OF(FR_NEURON_TFLOAT32),
    SUMS = RESULTS & ~FR_NEURON_INTEGERS
};

static fr_neuron_accumulation accumulation(void)
{
    return (fr_neuron_accumulation){.command = COMMAND,
                                    .result = RESULT,
                                    .start = INIT,
                                    .input = SRC,
                                    .op = FR_NEURON_ADD,
                                    .allowed = 1 << FR_NEURON_REDUCE_IDLE | 1 << FR_NEURON_REDUCE_ADD |
                                               1 << FR_NEURON_REDUCE_RESET_ADD |
                                               1 << FR_NEURON_REDUCE_LOAD_ADD};
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    fr_neuron_accumulation a = accumulation();
    FR_TRY(fr_neuron_dtype_allowed(core, call, SRC, SOURCES, error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, DST, RESULTS, error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, RESULT, SUMS, error));
    FR_TRY(fr_neuron_same_elements(core, call, DST, SRC, error));
    FR_TRY(fr_neuron_column(core, call, MAX_VALUE, SRC, true, error));
    return fr_neuron_accumulate_check(core, call, &a, error);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    static const int inputs[] = {SRC};
    fr_neuron_accumulation a = accumulation();
    fr_neuron_streams s;
    fr_neuron_column_values most;
    float *lane;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, DST, inputs, 1, error));
    FR_TRY(fr_neuron_accumulate_begin(core, call, &a, engine, &lane, error));
    fr_neuron_column_read(&most, core, &call->argument[MAX_VALUE], s.partitions);
    while (fr_neuron_streams_next(&s, &p)) {
        s.rows->scalar[FR_NEURON_SUBTRACT](s.block, s.out.at, s.out.stride, s.in[0].at, s.in[0].stride,
                                           fr_neuron_column_at(&most, p), most.step);
        for (int64_t r = 0; r < s.block.rows; r++) {
            float *row = s.out.at + r * s.out.stride;
            s.rows->map[FR_NEURON_EXP](row, row, s.count, 0);
        }
        if (fr_neuron_accumulates(call, &a))
            s.rows->fold[FR_NEURON_ADD](s.block, lane + p, s.out.at, s.out.stride);
        fr_neuron_streams_done(&s, p);
    }
    fr_neuron_accumulate_end(core, call, &a, lane, false);
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    double n = fr_neuron_extent(call, SRC);
    cost->cycles = fr_neuron_floored(core, engine, n / 4);
    if (fr_neuron_operand(call, RESULT))
        cost->cycles += fr_neuron_floored(core, engine, 0);
    cost->flops = 2 * n * call->argument[SRC].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_exponential = {
    .name = "exponential",
    .summary = "dst = e^(src - max_value), and the row's sum",
    .least_generation = 4,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "max_value",
                    .kind = FR_NEURON_READ_OR_NUMBER,
                    .text = "number or [P, 1] vector to take away"},
                   {.name = "reduce_res", .kind = FR_NEURON_WRITE, .text = "[P, 1] tile for the sum"},
                   {.name = "reduce_cmd",
                    .kind = FR_NEURON_REDUCE_COMMAND,
                    .number = FR_NEURON_REDUCE_IDLE,
                    .text = "idle, reset_reduce, reduce or load_reduce"},
                   {.name = "reduce_init", .kind = FR_NEURON_READ_OR_NUMBER, .text = "start of load_reduce"}},
    .semantics =
        "dst = e^(src - max_value) in fp32, rounded to dst's dtype; the accumulators add up each row unless "
        "reduce_cmd is idle, which leaves them unknown.",
    .limits =
        "Equal partitions and elements per partition. reduce_init is 0 unless reduce_cmd is load_reduce.",
    .cost = "max(64, N/4) cycles, and 64 more to read the accumulators out.",
    .cost_source = "trainium3 architecture guide: four times the rate of activation(op=nl.exp)",
    .example = "nisa.exponential(dst=c, src=a, max_value=1.0)",
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
