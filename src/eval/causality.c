/* Probing a model for knowledge it must not have; see causality.h for the probes.
 *
 * Every row is asked for once: those answers are the reference. Then all further questions, of all probes and all
 * rows, are asked in one random order, with rows nobody asked about between them, so that a probe cannot be told
 * from its neighbours. Last come fresh starts. An answer is compared with the reference at every position that
 * the change must not reach. Of most positions only log p of the true next token is kept, which is what a score is
 * made of; of a few, the places where questions are cut among them, log p of the whole vocabulary. A model that
 * peeks one token ahead shows it at the last position of a question alone, so these have a mean of their own.
 */
#include "frontier/causality.h"

#include <math.h>
#include <string.h>

enum { SPOTS = 6, STRANGERS = 8, OWN = 9 }; /* cuts per row; unknown rows; questions per cut at most */

typedef struct question {
    fr_probe probe;
    int64_t row;           /* < 0: a stranger */
    int64_t T, first, end; /* asked for first..T-1, compared up to end - 1 */
    int64_t from, to;      /* ids replaced: [from, to) */
} question;

typedef struct reference {
    double *next; /* log p of the true next token, T */
    float *spots; /* SPOTS x vocab: log p of everything */
    int64_t at[SPOTS];
} reference;

typedef struct probing {
    const fr_causality_source *source;
    const fr_causality_options *options;
    const int32_t *ids; /* rows x (T + 1) */
    int64_t rows, T, vocab;
    uint64_t draws;
    fr_arena arena;
    reference *references;
    question *questions;
    int64_t question_count, asked, total;
    int32_t *row, *targets;
    float *logits, *nats;
    fr_causality_result *result;
    double sums[FR_PROBE_COUNT], edge_sums[FR_PROBE_COUNT]; /* of all positions; of the last of each question */
} probing;

static const struct {
    const char *name, *question;
} probe_texts[FR_PROBE_COUNT] = {
    [FR_PROBE_SUFFIX] = {"suffix", "do later tokens change earlier logits?"},
    [FR_PROBE_PREFIX] = {"prefix", "do the logits change when the row ends there?"},
    [FR_PROBE_COMPANIONS] = {"companions", "do rows asked before or beside change them?"},
    [FR_PROBE_BLOCKS] = {"blocks", "do they depend on which positions are asked for together?"},
    [FR_PROBE_REPEAT] = {"repeat", "is the answer the same the second time, and after a fresh start?"},
    [FR_PROBE_TARGETS] = {"targets", "does the token to be predicted, or another's target, change them?"},
};

const char *fr_probe_name(fr_probe probe)
{
    return probe_texts[probe].name;
}

const char *fr_probe_question(fr_probe probe)
{
    return probe_texts[probe].question;
}

double fr_implausible_bpb(double floor_bpb)
{
    return isfinite(floor_bpb) ? 0.98 * floor_bpb : FR_IMPLAUSIBLE_BPB;
}

/* ---- chance ------------------------------------------------------------------------------------------- */

static int64_t draw(probing *p, int64_t below)
{
    return (int64_t)(fr_rng_at(p->options->seed, 0x6361, p->draws++) % (uint64_t)below);
}

static int32_t another(probing *p, int32_t id)
{
    return (int32_t)((id + 1 + draw(p, p->vocab - 1)) % p->vocab);
}

static fr_status random_rows(int64_t vocab, int64_t count, uint64_t seed, int32_t *ids)
{
    for (int64_t i = 0; i < count; i++)
        ids[i] = (int32_t)(fr_rng_at(seed, 0x726f, (uint64_t)i) % (uint64_t)vocab);
    return FR_OK;
}

fr_status fr_causality_rows(const fr_corpus *corpus, int64_t vocab, int64_t rows, int64_t T, uint64_t seed,
                            int32_t *ids, fr_error *error)
{
    fr_loader *loader;
    fr_loader_options options = {.split = FR_VALID, .packing = FR_PACK_STREAM, .context = T + 1, .once = true};
    int64_t got;
    if (!corpus)
        return random_rows(vocab, rows * (T + 1), seed, ids);
    int32_t *targets = fr_allocate((size_t)(rows * (T + 1)) * sizeof *targets);
    if (!targets)
        return fr_error_memory(error, (size_t)(rows * (T + 1)) * sizeof *targets, "rows to probe");
    fr_status status = fr_loader_create(&loader, corpus, &options, error);
    if (status == FR_OK) {
        status = fr_loader_next(loader, rows, ids, targets, &got, error);
        fr_loader_free(loader);
    }
    fr_deallocate(targets);
    return status;
}

