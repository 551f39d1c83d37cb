/* The probes against made-up models whose fault is known: each must fail exactly the probes that can see it.
 *
 * The honest model is a hash of the tokens so far; faults are added to it one at a time.
 */
#include "frontier/causality.h"

#include "test.h"

#include <math.h>

enum { VOCAB = 13, T = 70, ROWS = 3 };

typedef enum fault { HONEST, NEXT, NEXT_IN_BLOCK, LENGTH, WHOLE_ROW, FIRST_ASKED, BEFORE, COUNTS, BESIDE, NOISE, NOT_A_NUMBER } fault;

typedef struct fake {
    fault fault;
    int64_t asked;
    int32_t last;
    double size;
    int restarts;
} fake;

static uint64_t past_hash(const int32_t *tokens, int64_t t)
{
    uint64_t hash = 7;
    for (int64_t i = 0; i <= t; i++)
        hash = hash * 1099511628211u + (uint64_t)tokens[i] + 1;
    return hash;
}

static void add_fault(const fake *f, int64_t length, const int32_t *tokens, int64_t first, int64_t t, float *z)
{
    float size = (float)f->size;
    int32_t sum = 0;
    for (int64_t i = 0; i < length; i++)
        sum += tokens[i];
    if (f->fault == NEXT && t + 1 < length)
        z[tokens[t + 1]] += size;
    if (f->fault == NEXT_IN_BLOCK && t + 1 < length && (t - first) / 16 == (t + 1 - first) / 16)
        z[tokens[t + 1]] += size;
    if (f->fault == LENGTH)
        z[length % VOCAB] += size;
    if (f->fault == WHOLE_ROW)
        z[sum % VOCAB] += size;
    if (f->fault == FIRST_ASKED && t == first)
        z[3] += size;
    if (f->fault == BEFORE)
        z[f->last] += size;
    if (f->fault == COUNTS)
        z[2] += size * (float)f->asked;
    if (f->fault == NOISE)
        z[(f->asked * 7 + f->restarts) % VOCAB] += size;
    if (f->fault == NOT_A_NUMBER && f->asked > 5)
        z[0] = NAN;
}

static fr_status fake_logits(void *context, int64_t length, const int32_t *tokens, int64_t first, float *logits,
                             fr_error *error)
{
    fake *f = context;
    (void)error;
    for (int64_t t = first; t < length; t++) {
        float *z = logits + (t - first) * VOCAB;
        for (int v = 0; v < VOCAB; v++)
            z[v] = (float)(fr_rng_at(past_hash(tokens, t), 1, (uint64_t)v) % 1000) / 250;
        add_fault(f, length, tokens, first, t, z);
    }
    f->asked++;
    f->last = tokens[length - 1];
    return FR_OK;
}

/* Losses of a batch; a faulty one lets the row beside, or its targets, in. */
static fr_status fake_nats(void *context, int64_t rows, int64_t length, const int32_t *inputs,
                           const int32_t *targets, float *nats, fr_error *error)
{
    fake *f = context;
    static float logits[T * VOCAB];
    for (int64_t row = 0; row < rows; row++) {
        fault kept = f->fault;
        f->fault = kept == BESIDE ? HONEST : kept;
        FR_TRY(fake_logits(f, length, inputs + row * length, 0, logits, error));
        f->fault = kept;
        for (int64_t t = 0; t < length; t++) {
            double sum = 0;
            for (int v = 0; v < VOCAB; v++)
                sum += exp((double)logits[t * VOCAB + v]);
            nats[row * length + t] = (float)(log(sum) - (double)logits[t * VOCAB + targets[row * length + t]]);
            if (f->fault == BESIDE && rows > 1)
                nats[row * length + t] += 0.1f * (float)targets[(row + 1) % rows * length + t];
        }
    }
    return FR_OK;
}

static fr_status forget(void *context, fr_error *error)
{
    fake *f = context;
    (void)error;
    f->asked = 0;
    f->last = 0;
    f->restarts++;
    return FR_OK;
}

