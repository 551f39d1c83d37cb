/* time_repeat.c: instructions that an optimising compiler leaves out because their result is on chip already.
 *
 * The compiler of the older SDKs, the only one that serves the second generation, does not execute a kernel line by
 * line: a load repeated in every turn of a loop, or a product of two tiles that the loop does not change, is done
 * once. AWS does not publish when; profiles of NKIBench on trn1 show it (a kernel that asks for 302 MB reads 42 MB
 * from HBM). The model is value numbering: an instruction without hidden state has the value of its name, its
 * numbers and the contents it reads, and it is a repeat when that value was made before. The lower bound has unlimited
 * storage and does without all repeats. The prediction keeps what fits into the SBUF that the kernel's own tiles leave
 * free, the least recently used going first; it does without repeated loads, and computations that the innermost loop
 * does not change: the same line of the source made the same value the last time it ran. Program order repeats all.
 *
 * It also decides where the values of the older style lie. A copy out of PSUM whose source is still as it was need not
 * be read: Vector's tensor_tensor takes N cycles with one operand in PSUM and 2N with both in SBUF (NKI API pages), so
 * it is priced as reading the source. The copy itself stays in the prediction; the lower bound does without.
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

typedef struct evacuated { /* of a tensor that a copy out of PSUM made */
    uint32_t source;       /* tensor, plus 1; 0: none */
    uint64_t content, source_content;
} evacuated;

typedef struct shelf { /* values on chip */
    kept *kept;
    int32_t *slot; /* of a hash table, into `kept` */
    int32_t count, capacity, oldest, newest;
    uint32_t mask;
    int64_t room, used; /* bytes of a partition */
} shelf;

