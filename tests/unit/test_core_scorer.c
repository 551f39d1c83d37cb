/* Spans on a real scorer: the same bits one at a time and together, for any threads, beyond the context too;
 * with beginnings shared or not; and the sums are those of the logits. Then a whole evaluation with it: threads change nothing.
 */
#include "frontier/core.h"

#include "model/scorer.h"
#include "model_fixture.h"
#include "test.h"

enum { SPANS = 40, MOST = 400 };

static fr_tokenizer *tokenizer;
static int32_t ids[SPANS][MOST + 1];

static fr_scorer *open_in(int threads, const char *numerics)
{
    static char folder[512];
    fr_scorer *scorer = NULL;
    fr_error error = {0};
    if (!tokenizer) {
        fr_recipe recipe = model_fixture_recipe();
        tokenizer = fixture_tokenizer(20);
        snprintf(folder, sizeof folder, "%s", scratch("run"));
        model_fixture_run(folder, &recipe, tokenizer);
    }
    CHECK_OK(fr_scorer_open(&scorer, folder, &(fr_scorer_options){.threads = threads, .numerics = numerics}, &error));
    return scorer;
}

static fr_scorer *open_with(int threads)
{
    return open_in(threads, NULL);
}

static void make_spans(fr_span *spans, int64_t vocab)
{
    for (int i = 0; i < SPANS; i++) {
        int64_t end = 1 + (int64_t)(fr_rng_at(5, 1, (uint64_t)i) % (i % 5 ? 60 : MOST - 1)); /* context: 96 */
        for (int64_t t = 0; t <= MOST; t++)
            ids[i][t] = (int32_t)(fr_rng_at(5, (uint64_t)i + 2, (uint64_t)t) % (uint64_t)vocab);
        spans[i] = (fr_span){.ids = ids[i],
                             .first = (int64_t)(fr_rng_at(5, 0, (uint64_t)i) % (uint64_t)end),
                             .end = end,
                             .greedy = i % 3 == 0};
    }
}

TEST(company_and_threads_change_no_bit)
{
    fr_span first[SPANS], spans[SPANS];
    fr_error error = {0};
    for (int threads = 1; threads <= 4; threads *= 2) {
        fr_scorer *scorer = open_with(threads);
        make_spans(spans, fr_scorer_vocab(scorer));
        CHECK_OK(fr_scorer_spans(scorer, SPANS, spans, &error));
        if (threads == 1)
            memcpy(first, spans, sizeof first);
        for (int i = 0; i < SPANS; i++) {
            fr_span alone = first[i];
            alone.nats = 1e9;
            CHECK_OK(fr_scorer_spans(scorer, 1, &alone, &error));
            CHECK(alone.nats == first[i].nats && spans[i].nats == first[i].nats);
            CHECK(alone.followed == first[i].followed && spans[i].followed == first[i].followed);
        }
        fr_scorer_free(scorer);
    }
}

/* Spans as options come: groups with a common beginning of any length, some nothing but it. */
static void make_options(fr_span *spans, int64_t vocab)
{
    int64_t shared = 0;
    for (int i = 0; i < SPANS; i++) {
        if (i % 5 == 0)
            shared = (int64_t)(fr_rng_at(6, 0, (uint64_t)i) % 250);
        int64_t own = (int64_t)(fr_rng_at(6, 1, (uint64_t)i) % 40), end = shared + own + (own + shared == 0);
        for (int64_t t = 0; t <= MOST; t++)
            ids[i][t] = (int32_t)(fr_rng_at(6, 2 + (t < shared ? (uint64_t)(i / 5) : 100 + (uint64_t)i), (uint64_t)t) %
                                  (uint64_t)vocab);
        int64_t first = shared ? shared - 1 : 0;
        first = first < end ? first : end - 1;
        spans[i] = (fr_span){.ids = ids[i], .first = i % 7 ? first : first / 2, .end = end, .greedy = i / 5 % 3 == 1};
    }
}

/* Questions of five options that begin alike, two at a time, and single rows that begin like the one before the
 * last; some judge tokens of the beginning. */
static void make_families(fr_span *spans, int64_t vocab)
{
    for (int i = 0; i < SPANS; i++) {
        int family = i / 10, question = i / 5;
        bool single = family % 2;
        int64_t stem = single ? 65 : 40, shared = stem + 20 + (int64_t)(fr_rng_at(7, 1, (uint64_t)question) % 40);
        int64_t own = 1 + (int64_t)(fr_rng_at(7, 2, (uint64_t)i) % 30);
        for (int64_t t = 0; t <= MOST; t++) {
            int who = t < stem ? (single ? i % 2 : 2 + family) : t < shared && !single ? 100 + question : 200 + i;
            ids[i][t] = (int32_t)(fr_rng_at(8, (uint64_t)who, (uint64_t)t) % (uint64_t)vocab);
        }
        spans[i] = (fr_span){.ids = ids[i],
                             .first = i % 23 == 7 ? stem / 2 : shared - 1,
                             .end = shared + own,
                             .greedy = family / 2};
    }
}

