"""Step 2: add two matrices, whole rows at a time.

    build/frontier nki run examples/nki_tutorial/step2_add.py --timeline

The same bytes and the same additions as step 1. A descriptor is now a whole row, 4,096 bytes, and there is a
sixteenth of the instructions.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def add_rows(x, y):
    rows, columns = x.shape
    z = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(rows // 128):
        here = nl.ds(i * 128, 128)
        a = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        b = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=x[here, :])
        nisa.dma_copy(dst=b, src=y[here, :])
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
        nisa.dma_copy(dst=z[here, :], src=a)
    return z


if __name__ == "__main__":
    x, y = np.random.default_rng(1).standard_normal((2, 2048, 2048)).astype(np.float16)
    print("largest difference from numpy:", np.abs(add_rows(x, y) - (x + y)).max())
