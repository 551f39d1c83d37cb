/* A core: creation, its trace of records, and the table of source lines that records refer to.
 *
 * Records are kept in chunks that never move, so a million of them cost no copying and the timing pass may
 * hold pointers. Source lines repeat (a loop issues from the same few lines), so a small hash table gives
 * each (file, line) a number. */
#include "neuron/core.h"

#include <string.h>

fr_status fr_neuron_create(fr_neuron **out, const fr_neuron_machine *machine, int cores, fr_error *error)
{
    if (cores < 1 || cores > FR_NEURON_CORES)
        return fr_error_set(error, FR_BAD_USAGE, "core", "1, or 2 for a logical core of two",
                            "%d physical cores", cores);
    fr_neuron *core = fr_allocate(sizeof *core);
    if (!core)
        return fr_error_memory(error, sizeof *core, "a core");
    core->machine = machine;
    core->cores = cores;
    core->compute = true;
    fr_arena_init(&core->arena, 1 << 16);
    fr_arena_init(&core->scratch, 1 << 20);
    for (int i = 0; i < cores; i++) {
        core->lanes[i] = fr_allocate(sizeof *core->lanes[i]);
        if (!core->lanes[i]) {
            fr_neuron_free(core);
            return fr_error_memory(error, sizeof *core->lanes[i], "a core's registers");
        }
    }
    *out = core;
    return FR_OK;
}

static void free_memories(fr_neuron *core)
{
    for (int i = 0; i < FR_NEURON_CORES; i++) {
        fr_deallocate(core->sbuf[i].data);
        fr_deallocate(core->psum[i].data);
        fr_neuron_shadow_release(&core->sbuf[i].written);
        fr_neuron_shadow_release(&core->psum[i].written);
        fr_deallocate(core->lanes[i]);
        fr_deallocate(core->mail[i].data);
    }
    for (int i = 0; i < FR_NEURON_POOL; i++)
        while (core->spares[i].first) {
            void *memory = core->spares[i].first;
            memcpy(&core->spares[i].first, memory, sizeof core->spares[i].first);
            fr_deallocate(memory);
        }
}

void fr_neuron_free(fr_neuron *core)
{
    if (!core)
        return;
    for (int64_t i = 0; i < core->tensor_count; i++)
        fr_neuron_tensor_release(core, core->tensors[i]);
    free_memories(core);
    for (int64_t i = 0;
         i * FR_NEURON_CHUNK < core->record_count || (i < core->chunk_capacity && core->chunks[i]); i++)
        fr_deallocate(core->chunks[i]);
    fr_deallocate(core->chunks);
    fr_deallocate(core->tensors);
    fr_deallocate(core->sources);
    fr_deallocate(core->source_slots);
    fr_deallocate(core->files);
    fr_deallocate(core->scratch_block);
    fr_arena_release(&core->scratch);
    fr_arena_release(&core->arena);
    fr_deallocate(core);
}

const fr_neuron_machine *fr_neuron_machine_of(const fr_neuron *core)
{
    return core->machine;
}

void fr_neuron_select(fr_neuron *core, int physical)
{
    if (physical >= 0 && physical < core->cores)
        core->physical = physical;
}

void fr_neuron_compute(fr_neuron *core, bool on)
{
    core->compute = on;
}

fr_neuron_lane_state *fr_neuron_lane_state_of(fr_neuron *core)
{
    return core->lanes[core->physical];
}

/* ---- records ------------------------------------------------------------------------------------- */

/* Room for `more` records, so that adding them after the instruction ran cannot fail. */
fr_status fr_neuron_records_ready(fr_neuron *core, int more, fr_error *error)
{
    int64_t last = (core->record_count + more - 1) / FR_NEURON_CHUNK;
    if (last >= core->chunk_capacity) {
        int64_t capacity = core->chunk_capacity ? 2 * core->chunk_capacity : 16;
        fr_neuron_record **grown = fr_reallocate(core->chunks, (size_t)capacity * sizeof *grown);
        if (!grown)
            return fr_error_memory(error, (size_t)capacity * sizeof *grown, "the trace");
        memset(grown + core->chunk_capacity, 0, (size_t)(capacity - core->chunk_capacity) * sizeof *grown);
        core->chunks = grown;
        core->chunk_capacity = capacity;
    }
    for (int64_t i = core->record_count / FR_NEURON_CHUNK; i <= last; i++) {
        if (core->chunks[i])
            continue;
        core->chunks[i] = fr_allocate(FR_NEURON_CHUNK * sizeof **core->chunks);
        if (!core->chunks[i])
            return fr_error_memory(error, FR_NEURON_CHUNK * sizeof **core->chunks, "the trace");
    }
    return FR_OK;
}

