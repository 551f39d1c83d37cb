/* dma_compute: the sum of up to 16 tensors, made in the DMA engines in fp32 on the way. With a list of
 * rows it adds into the rows of a tensor in HBM (scatter), or adds rows of one to a tile (gather); the
 * sum's own old value is then one of the two sources. */
#include "neuron/instructions.h"
#include "neuron/transfer.h"

enum { DST, SRCS, REDUCE_OP, SCALES, UNIQUE, OOB_MODE };
enum { MOST_SOURCES = 16, PIECE = 1024 };

static fr_status trouble(const fr_neuron *core, const fr_neuron_call *call, fr_error *error, const char *what)
{
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_dma_compute_sources, error, "%s", what);
}

static bool same_elements_of(const fr_neuron_view *a, const fr_neuron_view *b)
{
    if (a->tensor != b->tensor || a->dtype != b->dtype || a->offset != b->offset ||
        a->partition != b->partition || a->partitions != b->partitions || a->dims != b->dims ||
        a->index != b->index)
        return false;
    for (int i = 0; i < a->dims; i++)
        if (a->size[i] != b->size[i] || (a->stride[i] != b->stride[i] && !(i == 0 && a->whole_rows)))
            return false;
    return true;
}

/* The list of rows of this call, or NULL. */
static const fr_neuron_view *rows_of(const fr_neuron_call *call)
{
    const fr_neuron_argument *srcs = &call->argument[SRCS];
    if (call->argument[DST].view.whole_rows)
        return &call->argument[DST].view;
    for (int i = 0; i < srcs->count; i++)
        if (srcs->views[i].whole_rows)
            return &srcs->views[i];
    return NULL;
}

/* The source that is not the sum's old value, of two; NULL when neither is dst. */
static const fr_neuron_view *addend_of(const fr_neuron_call *call)
{
    const fr_neuron_argument *srcs = &call->argument[SRCS];
    for (int i = 0; i < 2; i++)
        if (same_elements_of(&srcs->views[i], &call->argument[DST].view))
            return &srcs->views[1 - i];
    return NULL;
}

static bool repeats(const fr_neuron_view *rows)
{
    for (int64_t i = 0; i < rows->size[0]; i++)
        for (int64_t j = 0; j < i; j++)
            if (fr_neuron_index_value(rows, i) == fr_neuron_index_value(rows, j))
                return true;
    return false;
}

/* What the row `which` of a list of `rows` meets on the other side: a partition, or a row of HBM. */
static bool part_of(const fr_neuron_view *plain, int64_t rows, int64_t which, fr_neuron_view *part)
{
    *part = *plain;
    if (plain->partitions == rows) {
        part->partition = (int16_t)(plain->partition + which);
        part->partitions = 1;
        return true;
    }
    if (plain->partitions == 0 && plain->size[0] == rows) {
        part->offset += which * plain->stride[0];
        part->size[0] = 1;
        return true;
    }
    return false;
}

static fr_status check_rows(const fr_neuron *core, const fr_neuron_call *call, const fr_neuron_view *rows,
                            fr_error *error)
{
    const fr_neuron_argument *srcs = &call->argument[SRCS];
    const fr_neuron_view *addend = srcs->count == 2 ? addend_of(call) : NULL;
    fr_neuron_view part;
    bool skip = call->argument[OOB_MODE].number == 1, scatter = call->argument[DST].view.whole_rows;
    if (!addend)
        return trouble(core, call, error, "a list of rows takes two sources, one of them dst");
    if (scatter == addend->whole_rows)
        return trouble(core, call, error, "one of dst and the other source has a list of rows");
    if (!part_of(scatter ? addend : &call->argument[DST].view, rows->size[0], 0, &part))
        return trouble(core, call, error, "the other side has a partition for each listed row");
    if (call->argument[UNIQUE].number == 0)
        return trouble(core, call, error, "unique_indices=False is not supported by the chip");
    FR_TRY(fr_neuron_check_rows(core, call, rows, scatter ? "dst" : "srcs", skip, true, error));
    if (core->compute && scatter && repeats(rows))
        return trouble(core, call, error, "an index occurs twice");
    return FR_OK;
}

static fr_status check_numbers(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    const fr_neuron_argument *scales = &call->argument[SCALES];
    if (call->argument[REDUCE_OP].number != FR_NEURON_ADD)
        return trouble(core, call, error, "reduce_op must be add");
    if (scales->given && scales->count != call->argument[SRCS].count)
        return trouble(core, call, error, "a scale for each source");
    for (int i = 0; scales->given && i < scales->count; i++)
        if (scales->numbers[i] != 1)
            return trouble(core, call, error, "scales must be 1");
    return FR_OK;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    const fr_neuron_argument *srcs = &call->argument[SRCS];
    const fr_neuron_view *dst = &call->argument[DST].view, *rows;
    if (srcs->count < 1 || srcs->count > MOST_SOURCES)
        return trouble(core, call, error, "1 to 16 sources");
    FR_TRY(check_numbers(core, call, error));
    FR_TRY(fr_neuron_arithmetic(core, call, DST, error));
    rows = rows_of(call);
    for (int i = 0; i < srcs->count; i++) {
        if (fr_neuron_view_elements(&srcs->views[i]) != fr_neuron_view_elements(dst))
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_elements_match, error,
                                    "dst has %lld elements, source %d has %lld",
                                    (long long)fr_neuron_view_elements(dst), i,
                                    (long long)fr_neuron_view_elements(&srcs->views[i]));
        if (!rows && srcs->views[i].index)
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_descriptor_mode, error,
                                    "source %d has a dynamic offset, the descriptors are static", i);
    }
    if (dst->index && !dst->whole_rows)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_descriptor_mode, error,
                                "dst has a dynamic offset, the descriptors are static");
    return rows ? check_rows(core, call, rows, error) : FR_OK;
}

