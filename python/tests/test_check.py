"""frontier nki check: a right kernel passes, and each way of being wrong that is easy to miss is caught.

The wrong kernels below differ from ReLU squared or its gradient in one thing: they lose what 32 rows do not divide,
clip large values, sum in bf16, answer from memory, write to their argument, or are wrong only backward.
"""

import contextlib
import io
import json
import os
import tempfile
import unittest

import numpy as np

from frontier_nki import check, check_cases

KERNELS = '''
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

PARTS = 128


def tiles(rows):
    return [(start, min(PARTS, rows - start)) for start in range(0, rows, PARTS)]


def squares(x, most=None, whole=1, factor=1.0):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows, columns = x.shape
    for start, count in tiles(rows):
        a = nl.ndarray((count, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=x[start : start + count, :])
        done = count // whole * whole
        if done:
            b = a[0:done, :]
            nisa.tensor_scalar(dst=b, data=b, op0=nl.maximum, operand0=0.0)
            if most:
                nisa.tensor_scalar(dst=b, data=b, op0=nl.minimum, operand0=most)
            nisa.activation(dst=b, op=nl.square, data=b)
            if factor != 1.0:
                nisa.tensor_scalar(dst=b, data=b, op0=nl.multiply, operand0=factor)
        nisa.dma_copy(dst=out[start : start + count, :], src=a)
    return out


def gradient(x, dy, factor=2.0):
    dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start, count in tiles(x.shape[0]):
        a = nl.ndarray((count, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        b = nl.ndarray((count, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=x[start : start + count, :])
        nisa.dma_copy(dst=b, src=dy[start : start + count, :])
        nisa.tensor_scalar(dst=a, data=a, op0=nl.maximum, operand0=0.0, op1=nl.multiply, operand1=factor)
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.multiply)
        nisa.dma_copy(dst=dx[start : start + count, :], src=a)
    return dx


@nki.jit
def right(x):
    return squares(x)


@nki.jit
def right_backward(x, dy):
    return gradient(x, dy)


@nki.jit
def scaled(x, scale=1.0):
    return squares(x, factor=scale)


@nki.jit
def remainder(x):
    return squares(x, whole=32)


@nki.jit
def clipped(x):
    return squares(x, most=2000.0)


@nki.jit
def lopsided(x):
    return squares(x)


@nki.jit
def lopsided_backward(x, dy):
    return gradient(x, dy, factor=2.01)


memory = {}


def remembers(x):
    """The first answer for a shape, ever after."""
    key = x.shape, str(x.dtype)
    again = right(x)
    return memory.setdefault(key, again)


calls = []


def drifts(x):
    """Right until it has been called for a while."""
    calls.append(1)
    return right(x) if len(calls) < 10 else right(x) * np.float32(1.0 + 2e-6)


def host(x):
    return np.maximum(x, 0) ** 2


@nki.jit
def scribbles(x):
    out = squares(x)
    nisa.dma_copy(dst=x[0:1, :], src=out[0:1, :])
    return out


@nki.jit
def only_multiples(x):
    assert x.shape[0] % 64 == 0, "rows come in 64"
    return squares(x)


@nki.jit
def refuses_bf16(x):
    assert x.dtype == nl.float32
    return squares(x)


@nki.jit
def both(x):
    return squares(x), squares(x)


@nki.jit
def row_sums(x):
    out = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.shared_hbm)
    for start, count in tiles(x.shape[0]):
        a = nl.ndarray((count, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        s = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=x[start : start + count, :])
        nisa.tensor_reduce(dst=s, op=nl.add, data=a, axis=1)
        nisa.dma_copy(dst=out[start : start + count, :], src=s)
    return out


@nki.jit
def narrow_sums(x):
    """Sums column by column in the dtype of x."""
    out = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.shared_hbm)
    for start, count in tiles(x.shape[0]):
        a = nl.ndarray((count, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        s = nl.ndarray((count, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=x[start : start + count, :])
        nisa.memset(dst=s, value=0.0)
        for j in range(x.shape[1]):
            nisa.tensor_tensor(dst=s, data1=s, data2=a[:, j : j + 1], op=nl.add)
        nisa.dma_copy(dst=out[start : start + count, :], src=s)
    return out
'''

REFERENCES = """
import numpy as np

def squares(x, scale=1.0):
    return scale * np.maximum(x, 0) ** 2

def row_sums(x):
    return x.sum(1)
"""


