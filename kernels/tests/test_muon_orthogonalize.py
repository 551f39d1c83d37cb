"""Muon's orthogonalisation against the trainer's."""

import numpy as np

from kernels import _testing as t
from kernels._testing import reference
from kernels.muon_orthogonalize import muon_orthogonalize

SHAPES = ((1, 1), (1, 7), (8, 8), (130, 64), (64, 130), (200, 300), (128, 640), (260, 129))


class Muon(t.TestCase):
    def test_fp32(self):
        for i, shape in enumerate(SHAPES):
            with self.subTest(shape=shape):
                g = t.random(shape, seed=i, scale=0.02)
                wanted = t.wide(reference.muon_orthogonalize(g))
                self.assertNear(muon_orthogonalize(g, True), wanted, 0, 3e-4 * float(np.max(np.abs(wanted))))

    def test_bf16_is_as_near_as_the_trainers_bf16(self):
        for i, shape in enumerate(SHAPES[1:]):  # of a single number the rounding errors do not average
            with self.subTest(shape=shape):
                g = t.random(shape, seed=i, scale=3.0)
                exact = t.wide(reference.muon_orthogonalize(g))
                trainers = np.linalg.norm(t.wide(reference.muon_orthogonalize(g, bf16=True)) - exact)
                ours = np.linalg.norm(t.wide(muon_orthogonalize(g)) - exact)
                self.assertLess(ours, 2 * trainers + 0.01 * np.linalg.norm(exact))

    def test_singular_values_near_one(self):
        values = np.linalg.svd(t.wide(muon_orthogonalize(t.random((96, 200), seed=5))), compute_uv=False)
        self.assertGreater(float(values.min()), 0.6)
        self.assertLess(float(values.max()), 1.4)

    def test_turning_turns_the_factor(self):
        g = t.random((70, 140), seed=2)
        tall = np.ascontiguousarray(g.T)
        self.assertNear(muon_orthogonalize(tall, True), t.wide(muon_orthogonalize(g, True)).T, 0, 1e-5)

    def test_zero_stays_zero(self):
        zeros = np.zeros((40, 60), np.float32)
        self.assertNear(muon_orthogonalize(zeros), zeros, 0)

    def test_rank_one(self):
        g = np.outer(t.random((30,), seed=1), t.random((50,), seed=2)).astype(np.float32)
        wanted = t.wide(reference.muon_orthogonalize(g))
        self.assertNear(muon_orthogonalize(g, True), wanted, 0, 1e-3 * float(np.max(np.abs(wanted))))


def rows():
    found = []
    for rows_, columns in ((640, 640), (640, 2560), (2560, 640)):
        r, long = min(rows_, columns), max(rows_, columns)
        found.append(
            t.Row(
                muon_orthogonalize,
                f"{rows_}x{columns}",
                "bfloat16",
                lambda s=(rows_, columns): [t.random(s, seed=3, scale=0.01)],
                lambda g: reference.muon_orthogonalize(g.astype(np.float32), bf16=True),
                flops=5 * (4.0 * long * r * r + 2.0 * r**3),
            )
        )
    return found


ROWS = rows()
