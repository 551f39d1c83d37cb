"""Kernels registered with torch's autograd: gradients equal torch's, a model with kernel layers learns; skipped
where torch is not installed."""

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


def transposed(x):
    """Columns of a matrix in HBM as rows in SBUF."""
    rows, columns = x.shape
    tile = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x.ap(pattern=[[1, columns], [columns, rows]]))
    return tile


def loaded(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def product(a, b, dtype):
    """a.T @ b of two tiles, as a new tensor in HBM."""
    shape = (a.shape[1], b.shape[1])
    sums = nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=sums, stationary=a, moving=b)
    tile = nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=sums)
    out = nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def linear(x, weight):
    return product(transposed(x), transposed(weight), x.dtype)


@nki.jit
def linear_backward(x, weight, dy):
    dx = product(transposed(dy), loaded(weight), x.dtype)
    dweight = product(loaded(dy), loaded(x), x.dtype)
    return dx, dweight


@nki.jit
def relu2(x, scale=1.0):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = loaded(x)
    nisa.tensor_scalar(dst=a, data=a, op0=nl.maximum, operand0=0.0)
    nisa.activation(dst=a, op=nl.square, data=a)
    nisa.tensor_scalar(dst=a, data=a, op0=nl.multiply, operand0=scale)
    nisa.dma_copy(dst=out, src=a)
    return out


@nki.jit
def relu2_backward(x, dy, scale=1.0):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a, b = loaded(x), loaded(dy)
    nisa.tensor_scalar(dst=a, data=a, op0=nl.maximum, operand0=0.0, op1=nl.multiply, operand1=2.0 * scale)
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.multiply)
    nisa.dma_copy(dst=out, src=a)
    return out


@unittest.skipIf(torch is None, "needs torch")
class Autograd(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        from frontier_nki.torch import autograd

        self.autograd = autograd

    def compare(self, function, wanted, shapes, dtype, tolerance):
        inputs = [torch.randn(s).to(dtype).requires_grad_() for s in shapes]
        others = [x.detach().float().requires_grad_() for x in inputs]
        y, z = function(*inputs), wanted(*others)
        self.assertEqual((y.dtype, y.requires_grad), (dtype, True))
        upstream = torch.randn(z.shape).to(dtype)
        y.backward(upstream)
        z.backward(upstream.float())
        torch.testing.assert_close(y.detach().float(), z.detach(), rtol=tolerance, atol=tolerance)
        for x, other in zip(inputs, others):
            self.assertEqual(x.grad.dtype, dtype)
            torch.testing.assert_close(x.grad.float(), other.grad, rtol=tolerance, atol=tolerance)

    def test_gradients_equal_torch(self):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 6e-2), (torch.float16, 8e-3)):
            layer = self.autograd(linear, linear_backward)
            self.compare(layer, lambda x, w: x @ w.T, [(24, 16), (8, 16)], dtype, tolerance)
            act = self.autograd(relu2, relu2_backward)
            self.compare(
                lambda x: act(x, scale=0.5), lambda x: 0.5 * torch.relu(x) ** 2, [(16, 9)], dtype, tolerance
            )

    def test_a_view_as_input(self):
        x = torch.randn(9, 16, requires_grad=True)
        self.autograd(relu2, relu2_backward)(x.T).sum().backward()
        torch.testing.assert_close(x.grad, 2 * torch.relu(x.detach()))

    def test_a_model_learns(self):
        layer, act = self.autograd(linear, linear_backward), self.autograd(relu2, relu2_backward)
        x = torch.randn(32, 8)
        wanted = torch.sin(x).sum(1, keepdim=True)

        def train(first, middle, dtype):
            torch.manual_seed(1)
            w1 = (0.5 * torch.randn(16, 8)).requires_grad_()
            w2 = (0.1 * torch.randn(1, 16)).requires_grad_()
            optimizer, losses = torch.optim.Adam([w1, w2], lr=0.02), []
            for _ in range(25):
                y = first(middle(first(x.to(dtype), w1.to(dtype))), w2.to(dtype))
                loss = ((y.float() - wanted) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses

        plain = train(lambda x, w: x @ w.T, lambda u: torch.relu(u) ** 2, torch.float32)
        kernels = train(layer, act, torch.float32)
        self.assertLess(kernels[-1], 0.6 * kernels[0])
        torch.testing.assert_close(torch.tensor(kernels), torch.tensor(plain), rtol=1e-3, atol=1e-4)
        for dtype in (torch.bfloat16, torch.float16):
            losses = train(layer, act, dtype)
            self.assertLess(losses[-1], 0.7 * losses[0])

    def test_outputs_and_places(self):
        from frontier_nki import reference

        def forward(table, ids, q):
            rows = torch.from_numpy(reference.embed(table, ids))
            return rows, q * 2

        def backward(table, ids, q, rows, doubled, drows, dq):
            self.assertTrue(torch.equal(doubled, q * 2))
            return torch.from_numpy(reference.embed_backward(table, ids, drows)), 2 * dq

        table, q = torch.randn(5, 3, requires_grad=True), torch.randn(2, requires_grad=True)
        ids = torch.tensor([4, 0, 4])
        rows, doubled = self.autograd(forward, backward, outputs=True)(table, ids, q)
        (rows.sum() + doubled.sum()).backward()
        self.assertEqual(table.grad[:, 0].tolist(), [1, 0, 0, 0, 2])
        self.assertEqual(q.grad.tolist(), [2, 2])
        q.grad = None
        rows, doubled = self.autograd(forward, backward, outputs=True, gradients=(0, 2))(table, ids, q)
        doubled.sum().backward()  # rows are not used: their gradient is zero
        self.assertEqual(q.grad.tolist(), [2, 2])

    def test_what_does_not_fit_is_named(self):
        x, w = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
        for backward, text in (
            (lambda x, w, dy: dy, "returns 1 gradients for arguments 0, 1"),
            (lambda x, w, dy: (dy, dy[:2]), "gradient of argument 1 has the shape (2, 4)"),
        ):
            y = self.autograd(linear, backward)(x, w)
            with self.assertRaises(frontier_nki.UsageError) as caught:
                y.sum().backward()
            self.assertIn(text, str(caught.exception))
        y = self.autograd(relu2, relu2_backward)(x).sum()
        (dx,) = torch.autograd.grad(y, x, create_graph=True)
        with self.assertRaises(RuntimeError):
            dx.sum().backward()

    def test_no_gradient_wanted(self):
        x = torch.randn(4, 4)
        self.assertFalse(self.autograd(relu2, relu2_backward)(x).requires_grad)


class WithoutTorch(unittest.TestCase):
    @unittest.skipIf(torch is not None, "torch is installed")
    def test_says_what_is_missing(self):
        with self.assertRaises(ImportError) as caught:
            import frontier_nki.torch  # noqa: F401
        self.assertIn("pip install torch", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
