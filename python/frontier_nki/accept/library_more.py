"""aws-neuron/nki-library, continued: convolutions, nonzero, norms with quantisation, cross entropy."""

import numpy as np

from . import Case, bf16, rounded
from .library import ROOT


def convolved(x, weights, stride, padding, dilation=1):
    """[N, C, L] with [K, C, O]: the convolution of conv1d."""
    taps, length = weights.shape[0], x.shape[2] + sum(padding)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), padding))
    count = (length - dilation * (taps - 1) - 1) // stride + 1
    return sum(
        np.einsum("ncl,co->nol", padded[:, :, k * dilation : k * dilation + stride * (count - 1) + 1 : stride], weights[k])
        for k in range(taps)
    )


def conv1d(module):
    random = np.random.default_rng(70)
    for channels, outputs, length, taps, stride, padding, dilation in (
        (64, 128, 200, 3, 1, (1, 1), 1),
        (160, 192, 700, 5, 2, (2, 2), 1),
        (32, 64, 300, 3, 1, (2, 2), 2),
    ):
        x = random.standard_normal((2, channels, length), dtype=np.float32)
        weights = random.standard_normal((taps, channels, outputs), dtype=np.float32)
        bias = random.standard_normal(outputs, dtype=np.float32)
        wanted = convolved(x, weights, stride, padding, dilation) + bias[:, None]
        got = module.conv1d(x, weights, bias, stride=stride, padding=padding, dilation=dilation)
        yield f"conv1d {channels}x{length}/{taps} to {outputs}", got, wanted


def depthwise(module):
    random = np.random.default_rng(71)
    x = random.standard_normal((2, 64, 1, 300), dtype=np.float32)
    weights = random.standard_normal((64, 1, 1, 7), dtype=np.float32)
    padded = np.pad(x[:, :, 0].astype(np.float64), ((0, 0), (0, 0), (3, 3)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 7, axis=-1)
    wanted = (windows * weights[None, :, 0, 0, None, :]).sum(-1)[:, :, None]
    got = module.depthwise_conv1d_implicit_gemm[2](x, weights, padding=((0, 0), (3, 3)), feature_group_count=64)
    yield "depthwise conv1d 2x64x300/7 on two cores", got, wanted


def nonzero_columns(x):
    indices, counts = np.full(x.T.shape, -1, np.int32), (x != 0).sum(0).astype(np.int32)
    for column, count in enumerate(counts):
        indices[column, :count] = np.flatnonzero(x[:, column])
    return indices, counts


def nonzero(module):
    random = np.random.default_rng(72)
    x = (random.random((512, 16)) < 0.2).astype(np.float32)
    yield "nonzero 512x16 on two cores", module.find_nonzero_indices[2](x), nonzero_columns(x)
    chunked = module.find_nonzero_indices[2](x, chunk_size=128)
    yield "nonzero 512x16 in chunks", chunked, nonzero_columns(x)


def nonzero_with_count(module):
    random = np.random.default_rng(73)
    x = (random.random((1, 700)) < 0.3).astype(np.float32)
    found = np.flatnonzero(x)
    wanted = np.full((1, 701), -1, np.int32)
    wanted[0, : len(found)], wanted[0, -1] = found, len(found)
    yield "nonzero with count 700", module.find_nonzero_indices_with_count(x), wanted


def cross_entropy(module):
    import nki.language as nl

    random, rows, words = np.random.default_rng(74), 128, 5000
    logits = 3 * random.standard_normal((rows, words), dtype=np.float32)
    targets = random.integers(0, words, rows).astype(np.int32)
    wide = logits.astype(np.float64)
    sums = np.log(np.exp(wide).sum(-1))
    wanted = sums - wide[np.arange(rows), targets], sums
    options = dict(positions_per_batch=32, chunk_size=2048, dtype=nl.float32)
    yield "cross entropy 128x5000", module.cross_entropy_forward[2](logits, targets, **options), wanted
    gradient = np.exp(wide - sums[:, None])
    gradient[np.arange(rows), targets] -= 1
    got = module.cross_entropy_backward[2](
        logits, targets, sums.astype(np.float32), reduction="mean", inplace=False, **options
    )
    yield "cross entropy backward 128x5000", got, gradient / rows


def rms(x, weights, eps=1e-6):
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps) * weights


