/* nc_n_gather and local_gather: pick elements of partitions by index, on GpSimd.
 *
 * nc_n_gather: every partition has its own indices into its own row. local_gather: the sixteen partitions of a GpSimd core
 * share one list, written down the partitions first (index i is in partition i % 16, column i / 16), and each index means
 * the same place in all sixteen rows. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

#include <string.h>

enum { N_DST, N_DATA, N_INDICES };
enum { DST, SRC, INDEX, EACH, VALID };
enum { GROUP = 16, INDICES_MOST = 4096, SPLIT = 512 };

/* ---- nc_n_gather ---------------------------------------------------------------------------------------------- */

static fr_status check_n(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    FR_TRY(fr_neuron_dtype_allowed(core, call, N_INDICES, FR_NEURON_OF(FR_NEURON_UINT32), error));
    FR_TRY(fr_neuron_same_dtype(core, call, N_DST, N_DATA, error));
    FR_TRY(fr_neuron_same_partitions(core, call, N_DATA, N_INDICES, error));
    return fr_neuron_same_elements(core, call, N_DST, N_INDICES, error);
}

static void pick(void *out, const void *row, const uint32_t *index, int64_t count, int width)
{
    for (int64_t i = 0; width == 4 && i < count; i++)
        ((uint32_t *)out)[i] = ((const uint32_t *)row)[index[i]];
    for (int64_t i = 0; width == 2 && i < count; i++)
        ((uint16_t *)out)[i] = ((const uint16_t *)row)[index[i]];
    for (int64_t i = 0; width == 1 && i < count; i++)
        ((uint8_t *)out)[i] = ((const uint8_t *)row)[index[i]];
}

static fr_status refuse_index(const fr_neuron *core, const fr_neuron_call *call, int p, uint32_t index,
                              int64_t size, fr_error *error)
{
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_index_bounds, error,
                            "partition %d asks for element %u of %lld", p, index, (long long)size);
}

static fr_status execute_n(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                           fr_error *error)
{
    (void)engine;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[N_DST].view);
    fr_neuron_lanes data = fr_neuron_lanes_of(core, &call->argument[N_DATA].view);
    fr_neuron_lanes indices = fr_neuron_lanes_of(core, &call->argument[N_INDICES].view);
    int64_t count = indices.row.elements;
    void *row = fr_neuron_scratch_row(core, &data), *index = fr_neuron_scratch_row(core, &indices);
    void *out = fr_neuron_scratch_row(core, &dst);
    if (!row || !index || !out)
        return fr_error_memory(error, (size_t)(data.row.elements + 2 * count) * 4, "rows");
    for (int p = 0; p < indices.partitions; p++) {
        const uint32_t *i = fr_neuron_raw(&indices, p, index);
        for (int64_t k = 0; k < count; k++)
            if (i[k] >= data.row.elements)
                return refuse_index(core, call, p, i[k], data.row.elements, error);
    }
    for (int p = 0; p < indices.partitions; p++) {
        pick(out, fr_neuron_raw(&data, p, row), fr_neuron_raw(&indices, p, index), count, data.row.width);
        fr_neuron_put_raw(&dst, p, out);
    }
    return FR_OK;
}

static void price_n(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                    fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    int64_t count = fr_neuron_view_free(&call->argument[N_DST].view);
    cost->cycles = 150.0 * (double)((count + SPLIT - 1) / SPLIT) + 2.0 * (double)count;
}

/* ---- local_gather --------------------------------------------------------------------------------------------- */

static int64_t listed(const fr_neuron_call *call) /* indices of a group */
{
    return GROUP * fr_neuron_view_free(&call->argument[INDEX].view);
}

static int64_t valid(const fr_neuron_call *call)
{
    return call->argument[VALID].given ? (int64_t)call->argument[VALID].number : listed(call);
}

static fr_status check_local(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_error *error)
{
    (void)engine;
    int partitions = call->argument[SRC].view.partitions, each = (int)call->argument[EACH].number;
    FR_TRY(fr_neuron_dtype_allowed(core, call, INDEX, FR_NEURON_OF(FR_NEURON_UINT16), error));
    FR_TRY(fr_neuron_same_dtype(core, call, DST, SRC, error));
    FR_TRY(fr_neuron_same_partitions(core, call, DST, SRC, error));
    if (partitions % GROUP != 0 || call->argument[INDEX].view.partitions != partitions)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_gather, error,
                                "src_buffer has %d partitions, index %d", partitions,
                                call->argument[INDEX].view.partitions);
    if (each < 1 || each > 32 || (each & (each - 1)) != 0 || (double)each != call->argument[EACH].number)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_gather, error, "num_elem_per_idx is %g",
                                call->argument[EACH].number);
    if (valid(call) < 1 || valid(call) > INDICES_MOST || valid(call) > listed(call))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_gather, error,
                                "%lld valid indices of %lld a group", (long long)valid(call),
                                (long long)listed(call));
    if (fr_neuron_view_free(&call->argument[DST].view) == valid(call) * each)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_elements_match, error,
                            "dst has %lld elements per partition, %lld are gathered",
                            (long long)fr_neuron_view_free(&call->argument[DST].view),
                            (long long)(valid(call) * each));
}

