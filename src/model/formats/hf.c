/* A Hugging Face folder: config.json, tokenizer.json and one or more tensor files.
 *
 * When the weights are in several files, model.safetensors.index.json says which tensor is in which. It must say so of
 * every tensor, exactly once, and of no other; the names of files are names within the folder and nothing else.
 * Every tensor must become a parameter: one that does not, unless it is known to hold no weights, means that the
 * model is another than its settings say.
 */
#include "model/formats/hf.h"
#include "model/formats/readers.h"

#include <string.h>

enum { MOST_FILES = 512, MOST_TENSORS = 20000, MOST_JSON = 64 << 20 };

typedef struct hf_file {
    fr_tensor_file *file;
    const char *name;
    bool *used; /* by entry */
} hf_file;

typedef struct hf_folder {
    fr_foreign *model;
    const hf_family *family;
    fr_arena arena;
    json_t *config, *index; /* index: NULL with one file */
    hf_file *files;
    int count;
} hf_folder;

/* A JSON file of a size that settings have. */
static fr_status read_json(json_t **out, const char *path, fr_error *error)
{
    fr_mapping mapping;
    FR_TRY(fr_mapping_init(&mapping, path, error));
    fr_status status = mapping.bytes <= MOST_JSON
                           ? fr_json_parse(out, (const char *)mapping.data, mapping.bytes, path, error)
                           : fr_error_set(error, FR_BAD_DATA, path, NULL, "a file of settings is not larger than 64 MiB");
    fr_mapping_release(&mapping);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------------ */

static fr_status add_file(hf_folder *folder, const char *name, fr_tensor_file *file, fr_error *error)
{
    int entries = fr_tensor_file_count(file), total = entries;
    folder->files[folder->count] = (hf_file){.file = file, .name = name};
    hf_file *added = &folder->files[folder->count++]; /* from here on released with the folder */
    for (int i = 0; i < folder->count - 1; i++)
        total += fr_tensor_file_count(folder->files[i].file);
    if (total > MOST_TENSORS)
        return fr_error_set(error, FR_BAD_DATA, folder->model->path, NULL,
                            "more than %d tensors are in no model that can be read", MOST_TENSORS);
    added->used = fr_arena_alloc(&folder->arena, (size_t)entries + 1);
    return added->used ? FR_OK : fr_error_memory(error, (size_t)entries, "a tensor file");
}

static fr_status open_file(hf_folder *folder, const char *name, fr_error *error)
{
    char path[1300];
    fr_tensor_file *file;
    fr_path_join(path, sizeof path, folder->model->path, name);
    FR_TRY(fr_tensor_file_open(&file, path, error));
    FR_TRY(add_file(folder, name, file, error));
    return foreign_record(folder->model, name, path, error);
}

static bool is_plain_name(const char *name)
{
    size_t length = strlen(name);
    return length > 12 && length < 200 && name[0] != '.' && !strchr(name, '/') &&
           strcmp(name + length - 12, ".safetensors") == 0;
}

static bool is_open(const hf_folder *folder, const char *name)
{
    for (int i = 0; i < folder->count; i++)
        if (strcmp(folder->files[i].name, name) == 0)
            return true;
    return false;
}

static fr_status bad_index(const hf_folder *folder, const char *what, const char *name, fr_error *error)
{
    return fr_error_set(error, FR_BAD_DATA, folder->model->path, "the folder is incomplete, or was put together",
                        "model.safetensors.index.json: %s '%.100s'", what, name);
}

/* Every tensor of every file is mapped to its own file, and there are as many of both: the map is exact. */
static fr_status check_map(const hf_folder *folder, const json_t *map, fr_error *error)
{
    size_t total = 0;
    for (int i = 0; i < folder->count; i++) {
        const hf_file *f = &folder->files[i];
        for (int e = 0; e < fr_tensor_file_count(f->file); e++, total++) {
            const char *name = fr_tensor_file_entry(f->file, e)->name;
            const char *mapped = json_string_value(json_object_get(map, name));
            if (!mapped || strcmp(mapped, f->name) != 0)
                return bad_index(folder, "it does not place this tensor where it is:", name, error);
        }
    }
    if (total == json_object_size(map))
        return FR_OK;
    return bad_index(folder, "it lists tensors that are in no file; the first file is", folder->files[0].name, error);
}

static fr_status open_listed(hf_folder *folder, fr_error *error)
{
    char path[1300];
    json_t *map, *value;
    const char *name;
    fr_path_join(path, sizeof path, folder->model->path, "model.safetensors.index.json");
    FR_TRY(read_json(&folder->index, path, error));
    FR_TRY(fr_json_get_object(folder->index, "weight_map", &map, path, error));
    if (json_object_size(map) == 0)
        return bad_index(folder, "it lists nothing", "", error);
    json_object_foreach(map, name, value)
    {
        const char *file = json_string_value(value);
        if (!file || !is_plain_name(file))
            return bad_index(folder, "no name of a file in this folder stands at", name, error);
        if (is_open(folder, file))
            continue;
        if (folder->count == MOST_FILES)
            return bad_index(folder, "too many files:", file, error);
        FR_TRY(open_file(folder, file, error));
    }
    return check_map(folder, map, error);
}

static fr_status open_weights(hf_folder *folder, fr_error *error)
{
    char path[1300];
    folder->files = fr_arena_alloc(&folder->arena, MOST_FILES * sizeof *folder->files);
    if (!folder->files)
        return fr_error_memory(error, MOST_FILES * sizeof *folder->files, "a folder's files");
    if (fr_path_exists(fr_path_join(path, sizeof path, folder->model->path, "model.safetensors.index.json")))
        return open_listed(folder, error);
    return open_file(folder, "model.safetensors", error);
}

/* ---- tensors ---------------------------------------------------------------------------------------- */

static const fr_tensor_entry *look_in_files(hf_folder *folder, const char *name)
{
    for (int i = 0; i < folder->count; i++) {
        const hf_file *f = &folder->files[i];
        for (int e = 0; e < fr_tensor_file_count(f->file); e++)
            if (strcmp(fr_tensor_file_entry(f->file, e)->name, name) == 0) {
                f->used[e] = true;
                return fr_tensor_file_entry(f->file, e);
            }
    }
    return NULL;
}

/* With the family's prefix, or without. */
static const fr_tensor_entry *look_up(hf_folder *folder, const char *name)
{
    char prefixed[HF_NAME + 32];
    const char *prefix = folder->family->prefix;
    snprintf(prefixed, sizeof prefixed, "%s%s", prefix ? prefix : "", name);
    const fr_tensor_entry *entry = look_in_files(folder, prefixed);
    return entry || !prefix ? entry : look_in_files(folder, name);
}

/* The entry as a matrix, cut and turned as the row says. */
static fr_status view_entry(const hf_folder *folder, const fr_tensor_entry *entry, const hf_row *row,
                            foreign_view *view, fr_error *error)
{
    if (entry->dims < 1 || entry->dims > 2)
        return fr_error_set(error, FR_BAD_DATA, folder->model->path, NULL, "tensor '%.100s' has %d dimensions",
                            entry->name, entry->dims);
    int64_t rows = entry->dims == 2 ? entry->shape[0] : 1, columns = entry->shape[entry->dims - 1], third = 0;
    if (row->part && columns % 3)
        return fr_error_set(error, FR_BAD_DATA, folder->model->path, "queries, keys and values lie side by side in it",
                            "tensor '%.100s' has %lld columns, not a multiple of 3", entry->name,
                            (long long)columns);
    int64_t stride = columns;
    if (row->part) {
        columns /= 3;
        third = (row->part - 1) * columns;
    }
    *view = (foreign_view){entry->name, (const char *)entry->data + fr_dtype_bytes(entry->dtype) * (size_t)third,
                           entry->dtype, rows, columns, stride, 1,
                           row->halves ? folder->model->recipe.model.head_dim : 0};
    if (row->transposed) {
        view->rows = columns;
        view->columns = rows;
        view->row_stride = 1;
        view->column_stride = stride;
    }
    return FR_OK;
}

static fr_status find(void *context, const char *name, foreign_view *view, fr_error *error)
{
    hf_folder *folder = context;
    char theirs[HF_NAME];
    const hf_row *row = hf_translate(folder->family, name, theirs);
    if (!row)
        return fr_error_set(error, FR_BUG, name, NULL, "family %s has no such tensor", folder->family->model_type);
    const fr_tensor_entry *entry = look_up(folder, theirs);
    if (entry)
        return view_entry(folder, entry, row, view, error);
    const fr_tensor *wanted = fr_graph_find(folder->model->graph, name);
    return fr_error_set(error, FR_BAD_DATA, folder->model->path, "the folder is incomplete, or config.json another's",
                        "tensor '%s' is missing; it would give %lld x %lld to %s", theirs, (long long)wanted->rows,
                        (long long)wanted->columns, name);
}

static bool is_tied_head(const hf_folder *folder, const char *name)
{
    return folder->model->recipe.model.tied && strcmp(name, "lm_head.weight") == 0;
}

/* Some writers store a tied head beside the embedding it is. One that differs is a head of its own, as `transformers`
 * takes it, whatever config.json says. */
static fr_status check_tied_head(hf_folder *folder, const fr_tensor_entry *head, fr_error *error)
{
    char theirs[HF_NAME];
    size_t bytes = fr_dtype_bytes(head->dtype);
    const fr_tensor_entry *embedding =
        hf_translate(folder->family, "transformer.wte.weight", theirs) ? look_up(folder, theirs) : NULL;
    bool same = embedding && embedding->dtype == head->dtype && embedding->dims == head->dims;
    for (int i = 0; same && i < head->dims; i++) {
        same = embedding->shape[i] == head->shape[i];
        bytes *= (size_t)head->shape[i];
    }
    if (same && memcmp(embedding->data, head->data, bytes) == 0)
        return FR_OK;
    return fr_error_set(error, FR_BAD_DATA, folder->model->path, "\"tie_word_embeddings\": false makes it the model's head",
                        "config.json ties the head to the embedding, and 'lm_head.weight' is another tensor");
}

static bool may_be_left(const hf_folder *folder, const char *name)
{
    size_t length = strlen(name);
    for (const char *const *ending = folder->family->ignored; *ending; ending++) {
        size_t tail = strlen(*ending);
        if (length >= tail && strcmp(name + length - tail, *ending) == 0)
            return true;
    }
    return false;
}

static fr_status check_all_used(hf_folder *folder, fr_error *error)
{
    for (int i = 0; i < folder->count; i++)
        for (int e = 0; e < fr_tensor_file_count(folder->files[i].file); e++) {
            const fr_tensor_entry *entry = fr_tensor_file_entry(folder->files[i].file, e);
            const char *name = entry->name;
            if (is_tied_head(folder, name))
                FR_TRY(check_tied_head(folder, entry, error));
            else if (!folder->files[i].used[e] && !may_be_left(folder, name))
                return fr_error_set(error, FR_BAD_DATA, folder->model->path,
                                    "config.json describes another model than the weights",
                                    "tensor '%.100s' has no place in the model", name);
        }
    return FR_OK;
}

static fr_status read_weights(hf_folder *folder, fr_error *error)
{
    FR_TRY(foreign_fill(folder->model, find, folder, error));
    return check_all_used(folder, error);
}

static void release(hf_folder *folder)
{
    for (int i = 0; i < folder->count; i++)
        fr_tensor_file_close(folder->files[i].file);
    json_decref(folder->config);
    json_decref(folder->index);
    fr_arena_release(&folder->arena);
}

/* ---- the folder ------------------------------------------------------------------------------------- */

static fr_status read_tokenizer(hf_folder *folder, const char *given, fr_error *error)
{
    char path[1300];
    const char *hint = "a folder with vocab.json and merges.txt alone: let `transformers` load and save its tokenizer";
    fr_path_join(path, sizeof path, folder->model->path, "tokenizer.json");
    if (given)
        snprintf(path, sizeof path, "%s", given);
    if (!fr_path_exists(path))
        return fr_error_set(error, FR_BAD_DATA, path, hint, "there is no tokenizer.json");
    FR_TRY(fr_tokenizer_load_sized(&folder->model->tokenizer, path, (int32_t)folder->model->vocab, error));
    return foreign_record(folder->model, "tokenizer.json", path, error);
}

static fr_status read_folder(hf_folder *folder, const fr_foreign_options *options, fr_error *error)
{
    char path[1300];
    fr_path_join(path, sizeof path, folder->model->path, "config.json");
    if (!fr_path_exists(path))
        return fr_error_set(error, FR_BAD_DATA, folder->model->path, "give a folder with config.json, as "
                            "save_pretrained writes it", "it is no folder of a Hugging Face model");
    FR_TRY(read_json(&folder->config, path, error));
    FR_TRY(hf_read_config(folder->model, &folder->family, folder->config, options->context, error));
    FR_TRY(foreign_record(folder->model, "config.json", path, error));
    FR_TRY(read_tokenizer(folder, options->tokenizer_path, error));
    FR_TRY(open_weights(folder, error));
    return read_weights(folder, error);
}

fr_status foreign_open_hf(fr_foreign **out, const char *path, const fr_foreign_options *options, fr_error *error)
{
    hf_folder folder = {0};
    FR_TRY(foreign_create(out, "hf", path, error));
    folder.model = *out;
    fr_arena_init(&folder.arena, 1 << 16);
    fr_status status = read_folder(&folder, options, error);
    release(&folder);
    return status;
}

static fr_status parse_parts(hf_folder *folder, const char *config, size_t config_bytes, const void *tensors,
                             size_t tensor_bytes, fr_error *error)
{
    fr_tensor_file *file;
    folder->files = fr_arena_alloc(&folder->arena, sizeof *folder->files);
    if (!folder->files)
        return fr_error_memory(error, sizeof *folder->files, "a folder's files");
    FR_TRY(fr_json_parse(&folder->config, config, config_bytes, "config.json", error));
    FR_TRY(hf_read_config(folder->model, &folder->family, folder->config, 0, error));
    FR_TRY(fr_tensor_file_parse(&file, tensors, tensor_bytes, "model.safetensors", error));
    FR_TRY(add_file(folder, "model.safetensors", file, error));
    return read_weights(folder, error);
}

fr_status fr_foreign_parse_hf(fr_foreign **out, const char *config, size_t config_bytes, const void *tensors,
                              size_t tensor_bytes, fr_error *error)
{
    hf_folder folder = {0};
    *out = NULL;
    fr_status status = foreign_create(&folder.model, "hf", "memory", error);
    fr_arena_init(&folder.arena, 1 << 12);
    if (status == FR_OK)
        status = parse_parts(&folder, config, config_bytes, tensors, tensor_bytes, error);
    release(&folder);
    if (status == FR_OK)
        *out = folder.model;
    else
        fr_foreign_free(folder.model);
    return status;
}
