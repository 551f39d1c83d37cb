"""ucb-bar/autocomp, continued: convolutions, masked attention, and the kernels of its trn-internal folder.

Shapes are smaller than in the project's own harness where that needs hours; every loop of a kernel still runs
more than once. bf16 in the middle of a kernel is given as float32 where the kernel takes its dtype from us, so
that numpy can be held to it closely.
"""

import numpy as np

from . import Case, bf16, rounded

ADVANCED, INTERNAL = "sols/trn-advanced-nki2/", "sols/trn-internal/"


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def conv1d(module):
    random = np.random.default_rng(40)
    image = random.standard_normal((2, 160, 1, 60), dtype=np.float32)
    weights = random.standard_normal((160, 1, 1, 3), dtype=np.float32)
    padded = np.pad(image[:, :, 0].astype(np.float64), ((0, 0), (0, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=-1)
    wanted = (windows * weights[:, 0, 0][None, :, None]).sum(-1)[:, :, None]
    yield "depthwise conv1d 2x160x60/3", module.solution(image, weights, padding=((0, 0), (1, 1))), wanted


def conv2d(module):
    random = np.random.default_rng(41)
    image = random.standard_normal((2, 128, 8, 16), dtype=np.float32)
    weights = random.standard_normal((256, 128, 3, 3), dtype=np.float32)
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    wanted = np.einsum("nchwij,ocij->nohw", windows, weights, optimize=True)
    order = [0, 1, 2, 3]
    got = module.solution(
        image,
        np.ascontiguousarray(weights.transpose(1, 2, 3, 0)),
        padding=((1, 1), (1, 1)),
        stride=(1, 1),
        rhs_dilation=(1, 1),
        in_perm=order,
        kern_perm=order,
        out_perm=order,
    )
    yield "conv2d 2x128x8x16 to 256", got, wanted


def masked_attention(q, k, v, mask):
    """What causal kernels return: sums before they are divided, log of the sum, and the maximum. They mask by
    adding 9984 and taking it off again, which leaves scores a grid of 2^-10: tolerances are 1e-3."""
    scores = q.astype(np.float64) @ k
    scores = (scores + 9984) * mask - 9984
    most = scores.max(-1, keepdims=True)
    powers = np.exp(scores - most)
    return powers @ v, np.log(powers.sum(-1, keepdims=True)) + most, most


def csa_2048(module):
    import nki.language as nl

    random = np.random.default_rng(42)
    q, v = (random.random((2048, 128), dtype=np.float32) for _ in range(2))
    k, mask = random.random((128, 2048), dtype=np.float32), np.tri(2048, dtype=np.float32)
    got = module.solution(q, k, v, mask, kernel_dtype=nl.float32, acc_type=nl.float32)
    yield "causal attention 2048x128", got, masked_attention(q, k, v, mask)


def mha(module):
    import nki.language as nl

    random = np.random.default_rng(43)
    q, v = (random.random((2, 1024, 128), dtype=np.float32) for _ in range(2))
    k, mask = random.random((2, 128, 1024), dtype=np.float32), np.tri(1024, dtype=np.float32)
    got = module.solution(
        q, k, v, mask, kernel_dtype=nl.float32, acc_type=nl.float32, num_heads=2, seq_len=1024, d_head=128
    )
    heads = [masked_attention(q[h], k[h], v[h], mask) for h in range(2)]
    yield "causal attention 2x1024x128", got, tuple(np.stack(parts) for parts in zip(*heads))


def csa_16384(module):
    import nki.language as nl

    random, length, tile = np.random.default_rng(44), 4096, 20
    q, k = (random.random((128, length), dtype=np.float32) for _ in range(2))
    v = random.random((128, length // 128, 128), dtype=np.float32)
    before = random.random((128, 130), dtype=np.float32)
    mask = (np.arange(length) <= tile * 128 + np.arange(128)[:, None]).astype(np.float32)
    got = module.solution(
        q, k, v, before, nl.float32, nl.float32, mask, q_tile_idx=tile, LARGE_KV_TILE_SIZE=length
    )
    scores = (q[:, tile * 128 : tile * 128 + 128].T.astype(np.float64) @ k + 9984) * mask - 9984
    most = np.maximum(scores.max(-1, keepdims=True), before[:, 129:])
    powers, alpha = np.exp(scores - most), np.exp(before[:, 129:] - most)
    rows = v.transpose(1, 0, 2).reshape(length, 128)
    wanted = [
        before[:, :128] * alpha + powers @ rows,
        before[:, 128:129] * alpha + powers.sum(-1, keepdims=True),
        most,
    ]
    yield "running attention 128 of 4096", got, np.concatenate(wanted, -1)


def fft(module):
    random = np.random.default_rng(45)
    real, imaginary = (random.standard_normal((128, 256), dtype=np.float32) for _ in range(2))
    place = np.arange(128)
    matrix = np.exp(-2j * np.pi * np.outer(place, place) / 128)
    twiddle = np.tile(np.exp(-2j * np.pi * place / 256), (128, 1))
    parts = [x.astype(np.float32) for m in (matrix, twiddle) for x in (m.real, m.imag)]
    wanted = np.fft.fft(real + 1j * imaginary)
    yield "fft 128x256", module.solution(real, imaginary, *parts), (wanted.real, wanted.imag)


def rotation(qubits, angle, partitions, free):
    """The product of one-qubit x rotations of all qubits, split as the kernel wants them: what crosses
    partitions as a matrix, the rest as tables of partners."""
    cross = np.eye(partitions, dtype=np.complex128)
    for bit in range(partitions.bit_length() - 1):
        swap = np.eye(partitions)[np.arange(partitions) ^ (1 << bit)]
        cross = (np.cos(angle) * np.eye(partitions) + 1j * np.sin(angle) * swap) @ cross
    tables = [np.tile(np.arange(free) ^ (1 << bit), (partitions, 1)) for bit in range(free.bit_length() - 1)]
    return cross, np.stack(tables).astype(np.uint32)


def trotter(module):
    random, free, steps, angle = np.random.default_rng(46), 8, 3, 0.05
    state = np.zeros((128, free), np.complex128)
    state[0, 0] = 1
    phase = np.exp(1j * random.random((128, free)))
    cross, tables = rotation(10, angle, 128, free)
    column = np.ones((128, 1), np.float32)
    got = module.solution(
        state.real.astype(np.float32),
        state.imag.astype(np.float32),
        phase.real.astype(np.float32),
        phase.imag.astype(np.float32),
        np.cos(angle).astype(np.float32) * column,
        np.sin(angle).astype(np.float32) * column,
        np.zeros(steps, np.float32),
        *(np.ascontiguousarray(m.T, dtype=np.float32) for m in (cross.real, -cross.imag, cross.imag, cross.real)),
        tables,
    )

    def turn(x):
        for table in tables:
            x = np.cos(angle) * x + 1j * np.sin(angle) * x[:, table[0]]
        return cross @ x

    for _ in range(steps):
        state = turn(turn(state) * phase)
    yield "trotter 10 qubits, 3 steps", got, (state.real, state.imag)


def deltanet(module):
    random, length = np.random.default_rng(47), 48
    q, k, v = (0.1 * random.standard_normal((length, 128), dtype=np.float32) for _ in range(3))
    decay = np.repeat(-random.random((length, 1), dtype=np.float32), 128, 1)
    gate = np.repeat(random.random((length, 1), dtype=np.float32), 128, 1)
    state, wanted = np.zeros((128, 128)), np.empty((length, 128))
    for t in range(length):
        state *= np.exp(decay[t, 0], dtype=np.float64)
        state += np.outer(k[t], (v[t] - state.T @ k[t]) * gate[t, 0])
        wanted[t] = state.T @ q[t]
    yield "deltanet 48x128", module.solution(q, k, v, decay, gate), wanted


def triangle_attention(module):
    random, n, heads, width = np.random.default_rng(48), 128, 1, 32
    q, k, v = (0.5 * random.standard_normal((n, n, heads * width), dtype=np.float32) for _ in range(3))
    bias = random.standard_normal((n, n, heads), dtype=np.float32)
    scores = np.einsum("iqc,ikc->iqk", q.astype(np.float64), k) / np.sqrt(width) + bias[None, :, :, 0]
    yield "triangle attention 128x128x32", module.solution(q, k, v, bias), softmax(scores) @ v


def triangle_multiply(module):
    random = np.random.default_rng(49)
    a, b = (random.standard_normal((256, 256, 4), dtype=np.float32) for _ in range(2))
    wanted = np.einsum("ikd,jkd->ijd", a.astype(np.float64), b, optimize=True)
    yield "triangle multiply 256x256x4", module.solution(a, b), wanted


def flash_vsr(module):
    """numpy follows the kernel's products as they are: neither the queries nor the powers are transposed before
    they are multiplied, so this is attention only where all scores are nearly equal."""
    random, scale = np.random.default_rng(50), 128**-0.5
    q, v = (rounded(0.5 * random.standard_normal((1, n, 128), dtype=np.float32)) for n in (256, 1024))
    k = rounded(0.5 * random.standard_normal((1, 128, 1024), dtype=np.float32))
    wanted = np.empty((1, 256, 128))
    for tile in range(0, 256, 128):
        scores = (q[0, tile : tile + 128] * scale).T.astype(np.float64) @ k[0]
        most, total, out = np.full((128, 1), -9984.0), 0.0, 0.0
        for chunk in range(0, 1024, 512):
            before, most = most, np.maximum(most, scores[:, chunk : chunk + 512].max(-1, keepdims=True))
            powers, factor = np.exp(scores[:, chunk : chunk + 512] - most), np.exp(before - most)
            total = total * factor + powers.sum(-1, keepdims=True)
            parts = (powers[:, t : t + 128].T @ v[0, chunk + t : chunk + t + 128] for t in range(0, 512, 128))
            out = out * factor + sum(parts)
        wanted[0, tile : tile + 128] = out / total
    got = module.solution(bf16(q), bf16(k), bf16(v), scale=scale)
    yield "flash attention 256x1024x128 bf16", got, wanted


def openfold(module):
    random = np.random.default_rng(51)
    for n in (256, 1024):
        a, b = (random.standard_normal((n, n), dtype=np.float32) for _ in range(2))
        yield f"triangle product {n}", module.solution(a, b), a.T.astype(np.float64) @ b


def gemm(module):
    random = np.random.default_rng(52)
    a, b = (random.standard_normal(shape, dtype=np.float32) for shape in ((512, 200), (512, 1024)))
    yield "gemm 200x512x1024", module.solution(a, b), a.T.astype(np.float64) @ b


def mamba_scan(module):
    random, heads, width, states, length = np.random.default_rng(54), 4, 8, 16, 64
    decay = random.random((heads, length), dtype=np.float32)
    inputs = random.standard_normal((width * states * heads, length), dtype=np.float32)
    c = random.standard_normal((states * heads, length), dtype=np.float32)
    skip, x = (random.standard_normal((width * heads, length), dtype=np.float32) for _ in range(2))
    sizes = np.zeros(width, np.float32), np.zeros(states, np.float32)
    terms = inputs.reshape(width, states, heads, length).astype(np.float64)
    state, wanted = np.zeros((width, states, heads)), np.empty((width, heads, length))
    for t in range(length):
        state = decay[:, t] * state + terms[..., t]
        wanted[..., t] = (state * c.reshape(states, heads, length)[..., t]).sum(1)
    yield "mamba2 scan 4x8x16x64", module.solution(decay, inputs, c, skip, x, *sizes), (
        wanted.reshape(width * heads, length) + skip,
        state.reshape(-1, 1),
    )


CASES = [
    Case(19, ADVANCED + "4_conv1d_ref.py", conv1d, prelude=True),
    Case(19, ADVANCED + "5_conv2d_ref.py", conv2d, prelude=True),
    Case(20, INTERNAL + "6_mamba_scan_ref.py", mamba_scan, prelude=True),
    Case(26, ADVANCED + "6_csa_2048_ref.py", csa_2048, 1e-3, prelude=True),
    Case(26, ADVANCED + "7_csa_16384_ref.py", csa_16384, 1e-3, prelude=True),
    Case(26, ADVANCED + "8_mha_ref.py", mha, 1e-3, prelude=True),
    Case(27, INTERNAL + "5_fft256_ref.py", fft, prelude=True),
    Case(27, INTERNAL + "7_trotter_ref.py", trotter, prelude=True),
    Case(27, INTERNAL + "8_deltanet_recurrent_ref.py", deltanet, prelude=True),
    Case(27, INTERNAL + "3_triattn_ref.py", triangle_attention, prelude=True),
    Case(27, INTERNAL + "4_trimul_ref.py", triangle_multiply, prelude=True),
    Case(27, INTERNAL + "12_flashvsr_fp32attn_ref.py", flash_vsr, 1e-2, prelude=True),
    Case(27, INTERNAL + "10_openfold3_trimul_ref.py", openfold, prelude=True),
    Case(12, INTERNAL + "15_gemm_ref.py", gemm, prelude=True),
]
