"""ReLU squared and leaky ReLU squared against the trainer's operators, and their gradients against finite differences."""

import numpy as np

from kernels import _testing as t
from kernels._testing import reference
from kernels.relu_squared import (
    leaky_relu_squared,
    leaky_relu_squared_backward,
    relu_squared,
    relu_squared_backward,
)

SHAPES = ((128, 64), (1, 1), (3, 5), (127, 129), (300, 513), (40, 100, 7))


class ReluSquared(t.TestCase):
    def check(self, x, dy, dtype):
        half = t.ULP[dtype] / 2 * 1.001
        wide, up = t.wide(x), t.wide(dy)
        rounds = 1 if dtype == "bfloat16" else 2  # in bf16 all but the last operation are exact
        self.assertNear(relu_squared(x), reference.relu_squared(wide), half)
        self.assertNear(relu_squared_backward(x, dy), reference.relu_squared_backward(wide, up), half)
        self.assertNear(leaky_relu_squared(x, 0.5), reference.leaky_relu_squared(wide, 0.5), rounds * half)
        self.assertNear(
            leaky_relu_squared_backward(x, dy, 0.5),
            reference.leaky_relu_squared_backward(wide, up, 0.5),
            rounds * half,
        )
        # another slope is rounded itself, and so is its product with x before it is squared
        self.assertNear(leaky_relu_squared(x, 0.3), reference.leaky_relu_squared(wide, 0.3), 5 * half)
        self.assertNear(
            leaky_relu_squared_backward(x, dy, 0.3),
            reference.leaky_relu_squared_backward(wide, up, 0.3),
            3 * half,
        )

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
        for got, function in (
            (relu_squared_backward(x, dy), reference.relu_squared),
            (leaky_relu_squared_backward(x, dy), reference.leaky_relu_squared),
        ):
            self.assertNear(got, t.gradient(function, [t.wide(x)], 0, t.wide(dy)), 1e-5, 1e-6)


def rows():
    def one(dtype, seed):
        return lambda: [t.random((2048, 2560), dtype, seed)]

    def two(dtype, seed):
        return lambda: [t.random((2048, 2560), dtype, seed), t.random((2048, 2560), dtype, seed + 1)]

    found = []
    for dtype in t.DTYPES[::-1]:
        for kernel in (relu_squared, relu_squared_backward, leaky_relu_squared, leaky_relu_squared_backward):
            make = two(dtype, 1) if kernel.__name__.endswith("backward") else one(dtype, 1)
            found.append(t.Row(kernel, "2048x2560", dtype, make, getattr(reference, kernel.__name__)))
    return found


ROWS = rows()
