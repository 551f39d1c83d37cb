/* Spans, fast: what rows share is computed once, and the head only where it counts.
 *
 * The options of a question differ in their last words; what stands before, most of the work, is the same. So
 * neighbouring spans that begin alike become a bundle: one segment with the common beginning, then one for
 * the rest of each. Questions that show the same first example share that in turn: bundles that begin alike become
 * a family, and its stem is run once. Families fill a batch, a run of some hundred tokens, so that short rows make products as
 * good as long ones do; batches go to the threads whole. The run stops before the head. The rows of the
 * positions asked for are gathered, and a second plan, which begins where the first one ended, makes their
 * nats or logits.
 *
 * None of this may change a bit of an answer: our products compute each row by itself (cpu/gemm.h), attention
 * sums in an order that depends on the position alone (attention_kernels.h), and everything else works on
 * tokens one by one. A model or a kernel of which that is not known goes the slow way, scorer_spans.c.
 */
#include "graph/ops/ops.h"
#include "model/scorer.h"

#include <stdlib.h>
#include <string.h>

enum {
    BATCH_TOKENS = 512, /* enough for good products, few enough for the caches */
    HEAD_TOKENS = 64,
    SHORT_TOKENS = 63, /* shorter than the least plan of a row */
    WORTH_SHARING = 32, /* tokens saved; a segment has a price too */
    FAMILY_TOKENS = 2048 /* a family is run by one thread, while the others may wait for it */
};

/* Segments of a run of equally short rows. */
struct scorer_rows {
    fr_segment list[BATCH_TOKENS];
    int32_t positions[BATCH_TOKENS], previous[BATCH_TOKENS];
};

/* ---- can it be done? ---------------------------------------------------------------------------------- */

/* Products of another library may sum a row differently in another company. */
static void see_kernel(void *context, const fr_node *node, fr_pass pass, const fr_kernel *kernel)
{
    bool *ours = context;
    (void)node;
    (void)pass;
    *ours = *ours && !strstr(kernel->name, "onednn");
}

static bool ends_alike(const fr_graph *graph, const fr_tensor **hidden)
{
    const fr_tensor *nats = fr_graph_find(graph, "nats"), *logits = fr_graph_find(graph, "logits");
    if (!nats || !nats->producer || nats->producer->op != &fr_op_head_loss || !logits || !logits->producer ||
        logits->producer->op != &fr_op_head_logits)
        return false;
    *hidden = nats->producer->in[0];
    return logits->producer->in[0] == *hidden && (*hidden)->producer && (*hidden)->rows == FR_TOKENS;
}

/* Asked once, when the scorer is made. */
fr_status fr_scorer_find_hidden(fr_scorer *scorer, fr_error *error)
{
    const fr_tensor *hidden = NULL;
    bool ours = true;
    if (!ends_alike(scorer->graph, &hidden))
        return FR_OK;
    for (int n = 0; n < fr_graph_nodes(scorer->graph); n++)
        if (fr_graph_node(scorer->graph, n)->op->check_extent) /* positions that end: rows must be rows */
            return FR_OK;
    fr_plan *plan;
    FR_TRY(fr_scorer_plan(scorer, 64, NULL, "nats", &plan, error));
    fr_plan_visit(plan, see_kernel, &ours);
    if (!ours || !fr_plan_segmented(plan))
        return FR_OK;
    scorer->short_rows = fr_allocate(sizeof *scorer->short_rows);
    if (!scorer->short_rows)
        return fr_error_memory(error, sizeof *scorer->short_rows, "scoring");
    scorer->hidden = hidden;
    return FR_OK;
}

const fr_tensor *fr_scorer_hidden(const fr_scorer *scorer)
{
    return scorer->hidden;
}

/* ---- short rows --------------------------------------------------------------------------------------- */

typedef struct short_run {
    const fr_scorer *scorer;
    const fr_plan *plan;
    int64_t T, rows, each; /* rows of one run */
    const int32_t *inputs, *targets;
    float *nats;
} short_run;

