/* tensor_reduce: the sum, extreme, ... of the trailing free axes of a tile.
 *
 * Axes count as the kernel sees the tile: 0 is the partition axis, which no engine but GpSimd and Tensor can reduce. The
 * rows that remain after reducing are the outer free axes: a [128, 4, 64] tile reduced over axis 2 is 512 rows of 64. */
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

#include <string.h>

enum { DST, OP, DATA, AXIS, NEGATE, KEEPDIMS };
static const int tiles[] = {DST, DATA};

/* The number of trailing free dimensions that `axis` names, or 0 when it names something else. */
static int trailing(const fr_neuron_call *call)
{
    const fr_neuron_argument *axis = &call->argument[AXIS];
    int rank = call->argument[DATA].view.dims + 1, seen = 0, least = rank;
    for (int i = 0; i < axis->count; i++) {
        int a = (int)axis->numbers[i];
        a = a < 0 ? a + rank : a;
        if ((double)a != axis->numbers[i] && (double)(a - rank) != axis->numbers[i])
            return 0;
        if (a < 1 || a >= rank || seen >> a & 1)
            return 0;
        seen |= 1 << a;
        least = a < least ? a : least;
    }
    return axis->count == rank - least ? axis->count : 0;
}

static int64_t reduced_elements(const fr_neuron_call *call)
{
    const fr_neuron_view *data = &call->argument[DATA].view;
    int64_t n = 1;
    for (int i = 0, last = trailing(call); i < last; i++)
        n *= data->size[data->dims - 1 - i];
    return n;
}

static fr_status check(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                       fr_error *error)
{
    const fr_neuron_view *data = &call->argument[DATA].view, *dst = &call->argument[DST].view;
    FR_TRY(fr_neuron_check_operator(core, call, OP, engine, FR_NEURON_TAKES_REDUCTIONS | FR_NEURON_TAKES_BITS,
                                    error));
    FR_TRY(fr_neuron_operator_dtypes(core, call, fr_neuron_operator_of(call, OP), tiles, 2, error));
    FR_TRY(fr_neuron_same_partitions(core, call, DST, DATA, error));
    if (!trailing(call))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_reduce_axis, error,
                                "%d axes that are not the last of the %d free ones",
                                call->argument[AXIS].count, data->dims);
    int64_t left = fr_neuron_view_free(data) / reduced_elements(call);
    if (fr_neuron_view_free(dst) != left)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_elements_match, error,
                                "dst has %lld elements per partition, reducing leaves %lld",
                                (long long)fr_neuron_view_free(dst), (long long)left);
    if (call->argument[NEGATE].number > 0 &&
        fr_neuron_operator_facts_of(fr_neuron_operator_of(call, OP))->bits)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator_kind, error,
                                "negate with a bitvec operator");
    return FR_OK;
}

static fr_status execute_bits(fr_neuron *core, const fr_neuron_call *call, fr_error *error)
{
    fr_neuron_operator op = fr_neuron_operator_of(call, OP);
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    fr_neuron_lanes data = fr_neuron_lanes_of(core, &call->argument[DATA].view);
    int64_t n = data.row.elements, left = dst.row.elements, each = n / left;
    uint32_t *x = fr_neuron_scratch(core, n * 4);
    void *raw = fr_neuron_scratch(core, n * 4);
    if (!x || !raw)
        return fr_error_memory(error, (size_t)n * 8, "rows of integers");
    for (int p = 0; p < data.partitions; p++) {
        fr_neuron_widen(x, fr_neuron_raw(&data, p, raw), data.row.width, n);
        for (int64_t i = 0; i < left; i++) {
            uint32_t total = x[i * each];
            for (int64_t j = 1; j < each; j++) {
                uint32_t word = x[i * each + j];
                total = op == FR_NEURON_BITWISE_AND  ? total & word
                        : op == FR_NEURON_BITWISE_OR ? total | word
                                                     : total ^ word;
            }
            x[i] = total;
        }
        fr_neuron_narrow_words(raw, x, dst.row.width, left);
        fr_neuron_put_raw(&dst, p, raw);
    }
    return FR_OK;
}

