"""Tiles of the older style: index tiles in [...], assignment, operators, and block dimensions.

`tile[index] = value` is the instruction that makes the value, writing there. A view whose index tiles reach
outside the tensor is legal as long as a mask keeps the work inside, so bounds are checked when the view is
used, box in hand.
"""

from .. import _core
from .index import Index, align
from .wide import WALKED, Wide, cuts, walked


class OldTile(_core.Tile):
    """A tile that takes index tiles, is assigned to and computes with operators."""

    __slots__ = ("reach",)  # [(dimension size, constant, coefficients, shape)] of an index-tile view

    def __getitem__(self, key):
        items = key if isinstance(key, tuple) else (key,)
        indexed = any(isinstance(item, Index) for item in items)
        if self.memory == "hbm" and (isinstance(items[0], _core.Tile) or hasattr(items[0], "__nki_tile__")):
            if indexed or items[0].shape[0] > 1:
                return self._rows(items)
        return self._indexed(items) if indexed else _core.Tile.__getitem__(self, key)

    def _rows(self, items):
        """tensor[rows, ...]: the rows of HBM that a column of SBUF lists."""
        from .. import ops
        from .value import check_reach

        rank = max((item.ndim for item in items[1:] if isinstance(item, Index)), default=1)
        every = Index((self.shape[0],) + (1,) * (rank - 1), 0, (1,) + (0,) * (rank - 1))
        view = self._indexed((every, *items[1:]))
        check_reach(view, view.reach, [slice(0, size) for size in view.shape])
        return view.vector_select(0, ops.tile(items[0]))

    def _indexed(self, items):
        items = _spell_out(items, self.ndim)
        shape, tiles = _common_shape(items)
        constants, coefficients = [], []
        for dim, item in enumerate(items):
            index, shape = _as_index(item, tiles, dim, shape, self.shape[dim])
            constants.append(index.constant)
            coefficients.append(index.coefficients)
        rank = len(shape)
        coefficients = [c + (0,) * (rank - len(c)) for c in coefficients]
        if rank > WALKED and self.memory != "hbm":
            strides = self.strides[1:]
            steps = [sum(k[a] * s for k, s in zip(coefficients[1:], strides)) for a in range(1, rank)]
            if rank > WALKED + 1 or walked(zip(steps, shape[1:])) >= WALKED:
                return Wide(
                    shape, self.dtype, lambda at: self._part(shape, constants, coefficients, dict(zip(cuts(shape), at)))
                )
        return self._view(shape, constants, coefficients)

    def _part(self, shape, constants, coefficients, fixed):
        """The view of the dimensions that are not fixed at a position."""
        left = [d for d in range(len(shape)) if d not in fixed]
        constants = [c + sum(k[d] * at for d, at in fixed.items()) for c, k in zip(constants, coefficients)]
        return self._view([shape[d] for d in left], constants, [tuple(k[d] for d in left) for k in coefficients])

    def _view(self, shape, constants, coefficients):
        make = self._in_hbm if self.memory == "hbm" else self._on_chip
        view = make(shape, constants, coefficients)
        view.reach = [(self.shape[d], constants[d], coefficients[d]) for d in range(self.ndim)]
        return view

    def _in_hbm(self, shape, constants, coefficients):
        strides = self.strides
        offset = self.offset + sum(c * s for c, s in zip(constants, strides))
        pairs = [(sum(k[a] * s for k, s in zip(coefficients, strides)), size) for a, size in enumerate(shape)]
        return self.pattern_view(0, 0, offset, pairs)

    def _on_chip(self, shape, constants, coefficients):
        first, strides = coefficients[0], self.strides
        if (
            any(first[1:])
            or (shape[0] > 1 and first[0] != 1)
            or any(k[0] for k in coefficients[1:] if shape[0] > 1)
        ):
            raise _core.UsageError(
                f"index of a tile {self.shape}: the first dimension of the index tiles must walk the "
                f"partitions one by one, and only them"
            )
        column = self.offset % _row(self) if self.ndim > 1 else 0
        offset = column + sum(c * s for c, s in zip(constants[1:], strides[1:]))
        pairs = [
            (sum(k[a] * s for k, s in zip(coefficients[1:], strides[1:])), shape[a])
            for a in range(1, len(shape))
        ]
        return self.pattern_view(self.partition + constants[0], shape[0], offset, pairs or [(1, 1)])

    # ---- assignment ----

    def __setitem__(self, key, value):
        from .value import assign

        assign(self[key], value)

    def __iadd__(self, value):
        from .value import accumulate

        return accumulate(self, value)

    # ---- what kernels of this style call ----

    def broadcast_to(self, shape):
        from .. import ops

        return ops.broadcast_to(self, shape)

    def astype(self, dtype):
        from .. import ops

        return ops.copy(self, dtype)

    assert_shape = lambda self, *_: self  # noqa: E731


