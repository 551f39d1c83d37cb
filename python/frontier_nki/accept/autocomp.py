"""ucb-bar/autocomp: reference kernels in the dst-first style, given nki, nl, nisa and math by its harness."""

import numpy as np

from . import Case

ADVANCED, TUTORIAL = "sols/trn-advanced-nki2/", "sols/trn-tutorial-nki2/"


def rope(module):
    random = np.random.default_rng(20)
    x = random.standard_normal((128, 1024), dtype=np.float32)
    cos, sin = (random.standard_normal((64, 1024), dtype=np.float32) for _ in range(2))
    low, high = x[:64], x[64:]
    yield "rope 128x1024", module.solution(x, cos, sin), np.concatenate(
        [low * cos - high * sin, high * cos + low * sin]
    )


def cumsum(module):
    x = np.random.default_rng(21).standard_normal((300, 5000), dtype=np.float32)
    yield "cumsum 300x5000", module.solution(x), np.cumsum(x, -1, dtype=np.float64)


def transpose(module):
    x = np.random.default_rng(22).standard_normal((3, 256, 384), dtype=np.float32)
    yield "transpose 3x256x384", module.solution(x, 1), x.transpose(0, 2, 1)


def rms_norm(module):
    random = np.random.default_rng(23)
    x, g = random.standard_normal((300, 1024), dtype=np.float32), random.standard_normal(
        1024, dtype=np.float32
    )
    wanted = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True)) * g
    yield "rms_norm 300x1024", module.solution(x, g), wanted


def layer_norm(module):
    random = np.random.default_rng(24)
    x = random.standard_normal((300, 1024), dtype=np.float32)
    gamma, beta = (random.standard_normal(1024, dtype=np.float32) for _ in range(2))
    wide = x.astype(np.float64)
    wanted = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(
        wide.var(-1, keepdims=True) + 1e-5
    ) * gamma + beta
    yield "layer_norm 300x1024", module.solution(x, 1e-5, gamma, beta), wanted


def attention(module):
    random = np.random.default_rng(25)
    q, k, v = (random.standard_normal((128, 1024), dtype=np.float32) for _ in range(3))
    q *= 0.1
    scores = q.T.astype(np.float64) @ k
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    yield "attention 1024x128", module.solution(q, k, v), powers / powers.sum(-1, keepdims=True) @ v.T


def max_pool(module):
    x = np.random.default_rng(26).standard_normal((448, 448), dtype=np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3))
    yield "max_pool 448x448/3", module.solution(x, 3), windows.max((2, 3))


def sd_attention(module):
    random = np.random.default_rng(27)
    q, k, v = (random.standard_normal((1024, 64), dtype=np.float32) for _ in range(3))
    scores = q.astype(np.float64) @ k.T / 8
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    yield "sd attention 1024x64", module.solution(q, k, v), powers / powers.sum(-1, keepdims=True) @ v


def mamba(module):
    random = np.random.default_rng(28)
    delta, u = (0.1 * random.standard_normal((1, 256, 512), dtype=np.float32) for _ in range(2))
    a = 0.1 * random.standard_normal((256, 16), dtype=np.float32)
    b, c = (0.1 * random.standard_normal((1, 16, 512), dtype=np.float32) for _ in range(2))
    state, wanted = np.zeros((256, 16)), np.empty((1, 256, 512))
    for t in range(512):
        state = np.exp(delta[0, :, t, None] * a) * state + (delta[0, :, t] * u[0, :, t])[:, None] * b[0, :, t]
        wanted[0, :, t] = state @ c[0, :, t]
    wide = [np.repeat(x, 128, axis=1) for x in (b, c)]
    yield "mamba 256x512 state 16", module.solution(delta, u, a, *wide), wanted


CASES = [
    Case(7, ADVANCED + "2_maxpool_ref.py", max_pool, prelude=True),
    Case(26, TUTORIAL + "4_attention_ref.py", attention, prelude=True),
    Case(9, ADVANCED + "3_rope_ref.py", rope, prelude=True),
    Case(10, ADVANCED + "0_cumsum_ref.py", cumsum, prelude=True),
    Case(11, ADVANCED + "1_transpose_ref.py", transpose, prelude=True),
    Case(13, TUTORIAL + "0_rmsnorm_ref.py", rms_norm, prelude=True),
    Case(13, TUTORIAL + "1_layernorm_ref.py", layer_norm, prelude=True),
    Case(26, TUTORIAL + "5_sdattention_ref.py", sd_attention, prelude=True),
    Case(20, TUTORIAL + "3_mamba_ref.py", mamba, prelude=True),
]
