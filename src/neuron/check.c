/* Refusals, and the limits that many instructions share. A message has three parts, always in the same
 * places: where (file, line, instruction), what (the rule's name, then the values that broke it), and the
 * rule's usual fix. */
#include "neuron/core.h"

#include <string.h>

static void locate(const fr_neuron *core, const fr_neuron_call *call, char *where, size_t size)
{
    int line = 0;
    const char *file = fr_neuron_source_file(core, core->source, &line);
    const char *name = call->instruction ? call->instruction->name : "call";
    if (file)
        snprintf(where, size, "%s:%d: %s", file, line, name);
    else
        snprintf(where, size, "%s", name);
}

fr_status fr_neuron_refuse(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_rule_id rule,
                           fr_error *error, const char *format, ...)
{
    char where[300], what[330];
    const fr_neuron_rule *broken = &fr_neuron_rules(NULL)[rule];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    locate(core, call, where, sizeof where);
    return fr_error_set(error, FR_ANSWER_NO, where, broken->fix, "%s: %s", broken->name, what);
}

fr_status fr_neuron_misuse(const fr_neuron *core, const fr_neuron_call *call, fr_error *error,
                           const char *format, ...)
{
    char where[300], what[380];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    locate(core, call, where, sizeof where);
    return fr_error_set(error, FR_BAD_USAGE, where, NULL, "%s", what);
}

static const char *parameter_name(const fr_neuron_call *call, int which)
{
    return call->instruction->parameters[which].name;
}

static const char *memory_name(fr_neuron_memory memory)
{
    static const char *const names[] = {"HBM", "SBUF", "PSUM", "a register"};
    return names[memory];
}

/* Words of a mask: "SBUF or PSUM". */
static void list_names(uint32_t mask, const char *(*name)(int), char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1))
            continue;
        mask &= ~(1u << i);
        int wrote = snprintf(out + used, size - used, "%s%s", used ? mask ? ", " : " or " : "", name(i));
        used += wrote > 0 ? (size_t)wrote : 0;
        if (used >= size)
            return;
    }
}

static const char *memory_at(int i)
{
    return memory_name((fr_neuron_memory)i);
}

static const char *dtype_at(int i)
{
    return fr_neuron_dtype_name((fr_neuron_dtype)i);
}

fr_status fr_neuron_same_partitions(const fr_neuron *core, const fr_neuron_call *call, int a, int b,
                                    fr_error *error)
{
    const fr_neuron_view *x = fr_neuron_operand(call, a), *y = fr_neuron_operand(call, b);
    if (!x || !y || x->partitions == y->partitions)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_partitions_match, error,
                            "%s has %d partitions, %s has %d", parameter_name(call, a), x->partitions,
                            parameter_name(call, b), y->partitions);
}

fr_status fr_neuron_same_elements(const fr_neuron *core, const fr_neuron_call *call, int a, int b,
                                  fr_error *error)
{
    const fr_neuron_view *x = fr_neuron_operand(call, a), *y = fr_neuron_operand(call, b);
    if (!x || !y)
        return FR_OK;
    FR_TRY(fr_neuron_same_partitions(core, call, a, b, error));
    int64_t n = fr_neuron_view_free(x), m = fr_neuron_view_free(y);
    if (n == m)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_elements_match, error,
                            "%s has %lld elements per partition, %s has %lld", parameter_name(call, a),
                            (long long)n, parameter_name(call, b), (long long)m);
}

fr_status fr_neuron_same_dtype(const fr_neuron *core, const fr_neuron_call *call, int a, int b,
                               fr_error *error)
{
    const fr_neuron_view *x = fr_neuron_operand(call, a), *y = fr_neuron_operand(call, b);
    if (!x || !y || x->dtype == y->dtype)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_dtype_match, error, "%s is %s, %s is %s",
                            parameter_name(call, a), fr_neuron_dtype_name(x->dtype), parameter_name(call, b),
                            fr_neuron_dtype_name(y->dtype));
}

