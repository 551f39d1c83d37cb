"""aws-neuron/nki-moe: its two example kernels."""

import numpy as np

from . import Case


def add(module):
    random = np.random.default_rng(0)
    for shape, dtype in (((4, 3), np.float16), ((128, 512), np.float32)):
        a, b = (random.standard_normal(shape).astype(dtype) for _ in range(2))
        yield f"add {shape} {dtype.__name__}", module.nki_tensor_add_kernel(a, b), a + b


def rms_norm(module):
    random = np.random.default_rng(1)
    x = random.standard_normal((256, 512)).astype(np.float32)
    w = random.standard_normal(512).astype(np.float32)
    wanted = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * w
    yield "rms_norm 256x512", module.nki_rmsnorm_kernel(x, w, 1e-6), wanted


CASES = [Case(1, "nki_tensor_add_example.py", add), Case(15, "nki_custom_rmsnorm.py", rms_norm)]
