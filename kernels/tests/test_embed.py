"""Embedding and its way back against the trainer's operator, above all where tokens share a row."""

import numpy as np

from kernels import _testing as t
from kernels._testing import reference
from kernels.embed import embed, scatter_add

CASES = ((7, 8, 5), (300, 64, 128), (300, 640, 129), (5, 33, 400), (1000, 130, 1), (129, 600, 257))


def some_ids(rows, tokens, seed):
    return np.random.default_rng(seed).integers(0, rows, tokens).astype(np.int32)


class Embed(t.TestCase):
    def test_shapes(self):
        for dtype in t.DTYPES:
            for i, (rows, width, tokens) in enumerate(CASES):
                with self.subTest(dtype=dtype, case=(rows, width, tokens)):
                    table, ids = t.random((rows, width), dtype, i), some_ids(rows, tokens, i)
                    self.assertNear(embed(table, ids), reference.embed(t.wide(table), ids), 0)

    def test_first_and_last_row(self):
        table = t.random((200, 16))
        ids = np.array([199, 0, 199, 0], np.int32)
        self.assertNear(embed(table, ids), t.wide(table)[ids], 0)


class ScatterAdd(t.TestCase):
    def check(self, table, ids, rows, dtype="float32"):
        wanted = reference.scatter_add(t.wide(table), ids, t.wide(rows))
        # the table is rounded after each block, so a row named in several blocks is rounded as often
        blocks = -(-len(ids) // 128)
        scale = float(np.max(np.abs(wanted)))
        self.assertNear(scatter_add(table, ids, rows), wanted, 0, max(t.ULP[dtype] / 2, 2e-7) * blocks * scale)

    def test_shapes(self):
        for dtype in t.DTYPES:
            for i, (rows, width, tokens) in enumerate(CASES):
                with self.subTest(dtype=dtype, case=(rows, width, tokens)):
                    self.check(
                        t.random((rows, width), dtype, i),
                        some_ids(rows, tokens, i),
                        t.random((tokens, width), dtype, i + 9),
                        dtype,
                    )

    def test_one_row_for_all(self):
        self.check(t.random((9, 70)), np.full(300, 4, np.int32), t.random((300, 70), seed=1))

    def test_all_different_is_exact(self):
        table, rows = t.random((256, 40)), t.random((256, 40), seed=1)
        ids = np.random.default_rng(2).permutation(256).astype(np.int32)
        self.assertNear(scatter_add(table, ids, rows), reference.scatter_add(t.wide(table), ids, t.wide(rows)), 1e-7, 1e-7)

    def test_large_ids(self):
        table, rows = t.random((70000, 4)), t.random((3, 4), seed=1)
        self.check(table, np.array([65536, 65537, 1], np.int32), rows)

    def test_backward_of_embed(self):
        table, ids, dy = t.random((50, 24)), some_ids(50, 200, 3), t.random((200, 24), seed=4)
        (wanted,) = t.many(reference.embed_backward(t.wide(table), ids, t.wide(dy)))
        self.assertNear(scatter_add(np.zeros_like(table), ids, dy), wanted, 1e-5, 1e-5)


def rows():
    found = []
    vocabulary, width, tokens = 32768, 640, 2048
    for dtype in t.DTYPES:
        text = f"{tokens} of {vocabulary}x{width}"
        size = t.random((1, 1), dtype).nbytes
        ids = some_ids(vocabulary, tokens, 1)
        found.append(
            t.Row(
                embed,
                text,
                dtype,
                lambda d=dtype: [t.random((vocabulary, width), d), ids],
                lambda table, i: reference.embed(table, i),
                bytes=2 * tokens * width * size,
            )
        )
        found.append(
            t.Row(
                scatter_add,
                text,
                dtype,
                lambda d=dtype: [t.random((vocabulary, width), d), ids, t.random((tokens, width), d, 2)],
                reference.scatter_add,
            )
        )
    return found


ROWS = rows()