class Check(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, text in (("kernels", KERNELS), ("references", REFERENCES)):
            with open(os.path.join(cls.folder.name, f"{name}.py"), "w") as f:
                f.write(text)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, kernel, *more, against="reference:relu_squared", shape="64x96", seed="1"):
        """(exit code, what --json says, what people read)"""
        out, people = io.StringIO(), io.StringIO()
        words = [
            f"{self.folder.name}/kernels.py:{kernel}",
            "--against",
            against.replace("HERE", self.folder.name),
        ]
        words += ["--shape", shape, "--seed", seed, "--json", *more]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(people):
            code = check.main(words)
        return code, json.loads(out.getvalue()), people.getvalue()

    def caught(self, kernel, text, *more, **options):
        code, said, people = self.check(kernel, *more, **options)
        self.assertEqual(code, 1, people)
        wrong = [c for c in said["cases"] if c["status"] == "failed"]
        self.assertTrue(any(text in c["error"] for c in wrong), [c["error"] for c in wrong])
        return wrong

    def test_a_right_kernel(self):
        code, said, people = self.check("right")
        self.assertEqual((code, said["failed"], said["refused"]), (0, 0, 0), people)
        asked = {(c["pass"], c["shapes"], c["dtype"]) for c in said["cases"]}
        for way in ("forward", "backward"):
            for source in check_cases.KINDS:
                for dtype in check_cases.TOLERANCE:
                    self.assertIn((way, source, dtype), asked)
        self.assertEqual(said["cases"][-1]["shapes"], "again")

    def test_only_on_shapes_that_tiles_do_not_divide(self):
        wrong = self.caught("remainder", "output[")
        self.assertEqual({c["shapes"] for c in wrong} & {"given"}, set())
        self.assertEqual(self.check("remainder", "--hidden", "0", "--fixed", "64,96")[0], 0)

    def test_only_backward(self):
        wrong = self.caught("lopsided", "gradient[", "--dtype", "float32")
        self.assertEqual({c["pass"] for c in wrong}, {"backward"})

    def test_only_for_large_values(self):
        wrong = self.caught("clipped", "output[", "--dtype", "float32", "--hidden", "0", "--fixed", "64,96")
        self.assertEqual({c["values"] for c in wrong}, {"large", "huge"})

    def test_answers_from_memory(self):
        self.caught("remembers", "output[")

    def test_state_between_calls(self):
        wrong = self.caught("drifts", "other bits than at first", "--dtype", "float32", "--hidden", "2")
        self.assertEqual(
            [c["shapes"] for c in wrong], ["again"]
        )  # within the tolerance, so nothing else sees it

    def test_nothing_runs_on_the_core(self):
        self.caught("host", "launches no kernel")

    def test_writes_to_its_argument(self):
        self.caught("scribbles", "writes to argument 0")
        self.assertEqual(self.check("scribbles", "--in-place")[0], 0)

    def test_number_of_outputs(self):
        self.caught("both", "returns 2 arrays, the reference 1")
        self.assertEqual(self.check("both", "--outputs", "1")[0], 0)

    def test_sums_too_narrow(self):
        against = "HERE/references.py:row_sums"
        self.assertEqual(self.check("row_sums", against=against, shape="8x300")[0], 0)
        wrong = self.caught("narrow_sums", "output[", against=against, shape="8x300")
        self.assertEqual({c["dtype"] for c in wrong} & {"float32"}, set())

    def test_refusals(self):
        code, said, people = self.check("only_multiples", "--dtype", "float32")
        self.assertEqual(code, 0)
        self.assertGreater(said["refused"], 0)
        self.assertIn("refused random: AssertionError", people)
        self.assertEqual(self.check("only_multiples", "--dtype", "float32", "--strict")[0], 1)
        self.assertEqual(self.check("only_multiples", shape="65x96")[0], 1)
        self.assertEqual(self.check("refuses_bf16")[0], 0)
        self.assertEqual(self.check("refuses_bf16", "--dtype", "float32,bfloat16")[0], 1)

    def test_gradient_of_a_reference_without_one(self):
        here = "HERE/references.py:squares"
        code, said, people = self.check("right", "--dtype", "float32", against=here)
        self.assertEqual(code, 0, people)
        self.assertIn("central differences", people)
        self.assertIn("backward", {c["pass"] for c in said["cases"]})
        self.caught("lopsided", "slope", "--dtype", "float32", against=here)

    def test_settings(self):
        here = "HERE/references.py:squares"
        self.assertEqual(self.check("scaled", "--set", "scale=0.5", "--dtype", "float32", against=here)[0], 0)
        _, _, people = self.check("right", "--set", "heads=3")
        self.assertIn("--set heads: nobody has a parameter", people)

    def test_the_seed_is_withheld(self):
        words = [f"{self.folder.name}/kernels.py:right", "--against", "reference:relu_squared", "--json"]
        seeds = set()
        for _ in range(2):
            out = io.StringIO()
            more = ["--shape", "4x4", "--dtype", "float32", "--hidden", "1"]
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                check.main(words + more)
            seeds.add(json.loads(out.getvalue())["seed"])
        self.assertEqual(len(seeds), 2)
        first, second = (self.check("right", seed="7")[1]["cases"] for _ in range(2))
        self.assertEqual(first, second)

    def test_options_that_make_no_sense(self):
        for more in (
            ("--dtype", "int32"),
            ("--fixed", "a"),
            ("--hidden", "-1"),
            ("--tolerance", "0"),
            ("--set", "heads"),
            ("--set", "a b=1"),
            ("--values", "tiny"),
            ("--outputs", "x"),
            ("--backward", "nowhere.py:f"),
            ("--against", "reference:tanh"),
            ("--against", "reference:np"),
            ("--shape", "4x4:ids0"),
        ):
            code, said, _ = self.check("right", *more)
            self.assertEqual((code, said["exit"]), (2, 2), more)


