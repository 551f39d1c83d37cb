/* Foreign models: recipe, graph and weights from what a reader says; saving as a run folder. */
#include "model/formats/foreign.h"
#include "model/formats/half.h"
#include "model/formats/readers.h"

#include <string.h>

fr_status foreign_create(fr_foreign **out, const char *family, const char *path, fr_error *error)
{
    if (strlen(path) >= sizeof(*out)->path)
        return fr_error_set(error, FR_BAD_USAGE, path, NULL, "the path is too long");
    fr_foreign *model = fr_allocate(sizeof *model);
    if (!model)
        return fr_error_memory(error, sizeof *model, "a foreign model");
    model->family = family;
    snprintf(model->path, sizeof model->path, "%s", path);
    *out = model;
    return fr_recipe_defaults(&model->recipe, error);
}

void fr_foreign_free(fr_foreign *model)
{
    if (!model)
        return;
    fr_tokenizer_free(model->tokenizer);
    fr_graph_free(model->graph);
    fr_deallocate(model->parameters);
    json_decref(model->files);
    fr_deallocate(model);
}

/* ---- the recipe ------------------------------------------------------------------------------------- */

fr_status foreign_set(fr_foreign *model, fr_error *error, const char *format, ...)
{
    char assignment[200] = "model.";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(assignment + 6, sizeof assignment - 6, format, arguments);
    va_end(arguments);
    fr_status status = fr_recipe_set(&model->recipe, assignment, error);
    if (status == FR_OK)
        return FR_OK;
    if (error)
        error->status = FR_BAD_DATA; /* it is the file that asks for it */
    return fr_error_within(error, FR_BAD_DATA, model->path);
}

fr_status foreign_set_all(fr_foreign *model, const char *const *assignments, fr_error *error)
{
    for (; *assignments; assignments++)
        FR_TRY(foreign_set(model, error, "%s", *assignments));
    return FR_OK;
}

fr_status foreign_set_context(fr_foreign *model, int64_t context, fr_error *error)
{
    FR_TRY(foreign_set(model, error, "context=%lld", (long long)context));
    int64_t unit = context * model->recipe.optim.shards, usual = model->recipe.optim.batch_tokens;
    model->recipe.optim.batch_tokens = usual > unit ? usual / unit * unit : unit;
    fr_status status = fr_recipe_check(&model->recipe, error);
    if (status == FR_OK)
        return FR_OK;
    if (error)
        error->status = FR_BAD_DATA;
    return fr_error_within(error, FR_BAD_DATA, model->path);
}

fr_status foreign_record(fr_foreign *model, const char *name, const char *path, fr_error *error)
{
    char sha256[65];
    FR_TRY(fr_sha256_file(path, sha256, error));
    if (!model->files)
        model->files = json_array();
    json_t *entry = json_pack("{s:s s:s}", "file", name, "sha256", sha256);
    return model->files && json_array_append_new(model->files, entry) == 0
               ? FR_OK
               : fr_error_memory(error, 100, "a list of files");
}

/* ---- weights ---------------------------------------------------------------------------------------- */

static bool is_token_table(const char *name)
{
    return strcmp(name, "transformer.wte.weight") == 0 || strcmp(name, "lm_head.weight") == 0 ||
           strncmp(name, "value_embeds.", 13) == 0;
}

static fr_status check_view(const fr_foreign *model, const fr_parameter_info *info, const foreign_view *view,
                            fr_error *error)
{
    int64_t rows = is_token_table(info->name) ? model->vocab : info->rows;
    if (view->rows == rows && view->columns == info->columns)
        return FR_OK;
    return fr_error_set(error, FR_BAD_DATA, model->path, "weights and settings belong to different models",
                        "tensor '%.100s' gives %lld x %lld, the settings ask for %lld x %lld", view->name,
                        (long long)view->rows, (long long)view->columns, (long long)rows,
                        (long long)info->columns);
}

static float element(const foreign_view *view, int64_t at)
{
    float single;
    double wide;
    uint16_t half;
    if (view->dtype == FR_F32) {
        memcpy(&single, (const char *)view->data + 4 * at, 4);
        return single;
    }
    if (view->dtype == FR_F64) {
        memcpy(&wide, (const char *)view->data + 8 * at, 8);
        return (float)wide;
    }
    memcpy(&half, (const char *)view->data + 2 * at, 2);
    return view->dtype == FR_F16 ? half_to_f32(half) : fr_bf16_to_f32(half);
}

/* Where row (or, of a bias, column) i is taken from. */
static int64_t swapped(int64_t i, int64_t swap)
{
    return swap > 0 ? i / swap * swap + (i % swap + swap / 2) % swap : i;
}

static void copy_view(const foreign_view *view, float *to)
{
    bool row = view->rows == 1, plain = view->dtype == FR_F32 && view->column_stride == 1 && !(row && view->swap);
    for (int64_t r = 0; r < view->rows; r++, to += view->columns) {
        int64_t from = swapped(r, row ? 0 : view->swap) * view->row_stride;
        if (plain)
            memcpy(to, (const char *)view->data + 4 * from, 4 * (size_t)view->columns);
        for (int64_t c = 0; c < view->columns && !plain; c++)
            to[c] = element(view, from + swapped(c, row ? view->swap : 0) * view->column_stride);
    }
}

