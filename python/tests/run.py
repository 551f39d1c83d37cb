"""python/tests/run.py [FOLDER]: all tests of the Python package, or of a folder beside it, with the closing line the
other runners print. A FOLDER is named from the top of the repository, as in kernels/tests."""

import os
import sys
import unittest

top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
folder = sys.argv[1] if len(sys.argv) > 1 else "python/tests"
try:
    import numpy  # noqa: F401
except ImportError:
    print(f"ok - {folder} # SKIP this Python has no numpy: apt-get install python3-numpy")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)
sys.path.insert(0, top)
suite = unittest.defaultTestLoader.discover(os.path.join(top, folder), "test_*.py")
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
bad = len({str(t).split(" (")[0] for t, _ in result.failures + result.errors})
print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed, {len(result.skipped)} skipped")
sys.exit(bad > 0)
