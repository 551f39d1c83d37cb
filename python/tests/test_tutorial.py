"""docs/nki-tutorial.md: its reports are today's, its steps compute what they should, the last one is near peak."""

import os
import re
import subprocess
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS = os.path.join(TOP, "examples", "nki_tutorial")


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


class Tutorial(unittest.TestCase):
    def test_reports_are_todays(self):
        done = python(os.path.join(TOP, "scripts", "nki-tutorial.py"), "--check")
        self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr} run scripts/nki-tutorial.py")

    def test_steps_compute_what_numpy_does(self):
        for name in sorted(n for n in os.listdir(STEPS) if n.startswith("step")):
            size = [] if "add" in name else ["1024"]
            done = python("-m", "frontier_nki", os.path.join(STEPS, name), *size)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(float(re.search(r"difference.*: (\S+)", done.stdout).group(1)), 1e-3, name)

    def test_six_steps_to_the_peak(self):
        with open(os.path.join(TOP, "docs", "nki-tutorial.md"), encoding="utf-8") as f:
            page = f.read()
        shares = [float(x) for x in re.findall(r"FLOPs, (\S+)% of the PE's", page)]
        self.assertEqual(len(shares), 6)
        self.assertEqual(shares[2:], sorted(shares[2:]))
        self.assertGreater(shares[-1], 85)
        self.assertEqual(int(re.search(r"product at (\d+) % of peak", page).group(1)), round(shares[-1]))


class Timeline(unittest.TestCase):
    def test_plain_letters_where_the_terminal_has_no_others(self):
        done = subprocess.run(
            [sys.executable, "-m", "frontier_nki", "--timeline", os.path.join(STEPS, "step2_add.py")],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(rb"^    DMA +\|([ .+#-]{72})\|$", done.stdout, re.M)
        self.assertEqual(len(rows), 1)
        self.assertGreater(rows[0].count(b"#"), 60)

    def test_shares_add_up_to_the_busy_time(self):
        from frontier_nki import session

        import frontier_nki

        frontier_nki.install()
        import nki
        import nki.isa as nisa
        import nki.language as nl
        import numpy as np

        @nki.jit
        def twice(x):
            y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=x)
            nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
            nisa.dma_copy(dst=y, src=t)
            return y

        session.options.timeline = True
        try:
            twice(np.ones((128, 512), np.float32))
        finally:
            session.options.timeline = False
        result = session.results[-1]
        self.assertNotIn("sync", result.timeline)
        for engine, row in result.timeline.items():
            self.assertEqual(len(row), session.TIMELINE_COLUMNS)
            self.assertTrue(all(0 <= share <= 1 for share in row))
            share = result.shares()[engine]
            self.assertAlmostEqual(sum(row) / len(row), share, delta=0.02 * share + 1e-9, msg=engine)


if __name__ == "__main__":
    unittest.main()
