"""One AdamW step: decoupled decay first, both moments bias-corrected.

What changes from step to step comes as four numbers in HBM (`factors`), so one compiled kernel serves a whole run:
1 - lr decay, -lr / (1 - beta1**step), 1 / (1 - beta2**step), eps; the last three scaled by powers of two, as the table of roots ends at
2**118 and a second moment may reach 2**128: it is taken of 2**-14 of it, and what follows is 2**-7 of what it was.
Layout: one flat run (flat.py); pieces of CHUNK columns, as nine tiles of a piece are in SBUF at once.
Tiling: four streams in, three out, 28 bytes an element: the DMA engines are the bound, Vector is close behind. Scalar makes
(1 - beta1) g, (1 - beta2) g**2 and the root, GpSimd the inverse, Vector both moments and the weight. 2**-114 is added
under the root, far below eps**2: an untouched element has a second moment of zero, which the table of roots does not have.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

from kernels.flat import flat, tiles

CHUNK = 1024


def step_factors(step, lr, decay=0.0, beta1=0.8, beta2=0.95, eps=1e-10):
    """The numbers of one step, on the host: float32 (1, 4)."""
    root = 2.0**-7
    row = [1.0 - lr * decay, -lr * root / (1.0 - beta1**step), root**2 / (1.0 - beta2**step), eps * root]
    return np.array([row], dtype=np.float32)


def load(x, tile):
    a = nl.ndarray((tile[0], tile[2]), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=flat(x, tile))
    return a


@nki.jit
def adamw_step(weight, gradient, first_moment, second_moment, factors, beta1=0.8, beta2=0.95):
    """(weight, first moment, second moment) after the step; everything float32."""
    new = []
    for old in (weight, first_moment, second_moment):
        new.append(nl.ndarray(old.shape, dtype=nl.float32, buffer=nl.shared_hbm))
    f = nl.ndarray((nl.tile_size.pmax, 4), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=f, src=factors.ap(pattern=[[0, nl.tile_size.pmax], [1, 4]], offset=0))
    tiny = nl.ndarray((nl.tile_size.pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=tiny, value=2.0**-114)
    for tile in tiles(weight, CHUNK):
        p = tile[0]
        shape = (p, tile[2])
        w = load(weight, tile)
        g = load(gradient, tile)
        m = load(first_moment, tile)
        v = load(second_moment, tile)
        squares = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=squares, op=nl.square, data=g, scale=(1.0 - beta2) ** 0.5)
        nisa.activation(dst=g, op=nl.copy, data=g, scale=1.0 - beta1)
        nisa.scalar_tensor_tensor(
            dst=v, data=v, op0=nl.multiply, operand0=beta2, op1=nl.add, operand1=squares
        )
        nisa.scalar_tensor_tensor(dst=m, data=m, op0=nl.multiply, operand0=beta1, op1=nl.add, operand1=g)
        spread = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=spread, op=nl.sqrt, data=v, scale=f[0:p, 2:3], bias=tiny[0:p, :])
        nisa.tensor_scalar(
            dst=spread, data=spread, op0=nl.add, operand0=f[0:p, 3:4], op1=nl.power, operand1=-1.0
        )
        update = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=update, data=m, op0=nl.multiply, operand0=f[0:p, 1:2], op1=nl.multiply, operand1=spread
        )
        nisa.scalar_tensor_tensor(
            dst=w, data=w, op0=nl.multiply, operand0=f[0:p, 0:1], op1=nl.add, operand1=update
        )
        nisa.dma_copy(dst=flat(new[0], tile), src=w)
        nisa.dma_copy(dst=flat(new[1], tile), src=m)
        nisa.dma_copy(dst=flat(new[2], tile), src=v)
    return new[0], new[1], new[2]
