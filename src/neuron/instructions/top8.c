/* max8, nc_find_index8, nc_match_replace8: eight values of a row at a time, what top-k over a vocabulary is built from.
 *
 * All three compare in fp32. Equal values are told apart by order: find_index8 gives the k-th duplicate the k-th place
 * from the left; match_replace8 works from value 7 down to 0, each taking the first place not yet taken, so duplicates
 * pair up the other way round. A value that is not there gets an index of all ones. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

#include <math.h>

enum { EIGHT = 8, MOST = 16384, BLOCK = 32 };
enum { MAX_DST, MAX_SRC };
enum { FIND_DST, FIND_DATA, FIND_VALS };
enum { REPLACE_DST, REPLACE_DATA, REPLACE_VALS, REPLACE_IMM, REPLACE_INDEX };
enum { INDICES = FR_NEURON_OF(FR_NEURON_UINT16) | FR_NEURON_OF(FR_NEURON_UINT32) };

/* Eight elements in `small`, 8 to 16384 in `data`. */
static fr_status check_sizes(const fr_neuron *core, const fr_neuron_call *call, int small, int data,
                             fr_error *error)
{
    FR_TRY(fr_neuron_arithmetic(core, call, data, error));
    FR_TRY(fr_neuron_same_partitions(core, call, small, data, error));
    FR_TRY(fr_neuron_elements_within(core, call, small, EIGHT, EIGHT, error));
    return fr_neuron_elements_within(core, call, data, EIGHT, MOST, error);
}

static void put_indices(const fr_neuron_lanes *lanes, int p, const uint32_t *indices)
{
    uint32_t raw[EIGHT];
    fr_neuron_narrow_words(raw, indices, lanes->row.width, EIGHT);
    fr_neuron_put_raw(lanes, p, raw);
}

/* ---- max8 ----------------------------------------------------------------------------------------------------- */

static fr_status check_max(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                           fr_error *error)
{
    (void)engine;
    FR_TRY(fr_neuron_arithmetic(core, call, MAX_DST, error));
    return check_sizes(core, call, MAX_DST, MAX_SRC, error);
}

static void insert(float x, float top[EIGHT])
{
    if (!(x > top[EIGHT - 1]))
        return;
    int k = EIGHT - 1;
    for (; k > 0 && x > top[k - 1]; k--)
        top[k] = top[k - 1];
    top[k] = x;
}

static void largest(const float *row, int64_t count, float top[EIGHT])
{
    for (int k = 0; k < EIGHT; k++)
        top[k] = -INFINITY;
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t last = i + BLOCK < count ? i + BLOCK : count;
        int any = 0; /* most blocks have nothing above the eighth: one vector comparison each */
        for (int64_t j = i; j < last; j++)
            any |= row[j] > top[EIGHT - 1];
        for (int64_t j = i; any && j < last; j++)
            insert(row[j], top);
    }
}

static fr_status execute_max(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_error *error)
{
    (void)engine;
    static const int inputs[] = {MAX_SRC};
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[MAX_DST].view);
    fr_neuron_streams s;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, -1, inputs, 1, error));
    while (fr_neuron_streams_next(&s, &p))
        for (int64_t r = 0; r < s.block.rows; r++) {
            float top[EIGHT];
            largest(s.in[0].at + r * s.in[0].stride, s.count, top);
            fr_neuron_put_row(&dst, p + (int)r, top);
        }
    return FR_OK;
}

static void price_max(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                      fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = fr_neuron_extent(call, MAX_SRC);
}

/* ---- nc_find_index8 ------------------------------------------------------------------------------------------- */

static fr_status check_find(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                            fr_error *error)
{
    (void)engine;
    FR_TRY(fr_neuron_dtype_allowed(core, call, FIND_DST, INDICES, error));
    FR_TRY(check_sizes(core, call, FIND_DST, FIND_DATA, error));
    FR_TRY(fr_neuron_arithmetic(core, call, FIND_VALS, error));
    return check_sizes(core, call, FIND_VALS, FIND_DATA, error);
}

static uint32_t occurrence(const float *row, int64_t count, float value, int skip)
{
    for (int64_t i = 0; i < count; i++)
        if (row[i] == value && skip-- == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

static fr_status execute_find(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                              fr_error *error)
{
    (void)engine;
    static const int inputs[] = {FIND_DATA};
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[FIND_DST].view);
    fr_neuron_lanes vals = fr_neuron_lanes_of(core, &call->argument[FIND_VALS].view);
    fr_neuron_streams s;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, -1, inputs, 1, error));
    while (fr_neuron_streams_next(&s, &p))
        for (int64_t r = 0; r < s.block.rows; r++) {
            float scratch[EIGHT];
            const float *value = fr_neuron_row(&vals, p + (int)r, scratch);
            uint32_t found[EIGHT];
            for (int k = 0; k < EIGHT; k++) {
                int before = 0;
                for (int j = 0; j < k; j++)
                    before += value[j] == value[k];
                found[k] = occurrence(s.in[0].at + r * s.in[0].stride, s.count, value[k], before);
            }
            put_indices(&dst, p + (int)r, found);
        }
    return FR_OK;
}

static void price_find(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = fr_neuron_extent(call, FIND_DATA);
}

/* ---- nc_match_replace8 ---------------------------------------------------------------------------------------- */

static fr_status check_replace(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                               fr_error *error)
{
    (void)engine;
    FR_TRY(fr_neuron_arithmetic(core, call, REPLACE_DST, error));
    FR_TRY(fr_neuron_arithmetic(core, call, REPLACE_VALS, error));
    FR_TRY(check_sizes(core, call, REPLACE_VALS, REPLACE_DATA, error));
    FR_TRY(fr_neuron_same_elements(core, call, REPLACE_DST, REPLACE_DATA, error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, REPLACE_INDEX, INDICES, error));
    return fr_neuron_operand(call, REPLACE_INDEX)
               ? check_sizes(core, call, REPLACE_INDEX, REPLACE_DATA, error)
               : FR_OK;
}

