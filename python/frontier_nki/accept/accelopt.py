"""zhang677/AccelOpt, NKIBench: kernels in the older style whose shapes are fixed in the code."""

import numpy as np

from . import Case

KERNELS = "NKIBench/kernels/"


def _normal(seed, *shapes):
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape, dtype=np.float32) for shape in shapes]


def silu(module):
    (x,) = _normal(10, (4096, 7168))
    got = module.kernel(x.reshape(128, 32, 7168)).reshape(x.shape)
    yield "silu 4096x7168", got, x / (1 + np.exp(-x))


def rope(module):
    x, cos, sin = _normal(11, (128, 262144), (64, 262144), (64, 262144))
    low, high = x[:64], x[64:]
    yield "rope 128x262144", module.kernel(x, cos, sin), np.concatenate(
        [low * cos - high * sin, low * sin + high * cos]
    )


def adamw(module):
    theta, g, m, v = _normal(12, *[(10944, 2048)] * 4)
    v = np.abs(v)
    moment, second = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    wanted = theta - 1e-5 * theta - 0.01 * moment / (np.sqrt(second * 1000) + 1e-8)
    yield "adamw 10944x2048", module.kernel(theta, g, m, v), wanted


def bmm(module):
    a, b = _normal(13, (16, 4096, 64), (16, 64, 4096))
    yield "bmm 16x4096x64x4096", module.kernel(a, b).reshape(16, 4096, 4096), np.matmul(a, b)


def transpose_matmul(module):
    a, b = _normal(14, (2048, 4096), (2048, 10944))
    got = module.kernel(a.reshape(128, 16, 4096), b.reshape(128, 16, 10944)).reshape(4096, 10944)
    yield "transpose_matmul 4096x2048x10944", got, a.T @ b


def lora(module):
    x, w, a, b = _normal(15, (4096, 5120), (5120, 12288), (5120, 128), (128, 12288))
    got = module.kernel(x.reshape(8, 4, 128, 40, 128), w.reshape(40, 128, 12288), a.reshape(40, 128, 128), b)
    yield "lora 4096x5120x12288 r128", got.reshape(4096, 12288), x @ w + (x @ a) @ b


def swiglu(module):
    x, up, down, gate = _normal(16, (4096, 1024), (1024, 3072), (3072, 1024), (1024, 3072))
    got = module.kernel(
        x.reshape(8, 4, 128, 8, 128),
        up.reshape(8, 128, 3072),
        down.reshape(24, 128, 1024),
        gate.reshape(8, 128, 3072),
    )
    gated = x @ gate
    yield "swiglu 4096x1024x3072", got.reshape(4096, 1024), (gated / (1 + np.exp(-gated)) * (x @ up)) @ down


CASES = [
    Case(8, KERNELS + "silu_M4096_N7168_0.py", silu),
    Case(14, KERNELS + "rope_single_freq_apply_B1_H64_N4096_D128_0.py", rope),
    Case(14, KERNELS + "adamw_M10944_N2048_0.py", adamw),
    Case(14, KERNELS + "bmm_B16_M4096_K64_N4096_0.py", bmm, seconds=20),
    Case(14, KERNELS + "transpose_matmul_M4096_K2048_N10944_0.py", transpose_matmul, seconds=20),
    Case(14, KERNELS + "lora_M4096_N12288_K5120_R128_0.py", lora, seconds=60),
    Case(14, KERNELS + "swiglu_M4096_N3072_K1024_0.py", swiglu, seconds=20),
]
