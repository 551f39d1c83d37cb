"""aws-neuron/nki-samples, mxfp-matmul: the three kernels of the MX tutorial on generation 4.

The reference decodes the codes of the micro-scaled formats by their definition, quantises as quantize_mx does (one bit
of head room against the OCP sample), and sums in fp64; a kernel's PSUM and result are bf16.
"""

import numpy as np

from .. import session
from . import Case, bf16, rounded

FP8 = {  # name: (exponent bits, mantissa bits, largest, exponent of the largest)
    "float8_e5m2_x4": (5, 2, 57344.0, 15),
    "float8_e4m3fn_x4": (4, 3, 448.0, 8),
}


def values(exponent_bits, mantissa_bits):
    """What each code stands for; codes of infinity and NaN are told apart by the caller."""
    codes = np.arange(1 << (1 + exponent_bits + mantissa_bits))
    mantissa = codes & ((1 << mantissa_bits) - 1)
    exponent = codes >> mantissa_bits & ((1 << exponent_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    size = np.where(
        exponent > 0,
        (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias),
        mantissa / (1 << mantissa_bits) * 2.0 ** (1 - bias),
    )
    return np.where(codes >> (exponent_bits + mantissa_bits), -size, size)


def spread(scales):
    """Factors of every element: a scale serves 8 rows and the 4 numbers of an element."""
    return np.repeat(np.repeat(2.0 ** (scales.astype(np.float64) - 127), 8, 0)[:, :, None], 4, 2)


def random_codes(random, dtype, columns):
    """(codes as the kernel takes them, what they stand for [128, columns, 4])."""
    if dtype == "float4_e2m1fn_x4":
        codes = random.integers(0, 16, (128, columns, 4))
        packed = (codes << np.array([0, 4, 8, 12])).sum(2).astype(np.uint16)
        return packed, values(2, 1)[codes]
    exponent_bits, mantissa_bits, largest, _ = FP8[dtype]
    known = values(exponent_bits, mantissa_bits)
    finite = np.flatnonzero(np.abs(known) <= largest)
    codes = random.choice(finite, (128, columns, 4))
    packed = (codes.astype(np.uint32) << np.array([0, 8, 16, 24], np.uint32)).sum(2).astype(np.uint32)
    return packed, known[codes]


def quantised(x, dtype):
    """[128, 4 * columns] in bf16 as [128, columns, 4] of what quantize_mx leaves of it."""
    exponent_bits, mantissa_bits, largest, top = FP8[dtype]
    groups = x.astype(np.float64).reshape(16, 8, -1, 4)
    most = np.abs(groups).max((1, 3))
    factor = 2.0 ** (np.floor(np.log2(most)) - (top - 1))[:, None, :, None]
    scaled = groups / factor
    step = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(np.abs(scaled), 1e-300))), 2 - 2 ** (exponent_bits - 1)) - mantissa_bits)
    kept = np.clip(np.rint(scaled / step) * step, -largest, largest) * factor  # halves to the even code
    return kept.reshape(128, -1, 4)


def product(a, b):
    return np.einsum("kiq,kjq->ij", a, b)


def on_generation_4(run):
    """The kernels ask for trn3 themselves; --machine must not overrule that."""

    def wrapped(module):
        before, session.options.machine = session.options.machine, "trn3"
        try:
            yield from run(module)
        finally:
            session.options.machine = before

    return wrapped


@on_generation_4
def matmul(module):
    import nki.language as nl

    random = np.random.default_rng(101)
    for dtype in ("float8_e5m2_x4", "float8_e4m3fn_x4", "float4_e2m1fn_x4"):
        codes, exact = [], []
        for columns in (128, 512):
            packed, real = random_codes(random, dtype, columns)
            scales = random.integers(110, 125, (16, columns)).astype(np.uint8)
            codes += [packed, scales]
            exact.append(real * spread(scales))
        got = module.kernel_offline_quantized_mx_matmul(*codes, getattr(nl, dtype))
        yield f"stored {dtype[:-3]}", np.asarray(got, np.float32), product(*exact)


@on_generation_4
def quantize_moving(module):
    import nki.language as nl

    random = np.random.default_rng(102)
    for still, moving in (
        ("float8_e5m2_x4", "float8_e5m2_x4"),
        ("float8_e4m3fn_x4", "float8_e4m3fn_x4"),
        ("float4_e2m1fn_x4", "float8_e5m2_x4"),
    ):
        packed, real = random_codes(random, still, 128)
        scales = random.integers(110, 125, (16, 128)).astype(np.uint8)
        x = rounded(random.standard_normal((128, 2048), dtype=np.float32))
        got = module.kernel_on_device_quantize_matmul_mx(packed, scales, bf16(x), getattr(nl, still), getattr(nl, moving))
        wanted = product(real * spread(scales), quantised(x, moving))
        yield f"moving quantised {still[:-3]} {moving[:-3]}", np.asarray(got, np.float32), wanted


@on_generation_4
def quantize_both(module):
    import nki.language as nl

    random = np.random.default_rng(103)
    for dtype in FP8:
        a = rounded(random.standard_normal((512, 128), dtype=np.float32))
        b = rounded(random.standard_normal((512, 512), dtype=np.float32))
        # row 4 p + q of the contraction is number q of the element in partition p
        parts = [quantised(x.reshape(4, 128, -1).transpose(1, 2, 0).reshape(128, -1), dtype) for x in (a, b)]
        for copies in (True, False):
            got = module.kernel_copy_strided_quantize_matmul_mx(bf16(a), bf16(b), getattr(nl, dtype), copies)
            name = f"both quantised {dtype[:-3]} by {'copies' if copies else 'transfers'}"
            yield name, np.asarray(got, np.float32), product(*parts)


PATH = "src/nki_samples/tutorials/mxfp-matmul/mx_kernels.py"
CASES = [Case(33, PATH, run, tolerance=6e-3) for run in (matmul, quantize_moving, quantize_both)]
