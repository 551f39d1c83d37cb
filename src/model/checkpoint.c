/* A model's weights as a tensor file, and back.
 *
 * Weights are saved as fp32 masters under the graph's parameter names, in the graph's order; a 1 x 1 scalar
 * is a vector of one, everything else a matrix. Loading wants exactly the tensors the graph has: a missing,
 * an extra or a differently shaped one is an error that names it, because a model that is almost the right
 * one scores plausibly and wrongly. Nothing is written to `parameters` before everything is checked.
 */
#include "model/model_internal.h"

#include <string.h>

static fr_tensor_entry entry_of(const fr_parameter_info *info, const float *parameters)
{
    fr_tensor_entry entry = {
        .name = info->name, .dtype = FR_F32, .dims = 2, .shape = {info->rows, info->columns}};
    if (info->rows == 1 && info->columns == 1)
        entry.dims = 1;
    if (parameters)
        entry.data = parameters + info->offset;
    return entry;
}

fr_status fr_model_save(const fr_graph *graph, const float *parameters, const char *path, fr_error *error)
{
    int count = fr_graph_parameters(graph);
    fr_tensor_entry *entries = fr_allocate(((size_t)count + 1) * sizeof *entries);
    if (!entries)
        return fr_error_memory(error, ((size_t)count + 1) * sizeof *entries, "a checkpoint's table");
    for (int i = 0; i < count; i++)
        entries[i] = entry_of(fr_graph_parameter(graph, i), parameters);
    static const char *const metadata[] = {"role", "model"};
    fr_status status = fr_tensor_file_write(path, entries, count, metadata, 1, error);
    fr_deallocate(entries);
    return status;
}

static void shape_text(const fr_tensor_entry *entry, char *out, size_t size)
{
    size_t length = 0;
    out[0] = 0;
    for (int i = 0; i < entry->dims && length < size; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%lld", i ? " x " : "",
                                   (long long)entry->shape[i]);
}

static fr_status check_tensor(const fr_tensor_file *file, const fr_parameter_info *info, const char *path,
                              fr_error *error)
{
    const char *hint = "the weights belong to another recipe or tokenizer";
    const fr_tensor_entry *found = fr_tensor_file_find(file, info->name);
    if (!found)
        return fr_error_set(error, FR_BAD_DATA, path, hint, "tensor '%s' is missing", info->name);
    fr_tensor_entry wanted = entry_of(info, NULL);
    if (found->dims != wanted.dims ||
        memcmp(found->shape, wanted.shape, (size_t)wanted.dims * sizeof wanted.shape[0]) != 0) {
        char got[96], want[96];
        shape_text(found, got, sizeof got);
        shape_text(&wanted, want, sizeof want);
        return fr_error_set(error, FR_BAD_DATA, path, hint, "tensor '%s' is %s, the model has %s", info->name,
                            got, want);
    }
    if (found->dtype != FR_F32)
        return fr_error_set(error, FR_BAD_DATA, path, hint, "tensor '%s' holds %s, not fp32", info->name,
                            fr_dtype_name(found->dtype));
    return FR_OK;
}

static fr_status check_file(const fr_tensor_file *file, const fr_graph *graph, const char *path,
                            fr_error *error)
{
    const char *role = fr_tensor_file_metadata(file, "role");
    if (!fr_tensor_file_metadata(file, "format_version") || !role || strcmp(role, "model") != 0)
        return fr_error_set(error, FR_BAD_DATA, path,
                            "only model.safetensors of a run folder is read",
                            "these are not the weights of a frontier model");
    for (int i = 0; i < fr_graph_parameters(graph); i++)
        FR_TRY(check_tensor(file, fr_graph_parameter(graph, i), path, error));
    for (int i = 0; i < fr_tensor_file_count(file); i++) {
        const fr_tensor *tensor = fr_graph_find(graph, fr_tensor_file_entry(file, i)->name);
        if (!tensor || tensor->parameter < 0)
            return fr_error_set(error, FR_BAD_DATA, path, "the weights belong to another recipe or tokenizer",
                                "tensor '%.150s' is not part of the model",
                                fr_tensor_file_entry(file, i)->name);
    }
    return FR_OK;
}

fr_status fr_model_load(const fr_graph *graph, float *parameters, const char *path, fr_error *error)
{
    fr_tensor_file *file;
    FR_TRY(fr_tensor_file_open(&file, path, error));
    fr_status status = check_file(file, graph, path, error);
    for (int i = 0; status == FR_OK && i < fr_graph_parameters(graph); i++) {
        const fr_parameter_info *info = fr_graph_parameter(graph, i);
        memcpy(parameters + info->offset, fr_tensor_file_find(file, info->name)->data,
               (size_t)(info->rows * info->columns) * sizeof(float));
    }
    fr_tensor_file_close(file);
    return status;
}
