"""ReLU squared and leaky ReLU squared, forward and backward.

Layout: the operator knows no rows, so the whole tensor is one flat run, of which partition p takes the p-th of 128
equal stretches (flat.py): a transfer moves 12 KiB of each partition in bf16.
Tiling: CHUNK columns. Vector clips, in bf16 four elements a cycle, and Scalar squares; backward Vector multiplies.
Both take less time than the transfers, which are the bound; only the leaky gradient in float32 is bound by Vector.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.flat import flat, tiles

CHUNK = 6144


@nki.jit
def relu_squared(x):
    """y = max(x, 0) ** 2"""
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for tile in tiles(x, CHUNK):
        a = nl.ndarray((tile[0], tile[2]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=flat(x, tile))
        nisa.tensor_scalar(dst=a, data=a, op0=nl.maximum, operand0=0.0)
        nisa.activation(dst=a, op=nl.square, data=a)
        nisa.dma_copy(dst=flat(y, tile), src=a)
    return y


@nki.jit
def relu_squared_backward(x, dy):
    """dx = 2 max(x, 0) dy"""
    dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for tile in tiles(x, CHUNK):
        a = nl.ndarray((tile[0], tile[2]), dtype=x.dtype, buffer=nl.sbuf)
        b = nl.ndarray((tile[0], tile[2]), dtype=dy.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=flat(x, tile))
        nisa.dma_copy(dst=b, src=flat(dy, tile))
        nisa.tensor_scalar(dst=a, data=a, op0=nl.maximum, operand0=0.0, op1=nl.multiply, operand1=2.0)
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.multiply)
        nisa.dma_copy(dst=flat(dx, tile), src=a)
    return dx


def leak(a, slope):
    """a becomes max(a, slope a). In bf16 as a factor of 1 or slope, which Vector makes and multiplies four
    and two elements a cycle; in fp32 in one instruction of half an element a cycle."""
    if a.dtype == nl.bfloat16:
        factor = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=factor, data=a, op0=nl.greater, operand0=0.0, op1=nl.maximum, operand1=slope)
        nisa.tensor_tensor(dst=a, data1=a, data2=factor, op=nl.multiply)
    else:
        nisa.scalar_tensor_tensor(dst=a, data=a, op0=nl.multiply, operand0=slope, op1=nl.maximum, operand1=a)


@nki.jit
def leaky_relu_squared(x, slope=0.5):
    """y = max(x, slope x) ** 2, 0 < slope < 1"""
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for tile in tiles(x, CHUNK):
        a = nl.ndarray((tile[0], tile[2]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=flat(x, tile))
        leak(a, slope)
        nisa.activation(dst=a, op=nl.square, data=a)
        nisa.dma_copy(dst=flat(y, tile), src=a)
    return y


@nki.jit
def leaky_relu_squared_backward(x, dy, slope=0.5):
    """dx = 2 dy max(x, slope x) (1 or slope), which is 2 dy max(x, slope**2 x)"""
    dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for tile in tiles(x, CHUNK):
        a = nl.ndarray((tile[0], tile[2]), dtype=x.dtype, buffer=nl.sbuf)
        b = nl.ndarray((tile[0], tile[2]), dtype=dy.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=flat(x, tile))
        nisa.dma_copy(dst=b, src=flat(dy, tile))
        leak(a, slope * slope)
        nisa.activation(dst=b, op=nl.copy, data=b, scale=2.0)
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.multiply)
        nisa.dma_copy(dst=flat(dx, tile), src=a)
    return dx
