"""The matrices of steps 3 to 6, and the check of their product. Not a step.

The PE wants the contracted dimension in the partitions, so the left matrix comes turned: C = A^T B with A [K, M]
and B [K, N].
"""

import sys

import numpy as np


def run(kernel):
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
    a, b = np.random.default_rng(1).standard_normal((2, size, size), dtype=np.float32).astype(np.float16)
    c = kernel(a, b)
    want = a.astype(np.float32).T @ b.astype(np.float32)
    print("largest difference from numpy, of the largest value:", np.abs(c - want).max() / np.abs(want).max())
