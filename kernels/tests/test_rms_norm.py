"""RMS norm against the trainer's operator, its gradient against finite differences."""

import numpy as np

from kernels import _testing as t
from kernels._testing import reference
from kernels.rms_norm import EPS, rms_norm, rms_norm_backward

SHAPES = ((128, 64), (1, 8), (3, 5), (129, 640), (300, 130), (517, 512))


class RmsNorm(t.TestCase):
    def check(self, x, dy, dtype):
        ulp = t.ULP[dtype]
        self.assertNear(rms_norm(x), reference.rms_norm(t.wide(x)), max(ulp / 2 * 1.001, 1e-6))
        wanted = reference.rms_norm_backward(t.wide(x), t.wide(dy))
        # t and the products are rounded too; a row's error is measured by the row's largest t
        scale = np.abs(t.wide(dy)) / np.sqrt(np.mean(t.wide(x) ** 2, axis=-1, keepdims=True) + EPS)
        limit = max(ulp, 1e-6) * (np.abs(wanted) + np.max(scale, axis=-1, keepdims=True))
        error = np.abs(t.wide(rms_norm_backward(x, dy)) - wanted)
        self.assertTrue(np.all(error <= limit), float(np.max(error / np.maximum(limit, 1e-30))))

    def test_shapes(self):
        for dtype in t.DTYPES:
            for i, shape in enumerate(SHAPES):
                with self.subTest(dtype=dtype, shape=shape):
                    self.check(t.random(shape, dtype, i), t.random(shape, dtype, i + 100), dtype)

    def test_edges(self):
        for dtype in t.DTYPES:
            with self.subTest(dtype=dtype):
                self.check(t.edges((130, 64), dtype), t.random((130, 64), dtype, 1), dtype)
                self.check(t.random((130, 64), dtype), t.edges((130, 64), dtype, 1), dtype)

    def test_zeros_stay_zeros(self):
        zeros = np.zeros((5, 16), np.float32)
        self.assertNear(rms_norm(zeros), zeros, 0)
        self.assertNear(rms_norm_backward(zeros, zeros), zeros, 0)

    def test_eps(self):
        x = t.random((7, 33), seed=9, scale=0.01)
        self.assertNear(rms_norm(x, 0.5), reference.rms_norm(t.wide(x), eps=0.5), 1e-6)

    def test_finite_differences(self):
        x, dy = t.random((4, 6), seed=3), t.random((4, 6), seed=4)
        wanted = t.gradient(reference.rms_norm, [t.wide(x)], 0, t.wide(dy))
        self.assertNear(rms_norm_backward(x, dy), wanted, 1e-5, 1e-6)


def rows():
    found = []
    shape = (16384, 640)
    for dtype in ("bfloat16", "float32"):
        found.append(
            t.Row(rms_norm, "16384x640", dtype, lambda d=dtype: [t.random(shape, d, 1)], reference.rms_norm)
        )
        found.append(
            t.Row(
                rms_norm_backward,
                "16384x640",
                dtype,
                lambda d=dtype: [t.random(shape, d, 2), t.random(shape, d, 3)],
                reference.rms_norm_backward,
            )
        )
    return found


ROWS = rows()
