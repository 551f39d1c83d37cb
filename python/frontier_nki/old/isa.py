"""nki.isa of the older style: no dst, the result is returned; mask= and dtype= on everything.

The parameters are those of the descriptor table without dst; a table here says what shape and dtype each
result has, where that is not the shape and dtype of the data operand. Instructions whose older form differs
in more than that have functions of their own below.
"""

from .. import _core, isa, ops
from ..types import psum, sbuf
from .index import Index, Mask
from .value import Value

_DATA = ("data", "src", "data1", "data0", "on_true_tile", "on_true")


def _data_shape(given):
    for name in _DATA:
        if given.get(name) is not None:
            return ops.tile(given[name]).shape
    raise _core.UsageError("no operand gives the result its shape")


def _data_dtype(given):
    for name in _DATA:
        if given.get(name) is not None:
            return given[name].dtype
    return "float32"


def _reduced(given):
    data = ops.tile(given["data"])
    axis = given["axis"]
    axes = {a % data.ndim for a in (axis if isinstance(axis, (list, tuple)) else [axis])}
    shape = tuple(n for d, n in enumerate(data.shape) if d not in axes)
    if given.get("keepdims"):
        shape = tuple(1 if d in axes else n for d, n in enumerate(data.shape))
    return shape if len(shape) > 1 else (*shape, 1)


_SHAPES = {
    "tensor_reduce": _reduced,
    "bn_stats": lambda g: (ops.tile(g["data"]).shape[0], 6),
    "bn_aggr": lambda g: (ops.tile(g["data"]).shape[0], 2),
    "max8": lambda g: (ops.tile(g["src"]).shape[0], 8),
    "nc_find_index8": lambda g: (ops.tile(g["data"]).shape[0], 8),
    "tensor_partition_reduce": lambda g: (1, *ops.tile(g["data"]).shape[1:]),
    "local_gather": lambda g: ops.tile(g["index"]).shape,
    "nc_n_gather": lambda g: ops.tile(g["indices"]).shape,
}
_DTYPES = {"nc_find_index8": "uint32", "bn_stats": "float32", "bn_aggr": "float32"}
_IGNORED = {"name", "lowering_kwargs"}
_OLD_NAMES = {"scan": "tensor_tensor_scan"}


def _general(name, parameters):
    order = [p["name"] for p in parameters if p["name"] != "dst"]

    def instruction(*args, mask=None, dtype=None, **kwargs):
        given = dict(zip(order, args))
        given.update((k, v) for k, v in kwargs.items() if k not in _IGNORED)
        given = {k: ops.on_chip(v) if ops.is_tile(v) and name != "dma_copy" else v for k, v in given.items()}
        dst = given.pop("dst", None)
        if dst is not None:
            return ops.move_general(name, dst, given, mask)
        shape = _SHAPES.get(name, _data_shape)(given)
        value = ops.make(name, shape, dtype or _DTYPES.get(name) or _data_dtype(given), sbuf, mask, **given)
        if name == "tensor_reduce":
            value.grid = ops.tile(given["data"]).shape
        return value

    instruction.__name__ = name
    return instruction


# ---- products and transposes ----


def nc_matmul(
    stationary,
    moving,
    is_stationary_onezero=False,
    is_moving_onezero=False,
    is_transpose=False,
    tile_position=(),
    tile_size=(),
    mask=None,
    **options,
):
    """[K, M] and [K, N] to [M, N] in PSUM. A mask bounds K and N, where its sizes are theirs."""
    stationary, moving = _as_matrix(stationary), _as_matrix(moving)
    kind = stationary.dtype if is_transpose else "float32"
    if mask is not None:
        box = mask.box((stationary.shape[0], moving.shape[1])) if isinstance(mask, Mask) else None
        if box is None and mask is not True:
            return Nothing((stationary.shape[1], moving.shape[1]), kind)
        (k0, k1), (n0, n1) = box
        value = Product(
            (stationary[k0:k1], moving[k0:k1, n0:n1]), (n0, n1), stationary.shape[1], moving.shape[1], kind
        )
    else:
        value = Product((stationary, moving), None, stationary.shape[1], moving.shape[1], kind)
    value.arguments.update(
        is_stationary_onezero=is_stationary_onezero,
        is_moving_onezero=is_moving_onezero,
        is_transpose=is_transpose,
        tile_position=tile_position,
        tile_size=tile_size,
    )
    return value


def _as_matrix(x):
    x = ops.on_chip(x)
    return x if x.ndim == 2 else x.reshape((x.shape[0], -1))


class Product(Value):
    """A product whose columns may be bounded."""

    def __init__(self, operands, columns, rows, width, dtype):
        from .. import session

        super().__init__(
            session.running(),
            "nc_matmul",
            (rows, width),
            dtype,
            psum,
            None,
            {"stationary": operands[0], "moving": operands[1]},
            True,
        )
        self.columns = columns

    def issue(self, dst, **more):
        self.launch.pending = None
        if dst.ndim != 2:
            dst = dst.reshape((dst.shape[0], -1))
        if self.columns is not None:
            dst = dst[:, self.columns[0] : self.columns[1]]
        _core.at(self.place)
        try:
            ops.ISA["nc_matmul"](dst=dst, **self.arguments)
        finally:
            _core.at(None)


