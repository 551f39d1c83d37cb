/* Loading a checkpoint and scoring it: bits per byte of a data folder's validation set, and the loss of one
 * sentence.
 *
 *     build/examples/score_checkpoint RUN DATA
 *
 * RUN is a run folder (recipe.toml, tokenizer.json, model.safetensors), DATA a data folder made by `frontier
 * data import`.
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

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: score_checkpoint RUN DATA\n");
        return FR_BAD_USAGE;
    }
    fr_scorer *scorer = NULL;
    fr_corpus *corpus = NULL;
    fr_error error = {0};
    fr_status status = score(argv[1], argv[2], &scorer, &corpus, &error);
    if (status != FR_OK)
        fprintf(stderr, "%s: %s (%s)\n", error.where, error.what, error.hint);
    fr_scorer_free(scorer);
    fr_corpus_free(corpus);
    return status;
}
