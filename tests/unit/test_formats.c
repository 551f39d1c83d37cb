/* Foreign models: they compute what an independent implementation of them computes, and files that are not what they
 * seem are refused by name.
 *
 * The vectors are small random models written by lab/formats_reference.py, with logits by NumPy in double.
 */
#include "frontier/formats.h"

#include "model_fixture.h"
#include "test.h"

#include <jansson.h>
#include <limits.h>

static const char *vectors(const char *name)
{
    static char paths[4][400];
    static int next;
    const char *top = getenv("TOP");
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s%stests/vectors/formats/%s", top ? top : "", top ? "/" : "", name);
    return path;
}

static fr_foreign *open_model(const char *format, const char *name, const char *tokenizer)
{
    fr_foreign *model = NULL;
    fr_error error = {0};
    fr_foreign_options options = {.tokenizer_path = tokenizer ? vectors(tokenizer) : NULL};
    CHECK_OK(fr_foreign_open(&model, format, vectors(name), &options, &error));
    return model;
}

/* ---- what they compute ------------------------------------------------------------------------------ */

/* The largest difference to the expected logits, in fp32 on the best kernels; the logits too, when asked for. */
static double logit_error(fr_scorer *scorer, const char *expected, float *logits)
{
    fr_tensor_file *file;
    fr_error error = {0};
    double worst = 0;
    CHECK_OK(fr_tensor_file_open(&file, vectors(expected), &error));
    const fr_tensor_entry *tokens = fr_tensor_file_find(file, "tokens"), *wanted = fr_tensor_file_find(file, "logits");
    int64_t T = tokens->shape[0], vocab = wanted->shape[1];
    CHECK_INT(fr_scorer_vocab(scorer), vocab);
    CHECK_OK(fr_scorer_logits(scorer, T, tokens->data, 0, logits, &error));
    for (int64_t i = 0; i < T * vocab; i++) {
        float want;
        memcpy(&want, (const char *)wanted->data + 4 * i, 4);
        double off = fabs((double)logits[i] - (double)want);
        worst = off > worst || isnan(off) ? off : worst;
    }
    fr_tensor_file_close(file);
    return worst;
}

static fr_scorer *scorer_of(fr_foreign *model)
{
    fr_scorer *scorer = NULL;
    fr_error error = {0};
    CHECK_OK(fr_scorer_open_foreign(&scorer, model, &(fr_scorer_options){.threads = 1}, &error));
    return scorer;
}

/* Scored directly and through a run folder: the expected logits, and the same bits. */
static void check_model(const char *format, const char *name, const char *tokenizer, const char *expected)
{
    static float direct[20 * 300], saved[20 * 300];
    fr_error error = {0};
    fr_foreign *model = open_model(format, name, tokenizer);
    const char *run = scratch(name);
    CHECK_OK(fr_foreign_save(model, run, &error));
    CHECK_INT(fr_foreign_save(model, run, &error), FR_BAD_USAGE);
    fr_scorer *scorer = scorer_of(model);
    double off = logit_error(scorer, expected, direct);
    printf("# %s: logits off by %.2g at most\n", name, off);
    CHECK(off < 5e-5);
    fr_scorer_free(scorer);
    CHECK_OK(fr_scorer_open(&scorer, run, &(fr_scorer_options){.threads = 2}, &error));
    CHECK(logit_error(scorer, expected, saved) < 5e-5);
    CHECK(memcmp(direct, saved, sizeof direct) == 0);
    fr_scorer_free(scorer);
}

TEST(gpt2_computes_what_gpt2_computes)
{
    check_model("hf", "gpt2", NULL, "gpt2-logits.safetensors");
}

TEST(llama_computes_what_llama_computes)
{
    check_model("hf", "llama", NULL, "llama-logits.safetensors"); /* two files; F32, BF16 and F16 */
}

TEST(llama2c_computes_what_llama2c_computes)
{
    check_model("llama2c", "llama2c.bin", "llama2c-tokenizer.bin", "llama2c-logits.safetensors");
}

