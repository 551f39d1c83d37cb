"""neuronxcc.starfish.support.util: the comparison that tests of public kernels use."""

import numpy as np


def allclose(actual, wanted, atol=1e-5, rtol=1e-5, verbose=0, **options):
    """Whether the arrays agree; with verbose, the largest difference is printed."""
    a, b = np.asarray(actual).astype(np.float64), np.asarray(wanted).astype(np.float64)
    if verbose:
        print(f"largest difference {np.abs(a - b).max()}")
    return bool(np.allclose(a, b, atol=atol, rtol=rtol))
