/* sendrecv and core_barrier: the two cores of a logical core meet.
 *
 * Both programs issue their half; whoever drives them lets the one that is ahead wait
 * (python/frontier_nki/pair.py). The first half of a sendrecv leaves a copy of its source behind and says
 * where it wants the answer; the second half delivers both ways. Until then nothing was written, so a
 * program that did not wait is found reading old data. */
#include "neuron/core.h"
#include "neuron/instructions.h"

#include <string.h>

enum { SRC, DST, SEND_TO, RECEIVE_FROM, PIPE, DMA_ENGINE };
enum { DATA, CORES, ENGINE };
enum { GPSIMD_DMA = 2 };

static fr_status trouble(const fr_neuron *core, const fr_neuron_call *call, fr_error *error, const char *what)
{
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_exchange, error, "%s", what);
}

/* GpSimd's own transfers take 256 elements of a partition at most. */
static fr_status check_size(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    if (call->argument[DMA_ENGINE].number != GPSIMD_DMA)
        return FR_OK;
    return fr_neuron_elements_within(core, call, SRC, 1, 256, error);
}

static fr_status check_partner(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    const fr_neuron_mail *theirs = &core->mail[1 - core->physical];
    const fr_neuron_view *dst = &call->argument[DST].view;
    if (core->mail[core->physical].waiting)
        return trouble(core, call, error, "this core waits for the other's half already");
    if (!theirs->waiting)
        return FR_OK;
    if (theirs->pipe != call->argument[PIPE].number)
        return trouble(core, call, error, "the two halves have different pipe_id");
    if (theirs->dst.dtype != dst->dtype || theirs->dst.partitions != dst->partitions ||
        fr_neuron_view_free(&theirs->dst) != fr_neuron_view_free(dst))
        return trouble(core, call, error, "the two halves differ in dtype or shape");
    return theirs->dst.tensor->data ? FR_OK : trouble(core, call, error, "the other core released its dst");
}

static fr_status check_sendrecv(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                fr_error *error)
{
    (void)engine;
    int other = 1 - core->physical;
    if (core->cores != 2)
        return trouble(core, call, error, "the launch has one core");
    if (call->argument[SEND_TO].number != other || call->argument[RECEIVE_FROM].number != other)
        return trouble(core, call, error, "send_to_rank and recv_from_rank must name the other core");
    FR_TRY(fr_neuron_memory_allowed(core, call, SRC, FR_NEURON_IN(FR_NEURON_SBUF), error));
    FR_TRY(fr_neuron_memory_allowed(core, call, DST, FR_NEURON_IN(FR_NEURON_SBUF), error));
    FR_TRY(fr_neuron_same_dtype(core, call, SRC, DST, error));
    FR_TRY(fr_neuron_same_elements(core, call, SRC, DST, error));
    FR_TRY(check_size(core, call, error));
    return core->compute ? check_partner(core, call, error) : FR_OK;
}

static void take(const fr_neuron_lanes *from, uint8_t *bytes)
{
    for (int p = 0; p < from->partitions; p++) {
        fr_neuron_pattern row = from->row;
        row.base += p * from->pitch;
        fr_neuron_gather(&row, bytes + p * row.elements * row.width);
    }
}

static void deliver(fr_neuron *core, const fr_neuron_view *view, const uint8_t *bytes)
{
    fr_neuron_lanes to = fr_neuron_lanes_of(core, view);
    for (int p = 0; p < to.partitions; p++)
        fr_neuron_put_raw(&to, p, bytes + p * to.row.elements * to.row.width);
    fr_neuron_wrote(core, view);
}

static fr_status sendrecv(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                          fr_error *error)
{
    (void)engine;
    fr_neuron_mail *mine = &core->mail[core->physical], *theirs = &core->mail[1 - core->physical];
    fr_neuron_lanes src = fr_neuron_lanes_of(core, &call->argument[SRC].view);
    size_t bytes = (size_t)(src.partitions * src.row.elements * src.row.width);
    uint8_t *copy = fr_allocate(bytes);
    fr_status status = copy ? fr_neuron_prepare(core, &call->argument[DST].view, error)
                            : fr_error_memory(error, bytes, "a tile on its way");
    if (status != FR_OK) {
        fr_deallocate(copy);
        return status;
    }
    take(&src, copy);
    if (!theirs->waiting) {
        *mine = (fr_neuron_mail){true, call->argument[PIPE].number, call->argument[DST].view, copy};
        return FR_OK;
    }
    deliver(core, &call->argument[DST].view, theirs->data);
    deliver(core, &theirs->dst, copy);
    fr_deallocate(theirs->data);
    fr_deallocate(copy);
    *theirs = (fr_neuron_mail){0};
    return FR_OK;
}

