/* The table of instructions, made from instructions.h, and calls: a descriptor with its arguments.
 * Everything a reader wants to know of an instruction (the Python package, `nki isa`, the checks, the
 * clock) is in its descriptor. */
#include "neuron/instructions.h"
#include "neuron/core.h"

#include <string.h>

#define ADDRESS(name) &fr_neuron_i_##name,
static const fr_neuron_instruction *const INSTRUCTIONS[] = {FR_NEURON_INSTRUCTIONS(ADDRESS)};
#undef ADDRESS

enum { COUNT = sizeof INSTRUCTIONS / sizeof *INSTRUCTIONS };

const fr_neuron_instruction *const *fr_neuron_instructions(int *count)
{
    if (count)
        *count = COUNT;
    return INSTRUCTIONS;
}

const fr_neuron_instruction *fr_neuron_instruction_named(const char *name)
{
    int low = 0, high = COUNT;
    while (low < high) {
        int middle = (low + high) / 2, order = strcmp(name, INSTRUCTIONS[middle]->name);
        if (order == 0)
            return INSTRUCTIONS[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

int fr_neuron_instruction_index(const fr_neuron_instruction *instruction)
{
    int low = 0, high = COUNT;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (strcmp(instruction->name, INSTRUCTIONS[middle]->name) < 0)
            high = middle;
        else
            low = middle;
    }
    return low;
}

fr_neuron_call fr_neuron_call_of(const char *instruction)
{
    fr_neuron_call call = {.instruction = fr_neuron_instruction_named(instruction)};
    for (int i = 0; call.instruction && i < FR_NEURON_PARAMETERS; i++)
        call.argument[i].number = call.instruction->parameters[i].number;
    return call;
}

static fr_neuron_argument *argument_named(fr_neuron_call *call, const char *name)
{
    for (int i = 0; call->instruction && i < FR_NEURON_PARAMETERS && call->instruction->parameters[i].name;
         i++)
        if (strcmp(call->instruction->parameters[i].name, name) == 0)
            return &call->argument[i];
    return NULL;
}

bool fr_neuron_call_view(fr_neuron_call *call, const char *name, fr_neuron_view view)
{
    fr_neuron_argument *argument = argument_named(call, name);
    if (!argument)
        return false;
    argument->given = argument->is_view = true;
    argument->view = view;
    return true;
}

bool fr_neuron_call_number(fr_neuron_call *call, const char *name, double number)
{
    fr_neuron_argument *argument = argument_named(call, name);
    if (!argument)
        return false;
    argument->given = true;
    argument->is_view = false;
    argument->number = number;
    return true;
}