struct fr_neuron_repeats {
    const fr_neuron_job *job;
    const fr_neuron_liveness *liveness;
    shelf beside, unlimited; /* room: what the kernel's tiles leave free; any */
    uint64_t *content;   /* by tensor */
    evacuated *evacuated; /* by tensor */
    uint64_t *latest;  /* by line of the source: the value it made last */
    uint32_t lines;
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

static fr_status make_room(shelf *on, fr_error *error)
{
    int32_t capacity = on->capacity ? 2 * on->capacity : 1024;
    size_t bytes = sizeof *on->kept * (size_t)capacity;
    kept *grown = fr_reallocate(on->kept, bytes);
    on->kept = grown ? grown : on->kept;
    int32_t *slot = grown ? fr_allocate(sizeof *slot * 2 * (size_t)capacity) : NULL;
    if (!slot)
        return fr_error_memory(error, bytes, "results on chip");
    fr_deallocate(on->slot);
    on->slot = slot;
    on->capacity = capacity;
    on->mask = 2 * (uint32_t)capacity - 1;
    for (uint32_t i = 0; i <= on->mask; i++)
        slot[i] = NONE;
    for (int32_t i = 0; i < on->count; i++) {
        uint32_t at = (uint32_t)grown[i].value & on->mask;
        while (slot[at] != NONE)
            at = (at + 1) & on->mask;
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
    int64_t usable = job->machine->sbuf_usable_bytes;
    repeats->beside = (shelf){.oldest = NONE, .newest = NONE, .room = usable - liveness->sbuf_peak_bytes};
    repeats->unlimited = (shelf){.oldest = NONE, .newest = NONE, .room = INT64_MAX / 2};
    size_t bytes = sizeof *repeats->content * ((size_t)job->tensors + 1);
    repeats->content = fr_allocate(bytes);
    repeats->evacuated = fr_allocate(sizeof *repeats->evacuated * ((size_t)job->tensors + 1));
    if (!repeats->content || !repeats->evacuated)
        return fr_error_memory(error, bytes, "contents of tensors");
    for (uint32_t t = 0; t < job->tensors; t++)
        repeats->content[t] = mix(t + 1, 0);
    FR_TRY(make_room(&repeats->beside, error));
    return make_room(&repeats->unlimited, error);
}

void fr_neuron_repeats_free(fr_neuron_repeats *repeats)
{
    if (!repeats)
        return;
    fr_deallocate(repeats->content);
    fr_deallocate(repeats->evacuated);
    fr_deallocate(repeats->latest);
    fr_deallocate(repeats->beside.kept);
    fr_deallocate(repeats->beside.slot);
    fr_deallocate(repeats->unlimited.kept);
    fr_deallocate(repeats->unlimited.slot);
    fr_deallocate(repeats);
}

/* ---- what is on chip ------------------------------------------------------------------------------ */

static void leave(shelf *on, kept *k)
{
    if (k->older != NONE)
        on->kept[k->older].newer = k->newer;
    else
        on->oldest = k->newer;
    if (k->newer != NONE)
        on->kept[k->newer].older = k->older;
    else
        on->newest = k->older;
    k->here = false;
    on->used -= k->bytes;
}

static void join(shelf *on, int32_t at)
{
    kept *k = &on->kept[at];
    k->older = on->newest;
    k->newer = NONE;
    k->here = true;
    if (on->newest != NONE)
        on->kept[on->newest].newer = at;
    else
        on->oldest = at;
    on->newest = at;
    on->used += k->bytes;
}

/* Was the value on chip? It is afterwards, as far as there is room. */
static fr_status keep(shelf *on, uint64_t value, uint32_t bytes, bool *found, fr_error *error)
{
    if (on->count == on->capacity)
        FR_TRY(make_room(on, error));
    uint32_t at = (uint32_t)value & on->mask;
    while (on->slot[at] != NONE && on->kept[on->slot[at]].value != value)
        at = (at + 1) & on->mask;
    bool fresh = on->slot[at] == NONE;
    if (fresh) {
        on->slot[at] = on->count;
        on->kept[on->count++] = (kept){.value = value, .bytes = bytes};
    }
    int32_t which = on->slot[at];
    *found = on->kept[which].here;
    if (*found)
        leave(on, &on->kept[which]);
    if (bytes > on->room)
        return FR_OK;
    while (on->used + bytes > on->room)
        leave(on, &on->kept[on->oldest]);
    join(on, which);
    return FR_OK;
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

/* Is it a copy of a whole PSUM tile? Then it is remembered. */
static bool note_evacuation(fr_neuron_repeats *repeats, const fr_neuron_op *op)
{
    const fr_neuron_record *record = op->data;
    const fr_neuron_region *to = &record->region[0], *from = &record->region[1];
    if (record->instruction != repeats->job->copy || op->records != 1 || record->regions != 2 ||
        from->memory != FR_NEURON_PSUM || to->memory != FR_NEURON_SBUF || to->partitions != from->partitions ||
        to->last - to->first != from->last - from->first ||
        to->last - to->first < repeats->liveness->place[to->tensor].bytes)
        return false;
    repeats->evacuated[to->tensor] = (evacuated){
        .source = from->tensor + 1, .content = repeats->content[to->tensor], .source_content = repeats->content[from->tensor]};
    return true;
}

/* One operand of a tensor_tensor, both in SBUF, can come from PSUM instead: half the time. */
static void forward_operand(const fr_neuron_repeats *repeats, fr_neuron_op *op)
{
    const fr_neuron_record *record = op->data;
    bool chip = record->instruction == repeats->job->pair && op->records == 1 && op->queue == FR_NEURON_VECTOR;
    bool source = false;
    if (!chip || record->cycles < 2.0f * (float)record->extent)
        return;
    for (int r = 0; r < record->regions; r++) {
        const fr_neuron_region *region = &record->region[r];
        const evacuated *e = &repeats->evacuated[region->tensor];
        source |= region->write == 0 && e->source && e->content == repeats->content[region->tensor] &&
                  e->source_content == repeats->content[e->source - 1];
    }
    op->busy *= source ? 0.5 : 1;
    op->choice[0] *= source ? 0.5 : 1;
}

bool fr_neuron_repeats_note(fr_neuron_repeats *repeats, fr_neuron_op *op, fr_error *error)
{
    const fr_neuron_record *record = op->data;
    bool pure = (record->flags & FR_NEURON_PURE) && !(record->flags & FR_NEURON_DYNAMIC), again = true;
    uint64_t value = value_of(repeats, op->record, op->records);
    forward_operand(repeats, op);
    fr_neuron_region written = {0};
    if (!pure)
        value = mix(value, (uint64_t)op->record + 1);
    int places = note_writes(repeats, op->record, op->records, value, &written);
    bool spare = note_evacuation(repeats, op);
    if (pure && !op->dma && !same_again(repeats, record->source, value, &again, error))
        return false;
    if (!pure || places != 1 || written.memory != FR_NEURON_SBUF ||
        repeats->liveness->place[written.tensor].placed)
        return true;
    uint32_t bytes = written.last - written.first;
    bool beside;
    if (keep(&repeats->unlimited, value, bytes, &op->spare, error) != FR_OK ||
        keep(&repeats->beside, value, bytes, &beside, error) != FR_OK)
        return false;
    op->left_out = beside && again;
    op->spare |= spare;
    return true;
}
