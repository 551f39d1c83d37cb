"""aws-neuron/nki-library, continued: projections around attention, in fp8 too, and the MLP of token generation."""

import numpy as np

from . import bf16, rounded
from .library_more import case


def common():
    return __import__("nkilib.core.utils.common_types", fromlist=["NormType"])


def normal(random, shape, scale=1.0):
    return rounded(scale * random.standard_normal(shape, dtype=np.float32))


def output_projection_tkg(module):
    """[D, B, N, S] times [N D, H]."""
    random = np.random.default_rng(131)
    for name, cores, d, b, n, s, h, turned in (
        ("4 heads of 128 to 1024", 1, 128, 4, 4, 1, 1024, False),
        ("8 heads of 64 to 2048, two cores", 2, 64, 2, 8, 4, 2048, False),
        ("turned, two cores", 2, 128, 4, 2, 1, 1024, True),
    ):
        x, w, bias = normal(random, (d, b, n, s)), normal(random, (n * d, h), 0.05), normal(random, (1, h))
        wanted = x.transpose(1, 3, 2, 0).reshape(b * s, n * d).astype(np.float64) @ w + bias
        if turned:
            wanted = wanted.reshape(b * s, cores, 128, h // (cores * 128)).transpose(2, 1, 3, 0)
        got = module.output_projection_tkg[cores](bf16(x), bf16(w), bf16(bias), TRANSPOSE_OUT=turned)
        yield f"output_projection_tkg {name}", np.asarray(got, np.float32).reshape(wanted.shape), wanted


def output_projection_cte(module):
    random = np.random.default_rng(132)
    for name, cores, b, n, d, s, h in (
        ("4 heads of 128, 512 to 1024", 1, 1, 4, 128, 512, 1024),
        ("2x3 heads of 64, 640 to 512, two cores", 2, 2, 3, 64, 640, 512),
    ):
        x, w, bias = normal(random, (b, n, d, s)), normal(random, (n * d, h), 0.05), normal(random, (1, h))
        wanted = x.transpose(0, 3, 1, 2).reshape(b, s, n * d).astype(np.float64) @ w + bias
        got = module.output_projection_cte[cores](bf16(x), bf16(w), bf16(bias))
        yield f"output_projection_cte {name}", np.asarray(got, np.float32), wanted


def normed(x, norm, gamma):
    if norm == "NO_NORM":
        return x.astype(np.float64)
    x = x.astype(np.float64)
    if norm == "LAYER_NORM":
        x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma


def qkv(module):
    """Short rows go to qkv_tkg, long ones to qkv_cte."""
    types = common()
    random = np.random.default_rng(133)
    for name, cores, b, s, h, heads, norm, bias in (
        ("tkg 4x1x1024, RMS", 1, 4, 1, 1024, (4, 2), "RMS_NORM", False),
        ("tkg 2x2x1024, two cores", 2, 2, 2, 1024, (4, 2), "RMS_NORM", True),
        ("tkg, plain", 1, 4, 1, 512, (2, 1), "NO_NORM", False),
        ("cte 1x256x1024, RMS", 1, 1, 256, 1024, (4, 2), "RMS_NORM", True),
        ("cte 1x256x512, layer norm, two cores", 2, 1, 256, 512, (2, 1), "LAYER_NORM", False),
    ):
        q, kv = heads
        width = (q + 2 * kv) * 128
        x, w, gamma = normal(random, (b, s, h)), normal(random, (h, width), 0.05), normal(random, (1, h))
        given = {"fused_norm_type": getattr(types.NormType, norm), "d_head": 128, "num_q_heads": q, "num_kv_heads": kv}
        if norm != "NO_NORM":
            given["gamma_norm_weights"] = bf16(gamma)
        add = normal(random, (1, width)) if bias else None
        if bias:
            given["bias"] = bf16(add)
        wanted = normed(x, norm, gamma) @ w + (add if bias else 0)
        got = module.qkv[cores](bf16(x), bf16(w), **given)
        got = got[0] if isinstance(got, (tuple, list)) else got
        yield f"qkv {name}", np.asarray(got, np.float32), wanted


CASES = [
    case(32, "core/output_projection/output_projection_tkg", output_projection_tkg, 1e-2),
    case(32, "core/output_projection/output_projection_cte/output_projection_cte", output_projection_cte, 1e-2),
    case(32, "core/qkv/qkv", qkv, 1.5e-2),
]