TEST(a_shorter_context_is_taken_a_longer_one_refused)
{
    fr_foreign *model;
    fr_error error = {0};
    CHECK_OK(fr_foreign_open(&model, "hf", vectors("llama"), &(fr_foreign_options){.context = 8}, &error));
    CHECK_INT(fr_foreign_recipe(model)->model.context, 8);
    CHECK_STR(fr_foreign_family(model), "llama");
    fr_foreign_free(model);
    CHECK_INT(fr_foreign_open(&model, "hf", vectors("llama"), &(fr_foreign_options){.context = 64}, &error),
              FR_BAD_USAGE);
}

/* ---- SentencePiece's kind of tokenizer -------------------------------------------------------------- */

static void check_case(const fr_tokenizer *t, const json_t *item)
{
    uint8_t text[600];
    int32_t ids[601];
    fr_error error = {0};
    fr_buffer out;
    const json_t *bytes = json_object_get(item, "bytes"), *want = json_object_get(item, "ids");
    size_t count = json_array_size(bytes);
    for (size_t i = 0; i < count; i++)
        text[i] = (uint8_t)json_integer_value(json_array_get(bytes, i));
    int64_t got = fr_tokenizer_encode(t, (const char *)text, count, ids, 601);
    CHECK_INT(got, json_array_size(want));
    for (int64_t i = 0; i < got; i++)
        CHECK_INT(ids[i], json_integer_value(json_array_get(want, (size_t)i)));
    fr_buffer_init(&out, 0);
    CHECK_OK(fr_tokenizer_decode(t, ids, got, true, &out, &error));
    CHECK_INT(out.length, count);
    CHECK(count == 0 || memcmp(out.data, text, count) == 0);
    fr_buffer_release(&out);
}

static void check_cases(const fr_tokenizer *t)
{
    json_t *cases = json_load_file(vectors("llama2c-ids.json"), 0, NULL);
    CHECK(json_array_size(cases) > 10);
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(t, json_array_get(cases, i));
    json_decref(cases);
}

TEST(scores_merge_as_llama2c_merges)
{
    fr_foreign *model = open_model("llama2c", "llama2c.bin", "llama2c-tokenizer.bin");
    const fr_tokenizer *t = fr_foreign_tokenizer(model);
    fr_tokenizer *again = NULL;
    fr_error error = {0};
    char hash[2][65];
    size_t bytes;
    check_cases(t);
    CHECK_INT(fr_tokenizer_bos(t), 1);
    CHECK_INT(fr_tokenizer_prefix(t), 1);
    CHECK_OK(fr_tokenizer_save(t, scratch("pieces.json"), &error));
    CHECK_OK(fr_tokenizer_load(&again, scratch("pieces.json"), &error));
    check_cases(again); /* shared ranks survive the file */
    fr_tokenizer_hash(t, hash[0]);
    fr_tokenizer_hash(again, hash[1]);
    CHECK_STR(hash[1], hash[0]);
    CHECK(fr_tokenizer_token_after(t, 1, 261, &bytes)[0] == 'a' && bytes == 1); /* " a" behind BOS */
    CHECK(fr_tokenizer_token_after(t, 265, 261, &bytes)[0] == ' ' && bytes == 2);
    fr_tokenizer_free(again);
    fr_foreign_free(model);
}

