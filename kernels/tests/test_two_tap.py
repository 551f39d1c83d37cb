"""The two-tap convolution and its gradients against the trainer's operator and finite differences."""

import numpy as np

from kernels import _testing as t
from kernels._testing import reference
from kernels.two_tap import two_tap, two_tap_backward

# tokens, width, length of a sequence (None: all)
CASES = ((1, 4, None), (2, 3, None), (128, 8, None), (130, 70, None), (384, 640, 128), (300, 33, 100), (6, 5, 2), (520, 600, 260))


class TwoTap(t.TestCase):
    def check(self, x, taps, dy, length, dtype):
        ulp = max(t.ULP[dtype], 4e-7)
        y = two_tap(x, taps, length)
        wanted = reference.two_tap(t.wide(x), t.wide(taps), length=length)
        self.assertNear(y, wanted, ulp, ulp * float(np.max(np.abs(wanted))), "y")
        dx, dtaps = two_tap_backward(x, taps, dy, length)
        wx, wtaps = reference.two_tap_backward(t.wide(x), t.wide(taps), t.wide(dy), length=length)
        self.assertNear(dx, wx, ulp, ulp * float(np.max(np.abs(wx))), "dx")
        scale = float(np.max(np.sum(np.abs(t.wide(x) * t.wide(dy)), axis=0)))
        self.assertNear(dtaps, wtaps, 0, 1e-6 * scale, "dtaps")

    def test_shapes(self):
        for dtype in t.DTYPES:
            for i, (tokens, width, length) in enumerate(CASES):
                with self.subTest(dtype=dtype, case=(tokens, width, length)):
                    x, dy = t.random((tokens, width), dtype, i), t.random((tokens, width), dtype, i + 20)
                    self.check(x, t.random((2, width), seed=i + 40), dy, length, dtype)

    def test_edges(self):
        self.check(t.edges((140, 50)), t.random((2, 50)), t.random((140, 50), seed=1), 70, "float32")
        self.check(t.random((140, 50)), t.edges((2, 50)), t.random((140, 50), seed=1), 35, "float32")

    def test_a_sequence_does_not_see_the_one_before(self):
        x = t.random((256, 16))
        other = x.copy()
        other[:128] = t.random((128, 16), seed=5)
        taps = t.random((2, 16), seed=1)
        self.assertNear(two_tap(other, taps, 128)[128:], t.wide(two_tap(x, taps, 128)[128:]), 0)

    def test_finite_differences(self):
        x, taps, dy = t.random((6, 4)), t.random((2, 4), seed=1), t.random((6, 4), seed=2)

        def function(a, b):
            return reference.two_tap(a, b, length=3)

        arguments = [t.wide(x), t.wide(taps)]
        dx, dtaps = two_tap_backward(x, taps, dy, 3)
        self.assertNear(dx, t.gradient(function, arguments, 0, t.wide(dy)), 1e-5, 1e-6)
        self.assertNear(dtaps, t.gradient(function, arguments, 1, t.wide(dy)), 1e-5, 1e-6)


def rows():
    found, shape, length = [], (8192, 640), 2048
    for dtype in t.DTYPES:
        text = "4 rows of 2048, width 640"
        found.append(
            t.Row(
                two_tap,
                text,
                dtype,
                lambda d=dtype: [t.random(shape, d), t.random((2, 640), seed=1), length],
                lambda x, taps, n: reference.two_tap(x, taps, length=n),
            )
        )
        found.append(
            t.Row(
                two_tap_backward,
                text,
                dtype,
                lambda d=dtype: [t.random(shape, d), t.random((2, 640), seed=1), t.random(shape, d, 2), length],
                lambda x, taps, dy, n: reference.two_tap_backward(x, taps, dy, length=n),
            )
        )
    return found


ROWS = rows()
