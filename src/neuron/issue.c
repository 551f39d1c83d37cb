/* Issuing one instruction: arguments, the limits that hold for all instructions, its own limits, its
 * effect, its record.
 *
 * Order matters: everything that can be refused is refused before anything is computed, and room for the
 * records is taken before too, so that a refused call leaves memories and trace as they were. */
#include "neuron/core.h"

#include <string.h>

enum {
    REGIONS = 3 * FR_NEURON_PARAMETERS + 2 * FR_NEURON_LIST,
    REDUCE_COMMANDS = 5
};

typedef struct call_site {
    const fr_neuron *core;
    const fr_neuron_call *call;
    fr_neuron_engine engine;
    bool outside; /* a dynamic offset is, and the transfer may be skipped: nothing moves */
    fr_error *error;
} call_site;

/* ---- arguments ----------------------------------------------------------------------------------- */

static int words_of(const char *choices)
{
    int words = choices && *choices ? 1 : 0;
    for (; choices && *choices; choices++)
        words += *choices == ' ';
    return words;
}

/* The greatest value of the kinds that stand for a word; -1 for other kinds. */
static int most_of(const fr_neuron_parameter *parameter)
{
    switch (parameter->kind) {
    case FR_NEURON_ENGINE: return FR_NEURON_ENGINES - 1;
    case FR_NEURON_OPERATOR: return FR_NEURON_OPERATORS - 1;
    case FR_NEURON_FUNCTION: return FR_NEURON_FUNCTIONS - 1;
    case FR_NEURON_REDUCE_COMMAND: return REDUCE_COMMANDS - 1;
    case FR_NEURON_CHOICE: return words_of(parameter->choices) - 1;
    default: return -1;
    }
}

static bool whole(double number)
{
    return number >= INT32_MIN && number <= INT32_MAX && number == (double)(int32_t)number;
}

/* Words are positions in their list, integers are whole: what instructions may cast without a look. */
static fr_status check_value(const call_site *site, const fr_neuron_parameter *parameter,
                             const fr_neuron_argument *argument)
{
    int most = most_of(parameter);
    bool integers = parameter->kind == FR_NEURON_INTEGER || parameter->kind == FR_NEURON_FLAG || most >= 0;
    bool list = parameter->kind == FR_NEURON_INTEGER_LIST || parameter->kind == FR_NEURON_PATTERN;
    bool good = !integers || whole(argument->number);
    if (good && most >= 0)
        good = argument->number >= 0 && argument->number <= most;
    double value = argument->number;
    for (int i = 0; good && list && i < argument->count; i++) {
        value = argument->numbers[i];
        good = whole(value);
    }
    if (good)
        return FR_OK;
    return fr_neuron_misuse(site->core, site->call, site->error, "%s holds %.10g, which it cannot",
                            parameter->name, value);
}

static fr_status check_kind(const call_site *site, const fr_neuron_parameter *parameter,
                            const fr_neuron_argument *argument)
{
    bool wants_view = parameter->kind <= FR_NEURON_UPDATE;
    bool is_list = parameter->kind == FR_NEURON_NUMBER_LIST || parameter->kind == FR_NEURON_INTEGER_LIST ||
                   parameter->kind == FR_NEURON_PATTERN || parameter->kind == FR_NEURON_READ_LIST;
    if (wants_view && !argument->is_view)
        return fr_neuron_misuse(site->core, site->call, site->error, "%s must be a tile", parameter->name);
    if (argument->is_view && !wants_view && parameter->kind != FR_NEURON_READ_OR_NUMBER)
        return fr_neuron_misuse(site->core, site->call, site->error, "%s cannot be a tile", parameter->name);
    if (!is_list)
        return argument->is_view ? FR_OK : check_value(site, parameter, argument);
    bool views = parameter->kind == FR_NEURON_READ_LIST;
    if (argument->count < 0 || argument->count > FR_NEURON_LIST ||
        (argument->count > 0 && !(views ? (const void *)argument->views : (const void *)argument->numbers)))
        return fr_neuron_misuse(site->core, site->call, site->error, "%s: a list of %d, %d at most",
                                parameter->name, argument->count, FR_NEURON_LIST);
    return views ? FR_OK : check_value(site, parameter, argument);
}

