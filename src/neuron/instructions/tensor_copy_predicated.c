/* tensor_copy_predicated: elements of a tile, or a constant, where a predicate is not zero; the rest of
 * dst stays. An element of dst that was never written and is not selected still holds no data. */
#include "neuron/instructions.h"
#include "neuron/neuron_internal.h"

#include <string.h>

enum { DST, SRC, PREDICATE, REVERSE };

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    uint32_t masks =
        FR_NEURON_OF(FR_NEURON_UINT8) | FR_NEURON_OF(FR_NEURON_UINT16) | FR_NEURON_OF(FR_NEURON_UINT32);
    FR_TRY(fr_neuron_same_elements(core, call, DST, PREDICATE, error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, PREDICATE, masks, error));
    if (!fr_neuron_operand(call, SRC))
        return fr_neuron_arithmetic(core, call, DST, error);
    FR_TRY(fr_neuron_same_elements(core, call, DST, SRC, error));
    FR_TRY(fr_neuron_same_dtype(core, call, DST, SRC, error));
    return fr_neuron_not_both_psum(core, call, SRC, PREDICATE, error);
}

/* Copies the selected elements and marks runs of them as written. */
static void select_row(fr_neuron *core, const fr_neuron_view *view, int p, uint8_t *row, const uint8_t *from,
                       const float *mask, int64_t count, int width, bool reverse)
{
    int64_t begin = -1;
    for (int64_t i = 0; i <= count; i++) {
        bool take = i < count && (mask[i] != 0) != reverse;
        if (take)
            memcpy(row + i * width, from + i * width, (size_t)width);
        if (take && begin < 0)
            begin = i;
        if (!take && begin >= 0) {
            fr_neuron_wrote_some(core, view, p, begin, i - begin);
            begin = -1;
        }
    }
}

static void fill(uint8_t *row, fr_neuron_dtype dtype, int width, int64_t count, float value)
{
    uint8_t one[4];
    fr_neuron_from_float(one, &value, dtype, 1);
    for (int64_t i = 0; i < count; i++)
        memcpy(row + i * width, one, (size_t)width);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    const fr_neuron_view *view = &call->argument[DST].view;
    const fr_neuron_view *source = fr_neuron_operand(call, SRC);
    bool constant = !source || fr_neuron_memory_of(call, SRC) == FR_NEURON_REGISTER;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, view),
                    src = constant ? dst : fr_neuron_lanes_of(core, source);
    fr_neuron_lanes predicate = fr_neuron_lanes_of(core, &call->argument[PREDICATE].view);
    int64_t count = dst.row.elements, bytes = count * (int64_t)sizeof(float);
    uint8_t *memory = fr_neuron_scratch(core, 4 * bytes), *row = memory, *from = memory + bytes;
    if (!memory)
        return fr_error_memory(error, (size_t)(4 * bytes), "rows");
    FR_TRY(fr_neuron_prepare(core, view, error));
    if (constant) {
        fr_neuron_scalars scalars = fr_neuron_scalars_of(core, &call->argument[SRC]);
        fill(from, dst.dtype, dst.row.width, count, scalars.constant);
    }
    for (int p = 0; p < dst.partitions; p++) {
        const float *mask = fr_neuron_row(&predicate, p, (float *)(void *)(memory + 2 * bytes));
        const uint8_t *data = constant ? from : fr_neuron_raw(&src, p, from);
        memcpy(row, fr_neuron_raw(&dst, p, memory + 3 * bytes), (size_t)(count * dst.row.width));
        select_row(core, view, p, row, data, mask, count, dst.row.width, call->argument[REVERSE].number > 0);
        fr_neuron_put_raw(&dst, p, row);
    }
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    static const int operands[] = {DST, SRC, PREDICATE};
    cost->cycles = fr_neuron_extent(call, DST) * (fr_neuron_all_sbuf(call, operands, 3) ? 2 : 1);
}

const fr_neuron_instruction fr_neuron_i_tensor_copy_predicated = {
    .name = "tensor_copy_predicated",
    .summary = "copy where a predicate is not zero",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst", .kind = FR_NEURON_UPDATE, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "src",
                    .kind = FR_NEURON_READ_OR_NUMBER,
                    .required = true,
                    .text = "tile of dst's dtype, or a constant"},
                   {.name = "predicate",
                    .kind = FR_NEURON_READ,
                    .required = true,
                    .text = "uint8, uint16 or uint32 tile"},
                   {.name = "reverse_pred",
                    .kind = FR_NEURON_FLAG,
                    .text = "copy where the predicate is zero"}},
    .semantics =
        "dst = src where predicate is not 0 (where it is 0 with reverse_pred); elsewhere dst is unchanged.",
    .limits = "Equal partitions and elements. src of dst's dtype; predicate uint8, uint16 or uint32; src and "
              "predicate not both "
              "in PSUM.",
    .cost = "N cycles, 64 at least, when an operand is in PSUM; 2N when all are in SBUF.",
    .cost_source = "NKI API pages up to SDK 2.26 (tensor_copy_predicated)",
    .example = "m = nl.ndarray((128, 64), dtype=nl.uint8, buffer=nl.sbuf)\n"
               "nisa.memset(dst=m, value=1)\n"
               "nisa.tensor_copy_predicated(dst=c, src=a, predicate=m)",
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
