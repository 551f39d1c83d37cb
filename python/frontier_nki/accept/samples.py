"""aws-neuron/nki-samples: tutorials and contributed kernels."""

import numpy as np

from . import Case, bf16, rounded

TUTORIALS = "src/nki_samples/tutorials/"


def _add(name, shape):
    def run(module):
        random = np.random.default_rng(2)
        a, b = (random.random(shape).astype(np.float16) for _ in range(2))
        yield f"{name} {shape[0]}x{shape[1]}", getattr(module, name)(a, b), a + b

    return run


def transpose2d(module):
    for rows, x, y, dtype in ((5, 3, 4, np.int8), (128, 16, 24, np.float32)):
        a = (np.arange(rows * x * y) % 120).astype(dtype).reshape(rows, x * y)
        wanted = a.reshape(rows, x, y).transpose(0, 2, 1).reshape(rows, x * y)
        yield f"transpose2D {rows}x({x}x{y})", module.tensor_transpose2D_kernel_(a, (x, y)), wanted


def average_pool(module):
    for channels, height, width, pool in ((2, 6, 6, 2), (64, 24, 36, 3)):
        a = np.random.default_rng(3).random((channels, height, width)).astype(np.float32)
        wanted = a.reshape(channels, height // pool, pool, width // pool, pool).mean((2, 4))
        yield f"avgpool {channels}x{height}x{width}/{pool}", module.tensor_avgpool_kernel(a, pool), wanted


def max_pool(module):
    import neuronxcc.nki as nki

    a = np.random.default_rng(4).random((448, 448)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3))
    yield "max_pooling 448x448/3", nki.baremetal()(module.max_pooling_2d_stride_1)(a, 3), windows.max((2, 3))


def contributed_matmul(module):
    import neuronxcc.nki as nki

    random = np.random.default_rng(5)
    a, b = random.random((1024, 512)).astype(np.float16), random.random((1024, 2048)).astype(np.float16)
    wanted = a.astype(np.float32).T @ b.astype(np.float32)
    yield "matmul 512x1024x2048 fp16", nki.baremetal()(module.matmul)(a, b), wanted


def matmul(module):
    random = np.random.default_rng(6)
    for name, k, m, n in (
        ("nki_matmul_basic_", 128, 64, 512),
        ("nki_matmul_tiled_", 256, 256, 1024),
        ("nki_matmul_hoist_load_", 256, 256, 1024),
        ("nki_matmul_block_free_dimension_", 512, 512, 2048),
        ("nki_matmul_fully_optimized_", 1024, 2048, 1024),
    ):
        a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((k, m), (k, n)))
        wanted = a.astype(np.float64).T @ b
        yield f"{name[4:].strip('_')} {m}x{k}x{n}", getattr(module, name)(a, b), wanted


def mamba(module):
    random = np.random.default_rng(7)
    delta, u = (0.1 * random.standard_normal((1, 256, 512), dtype=np.float32) for _ in range(2))
    a = 0.1 * random.standard_normal((256, 16), dtype=np.float32)
    b, c = (0.1 * random.standard_normal((1, 16, 512), dtype=np.float32) for _ in range(2))
    state, wanted = np.zeros((256, 16)), np.empty((1, 256, 512))
    for t in range(512):
        state = np.exp(delta[0, :, t, None] * a) * state + (delta[0, :, t] * u[0, :, t])[:, None] * b[0, :, t]
        wanted[0, :, t] = state @ c[0, :, t]
    for name in ("mamba_v1", "mamba_v2", "mamba_v3"):
        yield f"{name} 256x512 state 16", getattr(module, name)(delta, u, a, b, c), wanted


