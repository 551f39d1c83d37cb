"""Functions of tiles, nl.add(x, y) and the like, as instructions.

Each function allocates its result and issues the instruction that makes it. In the older style the result
is a deferred value instead (old/value.py): `tile[index] = nl.add(x, y)` then writes straight into the tile,
as AWS's compiler does. What no single instruction does (softmax, mean, cos) is written in terms of the
others.
"""

import math

import numpy as np

from . import _core, session
from .types import dtype_of, name_of, psum, region_of, sbuf, shared_hbm

ISA = _core.functions()


class Code:
    """A value of an enumeration: the name kernels use, AWS's value and the core's number."""

    def __init__(self, family, name, value, code):
        self.family, self.name, self.value, self.nki_code = family, name, value, code

    def __repr__(self):
        return f"nisa.{self.family}.{self.name}"

    def __int__(self):
        return self.value

    def __eq__(self, other):
        return (
            self is other
            or isinstance(other, Code)
            and (other.family, other.name) == (self.family, self.name)
        )

    def __hash__(self):
        return hash((self.family, self.name))


# ---- allocation ----


def shape_in(shape, region):
    """A tensor's sizes; on chip one dimension is the partitions, and a column."""
    if any(isinstance(s, float) and s != int(s) for s in shape):
        raise _core.UsageError(f"a tensor of shape {tuple(shape)}: sizes are whole numbers")
    shape = tuple(int(s) for s in shape)
    return (*shape, 1) if len(shape) == 1 and region.memory != "hbm" else shape


def allocate(shape, dtype, buffer=sbuf, name="", address=None):
    """A new tensor's tile. Shared HBM tensors are the same for all programs of a launch."""
    from . import launch as launching

    launch = session.running()
    region = region_of(buffer)
    name = name or launch.fresh_name()
    shape = shape_in(shape, region)
    if region is shared_hbm or region.shared:
        return launching.shared_output(launch, shape, dtype_of(dtype), name)
    where = None if address is None else (int(address[0]), int(address[1]))
    made = launch.core.tensor(
        region.memory, dtype_of(dtype), shape, name, where, False, launching.tile_type(launch.old)
    )
    if session.options.unwritten == "nan" and region is sbuf and not session.options.timing_only:
        from . import arrays

        arrays.undefined(made)
    return made


def make(instruction, shape, dtype, buffer=sbuf, mask=None, accumulates=False, **arguments):
    """The result of one instruction."""
    launch = session.running()
    shape = shape_in(shape, buffer)
    if launch.old:
        from .old.value import Value

        return Value(launch, instruction, shape, dtype, buffer, mask, arguments, accumulates)
    result = allocate(shape, dtype, buffer)
    ISA[instruction](dst=result, **arguments)
    return result


def tile(x):
    """The tile a value stands for."""
    if isinstance(x, _core.Tile):
        return x
    settle = getattr(x, "__nki_tile__", None)
    if settle is None:
        raise _core.UsageError(f"a tensor is needed here, not {x!r}")
    return settle()


def is_tile(x):
    return isinstance(x, _core.Tile) or hasattr(x, "__nki_tile__")


def on_chip(x):
    """The tile in SBUF or PSUM; a tensor in HBM is loaded."""
    x = tile(x)
    return tile(load(x)) if x.memory == "hbm" else x


def issue(instruction, **arguments):
    """An instruction with a dst of its own; a deferred value before it is made first, to keep program order."""
    launch = session.running()
    if launch.pending is not None:
        launch.pending.settle()
    ISA[instruction](**arguments)


# ---- moving data ----


def load(src, mask=None, dtype=None, **options):
    return make("dma_copy", src.shape, dtype or src.dtype, sbuf, mask, src=src)


def store(dst, value=None, mask=None, dtype=None, **options):
    if not is_tile(value):
        value = full(dst.shape, value, dst.dtype)
    value = tile(value)
    if value.memory == "psum":  # no DMA engine reaches PSUM: through SBUF, as the compiler does
        value = tile(copy(value, dtype=dst.dtype))
    move("dma_copy", dst, value, mask)