static fr_status check_arguments(const call_site *site)
{
    const fr_neuron_instruction *instruction = site->call->instruction;
    for (int i = 0; i < FR_NEURON_PARAMETERS && instruction->parameters[i].name; i++) {
        const fr_neuron_argument *argument = &site->call->argument[i];
        if (argument->given)
            FR_TRY(check_kind(site, &instruction->parameters[i], argument));
        else if (instruction->parameters[i].required)
            return fr_neuron_misuse(site->core, site->call, site->error, "%s is missing",
                                    instruction->parameters[i].name);
    }
    return FR_OK;
}

/* ---- limits that hold for every instruction ------------------------------------------------------ */

static fr_status check_reach(const call_site *site, const fr_neuron_view *view, const char *name)
{
    fr_neuron_memory memory = view->tensor->layout.memory;
    fr_neuron_engine engine = site->engine;
    const char *engine_name = fr_neuron_engine_name(engine);
    if (memory == FR_NEURON_REGISTER || engine == FR_NEURON_SYNC)
        return FR_OK;
    if (memory == FR_NEURON_PSUM && (engine == FR_NEURON_GPSIMD || engine == FR_NEURON_DMA))
        return fr_neuron_refuse(site->core, site->call, FR_NEURON_RULE_engine_memory, site->error,
                                "%s is in PSUM, which the %s engine cannot reach", name, engine_name);
    if (memory == FR_NEURON_HBM && engine != FR_NEURON_DMA && !site->call->instruction->fence)
        return fr_neuron_refuse(site->core, site->call, FR_NEURON_RULE_engine_memory, site->error,
                                "%s is in HBM, which the %s engine cannot reach", name, engine_name);
    if (memory != FR_NEURON_HBM && view->tensor->core != site->core->physical)
        return fr_neuron_refuse(site->core, site->call, FR_NEURON_RULE_other_core, site->error,
                                "%s is in the memory of core %d, core %d issues", name, view->tensor->core,
                                site->core->physical);
    return FR_OK;
}

/* Engines address partitions by quadrant; a transfer may start anywhere. */
static fr_status check_start(const call_site *site, const fr_neuron_view *view, const char *name)
{
    if (view->partitions == 0 || site->engine == FR_NEURON_DMA || site->engine == FR_NEURON_SYNC)
        return FR_OK;
    const fr_neuron_layout *layout = &view->tensor->layout;
    int start = view->partition + (layout->placed ? layout->start_partition : 0), count = view->partitions;
    bool legal = count > 64 ? start == 0 : count > 32 ? start % 64 == 0 : start % 32 == 0;
    if (legal && start + count <= FR_NEURON_PARTITIONS)
        return FR_OK;
    return fr_neuron_refuse(site->core, site->call, FR_NEURON_RULE_partition_start, site->error,
                            "%s: %d partitions starting at %d", name, count, start);
}

/* Dimensions left after merging; four is what an access pattern of an engine has. */
static fr_status check_pattern(const call_site *site, const fr_neuron_view *view, const char *name)
{
    if (view->partitions == 0 || site->engine == FR_NEURON_DMA || view->dims <= 4)
        return FR_OK;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(site->core, view);
    if (lanes.row.dims <= 4)
        return FR_OK;
    return fr_neuron_refuse(site->core, site->call, FR_NEURON_RULE_access_pattern, site->error,
                            "%s walks %d dimensions of each partition", name, lanes.row.dims);
}

/* Whether a transfer whose dynamic offset lies outside moves nothing instead of being refused. */
static bool may_skip(const fr_neuron_call *call)
{
    const fr_neuron_parameter *parameters = call->instruction->parameters;
    for (int i = 0; i < FR_NEURON_PARAMETERS && parameters[i].name; i++)
        if (strcmp(parameters[i].name, "oob_mode") == 0)
            return call->argument[i].number == 1;
    return false;
}

