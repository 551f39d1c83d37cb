"""aws-neuron/nki-library: collectives, as 2 and 4 ranks of one core each (LNC 1)."""

import numpy as np

from .. import ranks
from .library_more import case


def all_equal(results, wanted):
    """What every rank holds, as rows of the wanted shape."""
    return [np.asarray(r).reshape(wanted.shape) for r in results], [wanted] * len(results)


def shards(seed, count, shape):
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape, dtype=np.float32) for _ in range(count)]


def sb2sb(module):
    for n in (2, 4):
        groups = module.ReplicaGroup([list(range(n))])
        x = shards(90, n, (128, 96))
        got = ranks(module.allgather_sb2sb, [(y, groups, n) for y in x])
        yield f"allgather sb2sb 128x96, {n} ranks", *all_equal(got, np.concatenate(x, 1))
        x = shards(91, n, (384, 64))
        got = ranks(module.allgather_sb2sb_tiled, [(y, groups, n) for y in x])
        yield f"allgather sb2sb tiled 384x64, {n} ranks", *all_equal(got, np.concatenate(x, 1))


def fine_grained(module):
    for n in (2, 4):
        for hbm in (False, True):
            x = shards(92, n, (128, 256))
            got = ranks(module.fine_grained_allgather, [(y, n, 1, hbm) for y in x])
            where = "HBM" if hbm else "SBUF"
            yield f"ring allgather {where} 128x256, {n} ranks", *all_equal(got, np.concatenate(x))


def product(module):
    for n in (2, 4):
        for hbm in (False, True):
            left, right = shards(93, n, (128, 256)), shards(94, n, (256, 512))
            got = ranks(module.allgather_compute_matmul, [(a, b, n, 1, hbm) for a, b in zip(left, right)])
            whole = np.concatenate(left).astype(np.float64)
            where = "HBM" if hbm else "SBUF"
            name = f"ring allgather matmul {where} 128x256x512, {n} ranks"
            yield name, [np.asarray(g).reshape(n * 128, 512) for g in got], [whole @ b for b in right]


CASES = [
    case(37, "experimental/collectives/sb2sb_allgather", sb2sb, 0.0),
    case(37, "experimental/collectives/fg_allgather", fine_grained, 0.0),
    case(37, "experimental/collectives/fgcc", product),
]
