/* Every instruction, one line each, sorted by name. The file of a family defines its descriptors under these names
 * (instructions/); instructions.c makes the table from this list. Adding an instruction: a file, a line here. */
#ifndef NEURON_INSTRUCTIONS_H
#define NEURON_INSTRUCTIONS_H
#include "frontier/neuron.h"

#define FR_NEURON_INSTRUCTIONS(ENTRY) \
    ENTRY(tensor_copy)

#define FR_NEURON_DECLARE(name) extern const fr_neuron_instruction fr_neuron_i_##name;
FR_NEURON_INSTRUCTIONS(FR_NEURON_DECLARE)
#undef FR_NEURON_DECLARE

#endif
