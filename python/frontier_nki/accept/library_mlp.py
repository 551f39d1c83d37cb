"""aws-neuron/nki-library, continued: the gated MLP of few tokens and of many, and experts.

core/mlp/mlp.py cannot be parsed (a stray docstring at line 203), so what it calls is called: mlp_tkg and mlp_cte with the
parameters it would make.
"""

import numpy as np

from . import bf16, rounded
from .library_more import case
from .library_project import common, normal, normed


def silu(z):
    return z / (1 + np.exp(-z))


def gated(x, gate, up, down):
    x = x.astype(np.float64)
    return (silu(x @ gate) * (x @ up)) @ down


def whole_mlp(module, function, short):
    import nki
    import nki.language as nl

    types = common()
    parts = __import__("nkilib.core.mlp.mlp_parameters", fromlist=["MLPParameters"])
    allocator = __import__("nkilib.core.utils.allocator", fromlist=["SbufManager"])
    logging = __import__("nkilib.core.utils.logging", fromlist=["get_logger"])

    @nki.jit
    def kernel(x, gate, up, down, gamma, norm):
        given = parts.MLPParameters(
            hidden_tensor=x,
            gate_proj_weights_tensor=gate,
            up_proj_weights_tensor=up,
            down_proj_weights_tensor=down,
            normalization_weights_tensor=gamma,
            activation_fn=types.ActFnType.SiLU,
            normalization_type=norm,
        )
        parts.validate_mlp_arguments(given)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        if short:
            function(given, out, None, sbm=allocator.SbufManager(0, 200 * 1024, logging.get_logger("mlp")))
        else:
            function(given, out, None)
        return out

    return kernel


def mlp(name, short, shapes):
    def run(module):
        types = common()
        random = np.random.default_rng(141)
        for cores, b, s, h, inner, norm in shapes:
            x, gamma = normal(random, (b, s, h)), normal(random, (1, h))
            gate, up = (normal(random, (h, inner), h**-0.5) for _ in range(2))
            down = normal(random, (inner, h), inner**-0.5)
            wanted = gated(normed(x, norm, gamma), gate, up, down)
            kernel = whole_mlp(module, getattr(module, name), short)
            weights = [bf16(w) for w in (gate, up, down)]
            plain = norm == "NO_NORM"
            got = kernel[cores](bf16(x), *weights, None if plain else bf16(gamma), getattr(types.NormType, norm))
            yield f"{name} {b}x{s}x{h} to {inner}, {norm.lower()}, cores {cores}", np.asarray(got, np.float32), wanted

    return run


def experts(module):
    """Every expert for every token, or those a token chose."""
    import nki

    types = common()
    random = np.random.default_rng(142)
    for name, cores, t, h, inner, count, k, every, scaled in (
        ("2 of 4 experts, 4 tokens", 2, 4, 512, 256, 4, 2, False, True),
        ("2 of 8 experts, 2 tokens, plain sum", 2, 2, 1024, 256, 8, 2, False, False),
        ("all 4 experts, 16 tokens", 2, 16, 512, 256, 4, 2, True, True),
    ):
        x = normal(random, (t, h))
        gate_up, down = normal(random, (count, h, 2, inner), h**-0.5), normal(random, (count, inner, h), inner**-0.5)
        chosen = np.stack([random.permutation(count)[:k] for _ in range(t)]).astype(np.int32)
        weights = np.zeros((t, count), np.float32)
        np.put_along_axis(weights, chosen, random.uniform(0.1, 1, (t, k)).astype(np.float32), 1)
        wanted = np.zeros((t, h))
        for e in range(count):
            share = weights[:, e : e + 1] if scaled else (weights[:, e : e + 1] > 0)
            wanted += share * gated(x, gate_up[e, :, 0], gate_up[e, :, 1], down[e])
        modes = types.ExpertAffinityScaleMode
        more = {"rank_id": np.zeros((1, 1), np.int32)} if every else {}
        got = nki.jit(module.moe_tkg)[cores](
            bf16(x),
            bf16(gate_up),
            bf16(down),
            weights,
            chosen,
            every,
            expert_affinities_scaling_mode=modes.POST_SCALE if scaled else modes.NO_SCALE,
            activation_fn=types.ActFnType.SiLU,
            **more,
        )
        yield f"moe_tkg {name}", np.asarray(got, np.float32), wanted


def blocks_of(experts, count, size):
    """Tokens by expert in blocks of `size`, the rest of a block the token behind the last; the expert of each block."""
    positions, owners = [], []
    for e in range(count):
        own = np.flatnonzero(experts == e)
        for at in range(0, len(own), size):
            part = own[at : at + size]
            positions.append(np.concatenate([part, np.full(size - len(part), len(experts))]))
            owners.append(e)
    if len(owners) % 2:
        positions.append(np.full(size, len(experts)))
        owners.append(0)
    return np.concatenate(positions).astype(np.int32), np.array(owners, np.int32)[:, None]


def blockwise(module):
    """Tokens of an expert side by side, block after block. In bf16 the affinities become a bf16 vector operand, which the
    documents of tensor_scalar refuse: computed in fp32."""
    import nki.language as nl

    types = common()
    random = np.random.default_rng(143)
    for name, t, h, inner, count, size in (
        ("shard_on_i", 400, 512, 256, 4, 256),
        ("shard_on_block", 400, 512, 256, 4, 256),
    ):
        x = np.concatenate([normal(random, (t, h)), np.zeros((1, h), np.float32)])
        gate_up, down = normal(random, (count, h, 2, inner), h**-0.5), normal(random, (count, inner, h), inner**-0.5)
        owner = random.integers(0, count, t)
        weights = np.zeros((t + 1, count), np.float32)
        weights[np.arange(t), owner] = rounded(random.uniform(0.25, 1, t).astype(np.float32))
        wanted = np.zeros((t + 1, h))
        for e in range(count):
            wanted += weights[:, e : e + 1] * gated(x, gate_up[e, :, 0], gate_up[e, :, 1], down[e])
        positions, owners = blocks_of(owner, count, size)
        spec = module.MoECTESpec(implementation=getattr(module.MoECTEImplementation, name))
        got = module.moe_cte[2](
            x,
            weights.reshape(-1, 1),
            gate_up,
            down,
            positions,
            owners,
            size,
            spec,
            activation_function=types.ActFnType.SiLU,
            compute_dtype=nl.float32,
            is_tensor_update_accumulating=False,
        )
        got = got[0] if isinstance(got, (tuple, list)) else got
        yield f"moe_cte {name} {t} tokens, {count} experts", np.asarray(got, np.float32)[:t], wanted[:t]


SHORT = ((1, 4, 1, 512, 1024, "NO_NORM"), (2, 4, 1, 1024, 1024, "RMS_NORM"), (2, 1, 32, 512, 512, "RMS_NORM"))
LONG = ((1, 1, 256, 512, 1024, "NO_NORM"), (2, 1, 512, 512, 1024, "RMS_NORM"))
CASES = [
    case(32, "core/mlp/mlp_tkg/mlp_tkg", mlp("mlp_tkg", True, SHORT), 1.5e-2),
    case(32, "core/mlp/mlp_cte/mlp_cte", mlp("mlp_cte", False, LONG), 1.5e-2),
    case(35, "core/moe/moe_tkg/moe_tkg", experts, 1.5e-2, unwritten="nan"),
    case(35, "core/moe/moe_cte/moe_cte", blockwise, 1.5e-2),
]
