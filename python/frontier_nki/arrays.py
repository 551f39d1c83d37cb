"""Arrays in and out: numpy, torch where it is installed, and types numpy has no name for.

bf16 and fp8 travel as ml_dtypes arrays where that package is installed, else as Tagged: unsigned integers
of the same width that know what they stand for and convert with astype(float32).
"""

import sys

import numpy as np

from . import _core
from .types import DTYPES, dtype_of, name_of

_WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


class Tagged(np.ndarray):
    """Unsigned integers that stand for numbers of `nki_dtype`."""

    nki_dtype = None

    def __array_finalize__(self, source):
        self.nki_dtype = getattr(source, "nki_dtype", None)

    def astype(self, dtype, **options):
        if self.nki_dtype == "bfloat16" and np.dtype(dtype).kind == "f":
            wide = np.asarray(self).astype(np.uint32) << 16
            return wide.view(np.float32).astype(dtype)
        return super().astype(dtype, **options)


def numpy_dtype(dtype):
    """numpy's dtype for a dtype of the machine; None when only Tagged can hold it."""
    name = str(dtype)
    if name in ("bool", "bool_"):
        return np.dtype(np.bool_)
    if name == "tfloat32":
        return np.dtype(np.float32)
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        known = np.dtype(getattr(ml_dtypes, name))
        return None if known.kind == "O" else known  # a stand-in for the package makes objects
    except (ImportError, AttributeError):
        return None


def is_torch(value):
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(value, torch.Tensor)


def is_array(value):
    return (
        isinstance(value, np.ndarray)
        or is_torch(value)
        or (
            hasattr(value, "__array__")
            and hasattr(value, "dtype")
            and hasattr(value, "shape")
            and not isinstance(value, (np.generic, _core.Tile))
        )
    )


def host_array(value):
    """(C-contiguous numpy array of raw bytes, dtype of the machine)."""
    if is_torch(value):
        tensor = value.detach().cpu().contiguous()
        name = str(tensor.dtype).removeprefix("torch.")
        if name == "bfloat16" or name.startswith("float8"):
            import torch

            raw = torch.int16 if tensor.element_size() == 2 else torch.uint8
            return np.ascontiguousarray(tensor.view(raw).numpy()), dtype_of(name)
        return np.ascontiguousarray(tensor.numpy()), dtype_of(name)
    array = np.ascontiguousarray(value)
    tag = getattr(value, "nki_dtype", None)
    if tag:
        return array, dtype_of(tag)
    if array.dtype in (np.float64, np.int64, np.uint64):  # the machine has no 64-bit types
        array = np.ascontiguousarray(
            array.astype({"f": np.float32, "i": np.int32, "u": np.uint32}[array.dtype.kind])
        )
    if name_of(array.dtype) is None:
        raise _core.UsageError(f"an array of {array.dtype} is nothing the machine can hold")
    return array, dtype_of(array.dtype)


def raw_bytes(array):
    return array.reshape(-1).view(np.uint8) if array.size else array


def empty(shape, dtype):
    known = numpy_dtype(dtype)
    if known is not None:
        return np.empty(shape, known)
    array = np.empty(shape, _WIDTHS[DTYPES[str(dtype)].itemsize]).view(Tagged)
    array.nki_dtype = str(dtype)
    return array


def undefined(tile):
    """Fills a tile that may be read and holds nothing defined: NaN, so that a use shows; 0 in integers."""
    kind = numpy_dtype(tile.dtype)
    bits = 0 if kind is None or kind.kind in "iub" else np.full(1, np.nan, np.float32).astype(kind)
    filler = (
        np.broadcast_to(bits, tile.shape)
        if kind is not None
        else np.zeros(tile.size * tile.dtype.itemsize, np.uint8)
    )
    tile.write_tensor(raw_bytes(np.ascontiguousarray(filler, dtype=kind)))


def narrow(values, dtype):
    """Values as an array of a dtype, rounded to nearest even; beyond its range they are infinite."""
    known = numpy_dtype(dtype)
    wide = np.ascontiguousarray(values, dtype=np.float32)
    if known is not None:
        with np.errstate(over="ignore"):
            return wide.astype(known)
    if str(dtype) != "bfloat16":
        raise _core.UsageError(f"numpy has no {dtype} here: install ml_dtypes")
    bits = wide.view(np.uint32)
    array = empty(wide.shape, dtype)
    array[...] = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return array


def whole(tile):
    """The whole tensor behind a tile, as an array of its own."""
    array = empty(tile.base_shape, tile.base_dtype_name)
    tile.read_tensor(np.asarray(array).reshape(-1).view(np.uint8))
    return array


def read(tile):
    """What a tile shows, as an array of its own."""
    array = whole(tile)
    if tile.shape == tile.base_shape and tile.is_contiguous() and tile.offset == 0:
        return array
    flat = array.reshape(-1)
    itemsize = flat.itemsize
    strides = list(tile.strides)
    if tile.memory != "hbm":  # a partition is a row of the whole array
        strides[0] = int(np.prod(tile.base_shape[1:]))
    if tile.dtype_name != tile.base_dtype_name:
        known = numpy_dtype(tile.dtype)
        if known is None:
            raise _core.UsageError(f"a view as {tile.dtype_name} cannot be read on the host")
        flat = flat.view(known)
        itemsize = flat.itemsize
        if tile.memory != "hbm":
            strides[0] = strides[0] * array.itemsize // itemsize
    view = np.lib.stride_tricks.as_strided(
        flat[tile.offset :], tile.shape, [s * itemsize for s in strides], subok=True, writeable=False
    )
    return view.copy()


def receive(tile, values):
    """Puts an array of the tile's dtype where the tile points; the rest of its tensor stays as it is."""
    if tile.dtype_name != tile.base_dtype_name:
        raise _core.UsageError(f"a view as {tile.dtype_name} cannot be written by a collective")
    array = whole(tile)
    strides = list(tile.strides)
    if tile.memory != "hbm":
        strides[0] = int(np.prod(tile.base_shape[1:]))
    flat = np.asarray(array).reshape(-1)
    view = np.lib.stride_tricks.as_strided(
        flat[tile.offset :], tile.shape, [s * flat.itemsize for s in strides], writeable=True
    )
    view[...] = np.asarray(values).view(flat.dtype)
    tile.receive(raw_bytes(flat))


def to_torch(array):
    import torch

    tag = getattr(array, "nki_dtype", None) or str(array.dtype)
    if tag == "bfloat16" or tag.startswith("float8"):
        raw = np.asarray(array).view(np.int16 if array.itemsize == 2 else np.uint8)
        return torch.from_numpy(raw).view(getattr(torch, tag))
    return torch.from_numpy(np.asarray(array))


def update(destination, array):
    """Writes what a kernel left in an input tensor back into the caller's array."""
    if is_torch(destination):
        destination.data.copy_(to_torch(array).to(destination.dtype))
    elif isinstance(destination, np.ndarray) and destination.flags.writeable:
        if destination.dtype == array.dtype or getattr(destination, "nki_dtype", None):
            destination[...] = np.asarray(array).view(destination.dtype)
        else:
            destination[...] = array.astype(destination.dtype)