static fr_status run_short(const short_run *r, int64_t index, int thread, fr_pool *pool, fr_error *error)
{
    const fr_scorer *scorer = r->scorer;
    int64_t first = index * r->each, count = r->rows - first < r->each ? r->rows - first : r->each;
    const scorer_rows *rows = scorer->short_rows;
    fr_segments segments = {.list = rows->list, .count = count, .positions = rows->positions, .previous = rows->previous};
    const fr_binding bindings[] = {{"tokens", r->inputs + first * r->T}, {"targets", r->targets + first * r->T}};
    fr_run_args args = {.arena = scorer->arenas[thread],
                        .parameters = scorer->parameters,
                        .prepared = fr_prepared_table(scorer->prepared),
                        .inputs = bindings,
                        .input_count = 2,
                        .tokens = count * r->T,
                        .segments = &segments,
                        .pool = pool};
    FR_TRY(fr_plan_run(r->plan, &args, error));
    memcpy(r->nats + first * r->T, fr_plan_output(r->plan, scorer->arenas[thread], "nats", NULL),
           (size_t)(count * r->T) * sizeof *r->nats);
    return FR_OK;
}

static void run_short_job(void *context, int64_t index, int thread)
{
    const short_run *r = context;
    fr_error error = {0};
    scorer_failure *failed = &r->scorer->failures[thread];
    if (failed->row < 0 && run_short(r, index, thread, NULL, &error) != FR_OK)
        *failed = (scorer_failure){index, error};
}

bool fr_scorer_packs_rows(const fr_scorer *scorer, int64_t T)
{
    return scorer->hidden && T <= SHORT_TOKENS;
}

fr_status fr_scorer_prepare_short(fr_scorer *scorer, fr_plan **plan, fr_error *error)
{
    return fr_scorer_plan(scorer, BATCH_TOKENS, NULL, "nats", plan, error);
}

fr_status fr_scorer_short_nats(fr_scorer *scorer, int64_t rows, int64_t T, const int32_t *inputs,
                               const int32_t *targets, float *nats, fr_error *error)
{
    short_run r = {scorer, NULL, T, rows, BATCH_TOKENS / T, inputs, targets, nats};
    fr_plan *plan;
    FR_TRY(fr_scorer_prepare_short(scorer, &plan, error));
    r.plan = plan;
    for (int64_t i = 0; i < r.each; i++)
        scorer->short_rows->list[i] = (fr_segment){.first = i * T, .count = T};
    fr_segments_fill(scorer->short_rows->list, r.each, NULL, scorer->short_rows->positions,
                     scorer->short_rows->previous);
    int64_t runs = (rows + r.each - 1) / r.each;
    if (runs < scorer->threads) {
        for (int64_t i = 0; i < runs; i++)
            FR_TRY(run_short(&r, i, 0, scorer->pool, error));
        return FR_OK;
    }
    for (int i = 0; i < scorer->threads; i++)
        scorer->failures[i].row = -1;
    fr_pool_for(scorer->pool, runs, run_short_job, &r);
    return fr_scorer_failure(scorer, error);
}

/* ---- bundles and batches ------------------------------------------------------------------------------ */

typedef struct bundle {
    fr_span *spans; /* neighbours */
    int64_t count, shared;
    int64_t begin;         /* position from which the common beginning is needed; `shared`: nowhere */
    int64_t tokens, asked; /* to run; positions to score */
    int64_t stem;          /* tokens that the family's bundles begin with; 0: a family of one */
    int64_t stem_judged;   /* the first judged position of any of them */
    bool follows;          /* an earlier bundle of the batch has the stem */
} bundle;

/* Bundles that lie side by side. */
typedef struct family {
    bundle *bundles;
    int64_t count, tokens, stem;
} family;

typedef struct batch {
    const bundle *bundles;
    int64_t count, tokens, repeated, asked, segments, longest; /* numbers of tokens run already; longest: row */
    const fr_plan *trunk;
} batch;

/* The levels of the trunk (fr_plan_levels): how far before a judged token each begins. */
typedef struct level_reach {
    int levels;
    int64_t *before;
} level_reach;

typedef struct batches {
    fr_scorer *scorer;
    const batch *list;
    level_reach reach;
    fr_plan *heads[2]; /* nats, logits */
    int64_t columns;
    size_t item; /* bytes of an element of the hidden tensor */
    struct desk *desks;
} batches;