/* The list of the group that begins at partition p, each index spread over its consecutive elements. */
static fr_status group_list(fr_neuron *core, const fr_neuron_call *call, const fr_neuron_lanes *index, int p,
                            int64_t elements, uint16_t *raw, uint32_t *list, fr_error *error)
{
    int each = (int)call->argument[EACH].number;
    int64_t count = valid(call);
    for (int lane = 0; lane < GROUP; lane++) {
        const uint16_t *column = fr_neuron_raw(index, p + lane, raw);
        for (int64_t i = lane; i < count; i += GROUP) {
            uint32_t first = column[i / GROUP];
            if ((int64_t)first + each > elements)
                return refuse_index(core, call, p + lane, first, elements, error);
            for (int k = 0; k < each; k++)
                list[i * each + k] = first + (uint32_t)k;
        }
    }
    return FR_OK;
}

static fr_status execute_local(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                               fr_error *error)
{
    (void)engine;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes src = fr_neuron_lanes_of(core, &call->argument[SRC].view);
    fr_neuron_lanes index = fr_neuron_lanes_of(core, &call->argument[INDEX].view);
    int64_t count = dst.row.elements, groups = src.partitions / GROUP;
    void *row = fr_neuron_scratch_row(core, &src), *out = fr_neuron_scratch_row(core, &dst);
    uint16_t *raw = (uint16_t *)fr_neuron_scratch_row(core, &index);
    uint32_t *lists = fr_neuron_scratch(core, groups * count * 4);
    if (!row || !out || !raw || !lists)
        return fr_error_memory(error, (size_t)(groups * count) * 4, "lists of indices");
    for (int64_t g = 0; g < groups; g++)
        FR_TRY(
            group_list(core, call, &index, (int)g * GROUP, src.row.elements, raw, lists + g * count, error));
    for (int p = 0; p < src.partitions; p++) {
        pick(out, fr_neuron_raw(&src, p, row), lists + p / GROUP * count, count, src.row.width);
        fr_neuron_put_raw(&dst, p, out);
    }
    return FR_OK;
}

static void price_local(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                        fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    const double t = 4;
    double each = call->argument[EACH].number, bytes = fr_neuron_dtype_bytes(call->argument[SRC].view.dtype);
    double together = 4 / bytes < each ? 4 / bytes : each;
    double c = (28 + t * each) / (t * each) / together;
    cost->cycles = 150 + (double)valid(call) * each / c;
}

const fr_neuron_instruction fr_neuron_i_nc_n_gather = {
    .name = "nc_n_gather",
    .summary = "each partition picks elements of its own row",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF tile of data's dtype"},
         {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "SBUF tile"},
         {.name = "indices", .kind = FR_NEURON_READ, .required = true, .text = "uint32 tile of dst's size"}},
    .semantics = "dst[p, i] = data[p, indices[p, i]], free axes flattened. Raw bits.",
    .limits = "SBUF, equal partitions. Indices are uint32 and inside the row.",
    .cost = "150 ceil(N / 512) + 2N cycles with N elements of dst (guess; the page says that 512 elements "
            "make one group of "
            "instructions).",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "i = nl.ndarray((128, 64), dtype=nl.uint32, buffer=nl.sbuf)\n"
               "nisa.iota(dst=i, pattern=[[-1, 64]], offset=63)\n"
               "nisa.nc_n_gather(dst=c, data=a, indices=i)",
    .engine = fr_neuron_on_gpsimd,
    .check = check_n,
    .execute = execute_n,
    .price = price_n,
};

const fr_neuron_instruction fr_neuron_i_local_gather = {
    .name = "local_gather",
    .summary = "groups of 16 partitions pick the same elements of their rows",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters =
        {{.name = "dst",
          .kind = FR_NEURON_WRITE,
          .required = true,
          .text = "SBUF tile of src_buffer's dtype"},
         {.name = "src_buffer", .kind = FR_NEURON_READ, .required = true, .text = "SBUF tile"},
         {.name = "index", .kind = FR_NEURON_READ, .required = true, .text = "uint16 tile"},
         {.name = "num_elem_per_idx", .kind = FR_NEURON_INTEGER, .number = 1, .text = "1, 2, 4, 8, 16 or 32"},
         {.name = "num_valid_indices", .kind = FR_NEURON_INTEGER, .text = "per group; all when absent"}},
    .semantics = "In each group of 16 partitions the indices are read partition first: index i is index[i % "
                 "16, i / 16]. Then "
                 "dst[p, i * E + e] = src_buffer[p, index_i + e] for all 16 partitions, E = "
                 "num_elem_per_idx. Raw bits.",
    .limits = "SBUF. Partitions of src_buffer and index are equal and a multiple of 16; at most 4096 indices "
              "a group; each "
              "inside the row.",
    .cost = "150 + V E / C cycles, C = ((28 + 4E) / 4E) / min(4 / bytes, E), V valid indices.",
    .cost_source = "NKI API pages up to SDK 2.26 (local_gather)",
    .example = "i = nl.ndarray((128, 4), dtype=nl.uint16, buffer=nl.sbuf)\n"
               "nisa.memset(dst=i, value=3)\n"
               "nisa.local_gather(dst=c, src_buffer=a, index=i)",
    .engine = fr_neuron_on_gpsimd,
    .check = check_local,
    .execute = execute_local,
    .price = price_local,
};
