"""Step 1: add two matrices, a square of 128 x 128 at a time.

    build/frontier nki run examples/nki_tutorial/step1_add.py --timeline

A kernel brings tiles from HBM to SBUF, computes there, and sends the result back. A tile has at most 128
partitions; here it also has only 128 columns, so each row of it is a descriptor of 256 bytes.
docs/nki-tutorial.md says what the report shows.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def add_squares(x, y):
    rows, columns = x.shape
    z = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(rows // 128):
        for j in nl.affine_range(columns // 128):
            here = (nl.ds(i * 128, 128), nl.ds(j * 128, 128))
            a = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
            b = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=a, src=x[here])
            nisa.dma_copy(dst=b, src=y[here])
            nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
            nisa.dma_copy(dst=z[here], src=a)
    return z


if __name__ == "__main__":
    x, y = np.random.default_rng(1).standard_normal((2, 2048, 2048)).astype(np.float16)
    print("largest difference from numpy:", np.abs(add_squares(x, y) - (x + y)).max())
