/* dma_transpose: a transfer that reverses the axes of its source. The axes permuted are those of the
 * source's shape, partitions first when it is on chip; with a list of rows, each row becomes a column. */
#include "neuron/instructions.h"
#include "neuron/transfer.h"

enum { DST, SRC, AXES, PRIORITY, DGE_MODE, OOB_MODE };

/* The permutation that belongs to a rank: all reversed, or of four the outer two swapped. */
static const int ORDERS[5][4] = {{0}, {0}, {1, 0}, {2, 1, 0}, {3, 1, 2, 0}};

static bool refused_axes(const fr_neuron_argument *axes, int rank)
{
    if (!axes->given)
        return false;
    if (axes->count != rank)
        return true;
    for (int i = 0; i < rank; i++)
        if (axes->numbers[i] != ORDERS[rank][i])
            return true;
    return false;
}

static fr_status check_shape(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    int64_t in[FR_NEURON_WALK_DIMS], out[FR_NEURON_WALK_DIMS];
    int rank = fr_neuron_shape(&call->argument[SRC].view, in),
        dst_rank = fr_neuron_shape(&call->argument[DST].view, out);
    if (rank < 2 || rank > 4 || refused_axes(&call->argument[AXES], rank))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_dma_transpose_shape, error,
                                "src has %d axes; (1, 0), (2, 1, 0) and (3, 1, 2, 0) exist", rank);
    bool same = dst_rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = out[i] == in[ORDERS[rank][i]];
    if (same)
        return FR_OK;
    return fr_neuron_refuse(
        core, call, FR_NEURON_RULE_dma_transpose_shape, error,
        "src is [%lld, ... %lld] of %d axes, dst [%lld, ... %lld] of %d is not its transpose",
        (long long)in[0], (long long)in[rank - 1], rank, (long long)out[0], (long long)out[dst_rank - 1],
        dst_rank);
}

static fr_status check_hardware(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    int64_t in[FR_NEURON_WALK_DIMS];
    int rank = fr_neuron_shape(&call->argument[SRC].view, in);
    int width = fr_neuron_dtype_bytes(call->argument[SRC].view.dtype);
    bool rows =
        rank == 2 ? in[0] == 16 : in[0] <= 16 && (in[0] & (in[0] - 1)) == 0 && in[0] * in[rank - 2] % 16 == 0;
    if (rows && in[rank - 1] <= 128 && width == 2)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_dma_transpose_shape, error,
                            "hwdge with %lld rows, %lld columns, %d-byte numbers", (long long)in[0],
                            (long long)in[rank - 1], width);
}

static fr_status check_indirect(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    const fr_neuron_view *src = &call->argument[SRC].view;
    int64_t in[FR_NEURON_WALK_DIMS];
    int rank = fr_neuron_shape(src, in), width = fr_neuron_dtype_bytes(src->dtype),
        list = src->index_partitions;
    FR_TRY(fr_neuron_generation_at_least(core, call, 3, "a transpose with a list of rows", error));
    const char *trouble = NULL;
    if (in[rank - 1] > 128 || width != 2)
        trouble = "at most 128 columns of 2-byte numbers";
    else if (rank == 4 && in[1] != 1 && in[2] != 1)
        trouble = "axis 1 or 2 of four must be 1";
    else if (in[0] % 16 != 0)
        trouble = "rows are a multiple of 16";
    else if (src->index->layout.dtype != FR_NEURON_UINT32)
        trouble = "indices are uint32";
    else if (list < 16 || list > 128 || list % 16 != 0 || (in[0] > list && list != 128))
        trouble = "16 to 128 indices in a column, a multiple of 16, 128 when there are more columns";
    return trouble ? fr_neuron_refuse(core, call, FR_NEURON_RULE_dma_transpose_shape, error,
                                      "%lld rows of %lld with %d indices in a column: %s", (long long)in[0],
                                      (long long)in[rank - 1], list, trouble)
                   : FR_OK;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    const fr_neuron_view *dst = &call->argument[DST].view, *src = &call->argument[SRC].view;
    fr_neuron_descriptors mode = (fr_neuron_descriptors)call->argument[DGE_MODE].number;
    FR_TRY(fr_neuron_memory_allowed(core, call, DST, FR_NEURON_IN(FR_NEURON_SBUF), error));
    FR_TRY(fr_neuron_same_dtype(core, call, DST, SRC, error));
    if (dst->index)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_indirect, error,
                                "dst cannot have a dynamic offset");
    FR_TRY(check_shape(core, call, error));
    FR_TRY(fr_neuron_check_priority(core, call, &call->argument[PRIORITY], error));
    FR_TRY(fr_neuron_check_descriptors(core, call, mode, false, src->index != NULL, src->whole_rows, error));
    if (mode == FR_NEURON_DESCRIPTORS_HARDWARE)
        FR_TRY(check_hardware(core, call, error));
    if (!src->whole_rows)
        return mode == FR_NEURON_DESCRIPTORS_SOFTWARE
                   ? fr_neuron_refuse(core, call, FR_NEURON_RULE_descriptor_mode, error,
                                      "swdge transposes a list of rows only")
                   : FR_OK;
    FR_TRY(check_indirect(core, call, error));
    return fr_neuron_check_rows(core, call, src, "src", call->argument[OOB_MODE].number == 1, true, error);
}

