"""Attention against float64 softmax, its gradients against the formula and finite differences."""

import numpy as np

from kernels import _testing as t
from kernels.attention import attention, attention_backward

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


def seen(T, window):
    distance = np.arange(T)[:, None] - np.arange(T)[None, :]
    return (distance >= 0) & ((distance <= window) | (window <= 0))


def parts(T, rows, heads, kv_heads, width):
    """Where each head of each row is in q, k and the log-sum-exps."""
    for row in range(rows):
        tokens = slice(row * T, (row + 1) * T)
        for head in range(heads):
            own = head // (heads // kv_heads)
            yield (
                (tokens, slice(head * width, (head + 1) * width)),
                (tokens, slice(own * width, (own + 1) * width)),
                (tokens, slice(head, head + 1)),
            )


def reference(q, k, v, heads, kv_heads, window, T):
    width = q.shape[1] // heads
    o, lse, mask = np.zeros_like(q), np.zeros((q.shape[0], heads)), seen(T, window)
    for own, shared, number in parts(T, q.shape[0] // T, heads, kv_heads, width):
        s = np.where(mask, q[own] @ k[shared].T / np.sqrt(width), -np.inf)
        most = np.max(s, axis=-1, keepdims=True)
        lse[number] = most + np.log(np.sum(np.exp(s - most), axis=-1, keepdims=True))
        o[own] = np.exp(s - lse[number]) @ v[shared]
    return o, lse


def reference_backward(q, k, v, o, lse, do, heads, kv_heads, window, T):
    width = q.shape[1] // heads
    dq, dk, dv, mask = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v), seen(T, window)
    for own, shared, number in parts(T, q.shape[0] // T, heads, kv_heads, width):
        p = np.where(mask, np.exp(q[own] @ k[shared].T / np.sqrt(width) - lse[number]), 0)
        delta = np.sum(do[own] * o[own], axis=-1, keepdims=True)
        ds = p * (do[own] @ v[shared].T - delta) / np.sqrt(width)
        dq[own] = ds @ k[shared]
        dk[shared] += ds.T @ q[own]
        dv[shared] += p.T @ do[own]
    return dq, dk, dv


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
        o, lse = reference(*[t.wide(x) for x in qkv], *shape)
        got = attention(*qkv, *shape)
        self.assertLess(t.difference(got[0], o), limit)
        self.assertLess(np.max(np.abs(got[1] - lse)), 1e-5 if dtype == "float32" else 2e-2)
        saved = [t.cast(o, dtype), lse.astype(np.float32)]
        wanted = reference_backward(*[t.wide(x) for x in (*qkv, *saved, do)], *shape)
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
        o, lse = reference(*[t.wide(x) for x in qkv], *shape)
        got = attention_backward(*qkv, o.astype(np.float32), lse.astype(np.float32), do, *shape)
        for i in range(3):
            wanted = t.gradient(lambda *a: reference(*a, *shape)[0], [t.wide(x) for x in qkv], i, t.wide(do))
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

        def forward(args=args, width=width):
            return [*inputs(2048, 1, *args[:2], width, "bfloat16")[0], *args]

        def backward(args=args, width=width):
            qkv, do = inputs(2048, 1, *args[:2], width, "bfloat16")
            return [*qkv, *attention(*qkv, *args), do, *args]

        work = (2048, heads, width, window)
        found.append(t.Row(attention, shape, "bfloat16", forward, reference, flops(2, *work)))
        found.append(
            t.Row(attention_backward, shape, "bfloat16", backward, reference_backward, flops(5, *work))
        )
    return found


ROWS = rows()