/* Subtracting starts from the first element and takes the others away. */
static void reduce_rows(const fr_neuron_rows *rows, fr_neuron_operator op, float *out, fr_neuron_block block,
                        const float *data, int64_t stride)
{
    bool first = op == FR_NEURON_SUBTRACT;
    for (int64_t i = 0; i < block.rows; i++)
        out[i] = first ? data[i * stride] : fr_neuron_operator_identity(op);
    rows->fold[op]((fr_neuron_block){block.rows, block.count - first}, out, data + first, stride);
}

/* Results of a block, one after the other: a partition's rows follow each other, and with one result a partition the
 * partitions are the rows. */
static void reduce_block(const fr_neuron_streams *s, fr_neuron_operator op, int64_t left, float *out)
{
    if (left == 1) {
        reduce_rows(s->rows, op, out, s->block, s->in[0].at, s->in[0].stride);
        return;
    }
    for (int64_t r = 0; r < s->block.rows; r++)
        reduce_rows(s->rows, op, out + r * left, (fr_neuron_block){left, s->count / left},
                    s->in[0].at + r * s->in[0].stride, s->count / left);
}

static fr_status execute(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                         fr_error *error)
{
    (void)engine;
    fr_neuron_operator op = fr_neuron_operator_of(call, OP);
    if (fr_neuron_operator_facts_of(op)->bits)
        return execute_bits(core, call, error);
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DST].view);
    int64_t left = dst.row.elements, bytes = left * FR_NEURON_PARTITIONS * (int64_t)sizeof(float);
    fr_neuron_streams s;
    int p;
    FR_TRY(fr_neuron_streams_open(&s, core, call, -1, tiles + 1, 1, error));
    float *out = fr_neuron_scratch(core, bytes);
    if (!out)
        return fr_error_memory(error, (size_t)bytes, "reduced rows");
    while (fr_neuron_streams_next(&s, &p))
        reduce_block(&s, op, left, out + p * left);
    for (int64_t i = 0; call->argument[NEGATE].number > 0 && i < left * s.partitions; i++)
        out[i] = -out[i];
    for (p = 0; p < s.partitions; p++)
        fr_neuron_put_row(&dst, p, out + p * left);
    return FR_OK;
}

static void price(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                  fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    fr_neuron_operator op = fr_neuron_operator_of(call, OP);
    bool bf16 = call->argument[DST].view.dtype == FR_NEURON_BFLOAT16 &&
                call->argument[DATA].view.dtype == FR_NEURON_BFLOAT16;
    double n = fr_neuron_extent(call, DATA);
    cost->cycles = bf16 && (op == FR_NEURON_ADD || op == FR_NEURON_MAXIMUM) ? n / 2 : n;
    cost->flops = n * call->argument[DATA].view.partitions;
}

const fr_neuron_instruction fr_neuron_i_tensor_reduce = {
    .name = "tensor_reduce",
    .summary = "reduce the last free axes of a tile",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "tile of what remains"},
         {.name = "op", .kind = FR_NEURON_OPERATOR, .required = true, .text = "operator that can reduce"},
         {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
         {.name = "axis",
          .kind = FR_NEURON_INTEGER_LIST,
          .required = true,
          .text = "the last free axes, from 1"},
         {.name = "negate", .kind = FR_NEURON_FLAG, .text = "write minus the result"},
         {.name = "keepdims", .kind = FR_NEURON_FLAG, .text = "reduced axes stay with size one"}},
    .semantics = "dst[...] = reduction of data over the axes, in fp32, negated when asked, rounded to dst's "
                 "dtype; bitvec "
                 "operators reduce raw bits. subtract takes the later elements away from the first.",
    .limits = "Axes are the last free ones, without a gap; the partition axis cannot be reduced. dst has the "
              "elements that "
              "remain. Operators: add, subtract, multiply, maximum, minimum, logical and, or, xor; bitwise "
              "and, or, xor "
              "on integers.",
    .cost = "N cycles; N/2 when both tiles are bfloat16 and op is add or maximum. 64 at least.",
    .cost_source = "NKI API pages up to SDK 2.26 (tensor_reduce)",
    .example = "s = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
               "nisa.tensor_reduce(dst=s, op=nl.maximum, data=a, axis=1)",
    .engine = fr_neuron_on_vector,
    .check = check,
    .execute = execute,
    .price = price,
};
