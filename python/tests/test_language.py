"""nl.*: every function of tiles against numpy, in both styles."""

import contextlib
import io
import dataclasses
import os
import unittest
import unittest.mock

import numpy as np

import frontier_nki
from frontier_nki import session

frontier_nki.install()

import neuronxcc.nki as old_nki  # noqa: E402
import neuronxcc.nki.language as old_nl  # noqa: E402
import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((64, 48)).astype(np.float32)
Y = RANDOM.standard_normal((64, 48)).astype(np.float32)
POSITIVE = np.abs(X) + 0.5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    t = np.linspace(0, 1, 2001)
    return (
        np.trapezoid(np.exp(-((x[..., None] * t) ** 2)), t) * x * 2 / np.sqrt(np.pi)
        if hasattr(np, "trapezoid")
        else np.trapz(np.exp(-((x[..., None] * t) ** 2)), t) * x * 2 / np.sqrt(np.pi)
    )


UNARY = {
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "square": np.square,
    "abs": np.abs,
    "silu": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "gelu": lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2))),
    "erf": erf,
    "sign": np.sign,
    "negative": np.negative,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "copy": lambda x: x,
    "gelu_apprx_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "logical_not": lambda x: (x == 0).astype(np.float32),
}
POSITIVE_UNARY = {
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
}


def run(compute, *arrays, style=nki, language=nl):
    """What `compute` makes of the arrays' tiles, through HBM."""

    @style.jit
    def kernel(*inputs):
        result = compute(*[language.load(x) for x in inputs])
        out = language.ndarray(result.shape, dtype=result.dtype, buffer=language.shared_hbm)
        language.store(out, value=result)
        return out

    return kernel(*arrays)


class Objects(unittest.TestCase):
    def test_plain_attributes_are_fields(self):
        @dataclasses.dataclass
        class Parameters(nl.NKIObject):
            rows: int
            tile = None
            columns: int = 3
            table = [1]

            def area(self):
                return self.rows * self.columns

        p = Parameters(4, tile=2)
        self.assertEqual((p.rows, p.columns, p.tile, p.area(), p.table), (4, 3, 2, 12, [1]))
        self.assertIsNone(Parameters(tile=1).rows)
        with self.assertRaises(TypeError):
            Parameters(4, absent=1)