def fp8_values(raw):
    """fp8 bytes, 4 bits of exponent, as numbers."""
    raw = np.ascontiguousarray(raw).view(np.uint8)
    exponent, fraction = (raw >> 3).astype(int) & 15, (raw & 7).astype(np.float64)
    value = np.where(exponent, (1 + fraction / 8) * np.exp2(exponent - 7.0), fraction * 2.0**-9)
    return np.where(raw & 128, -value, value)


def rmsnorm_quant(module):
    """Rows of fp8 with the fp32 factor in the last four bytes of each; compared after it is multiplied in."""
    random = np.random.default_rng(75)
    x = random.standard_normal((2, 128, 1024), dtype=np.float32)
    weights = random.standard_normal(1024, dtype=np.float32)
    x, weights = rounded(x), rounded(weights)
    got = np.asarray(module.rmsnorm_quant_kernel(bf16(x), bf16(weights), module.RmsNormQuantKernelArgs()))
    raw = np.ascontiguousarray(got).view(np.uint8)
    factors = np.ascontiguousarray(raw[..., 1024:]).view(np.float32)
    wanted = rms(x, weights)
    yield "rmsnorm_quant 2x128x1024 factors", factors[..., 0], np.abs(wanted).max(-1) / 240
    yield "rmsnorm_quant 2x128x1024 values", fp8_values(raw[..., :1024]) * factors, wanted


def tiled(x, partitions=128):
    """[B, S, H] in the layout of the token-generation kernels: [128, B * S, H / 128]."""
    rows = x.reshape(-1, x.shape[-1])
    return rows.reshape(len(rows), partitions, -1).transpose(1, 0, 2)


def in_kernel(function, shape, **options):
    """The norms are called from kernels; this kernel does nothing else."""
    import nki
    import nki.language as nl

    @nki.jit
    def kernel(x, *weights):
        out = nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm)
        function(x, weights[0], out, *weights[1:], **options)
        return out

    return kernel


def rmsnorm_tkg(module):
    random = np.random.default_rng(76)
    x = random.standard_normal((2, 4, 2048), dtype=np.float32)
    weights = random.standard_normal((1, 2048), dtype=np.float32)
    kernel = in_kernel(module.rmsnorm_tkg, (128, 8, 16))
    yield "rmsnorm_tkg 2x4x2048", kernel(x, weights), tiled(rms(x, weights[0]))


def layernorm_tkg(module):
    random = np.random.default_rng(77)
    x = random.standard_normal((2, 4, 2048), dtype=np.float32)
    gamma, beta = (random.standard_normal((1, 2048), dtype=np.float32) for _ in range(2))
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-6)
    kernel = in_kernel(module.layernorm_tkg, (128, 8, 16))
    yield "layernorm_tkg 2x4x2048", kernel(x, gamma, beta), tiled(normal * gamma[0] + beta[0])


def case(row, path, run, tolerance=1e-5, **options):
    package = "nkilib." + path.replace("/", ".")
    return Case(row, f"{ROOT}{path}.py", run, tolerance, package=package, **options)


CASES = [
    case(19, "experimental/conv/conv1d", conv1d),
    case(19, "experimental/conv/depthwise_conv1d", depthwise),
    case(22, "core/subkernels/find_nonzero_indices", nonzero, unwritten="nan"),
    case(22, "experimental/benchmark/find_nonzero_indices_with_count", nonzero_with_count, unwritten="nan"),
    case(23, "core/rmsnorm/rmsnorm_quant", rmsnorm_quant, 4e-2),
    case(23, "core/subkernels/rmsnorm_tkg", rmsnorm_tkg),
    case(23, "core/subkernels/layernorm_tkg", layernorm_tkg),
    case(30, "experimental/loss/cross_entropy", cross_entropy),
]