static void transpose_all(const fr_neuron_view *dst, const fr_neuron_view *src)
{
    int64_t size[FR_NEURON_WALK_DIMS];
    int rank = fr_neuron_shape(src, size);
    fr_neuron_pattern out = fr_neuron_all(dst, NULL, 0), in = fr_neuron_all(src, ORDERS[rank], 0);
    fr_neuron_walk to, from;
    fr_neuron_walk_start(&to, &out);
    fr_neuron_walk_start(&from, &in);
    fr_neuron_walk_copy(&to, dst->dtype, &from, src->dtype, out.elements);
}

/* Row i of the list becomes the elements of dst whose last index is i. */
static void transpose_rows(fr_neuron *core, const fr_neuron_view *dst, const fr_neuron_view *src)
{
    int64_t size[FR_NEURON_WALK_DIMS];
    int rank = fr_neuron_shape(src, size), last = dst->dims - 1;
    for (int64_t i = 0; i < src->size[0]; i++) {
        fr_neuron_view row, column = *dst;
        if (!fr_neuron_listed_row(src, i, &row))
            continue;
        column.offset += i * column.stride[last];
        column.size[last] = 1;
        fr_neuron_pattern out = fr_neuron_all(&column, NULL, 0), in = fr_neuron_all(&row, ORDERS[rank], 0);
        fr_neuron_walk to, from;
        fr_neuron_walk_start(&to, &out);
        fr_neuron_walk_start(&from, &in);
        fr_neuron_walk_copy(&to, dst->dtype, &from, src->dtype, out.elements);
        fr_neuron_wrote(core, &column);
    }
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    if (!call->argument[SRC].view.whole_rows) {
        transpose_all(&call->argument[DST].view, &call->argument[SRC].view);
        return FR_OK;
    }
    FR_TRY(fr_neuron_prepare(core, &call->argument[DST].view, error));
    transpose_rows(core, &call->argument[DST].view, &call->argument[SRC].view);
    return FR_OK;
}

/* The rate of the transposing path is the clock's affair (time_stream.c). */
static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)engine;
    const fr_neuron_view *src = &call->argument[SRC].view;
    cost->bytes = (double)fr_neuron_view_elements(src) * fr_neuron_dtype_bytes(src->dtype);
    cost->descriptors = fr_neuron_machine_of(core)->dma_engines;
    fr_neuron_price_descriptors(core, (fr_neuron_descriptors)call->argument[DGE_MODE].number, FR_NEURON_ANY,
                                false, src->whole_rows, cost);
}

const fr_neuron_instruction fr_neuron_i_dma_transpose = {
    .name = "dma_transpose",
    .summary = "transpose from HBM or SBUF into SBUF by the DMA engines",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_DMA),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF tile"},
         {.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "HBM or SBUF, may list its rows"},
         {.name = "axes", .kind = FR_NEURON_INTEGER_LIST, .text = "(1, 0), (2, 1, 0) or (3, 1, 2, 0)"},
         {.name = "priority", .kind = FR_NEURON_INTEGER, .text = "0 (highest) to 3, generation 4"},
         {.name = "dge_mode",
          .kind = FR_NEURON_CHOICE,
          .choices = FR_NEURON_DGE_MODES,
          .text = "who makes the descriptors"},
         {.name = "oob_mode",
          .kind = FR_NEURON_CHOICE,
          .choices = FR_NEURON_OOB_MODES,
          .text = "a row or dynamic offset outside is an error, or skipped"}},
    .semantics = "dst = src with its axes reversed (of four: the outer two swapped). With a list of rows, "
                 "row list[i] becomes "
                 "column i; a list of several columns is read column by column.",
    .limits = "Equal dtypes. hwdge: 16 rows (3 and 4 axes: 1, 2, 4, 8 or 16, times the next-to-last axis a "
              "multiple of 16), at "
              "most 128 columns, 2 bytes. List of rows: HBM source, generation 3 on, rows a multiple of 16, "
              "at most 128 "
              "columns, 2 bytes, uint32 indices.",
    .cost =
        "As dma_copy, at the rate of the transposing path: on trn2 335 GB/s from HBM, 215 GB/s from SBUF.",
    .cost_source = "constants in AWS's nkipy (hardware.py)",
    .example = "t = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.dma_transpose(dst=t, src=a, axes=(1, 0))",
    .engine = fr_neuron_on_dma,
    .check = check,
    .execute = execute,
    .price = price,
};
