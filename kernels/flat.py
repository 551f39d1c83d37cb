"""Tensors whose shape does not matter, as one flat run.

Partition p takes the p-th of 128 equal stretches, in pieces of `chunk` columns: every row of a tile is contiguous in HBM. What 128 does not
divide comes last, in tiles of one partition.
"""

import nki.language as nl


def tiles(x, chunk):
    """[partitions, start, size, stride] of every tile of a flat tensor."""
    count = 1
    for size in x.shape:
        count = count * size
    columns = count // nl.tile_size.pmax
    found = []
    start = 0
    while start < columns:
        size = min(chunk, columns - start)
        found.append((nl.tile_size.pmax, start, size, columns))
        start = start + size
    done = columns * nl.tile_size.pmax
    while done < count:
        size = min(chunk, count - done)
        found.append((1, done, size, size))
        done = done + size
    return found


def flat(x, tile):
    """The part of a tensor in HBM that is a tile."""
    partitions, start, size, stride = tile
    return x.ap(pattern=[[stride, partitions], [1, size]], offset=start)