static fr_causality_result probe(fault which, double size, uint64_t seed)
{
    static int32_t ids[ROWS * (T + 1)];
    fake f = {.fault = which, .size = size};
    fr_causality_source source = {fake_logits, fake_nats, forget, &f};
    fr_causality_result result;
    fr_error error = {0};
    CHECK_OK(fr_causality_rows(NULL, VOCAB, ROWS, T, seed, ids, &error));
    CHECK_OK(fr_eval_causality(&source, VOCAB, ids, &(fr_causality_options){.rows = ROWS, .T = T, .seed = seed},
                               &result, &error));
    return result;
}

static void must_fail(fault which, double size, unsigned wanted)
{
    for (uint64_t seed = 1; seed < 6; seed++) {
        fr_causality_result r = probe(which, size, seed);
        unsigned failed = 0;
        for (int i = 0; i < FR_PROBE_COUNT; i++)
            failed |= (unsigned)!r.probes[i].passed << i;
        CHECK_INT(failed, wanted);
        CHECK(r.passed == (wanted == 0));
    }
}

enum {
    S = 1 << FR_PROBE_SUFFIX,
    P = 1 << FR_PROBE_PREFIX,
    C = 1 << FR_PROBE_COMPANIONS,
    B = 1 << FR_PROBE_BLOCKS,
    R = 1 << FR_PROBE_REPEAT,
    G = 1 << FR_PROBE_TARGETS
};

TEST(an_honest_model_differs_by_nothing)
{
    fr_causality_result r = probe(HONEST, 0, 3);
    must_fail(HONEST, 0, 0);
    CHECK(r.max_difference == 0);
    for (int i = 0; i < FR_PROBE_COUNT; i++)
        CHECK(r.probes[i].questions > 0 && r.probes[i].positions > 0);
}

TEST(every_fault_fails_the_probes_that_can_see_it)
{
    must_fail(NEXT, 5, S | P | B | G);
    must_fail(NEXT_IN_BLOCK, 5, S | P | B | G);
    must_fail(LENGTH, 5, P | B);
    must_fail(WHOLE_ROW, 5, S | P | B | G);
    must_fail(FIRST_ASKED, 5, B);
    must_fail(BEFORE, 5, S | P | C | B | R | G);
    must_fail(COUNTS, 0.1, S | P | C | B | R | G);
    must_fail(NOISE, 1, S | P | C | B | R | G);
    must_fail(BESIDE, 1, C | G);
    must_fail(NOT_A_NUMBER, 1, S | P | C | B | R | G);
}

TEST(a_small_leak_shows_in_the_mean)
{
    fr_causality_result r = probe(NEXT, 0.005, 1);
    CHECK(!r.probes[FR_PROBE_TARGETS].passed || !r.probes[FR_PROBE_PREFIX].passed);
    CHECK(!r.passed && r.max_difference < FR_CAUSALITY_MOST);
}

TEST(nonsense_is_refused)
{
    fr_causality_source source = {fake_logits, NULL, forget, &(fake){.fault = HONEST}};
    fr_causality_result result;
    fr_error error = {0};
    int32_t ids[2 * 5] = {1, 2, 3, 4, VOCAB};
    CHECK_INT(fr_eval_causality(&source, VOCAB, ids, &(fr_causality_options){.rows = 2, .T = 4}, &result, &error),
              FR_BAD_DATA);
    CHECK_INT(fr_eval_causality(&source, VOCAB, ids, &(fr_causality_options){.rows = 1, .T = 4}, &result, &error),
              FR_BAD_USAGE);
}

TEST(limits_of_belief)
{
    CHECK_NEAR(fr_implausible_bpb((double)NAN), FR_IMPLAUSIBLE_BPB, 0, 0);
    CHECK_NEAR(fr_implausible_bpb(0.5), 0.49, 1e-12, 0);
}

TEST_MAIN(causality)
