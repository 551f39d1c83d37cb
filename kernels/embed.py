"""Embedding: rows of a table by token, and the way back, rows added to those of a table.

Forward. 128 tokens at a time, one a partition: an indirect transfer fetches row ids[t] of the table into partition t, another stores the tile.
GpSimd's software makes the descriptors of indirect transfers; they are the bound when rows are short, the bytes when they are long.

Backward (scatter_add). Tokens of a block may name the same row, and no order of stores would add them. So a block first adds its own rows: a
128 x 128 matrix of ids[i] == ids[j], ones and zeros, times the block on the PE (fp32, exact selection) gives every token the sum of all tokens with its
id. Then the rows are fetched, the sums added, the rows stored: tokens with one id store the same numbers. Blocks follow each other, as
one may touch the rows of the one before. Rows of the table that no token names pass through SBUF once, unchanged.
"""

import nki
import nki.isa as nisa
import nki.language as nl

SLICE = 512  # columns of a block multiplied at a time: one bank of PSUM


def rows_of(table, ids, count):
    """Rows ids[0], ids[1] ... of a table in HBM."""
    width = table.shape[1]
    return table.ap(pattern=[[width, count], [1, width]], offset=0, vector_offset=ids[0:count, :], indirect_dim=0)


def load_ids(ids, start, count):
    """uint32 (128, 1): an id a partition."""
    tile = nl.ndarray((nl.tile_size.pmax, 1), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:count, :], src=ids.ap(pattern=[[1, count], [1, 1]], offset=start))
    return tile


@nki.jit
def embed(table, ids):
    """table (rows, width), ids (tokens,) int32: (tokens, width)"""
    tokens = ids.shape[0]
    width = table.shape[1]
    out = nl.ndarray((tokens, width), dtype=table.dtype, buffer=nl.shared_hbm)
    for start in range(0, tokens, nl.tile_size.pmax):
        count = min(nl.tile_size.pmax, tokens - start)
        places = load_ids(ids, start, count)
        rows = nl.ndarray((count, width), dtype=table.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=rows_of(table, places, count))
        nisa.dma_copy(dst=out[nl.ds(start, count), :], src=rows)
    return out


def copy_table(table, out):
    height, width = table.shape
    for start in range(0, height, nl.tile_size.pmax):
        count = min(nl.tile_size.pmax, height - start)
        rows = nl.ndarray((count, width), dtype=table.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=table[nl.ds(start, count), :])
        nisa.dma_copy(dst=out[nl.ds(start, count), :], src=rows)


def same_ids(ids, start, count):
    """(count, count) float32: 1 where two tokens of the block have one id."""
    across = nl.ndarray((count, count), dtype=nl.uint32, buffer=nl.sbuf)
    down = nl.ndarray((count, 1), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=across, src=ids.ap(pattern=[[0, count], [1, count]], offset=start))
    nisa.dma_copy(dst=down, src=ids.ap(pattern=[[1, count], [1, 1]], offset=start))
    same = nl.ndarray((count, count), dtype=nl.float32, buffer=nl.sbuf)
    wide = nl.ndarray((count, count), dtype=nl.float32, buffer=nl.sbuf)
    one = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=wide, src=across)
    nisa.tensor_copy(dst=one, src=down)
    nisa.tensor_scalar(dst=same, data=wide, op0=nl.equal, operand0=one)
    return same


@nki.jit
def scatter_add(table, ids, rows):
    """table (rows, width), ids (tokens,) int32 below 2**24, rows (tokens, width): the table with rows[t] added to its row ids[t]"""
    tokens = ids.shape[0]
    width = table.shape[1]
    out = nl.ndarray(table.shape, dtype=table.dtype, buffer=nl.shared_hbm)
    copy_table(table, out)
    for start in range(0, tokens, nl.tile_size.pmax):
        count = min(nl.tile_size.pmax, tokens - start)
        places = load_ids(ids, start, count)
        same = same_ids(ids, start, count)
        block = nl.ndarray((count, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=block, src=rows[nl.ds(start, count), :])
        old = nl.ndarray((count, width), dtype=table.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=old, src=rows_of(out, places, count))
        for first in range(0, width, SLICE):
            size = min(SLICE, width - first)
            total = nl.ndarray((count, size), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=total, stationary=same, moving=block[:, nl.ds(first, size)])
            part = old[:, nl.ds(first, size)]
            nisa.tensor_tensor(dst=part, data1=part, data2=total, op=nl.add)
        nisa.dma_copy(dst=rows_of(out, places, count), src=old)
    return out
