"""The wheel asks for no newer C library than it says, and AWS's own package is left alone, announced and offered."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import frontier_nki

BUILT = os.path.dirname(os.path.dirname(os.path.abspath(frontier_nki.__file__)))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ADD = os.path.join(TOP, "examples", "nki_add.py")


class Wheel(unittest.TestCase):
    def test_one_wheel_for_all_pythons_and_glibc_2_28(self):
        wheels = glob.glob(os.path.join(BUILT, "frontier_nki-*.whl"))
        self.assertEqual(len(wheels), 1, wheels)
        self.assertRegex(os.path.basename(wheels[0]), r"-cp311-abi3-manylinux_2_28_\w+\.whl$")
        names = zipfile.ZipFile(wheels[0]).namelist()
        self.assertIn("frontier_nki/_core.abi3.so", names)
        self.assertEqual(len(names), len(set(names)))

    @unittest.skipUnless(shutil.which("objdump"), "needs objdump")
    def test_no_symbol_newer_than_glibc_2_28(self):
        library = os.path.join(BUILT, "frontier_nki", "_core.abi3.so")
        symbols = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", symbols)}
        self.assertTrue(versions)
        self.assertLessEqual(max(versions), (2, 28))


class AwsPackage(unittest.TestCase):
    def run_with(self, folder, *options):
        path = os.pathsep.join([BUILT, folder])
        return subprocess.run(
            [sys.executable, "-m", "frontier_nki", *options, ADD],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def fake(self, folder):
        os.makedirs(os.path.join(folder, "nki"))
        with open(os.path.join(folder, "nki", "__init__.py"), "w") as f:
            f.write("raise SystemExit('this is the other nki')\n")

    def test_absent(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_with(folder, "--backend", "aws")
        self.assertEqual(done.returncode, 4)
        self.assertIn("hint:", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_installed_is_announced_and_not_imported(self):
        with tempfile.TemporaryDirectory() as folder:
            self.fake(folder)
            done = self.run_with(folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--backend aws", done.stderr)
        self.assertIn("largest difference from numpy: 0.0", done.stdout)

    def test_backend_aws_uses_theirs(self):
        with tempfile.TemporaryDirectory() as folder:
            self.fake(folder)
            done = self.run_with(folder, "--backend", "aws")
        self.assertIn("this is the other nki", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