/* `text` as JSON with the value at a path of keys ("model", "vocab", NULL) replaced; NULL value: removed. */
static fr_status parse_edited(const char *text, const char *outer, const char *key, const char *value)
{
    json_t *root = json_loads(text, 0, NULL), *object = outer ? json_object_get(root, outer) : root;
    fr_tokenizer *made = NULL;
    fr_error error = {0};
    CHECK(object != NULL);
    if (value)
        json_object_set_new(object, key, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(object, key);
    char *edited_text = json_dumps(root, 0);
    fr_status status = fr_tokenizer_parse(&made, edited_text, strlen(edited_text), "edited", &error);
    fr_tokenizer_free(made);
    free(edited_text);
    json_decref(root);
    return status;
}

TEST(pieces_that_do_not_fit_are_refused)
{
    fr_foreign *model = open_model("llama2c", "llama2c.bin", "llama2c-tokenizer.bin");
    fr_error error = {0};
    fr_buffer text;
    fr_buffer_init(&text, 0);
    CHECK_OK(fr_tokenizer_write(fr_foreign_tokenizer(model), &text, &error));
    CHECK_INT(parse_edited(text.data, NULL, "version", "\"1.0\""), FR_OK);
    CHECK_INT(parse_edited(text.data, "model", "frontier_merge_ranks", NULL), FR_OK); /* as `tokenizers` reads it */
    CHECK_INT(parse_edited(text.data, "model", "frontier_merge_ranks", "[0]"), FR_BAD_DATA);
    CHECK_INT(parse_edited(text.data, "model", "frontier_merge_ranks", "\"x\""), FR_BAD_DATA);
    CHECK_INT(parse_edited(text.data, "model", "byte_fallback", "false"), FR_BAD_DATA);
    CHECK_INT(parse_edited(text.data, "model", "ignore_merges", "true"), FR_BAD_DATA);
    CHECK_INT(parse_edited(text.data, "model", "vocab", "{\"a\": 0, \"\u2581\": 300}"), FR_BAD_DATA);
    CHECK_INT(parse_edited(text.data, NULL, "normalizer", "null"), FR_BAD_DATA);
    CHECK_INT(parse_edited(text.data, NULL, "normalizer", "{\"type\": \"NFC\"}"), FR_BAD_DATA);
    CHECK_INT(parse_edited(text.data, NULL, "pre_tokenizer", "{\"type\": \"Metaspace\"}"), FR_BAD_DATA);
    fr_buffer_release(&text);
    fr_foreign_free(model);
}

TEST(a_vocabulary_larger_than_its_tokenizer_is_kept)
{
    fr_foreign *model = open_model("hf", "llama", NULL); /* 260 tokens, 264 rows */
    const fr_tokenizer *t = fr_foreign_tokenizer(model);
    fr_tokenizer *again = NULL;
    fr_error error = {0};
    size_t bytes;
    CHECK_INT(fr_tokenizer_vocab(t), 264);
    CHECK(fr_tokenizer_token(t, 262, &bytes) == NULL);
    CHECK_INT(fr_tokenizer_special(t, "<|unused|>"), 263);
    CHECK_OK(fr_tokenizer_save(t, scratch("sized.json"), &error));
    CHECK_OK(fr_tokenizer_load(&again, scratch("sized.json"), &error));
    CHECK_INT(fr_tokenizer_vocab(again), 264);
    fr_tokenizer_free(again);
    CHECK_INT(fr_tokenizer_load_sized(&again, vectors("llama/tokenizer.json"), 259, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "260 ids, the model 259") != NULL);
    fr_foreign_free(model);
}

/* ---- out and back ----------------------------------------------------------------------------------- */

typedef struct outward {
    const char *name, *architecture, *beyond, *changes;
} outward;

static const outward outwards[] = {
    {"kit", "FrontierForCausalLM", "resid_scalars", ""},
    {"everything", "FrontierForCausalLM", "qk_gain",
     "windows = \"SSL\"\nshort_window = 20\nvalue_embeddings = true\nsmear = true\nbackout = true\nkv_heads = 1\n"
     "qk_gain = 1.2\n"},
    {"plain", "NanoChatForCausalLM", NULL, "resid_scalars = false\nx0_scalars = false\nkv_heads = 2\n"},
    {"tied", "NanoChatForCausalLM", NULL,
     "resid_scalars = false\nx0_scalars = false\ntied = true\nactivation = \"gelu\"\nsoftcap = 0.0\nnorm_eps = 1e-6\n"},
    {"like-gpt2", "FrontierForCausalLM", "norm",
     "resid_scalars = false\nx0_scalars = false\nnorm = \"layer\"\nposition = \"learned\"\nqk_norm = false\n"
     "activation = \"gelu\"\nbias = true\ntied = true\nembedding_norm = false\n"},
    {"like-llama", "FrontierForCausalLM", "norm",
     "resid_scalars = false\nx0_scalars = false\nnorm = \"rms_gain\"\nactivation = \"swiglu\"\nhidden = 50\n"
     "rotary_pairs = \"interleaved\"\nqk_norm = false\n"},
};

static fr_recipe outward_recipe(const outward *o)
{
    char text[900];
    fr_recipe recipe;
    fr_error error = {0};
    snprintf(text, sizeof text,
             "[model]\ndepth = 3\nwidth = 32\nhead_dim = 16\ncontext = 48\nnumerics = \"fp32\"\n%s"
             "[optim]\nbatch_tokens = 384\n",
             o->changes);
    CHECK_OK(fr_recipe_parse(&recipe, text, o->name, &error));
    return recipe;
}

static void run_logits(const char *run, float *logits)
{
    fr_scorer *scorer;
    fr_error error = {0};
    int32_t tokens[40];
    for (int i = 0; i < 40; i++)
        tokens[i] = (int32_t)(fr_rng_at(2, 0, (uint64_t)i) % 270);
    CHECK_OK(fr_scorer_open(&scorer, run, &(fr_scorer_options){.threads = 1}, &error));
    CHECK_OK(fr_scorer_logits(scorer, 40, tokens, 0, logits, &error));
    fr_scorer_free(scorer);
}

static void check_outward(const outward *o)
{
    static float before[40 * 285], after[40 * 285];
    char run[300], out[310], back[310];
    fr_error error = {0};
    fr_export_summary summary = {0};
    fr_recipe recipe = outward_recipe(o);
    fr_tokenizer *tokenizer = fixture_tokenizer(20);
    snprintf(run, sizeof run, "%s", scratch(o->name));
    snprintf(out, sizeof out, "%s-out", run);
    snprintf(back, sizeof back, "%s-back", run);
    model_fixture_run(run, &recipe, tokenizer);
    CHECK_OK(fr_export_hf(run, out, &summary, &error));
    CHECK_STR(summary.architecture, o->architecture);
    CHECK_STR(summary.beyond_nanochat ? summary.beyond_nanochat : "", o->beyond ? o->beyond : "");
    CHECK(fixture_exists(out, "modeling_frontier.py") == (o->beyond != NULL));
    CHECK_INT(fr_export_hf(run, out, &summary, &error), FR_BAD_USAGE);
    fr_foreign *model = NULL;
    CHECK_OK(fr_foreign_open(&model, "hf", out, NULL, &error));
    CHECK_OK(fr_foreign_save(model, back, &error));
    fr_foreign_free(model);
    run_logits(run, before);
    run_logits(back, after);
    CHECK(memcmp(before, after, sizeof before) == 0);
    fr_tokenizer_free(tokenizer);
}

TEST(exports_come_back_bit_for_bit)
{
    for (size_t i = 0; i < sizeof outwards / sizeof outwards[0]; i++)
        check_outward(&outwards[i]);
}

/* ---- files that are not what they seem -------------------------------------------------------------- */

static fr_arena memory;

static char *read_all(const char *name, size_t *bytes)
{
    char *text = NULL;
    fr_error error = {0};
    if (!memory.block_bytes)
        fr_arena_init(&memory, 1 << 16);
    CHECK_OK(fr_file_read(&memory, vectors(name), &text, bytes, &error));
    return text;
}

static fr_status parse_gpt2(const char *config, const void *tensors, size_t bytes, fr_error *error)
{
    fr_foreign *model = NULL;
    *error = (fr_error){0};
    fr_status status = fr_foreign_parse_hf(&model, config, strlen(config), tensors, bytes, error);
    CHECK((status == FR_OK) == (model != NULL));
    fr_foreign_free(model);
    return status;
}

/* `text` with one setting replaced or added. */
static const char *edited(const char *text, const char *key, const char *value)
{
    json_t *config = json_loads(text, 0, NULL), *changed = json_loads(value, JSON_DECODE_ANY, NULL);
    CHECK(config && changed);
    json_object_set_new(config, key, changed);
    char *out = json_dumps(config, 0), *kept = fr_arena_strdup(&memory, out);
    free(out);
    json_decref(config);
    return kept;
}

typedef struct edit {
    const char *key, *value, *says;
} edit;

static const edit gpt2_edits[] = {
    {"model_type", "\"bert\"", "'bert'"},
    {"model_type", "3", "model_type"},
    {"n_layer", "0", "depth"},
    {"n_layer", "513", "depth"},
    {"n_layer", "3", "'h.2.ln_1.weight' is missing"},
    {"n_layer", "1", "'transformer.h.1."},
    {"n_layer", "-1", "n_layer"},
    {"n_layer", "2.5", "n_layer"},
    {"n_head", "5", "n_head"},
    {"n_head", "12", "model.head_dim"},
    {"n_head", "0", "n_head"},
    {"n_embd", "24", "gives 260 x 12, the settings ask for 260 x 24"},
    {"n_embd", "300000", "width"},
    {"n_inner", "40", "mlp.c_fc.weight' gives 48 x 12, the settings ask for 40 x 12"},
    {"n_positions", "17", "wpe.weight' gives 16 x 12, the settings ask for 17 x 12"},
    {"n_positions", "1", "context"},
    {"vocab_size", "259", "wte.weight' gives 260 x 12, the settings ask for 259 x 12"},
    {"vocab_size", "0", "vocab_size"},
    {"vocab_size", "100000000000", "vocab_size"},
    {"activation_function", "\"gelu\"", "is gelu"},
    {"layer_norm_epsilon", "0", "layer_norm_epsilon"},
    {"layer_norm_epsilon", "-1e-5", "layer_norm_epsilon"},
    {"layer_norm_epsilon", "2", "norm_eps"},
    {"scale_attn_weights", "false", "scale_attn_weights"},
    {"scale_attn_by_inverse_layer_idx", "true", "scale_attn_by_inverse_layer_idx"},
    {"tie_word_embeddings", "false", "'lm_head.weight' is missing"},
    {"tie_word_embeddings", "\"no\"", "tie_word_embeddings"},
    {"quantization_config", "{}", "quantization_config"},
    {"is_encoder_decoder", "true", "is_encoder_decoder"},
};

TEST(settings_that_do_not_fit_are_named)
{
    size_t config_bytes, tensor_bytes;
    fr_error error = {0};
    const char *config = read_all("gpt2/config.json", &config_bytes),
               *tensors = read_all("gpt2/model.safetensors", &tensor_bytes);
    CHECK_OK(parse_gpt2(config, tensors, tensor_bytes, &error));
    for (size_t i = 0; i < sizeof gpt2_edits / sizeof gpt2_edits[0]; i++) {
        const edit *e = &gpt2_edits[i];
        fr_status status = parse_gpt2(edited(config, e->key, e->value), tensors, tensor_bytes, &error);
        CHECK_INT(status, FR_BAD_DATA);
        if (!strstr(error.what, e->says) && !strstr(error.where, e->says))
            test_fail_format(__FILE__, __LINE__, "%s = %s: %s: %s", e->key, e->value, error.where, error.what);
    }
    CHECK_INT(parse_gpt2("[1]", tensors, tensor_bytes, &error), FR_BAD_DATA);
    CHECK_INT(parse_gpt2("{\"a\": 1, \"a\": 2}", tensors, tensor_bytes, &error), FR_BAD_DATA);
}

static const edit llama_edits[] = {
    {"rope_scaling", "{\"rope_type\": \"llama3\", \"factor\": 8}", "scales the rotation"},
    {"rope_scaling", "{\"type\": \"linear\", \"factor\": 2}", "scales the rotation"},
    {"rope_parameters", "{\"rope_type\": \"yarn\"}", "scales the rotation"},
    {"rope_parameters", "{\"partial_rotary_factor\": 0.5}", "rotates a part"},
    {"rope_parameters", "7", "no object"},
    {"rope_theta", "0.5", "rope_base"},
    {"head_dim", "8", "head_dim"},
    {"num_key_value_heads", "3", "kv_heads"},
    {"num_key_value_heads", "4", "k_proj.weight' gives 8 x 16, the settings ask for 16 x 16"},
    {"attention_bias", "true", "differ"},
    {"hidden_act", "\"gelu_new\"", "is gelu_new"},
    {"sliding_window", "128", "sliding_window"},
    {"intermediate_size", "23", "up_proj.weight' gives 24 x 16, the settings ask for 23 x 16"},
    {"max_position_embeddings", "2000000", "context"},
    {"tie_word_embeddings", "true", "'lm_head.weight' is another tensor"},
};

/* The folder of a model as links to its files, but for one with other content. */
static const char *folder_with(const char *source, const char *changed, const char *content)
{
    static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors.index.json",
                                        "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                        "model.safetensors"};
    static char folder[256];
    char from[PATH_MAX], name[64], path[400];
    fr_error error = {0};
    snprintf(name, sizeof name, "folder-%s", source);
    snprintf(folder, sizeof folder, "%s", scratch(name));
    scratch_remove(folder);
    CHECK_OK(fr_folder_make(folder, &error));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "%s/%s", source, names[i]);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (strcmp(names[i], changed) == 0 && content)
            CHECK_OK(fr_file_write(path, content, strlen(content), &error));
        else if (strcmp(names[i], changed) != 0 && realpath(vectors(name), from))
            CHECK_INT(symlink(from, path), 0);
    }
    return folder;
}

