/* Fuzz target: bytes as a task's items, of each kind in turn. Every item that is accepted must give its prompts.
 */
#include "frontier/core.h"

#include "scratch_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_prompts(const fr_core_task *task, const fr_core_items *items)
{
    for (int64_t i = 0; i < items->count && i < 20; i++) {
        const fr_core_item *item = &items->items[i];
        if (item->option_count < 1 || item->gold < 0 || item->gold >= item->option_count)
            abort();
        for (int option = task->kind == FR_CORE_LANGUAGE ? -1 : 0; option < item->option_count; option++) {
            fr_buffer text;
            fr_error error = {0};
            fr_buffer_init(&text, 0);
            if (fr_core_prompt(&text, task, items, i, option, &error) != FR_OK)
                abort();
            fr_buffer_release(&text);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = scratch_file(data, size);
    for (int kind = FR_CORE_CHOICE; kind <= FR_CORE_LANGUAGE; kind++) {
        fr_core_task task = {.label = "task", .file = path, .delimiter = "\nAnswer: ", .category = "c"};
        fr_core_items items;
        fr_error error = {0};
        task.kind = (fr_core_kind)kind;
        task.shots = kind == FR_CORE_CHOICE ? 2 : 0;
        task.present = true;
        if (fr_core_items_load(&items, &task, 0, &error) == FR_OK) {
            read_prompts(&task, &items);
            fr_core_items_release(&items);
        } else if (!error.what[0]) {
            abort();
        }
    }
    return 0;
}
