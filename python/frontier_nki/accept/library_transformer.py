"""aws-neuron/nki-library, continued: the fused attention block of token generation, on one core, two cores and several ranks.

One rank holds all of the cache, or (KVDP) the sequences of one rank each: then ranks gather heads before attention and
sequences after it. numpy computes the block in fp64 from bf16 inputs; the kernel rounds to bf16 between stages.
"""

import numpy as np

from .. import ranks
from . import bf16, rounded
from .library_attention import attended
from .library_more import case, rms
from .library_project import common, normal

EPS = 1e-6


class Block:
    """Inputs of a block and what numpy makes of them. Keys of the cache count up to `used`, new ones stand at its end."""

    def __init__(self, seed, b, new, h, heads, d, length, ranks=1, norm=None, halves=True, out=True):
        random = np.random.default_rng(seed)
        self.b, self.new, self.heads, self.d, self.length = b, new, heads, d, length
        self.ranks, self.norm, self.halves = ranks, norm, halves
        self.x, self.gamma = normal(random, (b, new, h)), normal(random, (1, h))
        width = (heads + 2) * d
        self.w = [normal(random, (h, width), h**-0.5) for _ in range(ranks)]
        for w in self.w[1:]:
            w[:, heads * d :] = self.w[0][:, heads * d :]  # one key and value head, which every rank computes
        angles = random.uniform(0, 2 * np.pi, (d // 2, b, new))
        self.cos, self.sin = rounded(np.cos(angles)), rounded(np.sin(angles))
        self.gains = [rounded(random.uniform(0.5, 1.5, (1, d)).astype(np.float32)) for _ in range(2)]
        self.keys, self.values = (normal(random, (b, length, d)) for _ in range(2))
        self.used = random.integers(length // 4, length - 2 * new, b)
        self.w_out = [normal(random, (heads * d, h), (heads * d) ** -0.5) for _ in range(ranks)] if out else None
        self.bias = normal(random, (1, h)) if out else None

    def turned(self, x):
        """Rotary embedding of [B, new, ..., D]: halves or pairs."""
        c, s = (t.transpose(1, 2, 0).astype(np.float64) for t in (self.cos, self.sin))
        if x.ndim == 4:
            c, s = c[:, :, None], s[:, :, None]
        half = self.d // 2
        low, high = (x[..., :half], x[..., half:]) if self.halves else (x[..., 0::2], x[..., 1::2])
        a, b = low * c - high * s, high * c + low * s
        return np.concatenate([a, b], -1) if self.halves else np.stack([a, b], -1).reshape(x.shape)

    def heads_of(self, rank):
        """Queries [B, new, N, D], and the new key and value [B, new, D], of one rank."""
        qkv = (rms(self.x, self.gamma[0], EPS) @ self.w[rank]).reshape(self.b, self.new, -1, self.d)
        q, k, v = qkv[:, :, : self.heads], qkv[:, :, self.heads], qkv[:, :, self.heads + 1]
        if self.norm == "before":
            q, k = rms(q, self.gains[0][0], EPS), rms(k, self.gains[1][0], EPS)
        q, k = self.turned(q), self.turned(k)
        if self.norm == "after":
            q, k = rms(q, self.gains[0][0], EPS), rms(k, self.gains[1][0], EPS)
        return q, k, v

    def seen(self):
        """[B, length, new]: key j of the new ones is seen by queries from j on."""
        seen = np.arange(self.length)[None, :, None] < self.used[:, None, None] + np.zeros((1, 1, self.new), int)
        seen[:, self.length - self.new :] = np.triu(np.ones((self.new, self.new), bool))
        return seen

    def mask(self, heads):
        seen = np.broadcast_to(self.seen()[:, None], (self.b, heads, self.length, self.new))
        return np.ascontiguousarray(seen.transpose(2, 0, 1, 3)).astype(np.uint8)

    def wanted(self, rank=0):
        """Attention [B, N, D, new] or its projection, the new key and the new value."""
        q, k, v = self.heads_of(rank)
        keys, values = self.keys.astype(np.float64), self.values.astype(np.float64)
        keys[:, self.length - self.new :], values[:, self.length - self.new :] = k, v
        scores = np.einsum("bsnd,bkd->bnsk", q, keys) * self.d**-0.5
        scores = np.where(self.seen().transpose(0, 2, 1)[:, None], scores, -np.inf)
        flat = attended(scores.reshape(-1, self.new, self.length), np.repeat(values, self.heads, 0))
        attention = flat.reshape(self.b, self.heads, self.new, self.d)
        if self.w_out is None:
            return attention.transpose(0, 1, 3, 2), k, v
        rows = attention.transpose(0, 2, 1, 3).reshape(self.b * self.new, -1)
        return rows @ self.w_out[rank] + self.bias, k, v

    def given(self, rank=0, **more):
        """The kernel's arguments."""
        none = common().QuantizationType.NONE
        normed = {"rmsnorm_QK_pre_rope": self.norm == "before", "rmsnorm_QK_post_rope": self.norm == "after"}
        arguments = {
            "X": bf16(self.x),
            "X_hidden_dim_actual": None,
            "rmsnorm_X_enabled": True,
            "rmsnorm_X_eps": EPS,
            "rmsnorm_X_gamma": bf16(self.gamma),
            "W_qkv": bf16(self.w[rank]),
            "cos": bf16(self.cos),
            "sin": bf16(self.sin),
            "rope_contiguous_layout": self.halves,
            "K_cache_transposed": False,
            "K_cache": bf16(self.keys),
            "V_cache": bf16(self.values),
            "attention_mask": self.mask(self.heads),
            "update_cache": False,
            "W_out": bf16(self.w_out[rank]) if self.w_out else None,
            "bias_out": bf16(self.bias) if self.w_out else None,
            "quantization_type_qkv": none,
            "quantization_type_out": none,
            "transposed_out": False,
            "out_in_sb": False,
        }
        for name, enabled in normed.items():
            arguments[f"{name}_enabled"], arguments[f"{name}_eps"] = enabled, EPS
            for gain, which in zip(self.gains, "QK"):
                arguments[f"{name}_W_{which}"] = bf16(gain) if enabled else None
        for name in ("bias_qkv", "active_blocks_table", "sink", "kv_cache_update_idx"):
            arguments[name] = None
        for projection in ("qkv", "out"):
            arguments[f"weight_dequant_scale_{projection}"] = arguments[f"input_dequant_scale_{projection}"] = None
        return {**arguments, **more}


def floats(results):
    return tuple(np.asarray(r, np.float32) for r in results)


def written(cache, places, new):
    """The cache [B, length, D] with the new rows at their places."""
    cache = cache.astype(np.float64)
    for b, place in enumerate(places):
        cache[b, place : place + new.shape[1]] = new[b]
    return cache


def plain(module):
    """New keys and values come back as they are."""
    for name, cores, options in (
        ("2x1x512, 4 heads of 128, halves", 1, dict(b=2, new=1, h=512, heads=4, d=128, length=512)),
        ("2x4x512, 2 heads, pairs, norm before", 1, dict(b=2, new=4, h=512, heads=2, d=128, length=256, norm="before", halves=False)),
        ("4x1x1024, 4 heads of 128, norm after, two cores", 2, dict(b=4, new=1, h=1024, heads=4, d=128, length=512, norm="after")),
        ("4x1x512, 8 heads, not projected, two cores", 2, dict(b=4, new=1, h=512, heads=8, d=128, length=512, out=False)),
    ):
        block = Block(151, **options)
        out, k, v = block.wanted()
        got = floats(module.attention_block_tkg[cores](**block.given()))
        yield f"attention_block_tkg {name}", got, (out, k.transpose(2, 0, 1), v[:, None])


def updating(module):
    """The cache is written in place, in rows or (keys) in columns."""
    for name, cores, columns, options in (
        ("rows of the cache", 1, False, dict(b=2, new=1, h=512, heads=4, d=128, length=512)),
        ("columns of the key cache, two cores", 2, True, dict(b=4, new=2, h=512, heads=4, d=128, length=512)),
    ):
        block = Block(152, **options)
        out, k, v = block.wanted()
        keys, values = written(block.keys, block.used, k), written(block.values, block.used, v)
        given = block.given(update_cache=True, kv_cache_update_idx=block.used[:, None].astype(np.uint32))
        if columns:
            given.update(K_cache_transposed=True, K_cache=bf16(block.keys.transpose(0, 2, 1)))
            keys = keys.transpose(0, 2, 1)
        got = floats(module.attention_block_tkg[cores](**given))
        yield f"attention_block_tkg {name}", got, (out, keys, values)


def mask_of_blocks(block, size, cores):
    """The mask in the order of the kernel's tiles: it cuts blocks until 128 of them fill the partitions."""
    utilities = __import__("nkilib.core.attention.attention_tkg_utils", fromlist=["AttnTKGConfig"])
    shape = block.b, block.heads, block.new
    parts = cores if cores > 1 and utilities.is_s_prior_sharded(*shape, block.length, 128) else 1
    cut, _ = utilities.resize_cache_block_len_for_attention_tkg_kernel(block.length // size, size, cores, 128, *shape)
    mask = block.mask(block.heads)
    folds = mask.reshape(parts, -1, 128, cut, *mask.shape[1:])
    return np.ascontiguousarray(folds.swapaxes(2, 3)).reshape(mask.shape)


def in_blocks(module):
    """The cache as a pool of blocks which a table deals out; the place to write is a row of the pool. The last sequence
    says with a row outside that nothing of it is to be written."""
    random = np.random.default_rng(153)
    for name, cores, size, options in (
        ("blocks of 32", 1, 32, dict(b=2, new=1, h=512, heads=4, d=128, length=512)),
        ("blocks of 16, two cores", 2, 16, dict(b=4, new=2, h=512, heads=4, d=128, length=1024)),
    ):
        block = Block(153, **options)
        each = block.length // size
        table = random.permutation(block.b * each).reshape(block.b, each)
        block.used = block.used // size * size + np.minimum(block.used % size, size - block.new)
        out, k, v = block.wanted()
        places = table[np.arange(block.b), block.used // size] * size + block.used % size
        places = places.astype(np.uint32)
        places[-1] = 0xFFFFFFFF
        pools, wanted = [], [out]
        for cache, new in ((block.keys, k), (block.values, v)):
            pool = np.empty((block.b * each, size, block.d), np.float32)
            pool[table.reshape(-1)] = cache.reshape(-1, size, block.d)
            pools.append(bf16(pool))
            flat = pool.reshape(1, -1, block.d)
            for b, place in enumerate(places[:-1]):
                flat = written(flat, [place], new[b : b + 1])
            wanted.append(flat.reshape(pool.shape))
        got = module.attention_block_tkg[cores](
            **block.given(
                update_cache=True,
                kv_cache_update_idx=places[:, None],
                attention_mask=mask_of_blocks(block, size, cores),
                active_blocks_table=table.astype(np.uint32),
                K_cache=pools[0],
                V_cache=pools[1],
            )
        )
        yield f"attention_block_tkg {name}", floats(got), tuple(wanted)


def shared_cache(module):
    """KVDP: a rank holds the cache of its sequences and computes its heads."""
    from nki.collectives import ReplicaGroup

    for n, heads in ((2, 2), (2, 1)):
        block = Block(154, b=4, new=1, h=512, heads=heads, d=128, length=256, ranks=n)
        own = block.b // n
        arguments, wanted = [], []
        for rank in range(n):
            part = slice(rank * own, (rank + 1) * own)
            out, k, v = block.wanted(rank)
            arguments.append(
                block.given(
                    rank,
                    K_cache=bf16(block.keys[part]),
                    V_cache=bf16(block.values[part]),
                    attention_mask=np.ascontiguousarray(block.mask(n * heads)[:, part]),
                    KVDP=n,
                    KVDP_replica_group=ReplicaGroup([list(range(n))]),
                )
            )
            wanted += [out, k[part].transpose(2, 0, 1), v[part][:, None]]
        names = list(arguments[0])

        def attention_block_tkg(*values):
            return module.attention_block_tkg(**dict(zip(names, values)))

        got = ranks(attention_block_tkg, [tuple(a.values()) for a in arguments])
        yield f"attention_block_tkg KVDP {n} ranks, {heads} heads each", sum((floats(g) for g in got), ()), tuple(wanted)


PATH = "experimental/transformer/attention_block_tkg"
CASES = [case(36, PATH, run, 2e-2) for run in (plain, updating, in_blocks, shared_cache)]
