"""What the tests of the kernels and the report share: numbers of every dtype, closeness, float64 gradients, and
the workload rows of the table in README.md.

A test file names its workloads in ROWS; report.py runs them all. References are the trainer's operators, which
compute in float64 on the very values the kernel was given, so a difference is the kernel's alone.
"""

import unittest

import numpy as np

import frontier_nki

frontier_nki.install()

from frontier_nki import arrays, reference, session  # noqa: E402, F401

DTYPES = ("float32", "bfloat16")
ULP = {"float32": 2.0**-23, "bfloat16": 2.0**-7}  # distance of 1.0 from the next number


def cast(values, dtype):
    """An array of this dtype, rounded to nearest even; bf16 without ml_dtypes too."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    if dtype != "bfloat16" or arrays.numpy_dtype(dtype) is not None:
        return values.astype(arrays.numpy_dtype(dtype))
    bits = values.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    result = arrays.empty(values.shape, dtype)
    result[...] = rounded
    return result


def wide(values):
    """As float64; integers stay."""
    whole = values.dtype.kind in "iu" and getattr(values, "nki_dtype", None) is None
    return np.asarray(values) if whole else values.astype(np.float32).astype(np.float64)


def random(shape, dtype="float32", seed=0, scale=1.0):
    return cast(np.random.default_rng(seed).standard_normal(shape) * scale, dtype)


def edges(shape, dtype="float32", seed=0):
    """Values that catch mistakes, in random order: zeros of both signs, ones, large, small, odd magnitudes."""
    generator = np.random.default_rng(seed)
    some = np.array([0.0, -0.0, 1.0, -1.0, 2.0**-20, -(2.0**-20), 1e3, -1e3, 0.1, -0.1, 3.5, -7.25])
    return cast(generator.choice(some, size=shape), dtype)


def many(answer):
    return answer if isinstance(answer, tuple) else (answer,)


def difference(got, wanted):
    """The largest error of an output, over the largest magnitude of that output."""
    worst = 0.0
    for g, w in zip(many(got), many(wanted)):
        g, w = wide(g), np.asarray(w, dtype=np.float64)
        if g.shape != w.shape:
            raise AssertionError(f"shape {g.shape}, wanted {w.shape}")
        if w.size:
            worst = max(worst, float(np.max(errors(g, w)) / max(float(np.max(np.abs(w))), 2.0**-100)))
    return worst if np.isfinite(worst) else float("inf")


def errors(got, wanted):
    """Of every element; equal infinities do not differ."""
    with np.errstate(invalid="ignore"):
        return np.where(got == wanted, 0.0, np.abs(got - wanted))


class TestCase(unittest.TestCase):
    def assertNear(self, got, wanted, relative, absolute=0.0, message=""):
        """Every element within relative * |wanted| + absolute."""
        for g, w in zip(many(got), many(wanted)):
            g, w = wide(g), np.asarray(w, dtype=np.float64)
            self.assertEqual(g.shape, w.shape, message)
            error = errors(g, w)
            limit = relative * np.where(np.isfinite(w), np.abs(w), 0.0) + absolute
            wrong = ~(error <= limit)
            if wrong.any():
                at = np.unravel_index(np.argmax(wrong), wrong.shape)
                self.fail(f"{message} at {tuple(int(i) for i in at)}: {g[at]!r}, wanted {w[at]!r}")


def gradient(function, arguments, index, upstream, step=1e-5):
    """Central differences in float64 of sum(function(*arguments) * upstream) by arguments[index]."""
    arguments = [np.array(a, dtype=np.float64) if np.asarray(a).dtype.kind == "f" else a for a in arguments]
    x, found = arguments[index], np.zeros_like(arguments[index])

    def value():
        return sum(float(np.sum(o * u)) for o, u in zip(many(function(*arguments)), many(upstream)))

    for i in np.ndindex(*x.shape):
        kept = x[i]
        x[i] = kept + step
        above = value()
        x[i] = kept - step
        found[i] = (above - value()) / (2 * step)
        x[i] = kept
    return found


class Row:
    """A line of the table: a kernel on a shape of the workload.

    make() gives the kernel's arguments; reference(*arguments as float64) what it should return. The roofline
    is the larger of the bytes that must move (arguments once, results once, unless `bytes` says otherwise)
    over the DMA engines' rate, and `flops` over the PE's peak in bf16 (a quarter of it in fp32).
    """

    def __init__(self, kernel, shape, dtype, make, reference, flops=0.0, bytes=None, name=None):
        self.kernel, self.shape, self.dtype, self.make, self.reference = kernel, shape, dtype, make, reference
        self.flops, self.bytes, self.name = flops, bytes, name or kernel.__name__

    def run(self, compare=True):
        """(session.Result, arrays, outputs, difference from the reference); without the comparison the
        kernel's instructions are checked and timed, but compute nothing."""
        session.options.timing_only = not compare
        values = self.make()
        got = self.kernel(*values)
        result = session.results[-1]
        wanted = (
            self.reference(*[wide(v) if isinstance(v, np.ndarray) else v for v in values])
            if compare
            else None
        )
        return result, values, many(got), difference(got, wanted) if compare else 0.0
