/* nc_stream_shuffle: partitions of a quadrant in another order, or one of them everywhere: the cheap way to broadcast. */
#include "neuron/instructions.h"
#include "neuron/legality.h"

#include <string.h>

enum { DST, SRC, MASK, QUADRANT = 32, LEAVE = 255 };

static int start_of(const fr_neuron_view *view)
{
    const fr_neuron_layout *layout = fr_neuron_tensor_layout(view->tensor);
    return view->partition + (layout->placed ? layout->start_partition : 0);
}

/* Both tiles start as an access to all active partitions would: whole quadrants of the larger one. */
static fr_status check_starts(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    const fr_neuron_view *view[] = {&call->argument[DST].view, &call->argument[SRC].view};
    int most = view[0]->partitions > view[1]->partitions ? view[0]->partitions : view[1]->partitions;
    int active = (most + QUADRANT - 1) / QUADRANT * QUADRANT;
    for (int i = 0; i < 2; i++) {
        int start = start_of(view[i]);
        if (start % (active > 64 ? 128 : active) != 0)
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_partition_start, error,
                                    "%s starts at %d with %d active partitions", i ? "src" : "dst", start,
                                    active);
    }
    return FR_OK;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    const fr_neuron_argument *mask = &call->argument[MASK];
    const fr_neuron_view *dst = &call->argument[DST].view, *src = &call->argument[SRC].view;
    FR_TRY(fr_neuron_same_dtype(core, call, DST, SRC, error));
    if (fr_neuron_view_free(dst) != fr_neuron_view_free(src))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_elements_match, error,
                                "dst has %lld elements per partition, src has %lld",
                                (long long)fr_neuron_view_free(dst), (long long)fr_neuron_view_free(src));
    FR_TRY(check_starts(core, call, error));
    if (mask->count != QUADRANT)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_shuffle_mask, error, "%d entries, not 32",
                                mask->count);
    for (int p = 0; p < QUADRANT; p++) {
        double from = mask->numbers[p];
        if (from != LEAVE && !(from >= 0 && from < QUADRANT && from == (double)(int)from))
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_shuffle_mask, error, "entry %d is %g", p,
                                    from);
        for (int q = p; from != LEAVE && q < dst->partitions; q += QUADRANT)
            if (q / QUADRANT * QUADRANT + (int)from >= src->partitions)
                return fr_neuron_refuse(core, call, FR_NEURON_RULE_shuffle_mask, error,
                                        "partition %d takes partition %d, src has %d", q,
                                        q / QUADRANT * QUADRANT + (int)from, src->partitions);
    }
    return FR_OK;
}

/* In place is allowed: the source is read whole first. */
static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes src = fr_neuron_lanes_of(core, &call->argument[SRC].view);
    int64_t bytes = src.row.elements * src.row.width;
    uint8_t *copy = fr_neuron_scratch(core, bytes * src.partitions);
    if (!copy)
        return fr_error_memory(error, (size_t)(bytes * src.partitions), "a copy of the source");
    for (int p = 0; p < src.partitions; p++) {
        const void *row = fr_neuron_raw(&src, p, copy + p * bytes);
        if (row != copy + p * bytes)
            memcpy(copy + p * bytes, row, (size_t)bytes);
    }
    FR_TRY(fr_neuron_prepare(core, &call->argument[DST].view, error));
    for (int p = 0; p < dst.partitions; p++) {
        int from = (int)call->argument[MASK].numbers[p % QUADRANT];
        if (from == LEAVE)
            continue;
        fr_neuron_put_raw(&dst, p, copy + (p / QUADRANT * QUADRANT + from) * bytes);
        fr_neuron_view one = call->argument[DST].view;
        one.partition = (int16_t)(one.partition + p);
        one.partitions = 1;
        fr_neuron_wrote(core, &one);
    }
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = fr_neuron_extent(call, SRC);
}

const fr_neuron_instruction fr_neuron_i_nc_stream_shuffle = {
    .name = "nc_stream_shuffle",
    .summary = "move partitions inside quadrants of 32",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst", .kind = FR_NEURON_UPDATE, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "shuffle_mask",
                    .kind = FR_NEURON_INTEGER_LIST,
                    .required = true,
                    .text = "32 partitions of the source's quadrant; 255 leaves one as it is"}},
    .semantics = "dst[q, i] = src[q, mask[i]] in each quadrant q of 32 partitions; mask[i] = 255 leaves "
                 "dst[q, i]. Raw "
                 "bits; dst may be src.",
    .limits = "Equal dtypes and elements per partition. Active partitions (the larger count, rounded up to "
              "32): 96 or 128 "
              "start at 0, 64 at 0 or 64, 32 at a multiple of 32. The source has the partitions that the "
              "mask names.",
    .cost = "N cycles, 64 at least.",
    .cost_source = "NKI API pages up to SDK 2.26 (nc_stream_shuffle)",
    .example = "nisa.nc_stream_shuffle(dst=c, src=a, shuffle_mask=[0] * 32)",
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
