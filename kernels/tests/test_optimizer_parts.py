"""AdamW, the gradient's norm and the running average, against the trainer's own."""

import numpy as np

from kernels import _testing as t
from kernels._testing import reference
from kernels.adamw_step import adamw_step, step_factors
from kernels.ema_blend import ema_blend
from kernels.gradient_norm import gradient_norm

SHAPES = ((128, 8), (1, 5), (3, 43), (129, 640), (1000, 130))


def moments(shape, seed):
    return t.random(shape, seed=seed, scale=0.01), np.abs(t.random(shape, seed=seed + 1, scale=1e-4))


class AdamW(t.TestCase):
    def check(self, w, g, m, v, step, lr=0.01, decay=0.1):
        got = adamw_step(w, g, m, v, step_factors(step, lr, decay))
        wanted = reference.adamw_step(w, g, m, v, step=step, lr=lr, decay=decay)
        for name, a, b, scale in zip(("weight", "first", "second"), got, wanted, (1e-6, 1e-6, 1e-6)):
            self.assertNear(a, t.wide(b), 4e-6, scale * float(np.max(np.abs(b)) + 1e-30), name)

    def test_shapes(self):
        for i, shape in enumerate(SHAPES):
            with self.subTest(shape=shape):
                m, v = moments(shape, 10 * i)
                self.check(t.random(shape, seed=i), t.random(shape, seed=i + 50, scale=0.1), m, v, step=7)

    def test_first_step(self):
        zeros = np.zeros((130, 70), np.float32)
        self.check(t.random((130, 70)), t.random((130, 70), seed=2), zeros, zeros, step=1)

    def test_zero_gradient_moves_nothing_but_decay(self):
        zeros, w = np.zeros((4, 9), np.float32), t.random((4, 9))
        got = adamw_step(w, zeros, zeros, zeros, step_factors(1, 0.1, 0.5))
        self.assertNear(got[0], t.wide(w) * 0.95, 1e-6)
        self.assertNear(got[1], zeros, 0)
        self.assertNear(got[2], zeros, 0)

    def test_odd_gradients(self):
        m, v = moments((64, 33), 3)
        self.check(t.random((64, 33)), t.edges((64, 33)), m, v, step=100)

    def test_every_size_of_gradient(self):
        """From nothing to where the square itself leaves float32, in one tile: the table of roots is left on neither side."""
        g = np.array([[10.0**e for e in range(-44, 19)] + [1.8e19, -1.8e19]], np.float32)
        zeros = np.zeros_like(g)
        self.check(zeros + 0.5, g, zeros, zeros, step=1)
        self.check(zeros + 0.5, g, zeros, zeros + 3e38, step=3000)

    def test_many_steps(self):
        w = t.random((5, 40))
        m = v = np.zeros((5, 40), np.float32)
        kept, km, kv = w, m, v
        for step in range(1, 8):
            g = t.random((5, 40), seed=step)
            w, m, v = adamw_step(w, g, m, v, step_factors(step, 0.02, 0.01))
            kept, km, kv = reference.adamw_step(kept, g, km, kv, step=step, lr=0.02, decay=0.01)
        self.assertNear(w, t.wide(kept), 1e-5, 1e-6)


class GradientNorm(t.TestCase):
    def test_shapes(self):
        for dtype in t.DTYPES:
            for i, shape in enumerate((*SHAPES, (700, 3001))):
                with self.subTest(dtype=dtype, shape=shape):
                    g = t.random(shape, dtype, i)
                    self.assertNear(gradient_norm(g), np.array([[reference.gradient_norm(t.wide(g))]]), 2e-6)

    def test_zeros_and_edges(self):
        self.assertNear(gradient_norm(np.zeros((3, 7), np.float32)), np.zeros((1, 1)), 0)
        g = t.edges((130, 65))
        self.assertNear(gradient_norm(g), np.array([[reference.gradient_norm(t.wide(g))]]), 2e-6)


class EmaBlend(t.TestCase):
    def test_shapes(self):
        for dtype in t.DTYPES:
            for i, shape in enumerate(SHAPES):
                with self.subTest(dtype=dtype, shape=shape):
                    a, b = t.random(shape, dtype, i), t.random(shape, dtype, i + 30)
                    wanted = reference.ema_blend(t.wide(a), t.wide(b), decay=0.95)
                    self.assertNear(ema_blend(a, b, 0.95), wanted, max(t.ULP[dtype] / 2 * 1.01, 1e-6), 1e-7)

    def test_ends_of_decay(self):
        a, b = t.random((3, 50)), t.random((3, 50), seed=1)
        self.assertNear(ema_blend(a, b, 1.0), t.wide(a), 0)
        self.assertNear(ema_blend(a, b, 0.0), t.wide(b), 0)


def adamw_reference(w, g, m, v, row):
    return reference.adamw_step(*(x.astype(np.float32) for x in (w, g, m, v)), step=10, lr=0.01, decay=0.1)


def rows():
    shape, found = (2560, 640), []
    text = "2560x640"
    found.append(
        t.Row(
            adamw_step,
            text,
            "float32",
            lambda: [
                t.random(shape),
                t.random(shape, seed=1),
                *moments(shape, 5),
                step_factors(10, 0.01, 0.1),
            ],
            adamw_reference,
        )
    )
    found.append(
        t.Row(
            ema_blend,
            text,
            "float32",
            lambda: [t.random(shape), t.random(shape, seed=1), 0.95],
            lambda a, b, decay: reference.ema_blend(a, b, decay=decay),
        )
    )
    for dtype in t.DTYPES:
        found.append(
            t.Row(
                gradient_norm,
                text,
                dtype,
                lambda d=dtype: [t.random(shape, d)],
                lambda g: np.array([[reference.gradient_norm(g)]]),
            )
        )
    return found


ROWS = rows()