fr_status fr_neuron_memory_allowed(const fr_neuron *core, const fr_neuron_call *call, int which,
                                   uint32_t memories, fr_error *error)
{
    if (!fr_neuron_operand(call, which) || memories & FR_NEURON_IN(fr_neuron_memory_of(call, which)))
        return FR_OK;
    char allowed[64];
    list_names(memories, memory_at, allowed, sizeof allowed);
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_operand_memory, error, "%s is in %s, it must be in %s",
                            parameter_name(call, which), memory_name(fr_neuron_memory_of(call, which)),
                            allowed);
}

fr_status fr_neuron_dtype_allowed(const fr_neuron *core, const fr_neuron_call *call, int which,
                                  uint32_t dtypes, fr_error *error)
{
    const fr_neuron_view *view = fr_neuron_operand(call, which);
    if (!view || dtypes & FR_NEURON_OF(view->dtype))
        return FR_OK;
    char allowed[240];
    list_names(dtypes, dtype_at, allowed, sizeof allowed);
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_dtype, error, "%s is %s, not one of %s",
                            parameter_name(call, which), fr_neuron_dtype_name(view->dtype), allowed);
}

fr_status fr_neuron_arithmetic(const fr_neuron *core, const fr_neuron_call *call, int which, fr_error *error)
{
    const fr_neuron_view *view = fr_neuron_operand(call, which);
    if (!view || !(FR_NEURON_PACKED & FR_NEURON_OF(view->dtype)))
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_dtype, error,
                            "%s is %s: packed numbers are for matmul_mx alone", parameter_name(call, which),
                            fr_neuron_dtype_name(view->dtype));
}

fr_status fr_neuron_not_both_psum(const fr_neuron *core, const fr_neuron_call *call, int a, int b,
                                  fr_error *error)
{
    if (!fr_neuron_in_psum(call, a) || !fr_neuron_in_psum(call, b))
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_both_inputs_psum, error, "%s and %s are both in PSUM",
                            parameter_name(call, a), parameter_name(call, b));
}

fr_status fr_neuron_column(const fr_neuron *core, const fr_neuron_call *call, int which, int like, bool fp32,
                           fr_error *error)
{
    const fr_neuron_view *view = fr_neuron_operand(call, which), *main = fr_neuron_operand(call, like);
    if (!view || !main || view->tensor->layout.memory == FR_NEURON_REGISTER)
        return FR_OK;
    int64_t n = fr_neuron_view_free(view);
    if (n != 1 || view->partitions != main->partitions)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_per_partition_vector, error,
                                "%s is [%d, %lld], %s has %d partitions", parameter_name(call, which),
                                view->partitions, (long long)n, parameter_name(call, like), main->partitions);
    if (fp32 && view->dtype != FR_NEURON_FLOAT32)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_dtype, error,
                                "%s is %s, a per-partition vector is float32", parameter_name(call, which),
                                fr_neuron_dtype_name(view->dtype));
    return fr_neuron_arithmetic(core, call, which, error);
}

fr_status fr_neuron_elements_within(const fr_neuron *core, const fr_neuron_call *call, int which,
                                    int64_t least, int64_t most, fr_error *error)
{
    const fr_neuron_view *view = fr_neuron_operand(call, which);
    int64_t n = view ? fr_neuron_view_free(view) : least;
    if (n >= least && n <= most)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_size_limit, error,
                            "%s has %lld elements per partition, %lld to %lld are allowed",
                            parameter_name(call, which), (long long)n, (long long)least, (long long)most);
}

fr_status fr_neuron_generation_at_least(const fr_neuron *core, const fr_neuron_call *call, int generation,
                                        const char *what, fr_error *error)
{
    if (core->machine->generation >= generation)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_generation, error,
                            "%s needs generation %d, %s is generation %d", what, generation,
                            core->machine->name, core->machine->generation);
}

fr_status fr_neuron_holds_data(const fr_neuron *core, const fr_neuron_call *call, int which, fr_error *error)
{
    const fr_neuron_view *view = fr_neuron_operand(call, which);
    if (!view || !core->compute || fr_neuron_written(core, view))
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_uninitialised_read, error,
                            "%s reads %s before it was written", parameter_name(call, which),
                            view->tensor->layout.name ? view->tensor->layout.name : "memory");
}