/* Nats and choice of a span from the whole row alone, run by the functions that know no sharing. */
static void whole_row(fr_scorer *scorer, const fr_span *s, double *nats, bool *followed)
{
    static int32_t targets[MOST];
    static float losses[MOST];
    int64_t vocab = fr_scorer_vocab(scorer);
    float *logits = malloc((size_t)(s->end * vocab) * sizeof *logits);
    fr_error error = {0};
    for (int64_t p = 0; p < s->end; p++)
        targets[p] = p < s->first ? -1 : s->ids[p + 1];
    CHECK_OK(fr_scorer_nats(scorer, 1, s->end, s->ids, targets, losses, &error));
    CHECK_OK(fr_scorer_logits(scorer, s->end, s->ids, 0, logits, &error));
    *nats = 0;
    *followed = true;
    for (int64_t p = s->first; p < s->end; p++) {
        int64_t best = 0;
        for (int64_t v = 1; v < vocab; v++)
            best = logits[p * vocab + v] > logits[p * vocab + best] ? v : best;
        *nats += (double)losses[p];
        *followed = *followed && best == s->ids[p + 1];
    }
    free(logits);
}

TEST(shared_beginnings_and_batches_change_no_bit)
{
    fr_span spans[SPANS];
    fr_error error = {0};
    for (int threads = 1; threads <= 4; threads++) {
        fr_scorer *scorer = open_in(threads, threads == 4 ? "bf16" : "fp32");
        if (!fr_scorer_hidden(scorer)) { /* products of a library, in bf16: whole rows */
            CHECK(threads == 4);
            fr_scorer_free(scorer);
            continue;
        }
        for (int families = 0; families < 2; families++) {
            (families ? make_families : make_options)(spans, fr_scorer_vocab(scorer));
            CHECK_OK(fr_scorer_spans(scorer, SPANS, spans, &error));
            for (int i = 0; i < SPANS; i++) {
                double nats;
                bool followed;
                whole_row(scorer, &spans[i], &nats, &followed);
                CHECK(spans[i].greedy ? spans[i].followed == followed : spans[i].nats == nats);
            }
        }
        fr_scorer_free(scorer);
    }
}

/* Rows far longer than all windows together: most tokens run in no layer, or in the lowest ones. */
TEST(what_no_judged_token_depends_on_is_left_out)
{
    static const char *const numerics[] = {"fp32", "bf16"};
    fr_recipe recipe = model_fixture_recipe();
    char folder[512];
    fr_error error = {0};
    recipe.model.short_window = 21;
    recipe.model.context = 48;
    snprintf(folder, sizeof folder, "%s", scratch("windows"));
    fr_tokenizer *own = fixture_tokenizer(20);
    model_fixture_run(folder, &recipe, own);
    for (int n = 0; n < 2; n++) {
        fr_scorer *scorer;
        fr_span spans[SPANS];
        double nats, work = 0, all = 0;
        bool followed;
        CHECK_OK(fr_scorer_open(&scorer, folder, &(fr_scorer_options){.threads = 2, .numerics = numerics[n]}, &error));
        for (int round = 0; round < 3 && fr_scorer_hidden(scorer); round++) {
            static void (*const make[])(fr_span *, int64_t) = {make_spans, make_options, make_families};
            make[round](spans, fr_scorer_vocab(scorer));
            CHECK_OK(fr_scorer_spans(scorer, SPANS, spans, &error));
            for (int i = 0; i < SPANS; i++) {
                whole_row(scorer, &spans[i], &nats, &followed);
                CHECK(spans[i].greedy ? spans[i].followed == followed : spans[i].nats == nats);
            }
            fr_span last = {.ids = ids[0], .first = MOST - 1, .end = MOST}, every = {.ids = ids[0], .end = MOST};
            CHECK_OK(fr_scorer_spans_work(scorer, 1, &last, &work, &error));
            CHECK_OK(fr_scorer_spans_work(scorer, 1, &every, &all, &error));
            CHECK(work > 0 && work < all / 4);
        }
        fr_scorer_free(scorer);
    }
    fr_tokenizer_free(own);
}

static double nats_of(const float *z, int64_t vocab, int32_t target)
{
    double sum = 0;
    for (int64_t v = 0; v < vocab; v++)
        sum += exp((double)z[v]);
    return log(sum) - (double)z[target];
}

