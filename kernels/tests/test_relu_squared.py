"""ReLU squared and leaky ReLU squared against float64, and their gradients against finite differences."""

import numpy as np

from kernels import _testing as t
from kernels.relu_squared import (
    leaky_relu_squared,
    leaky_relu_squared_backward,
    relu_squared,
    relu_squared_backward,
)

SLOPE = 0.5
SHAPES = ((128, 64), (1, 1), (3, 5), (127, 129), (300, 513), (40, 100, 7))


def reference(x, slope=0.0):
    return np.maximum(x, slope * x) ** 2


def reference_backward(x, dy, slope=0.0):
    return 2 * np.maximum(x, slope * x) * np.where(x > 0, 1.0, slope) * dy


def leaky_reference(x):
    return reference(x, SLOPE)


def leaky_reference_backward(x, dy):
    return reference_backward(x, dy, SLOPE)


class ReluSquared(t.TestCase):
    def check(self, x, dy, dtype):
        half = t.ULP[dtype] / 2 * 1.001
        wide, up = t.wide(x), t.wide(dy)
        rounds = 1 if dtype == "bfloat16" else 2  # in bf16 all but the last operation are exact
        self.assertNear(relu_squared(x), reference(wide), half)
        self.assertNear(relu_squared_backward(x, dy), reference_backward(wide, up), half)
        self.assertNear(leaky_relu_squared(x, 0.5), reference(wide, 0.5), rounds * half)
        self.assertNear(
            leaky_relu_squared_backward(x, dy, 0.5), reference_backward(wide, up, 0.5), rounds * half
        )
        # another slope is rounded itself, and so is its product with x before it is squared
        self.assertNear(leaky_relu_squared(x, 0.3), reference(wide, 0.3), 5 * half)
        self.assertNear(leaky_relu_squared_backward(x, dy, 0.3), reference_backward(wide, up, 0.3), 3 * half)

    def test_shapes(self):
        for dtype in t.DTYPES:
            for i, shape in enumerate(SHAPES):
                with self.subTest(dtype=dtype, shape=shape):
                    self.check(t.random(shape, dtype, i), t.random(shape, dtype, i + 100), dtype)

    def test_edges(self):
        for dtype in t.DTYPES:
            with self.subTest(dtype=dtype):
                self.check(t.edges((130, 70), dtype), t.edges((130, 70), dtype, 1), dtype)

    def test_infinity(self):
        x = np.array([[np.inf, -np.inf, 0.0]], dtype=np.float32)
        self.assertNear(relu_squared(x), np.array([[np.inf, 0.0, 0.0]]), 0)

    def test_finite_differences(self):
        x, dy = t.random((5, 7), seed=3), t.random((5, 7), seed=4)
        for slope, got in (
            (0.0, relu_squared_backward(x, dy)),
            (SLOPE, leaky_relu_squared_backward(x, dy, SLOPE)),
        ):
            wanted = t.gradient(lambda v: reference(v, slope), [t.wide(x)], 0, t.wide(dy))
            self.assertNear(got, wanted, 1e-5, 1e-6)


def rows():
    def one(dtype, seed):
        return lambda: [t.random((2048, 2560), dtype, seed)]

    def two(dtype, seed):
        return lambda: [t.random((2048, 2560), dtype, seed), t.random((2048, 2560), dtype, seed + 1)]

    found = []
    for dtype in ("bfloat16", "float32"):
        found.append(t.Row(relu_squared, "2048x2560", dtype, one(dtype, 1), reference))
        found.append(t.Row(relu_squared_backward, "2048x2560", dtype, two(dtype, 2), reference_backward))
        found.append(t.Row(leaky_relu_squared, "2048x2560", dtype, one(dtype, 3), leaky_reference))
        found.append(
            t.Row(leaky_relu_squared_backward, "2048x2560", dtype, two(dtype, 4), leaky_reference_backward)
        )
    return found


ROWS = rows()