static fr_status look_up(fr_foreign *model, foreign_find find, void *context, const fr_parameter_info *info,
                         foreign_view *view, fr_error *error)
{
    *view = (foreign_view){0};
    FR_TRY(find(context, info->name, view, error));
    if (view->dtype == FR_I32)
        return fr_error_set(error, FR_BAD_DATA, model->path, NULL, "tensor '%.100s' holds integers", view->name);
    return check_view(model, info, view, error);
}

fr_status foreign_fill(fr_foreign *model, foreign_find find, void *context, fr_error *error)
{
    foreign_view view;
    model->graph = fr_graph_create(error);
    if (!model->graph)
        return FR_BAD_ENVIRONMENT;
    fr_status status = fr_model_build(model->graph, &model->recipe, model->vocab, error);
    if (status != FR_OK)
        return fr_error_within(error, status, model->path);
    int count = fr_graph_parameters(model->graph);
    for (int i = 0; i < count; i++)
        FR_TRY(look_up(model, find, context, fr_graph_parameter(model->graph, i), &view, error));
    size_t bytes = (size_t)fr_graph_flat_elements(model->graph) * sizeof(float);
    model->parameters = fr_allocate(bytes);
    if (!model->parameters)
        return fr_error_memory(error, bytes, "a foreign model's weights");
    for (int i = 0; i < count; i++) {
        const fr_parameter_info *info = fr_graph_parameter(model->graph, i);
        FR_TRY(look_up(model, find, context, info, &view, error));
        copy_view(&view, model->parameters + info->offset);
    }
    return FR_OK;
}

/* ---- opening ---------------------------------------------------------------------------------------- */

typedef struct reader_row {
    const char *format;
    fr_status (*open)(fr_foreign **out, const char *path, const fr_foreign_options *options, fr_error *error);
} reader_row;
static const reader_row readers[] = {{"llama2c", foreign_open_llama2c}, {"hf", foreign_open_hf}};

fr_status fr_foreign_open(fr_foreign **out, const char *format, const char *path,
                          const fr_foreign_options *options, fr_error *error)
{
    static const fr_foreign_options plain = {0};
    fr_foreign *model = NULL;
    *out = NULL;
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (strcmp(readers[i].format, format) != 0)
            continue;
        fr_status status = readers[i].open(&model, path, options ? options : &plain, error);
        if (status == FR_OK)
            *out = model;
        else
            fr_foreign_free(model);
        return status;
    }
    return fr_error_set(error, FR_BAD_USAGE, format, "hf or llama2c", "there is no format of that name");
}

const fr_recipe *fr_foreign_recipe(const fr_foreign *model)
{
    return &model->recipe;
}

const char *fr_foreign_family(const fr_foreign *model)
{
    return model->family;
}

int64_t fr_foreign_params(const fr_foreign *model)
{
    return fr_graph_parameter_elements(model->graph);
}

const fr_tokenizer *fr_foreign_tokenizer(const fr_foreign *model)
{
    return model->tokenizer;
}

/* ---- saving ----------------------------------------------------------------------------------------- */

static fr_status write_record(const fr_foreign *model, const char *run_folder, fr_error *error)
{
    char path[1200], tokenizer[65], weights[65], recipe[65];
    fr_tokenizer_hash(model->tokenizer, tokenizer);
    FR_TRY(fr_sha256_file(fr_path_join(path, sizeof path, run_folder, "model.safetensors"), weights, error));
    FR_TRY(fr_sha256_file(fr_path_join(path, sizeof path, run_folder, "recipe.toml"), recipe, error));
    json_t *record = json_pack("{s:i s:s s:i s:I s:s s:n s:{s:s s:s s:s} s:{s:s s:s s:O?}}", "schema", 1, "status",
                               "imported", "steps", 0, "params", (json_int_t)fr_foreign_params(model), "basis",
                               "measured", "val_bpb", "hashes", "recipe_file", recipe, "tokenizer", tokenizer,
                               "weights", weights, "imported", "family", model->family, "path", model->path, "files",
                               model->files);
    if (!record)
        return fr_error_set(error, FR_BAD_USAGE, model->path, "paths in run.json are UTF-8",
                            "the import's record cannot be made");
    fr_status status = fr_json_write(record, fr_path_join(path, sizeof path, run_folder, "run.json"), error);
    json_decref(record);
    return status;
}

fr_status fr_foreign_save(const fr_foreign *model, const char *run_folder, fr_error *error)
{
    char path[1200];
    fr_buffer recipe;
    if (fr_path_exists(fr_path_join(path, sizeof path, run_folder, "run.json")))
        return fr_error_set(error, FR_BAD_USAGE, run_folder, "choose another folder with --out",
                            "the folder already holds a run");
    FR_TRY(fr_folder_make(run_folder, error));
    fr_buffer_init(&recipe, 1 << 20);
    fr_recipe_write(&model->recipe, &recipe);
    fr_status status = recipe.failed ? fr_error_memory(error, 1 << 16, "a recipe")
                                     : fr_file_write(fr_path_join(path, sizeof path, run_folder, "recipe.toml"),
                                                     recipe.data, recipe.length, error);
    fr_buffer_release(&recipe);
    FR_TRY(status);
    fr_path_join(path, sizeof path, run_folder, "tokenizer.json");
    FR_TRY(fr_tokenizer_save(model->tokenizer, path, error));
    fr_path_join(path, sizeof path, run_folder, "model.safetensors");
    FR_TRY(fr_model_save(model->graph, model->parameters, path, error));
    return write_record(model, run_folder, error);
}
