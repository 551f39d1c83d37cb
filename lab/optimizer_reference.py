#!/usr/bin/env python3
"""Writes tests/vectors/optimizer.json: what Muon and AdamW must do, computed independently in float64.

The inputs are not stored: both sides draw them from SplitMix64, so the file holds results only. The bf16 cases
round (to nearest even) where a bf16 tensor would be stored, with everything between in float64; the test allows them
a wider tolerance because fp32 sums may round to the neighbouring bf16 number.

    python3 lab/optimizer_reference.py > tests/vectors/optimizer.json
"""
import json
import numpy as np

POLAR = [
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
    (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
]


def draw(seed, count):
    """Uniform in [-0.5, 0.5): the top 24 bits of SplitMix64, exact in fp32."""
    out, state, mask = np.empty(count), seed & (2**64 - 1), 2**64 - 1
    for i in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        out[i] = (z >> 40) / 2.0**24 - 0.5
    return out


def bf16(x):
    bits = np.atleast_1d(np.asarray(x, dtype=np.float32)).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64).reshape(np.shape(x))


def muon(w, g, buf, s2, lr, wd, mu, beta2, equalize, plus, low):
    r = bf16 if low else (lambda x: x)
    m, n = w.shape
    buf += (1 - mu) * (g - buf)
    x = r(g + mu * (buf - g))
    if equalize:
        t = np.sqrt((x**2).sum()) / np.sqrt(m)
        rho = np.maximum(np.sqrt((x**2).sum(axis=1, keepdims=True)), 1e-6)
        x = r(x * r(t / rho))
    x = r(x / (r(np.sqrt((x**2).sum())) * 1.01 + 1e-6))
    for a, b, c in POLAR:
        gram = r(x.T @ x) if m > n else r(x @ x.T)
        poly = r(b * gram + c * r(gram @ gram))
        x = r(a * x + r(x @ poly if m > n else poly @ x))
    if plus:
        x = x * np.sqrt(min(m, n)) / max(np.sqrt((x**2).sum()), 1e-6)
    axis = 1 if m >= n else 0
    length = x.shape[axis]
    vm = (x**2).mean(axis=axis, keepdims=True)
    nu = np.sqrt(length * vm.sum())
    s2 += (1 - beta2) * (vm - s2)
    q = 1 / np.sqrt(np.maximum(s2, 1e-10))
    after = np.sqrt((length * vm * q**2).sum())
    x = x * q * nu / max(after, 1e-10)
    mask = x * w >= 0
    w -= lr * x + lr * wd * w * mask


def adamw(w, g, m, v, lr, wd, b1, b2, eps, t):
    w *= 1 - lr * wd
    m += (1 - b1) * (g - m)
    v += (1 - b2) * (g * g - v)
    w -= lr / (1 - b1**t) * m / (np.sqrt(v / (1 - b2**t)) + eps)


def numbers(a):
    return [float(f"{v:.9g}") for v in np.ravel(a)]


def muon_case(name, m, n, steps, **flags):
    seed = 1000 + len(name) * 7 + m * 131 + n
    options = dict(lr=0.02, wd=0.2, mu=0.95, beta2=0.9, equalize=False, plus=False, bf16=False, zero_first=False)
    options.update(flags)
    w, buf = draw(seed, m * n).reshape(m, n), np.zeros((m, n))
    s2 = np.zeros((m, 1)) if m >= n else np.zeros((1, n))
    for t in range(steps):
        g = draw(seed + 1 + t, m * n).reshape(m, n) * 0.01
        g = g.astype(np.float32).astype(np.float64)
        if t == 0 and options["zero_first"]:
            g = np.zeros_like(g)
        muon(w, g, buf, s2, options["lr"], options["wd"], options["mu"], options["beta2"], options["equalize"],
             options["plus"], options["bf16"])
    return dict(name=name, rows=m, columns=n, steps=steps, seed=seed, **options, weight=numbers(w), second=numbers(s2))


def adamw_case(name, count, steps, **flags):
    seed = 5000 + count
    options = dict(lr=0.3, wd=0.01, beta1=0.8, beta2=0.96, eps=1e-10, zero_first=False)
    options.update(flags)
    w, m, v = draw(seed, count), np.zeros(count), np.zeros(count)
    for t in range(steps):
        g = (draw(seed + 1 + t, count) * 0.01).astype(np.float32).astype(np.float64)
        if t == 0 and options["zero_first"]:
            g = np.zeros_like(g)
        adamw(w, g, m, v, options["lr"], options["wd"], options["beta1"], options["beta2"], options["eps"], t + 1)
    return dict(name=name, count=count, steps=steps, seed=seed, **options, weight=numbers(w), first=numbers(m), second=numbers(v))


def main():
    muons = [
        muon_case("square", 12, 12, 3),
        muon_case("tall", 24, 8, 3),
        muon_case("wide", 8, 24, 3),
        muon_case("one row", 1, 16, 2),
        muon_case("one column", 16, 1, 2),
        muon_case("gate", 6, 12, 2),
        muon_case("equalized", 12, 20, 2, equalize=True),
        muon_case("plus", 20, 12, 2, plus=True),
        muon_case("both", 10, 10, 2, equalize=True, plus=True),
        muon_case("zero first", 10, 6, 2, zero_first=True),
        muon_case("only zero", 6, 10, 1, zero_first=True),
        muon_case("bf16 tall", 20, 10, 2, bf16=True),
        muon_case("bf16 wide", 10, 20, 2, bf16=True, equalize=True),
    ]
    adamws = [
        adamw_case("embedding", 37, 4),
        adamw_case("no decay", 19, 2, wd=0.0, lr=0.2, beta1=0.9, beta2=0.95),
        adamw_case("zero first", 11, 3, zero_first=True, beta2=0.995),
    ]
    print(json.dumps(dict(muon=muons, adamw=adamws), separators=(",", ":")))


main()