static fr_status open_folder(const char *folder, fr_error *error)
{
    fr_foreign *model;
    *error = (fr_error){0};
    fr_status status = fr_foreign_open(&model, "hf", folder, NULL, error);
    CHECK((status == FR_OK) == (model != NULL));
    fr_foreign_free(model);
    return status;
}

static void check_refusal(const char *folder, const char *says)
{
    fr_error error;
    CHECK_INT(open_folder(folder, &error), FR_BAD_DATA);
    if (!strstr(error.what, says) && !strstr(error.where, says))
        test_fail_format(__FILE__, __LINE__, "wanted '%s': %s: %s", says, error.where, error.what);
}

TEST(settings_of_llama_that_do_not_fit_are_named)
{
    size_t bytes;
    const char *config = read_all("llama/config.json", &bytes);
    for (size_t i = 0; i < sizeof llama_edits / sizeof llama_edits[0]; i++) {
        const edit *e = &llama_edits[i];
        const char *folder = folder_with("llama", "config.json", edited(config, e->key, e->value));
        check_refusal(folder, e->says);
    }
}

/* A tied head may lie beside the embedding when it is the same. */
TEST(a_tied_head_is_the_embedding)
{
    enum { MOST = 100 };
    static fr_tensor_entry entries[MOST];
    size_t bytes;
    fr_error error = {0};
    fr_tensor_file *file;
    const char *tensors = read_all("gpt2/model.safetensors", &bytes);
    CHECK_OK(fr_tensor_file_parse(&file, tensors, bytes, "gpt2", &error));
    int count = fr_tensor_file_count(file), embedding = -1;
    CHECK(count < MOST);
    for (int i = 0; i < count; i++) {
        entries[i] = *fr_tensor_file_entry(file, i);
        embedding = strstr(entries[i].name, "wte.weight") ? i : embedding;
    }
    CHECK(embedding >= 0 && entries[embedding].dtype == FR_F32);
    fr_tensor_entry *head = &entries[count];
    *head = entries[embedding];
    head->name = "lm_head.weight";
    size_t elements = (size_t)(head->shape[0] * head->shape[1]);
    float *other = malloc(elements * sizeof *other);
    memcpy(other, head->data, elements * sizeof *other);
    for (int changed = 0; changed < 2; changed++) {
        char path[400];
        const char *folder = folder_with("gpt2", "model.safetensors", NULL);
        head->data = other;
        other[elements - 1] += (float)changed;
        snprintf(path, sizeof path, "%s/model.safetensors", folder);
        CHECK_OK(fr_tensor_file_write(path, entries, count + 1, NULL, 0, &error));
        if (changed)
            check_refusal(folder, "'lm_head.weight' is another tensor");
        else
            CHECK_OK(open_folder(folder, &error));
    }
    free(other);
    fr_tensor_file_close(file);
}