/* Rows shorter than the least plan share runs; a row padded to that plan by hand goes alone. */
TEST(short_rows_that_share_a_run_change_no_bit)
{
    enum { ROWS = 40, PLAN = 64 };
    static const int64_t lengths[] = {1, 2, 7, 63};
    static int32_t inputs[ROWS * PLAN], targets[ROWS * PLAN], row[PLAN], goals[PLAN];
    static float together[ROWS * PLAN], alone[PLAN];
    fr_error error = {0};
    for (int threads = 1; threads <= 3; threads++) {
        fr_scorer *scorer = open_with(threads);
        for (int k = 0; k < 4; k++) {
            int64_t T = lengths[k], vocab = fr_scorer_vocab(scorer);
            for (int64_t i = 0; i < ROWS * T; i++) {
                inputs[i] = (int32_t)(fr_rng_at(9, 1, (uint64_t)i) % (uint64_t)vocab);
                targets[i] = i % 5 ? (int32_t)(fr_rng_at(9, 2, (uint64_t)i) % (uint64_t)vocab) : -1;
            }
            CHECK_OK(fr_scorer_nats(scorer, ROWS, T, inputs, targets, together, &error));
            for (int64_t r = 0; r < ROWS; r++) {
                for (int64_t t = 0; t < PLAN; t++) {
                    row[t] = t < T ? inputs[r * T + t] : 0;
                    goals[t] = t < T ? targets[r * T + t] : -1;
                }
                CHECK_OK(fr_scorer_nats(scorer, 1, PLAN, row, goals, alone, &error));
                CHECK(memcmp(alone, together + r * T, (size_t)T * sizeof *alone) == 0);
            }
        }
        fr_scorer_free(scorer);
    }
}

TEST(sums_and_choices_are_those_of_the_logits)
{
    fr_span spans[SPANS];
    fr_error error = {0};
    fr_scorer *scorer = open_with(2);
    int64_t vocab = fr_scorer_vocab(scorer);
    float *logits = malloc((size_t)(MOST * vocab) * sizeof *logits);
    make_spans(spans, vocab);
    for (int i = 0; i < SPANS; i++) { /* make every second greedy row one that is followed */
        CHECK_OK(fr_scorer_logits(scorer, spans[i].end, spans[i].ids, spans[i].end - 1, logits, &error));
        if (i % 6 == 0) {
            int32_t best = 0;
            for (int32_t v = 1; v < vocab; v++)
                best = logits[v] > logits[best] ? v : best;
            ids[i][spans[i].end] = best;
            spans[i].first = spans[i].end - 1;
        }
    }
    CHECK_OK(fr_scorer_spans(scorer, SPANS, spans, &error));
    for (int i = 0; i < SPANS; i++) {
        const fr_span *s = &spans[i];
        double nats = 0;
        CHECK_OK(fr_scorer_logits(scorer, s->end, s->ids, 0, logits, &error));
        for (int64_t p = s->first; p < s->end; p++)
            nats += nats_of(logits + p * vocab, vocab, s->ids[p + 1]);
        if (s->greedy)
            CHECK(s->followed == (i % 6 == 0));
        else
            CHECK_NEAR(s->nats, nats, 1e-4, 1e-5);
    }
    free(logits);
    fr_scorer_free(scorer);
}

TEST(odd_spans_are_refused)
{
    fr_error error = {0};
    fr_scorer *scorer = open_with(1);
    int32_t row[] = {1, 2, 100000, 3};
    fr_span empty = {.ids = row, .first = 1, .end = 1}, outside = {.ids = row, .first = 0, .end = 2},
            within = {.ids = row, .first = 2, .end = 3};
    CHECK_INT(fr_scorer_spans(scorer, 1, &empty, &error), FR_BAD_USAGE);
    CHECK_INT(fr_scorer_spans(scorer, 1, &outside, &error), FR_BAD_DATA);
    CHECK(fr_scorer_spans(scorer, 1, &within, &error) != FR_OK);
    CHECK_OK(fr_scorer_spans(scorer, 0, NULL, &error));
    fr_scorer_free(scorer);
}

TEST(lengths_are_padded_little)
{
    int64_t lengths = 0;
    for (int64_t T = 1, last = 0; T <= 8192; T++) {
        int64_t padded = fr_span_padded(T);
        CHECK(padded >= T && padded >= last && (T < 128 ? padded < T + 16 : padded * 8 <= T * 9));
        lengths += padded != last;
        last = padded;
    }
    CHECK(lengths <= 8 * 7);
}

TEST_MAIN(core_scorer)