static int64_t common(const fr_span *a, const fr_span *b, int64_t most)
{
    int64_t n = 0;
    most = a->end < most ? a->end : most;
    most = b->end < most ? b->end : most;
    while (n < most && a->ids[n] == b->ids[n])
        n++;
    return n;
}

static int64_t begin_of(const level_reach *reach, int level, int64_t judged)
{
    return judged > reach->before[level] ? judged - reach->before[level] : 0;
}

/* The first position of a span's row that is needed at all. */
static int64_t row_begin(const level_reach *reach, const fr_span *s)
{
    return begin_of(reach, reach->levels - 1, s->first);
}

/* Where the span's own part begins. */
static int64_t own_begin(const level_reach *reach, const bundle *b, const fr_span *s)
{
    int64_t begin = row_begin(reach, s);
    return b->begin < b->shared || begin < b->shared ? b->shared : begin;
}

static void size_bundle(const level_reach *reach, bundle *b)
{
    b->begin = b->shared;
    for (int64_t i = 0; i < b->count && b->count > 1; i++) {
        int64_t begin = row_begin(reach, &b->spans[i]);
        b->begin = begin < b->begin ? begin : b->begin;
    }
    b->tokens = b->shared - b->begin;
    for (int64_t i = 0; i < b->count; i++) {
        b->tokens += b->spans[i].end - own_begin(reach, b, &b->spans[i]);
        b->asked += b->spans[i].end - b->spans[i].first;
    }
}

/* Takes as many spans as make it cheaper. */
static bundle take_bundle(const level_reach *reach, fr_span *spans, int64_t left)
{
    bundle b = {.spans = spans, .count = 1, .shared = spans->end};
    while (b.count < left && spans[b.count].greedy == spans->greedy) {
        int64_t shared = common(spans, &spans[b.count], b.shared);
        if (b.count * shared - (b.count - 1) * b.shared < WORTH_SHARING)
            break;
        b.shared = shared;
        b.count++;
    }
    if (b.count == 1)
        b.shared = 0;
    size_bundle(reach, &b);
    return b;
}

/* ---- families ----------------------------------------------------------------------------------------- */

static int64_t judged_of(const bundle *b)
{
    int64_t judged = b->count > 1 ? b->shared : b->spans->first;
    for (int64_t i = 0; i < b->count; i++)
        judged = b->spans[i].first < judged ? b->spans[i].first : judged;
    return judged;
}

/* The longest stem a bundle can give: what its rows have in common and nobody judges, if all of it is needed. */
static int64_t most_stem(const level_reach *reach, const bundle *b)
{
    if (b->count > 1)
        return b->begin == 0 ? judged_of(b) : 0;
    return row_begin(reach, b->spans) == 0 ? b->spans->first : 0;
}

static int by_text(const void *left, const void *right)
{
    const fr_span *a = ((const bundle *)left)->spans, *b = ((const bundle *)right)->spans;
    if (a->greedy != b->greedy)
        return a->greedy ? 1 : -1;
    int64_t same = common(a, b, INT64_MAX);
    if (same < a->end && same < b->end)
        return a->ids[same] < b->ids[same] ? -1 : 1;
    return a->end != b->end ? (a->end < b->end ? -1 : 1) : a < b ? -1 : a > b;
}

/* From the first of `bundles` on, as many as make it cheaper. */
static family take_family(const level_reach *reach, bundle *bundles, int64_t left)
{
    family f = {.bundles = bundles, .count = 1, .tokens = bundles->tokens, .stem = most_stem(reach, bundles)};
    while (f.count < left && bundles[f.count].spans->greedy == bundles->spans->greedy) {
        const bundle *next = &bundles[f.count];
        int64_t most = most_stem(reach, next);
        int64_t stem = common(bundles->spans, next->spans, most < f.stem ? most : f.stem);
        int64_t saved = f.count * stem - (f.count - 1) * f.stem;
        if (saved < WORTH_SHARING || f.tokens + next->tokens - saved > FAMILY_TOKENS)
            break;
        f.tokens += next->tokens - saved;
        f.stem = stem;
        f.count++;
    }
    return f;
}