static void add_all(const fr_neuron_view *dst, const fr_neuron_view *srcs, int count)
{
    fr_neuron_walk to, from[MOST_SOURCES];
    fr_neuron_pattern pattern = fr_neuron_all(dst, NULL, 0);
    fr_neuron_walk_start(&to, &pattern);
    for (int s = 0; s < count; s++) {
        fr_neuron_pattern source = fr_neuron_all(&srcs[s], NULL, 0);
        fr_neuron_walk_start(&from[s], &source);
    }
    float sum[PIECE], term[PIECE];
    for (int64_t done = 0; done < pattern.elements; done += PIECE) {
        int64_t piece = pattern.elements - done < PIECE ? pattern.elements - done : PIECE;
        fr_neuron_walk_read(&from[0], srcs[0].dtype, sum, piece);
        for (int s = 1; s < count; s++) {
            fr_neuron_walk_read(&from[s], srcs[s].dtype, term, piece);
            for (int64_t i = 0; i < piece; i++)
                sum[i] += term[i];
        }
        fr_neuron_walk_write(&to, dst->dtype, sum, piece);
    }
}

static void add_rows(const fr_neuron_call *call, const fr_neuron_view *rows)
{
    const fr_neuron_view *dst = &call->argument[DST].view, *addend = addend_of(call);
    const fr_neuron_view *plain = dst->whole_rows ? addend : dst;
    for (int64_t i = 0; i < rows->size[0]; i++) {
        fr_neuron_view row, part;
        if (!part_of(plain, rows->size[0], i, &part) || !fr_neuron_listed_row(rows, i, &row))
            continue;
        fr_neuron_view both[2] = {dst->whole_rows ? row : part, dst->whole_rows ? part : row};
        add_all(&both[0], both, 2);
    }
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)core, (void)engine, (void)error;
    const fr_neuron_view *rows = rows_of(call);
    if (rows)
        add_rows(call, rows);
    else
        add_all(&call->argument[DST].view, call->argument[SRCS].views, call->argument[SRCS].count);
    return FR_OK;
}

/* Every source is read; before generation 4 the engines add at half their rate. */
static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)engine;
    const fr_neuron_argument *srcs = &call->argument[SRCS];
    for (int i = 0; i < srcs->count; i++)
        fr_neuron_price_transfer(core, &call->argument[DST].view, &srcs->views[i], cost);
    if (core->machine->generation < 4)
        cost->bytes *= 2;
    cost->flops = (double)(srcs->count - 1) * (double)fr_neuron_view_elements(&call->argument[DST].view);
    fr_neuron_price_descriptors(core, FR_NEURON_DESCRIPTORS_STATIC, FR_NEURON_ANY, false,
                                rows_of(call) != NULL, cost);
}

const fr_neuron_instruction fr_neuron_i_dma_compute = {
    .name = "dma_compute",
    .summary = "add tensors in the DMA engines, or add into rows",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_DMA),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "HBM or SBUF, may list its rows"},
         {.name = "srcs", .kind = FR_NEURON_READ_LIST, .required = true, .text = "1 to 16 of dst's size"},
         {.name = "reduce_op", .kind = FR_NEURON_OPERATOR, .required = true, .text = "add"},
         {.name = "scales", .kind = FR_NEURON_NUMBER_LIST, .text = "all 1, or absent"},
         {.name = "unique_indices",
          .kind = FR_NEURON_FLAG,
          .number = 1,
          .text = "must be true with a list of rows"},
         {.name = "oob_mode",
          .kind = FR_NEURON_CHOICE,
          .choices = FR_NEURON_OOB_MODES,
          .text = "a row or dynamic offset outside is an error, or skipped"}},
    .semantics = "dst = sum of srcs in fp32, then cast. With a list of rows on dst: dst[list] += the other "
                 "source; on a source: "
                 "dst += source[list].",
    .limits = "Equal element counts; add alone; scales of 1. Static addresses, but for a list of rows: two "
              "sources, one of them "
              "dst, unique indices.",
    .cost = "As one dma_copy per source; twice the bytes before generation 4.",
    .cost_source = "SDK dma_compute documentation (half rate before NeuronCore-v4)",
    .example = "h = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)\n"
               "nisa.dma_compute(dst=h, srcs=[a, b], reduce_op=nl.add)",
    .engine = fr_neuron_on_dma,
    .check = check,
    .execute = execute,
    .price = price,
};
