/* time_parts.c: a short list of names and nanoseconds; see the header for what is counted and why.
 *
 * The list is searched from the front: a model has some dozen operators, and the search costs nothing beside one.
 */
#include "train/time_parts.h"

#include <string.h>

void fr_time_parts_add(fr_time_parts *parts, const char *name, int64_t ns)
{
    int i = 0;
    while (i < parts->count && strcmp(parts->parts[i].name, name) != 0)
        i++;
    if (i == parts->count) {
        if (parts->count == FR_MOST_TIME_PARTS)
            i--;
        else
            parts->parts[parts->count++].name = name;
    }
    parts->parts[i].ns += ns;
}

void fr_time_parts_lap(fr_time_parts *parts, const char *name, int64_t *mark)
{
    int64_t now = fr_monotonic_ns();
    fr_time_parts_add(parts, name, now - *mark);
    *mark = now;
}

void fr_time_parts_node(void *context, const fr_node *node, fr_pass pass, int64_t ns)
{
    (void)pass;
    fr_time_parts_add(context, node->op->name, ns);
}
