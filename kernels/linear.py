"""A linear layer with what follows it fused, y = relu(x W^T)**2 + residual, and its gradients.

Layout. The PE contracts over partitions, so both operands of a product need the contracted dimension there. Forward and the gradient of the
input need operands turned: in bf16 the DMA engines turn them on the way in, in fp32 the PE does.
The gradient of the weight contracts over tokens, which is how both operands lie.

Tiling. A block of C is 512 x 1,024: four by two sums of 128 x 512 fill the eight banks of PSUM. For each 128 of the contracted dimension a tile
of 512 columns of the left operand and one of 1,024 of the right one are in SBUF: eight products for two loads. The left tiles
stay for a whole row of blocks when they fit (KEEP bytes a partition), else they are loaded again. The epilogue of relu(p)**2 is relu by Scalar, times p by
Vector; without an activation Scalar copies. The PE is the bound, where rows of C are short the DMA engines.
"""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS, COLUMNS = 4, 2  # sums of 128 x 512 in a block
KEEP = 96 * 1024  # bytes of a partition that left tiles may occupy


def load_turned(x, k, depth, first, width):
    """Tile [depth, width] of x transposed: x[first : first + width, k : k + depth] with its axes swapped."""
    tile = nl.ndarray((depth, width), dtype=x.dtype, buffer=nl.sbuf)
    if x.dtype != nl.float32:
        nisa.dma_transpose(dst=tile, src=x[nl.ds(first, width), nl.ds(k, depth)], axes=(1, 0))
        return tile
    for low in range(0, width, 128):
        many = min(128, width - low)
        rows = nl.ndarray((many, depth), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=x[nl.ds(first + low, many), nl.ds(k, depth)])
        turned = nl.ndarray((depth, many), dtype=x.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=turned, data=rows)
        nisa.tensor_copy(dst=tile[:, nl.ds(low, many)], src=turned)
    return tile


def load_straight(x, k, depth, first, width):
    tile = nl.ndarray((depth, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[nl.ds(k, depth), nl.ds(first, width)])
    return tile


def load(x, turned, k, depth, first, width):
    """Tile [depth, width] of the operand, the contracted dimension in the partitions."""
    if turned:
        return load_turned(x, k, depth, first, width)
    return load_straight(x, k, depth, first, width)


def finish(c, total, row, column, activation, residual):
    """A sum leaves PSUM: activation, residual, store."""
    rows, columns = total.shape
    out = nl.ndarray((rows, columns), dtype=c.dtype, buffer=nl.sbuf)
    here = (nl.ds(row, rows), nl.ds(column, columns))
    if activation == "relu_squared":
        # both operands in PSUM are more than Vector reads at once: one goes through SBUF, cut at zero by Scalar
        positive = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=positive, op=nl.relu, data=total)
        nisa.tensor_tensor(dst=out, data1=positive, data2=total, op=nl.multiply)
    if residual is not None:
        more = nl.ndarray((rows, columns), dtype=residual.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=more, src=residual[here])
        nisa.tensor_tensor(dst=out, data1=out if activation else total, data2=more, op=nl.add)
    elif not activation:
        nisa.activation(dst=out, op=nl.copy, data=total)
    nisa.dma_copy(dst=c[here], src=out)


def product(c, a, a_turned, b, b_turned, depth, activation=None, residual=None):
    """C = A^T B, A (depth, m) and B (depth, n), each given turned or not."""
    m_size, n_size = c.shape
    height, width = ROWS * 128, COLUMNS * 512
    steps = (depth + 127) // 128
    keep = steps * height * 4 <= KEEP
    for m in range(0, m_size, height):
        high = min(height, m_size - m)
        kept = {}
        for n in range(0, n_size, width):
            wide = min(width, n_size - n)
            totals = []
            for i in range(0, high, 128):
                for j in range(0, wide, 512):
                    shape = (min(128, high - i), min(512, wide - j))
                    totals.append(nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum))
            for step in range(steps):
                k = step * 128
                deep = min(128, depth - k)
                if keep and step in kept:
                    left = kept[step]
                else:
                    left = load(a, a_turned, k, deep, m, high)
                    kept[step] = left
                right = load(b, b_turned, k, deep, n, wide)
                at = 0
                for i in range(0, high, 128):
                    for j in range(0, wide, 512):
                        nisa.nc_matmul(
                            dst=totals[at],
                            stationary=left[:, nl.ds(i, min(128, high - i))],
                            moving=right[:, nl.ds(j, min(512, wide - j))],
                            accumulate=step > 0,
                        )
                        at = at + 1
            at = 0
            for i in range(0, high, 128):
                for j in range(0, wide, 512):
                    finish(c, totals[at], m + i, n + j, activation, residual)
                    at = at + 1


@nki.jit
def linear(x, weight, residual=None, activation=None):
    """x (tokens, in), weight (out, in), residual (tokens, out); activation "relu_squared" or None: (tokens, out)"""
    y = nl.ndarray((x.shape[0], weight.shape[0]), dtype=x.dtype, buffer=nl.shared_hbm)
    product(y, x, True, weight, True, x.shape[1], activation, residual)
    return y


def through_activation(before, dy, out):
    """out = dy * 2 relu(before): what reaches the product when relu(.)**2 followed it. Rows of 128 tokens."""
    tokens, width = dy.shape
    for row in range(0, tokens, 128):
        many = min(128, tokens - row)
        p = nl.ndarray((many, width), dtype=before.dtype, buffer=nl.sbuf)
        d = nl.ndarray((many, width), dtype=dy.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=p, src=before[nl.ds(row, many), :])
        nisa.dma_copy(dst=d, src=dy[nl.ds(row, many), :])
        nisa.tensor_scalar(dst=p, data=p, op0=nl.maximum, operand0=0.0, op1=nl.multiply, operand1=2.0)
        nisa.tensor_tensor(dst=d, data1=d, data2=p, op=nl.multiply)
        nisa.dma_copy(dst=out[nl.ds(row, many), :], src=d)


@nki.jit
def linear_backward(x, weight, dy, before=None):
    """(dx, dweight) of y = linear(x, weight); of relu(.)**2 after it with before = x W^T. dweight is float32; a residual's gradient is dy."""
    tokens, inner = x.shape
    outer = weight.shape[0]
    dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    dweight = nl.ndarray(weight.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    reaching = dy
    if before is not None:
        reaching = nl.ndarray(dy.shape, dtype=dy.dtype, buffer=nl.hbm)
        through_activation(before, dy, reaching)
    product(dx, reaching, True, weight, False, outer)
    product(dweight, reaching, False, x, False, tokens)
    return dx, dweight
