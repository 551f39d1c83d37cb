/* tests/unit/model_fixture.h: a tiny model in a run folder, and a small corpus it can be scored on. */
#ifndef TEST_MODEL_FIXTURE_H
#define TEST_MODEL_FIXTURE_H
#include "frontier/model.h"

#include "scratch.h"
#include "text_fixture.h"

static inline fr_recipe model_fixture_recipe(void)
{
    static const char text[] =
        "[model]\ndepth = 3\nwidth = 32\nhead_dim = 8\nkv_heads = 2\ncontext = 96\nwindows = \"SSL\"\n"
        "short_window = 20\nvalue_embeddings = true\nsmear = true\nbackout = true\nnumerics = \"fp32\"\n"
        "[optim]\nbatch_tokens = 768\n";
    fr_recipe recipe;
    fr_error error = {0};
    if (fr_recipe_parse(&recipe, text, "fixture", &error) != FR_OK) {
        printf("# recipe: %s: %s\n", error.where, error.what);
        abort();
    }
    return recipe;
}

/* Initial weights plus noise: the initial output projections alone are zero. */
static inline float *model_fixture_weights(const fr_graph *graph)
{
    int64_t count = fr_graph_flat_elements(graph);
    float *flat = calloc((size_t)count, sizeof *flat);
    fr_graph_initialize(graph, 1, NULL, flat);
    for (int p = 0; p < fr_graph_parameters(graph); p++) {
        const fr_parameter_info *info = fr_graph_parameter(graph, p);
        for (int64_t i = 0; i < info->rows * info->columns; i++)
            flat[info->offset + i] += 0.2f * (float)fr_rng_normal_at(3, (uint64_t)p, (uint64_t)i);
    }
    return flat;
}

/* Writes recipe.toml, tokenizer.json and model.safetensors into a folder. */
static inline void model_fixture_run(const char *folder, const fr_recipe *recipe,
                                     const fr_tokenizer *tokenizer)
{
    char path[700];
    fr_error error = {0};
    fr_graph *graph = fr_graph_create(&error);
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_recipe_write(recipe, &text);
    if (fr_folder_make(folder, &error) != FR_OK ||
        fr_model_build(graph, recipe, fr_tokenizer_vocab(tokenizer), &error) != FR_OK ||
        fr_file_write(fr_path_join(path, sizeof path, folder, "recipe.toml"), text.data, text.length,
                      &error) != FR_OK ||
        fr_tokenizer_save(tokenizer, fr_path_join(path, sizeof path, folder, "tokenizer.json"), &error) !=
            FR_OK) {
        printf("# run: %s: %s\n", error.where, error.what);
        abort();
    }
    float *weights = model_fixture_weights(graph);
    if (fr_model_save(graph, weights, fr_path_join(path, sizeof path, folder, "model.safetensors"), &error) !=
        FR_OK)
        abort();
    free(weights);
    fr_graph_free(graph);
    fr_buffer_release(&text);
}

/* A corpus of one training document and `documents` validation documents of different lengths. */
static inline fr_corpus *model_fixture_corpus(const char *folder, const fr_tokenizer *tokenizer,
                                              int documents)
{
    static const char *const words[] = {"the cat ",   "sat on ",   "the mat ",
                                        "h\xc3\xa9 ", "\xff raw ", "and the rat\n"};
    fr_corpus_writer *writer = NULL;
    fr_corpus *corpus = NULL;
    fr_error error = {0};
    fr_status status = fr_corpus_writer_create(&writer, folder, tokenizer, &error);
    if (status == FR_OK)
        status = fr_corpus_writer_document(writer, FR_TRAIN, "the cat and the hat", 19, &error);
    for (int d = 0; status == FR_OK && d < documents; d++) {
        char text[2000] = "";
        int count = 1 + (int)(fr_rng_at(4, (uint64_t)d, 0) % 90);
        for (int w = 0; w < count; w++)
            strcat(text, words[fr_rng_at(4, (uint64_t)d, (uint64_t)w + 1) % 6]);
        status = fr_corpus_writer_document(writer, FR_VALID, text, strlen(text), &error);
    }
    if (status == FR_OK)
        status = fr_corpus_writer_finish(writer, NULL, &error);
    fr_corpus_writer_free(writer);
    if (status != FR_OK || fr_corpus_open(&corpus, folder, true, &error) != FR_OK) {
        printf("# corpus: %s: %s\n", error.where, error.what);
        abort();
    }
    return corpus;
}

#endif
