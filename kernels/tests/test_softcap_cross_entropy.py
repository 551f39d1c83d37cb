"""Soft-capped cross entropy against the trainer's operator, its gradient against that and finite differences."""

import numpy as np

from kernels import _testing as t
from kernels._testing import reference
from kernels.softcap_cross_entropy import (
    softcap_cross_entropy,
    softcap_cross_entropy_backward,
    softcap_cross_entropy_training,
)

# tokens, vocabulary: one segment in part, several chunks, several segments
SHAPES = ((1, 2), (5, 7), (128, 300), (130, 4097), (3, 9000), (140, 20000), (2, 40000))


def forward(logits, targets, softcap=15.0):
    """(nats, log-sum-exp); the sum the trainer's operator keeps to itself is taken back from its loss."""
    some = np.maximum(targets, 0)
    z = softcap * np.tanh(logits[np.arange(len(some)), some] / softcap)
    lse = reference.softcap_cross_entropy(logits, some, softcap) + z
    return reference.softcap_cross_entropy(logits, targets, softcap), lse


def backward(logits, targets, lse, dnats, softcap=15.0):
    return reference.softcap_cross_entropy_backward(logits, targets, dnats, softcap)


def training(logits, targets, dnats, softcap=15.0):
    return backward(logits, targets, None, dnats, softcap), *forward(logits, targets, softcap)


def inputs(tokens, vocabulary, dtype, seed=0, scale=4.0):
    """Logits, targets of which some are missing, and gradients of the losses."""
    targets = np.random.default_rng(seed).integers(-1, vocabulary, tokens).astype(np.int32)
    return (
        t.random((tokens, vocabulary), dtype, seed + 1, scale),
        targets,
        t.random((tokens,), seed=seed + 2),
    )


class CrossEntropy(t.TestCase):
    def check(self, logits, targets, dnats, dtype, softcap=15.0):
        nats, lse = forward(t.wide(logits), targets, softcap)
        got = softcap_cross_entropy(logits, targets, softcap)
        self.assertNear(got[0], nats, 2e-6, 5e-6)
        self.assertNear(got[1], lse, 2e-6, 2e-6)
        lse = lse.astype(np.float32)
        wanted = backward(t.wide(logits), targets, t.wide(lse), t.wide(dnats), softcap)
        # in bf16 p, tanh**2 and the result are rounded; near the cap 1 - tanh**2 keeps an absolute error
        z = softcap * np.tanh(t.wide(logits) / softcap)
        largest = np.abs(t.wide(dnats))[:, None] * np.exp(z - t.wide(lse)[:, None])
        limit = 1e-5 if dtype == "float32" else 1.2e-2
        got = softcap_cross_entropy_backward(logits, targets, lse, dnats, softcap)
        error = np.abs(t.wide(got) - wanted)
        self.assertTrue(np.all(error <= limit * (largest + np.abs(wanted))), np.max(error))
        if logits.shape[1] <= 32768:
            got = softcap_cross_entropy_training(logits, targets, dnats, softcap)
            self.assertNear(got[1], nats, 2e-6, 5e-6)
            self.assertNear(got[2], t.wide(lse), 2e-6, 2e-6)
            error = np.abs(t.wide(got[0]) - wanted)
            self.assertTrue(np.all(error <= 1.3 * limit * (largest + np.abs(wanted))), np.max(error))

    def test_shapes(self):
        for dtype in t.DTYPES:
            for tokens, vocabulary in SHAPES:
                with self.subTest(dtype=dtype, tokens=tokens, vocabulary=vocabulary):
                    self.check(*inputs(tokens, vocabulary, dtype), dtype)

    def test_edges(self):
        for dtype in t.DTYPES:
            logits, targets, dnats = inputs(140, 50, dtype)
            with self.subTest(dtype=dtype):
                self.check(t.edges((140, 50), dtype), targets, dnats, dtype)  # far beyond the cap
                self.check(t.cast(np.zeros((140, 50)), dtype), targets, dnats, dtype)
                self.check(logits, np.full_like(targets, 49), dnats, dtype, 30.0)

    def test_no_targets(self):
        logits, targets, dnats = inputs(130, 20, "float32")
        targets[:] = -1
        nats, lse = softcap_cross_entropy(logits, targets)
        self.assertNear(nats, np.zeros(130), 0)
        self.assertNear(softcap_cross_entropy_backward(logits, targets, lse, dnats), np.zeros((130, 20)), 0)

    def test_a_vocabulary_too_large_for_one_sweep(self):
        logits, targets, dnats = inputs(2, 40000, "bfloat16")
        with self.assertRaisesRegex(AssertionError, "do not fit"):
            softcap_cross_entropy_training(logits, targets, dnats)

    def test_finite_differences(self):
        logits, targets, dnats = inputs(4, 5, "float32")
        lse = softcap_cross_entropy(logits, targets)[1]
        wanted = t.gradient(lambda x: forward(x, targets)[0], [t.wide(logits)], 0, t.wide(dnats))
        self.assertNear(softcap_cross_entropy_backward(logits, targets, lse, dnats), wanted, 1e-4, 1e-6)


def rows():
    found = []
    for dtype in t.DTYPES[::-1]:

        def ahead(dtype=dtype):
            return list(inputs(512, 32768, dtype)[0:2])

        def back(dtype=dtype):
            logits, targets, dnats = inputs(512, 32768, dtype)
            return [logits, targets, softcap_cross_entropy(logits, targets)[1], dnats]

        def both(dtype=dtype):
            return list(inputs(512, 32768, dtype))

        found.append(t.Row(softcap_cross_entropy, "512x32768", dtype, ahead, forward))
        found.append(t.Row(softcap_cross_entropy_backward, "512x32768", dtype, back, backward))
        found.append(t.Row(softcap_cross_entropy_training, "512x32768", dtype, both, training))
    return found


ROWS = rows()
