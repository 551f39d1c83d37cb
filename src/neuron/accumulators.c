/* The accumulator registers: see accumulators.h. */
#include "neuron/accumulators.h"

static const char *const COMMANDS[FR_NEURON_REDUCE_COMMANDS] = {"idle", "reset", "reduce", "reset_reduce",
                                                                "load_reduce"};

fr_status fr_neuron_accumulate_check(const fr_neuron *core, const fr_neuron_call *call,
                                     const fr_neuron_accumulation *a, fr_error *error)
{
    double number = a->command < 0 ? FR_NEURON_REDUCE_RESET_ADD : call->argument[a->command].number;
    if (!(number >= 0 && number < FR_NEURON_REDUCE_COMMANDS && number == (double)(int)number))
        return fr_neuron_misuse(core, call, error, "reduce_cmd is no command of the accumulator");
    fr_neuron_reduce command = fr_neuron_reduce_of(call, a);
    if (a->command >= 0 && !(a->allowed >> command & 1))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_accumulator, error,
                                "reduce_cmd is %s, which it does not have", COMMANDS[command]);
    if (a->result >= 0)
        FR_TRY(fr_neuron_column(core, call, a->result, a->input, false, error));
    if (a->start < 0)
        return FR_OK;
    const fr_neuron_argument *start = &call->argument[a->start];
    const char *name = call->instruction->parameters[a->start].name;
    if (command == FR_NEURON_REDUCE_LOAD_ADD && !start->given)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_accumulator, error, "load_reduce without %s",
                                name);
    if (command != FR_NEURON_REDUCE_LOAD_ADD && start->given && (start->is_view || start->number != 0))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_accumulator, error,
                                "%s is given, reduce_cmd is %s", name, COMMANDS[command]);
    return fr_neuron_column(core, call, a->start, a->input, true, error);
}

fr_status fr_neuron_accumulate_begin(fr_neuron *core, const fr_neuron_call *call,
                                     const fr_neuron_accumulation *a, fr_neuron_engine engine, float **lane,
                                     fr_error *error)
{
    const fr_neuron_view *input = &call->argument[a->input].view;
    const fr_neuron_layout *layout = fr_neuron_tensor_layout(input->tensor);
    fr_neuron_lane_state *state = fr_neuron_lane_state_of(core);
    fr_neuron_reduce command = fr_neuron_reduce_of(call, a);
    bool vector = engine == FR_NEURON_VECTOR,
         kept = command == FR_NEURON_REDUCE_ADD || command == FR_NEURON_REDUCE_IDLE;
    int first = input->partition + (layout->placed ? layout->start_partition : 0);
    float *value = (vector ? state->vector_sum : state->scalar_sum) + first;
    bool *known = (vector ? state->vector_known : state->scalar_known) + first;
    bool forgets = vector && command == FR_NEURON_REDUCE_IDLE;
    bool needs =
        command == FR_NEURON_REDUCE_ADD || (kept && a->result >= 0 && fr_neuron_operand(call, a->result));
    for (int p = 0; needs && p < input->partitions; p++)
        if (!known[p] || forgets)
            return fr_neuron_refuse(
                core, call, FR_NEURON_RULE_accumulator, error,
                "reduce_cmd is %s, but lane %d of the %s accumulator holds no known value", COMMANDS[command],
                first + p, fr_neuron_engine_name(engine));
    fr_neuron_column_values start = {.value = {fr_neuron_operator_identity(a->op)}};
    if (command == FR_NEURON_REDUCE_LOAD_ADD)
        fr_neuron_column_read(&start, core, &call->argument[a->start], input->partitions);
    for (int p = 0; p < input->partitions; p++) {
        value[p] = kept ? value[p] : *fr_neuron_column_at(&start, p);
        known[p] = kept ? known[p] && !forgets : true;
    }
    *lane = value;
    return FR_OK;
}

void fr_neuron_accumulate_end(fr_neuron *core, const fr_neuron_call *call, const fr_neuron_accumulation *a,
                              const float *lane, bool negate)
{
    float out[FR_NEURON_PARTITIONS];
    if (a->result < 0 || !fr_neuron_operand(call, a->result))
        return;
    int partitions = call->argument[a->input].view.partitions;
    for (int p = 0; p < partitions; p++)
        out[p] = negate ? -lane[p] : lane[p];
    fr_neuron_column_write(core, call, a->result, out);
}
