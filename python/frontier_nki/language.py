"""Everything nl.* that both styles share; front/nki/language.py and front/neuronxcc/nki/language.py publish
it.

nl.add and its like are Operators: tokens for op= arguments and functions of tiles under one name.
"""

import functools
import os
import sys

import numpy as np

from . import _core, arrays, ops, session
from .types import DTYPES, DType, dtype_of, hbm, private_hbm, psum, region_of, sbuf, shared_hbm  # noqa: F401


def _operators():
    """{name: Operator}; what the core knows of a name decides how its function issues."""
    own = {"reciprocal": ops.reciprocal, "copy": ops.copy, "invert": ops.invert}
    two = (
        "add subtract multiply maximum minimum equal not_equal greater_equal greater less_equal less "
        "logical_and logical_or logical_xor power abs_max abs_min divide bitwise_and bitwise_or bitwise_xor left_shift "
        "right_shift"
    ).split()
    table = {}
    for name in sorted(_core.operators() | set(two)):
        if name in own:
            function = own[name]
        elif name in two:
            function = functools.partial(ops.binary, name)
        elif name in ("bypass", "average", "none"):
            function = None
        else:
            function = functools.partial(ops.activation, name)
        table[name] = _core.Operator(name, function)
    return table


OPERATORS = _operators()
globals().update(OPERATORS)

negative, logical_not, cos, tan = ops.negative, ops.logical_not, ops.cos, ops.tan
ceil, floor, trunc, where = ops.ceil, ops.floor, ops.trunc, ops.where
zeros, ones, full, zeros_like, empty_like = ops.zeros, ops.ones, ops.full, ops.zeros_like, ops.empty_like
load, store, transpose, matmul = ops.load, ops.store, ops.transpose, ops.matmul
mean, var, softmax, rms_norm = ops.mean, ops.var, ops.softmax, ops.rms_norm
broadcast_to, expand_dims = ops.broadcast_to, ops.expand_dims


def ndarray(shape, dtype, buffer=sbuf, name="", address=None, **options):
    """Uninitialised memory: SBUF, PSUM or HBM."""
    return ops.allocate(shape, dtype, buffer, name, address)


def sum(x, axis, dtype=None, mask=None, keepdims=False, **options):
    return ops.reduce("add", x, axis, dtype, mask, keepdims)


def prod(x, axis, dtype=None, mask=None, keepdims=False, **options):
    return ops.reduce("multiply", x, axis, dtype, mask, keepdims)


def max(x, axis, dtype=None, mask=None, keepdims=False, **options):
    return ops.reduce("maximum", x, axis, dtype, mask, keepdims)


def min(x, axis, dtype=None, mask=None, keepdims=False, **options):
    return ops.reduce("minimum", x, axis, dtype, mask, keepdims)


def all(x, axis, dtype=None, mask=None, keepdims=False, **options):
    return ops.reduce("logical_and", x, axis, dtype, mask, keepdims)


def load_transpose2d(src, dtype=None, mask=None, **options):
    """src[N, M] of HBM as a tile [M, N]."""
    return ops.transpose(ops.tile(ops.load(src)), dtype)


def gather_flattened(data, indices, axis=0, dtype=None, **options):
    data, indices = ops.on_chip(data), ops.on_chip(indices)
    return ops.make("nc_n_gather", indices.shape, dtype or data.dtype, sbuf, None, data=data, indices=indices)


def dropout(x, rate, dtype=None, mask=None, **options):
    x = ops.on_chip(x)
    return ops.make("dropout", x.shape, dtype or x.dtype, sbuf, mask, data=x, prob=rate)


# ---- indices and loops ----


class DynamicSlice:
    """nl.ds(start, size) whose start is known only on the chip."""

    __slots__ = ("start", "size")

    def __init__(self, start, size):
        self.start, self.size = start, size


def ds(start, size):
    """[start, start + size); start may be a register."""
    if isinstance(start, _core.Register) or isinstance(start, _core.Tile):
        return DynamicSlice(start, size)
    return slice(start, start + size)


class Range:
    """A loop whose bounds are known while the kernel is traced; as an index it is the slice it runs over."""

    __slots__ = ("start", "stop", "step", "size")

    def __init__(self, start, stop=None, step=1, **options):
        self.start, self.stop = (0, int(start)) if stop is None else (int(start), int(stop))
        self.step = int(step)
        self.size = self.stop - self.start

    def __iter__(self):
        return iter(range(self.start, self.stop, self.step))

    def __len__(self):
        return len(range(self.start, self.stop, self.step))


affine_range = sequential_range = static_range = Range


def dynamic_range(start, stop=None, step=1):
    """A loop of the sequencer: its index is a register."""
    if stop is None:
        start, stop = 0, start
    if isinstance(step, _core.Register):
        raise _core.UsageError("dynamic_range: the step is a compile-time integer")
    core, value = session.running().core, int(start)
    while value < int(stop):
        yield core.register(value)
        value += int(step)


def fori_loop(lower, upper, body_fun, step=1):
    for index in dynamic_range(lower, upper, step):
        body_fun(index)


def while_loop(init, body_fun):
    """Runs body_fun(register) until the register it returns, or the one given, is zero."""
    register = init if isinstance(init, _core.Register) else session.running().core.register(int(init))
    while register:
        answer = body_fun(register)
        register = register if answer is None else answer


