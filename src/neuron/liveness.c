/* liveness.c: where tiles lie, and what does not fit.
 *
 * A tile with an explicit address lies there. Any other tile is alive from its first access to its last and
 * is given an address for that time, SBUF by bytes over all partitions, PSUM by whole banks. Addresses are
 * handed out going round the memory, so that a freed place rests as long as possible before it is used
 * again: that is what lets loads of later iterations run ahead, as far as the memory reaches and no
 * further.
 *
 * The last operand read by an element-wise instruction makes room for its result: engines read an element before they
 * write it.
 *
 * A tile that would exceed the usable memory at the moment of its first access is spilled: the compiler
 * would keep it in HBM and fetch it when needed. When the bytes would fit but no single hole does, the tile
 * is kept apart: it costs nothing and nobody waits for its place.
 */
#include "neuron/time.h"

#include <string.h>

typedef struct live_tile {
    uint32_t address, bytes, tensor;
} live_tile;

typedef struct live_memory { /* one memory of one core */
    live_tile *tiles;        /* by address */
    int count, capacity;
    uint32_t limit, unit, next;
    int64_t used, peak;
} live_memory;

typedef struct placing {
    fr_neuron_liveness *liveness;
    live_memory memory[FR_NEURON_TIME_CORES][2];
} placing;

/* ---- lifetimes ------------------------------------------------------------------------------------ */

static bool on_chip(int memory)
{
    return memory == FR_NEURON_SBUF || memory == FR_NEURON_PSUM;
}

static void touch(fr_neuron_place *place, const fr_neuron_record *record, const fr_neuron_region *region,
                  int64_t at)
{
    if (place->first < 0) {
        place->first = at;
        place->core = record->core;
        place->memory = region->memory;
    }
    place->last = at;
    place->read |= region->write != 1;
    place->written |= region->write != 0;
    place->made |= region->write != 0 && record->engine != FR_NEURON_DMA;
    if (on_chip(region->memory)) {
        place->bytes = region->last > place->bytes ? region->last : place->bytes;
        int high = region->partition + region->partitions;
        place->partitions = (uint8_t)(high > place->partitions ? high : place->partitions);
    }
}

static fr_status find_lifetimes(fr_neuron_liveness *liveness, const fr_neuron_job *job, fr_error *error)
{
    for (uint32_t t = 0; t < job->tensors; t++)
        liveness->place[t].first = -1;
    for (int64_t i = 0; i < job->records; i++) {
        const fr_neuron_record *record = job->record(job->context, i);
        if (record->core >= job->cores || record->regions > 4)
            return fr_error_set(error, FR_BUG, "timing", NULL, "record %lld names core %d and %d regions",
                                (long long)i, record->core, record->regions);
        for (int r = 0; r < record->regions; r++) {
            if (record->region[r].tensor >= job->tensors)
                return fr_error_set(error, FR_BUG, "timing", NULL, "record %lld names tensor %u of %u",
                                    (long long)i, record->region[r].tensor, job->tensors);
            touch(&liveness->place[record->region[r].tensor], record, &record->region[r], i);
        }
    }
    return FR_OK;
}

/* ---- placing -------------------------------------------------------------------------------------- */

