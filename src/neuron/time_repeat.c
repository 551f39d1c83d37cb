/* time_repeat.c: instructions that an optimising compiler leaves out because their result is on chip already.
 *
 * The compiler of the older SDKs, the only one that serves the second generation, does not execute a kernel line by
 * line: a load repeated in every turn of a loop, or a product of two tiles that the loop does not change, is done
 * once. AWS does not publish when; profiles of NKIBench on trn1 show it (a kernel that asks for 302 MB reads 42 MB
 * from HBM). The model is value numbering: an instruction without hidden state has the value of its name, its
 * numbers and the contents it reads. It is spare when that value still fits into the SBUF that the kernel's own tiles
 * leave free, the least recently used going first. The lower bound does without all that is spare. The prediction does
 * without spare loads, and without the computations that the innermost loop around them does not change: the same line
 * of the source made the same value the last time it ran. Program order does without nothing.
 *
 * Contents are numbers, not data: a write makes the tensor's content a digest of what was written where, and a tile
 * that is made anew in each turn has the content of its predecessor when the same was written to it. Digests are 64
 * bits; two that meet by accident would hide one instruction.
 */
#include "neuron/time.h"

#include <string.h>

enum { NONE = -1 };

typedef struct kept { /* a value that was computed, on chip or evicted */
    uint64_t value;
    int32_t older, newer; /* by last use */
    uint32_t bytes;       /* in each partition */
    bool here;
} kept;

struct fr_neuron_repeats {
    const fr_neuron_job *job;
    const fr_neuron_liveness *liveness;
    uint64_t *content; /* by tensor */
    uint64_t *latest;  /* by line of the source: the value it made last */
    uint32_t lines;
    kept *kept;
    int32_t *slot; /* of a hash table, into `kept` */
    int32_t count, capacity, oldest, newest;
    uint32_t mask;
    int64_t room, used; /* bytes of a partition */
};

static uint64_t mix(uint64_t digest, uint64_t value)
{
    digest = (digest ^ value) * 0x9e3779b97f4a7c15u;
    return digest ^ digest >> 29;
}

static uint64_t place_of(const fr_neuron_region *region)
{
    return (uint64_t)region->first << 32 ^ region->last ^ (uint64_t)region->partition << 16 ^
           (uint64_t)region->partitions << 24;
}

/* ---- opening and closing -------------------------------------------------------------------------- */

static fr_status make_room(fr_neuron_repeats *repeats, fr_error *error)
{
    int32_t capacity = repeats->capacity ? 2 * repeats->capacity : 1024;
    size_t bytes = sizeof *repeats->kept * (size_t)capacity;
    kept *grown = fr_reallocate(repeats->kept, bytes);
    repeats->kept = grown ? grown : repeats->kept;
    int32_t *slot = grown ? fr_allocate(sizeof *slot * 2 * (size_t)capacity) : NULL;
    if (!slot)
        return fr_error_memory(error, bytes, "results on chip");
    fr_deallocate(repeats->slot);
    repeats->slot = slot;
    repeats->capacity = capacity;
    repeats->mask = 2 * (uint32_t)capacity - 1;
    for (uint32_t i = 0; i <= repeats->mask; i++)
        slot[i] = NONE;
    for (int32_t i = 0; i < repeats->count; i++) {
        uint32_t at = (uint32_t)grown[i].value & repeats->mask;
        while (slot[at] != NONE)
            at = (at + 1) & repeats->mask;
        slot[at] = i;
    }
    return FR_OK;
}

fr_status fr_neuron_repeats_create(fr_neuron_repeats **out, const fr_neuron_job *job,
                                   const fr_neuron_liveness *liveness, fr_error *error)
{
    fr_neuron_repeats *repeats = *out = fr_allocate(sizeof *repeats);
    if (!repeats)
        return fr_error_memory(error, sizeof *repeats, "results on chip");
    repeats->job = job;
    repeats->liveness = liveness;
    repeats->oldest = repeats->newest = NONE;
    repeats->room = job->machine->sbuf_usable_bytes - liveness->sbuf_peak_bytes;
    size_t bytes = sizeof *repeats->content * ((size_t)job->tensors + 1);
    repeats->content = fr_allocate(bytes);
    if (!repeats->content)
        return fr_error_memory(error, bytes, "contents of tensors");
    for (uint32_t t = 0; t < job->tensors; t++)
        repeats->content[t] = mix(t + 1, 0);
    return make_room(repeats, error);
}

void fr_neuron_repeats_free(fr_neuron_repeats *repeats)
{
    if (!repeats)
        return;
    fr_deallocate(repeats->content);
    fr_deallocate(repeats->latest);
    fr_deallocate(repeats->kept);
    fr_deallocate(repeats->slot);
    fr_deallocate(repeats);
}

/* ---- what is on chip ------------------------------------------------------------------------------ */

static void leave(fr_neuron_repeats *repeats, kept *k)
{
    if (k->older != NONE)
        repeats->kept[k->older].newer = k->newer;
    else
        repeats->oldest = k->newer;
    if (k->newer != NONE)
        repeats->kept[k->newer].older = k->older;
    else
        repeats->newest = k->older;
    k->here = false;
    repeats->used -= k->bytes;
}

