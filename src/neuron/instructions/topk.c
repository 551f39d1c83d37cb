/* topk: the K largest of up to 65535 numbers that lie over 16 partitions, on GpSimd.
 *
 * The source of a group of 16 partitions is a snake: element s is in partition s % 16, column s / 16. The results lie the
 * same way, smallest first. (The page of NKI 0.6 says that each partition operates by itself; the page of the next
 * release explains that the 16 partitions of a GpSimd core share one problem, which is what the snake means.) */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

#include <stdlib.h>

enum { VALUES, INDICES, SRC, COUNT, GROUP = 16 };

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    int64_t k = fr_neuron_view_free(&call->argument[VALUES].view);
    FR_TRY(fr_neuron_dtype_allowed(core, call, SRC, FR_NEURON_OF(FR_NEURON_BFLOAT16), error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, VALUES, FR_NEURON_OF(FR_NEURON_BFLOAT16), error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, INDICES, FR_NEURON_OF(FR_NEURON_UINT32), error));
    FR_TRY(fr_neuron_same_elements(core, call, VALUES, INDICES, error));
    FR_TRY(fr_neuron_same_partitions(core, call, VALUES, SRC, error));
    FR_TRY(fr_neuron_whole_within(core, call, COUNT, 8, 65535, error));
    int64_t n = (int64_t)call->argument[COUNT].number,
            columns = fr_neuron_view_free(&call->argument[SRC].view);
    if (call->argument[SRC].view.partitions % GROUP != 0)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_gather, error,
                                "src has %d partitions, not a multiple of 16",
                                call->argument[SRC].view.partitions);
    if (k < 32768 && k <= n && columns * GROUP >= n)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_size_limit, error,
                            "the %lld largest of %lld in %lld columns of 16", (long long)k, (long long)n,
                            (long long)columns);
}

typedef struct candidate {
    float value;
    uint32_t index;
} candidate;

/* Descending; of equal values the earlier first. */
static int by_value(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void read_snake(const fr_neuron_lanes *src, int group, int64_t n, float *scratch, candidate *snake)
{
    for (int lane = 0; lane < GROUP; lane++) {
        const float *row = fr_neuron_row(src, group + lane, scratch);
        for (int64_t s = lane; s < n; s += GROUP)
            snake[s] = (candidate){row[s / GROUP], (uint32_t)s};
    }
}

/* One partition of the results: elements lane, lane + 16, ... of the K in ascending order. */
static void write_lane(fr_neuron *core, const fr_neuron_call *call, const fr_neuron_lanes lanes[2], int group,
                       int lane, const candidate *snake, int64_t k)
{
    for (int64_t j = lane; j < k; j += GROUP) {
        const candidate *c = &snake[k - 1 - j];
        for (int which = 0; which < 2; which++) {
            fr_neuron_pattern at = lanes[which].row;
            at.base = fr_neuron_lane_base(&lanes[which], group + lane);
            int64_t skip = j / GROUP; /* walk to the column */
            for (int d = at.dims - 1; d >= 0; d--) {
                at.base += skip % at.size[d] * at.stride[d];
                skip /= at.size[d];
            }
            if (which)
                *(uint32_t *)(void *)at.base = c->index;
            else
                fr_neuron_from_float(at.base, &c->value, FR_NEURON_BFLOAT16, 1);
        }
        fr_neuron_wrote_some(core, &call->argument[VALUES].view, group + lane, j / GROUP, 1);
        fr_neuron_wrote_some(core, &call->argument[INDICES].view, group + lane, j / GROUP, 1);
    }
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    fr_neuron_lanes out[2] = {fr_neuron_lanes_of(core, &call->argument[VALUES].view),
                              fr_neuron_lanes_of(core, &call->argument[INDICES].view)};
    fr_neuron_lanes src = fr_neuron_lanes_of(core, &call->argument[SRC].view);
    int64_t n = (int64_t)call->argument[COUNT].number;
    float *scratch = fr_neuron_scratch_row(core, &src);
    candidate *snake = fr_neuron_scratch(core, n * (int64_t)sizeof *snake);
    if (!scratch || !snake)
        return fr_error_memory(error, (size_t)n * sizeof *snake, "a snake");
    FR_TRY(fr_neuron_prepare(core, &call->argument[VALUES].view, error));
    FR_TRY(fr_neuron_prepare(core, &call->argument[INDICES].view, error));
    for (int group = 0; group < src.partitions; group += GROUP) {
        read_snake(&src, group, n, scratch, snake);
        qsort(snake, (size_t)n, sizeof *snake, by_value);
        for (int lane = 0; lane < GROUP; lane++)
            write_lane(core, call, out, group, lane, snake, out[0].row.elements);
    }
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = 4 * call->argument[COUNT].number + fr_neuron_extent(call, VALUES);
}

const fr_neuron_instruction fr_neuron_i_topk = {
    .name = "topk",
    .summary = "the K largest values of each group of 16 partitions, and where they are",
    .least_generation = 3,
    .engines = FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters =
        {{.name = "val_dst", .kind = FR_NEURON_UPDATE, .required = true, .text = "[P, K] bfloat16"},
         {.name = "idx_dst", .kind = FR_NEURON_UPDATE, .required = true, .text = "[P, K] uint32"},
         {.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "[P, X] bfloat16"},
         {.name = "n", .kind = FR_NEURON_INTEGER, .required = true, .text = "elements of the snake"}},
    .semantics =
        "In each group of 16 partitions src is a snake: element s is src[s % 16, s / 16], s < n. Result j of "
        "the K "
        "largest, ascending, is in partition j % 16, column j / 16 of val_dst, its s in idx_dst; the columns "
        "beyond are left alone.",
    .limits =
        "SBUF. P is a multiple of 16, n from 8 to 65535 and at most 16 X, K at most n and less than 32768.",
    .cost = "4n + K cycles.",
    .cost_source = "NKI 0.6 API page (topk)",
    .example = "s = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
               "v = nl.ndarray((128, 8), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
               "i = nl.ndarray((128, 8), dtype=nl.uint32, buffer=nl.sbuf)\n"
               "nisa.tensor_copy(dst=s, src=a)\n"
               "nisa.topk(val_dst=v, idx_dst=i, src=s, n=1024)",
    .engine = fr_neuron_on_gpsimd,
    .check = check,
    .execute = execute,
    .price = price,
};
