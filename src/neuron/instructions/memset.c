/* memset: a constant into every element of a tile. The constant is converted once, straight to the tile's
 * dtype, so that integers beyond 2^24 arrive exactly. */
#include "neuron/instructions.h"
#include "neuron/neuron_internal.h"

#include <math.h>
#include <string.h>

enum { DST, VALUE, ENGINE };

static fr_neuron_engine choose(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core;
    fr_neuron_engine asked = (fr_neuron_engine)call->argument[ENGINE].number;
    return asked == FR_NEURON_ANY ? FR_NEURON_VECTOR : asked;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    fr_neuron_dtype dtype = call->argument[DST].view.dtype;
    double value = call->argument[VALUE].number;
    if (FR_NEURON_PACKED & FR_NEURON_OF(dtype) && value != 0)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_value, error,
                                "value is %g, a tile of %s can only be zeroed", value,
                                fr_neuron_dtype_name(dtype));
    return FR_OK;
}

/* One element with the value, as stored. */
static void element_of(uint8_t out[4], fr_neuron_dtype dtype, double value)
{
    memset(out, 0, 4);
    double nearest = value != value ? 0 : nearbyint(value);
    if (dtype == FR_NEURON_INT32) {
        int32_t v = nearest <= INT32_MIN ? INT32_MIN : nearest >= INT32_MAX ? INT32_MAX : (int32_t)nearest;
        memcpy(out, &v, sizeof v);
    } else if (dtype == FR_NEURON_UINT32) {
        uint32_t v = nearest <= 0 ? 0 : nearest >= UINT32_MAX ? UINT32_MAX : (uint32_t)nearest;
        memcpy(out, &v, sizeof v);
    } else {
        float v = (float)value;
        fr_neuron_from_float(out, &v, dtype, 1);
    }
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    int64_t bytes = dst.row.elements * dst.row.width;
    uint8_t *row = fr_neuron_scratch(core, bytes), one[4];
    if (!row)
        return fr_error_memory(error, (size_t)bytes, "a row");
    element_of(one, dst.dtype, call->argument[VALUE].number);
    for (int64_t i = 0; i < bytes; i += dst.row.width)
        memcpy(row + i, one, (size_t)dst.row.width);
    for (int p = 0; p < dst.partitions; p++)
        fr_neuron_put_raw(&dst, p, row);
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)core;
    double n = fr_neuron_extent(call, DST);
    bool half =
        fr_neuron_narrow(call, DST, 2) && call->argument[VALUE].number == 0 && engine == FR_NEURON_VECTOR;
    cost->cycles = engine == FR_NEURON_GPSIMD ? 150 + n : half ? n / 2 : n;
}

const fr_neuron_instruction fr_neuron_i_memset = {
    .name = "memset",
    .summary = "fill a tile with a constant",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR) | FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "value", .kind = FR_NEURON_NUMBER, .required = true, .text = "constant"},
                   {.name = "engine", .kind = FR_NEURON_ENGINE, .text = "vector or gpsimd"}},
    .semantics = "dst = value, converted to dst's dtype.",
    .limits = "Packed dtypes (x4) take 0 alone. GpSimd reaches SBUF only.",
    .cost = "N cycles, 64 at least; N/2 on Vector for zeros of 16 bits. GpSimd: 150 + N.",
    .cost_source = "NKI API pages up to SDK 2.26 (memset)",
    .example = "nisa.memset(dst=c, value=0.5)",
    .engine = choose,
    .check = check,
    .execute = execute,
    .price = price,
};
