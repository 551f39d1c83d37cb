/* depend.c: which earlier accesses an operation has to wait for.
 *
 * On chip an access is a box of physical addresses, partitions by bytes, so tiles that share an address are
 * seen to conflict whatever tensor they belong to. Addresses are cut into cells of 2 KiB (a PSUM bank is
 * one cell); a cell keeps the accesses that still matter. Everything else (HBM, tiles without an address)
 * is a space of its own, kept by tensor; HBM that a kernel only reads, or only writes, has no conflict
 * worth keeping: two writes without a read between them would be a kernel that throws work away, and
 * bounding boxes of strided writes meet without touching.
 *
 * A write makes older accesses inside its box needless, since whoever conflicts with them also conflicts
 * with it. Reads of one box by one compute engine stay in order, which keeps one of them enough. When a
 * list still grows, accesses that the caller calls settled (so long past that nobody waits) are dropped.
 */
#include "neuron/time.h"

#include <string.h>

enum { CELL = 2048, TIDY = 48 };

typedef struct access_list {
    fr_neuron_access *items;
    int count, capacity, tidy;
} access_list;

struct fr_neuron_depend {
    access_list *cells[2]; /* SBUF, PSUM */
    int cell_count[2];
    access_list **own; /* by tensor */
    uint32_t tensors;
    fr_neuron_settled_function *settled;
    void *context;
};

fr_status fr_neuron_depend_create(fr_neuron_depend **out, const fr_neuron_job *job,
                                  fr_neuron_settled_function *settled, void *context, fr_error *error)
{
    fr_neuron_depend *depend = *out = fr_allocate(sizeof *depend);
    if (!depend)
        return fr_error_memory(error, sizeof *depend, "dependences");
    const fr_neuron_machine *machine = job->machine;
    depend->settled = settled;
    depend->context = context;
    depend->tensors = job->tensors;
    depend->cell_count[0] = (int)((machine->sbuf_partition_bytes + CELL - 1) / CELL);
    depend->cell_count[1] = (int)((machine->psum_bank_bytes * machine->psum_banks + CELL - 1) / CELL);
    depend->own = fr_allocate(sizeof *depend->own * (job->tensors + 1));
    for (int i = 0; i < 2; i++)
        depend->cells[i] = fr_allocate(sizeof **depend->cells * ((size_t)depend->cell_count[i] + 1));
    if (depend->own && depend->cells[0] && depend->cells[1])
        return FR_OK;
    fr_neuron_depend_free(depend);
    *out = NULL;
    return fr_error_memory(error, sizeof *depend->own * job->tensors, "dependences");
}

void fr_neuron_depend_free(fr_neuron_depend *depend)
{
    if (!depend)
        return;
    for (int i = 0; i < 2; i++) {
        for (int c = 0; depend->cells[i] && c < depend->cell_count[i]; c++)
            fr_deallocate(depend->cells[i][c].items);
        fr_deallocate(depend->cells[i]);
    }
    for (uint32_t t = 0; depend->own && t < depend->tensors; t++)
        if (depend->own[t]) {
            fr_deallocate(depend->own[t]->items);
            fr_deallocate(depend->own[t]);
        }
    fr_deallocate(depend->own);
    fr_deallocate(depend);
}

/* ---- one list ------------------------------------------------------------------------------------- */

static bool meets(const fr_neuron_box *a, const fr_neuron_box *b)
{
    return a->first < b->last && b->first < a->last && a->low < b->high && b->low < a->high;
}

/* b inside a, as far as [first, last) is concerned. */
static bool covers(const fr_neuron_box *a, const fr_neuron_box *b, uint32_t first, uint32_t last)
{
    uint32_t b_first = b->first > first ? b->first : first, b_last = b->last < last ? b->last : last;
    return a->first <= b_first && a->last >= b_last && a->low <= b->low && a->high >= b->high;
}

static bool same_reader(const fr_neuron_access *a, const fr_neuron_access *b)
{
    return !a->dma && !b->dma && a->engine == b->engine && !a->box.writes && !b->box.writes;
}

static void report_list(const access_list *list, const fr_neuron_access *access, uint32_t first,
                        uint32_t last, fr_neuron_conflict_function *report, void *context)
{
    for (int i = 0; i < list->count; i++) {
        const fr_neuron_access *earlier = &list->items[i];
        if (!meets(&earlier->box, &access->box))
            continue;
        if (earlier->box.writes)
            report(context, earlier, access->box.reads ? FR_NEURON_RAW : FR_NEURON_WAW);
        else if (access->box.writes)
            report(context, earlier, FR_NEURON_WAR);
        else if (same_reader(access, earlier) && covers(&access->box, &earlier->box, first, last))
            report(context, earlier, FR_NEURON_ORDER);
    }
}