static int position_of(const live_memory *memory, uint32_t address)
{
    int low = 0, high = memory->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (memory->tiles[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert_at(live_memory *memory, int position, live_tile tile)
{
    if (memory->count == memory->capacity) {
        int capacity = memory->capacity ? 2 * memory->capacity : 64;
        void *grown = fr_reallocate(memory->tiles, sizeof *memory->tiles * (size_t)capacity);
        if (!grown)
            return false;
        memory->tiles = grown;
        memory->capacity = capacity;
    }
    memmove(memory->tiles + position + 1, memory->tiles + position,
            sizeof *memory->tiles * (size_t)(memory->count - position));
    memory->tiles[position] = tile;
    memory->count++;
    return true;
}

/* First hole of `bytes` at or after `from`, or UINT32_MAX. Tiles placed by the kernel may lie over each
 * other. */
static uint32_t hole_after(const live_memory *memory, uint32_t from, uint32_t bytes)
{
    int position = position_of(memory, from);
    uint32_t start = from;
    for (int i = 0; i < position; i++) {
        uint32_t end = memory->tiles[i].address + memory->tiles[i].bytes;
        start = end > start ? end : start;
    }
    for (int i = position; i < memory->count; i++) {
        if (memory->tiles[i].address >= start && memory->tiles[i].address - start >= bytes)
            return start;
        uint32_t end = memory->tiles[i].address + memory->tiles[i].bytes;
        start = end > start ? end : start;
    }
    return start <= memory->limit && memory->limit - start >= bytes ? start : UINT32_MAX;
}

static bool give_address(live_memory *memory, fr_neuron_place *place, uint32_t tensor, uint32_t bytes)
{
    uint32_t address = hole_after(memory, memory->next, bytes);
    if (address == UINT32_MAX)
        address = hole_after(memory, 0, bytes);
    if (address == UINT32_MAX) /* in pieces only: kept apart */
        return true;
    place->residence = FR_NEURON_RESIDENT;
    place->address = address;
    memory->next = address + bytes >= memory->limit ? 0 : address + bytes;
    return insert_at(memory, position_of(memory, address), (live_tile){address, bytes, tensor});
}

static uint32_t rounded(const live_memory *memory, const fr_neuron_place *place)
{
    return (place->bytes + memory->unit - 1) / memory->unit * memory->unit;
}

static bool begin_life(placing *p, uint32_t tensor, const fr_neuron_job *job)
{
    fr_neuron_place *place = &p->liveness->place[tensor];
    live_memory *memory = &p->memory[place->core][place->memory == FR_NEURON_PSUM];
    uint32_t bytes = rounded(memory, place);
    fr_neuron_facts facts = job->tensor(job->context, tensor);
    if (facts.placed) {
        place->placed = true;
        place->residence = FR_NEURON_RESIDENT;
        place->address = (uint32_t)facts.byte_offset;
        place->start = (uint8_t)facts.start_partition;
        memory->used += bytes;
        if (!insert_at(memory, position_of(memory, place->address),
                       (live_tile){place->address, bytes, tensor}))
            return false;
    } else if (memory->used + bytes > memory->limit) {
        place->residence = FR_NEURON_SPILLED;
        p->liveness->spilled++;
    } else {
        memory->used += bytes;
        if (!give_address(memory, place, tensor, bytes))
            return false;
    }
    memory->peak = memory->used > memory->peak ? memory->used : memory->peak;
    return true;
}

static void end_life(placing *p, uint32_t tensor)
{
    const fr_neuron_place *place = &p->liveness->place[tensor];
    live_memory *memory = &p->memory[place->core][place->memory == FR_NEURON_PSUM];
    if (place->residence == FR_NEURON_SPILLED)
        return;
    memory->used -= rounded(memory, place);
    if (place->residence != FR_NEURON_RESIDENT)
        return;
    int at = position_of(memory, place->address);
    while (at < memory->count && memory->tiles[at].tensor != tensor)
        at++;
    if (at < memory->count) {
        memory->count--;
        memmove(memory->tiles + at, memory->tiles + at + 1,
                sizeof *memory->tiles * (size_t)(memory->count - at));
    }
}

/* Is region `r` an SBUF operand that is read for the last time, as much as is written into a tile that begins? */
static bool hands_over(const fr_neuron_record *record, int r, const fr_neuron_place *places, int64_t i)
{
    const fr_neuron_region *from = &record->region[r], *to = &record->region[0];
    if (record->engine < FR_NEURON_VECTOR || record->engine > FR_NEURON_GPSIMD || r == 0 || from->write ||
        from->memory != FR_NEURON_SBUF || to->memory != FR_NEURON_SBUF || to->write != 1)
        return false;
    bool same = from->partitions == to->partitions && from->last - from->first == to->last - to->first;
    bool once = true;
    for (int s = 0; s < record->regions; s++)
        once &= s == r || record->region[s].tensor != from->tensor;
    return same && once && places[from->tensor].last == i && places[to->tensor].first == i &&
           places[from->tensor].first != i;
}

static bool place_record(placing *p, const fr_neuron_job *job, int64_t i)
{
    const fr_neuron_record *record = job->record(job->context, i);
    const fr_neuron_place *places = p->liveness->place;
    int handed = 0;
    while (handed < record->regions && !hands_over(record, handed, places, i))
        handed++;
    if (handed < record->regions)
        end_life(p, record->region[handed].tensor);
    for (int r = 0; r < record->regions; r++) {
        const fr_neuron_region *region = &record->region[r];
        bool seen = false;
        for (int s = 0; s < r; s++)
            seen |= record->region[s].tensor == region->tensor;
        if (on_chip(region->memory) && !seen && places[region->tensor].first == i &&
            !begin_life(p, region->tensor, job))
            return false;
    }
    for (int r = 0; r < record->regions; r++) {
        const fr_neuron_region *region = &record->region[r];
        bool later = false;
        for (int s = r + 1; s < record->regions; s++)
            later |= record->region[s].tensor == region->tensor;
        if (on_chip(region->memory) && !later && r != handed && places[region->tensor].last == i)
            end_life(p, region->tensor);
    }
    return true;
}

static void start_memories(placing *p, const fr_neuron_machine *machine)
{
    for (int c = 0; c < FR_NEURON_TIME_CORES; c++) {
        p->memory[c][0].limit = (uint32_t)machine->sbuf_usable_bytes;
        p->memory[c][0].unit = 32;
        p->memory[c][1].limit = (uint32_t)(machine->psum_bank_bytes * machine->psum_banks);
        p->memory[c][1].unit = (uint32_t)machine->psum_bank_bytes;
    }
}

static void finish_memories(placing *p, const fr_neuron_machine *machine)
{
    for (int c = 0; c < FR_NEURON_TIME_CORES; c++) {
        int64_t sbuf = p->memory[c][0].peak, banks = p->memory[c][1].peak / machine->psum_bank_bytes;
        sbuf = sbuf < machine->sbuf_partition_bytes ? sbuf : machine->sbuf_partition_bytes;
        banks = banks < machine->psum_banks ? banks : machine->psum_banks;
        fr_neuron_liveness *liveness = p->liveness;
        liveness->sbuf_peak_bytes = sbuf > liveness->sbuf_peak_bytes ? sbuf : liveness->sbuf_peak_bytes;
        liveness->psum_peak_banks = banks > liveness->psum_peak_banks ? banks : liveness->psum_peak_banks;
        fr_deallocate(p->memory[c][0].tiles);
        fr_deallocate(p->memory[c][1].tiles);
    }
}

fr_status fr_neuron_liveness_init(fr_neuron_liveness *liveness, const fr_neuron_job *job, fr_error *error)
{
    memset(liveness, 0, sizeof *liveness);
    liveness->tensors = job->tensors;
    size_t bytes = sizeof *liveness->place * ((size_t)job->tensors + 1);
    if (!(liveness->place = fr_allocate(bytes)))
        return fr_error_memory(error, bytes, "lifetimes of tensors");
    fr_status status = find_lifetimes(liveness, job, error);
    placing p = {.liveness = liveness};
    start_memories(&p, job->machine);
    bool fine = true;
    for (int64_t i = 0; status == FR_OK && fine && i < job->records; i++)
        fine = place_record(&p, job, i);
    finish_memories(&p, job->machine);
    if (status == FR_OK && !fine)
        status = fr_error_memory(error, sizeof(live_tile), "live tiles");
    if (status != FR_OK)
        fr_neuron_liveness_release(liveness);
    return status;
}

void fr_neuron_liveness_release(fr_neuron_liveness *liveness)
{
    fr_deallocate(liveness->place);
    liveness->place = NULL;
}
