"""Rotary embedding with QK norm against the trainer's operator, its gradient against that and finite differences."""

import numpy as np

from kernels import _testing as t
from kernels._testing import reference
from kernels.rotary_norm import EPS, angles_of, rotary, rotary_backward, rotary_norm, rotary_norm_backward

# T, rows, heads, head width
SHAPES = ((1, 1, 1, 2), (5, 2, 3, 8), (128, 1, 2, 64), (130, 3, 5, 128), (257, 1, 10, 64), (640, 2, 4, 128))


def wanted(x, table, heads):
    return reference.rotary(x, heads, norm=True, gain=1.2, length=len(table))


def wanted_backward(x, table, dy, heads):
    return reference.rotary_backward(x, dy, heads, norm=True, gain=1.2, length=len(table))


class RotaryNorm(t.TestCase):
    def check(self, x, dy, T, heads, dtype):
        limit = 1e-6 if dtype == "float32" else 1.2e-2
        table = angles_of(T, x.shape[1] // heads)
        y = wanted(t.wide(x), table, heads)
        self.assertNear(rotary_norm(x, table, heads), y, 0, limit * np.max(np.abs(y)))
        dx = wanted_backward(t.wide(x), table, t.wide(dy), heads)
        # terms cancel: what is rounded is as large as r dy
        size = t.wide(x).reshape(x.shape[0], heads, -1)
        root = 1 / np.sqrt(np.mean(size**2, axis=-1, keepdims=True) + EPS)
        scale = np.abs(t.wide(dy)).reshape(size.shape).max(axis=-1, keepdims=True) * root
        scale = np.broadcast_to(scale, size.shape).reshape(x.shape)
        error = np.abs(t.wide(rotary_norm_backward(x, table, dy, heads)) - dx)
        self.assertTrue(np.all(error <= 3 * limit * (scale + np.abs(dx))), np.max(error / scale))

    def test_shapes(self):
        for dtype in t.DTYPES:
            for T, rows, heads, width in SHAPES:
                with self.subTest(dtype=dtype, T=T, rows=rows, heads=heads, width=width):
                    shape = (T * rows, heads * width)
                    self.check(t.random(shape, dtype, T), t.random(shape, dtype, T + 1), T, heads, dtype)

    def test_edges(self):
        for dtype in t.DTYPES:
            with self.subTest(dtype=dtype):
                x, dy = t.random((130, 64), dtype), t.edges((130, 64), dtype, 1)
                self.check(x, dy, 130, 2, dtype)
                self.check(t.edges((130, 64), dtype), x, 130, 2, dtype)

    def test_zeros_stay_zeros(self):
        zeros = np.zeros((3, 8), np.float32)
        self.assertNear(rotary_norm(zeros, angles_of(3, 4), 2), zeros, 0)
        self.assertNear(rotary_norm_backward(zeros, angles_of(3, 4), zeros, 2), zeros, 0)

    def test_from_the_host(self):
        x, dy = t.random((10, 12)), t.random((10, 12), seed=1)
        y = reference.rotary(x, 3, 500.0, norm=True, gain=2.0, length=5)
        self.assertNear(rotary(x, 3, 500.0, gain=2.0, length=5), y, 1e-6, 1e-6)
        dx = reference.rotary_backward(x, dy, 3, 500.0, norm=True, gain=2.0, length=5)
        self.assertNear(rotary_backward(x, dy, 3, 500.0, gain=2.0, length=5), dx, 1e-5, 1e-5)

    def test_finite_differences(self):
        x, dy, table = t.random((4, 8), seed=3), t.random((4, 8), seed=4), angles_of(2, 4)
        dx = t.gradient(lambda v: wanted(v, table, 2), [t.wide(x)], 0, t.wide(dy))
        self.assertNear(rotary_norm_backward(x, table, dy, 2), dx, 1e-5, 1e-6)


def rows():
    found = []
    for heads, width, dtype in ((5, 128, "bfloat16"), (8, 64, "bfloat16"), (5, 128, "float32")):
        shape = (8192, heads * width)
        name = f"4 rows of 2048, {heads} heads of {width}"

        def forward(shape=shape, width=width, heads=heads, dtype=dtype):
            return [t.random(shape, dtype, 1), angles_of(2048, width), heads]

        def backward(shape=shape, width=width, heads=heads, dtype=dtype):
            return [t.random(shape, dtype, 1), angles_of(2048, width), t.random(shape, dtype, 2), heads]

        found.append(t.Row(rotary_norm, name, dtype, forward, wanted))
        found.append(t.Row(rotary_norm_backward, name, dtype, backward, wanted_backward))
    return found


ROWS = rows()
