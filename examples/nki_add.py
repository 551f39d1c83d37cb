"""Add two tensors on a simulated NeuronCore: the shortest kernel that does something.

    build/frontier nki run examples/nki_add.py

Inputs live in HBM. A kernel brings tiles of at most 128 partitions into SBUF, computes there, and sends the
result back.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def add(x, y):
    assert x.shape[0] % 128 == 0, "rows in tiles of 128"
    z = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in nl.affine_range(x.shape[0] // 128):
        rows = nl.ds(row * 128, 128)
        a = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        b = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=x[rows, :])
        nisa.dma_copy(dst=b, src=y[rows, :])
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
        nisa.dma_copy(dst=z[rows, :], src=a)
    return z


if __name__ == "__main__":
    random = np.random.default_rng(1)
    x, y = (random.standard_normal((512, 1024), dtype=np.float32) for _ in range(2))
    difference = np.abs(add(x, y) - (x + y)).max()
    print(f"largest difference from numpy: {difference}")
