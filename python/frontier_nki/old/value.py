"""Deferred values: what an instruction of the older style returns.

`t[i] = nisa.activation(...)` must be one instruction that writes t[i], and `acc += nisa.nc_matmul(...)` one
that accumulates; but Python evaluates the right side first. So the right side is a Value: the instruction,
ready to be issued. Being assigned or accumulated issues it there; any other use, and the next instruction
of any kind, issues it into a tile of its own first, so program order is kept. Its source line is where it
was written.
"""

from .. import _core, arrays, ops
from ..types import dtype_of, psum, sbuf
from .index import Mask
from .tile import OldTile, add_operators
from .wide import Wide


def restricted(operands, mask, shape):
    """The operands inside the mask's box, or None when nothing is left. Other sizes are left alone."""
    box = _box(mask, shape)
    if box is None:
        return None
    out = []
    for operand in operands:
        if isinstance(operand, _core.Tile) or hasattr(operand, "__nki_tile__"):
            operand = _cut(ops.tile(operand), box, shape)
        out.append(operand)
    return out


def _box(mask, shape):
    if mask is None or mask is True:
        return [(0, size) for size in shape]
    if mask is False or not isinstance(mask, Mask):
        return [(0, size) for size in shape] if mask else None
    return mask.box(shape)


def _cut(tile, box, shape):
    key = []
    for dim, size in enumerate(tile.shape):
        first, last = box[dim] if dim < len(box) and size == shape[dim] else (0, size)
        key.append(slice(first, last))
    whole = all(s == slice(0, n) for s, n in zip(key, tile.shape))
    reach = getattr(tile, "reach", None)
    if reach:
        check_reach(tile, reach, key)
    if not whole and key[0].start and tile.is_indirect():
        raise _core.UsageError("a mask over listed rows leaves out rows at the end only")
    return tile if whole else _core.Tile.__getitem__(tile, tuple(key))


def check_reach(tile, reach, key):
    limits = [(s.start, s.stop) for s in key]
    for dim, (size, constant, coefficients) in enumerate(reach):
        low = constant + sum(min(k * a, k * (b - 1)) for k, (a, b) in zip(coefficients, limits))
        high = constant + sum(max(k * a, k * (b - 1)) for k, (a, b) in zip(coefficients, limits))
        if low < 0 or high >= size:
            raise _core.RuleError(
                f"out_of_bounds: index [{low}, {high}] of dimension {dim} of '{tile.name}' with size "
                f"{size}\n  fix: mask the rows and columns that do not exist"
            )


class Value:
    """An instruction that has not been issued yet."""

    def __init__(self, launch, instruction, shape, dtype, buffer, mask, arguments, accumulates=False):
        if launch.pending is not None:
            launch.pending.settle()
        self.launch, self.instruction, self.buffer, self.accumulates = (
            launch,
            instruction,
            buffer,
            accumulates,
        )
        self.shape, self.dtype, self.mask = tuple(shape), dtype_of(dtype), mask
        self.arguments = {k: ops.tile(v) if hasattr(v, "__nki_tile__") else v for k, v in arguments.items()}
        self.place, self.result = _core.here(), None
        launch.pending = self

    ndim = property(lambda self: len(self.shape))
    grid = None  # the shape that masks are over, when not that of the result

    def issue(self, dst, **more):
        """Writes the part of dst that the mask leaves."""
        self.launch.pending = None
        names = [k for k, v in self.arguments.items() if isinstance(v, _core.Tile)]
        cut = restricted([dst] + [self.arguments[k] for k in names], self.mask, self.grid or self.shape)
        if cut is None:
            return
        arguments = {**self.arguments, **dict(zip(names, cut[1:])), **more}
        _core.at(self.place)
        try:
            ops.ISA[self.instruction](dst=cut[0], **arguments)
        finally:
            _core.at(None)

    def settle(self):
        """The value in a tile of its own."""
        if self.result is None:
            self.launch.pending = None
            _core.at(self.place)
            try:
                self.result = ops.allocate(self.shape, self.dtype, self.buffer)
            finally:
                _core.at(None)
            if self.mask is not None:
                arrays.undefined(self.result)
            self.issue(self.result)
        return self.result

    def __nki_tile__(self):
        return self.settle()

    def __getitem__(self, key):
        return self.settle()[key]

    def __setitem__(self, key, value):
        self.settle()[key] = value

    def __iadd__(self, value):
        return accumulate(self.settle(), value)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.settle(), name)


add_operators(Value)


class LoopReduce:
    """nl.loop_reduce: the first round of the loops stores, later ones combine."""

    def __init__(self, x, op, first, dtype):
        self.x, self.op, self.first = ops.tile(x), op, first
        self.shape, self.dtype = self.x.shape, dtype_of(dtype or self.x.dtype)

    def into(self, dst):
        if self.first:
            ops.issue("tensor_copy", dst=dst, src=self.x)
        else:
            ops.issue("tensor_tensor", dst=dst, data1=dst, data2=self.x, op=self.op)


def same_view(a, b):
    return a is b or (
        isinstance(b, _core.Tile)
        and a.storage is b.storage
        and a.get_pattern() == b.get_pattern()
        and a.offset == b.offset
        and a.dtype_name == b.dtype_name
    )


def _reaches(instruction, memory):
    """Whether the instruction can write this memory: products go to PSUM, DMA to the other two."""
    if instruction == "nc_matmul":
        return memory == "psum"
    return memory != "psum" if instruction == "dma_copy" else memory != "hbm"


def assign(dst, value):
    """dst[...] = value."""
    if isinstance(dst, Wide):
        return dst.take(value)
    if isinstance(value, Value) and value.result is None and _reaches(value.instruction, dst.memory):
        return value.issue(_shaped(dst, value.shape))
    if isinstance(value, LoopReduce):
        return value.into(dst)
    if not ops.is_tile(value):
        return ops.issue("memset", dst=dst, value=float(value))
    value = ops.tile(value)
    if not same_view(dst, value):
        ops.move(
            "dma_copy" if "hbm" in (dst.memory, value.memory) else "tensor_copy",
            dst,
            _shaped(value, dst.shape),
        )
    return None


def _shaped(tile, shape):
    """The view with the dimensions of `shape`, where only sizes of 1 differ."""
    if tuple(tile.shape) == tuple(shape) or [s for s in tile.shape if s != 1] != [s for s in shape if s != 1]:
        return tile
    return tile.reshape(tuple(shape))


def accumulate(dst, value):
    """dst += value: a product accumulates in PSUM, everything else is an addition."""
    if isinstance(value, Value) and value.accumulates and value.result is None and dst.memory == "psum":
        value.issue(dst)
        return dst
    if not ops.is_tile(value):
        ops.issue("tensor_scalar", dst=dst, data=dst, op0="add", operand0=float(value))
        return dst
    value = ops.tile(value)
    if value.memory == "psum" and dst.memory == "psum":
        value = ops.tile(ops.copy(value))
    ops.issue("tensor_tensor", dst=dst, data1=dst, data2=value, op="add")
    return dst


__all__ = ["Value", "LoopReduce", "assign", "accumulate", "restricted", "OldTile", "psum", "sbuf"]
