/* dma_copy: any elements of HBM or SBUF to any others, by the DMA engines.
 *
 * Both sides are flattened in the order of their patterns; shapes may differ as long as the counts agree.
 * One side may take its rows from a list of indices (gather or scatter), either side may have a dynamic
 * offset. */
#include "neuron/instructions.h"
#include "neuron/transfer.h"

enum { DST, SRC, PRIORITY, OOB_MODE, DGE_MODE, ENGINE };

static bool has_rows(const fr_neuron_call *call)
{
    return call->argument[DST].view.whole_rows || call->argument[SRC].view.whole_rows;
}

static bool casts(const fr_neuron_call *call)
{
    return call->argument[DST].view.dtype != call->argument[SRC].view.dtype;
}

static fr_neuron_descriptors mode_of(const fr_neuron_call *call)
{
    return (fr_neuron_descriptors)call->argument[DGE_MODE].number;
}

static fr_status check_modes(const fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    bool dynamic = call->argument[DST].view.index || call->argument[SRC].view.index;
    fr_neuron_engine engine = (fr_neuron_engine)call->argument[ENGINE].number;
    FR_TRY(fr_neuron_check_priority(core, call, &call->argument[PRIORITY], error));
    FR_TRY(
        fr_neuron_check_descriptors(core, call, mode_of(call), casts(call), dynamic, has_rows(call), error));
    if (engine == FR_NEURON_ANY)
        return FR_OK;
    if (mode_of(call) != FR_NEURON_DESCRIPTORS_HARDWARE ||
        (engine != FR_NEURON_SYNC && engine != FR_NEURON_SCALAR))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_descriptor_mode, error,
                                "engine %s: an engine is named with hwdge only, and is sync or scalar",
                                fr_neuron_engine_name(engine));
    return FR_OK;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    (void)engine;
    const fr_neuron_view *dst = &call->argument[DST].view, *src = &call->argument[SRC].view;
    int64_t out = fr_neuron_view_elements(dst), in = fr_neuron_view_elements(src);
    if (out != in)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_elements_match, error,
                                "dst has %lld elements, src has %lld", (long long)out, (long long)in);
    if (casts(call)) {
        FR_TRY(fr_neuron_arithmetic(core, call, DST, error));
        FR_TRY(fr_neuron_arithmetic(core, call, SRC, error));
    }
    if (dst->whole_rows && src->whole_rows)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_indirect, error,
                                "dst and src both have a list of rows");
    bool skip = call->argument[OOB_MODE].number == 1;
    FR_TRY(fr_neuron_check_rows(core, call, dst, "dst", skip, false, error));
    FR_TRY(fr_neuron_check_rows(core, call, src, "src", skip, true, error));
    return check_modes(core, call, error);
}

/* Gather or scatter: a row at a time; a row outside is skipped, and with it the elements it would have
 * met. */
static void copy_rows(fr_neuron *core, const fr_neuron_view *rows, const fr_neuron_view *plain, bool scatter)
{
    fr_neuron_pattern all = fr_neuron_all(plain, NULL, 0);
    fr_neuron_walk walk, row_walk, skipped;
    fr_neuron_walk_start(&walk, &all);
    int64_t count = fr_neuron_view_elements(rows) / rows->size[0], lane = fr_neuron_view_free(plain);
    for (int64_t i = 0; i < rows->size[0]; i++) {
        fr_neuron_view row;
        bool inside = fr_neuron_listed_row(rows, i, &row);
        fr_neuron_pattern one = fr_neuron_all(inside ? &row : plain, NULL, 0);
        fr_neuron_walk_start(&row_walk, &one);
        if (!inside) { /* move the plain side on by copying it onto itself */
            skipped = walk;
            fr_neuron_walk_copy(&walk, plain->dtype, &skipped, plain->dtype, count);
            continue;
        }
        if (scatter) {
            fr_neuron_walk_copy(&row_walk, row.dtype, &walk, plain->dtype, count);
            fr_neuron_wrote(core, &row);
            continue;
        }
        fr_neuron_walk_copy(&walk, plain->dtype, &row_walk, row.dtype, count);
        for (int64_t e = i * count; e < (i + 1) * count;) {
            int64_t part = lane - e % lane < (i + 1) * count - e ? lane - e % lane : (i + 1) * count - e;
            fr_neuron_wrote_some(core, plain, (int)(e / lane), e % lane, part);
            e += part;
        }
    }
}

