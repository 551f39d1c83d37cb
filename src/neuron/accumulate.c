/* Whether a product overwrites PSUM or adds to it: the `accumulate` argument of the matmuls. True asks that a matmul began
 * all of the sum; absent, the compiler decides: add where a sum was begun, overwrite the rest. PSUM remembers what was
 * begun (written.c); generation 4 may also add to numbers that something else left there. */
#include "neuron/matmul.h"

static bool all_zero(const fr_neuron *core, const fr_neuron_view *view)
{
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    float row[8192];
    if (lanes.row.elements > 8192)
        return false;
    for (int p = 0; p < lanes.partitions; p++) {
        const float *values = fr_neuron_row(&lanes, p, row);
        for (int64_t i = 0; i < lanes.row.elements; i++)
            if (values[i] != 0)
                return false;
    }
    return true;
}

/* Zeros that memset left do no harm when the compiler overwrites them; anything else would be lost or
 * added to. */
fr_status fr_neuron_sum_check(const fr_neuron *core, const fr_neuron_call *call, int sum, int accumulate_at,
                              fr_error *error)
{
    const fr_neuron_argument *accumulate = &call->argument[accumulate_at];
    const fr_neuron_view *dst = &call->argument[sum].view;
    bool told = accumulate->given && accumulate->number >= 0, wanted = told && accumulate->number > 0;
    if (!core->compute || (told && !wanted))
        return FR_OK;
    fr_neuron_begun begun = fr_neuron_begun_of(core, dst);
    if (begun == FR_NEURON_BEGUN)
        return FR_OK;
    bool filled = dst->tensor->filled && fr_neuron_written(core, dst);
    if (core->machine->generation >= 4 && filled)
        return FR_OK;
    if (wanted)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_accumulate_start, error,
                                "accumulate=True, and dst was %s",
                                filled ? "filled by something else" : "not begun");
    if (filled && begun == FR_NEURON_NOT_BEGUN && !all_zero(core, dst))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_accumulate_start, error,
                                "dst holds numbers that no matmul wrote, and accumulate is not given");
    return FR_OK;
}

bool fr_neuron_sum_adds(const fr_neuron *core, const fr_neuron_call *call, int sum, int accumulate_at,
                        bool *clear)
{
    const fr_neuron_argument *accumulate = &call->argument[accumulate_at];
    const fr_neuron_view *dst = &call->argument[sum].view;
    *clear = false;
    if (accumulate->given && accumulate->number >= 0)
        return accumulate->number > 0;
    if (!core->compute)
        return false;
    fr_neuron_begun begun = fr_neuron_begun_of(core, dst);
    if (begun == FR_NEURON_NOT_BEGUN && core->machine->generation >= 4 && dst->tensor->filled)
        return fr_neuron_written(core, dst);
    *clear = begun == FR_NEURON_PARTLY_BEGUN;
    return begun != FR_NEURON_NOT_BEGUN;
}
