"""Every instruction's example runs, every rule's example breaks that rule and no other."""

import ast
import unittest

import numpy as np

import frontier_nki
from frontier_nki import _core, language_rules, session

frontier_nki.install()

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

TWO_CORES = {"sendrecv", "core_barrier"}  # test_tiles.py has them, between two programs
GENERATIONS = {2: "trn1", 3: "trn2", 4: "trn3"}


def kernel_of(lines):
    """The example as a kernel: tiles a, b, c of 128 x 64 float32 in SBUF that hold data."""
    code = compile(lines, "example", "exec")

    @nki.jit
    def example(x):
        names = {"nl": nl, "nisa": nisa, "np": np}
        for name in "abc":
            names[name] = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=names[name], src=x)
        exec(code, names)

    return example


def run(lines, generation):
    session.options.machine = GENERATIONS[generation]
    x = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64) % 61) / 61 + 0.25
    kernel_of(lines)(x)


class Tables(unittest.TestCase):
    def tearDown(self):
        session.options.machine = None

    def test_instruction_examples(self):
        for entry in _core.instructions():
            if entry["name"] in TWO_CORES:
                continue
            with self.subTest(instruction=entry["name"]):
                self.assertTrue(entry["example"], "no example")
                self.assertIn(f"nisa.{entry['name']}(", entry["example"])
                run(entry["example"], max(3, entry["least_generation"]))

    def test_instruction_parameters(self):
        for entry in _core.instructions():
            names = [p["name"] for p in entry["parameters"]]
            self.assertEqual(len(names), len(set(names)), entry["name"])
            with self.subTest(instruction=entry["name"]), self.assertRaises(TypeError):
                run(f"nisa.{entry['name']}(no_such_argument=1)", 3)

    def test_rule_examples(self):
        for rule in _core.rules():
            if not rule["example"]:
                continue
            with self.subTest(rule=rule["name"]):
                with self.assertRaises(frontier_nki.RuleError) as caught:
                    run(rule["example"], 3)
                self.assertTrue(caught.exception.what.startswith(rule["name"] + ":"), str(caught.exception))
                self.assertTrue(caught.exception.where.startswith("example:"), str(caught.exception))


    def test_language_rules(self):
        rules = _core.language_rules()
        self.assertEqual({rule["name"] for rule in rules}, set(language_rules.CHECKS))
        for rule in rules:
            with self.subTest(rule=rule["name"]):
                found = language_rules.broken(ast.parse(rule["example"]), {"nl": nl, "nisa": nisa, "np": np})
                self.assertEqual({name for _, name in found}, {rule["name"]})

    def test_warnings_name_the_line(self):
        said = []
        self.assertEqual(language_rules.warn(asks_numpy, said.append), 1)
        line = asks_numpy.__code__.co_firstlineno + 1
        self.assertIn(f"test_tables.py:{line}: python_numpy:", said[0])
        self.assertEqual(language_rules.warn(asks_numpy, said.append), 0)  # once a process


def asks_numpy(tile: np.ndarray):
    return np.cumsum(tile)


if __name__ == "__main__":
    unittest.main()
