"""A running average of weights, average <- decay average + (1 - decay) value.

Layout: one flat run (flat.py), in pieces of CHUNK columns, so that loads, arithmetic and stores of different pieces overlap.
Scalar makes (1 - decay) value, Vector does the rest in one instruction. Three streams pass the DMA engines, which are the bound.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.flat import flat, tiles

CHUNK = 2048


@nki.jit
def ema_blend(average, value, decay):
    """The new average, in the dtype of the old one; sums are fp32."""
    blended = nl.ndarray(average.shape, dtype=average.dtype, buffer=nl.shared_hbm)
    for tile in tiles(average, CHUNK):
        a = nl.ndarray((tile[0], tile[2]), dtype=average.dtype, buffer=nl.sbuf)
        b = nl.ndarray((tile[0], tile[2]), dtype=value.dtype, buffer=nl.sbuf)
        share = nl.ndarray((tile[0], tile[2]), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=flat(average, tile))
        nisa.dma_copy(dst=b, src=flat(value, tile))
        nisa.activation(dst=share, op=nl.copy, data=b, scale=1.0 - decay)
        nisa.scalar_tensor_tensor(dst=a, data=a, op0=nl.multiply, operand0=decay, op1=nl.add, operand1=share)
        nisa.dma_copy(dst=flat(blended, tile), src=a)
    return blended
