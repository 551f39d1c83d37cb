"""Muon's orthogonal factor of a matrix: five Polar Express steps X <- a X + (b A + c A A) X with A = X X^T.

Layout. X has its smaller side, r, in the partitions and stays in SBUF from the first step to the last: r/128 tiles of 128 rows, `long` columns
wide. A tall matrix comes in turned and leaves turned, which is the same factor. A and B = b A + c A A are r x r tiles in SBUF; both are
symmetric, so each is its own transpose and a stationary operand as it lies. Only A = X X^T needs X turned: the PE turns X, 128 x 128 at a time,
against 2 long r**2 of arithmetic.

Tiling. Products in blocks of 128 x 512, a bank of PSUM each, over r (or `long`) in steps of 128. What leaves PSUM is combined on the way: Scalar
scales b A and Vector adds c A A; Scalar scales a X and Vector adds B X. Numbers of products are bf16 (or fp32: `exact`), sums fp32.
The first division by 1.01 times the norm is in fp32: squares summed by Scalar, over partitions by the PE. The PE is the bound.
"""

import nki
import nki.isa as nisa
import nki.language as nl

# The coefficients of the trainer (Polar Express, five steps).
STEPS = (
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
    (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
)
SLICE = 512


def strips(rows):
    """[start, size] of every strip of 128 rows."""
    found = []
    for start in range(0, rows, 128):
        found.append((start, min(128, rows - start)))
    return found


def load_strips(gradient, turned, r, long):
    """The matrix in fp32, r in the partitions."""
    x = []
    for start, size in strips(r):
        tile = nl.ndarray((size, long), dtype=nl.float32, buffer=nl.sbuf)
        if not turned:
            nisa.dma_copy(dst=tile, src=gradient[nl.ds(start, size), :])
        else:
            for first, many in strips(long):
                block = nl.ndarray((many, size), dtype=nl.float32, buffer=nl.sbuf)
                nisa.dma_copy(dst=block, src=gradient[nl.ds(first, many), nl.ds(start, size)])
                put_turned(tile[:, nl.ds(first, many)], block)
        x.append(tile)
    return x


def put_turned(dst, block):
    """dst = the transpose of a block of at most 128 x 128, by way of PSUM."""
    turned = nl.ndarray((block.shape[1], block.shape[0]), dtype=block.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=turned, data=block)
    nisa.tensor_copy(dst=dst, src=turned)


def inverse_norm(x):
    """1 / (1.01 norm + 1e-6) in every partition: (128, 1) float32."""
    pmax = nl.tile_size.pmax
    sums = nl.ndarray((pmax, len(x)), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=sums, value=0.0)
    for at in range(len(x)):
        size = x[at].shape[0]
        squares = nl.ndarray(x[at].shape, dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.activation_reduce(
            dst=squares, op=nl.square, data=x[at], reduce_op=nl.add, reduce_res=sums[0:size, at : at + 1]
        )
    rows = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=rows, op=nl.add, data=sums, axis=1)
    ones = nl.ndarray((pmax, pmax), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    total = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=ones, moving=rows)
    norm = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=norm, src=total)
    nisa.tensor_scalar(dst=norm, data=norm, op0=nl.power, operand0=0.5, op1=nl.multiply, operand1=1.01)
    nisa.tensor_scalar(dst=norm, data=norm, op0=nl.add, operand0=1e-6, op1=nl.power, operand1=-1.0)
    return norm


def turn_all(x, long, dtype):
    """X turned: tiles of 128 of its long side, r wide."""
    r = 0
    for tile in x:
        r = r + tile.shape[0]
    turned = []
    for first, many in strips(long):
        t = nl.ndarray((many, r), dtype=dtype, buffer=nl.sbuf)
        start = 0
        for tile in x:
            size = tile.shape[0]
            put_turned(t[:, nl.ds(start, size)], tile[:, nl.ds(first, many)])
            start = start + size
        turned.append(t)
    return turned


def sum_of(left, right, row, rows, column, columns):
    """left^T right, rows x columns of it, summed over all strips in PSUM."""
    total = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.psum)
    for k in range(len(left)):
        nisa.nc_matmul(
            dst=total,
            stationary=left[k][:, nl.ds(row, rows)],
            moving=right[k][:, nl.ds(column, columns)],
            accumulate=k > 0,
        )
    return total


def gram(turned, r, dtype):
    """A = X X^T as strips, in the dtype of products."""
    a = []
    for start, size in strips(r):
        tile = nl.ndarray((size, r), dtype=dtype, buffer=nl.sbuf)
        for column in range(0, r, SLICE):
            many = min(SLICE, r - column)
            nisa.tensor_copy(
                dst=tile[:, nl.ds(column, many)], src=sum_of(turned, turned, start, size, column, many)
            )
        a.append(tile)
    return a


def combined(left, right, width, added, factor, scale, dtype):
    """Strips of factor * added + scale * left^T right; left is symmetric."""
    new = []
    start = 0
    for old in added:
        size = old.shape[0]
        tile = nl.ndarray((size, width), dtype=dtype, buffer=nl.sbuf)
        for column in range(0, width, SLICE):
            many = min(SLICE, width - column)
            total = sum_of(left, right, start, size, column, many)
            share = nl.ndarray((size, many), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=share, op=nl.copy, data=old[:, nl.ds(column, many)], scale=factor)
            nisa.scalar_tensor_tensor(
                dst=tile[:, nl.ds(column, many)],
                data=total,
                op0=nl.multiply,
                operand0=scale,
                op1=nl.add,
                operand1=share,
            )
        new.append(tile)
        start = start + size
    return new


def store_strips(out, x, turned, long):
    start = 0
    for tile in x:
        size = tile.shape[0]
        if not turned:
            nisa.dma_copy(dst=out[nl.ds(start, size), :], src=tile)
        else:
            for first, many in strips(long):
                block = nl.ndarray((many, size), dtype=tile.dtype, buffer=nl.sbuf)
                put_turned(block, tile[:, nl.ds(first, many)])
                nisa.dma_copy(dst=out[nl.ds(first, many), nl.ds(start, size)], src=block)
        start = start + size


@nki.jit
def muon_orthogonalize(gradient, exact=False):
    """gradient float32 (rows, columns): its orthogonal factor, float32; products in bf16, with `exact` in fp32."""
    out = nl.ndarray(gradient.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    turned = gradient.shape[0] > gradient.shape[1]
    r = min(gradient.shape[0], gradient.shape[1])
    long = max(gradient.shape[0], gradient.shape[1])
    dtype = nl.float32 if exact else nl.bfloat16
    loaded = load_strips(gradient, turned, r, long)
    inverse = inverse_norm(loaded)
    x = []
    for tile in loaded:
        small = nl.ndarray(tile.shape, dtype=dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=small, data=tile, op0=nl.multiply, operand0=inverse[0 : tile.shape[0], :])
        x.append(small)
    for step in range(len(STEPS)):
        a, b, c = STEPS[step]
        last = step == len(STEPS) - 1
        square = gram(turn_all(x, long, dtype), r, dtype)
        polynomial = combined(square, square, r, square, b, c, dtype)
        x = combined(polynomial, x, long, x, a, 1.0, nl.float32 if last else dtype)
    store_strips(out, x, turned, long)
    return out
