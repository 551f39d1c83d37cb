"""Rotary position embedding, then RMS norm of each head (QK norm), forward and backward.

    u = (x1 cos + x2 sin, x2 cos - x1 sin) of the halves x1, x2 of a head ;  y = gain u / sqrt(mean(u**2) + eps)

Layout: x is tokens x (heads x head width), rows of T tokens one after the other; angles is T x head width, a
position's cosines and then its sines, in float32. Partition p takes the p-th of 128 equal stretches of every row, so
one table of angles in SBUF serves all rows, and transfers move long pieces. Positions that 128 does not divide are
tiles of one position a partition.
Tiling: GROUP numbers a partition, as whole tokens. Vector multiplies x by cosines and by signed sines, in bf16 two
elements a cycle; the PE adds the halves crosswise in float32 PSUM: its left operand is the identity, its right one is
read in any order. A rotation keeps lengths, so Scalar sums the squares of x itself, a tile ahead. Scaling on the way
out of PSUM is shared by Scalar and Vector.
Backward: with e = gain times dy turned back and r the root of the forward pass, dx = r e - x r**3 mean(e x): e is
made as above and leaves PSUM as r e; Vector multiplies it by x, Scalar sums; a tile later Vector adds the two terms.
Bound: Vector and Scalar alike.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

P = 128
GROUP = 2560  # numbers of a partition in one transfer, at most
EPS = 1.1920929e-07
LEAST = 128  # columns of one product: shorter ones take as long


def tiles(T, width):
    """[partitions, positions of a partition, first position, positions of a stretch] of every tile of a row."""
    group = max(1, GROUP // width)
    stretch = T // P
    found = []
    for start in range(0, stretch, group):
        found.append((P, min(group, stretch - start), start, stretch))
    if stretch * P < T:
        found.append((T - stretch * P, 1, stretch * P, 1))
    return found


def part(x, tile, first):
    """The tokens of a tile of a row in HBM, partitions x tokens x columns."""
    partitions, size, start, stretch = tile
    width = x.shape[1]
    return x.ap(
        pattern=[[stretch * width, partitions], [width, size], [1, width]], offset=(first + start) * width
    )


def load(x, tile, first):
    a = nl.ndarray((tile[0], tile[1], x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=part(x, tile, first))
    return a


def load_angles(angles, tile, dtype, copies, sign):
    """(cosines, sines) of a tile as [partitions, tokens, copies, head width]: the factors of both halves
    for `copies` heads, the sines with the sign with which the other half takes them: x1 as -sin, x2 as
    +sin, times `sign`."""
    width = angles.shape[1]
    half = width // 2
    both = load(angles, tile, 0)
    cosines = nl.ndarray((tile[0], tile[1], copies, width), dtype=dtype, buffer=nl.sbuf)
    sines = nl.ndarray((tile[0], tile[1], copies, width), dtype=dtype, buffer=nl.sbuf)
    for copy in range(copies):
        for first in range(0, width, half):
            columns = nl.ds(first, half)
            nisa.tensor_copy(
                dst=cosines[:, :, copy, columns], src=both[:, :, 0:half], engine=nisa.engine.gpsimd
            )
            nisa.tensor_scalar(
                dst=sines[:, :, copy, columns],
                data=both[:, :, half:width],
                op0=nl.multiply,
                operand0=-sign if first == 0 else sign,
            )
    return cosines, sines


def identity(dtype):
    """Ones on the diagonal, by the PE's left operand a copy of its right one."""
    ones = nl.ndarray((P, P), dtype=dtype, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    nisa.affine_select(
        dst=ones,
        pattern=[[-1, P]],
        channel_multiplier=1,
        on_true_tile=ones,
        on_false_value=0.0,
        cmp_op=nl.equal,
        offset=0,
    )
    return ones


def warm_up():
    """Loads the table of rsqrt while the first tokens are on their way; squares and copies are in every
    table."""
    one = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=one, value=1.0)
    nisa.activation(dst=one, op=nl.rsqrt, data=one)


def sum_squares(sums, a, j, heads):
    """Sums of squares of the heads of token j of each partition."""
    width = a.shape[2] // heads
    squares = nl.ndarray((a.shape[0], width), dtype=nl.bfloat16, buffer=nl.sbuf)
    for head in range(heads):
        nisa.activation_reduce(
            dst=squares,
            op=nl.square,
            data=a[:, j, nl.ds(head * width, width)],
            reduce_op=nl.add,
            reduce_res=sums[:, j, head : head + 1],
        )


def make_roots(sums, width, eps):
    """sums become 1 / sqrt(sums / width + eps)."""
    nisa.tensor_scalar(dst=sums, data=sums, op0=nl.multiply, operand0=1.0 / width, op1=nl.add, operand1=eps)
    nisa.activation(dst=sums, op=nl.rsqrt, data=sums)


