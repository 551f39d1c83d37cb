/* What ranks that meet in nki.collectives must keep. The Python package has the collectives and refuses by
 * these names (collectives.py, ranks.py); the table is beside the machine's rules so that `nki rules` and
 * the manual have both. An example is the body of a kernel that runs as two ranks: s is a written tensor
 * of 8 x 16 in HBM, d one of that shape to receive into, t a written tile in SBUF, group holds both
 * ranks. */
#include "frontier/neuron.h"

static const fr_neuron_rule RULES[] = {
    {"collective_agreement",
     "All ranks of a group call one collective with the same shapes, dtypes, operation and groups.",
     "give every rank the same call",
     "ncc.all_reduce([s], [d], group, nl.add if ncc.rank_id() else nl.maximum)"},
    {"collective_deadlock",
     "Every rank that others wait for comes to the collective; the message says where each rank stands.",
     "call the same collectives in the same order on every rank of a group",
     "if ncc.rank_id() == 0:\n    ncc.all_reduce([s], [d], group, nl.add)"},
    {"collective_dimension",
     "Parts are along dimension 0 (all_gather of SBUF also 1), which the ranks divide evenly.",
     "use collective_dim=0, and a first dimension that is a multiple of the ranks",
     "ncc.all_to_all([s], [d], group, 1)"},
    {"collective_group", "Every rank of the world is in one list of the replica group, once.",
     "list every rank once: ReplicaGroup([[0, 1], [2, 3]])",
     "ncc.all_reduce([s], [d], ncc.ReplicaGroup([[0]]), nl.add)"},
    {"collective_operation", "A collective reduces with nl.add, nl.minimum or nl.maximum.",
     "use one of these, and compute the rest before or after",
     "ncc.all_reduce([s], [d], group, nl.multiply)"},
    {"collective_route",
     "A permutation sends one tensor, from a rank at most once and to a rank at most once, inside of the "
     "world; implicit ones have 1 to 4 channels, numbered from 0, with a tensor each.",
     "one pair per sender and per receiver",
     "ncc.collective_permute([s], [d], [(0, 1), (1, 1)])"},
    {"collective_shape", "A destination has the shape of what it receives.", "size the destination",
     "ncc.all_gather([s], [d], group, 0)"},
    {"collective_tensors",
     "Tensors are lists of equal length and one dtype, all in HBM or all in SBUF; several at once, "
     "all_to_all and collective_permute are for HBM.",
     "copy what is in the other memory first", "ncc.all_reduce([t], [d], group, nl.add)"},
    {"collective_unwritten", "What is sent was written, all of it.", "write the whole tensor first",
     "ncc.all_reduce([d], [s], group, nl.add)"},
};

const fr_neuron_rule *fr_neuron_collective_rules(int *count)
{
    if (count)
        *count = (int)(sizeof RULES / sizeof RULES[0]);
    return RULES;
}
