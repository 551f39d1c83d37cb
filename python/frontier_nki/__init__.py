"""frontier_nki: unmodified NKI kernels on a simulated NeuronCore: right numbers, honest time.

    python -m frontier_nki SCRIPT [args]   runs SCRIPT, with `nki` and `neuronxcc.nki` from here
    import frontier_nki; frontier_nki.install()   the same inside a process of your own

Layers, bottom up: _core (C: tiles, instructions, the clock), types (dtypes and memory regions), arrays
(numpy and torch in, numpy and torch out), session (what a launch has and leaves behind), launch (@nki.jit),
ranks, collectives and collective_time (one kernel as several ranks that meet), ops (nl.add and friends as
instructions), old (the older style: values, masks, index tiles), front/ (the modules a script imports),
report.
"""

import os as _os

from . import _core
from ._core import RuleError, UsageError

_core.package(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from .finder import install  # noqa: E402
from .launch import jit, simulate  # noqa: E402
from .ranks import ranks  # noqa: E402
from .session import results, time_launches  # noqa: E402

__version__ = "@VERSION@"
__all__ = ["RuleError", "UsageError", "install", "jit", "simulate", "ranks", "results", "time_launches"]