/* `row` is what is searched, `out` what is written: a replaced place is not found again even if imm is a value. */
static void replace_row(const float *row, int64_t count, const float *value, float imm, float *out,
                        uint32_t *found)
{
    for (int k = EIGHT - 1; k >= 0; k--) {
        int taken = 0;
        for (int j = k + 1; j < EIGHT; j++)
            taken += value[j] == value[k];
        found[k] = occurrence(row, count, value[k], taken);
        if (found[k] != UINT32_MAX)
            out[found[k]] = imm;
    }
}

static fr_status execute_replace(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                 fr_error *error)
{
    (void)engine;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[REPLACE_DST].view);
    fr_neuron_lanes data = fr_neuron_lanes_of(core, &call->argument[REPLACE_DATA].view);
    fr_neuron_lanes vals = fr_neuron_lanes_of(core, &call->argument[REPLACE_VALS].view);
    fr_neuron_lanes index = {.partitions = 0};
    if (fr_neuron_operand(call, REPLACE_INDEX))
        index = fr_neuron_lanes_of(core, &call->argument[REPLACE_INDEX].view);
    float *scratch = fr_neuron_scratch_row(core, &data), *out = fr_neuron_scratch_row(core, &data);
    if (!scratch || !out)
        return fr_error_memory(error, (size_t)data.row.elements * 8, "rows");
    for (int p = 0; p < data.partitions; p++) {
        float few[EIGHT];
        uint32_t found[EIGHT];
        const float *row = fr_neuron_row(&data, p, scratch);
        for (int64_t i = 0; i < data.row.elements; i++)
            out[i] = row[i];
        replace_row(row, data.row.elements, fr_neuron_row(&vals, p, few),
                    (float)call->argument[REPLACE_IMM].number, out, found);
        fr_neuron_put_row(&dst, p, out);
        if (index.partitions)
            put_indices(&index, p, found);
    }
    return FR_OK;
}

static void price_replace(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                          fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = fr_neuron_extent(call, REPLACE_DATA);
}

const fr_neuron_instruction fr_neuron_i_max8 = {
    .name = "max8",
    .summary = "the eight largest values of each row, descending",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "[P, 8] tile"},
                   {.name = "src",
                    .kind = FR_NEURON_READ,
                    .required = true,
                    .text = "8 to 16384 elements per partition"}},
    .semantics = "dst = the eight largest elements of each row, compared in fp32, in descending order.",
    .limits = "dst has 8 elements per partition, src 8 to 16384.",
    .cost = "N cycles, 64 at least.",
    .cost_source = "NKI API pages up to SDK 2.26 (max8)",
    .example = "m = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.max8(dst=m, src=a)",
    .engine = fr_neuron_on_vector,
    .check = check_max,
    .execute = execute_max,
    .price = price_max,
};

const fr_neuron_instruction fr_neuron_i_nc_find_index8 = {
    .name = "nc_find_index8",
    .summary = "where eight values are in each row",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "[P, 8] uint16 or uint32"},
         {.name = "data",
          .kind = FR_NEURON_READ,
          .required = true,
          .text = "8 to 16384 elements per partition"},
         {.name = "vals", .kind = FR_NEURON_READ, .required = true, .text = "[P, 8] values to find"}},
    .semantics = "dst[k] = index of the first element equal to vals[k]; the second of equal vals gets the "
                 "second place, "
                 "and so on. A value that is not there gets all ones.",
    .limits = "dst and vals have 8 elements per partition, data 8 to 16384; dst is uint16 or uint32.",
    .cost = "N cycles, 64 at least.",
    .cost_source = "NKI API pages up to SDK 2.26 (nc_find_index8)",
    .example = "m = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
               "i = nl.ndarray((128, 8), dtype=nl.uint32, buffer=nl.sbuf)\n"
               "nisa.max8(dst=m, src=a)\n"
               "nisa.nc_find_index8(dst=i, data=a, vals=m)",
    .engine = fr_neuron_on_vector,
    .check = check_find,
    .execute = execute_find,
    .price = price_find,
};

const fr_neuron_instruction fr_neuron_i_nc_match_replace8 = {
    .name = "nc_match_replace8",
    .summary = "replace eight values of each row, and say where they were",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "tile of data's size"},
         {.name = "data",
          .kind = FR_NEURON_READ,
          .required = true,
          .text = "8 to 16384 elements per partition"},
         {.name = "vals", .kind = FR_NEURON_READ, .required = true, .text = "[P, 8] values to replace"},
         {.name = "imm", .kind = FR_NEURON_NUMBER, .required = true, .text = "what they become"},
         {.name = "dst_idx", .kind = FR_NEURON_WRITE, .text = "[P, 8] uint16 or uint32 places"}},
    .semantics = "dst = data; for k = 7 down to 0 the first element equal to vals[k] that no later val took "
                 "becomes imm, "
                 "and dst_idx[k] its index, or all ones.",
    .limits = "vals and dst_idx have 8 elements per partition, data 8 to 16384; dst_idx is uint16 or uint32.",
    .cost = "N cycles, 64 at least.",
    .cost_source =
        "NKI API pages up to SDK 2.26 (nc_match_replace8; the page says min(64, N), which cannot be meant)",
    .example = "m = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.max8(dst=m, src=a)\n"
               "nisa.nc_match_replace8(dst=c, data=a, vals=m, imm=-1e9)",
    .engine = fr_neuron_on_vector,
    .check = check_replace,
    .execute = execute_replace,
    .price = price_replace,
};