static void mark_family(const family *f)
{
    int64_t judged = INT64_MAX;
    for (int64_t i = 0; i < f->count; i++)
        judged = judged_of(&f->bundles[i]) < judged ? judged_of(&f->bundles[i]) : judged;
    for (int64_t i = 0; i < f->count && f->count > 1; i++) {
        bundle *b = &f->bundles[i];
        b->stem = f->stem;
        b->stem_judged = judged;
        b->follows = i > 0;
        b->tokens -= b->follows ? f->stem : 0;
        if (b->count == 1) /* its own part begins behind the stem */
            *b = (bundle){b->spans, 1, f->stem, 0, b->tokens, b->asked, f->stem, judged, b->follows};
    }
}

static int largest_first(const void *left, const void *right)
{
    const family *a = left, *b = right;
    if (a->bundles->spans->greedy != b->bundles->spans->greedy)
        return a->bundles->spans->greedy ? 1 : -1;
    if (a->tokens != b->tokens)
        return a->tokens > b->tokens ? -1 : 1;
    return a->bundles->spans < b->bundles->spans ? -1 : a->bundles->spans > b->bundles->spans;
}

/* The same bundles, those of a family side by side and the largest family first. */
static fr_status arrange(const level_reach *reach, bundle **bundles, int64_t count, fr_arena *arena,
                         fr_error *error)
{
    family *families = fr_arena_alloc(arena, (size_t)count * sizeof *families);
    bundle *arranged = fr_arena_alloc(arena, (size_t)count * sizeof *arranged), *next = arranged;
    int64_t family_count = 0;
    if (!families || !arranged)
        return fr_error_memory(error, (size_t)count * sizeof *arranged, "scoring spans");
    qsort(*bundles, (size_t)count, sizeof **bundles, by_text);
    for (int64_t at = 0; at < count; at += families[family_count++].count) {
        families[family_count] = take_family(reach, *bundles + at, count - at);
        mark_family(&families[family_count]);
    }
    qsort(families, (size_t)family_count, sizeof *families, largest_first);
    for (int64_t i = 0; i < family_count; next += families[i++].count)
        memcpy(next, families[i].bundles, (size_t)families[i].count * sizeof *next);
    *bundles = arranged;
    return FR_OK;
}

/* A whole family more, if it fits. */
static bool add_family(batch *b, const bundle *bundles, int64_t left)
{
    int64_t count = 0, tokens = 0;
    do
        tokens += bundles[count++].tokens;
    while (count < left && bundles[count].follows);
    if (b->count && b->tokens + tokens > BATCH_TOKENS)
        return false;
    for (int64_t k = 0; k < count; k++) {
        const bundle *one = &bundles[k];
        b->repeated += one->follows ? one->stem : 0;
        b->asked += one->asked;
        b->segments += 2 + one->count;
        for (int64_t i = 0; i < one->count; i++)
            b->longest = one->spans[i].end > b->longest ? one->spans[i].end : b->longest;
    }
    b->tokens += tokens;
    b->count += count;
    return true;
}

static batch take_batch(const bundle *bundles, int64_t left)
{
    batch b = {.bundles = bundles};
    while (b.count < left && bundles[b.count].spans->greedy == bundles->spans->greedy &&
           add_family(&b, bundles + b.count, left - b.count))
        continue;
    return b;
}

/* ---- one batch ---------------------------------------------------------------------------------------- */

/* What a thread works with. */
typedef struct desk {
    int32_t *ids, *positions, *previous, *targets;
    int32_t *order;  /* see fr_segments */
    int64_t *places; /* tokens of the run whose rows are asked for */
    fr_segment *segments;
    const fr_span **rows; /* of each segment a span whose row has its tokens */
    int64_t *judged;      /* and the first position of it that is judged */
    int64_t *first, *next; /* of every level: its first token; the next one to be placed */
    char *hidden;         /* rows asked for */
    float *nats;
    struct repeat *repeats; /* stems, where they stand again */
    int64_t segment_count, repeat_count, tokens, numbers, asked, stem; /* numbers: of `order`, tokens and repeats */
} desk;

typedef struct repeat {
    int64_t first, from, count;
} repeat;

static int64_t segment_begin(const fr_segment *s)
{
    return s->left_out + s->before_count;
}

