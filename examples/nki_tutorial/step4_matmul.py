"""Step 4: load the left tiles once for a row of C instead of once for each of its pieces.

    build/frontier nki run examples/nki_tutorial/step4_matmul.py --timeline --timing-only

A loop that does not mention n has no business inside the loop over n.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from matrices import run


@nki.jit
def matmul_hoisted(a, b):
    k_size, m_size = a.shape
    n_size = b.shape[1]
    c = nl.ndarray((m_size, n_size), dtype=a.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(m_size // 128):
        left = []
        for k in nl.affine_range(k_size // 128):
            left.append(nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf))
            nisa.dma_copy(dst=left[k], src=a[nl.ds(k * 128, 128), nl.ds(m * 128, 128)])
        for n in nl.affine_range(n_size // 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(k_size // 128):
                right = nl.ndarray((128, 512), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), nl.ds(n * 512, 512)])
                nisa.nc_matmul(dst=total, stationary=left[k], moving=right)
            out = nl.ndarray((128, 512), dtype=c.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=out, src=total)
            nisa.dma_copy(dst=c[nl.ds(m * 128, 128), nl.ds(n * 512, 512)], src=out)
    return c


if __name__ == "__main__":
    run(matmul_hoisted)