class Functions(unittest.TestCase):
    def close(self, name, got, wanted, tolerance=2e-5):
        with self.subTest(function=name):
            self.assertEqual(got.shape, wanted.shape)
            np.testing.assert_allclose(
                got.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance
            )

    def test_unary(self):
        for name, reference in UNARY.items():
            self.close(name, run(getattr(nl, name), X), reference(X))
            self.close(
                "old " + name, run(getattr(old_nl, name), X, style=old_nki, language=old_nl), reference(X)
            )
        for name, reference in POSITIVE_UNARY.items():
            self.close(name, run(getattr(nl, name), POSITIVE), reference(POSITIVE))

    def test_angles(self):
        self.close("sin", run(nl.sin, np.clip(X, -3, 3)), np.sin(np.clip(X, -3, 3)))
        small = np.clip(X, -1.4, 1.4)
        self.close("arctan", run(nl.arctan, small), np.arctan(small))
        self.close("cos", run(nl.cos, small), np.cos(small))
        self.close("tan", run(nl.tan, np.clip(X, -1, 1)), np.tan(np.clip(X, -1, 1)), 1e-4)

    def test_binary(self):
        for name, reference in BINARY.items():
            function = getattr(nl, name)
            self.close(name, run(function, X, Y), reference(X, Y))
            self.close(name + " number", run(lambda x: function(x, 0.25), X), reference(X, np.float32(0.25)))
            self.close(
                name + " column", run(lambda x, y: function(x, y[:, 0:1]), X, Y), reference(X, Y[:, 0:1])
            )
        self.close("number first", run(lambda x: nl.subtract(1.0, x), X), 1 - X)
        self.close("divide", run(nl.divide, X, POSITIVE), X / POSITIVE)
        self.close("divide number", run(lambda x: nl.divide(2.0, x), POSITIVE), 2 / POSITIVE)

    def test_integers(self):
        a, b = RANDOM.integers(0, 1 << 20, (32, 16), dtype=np.int32), RANDOM.integers(
            0, 31, (32, 16), dtype=np.int32
        )
        for name, reference in (
            ("bitwise_and", np.bitwise_and),
            ("bitwise_or", np.bitwise_or),
            ("bitwise_xor", np.bitwise_xor),
            ("add", np.add),
            ("subtract", np.subtract),
        ):
            self.close(name, run(getattr(nl, name), a, b), reference(a, b))
        self.close("left_shift", run(lambda x: nl.left_shift(x, 3), a), a << 3)
        self.close("right_shift", run(lambda x: nl.right_shift(x, 3), a), a >> 3)
        self.close("invert", run(nl.invert, a), ~a)

    def test_broadcasts(self):
        row = RANDOM.standard_normal((1, 48)).astype(np.float32)
        self.close("a row over partitions", run(nl.multiply, X, row), X * row)
        cube = RANDOM.standard_normal((64, 3, 16)).astype(np.float32)
        self.close("free", run(lambda x, y: nl.add(x, y[:, 0:1, :]), cube, cube), cube + cube[:, :1])
        self.close(
            "broadcast_to",
            run(lambda x: nl.copy(nl.broadcast_to(x, (64, 48))), row),
            np.broadcast_to(row, (64, 48)),
        )
        with self.assertRaises(frontier_nki.UsageError):
            run(nl.add, X, np.ascontiguousarray(Y[:, :7]))

    def test_reductions(self):
        cube = RANDOM.standard_normal((32, 6, 8)).astype(np.float32)
        for name, reference in (
            ("sum", np.sum),
            ("max", np.max),
            ("min", np.min),
            ("mean", np.mean),
            ("var", np.var),
        ):
            function = getattr(nl, name)
            self.close(name, run(lambda x: function(x, axis=[1]), X), reference(X, axis=1)[:, None])
            self.close(name + " middle", run(lambda x: function(x, axis=1), cube), reference(cube, axis=1))
            self.close(
                name + " two",
                run(lambda x: function(x, axis=[1, 2]), cube),
                reference(cube, axis=(1, 2))[:, None],
            )
            self.close(
                name + " keepdims",
                run(lambda x: function(x, axis=2, keepdims=True), cube),
                reference(cube, axis=2, keepdims=True),
            )
        self.close(
            "prod",
            run(lambda x: nl.prod(x, axis=1), POSITIVE[:, :6].copy()),
            np.prod(POSITIVE[:, :6], 1)[:, None],
            1e-4,
        )
        with self.assertRaises(frontier_nki.UsageError):
            run(lambda x: nl.sum(x, axis=0), X)

    def test_softmax_and_rms_norm(self):
        powers = np.exp(X - X.max(1, keepdims=True))
        self.close("softmax", run(lambda x: nl.softmax(x, axis=-1), X), powers / powers.sum(1, keepdims=True))
        gain = RANDOM.standard_normal((1, 48)).astype(np.float32)
        wanted = X / np.sqrt((X**2).mean(1, keepdims=True) + 1e-6) * gain
        self.close("rms_norm", run(lambda x, w: nl.rms_norm(x, w, -1, 48), X, gain), wanted)

    def test_products(self):
        a, b = X[:, :32].copy(), Y
        self.close("transpose", run(nl.transpose, a), a.T)
        self.close(
            "matmul transposed",
            run(lambda x, y: nl.copy(nl.matmul(x, y, transpose_x=True)), a, b),
            a.T @ b,
            1e-4,
        )
        square = RANDOM.standard_normal((48, 20)).astype(np.float32)
        self.close("matmul", run(lambda x, y: nl.copy(nl.matmul(x, y)), X, square), X @ square, 1e-4)

    def test_where_and_fills(self):
        self.close("where", run(lambda x, y: nl.where(nl.greater(x, 0.0), x, y), X, Y), np.where(X > 0, X, Y))
        self.close(
            "where number", run(lambda x: nl.where(nl.greater(x, 0.0), x, -1.0), X), np.where(X > 0, X, -1)
        )
        self.close(
            "full",
            run(lambda x: nl.add(nl.full(x.shape, 3.0, nl.float32), nl.zeros_like(x)), X),
            np.full_like(X, 3),
        )
        self.close("ones", run(lambda x: nl.multiply(nl.ones(x.shape, nl.float32), x), X), X)

    def test_constants(self):
        @nki.jit
        def kernel():
            out = nl.ndarray((16, 16), dtype=nl.float32, buffer=nl.shared_hbm)
            both = nl.add(
                nl.shared_identity_matrix(16, dtype=nl.float32),
                nl.load(nl.shared_constant(np.full((16, 16), 2.0))),
            )
            nl.store(out, both)
            return out

        np.testing.assert_array_equal(kernel(), np.eye(16) + 2)

    def test_random_numbers(self):
        a = run(lambda x: nl.rand(x.shape, nl.float32), X)
        self.assertTrue(((a >= 0) & (a < 1)).all())
        self.assertGreater(len(np.unique(a)), 500)

    def test_device_print(self):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):

            def compute(x):
                nl.device_print("tile:", x)
                return x

            run(compute, np.full((2, 2), 7.0, np.float32))
        self.assertIn("tile: [[7. 7.]", text.getvalue())

    def test_programs_and_sizes(self):
        @nki.jit
        def kernel():
            return (
                nl.program_id(0),
                nl.num_programs(0),
                nl.program_ndim(),
                nl.tile_size.pmax,
                nl.tile_size.psum_num_banks,
                list(nl.affine_range(2, 8, 3)),
                nl.is_sbuf(nl.sbuf),
                nl.is_on_chip(nl.hbm),
            )

        self.assertEqual(kernel(), (0, 1, 0, 128, 8, [2, 5], True, False))
        with unittest.mock.patch.dict(os.environ, NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE="true"):
            self.assertEqual(kernel()[4], 7)


class Options(unittest.TestCase):
    def kernel(self):
        @nki.jit
        def copies(x):
            tile = nl.ndarray((2, 4), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile[:, 0:2], src=x, dge_mode=3)
            out = nl.ndarray((2, 4), dtype=nl.float32, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=tile)
            return out

        return copies

    def test_unwritten_memory_is_an_error_or_nan(self):
        x = np.ones((2, 2), np.float32)
        with self.assertRaisesRegex(frontier_nki.RuleError, "uninitialised_read"):
            self.kernel()(x)
        session.options.unwritten = "nan"
        try:
            got = self.kernel()(x)
        finally:
            session.options.unwritten = "error"
        self.assertTrue((got[:, :2] == 1).all() and np.isnan(got[:, 2:]).all())

    def test_choices_have_numbers(self):
        @nki.jit
        def copies(x, mode):
            tile = nl.ndarray((2, 2), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x, dge_mode=mode)
            return nl.ndarray((2, 2), dtype=nl.float32, buffer=nl.shared_hbm)

        for mode in (9, -1, True, 1 << 70):
            with self.subTest(mode=mode), self.assertRaises(TypeError):
                copies(np.ones((2, 2), np.float32), mode)


if __name__ == "__main__":
    unittest.main()
