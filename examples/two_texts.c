/* Two texts written by one model in the same passes, token by token, in C.
 *
 * A tiny model with initial weights stands in for a trained one (fr_engine_open takes a run folder). Each text has
 * a sequence of its own; a step gives every sequence one token and returns the logits behind it. The second text
 * joins when the first is under way, and comes out as it does alone: company changes no bit. */
#include "frontier/frontier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 64, TOKENS = 24 };

static int32_t likeliest(const float *logits)
{
    int32_t best = 0;
    for (int32_t v = 1; v < VOCAB; v++)
        best = logits[v] > logits[best] ? v : best;
    return best;
}

/* Continues `first` from a fresh sequence; beside it, when `company` is a token, another text that began earlier. */
static fr_status write_text(fr_engine *engine, int32_t first, int32_t company, int32_t *out, fr_error *error)
{
    int64_t sequences[2], count = company < 0 ? 1 : 2;
    int32_t tokens[2] = {first, company};
    float logits[2 * VOCAB];
    for (int64_t i = 0; i < count; i++)
        FR_TRY(fr_engine_add(engine, &sequences[i], error));
    if (company >= 0)
        FR_TRY(fr_engine_feed(engine, sequences[1], 3, (int32_t[]){1, 2, 3}, NULL, error));
    for (int t = 0; t < TOKENS; t++) {
        FR_TRY(fr_engine_step(engine, count, sequences, tokens, logits, error));
        for (int64_t i = 0; i < count; i++)
            tokens[i] = likeliest(logits + i * VOCAB);
        out[t] = tokens[0];
    }
    for (int64_t i = 0; i < count; i++)
        fr_engine_remove(engine, sequences[i]);
    return FR_OK;
}

static fr_status run(fr_engine *engine, fr_error *error)
{
    int32_t alone[TOKENS], beside[TOKENS];
    FR_TRY(write_text(engine, 7, -1, alone, error));
    FR_TRY(write_text(engine, 7, 9, beside, error));
    printf("a text of %d tokens:", TOKENS);
    for (int t = 0; t < TOKENS; t++)
        printf(" %d", alone[t]);
    printf("\n%s in company; %zu bytes remember a text of any length\n",
           memcmp(alone, beside, sizeof alone) == 0 ? "the same" : "ANOTHER",
           fr_engine_sequence_bytes(engine));
    return memcmp(alone, beside, sizeof alone) == 0 ? FR_OK : FR_ANSWER_NO;
}

int main(void)
{
    static const char recipe_text[] = "[model]\ndepth = 2\nwidth = 64\nhead_dim = 16\ncontext = 32\n"
                                      "[optim]\nbatch_tokens = 256\n";
    fr_error error = {0};
    fr_recipe recipe;
    fr_pool *pool = NULL;
    fr_scorer *scorer = NULL;
    fr_engine *engine = NULL;
    float *weights = NULL;
    fr_graph *graph = fr_graph_create(&error);
    fr_status status = graph ? fr_recipe_parse(&recipe, recipe_text, "example", &error) : FR_BAD_ENVIRONMENT;
    if (status == FR_OK)
        status = fr_model_build(graph, &recipe, VOCAB, &error);
    if (status == FR_OK)
        status = fr_pool_create(&pool, 2, &error);
    if (status == FR_OK) {
        weights = fr_allocate((size_t)fr_graph_flat_elements(graph) * sizeof *weights);
        fr_graph_initialize(graph, 1, pool, weights);
        status = fr_scorer_create(&scorer, graph, &recipe, weights, pool, &error);
    }
    if (status == FR_OK)
        status = fr_engine_create(&engine, scorer, 2, &error);
    if (status == FR_OK)
        status = run(engine, &error);
    if (status != FR_OK && error.what[0])
        fprintf(stderr, "%s: %s\n", error.where, error.what);
    fr_engine_free(engine);
    fr_scorer_free(scorer);
    fr_pool_free(pool);
    fr_graph_free(graph);
    fr_deallocate(weights);
    return (int)status;
}