/* Positions [begin, end) of a row as a segment. */
static void add_segment(desk *d, const fr_span *row, int64_t judged, int64_t begin, int64_t end,
                        const fr_segment *before)
{
    fr_segment *s = &d->segments[d->segment_count];
    *s = (fr_segment){.first = d->numbers, .count = end - begin, .left_out = begin};
    if (before) {
        s->before = before->first;
        s->before_count = before->count;
        s->left_out = before->left_out;
    }
    d->rows[d->segment_count] = row;
    d->judged[d->segment_count++] = judged;
    d->tokens += end - begin;
    d->numbers += end - begin;
}

/* The stem of the bundle's family: a segment of its own, or the same numbers' tokens again. */
static void add_stem(desk *d, const bundle *b)
{
    if (!b->follows) {
        add_segment(d, b->spans, b->stem_judged, 0, b->stem, NULL);
        d->stem = d->numbers - b->stem;
        return;
    }
    d->repeats[d->repeat_count++] = (repeat){d->numbers, d->stem, b->stem};
    d->numbers += b->stem;
}

static void add_bundle(const level_reach *reach, desk *d, const bundle *b)
{
    const fr_segment whole = {.first = d->numbers, .count = b->shared - b->begin, .left_out = b->begin};
    const fr_segment stem = {.first = d->numbers, .count = b->stem};
    if (b->stem)
        add_stem(d, b);
    if (b->begin + b->stem < b->shared)
        add_segment(d, b->spans, judged_of(b), b->begin + b->stem, b->shared, b->stem ? &stem : NULL);
    for (int64_t i = 0; i < b->count; i++) {
        const fr_span *s = &b->spans[i];
        int64_t begin = own_begin(reach, b, s);
        for (int64_t p = s->first; p < s->end; p++) {
            d->places[d->asked] = p < b->shared ? whole.first + p - b->begin : d->numbers + p - begin;
            d->targets[d->asked++] = s->ids[p + 1];
        }
        if (begin < s->end)
            add_segment(d, s, s->first, begin, s->end, whole.count ? &whole : NULL);
    }
}

/* First position of a segment on a level. */
static int64_t level_begin(const level_reach *reach, const desk *d, int64_t segment, int level)
{
    const fr_segment *s = &d->segments[segment];
    int64_t begin = begin_of(reach, level, d->judged[segment]), least = segment_begin(s);
    if (begin < least || level == reach->levels - 1)
        return least;
    return begin < least + s->count ? begin : least + s->count;
}

/* Tokens in order of their levels, the last level first. */
static void place_tokens(const level_reach *reach, desk *d)
{
    int last = reach->levels - 1;
    for (int k = 0; k <= last; k++)
        d->next[k] = 0;
    for (int64_t i = 0; i < d->segment_count; i++)
        for (int k = 0; k <= last; k++) /* tokens of levels up to k */
            d->next[k] += segment_begin(&d->segments[i]) + d->segments[i].count - level_begin(reach, d, i, k);
    for (int k = 0; k <= last; k++)
        d->next[k] = d->first[k] = d->tokens - d->next[k];
    for (int64_t i = 0; i < d->segment_count; i++) {
        const fr_segment *s = &d->segments[i];
        int64_t p = segment_begin(s), end = p + s->count;
        for (int k = last; k >= 0; k--)
            for (int64_t to = k ? level_begin(reach, d, i, k - 1) : end; p < to; p++) {
                int32_t token = (int32_t)d->next[k]++;
                d->order[s->first + p - segment_begin(s)] = token;
                d->ids[token] = d->rows[i]->ids[p];
            }
    }
    for (int64_t i = 0; i < d->repeat_count; i++)
        memcpy(d->order + d->repeats[i].first, d->order + d->repeats[i].from,
               (size_t)d->repeats[i].count * sizeof *d->order);
}

static void lay_out(const level_reach *reach, desk *d, const batch *b)
{
    d->segment_count = d->repeat_count = d->tokens = d->numbers = d->asked = 0;
    for (int64_t i = 0; i < b->count; i++)
        add_bundle(reach, d, &b->bundles[i]);
    place_tokens(reach, d);
    fr_segments_fill(d->segments, d->segment_count, d->order, d->positions, d->previous);
}

