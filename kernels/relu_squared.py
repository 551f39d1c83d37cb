"""ReLU squared and leaky ReLU squared, forward and backward.

Layout: the operator knows no rows, so the whole tensor is one flat run; partition p takes the p-th of 128 equal stretches of
it and every transfer moves long contiguous pieces (16 KiB a partition in bf16). What 128 does not divide is a last tile of one partition.
Tiling: pieces of CHUNK columns; the first and last pieces are shorter, so that the engines start early and finish early. Loads are
triggered by Sync, stores by GpSimd, which has nothing else to do. Vector clips (four elements a cycle in
bf16), Scalar squares; both take less time than the transfers, which are the bound.
"""

import nki
import nki.isa as nisa
import nki.language as nl

CHUNK = 8192


def pieces(columns):
    """[start, size] of every piece of a stretch: short ones at both ends."""
    sizes = []
    left = columns
    edge = CHUNK // 4
    if columns > 4 * CHUNK:
        sizes.append(edge)
        left = left - 2 * edge
    while left > 0:
        sizes.append(min(CHUNK, left))
        left = left - CHUNK
    if columns > 4 * CHUNK:
        sizes.append(edge)
    parts = []
    start = 0
    for size in sizes:
        parts.append((start, size))
        start = start + size
    return parts


def tiles(x):
    """[partitions, start, size, stride] of every tile of a flat tensor."""
    count = 1
    for size in x.shape:
        count = count * size
    columns = count // nl.tile_size.pmax
    found = []
    for item in pieces(columns):
        start, size = item
        found.append((nl.tile_size.pmax, start, size, columns))
    done = columns * nl.tile_size.pmax
    if done < count:
        found.append((1, done, count - done, count - done))
    return found


def flat(x, tile):
    """The part of a tensor in HBM that is a tile."""
    partitions, start, size, stride = tile
    return x.ap(pattern=[[stride, partitions], [1, size]], offset=start)


@nki.jit
def relu_squared(x):
    """y = max(x, 0) ** 2"""
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for tile in tiles(x):
        a = nl.ndarray((tile[0], tile[2]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=flat(x, tile))
        nisa.tensor_scalar(dst=a, data=a, op0=nl.maximum, operand0=0.0)
        nisa.activation(dst=a, op=nl.square, data=a)
        nisa.dma_copy(dst=flat(y, tile), src=a)
    return y


@nki.jit
def relu_squared_backward(x, dy):
    """dx = 2 max(x, 0) dy"""
    dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for tile in tiles(x):
        a = nl.ndarray((tile[0], tile[2]), dtype=x.dtype, buffer=nl.sbuf)
        b = nl.ndarray((tile[0], tile[2]), dtype=dy.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=flat(x, tile))
        nisa.dma_copy(dst=b, src=flat(dy, tile))
        nisa.tensor_scalar(dst=a, data=a, op0=nl.maximum, operand0=0.0, op1=nl.multiply, operand1=2.0)
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.multiply)
        nisa.dma_copy(dst=flat(dx, tile), src=a)
    return dx


def leak(a, slope):
    """a becomes max(a, slope a). In bf16 as a factor of 1 or slope, which Vector makes and multiplies four and two
    elements a cycle; in fp32 in one instruction of half an element a cycle."""
    if a.dtype == nl.bfloat16:
        factor = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=factor, data=a, op0=nl.greater, operand0=0.0, op1=nl.maximum, operand1=slope)
        nisa.tensor_tensor(dst=a, data1=a, data2=factor, op=nl.multiply)
    else:
        nisa.scalar_tensor_tensor(dst=a, data=a, op0=nl.multiply, operand0=slope, op1=nl.maximum, operand1=a)


@nki.jit
def leaky_relu_squared(x, slope=0.5):
    """y = max(x, slope x) ** 2, 0 < slope < 1"""
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for tile in tiles(x):
        a = nl.ndarray((tile[0], tile[2]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=flat(x, tile))
        leak(a, slope)
        nisa.activation(dst=a, op=nl.square, data=a)
        nisa.dma_copy(dst=flat(y, tile), src=a)
    return y


@nki.jit
def leaky_relu_squared_backward(x, dy, slope=0.5):
    """dx = 2 dy max(x, slope x) (1 or slope), which is 2 dy max(x, slope**2 x)"""
    dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for tile in tiles(x):
        a = nl.ndarray((tile[0], tile[2]), dtype=x.dtype, buffer=nl.sbuf)
        b = nl.ndarray((tile[0], tile[2]), dtype=dy.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=flat(x, tile))
        nisa.dma_copy(dst=b, src=flat(dy, tile))
        leak(a, slope * slope)
        nisa.activation(dst=b, op=nl.copy, data=b, scale=2.0)
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.multiply)
        nisa.dma_copy(dst=flat(dx, tile), src=a)
    return dx
