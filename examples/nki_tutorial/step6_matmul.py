"""Step 6: all eight banks, and no waiting at the start.

    build/frontier nki run examples/nki_tutorial/step6_matmul.py --timeline --timing-only

A block of C is 512 x 1,024: four rows of tiles by two, which fills PSUM. Rows of the right matrix come 2,048
bytes at a time. The left tiles are loaded between the right ones during the first pass over k, so the PE starts
with the first pair instead of waiting for sixteen left tiles.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from matrices import run

ROWS, COLUMNS = 4, 2  # sums side by side: 4 x 128 rows by 2 x 512 columns of C


@nki.jit
def matmul_full(a, b):
    k_size, m_size = a.shape
    n_size = b.shape[1]
    height, width = ROWS * 128, COLUMNS * 512
    c = nl.ndarray((m_size, n_size), dtype=a.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(m_size // height):
        left = []
        for n in nl.affine_range(n_size // width):
            total = [nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for _ in range(ROWS * COLUMNS)]
            for k in nl.affine_range(k_size // 128):
                if n == 0:
                    left.append(nl.ndarray((128, height), dtype=a.dtype, buffer=nl.sbuf))
                    nisa.dma_copy(dst=left[k], src=a[nl.ds(k * 128, 128), nl.ds(m * height, height)])
                right = nl.ndarray((128, width), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), nl.ds(n * width, width)])
                for i in nl.affine_range(ROWS):
                    for j in nl.affine_range(COLUMNS):
                        nisa.nc_matmul(
                            dst=total[i * COLUMNS + j],
                            stationary=left[k][:, nl.ds(i * 128, 128)],
                            moving=right[:, nl.ds(j * 512, 512)],
                        )
            for i in nl.affine_range(ROWS):
                out = nl.ndarray((128, width), dtype=c.dtype, buffer=nl.sbuf)
                for j in nl.affine_range(COLUMNS):
                    nisa.tensor_copy(dst=out[:, nl.ds(j * 512, 512)], src=total[i * COLUMNS + j])
                nisa.dma_copy(dst=c[nl.ds(m * height + i * 128, 128), nl.ds(n * width, width)], src=out)
    return c


if __name__ == "__main__":
    run(matmul_full)
