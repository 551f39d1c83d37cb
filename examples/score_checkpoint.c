/* Loading a checkpoint and scoring it: bits per byte of a data folder's validation set, and the bits of one
 * sentence.
 *
 *     usage: score_checkpoint [RUN DATA]
 *
 * RUN is a run folder, of which recipe.toml, tokenizer.json and model.safetensors are read; DATA is a data
 * folder made by `frontier data world` or `data import`. Without arguments it makes both beside the program,
 * first: a small world and a model of it that has learned nothing yet. So it also shows what a checkpoint is
 * made of.
 */
#include "frontier/frontier.h"

#include <math.h>
#include <string.h>

/* Bits the model needs for a text, BOS in front. */
static fr_status score_text(fr_scorer *scorer, const char *text, double *bits, fr_error *error)
{
    enum { MOST = 256 };
    const fr_tokenizer *tokenizer = fr_scorer_tokenizer(scorer);
    int32_t ids[MOST + 1];
    float nats[MOST];
    ids[0] = fr_tokenizer_bos(tokenizer);
    int64_t count = fr_tokenizer_encode(tokenizer, text, strlen(text), ids + 1, MOST);
    if (count < 1 || count > MOST)
        return fr_error_set(error, FR_BAD_USAGE, "text", "give one of 1 to 256 tokens",
                            "the text has %lld tokens", (long long)count);
    FR_TRY(fr_scorer_nats(scorer, 1, count, ids, ids + 1, nats, error)); /* token t predicts token t+1 */
    *bits = 0;
    for (int64_t t = 0; t < count; t++)
        *bits += (double)nats[t] / log(2.0);
    return FR_OK;
}

static fr_status score(const char *run, const char *data, fr_scorer **scorer, fr_corpus **corpus,
                       fr_error *error)
{
    static const char text[] = "The cat sat on the mat.";
    fr_bpb_result result;
    double bits = 0;
    FR_TRY(fr_scorer_open(scorer, run, NULL, error));
    FR_TRY(fr_corpus_open(corpus, data, false, error));
    FR_TRY(score_text(*scorer, text, &bits, error));
    FR_TRY(fr_eval_bpb(*scorer, *corpus, &(fr_bpb_options){0}, &result, error));
    printf("\"%s\": %.1f bits for %zu bytes\n", text, bits, sizeof text - 1);
    printf("%s: %.6f bits per byte over %lld bytes\n", result.eval_set, result.val_bpb,
           (long long)result.bytes);
    return FR_OK;
}

/* ---- without arguments: a world, and a run folder with an untrained model ------------------------------ */

static fr_status make_world(const char *folder, fr_error *error)
{
    fr_world_options world = {
        .out_folder = folder, .seed = 1, .docs_seed = 1, .bytes = 100000, .vocab = 512, .overwrite = true};
    fr_world_summary summary;
    return fr_world_generate(&world, &summary, error);
}

static fr_status save_weights(const fr_graph *graph, const char *run, fr_error *error)
{
    char path[700];
    size_t bytes = (size_t)fr_graph_flat_elements(graph) * sizeof(float);
    float *weights = fr_allocate(bytes);
    if (!weights)
        return fr_error_memory(error, bytes, "the model's weights");
    fr_graph_initialize(graph, 1, NULL, weights);
    fr_path_join(path, sizeof path, run, "model.safetensors");
    fr_status status = fr_model_save(graph, weights, path, error);
    fr_deallocate(weights);
    return status;
}

static fr_status save_recipe(const fr_recipe *recipe, const char *run, fr_error *error)
{
    char path[700];
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_recipe_write(recipe, &text);
    fr_path_join(path, sizeof path, run, "recipe.toml");
    fr_status status = text.failed ? fr_error_memory(error, text.length, "the recipe")
                                   : fr_file_write(path, text.data, text.length, error);
    fr_buffer_release(&text);
    return status;
}

static fr_status make_run(const char *run, const char *data, fr_error *error)
{
    static const char small[] = "[model]\ndepth = 2\nwidth = 64\nhead_dim = 32\ncontext = 64\n"
                                "[optim]\nbatch_tokens = 2048\n";
    char path[700];
    fr_recipe recipe;
    FR_TRY(fr_recipe_parse(&recipe, small, "the example's recipe", error));
    FR_TRY(fr_folder_make(run, error));
    FR_TRY(save_recipe(&recipe, run, error));
    fr_corpus *corpus;
    FR_TRY(fr_corpus_open(&corpus, data, false, error));
    const fr_tokenizer *tokenizer = fr_corpus_tokenizer(corpus);
    fr_graph *graph = fr_graph_create(error);
    fr_status status =
        graph ? fr_model_build(graph, &recipe, fr_tokenizer_vocab(tokenizer), error) : error->status;
    if (status == FR_OK)
        status = fr_tokenizer_save(tokenizer, fr_path_join(path, sizeof path, run, "tokenizer.json"), error);
    if (status == FR_OK)
        status = save_weights(graph, run, error);
    fr_graph_free(graph);
    fr_corpus_free(corpus);
    return status;
}

int main(int argc, char **argv)
{
    char data[600], run[600];
    fr_scorer *scorer = NULL;
    fr_corpus *corpus = NULL;
    fr_error error = {0};
    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: score_checkpoint [RUN DATA]\n");
        return FR_BAD_USAGE;
    }
    snprintf(run, sizeof run, argc == 3 ? "%.500s" : "%.500s.run", argv[argc == 3]);
    snprintf(data, sizeof data, argc == 3 ? "%.500s" : "%.500s.world", argv[argc == 3 ? 2 : 0]);
    fr_status status = argc == 1 ? make_world(data, &error) : FR_OK;
    if (status == FR_OK && argc == 1)
        status = make_run(run, data, &error);
    if (status == FR_OK)
        status = score(run, data, &scorer, &corpus, &error);
    if (status != FR_OK)
        fprintf(stderr, "%s: %s (%s)\n", error.where, error.what, error.hint);
    fr_scorer_free(scorer);
    fr_corpus_free(corpus);
    return (int)status;
}
