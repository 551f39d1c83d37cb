"""`nki` as a script sees it: the dst-first style (NKI 0.3 to 0.6), on the simulated core."""

from frontier_nki import _core
from frontier_nki.launch import Kernel, jit, simulate
from frontier_nki.types import DType as dtype  # noqa: F401

tensor = _core.Tile
__version__ = "0.6.0"
__all__ = ["Kernel", "jit", "simulate", "tensor"]

from . import collectives, isa, language, typing  # noqa: E402,F401
