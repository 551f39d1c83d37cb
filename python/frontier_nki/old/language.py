"""nki.language of the older style: index tiles, par_dim and block dimensions, masks on everything."""

from .. import _core, language, ops, session
from ..types import dtype_of, psum, region_of, sbuf
from . import index
from .tile import Blocks, OldTile
from .value import LoopReduce


class ParDim(int):
    """nl.par_dim(n): the dimension that is the partitions."""


class LoopIndex(int):
    """A loop's index, which knows whether this is the first round."""

    first = False


def _loop(start, stop=None, step=1, **options):
    bounds = (0, int(start)) if stop is None else (int(start), int(stop))
    for i in range(*bounds, int(step)):
        value = LoopIndex(i)
        value.first = i == bounds[0]
        yield value


def ndarray(shape, dtype, buffer=None, name="", address=None, **options):
    return _tensor(shape, dtype, buffer, name, address)


def _tensor(shape, dtype, buffer, name="", address=None, fill=None):
    shape = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    region = region_of(buffer)
    at = next((i for i, s in enumerate(shape) if isinstance(s, ParDim)), 0)
    sizes = [int(s) for s in shape]

    def one(tail):
        tile = ops.allocate(tail, dtype, region, name, address)
        if fill is not None:
            ops.issue("memset", dst=tile, value=fill)
        return tile

    if region.memory == "hbm" or at == 0:
        return one(sizes)
    blocks = Blocks(sizes, at, one)
    blocks.dtype, blocks.buffer = dtype_of(dtype), region
    return blocks


def zeros(shape, dtype, buffer=None, name="", **options):
    """In PSUM the first product overwrites; filling there would make accumulation undefined."""
    return _tensor(shape, dtype, buffer, name, None, None if region_of(buffer) is psum else 0.0)


def ones(shape, dtype, buffer=None, name="", **options):
    return _tensor(shape, dtype, buffer, name, None, 1.0)


def full(shape, fill_value, dtype, buffer=None, name="", **options):
    return _tensor(shape, dtype, buffer, name, None, float(fill_value))


def loop_reduce(x, op, loop_indices, dtype=None, **options):
    """The sum (or other) of x over rounds of the loops, in what it is assigned to."""
    return LoopReduce(x, op, all(getattr(i, "first", int(i) == 0) for i in loop_indices), dtype)


class nc:
    """nl.nc(n): that many physical cores along this dimension of the grid."""

    def __init__(self, cores):
        self.cores = int(cores)

    def __int__(self):
        return self.cores


class spmd_dim(int):
    """nl.spmd_dim(size, nl.nc(cores)): programs of one grid dimension over cores."""

    cores = 1

    def __new__(cls, size, cores=None):
        count = int(cores) if cores is not None else 1
        value = super().__new__(cls, int(size) * count)
        value.cores = count
        return value


def static_cast(x, dtype):
    return ops.copy(x, dtype)


def device_print(prefix, x=None, mask=None, **options):
    language.device_print(prefix, x)


def store(dst, value=None, mask=None, **options):
    ops.store(dst, value, mask)


def atomic_rmw(dst, value, op, mask=None, **options):
    """dst[rows, ...] += value in HBM. The DMA engines add in fp32; a row listed twice is refused, as dma_compute does."""
    if getattr(op, "__name__", getattr(op, "name", None)) != "add":
        raise _core.UsageError(f"nl.atomic_rmw: op {op}; it adds (np.add)")
    if mask is not None or not dst.is_indirect():
        raise _core.UsageError("nl.atomic_rmw: dst is tensor[rows, ...] with rows listed in SBUF, and no mask")
    value = ops.tile(value if ops.is_tile(value) else ops.full(dst.shape, value, dst.dtype))
    if value.memory == "psum":
        value = ops.tile(ops.copy(value))
    ops.issue("dma_compute", dst=dst, srcs=[dst, value], reduce_op=language.OPERATORS["add"])


class _Region:
    """ncc.sbuf, ncc.psum: allocators of the compiler; here they only name the memory."""

    def __init__(self, region):
        self.region = region

    def __getattr__(self, name):
        return getattr(self.region, name)


def public():
    names = language.public()
    names.update(
        ndarray=ndarray,
        zeros=zeros,
        ones=ones,
        full=full,
        par_dim=ParDim,
        arange=index.arange,
        mgrid=index.mgrid,
        loop_reduce=loop_reduce,
        affine_range=_loop,
        sequential_range=_loop,
        static_range=_loop,
        nc=nc,
        spmd_dim=spmd_dim,
        static_cast=static_cast,
        device_print=device_print,
        store=store,
        tensor=OldTile,
        fp32=session and names["float32"],
    )
    names["atomic_rmw"] = atomic_rmw
    return names


__all__ = ["public", "ParDim", "sbuf"]