TEST(indexes_that_lie_are_refused)
{
    size_t bytes;
    const char *name = "model.safetensors.index.json",
               *index = read_all("llama/model.safetensors.index.json", &bytes);
    check_refusal(folder_with("llama", name, "{\"weight_map\": {}}"), "lists nothing");
    check_refusal(folder_with("llama", name, "{\"weight_map\": 3}"), "weight_map");
    static const char *const hostile[] = {"\"../gpt2/model.safetensors\"", "\"/etc/passwd\"", "\".safetensors\"", "7",
                                          "\"model.bin\"", "\"a/../model.safetensors\""};
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        char map[120];
        snprintf(map, sizeof map, "{\"lm_head.weight\": %s}", hostile[i]);
        check_refusal(folder_with("llama", name, edited(index, "weight_map", map)), "no name of a file");
    }
    const char *first = "model-00001-of-00002.safetensors", *second = "model-00002-of-00002.safetensors";
    json_t *root = json_loads(index, 0, NULL), *map = json_object_get(root, "weight_map");
    json_object_set_new(map, "lm_head.weight", json_string(first)); /* it is in the second */
    char *text = json_dumps(root, 0);
    check_refusal(folder_with("llama", name, text), "does not place this tensor");
    free(text);
    json_object_set_new(map, "lm_head.weight", json_string(second));
    json_object_set_new(map, "ghost", json_string(second));
    text = json_dumps(root, 0);
    check_refusal(folder_with("llama", name, text), "in no file");
    free(text);
    json_decref(root);
    check_refusal(folder_with("llama", first, NULL), first);
    check_refusal(folder_with("llama", first, "short"), first);
    check_refusal(folder_with("llama", "tokenizer.json", NULL), "no tokenizer.json");
    check_refusal(folder_with("gpt2", "config.json", NULL), "no folder of a Hugging Face model");
    check_refusal(folder_with("gpt2", "model.safetensors", NULL), "model.safetensors");
}

