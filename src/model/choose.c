/* Choosing the next token from logits.
 *
 * Greedy at temperature 0, otherwise from the softmax of logits / temperature over the top_k largest and, of
 * those, the smallest set that holds top_p of the probability. Ties go to the lower id everywhere, so a seed
 * gives one text.
 */
#include "model/sample.h"

#include <math.h>
#include <stdlib.h>

typedef struct candidate {
    float logit;
    int32_t id;
} candidate;

static int by_logit(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->logit != b->logit)
        return a->logit > b->logit ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int32_t greedy(const float *logits, int64_t vocab)
{
    int64_t best = 0;
    for (int64_t i = 1; i < vocab; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

/* The smallest number of sorted candidates that hold `top_p` of the probability of the first `count`. */
static int64_t cut_mass(const candidate *sorted, int64_t count, double temperature, double top_p)
{
    if (!(top_p > 0 && top_p < 1))
        return count;
    double total = 0, mass = 0;
    for (int64_t i = 0; i < count; i++)
        total += exp((sorted[i].logit - sorted[0].logit) / temperature);
    for (int64_t i = 0; i < count; i++) {
        mass += exp((sorted[i].logit - sorted[0].logit) / temperature);
        if (mass >= top_p * total)
            return i + 1;
    }
    return count;
}

static int32_t draw(const candidate *sorted, int64_t count, double temperature, fr_rng *rng)
{
    double total = 0, mass = 0;
    for (int64_t i = 0; i < count; i++)
        total += exp((sorted[i].logit - sorted[0].logit) / temperature);
    double point = fr_rng_uniform(rng) * total;
    for (int64_t i = 0; i < count; i++) {
        mass += exp((sorted[i].logit - sorted[0].logit) / temperature);
        if (point < mass)
            return sorted[i].id;
    }
    return sorted[count - 1].id;
}

int32_t fr_sample_choose(const float *logits, int64_t vocab, const fr_sample_options *options, fr_rng *rng,
                         void *scratch)
{
    candidate *sorted = scratch;
    if (options->temperature <= 0)
        return greedy(logits, vocab);
    for (int64_t i = 0; i < vocab; i++)
        sorted[i] = (candidate){logits[i], (int32_t)i};
    qsort(sorted, (size_t)vocab, sizeof *sorted, by_logit);
    int64_t count = options->top_k > 0 && options->top_k < vocab ? options->top_k : vocab;
    count = cut_mass(sorted, count, options->temperature, options->top_p);
    return draw(sorted, count, options->temperature, rng);
}

size_t fr_sample_scratch_bytes(int64_t vocab)
{
    return (size_t)vocab * sizeof(candidate);
}
