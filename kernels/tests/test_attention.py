"""Attention against the trainer's operator, its gradients against that and finite differences."""

import numpy as np

from kernels import _testing as t
from kernels._testing import reference
from kernels.attention import attention, attention_backward, attention_of_normed

# T, rows, heads, key-value heads, head width, window
SHAPES = (
    (1, 1, 1, 1, 8, 0),
    (128, 1, 1, 1, 64, 0),
    (130, 3, 2, 1, 16, 0),
    (300, 1, 4, 2, 24, 1),
    (640, 1, 1, 1, 128, 128),
    (700, 1, 2, 1, 32, 200),
    (1100, 1, 1, 1, 16, 600),
)


def forward(q, k, v, heads, kv_heads, window, T):
    return reference.attention(q, k, v, heads, kv_heads, window, length=T, statistics=True)


def backward(q, k, v, o, lse, do, heads, kv_heads, window, T):
    return reference.attention_backward(q, k, v, do, heads, kv_heads, window, length=T)


def inputs(T, rows, heads, kv_heads, width, dtype, seed=0, length=1.2):
    """q and k after a norm of this gain, v and d o."""
    found = []
    for i, many in enumerate((heads, kv_heads)):
        x = np.random.default_rng(seed + i).standard_normal((rows * T, many, width))
        x *= length / np.sqrt(np.mean(x * x, axis=-1, keepdims=True))
        found.append(t.cast(x.reshape(rows * T, many * width), dtype))
    found.append(t.random((rows * T, kv_heads * width), dtype, seed + 2))
    return found, t.random((rows * T, heads * width), dtype, seed + 3)


class Attention(t.TestCase):
    def check(self, qkv, do, dtype, *shape):
        """Forward, then backward of the reference's outputs as the kernel would have rounded them."""
        limit = 3e-6 if dtype == "float32" else 1e-2
        o, lse = forward(*[t.wide(x) for x in qkv], *shape)
        limit *= max(1, np.max(np.abs(lse)) / 4)  # p is exp of the difference of two such numbers
        for kernel in (attention, attention_of_normed):
            got = kernel(*qkv, *shape)
            self.assertLess(t.difference(got[0], o), limit)
            self.assertLess(np.max(np.abs(got[1] - lse)), limit)
        saved = [t.cast(o, dtype), lse.astype(np.float32)]
        wanted = backward(*[t.wide(x) for x in (*qkv, *saved, do)], *shape)
        for name, g, w in zip(("dq", "dk", "dv"), attention_backward(*qkv, *saved, do, *shape), wanted):
            self.assertNear(g, w, 0, limit * (1 + np.max(np.abs(w))), name)

    def test_shapes(self):
        for dtype in t.DTYPES:
            for T, rows, heads, kv_heads, width, window in SHAPES:
                with self.subTest(dtype=dtype, T=T, heads=heads, width=width, window=window):
                    qkv, do = inputs(T, rows, heads, kv_heads, width, dtype)
                    self.check(qkv, do, dtype, heads, kv_heads, window, T)

    def test_long_vectors(self):
        """Scores near the documented bound of 36."""
        for dtype in t.DTYPES:
            with self.subTest(dtype=dtype):
                (q, k, v), do = inputs(200, 1, 1, 1, 16, dtype, length=2.9)
                self.check([q, q, v], do, dtype, 1, 1, 0, 200)

    def test_float16(self):
        """exp of the largest scores that QK norm allows is beyond its range."""
        (q, k, v), do = inputs(140, 1, 1, 1, 128, "float32")
        q, k, v, do = (x.astype(np.float16) for x in (q, q, v, do))
        o, lse = forward(*[t.wide(x) for x in (q, k, v)], 1, 1, 0, 140)
        for kernel in (attention, attention_of_normed):
            self.assertLess(t.difference(kernel(q, k, v, 1), (o, lse)), 1e-2)
        wanted = backward(*[t.wide(x) for x in (q, k, v, o, lse, do)], 1, 1, 0, 140)
        saved = (o.astype(np.float16), lse.astype(np.float32))
        self.assertNear(attention_backward(q, k, v, *saved, do, 1), wanted, 0, 2e-2)

    def test_scores_of_any_size(self):
        """Every weight but one is 0, and the bound of the other kernel is far away."""
        for dtype in t.DTYPES:
            with self.subTest(dtype=dtype):
                (q, k, v), do = inputs(300, 1, 2, 1, 32, dtype, length=1000.0)
                o, lse = forward(*[t.wide(x) for x in (q, k, v)], 2, 1, 100, 300)
                got = attention(q, k, v, 2, 1, 100)
                self.assertLess(t.difference(got, (o, lse)), 1e-4 if dtype == "float32" else 1e-2)
                saved = [t.cast(o, dtype), lse.astype(np.float32)]
                for gradient in attention_backward(q, k, v, *saved, do, 2, 1, 100):
                    self.assertTrue(np.all(np.isfinite(t.wide(gradient))))

    def test_equal_scores(self):
        """Queries of zero see the mean of the values so far."""
        q, v = np.zeros((140, 8), np.float32), t.edges((140, 8))
        o, lse = attention(q, q, v, 1)
        so_far = np.arange(1, 141)[:, None]
        self.assertNear(o, np.cumsum(t.wide(v), axis=0) / so_far, 1e-4, 1e-2)
        self.assertNear(lse, np.log(so_far), 1e-6, 1e-6)

    def test_finite_differences(self):
        shape = (2, 1, 3, 6)
        qkv, do = inputs(6, 1, 2, 1, 4, "float32")
        o, lse = forward(*[t.wide(x) for x in qkv], *shape)
        got = attention_backward(*qkv, o.astype(np.float32), lse.astype(np.float32), do, *shape)
        for i in range(3):
            wanted = t.gradient(lambda *a: forward(*a, *shape)[0], [t.wide(x) for x in qkv], i, t.wide(do))
            self.assertNear(got[i], wanted, 1e-4, 1e-5)


def flops(products, T, heads, width, window):
    """Multiply-adds of so many products, only where a query sees a key."""
    see = sum(min(i, window or T) + 1 for i in range(T))
    return 2.0 * products * heads * width * see


def rows():
    found = []
    for heads, kv_heads, width, window in ((5, 5, 128, 0), (5, 5, 128, 512), (8, 8, 64, 0), (8, 2, 64, 0)):
        shape = f"T 2048, {heads} heads of {width}"
        shape += f" on {kv_heads}" if kv_heads < heads else ""
        shape += f", window {window}" if window else ""
        args = (heads, kv_heads, window, 2048)

        def ahead(args=args, width=width):
            return [*inputs(2048, 1, *args[:2], width, "bfloat16")[0], *args]

        def back(args=args, width=width):
            qkv, do = inputs(2048, 1, *args[:2], width, "bfloat16")
            return [*qkv, *attention(*qkv, *args), do, *args]

        work = (2048, heads, width, window)
        for kernel in (attention_of_normed, attention):
            found.append(t.Row(kernel, shape, "bfloat16", ahead, forward, flops(2, *work)))
        found.append(t.Row(attention_backward, shape, "bfloat16", back, backward, flops(5, *work)))
    return found


ROWS = rows()