/* Every prefix of the files, and every file with a byte more. */
TEST(truncated_llama2c_files_are_refused)
{
    size_t weights, tokens;
    fr_foreign *model;
    fr_error error = {0};
    char *w = read_all("llama2c.bin", &weights), *t = read_all("llama2c-tokenizer.bin", &tokens); /* NUL behind */
    CHECK_OK(fr_foreign_parse_llama2c(&model, w, weights, t, tokens, &error));
    fr_foreign_free(model);
    for (size_t n = 0; n <= weights + 1; n += n < 64 ? 1 : 97)
        if (n != weights)
            CHECK_INT(fr_foreign_parse_llama2c(&model, w, n, t, tokens, &error), FR_BAD_DATA);
    for (size_t n = 0; n <= tokens + 1; n += n < 64 || n > tokens - 8 ? 1 : 13)
        if (n != tokens)
            CHECK_INT(fr_foreign_parse_llama2c(&model, w, weights, t, n, &error), FR_BAD_DATA);
    CHECK_INT(fr_foreign_parse_llama2c(&model, w, weights, t, tokens + 1, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "1 bytes are left") != NULL);
}

static fr_status with_number(size_t at, int32_t value, fr_error *error)
{
    size_t weights, tokens;
    fr_foreign *model = NULL;
    char *w = read_all("llama2c.bin", &weights), *t = read_all("llama2c-tokenizer.bin", &tokens);
    memcpy(w + at, &value, sizeof value);
    fr_status status = fr_foreign_parse_llama2c(&model, w, weights, t, tokens, error);
    fr_foreign_free(model);
    return status;
}

