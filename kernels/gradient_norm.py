"""The Euclidean norm of a gradient, sqrt(sum g**2), as one number in HBM.

Layout: one flat run (flat.py), in pieces of CHUNK columns. Scalar squares and sums a piece in one pass,
each piece into a column of its own, so that no sum waits for another. At the end Vector adds the columns, the PE adds the 128
partitions (a product with ones, exact in fp32), GpSimd takes the root (as a power: the table of roots has no zero). One stream in: the DMA engines are the bound.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.flat import flat, tiles

CHUNK = 2560


@nki.jit
def gradient_norm(gradient):
    """float32 (1, 1)"""
    pmax = nl.tile_size.pmax
    norm = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    pieces = tiles(gradient, CHUNK)
    sums = nl.ndarray((pmax, len(pieces)), dtype=nl.float32, buffer=nl.sbuf)
    ones = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=sums, value=0.0)
    nisa.memset(dst=ones, value=1.0)
    column = 0
    for tile in pieces:
        a = nl.ndarray((tile[0], tile[2]), dtype=gradient.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=flat(gradient, tile))
        nisa.activation_reduce(
            dst=a,
            op=nl.square,
            data=a,
            reduce_op=nl.add,
            reduce_res=sums[0 : tile[0], column : column + 1],
        )
        column = column + 1
    rows = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=rows, op=nl.add, data=sums, axis=1)
    total = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=rows, moving=ones)
    root = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=root, src=total)
    nisa.tensor_scalar(dst=root, data=root, op0=nl.power, operand0=0.5)
    nisa.dma_copy(dst=norm, src=root)
    return norm