void fr_neuron_record_add(fr_neuron *core, const fr_neuron_record *record)
{
    core->chunks[core->record_count / FR_NEURON_CHUNK][core->record_count % FR_NEURON_CHUNK] = *record;
    core->record_count++;
}

int64_t fr_neuron_record_count(const fr_neuron *core)
{
    return core->record_count;
}

const fr_neuron_record *fr_neuron_record_at(const fr_neuron *core, int64_t index)
{
    if (index < 0 || index >= core->record_count)
        return NULL;
    return &core->chunks[index / FR_NEURON_CHUNK][index % FR_NEURON_CHUNK];
}

/* ---- source lines -------------------------------------------------------------------------------- */

/* The core's own copy of a file name; NULL when there is no memory. Programs have a handful of files. */
static const char *keep_file(fr_neuron *core, const char *file)
{
    for (int64_t i = core->file_count - 1; i >= 0; i--)
        if (strcmp(core->files[i], file) == 0)
            return core->files[i];
    if (core->file_count == core->file_capacity) {
        int64_t capacity = core->file_capacity ? 2 * core->file_capacity : 8;
        const char **grown = fr_reallocate(core->files, (size_t)capacity * sizeof *grown);
        if (!grown)
            return NULL;
        core->files = grown;
        core->file_capacity = capacity;
    }
    const char *copy = fr_arena_strdup(&core->arena, file);
    if (copy)
        core->files[core->file_count++] = copy;
    return copy;
}

static uint64_t slot_of(const char *file, int line, int64_t slots)
{
    uint64_t key = (uint64_t)(uintptr_t)file ^ (uint64_t)(uint32_t)line * 0x9E3779B97F4A7C15ull;
    key *= 0xD6E8FEB86659FD93ull;
    return (key >> 20) & (uint64_t)(slots - 1);
}

static uint32_t *find_slot(fr_neuron *core, const char *file, int line)
{
    uint64_t mask = (uint64_t)core->source_slot_count - 1;
    for (uint64_t i = slot_of(file, line, core->source_slot_count);; i = (i + 1) & mask) {
        uint32_t entry = core->source_slots[i];
        if (entry == 0 || (core->sources[entry - 1].file == file && core->sources[entry - 1].line == line))
            return &core->source_slots[i];
    }
}

static bool grow_sources(fr_neuron *core)
{
    int64_t capacity = core->source_capacity ? 2 * core->source_capacity : 64;
    fr_neuron_source *sources = fr_reallocate(core->sources, (size_t)capacity * sizeof *sources);
    if (!sources)
        return false;
    core->sources = sources;
    uint32_t *slots = fr_allocate((size_t)(2 * capacity) * sizeof *slots);
    if (!slots)
        return false;
    fr_deallocate(core->source_slots);
    core->source_capacity = capacity;
    core->source_slots = slots;
    core->source_slot_count = 2 * capacity;
    for (int64_t i = 0; i < core->source_count; i++)
        *find_slot(core, core->sources[i].file, core->sources[i].line) = (uint32_t)i + 1;
    return true;
}

/* A failure for want of memory is reported by the next issue. */
void fr_neuron_at(fr_neuron *core, const char *file, int line)
{
    if (core->source < core->source_count && core->sources[core->source].line == line &&
        strcmp(core->sources[core->source].file, file) == 0)
        return;
    const char *kept = keep_file(core, file);
    core->source_failed = !kept || (core->source_count == core->source_capacity && !grow_sources(core));
    if (core->source_failed)
        return;
    uint32_t *slot = find_slot(core, kept, line);
    if (*slot == 0) {
        core->sources[core->source_count++] = (fr_neuron_source){kept, line};
        *slot = (uint32_t)core->source_count;
    }
    core->source = *slot - 1;
}

const char *fr_neuron_source_file(const fr_neuron *core, uint32_t source, int *line)
{
    if (source >= core->source_count)
        return NULL;
    if (line)
        *line = core->sources[source].line;
    return core->sources[source].file;
}