static bool needless(const fr_neuron_access *earlier, const fr_neuron_access *access, uint32_t first,
                     uint32_t last)
{
    return earlier->op != access->op && (access->box.writes || same_reader(access, earlier)) &&
           covers(&access->box, &earlier->box, first, last);
}

static void forget(fr_neuron_depend *depend, access_list *list)
{
    int kept = 0;
    for (int i = 0; i < list->count; i++)
        if (!depend->settled(depend->context, &list->items[i]))
            list->items[kept++] = list->items[i];
    list->count = kept;
    list->tidy = 2 * kept > TIDY ? 2 * kept : TIDY;
}

static bool note_list(fr_neuron_depend *depend, access_list *list, const fr_neuron_access *access,
                      uint32_t first, uint32_t last)
{
    int kept = 0;
    for (int i = 0; i < list->count; i++)
        if (!needless(&list->items[i], access, first, last)) {
            if (kept != i)
                list->items[kept] = list->items[i];
            kept++;
        }
    list->count = kept;
    if (kept >= TIDY && kept >= list->tidy)
        forget(depend, list);
    if (list->count == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 4;
        void *grown = fr_reallocate(list->items, sizeof *list->items * (size_t)capacity);
        if (!grown)
            return false;
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = *access;
    return true;
}

/* ---- all of them ---------------------------------------------------------------------------------- */

typedef struct cell_range {
    access_list *cells;
    uint32_t first, last; /* cells, last inclusive */
} cell_range;

static cell_range cells_of(const fr_neuron_depend *depend, const fr_neuron_box *box)
{
    int which = box->memory == FR_NEURON_PSUM;
    uint32_t most = (uint32_t)depend->cell_count[which] - 1;
    uint32_t first = box->first / CELL, last = (box->last > box->first ? box->last - 1 : box->first) / CELL;
    return (cell_range){depend->cells[which], first < most ? first : most, last < most ? last : most};
}

void fr_neuron_depend_find(fr_neuron_depend *depend, const fr_neuron_access *access,
                           fr_neuron_conflict_function *report, void *context)
{
    const fr_neuron_box *box = &access->box;
    if (!box->resident) {
        const access_list *list = box->tensor < depend->tensors ? depend->own[box->tensor] : NULL;
        if (list)
            report_list(list, access, 0, UINT32_MAX, report, context);
        return;
    }
    cell_range range = cells_of(depend, box);
    for (uint32_t c = range.first; c <= range.last; c++)
        if (range.cells[c].count)
            report_list(&range.cells[c], access, c * CELL, (c + 1) * CELL, report, context);
}

bool fr_neuron_depend_note(fr_neuron_depend *depend, const fr_neuron_access *access)
{
    const fr_neuron_box *box = &access->box;
    if (!box->resident) {
        if (box->tensor >= depend->tensors)
            return true;
        access_list **own = &depend->own[box->tensor];
        if (!*own && !(*own = fr_allocate(sizeof **own)))
            return false;
        return note_list(depend, *own, access, 0, UINT32_MAX);
    }
    cell_range range = cells_of(depend, box);
    for (uint32_t c = range.first; c <= range.last; c++)
        if (!note_list(depend, &range.cells[c], access, c * CELL, (c + 1) * CELL))
            return false;
    return true;
}

/* A transfer tells everybody at once that it is done. Other results travel by semaphore: the producer
 * drains its pipeline, the consumer wakes. Within one engine order is enough, except that a result has to
 * come out of the pipeline before it can go in again; Tensor never reads what it writes, it only adds to
 * it, in place. */
double fr_neuron_release_ns(const fr_neuron_machine *machine, fr_neuron_edge edge,
                            const fr_neuron_access *earlier, const fr_neuron_when *when, int queue, bool dma)
{
    if (edge == FR_NEURON_ORDER)
        return 0;
    if (earlier->dma)
        return when->visible;
    if (earlier->engine != queue)
        return (edge == FR_NEURON_WAR ? when->end : when->visible) + machine->wake_ns[queue];
    if (dma)
        return edge == FR_NEURON_WAR ? when->end : when->visible;
    if (edge != FR_NEURON_RAW || queue == FR_NEURON_TENSOR)
        return 0;
    return earlier->box.late ? when->visible : when->near;
}
