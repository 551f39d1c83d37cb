/* bn_stats and bn_aggr: mean and variance of rows in pieces. bn_stats gives (count, mean, count * variance) of the even
 * and of the odd elements; bn_aggr merges any number of such triples. Sums are taken in double here: fp32 on the chip,
 * where the order of additions is not documented. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

enum { DST, DATA, STATS = 6, MOMENTS = 2, STATS_MOST = 512 };
static const int inputs[] = {DATA};

static fr_status check_shape(const fr_neuron *core, const fr_neuron_call *call, int64_t results,
                             fr_error *error)
{
    FR_TRY(fr_neuron_arithmetic(core, call, DST, error));
    FR_TRY(fr_neuron_arithmetic(core, call, DATA, error));
    FR_TRY(fr_neuron_same_partitions(core, call, DST, DATA, error));
    return fr_neuron_elements_within(core, call, DST, results, results, error);
}

static fr_status check_stats(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_error *error)
{
    (void)engine;
    FR_TRY(check_shape(core, call, STATS, error));
    return fr_neuron_elements_within(core, call, DATA, 1, STATS_MOST, error);
}

static fr_status check_aggregate(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                 fr_error *error)
{
    (void)engine;
    FR_TRY(check_shape(core, call, MOMENTS, error));
    int64_t n = fr_neuron_view_free(&call->argument[DATA].view);
    if (n % 3 == 0)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_size_limit, error,
                            "data has %lld elements per partition, not a multiple of 3", (long long)n);
}

/* Every second element from `first` on. */
static void triple(const float *row, int64_t count, int64_t first, float out[3])
{
    double n = 0, sum = 0, spread = 0;
    for (int64_t i = first; i < count; i += 2, n++)
        sum += (double)row[i];
    double mean = n > 0 ? sum / n : 0;
    for (int64_t i = first; i < count; i += 2)
        spread += ((double)row[i] - mean) * ((double)row[i] - mean);
    out[0] = (float)n;
    out[1] = (float)mean;
    out[2] = (float)spread;
}

static void stats_row(const float *row, int64_t count, float *out)
{
    triple(row, count, 0, out);
    triple(row, count, 1, out + 3);
}

static void aggregate_row(const float *row, int64_t count, float *out)
{
    double n = 0, sum = 0, spread = 0;
    for (int64_t i = 0; i < count; i += 3) {
        n += (double)row[i];
        sum += (double)row[i] * (double)row[i + 1];
    }
    double mean = sum / n;
    for (int64_t i = 0; i < count; i += 3) {
        double off = (double)row[i + 1] - mean;
        spread += (double)row[i + 2] + (double)row[i] * off * off;
    }
    out[0] = (float)mean;
    out[1] = (float)(spread / n);
}

static fr_status execute_rows(fr_neuron *core, const fr_neuron_call *call,
                              void (*row)(const float *in, int64_t count, float *out), fr_error *error)
{
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_streams s;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, -1, inputs, 1, error));
    while (fr_neuron_streams_next(&s, &p))
        for (int64_t r = 0; r < s.block.rows; r++) {
            float out[STATS];
            row(s.in[0].at + r * s.in[0].stride, s.count, out);
            fr_neuron_put_row(&dst, p + (int)r, out);
        }
    return FR_OK;
}

static fr_status execute_stats(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                               fr_error *error)
{
    (void)engine;
    return execute_rows(core, call, stats_row, error);
}

static fr_status execute_aggregate(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                   fr_error *error)
{
    (void)engine;
    return execute_rows(core, call, aggregate_row, error);
}

static void price_stats(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                        fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = fr_neuron_extent(call, DATA);
    cost->flops = 3 * cost->cycles * call->argument[DATA].view.partitions;
}

static void price_aggregate(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                            fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = 13 * fr_neuron_extent(call, DATA) / 3;
    cost->flops = cost->cycles * call->argument[DATA].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_bn_stats = {
    .name = "bn_stats",
    .summary = "count, mean and count * variance of the even and of the odd elements of each row",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "[P, 6] tile"},
                   {.name = "data",
                    .kind = FR_NEURON_READ,
                    .required = true,
                    .text = "at most 512 elements per partition"}},
    .semantics =
        "dst = (count, mean, count * variance) of elements 0, 2, 4, ... and the same of 1, 3, 5, ...",
    .limits = "dst has 6 elements per partition, data 1 to 512.",
    .cost = "N cycles, 64 at least.",
    .cost_source = "NKI API pages up to SDK 2.26 (bn_stats)",
    .example = "s = nl.ndarray((128, 6), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.bn_stats(dst=s, data=a)",
    .engine = fr_neuron_on_vector,
    .check = check_stats,
    .execute = execute_stats,
    .price = price_stats,
};

const fr_neuron_instruction fr_neuron_i_bn_aggr = {
    .name = "bn_aggr",
    .summary = "mean and variance from the results of bn_stats",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "[P, 2] tile"},
                   {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "triples of bn_stats"}},
    .semantics = "dst = (mean, variance) of all the elements that the triples (count, mean, count * "
                 "variance) describe.",
    .limits = "dst has 2 elements per partition, data a multiple of 3.",
    .cost = "13 N / 3 cycles, 64 at least.",
    .cost_source = "NKI API pages up to SDK 2.26 (bn_aggr)",
    .example = "s = nl.ndarray((128, 6), dtype=nl.float32, buffer=nl.sbuf)\n"
               "m = nl.ndarray((128, 2), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.bn_stats(dst=s, data=a)\n"
               "nisa.bn_aggr(dst=m, data=s)",
    .engine = fr_neuron_on_vector,
    .check = check_aggregate,
    .execute = execute_aggregate,
    .price = price_aggregate,
};