/* ---- asking ------------------------------------------------------------------------------------------- */

static const int32_t *ids_of(const probing *p, int64_t row)
{
    return p->ids + row * (p->T + 1);
}

static double log_sum(const float *z, int64_t vocab)
{
    double most = (double)z[0], sum = 0;
    for (int64_t v = 1; v < vocab; v++)
        most = (double)z[v] > most ? (double)z[v] : most;
    for (int64_t v = 0; v < vocab; v++)
        sum += exp((double)z[v] - most);
    return most + log(sum);
}

static fr_status ask(probing *p, int64_t T, int64_t first, fr_error *error)
{
    fr_progress_update(p->options->progress, "causality", (double)p->asked++, (double)p->total, NULL);
    if (fr_progress_stop(p->options->progress))
        return fr_error_set(error, FR_STOPPED, "causality", NULL, "stopped by request");
    return p->source->logits(p->source->context, T, p->row, first, p->logits, error);
}

static int spot_at(const reference *r, int64_t position)
{
    for (int i = 0; i < SPOTS; i++)
        if (r->at[i] == position)
            return i;
    return -1;
}

/* Differences that are no numbers are as bad as differences get. */
static void see_difference(probing *p, fr_probe probe, int64_t row, int64_t position, double difference)
{
    fr_probe_result *r = &p->result->probes[probe];
    difference = isnan(difference) ? INFINITY : fabs(difference);
    if (difference > r->max_difference || r->row < 0) {
        r->max_difference = difference;
        r->row = row;
        r->position = position;
    }
}

static void see_next(probing *p, fr_probe probe, int64_t row, int64_t position, double difference)
{
    see_difference(p, probe, row, position, difference);
    p->sums[probe] += isnan(difference) ? INFINITY : fabs(difference);
    p->result->probes[probe].positions++;
}

/* Returns the difference of the true next token. */
static double compare_position(probing *p, fr_probe probe, int64_t row, int64_t position, const float *z)
{
    const reference *r = &p->references[row];
    double total = log_sum(z, p->vocab);
    int spot = spot_at(r, position);
    const float *whole = r->spots + spot * p->vocab;
    double difference = (double)z[ids_of(p, row)[position + 1]] - total - r->next[position];
    see_next(p, probe, row, position, difference);
    for (int64_t v = 0; spot >= 0 && v < p->vocab; v++)
        see_difference(p, probe, row, position, (double)((float)((double)z[v] - total) - whole[v]));
    return isnan(difference) ? INFINITY : fabs(difference);
}

static fr_status ask_question(probing *p, const question *q, fr_error *error)
{
    if (q->row < 0)
        random_rows(p->vocab, p->T, p->options->seed + p->draws++, p->row);
    else
        memcpy(p->row, ids_of(p, q->row), (size_t)q->T * sizeof *p->row);
    for (int64_t i = q->from; i < q->to && i < q->T; i++)
        p->row[i] = another(p, p->row[i]);
    FR_TRY(ask(p, q->T, q->first, error));
    if (q->row < 0)
        return FR_OK;
    p->result->probes[q->probe].questions++;
    double last = 0;
    for (int64_t t = q->first; t < q->end; t++)
        last = compare_position(p, q->probe, q->row, t, p->logits + (t - q->first) * p->vocab);
    p->edge_sums[q->probe] += last;
    return FR_OK;
}

static question whole_row(const probing *p, fr_probe probe, int64_t row)
{
    return (question){.probe = probe, .row = row, .T = p->T, .end = p->T};
}

/* ---- the reference ------------------------------------------------------------------------------------ */

/* Cuts: positions with something behind them, one in every stretch of the row; 0 among them in the first row. */
static void choose_spots(probing *p, int64_t row)
{
    for (int i = 0; i < SPOTS; i++) {
        int64_t low = (p->T - 1) * i / SPOTS, high = (p->T - 1) * (i + 1) / SPOTS;
        p->references[row].at[i] = low + (high > low ? draw(p, high - low) : 0);
    }
    if (row == 0)
        p->references[row].at[0] = 0;
}

