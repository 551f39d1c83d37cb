"""nki.isa in the dst-first style: the core's callables as they are, and the enumerations kernels name."""

from . import _core, pair, session
from .ops import ISA, Code

_ENGINES = (
    ("unknown", 0, 0),
    ("tensor", 1, 1),
    ("scalar", 2, 3),
    ("gpsimd", 3, 4),
    ("dma", 4, 6),
    ("vector", 5, 2),
    ("sync", 6, 5),
)


def enumeration(family, entries):
    """A namespace of Codes, iterable like an Enum class."""
    return type(family, (), {name: Code(family, name, value, code) for name, value, code in entries})


engine = enumeration("engine", _ENGINES)
reduce_cmd = enumeration(
    "reduce_cmd",
    [(n, i, i) for i, n in enumerate(("idle", "reset", "reduce", "reset_reduce", "load_reduce"))],
)
dge_mode = enumeration("dge_mode", [(n, i, i) for i, n in enumerate(("unknown", "swdge", "hwdge", "none"))])
oob_mode = enumeration("oob_mode", [("error", 0, 0), ("skip", 1, 1)])
matmul_perf_mode = enumeration("matmul_perf_mode", [("none", "none", 0), ("double_row", "double_row", 1)])
dma_engine = enumeration("dma_engine", [("dma", 1, 0), ("gpsimd_dma", 2, 1)])


class nc_version:
    gen2, gen3, gen4 = 2, 3, 4


def get_nc_version():
    """Generation of the machine the kernel runs on: 2, 3 or 4."""
    if session.launch is not None:
        return session.launch.core.generation
    return _core.Core(session.target()[1]).generation


def get_nc_sub_version():
    return 0


def register_alloc(x=None):
    """A register of the sequencer; x is its value, a number or a one-element tensor to load."""
    core = session.running().core
    if x is None or isinstance(x, int):
        return core.register(int(x or 0))
    register = core.register(0)
    if isinstance(x, _core.Register):
        return core.register(int(x))
    ISA["register_load"](dst=register, src=x)
    return register


def public():
    names = dict(ISA)
    names.update((name, pair.meeting(name, ISA[name])) for name in pair.MEETINGS if name in ISA)
    names.update(
        engine=engine,
        reduce_cmd=reduce_cmd,
        dge_mode=dge_mode,
        oob_mode=oob_mode,
        matmul_perf_mode=matmul_perf_mode,
        dma_engine=dma_engine,
        nc_version=nc_version,
        get_nc_version=get_nc_version,
        get_nc_sub_version=get_nc_sub_version,
        register_alloc=register_alloc,
        NkiInstruction=_core.Issued,
        NkiValidationError=_core.RuleError,
        VirtualRegister=_core.Register,
        tensor_engine=engine.tensor,
        vector_engine=engine.vector,
        scalar_engine=engine.scalar,
        gpsimd_engine=engine.gpsimd,
        unknown_engine=engine.unknown,
    )
    return names
