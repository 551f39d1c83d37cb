/* What Python a kernel may be written in. A simulator runs the kernel as plain Python and would take
 * anything; AWS's compiler takes the subset of its language guide, so a kernel that breaks one of these
 * rules runs here and does not compile. The table is beside the machine's rules so that `nki rules` and the
 * manual have both; the Python package looks for them in a kernel's source (language_rules.py), as
 * warnings. Texts say which are documented and which follow from what the guide leaves out. An example is
 * the body of a kernel. */
#include "frontier/neuron.h"

static const fr_neuron_rule RULES[] = {
    {"python_class",
     "Warning. A class that a kernel uses inherits from nl.NKIObject and nothing else, or is an Enum "
     "(documented).",
     "class Name(nl.NKIObject), with @dataclass if wanted",
     "class Pair:\n    size = 64\n"
     "nisa.tensor_copy(dst=b[:, 0:Pair().size], src=a)"},
    {"python_dictionary_key", "Warning. Keys of dictionaries are strings (documented).",
     "use a list, or strings as keys",
     "tiles = {0: a, 1: b}\n"
     "nisa.tensor_copy(dst=c, src=tiles[0])"},
    {"python_division",
     "Warning. nl.divide, nl.mod and nl.fmod exist in the language and on no engine (documented).",
     "multiply by nisa.reciprocal", "t = nl.divide(a, b)"},
    {"python_exception",
     "Warning. try statements are not among the statements of the language guide: nothing "
     "fails at run time on the chip (inferred).",
     "test with if; state what must hold with assert",
     "try:\n    nisa.tensor_copy(dst=b, src=a)\nexcept ValueError:\n    pass"},
    {"python_generator",
     "Warning. yield, await and asynchronous functions are not among the statements of the language guide "
     "(inferred).",
     "return a list",
     "def tiles():\n    yield a\n"
     "for t in tiles():\n    nisa.tensor_copy(dst=b, src=t)"},
    {"python_import", "Warning. A kernel imports nothing: its names are those of its module (inferred).",
     "import at the top of the file",
     "import math\n"
     "nisa.memset(dst=a, value=math.pi)"},
    {"python_loop_index",
     "Warning. The index of nl.dynamic_range is a register that cannot be written (documented).",
     "keep a register of your own: nisa.register_alloc",
     "for i in nl.dynamic_range(2):\n    nisa.register_move(dst=i, imm=0)"},
    {"python_loop_over",
     "Warning. A loop is over range, a range of nl, a list or a tuple, or zip, enumerate, reversed of them; "
     "dictionaries by keys(), values(), items() (documented). Sets have no order.",
     "loop over a list", "for t in {64, 32}:\n    nisa.tensor_copy(dst=b[:, 0:t], src=a[:, 0:t])"},
    {"python_namespace",
     "Warning. neuronxcc.nki, the older package, inside a kernel of this style does not compile since NKI "
     "0.4 "
     "(documented).",
     "import nki.isa and nki.language",
     "import neuronxcc.nki.language as older\n"
     "nisa.memset(dst=a, value=0)"},
    {"python_numpy",
     "Warning. Libraries are for the host: numpy in a kernel computes nothing on the chip. Its dtypes and "
     "constants may be named (documented in general: not all libraries are supported).",
     "compute with nisa, or pass the values in as a tensor",
     "n = np.prod((8, 8))\n"
     "nisa.tensor_copy(dst=b[:, 0:int(n)], src=a)"},
    {"python_scope",
     "Warning. global, nonlocal and del are not among the statements of the language guide (inferred).",
     "pass values as arguments and return them",
     "total = 1\ndel total\n"
     "nisa.memset(dst=a, value=0)"},
    {"python_with",
     "Warning. The only with statement is nl.no_reorder() (inferred), and no nl.dynamic_range is inside it "
     "(documented).",
     "move the loop out of the block",
     "with nl.no_reorder():\n    for i in nl.dynamic_range(2):\n        nisa.tensor_copy(dst=b, src=a)"},
};

const fr_neuron_rule *fr_neuron_language_rules(int *count)
{
    if (count)
        *count = (int)(sizeof RULES / sizeof RULES[0]);
    return RULES;
}
