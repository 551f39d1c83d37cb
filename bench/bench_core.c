/* bench_core: what scoring CORE's items runs at, as a share of one thread's peak.
 *
 *     bench_core RUN BUNDLE [ITEMS [ROUNDS [fp32|bf16]]]
 *
 * The first ITEMS (default 2) items of every task, drawn as from 200, one thread, in processor time, best of ROUNDS
 * (default 3); the peak is taken in the same run, before and after. Operations are those that are run (no padding,
 * nothing that is left out), so the share says how well the processor is used and not how much work was saved;
 * that is the ratio of the tokens.
 */
#include "frontier/core.h"
#include "frontier/cpu.h"

#include <stdlib.h>
#include <time.h>

enum { MOST_SPANS = 20000 };

typedef struct sample {
    fr_span spans[MOST_SPANS];
    int count;
    double row_tokens, operations;
    fr_arena arena;
} sample;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fr_status add_item(sample *s, fr_scorer *scorer, const fr_core_task *task, const fr_core_items *items,
                          int64_t index, fr_error *error)
{
    fr_core_rows rows;
    double work;
    int first = s->count;
    FR_TRY(fr_core_rows_make(&rows, &s->arena, task, items, index, fr_scorer_tokenizer(scorer), 0, error));
    for (int i = 0; i < rows.count && s->count < MOST_SPANS; i++) {
        const fr_core_row *row = &rows.rows[i];
        s->row_tokens += (double)row->count - 1;
        if (row->first < row->end)
            s->spans[s->count++] = (fr_span){
                .ids = row->ids, .first = row->first - 1, .end = row->end - 1, .greedy = task->kind == FR_CORE_LANGUAGE};
    }
    FR_TRY(fr_scorer_spans_work(scorer, s->count - first, s->spans + first, &work, error));
    s->operations += work;
    return FR_OK;
}

static fr_status add_tasks(sample *s, fr_scorer *scorer, const fr_core_bundle *bundle, int64_t count, fr_error *error)
{
    for (int t = 0; t < fr_core_bundle_tasks(bundle); t++) {
        const fr_core_task *task = fr_core_bundle_task(bundle, t);
        fr_core_items items;
        if (!task->present)
            continue;
        FR_TRY(fr_core_items_load(&items, task, 200, error));
        fr_status status = FR_OK;
        for (int64_t i = 0; i < count && i < items.count && status == FR_OK; i++)
            status = add_item(s, scorer, task, &items, i, error);
        fr_core_items_release(&items);
        FR_TRY(status);
    }
    return FR_OK;
}

static fr_status measure(sample *s, fr_scorer *scorer, int rounds, fr_error *error)
{
    double best = 1e30;
    fr_peak before, after;
    FR_TRY(fr_cpu_peak(1, 0.5, &before, error));
    for (int r = 0; r < rounds; r++) {
        double start = now();
        FR_TRY(fr_scorer_spans(scorer, s->count, s->spans, error));
        best = now() - start < best ? now() - start : best;
    }
    FR_TRY(fr_cpu_peak(1, 0.5, &after, error));
    double peak = before.flops > after.flops ? before.flops : after.flops;
    printf("%d rows, %.0f tokens in rows, %.2f s: %.0f tokens/s of a thread\n", s->count, s->row_tokens, best,
           s->row_tokens / best);
    printf("%.1f GFLOP run at %.1f GFLOP/s; peak %.1f (register loop %.1f, oneDNN %.1f): %.3f\n", 1e-9 * s->operations,
           1e-9 * s->operations / best, 1e-9 * peak, 1e-9 * after.register_loop, 1e-9 * after.library_product,
           s->operations / best / peak);
    return FR_OK;
}

static fr_status run(int count, char **words, fr_error *error)
{
    static sample s;
    fr_scorer *scorer;
    fr_core_bundle *bundle;
    FR_TRY(fr_scorer_open(&scorer, words[1], &(fr_scorer_options){.threads = 1, .numerics = count > 5 ? words[5] : "fp32"}, error));
    FR_TRY(fr_core_bundle_open(&bundle, words[2], error));
    fr_arena_init(&s.arena, 1 << 20);
    FR_TRY(add_tasks(&s, scorer, bundle, count > 3 ? atoll(words[3]) : 2, error));
    FR_TRY(measure(&s, scorer, count > 4 ? atoi(words[4]) : 3, error));
    fr_arena_release(&s.arena);
    fr_core_bundle_free(bundle);
    fr_scorer_free(scorer);
    return FR_OK;
}

int main(int count, char **words)
{
    fr_error error = {0};
    if (count < 3) {
        fprintf(stderr, "bench_core RUN BUNDLE [ITEMS [ROUNDS [fp32|bf16]]]\n");
        return 2;
    }
    if (run(count, words, &error) == FR_OK)
        return 0;
    fprintf(stderr, "%s: %s\n", error.where, error.what);
    return 1;
}
