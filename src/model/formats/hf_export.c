/* A run folder as a Hugging Face folder.
 *
 * Where NanoChat's class of `transformers` can express the recipe, the folder is one of that class: no code
 * travels with it. Otherwise it is ours: the same tensors under our names, the [model] section of the recipe in
 * config.json, and modeling_frontier.py, which is that section as a page of PyTorch. Tables end with the
 * tokenizer's last id; the rows behind it, which pad ours to a multiple of 64, mean nothing and stay behind.
 */
#include "model/formats/hf.h"
#include "model/formats/modeling.h"
#include "model/scorer.h"

#include <math.h>
#include <string.h>

typedef struct export_job {
    const char *run, *out;
    fr_recipe recipe;
    fr_tokenizer *tokenizer;
    fr_graph *graph;
    float *parameters;
    const hf_family *family;
    const char *reason; /* why it is not NanoChat's class; NULL: it is */
    fr_arena arena;
    int64_t vocab, bytes;
} export_job;

/* ---- the run ---------------------------------------------------------------------------------------- */

static fr_status open_run(export_job *job, fr_error *error)
{
    char path[1200];
    if (!fr_path_is_folder(job->run))
        return fr_error_set(error, FR_BAD_DATA, job->run, "give the folder a run was written to",
                            "there is no such run folder");
    FR_TRY(fr_scorer_refuse_programs(job->run, error));
    FR_TRY(fr_run_recipe_load(&job->recipe, job->run, error));
    FR_TRY(fr_tokenizer_load(&job->tokenizer, fr_path_join(path, sizeof path, job->run, "tokenizer.json"), error));
    job->vocab = fr_tokenizer_vocab(job->tokenizer);
    job->graph = fr_graph_create(error);
    if (!job->graph)
        return FR_BAD_ENVIRONMENT;
    FR_TRY(fr_model_build(job->graph, &job->recipe, job->vocab, error));
    size_t bytes = (size_t)fr_graph_flat_elements(job->graph) * sizeof(float);
    job->parameters = fr_allocate(bytes);
    if (!job->parameters)
        return fr_error_memory(error, bytes, "the model's weights");
    return fr_model_load(job->graph, job->parameters, fr_path_join(path, sizeof path, job->run, "model.safetensors"),
                         error);
}

/* What of a recipe NanoChat's class cannot express, first come; NULL: nothing. */
static const char *beyond_nanochat(const fr_recipe *recipe)
{
    bool short_windows = false;
    for (int64_t layer = 0; layer < recipe->model.depth; layer++)
        short_windows = short_windows || fr_recipe_window(recipe, layer) < recipe->model.context;
    const struct {
        bool is;
        const char *what;
    } table[] = {{strcmp(recipe->model.norm, "rms") != 0, "norm"},
                 {!recipe->model.embedding_norm, "embedding_norm"},
                 {strcmp(recipe->model.position, "rotary") != 0, "position"},
                 {strcmp(recipe->model.rotary_pairs, "halves") != 0, "rotary_pairs"},
                 {!recipe->model.qk_norm, "qk_norm"},
                 {recipe->model.qk_gain != 1, "qk_gain"},
                 {strcmp(recipe->model.activation, "swiglu") == 0, "activation"},
                 {recipe->model.bias, "bias"},
                 {short_windows, "windows"},
                 {recipe->model.resid_scalars, "resid_scalars"},
                 {recipe->model.x0_scalars, "x0_scalars"},
                 {recipe->model.value_embeddings, "value_embeddings"},
                 {recipe->model.smear, "smear"},
                 {recipe->model.backout, "backout"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].is)
            return table[i].what;
    return NULL;
}

/* ---- weights ---------------------------------------------------------------------------------------- */

/* Our tables have padding rows; gains, biases and scalars are vectors there. */
static void describe(const export_job *job, const fr_parameter_info *info, fr_tensor_entry *entry)
{
    bool table = strcmp(info->name, "transformer.wte.weight") == 0 || strcmp(info->name, "lm_head.weight") == 0 ||
                 strncmp(info->name, "value_embeds.", 13) == 0;
    bool vector = info->rows == 1 && strcmp(info->group, "matrix") != 0 &&
                  strcmp(info->name, "smear_gate.weight") != 0;
    *entry = (fr_tensor_entry){.name = info->name,
                               .dtype = FR_F32,
                               .dims = 2,
                               .shape = {table ? job->vocab : info->rows, info->columns},
                               .data = job->parameters + info->offset};
    if (vector) {
        entry->dims = 1;
        entry->shape[0] = info->columns;
        entry->shape[1] = 0;
    }
}

