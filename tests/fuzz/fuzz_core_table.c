/* Fuzz target: bytes as eval_meta_data.csv, for three tasks. Accepted: each has a category and a chance below 1.
 */
#include "eval/core_bundle.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const labels[] = {"pick", "fit", "world_homes"};
    static fr_core_bundle bundle;
    fr_error error = {0};
    memset(&bundle, 0, sizeof bundle);
    fr_arena_init(&bundle.arena, 1 << 14);
    for (bundle.count = 0; bundle.count < 3; bundle.count++)
        bundle.tasks[bundle.count] =
            (fr_core_task){.label = labels[bundle.count], .file = "f", .delimiter = " "};
    if (core_table_parse(&bundle, (const char *)data, size, "fuzz", &error) == FR_OK) {
        for (int i = 0; i < bundle.count; i++)
            if (!bundle.tasks[i].category || !(bundle.tasks[i].chance >= 0 && bundle.tasks[i].chance < 1))
                abort();
    } else if (!error.what[0]) {
        abort();
    }
    fr_arena_release(&bundle.arena);
    return 0;
}
