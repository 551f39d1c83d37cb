/* In which order a task's items are scored.
 *
 * Every item shows examples of its own, drawn at random, but a third of the items (200 of 200 draws) begin with an
 * example that another item begins with too. A scorer computes a common beginning once, if it gets the rows in one
 * call; so items are ordered by their first example. Answers do not depend on the order, and are kept by index.
 */
#include "eval/core_run.h"

#include <stdlib.h>

typedef struct placed_item {
    int64_t first_example, index;
} placed_item;

static int by_first_example(const void *left, const void *right)
{
    const placed_item *a = left, *b = right;
    if (a->first_example != b->first_example)
        return a->first_example < b->first_example ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void place_items(const core_task_run *t, int64_t *examples, placed_item *list)
{
    int64_t shots = t->task->shots, count = t->items.count;
    for (int64_t i = 0; i < count; i++) {
        examples[0] = -1; /* where none are shown */
        fr_core_examples(i, count, shots, examples);
        list[i] = (placed_item){examples[0], i};
    }
    qsort(list, (size_t)count, sizeof *list, by_first_example);
}

int64_t *core_order(const core_task_run *t, double *repeated)
{
    int64_t count = t->items.count, again = 0;
    placed_item *list = fr_allocate((size_t)count * sizeof *list);
    int64_t *examples = fr_allocate((size_t)(t->task->shots + 1) * sizeof *examples);
    int64_t *order = fr_allocate((size_t)count * sizeof *order);
    bool ready = list && examples && order;
    if (ready)
        place_items(t, examples, list);
    for (int64_t i = 0; ready && i < count; i++) {
        order[i] = list[i].index;
        again += i > 0 && list[i].first_example >= 0 && list[i].first_example == list[i - 1].first_example;
    }
    if (repeated)
        *repeated = count ? (double)again / (double)count : 0;
    fr_deallocate(list);
    fr_deallocate(examples);
    if (!ready) {
        fr_deallocate(order);
        return NULL;
    }
    return order;
}
