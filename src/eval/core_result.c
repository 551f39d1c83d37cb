/* From what became of the items to numbers: accuracy, centred accuracy, categories, CORE.
 *
 * Standard errors treat items as drawn from all items a task could have: sqrt(p (1-p) / n); tasks are taken
 * as independent. CORE exists only when every task of the bundle has a score. What can be said otherwise is
 * the mean over the tasks that were done, under another name.
 */
#include "frontier/core.h"

#include <math.h>
#include <string.h>

static void center(fr_core_task_result *r)
{
    double chance = r->task->chance;
    r->centered = (r->accuracy - chance) / (1 - chance);
    r->stderr_accuracy = r->n > 0 ? sqrt(fmax(r->accuracy * (1 - r->accuracy), 0) / (double)r->n) : NAN;
    r->stderr_centered = r->stderr_accuracy / (1 - chance);
}

static fr_core_category *category_of(fr_core_result *result, const char *name)
{
    for (int i = 0; i < result->category_count; i++)
        if (strcmp(result->categories[i].name, name) == 0)
            return &result->categories[i];
    fr_core_category *fresh = &result->categories[result->category_count++];
    *fresh = (fr_core_category){.name = name};
    return fresh;
}

static void close_categories(fr_core_result *result)
{
    for (int i = 0; i < result->category_count; i++) {
        fr_core_category *c = &result->categories[i];
        c->mean = c->tasks ? c->mean / c->tasks : NAN;
        c->centered = c->missing ? NAN : c->mean;
    }
}

void fr_core_summarize(fr_core_result *result)
{
    double sum = 0, variance = 0;
    int done = 0;
    result->category_count = result->missing = 0;
    for (int i = 0; i < result->task_count; i++) {
        fr_core_task_result *r = &result->tasks[i];
        fr_core_category *c = category_of(result, r->task->category);
        if (!r->done) {
            r->accuracy = r->centered = r->stderr_accuracy = r->stderr_centered = NAN;
            result->missing++;
            c->missing++;
            continue;
        }
        center(r);
        done++;
        sum += r->centered;
        variance += r->stderr_centered * r->stderr_centered;
        c->tasks++;
        c->mean += r->centered;
    }
    close_categories(result);
    result->mean = done ? sum / done : NAN;
    result->standard_error = done ? sqrt(variance) / done : NAN;
    result->core = result->missing ? NAN : result->mean;
}

static fr_status fill(fr_core_result *result, const fr_core_bundle *bundle, fr_error *error)
{
    result->task_count = fr_core_bundle_tasks(bundle);
    result->forecast_s = NAN;
    size_t count = (size_t)result->task_count;
    result->tasks = fr_arena_alloc(&result->arena, count * sizeof *result->tasks);
    result->categories = fr_arena_alloc(&result->arena, count * sizeof *result->categories);
    if (!result->tasks || !result->categories)
        return fr_error_memory(error, count * sizeof *result->tasks, "results");
    for (int i = 0; i < result->task_count; i++)
        result->tasks[i].task = fr_core_bundle_task(bundle, i);
    fr_core_summarize(result);
    return FR_OK;
}

fr_status fr_core_result_create(fr_core_result **out, const fr_core_bundle *bundle, fr_error *error)
{
    *out = NULL;
    fr_core_result *result = fr_allocate(sizeof *result);
    if (!result)
        return fr_error_memory(error, sizeof *result, "results");
    fr_arena_init(&result->arena, 1 << 14);
    fr_status status = fill(result, bundle, error);
    if (status == FR_OK)
        *out = result;
    else
        fr_core_result_free(result);
    return status;
}

void fr_core_result_free(fr_core_result *result)
{
    if (!result)
        return;
    fr_arena_release(&result->arena);
    fr_deallocate(result);
}

void fr_core_csv(const fr_core_result *result, fr_buffer *out)
{
    fr_buffer_printf(out, "%-35s, %-10s, %-10s\n", "Task", "Accuracy", "Centered");
    for (int i = 0; i < result->task_count; i++) {
        const fr_core_task_result *r = &result->tasks[i];
        if (r->done)
            fr_buffer_printf(out, "%-35s, %-10.6f, %-10.6f\n", r->task->label, r->accuracy, r->centered);
        else
            fr_buffer_printf(out, "%-35s, %-10s, %-10s\n", r->task->label, "", "");
    }
    if (result->missing)
        fr_buffer_printf(out, "%-35s, %-10s, %-10s\n", "CORE", "", "");
    else
        fr_buffer_printf(out, "%-35s, %-10s, %-10.6f\n", "CORE", "", result->core);
}
