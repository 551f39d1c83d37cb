"""Step 5: let each right tile serve four rows of C while it is here.

    build/frontier nki run examples/nki_tutorial/step5_matmul.py --timeline --timing-only

PSUM has eight banks of 128 x 512 sums. Four of them grow at once, so a right tile is loaded a quarter as often;
and the left tiles, four side by side, come in rows of 1,024 bytes.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from matrices import run

SUMS = 4  # of 128 rows of C each


@nki.jit
def matmul_blocked(a, b):
    k_size, m_size = a.shape
    n_size = b.shape[1]
    block = SUMS * 128
    c = nl.ndarray((m_size, n_size), dtype=a.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(m_size // block):
        left = []
        for k in nl.affine_range(k_size // 128):
            left.append(nl.ndarray((128, block), dtype=a.dtype, buffer=nl.sbuf))
            nisa.dma_copy(dst=left[k], src=a[nl.ds(k * 128, 128), nl.ds(m * block, block)])
        for n in nl.affine_range(n_size // 512):
            total = [nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for _ in range(SUMS)]
            for k in nl.affine_range(k_size // 128):
                right = nl.ndarray((128, 512), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), nl.ds(n * 512, 512)])
                for i in nl.affine_range(SUMS):
                    nisa.nc_matmul(dst=total[i], stationary=left[k][:, nl.ds(i * 128, 128)], moving=right)
            for i in nl.affine_range(SUMS):
                out = nl.ndarray((128, 512), dtype=c.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=out, src=total[i])
                nisa.dma_copy(dst=c[nl.ds(m * block + i * 128, 128), nl.ds(n * 512, 512)], src=out)
    return c


if __name__ == "__main__":
    run(matmul_blocked)