static fr_status make_reference(probing *p, int64_t row, fr_error *error)
{
    reference *r = &p->references[row];
    r->next = fr_arena_alloc(&p->arena, (size_t)p->T * sizeof *r->next);
    r->spots = fr_arena_alloc(&p->arena, (size_t)(SPOTS * p->vocab) * sizeof *r->spots);
    if (!r->next || !r->spots)
        return fr_error_memory(error, (size_t)(SPOTS * p->vocab) * sizeof *r->spots, "causality");
    choose_spots(p, row);
    memcpy(p->row, ids_of(p, row), (size_t)p->T * sizeof *p->row);
    FR_TRY(ask(p, p->T, 0, error));
    for (int64_t t = 0; t < p->T; t++) {
        const float *z = p->logits + t * p->vocab;
        double total = log_sum(z, p->vocab);
        int spot = spot_at(r, t);
        r->next[t] = (double)z[ids_of(p, row)[t + 1]] - total;
        for (int64_t v = 0; spot >= 0 && v < p->vocab; v++)
            r->spots[spot * p->vocab + v] = (float)((double)z[v] - total);
    }
    return FR_OK;
}

/* ---- the questions ------------------------------------------------------------------------------------ */

static void add(probing *p, question q)
{
    p->questions[p->question_count++] = q;
}

static void add_questions_at(probing *p, int64_t row, int64_t cut)
{
    int64_t start = draw(p, cut + 1), end = cut + 1 + draw(p, p->T - cut);
    add(p, (question){FR_PROBE_SUFFIX, row, p->T, 0, cut + 1, cut + 1, p->T});
    add(p, (question){FR_PROBE_PREFIX, row, cut + 1, 0, cut + 1, 0, 0});
    add(p, (question){FR_PROBE_BLOCKS, row, end, start, end, 0, 0});
    add(p, (question){FR_PROBE_BLOCKS, row, cut + 1, cut, cut + 1, 0, 0});
    add(p, (question){FR_PROBE_TARGETS, row, p->T, 0, cut + 1, cut + 1, cut + 2});
}

static void list_questions(probing *p)
{
    for (int64_t row = 0; row < p->rows; row++) {
        for (int i = 0; i < SPOTS; i++)
            add_questions_at(p, row, p->references[row].at[i]);
        for (int i = 0; i < 2; i++)
            add(p, whole_row(p, FR_PROBE_COMPANIONS, row));
    }
    for (int i = 0; i < STRANGERS; i++)
        add(p, (question){.row = -1, .T = p->T});
    for (int64_t i = p->question_count - 1; i > 0; i--) {
        int64_t j = draw(p, i + 1);
        question q = p->questions[i];
        p->questions[i] = p->questions[j];
        p->questions[j] = q;
    }
}

/* Twice in a row; then, from a fresh start, in the order of the reference; then each row as the first question
 * a fresh start hears. */
static fr_status repeat_all(probing *p, fr_error *error)
{
    for (int64_t i = 0; i < 2 * p->rows; i++) {
        question q = whole_row(p, FR_PROBE_REPEAT, i / 2);
        FR_TRY(ask_question(p, &q, error));
    }
    FR_TRY(p->source->restart(p->source->context, error));
    for (int64_t i = 0; i < p->rows; i++) {
        question q = whole_row(p, FR_PROBE_REPEAT, i);
        FR_TRY(ask_question(p, &q, error));
    }
    for (int64_t i = 0; i < p->rows; i++) {
        question q = whole_row(p, FR_PROBE_COMPANIONS, p->rows - 1 - i);
        FR_TRY(p->source->restart(p->source->context, error));
        FR_TRY(ask_question(p, &q, error));
    }
    return FR_OK;
}

/* ---- the way a score asks ----------------------------------------------------------------------------- */

static fr_status ask_nats(probing *p, int64_t row, int64_t rows, float *nats, fr_error *error)
{
    size_t bytes = (size_t)p->T * sizeof(int32_t);
    int32_t *inputs = p->row;
    for (int64_t i = 0; i < rows; i++)
        memcpy(inputs + i * p->T, ids_of(p, row + i), bytes);
    return p->source->nats(p->source->context, rows, p->T, inputs, p->targets + row * p->T, nats, error);
}