static void join(fr_neuron_repeats *repeats, int32_t at)
{
    kept *k = &repeats->kept[at];
    k->older = repeats->newest;
    k->newer = NONE;
    k->here = true;
    if (repeats->newest != NONE)
        repeats->kept[repeats->newest].newer = at;
    else
        repeats->oldest = at;
    repeats->newest = at;
    repeats->used += k->bytes;
}

/* Was the value on chip? It is afterwards, as far as there is room. */
static bool keep(fr_neuron_repeats *repeats, uint64_t value, uint32_t bytes)
{
    uint32_t at = (uint32_t)value & repeats->mask;
    while (repeats->slot[at] != NONE && repeats->kept[repeats->slot[at]].value != value)
        at = (at + 1) & repeats->mask;
    bool fresh = repeats->slot[at] == NONE;
    if (fresh) {
        repeats->slot[at] = repeats->count;
        repeats->kept[repeats->count++] = (kept){.value = value, .bytes = bytes};
    }
    int32_t which = repeats->slot[at];
    bool here = repeats->kept[which].here;
    if (here)
        leave(repeats, &repeats->kept[which]);
    if (bytes > repeats->room)
        return false;
    while (repeats->used + bytes > repeats->room)
        leave(repeats, &repeats->kept[repeats->oldest]);
    join(repeats, which);
    return here;
}

/* ---- records -------------------------------------------------------------------------------------- */

/* Of the operation of records `first` .. first + count - 1: the digest of what it is and what it reads. */
static uint64_t value_of(const fr_neuron_repeats *repeats, int64_t first, int count)
{
    const fr_neuron_job *job = repeats->job;
    const fr_neuron_record *record = job->record(job->context, first);
    uint64_t value = mix(mix(record->instruction, record->descriptors), record->extent);
    if (record->engine == FR_NEURON_DMA)
        value = mix(mix(value, record->bytes), record->table);
    for (int i = 0; i < count; i++) {
        record = job->record(job->context, first + i);
        for (int r = 0; r < record->regions; r++) {
            const fr_neuron_region *region = &record->region[r];
            if (region->write == 1 && !(record->flags & FR_NEURON_ACCUMULATE))
                continue;
            value = mix(mix(value, repeats->content[region->tensor]), place_of(region));
        }
    }
    return value;
}

/* Notes what is written; how many places, and the last of them. */
static int note_writes(fr_neuron_repeats *repeats, int64_t first, int count, uint64_t value,
                       fr_neuron_region *written)
{
    const fr_neuron_job *job = repeats->job;
    int places = 0;
    for (int i = 0; i < count; i++) {
        const fr_neuron_record *record = job->record(job->context, first + i);
        for (int r = 0; r < record->regions; r++) {
            const fr_neuron_region *region = &record->region[r];
            if (!region->write)
                continue;
            const fr_neuron_place *place = &repeats->liveness->place[region->tensor];
            bool chip = region->memory == FR_NEURON_SBUF || region->memory == FR_NEURON_PSUM;
            bool whole = chip && region->write == 1 && region->first == 0 && region->last >= place->bytes;
            uint64_t *content = &repeats->content[region->tensor];
            *content = mix(mix(whole ? 0 : *content, value), place_of(region));
            *written = *region;
            places += region->write == 1 ? 1 : 2;
        }
    }
    return places;
}

/* Did this line make the same value the last time? */
static bool same_again(fr_neuron_repeats *repeats, uint32_t line, uint64_t value, bool *repeated, fr_error *error)
{
    if (line >= repeats->lines) {
        uint32_t lines = line < 128 ? 256 : 2 * line;
        size_t bytes = sizeof *repeats->latest * lines;
        uint64_t *grown = fr_reallocate(repeats->latest, bytes);
        if (!grown) {
            fr_error_memory(error, bytes, "values by line");
            return false;
        }
        memset(grown + repeats->lines, 0, sizeof *grown * (lines - repeats->lines));
        repeats->latest = grown;
        repeats->lines = lines;
    }
    *repeated = repeats->latest[line] == value;
    repeats->latest[line] = value;
    return true;
}

bool fr_neuron_repeats_note(fr_neuron_repeats *repeats, fr_neuron_op *op, fr_error *error)
{
    const fr_neuron_record *record = op->data;
    bool pure = (record->flags & FR_NEURON_PURE) && !(record->flags & FR_NEURON_DYNAMIC), again = true;
    uint64_t value = value_of(repeats, op->record, op->records);
    fr_neuron_region written = {0};
    if (!pure)
        value = mix(value, (uint64_t)op->record + 1);
    int places = note_writes(repeats, op->record, op->records, value, &written);
    if (pure && !op->dma && !same_again(repeats, record->source, value, &again, error))
        return false;
    if (!pure || places != 1 || written.memory != FR_NEURON_SBUF ||
        repeats->liveness->place[written.tensor].placed)
        return true;
    if (repeats->count == repeats->capacity && make_room(repeats, error) != FR_OK)
        return false;
    op->spare = keep(repeats, value, written.last - written.first);
    op->left_out = op->spare && again;
    return true;
}
