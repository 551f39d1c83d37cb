"""The programs of docs/nki-guide.md run as printed there, through `python -m frontier_nki`."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Guide(unittest.TestCase):
    def test_programs_of_the_guide(self):
        with open(os.path.join(TOP, "docs", "nki-guide.md")) as f:
            blocks = re.findall(r"```python\n(.*?)```", f.read(), re.S)
        first = self.run_block(blocks[0])
        self.assertIn("16384.0", first)
        self.assertIn("scale  on trn2  (simulated", first)
        for block in blocks[1:]:
            if "torch" not in block or importlib.util.find_spec("torch"):
                self.run_block(block)

    def run_block(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kernel.py")
            with open(path, "w") as f:
                f.write(text)
            done = subprocess.run(
                [sys.executable, "-m", "frontier_nki", path], capture_output=True, text=True
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