/* Together, alone, and together again with a quarter of the targets replaced: the others' losses stay. */
static fr_status compare_nats(probing *p, fr_error *error)
{
    int64_t count = p->rows * p->T;
    float *together = p->nats, *other = p->nats + count;
    for (int64_t i = 0; i < count; i++)
        p->targets[i] = ids_of(p, i / p->T)[i % p->T + 1];
    FR_TRY(ask_nats(p, 0, p->rows, together, error));
    for (int64_t row = 0; row < p->rows; row++)
        FR_TRY(ask_nats(p, row, 1, other + row * p->T, error));
    for (int64_t i = 0; i < count; i++)
        see_next(p, FR_PROBE_COMPANIONS, i / p->T, i % p->T, (double)together[i] - (double)other[i]);
    for (int64_t i = 0; i < count; i++)
        if (draw(p, 4) == 0)
            p->targets[i] = another(p, p->targets[i]);
    FR_TRY(ask_nats(p, 0, p->rows, other, error));
    for (int64_t i = 0; i < count; i++)
        if (p->targets[i] == ids_of(p, i / p->T)[i % p->T + 1])
            see_next(p, FR_PROBE_TARGETS, i / p->T, i % p->T, (double)together[i] - (double)other[i]);
    p->result->probes[FR_PROBE_COMPANIONS].questions += p->rows + 1;
    p->result->probes[FR_PROBE_TARGETS].questions++;
    return FR_OK;
}

/* ---- all ---------------------------------------------------------------------------------------------- */

static fr_status allocate(probing *p, fr_error *error)
{
    size_t cells = (size_t)(p->rows * p->T), logits = (size_t)(p->T * p->vocab);
    p->references = fr_arena_alloc(&p->arena, (size_t)p->rows * sizeof *p->references);
    p->questions =
        fr_arena_alloc(&p->arena, (size_t)(p->rows * SPOTS * OWN + STRANGERS) * sizeof *p->questions);
    p->row = fr_arena_alloc(&p->arena, cells * sizeof *p->row);
    p->targets = fr_arena_alloc(&p->arena, cells * sizeof *p->targets);
    p->nats = fr_arena_alloc(&p->arena, 2 * cells * sizeof *p->nats);
    p->logits = fr_arena_alloc(&p->arena, logits * sizeof *p->logits);
    if (!p->references || !p->questions || !p->row || !p->targets || !p->nats || !p->logits)
        return fr_error_memory(error, logits * sizeof *p->logits, "the logits of a row");
    p->total = p->rows * (SPOTS * 5 + 2 + 2 + 1 + 1 + 1) + STRANGERS;
    return FR_OK;
}

static fr_status probe_all(probing *p, fr_error *error)
{
    FR_TRY(allocate(p, error));
    for (int64_t row = 0; row < p->rows; row++)
        FR_TRY(make_reference(p, row, error));
    list_questions(p);
    for (int64_t i = 0; i < p->question_count; i++)
        FR_TRY(ask_question(p, &p->questions[i], error));
    if (p->source->nats)
        FR_TRY(compare_nats(p, error));
    return repeat_all(p, error);
}

static void close_result(probing *p)
{
    const fr_causality_options *options = p->options;
    double most = options->most > 0 ? options->most : FR_CAUSALITY_MOST;
    double mean = options->mean > 0 ? options->mean : FR_CAUSALITY_MEAN;
    p->result->passed = true;
    for (int i = 0; i < FR_PROBE_COUNT; i++) {
        fr_probe_result *r = &p->result->probes[i];
        r->mean_difference = fmax(r->positions ? p->sums[i] / (double)r->positions : 0,
                                  r->questions ? p->edge_sums[i] / (double)r->questions : 0);
        r->passed = r->max_difference <= most && r->mean_difference <= mean;
        p->result->passed = p->result->passed && r->passed;
        if (r->max_difference > p->result->max_difference)
            p->result->max_difference = r->max_difference;
    }
}

fr_status fr_eval_causality(const fr_causality_source *source, int64_t vocab, const int32_t *ids,
                            const fr_causality_options *options, fr_causality_result *result, fr_error *error)
{
    probing p = {.source = source,
                 .options = options,
                 .ids = ids,
                 .rows = options->rows,
                 .T = options->T,
                 .vocab = vocab,
                 .result = result};
    *result = (fr_causality_result){0};
    if (options->rows < 2 || options->rows > 1 << 10 || options->T < 2 || options->T > 1 << 17 || vocab < 2)
        return fr_error_set(error, FR_BAD_USAGE, "causality", "at least 2 rows of 2 tokens",
                            "%lld rows of %lld tokens cannot be probed", (long long)options->rows,
                            (long long)options->T);
    for (int64_t i = 0; i < options->rows * (options->T + 1); i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return fr_error_set(error, FR_BAD_DATA, "causality", NULL, "token id %d is outside the vocabulary",
                                ids[i]);
    for (int i = 0; i < FR_PROBE_COUNT; i++)
        result->probes[i].row = -1;
    fr_arena_init(&p.arena, 1 << 16);
    fr_status status = probe_all(&p, error);
    if (status == FR_OK)
        close_result(&p);
    fr_arena_release(&p.arena);
    return status;
}