static fr_status check_view(call_site *site, const fr_neuron_view *view, const fr_neuron_parameter *parameter)
{
    bool skip = view->index && !view->whole_rows && may_skip(site->call);
    FR_TRY(fr_neuron_view_check(site->core, site->call, view, parameter->name, skip ? &site->outside : NULL,
                                site->error));
    FR_TRY(check_reach(site, view, parameter->name));
    if (!parameter->scattered)
        FR_TRY(check_start(site, view, parameter->name));
    if (view->index && view->whole_rows && site->engine != FR_NEURON_DMA)
        return fr_neuron_refuse(site->core, site->call, FR_NEURON_RULE_indirect, site->error,
                                "%s: a list of rows is for transfers only", parameter->name);
    return check_pattern(site, view, parameter->name);
}

static fr_status check_data(const call_site *site, const fr_neuron_view *view, const char *name)
{
    fr_neuron_fill fill = view->tensor->written->fill;
    if (!site->core->compute || site->outside || fill == FR_NEURON_FULL || (view->whole_rows && fill != FR_NEURON_EMPTY) ||
        fr_neuron_written(site->core, view))
        return FR_OK;
    return fr_neuron_refuse(site->core, site->call, FR_NEURON_RULE_uninitialised_read, site->error,
                            "%s reads %s before it was written", name,
                            view->tensor->layout.name ? view->tensor->layout.name : "memory");
}

static fr_status check_argument_views(call_site *site, const fr_neuron_parameter *parameter,
                                      const fr_neuron_argument *argument)
{
    bool list = parameter->kind == FR_NEURON_READ_LIST;
    const fr_neuron_view *views = list ? argument->views : &argument->view;
    int count = list ? argument->count : argument->is_view;
    for (int i = 0; i < count; i++) {
        FR_TRY(check_view(site, &views[i], parameter));
        if (parameter->kind != FR_NEURON_WRITE && parameter->kind != FR_NEURON_UPDATE && !parameter->scattered)
            FR_TRY(check_data(site, &views[i], parameter->name));
    }
    return FR_OK;
}

static fr_status check_views(call_site *site)
{
    const fr_neuron_parameter *parameters = site->call->instruction->parameters;
    for (int i = 0; i < FR_NEURON_PARAMETERS && parameters[i].name; i++)
        if (site->call->argument[i].given)
            FR_TRY(check_argument_views(site, &parameters[i], &site->call->argument[i]));
    return FR_OK;
}

static fr_status check_engine(const call_site *site)
{
    const fr_neuron_instruction *instruction = site->call->instruction;
    if ((unsigned)site->engine < FR_NEURON_ENGINES && instruction->engines & FR_NEURON_ON(site->engine))
        return FR_OK;
    return fr_neuron_refuse(site->core, site->call, FR_NEURON_RULE_engine, site->error,
                            "the %s engine does not run it", fr_neuron_engine_name(site->engine));
}

/* ---- the record ---------------------------------------------------------------------------------- */

static int add_region(fr_neuron_region *regions, int count, const fr_neuron_view *view, int write)
{
    regions[count++] = fr_neuron_region_of(view, write);
    if (!view->index || count == REGIONS)
        return count;
    fr_neuron_view index = fr_neuron_view_of(view->index);
    regions[count++] = fr_neuron_region_of(&index, 0);
    return count;
}

static int list_regions(const fr_neuron_call *call, fr_neuron_region *regions, bool *dynamic, int64_t *extent)
{
    const fr_neuron_parameter *parameters = call->instruction->parameters;
    int count = 0;
    for (int i = 0; i < FR_NEURON_PARAMETERS && parameters[i].name; i++) {
        const fr_neuron_argument *argument = &call->argument[i];
        bool list = parameters[i].kind == FR_NEURON_READ_LIST;
        const fr_neuron_view *views = list ? argument->views : &argument->view;
        int write = parameters[i].kind == FR_NEURON_WRITE    ? 1
                    : parameters[i].kind == FR_NEURON_UPDATE ? 2
                                                             : 0;
        int views_count = !argument->given ? 0 : list ? argument->count : argument->is_view;
        for (int v = 0; v < views_count; v++) {
            *dynamic = *dynamic || views[v].index;
            if (write && *extent == 0)
                *extent = fr_neuron_view_free(&views[v]);
            count = add_region(regions, count, &views[v], write);
        }
    }
    return count;
}