static fr_status run_plan(const batches *all, const fr_plan *plan, int thread, fr_pool *pool,
                          const fr_binding *bindings, int64_t tokens, const fr_segments *segments,
                          fr_error *error)
{
    const fr_scorer *scorer = all->scorer;
    fr_run_args args = {.arena = scorer->arenas[thread],
                        .parameters = scorer->parameters,
                        .prepared = fr_prepared_table(scorer->prepared),
                        .inputs = bindings,
                        .input_count = 2,
                        .tokens = tokens,
                        .segments = segments,
                        .pool = pool};
    return fr_plan_run(plan, &args, error);
}

static fr_status run_trunk(const batches *all, const batch *b, int thread, fr_pool *pool, fr_error *error)
{
    desk *d = &all->desks[thread];
    const char *name = all->scorer->hidden->name;
    size_t row = (size_t)all->columns * all->item;
    fr_segments segments = {d->segments, d->segment_count, d->positions, d->previous,
                            d->order,    d->first,         d->numbers};
    const fr_binding bindings[] = {{"tokens", d->ids}, {"targets", d->ids}};
    FR_TRY(run_plan(all, b->trunk, thread, pool, bindings, d->tokens, &segments, error));
    const char *hidden = fr_plan_output(b->trunk, all->scorer->arenas[thread], name, NULL);
    for (int64_t i = 0; i < d->asked; i++)
        memcpy(d->hidden + (size_t)i * row, hidden + (size_t)d->order[d->places[i]] * row, row);
    return FR_OK;
}

/* The span and position of asked row i, walking on from the last one. */
typedef struct walk {
    const batch *batch;
    int64_t bundle, span, position;
} walk;

static fr_span *next_asked(walk *w, int64_t *position)
{
    const bundle *b = &w->batch->bundles[w->bundle];
    fr_span *s = &b->spans[w->span];
    *position = s->first + w->position;
    if (w->position == 0) {
        s->nats = 0;
        s->followed = true;
    }
    if (++w->position == s->end - s->first) {
        w->position = 0;
        if (++w->span == b->count) {
            w->span = 0;
            w->bundle++;
        }
    }
    return s;
}

static fr_status run_head(const batches *all, const batch *b, int thread, fr_pool *pool, fr_error *error)
{
    desk *d = &all->desks[thread];
    bool greedy = b->bundles->spans->greedy;
    const fr_plan *plan = all->heads[greedy];
    const void *arena = all->scorer->arenas[thread];
    walk w = {.batch = b};
    for (int64_t at = 0, count; at < d->asked; at += count) {
        count = d->asked - at < HEAD_TOKENS ? d->asked - at : HEAD_TOKENS;
        const fr_binding bindings[] = {
            {all->scorer->hidden->name, d->hidden + (size_t)(at * all->columns) * all->item},
            {"targets", d->targets + at}};
        FR_TRY(run_plan(all, plan, thread, pool, bindings, count, NULL, error));
        const float *out = fr_plan_output(plan, arena, greedy ? "logits" : "nats", NULL);
        if (!greedy)
            memcpy(d->nats + at, out, (size_t)count * sizeof *out);
        for (int64_t i = 0, position; greedy && i < count; i++) {
            fr_span *s = next_asked(&w, &position);
            fr_span_choose(s, position, out + i * all->scorer->vocab, all->scorer->vocab);
        }
    }
    const float *nats = d->nats;
    for (int64_t i = 0; !greedy && i < b->count; i++)
        for (int64_t k = 0; k < b->bundles[i].count; k++) {
            fr_span *s = &b->bundles[i].spans[k];
            fr_span_sum(s, nats);
            nats += s->end - s->first;
        }
    return FR_OK;
}

static fr_status run_batch(const batches *all, int64_t index, int thread, fr_pool *pool, fr_error *error)
{
    const batch *b = &all->list[index];
    lay_out(&all->reach, &all->desks[thread], b);
    FR_TRY(run_trunk(all, b, thread, pool, error));
    return run_head(all, b, thread, pool, error);
}

