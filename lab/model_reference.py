"""An independent implementation of the model, its gradients and the optimizers, in JAX and float64.

Writes tests/vectors/model_<name>.safetensors: what tests/unit/test_reference.c must reproduce. Nothing is shared with
the C code but the fact sheet: initial weights and tokens come from a small integer hash written twice.

    python3 -m pip install jax safetensors numpy
    python3 lab/model_reference.py

Contents per file: "loss" (mean nats), "nats" (per token), "logits" of the first row, "grad.<parameter>" of the first
batch, "losses" of 20 steps with Muon + AdamW, "final.<parameter>" after them. All fp32.
"""
import math
import os

import numpy as np
import jax
import jax.numpy as jnp
from safetensors.numpy import save_file

jax.config.update("jax_enable_x64", True)

STEPS = 20
POLAR = [(8.156554524902461, -22.48329292557795, 15.878769915207462),
         (4.042929935166739, -2.808917465908714, 0.5000178451051316),
         (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
         (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
         (2.3465413258596377, -1.7097828382687081, 0.42323551169305323)]

KIT = dict(name="kit", depth=3, width=32, heads=2, kv=2, d=16, vocab=61, T=24, rows=4, windows=[None] * 3,
           qk_gain=1.0, softcap=15.0, base=100000.0, value=False, smear=False, backout=False,
           momentum=(0.85, 0.95, 300), wd=0.2, wd_kind="linear", equalize=False, plus=False, beta2=0.9,
           warm=0.0, cool=0.75, floor=0.05,
           groups=dict(embedding=(0.3, 0.8, 0.995, 0.001, True), head=(0.006, 0.8, 0.96, 0.01, True),
                       resid=(0.2, 0.9, 0.95, 0.0, False), x0=(0.2, 0.9, 0.95, 0.0, False)))
# Scalars learn at 0.05, not at nanochat's 0.5: at 0.5 rounding alone moves smear_lambda by 40 % within twenty steps, so
# a comparison would show how ill-conditioned the run is, not whether two implementations agree.
NANOCHAT = dict(name="nanochat", depth=4, width=32, heads=4, kv=2, d=8, vocab=61, T=24, rows=4,
                windows=[5, 5, 5, None], qk_gain=1.2, softcap=15.0, base=100000.0, value=True, gate_channels=12,
                gate_range=3.0, smear=True, smear_channels=24, backout=True,
                momentum=(0.85, 0.97, 400), wd=0.28, wd_kind="cosine", equalize=True, plus=True, beta2=0.9,
                warm=0.1, cool=0.65, floor=0.05,
                groups=dict(embedding=(0.3, 0.8, 0.995, 0.001, True), head=(0.008, 0.8, 0.96, 0.01, True),
                            value=(0.15, 0.8, 0.995, 0.01, True), scalar=(0.05, 0.8, 0.95, 0.0, False),
                            resid=(0.05 * 0.01, 0.8, 0.95, 0.0, False), x0=(0.05, 0.8, 0.95, 0.0, False)))


def hash_uniform(index, salt):
    """Uniform numbers in [-0.5, 0.5) from 32-bit integer arithmetic."""
    x = (index.astype(np.uint64) * 2654435761 + 12345 * (salt + 1)) & 0xFFFFFFFF
    x ^= x >> 15
    x = (x * 2246822519) & 0xFFFFFFFF
    x ^= x >> 13
    return x.astype(np.float64) / 2.0 ** 32 - 0.5


def shapes(c):
    """(name, rows, columns, group, center, spread) in order of name."""
    C, kvw, padded = c["width"], c["kv"] * c["d"], (c["vocab"] + 63) // 64 * 64
    out = [("transformer.wte.weight", padded, C, "embedding", 0, 2.0), ("lm_head.weight", padded, C, "head", 0, 0.6)]
    for i in range(c["depth"]):
        h = f"transformer.h.{i}."
        out += [(h + "resid_lambda", 1, 1, "resid", 1.1 - 0.03 * i, 0), (h + "x0_lambda", 1, 1, "x0", 0.2 - 0.04 * i, 0),
                (h + "attn.c_q.weight", C, C, "matrix", 0, 0.6), (h + "attn.c_k.weight", kvw, C, "matrix", 0, 0.6),
                (h + "attn.c_v.weight", kvw, C, "matrix", 0, 0.6), (h + "attn.c_proj.weight", C, C, "matrix", 0, 0.4),
                (h + "mlp.c_fc.weight", 4 * C, C, "matrix", 0, 0.4), (h + "mlp.c_proj.weight", C, 4 * C, "matrix", 0, 0.3)]
        if c["value"] and i % 2 == (c["depth"] - 1) % 2:
            out += [(f"value_embeds.{i}.weight", padded, kvw, "value", 0, 0.6),
                    (h + "attn.ve_gate.weight", c["kv"], c["gate_channels"], "matrix", 0, 0.3)]
    if c["smear"]:
        out += [("smear_gate.weight", 1, c["smear_channels"], "scalar", 0, 0.3), ("smear_lambda", 1, 1, "scalar", 0.3, 0)]
    if c["backout"]:
        out += [("backout_lambda", 1, 1, "scalar", 0.2, 0)]
    return sorted(out)


def initial(c):
    params = {}
    for salt, (name, rows, columns, _, center, spread) in enumerate(shapes(c)):
        values = hash_uniform(np.arange(rows * columns), salt).reshape(rows, columns)
        params[name] = jnp.asarray(np.float32(center + spread * values).astype(np.float64))
    return params


def tokens(c, step):
    """rows x (T+1) ids; the targets of the last two positions of row 1 are ignored."""
    n = c["rows"] * (c["T"] + 1)
    u = hash_uniform(np.arange(n), 1000 + step) + 0.5
    ids = np.floor(u * u * c["vocab"]).astype(np.int64).reshape(c["rows"], c["T"] + 1)
    x, y = ids[:, :-1], ids[:, 1:].copy()
    y[1, -2:] = -1
    return x, y


def rms(x):
    return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1.1920929e-07)


def rotate(x, base):
    T, d = x.shape[1], x.shape[3]
    angle = np.arange(T)[:, None] * base ** (-2.0 * np.arange(d // 2)[None] / d)
    cos, sin = np.cos(angle)[None, :, None, :], np.sin(angle)[None, :, None, :]
    a, b = x[..., :d // 2], x[..., d // 2:]
    return jnp.concatenate([a * cos + b * sin, -a * sin + b * cos], -1)


def forward(c, p, x_ids):
    B, T = x_ids.shape
    x = rms(p["transformer.wte.weight"][x_ids])
    if c["smear"]:
        gate = p["smear_lambda"][0, 0] * jax.nn.sigmoid(x[:, 1:, :c["smear_channels"]] @ p["smear_gate.weight"][0])
        x = jnp.concatenate([x[:, :1], x[:, 1:] + gate[..., None] * x[:, :-1]], 1)
    x0, middle = x, None
    gap = np.arange(T)[:, None] - np.arange(T)[None, :]
    for i in range(c["depth"]):
        h_ = f"transformer.h.{i}."
        x = p[h_ + "resid_lambda"][0, 0] * x + p[h_ + "x0_lambda"][0, 0] * x0
        h = rms(x)
        q = (h @ p[h_ + "attn.c_q.weight"].T).reshape(B, T, c["heads"], c["d"])
        k = (h @ p[h_ + "attn.c_k.weight"].T).reshape(B, T, c["kv"], c["d"])
        v = (h @ p[h_ + "attn.c_v.weight"].T).reshape(B, T, c["kv"], c["d"])
        if h_ + "attn.ve_gate.weight" in p:
            e = p[f"value_embeds.{i}.weight"][x_ids].reshape(B, T, c["kv"], c["d"])
            g = c["gate_range"] * jax.nn.sigmoid(h[..., :c["gate_channels"]] @ p[h_ + "attn.ve_gate.weight"].T)
            v = v + g[..., None] * e
        q, k = c["qk_gain"] * rms(rotate(q, c["base"])), c["qk_gain"] * rms(rotate(k, c["base"]))
        k, v = (jnp.repeat(t, c["heads"] // c["kv"], axis=2) for t in (k, v))
        score = jnp.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(c["d"])
        seen = (gap >= 0) if c["windows"][i] is None else (gap >= 0) & (gap <= c["windows"][i])
        y = jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(jnp.where(seen, score, -jnp.inf), -1), v)
        x = x + y.reshape(B, T, -1) @ p[h_ + "attn.c_proj.weight"].T
        u = jnp.maximum(rms(x) @ p[h_ + "mlp.c_fc.weight"].T, 0)
        x = x + (u * u) @ p[h_ + "mlp.c_proj.weight"].T
        if i == c["depth"] // 2:
            middle = x
    if c["backout"]:
        x = x - p["backout_lambda"][0, 0] * middle
    z = (rms(x) @ p["lm_head.weight"].T)[..., :c["vocab"]]
    return c["softcap"] * jnp.tanh(z / c["softcap"])


def per_token(c, p, x, y):
    z = forward(c, p, x)
    nll = jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, jnp.maximum(y, 0)[..., None], -1)[..., 0]
    return jnp.where(y >= 0, nll, 0.0)


def mean_loss(c, p, x, y):
    return per_token(c, p, x, y).sum() / (y >= 0).sum()


def adamw(p, g, state, lr, b1, b2, wd, eps=1e-10):
    state["t"] += 1
    state["m"] = state["m"] + (1 - b1) * (g - state["m"])
    state["v"] = state["v"] + (1 - b2) * (g * g - state["v"])
    mean, square = state["m"] / (1 - b1 ** state["t"]), state["v"] / (1 - b2 ** state["t"])
    return p * (1 - lr * wd) - lr * mean / (np.sqrt(square) + eps)


def muon(w, g, state, lr, wd, momentum, c):
    state["m"] = state["m"] + (1 - momentum) * (g - state["m"])
    x = g + momentum * (state["m"] - g)
    rows, columns = x.shape
    if c["equalize"]:
        goal = np.linalg.norm(x) / math.sqrt(rows)
        x = x * (goal / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6))
    x = x / (np.linalg.norm(x) * 1.01 + 1e-6)
    for a, b, q in POLAR:
        if rows > columns:
            A = x.T @ x
            x = a * x + x @ (b * A + q * A @ A)
        else:
            A = x @ x.T
            x = a * x + (b * A + q * A @ A) @ x
    if c["plus"]:
        x = x * (math.sqrt(min(rows, columns)) / max(np.linalg.norm(x), 1e-6))
    axis = 1 if rows >= columns else 0
    R = x.shape[axis]
    mean_square = (x * x).mean(axis=axis, keepdims=True)
    norm = math.sqrt(R * mean_square.sum())
    state["v"] = state["v"] + (1 - c["beta2"]) * (mean_square - state["v"])
    scale = 1 / np.sqrt(np.maximum(state["v"], 1e-10))
    x = x * scale * (norm / max(math.sqrt((R * mean_square * scale * scale).sum()), 1e-10))
    keep = (x * w >= 0)
    lr = lr * math.sqrt(max(1.0, rows / columns))
    return w - (lr * x + lr * wd * w * keep)


def multiplier(c, progress):
    if progress < c["warm"]:
        return progress / c["warm"]
    if progress <= 1 - c["cool"]:
        return 1.0
    left = (1 - progress) / c["cool"]
    return left + (1 - left) * c["floor"]


def train(c, params):
    group = {name: (g, rows, columns) for name, rows, columns, g, _, _ in shapes(c)}
    p = {k: np.asarray(v) for k, v in params.items()}
    state = {}
    for name, (g, rows, columns) in group.items():
        second = ((rows, 1) if rows >= columns else (1, columns)) if g == "matrix" else (rows, columns)
        state[name] = dict(t=0, m=np.zeros((rows, columns)), v=np.zeros(second))
    gradient = jax.jit(jax.value_and_grad(lambda q, x, y: mean_loss(c, q, x, y)))
    losses = []
    for step in range(STEPS):
        progress = step / STEPS
        loss, grads = gradient({k: jnp.asarray(v) for k, v in p.items()}, *tokens(c, step))
        losses.append(float(loss))
        lrm = multiplier(c, progress)
        first, last, ramp = c["momentum"]
        momentum = first + (last - first) * min(step / ramp, 1.0)
        wd = c["wd"] * ((1 - progress) if c["wd_kind"] == "linear" else 0.5 * (1 + math.cos(math.pi * progress)))
        for name, (g, _, _) in group.items():
            grad = np.asarray(grads[name])
            if g == "matrix":
                p[name] = muon(p[name], grad, state[name], 0.02 * lrm, wd, momentum, c)
            else:
                lr, b1, b2, decay, wide = c["groups"][g]
                lr *= lrm * ((c["width"] / 768) ** -0.5 if wide else 1)
                p[name] = adamw(p[name], grad, state[name], lr, b1, b2, decay)
    return losses, p


def write(c):
    here = os.path.dirname(os.path.abspath(__file__))
    params = initial(c)
    x, y = tokens(c, 0)
    nats = per_token(c, params, x, y)
    loss, grads = jax.value_and_grad(lambda p: mean_loss(c, p, x, y))(params)
    out = {"loss": np.array([loss]), "nats": np.asarray(nats), "logits": np.asarray(forward(c, params, x)[0])}
    out.update({"grad." + k: np.asarray(v) for k, v in grads.items()})
    losses, final = train(c, params)
    out["losses"] = np.array(losses)
    out.update({"final." + k: v for k, v in final.items()})
    path = os.path.join(here, "..", "tests", "vectors", f"model_{c['name']}.safetensors")
    save_file({k: np.ascontiguousarray(v, dtype=np.float32) for k, v in out.items()}, path)
    print(c["name"], "loss", float(loss), "->", losses[-1], os.path.getsize(path), "bytes")


if __name__ == "__main__":
    for config in (KIT, NANOCHAT):
        write(config)
