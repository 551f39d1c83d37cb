"""python/tests/run.py: all tests of the Python package, with the closing line the other runners print."""

import os
import sys
import unittest

here = os.path.dirname(os.path.abspath(__file__))
try:
    import numpy  # noqa: F401
except ImportError:
    print("ok - python # SKIP this Python has no numpy: apt-get install python3-numpy")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)
suite = unittest.defaultTestLoader.discover(here, "test_*.py")
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
bad = len({str(t).split(" (")[0] for t, _ in result.failures + result.errors})
print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed, {len(result.skipped)} skipped")
sys.exit(bad > 0)
