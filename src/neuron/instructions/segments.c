/* sequence_bounds and nonzero_with_count: where packed sequences begin and end, and which tokens are there: the two index
 * computations of GpSimd that ragged batches need. */
#include "neuron/core.h"
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

enum { BOUNDS_DST, BOUNDS_IDS };
enum { DST, SRC, OFFSET, PADDING };
enum { GROUP = 16, WORDS = FR_NEURON_OF(FR_NEURON_FLOAT32) | FR_NEURON_OF(FR_NEURON_INT32) };

/* ---- sequence_bounds ------------------------------------------------------------------------------------------ */

static fr_status check_bounds(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                              fr_error *error)
{
    (void)engine;
    int64_t n = fr_neuron_view_free(&call->argument[BOUNDS_IDS].view);
    FR_TRY(fr_neuron_dtype_allowed(core, call, BOUNDS_DST, WORDS, error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, BOUNDS_IDS, WORDS, error));
    FR_TRY(fr_neuron_same_partitions(core, call, BOUNDS_DST, BOUNDS_IDS, error));
    if (call->argument[BOUNDS_IDS].view.partitions != 1)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_partitions_match, error,
                                "segment_ids has %d partitions, not 1",
                                call->argument[BOUNDS_IDS].view.partitions);
    return fr_neuron_elements_within(core, call, BOUNDS_DST, 2 * n, 2 * n, error);
}

/* Starts in the first half of `out`, ends (exclusive) in the second. A segment is a run of equal ids. */
static void bounds(const float *id, int64_t n, float *out)
{
    for (int64_t first = 0, last; first < n; first = last) {
        last = first + 1;
        while (last < n && id[last] == id[first])
            last++;
        for (int64_t i = first; i < last; i++) {
            out[i] = id[first] == 0 ? (float)n : (float)first;
            out[n + i] = id[first] == 0 ? -1.0f : (float)last;
        }
    }
}

static fr_status execute_bounds(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                fr_error *error)
{
    (void)engine;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[BOUNDS_DST].view);
    fr_neuron_lanes ids = fr_neuron_lanes_of(core, &call->argument[BOUNDS_IDS].view);
    float *row = fr_neuron_scratch_row(core, &ids), *out = fr_neuron_scratch_row(core, &dst);
    if (!row || !out)
        return fr_error_memory(error, (size_t)ids.row.elements * 12, "rows");
    const float *id = fr_neuron_row(&ids, 0, row);
    for (int64_t i = 0; i < ids.row.elements; i++)
        if (!(id[i] >= 0))
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_value, error,
                                    "segment_ids[%lld] is %g, ids are not negative", (long long)i,
                                    (double)id[i]);
    bounds(id, ids.row.elements, out);
    fr_neuron_put_row(&dst, 0, out);
    return FR_OK;
}

static void price_bounds(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = 150 + 4 * fr_neuron_extent(call, BOUNDS_IDS);
}

/* ---- nonzero_with_count --------------------------------------------------------------------------------------- */

/* Of src only the first partition of each group is read, and need hold data. */
static fr_status check_read(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    const fr_neuron_view *src = &call->argument[SRC].view;
    const fr_neuron_layout *layout = fr_neuron_tensor_layout(src->tensor);
    int start = src->partition + (layout->placed ? layout->start_partition : 0);
    if (start % (2 * GROUP) != 0)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_partition_start, error,
                                "src: %d partitions starting at %d", src->partitions, start);
    for (int p = 0; core->compute && p < src->partitions; p += GROUP) {
        fr_neuron_view row = *src;
        row.partition = (int16_t)(row.partition + p);
        row.partitions = 1;
        if (!fr_neuron_written(core, &row))
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_uninitialised_read, error,
                                    "src: partition %d was not written", p);
    }
    return FR_OK;
}

static fr_status check_nonzero(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                               fr_error *error)
{
    (void)engine;
    int64_t n = fr_neuron_view_free(&call->argument[SRC].view);
    FR_TRY(fr_neuron_dtype_allowed(core, call, DST, FR_NEURON_OF(FR_NEURON_INT32), error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, SRC, WORDS, error));
    FR_TRY(fr_neuron_same_partitions(core, call, DST, SRC, error));
    FR_TRY(fr_neuron_elements_within(core, call, DST, n + 1, n + 1, error));
    FR_TRY(check_read(core, call, error));
    FR_TRY(fr_neuron_whole_within(core, call, OFFSET, INT32_MIN, INT32_MAX, error));
    return fr_neuron_whole_within(core, call, PADDING, INT32_MIN, INT32_MAX, error);
}