class Nothing(Value):
    """A product that its mask leaves nothing of."""

    def __init__(self, shape, dtype):
        from .. import session

        super().__init__(session.running(), "nc_matmul", shape, dtype, psum, None, {}, True)

    def issue(self, dst, **more):
        self.launch.pending = None


def nc_transpose(data, mask=None, dtype=None, engine=None, **options):
    """[P, F] to [F, P]: in PSUM from the PE, in SBUF from Vector for blocks of 32."""
    data = _as_matrix(data)
    on_vector = engine == isa.engine.vector
    arguments = {"data": data}
    if engine is not None and engine.name != "unknown":
        arguments["engine"] = engine
    return ops.make(
        "nc_transpose",
        (data.shape[1], data.shape[0]),
        dtype or data.dtype,
        sbuf if on_vector else psum,
        mask,
        **arguments,
    )


# ---- forms of their own ----


def memset(shape=None, value=0, dtype="float32", mask=None, engine=None, dst=None, **options):
    arguments = {"value": float(value)}
    if engine is not None and engine.name != "unknown":
        arguments["engine"] = engine
    if dst is not None:
        return ops.move_general("memset", dst, arguments, mask)
    return ops.make("memset", tuple(shape), dtype, sbuf, mask, **arguments)


def iota(expr, dtype, mask=None, **options):
    """The values of an index tile."""
    if not isinstance(expr, Index):
        raise _core.UsageError("nisa.iota takes an index tile: nl.arange(...)[...] and sums of them")
    partitions = expr.shape[0]
    pattern = [[c, n] for c, n in zip(expr.coefficients[1:], expr.shape[1:])] or [[0, 1]]
    return ops.make(
        "iota",
        expr.shape if expr.ndim > 1 else (partitions, 1),
        dtype,
        sbuf,
        mask,
        pattern=pattern,
        offset=expr.constant,
        channel_multiplier=expr.coefficients[0],
    )


def affine_select(pred, on_true_tile, on_false_value, mask=None, dtype=None, **options):
    """pred is a comparison of index tiles."""
    data = ops.on_chip(on_true_tile)
    if not isinstance(pred, Mask) or len(pred.constraints) not in (1, 2):
        raise _core.UsageError("nisa.affine_select takes one comparison of index tiles")
    c = pred.constraints[0]
    pad = data.ndim - c.ndim
    coefficients = (0,) * pad + c.coefficients
    pattern = [[k, n] for k, n in zip(coefficients[1:], data.shape[1:])]
    op = "greater_equal" if len(pred.constraints) == 1 else "equal"
    return ops.make(
        "affine_select",
        data.shape,
        dtype or data.dtype,
        sbuf,
        mask,
        pattern=pattern,
        channel_multiplier=coefficients[0],
        offset=c.constant,
        on_true_tile=data,
        on_false_value=float(on_false_value),
        cmp_op=op,
    )


def activation_reduce(
    op, data, reduce_op=None, reduce_res=None, bias=None, scale=1.0, mask=None, dtype=None, **options
):
    data = ops.on_chip(data)
    return ops.make(
        "activation_reduce",
        data.shape,
        dtype or data.dtype,
        sbuf,
        mask,
        op=op,
        data=data,
        reduce_op=reduce_op,
        reduce_res=reduce_res,
        bias=bias,
        scale=scale,
    )


def dma_copy(dst=None, src=None, mask=None, dst_rmw_op=None, **options):
    if dst_rmw_op is not None:
        raise _core.UsageError("dma_copy(dst_rmw_op=) is nisa.dma_compute now")
    ops.move("dma_copy", dst, src, mask)


def tensor_copy_dynamic_src(*args, **kwargs):
    raise _core.UsageError(
        "tensor_copy_dynamic_src is gone since NKI 0.4: use tensor_copy with .ap(scalar_offset=)"
    )


def public():
    names = isa.public()
    table = {i["name"]: i["parameters"] for i in _core.instructions()}
    keep = {"register_alloc", "register_move", "register_load", "register_store"}
    for name, parameters in table.items():
        if name not in keep and any(p["name"] == "dst" for p in parameters):
            names[name] = _general(name, parameters)
    for old, new in _OLD_NAMES.items():
        if new in names:
            names[old] = names[new]
    names.update(
        nc_matmul=nc_matmul,
        nc_transpose=nc_transpose,
        memset=memset,
        iota=iota,
        affine_select=affine_select,
        activation_reduce=activation_reduce,
        dma_copy=dma_copy,
        tensor_copy_dynamic_src=tensor_copy_dynamic_src,
    )
    return names
