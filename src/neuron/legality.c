/* Shared limits: see legality.h. Sources: NKI ISA common fields (operators), pages of the instructions. */
#include "neuron/legality.h"

#include <math.h>

static const char *argument_name(const fr_neuron_call *call, int which)
{
    return call->instruction->parameters[which].name;
}

static fr_status check_kind(const fr_neuron *core, const fr_neuron_call *call, int which, uint32_t takes,
                            fr_error *error)
{
    fr_neuron_operator op = fr_neuron_operator_of(call, which);
    const fr_neuron_operator_facts *facts = fr_neuron_operator_facts_of(op);
    const char *name = fr_neuron_operator_name(op), *argument = argument_name(call, which);
    if (facts->bits && !(takes & FR_NEURON_TAKES_BITS))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator_kind, error,
                                "%s is %s, a bitvec operator", argument, name);
    if (takes & FR_NEURON_TAKES_REDUCTIONS && !facts->reduces)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator, error, "%s is %s, which cannot reduce",
                                argument, name);
    if (facts->unary && !(takes & FR_NEURON_TAKES_UNARY))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator, error,
                                "%s is %s, which takes one operand", argument, name);
    if (!facts->unary && !(takes & (FR_NEURON_TAKES_BINARY | FR_NEURON_TAKES_REDUCTIONS)))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator, error,
                                "%s is %s, which takes two operands", argument, name);
    return FR_OK;
}

fr_status fr_neuron_check_operator(const fr_neuron *core, const fr_neuron_call *call, int which,
                                   fr_neuron_engine engine, uint32_t takes, fr_error *error)
{
    double number = call->argument[which].number;
    if (number == FR_NEURON_NO_OPERATOR && !call->instruction->parameters[which].required)
        return FR_OK;
    if (!(number > 0 && number < FR_NEURON_OPERATORS && number == floor(number)))
        return fr_neuron_misuse(core, call, error, "%s is no operator", argument_name(call, which));
    fr_neuron_operator op = fr_neuron_operator_of(call, which);
    const fr_neuron_operator_facts *facts = fr_neuron_operator_facts_of(op);
    const char *name = fr_neuron_operator_name(op), *argument = argument_name(call, which);
    if (facts->least_generation == 0 || op == FR_NEURON_AVERAGE)
        return fr_neuron_refuse(
            core, call, FR_NEURON_RULE_operator, error, "%s is %s, which %s", argument, name,
            op == FR_NEURON_AVERAGE ? "only tensor_partition_reduce has" : "no NeuronCore has");
    FR_TRY(fr_neuron_generation_at_least(core, call, facts->least_generation, name, error));
    FR_TRY(check_kind(core, call, which, takes, error));
    if (facts->engines & FR_NEURON_ON(engine))
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator_engine, error,
                            "%s is %s, which the %s engine lacks", argument, name,
                            fr_neuron_engine_name(engine));
}

fr_status fr_neuron_operator_among(const fr_neuron *core, const fr_neuron_call *call, int which,
                                   const fr_neuron_operator *allowed, int count, fr_error *error)
{
    char list[160] = "";
    size_t used = 0;
    fr_neuron_operator op = fr_neuron_operator_of(call, which);
    for (int i = 0; i < count; i++)
        if (allowed[i] == op)
            return FR_OK;
    for (int i = 0; i < count && used < sizeof list - 1; i++) {
        int wrote = snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                             fr_neuron_operator_name(allowed[i]));
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator, error, "%s is %s, not one of %s",
                            argument_name(call, which), fr_neuron_operator_name(op), list);
}

fr_status fr_neuron_operator_dtypes(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_operator op,
                                    const int *tiles, int count, fr_error *error)
{
    bool bits = fr_neuron_operator_facts_of(op)->bits;
    for (int i = 0; i < count; i++) {
        const fr_neuron_view *view = fr_neuron_operand(call, tiles[i]);
        if (bits && view && !fr_neuron_dtype_integer(view->dtype))
            return fr_neuron_refuse(core, call, FR_NEURON_RULE_operator_kind, error,
                                    "%s is %s, the bitvec operator %s takes integers",
                                    argument_name(call, tiles[i]), fr_neuron_dtype_name(view->dtype),
                                    fr_neuron_operator_name(op));
        FR_TRY(fr_neuron_arithmetic(core, call, tiles[i], error));
    }
    return FR_OK;
}