TEST(headers_of_llama2c_are_not_believed)
{
    static const int32_t hostile[] = {0, -1, 1, 3, 7, INT32_MAX, INT32_MIN, 1 << 30, 65536};
    fr_error error = {0};
    for (size_t field = 0; field < 7; field++)
        for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++)
            if (!(field == 4 && hostile[i] == 1)) /* it has one kv head */
                CHECK_INT(with_number(4 * field, hostile[i], &error), FR_BAD_DATA);
    CHECK_INT(with_number(0, 0x616b3432, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "later format") != NULL);
}

/* The tokenizer file with token `id` replaced. */
static fr_status with_token(int32_t id, float score, const char *text, size_t length, fr_error *error)
{
    size_t bytes, at = 4;
    fr_tokenizer *made = NULL;
    char *file = read_all("llama2c-tokenizer.bin", &bytes);
    for (int32_t i = 0; i < id; i++) {
        int32_t skip;
        memcpy(&skip, file + at + 4, 4);
        at += 8 + (size_t)skip;
    }
    int32_t old, given = (int32_t)length;
    memcpy(&old, file + at + 4, 4);
    size_t rest = bytes - at - 8 - (size_t)old, total = at + 8 + length + rest;
    char *out = fr_arena_alloc(&memory, total);
    memcpy(out, file, at);
    memcpy(out + at, &score, 4);
    memcpy(out + at + 4, &given, 4);
    memcpy(out + at + 8, text, length);
    memcpy(out + at + 8 + length, file + at + 8 + (size_t)old, rest);
    fr_status status = fr_tokenizer_parse_llama2c(&made, out, total, 272, "tokens", error);
    fr_tokenizer_free(made);
    return status;
}