/* Both sides in one memory may overlap: read everything before writing. */
static bool may_overlap(const fr_neuron_view *a, const fr_neuron_view *b)
{
    return a->tensor == b->tensor || (a->tensor->layout.placed && b->tensor->layout.placed);
}

static fr_status copy_all(fr_neuron *core, const fr_neuron_view *dst, const fr_neuron_view *src,
                          fr_error *error)
{
    fr_neuron_pattern out = fr_neuron_all(dst, NULL, 0), in = fr_neuron_all(src, NULL, 0);
    fr_neuron_walk from, to;
    if (may_overlap(dst, src)) {
        void *copy = fr_neuron_scratch(core, in.elements * in.width);
        if (!copy)
            return fr_error_memory(error, (size_t)(in.elements * in.width), "a transfer");
        fr_neuron_gather(&in, copy);
        in = (fr_neuron_pattern){
            .base = copy, .dims = 1, .width = in.width, .contiguous = true, .elements = in.elements};
        in.size[0] = in.elements;
        in.stride[0] = in.width;
    }
    fr_neuron_walk_start(&from, &in);
    fr_neuron_walk_start(&to, &out);
    fr_neuron_walk_copy(&to, dst->dtype, &from, src->dtype, out.elements);
    return FR_OK;
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    const fr_neuron_view *dst = &call->argument[DST].view, *src = &call->argument[SRC].view;
    if (!has_rows(call))
        return copy_all(core, dst, src, error);
    FR_TRY(fr_neuron_prepare(core, dst, error));
    copy_rows(core, dst->whole_rows ? dst : src, dst->whole_rows ? src : dst, dst->whole_rows);
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)engine;
    fr_neuron_price_transfer(core, &call->argument[DST].view, &call->argument[SRC].view, cost);
    fr_neuron_price_descriptors(core, mode_of(call), (fr_neuron_engine)call->argument[ENGINE].number,
                                casts(call), has_rows(call), cost);
}

const fr_neuron_instruction fr_neuron_i_dma_copy = {
    .name = "dma_copy",
    .summary = "copy between HBM and SBUF, in any pattern, by the DMA engines",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_DMA),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "HBM or SBUF, may list its rows"},
         {.name = "src", .kind = FR_NEURON_READ, .required = true, .text = "HBM or SBUF, may list its rows"},
         {.name = "priority", .kind = FR_NEURON_INTEGER, .text = "0 (highest) to 3, generation 4"},
         {.name = "oob_mode",
          .kind = FR_NEURON_CHOICE,
          .choices = FR_NEURON_OOB_MODES,
          .text = "a row or dynamic offset outside is an error, or skipped"},
         {.name = "dge_mode",
          .kind = FR_NEURON_CHOICE,
          .choices = FR_NEURON_DGE_MODES,
          .text = "who makes the descriptors"},
         {.name = "engine", .kind = FR_NEURON_ENGINE, .text = "sync or scalar, with hwdge"}},
    .semantics = "dst[i] = src[i] in the order of both patterns. Different dtypes pass through fp32. A list "
                 "of rows on src "
                 "gathers, on dst scatters; a skipped row leaves dst as it was.",
    .limits =
        "Equal element counts. HBM and SBUF only. hwdge: generation 3 on, no cast, no list of rows. A list "
        "of rows: "
        "tensor in HBM, indices in SBUF, dge_mode unknown or swdge. Static descriptors: no dynamic offset.",
    .cost = "Issue on the trigger's queue, start latency, then per DMA engine a fixed time per descriptor "
            "plus its bytes; rows "
            "are spread over the 16 engines. A descriptor is a run contiguous on both sides, at most 64 KiB.",
    .cost_source = "SDK DMA overview (timelines), trainium2 architecture guide; descriptor time fitted to "
                   "published rates",
    .example = "h = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)\n"
               "nisa.dma_copy(dst=h, src=a)\n"
               "nisa.dma_copy(dst=c, src=h)",
    .pure = true,
    .engine = fr_neuron_on_dma,
    .check = check,
    .execute = execute,
    .price = price,
};
