"""The linear layer, its epilogues and its gradients against the trainer's operator."""

import numpy as np

from kernels import _testing as t
from kernels._testing import reference
from kernels.linear import linear, linear_backward

CASES = ((1, 1, 1), (3, 130, 5), (128, 128, 512), (129, 64, 513), (200, 320, 1030), (520, 192, 96))


class Linear(t.TestCase):
    def near(self, got, wanted, left, right, dtype, name):
        """Within rounding of the result and of the sum: eps times the sum of magnitudes."""
        scale = float(np.max(np.abs(left) @ np.abs(right)))
        self.assertNear(got, wanted, t.ULP[dtype] * 0.51, 3e-7 * scale, name)

    def check(self, tokens, inner, outer, dtype, seed):
        x, w = t.random((tokens, inner), dtype, seed), t.random((outer, inner), dtype, seed + 1)
        dy, r = t.random((tokens, outer), dtype, seed + 2), t.random((tokens, outer), dtype, seed + 3)
        X, W, D, R = (t.wide(v) for v in (x, w, dy, r))
        self.near(linear(x, w), reference.linear(X, W), X, W.T, dtype, "plain")
        self.near(linear(x, w, r), reference.linear(X, W, residual=R), X, W.T, dtype, "residual")
        dx, dw = linear_backward(x, w, dy)
        wx, ww = reference.linear_backward(X, W, dy=D)[:2]
        self.near(dx, wx, D, W, dtype, "dx")
        self.near(dw, ww, D.T, X, "float32", "dweight")

    def test_shapes(self):
        for dtype in t.DTYPES:
            for i, case in enumerate(CASES):
                with self.subTest(dtype=dtype, case=case):
                    self.check(*case, dtype, i)

    def test_relu_squared(self):
        for dtype in t.DTYPES:
            x, w = t.random((130, 96), dtype), t.random((200, 96), dtype, 1, 0.1)
            r, dy = t.random((130, 200), dtype, 2), t.random((130, 200), dtype, 3)
            X, W, D = t.wide(x), t.wide(w), t.wide(dy)
            ulp = max(t.ULP[dtype], 2e-6)
            wanted = reference.linear(X, W, activation="relu_squared", residual=t.wide(r))
            self.assertNear(linear(x, w, r, "relu_squared"), wanted, 1.1 * ulp, 1.1 * ulp * float(np.max(np.abs(wanted))))
            before = linear(x, w)
            P = t.wide(before)
            dx, dw = linear_backward(x, w, dy, before)
            reaching = D * 2 * np.maximum(P, 0)
            size = np.abs(reaching)
            self.assertNear(dx, reaching @ W, 0, 1.5 * ulp * float(np.max(size @ np.abs(W))) + 1e-6, "dx")
            self.assertNear(dw, reaching.T @ X, 0, 1.5 * ulp * float(np.max(size.T @ np.abs(X))) + 1e-6, "dw")

    def test_edges(self):
        x, w = t.edges((140, 70)), t.edges((90, 70), seed=1)
        X, W = t.wide(x), t.wide(w)
        self.near(linear(x, w), reference.linear(X, W), X, W.T, "float32", "edges")

    def test_finite_differences(self):
        x, w, dy = t.random((3, 4)), t.random((5, 4), seed=1), t.random((3, 5), seed=2)
        before = linear(x, w)
        dx, dw = linear_backward(x, w, dy, before)

        def function(a, b):
            return reference.linear(a, b, activation="relu_squared")

        arguments = [t.wide(x), t.wide(w)]
        self.assertNear(dx, t.gradient(function, arguments, 0, t.wide(dy)), 1e-4, 1e-5)
        self.assertNear(dw, t.gradient(function, arguments, 1, t.wide(dy)), 1e-4, 1e-5)


def backward_reference(x, w, dy):
    return tuple(reference.linear_backward(x, w, dy=dy)[:2])


def rows():
    found = []
    for tokens, inner, outer in ((2048, 640, 2560), (2048, 2560, 640), (2048, 2048, 2048)):
        text = f"{tokens}x{inner} to {outer}"
        flops = 2.0 * tokens * inner * outer
        found.append(
            t.Row(
                linear,
                text,
                "bfloat16",
                lambda s=(tokens, inner, outer): [
                    t.random((s[0], s[1]), "bfloat16"),
                    t.random((s[2], s[1]), "bfloat16", 1),
                ],
                lambda x, w: reference.linear(x, w),
                flops=flops,
            )
        )
        found.append(
            t.Row(
                linear_backward,
                text,
                "bfloat16",
                lambda s=(tokens, inner, outer): [
                    t.random((s[0], s[1]), "bfloat16"),
                    t.random((s[2], s[1]), "bfloat16", 1),
                    t.random((s[0], s[2]), "bfloat16", 2),
                ],
                backward_reference,
                flops=2 * flops,
            )
        )
    tokens, inner, outer = 2048, 640, 2560
    found.append(
        t.Row(
            linear,
            f"{tokens}x{inner} to {outer}, relu squared",
            "bfloat16",
            lambda: [
                t.random((tokens, inner), "bfloat16"),
                t.random((outer, inner), "bfloat16", 1),
                None,
                "relu_squared",
            ],
            lambda x, w, r, name: reference.linear(x, w, activation=name),
            flops=2.0 * tokens * inner * outer,
        )
    )
    return found


ROWS = rows()