static void run_job(void *context, int64_t index, int thread)
{
    const batches *all = context;
    fr_error error = {0};
    scorer_failure *failed = &all->scorer->failures[thread];
    if (failed->row < 0 && run_batch(all, index, thread, NULL, &error) != FR_OK)
        *failed = (scorer_failure){index, error};
}

/* ---- all of them -------------------------------------------------------------------------------------- */

static fr_status make_desks(batches *all, int64_t count, fr_arena *arena, fr_error *error)
{
    int64_t tokens = 0, numbers = 0, asked = 0, segments = 0;
    for (int64_t i = 0; i < count; i++) {
        const batch *b = &all->list[i];
        tokens = b->tokens > tokens ? b->tokens : tokens;
        numbers = b->tokens + b->repeated > numbers ? b->tokens + b->repeated : numbers;
        asked = b->asked > asked ? b->asked : asked;
        segments = b->segments > segments ? b->segments : segments;
    }
    size_t rows = (size_t)asked, bytes = rows * (size_t)all->columns * all->item;
    all->desks = fr_arena_alloc(arena, (size_t)all->scorer->threads * sizeof *all->desks);
    for (int i = 0; all->desks && i < all->scorer->threads; i++) {
        desk *d = &all->desks[i];
        *d = (desk){.ids = fr_arena_alloc(arena, (size_t)tokens * sizeof(int32_t)),
                    .order = fr_arena_alloc(arena, (size_t)numbers * sizeof(int32_t)),
                    .repeats = fr_arena_alloc(arena, (size_t)segments * sizeof *d->repeats),
                    .rows = fr_arena_alloc(arena, (size_t)segments * sizeof *d->rows),
                    .judged = fr_arena_alloc(arena, (size_t)segments * sizeof(int64_t)),
                    .first = fr_arena_alloc(arena, (size_t)all->reach.levels * sizeof(int64_t)),
                    .next = fr_arena_alloc(arena, (size_t)all->reach.levels * sizeof(int64_t)),
                    .positions = fr_arena_alloc(arena, (size_t)tokens * sizeof(int32_t)),
                    .previous = fr_arena_alloc(arena, (size_t)tokens * sizeof(int32_t)),
                    .targets = fr_arena_alloc(arena, (rows + HEAD_TOKENS) * sizeof(int32_t)),
                    .places = fr_arena_alloc(arena, rows * sizeof(int64_t)),
                    .segments = fr_arena_alloc(arena, (size_t)segments * sizeof(fr_segment)),
                    .hidden = fr_arena_alloc(arena, bytes),
                    .nats = fr_arena_alloc(arena, rows * sizeof(float))};
        if (!d->ids || !d->order || !d->repeats || !d->rows || !d->judged || !d->first || !d->next || !d->positions ||
            !d->previous || !d->targets || !d->places || !d->segments || !d->hidden || !d->nats)
            return fr_error_memory(error, bytes, "scoring spans");
    }
    return all->desks ? FR_OK : fr_error_memory(error, sizeof *all->desks, "scoring spans");
}

/* A few lengths serve every batch: plans run fewer tokens than they were made for. */
static fr_status find_plans(batches *all, batch *list, int64_t count, fr_error *error)
{
    const char *hidden = all->scorer->hidden->name;
    for (int64_t i = 0; i < count; i++) {
        fr_plan *trunk;
        int64_t length = BATCH_TOKENS;
        while (length < list[i].tokens || length < list[i].longest) /* positions have tables too */
            length += length / 2;
        FR_TRY(fr_scorer_plan(all->scorer, length, NULL, hidden, &trunk, error));
        list[i].trunk = trunk;
    }
    for (int greedy = 0; greedy < 2; greedy++)
        FR_TRY(fr_scorer_plan(all->scorer, HEAD_TOKENS, hidden, greedy ? "logits" : "nats",
                              &all->heads[greedy], error));
    return FR_OK;
}

static fr_status run_batches(batches *all, int64_t count, fr_error *error)
{
    fr_scorer *scorer = all->scorer;
    if (count < scorer->threads) {
        for (int64_t i = 0; i < count; i++)
            FR_TRY(run_batch(all, i, 0, scorer->pool, error));
        return FR_OK;
    }
    for (int i = 0; i < scorer->threads; i++)
        scorer->failures[i].row = -1;
    fr_pool_for(scorer->pool, count, run_job, all);
    return fr_scorer_failure(scorer, error);
}

