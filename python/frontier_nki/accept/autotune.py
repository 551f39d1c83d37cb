"""awslabs/nki-autotune: hand-tuned products of 2048 x 2048 in bf16, and RMS norm fused into one."""

import numpy as np

from . import Case, bf16, rounded

ROOT = "kernel_library/"


def inputs(seed):
    random = np.random.default_rng(seed)
    return [rounded(random.standard_normal((2048, 2048), dtype=np.float32)) for _ in range(2)]


def product(name, transposed):
    def run(module):
        a, b = inputs(60)
        yield name, getattr(module, name)(bf16(a), bf16(b)), (a.T if transposed else a) @ b

    return run


def rmsnorm(module):
    a, b = inputs(61)
    wide = a.astype(np.float64)
    wanted = (wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)).astype(np.float32) @ b
    yield "rmsnorm_matmul_online", module.rmsnorm_matmul_online(bf16(a), bf16(b)), wanted


CASES = [
    Case(
        29,
        ROOT + "matmul/lhsT_rhs/kernel_hand_90.92mfu.py",
        product("matmul_lhsT_rhs_nkigym", True),
        2e-2,
    ),
    Case(29, ROOT + "matmul/lhs_rhs/kernel_handtuned_89.26mfu.py", product("matmul_lhs_rhs_nkigym", False), 2e-2),
    Case(29, ROOT + "rmsnorm_matmul/kernel_hand_online.py", rmsnorm, 2e-2),
]