static uint32_t saturated(double value)
{
    return value >= (double)UINT32_MAX ? UINT32_MAX : value > 0 ? (uint32_t)value : 0;
}

/* What tells two calls apart that read and write the same: numbers, FNV-1a over their bytes. */
static uint32_t digest_numbers(const fr_neuron_call *call)
{
    uint32_t digest = 2166136261u;
    for (int i = 0; i < FR_NEURON_PARAMETERS && call->instruction->parameters[i].name; i++) {
        const fr_neuron_argument *argument = &call->argument[i];
        uint8_t bytes[sizeof argument->number];
        memcpy(bytes, &argument->number, sizeof bytes);
        for (size_t b = 0; argument->given && !argument->is_view && b < sizeof bytes; b++)
            digest = (digest ^ bytes[b]) * 16777619u;
        digest = (digest ^ (uint32_t)(2 * argument->given + argument->is_view)) * 16777619u;
    }
    return digest;
}

/* HBM is followed in units of 16 bytes; where in its unit a transfer's source begins. */
static uint8_t source_byte(const fr_neuron_call *call)
{
    const fr_neuron_view *src = fr_neuron_operand(call, 1);
    return src ? (uint8_t)(src->offset * fr_neuron_dtype_bytes(src->dtype) & 15) : 0;
}

static int either_engine(const fr_neuron_call *call, const fr_neuron_cost *cost)
{
    const fr_neuron_view *dst = fr_neuron_operand(call, 0);
    if (cost->engine != FR_NEURON_VECTOR || !(cost->scalar_cycles > 0) || !dst)
        return 0;
    bool half = cost->scalar_cycles < (double)fr_neuron_view_free(dst);
    return FR_NEURON_EITHER | (half ? FR_NEURON_HALF : 0);
}

static fr_neuron_record first_record(const fr_neuron *core, const fr_neuron_call *call,
                                     const fr_neuron_cost *cost)
{
    double floor_cycles = core->machine->issue_floor_cycles[cost->engine];
    bool dma = cost->engine == FR_NEURON_DMA;
    fr_neuron_record record = {
        .instruction = (uint16_t)fr_neuron_instruction_index(call->instruction),
        .engine = (uint8_t)cost->engine,
        .trigger = (uint8_t)(dma ? (cost->trigger ? cost->trigger : FR_NEURON_SYNC) : 0),
        .core = (uint8_t)core->physical,
        .table = dma ? source_byte(call) : cost->table,
        .source = core->source,
        .cycles = (float)(dma                           ? 0
                          : cost->cycles > floor_cycles ? cost->cycles
                                                        : floor_cycles),
        .descriptors = dma ? saturated(cost->descriptors) : digest_numbers(call),
        .bytes = saturated(dma ? cost->bytes : cost->flops / 64),
    };
    record.flags =
        (uint8_t)((cost->guess || call->instruction->cost_guessed ? FR_NEURON_GUESS : 0) |
                  (cost->dynamic ? FR_NEURON_DYNAMIC : 0) | (cost->accumulate ? FR_NEURON_ACCUMULATE : 0) |
                  (call->instruction->fence ? FR_NEURON_FENCE : 0) |
                  (call->instruction->pure ? FR_NEURON_PURE : 0) | either_engine(call, cost));
    return record;
}

static void record_call(fr_neuron *core, const fr_neuron_call *call, const fr_neuron_cost *cost,
                        const fr_neuron_region *regions, int count, int64_t extent)
{
    fr_neuron_record record = first_record(core, call, cost);
    record.extent = (uint32_t)(extent < UINT32_MAX ? extent : UINT32_MAX);
    int done = 0;
    do {
        record.regions = (uint8_t)(count - done < 4 ? count - done : 4);
        for (int i = 0; i < record.regions; i++)
            record.region[i] = regions[done + i];
        done += record.regions;
        record.flags =
            (uint8_t)(done < count ? record.flags | FR_NEURON_MORE : record.flags & ~FR_NEURON_MORE);
        fr_neuron_record_add(core, &record);
        record.cycles = 0;
        record.descriptors = record.bytes = 0;
    } while (done < count);
}