def move(instruction, dst, src, mask=None):
    launch = session.running()
    if launch.old:
        from .old.value import restricted

        pair = restricted((dst, src), mask, dst.shape)
        if pair is None:
            return
        dst, src = pair
    issue(instruction, dst=dst, src=src)


def copy(x, dtype=None, mask=None, **options):
    x = on_chip(x)
    return make("tensor_copy", x.shape, dtype or x.dtype, sbuf, mask, src=x)


def full(shape, fill_value, dtype, buffer=sbuf, name="", **options):
    result = allocate(shape, dtype, buffer, name)
    if result.memory == "hbm":
        raise _core.UsageError("nl.full and its kin fill tiles on chip; write HBM with dma_copy")
    issue("memset", dst=result, value=float(fill_value))
    return result


def zeros(shape, dtype, buffer=sbuf, name="", **options):
    return full(shape, 0.0, dtype, buffer, name)


def ones(shape, dtype, buffer=sbuf, name="", **options):
    return full(shape, 1.0, dtype, buffer, name)


def zeros_like(x, dtype=None, buffer=None, name="", **options):
    return full(x.shape, 0.0, dtype or x.dtype, buffer or sbuf, name)


def empty_like(x, dtype=None, buffer=None, name="", **options):
    return allocate(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def load_constant(array):
    """A numpy array as a tensor in HBM, there before the kernel starts."""
    from . import arrays, launch as launching

    launch = session.running()
    data, dtype = arrays.host_array(array)
    result = launch.core.tensor(
        "hbm", dtype, data.shape, launch.fresh_name(), None, True, launching.tile_type(launch.old)
    )
    result.write_tensor(arrays.raw_bytes(data))
    return result


# ---- elementwise ----


def _promote(x, y):
    """Result type of two tiles: the wider; floating over integer."""
    a, b = x.dtype, y.dtype
    if a == b:
        return a
    floats = [d for d in (a, b) if "float" in str(d)]
    if len(floats) == 1:
        return floats[0]
    return a if a.itemsize >= b.itemsize else b


def _broadcast_free(x, shape):
    """A view with size-1 free dimensions stretched; None when that is not enough."""
    if x.ndim != len(shape) or x.shape[0] != shape[0]:
        return None
    for dim, size in enumerate(shape):
        if x.shape[dim] != size:
            if x.shape[dim] != 1 or dim == 0:
                return None
            x = x.broadcast(dim, size)
    return x


def partition_broadcast(x, partitions):
    """x of one partition on `partitions` of them: a product with ones on the PE, evacuated from PSUM."""
    x = tile(x)
    rest = x.shape[1:]
    count = math.prod(rest)
    flat = x.reshape((1, count))
    result = allocate((partitions, count), x.dtype)
    weights = full((1, partitions), 1.0, "float32" if x.dtype == "float32" else x.dtype)
    for start in range(0, count, 512):
        stop = min(count, start + 512)
        accumulator = allocate((partitions, stop - start), "float32", psum)
        issue("nc_matmul", dst=accumulator, stationary=weights, moving=flat[:, start:stop])
        issue("tensor_copy", dst=result[:, start:stop], src=accumulator)
    return result.reshape((partitions, *rest))


def _common(x, y):
    """x and y as views of one shape, or (x, per-partition column)."""
    rank = max(x.ndim, y.ndim)
    while x.ndim < rank:
        x = x.expand_dim(1)
    while y.ndim < rank:
        y = y.expand_dim(1)
    shape = tuple(max(a, b) for a, b in zip(x.shape, y.shape))
    if x.shape[0] == 1 and shape[0] > 1:
        x = partition_broadcast(x, shape[0])
    if y.shape[0] == 1 and shape[0] > 1:
        y = partition_broadcast(y, shape[0])
    wide_x, wide_y = _broadcast_free(x, shape), _broadcast_free(y, shape)
    if wide_x is None or wide_y is None:
        raise _core.UsageError(
            f"shapes {x.shape} and {y.shape} do not match: tiles have equal partitions, and free "
            f"sizes that are equal or 1"
        )
    return wide_x, wide_y, shape


def _column(y, x):
    return (
        y.ndim == 2 and x.ndim >= 2 and y.shape[1] == 1 and y.shape[0] == x.shape[0] and x.shape[1:] != (1,)
    )


_COMPARE = {
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
}
_MIRROR = {"greater": "less", "less": "greater", "greater_equal": "less_equal", "less_equal": "greater_equal"}


def binary(op, x, y, dtype=None, mask=None, **options):
    """x op y of tiles and numbers."""
    if not is_tile(x) and not is_tile(y):
        raise _core.UsageError(f"nl.{op} of two numbers: use Python's operator")
    x = on_chip(x) if is_tile(x) else x
    y = on_chip(y) if is_tile(y) else y
    if op == "divide":
        return _divide(x, y, dtype, mask)
    if not is_tile(y) or (is_tile(x) and _column(y, x)):
        return _scalar(op, x, y, False, dtype, mask)
    if not is_tile(x) or _column(x, y):
        return _scalar(op, y, x, True, dtype, mask)
    kind = dtype or _promote(x, y)
    x, y, shape = _common(x, y)
    if x.memory == "psum" and y.memory == "psum":
        y = tile(copy(y))
    return make("tensor_tensor", shape, kind, sbuf, mask, data1=x, data2=y, op=op)


def _scalar(op, x, number, reverse, dtype, mask):
    kind = dtype or (x.dtype if not is_tile(number) else _promote(x, number))
    if is_tile(number):
        number = tile(number)
    return make(
        "tensor_scalar",
        x.shape,
        kind,
        sbuf,
        mask,
        data=x,
        op0=op,
        operand0=number if is_tile(number) else float(number),
        reverse0=reverse,
    )


def _divide(x, y, dtype, mask):
    if not is_tile(y):
        return _scalar("multiply", x, 1.0 / float(y), False, dtype, mask)
    inverse = tile(reciprocal(y, dtype="float32", mask=mask))
    return binary("multiply", x, inverse, dtype or (y.dtype if not is_tile(x) else _promote(x, y)), mask)


def activation(op, x, dtype=None, mask=None, bias=None, scale=1.0):
    x = on_chip(x)
    return make("activation", x.shape, dtype or x.dtype, sbuf, mask, op=op, data=x, bias=bias, scale=scale)


def reciprocal(x, dtype=None, mask=None, **options):
    x = on_chip(x)
    return make("reciprocal", x.shape, dtype or x.dtype, sbuf, mask, data=x)


def negative(x, dtype=None, mask=None, **options):
    return _scalar("multiply", on_chip(x), -1.0, False, dtype, mask)


def invert(x, dtype=None, mask=None, **options):
    x = on_chip(x)
    every = {"int8": -1, "int16": -1, "int32": -1, "uint8": 255, "uint16": 65535}.get(
        str(x.dtype), 4294967295
    )
    return _scalar("bitwise_xor", x, every, False, dtype, mask)


def logical_not(x, dtype=None, mask=None, **options):
    return _scalar("equal", on_chip(x), 0.0, False, dtype, mask)


def cos(x, dtype=None, mask=None, **options):
    """sin(x + pi/2): the table of sin ends at pi."""
    shifted = tile(_scalar("add", on_chip(x), math.pi / 2, False, "float32", mask))
    return activation("sin", shifted, dtype or x.dtype, mask)


def tan(x, dtype=None, mask=None, **options):
    return binary(
        "divide", activation("sin", x, "float32", mask), cos(x, "float32", mask), dtype or x.dtype, mask
    )


def trunc(x, dtype=None, mask=None, **options):
    """Towards zero: the floor of the magnitude, with the sign."""
    x = on_chip(x)
    magnitude = tile(activation("abs", x, "float32", mask))
    return binary(
        "multiply",
        tile(floor(magnitude, "float32", mask)),
        tile(activation("sign", x, "float32", mask)),
        dtype or x.dtype,
        mask,
    )


def floor(x, dtype=None, mask=None, **options):
    x = on_chip(x)
    nearest = tile(copy(tile(copy(x, dtype="int32", mask=mask)), dtype="float32", mask=mask))
    above = tile(binary("greater", nearest, x, "float32", mask))
    return binary("subtract", nearest, above, dtype or x.dtype, mask)


def ceil(x, dtype=None, mask=None, **options):
    return negative(tile(floor(tile(negative(x, "float32", mask)), "float32", mask)), dtype or x.dtype, mask)


def where(condition, x, y, dtype=None, mask=None, **options):
    """condition ? x : y as a copy and a predicated copy: arithmetic on both would lose infinities."""
    condition = on_chip(condition)
    shape = condition.shape
    result = allocate(shape, dtype or (x.dtype if is_tile(x) else y.dtype if is_tile(y) else "float32"))
    flag = tile(binary("not_equal", condition, 0.0, "uint8"))
    issue("tensor_copy", dst=result, src=_as_tile(y, shape, result.dtype))
    issue("tensor_copy_predicated", dst=result, src=_as_tile(x, shape, result.dtype), predicate=flag)
    return result


def _as_tile(value, shape, dtype):
    """A number or tile as a tile of this shape and dtype."""
    if not is_tile(value):
        return full(shape, value, dtype)
    value = _broadcast_free(on_chip(value), shape)
    return value if value.dtype == dtype else tile(copy(value, dtype=dtype))


# ---- reductions ----


def _axes(x, axis):
    axes = sorted({a % x.ndim for a in (axis if isinstance(axis, (list, tuple)) else [axis])})
    if 0 in axes:
        raise _core.UsageError(
            "dimension 0 is the partitions: reduce it with a product with ones on the PE, "
            "or nisa.tensor_partition_reduce"
        )
    return axes


def reduce(op, x, axis, dtype=None, mask=None, keepdims=False, negate=False):
    """Reduces trailing free axes; others are moved to the end by a view."""
    x = on_chip(x)
    axes = _axes(x, axis)
    kept = [d for d in range(x.ndim) if d not in axes]
    shape = (
        tuple(1 if d in axes else x.shape[d] for d in range(x.ndim))
        if keepdims
        else tuple(x.shape[d] for d in kept)
    )
    shape = shape if len(shape) > 1 else (*shape, 1)
    moved = x.permute(kept + axes) if kept + axes != list(range(x.ndim)) else x
    if mask is not None:
        from .old.value import restricted

        limited = restricted((moved,), _permuted(mask, kept + axes), moved.shape)
        return _reduce_masked(op, moved, limited, len(axes), shape, dtype, negate)
    return make(
        "tensor_reduce",
        shape,
        dtype or x.dtype,
        sbuf,
        None,
        op=op,
        data=moved,
        axis=list(range(moved.ndim - len(axes), moved.ndim)),
        negate=negate,
    )


def _permuted(mask, order):
    return mask.permuted(order) if hasattr(mask, "permuted") else mask


def _reduce_masked(op, moved, limited, axes, shape, dtype, negate):
    result = allocate(shape, dtype or moved.dtype)
    if limited is not None:
        (data,) = limited
        kept = data.shape[: data.ndim - axes]
        dst = result[tuple(slice(0, n) for n in kept[: result.ndim])]
        issue(
            "tensor_reduce",
            dst=dst,
            op=op,
            data=data,
            axis=list(range(data.ndim - axes, data.ndim)),
            negate=negate,
        )
    return result


def mean(x, axis, dtype=None, mask=None, keepdims=False, **options):
    count = math.prod(x.shape[a] for a in _axes(x, axis))
    total = tile(reduce("add", x, axis, "float32", mask, keepdims))
    return _scalar("multiply", total, 1.0 / count, False, dtype or x.dtype, mask=None)


def var(x, axis, dtype=None, mask=None, keepdims=False, **options):
    x = on_chip(x)
    average = tile(mean(x, axis, "float32", mask, True))
    centred = tile(binary("subtract", x, average, "float32"))
    return mean(tile(binary("multiply", centred, centred, "float32")), axis, dtype or x.dtype, mask, keepdims)


def softmax(x, axis=-1, dtype=None, mask=None, **options):
    x = on_chip(x)
    top = tile(reduce("maximum", x, axis, "float32", None, True))
    shifted = tile(binary("subtract", x, top, "float32"))
    powers = tile(activation("exp", shifted, "float32"))
    total = tile(reduce("add", powers, axis, "float32", None, True))
    return binary("multiply", powers, tile(reciprocal(total)), dtype or x.dtype)


def rms_norm(x, w, axis, n, epsilon=1e-6, dtype=None, **options):
    x = on_chip(x)
    squares = tile(binary("multiply", x, x, "float32"))
    total = tile(reduce("add", squares, axis, "float32", None, True))
    scaled = tile(
        make(
            "tensor_scalar",
            total.shape,
            "float32",
            sbuf,
            None,
            data=total,
            op0="multiply",
            operand0=1.0 / n,
            op1="add",
            operand1=float(epsilon),
        )
    )
    normal = tile(binary("multiply", x, tile(activation("rsqrt", scaled, "float32")), "float32"))
    return binary("multiply", normal, w, dtype or x.dtype)


# ---- products ----


def transpose(x, dtype=None, mask=None, **options):
    """Through the PE into PSUM, in blocks of 128."""
    x = on_chip(x)
    rows, columns = x.shape
    result = allocate((columns, rows), dtype or x.dtype)
    block = allocate((columns, rows), x.dtype, psum)
    issue("nc_transpose", dst=block, data=x)
    issue("tensor_copy", dst=result, src=block)
    return result


def matmul(x, y, transpose_x=False, mask=None, **options):
    """x @ y; x[K, M] with transpose_x."""
    x, y = on_chip(x), on_chip(y)
    stationary = x if transpose_x else tile(transpose(x))
    return make(
        "nc_matmul",
        (stationary.shape[1], y.shape[1]),
        "float32",
        psum,
        mask,
        accumulates=True,
        stationary=stationary,
        moving=y,
    )


def broadcast_to(x, shape, dtype=None, **options):
    x = tile(x)
    shape = tuple(shape)
    if x.shape[0] == 1 and shape[0] > 1 and x.memory != "hbm":
        x = partition_broadcast(x, shape[0])
    wide = _broadcast_free(x, shape)
    if wide is None:
        raise _core.UsageError(f"{x.shape} cannot be broadcast to {shape}")
    return wide


def expand_dims(x, axis):
    x = tile(x)
    for a in sorted(axis if isinstance(axis, (list, tuple)) else [axis]):
        x = x.expand_dim(a)
    return x


def iota(pattern, offset, multiplier, shape, dtype="int32"):
    return make(
        "iota", shape, dtype, sbuf, None, pattern=pattern, offset=offset, channel_multiplier=multiplier
    )


def constant_identity(n, dtype):
    return np.eye(n, dtype=np.float32) if "float" in (name_of(dtype) or "") else np.eye(n, dtype=np.uint8)


def move_general(instruction, dst, arguments, mask=None):
    """An instruction of the older style that was given a dst, within its mask."""
    names = [k for k, v in arguments.items() if isinstance(v, _core.Tile)]
    from .old.value import restricted

    cut = restricted([dst] + [arguments[k] for k in names], mask, dst.shape)
    if cut is not None:
        issue(instruction, dst=cut[0], **{**arguments, **dict(zip(names, cut[1:]))})
