"""frontier_nki.reference against numpy formulas written here, and its gradients against central differences.

The differences run in float64, through the operator itself, so they hold for whatever it computes; the forward
values are held to formulas of the baseline. Shapes are small and odd: one token, several sequences, groups.
"""

import unittest

import numpy as np

import frontier_nki
from frontier_nki import reference


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def many(value):
    return value if isinstance(value, tuple) else (value,)


def differences(function, inputs, index, upstream, step=1e-6):
    """Central differences of sum(function(*inputs) * upstream) by inputs[index]."""
    x = inputs[index]
    found = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        kept = x[i]
        x[i] = kept + step
        above = float((function(*inputs) * upstream).sum())
        x[i] = kept - step
        below = float((function(*inputs) * upstream).sum())
        x[i] = kept
        found[i] = (above - below) / (2 * step)
    return found


def rms(x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + reference.EPS)


def naive_rotary(x, heads, base, interleaved, norm, gain):
    out = np.empty_like(x)
    d = x.shape[-1] // heads
    for t in range(x.shape[-2]):
        for h in range(heads):
            head = x[..., t, h * d : (h + 1) * d]
            turned = np.empty_like(head)
            for m in range(d // 2):
                angle = t * base ** (-2 * m / d)
                i, j = (2 * m, 2 * m + 1) if interleaved else (m, m + d // 2)
                angle = angle if interleaved else -angle
                a, b = head[..., i], head[..., j]
                turned[..., i] = a * np.cos(angle) - b * np.sin(angle)
                turned[..., j] = a * np.sin(angle) + b * np.cos(angle)
            out[..., t, h * d : (h + 1) * d] = gain * rms(turned) if norm else turned
    return out


def naive_attention(q, k, v, heads, kv_heads, window):
    tokens, d = q.shape[0], q.shape[1] // heads
    out = np.empty_like(q)
    for h in range(heads):
        at = slice(h * d, (h + 1) * d)
        kv = h // (heads // kv_heads)
        kv = slice(kv * d, (kv + 1) * d)
        scores = q[:, at] @ k[:, kv].T / np.sqrt(d)
        i, j = np.indices((tokens, tokens))
        seen = (j <= i) & ((i - j <= window) if window else True)
        p = np.where(seen, np.exp(scores - scores.max()), 0)
        out[:, at] = p / p.sum(-1, keepdims=True) @ v[:, kv]
    return out


# name: (function of float64 arrays, its inputs, how to call the backward function)
GRADIENTS = {
    "relu_squared": (reference.relu_squared, [numbers(5, 7)], reference.relu_squared_backward),
    "leaky_relu_squared": (
        reference.leaky_relu_squared,
        [numbers(5, 7)],
        reference.leaky_relu_squared_backward,
    ),
    "two_tap": (
        reference.two_tap,
        [numbers(2, 4, 6), numbers(2, 6, seed=1)],
        reference.two_tap_backward,
    ),
    "gelu": (reference.gelu, [numbers(5, 7)], reference.gelu_backward),
    "swiglu": (reference.swiglu, [numbers(5, 7), numbers(5, 7, seed=1)], reference.swiglu_backward),
    "rms_norm": (reference.rms_norm, [numbers(5, 7)], reference.rms_norm_backward),
    "rms_norm, gain": (
        lambda x, g: reference.rms_norm(x, g),
        [numbers(5, 7), numbers(7, seed=1)],
        lambda x, g, dy: reference.rms_norm_backward(x, dy, g),
    ),
    "layer_norm": (
        lambda x, g, b: reference.layer_norm(x, g, b),
        [numbers(5, 7), numbers(7, seed=1), numbers(7, seed=2)],
        lambda x, g, b, dy: reference.layer_norm_backward(x, dy, g, b),
    ),
    "rotary, QK norm": (
        lambda x: reference.rotary(x, 2, base=100.0, norm=True, gain=1.2),
        [numbers(2, 5, 8)],
        lambda x, dy: reference.rotary_backward(x, dy, 2, base=100.0, norm=True, gain=1.2),
    ),
    "attention": (
        lambda q, k, v: reference.attention(q, k, v, heads=4, kv_heads=2, window=2),
        [numbers(2, 5, 8), numbers(2, 5, 4, seed=1), numbers(2, 5, 4, seed=2)],
        lambda q, k, v, dy: reference.attention_backward(q, k, v, dy, heads=4, kv_heads=2, window=2),
    ),
    "linear": (
        lambda x, w: reference.linear(x, w),
        [numbers(5, 4), numbers(3, 4, seed=1)],
        lambda x, w, dy: reference.linear_backward(x, w, dy),
    ),
    "linear, epilogues": (
        lambda x, w, b, r: reference.linear(x, w, bias=b, activation="relu_squared", residual=r),
        [numbers(5, 4), numbers(3, 4, seed=1), numbers(3, seed=2), numbers(5, 3, seed=3)],
        lambda x, w, b, r, dy: reference.linear_backward(
            x, w, dy, bias=b, activation="relu_squared", residual=r
        ),
    ),
    "blend": (
        reference.blend,
        [numbers(1, 1), numbers(3, 4), numbers(1, 1, seed=1), numbers(3, 4, seed=2)],
        reference.blend_backward,
    ),
    "smear": (
        reference.smear,
        [numbers(2, 4, 6), numbers(3, seed=1), numbers(1, 1, seed=2)],
        reference.smear_backward,
    ),
    "value_gate": (
        reference.value_gate,
        [numbers(4, 6), numbers(4, 6, seed=1), numbers(4, 5, seed=2), numbers(2, 3, seed=3)],
        reference.value_gate_backward,
    ),
    "softcap_cross_entropy": (
        lambda z: reference.softcap_cross_entropy(z, [0, 6, -1, 3], softcap=2.0),
        [3 * numbers(4, 7)],
        lambda z, dy: reference.softcap_cross_entropy_backward(z, [0, 6, -1, 3], dy, softcap=2.0),
    ),
    "embed": (
        lambda table: reference.embed(table, [[0, 2], [2, 2]]),
        [numbers(4, 3)],
        lambda table, dy: reference.embed_backward(table, [[0, 2], [2, 2]], dy),
    ),
    "head_logits": (
        lambda x, w: reference.head_logits(x, w, softcap=2.0, vocab=6),
        [numbers(3, 4), numbers(8, 4, seed=1)],
        lambda x, w, dy: reference.head_logits_backward(x, w, dy, softcap=2.0, vocab=6),
    ),
}


class Gradients(unittest.TestCase):
    def test_central_differences(self):
        for name, (forward, inputs, backward) in GRADIENTS.items():
            upstream = numbers(*np.shape(forward(*inputs)), seed=9)
            got = many(backward(*inputs, upstream))
            self.assertEqual(len(got), len(inputs), name)
            for i, g in enumerate(got):
                wanted = differences(forward, inputs, i, upstream)
                self.assertEqual(g.shape, inputs[i].shape, name)
                np.testing.assert_allclose(g, wanted, rtol=2e-5, atol=2e-7, err_msg=f"{name}, input {i}")

    def test_loss_of_the_head(self):
        x, head, targets = numbers(6, 5), numbers(9, 5, seed=1), np.array([0, 7, -1, 3, 2, 7])
        logits = x @ head.T
        np.testing.assert_allclose(
            reference.head_loss(x, head, targets, softcap=3.0, vocab=8),
            reference.softcap_cross_entropy(logits[:, :8], targets, softcap=3.0),
            rtol=1e-12,
        )
        dlogits = reference.softcap_cross_entropy_backward(logits[:, :8], targets, 0.5, softcap=3.0)
        dx, dhead = reference.head_loss_backward(x, head, targets, scale=0.5, softcap=3.0, vocab=8)
        np.testing.assert_allclose(dx, dlogits @ head[:8], rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(dhead[:8], dlogits.T @ x, rtol=1e-7, atol=1e-12)
        self.assertTrue((dhead[8:] == 0).all())


class Forward(unittest.TestCase):
    def near(self, got, wanted, tolerance=1e-6):
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)

    def test_elements(self):
        x = numbers(3, 5).astype(np.float32)
        self.near(reference.relu_squared(x), np.maximum(x, 0) ** 2)
        self.near(reference.leaky_relu_squared(x, 0.35), np.maximum(x, 0.35 * x) ** 2)
        self.near(reference.rms_norm(x), rms(x))
        taps = numbers(2, 5, seed=1).astype(np.float32)
        self.near(reference.two_tap(x, taps), taps[0] * x + taps[1] * np.vstack([0 * x[:1], x[:-1]]))
        self.near(reference.ema_blend(x, x + 1, 0.9), x + 0.1)
        self.assertEqual(reference.relu_squared(x).dtype, np.float32)
        self.assertEqual(reference.relu_squared(x.astype(np.float64)).dtype, np.float64)

    def test_rotary(self):
        x = numbers(2, 7, 12)
        for interleaved in (False, True):
            for norm in (False, True):
                wanted = naive_rotary(x, 2, 50.0, interleaved, norm, 1.2 if norm else 1.0)
                got = reference.rotary(
                    x, 2, base=50.0, interleaved=interleaved, norm=norm, gain=1.2 if norm else 1.0
                )
                self.near(got, wanted)
        flat = reference.rotary(x.reshape(14, 12), 2, base=50.0, length=7)
        self.near(flat.reshape(x.shape), reference.rotary(x, 2, base=50.0))

    def test_attention(self):
        for heads, kv_heads, window in ((1, 1, 0), (4, 2, 0), (4, 1, 3), (2, 2, 1)):
            q, k, v = numbers(9, 4 * heads), numbers(9, 4 * kv_heads, seed=1), numbers(9, 4 * kv_heads, seed=2)
            self.near(
                reference.attention(q, k, v, heads, kv_heads, window),
                naive_attention(q, k, v, heads, kv_heads, window),
            )

    def test_embedding(self):
        table, ids, rows = numbers(5, 3), np.array([4, 0, 4]), numbers(3, 3, seed=1)
        self.near(reference.embed(table, ids), table[ids])
        wanted = table.copy()
        np.add.at(wanted, ids, rows)
        self.near(reference.scatter_add(table, ids, rows), wanted)

    def test_log_sum_exp(self):
        z = 5 * np.tanh(numbers(4, 9) / 5)
        for softcap, capped in ((5.0, z), (0.0, numbers(4, 9))):
            nats, total = reference.softcap_cross_entropy(numbers(4, 9), [0, 8, -1, 3], softcap, statistics=True)
            self.near(total, np.log(np.exp(capped).sum(1)))
            self.near(nats, np.where([1, 1, 0, 1], total - capped[range(4), [0, 8, 0, 3]], 0))

    def test_smear(self):
        x, gate = numbers(4, 6), numbers(3, seed=1)
        wanted = x.copy()
        wanted[1:] += 0.7 / (1 + np.exp(-(x[1:, :3] @ gate)))[:, None] * x[:-1]
        self.near(reference.smear(x, gate, 0.7), wanted)


class Optimizer(unittest.TestCase):
    def test_orthogonal(self):
        for shape in ((8, 8), (40, 24), (24, 40), (1, 7), (65, 3)):
            g = numbers(*shape).astype(np.float32)
            u, s, v = np.linalg.svd(g.astype(np.float64), full_matrices=False)
            got = reference.muon_orthogonalize(g).astype(np.float64)
            kept = np.diag(u.T @ got @ v.T)  # it keeps the singular vectors and brings the values near 1
            np.testing.assert_allclose(u @ np.diag(kept) @ v, got, atol=2e-5)
            self.assertTrue((kept[s > 0.05 * s[0]] > 0.7).all() and (kept < 1.3).all(), shape)

    def test_five_steps(self):
        g = numbers(6, 4).astype(np.float32)
        x = g.astype(np.float64) / (np.linalg.norm(g) * 1.01 + 1e-6)
        for a, b, c in (
            (8.156554524902461, -22.48329292557795, 15.878769915207462),
            (4.042929935166739, -2.808917465908714, 0.5000178451051316),
            (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
            (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
            (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
        ):
            gram = x.T @ x
            x = a * x + x @ (b * gram + c * gram @ gram)
        np.testing.assert_allclose(reference.muon_orthogonalize(g), x, rtol=1e-4, atol=1e-5)

    def test_muon_step(self):
        weight, gradient = numbers(6, 4).astype(np.float32), numbers(6, 4, seed=1).astype(np.float32)
        zeros = np.zeros_like(weight)
        kept = weight.copy()
        new, momentum, second = reference.muon_step(weight, gradient, zeros, np.zeros(6), lr=0.1)
        np.testing.assert_array_equal(weight, kept)
        np.testing.assert_allclose(momentum, 0.05 * gradient, rtol=1e-5)
        self.assertEqual((new.shape, second.shape), ((6, 4), (6,)))
        self.assertTrue(np.abs(new - weight).max() > 0.01)

    def test_adamw(self):
        w, g, m, v = (numbers(3, 5, seed=i).astype(np.float32) for i in range(4))
        v = v**2
        new, m1, v1 = reference.adamw_step(w, g, m, v, step=3, lr=0.01, decay=0.1, beta1=0.9, beta2=0.99)
        wm, wv = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        wanted = w * (1 - 0.001) - 0.01 * (wm / (1 - 0.9**3)) / (np.sqrt(wv / (1 - 0.99**3)) + 1e-10)
        np.testing.assert_allclose(m1, wm, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(v1, wv, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(new, wanted, rtol=1e-5, atol=1e-6)

    def test_norm(self):
        a, b = numbers(100, 3).astype(np.float32), numbers(7, seed=1).astype(np.float32)
        wanted = np.sqrt((a.astype(np.float64) ** 2).sum() + (b.astype(np.float64) ** 2).sum())
        self.assertAlmostEqual(reference.gradient_norm(a, b), wanted, places=9)


class Calls(unittest.TestCase):
    def test_listing(self):
        rows = {row["name"]: row for row in reference.operators()}
        self.assertEqual(rows["attention"]["backward"], "attention_backward")
        self.assertIsNone(rows["adamw_step"]["backward"])
        named = " ".join(row["trainer"] for row in rows.values())
        for operator in frontier_nki._core.reference_operators():
            if operator not in ("add_scaled", "embed_positions"):
                self.assertIn(operator, named)

    def test_refused(self):
        x = numbers(4, 6)
        for call in (
            lambda: reference.rotary(x, 4),
            lambda: reference.rotary(x, 2, length=3),
            lambda: reference.attention(x, x, x, heads=3, kv_heads=2),
            lambda: reference.linear(x, numbers(3, 5)),
            lambda: reference.linear(x, numbers(3, 6), activation="tanh"),
            lambda: reference.embed(x, [4]),
            lambda: reference.embed(x, [-1]),
            lambda: reference.embed(x, [0.5]),
            lambda: reference.softcap_cross_entropy(x, [0, 1, 2, 6]),
            lambda: reference.softcap_cross_entropy(x, [0, 1, 2]),
            lambda: reference.relu_squared_backward(x, x[:2]),
            lambda: reference.swiglu(x, x[:2]),
            lambda: reference.adamw_step(x, x, x, x, step=0, lr=0.1),
            lambda: reference.adamw_step(x, x[:1], x, x, step=1, lr=0.1),
            lambda: reference.rms_norm(x[:0]),
            lambda: frontier_nki._core.reference("tanh", 0, {}, [], None, []),
            lambda: frontier_nki._core.reference("rotary", 0, {}, [], None, []),
            lambda: frontier_nki._core.reference("gelu", 0, {}, [("x", x, 4, 5, "d")], None, []),
            lambda: frontier_nki._core.reference("gelu", 0, {}, [None], None, []),
            lambda: frontier_nki._core.reference("gelu", 0, {}, [("x", x, 2**40, 2**40, "d")], None, []),
        ):
            self.assertRaises(frontier_nki.UsageError, call)

    def test_narrow_types(self):
        x = numbers(4, 6)
        half = x.astype(np.float16)
        got = reference.relu_squared(half)
        self.assertEqual(got.dtype, np.float32)
        np.testing.assert_array_equal(got, np.maximum(half.astype(np.float32), 0) ** 2)


if __name__ == "__main__":
    unittest.main()
