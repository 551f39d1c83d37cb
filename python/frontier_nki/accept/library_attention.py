"""aws-neuron/nki-library, continued: production attention against numpy, forward with its variants and backward."""

import numpy as np

from . import bf16, rounded
from .library_more import case


def scores_of(q, k, scale, causal, window, first=0):
    """Masked scores in fp64 of q [B, Tq, D] and k [B, Tk, D]; query i stands at position first + i."""
    scores = scale * np.einsum("bqd,bkd->bqk", q.astype(np.float64), k)
    distance = np.arange(k.shape[1])[None, :] - (first + np.arange(q.shape[1]))[:, None]
    hidden = (distance > 0) & bool(causal)
    if window:
        hidden |= distance <= -window
    return np.where(hidden, -np.inf, scores)


def attended(scores, v, sink=None):
    most = scores.max(-1, keepdims=True)
    if sink is not None:
        most = np.maximum(most, sink[:, :, None])
    powers = np.exp(scores - most)
    total = powers.sum(-1, keepdims=True) + (np.exp(sink[:, :, None] - most) if sink is not None else 0)
    return np.einsum("bqk,bkd->bqd", powers / total, v)


def attention_cte(module):
    import nki

    random = np.random.default_rng(121)
    kernel = nki.jit(module.attention_cte)
    for name, b, kv, tq, tk, d, options in (
        ("causal 2x512x128", 2, 2, 512, 512, 128, {}),
        ("not causal 256 of 384x64", 1, 1, 256, 384, 64, {"causal_mask": False}),
        ("grouped 4 on 2x256x64", 4, 2, 256, 256, 64, {}),
        ("window 200, 1x1024x128", 1, 1, 1024, 1024, 128, {"sliding_window": 200}),
        ("transposed 1x300x96", 1, 1, 300, 300, 96, {"tp_q": False, "tp_k": True, "tp_out": True}),
        ("with a sink 2x256x128", 2, 2, 256, 256, 128, {"sink": True}),
    ):
        q = rounded(random.standard_normal((b, tq, d), dtype=np.float32) * d**-0.5)
        k, v = (rounded(random.standard_normal((kv, tk, d), dtype=np.float32)) for _ in range(2))
        given = dict(options)
        sink = rounded(random.standard_normal((b, 1), dtype=np.float32)) if given.pop("sink", False) else None
        if sink is not None:
            given["sink"] = bf16(sink)
        wide = [np.repeat(x, b // kv, 0) for x in (k, v)]
        window = given.get("sliding_window", 0)
        wanted = attended(scores_of(q, wide[0], 1.0, given.get("causal_mask", True), window), wide[1], sink)
        got = kernel(
            bf16(q if given.get("tp_q", True) else q.transpose(0, 2, 1)),
            bf16(k if given.get("tp_k") else k.transpose(0, 2, 1)),
            bf16(v),
            **given,
        )
        got = np.asarray(got, np.float32)
        yield f"attention_cte {name}", got.transpose(0, 2, 1) if given.get("tp_out") else got, wanted


def prefix(module):
    """Keys and values of earlier tokens, of which some count."""
    import nki

    random = np.random.default_rng(122)
    d, t, room, used = 128, 256, 512, 300
    q = rounded(random.standard_normal((1, t, d), dtype=np.float32) * d**-0.5)
    k, v = (rounded(random.standard_normal((1, t, d), dtype=np.float32)) for _ in range(2))
    older = [rounded(random.standard_normal((1, room, d), dtype=np.float32)) for _ in range(2)]
    keys, values = (np.concatenate([a[:, :used], b], 1) for a, b in zip(older, (k, v)))
    wanted = attended(scores_of(q, keys, 1.0, True, 0, used), values)
    got = nki.jit(module.attention_cte)(
        bf16(q),
        bf16(k.transpose(0, 2, 1)),
        bf16(v),
        k_prior=bf16(older[0].transpose(0, 2, 1)),
        v_prior=bf16(older[1]),
        prior_used_len=np.array([used], np.int32),
    )
    yield f"attention_cte after {used} of {room}", np.asarray(got, np.float32), wanted


def attention_bwd(module):
    random = np.random.default_rng(123)
    for name, b, heads, kv, t, d, causal in (
        ("1x2x256x64", 1, 2, 2, 256, 64, False),
        ("causal 1x2x512x128", 1, 2, 2, 512, 128, True),
        ("causal grouped 2x4on2x256x64", 2, 4, 2, 256, 64, True),
    ):
        q, dy = (rounded(random.standard_normal((b, heads, d, t), dtype=np.float32)) for _ in range(2))
        k, v = (rounded(random.standard_normal((b, kv, d, t), dtype=np.float32)) for _ in range(2))
        scale, group = d**-0.5, heads // kv
        wide = [np.repeat(x, group, 1).astype(np.float64) for x in (k, v)]
        scores = scale * np.einsum("bhdq,bhdk->bhqk", q, wide[0])
        if causal:
            scores = np.where(np.tri(t, dtype=bool), scores, -np.inf)
        most = scores.max(-1, keepdims=True)
        log_sum = most + np.log(np.exp(scores - most).sum(-1, keepdims=True))
        p = np.exp(scores - log_sum)
        o = np.einsum("bhqk,bhdk->bhdq", p, wide[1])
        dp = np.einsum("bhdq,bhdk->bhqk", dy, wide[1])
        ds = p * (dp - np.einsum("bhdq,bhdq->bhq", dy, o)[..., None]) * scale
        dq = np.einsum("bhqk,bhdk->bhdq", ds, wide[0])
        dk = np.einsum("bhqk,bhdq->bhdk", ds, q).reshape(b, kv, group, d, t).sum(2)
        dv = np.einsum("bhqk,bhdq->bhdk", p, dy).reshape(b, kv, group, d, t).sum(2)
        lse = log_sum[..., 0].reshape(b, heads, t // 128, 128).swapaxes(2, 3).astype(np.float32)
        got = module.attention_bwd(
            *(bf16(x) for x in (q, k, v, o.astype(np.float32), dy)),
            np.ascontiguousarray(lse),
            use_causal_mask=causal,
            mixed_precision=True,
        )
        yield f"attention_bwd {name}", tuple(np.asarray(g, np.float32) for g in got), (dq, dk, dv)


def one_step(module, config, shape):
    """A kernel of ours that brings queries and active keys to SBUF, where attention_tkg wants them, and calls it."""
    import nki
    import nki.isa as nisa
    import nki.language as nl

    allocator = __import__("nkilib.core.utils.allocator", fromlist=["SbufManager"])
    logging = __import__("nkilib.core.utils.logging", fromlist=["get_logger"])

    @nki.jit
    def kernel(q, k_active, v_active, k_prior, v_prior, mask, positions, sink):
        manager = allocator.SbufManager(0, nl.tile_size.total_available_sbuf_size - 16 * 1024, logging.get_logger("SBM"))
        manager.open_scope()
        out = nl.ndarray(shape, dtype=q.dtype, buffer=nl.shared_hbm)
        held = []
        for x in (q, k_active):
            tile = manager.alloc_stack(x.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile, x)
            held.append(tile)
        module.attention_tkg(
            *held, v_active, k_prior, v_prior, mask, out, config, manager, rope_pos_ids=positions, sink=sink
        )
        manager.close_scope()
        return out

    return kernel


def attention_tkg(module):
    """New tokens against a cache whose last places are theirs."""
    utilities = __import__("nkilib.core.attention.attention_tkg_utils", fromlist=["AttnTKGConfig"])
    random = np.random.default_rng(124)
    for name, cores, b, heads, new, length, d, made, with_sink in (
        ("4x8 heads, 1 of 512", 1, 4, 8, 1, 512, 128, False, False),
        ("4x8 heads, 1 of 512, two cores", 2, 4, 8, 1, 512, 128, False, False),
        ("2x4 heads, 4 of 256", 1, 2, 4, 4, 256, 64, False, False),
        ("1x8 heads, 2 of 1024 on two cores", 2, 1, 8, 2, 1024, 128, False, False),
        ("mask from positions, 2x4 heads, 2 of 512", 1, 2, 4, 2, 512, 128, True, False),
        ("with a sink, 4x4 heads, 1 of 256", 1, 4, 4, 1, 256, 128, False, True),
    ):
        q = rounded(random.standard_normal((b, heads, new, d), dtype=np.float32) * d**-0.5)
        k_new, v_new = (rounded(random.standard_normal((b, new, d), dtype=np.float32)) for _ in range(2))
        k_old, v_old = (rounded(random.standard_normal((b, length, d), dtype=np.float32)) for _ in range(2))
        used = random.integers(length // 4, length - 2 * new, b)
        seen = np.arange(length)[None, :, None] < used[:, None, None] + np.zeros((1, 1, new), int)
        seen[:, length - new :] = np.triu(np.ones((new, new), bool))  # key j is seen by queries from j on
        keys, values = k_old.copy(), v_old.copy()
        keys[:, length - new :], values[:, length - new :] = k_new, v_new
        scores = np.einsum("bhqd,bkd->bhqk", q.astype(np.float64), keys)
        scores = np.where(seen.transpose(0, 2, 1)[:, None], scores, -np.inf)
        sink = rounded(random.standard_normal((heads, 1), dtype=np.float32)) if with_sink else None
        shown = np.broadcast_to(sink[None], (b, heads, 1)).reshape(b * heads, 1) if with_sink else None
        flat = scores.reshape(b * heads, new, length)
        wanted = attended(flat, np.repeat(values, heads, 0), shown).reshape(b, heads, new, d)
        config = utilities.AttnTKGConfig(
            bs=b, q_head=heads, s_active=new, curr_sprior=length, full_sprior=length, d_head=d, qk_in_sb=True, use_pos_id=made
        )
        whole = np.broadcast_to(seen[:, None], (b, heads, length, new)).transpose(2, 0, 1, 3)
        mask = np.ascontiguousarray(whole[length - new :] if made else whole).astype(np.uint8)
        kernel = one_step(module, config, (b, heads, d, new))
        got = kernel[cores](
            bf16(q.transpose(3, 0, 1, 2).reshape(d, -1)),
            bf16(k_new.transpose(2, 0, 1).reshape(d, -1)),
            bf16(v_new[:, None]),
            bf16(k_old.transpose(0, 2, 1)[:, None]),
            bf16(v_old[:, None]),
            mask,
            np.repeat(used[:, None], new, 1).astype(np.float32) if made else None,
            bf16(sink) if with_sink else None,
        )
        yield f"attention_tkg {name}", np.asarray(got, np.float32).transpose(0, 1, 3, 2), wanted


def gen_mask(module):
    """[keys, B, H, new]: 1 where a key counts; key j of a strided mask lies in partition j / tiles."""
    import nki

    random = np.random.default_rng(125)
    for name, cores, b, heads, new, length in (
        ("4x2 heads, 1 of 512", 1, 4, 2, 1, 512),
        ("2x4 heads, 4 of 1024 on two cores", 2, 2, 4, 4, 1024),
    ):
        used = random.integers(1, length - new, b)
        own = np.ascontiguousarray(np.broadcast_to(np.triu(np.ones((new, new), np.uint8))[:, None, None], (new, b, heads, new)))
        seen = np.broadcast_to((np.arange(length)[:, None] < used)[:, :, None, None], (length, b, heads, new)).copy()
        seen[length - new :] = own
        wanted = seen.reshape(128, length // 128, b, heads, new).swapaxes(0, 1).reshape(seen.shape)
        positions = np.repeat(used[:, None], new, 1).reshape(1, -1).astype(np.float32)
        got = nki.jit(module.gen_mask_tkg_hbm)[cores](positions, b, heads, new, length, active_mask=own)
        yield f"gen_mask_tkg {name}", np.asarray(got), wanted


CASES = [
    case(34, "core/attention/attention_cte", attention_cte, 1.5e-2),
    case(34, "core/attention/attention_cte", prefix, 1.5e-2),
    case(34, "core/attention/attention_bwd", attention_bwd, 2e-2),
    case(34, "core/attention/attention_tkg", attention_tkg, 1.5e-2),
    case(34, "core/attention/gen_mask_tkg", gen_mask),
]