/* ---- issue --------------------------------------------------------------------------------------- */

/* A list of rows touches what it touches: the instruction notes it. */
static bool lists_rows(const fr_neuron_call *call)
{
    for (int i = 0; i < FR_NEURON_PARAMETERS && call->instruction->parameters[i].name; i++)
        if (call->argument[i].given && call->argument[i].is_view && call->argument[i].view.whole_rows)
            return true;
    return false;
}

static bool writes(const fr_neuron_call *call, int i)
{
    return call->instruction->parameters[i].kind == FR_NEURON_WRITE && call->argument[i].given;
}

static bool in_psum(const fr_neuron_view *view)
{
    return view->tensor->layout.memory == FR_NEURON_PSUM;
}

/* Memory for notes of what is written, before it is. */
static fr_status prepare_written(fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    for (int i = 0; i < FR_NEURON_PARAMETERS && call->instruction->parameters[i].name; i++) {
        const fr_neuron_view *view = &call->argument[i].view;
        if (!writes(call, i))
            continue;
        if (view->tensor->written->fill == FR_NEURON_EMPTY && !fr_neuron_covers(core, view))
            FR_TRY(fr_neuron_prepare(core, view, error));
        if (in_psum(view) && view->tensor->begun.fill == FR_NEURON_FULL && !fr_neuron_covers(core, view))
            FR_TRY(fr_neuron_shadow_ready(&view->tensor->begun, error));
    }
    return FR_OK;
}

static void mark_written(fr_neuron *core, const fr_neuron_call *call)
{
    bool rows = lists_rows(call);
    for (int i = 0; i < FR_NEURON_PARAMETERS && call->instruction->parameters[i].name; i++) {
        if (!writes(call, i))
            continue;
        const fr_neuron_view *view = &call->argument[i].view;
        if (!rows)
            fr_neuron_wrote(core, view);
        if (in_psum(view))
            fr_neuron_unbegin(core, view);
    }
}

static fr_status check_call(call_site *site)
{
    const fr_neuron_instruction *instruction = site->call->instruction;
    if (!instruction)
        return fr_neuron_misuse(site->core, site->call, site->error, "no such instruction");
    if (site->core->source_failed)
        return fr_error_memory(site->error, 64, "the table of source lines");
    FR_TRY(check_arguments(site));
    if (site->core->machine->generation < instruction->least_generation)
        FR_TRY(fr_neuron_generation_at_least(site->core, site->call, instruction->least_generation,
                                             instruction->name, site->error));
    site->engine = instruction->engine(site->core, site->call);
    FR_TRY(check_engine(site));
    FR_TRY(check_views(site));
    return instruction->check ? instruction->check(site->core, site->call, site->engine, site->error) : FR_OK;
}

fr_status fr_neuron_issue(fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    call_site site = {.core = core, .call = call, .error = error};
    FR_TRY(check_call(&site));
    fr_neuron_region regions[REGIONS];
    bool dynamic = false;
    int64_t extent = 0;
    int count = list_regions(call, regions, &dynamic, &extent);
    FR_TRY(fr_neuron_records_ready(core, count / 4 + 1, error));
    fr_neuron_cost cost = {.engine = site.engine, .dynamic = dynamic};
    call->instruction->price(core, call, site.engine, &cost);
    if (!site.outside && (core->compute || site.engine == FR_NEURON_SYNC)) {
        fr_neuron_scratch_reset(core);
        FR_TRY(prepare_written(core, call, error));
        FR_TRY(call->instruction->execute(core, call, site.engine, error));
        mark_written(core, call);
    }
    record_call(core, call, &cost, regions, count, extent);
    return FR_OK;
}