def attention(module):
    """Versions 7 to 11 keep the scores in bf16."""
    random = np.random.default_rng(8)
    for name, length in (
        ("v1", 128),
        ("v2", 128),
        ("v3", 512),
        ("v4", 512),
        ("v5", 512),
        ("v6", 1024),
        ("v7", 1024),
        ("v8", 2048),
        ("v8a", 2048),
        ("v9", 2048),
        ("v10", 2048),
        ("v11", 2048),
    ):
        q, k, v = (random.standard_normal((128, length), dtype=np.float32) for _ in range(3))
        scores = 0.04 * q.T.astype(np.float64) @ k
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        wanted = powers / powers.sum(-1, keepdims=True) @ v.T
        got = getattr(module, f"attn_fwd_{name}")(0.2 * q, 0.2 * k, v)
        yield f"attn_fwd_{name} {length}x128", got, wanted if got.shape == wanted.shape else wanted.T


def upsample(x, axis):
    """Twice as many points along an axis, each a quarter of the way between two; the ends stay."""
    places = np.arange(x.shape[axis])
    before, after = (np.take(x, np.clip(places + step, 0, places[-1]), axis) for step in (-1, 1))
    even, odd = 0.25 * before + 0.75 * x, 0.75 * x + 0.25 * after
    shape = list(x.shape)
    shape[axis] *= 2
    return np.stack([even, odd], axis + 1).reshape(shape)


def bilinear(module):
    x = np.random.default_rng(9).random((2, 64, 30, 20), dtype=np.float32)
    wanted = upsample(upsample(x.astype(np.float64), 2), 3)
    yield "bilinear 2x64x30x20", module.interpolate_bilinear_2x_fwd(x), wanted


def trilinear(module):
    x = np.random.default_rng(10).random((2, 64, 10, 9, 8), dtype=np.float32)
    wanted = upsample(upsample(upsample(x.astype(np.float64), 2), 3), 4)
    yield "trilinear 2x64x10x9x8", module.interpolate_trilinear_2x_fwd(x), wanted


def pipelined(module):
    """The kernel is for 16,384 keys only; numpy checks every 64th query."""
    random, length = np.random.default_rng(11), 16384
    q, k = (rounded(random.standard_normal((1, 128, length), dtype=np.float32)) for _ in range(2))
    v = rounded(random.standard_normal((1, length, 128), dtype=np.float32))
    got = module.flash_fwd[1](bf16(q), bf16(k), bf16(v), softmax_scale=0.125, use_causal_mask=False)
    scores = 0.125 * q[0, :, ::64].T @ k[0]
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = powers / powers.sum(-1, keepdims=True) @ v[0]
    yield "pipelined attention 16384x128", np.asarray(got)[0, ::64], wanted


CASES = [
    Case(
        2, TUTORIALS + "tensor_addition/tensor_addition_nki_kernels.py", _add("nki_tensor_add", (256, 1024))
    ),
    Case(
        3,
        TUTORIALS + "tensor_addition/spmd_tensor_addition_nki_kernels.py",
        _add("nki_tensor_add", (256, 1024)),
    ),
    Case(
        3,
        TUTORIALS + "tensor_addition/spmd_multiple_nc_tensor_addition_nki_kernels.py",
        _add("nki_tensor_add_nc2", (512, 2048)),
    ),
    Case(5, TUTORIALS + "transpose2d/transpose2d_nki_kernels.py", transpose2d),
    Case(6, TUTORIALS + "average_pool2d/average_pool2d_nki_kernels.py", average_pool),
    Case(7, "contributed/maxpooling.py", max_pool),
    Case(7, "contributed/matmul.py", contributed_matmul, 2e-3),
    Case(12, TUTORIALS + "matrix_multiplication/matrix_multiplication_nki_kernels.py", matmul),
    Case(20, TUTORIALS + "fused_mamba/mamba_nki_kernels.py", mamba),
    Case(25, TUTORIALS + "attention_fwd_performance/attention_kernels.py", attention, 1e-2),
    Case(28, "contributed/interpolate_bilinear_fwd.py", bilinear),
    Case(28, "contributed/interpolate_trilinear_fwd.py", trilinear),
    Case(28, "contributed/pipelined_attention.py", pipelined, 2e-2, script=True),
]
