/* register_move, register_load, register_store: single 32-bit integers of the sequencers. They steer loops
 * and addresses, so they are computed even when data is not (fr_neuron_compute); a load then works only
 * for what the host wrote. */
#include "neuron/core.h"
#include "neuron/instructions.h"

#include <math.h>
#include <string.h>

enum { DST, SRC };

static fr_status check_register(const fr_neuron *core, const fr_neuron_call *call, int which, fr_error *error)
{
    if (fr_neuron_memory_of(call, which) == FR_NEURON_REGISTER)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_register, error,
                            "%s is a tensor, a register is needed", which == DST ? "dst" : "src");
}

/* The tensor side of a load or store: one integer in HBM or SBUF. */
static fr_status check_tensor(const fr_neuron *core, const fr_neuron_call *call, int which, fr_error *error)
{
    const fr_neuron_view *view = &call->argument[which].view;
    const char *name = which == DST ? "dst" : "src";
    FR_TRY(fr_neuron_memory_allowed(core, call, which,
                                    FR_NEURON_IN(FR_NEURON_HBM) | FR_NEURON_IN(FR_NEURON_SBUF), error));
    if (fr_neuron_view_elements(view) != 1)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_register, error, "%s has %lld elements", name,
                                (long long)fr_neuron_view_elements(view));
    if (!fr_neuron_dtype_integer(view->dtype))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_register, error,
                                "%s is %s, registers hold integers", name, fr_neuron_dtype_name(view->dtype));
    return FR_OK;
}

static fr_status check_move(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                            fr_error *error)
{
    (void)engine;
    double value = call->argument[SRC].number;
    FR_TRY(check_register(core, call, DST, error));
    if (call->argument[SRC].is_view)
        return check_register(core, call, SRC, error);
    if (value == nearbyint(value) && value >= INT32_MIN && value <= INT32_MAX)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_register, error, "src is %g, not a 32-bit integer",
                            value);
}

static fr_status check_load(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                            fr_error *error)
{
    (void)engine;
    const fr_neuron_tensor *tensor = call->argument[SRC].view.tensor;
    FR_TRY(check_register(core, call, DST, error));
    FR_TRY(check_tensor(core, call, SRC, error));
    if (core->compute || tensor->written->fill == FR_NEURON_FULL)
        return FR_OK;
    return fr_neuron_misuse(core, call, error,
                            "control flow depends on data, which is not computed in this mode");
}

static fr_status check_store(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_error *error)
{
    (void)engine;
    FR_TRY(check_register(core, call, SRC, error));
    return check_tensor(core, call, DST, error);
}

static fr_status move(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine, fr_error *error)
{
    (void)core, (void)engine, (void)error;
    const fr_neuron_argument *src = &call->argument[SRC];
    *fr_neuron_register(call->argument[DST].view.tensor) =
        src->is_view ? *fr_neuron_register(src->view.tensor) : (int32_t)src->number;
    return FR_OK;
}

static uint8_t *element(const fr_neuron *core, const fr_neuron_view *view)
{
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, view);
    return lanes.row.base;
}

static fr_status load(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine, fr_error *error)
{
    (void)engine, (void)error;
    const fr_neuron_view *src = &call->argument[SRC].view;
    const uint8_t *at = element(core, src);
    int32_t *out = fr_neuron_register(call->argument[DST].view.tensor);
    float small;
    if (fr_neuron_dtype_bytes(src->dtype) == 4) {
        memcpy(out, at, sizeof *out);
        return FR_OK;
    }
    fr_neuron_to_float(&small, at, src->dtype, 1);
    *out = (int32_t)small;
    return FR_OK;
}

static fr_status store(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine, fr_error *error)
{
    (void)engine, (void)error;
    const fr_neuron_view *dst = &call->argument[DST].view;
    int32_t value = *fr_neuron_register(call->argument[SRC].view.tensor);
    memcpy(element(core, dst), &value, (size_t)fr_neuron_dtype_bytes(dst->dtype));
    return FR_OK;
}

static void price_move(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_neuron_cost *cost)
{
    (void)core, (void)call, (void)engine;
    cost->cycles = 1;
}

/* Memory is reached through a transfer of one descriptor. */
static void price_memory(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_neuron_cost *cost)
{
    (void)call;
    const fr_neuron_machine *m = core->machine;
    cost->cycles = (m->dma_start_ns + m->dma_descriptor_ns + m->dma_done_ns) * m->clock_ghz[engine];
}

#define COST_OF_MEMORY "The latency of a transfer of one element."

const fr_neuron_instruction fr_neuron_i_register_load = {
    .name = "register_load",
    .summary = "one integer of a tensor into a register",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_SYNC),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "register"},
         {.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "one integer in HBM or SBUF"}},
    .semantics = "dst = src, sign-extended to 32 bits when src is narrower and signed.",
    .limits = "src has one element of an integer dtype, in HBM or SBUF.",
    .cost = COST_OF_MEMORY,
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "one = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)\n"
               "nisa.memset(dst=one, value=7)\n"
               "r = nisa.register_alloc(0)\n"
               "nisa.register_load(r, one)",
    .engine = fr_neuron_on_sync,
    .check = check_load,
    .execute = load,
    .price = price_memory,
};

const fr_neuron_instruction fr_neuron_i_register_move = {
    .name = "register_move",
    .summary = "a constant or another register into a register",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_SYNC),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "register"},
         {.name = "src", .kind = FR_NEURON_READ_OR_NUMBER, .required = true, .text = "integer or register"}},
    .semantics = "dst = src.",
    .limits = "Constants are 32-bit integers.",
    .cost = "One instruction of the sequencer.",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "r = nisa.register_alloc()\n"
               "nisa.register_move(r, 10)",
    .engine = fr_neuron_on_sync,
    .check = check_move,
    .execute = move,
    .price = price_move,
};

const fr_neuron_instruction fr_neuron_i_register_store = {
    .name = "register_store",
    .summary = "a register into one element of a tensor",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_SYNC),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "one integer in HBM or SBUF"},
         {.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "register"}},
    .semantics = "dst = src, its low bits when dst is narrower.",
    .limits = "dst has one element of an integer dtype, in HBM or SBUF.",
    .cost = COST_OF_MEMORY,
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "one = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)\n"
               "r = nisa.register_alloc(3)\n"
               "nisa.register_store(one, r)",
    .engine = fr_neuron_on_sync,
    .check = check_store,
    .execute = store,
    .price = price_memory,
};