class Cases(unittest.TestCase):
    def test_sizes_change_together(self):
        given = check_cases.shapes_of("128x64,64x512,128:ids512")
        found = {check_cases.label(s) for s in check_cases.edge_shapes(given, {64})}
        self.assertIn("127x64,64x512,127:ids512", found)
        self.assertIn("128x64,64x513,128:ids513", found)
        self.assertNotIn("128x63,63x512,128:ids512", found)
        self.assertIn("1x64,64x2,1:ids2", found)
        random = np.random.default_rng(0)
        for shapes in check_cases.hidden_shapes(given, {64}, random, 20):
            self.assertEqual(shapes[0].sizes[0], shapes[2].sizes[0])
            self.assertEqual(shapes[1].sizes[1], shapes[2].ids)
            self.assertEqual(shapes[0].sizes[1], 64)

    def test_values(self):
        random = np.random.default_rng(0)
        for dtype in check_cases.TOLERANCE:
            for name in check_cases.VALUES:
                array = check_cases.value(check_cases.Argument((5, 7)), name, dtype, random)
                self.assertTrue(np.isfinite(check_cases.wide(array)).all())
        ids = check_cases.value(check_cases.Argument((50,), ids=3), "random", "float32", random)
        self.assertEqual((ids.dtype, set(ids)), (np.int32, {0, 1, 2}))
        self.assertTrue(
            (check_cases.value(check_cases.Argument((9,), True), "random", "float32", random) > 0).all()
        )

    def judged(self, got, wanted, again=None, tolerance=1e-4):
        wanted = np.asarray(wanted, dtype=np.float64)
        again = wanted if again is None else np.asarray(again)
        return check_cases.judge(np.asarray(got, np.float32), wanted, again, tolerance)

    def test_closeness(self):
        rows = np.array([[1000.0, 2000.0], [100.0, 200.0]])
        self.assertFalse(self.judged(rows, rows).text)
        self.assertTrue(self.judged(rows + [[0, 0], [0, 0.1]], rows).text)  # 5e-4 of its row
        self.assertFalse(self.judged(rows + [[0, 0.1], [0, 0]], rows).text)  # 5e-5 of its row
        self.assertFalse(self.judged(rows + [[0, 0], [0, 0.1]], rows, rows + [[0, 0], [0.03, 0]]).text)
        self.assertTrue(self.judged([np.nan], [1.0]).text)
        self.assertTrue(self.judged([1.0], [np.nan]).text)
        self.assertFalse(self.judged([np.inf], [np.inf]).text)
        self.assertTrue(self.judged([-np.inf], [np.inf]).text)
        self.assertTrue(self.judged([0.0, 0.0], [1.0, 1.0]).text)
        self.assertTrue(self.judged([[1.0]], [1.0, 1.0]).text)
        self.assertFalse(self.judged([[1.0], [2.0]], [1.0, 2.0]).text)  # a column
        whole = check_cases.judge(np.array([1, 2]), np.array([1, 3]), np.array([1, 3]), 1e-4)
        self.assertTrue(whole.text)
        half = check_cases.judge(np.array([np.inf], np.float16), np.array([1e5]), np.array([1e5]), 4e-3)
        self.assertFalse(half.text)

    def test_slopes(self):
        random = np.random.default_rng(0)
        x = random.standard_normal((3, 5))
        along = check_cases.directions(x.shape, random)
        got = check_cases.slopes(lambda a: (a**3,), [x], 0, [np.ones_like(x)], along)
        np.testing.assert_allclose(got, (3 * x**2).reshape(-1), rtol=1e-6)
        self.assertEqual(check_cases.directions((40, 30), random).shape, (32, 40, 30))


if __name__ == "__main__":
    unittest.main()
