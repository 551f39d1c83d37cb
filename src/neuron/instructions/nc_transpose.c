/* nc_transpose: [P, F] becomes [F, P]: up to 128 x 128 on Tensor, which multiplies by an identity from
 * SBUF into PSUM, and up to 32 x 32 on Vector. From generation 3 on both move bits; before, Tensor truly
 * multiplies, so that one infinity or NaN spoils the row of the result it meets zeros in. */
#include "neuron/instructions.h"
#include "neuron/core.h"
#include "neuron/legality.h"

#include <math.h>
#include <string.h>

enum { DST, DATA, ENGINE };

static bool fits(const fr_neuron_view *data, int64_t most)
{
    return data->partitions <= most && fr_neuron_view_free(data) <= most;
}

static fr_neuron_engine choose(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core;
    fr_neuron_engine asked = (fr_neuron_engine)call->argument[ENGINE].number;
    if (asked != FR_NEURON_ANY)
        return asked;
    bool tensor = fr_neuron_in_psum(call, DST) && !fr_neuron_in_psum(call, DATA);
    return fits(&call->argument[DATA].view, 32) || !tensor ? FR_NEURON_VECTOR : FR_NEURON_TENSOR;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    const fr_neuron_view *dst = &call->argument[DST].view, *data = &call->argument[DATA].view;
    int64_t most = engine == FR_NEURON_TENSOR ? 128 : 32;
    if (engine == FR_NEURON_TENSOR) {
        FR_TRY(fr_neuron_memory_allowed(core, call, DATA, FR_NEURON_IN(FR_NEURON_SBUF), error));
        FR_TRY(fr_neuron_memory_allowed(core, call, DST, FR_NEURON_IN(FR_NEURON_PSUM), error));
        FR_TRY(fr_neuron_transposed_slots(core, call, DST, error));
    }
    FR_TRY(fr_neuron_same_dtype(core, call, DST, DATA, error));
    if (fits(data, most) && dst->partitions == fr_neuron_view_free(data) &&
        fr_neuron_view_free(dst) == data->partitions)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_transpose_shape, error,
                            "data is [%d, %lld], dst [%d, %lld], the %s engine takes %lld by %lld",
                            data->partitions, (long long)fr_neuron_view_free(data), dst->partitions,
                            (long long)fr_neuron_view_free(dst), fr_neuron_engine_name(engine),
                            (long long)most, (long long)most);
}

/* Times zero and added, a value that is not finite makes every other sum of its column NaN. */
static void spoil(uint8_t *line, const fr_neuron_lanes *dst)
{
    int64_t count = dst->row.elements;
    int bad = 0, width = dst->row.width;
    int64_t where = 0;
    float nan = NAN;
    for (int64_t n = 0; n < count; n++) {
        float value;
        fr_neuron_to_float(&value, line + n * width, dst->dtype, 1);
        if (!isfinite(value)) {
            bad++;
            where = n;
        }
    }
    for (int64_t n = 0; bad && n < count; n++)
        if (bad > 1 || n != where)
            fr_neuron_from_float(line + n * width, &nan, dst->dtype, 1);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes data = fr_neuron_lanes_of(core, &call->argument[DATA].view);
    int64_t columns = data.row.elements, width = data.row.width;
    uint8_t *all = fr_neuron_scratch(core, data.partitions * columns * width);
    uint8_t *line = fr_neuron_scratch(core, data.partitions * width);
    if (!all || !line)
        return fr_error_memory(error, (size_t)(data.partitions * columns * width), "a tile");
    for (int p = 0; p < data.partitions; p++) {
        fr_neuron_pattern row = data.row;
        row.base += p * data.pitch;
        fr_neuron_gather(&row, all + p * columns * width);
    }
    bool multiplies =
        engine == FR_NEURON_TENSOR && core->machine->generation < 3 && !fr_neuron_dtype_integer(dst.dtype);
    for (int64_t f = 0; f < columns; f++) {
        for (int p = 0; p < data.partitions; p++)
            memcpy(line + p * width, all + (p * columns + f) * width, (size_t)width);
        if (multiplies)
            spoil(line, &dst);
        fr_neuron_put_raw(&dst, (int)f, line);
    }
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    double p = call->argument[DATA].view.partitions, f = fr_neuron_extent(call, DATA),
           columns = f < 64 ? f : 64;
    bool wide = fr_neuron_narrow(call, DATA, 4);
    cost->cycles = f;
    if (engine == FR_NEURON_TENSOR) {
        double passes = !wide                            ? 1
                        : core->machine->generation >= 3 ? core->machine->tensor_passes_fp32 / 2
                                                         : core->machine->tensor_passes_fp32;
        cost->cycles = (p > columns ? p : columns) * passes;
    }
}

const fr_neuron_instruction fr_neuron_i_nc_transpose = {
    .name = "nc_transpose",
    .summary = "transpose a tile on Tensor or Vector",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_TENSOR) | FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "tile [F, P]; PSUM on Tensor"},
         {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "tile [P, F]; SBUF on Tensor"},
         {.name = "engine", .kind = FR_NEURON_ENGINE, .text = "tensor or vector"}},
    .semantics = "dst[f, p] = data[p, f], free dimensions flattened. Bits are moved; on Tensor of generation "
                 "2 a value that is "
                 "not finite makes the other elements of its row of dst NaN.",
    .limits =
        "Equal dtypes. Tensor: at most 128 x 128, SBUF to PSUM; float8 lands in slots of 16 bits from "
        "generation 3 on (dst's numbers are 2 apart). Vector: at most 32 x 32, any memory on chip.",
    .cost = "Tensor: max(P, min(64, F)) cycles, twice that for 32 bits (four times before generation 3). "
            "Vector: F, 64 at "
            "least.",
    .cost_source =
        "NKI API pages up to SDK 2.26 (nc_transpose); trainium2 architecture guide (fp32 transposes)",
    .example = "t = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)\n"
               "nisa.nc_transpose(dst=t, data=a)",
    .pure = true,
    .engine = choose,
    .check = check,
    .execute = execute,
    .price = price,
};
