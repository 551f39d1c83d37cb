"""The kernel of docs/nki-guide.md runs as printed there, through `python -m frontier_nki`."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Guide(unittest.TestCase):
    def test_kernel_of_the_guide(self):
        with open(os.path.join(TOP, "docs", "nki-guide.md")) as f:
            blocks = re.findall(r"```python\n(.*?)```", f.read(), re.S)
        self.assertEqual(len(blocks), 1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kernel.py")
            with open(path, "w") as f:
                f.write(blocks[0])
            done = subprocess.run(
                [sys.executable, "-m", "frontier_nki", path], capture_output=True, text=True
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("16384.0", done.stdout)
        self.assertIn("scale  on trn2  (simulated", done.stdout)


if __name__ == "__main__":
    unittest.main()
