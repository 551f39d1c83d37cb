/* optimizer_file.c: optimizer state in a safetensors file.
 *
 * Tensors are named after the parameter they belong to: NAME.momentum and NAME.row_moment or
 * NAME.column_moment for Muon, NAME.first_moment and NAME.second_moment for AdamW. The number of steps
 * taken and a JSON text of the caller's (the session keeps its own state there) travel in the metadata, so
 * that everything a resume needs beside the weights is one file, written atomically. Loading wants every
 * tensor with exactly its shape: a state that fits only partly would continue a different run.
 */
#include "train/optimizer.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 320 };

static const char *first_role(const fr_parameter_state *state)
{
    return state->rule.muon ? "momentum" : "first_moment";
}

static const char *second_role(const fr_parameter_state *state)
{
    if (!state->rule.muon)
        return "second_moment";
    return state->info->rows >= state->info->columns ? "row_moment" : "column_moment";
}

static void entry_of(const fr_parameter_state *state, bool second, char *name, fr_tensor_entry *entry)
{
    snprintf(name, NAME_BYTES, "%s.%s", state->info->name, second ? second_role(state) : first_role(state));
    *entry = (fr_tensor_entry){
        .name = name, .dtype = FR_F32, .dims = 2, .data = second ? state->second : state->first};
    bool vector = second && state->rule.muon;
    bool by_row = state->info->rows >= state->info->columns;
    entry->shape[0] = vector && !by_row ? 1 : state->info->rows;
    entry->shape[1] = vector && by_row ? 1 : state->info->columns;
}

fr_status fr_optimizer_save(const fr_optimizer *optimizer, const char *path, const char *extra_json,
                            fr_error *error)
{
    size_t count = 2 * (size_t)optimizer->count;
    fr_tensor_entry *entries = fr_allocate((count + 1) * sizeof *entries);
    char *names = fr_allocate((count + 1) * NAME_BYTES);
    fr_status status = FR_OK;
    if (!entries || !names)
        status = fr_error_memory(error, count * NAME_BYTES, path);
    if (status == FR_OK) {
        for (size_t i = 0; i < count; i++)
            entry_of(&optimizer->states[i / 2], i & 1, names + i * NAME_BYTES, &entries[i]);
        char steps[32];
        snprintf(steps, sizeof steps, "%lld", (long long)optimizer->steps);
        const char *pairs[] = {"optimizer_steps", steps, "extra", extra_json ? extra_json : "{}"};
        status = fr_tensor_file_write(path, entries, (int)count, pairs, 2, error);
    }
    fr_deallocate(entries);
    fr_deallocate(names);
    return status;
}

static fr_status find_entry(const fr_tensor_file *file, const char *path, const fr_tensor_entry *want,
                            const fr_tensor_entry **found, fr_error *error)
{
    const char *hint = "the state belongs to another model or optimizer";
    const fr_tensor_entry *entry = fr_tensor_file_find(file, want->name);
    if (!entry)
        return fr_error_set(error, FR_BAD_DATA, path, hint, "tensor '%s' is missing", want->name);
    if (entry->dtype != FR_F32 || entry->dims != 2 || entry->shape[0] != want->shape[0] ||
        entry->shape[1] != want->shape[1])
        return fr_error_set(error, FR_BAD_DATA, path, hint, "tensor '%s' must be %lld x %lld of F32",
                            want->name, (long long)want->shape[0], (long long)want->shape[1]);
    *found = entry;
    return FR_OK;
}

static fr_status check_and_copy(fr_optimizer *optimizer, const fr_tensor_file *file, const char *path,
                                bool copy, fr_error *error)
{
    for (int i = 0; i < 2 * optimizer->count; i++) {
        char name[NAME_BYTES];
        fr_tensor_entry want;
        const fr_tensor_entry *found = NULL;
        fr_parameter_state *state = &optimizer->states[i / 2];
        entry_of(state, i & 1, name, &want);
        FR_TRY(find_entry(file, path, &want, &found, error));
        if (copy)
            memcpy(i & 1 ? state->second : state->first, found->data,
                   (size_t)(want.shape[0] * want.shape[1]) * sizeof(float));
    }
    return FR_OK;
}

static fr_status load_from(fr_optimizer *optimizer, const fr_tensor_file *file, const char *path,
                           fr_arena *arena, char **extra_json, fr_error *error)
{
    const char *steps_text = fr_tensor_file_metadata(file, "optimizer_steps"),
               *extra = fr_tensor_file_metadata(file, "extra");
    if (!steps_text || !extra)
        return fr_error_set(error, FR_BAD_DATA, path, "is this an optimizer.safetensors of Frontier?",
                            "the number of steps is missing");
    int64_t steps;
    if (fr_parse_int(steps_text, 0, INT64_MAX, &steps, path, NULL) != FR_OK)
        return fr_error_set(error, FR_BAD_DATA, path, NULL, "'%.40s' is not a number of steps", steps_text);
    if (fr_tensor_file_count(file) != 2 * optimizer->count)
        return fr_error_set(error, FR_BAD_DATA, path, "the state belongs to another model or optimizer",
                            "%d tensors where %d belong", fr_tensor_file_count(file), 2 * optimizer->count);
    FR_TRY(check_and_copy(optimizer, file, path, false, error));
    if (extra_json) {
        *extra_json = fr_arena_strdup(arena, extra);
        if (!*extra_json)
            return fr_error_memory(error, strlen(extra) + 1, path);
    }
    optimizer->steps = steps;
    return check_and_copy(optimizer, file, path, true, error);
}

fr_status fr_optimizer_load(fr_optimizer *optimizer, const char *path, fr_arena *arena, char **extra_json,
                            fr_error *error)
{
    fr_tensor_file *file;
    FR_TRY(fr_tensor_file_open(&file, path, error));
    fr_status status = load_from(optimizer, file, path, arena, extra_json, error);
    fr_tensor_file_close(file);
    return status;
}