TEST(tokens_of_llama2c_are_checked)
{
    fr_error error = {0};
    CHECK_OK(with_token(271, -5, "bb", 2, &error));
    CHECK_INT(with_token(271, NAN, "bb", 2, &error), FR_BAD_DATA);
    CHECK_INT(with_token(271, -INFINITY, "bb", 2, &error), FR_BAD_DATA);
    CHECK_INT(with_token(271, -5, "", 0, &error), FR_BAD_DATA);
    CHECK_INT(with_token(271, -5, "longer than it says", 19, &error), FR_BAD_DATA);
    CHECK_INT(with_token(271, -5, "aa", 2, &error), FR_BAD_DATA); /* there already */
    CHECK_INT(with_token(271, -5, "b\0b", 3, &error), FR_BAD_DATA);
    CHECK_INT(with_token(271, -5, "\xE2\x96\x81", 3, &error), FR_BAD_DATA);
    CHECK_INT(with_token(271, -5, "<0x41>", 6, &error), FR_BAD_DATA);
    CHECK_INT(with_token(68, -5, "<0x42>", 6, &error), FR_BAD_DATA); /* id 68 is 0x41 */
    CHECK_INT(with_token(68, -5, "A", 1, &error), FR_BAD_DATA);
    CHECK_INT(with_token(0, 0, "ab", 2, &error), FR_BAD_DATA); /* <unk> that text could reach */
    CHECK_INT(with_token(264, -10, "c", 1, &error), FR_BAD_DATA); /* no space is left */
}

TEST(no_memory_is_an_error)
{
    fr_error error = {0};
    fr_foreign *model;
    fr_status status = FR_BAD_ENVIRONMENT;
    for (int64_t n = 0; n < 4000 && status != FR_OK; n += n < 40 ? 1 : 13) {
        fr_allocate_fail_after(n);
        status = fr_foreign_open(&model, "hf", vectors("gpt2"), NULL, &error);
        fr_allocate_fail_after(-1);
        CHECK(status == FR_OK || status == FR_BAD_ENVIRONMENT || status == FR_BAD_DATA);
        fr_foreign_free(model);
    }
    CHECK_INT(status, FR_OK);
}

TEST_MAIN(formats)