fr_status fr_neuron_operator_scalar(const fr_neuron *core, const fr_neuron_call *call, int op, int scalar,
                                    int like, fr_error *error)
{
    fr_neuron_operator with = fr_neuron_operator_of(call, op);
    const fr_neuron_operator_facts *facts = fr_neuron_operator_facts_of(with);
    const fr_neuron_argument *argument = &call->argument[scalar];
    bool present = argument->given && (argument->is_view || argument->number != 0);
    const char *name = argument_name(call, scalar), *op_name = fr_neuron_operator_name(with);
    if (with == FR_NEURON_NO_OPERATOR && argument->given)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_value, error, "%s without %s", name,
                                argument_name(call, op));
    if (facts->unary && present)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_value, error, "%s is given, %s takes one operand",
                                name, op_name);
    if (!facts->unary && with != FR_NEURON_NO_OPERATOR && !argument->given)
        return fr_neuron_misuse(core, call, error, "%s is missing, %s takes two operands", name, op_name);
    if (!argument->given || !argument->is_view)
        return FR_OK;
    FR_TRY(fr_neuron_column(core, call, scalar, like, !facts->bits, error));
    return fr_neuron_operator_dtypes(core, call, with, &scalar, 1, error);
}

fr_status fr_neuron_whole_within(const fr_neuron *core, const fr_neuron_call *call, int which, double least,
                                 double most, fr_error *error)
{
    double number = call->argument[which].number;
    if (number >= least && number <= most && number == floor(number))
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_value, error,
                            "%s is %g, it must be a whole number from %.0f to %.0f",
                            argument_name(call, which), number, least, most);
}

bool fr_neuron_float_dtype(fr_neuron_dtype dtype)
{
    return !fr_neuron_dtype_integer(dtype) && !(FR_NEURON_PACKED & FR_NEURON_OF(dtype)) &&
           dtype != FR_NEURON_FLOAT8_E8M0FNU;
}

bool fr_neuron_all_words(const fr_neuron_call *call, const int *which, int count)
{
    for (int i = 0; i < count; i++) {
        const fr_neuron_view *view = fr_neuron_operand(call, which[i]);
        if (!view || (view->dtype != FR_NEURON_INT32 && view->dtype != FR_NEURON_UINT32) ||
            fr_neuron_in_psum(call, which[i]))
            return false;
    }
    return true;
}

double fr_neuron_floored(const fr_neuron *core, fr_neuron_engine engine, double cycles)
{
    double least = fr_neuron_machine_of(core)->issue_floor_cycles[engine];
    return cycles > least ? cycles : least;
}

double fr_neuron_stream_cycles(const fr_neuron *core, const fr_neuron_call *call, int dst, int src,
                               fr_neuron_engine engine)
{
    const int operands[] = {dst, src};
    double n = fr_neuron_extent(call, src);
    int generation = fr_neuron_machine_of(core)->generation;
    if (!fr_neuron_narrow(call, dst, 2) || !fr_neuron_narrow(call, src, 2))
        return n;
    bool rows = fr_neuron_packed_rows(call, dst) && fr_neuron_packed_rows(call, src);
    bool sbuf = fr_neuron_all_sbuf(call, operands, 2);
    if (engine == FR_NEURON_VECTOR && generation >= 3)
        return rows && sbuf ? n / 4 : rows || sbuf ? n / 2 : n;
    return engine == FR_NEURON_SCALAR && generation >= 4 && (rows || sbuf) ? n / 2 : n;
}

fr_status fr_neuron_transposed_slots(const fr_neuron *core, const fr_neuron_call *call, int which,
                                     fr_error *error)
{
    const fr_neuron_view *view = &call->argument[which].view;
    const fr_neuron_layout *layout = fr_neuron_tensor_layout(view->tensor);
    if (fr_neuron_machine_of(core)->generation < 3 || fr_neuron_dtype_bytes(view->dtype) != 1 ||
        fr_neuron_dtype_integer(view->dtype))
        return FR_OK;
    bool slots = (view->offset + (layout->placed ? layout->byte_offset : 0)) % 2 == 0;
    for (int i = 0; i < view->dims; i++)
        slots = slots && (view->size[i] == 1 || view->stride[i] % 2 == 0);
    if (slots)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_transpose_slots, error,
                            "%s is %s without a byte between its numbers", argument_name(call, which),
                            fr_neuron_dtype_name(view->dtype));
}
