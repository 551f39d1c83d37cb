/* Opening an evaluation bundle: the task list, the baselines, and which task files are there.
 *
 * A bundle may be incomplete: some of its files cannot be handed on freely. Missing files are marked here
 * and named in results; a missing list or table of baselines is an error.
 */
#include "eval/core_bundle.h"

#include <string.h>

static fr_status read_and_parse(fr_core_bundle *bundle, const char *folder, const char *name,
                                fr_status (*parse)(fr_core_bundle *, const char *, size_t, const char *,
                                                   fr_error *),
                                fr_error *error)
{
    char path[1200], *text;
    size_t bytes;
    fr_path_join(path, sizeof path, folder, name);
    if (!fr_path_exists(path))
        return fr_error_set(error, FR_BAD_DATA, path,
                            "give the folder that holds core.yaml, eval_meta_data.csv and eval_data/",
                            "the bundle has no %s", name);
    FR_TRY(fr_file_read(&bundle->arena, path, &text, &bytes, error));
    size_t mark = core_mark_bytes(text, bytes);
    return parse(bundle, text + mark, bytes - mark, path, error);
}

size_t core_mark_bytes(const char *text, size_t bytes)
{
    return bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

static fr_status find_files(fr_core_bundle *bundle, const char *folder, fr_error *error)
{
    for (int i = 0; i < bundle->count; i++) {
        fr_core_task *task = &bundle->tasks[i];
        task->file = fr_arena_printf(&bundle->arena, "%s/eval_data/%s", folder, task->file);
        if (!task->file)
            return fr_error_memory(error, 1000, folder);
        task->present = fr_path_exists(task->file) && !fr_path_is_folder(task->file);
    }
    return FR_OK;
}

static fr_status open_bundle(fr_core_bundle *bundle, const char *folder, fr_error *error)
{
    if (!fr_path_is_folder(folder))
        return fr_error_set(error, FR_BAD_DATA, folder,
                            "give a bundle's folder; frontier data world writes one into its core/",
                            "there is no such bundle");
    if (strlen(folder) > 900)
        return fr_error_set(error, FR_BAD_USAGE, folder, NULL, "the path is too long");
    FR_TRY(read_and_parse(bundle, folder, "core.yaml", core_yaml_parse, error));
    FR_TRY(read_and_parse(bundle, folder, "eval_meta_data.csv", core_table_parse, error));
    return find_files(bundle, folder, error);
}

fr_status fr_core_bundle_open(fr_core_bundle **out, const char *folder, fr_error *error)
{
    *out = NULL;
    fr_core_bundle *bundle = fr_allocate(sizeof *bundle);
    if (!bundle)
        return fr_error_memory(error, sizeof *bundle, "a bundle");
    fr_arena_init(&bundle->arena, 1 << 16);
    fr_status status = open_bundle(bundle, folder, error);
    if (status == FR_OK)
        *out = bundle;
    else
        fr_core_bundle_free(bundle);
    return status;
}

int fr_core_bundle_tasks(const fr_core_bundle *bundle)
{
    return bundle->count;
}

const fr_core_task *fr_core_bundle_task(const fr_core_bundle *bundle, int index)
{
    return index >= 0 && index < bundle->count ? &bundle->tasks[index] : NULL;
}

void fr_core_bundle_free(fr_core_bundle *bundle)
{
    if (!bundle)
        return;
    fr_arena_release(&bundle->arena);
    fr_deallocate(bundle);
}
