"""aws-neuron/nki-library: production kernels, dst-first."""

import numpy as np

from . import Case

ROOT = "src/nkilib_src/nkilib/"


def cumsum(module):
    x = np.random.default_rng(30).standard_normal((300, 4100), dtype=np.float32)
    yield "cumsum 300x4100", module.cumsum(x), np.cumsum(x, -1, dtype=np.float64)


def rope_hf(module):
    random = np.random.default_rng(31)
    q, k = random.standard_normal((2, 4, 256, 128), dtype=np.float32), random.standard_normal(
        (2, 2, 256, 128), dtype=np.float32
    )
    cos, sin = (random.standard_normal((256, 128), dtype=np.float32) for _ in range(2))

    def rotate(x):
        return x * cos + np.concatenate([-x[..., 64:], x[..., :64]], -1) * sin

    q_out, k_out = module.rope_hf(q, k, np.zeros_like(q), np.zeros_like(k), cos, sin)
    yield "rope_hf 2x(4+2)x256x128", (q_out, k_out), (rotate(q), rotate(k))


def rope(module):
    random = np.random.default_rng(32)
    x = random.standard_normal((128, 1, 2, 256), dtype=np.float32)
    cos, sin = (random.standard_normal((64, 1, 256), dtype=np.float32) for _ in range(2))
    c, s = cos[:, :, None, :], sin[:, :, None, :]
    low, high = x[:64], x[64:]
    yield "RoPE halves 128x1x2x256", module.RoPE(x, cos, sin, contiguous_layout=True), np.concatenate(
        [low * c - high * s, high * c + low * s]
    )
    both = module.RoPE[2](x, cos, sin, lnc_shard=True)
    yield "RoPE on two cores", both, np.concatenate([low * c - high * s, high * c + low * s])
    even, odd = x[0::2], x[1::2]
    wanted = np.empty_like(x)
    wanted[0::2], wanted[1::2] = even * c - odd * s, odd * c + even * s
    yield "RoPE pairs 128x1x2x256", module.RoPE(
        x, cos, sin, contiguous_layout=False, relayout_in_sbuf=True
    ), wanted


def dynamic_add(module):
    random = np.random.default_rng(33)
    a, b = (random.standard_normal((512, 1024), dtype=np.float32) for _ in range(2))
    yield "dynamic add 4x128x1024", module.dynamic_elementwise_add(a, b, np.array([[4]], np.int32)), a + b


def indexed_flatten(module):
    random = np.random.default_rng(34)
    rows, width, block = 8, 512, 16
    x = random.integers(0, 1000, (rows, width)).astype(np.int32)
    places = (random.permutation(rows) * (width // block)).astype(np.int32)
    wanted = np.full((rows * width // block, block), -1, np.int32)
    for row, place in enumerate(places):
        wanted[place : place + width // block] = x[row].reshape(-1, block)
    got = module.indexed_flatten[2](x, block, rows * width, places)
    yield "indexed_flatten 8x512 on two cores", got, wanted.reshape(-1)


def cascaded_max(module):
    x = np.random.default_rng(35).standard_normal((2, 2, 32000), dtype=np.float32)
    wanted = x.max(-1, keepdims=True), x.argmax(-1)[..., None]
    yield "cascaded_max 4x32000", module.cascaded_max(x), wanted


CASES = [
    Case(
        17,
        ROOT + "experimental/dynamic_shapes/dynamic_elementwise_add.py",
        dynamic_add,
        package="nkilib.experimental.dynamic_shapes.dynamic_elementwise_add",
    ),
    Case(10, ROOT + "core/cumsum/cumsum.py", cumsum, package="nkilib.core.cumsum.cumsum"),
    Case(16, ROOT + "core/embeddings/rope_hf.py", rope_hf, package="nkilib.core.embeddings.rope_hf"),
    Case(16, ROOT + "core/embeddings/rope.py", rope, package="nkilib.core.embeddings.rope"),
    Case(
        18,
        ROOT + "core/subkernels/indexed_flatten.py",
        indexed_flatten,
        package="nkilib.core.subkernels.indexed_flatten",
    ),
    Case(21, ROOT + "core/max/cascaded_max.py", cascaded_max, package="nkilib.core.max.cascaded_max"),
]
