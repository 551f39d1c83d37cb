"""torch tensors in, torch tensors out, inputs updated in place; skipped where torch is not installed."""

import unittest

import frontier_nki

frontier_nki.install()

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

try:
    import torch
except ImportError:
    torch = None


@nki.jit
def add(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=y)
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
    nisa.dma_copy(dst=out, src=a)
    nisa.dma_copy(dst=y, src=a)
    return out


@unittest.skipIf(torch is None, "needs torch")
class Torch(unittest.TestCase):
    def test_tensors(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32):
            x, y = ((torch.randn(64, 8) * 10).to(dtype) for _ in range(2))
            wanted = x + y
            result = add(x, y)
            self.assertEqual(result.dtype, dtype)
            self.assertTrue(torch.equal(result, wanted))
            self.assertTrue(torch.equal(y, wanted))


if __name__ == "__main__":
    unittest.main()