class no_reorder:
    """A scheduling fence of the compiler; the simulator keeps program order anyway."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


# ---- programs ----


def program_id(axis=0):
    launch = session.running()
    return launch.program[axis] if axis < len(launch.program) else 0


def num_programs(axes=0):
    grid = session.running().grid
    if isinstance(axes, (list, tuple)):
        return tuple(grid[a] if a < len(grid) else 1 for a in axes)
    return grid[axes] if axes < len(grid) else 1


def program_ndim():
    return len(session.running().grid)


# ---- the rest ----


class NKIObject:
    """Base of kernels' configuration classes: keywords become attributes.

    The compiler takes every plain attribute of the class for a field, and a field that nobody sets is None. @dataclass knows
    only attributes with an annotation, and demands those without a value: so all get both.
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        fields = cls.__dict__.get("__annotations__", {})
        for name, value in list(cls.__dict__.items()):
            plain = not callable(value) and not hasattr(value, "__get__") and type(value).__hash__ is not None
            if plain and not name.startswith("_") and name not in fields:
                fields[name] = object
        for name in fields:
            if name not in cls.__dict__ and "ClassVar" not in str(fields[name]):
                setattr(cls, name, None)
        cls.__annotations__ = fields

    def __init__(self, **kwargs):
        for name, value in kwargs.items():
            setattr(self, name, value)


class _TileSize:
    """Limits of the target machine."""

    pmax = 128
    psum_fmax = psum_bank_fmax = gemm_moving_fmax = bn_stats_fmax = 512
    gemm_stationary_fmax = 128
    psum_min_align = sbuf_min_align = 1

    @staticmethod
    def _machine():
        launch = session.launch
        if launch is not None:
            return launch.core.machine
        return _core.Core(session.target()[1]).machine

    @property
    def psum_num_banks(self):
        """Where AWS's compiler makes transposing transfers products, it keeps a bank for them from generation 3 on."""
        machine = self._machine()
        asked = os.environ.get("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE", "").lower() in ("1", "true", "yes", "on")
        return machine["psum_banks"] - (1 if asked and machine["generation"] >= 3 else 0)

    total_available_sbuf_size = property(lambda self: self._machine()["sbuf_usable_bytes"])
    sbuf_size_bytes = property(lambda self: self._machine()["sbuf_partition_bytes"])
    sbuf_fmax_bytes = property(lambda self: self._machine()["sbuf_usable_bytes"])
    sbuf_fmax = property(lambda self: self._machine()["sbuf_usable_bytes"] // 4)


tile_size = _TileSize()


def is_hbm(buffer):
    return region_of(buffer).memory == "hbm"


def is_sbuf(buffer):
    return region_of(buffer).memory == "sbuf"


def is_psum(buffer):
    return region_of(buffer).memory == "psum"


def is_on_chip(buffer):
    return not is_hbm(buffer)


def constant_array(constant):
    """An array, or what the .npy file of that path holds."""
    if not isinstance(constant, (str, os.PathLike)):
        return np.asarray(constant)
    try:
        return np.load(constant, allow_pickle=False)
    except (OSError, ValueError) as problem:
        raise _core.UsageError(f"shared_constant: {constant} is no .npy file: {problem}") from None


def shared_constant(constant, dtype=None, **options):
    array = constant_array(constant)
    if dtype is not None:
        known = arrays.numpy_dtype(dtype_of(dtype))
        array = array.astype(known if known is not None else np.float32)
    return ops.load_constant(array)


def shared_identity_matrix(n, dtype="uint8", dst=None, **options):
    """The identity in SBUF, brought there from a constant in HBM."""
    if dst is None:
        dst = ops.allocate((n, n), dtype)
    ops.issue("dma_copy", dst=dst, src=ops.load_constant(ops.constant_identity(n, dtype)))
    return dst


def device_print(print_prefix, tensor=None, *rest, **options):
    """Prints what the tile holds at this point of the program."""
    shown = arrays.read(ops.tile(tensor)) if ops.is_tile(tensor) else tensor
    print(f"{print_prefix} {shown}", file=sys.stdout)


def random_seed(seed, **options):
    column = ops.allocate((1, 1), "int32")
    ops.issue("memset", dst=column, value=int(seed))
    ops.issue("set_rng_seed", src_seeds=column)


def rand(shape, dtype="float32", buffer=sbuf, name="", **options):
    """Uniform in [0, 1): 24 random bits scaled."""
    bits = ops.allocate(shape, "uint32")
    ops.issue("rng", dst=bits)
    small = ops.allocate(shape, "uint32")
    ops.issue("tensor_scalar", dst=small, data=bits, op0="right_shift", operand0=8)
    result = ops.allocate(shape, dtype, buffer, name)
    ops.issue("tensor_scalar", dst=result, data=small, op0="multiply", operand0=2.0**-24)
    return result


def sizeinbytes(dtype):
    return dtype_of(dtype).itemsize


def public(old=False):
    """{name: object} of nl."""
    hidden = {
        "annotations",
        "functools",
        "sys",
        "np",
        "arrays",
        "ops",
        "session",
        "public",
        "OPERATORS",
        "DTYPES",
        "Range",
        "region_of",
        "dtype_of",
    }
    names = {n: o for n, o in globals().items() if not n.startswith("_") and n not in hidden}
    names.update(DTYPES)
    names["bool_"] = names.get("bool_") or DTYPES.get("bool")
    names["NkiTensor"] = _core.Tile
    names["tensor"] = _core.Tile
    return names
