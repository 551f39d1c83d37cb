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


def matmul(module):
    a, b = _normal(17, (4096, 5120), (5120, 12288))
    got = module.kernel(a.reshape(32, 128, 40, 128), b.reshape(40, 128, 12288))
    yield "matmul 4096x5120x12288", got.reshape(4096, 12288), a @ b


def _rms(x, epsilon=0.0):
    return x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + epsilon)


def rmsnorm_matmul(module):
    x, w = _normal(18, (4096, 1024), (1024, 2048))
    got = module.kernel(x.reshape(32, 128, 1024), w.reshape(8, 128, 2048)).reshape(4096, 2048)
    yield "rmsnorm_matmul 4096x1024x2048", got, _rms(x) @ w


def add_rmsnorm_matmul(module):
    x, w, z, g = _normal(19, (4096, 1024), (1024, 2048), (4096, 1024), (1024,))
    got = np.reshape(module.kernel(x, w, 1e-5, z, g), (4096, 2048))
    yield "add_rmsnorm_matmul 4096x1024x2048", got, (_rms(x + z, 1e-5) * g) @ w


def matmul_add_rmsnorm(module):
    x, w, z, g = _normal(40, (4096, 2048), (2048, 2048), (4096, 2048), (2048,))
    got = np.reshape(module.kernel(x, w, 1e-5, z, g), (4096, 2048))
    yield "matmul_add_rmsnorm 4096x2048x2048", got, _rms(x @ w + z, 1e-5) * g


def _softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def bmm_softmax(module):
    a, b = _normal(41, (16, 4096, 64), (16, 64, 4096))
    got = np.reshape(module.kernel(a, b), (16, 4096, 4096))
    yield "bmm_softmax 16x4096x64x4096", got, _softmax(np.matmul(a, b))


def gqa(module):
    q, k, v = _normal(42, (1, 4096, 16, 128), (1, 4096, 8, 128), (1, 4096, 8, 128))
    got = module.kernel(
        q.reshape(32, 128, 16, 128), k.reshape(1, 8, 4, 128, 8, 128), v.reshape(1, 32, 128, 1024)
    )
    heads = [x.transpose(0, 2, 1, 3) for x in (q, np.repeat(k, 2, 2), np.repeat(v, 2, 2))]
    scores = heads[0] @ heads[1].transpose(0, 1, 3, 2) / np.float32(np.sqrt(128))
    wanted = _softmax(scores) @ heads[2]
    yield "gqa 4096x16x8x128", np.reshape(got, wanted.shape), wanted


def mamba(module):
    delta, u, a, b, c = (
        0.05 * x for x in _normal(43, (256, 7168), (256, 7168), (256, 16), (16, 7168), (16, 7168))
    )
    state, wanted = np.zeros((256, 16)), np.empty((256, 7168))
    for t in range(7168):
        state = np.exp(delta[:, t, None] * a) * state + (delta[:, t] * u[:, t])[:, None] * b[:, t]
        wanted[:, t] = state @ c[:, t]
    yield "mamba 256x7168 state 16", np.reshape(module.kernel(delta, u, a, b, c), wanted.shape), wanted


CASES = [
    Case(8, KERNELS + "silu_M4096_N7168_0.py", silu),
    Case(14, KERNELS + "rope_single_freq_apply_B1_H64_N4096_D128_0.py", rope),
    Case(14, KERNELS + "adamw_M10944_N2048_0.py", adamw),
    Case(14, KERNELS + "bmm_B16_M4096_K64_N4096_0.py", bmm),
    Case(14, KERNELS + "transpose_matmul_M4096_K2048_N10944_0.py", transpose_matmul),
    Case(14, KERNELS + "lora_M4096_N12288_K5120_R128_0.py", lora),
    Case(14, KERNELS + "matmul_M4096_N12288_K5120_0.py", matmul),
    Case(14, KERNELS + "rmsnorm_matmul_M4096_N2048_K1024_0.py", rmsnorm_matmul),
    Case(14, KERNELS + "add_rmsnorm_matmul_M4096_N2048_K1024_0.py", add_rmsnorm_matmul),
    Case(14, KERNELS + "matmul_add_rmsnorm_M4096_N2048_K2048_0.py", matmul_add_rmsnorm),
    Case(20, KERNELS + "mamba_M7168_C256_S16_0.py", mamba, 1e-4),
    Case(24, KERNELS + "bmm_softmax_B16_K64_M4096_N4096_0.py", bmm_softmax),
    Case(24, KERNELS + "gqa_full_B1_N4096_QH16_KH8_D128_0.py", gqa),
    Case(14, KERNELS + "swiglu_M4096_N3072_K1024_0.py", swiglu),
]
