"""Dtypes and memory regions, as kernels name them.

A dtype is a string with the name that numpy and NKI share, so `tile.dtype == nl.float32`, `== np.float32` and
`np.dtype(tile.dtype)` all work, and old kernels may pass numpy's types where NKI's are meant.
"""

from . import _core

_BYTES = _core.dtypes()
_BOOL = "bool_" if "bool_" in _BYTES else "bool"


class DType(str):
    """A dtype of the machine; equal to its name and to what numpy or torch call the same."""

    __slots__ = ()

    def __eq__(self, other):
        return self is other or str.__eq__(self, _plain(other))

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__

    @property
    def name(self):
        return str(self)

    @property
    def itemsize(self):
        return _BYTES[str(self)]

    def __repr__(self):
        return f"nl.{str(self)}"


_ALIASES = {
    "f32": "float32",
    "float8e4": "float8_e4m3",
    "float8e5": "float8_e5m2",
    "float8e3": "float8_e3m4",
    "float": "float32",
    "int": "int32",
    "float64": "float32",
    "int64": "int32",
    "uint64": "uint32",
    "fp32r": "tfloat32",
    "tf32": "tfloat32",
    "bf16": "bfloat16",
}


def _plain(dtype):
    name = str.__str__(dtype) if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype)
    name = name.removeprefix("torch.").removeprefix("nl.")
    return _BOOL if name in ("bool", "bool_") else name


def name_of(dtype):
    """The core's name of a dtype given in any way, or None. 64-bit types are held in 32 bits."""
    name = _plain(dtype)
    if name in _BYTES:
        return name
    alias = _ALIASES.get(name)
    return alias if alias in _BYTES else None


DTYPES = {name: DType(name) for name in _BYTES}


def dtype_of(dtype):
    name = name_of(dtype)
    if name is None:
        raise _core.UsageError(f"unknown dtype {dtype!r}; there are {', '.join(DTYPES)}")
    return DTYPES[name]


class Region:
    """nl.sbuf, nl.psum, nl.hbm, nl.shared_hbm, nl.private_hbm. Callable in old kernels' allocation forms."""

    def __init__(self, name, memory, shared=False):
        self.name, self.memory, self.shared = name, memory, shared
        self.value = name

    def __repr__(self):
        return f"nl.{self.name}"

    def __eq__(self, other):
        return isinstance(other, Region) and other.name == self.name or other == self.name

    def __hash__(self):
        return hash(self.name)

    def alloc(self, *args, **kwargs):
        """Older kernels steer the compiler's allocator here; the simulator places tiles itself."""
        return self

    mod_alloc = auto_alloc = alloc


sbuf, psum = Region("sbuf", "sbuf"), Region("psum", "psum")
hbm, private_hbm = Region("hbm", "hbm"), Region("private_hbm", "hbm")
shared_hbm = Region("shared_hbm", "hbm", shared=True)
REGIONS = {region.name: region for region in (sbuf, psum, hbm, private_hbm, shared_hbm)}
_core.objects(DTYPES, {"sbuf": sbuf, "psum": psum, "hbm": shared_hbm})


def region_of(buffer):
    if buffer is None:
        return sbuf
    if isinstance(buffer, Region):
        return buffer
    region = REGIONS.get(str(getattr(buffer, "name", buffer)).removeprefix("nl."))
    if region is None:
        raise _core.UsageError(f"unknown memory {buffer!r}; there are {', '.join(REGIONS)}")
    return region
