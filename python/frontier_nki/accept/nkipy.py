"""aws-neuron/nkipy: its playground kernel."""

import numpy as np

from . import Case


def add(module):
    random = np.random.default_rng(7)
    a, b = (random.random((128, 512)).astype(np.float32) for _ in range(2))
    yield "nki_tensor_add 128x512", module.nki_tensor_add(a, b), a + b


CASES = [Case(4, "examples/playground/simple_nki_kernel.py", add)]
