/* tensor_copy: a tile to another tile on chip, on Vector, Scalar or GpSimd.
 *
 * Same dtypes move bits (so NaN payloads and int32 survive); different ones pass through fp32, as
 * everything the compute engines read does. Vector has faster modes for 16-bit data, which is where most
 * copies out of PSUM differ in price from copies inside SBUF. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/neuron_internal.h"

enum { DST, SRC, ENGINE };

/* GpSimd cannot see PSUM and is slower; the compiler balances Vector and Scalar, we take Vector. */
static fr_neuron_engine choose(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core;
    fr_neuron_engine asked = (fr_neuron_engine)call->argument[ENGINE].number;
    return asked == FR_NEURON_ANY ? FR_NEURON_VECTOR : asked;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    if (engine == FR_NEURON_SCALAR)
        FR_TRY(fr_neuron_generation_at_least(core, call, 3, "tensor_copy on the Scalar engine", error));
    return fr_neuron_same_elements(core, call, DST, SRC, error);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes src = fr_neuron_lanes_of(core, &call->argument[SRC].view);
    float *scratch = fr_neuron_scratch_row(core, &src);
    if (!scratch)
        return fr_error_memory(error, (size_t)src.row.elements * sizeof(float), "a row");
    for (int p = 0; p < src.partitions; p++)
        if (dst.dtype == src.dtype)
            fr_neuron_put_raw(&dst, p, fr_neuron_raw(&src, p, scratch));
        else
            fr_neuron_put_row(&dst, p, fr_neuron_row(&src, p, scratch));
    return FR_OK;
}

/* Before generation 3 Scalar's copy is an activation, which passes through fp32. */
static bool scalar_copies(const fr_neuron *core, const fr_neuron_call *call)
{
    const uint32_t floats = FR_NEURON_OF(FR_NEURON_FLOAT32) | FR_NEURON_OF(FR_NEURON_TFLOAT32) |
                            FR_NEURON_OF(FR_NEURON_BFLOAT16) | FR_NEURON_OF(FR_NEURON_FLOAT16);
    return fr_neuron_machine_of(core)->generation >= 3 ||
           (floats & FR_NEURON_OF(call->argument[DST].view.dtype) && floats & FR_NEURON_OF(call->argument[SRC].view.dtype));
}

/* N cycles; Vector of generation 3 on: 4x for contiguous 16-bit data in SBUF, 2x when only narrow or with
 * one side in PSUM. */
static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    static const int operands[] = {DST, SRC};
    double n = fr_neuron_extent(call, SRC), speed = 1;
    bool narrow = fr_neuron_narrow(call, DST, 2) && fr_neuron_narrow(call, SRC, 2);
    if (engine == FR_NEURON_VECTOR && narrow && fr_neuron_machine_of(core)->generation >= 3) {
        bool rows = fr_neuron_packed_rows(call, DST) && fr_neuron_packed_rows(call, SRC);
        bool sbuf = fr_neuron_all_sbuf(call, operands, 2);
        speed = rows && sbuf ? 4 : rows || sbuf ? 2 : 1;
    }
    cost->cycles = n / speed;
    bool open = (fr_neuron_engine)call->argument[ENGINE].number == FR_NEURON_ANY;
    if (open && scalar_copies(core, call))
        cost->scalar_cycles = fr_neuron_stream_cycles(core, call, DST, SRC, FR_NEURON_SCALAR);
    if (engine == FR_NEURON_GPSIMD)
        cost->cycles = 150 + n;
}

const fr_neuron_instruction fr_neuron_i_tensor_copy = {
    .name = "tensor_copy",
    .summary = "copy a tile on chip, casting when the dtypes differ",
    .least_generation = 2,
    .engines =
        FR_NEURON_ON(FR_NEURON_VECTOR) | FR_NEURON_ON(FR_NEURON_SCALAR) | FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "engine", .kind = FR_NEURON_ENGINE, .text = "vector, scalar or gpsimd"}},
    .semantics =
        "dst = src. Equal dtypes move raw bits; different ones are read as fp32 and rounded to dst's dtype.",
    .limits =
        "Equal partitions and elements per partition. GpSimd reaches SBUF only; Scalar from generation 3 on.",
    .cost = "N cycles, 64 at least. Vector from generation 3 on with 16-bit data: N/4 when both tiles are "
            "contiguous in "
            "SBUF, N/2 when one is in PSUM or not contiguous. GpSimd: 150 + N.",
    .cost_source = "NKI API pages up to SDK 2.26 (tensor_copy); trainium2 architecture guide",
    .example = "nisa.tensor_copy(dst=c, src=a)",
    .pure = true,
    .engine = choose,
    .check = check,
    .execute = execute,
    .price = price,
};
