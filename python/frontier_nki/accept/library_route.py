"""aws-neuron/nki-library, continued: the k largest of a vocabulary, and the experts of a token.

Values are compared as they are; an index is right when it names an element of that value, so its value in the input is
compared.
"""

import sys

import numpy as np

from . import as_bf16, bf16, rounded
from .library_more import case


def circulant(column):
    """What scipy.linalg's function of that name gives, where scipy is not installed."""
    n = len(column)
    return np.asarray(column)[(np.arange(n)[:, None] - np.arange(n)) % n]


def rotational_topk(module):
    import nki.language as nl

    utilities = sys.modules["nkilib.core.topk.rotational_topk_utils"]
    if isinstance(utilities.circulant, type):  # a stand-in
        utilities.circulant = circulant

    random = np.random.default_rng(111)
    for cores, rows, vocab, k in ((1, 16, 1000, 50), (2, 40, 4058, 256), (2, 150, 2000, 64), (1, 4, 300, 8)):
        x = random.standard_normal((rows, vocab), dtype=np.float32)
        plan = module.create_topk_config(
            inp_shape=(rows, 1, vocab), inp_dtype=nl.float32, k=k, sorted=True, num_programs=cores
        )
        config = module.create_rotational_topk_config(inp_shape=x.shape, topk_config=plan)
        kernel = module.rotational_topk[2] if cores == 2 else module.rotational_topk
        values, indices = kernel(x, module.prepare_rotational_constants(config))
        module.cleanup_rotational_constants()
        wanted = -np.sort(-x, -1)[:, :k]
        found = np.take_along_axis(x, np.asarray(indices).astype(np.int64), -1)
        yield f"topk {k} of {vocab}, {rows} rows, cores {cores}", (np.asarray(values), found), (wanted, wanted)


def routed(logits, k, act, before, norm):
    """Affinities [T, E] as the kernel's documents say."""
    order = np.argsort(-logits, -1)[:, :k]

    def activate(z):
        if act.name == "SIGMOID":
            return 1 / (1 + np.exp(-z))
        e = np.exp(z - z.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    out = np.zeros_like(logits)
    chosen = np.take_along_axis(activate(logits), order, -1) if before else activate(np.take_along_axis(logits, order, -1))
    if before and not norm:
        return order, activate(logits)
    if norm and before:
        chosen = chosen / chosen.sum(-1, keepdims=True)
    np.put_along_axis(out, order, chosen, -1)
    return order, out


def router_topk(module):
    import nki
    import nki.language as nl

    types = __import__("nkilib.core.utils.common_types", fromlist=["RouterActFnType"]).RouterActFnType
    random = np.random.default_rng(112)
    for name, t, h, e, k, act, before, norm, scatter in (
        ("softmax of the chosen", 64, 512, 128, 4, types.SOFTMAX, False, False, False),
        ("softmax of all, normed", 128, 1024, 64, 8, types.SOFTMAX, True, True, False),
        ("sigmoid, indirect", 128, 512, 128, 4, types.SIGMOID, False, False, True),
        ("sigmoid of the chosen, 256 tokens", 256, 512, 128, 2, types.SIGMOID, False, False, True),
    ):
        x, w = (rounded(random.uniform(-1, 1, shape).astype(np.float32)) for shape in ((h, t), (h, e)))

        @nki.jit
        def kernel(x, w):
            logits = nl.ndarray((t, e), dtype=nl.float32, buffer=nl.shared_hbm)
            affinities = nl.ndarray((t, e), dtype=nl.float32, buffer=nl.shared_hbm)
            index = nl.ndarray((t, k), dtype=nl.uint32, buffer=nl.shared_hbm)
            options = dict(router_pre_norm=before, norm_topk_prob=norm, use_indirect_dma_scatter=scatter)
            module.router_topk(x, w, None, logits, affinities, index, act, k, 0, 0, **options)
            return logits, affinities, index

        logits, affinities, index = (np.asarray(a) for a in kernel[2](bf16(x), bf16(w)))
        wanted = x.T.astype(np.float64) @ w
        order, weights = routed(wanted, k, act, before, norm)
        found = np.take_along_axis(wanted, index.astype(np.int64), -1)
        best = np.take_along_axis(wanted, order, -1)
        yield f"router_topk {name}", (logits, affinities, found), (wanted, weights, best)


def topk_reduce(module):
    """Rows as an all_to_all left them, each with its token in the last four bytes, rows of nobody between them."""
    random = np.random.default_rng(113)
    for cores, tokens, k, h, rows in ((1, 16, 4, 512, 128), (2, 64, 8, 1024, 1024)):
        x = rounded(random.standard_normal((rows, h), dtype=np.float32))
        owner = np.full(rows, 1 << 20, np.int32)
        places = random.permutation(rows)[: tokens * k]
        owner[places] = np.repeat(np.arange(tokens), k)
        given = np.concatenate([np.asarray(bf16(x)).view(np.uint16), owner[:, None].view(np.uint16)], 1)
        got = module.topk_reduce[cores](as_bf16(given), tokens, k)
        wanted = np.stack([x[owner == t].sum(0, dtype=np.float64) for t in range(tokens)])
        yield f"topk_reduce {k} rows of {tokens} tokens, cores {cores}", np.asarray(got, np.float32), wanted


CASES = [
    case(37, "experimental/collectives/topk_reduce", topk_reduce, 1.5e-2),
    case(31, "core/topk/rotational_topk", rotational_topk),
    case(31, "core/router_topk/router_topk", router_topk),
]