static fr_status write_weights(export_job *job, fr_error *error)
{
    static const char *const metadata[] = {"format", "pt"};
    char path[1200];
    int count = fr_graph_parameters(job->graph);
    fr_tensor_entry *entries = fr_arena_alloc(&job->arena, (size_t)count * sizeof *entries);
    char *names = fr_arena_alloc(&job->arena, (size_t)count * HF_NAME);
    if (!entries || !names)
        return fr_error_memory(error, (size_t)count * HF_NAME, "an export's tensors");
    for (int i = 0; i < count; i++, names += HF_NAME) {
        const fr_parameter_info *info = fr_graph_parameter(job->graph, i);
        describe(job, info, &entries[i]);
        if (!hf_translate(job->family, info->name, names))
            return fr_error_set(error, FR_BUG, info->name, NULL, "family %s has no such tensor",
                                job->family->model_type);
        entries[i].name = names;
        job->bytes += 4 * entries[i].shape[0] * (entries[i].dims == 2 ? entries[i].shape[1] : 1);
    }
    fr_path_join(path, sizeof path, job->out, "model.safetensors");
    return fr_tensor_file_write(path, entries, count, metadata, 1, error);
}

/* ---- settings --------------------------------------------------------------------------------------- */

/* The [model] section; sizes that follow from others are written out, so that nobody has to derive them. */
static json_t *recipe_json(const fr_recipe *recipe)
{
    int count;
    const fr_config_key *keys = fr_recipe_keys(&count);
    json_t *section = json_object();
    bool fine = section != NULL;
    for (int i = 0; i < count && fine; i++) {
        const char *name = keys[i].name + 6, *field = (const char *)recipe + keys[i].offset;
        if (strncmp(keys[i].name, "model.", 6) != 0)
            continue;
        if (keys[i].type == FR_CONFIG_INT)
            fine = fr_json_set_int(section, name, *(const int64_t *)(const void *)field);
        else if (keys[i].type == FR_CONFIG_REAL)
            fine = fr_json_set_real(section, name, *(const double *)(const void *)field);
        else if (keys[i].type == FR_CONFIG_BOOL)
            fine = fr_json_set_bool(section, name, *(const bool *)field);
        else
            fine = fr_json_set_string(section, name, field);
    }
    fine = fine && fr_json_set_int(section, "width", fr_recipe_width(recipe)) &&
           fr_json_set_int(section, "kv_heads", fr_recipe_kv_heads(recipe)) &&
           fr_json_set_int(section, "hidden", fr_recipe_hidden(recipe));
    if (fine)
        return section;
    json_decref(section);
    return NULL;
}

/* What any family's config.json has. */
static json_t *common_config(const export_job *job)
{
    const fr_recipe *r = &job->recipe;
    return json_pack("{s:[s] s:s s:I s:I s:I s:I s:I s:I s:I s:s}", "architectures", job->family->architecture,
                     "model_type", job->family->model_type, "vocab_size", (json_int_t)job->vocab, "hidden_size",
                     (json_int_t)fr_recipe_width(r), "intermediate_size", (json_int_t)fr_recipe_hidden(r),
                     "num_hidden_layers", (json_int_t)r->model.depth, "num_attention_heads",
                     (json_int_t)fr_recipe_heads(r), "num_key_value_heads", (json_int_t)fr_recipe_kv_heads(r),
                     "max_position_embeddings", (json_int_t)r->model.context, "dtype", "float32");
}

static bool add_nanochat(const export_job *job, json_t *config)
{
    const fr_recipe *r = &job->recipe;
    const char *activation = strcmp(r->model.activation, "gelu") == 0 ? "gelu_pytorch_tanh" : "relu2";
    double eps = r->model.norm_eps > 0 ? r->model.norm_eps : 1.1920929e-07;
    json_t *cap = r->model.softcap > 0 ? json_real(r->model.softcap) : json_null();
    return fr_json_set_string(config, "hidden_act", activation) && fr_json_set_real(config, "rms_norm_eps", eps) &&
           fr_json_set(config, "rope_parameters",
                       json_pack("{s:s s:f}", "rope_type", "default", "rope_theta", r->model.rope_base)) &&
           fr_json_set(config, "final_logit_softcapping", cap) &&
           fr_json_set_bool(config, "attention_bias", false) &&
           fr_json_set_bool(config, "tie_word_embeddings", r->model.tied);
}

static bool add_frontier(const export_job *job, json_t *config)
{
    return fr_json_set(config, "auto_map",
                       json_pack("{s:s s:s}", "AutoConfig", "modeling_frontier.FrontierConfig",
                                 "AutoModelForCausalLM", "modeling_frontier.FrontierForCausalLM")) &&
           fr_json_set_bool(config, "tie_word_embeddings", false) && fr_json_set_bool(config, "use_cache", false) &&
           fr_json_set(config, "recipe", recipe_json(&job->recipe));
}