static void nonzero_row(const uint32_t *words, bool is_float, int64_t n, int32_t offset, int32_t padding,
                        int32_t *out)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) /* minus zero is zero */
        if (is_float ? words[i] << 1 != 0 : words[i] != 0)
            out[found++] = (int32_t)((uint32_t)i + (uint32_t)offset);
    out[n] = (int32_t)found;
    for (; found < n; found++)
        out[found] = padding;
}

static fr_status execute_nonzero(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                 fr_error *error)
{
    (void)engine;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes src = fr_neuron_lanes_of(core, &call->argument[SRC].view);
    void *row = fr_neuron_scratch_row(core, &src);
    int32_t *out = (int32_t *)fr_neuron_scratch_row(core, &dst);
    if (!row || !out)
        return fr_error_memory(error, (size_t)src.row.elements * 8, "rows");
    FR_TRY(fr_neuron_prepare(core, &call->argument[DST].view, error));
    for (int p = 0; p < src.partitions; p += GROUP) {
        nonzero_row(fr_neuron_raw(&src, p, row), src.dtype == FR_NEURON_FLOAT32, src.row.elements,
                    (int32_t)call->argument[OFFSET].number, (int32_t)call->argument[PADDING].number, out);
        fr_neuron_put_raw(&dst, p, out);
        fr_neuron_wrote_some(core, &call->argument[DST].view, p, 0, dst.row.elements);
    }
    return FR_OK;
}

static void price_nonzero(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                          fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = 150 + 2 * fr_neuron_extent(call, SRC);
}

const fr_neuron_instruction fr_neuron_i_sequence_bounds = {
    .name = "sequence_bounds",
    .summary = "begin and end of the segment of every element",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "[1, 2, n] float32 or int32"},
         {.name = "segment_ids",
          .kind = FR_NEURON_READ,
          .required = true,
          .text = "[1, n] float32 or int32"}},
    .semantics = "dst[0, 0, i] = first index of the run of equal ids that i is in, dst[0, 1, i] = one past "
                 "its last. Id 0 is "
                 "padding: n and -1.",
    .limits = "SBUF, one partition, ids not negative.",
    .cost = "150 + 4n cycles (guess).",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "s = nl.ndarray((1, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
               "d = nl.ndarray((1, 2, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.memset(dst=s, value=1)\n"
               "nisa.sequence_bounds(dst=d, segment_ids=s)",
    .engine = fr_neuron_on_gpsimd,
    .check = check_bounds,
    .execute = execute_bounds,
    .price = price_bounds,
};

const fr_neuron_instruction fr_neuron_i_nonzero_with_count = {
    .name = "nonzero_with_count",
    .summary = "indices of the nonzero elements, and how many there are",
    .least_generation = 3,
    .engines = FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters =
        {{.name = "dst",
          .kind = FR_NEURON_UPDATE,
          .required = true,
          .text = "int32, one element more than src"},
         {.name = "src",
          .kind = FR_NEURON_READ,
          .required = true,
          .scattered = true,
          .text = "float32 or int32"},
         {.name = "index_offset", .kind = FR_NEURON_INTEGER, .text = "added to the indices"},
         {.name = "padding_val", .kind = FR_NEURON_INTEGER, .number = -1, .text = "fills the rest"}},
    .semantics =
        "In partitions 0, 16, 32, ... of the tile: dst = indices of the nonzero elements of src plus "
        "index_offset, "
        "then padding_val, and the count as the last element. Other partitions of dst are left alone.",
    .limits = "SBUF. dst has one element per partition more than src.",
    .cost = "150 + 2N cycles (guess).",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "d = nl.ndarray((128, 65), dtype=nl.int32, buffer=nl.sbuf)\n"
               "nisa.nonzero_with_count(dst=d, src=a)",
    .engine = fr_neuron_on_gpsimd,
    .check = check_nonzero,
    .execute = execute_nonzero,
    .price = price_nonzero,
};
