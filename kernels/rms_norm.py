"""RMS norm, y = x / sqrt(mean(x**2) + eps) over the last axis, forward and backward.

Layout: tokens on partitions; partition p takes the p-th of 128 equal stretches of tokens, so a transfer moves some
tokens of every partition as contiguous pieces of at least 4 KiB. Tokens that 128 does not divide are a last tile with
one token a partition.
Tiling: GROUP numbers, as whole tokens, a partition. Scalar squares and sums each token in one pass and takes all
roots of a tile in one more; Vector scales (four elements a cycle in bf16). The transfers are the bound.
Backward, with r = 1 / sqrt(mean(x**2) + eps) and t = r dy: dx = t - x r**2 mean(x t). In bf16 Vector makes t; in
float32 Scalar makes it, in PSUM, from where Vector multiplies an element a cycle instead of half of one. Vector
multiplies x t, Scalar sums it with the factor -r**2 / width, Vector combines.
"""

import nki
import nki.isa as nisa
import nki.language as nl

GROUP = 8192  # numbers of a partition in one transfer, at most, as whole tokens
GROUP_BACKWARD = 3072  # shorter: a tile of the backward pass takes longer, and three streams share the memory
EPS = 1.1920929e-07


def tiles(x, most):
    """[partitions, tokens of a partition, first token, tokens of a stretch] of every tile."""
    tokens, width = x.shape
    pmax = nl.tile_size.pmax
    group = max(1, most // width)
    stretch = tokens // pmax
    found = []
    start = 0
    while start < stretch:
        size = min(group, stretch - start)
        found.append((pmax, size, start, stretch))
        start = start + size
    if stretch * pmax < tokens:
        found.append((tokens - stretch * pmax, 1, stretch * pmax, 1))
    return found


def part(x, tile):
    """The tokens of a tile in HBM, partitions x tokens x width."""
    partitions, size, start, stretch = tile
    width = x.shape[1]
    return x.ap(pattern=[[stretch * width, partitions], [width, size], [1, width]], offset=start * width)


def load(x, tile):
    a = nl.ndarray((tile[0], tile[1], x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=part(x, tile))
    return a


def inverse_root(a, eps):
    """1 / sqrt(mean of squares + eps) of every token of a tile."""
    partitions, size, width = a.shape
    sums = nl.ndarray((partitions, size), dtype=nl.float32, buffer=nl.sbuf)
    squares = nl.ndarray((partitions, width), dtype=nl.bfloat16, buffer=nl.sbuf)
    for j in range(size):
        nisa.activation_reduce(
            dst=squares, op=nl.square, data=a[:, j, :], reduce_op=nl.add, reduce_res=sums[:, j : j + 1]
        )
    roots = nl.ndarray((partitions, size), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=sums, data=sums, op0=nl.multiply, operand0=1.0 / width, op1=nl.add, operand1=eps)
    nisa.activation(dst=roots, op=nl.rsqrt, data=sums)
    return roots


def warm_up():
    """Loads the table of rsqrt while the first tokens are on their way; squares are in every table."""
    one = nl.ndarray((nl.tile_size.pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=one, value=1.0)
    nisa.activation(dst=one, op=nl.rsqrt, data=one)


@nki.jit
def rms_norm(x, eps=EPS):
    """x tokens x width"""
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    warm_up()
    for tile in tiles(x, GROUP):
        a = load(x, tile)
        roots = inverse_root(a, eps)
        for j in range(tile[1]):
            nisa.tensor_scalar(dst=a[:, j, :], data=a[:, j, :], op0=nl.multiply, operand0=roots[:, j : j + 1])
        nisa.dma_copy(dst=part(y, tile), src=a)
    return y


def scaled(dy, j, roots):
    """t = r dy of token j of every partition."""
    partitions, size, width = dy.shape
    root = roots[:, j : j + 1]
    if dy.dtype == nl.float32 and width <= 2048:
        t = nl.ndarray((partitions, width), dtype=nl.float32, buffer=nl.psum)
        nisa.activation(dst=t, op=nl.copy, data=dy[:, j, :], scale=root)
    else:
        t = nl.ndarray((partitions, width), dtype=dy.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=t, data=dy[:, j, :], op0=nl.multiply, operand0=root)
    return t


@nki.jit
def rms_norm_backward(x, dy, eps=EPS):
    """dx of y = rms_norm(x)"""
    dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    width = x.shape[1]
    warm_up()
    for tile in tiles(x, GROUP_BACKWARD):
        a = load(x, tile)
        b = load(dy, tile)
        roots = inverse_root(a, eps)
        factors = nl.ndarray(roots.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=factors, data=roots, op0=nl.multiply, operand0=-1.0 / width, op1=nl.multiply, operand1=roots
        )
        for j in range(tile[1]):
            t = scaled(b, j, roots)
            products = nl.ndarray((tile[0], width), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=products, data1=a[:, j, :], data2=t, op=nl.multiply)
            total = nl.ndarray((tile[0], 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation_reduce(
                dst=products,
                op=nl.copy,
                data=products,
                scale=factors[:, j : j + 1],
                reduce_op=nl.add,
                reduce_res=total,
            )
            nisa.scalar_tensor_tensor(
                dst=a[:, j, :], data=a[:, j, :], op0=nl.multiply, operand0=total, op1=nl.add, operand1=t
            )
        nisa.dma_copy(dst=part(dx, tile), src=a)
    return dx
