/* Fuzz target: bytes as core.yaml. What is accepted has whole tasks; what is refused says why.
 */
#include "eval/core_bundle.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fr_core_bundle bundle;
    fr_error error = {0};
    memset(&bundle, 0, sizeof bundle);
    fr_arena_init(&bundle.arena, 1 << 14);
    if (core_yaml_parse(&bundle, (const char *)data, size, "fuzz", &error) == FR_OK) {
        if (bundle.count < 1 || bundle.count > CORE_MAX_TASKS)
            abort();
        for (int i = 0; i < bundle.count; i++)
            if (!bundle.tasks[i].label || !bundle.tasks[i].file || !bundle.tasks[i].delimiter ||
                bundle.tasks[i].shots < 0 || !fr_core_kind_name(bundle.tasks[i].kind))
                abort();
    } else if (!error.what[0]) {
        abort();
    }
    fr_arena_release(&bundle.arena);
    return 0;
}