def _row(tile):
    size = 1
    for n in tile.base_shape[1:]:
        size *= n
    return size


def _spell_out(items, ndim):
    """No Ellipsis, one item a dimension."""
    if any(item is None for item in items):
        raise _core.UsageError("None beside index tiles: give the index tiles the dimension")
    if Ellipsis in [item for item in items if not isinstance(item, Index)]:
        at = next(i for i, item in enumerate(items) if item is Ellipsis)
        items = items[:at] + (slice(None),) * (ndim - len(items) + 1) + items[at + 1 :]
    if len(items) > ndim:
        raise _core.UsageError(f"{len(items)} indices of a tensor with {ndim} dimensions")
    return tuple(items) + (slice(None),) * (ndim - len(items))


def _common_shape(items):
    whole = None
    for item in items:
        if isinstance(item, Index):
            whole = item if whole is None else Index(*_merge(whole, item))
    return whole.shape, whole.ndim


def _merge(a, b):
    shape, _, _ = align(a, b)
    return shape, 0, (0,) * len(shape)


def _as_index(item, tiles, dim, shape, size):
    """An item as an index over the common shape; a slice adds a dimension of its own at the end."""
    if isinstance(item, Index):
        pad = tiles - item.ndim
        return Index(shape, item.constant, (0,) * pad + item.coefficients), shape
    if isinstance(item, slice):
        start, stop, step = item.indices(size)
        extended = (*shape, len(range(start, stop, step)))
        return Index(extended, start, (0,) * len(shape) + (step,)), extended
    value = int(item)
    return Index((1,) * tiles, value + size if value < 0 else value, (0,) * tiles), shape


class Blocks:
    """A tensor with block dimensions left of the partitions: separate tiles, made when first used."""

    def __init__(self, shape, block_dims, allocate):
        self.shape, self.block_dims, self.allocate, self.tiles = tuple(shape), block_dims, allocate, {}
        self.dtype, self.buffer = None, None

    ndim = property(lambda self: len(self.shape))

    def _split(self, key):
        items = key if isinstance(key, tuple) else (key,)
        if len(items) < self.block_dims:
            return None, items
        block = tuple(_constant(item, size) for item, size in zip(items[: self.block_dims], self.shape))
        return block, items[self.block_dims :]

    def __getitem__(self, key):
        block, rest = self._split(key)
        if block is None:
            return Part(self, key if isinstance(key, tuple) else (key,))
        tile = self.tiles.get(block)
        if tile is None:
            tile = self.tiles[block] = self.allocate(self.shape[self.block_dims :])
        return tile[rest] if rest else tile

    def __setitem__(self, key, value):
        from .value import assign

        assign(self[key], value)


class Part:
    """Blocks with some block indices given."""

    def __init__(self, blocks, key):
        self.blocks, self.key = blocks, key
        self.shape = blocks.shape[len(key) :]

    def __getitem__(self, key):
        return self.blocks[(*self.key, *(key if isinstance(key, tuple) else (key,)))]

    def __setitem__(self, key, value):
        self.blocks[(*self.key, *(key if isinstance(key, tuple) else (key,)))] = value


def _constant(item, size):
    if isinstance(item, Index):
        if any(item.coefficients):
            raise _core.UsageError("a block dimension is indexed with a number: blocks are separate tiles")
        return item.constant
    if isinstance(item, slice):
        if size == 1 or (item.stop is not None and item.stop - (item.start or 0) == 1):
            return item.start or 0
        raise _core.UsageError("a block dimension is indexed with a number: blocks are separate tiles")
    value = int(item)
    if not -size <= value < size:
        raise _core.UsageError(f"block {value} of {size}")
    return value % size


def _operator(name, reverse=False):
    def method(self, other):
        from .. import ops

        return ops.binary(name, other, self) if reverse else ops.binary(name, self, other)

    return method


def add_operators(cls):
    """Python's operators as instructions; comparisons make tiles, except with None."""
    for python, name in (
        ("add", "add"),
        ("sub", "subtract"),
        ("mul", "multiply"),
        ("truediv", "divide"),
        ("pow", "power"),
        ("and", "bitwise_and"),
        ("or", "bitwise_or"),
        ("xor", "bitwise_xor"),
        ("lshift", "left_shift"),
        ("rshift", "right_shift"),
    ):
        setattr(cls, f"__{python}__", _operator(name))
        setattr(cls, f"__r{python}__", _operator(name, True))
    for python, name in (("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal")):
        setattr(cls, f"__{python}__", _operator(name))
    cls.__eq__ = lambda self, other: (
        self is other if other is None or isinstance(other, str) else _operator("equal")(self, other)
    )
    cls.__ne__ = lambda self, other: (
        self is not other if other is None or isinstance(other, str) else _operator("not_equal")(self, other)
    )
    cls.__hash__ = object.__hash__
    cls.__neg__ = lambda self: _operator("multiply")(self, -1.0)
    return cls


add_operators(OldTile)