static void price_sendrecv(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                           fr_neuron_cost *cost)
{
    (void)engine;
    fr_neuron_price_transfer(core, &call->argument[DST].view, &call->argument[SRC].view, cost);
    cost->trigger = call->argument[DMA_ENGINE].number == GPSIMD_DMA ? FR_NEURON_GPSIMD : FR_NEURON_SYNC;
}

static fr_neuron_engine barrier_engine(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core;
    fr_neuron_engine asked = (fr_neuron_engine)call->argument[ENGINE].number;
    return asked == FR_NEURON_ANY ? FR_NEURON_GPSIMD : asked;
}

static fr_status check_barrier(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                               fr_error *error)
{
    (void)engine;
    const fr_neuron_argument *cores = &call->argument[CORES];
    if (core->cores != 2)
        return trouble(core, call, error, "the launch has one core");
    if (cores->count != 2 || cores->numbers[0] != 0 || cores->numbers[1] != 1)
        return trouble(core, call, error, "cores must be (0, 1)");
    return fr_neuron_memory_allowed(core, call, DATA, FR_NEURON_IN(FR_NEURON_HBM), error);
}

static fr_status barrier(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)core, (void)call, (void)engine, (void)error;
    return FR_OK; /* data is shared; the meeting itself is time */
}

/* A semaphore written in the other core, and one awaited. */
static void price_barrier(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                          fr_neuron_cost *cost)
{
    (void)call;
    cost->cycles = core->machine->wake_ns[engine] * core->machine->clock_ghz[engine];
}

const fr_neuron_instruction fr_neuron_i_sendrecv = {
    .name = "sendrecv",
    .summary = "exchange tiles with the other core of a launch",
    .least_generation = 3,
    .engines = FR_NEURON_ON(FR_NEURON_DMA),
    .parameters =
        {{.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "SBUF tile to send"},
         {.name = "dst", .kind = FR_NEURON_UPDATE, .required = true, .text = "SBUF tile for the other's"},
         {.name = "send_to_rank", .kind = FR_NEURON_INTEGER, .required = true, .text = "the other core"},
         {.name = "recv_from_rank", .kind = FR_NEURON_INTEGER, .required = true, .text = "the other core"},
         {.name = "pipe_id",
          .kind = FR_NEURON_INTEGER,
          .required = true,
          .text = "halves with one number belong together"},
         {.name = "dma_engine",
          .kind = FR_NEURON_CHOICE,
          .number = 1,
          .choices = "unknown dma gpsimd_dma",
          .text = "shared DMA engines or GpSimd's own"}},
    .semantics = "Each core's dst becomes the other's src, once both have issued their half.",
    .limits =
        "Launches of two cores, generation 3 on. SBUF tiles of one dtype and shape. gpsimd_dma: at most "
        "256 elements of each partition.",
    .cost = "As a dma_copy of the tile; both cores start it together.",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .fence = true,
    .example = "other = 1 - nl.program_id(0)\n"
               "nisa.sendrecv(src=a, dst=c, send_to_rank=other, recv_from_rank=other, pipe_id=0)",
    .engine = fr_neuron_on_dma,
    .check = check_sendrecv,
    .execute = sendrecv,
    .price = price_sendrecv,
};

const fr_neuron_instruction fr_neuron_i_core_barrier = {
    .name = "core_barrier",
    .summary = "both cores of a launch reach this point before either goes on",
    .least_generation = 3,
    .engines = FR_NEURON_ON(FR_NEURON_TENSOR) | FR_NEURON_ON(FR_NEURON_VECTOR) |
               FR_NEURON_ON(FR_NEURON_SCALAR) | FR_NEURON_ON(FR_NEURON_GPSIMD) | FR_NEURON_ON(FR_NEURON_SYNC),
    .parameters =
        {{.name = "data", .kind = FR_NEURON_UPDATE, .required = true, .text = "shared HBM to agree on"},
         {.name = "cores", .kind = FR_NEURON_INTEGER_LIST, .required = true, .text = "(0, 1)"},
         {.name = "engine",
          .kind = FR_NEURON_ENGINE,
          .number = FR_NEURON_GPSIMD,
          .text = "the engine that waits"}},
    .semantics =
        "What either core wrote to data before is there for both afterwards. Only the named engine waits.",
    .limits = "Launches of two cores, generation 3 on; data in HBM; cores (0, 1).",
    .cost = "A semaphore's way to the other core and back.",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .fence = true,
    .example = "h = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)\n"
               "nisa.core_barrier(data=h, cores=(0, 1))",
    .engine = barrier_engine,
    .check = check_barrier,
    .execute = barrier,
    .price = price_barrier,
};
