"""A convolution of two taps, y[t] = taps[0] x[t] + taps[1] x[t-1] by channel, zeros before a sequence; and its gradients.

Layout: tokens on partitions. Of a sequence, partition p takes the p-th of 128 equal stretches of tokens and loads it with the token before (the
gradient: after) it, so a neighbour is always the row beside in the same partition. Only the sequence's first (last) partition has no
such token and gets zeros. Tokens that 128 does not divide are a last tile with one token a partition. Taps lie in every partition.
Tiling: GROUP numbers, as whole tokens, a partition. Vector and GpSimd make a product each, Vector adds: arithmetic is the bound, not the
bytes. The gradient of the taps is a sum over all tokens: Vector multiplies, the PE adds partitions and tokens in PSUM (a product with
ones, in fp32), in slices of 512 channels.
"""

import nki
import nki.isa as nisa
import nki.language as nl

GROUP = 2560  # numbers of a partition in one tile, at most, as whole tokens
SLICE = 512


def tiles(length, width):
    """[partitions, tokens of a partition, first token, tokens of a stretch] of the tiles of a sequence."""
    pmax = nl.tile_size.pmax
    group = max(1, GROUP // width)
    stretch = length // pmax
    found = []
    start = 0
    while start < stretch:
        size = min(group, stretch - start)
        found.append((pmax, size, start, stretch))
        start = start + size
    if stretch * pmax < length:
        found.append((length - stretch * pmax, 1, stretch * pmax, 1))
    return found


def tokens_of(x, first, tile, low, count, shift):
    """Partitions low .. low + count of a tile in HBM, their tokens moved by `shift`, with `size` of them."""
    _, size, start, stretch = tile
    width = x.shape[1]
    at = first + start + low * stretch + shift
    return x.ap(pattern=[[stretch * width, count], [width, size], [1, width]], offset=at * width)


def load_pair(x, first, length, tile, shift):
    """(tokens, their neighbours at t + shift) of a tile, as views of one load; zeros beyond the sequence."""
    partitions, size, start, stretch = tile
    a = nl.ndarray((partitions, size + 1, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    longer = (partitions, size + 1, start, stretch)
    low = 0
    high = partitions
    if shift < 0 and start == 0:  # nothing before the first token
        low = 1
        nisa.memset(dst=a[0:1, 0, :], value=0.0)
        nisa.dma_copy(dst=a[0:1, 1 : size + 1, :], src=tokens_of(x, first, tile, 0, 1, 0))
    if shift > 0 and start + (partitions - 1) * stretch + size == length:  # nothing after the last
        high = partitions - 1
        zero = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(dst=zero, value=0.0)
        nisa.dma_copy(dst=a[high:partitions, size, :], src=zero)
        nisa.dma_copy(dst=a[high:partitions, 0:size, :], src=tokens_of(x, first, tile, high, 1, 0))
    if low < high:
        nisa.dma_copy(
            dst=a[low:high, :, :], src=tokens_of(x, first, longer, low, high - low, min(shift, 0))
        )
    if shift < 0:
        return a[:, 1 : size + 1, :], a[:, 0:size, :]
    return a[:, 0:size, :], a[:, 1 : size + 1, :]


def load_taps(taps):
    """Both rows of taps in every partition: (128, 2, width) float32."""
    pmax = nl.tile_size.pmax
    width = taps.shape[1]
    t = nl.ndarray((pmax, 2, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=taps.ap(pattern=[[0, pmax], [width, 2], [1, width]], offset=0))
    return t


def tapped(here, beside, taps, dtype):
    """taps[0] here + taps[1] beside, token by token."""
    partitions, size, width = here.shape
    first = nl.ndarray((partitions, size, width), dtype=nl.float32, buffer=nl.sbuf)
    second = nl.ndarray((partitions, size, width), dtype=nl.float32, buffer=nl.sbuf)
    out = nl.ndarray((partitions, size, width), dtype=dtype, buffer=nl.sbuf)
    for j in range(size):
        nisa.tensor_tensor(
            dst=first[:, j, :], data1=here[:, j, :], data2=taps[0:partitions, 0, :], op=nl.multiply
        )
        nisa.tensor_tensor(
            dst=second[:, j, :],
            data1=beside[:, j, :],
            data2=taps[0:partitions, 1, :],
            op=nl.multiply,
            engine=nisa.engine.gpsimd,
        )
    nisa.tensor_tensor(dst=out, data1=first, data2=second, op=nl.add)
    return out


@nki.jit
def two_tap(x, taps, length=None):
    """x (tokens, width), taps (2, width); sequences of `length` tokens, all tokens without: (tokens, width)"""
    tokens, width = x.shape
    length = length or tokens
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = load_taps(taps)
    for first in range(0, tokens, length):
        for tile in tiles(length, width):
            here, before = load_pair(x, first, length, tile, -1)
            nisa.dma_copy(
                dst=tokens_of(y, first, tile, 0, tile[0], 0), src=tapped(here, before, t, x.dtype)
            )
    return y


def add_products(sums, ones, left, right, started):
    """sums += the sum over partitions and tokens of left * right, in slices of channels."""
    partitions, size, width = left.shape
    products = nl.ndarray((partitions, size, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=products, data1=left, data2=right, op=nl.multiply)
    for part in range(len(sums)):
        low = part * SLICE
        many = min(SLICE, width - low)
        for j in range(size):
            nisa.nc_matmul(
                dst=sums[part],
                stationary=ones[0:partitions, :],
                moving=products[:, j, low : low + many],
                accumulate=started or j > 0,
            )


@nki.jit
def two_tap_backward(x, taps, dy, length=None):
    """(dx, dtaps) of y = two_tap(x, taps); dtaps float32"""
    tokens, width = x.shape
    length = length or tokens
    dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    dtaps = nl.ndarray((2, width), dtype=nl.float32, buffer=nl.shared_hbm)
    t = load_taps(taps)
    ones = nl.ndarray((nl.tile_size.pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    sums = [[], []]
    for tap in range(2):
        for low in range(0, width, SLICE):
            sums[tap].append(nl.ndarray((1, min(SLICE, width - low)), dtype=nl.float32, buffer=nl.psum))
    started = False
    for first in range(0, tokens, length):
        for tile in tiles(length, width):
            dhere, dafter = load_pair(dy, first, length, tile, 1)
            nisa.dma_copy(
                dst=tokens_of(dx, first, tile, 0, tile[0], 0), src=tapped(dhere, dafter, t, x.dtype)
            )
            here, before = load_pair(x, first, length, tile, -1)
            add_products(sums[0], ones, here, dhere, started)
            add_products(sums[1], ones, before, dhere, started)
            started = True
    out = nl.ndarray((1, 2, width), dtype=nl.float32, buffer=nl.sbuf)
    for tap in range(2):
        for part in range(len(sums[tap])):
            low = part * SLICE
            many = min(SLICE, width - low)
            nisa.tensor_copy(dst=out[:, tap, low : low + many], src=sums[tap][part])
    nisa.dma_copy(dst=dtaps.reshape((1, 2, width)), src=out)
    return dx, dtaps