/* A document ends where the next one begins, so BOS is the end mark and the padding too. */
static bool add_marks(const export_job *job, json_t *object)
{
    static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    int32_t bos = fr_tokenizer_bos(job->tokenizer);
    bool fine = object != NULL;
    for (int i = 0; i < 3 && fine; i++)
        fine = fr_json_set(object, keys[i], bos >= 0 ? json_integer(bos) : json_null());
    return fine;
}

/* Writes `object` if it could be made, and gives it up. */
static fr_status write_object(const export_job *job, const char *name, json_t *object, bool made, fr_error *error)
{
    char path[1200];
    fr_status status = made ? fr_json_write(object, fr_path_join(path, sizeof path, job->out, name), error)
                            : fr_error_memory(error, 1 << 12, name);
    json_decref(object);
    return status;
}

static fr_status write_config(const export_job *job, fr_error *error)
{
    json_t *config = common_config(job);
    bool made = config && add_marks(job, config) &&
                (job->reason ? add_frontier(job, config) : add_nanochat(job, config));
    return write_object(job, "config.json", config, made, error);
}

static fr_status write_generation(const export_job *job, fr_error *error)
{
    json_t *generation = json_object();
    bool made = add_marks(job, generation) && (!job->reason || fr_json_set_bool(generation, "use_cache", false));
    return write_object(job, "generation_config.json", generation, made, error);
}

static fr_status write_tokenizer(const export_job *job, fr_error *error)
{
    char path[1200];
    size_t bytes = 0;
    const char *bos = fr_tokenizer_token(job->tokenizer, fr_tokenizer_bos(job->tokenizer), &bytes);
    json_t *settings =
        json_pack("{s:s s:I s:b}", "tokenizer_class", "PreTrainedTokenizerFast", "model_max_length",
                  (json_int_t)job->recipe.model.context, "clean_up_tokenization_spaces", 0);
    bool made = settings != NULL;
    if (bos && made)
        made = fr_json_set(settings, "bos_token", fr_json_text(bos, bytes)) &&
               fr_json_set(settings, "eos_token", fr_json_text(bos, bytes)) &&
               fr_json_set(settings, "pad_token", fr_json_text(bos, bytes));
    FR_TRY(write_object(job, "tokenizer_config.json", settings, made, error));
    return fr_tokenizer_save(job->tokenizer, fr_path_join(path, sizeof path, job->out, "tokenizer.json"), error);
}

static fr_status write_modeling(const export_job *job, fr_error *error)
{
    char path[1200];
    fr_file_writer writer;
    FR_TRY(fr_file_writer_begin(&writer, fr_path_join(path, sizeof path, job->out, "modeling_frontier.py"), error));
    for (const char *const *line = modeling_frontier_lines; *line; line++)
        fr_file_writer_append(&writer, *line, strlen(*line));
    return fr_file_writer_commit(&writer, error);
}

/* ---- the folder ------------------------------------------------------------------------------------- */

static fr_status write_folder(export_job *job, fr_error *error)
{
    char path[1200];
    if (fr_path_exists(fr_path_join(path, sizeof path, job->out, "config.json")))
        return fr_error_set(error, FR_BAD_USAGE, job->out, "choose another folder with --out",
                            "the folder already holds a model");
    job->reason = beyond_nanochat(&job->recipe);
    job->family = job->reason ? &hf_frontier : &hf_nanochat;
    FR_TRY(fr_folder_make(job->out, error));
    FR_TRY(write_weights(job, error));
    FR_TRY(write_tokenizer(job, error));
    FR_TRY(write_generation(job, error));
    if (job->reason)
        FR_TRY(write_modeling(job, error));
    return write_config(job, error); /* last: a folder without it is no model */
}

fr_status fr_export_hf(const char *run_folder, const char *out_folder, fr_export_summary *summary, fr_error *error)
{
    export_job job = {.run = run_folder, .out = out_folder};
    if (strlen(run_folder) > 1000 || strlen(out_folder) > 1000)
        return fr_error_set(error, FR_BAD_USAGE, out_folder, NULL, "the path is too long");
    fr_arena_init(&job.arena, 1 << 16);
    fr_status status = open_run(&job, error);
    if (status == FR_OK)
        status = write_folder(&job, error);
    if (status == FR_OK)
        *summary = (fr_export_summary){.architecture = job.family->architecture,
                                       .beyond_nanochat = job.reason,
                                       .tensors = fr_graph_parameters(job.graph),
                                       .bytes = job.bytes};
    fr_tokenizer_free(job.tokenizer);
    fr_graph_free(job.graph);
    fr_deallocate(job.parameters);
    fr_arena_release(&job.arena);
    return status;
}