/* What any plan of the trunk knows. */
static fr_status find_reach(fr_scorer *scorer, fr_arena *arena, level_reach *reach, fr_plan **trunk,
                            fr_error *error)
{
    const int64_t *looks_back;
    FR_TRY(fr_scorer_plan(scorer, BATCH_TOKENS, NULL, scorer->hidden->name, trunk, error));
    reach->levels = fr_plan_levels(*trunk, &looks_back);
    size_t bytes = (size_t)reach->levels * sizeof *reach->before;
    reach->before = fr_arena_alloc(arena, bytes);
    if (!reach->before)
        return fr_error_memory(error, bytes, "scoring spans");
    reach->before[0] = 0;
    for (int k = 1; k < reach->levels; k++) {
        int64_t before = reach->before[k - 1];
        reach->before[k] = before > INT64_MAX - looks_back[k - 1] ? INT64_MAX : before + looks_back[k - 1];
    }
    return FR_OK;
}

/* Operations for a segment that ends at `end` and begins at `begin` on the last level. */
static double segment_work(const level_reach *reach, const fr_plan *trunk, int64_t judged, int64_t begin,
                           int64_t end)
{
    double work = 0;
    for (int k = 0; k < reach->levels; k++) {
        int64_t from = k + 1 < reach->levels ? begin_of(reach, k, judged) : begin;
        work += fr_plan_level_flops(trunk, k, from > begin ? from : begin, end);
    }
    return work;
}

static double bundle_work(const level_reach *reach, const fr_plan *trunk, const fr_plan *head, const bundle *b)
{
    int64_t judged = b->shared;
    double work = (double)b->asked * fr_plan_level_flops(head, 0, 0, 1);
    for (int64_t i = 0; i < b->count; i++) {
        const fr_span *s = &b->spans[i];
        judged = s->first < judged ? s->first : judged;
        work += segment_work(reach, trunk, s->first, own_begin(reach, b, s), s->end);
    }
    return work + segment_work(reach, trunk, judged, b->begin, b->shared);
}

fr_status fr_scorer_shared_work(fr_scorer *scorer, int64_t count, fr_span *spans, fr_arena *arena, double *work,
                                fr_error *error)
{
    level_reach reach;
    fr_plan *trunk, *head;
    FR_TRY(find_reach(scorer, arena, &reach, &trunk, error));
    FR_TRY(fr_scorer_plan(scorer, HEAD_TOKENS, scorer->hidden->name, "nats", &head, error));
    for (int64_t at = 0; at < count;) {
        bundle b = take_bundle(&reach, spans + at, count - at);
        *work += bundle_work(&reach, trunk, head, &b);
        at += b.count;
    }
    return FR_OK;
}

fr_status fr_scorer_shared_spans(fr_scorer *scorer, int64_t count, fr_span *spans, fr_arena *arena,
                                 fr_error *error)
{
    batches all = {.scorer = scorer,
                   .columns = scorer->hidden->columns,
                   .item = scorer->numerics == FR_NUMERICS_BF16 ? 2 : 4};
    int64_t bundle_count = 0, batch_count = 0;
    bundle *bundles = fr_arena_alloc(arena, (size_t)count * sizeof *bundles);
    batch *list = fr_arena_alloc(arena, (size_t)count * sizeof *list);
    if (!bundles || !list)
        return fr_error_memory(error, (size_t)count * sizeof *list, "scoring spans");
    fr_plan *trunk;
    FR_TRY(find_reach(scorer, arena, &all.reach, &trunk, error));
    for (int64_t at = 0; at < count; at += bundles[bundle_count++].count)
        bundles[bundle_count] = take_bundle(&all.reach, spans + at, count - at);
    FR_TRY(arrange(&all.reach, &bundles, bundle_count, arena, error));
    for (int64_t at = 0; at < bundle_count; at += list[batch_count++].count)
        list[batch_count] = take_batch(bundles + at, bundle_count - at);
    all.list = list;
    FR_TRY(make_desks(&all, batch_count, arena, error));
    FR_TRY(find_plans(&all, list, batch_count, error));
    return run_batches(&all, batch_count, error);
}