def turn(x, cosines, sines, eye, heads):
    """A token of each partition, turned: [partitions, banks, heads of a bank, head width] in PSUM, open
    for further sums. x is [partitions, heads x width], cosines and sines [partitions, copies, width]."""
    partitions, columns = x.shape
    width = columns // heads
    half = width // 2
    copies = cosines.shape[1]
    a = nl.ndarray((partitions, heads, width), dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray((partitions, heads, width), dtype=x.dtype, buffer=nl.sbuf)
    for head in range(0, heads, copies):
        some = min(copies, heads - head)
        own = x[:, nl.ds(head * width, some * width)]
        nisa.tensor_tensor(
            dst=a[:, nl.ds(head, some), :], data1=own, data2=cosines[:, 0:some, :], op=nl.multiply
        )
        nisa.tensor_tensor(
            dst=b[:, nl.ds(head, some), :], data1=own, data2=sines[:, 0:some, :], op=nl.multiply
        )
    room = nl.tile_size.psum_fmax // width
    banks = (heads + room - 1) // room
    turned = nl.ndarray((partitions, banks, room, width), dtype=nl.float32, buffer=nl.psum)
    for bank in range(banks):
        head = bank * room
        some = min(room, heads - head)
        for first in range(0, width, half):
            other = half - first
            dst = turned[:, bank, 0:some, nl.ds(first, half)]
            left = eye[0:partitions, 0:partitions]
            nisa.nc_matmul(
                dst=dst,
                stationary=left,
                moving=a[:, nl.ds(head, some), nl.ds(first, half)],
                is_stationary_onezero=True,
                accumulate=False,
            )
            nisa.nc_matmul(
                dst=dst,
                stationary=left,
                moving=b[:, nl.ds(head, some), nl.ds(other, half)],
                is_stationary_onezero=True,
                accumulate=True,
            )
    return turned


def scale_out(out, turned, factors, j, heads, by_vector):
    """out = turned times a factor a head; factors is [partitions, tokens, heads]. Vector takes a bank at
    once, Scalar a head."""
    width = turned.shape[3]
    room = turned.shape[2]
    for head in range(0, heads, room if by_vector else 1):
        some = min(room, heads - head) if by_vector else 1
        data = turned[:, head // room, nl.ds(head % room, some), :]
        dst = out[:, nl.ds(head * width, some * width)]
        if by_vector:
            stride = factors.shape[1] * heads
            factor = factors.ap(
                pattern=[[stride, factors.shape[0]], [1, some], [0, width]], offset=j * heads + head
            )
            nisa.tensor_tensor(dst=dst, data1=data, data2=factor, op=nl.multiply)
        else:
            nisa.activation(dst=dst, op=nl.copy, data=data, scale=factors[:, j, head : head + 1])


def jobs_of(T, tokens, columns):
    """(tile, first token of its row) of everything to do, the rows of a tile one after the other."""
    jobs = []
    for tile in tiles(T, columns):
        for first in range(0, tokens, T):
            jobs.append((tile, first))
    return jobs


@nki.jit
def rotary_norm(x, angles, heads, gain=1.2, eps=EPS):
    """y of x, whose rows have as many tokens as there are angles"""
    T, width = angles.shape
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    copies = min(heads, max(1, LEAST // width))
    warm_up()
    eye = identity(x.dtype)
    jobs = jobs_of(T, x.shape[0], x.shape[1])
    loaded = []
    cosines, sines = None, None
    for i in range(len(jobs) + 1):
        steps = 0
        if i < len(jobs):  # this job's tokens come, and their squares are summed,
            tile, first = jobs[i]
            a = load(x, tile, first)
            factors = nl.ndarray((tile[0], tile[1], heads), dtype=nl.float32, buffer=nl.sbuf)
            loaded.append((a, factors))
            steps = tile[1]
        if i > 0:  # between the turns of the job before
            tile, first = jobs[i - 1]
            if first == 0:
                cosines, sines = load_angles(angles, tile, x.dtype, copies, 1.0)
            out = nl.ndarray((tile[0], tile[1], x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
            steps = max(steps, tile[1])
        for j in range(steps):
            if i < len(jobs) and j < jobs[i][0][1]:
                sum_squares(factors, a, j, heads)
            if i > 0 and j < jobs[i - 1][0][1]:
                before, scales = loaded[i - 1]
                turned = turn(before[:, j, :], cosines[:, j, :, :], sines[:, j, :, :], eye, heads)
                scale_out(out[:, j, :], turned, scales, j, heads, width < LEAST or j % 2 == 0)
        if i < len(jobs):
            make_roots(factors, width, eps)
            nisa.tensor_scalar(dst=factors, data=factors, op0=nl.multiply, operand0=gain)
        if i > 0:
            tile, first = jobs[i - 1]
            nisa.dma_copy(dst=part(y, tile, first), src=out)
    return y


# ---- backward ----


def multiply_sum(sums, turned, x, j, heads):
    """Sums of e / gain times x over each head of token j of each partition."""
    partitions = turned.shape[0]
    width = turned.shape[3]
    room = turned.shape[2]
    kind = nl.float32 if x.dtype == nl.float32 else nl.bfloat16  # float16 has no room for products
    products = nl.ndarray((partitions, heads, width), dtype=kind, buffer=nl.sbuf)
    for head in range(0, heads, room):
        some = min(room, heads - head)
        nisa.tensor_tensor(
            dst=products[:, nl.ds(head, some), :],
            data1=turned[:, head // room, 0:some, :],
            data2=x[:, j, nl.ds(head * width, some * width)],
            op=nl.multiply,
        )
    for head in range(heads):
        own = products[:, head, :]
        nisa.activation_reduce(
            dst=own, op=nl.copy, data=own, reduce_op=nl.add, reduce_res=sums[:, j, head : head + 1]
        )


def make_corrections(sums, factors, gain, width):
    """sums of e x / gain become -gain r**3 / width times themselves; factors are gain r."""
    scale = -1.0 / (gain * gain * width)
    for power in range(3):
        nisa.scalar_tensor_tensor(
            dst=sums, data=sums, op0=nl.multiply, operand0=scale, op1=nl.multiply, operand1=factors
        )
        scale = 1.0


def correct(out, a, sums, j, heads):
    """dx = r e + x sums, where out is r e."""
    width = out.shape[2] // heads
    for head in range(heads):
        own = out[:, j, nl.ds(head * width, width)]
        nisa.scalar_tensor_tensor(
            dst=own,
            data=a[:, j, nl.ds(head * width, width)],
            op0=nl.multiply,
            operand0=sums[:, j, head : head + 1],
            op1=nl.add,
            operand1=own,
        )


@nki.jit
def rotary_norm_backward(x, angles, dy, heads, gain=1.2, eps=EPS):
    """dx of y = rotary_norm(x, angles, heads, gain, eps)"""
    T, width = angles.shape
    dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    copies = min(heads, max(1, LEAST // width))
    warm_up()
    eye = identity(x.dtype)
    jobs = jobs_of(T, x.shape[0], x.shape[1])
    held = []  # (x, dy, factors, out, sums) of every job
    cosines, sines = None, None
    for i in range(len(jobs) + 2):
        steps = 0
        if i < len(jobs):  # a job's roots,
            tile, first = jobs[i]
            a = load(x, tile, first)
            b = load(dy, tile, first)
            factors = nl.ndarray((tile[0], tile[1], heads), dtype=nl.float32, buffer=nl.sbuf)
            sums = nl.ndarray((tile[0], tile[1], heads), dtype=nl.float32, buffer=nl.sbuf)
            out = nl.ndarray((tile[0], tile[1], x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
            held.append((a, b, factors, out, sums))
            steps = tile[1]
        if i > 0 and i <= len(jobs):  # the turns of the one before it,
            tile, first = jobs[i - 1]
            if first == 0:
                cosines, sines = load_angles(angles, tile, x.dtype, copies, -1.0)
            steps = max(steps, tile[1])
        if i > 1:  # and the corrections of the one before that, token by token
            steps = max(steps, jobs[i - 2][0][1])
        for j in range(steps):
            if i < len(jobs) and j < jobs[i][0][1]:
                sum_squares(factors, a, j, heads)
            if i > 0 and i <= len(jobs) and j < jobs[i - 1][0][1]:
                now = held[i - 1]
                turned = turn(now[1][:, j, :], cosines[:, j, :, :], sines[:, j, :, :], eye, heads)
                multiply_sum(now[4], turned, now[0], j, heads)
                scale_out(now[3][:, j, :], turned, now[2], j, heads, width < LEAST and j % 2 == 0)
            if i > 1 and j < jobs[i - 2][0][1]:
                correct(held[i - 2][3], held[i - 2][0], held[i - 2][4], j, heads)
        if i < len(jobs):
            make_roots(factors, width, eps)
            nisa.tensor_scalar(dst=factors, data=factors, op0=nl.multiply, operand0=gain)
        if i > 0 and i <= len(jobs):
            make_corrections(held[i - 1][4], held[i - 1][2], gain, width)
        if i > 1:
            tile, first = jobs[i - 2]
            nisa.dma_copy(dst=part(dx, tile, first), src=held[i - 2][3])
    return dx


# ---- from the host ----


def angles_of(length, width, base=100000.0):
    """The table of angles of so many positions: position t turns pair m of a head by t * base**(-2m/width)."""
    angle = np.arange(length)[:, None] * base ** (-2 * np.arange(width // 2) / width)
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def rotary(x, heads, base=100000.0, norm=True, gain=1.2, eps=EPS, length=None):
    """rotary_norm with the angles made here; without the norm there is no kernel."""
    assert norm, "only rotary embedding with the norm"
    return rotary_norm(x, angles_of(length or x.shape[0], x.shape[1] // heads, base), heads, gain, eps)


def rotary_backward(x, dy, heads, base=100000.0, norm=True, gain=1.2, eps=EPS, length=None):
    assert norm, "only rotary embedding with the norm"
    return rotary_norm_backward(
        x, angles_of(length or x.shape[0], x.shape[1] // heads, base), dy, heads, gain, eps
    )
